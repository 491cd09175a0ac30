"""SIGKILL at random moments: see ``benchmarks/sweeps_kill.py``, which this runs with few kills."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "sweeps_kill.py"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the workers in /proc")
@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_is_lost_or_doubled_and_the_bits_are_the_same(kills: int) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--kills", str(kills)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= kills  # a life of a runner has up to four
