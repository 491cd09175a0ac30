"""The store: one SQLite file (or none, in memory), written by runners, never by their workers.

Every finished cell is one row under its address. A row is written once: whatever is killed,
results that were committed stay, and none is doubled. Failures are rows too, and are replaced
when the cell is asked again. Where results come from (versions, machine, time) stands beside
them and takes part in no comparison.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import numpy as np

from giantsteps.campaign._cells import Cell
from giantsteps.campaign._disk import is_network_disk, write_once
from giantsteps.campaign._sqlite import (
    check_not_empty,
    check_whole,
    connect,
    connect_to_read,
    damaged,
    explain,
)
from giantsteps.campaign._values import Named, Outcome, from_json, to_json
from giantsteps.errors import InvalidProblem, StoreError

#: Version of the tables; raised when an older giantsteps could no longer read them.
FORMAT = 1
#: Marks the file as ours ("gsts" in ASCII).
APPLICATION = 0x67737473

_SCHEMA = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE problems (hash TEXT PRIMARY KEY, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cells (
    address TEXT PRIMARY KEY,
    source TEXT NOT NULL,
    question TEXT NOT NULL,
    version INTEGER NOT NULL,
    problem TEXT NOT NULL,
    d INTEGER,
    seed INTEGER,
    options TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
    numbers TEXT,
    error TEXT,
    traceback TEXT,
    notes TEXT,
    seconds REAL,
    finished REAL,
    provenance INTEGER
);
CREATE INDEX cells_by_question ON cells (source, question);
CREATE TABLE arrays (
    address TEXT NOT NULL, name TEXT NOT NULL, axes TEXT NOT NULL, content BLOB NOT NULL,
    PRIMARY KEY (address, name)
);
CREATE TABLE provenance (id INTEGER PRIMARY KEY, content TEXT NOT NULL UNIQUE);
CREATE TABLE sweeps (hash TEXT PRIMARY KEY, content TEXT NOT NULL, used REAL NOT NULL);
CREATE TABLE runners (
    id TEXT PRIMARY KEY, host TEXT NOT NULL, process TEXT NOT NULL, expires REAL NOT NULL
);
CREATE TABLE claims (address TEXT PRIMARY KEY, runner TEXT NOT NULL) WITHOUT ROWID;
"""

_SAVE = """
INSERT INTO cells VALUES (
    :address, :source, :question, :version, :problem, :d, :seed, :options, :status, :numbers,
    :error, :traceback, :notes, :seconds, :finished, :provenance
) ON CONFLICT (address) DO UPDATE SET
    status = excluded.status, numbers = excluded.numbers, error = excluded.error,
    traceback = excluded.traceback, notes = excluded.notes, seconds = excluded.seconds,
    finished = excluded.finished, provenance = excluded.provenance
WHERE cells.status = 'failed'
"""
#: Rows of a list of addresses, given as JSON.
_THESE = "address IN (SELECT value FROM json_each(?))"


def check_folder(path: Path) -> None:
    """Refuse a new store where there is no folder for it."""
    if not path.parent.is_dir():
        raise StoreError(f"{path} cannot be created: there is no folder '{path.parent}'")


def check_store(path: str | os.PathLike[str] | None) -> None:
    """Refuse, before any work, what could not be written to; nothing is created."""
    if isinstance(path, str | os.PathLike) and not os.path.exists(path):
        check_folder(Path(path))
    else:
        Store(path, write=True, check=False).close()


