"""The store: every bit comes back; what is wrong with a file is said, and the file left alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.campaign import Store, _disk, _store
from giantsteps.campaign._cells import Cell
from giantsteps.campaign._values import Outcome
from giantsteps.errors import StoreError


def cell(number: int) -> Cell:
    return Cell(
        address=f"{number:064x}",
        source="simulation",
        question="risk",
        version=1,
        d=10,
        seed=number,
        problem="p",
        content="{}",
        options="{}",
    )


def outcome(value: float = 0.1, error: str | None = None, size: int = 3) -> Outcome:
    return Outcome(
        numbers={"test": value, "train": -0.0, "edge": float("inf")},
        arrays={"by_degree": (("degree",), np.full(size, value))} if error is None else {},
        error=error,
        seconds=0.5,
        finished=1.0,
        provenance='{"host": "here"}',
    )


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store with 200 cells, closed."""
    path = tmp_path / "filled.sqlite"
    with Store(path, write=True) as store:
        store.save((cell(number), outcome(number / 7, size=50)) for number in range(200))
    return path


def test_numbers_and_arrays_keep_their_bits(tmp_path: Path) -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, float("nan"), float("-inf")]
    with Store(tmp_path / "s.sqlite", write=True) as store:
        store.save((cell(number), outcome(value)) for number, value in enumerate(values))
    with Store(tmp_path / "s.sqlite") as store:
        numbers = store.numbers(store.status())
        for number, value in enumerate(values):
            found = numbers[cell(number).address]
            assert struct.pack("d", found["test"]) == struct.pack("d", value)
            assert struct.pack("d", found["train"]) == struct.pack("d", -0.0)
            assert found["edge"] == np.inf
            dims, array = store.arrays_of(cell(number).address)["by_degree"]
            assert dims == ("degree",)
            assert array.tobytes() == np.full(3, value).tobytes()
        assert store.provenance(cell(0).address)["host"] == "here"


def test_what_is_done_stays_and_what_failed_is_replaced(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite", write=True) as store:
        store.save([(cell(0), outcome(0.1)), (cell(1), outcome(error="ValueError: no"))])
        store.save([(cell(0), outcome(0.2)), (cell(1), outcome(0.3))])
        numbers = store.numbers(store.status())
        assert [numbers[cell(number).address]["test"] for number in (0, 1)] == [0.1, 0.3]
        assert store.arrays_of(cell(0).address)["by_degree"][1][0] == 0.1
        store.save([(cell(0), outcome(error="ValueError: no"))])
        assert store.status() == {cell(0).address: "done", cell(1).address: "done"}
        assert store.errors() == {}


def test_an_aborted_transaction_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> Iterator[Any]:
        yield cell(0), outcome()
        raise KeyboardInterrupt

    with Store(tmp_path / "s.sqlite", write=True) as store:
        with pytest.raises(KeyboardInterrupt):
            store.save(broken())
        assert store.status() == {}
        store.save([(cell(1), outcome())])
        assert list(store.status()) == [cell(1).address]


# Files that are not to be used ------------------------------------------------------------------


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def cut_within_a_page(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 100)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def scrambled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:16384] = np.random.default_rng(0).bytes(12288)
    path.write_bytes(content)


def another_kind(path: Path) -> None:
    path.write_text("[problem]\nactivation = 'tanh'\n" * 20)


def foreign(path: Path) -> None:
    path.unlink()
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE mine (x)")
    db.commit()
    db.close()


def newer(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {_store.FORMAT + 1}")
    db.commit()
    db.close()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (truncated, "damaged"),
        (cut_within_a_page, "damaged"),
        (scrambled, "damaged"),
        (emptied, "it is empty"),
        (another_kind, "a file of another kind"),
        (foreign, "not a store of giantsteps"),
        (newer, "format 2; this giantsteps reads formats up to 1. Upgrade"),
    ],
)
@pytest.mark.parametrize("write", [True, False], ids=["write", "read"])
def test_a_bad_file_is_named_and_left_alone(
    filled: Path, spoil: Callable[[Path], None], message: str, write: bool
) -> None:
    def use() -> None:
        with Store(filled, write=write) as store:
            store.numbers(store.status())
            store.arrays(store.status(), "by_degree")

    spoil(filled)
    before = filled.read_bytes()
    with pytest.raises(StoreError, match=message):
        use()
    assert filled.read_bytes() == before


def test_a_folder_or_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="it is a folder"):
        Store(tmp_path, write=True)
    with pytest.raises(StoreError, match="cannot be created: there is no folder"):
        Store(tmp_path / "nowhere" / "s.sqlite", write=True)


def test_a_full_disk_costs_nothing_that_was_saved(filled: Path) -> None:
    with Store(filled, write=True) as store:
        store._db.execute("PRAGMA max_page_count = 1").fetchone()  # it is already larger
        with pytest.raises(StoreError, match="disk is full"):
            store.save((cell(number), outcome(size=5000)) for number in range(1000, 1100))
        store._db.execute("PRAGMA max_page_count = 1000000").fetchone()
        assert len(store.status()) == 200
        store.save([(cell(1000), outcome())])
    with Store(filled, write=True) as store:
        assert len(store.status()) == 201


