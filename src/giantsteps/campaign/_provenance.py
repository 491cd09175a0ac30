"""Where a result comes from: versions, machine, commit. Kept beside results, never compared."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

from threadpoolctl import threadpool_info

_PACKAGES = ("giantsteps", "numpy", "scipy", "torch")


@lru_cache(maxsize=4)
def provenance(threads: int, torch: bool) -> str:
    """This process as JSON: packages, linear algebra, machine, commit of the checkout."""
    libraries = {
        f"{pool['internal_api']} {pool.get('version') or ''} {pool.get('architecture') or ''}"
        for pool in threadpool_info()
    }
    content = {
        "packages": {name: _installed(name) for name in _PACKAGES if torch or name != "torch"},
        "python": platform.python_version(),
        "libraries": sorted(" ".join(name.split()) for name in libraries),
        "threads": threads,
        "host": platform.node(),
        "machine": _processor(),
        "system": platform.platform(),
        "commit": _commit(),
    }
    return json.dumps(content, sort_keys=True)


def _installed(package: str) -> str | None:
    try:
        return installed(package)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _commit() -> str | None:
    """The commit of the checkout that giantsteps is imported from, with a mark if it was changed;
    None for an installed package."""
    folder = Path(sys.modules["giantsteps"].__path__[0])
    if not any((parent / ".git").exists() for parent in folder.parents[:2]):
        return None
    try:
        described = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return described.stdout.strip()
