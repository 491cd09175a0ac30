"""Floors and ceilings of the test error (theory §4)."""

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory


def problem(activation: str = "tanh", teacher: str = "sin", **changes: Any) -> gs.Problem:
    base = gs.Problem(
        activation=activation,
        teacher=teacher,
        width=1.0,
        steps=[gs.Step(samples=20, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer="constant"),
    )
    return base.replace(changes) if changes else base


def test_open_values() -> None:
    found = theory.bounds(problem())
    assert found["linear"] == pytest.approx((1 - np.exp(-2)) / 2 - np.exp(-1), abs=1e-12)
    assert found["tau"] == pytest.approx(0.0090441, abs=1e-7)
    assert found.arguments["tau"] == pytest.approx(1.78474, abs=1e-5)


def test_erf_learns_erf() -> None:
    found = theory.bounds(problem("erf", "erf"))
    assert found.arguments["tau"] == pytest.approx(np.sqrt(3), abs=1e-7)
    assert found["tau"] == pytest.approx(0, abs=1e-12)


def test_sign_of_the_teacher_is_the_sign_of_kappa() -> None:
    up, down = (theory.bounds(problem(teacher=t)) for t in ("sin", "-sin(x)"))
    assert down.arguments["tau"] == pytest.approx(-up.arguments["tau"], abs=1e-6)
    assert down["tau"] == pytest.approx(up["tau"], rel=1e-10)


@pytest.mark.parametrize("samples", [0.5, 2.0, 8.0])
@pytest.mark.parametrize(("teacher", "step_samples"), [("sin", 20.0), ("tanh", 3.0)])
def test_risk_at_the_best_penalty_lies_between(
    samples: float, teacher: str, step_samples: float
) -> None:
    """The best of many penalties lies between the bounds, and λ → ∞ reaches the upper one."""
    asked = problem(teacher=teacher).replace({"steps.0.samples": step_samples})
    found = theory.bounds(asked)
    model = theory.equivalent(asked, simplify="isotropic bulk")
    risks = [
        float(model.risk(gs.Ridge(samples=samples, penalty=p)).test)
        for p in np.geomspace(1e-3, 1e4, 29)
    ]
    assert found["optimal penalty"] < min(risks) < found["infinite penalty"]
    assert risks[-1] == pytest.approx(found["infinite penalty"], rel=2e-3)
    own = model.bounds()
    for name in ("optimal penalty", "infinite penalty"):
        assert own[name] == pytest.approx(found[name], rel=1e-10)
    exact = theory.equivalent(asked)
    best = min(
        float(exact.risk(gs.Ridge(samples=samples, penalty=p)).test) for p in (0.01, 0.1, 1.0, 10)
    )
    assert found["optimal penalty"] < best < found["infinite penalty"]


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_a_kernel_learns_the_mean_of_the_labels_and_a_network_may_not(activation: str) -> None:
    """The kernel's floor is that of the centred teacher; an odd network never learns the mean."""
    asked = problem(activation, teacher="relu")
    found = theory.bounds(asked)
    centred = theory.bounds(asked.replace({"teacher": gs.centered("relu")}))
    assert found["linear"] == pytest.approx(centred["linear"], rel=1e-12)
    model = theory.equivalent(asked, simplify="isotropic bulk")
    risks = [
        float(model.risk(gs.Ridge(samples=2.0, penalty=p)).test) for p in np.geomspace(1e-3, 1e4, 8)
    ]
    assert found["optimal penalty"] < min(risks) < found["infinite penalty"]
    assert risks[-1] == pytest.approx(found["infinite penalty"], rel=2e-3)
    if activation == "tanh":
        assert found["optimal penalty"] > centred["optimal penalty"] + 1 / (2 * np.pi) - 1e-9


def test_other_second_layers_have_no_ceiling() -> None:
    assert (
        set(theory.bounds(problem().replace({"init.second_layer": "gaussian"})).ceilings) == set()
    )
    grid = gs.Grid(problem(), {"teacher": ["sin", "tanh"], "steps.0.rate": [1.0, 2.0]})
    assert np.shape(theory.bounds(grid)["linear"]) == (2, 2)