@pytest.fixture
def locked_away(filled: Path) -> Iterator[Any]:
    """A store in a folder that this process may only read, root or not."""
    folder = Path(tempfile.mkdtemp())
    path = folder / "store.sqlite"
    shutil.copy(filled, path)
    path.chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield path
    if root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_a_read_only_store_is_read_but_not_written(locked_away: Path) -> None:
    with pytest.raises(StoreError, match=r"read-only|cannot be opened"):
        Store(locked_away, write=True)
    with Store(locked_away) as store:
        assert len(store.numbers(store.status())) == 200
    with pytest.raises(StoreError, match="cannot be opened"):
        Store(locked_away.with_name("other.sqlite"), write=True)


def test_a_reader_cannot_write(filled: Path) -> None:
    with Store(filled) as store, pytest.raises(StoreError, match="read-only"):
        store.save([(cell(999), outcome())])


# Journals and disks -----------------------------------------------------------------------------


def journal(path: Path) -> str:
    with Store(path, write=True) as store:
        return store._db.execute("PRAGMA journal_mode").fetchone()[0]


def test_write_ahead_log_here_rollback_journal_on_network_disks(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert journal(filled) == "wal"
    monkeypatch.setattr(_store, "is_network_disk", lambda path: True)
    assert journal(filled) == "delete"
    with Store(filled, write=True) as store:
        store.save([(cell(300), outcome())])
        assert not filled.with_name(filled.name + "-wal").exists()
    monkeypatch.undo()
    assert journal(filled) == "wal"
    with Store(filled) as store:
        assert len(store.status()) == 201


def test_network_disks_are_told_by_their_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        "/dev/sda / ext4 rw 0 0\n"
        "server:/home /home nfs4 rw 0 0\n"
        "/dev/sdb /home/local ext4 rw 0 0\n"
        "server:/data /my\\040data lustre rw 0 0\n"
    )
    shared = {"/tmp/a": False, "/home/me/a": True, "/home/local/a": False, "/homestead/a": False}
    shared |= {"/my data/a": True, "/my/a": False}
    for path, expected in shared.items():
        assert _disk.is_network_disk(Path(path), mounts) is expected, path
    assert _disk.is_network_disk(tmp_path, tmp_path / "none") is False


def test_a_new_store_appears_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Store(path, write=True)
    assert list(tmp_path.iterdir()) == []
    _disk.write_once(path, b"first")
    _disk.write_once(path, b"second")
    assert path.read_bytes() == b"first"
    with monkeypatch.context() as patch:  # a disk without hard links
        patch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(OSError("no links")))
        _disk.write_once(path, b"third")
        _disk.write_once(tmp_path / "t", b"fourth")
    assert path.read_bytes() == b"first"
    assert (tmp_path / "t").read_bytes() == b"fourth"
    assert {file.name for file in tmp_path.iterdir()} == {"s.sqlite", "t"}


def test_threads_that_create_one_store_find_it_whole(tmp_path: Path) -> None:
    def create(path: Path) -> None:
        for number in range(20):
            with Store(path.with_name(f"{number}.sqlite"), write=True, check=False) as store:
                found.append(len(store.status()))

    found: list[int] = []
    threads = [threading.Thread(target=create, args=(tmp_path / "s",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 80


def test_what_a_killed_process_left_is_read(filled: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    with Store(filled, write=True) as store:
        store.save([(cell(500), outcome(0.25))])
        for end in ("", "-wal"):  # as they are while the process is at work
            shutil.copy(f"{filled}{end}", f"{copy}{end}")
    assert Path(f"{copy}-wal").stat().st_size > 0
    with Store(copy) as store:
        assert store.numbers(store.status())[cell(500).address]["test"] == 0.25


def test_opening_a_store_twice_keeps_the_locks_of_the_first(filled: Path) -> None:
    """Another process must see that the file is in use, or it removes the log under the writer."""
    log = Path(f"{filled}-wal")
    with Store(filled, write=True) as writer:
        writer.save([(cell(501), outcome(0.5))])
        Store(filled).close()
        other = f"import sqlite3; db = sqlite3.connect({str(filled)!r}); "
        other += "db.execute('SELECT count(*) FROM cells').fetchone(); db.close()"
        subprocess.run([sys.executable, "-c", other], check=True)
        assert log.exists()
    with Store(filled) as store:
        assert store.numbers(store.status())[cell(501).address]["test"] == 0.5


def test_errors_of_a_store_reach_the_caller_of_a_sweep(make: Callable[..., gs.Sweep]) -> None:
    sweep = make()
    with pytest.raises(StoreError, match="run the sweep first"):
        sweep.to_frame()
    assert sweep.status().left == len(sweep.addresses)
    sweep.store.write_text("not a store")
    again = partial(sweep.run, retry=True)
    for call in (sweep.run, sweep.status, again, sweep.to_frame):
        with pytest.raises(StoreError, match="a file of another kind"):
            call()
    assert sweep.store.read_text() == "not a store"
    new = sweep.store.with_name("new.sqlite")
    Store(new, write=True).close()
    with pytest.raises(StoreError, match="no sweep was run"):
        gs.Sweep.from_store(new)
