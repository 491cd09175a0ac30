"""Who works on what: runners, their leases, and the cells they claim.

A runner writes its name into the store and renews it; its claims hold as long as it lives. It is
gone when its process is (which runners on the same machine can see), or when its lease ran out.
Runners of one machine share the work. From another machine a store in use is refused: SQLite's
locks are not to be trusted there.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import sys
import threading
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self

from giantsteps.campaign._jobs import Job
from giantsteps.campaign._store import Store
from giantsteps.errors import StoreError

#: Seconds after which a runner that does not renew its lease counts as gone …
LEASE = 60.0
#: … and between renewals.
RENEWAL = 15.0

_TAKEN = """
SELECT (SELECT count(*) FROM claims WHERE address IN (SELECT value FROM json_each(:addresses)))
     + (SELECT count(*) FROM cells WHERE address IN (SELECT value FROM json_each(:addresses)))
"""


class Runner:
    """This process at work on a store that is open to write; a context manager that holds its
    lease. Refuses to start while a runner on another machine holds one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.name = uuid.uuid4().hex
        self.host = socket.gethostname()
        self.process = process_mark()
        self._stop = threading.Event()
        self._failure: StoreError | None = None
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._renew(self.store)
        if self.store.path is not None:  # no one else sees a store in memory
            self._thread.start()
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        try:
            with self.store.transaction() as db:
                _dismiss(db, self.name)
        except StoreError:
            if error is None:
                raise

    def check(self) -> None:
        """Raise if the lease could not be renewed."""
        if self._failure is not None:
            raise self._failure

    def claim(self, jobs: Iterable[Job]) -> list[Job]:
        """Those of the jobs of which nothing is claimed or finished; they are ours from now on."""
        granted = []
        with self.store.transaction() as db:
            self._settle(db)
            for job in jobs:
                addresses = job.addresses
                (taken,) = db.execute(_TAKEN, {"addresses": json.dumps(addresses)}).fetchone()
                if not taken:
                    rows = ((address, self.name) for address in addresses)
                    db.executemany("INSERT INTO claims VALUES (?, ?)", rows)
                    granted.append(job)
        return granted

    # The lease --------------------------------------------------------------------------------

    def _keep(self) -> None:
        assert self.store.path is not None
        try:
            with Store(self.store.path, write=True, check=False) as store:
                while not self._stop.wait(RENEWAL):
                    self._renew(store)
        except StoreError as error:
            self._failure = error

    def _renew(self, store: Store) -> None:
        with store.transaction() as db:
            self._settle(db)

    def _settle(self, db: sqlite3.Connection) -> None:
        """Dismiss runners that are gone, refuse other machines, renew our own lease."""
        now = time.time()
        for name, host, process, expires in db.execute("SELECT * FROM runners").fetchall():
            if name == self.name:
                continue
            if _ended(host, process, expires):
                _dismiss(db, name)
            elif host != self.host:
                raise StoreError(
                    f"{self.store.path} is in use on {host} (this is {self.host}). One machine "
                    "runs a sweep, others can be its workers (--dask); stop the run there, or "
                    f"wait {expires - now:.0f} s if it was killed"
                )
        db.execute(
            "INSERT INTO runners VALUES (?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET expires = excluded.expires",
            (self.name, self.host, self.process, now + LEASE),
        )


def at_work(store: Store) -> set[str]:
    """Addresses of the cells that runners have claimed, those that are gone left out."""
    gone = {name for name, host, process, end in store.runners() if _ended(host, process, end)}
    return {address for address, runner in store.claims() if runner not in gone}


def _ended(host: str, process: str, expires: float) -> bool:
    return expires < time.time() or (host == socket.gethostname() and is_gone(process))


def _dismiss(db: sqlite3.Connection, name: str) -> None:
    db.execute("DELETE FROM claims WHERE runner = ?", (name,))
    db.execute("DELETE FROM runners WHERE id = ?", (name,))


# Processes ------------------------------------------------------------------------------------


def process_mark() -> str:
    """This process: space of process numbers, number, time of its start."""
    return f"{_space()} {os.getpid()} {_start(os.getpid())}"


def is_gone(mark: str) -> bool:
    """Whether the process of a mark is known to have ended."""
    space, number, start = mark.split(" ")
    here = _space()
    if space.split("/")[0] != here.split("/")[0]:  # the machine was started anew
        return True
    if space != here or sys.platform == "win32":  # another container: only the lease can tell
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return _start(int(number)) != start


def _space() -> str:
    """What process numbers are relative to: the boot and the namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return "-"


def _start(number: int) -> str:
    """When a process started, in ticks since boot; it tells a process from one that has the same
    number later."""
    with suppress(OSError, IndexError):
        stat = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
        fields = stat.rpartition(")")[2].split()
        return "-" if fields[0] == "Z" else fields[19]
    return "-"