class Store:
    """An open store; a context manager.

    * ``path``: the SQLite file; None keeps everything in memory until it is closed.
    * ``write``: open to write: the file is created if there is none.
    * ``check``: before writing, read the whole file and see that it is sound.

    Raises
    ------
    StoreError
        If the file is damaged, of a newer format, no store at all, read-only, or the disk full.
        Nothing is overwritten.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, *, write: bool = False, check: bool = True
    ) -> None:
        if not isinstance(path, str | os.PathLike | None):
            raise InvalidProblem("store", path, 'the path of a file, such as "networks.sqlite"')
        self.path = None if path is None else Path(path)
        if self.path is None:
            self._db = sqlite3.connect(":memory:", isolation_level=None)
            self._db.executescript(_SCHEMA)
            return
        with self._errors():
            if write and not self.path.exists():
                check_folder(self.path)
                write_once(self.path, _empty_store())
            check_not_empty(self.path)
            self._db = connect(self.path) if write else connect_to_read(self.path)
            try:
                check_whole(self.path, self._db)
                self._check_format()
                if write:
                    self._prepare_to_write(check)
            except BaseException:
                self._db.close()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; an open transaction is rolled back."""
        self._db.close()

    # Opening ----------------------------------------------------------------------------------

    def _check_format(self) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION:
            raise StoreError(f"{self.path} is an SQLite file, but not a store of giantsteps")
        if version > FORMAT:
            raise StoreError(
                f"{self.path} has format {version}; this giantsteps reads formats up to {FORMAT}. "
                "Upgrade giantsteps to use it"
            )

    def _prepare_to_write(self, check: bool) -> None:
        assert self.path is not None
        if check:
            (found,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise StoreError(damaged(self.path, found))
        wanted = "delete" if is_network_disk(self.path) else "wal"
        (mode,) = self._db.execute("PRAGMA journal_mode").fetchone()
        if mode != wanted:  # an answer other than the wanted mode is fine: it works, if slower
            with suppress(sqlite3.OperationalError):
                self._db.execute(f"PRAGMA journal_mode = {wanted}").fetchone()
        self._db.execute("PRAGMA synchronous = FULL")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say what is wrong with the file, in place of an error of SQLite or of the system."""
        try:
            yield
        except sqlite3.Error as error:
            raise StoreError(explain(self.path or Path("memory"), error)) from error
        except OSError as error:
            raise StoreError(f"{self.path} cannot be opened: {error.strerror}") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything inside is written, or nothing."""
        with self._errors():
            try:  # Ctrl-C may come as soon as the transaction is open
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    # Cells ------------------------------------------------------------------------------------

    def save(self, finished: Iterable[tuple[Cell, Outcome]]) -> None:
        """Write outcomes and give up the claims on their cells; a cell that is done stays."""
        with self.transaction() as db:
            for cell, outcome in finished:
                db.execute(
                    "INSERT OR IGNORE INTO problems VALUES (?, ?)", (cell.problem, cell.content)
                )
                if db.execute(_SAVE, _row(db, cell, outcome)).rowcount:
                    arrays = (
                        (cell.address, name, json.dumps(list(zip(dims, values.shape))), values.data)
                        for name, (dims, values) in outcome.arrays.items()
                    )
                    db.executemany("INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?)", arrays)
                db.execute("DELETE FROM claims WHERE address = ?", (cell.address,))

    def status(self) -> dict[str, str]:
        """Address → ``"done"`` or ``"failed"``, of all cells in the store."""
        return dict(self._rows("SELECT address, status FROM cells"))

    def claims(self) -> list[tuple[str, str]]:
        """Pairs of an address and the runner that has claimed it."""
        return self._rows("SELECT * FROM claims")

    def runners(self) -> list[tuple[str, str, str, float]]:
        """Name, host, process and end of the lease of every runner."""
        return self._rows("SELECT id, host, process, expires FROM runners")

    def errors(self) -> dict[str, str]:
        """Address → error, of the cells that failed."""
        return dict(self._rows("SELECT address, error FROM cells WHERE status = 'failed'"))

    def forget_failures(self, addresses: Iterable[str]) -> int:
        """Delete the failures among ``addresses``, so that they run again; return how many."""
        with self.transaction() as db:
            found = db.executemany(
                "DELETE FROM cells WHERE address = ? AND status = 'failed'",
                ((address,) for address in addresses),
            )
            return found.rowcount

    def find(self, source: str, problem: str) -> list[tuple[str, str]]:
        """Address and options of the cells of one problem from one source."""
        query = "SELECT address, options FROM cells WHERE source = ? AND problem = ?"
        return self._rows(query, (source, problem))

    def contents(self, source: str) -> dict[str, str]:
        """Hash → content, of the problems that have cells from one source."""
        query = (
            "SELECT hash, content FROM problems "
            "WHERE hash IN (SELECT DISTINCT problem FROM cells WHERE source = ?)"
        )
        return dict(self._rows(query, (source,)))

    def forget(self, addresses: Iterable[str]) -> None:
        """Delete cells with their arrays, and problems that are left without cells."""
        rows = [(address,) for address in addresses]
        with self.transaction() as db:
            db.executemany("DELETE FROM arrays WHERE address = ?", rows)
            db.executemany("DELETE FROM cells WHERE address = ?", rows)
            db.execute("DELETE FROM problems WHERE hash NOT IN (SELECT problem FROM cells)")

    def numbers(self, addresses: Iterable[str]) -> dict[str, dict[str, float]]:
        """Address → the numbers, of those cells that are done."""
        return dict(
            self._rows(
                f"SELECT address, numbers FROM cells WHERE {_THESE} AND status = 'done'",
                (json.dumps(list(addresses)),),
                lambda address, text: (address, from_json(text)),
            )
        )

    def array_names(self, addresses: Iterable[str]) -> list[str]:
        """Names of the arrays that these cells have, in the order of the answer."""
        rows = self._rows(
            f"SELECT name FROM arrays WHERE {_THESE} GROUP BY name ORDER BY min(rowid)",
            (json.dumps(list(addresses)),),
        )
        return [name for (name,) in rows]

    def arrays(self, addresses: Iterable[str], name: str) -> dict[str, Named]:
        """Address → the array of this name."""
        query = f"SELECT address, axes, content FROM arrays WHERE {_THESE} AND name = ?"
        return dict(self._rows(query, (json.dumps(list(addresses)), name), _array))

    def arrays_of(self, address: str) -> dict[str, Named]:
        """The arrays of one cell by name."""
        query = "SELECT name, axes, content FROM arrays WHERE address = ?"
        return dict(self._rows(query, (address,), _array))

    def notes(self) -> list[Mapping[str, Any]]:
        """What answers of theory say of themselves, each once."""
        query = "SELECT DISTINCT notes FROM cells WHERE notes IS NOT NULL"
        return self._rows(query, read=json.loads)

    def provenance(self, address: str) -> dict[str, Any]:
        """Where and when a cell was computed."""
        rows = self._rows(
            "SELECT content, seconds, finished FROM cells JOIN provenance ON provenance = id "
            "WHERE address = ?",
            (address,),
            lambda content, *times: json.loads(content) | dict(zip(("seconds", "finished"), times)),
        )
        if not rows:
            raise KeyError(address)
        found: dict[str, Any] = rows[0]
        return found

    # Sweeps -----------------------------------------------------------------------------------

    def remember(self, key: str, content: str, now: float) -> None:
        """Keep the sweep that uses this store, so that the file explains itself."""
        with self.transaction() as db:
            db.execute(
                "INSERT INTO sweeps VALUES (?, ?, ?) "
                "ON CONFLICT (hash) DO UPDATE SET used = excluded.used",
                (key, content, now),
            )

    def latest_sweep(self) -> Any:
        """The data of the sweep that was run last."""
        query = "SELECT content FROM sweeps ORDER BY used DESC LIMIT 1"
        rows = self._rows(query, read=json.loads)
        if not rows:
            raise StoreError(f"no sweep was run with {self.path} yet")
        return rows[0]

    def _rows(
        self, query: str, values: tuple[Any, ...] = (), read: Callable[..., Any] | None = None
    ) -> list[Any]:
        """The rows of a query, each as ``read`` understands its values."""
        with self._errors():
            rows = self._db.execute(query, values).fetchall()
        try:
            return rows if read is None else [read(*row) for row in rows]
        except (TypeError, ValueError, AttributeError) as error:  # SQLite has no checksums
            path = self.path or Path("memory")
            raise StoreError(damaged(path, "what it holds cannot be read")) from error


def _row(db: sqlite3.Connection, cell: Cell, outcome: Outcome) -> dict[str, Any]:
    origin = (outcome.provenance,)
    db.execute("INSERT OR IGNORE INTO provenance (content) VALUES (?)", origin)
    (number,) = db.execute("SELECT id FROM provenance WHERE content = ?", origin).fetchone()
    found = {
        "status": "done" if outcome.error is None else "failed",
        "numbers": to_json(outcome.numbers) if outcome.error is None else None,
        "provenance": number,
    }
    return vars(cell) | vars(outcome) | found


def _array(key: str, axes: str, content: bytes) -> tuple[str, Named]:
    dims = json.loads(axes)
    values = np.frombuffer(content, dtype="<f8").reshape([size for _, size in dims])
    return key, (tuple(name for name, _ in dims), values)


def _empty_store() -> bytes:
    db = sqlite3.connect(":memory:")
    try:
        db.executescript(_SCHEMA)
        return db.serialize()
    finally:
        db.close()
