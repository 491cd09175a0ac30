"""Files are written whole or not at all, and what stood there stays after an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import to_csv, written


def _half(path: Path) -> None:
    with written(path) as draft:
        draft.write_text("half")
        raise OSError(28, "No space left on device")


def test_an_error_leaves_what_was_there_and_no_trace(tmp_path: Path) -> None:
    old = tmp_path / "old.csv"
    old.write_text("old")
    for path in (old, tmp_path / "new.csv"):
        with pytest.raises(OSError, match="No space left") as caught:
            _half(path)
        assert caught.value.filename == str(path)
    assert [path.name for path in tmp_path.iterdir()] == ["old.csv"]
    assert old.read_text() == "old"


def test_a_table_that_cannot_be_written_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    to_csv({"x": [1, 2]}, path)

    class Broken:
        def __str__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        to_csv({"x": [1, Broken()]}, path)
    assert path.read_text() == "x\n1\n2\n"
    assert os.listdir(tmp_path) == ["x.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")
def test_modes_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "file.csv", tmp_path / "link.csv"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    to_csv({"x": [1]}, link)
    assert link.is_symlink()
    assert file.read_text() == "x\n1\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_a_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no" / "x.csv"):
        with pytest.raises(OSError, match=str(path)):
            to_csv({"x": [1]}, path)


def test_figures_without_an_ending_are_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    problem = gs.Problem(
        activation="tanh", teacher="sin", width=1.5, readout=gs.Ridge(samples=2, penalty=0.1)
    )
    display = theory.risk(gs.Grid(problem, {"width": [1.0, 2.0]})).plot()
    display.save(tmp_path / "x")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FileNotFoundError, match="none"):
        display.save(tmp_path / "none" / "x.pdf")
