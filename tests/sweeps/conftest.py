"""Small sweeps: networks of a few neurons, cells of a few milliseconds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs

Bits = tuple[dict[str, str], dict[tuple[str, str], bytes]]


@pytest.fixture
def problem() -> gs.Problem:
    return gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=1.5,
        steps=[gs.Step(samples=2.0, rate=1.0)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
    )


@pytest.fixture
def make(problem: gs.Problem, tmp_path: Path) -> Callable[..., gs.Sweep]:
    """``make(**fields)``: a sweep of 2 sample sizes × 2 rates at d = 12, 3 seeds."""

    def sweep(**fields: Any) -> gs.Sweep:
        vary = fields.pop("vary", {"readout.samples": [1.0, 2.0], "steps.0.rate": [0.5, 1.0]})
        store = tmp_path / fields.pop("store", "sweep.sqlite")
        defaults: dict[str, Any] = {"d": 12, "seeds": 3, "options": {"test_samples": 50}}
        return gs.Sweep(grid=gs.Grid(problem, vary), store=store, **(defaults | fields))

    return sweep


@pytest.fixture
def bits() -> Callable[[Path], Bits]:
    """Everything in a store that results are, to the last bit."""

    def read(store: Path) -> Bits:
        db = sqlite3.connect(store)
        try:
            numbers = dict(db.execute("SELECT address, numbers FROM cells WHERE status = 'done'"))
            arrays = {
                (address, name): axes.encode() + content
                for address, name, axes, content in db.execute("SELECT * FROM arrays")
            }
        finally:
            db.close()
        return numbers, arrays

    return read
