"""What a store asks of the disk: whether it is shared by machines, and files that appear whole."""

from __future__ import annotations

import os
import uuid
from contextlib import suppress
from pathlib import Path

#: File systems on which several machines may meet. SQLite's write-ahead log needs memory that
#: all its users share, so it is for one machine only.
NETWORK = (
    "9p afs beegfs ceph cifs fuse.glusterfs fuse.sshfs glusterfs gpfs lustre ncpfs nfs nfs4 "
    "orangefs panfs pvfs2 smb2 smb3 smbfs vboxsf virtiofs wekafs"
)


def is_network_disk(path: Path, mounts: Path = Path("/proc/self/mounts")) -> bool:
    """Whether ``path`` lies on a disk that other machines may mount, as far as the system says."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    place = os.path.realpath(path)
    kind, longest = "", 0
    for line in lines:
        _, where, found, *_ = line.split(" ")
        where = where.replace("\\040", " ")
        inside = place == where or place.startswith(where.rstrip("/") + "/")
        if inside and len(where) >= longest:
            kind, longest = found, len(where)
    return kind in NETWORK.split()


def write_once(path: Path, content: bytes) -> None:
    """Create a file with its content at once; one that others created first stays."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(draft, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass
        except OSError:  # a disk without links
            if not path.exists():
                os.replace(draft, path)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()
