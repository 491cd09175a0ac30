"""Where a recorder keeps what it saw: one SQLite file, a row per number or array."""

from __future__ import annotations

import io
import json
import sqlite3
from collections.abc import Mapping
from os import PathLike, fspath
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import StoreError

__all__ = ["RecordFile"]

_FORMAT = "giantsteps training record 1"
_TABLES = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (
    step INTEGER NOT NULL, layer TEXT NOT NULL, name TEXT NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (step, layer, name)
);
"""


class RecordFile:
    """Arrays by step, layer and name, each step written at once.

    Parameters
    ----------
    path : path-like or None
        An SQLite file, made if there is none; None keeps everything in memory.
    """

    def __init__(self, path: str | PathLike[str] | None) -> None:
        self.path = ":memory:" if path is None else fspath(path)
        try:
            self._connection = sqlite3.connect(self.path)
            with self._connection:
                self._connection.executescript(_TABLES)
            found = self.about.get("format")
        except sqlite3.Error as error:
            raise StoreError(f"{self.path} cannot be opened: {error}") from None
        if found is None:
            self.describe({"format": _FORMAT})
        elif found != _FORMAT:
            self.close()
            raise StoreError(f"{self.path} is no training record of this version: {found}")

    @property
    def about(self) -> dict[str, Any]:
        """What holds for all records."""
        rows = self._connection.execute("SELECT name, value FROM about")
        return {name: json.loads(value) for name, value in rows}

    def describe(self, facts: Mapping[str, Any]) -> None:
        """Keep facts that hold for all records."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO about VALUES (?, ?)",
                [(name, json.dumps(value)) for name, value in facts.items()],
            )

    def write(self, step: int, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what was seen at one step: layer → name → number or array."""
        rows = [
            (step, layer, name, _packed(value))
            for layer, values in records.items()
            for name, value in values.items()
        ]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?)", rows)

    def read(self, layer: str, name: str) -> tuple[NDArray[np.int64], list[NDArray[np.float64]]]:
        """Steps and values of one quantity."""
        rows = self._connection.execute(
            "SELECT step, value FROM records WHERE layer = ? AND name = ? ORDER BY step",
            (layer, name),
        ).fetchall()
        steps = np.array([step for step, _ in rows], dtype=np.int64)
        return steps, [_unpacked(value) for _, value in rows]

    def last_step(self) -> int | None:
        """The last step that was written."""
        (found,) = self._connection.execute("SELECT max(step) FROM records").fetchone()
        return None if found is None else int(found)

    def names(self) -> list[tuple[str, str]]:
        """All pairs of a layer and a quantity."""
        return list(self._connection.execute("SELECT DISTINCT layer, name FROM records"))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _packed(value: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(value, dtype=np.float64), allow_pickle=False)
    return buffer.getvalue()


def _unpacked(value: bytes) -> NDArray[np.float64]:
    return np.asarray(np.load(io.BytesIO(value), allow_pickle=False))
