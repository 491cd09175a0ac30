"""Runners and readers on one store: see ``benchmarks/store_shared.py``, run here for few rounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "store_shared.py"


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("rounds", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_is_lost_whatever_stops_or_is_killed(rounds: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--rounds", str(rounds)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{rounds} rounds")
    assert "Traceback" not in done.stderr
