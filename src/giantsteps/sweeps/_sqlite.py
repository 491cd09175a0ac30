"""SQLite files: opened with care, and what their errors mean."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from giantsteps.errors import StoreError

__all__ = ["check_header", "connect", "connect_to_read", "damaged", "explain"]

#: Seconds to wait for another process that is writing.
PATIENCE = 30.0


def check_header(path: Path) -> None:
    """Refuse what SQLite would take for an empty store, and files that lost their end."""
    with open(path, "rb") as file:
        header = file.read(100)
        size = file.seek(0, os.SEEK_END)
    if not header.startswith(b"SQLite format 3\0"):
        raise StoreError(f"{path} is not a store: it is empty or of another kind")
    page = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    log = path.with_name(path.name + "-wal")
    recovers = log.exists() and log.stat().st_size > 0
    whole = pages * (65536 if page == 1 else page)
    if size < whole and not recovers and path.stat().st_size < whole:  # it may just have grown
        raise StoreError(damaged(path, "it lost its end"))


def connect(path: Path, options: str = "mode=rw") -> sqlite3.Connection:
    """A connection to a file that exists; transactions begin where they are told to."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}",
        uri=True,
        timeout=PATIENCE,
        isolation_level=None,
    )
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        db.close()
        raise
    return db


def connect_to_read(path: Path) -> sqlite3.Connection:
    """To read, but able to recover what a killed runner left, where the disk may be written."""
    try:
        db = connect(path)
        db.execute("PRAGMA query_only = ON")
        return db
    except sqlite3.OperationalError:
        pass
    try:
        return connect(path, "mode=ro")
    except sqlite3.OperationalError:
        beside = [path.with_name(path.name + end) for end in ("-wal", "-journal")]
        if any(file.exists() and file.stat().st_size for file in beside):
            raise
        return connect(path, "mode=ro&immutable=1")


def damaged(path: Path, how: str) -> str:
    return (
        f"{path} is damaged ({how}). It was left as it is; restore a copy, or move it away and "
        "run the sweep again"
    )


def explain(path: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return f"{path} cannot grow: the disk is full. What was saved is safe; free some space"
    if code == sqlite3.SQLITE_IOERR:
        return f"{path} cannot be written ({error}): the disk may be full or failing"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return f"{path} is read-only: it, or its folder, cannot be written"
    if code == sqlite3.SQLITE_CANTOPEN:
        return f"{path} cannot be opened: it, or its folder, cannot be read or written"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path, str(error))
    if code == sqlite3.SQLITE_BUSY:
        return f"{path} is locked by another program for more than {PATIENCE:g} s"
    return f"{path}: {error}"
