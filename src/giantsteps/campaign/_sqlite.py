"""SQLite files: opened with care, and what their errors mean."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from giantsteps.errors import StoreError

#: Seconds to wait for another process that is writing.
PATIENCE = 30.0
_SIZES = ("page_count", "page_size")


def check_not_empty(path: Path) -> None:
    """Refuse a folder, and an empty file, which SQLite would take for a store without tables.

    Only the directory is asked. Opening and closing the file here would drop the locks that the
    process holds on it through SQLite, in every thread, and two writers could then destroy it
    ("How to corrupt an SQLite database file", section 2.2). A file of another kind SQLite reports
    by itself at the first read.
    """
    if path.is_dir():
        raise StoreError(f"{path} is not a store: it is a folder")
    if path.stat().st_size == 0:
        raise StoreError(f"{path} is not a store: it is empty")


def check_whole(path: Path, db: sqlite3.Connection) -> None:
    """Refuse a file that lost its end: SQLite would notice when it reads the last page."""
    (pages,), (page,) = (db.execute(f"PRAGMA {name}").fetchone() for name in _SIZES)
    log = path.with_name(path.name + "-wal")
    recovers = log.exists() and log.stat().st_size > 0
    if not recovers and path.stat().st_size < pages * page:
        raise StoreError(damaged(path, "it lost its end"))


def connect(path: Path, options: str = "mode=rw") -> sqlite3.Connection:
    """A connection to a file that exists; transactions begin where they are told to."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?{options}", uri=True, timeout=PATIENCE, isolation_level=None
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
        "run again"
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
    if code == sqlite3.SQLITE_NOTADB:
        return f"{path} is not a store: it is a file of another kind"
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, str(error))
    if code == sqlite3.SQLITE_BUSY:
        return f"{path} is locked by another program for more than {PATIENCE:g} s"
    return f"{path}: {error}"
