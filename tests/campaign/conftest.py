"""Networks that misbehave, in a module that worker processes can import."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps.campaign import Cells
from giantsteps.questions import Question

MODULE = """
import os, signal, time

def measure(problem, d, seed, slow=(), deadly=(), wrong=()):
    if seed in wrong:
        raise ZeroDivisionError(f"seed {seed}")
    if seed in deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed in slow:
        time.sleep(60)
    return {"number": float(d + seed), "process": float(os.getpid())}

def environment(name):
    time.sleep(0.2)
    return os.environ.get(name)

def hang(*_):
    time.sleep(60)

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Odd(Exception):
    def __init__(self, one, two):
        super().__init__(one)

def odd():
    raise Odd(1, 2)
"""


@pytest.fixture
def networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module above."""
    (tmp_path / "odd_networks.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("odd_networks")


@pytest.fixture
def misbehaving(networks: Any) -> Callable[..., list[Cells]]:
    """``misbehaving(seeds, slow=[3])``: cells whose networks do so for some seeds."""
    problem = gs.Problem(activation="tanh", teacher="sin", width=1.0)
    asked = Question(name="odd", summary="", answer="", simulation="odd_networks:measure")

    def cells(seeds: Sequence[int], **options: Any) -> list[Cells]:
        return Cells.of_networks(problem, asked, [10], seeds, options)

    return cells
