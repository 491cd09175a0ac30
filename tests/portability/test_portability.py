"""The same numbers on every processor, with every number of threads, and for inputs moved by 1e-13.

Random problems are answered again in other processes: with other kernels of OpenBLAS, without the
wide vectors of NumPy, with two threads. No entry may move by more than 1e-9 of the largest of its
array. The default tier asks a few problems, the slow one all.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory

HERE = Path(__file__).parent
#: What an entry may move by, of the largest of its array.
TOLERANCE = 1e-9
#: Numbers that say how something was found, not what.
HOW = ("solution.residual", "solution.iterations", "solution.error", "residual", "iterations")
MACHINES = {
    "haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "narrow": {"NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512CD AVX512_SKX AVX2 FMA3"},
    "two threads": {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"},
}


@lru_cache(maxsize=64)
def shaken(first: int, count: int, kind: str, machine: str = "", moved: float = 0.0) -> Any:
    """The answers of `shake.py` in another process."""
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    features = MACHINES[machine] if machine else {}
    if machine == "narrow":
        features = _present(features)
    found = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "shake.py"), str(first), str(count),
         repr(moved), kind],
        capture_output=True, text=True, timeout=3000, env=os.environ | one | features,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr[-2000:]
    return json.loads(found.stdout)


def _present(features: dict[str, str]) -> dict[str, str]:
    """Only those that this processor has and this NumPy can do without."""
    from numpy._core._multiarray_umath import (  # type: ignore[import-not-found]
        __cpu_dispatch__,
        __cpu_features__,
    )

    (names,) = features.values()
    some = [n for n in names.split() if n in __cpu_dispatch__ and __cpu_features__.get(n)]
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(some)} if some else {}


def moved_entries(old: Any, new: Any, tolerance: float = TOLERANCE) -> list[str]:
    """What differs by more than the tolerance."""
    found = []
    assert old.keys() == new.keys()
    for number, questions in old.items():
        assert questions.keys() == new[number].keys()
        for question, values in questions.items():
            other = new[number][question]
            if isinstance(values, str) or isinstance(other, str):
                if values != other or values.startswith("crash"):
                    found.append(f"problem {number}, {question}: {values} became {other}"[:200])
                continue
            if values.keys() != other.keys():
                found.append(f"problem {number}, {question}: {values.keys() ^ other.keys()}")
                continue
            for name, entries in values.items():
                if not name.endswith(HOW):
                    change = _change(np.array(entries), np.array(other[name]))
                    if not change <= tolerance:
                        found.append(f"problem {number}, {question}.{name}: {change:.1e}")
    return found


def _change(a: np.ndarray, b: np.ndarray) -> float:
    if a.shape != b.shape:
        return math.inf
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    size = np.abs(a[np.isfinite(a)]).max(initial=1e-300)
    return float(np.abs(np.where(same, 0.0, a) - np.where(same, 0.0, b)).max() / size)


# -- other machines ---------------------------------------------------------------------------

#: Problems of the default tier, by what is asked.
FEW = {"errors": (10, 9), "spectra": (12, 2)}
ALL = {"errors": 70, "spectra": 60}


@pytest.mark.parametrize("kind", ["errors", pytest.param("spectra", marks=pytest.mark.slow)])
def test_processes_agree_to_the_last_bit(kind: str) -> None:
    first, count = FEW[kind]
    one = shaken(first, count, kind)
    again = shaken(first, count, kind, moved=-0.0)
    assert moved_entries(one, again, tolerance=0.0) == []


@pytest.mark.parametrize("machine", ["haswell", "prescott"])
@pytest.mark.parametrize("kind", FEW)
def test_other_kernels_have_the_same_numbers(kind: str, machine: str) -> None:
    first, count = FEW[kind]
    assert moved_entries(shaken(first, count, kind), shaken(first, count, kind, machine)) == []


@pytest.mark.parametrize("kind", FEW)
def test_inputs_that_move_by_rounding_move_no_answer(kind: str) -> None:
    first, count = FEW[kind]
    old, new = shaken(first, count, kind), shaken(first, count, kind, moved=1e-13)
    assert moved_entries(old, new) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 70, 10))
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", ALL)
def test_all_problems_on_other_machines(kind: str, machine: str, first: int) -> None:
    if first >= ALL[kind]:
        pytest.skip("no more problems")
    assert moved_entries(shaken(first, 10, kind), shaken(first, 10, kind, machine)) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 70, 10))
@pytest.mark.parametrize("kind", ALL)
def test_all_problems_with_moved_inputs(kind: str, first: int) -> None:
    if first >= ALL[kind]:
        pytest.skip("no more problems")
    old, new = shaken(first, 10, kind), shaken(first, 10, kind, moved=1e-13)
    assert moved_entries(old, new) == []


# -- thresholds -------------------------------------------------------------------------------

BASE = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.1,
    width=1.5,
    steps=[gs.Step(samples=2, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


def errors(problem: gs.Problem, d: int | None) -> np.ndarray:
    found = theory.risk(problem, d=d)
    return np.array([found.test, found.train])


@pytest.mark.parametrize("layer", ["constant", "gaussian"])
@pytest.mark.parametrize("d", [None, 400])
def test_an_even_part_comes_continuously(layer: str, d: int | None) -> None:
    """c₂ → 0: the bulk of odd activations is the limit of the others."""
    given = BASE.replace({"init.second_layer": layer, "steps.0.rate": 2.0})
    odd, *others = (
        errors(given.replace({"activation": f"tanh(x) + {c}*(x**2 - 1)"}), d)
        for c in (0.0, 1e-12, 1e-9, 1e-6)
    )
    for size, found in zip((1e-12, 1e-9, 1e-6), others, strict=True):
        np.testing.assert_allclose(found, odd, rtol=1e-9 + 10 * size)


@pytest.mark.parametrize("exponent", [0.0, 0.25, 1 / 3, 0.5])
def test_boundaries_of_the_exponent_are_none_at_a_size(exponent: float) -> None:
    at, near = (
        errors(BASE.replace({"steps.0.exponent": e, "init.second_layer": "gaussian"}), 300)
        for e in (exponent, abs(exponent - 1e-11))
    )
    np.testing.assert_allclose(near, at, rtol=1e-9)


@pytest.mark.parametrize("layer", ["constant", "gaussian"])
def test_small_rates_are_small_changes(layer: str) -> None:
    given = BASE.replace({"init.second_layer": layer})
    none = errors(given.untrained(), 400)
    gaps = [
        np.abs(errors(given.replace({"steps.0.rate": rate}), 400) - none).max()
        for rate in (1e-3, 1e-5, 1e-7)
    ]
    assert gaps[1] < 0.05 * gaps[0]
    assert gaps[2] < 1e-6


@pytest.mark.parametrize(
    ("layer", "batch"),
    [
        ("constant", "fresh"),
        ("constant", "previous"),
        ("gaussian", "previous"),
    ],
)
def test_a_second_step_comes_continuously(layer: str, batch: str) -> None:
    """Its rate from zero on: no direction is kept or dropped with a jump."""
    steps = [BASE.steps[0], gs.Step(samples=2, rate=1.0, exponent=0.5, batch=batch)]
    given = BASE.replace({"init.second_layer": layer, "steps": steps})
    rates = (1e-12, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3)
    found = [errors(given.replace({"steps.1.rate": rate}), 400) for rate in rates]
    for rate, one in zip(rates, found):
        np.testing.assert_allclose(one, found[0], rtol=1e-8 + 4 * rate)


def test_a_direction_more_is_worth_one_over_d_squared() -> None:
    """The second direction of a vanishing step is kept from 1e-12 of the first on.

    A coordinate that no neuron sees is then taken out of the bulk. Theory has the terms of order
    1/d, and is continuous up to them.
    """
    steps = [BASE.steps[0], gs.Step(samples=2, rate=1.0, exponent=0.5)]
    given = BASE.replace({"init.second_layer": "gaussian", "steps": steps})
    for d in (100, 400):
        none, some = (errors(given.replace({"steps.1.rate": rate}), d) for rate in (1e-12, 1e-8))
        np.testing.assert_allclose(some, none, rtol=0.3 / d**2)
