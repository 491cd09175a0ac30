"""The probability of a wrong sign, for teachers with the values ±1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Risk
from giantsteps.functions import as_function
from giantsteps.theory.model.classification import (
    Predicted,
    jumps_by_scan,
    jumps_of_link,
    wrong_sign,
)

#: 300 networks of d = 1000 per row, 10,000 test points each: share of wrong signs, standard error.
NETWORKS = {
    ("squared", 2.0): (0.15429, 0.00028),
    ("logistic", 3.0): (0.15430, 0.00029),
    ("hinge", 3.0): (0.14949, 0.00031),
    ("huber", 3.0): (0.14981, 0.00027),
}


def problem(**changes: Any) -> gs.Problem:
    found = gs.Problem(
        activation="tanh",
        teacher="sign",
        width=1.0,
        steps=[gs.Step(samples=4, rate=2, exponent=0.5)],
        readout=gs.Ridge(samples=3, penalty=0.05),
        init=gs.Init(second_layer="constant"),
    )
    return found.replace(changes)


def wrong(answer: Risk | None) -> float:
    """The classification error of one answer that has one."""
    assert answer is not None
    assert answer.classification_error is not None
    return float(answer.classification_error)


def test_random_features_follow_the_arccosine() -> None:
    """(f̂, u) is Gaussian before the steps: P(wrong) = arccos(correlation)/π."""
    plain = problem(steps=())
    answer = theory.risk(plain)
    function = theory.learned_function(plain, along="teacher", x=[1.0])
    slope, band = float(function.mean[0]), float(function.band[0])
    expected = math.acos(slope / math.hypot(slope, band)) / math.pi
    assert answer.classification_error == pytest.approx(expected, abs=1e-9)


def test_routes_meet() -> None:
    """The limits are those of the equivalent model at huge sizes, for every exponent."""
    for exponent, tolerance in ((0.0, 1e-6), (0.3, 1e-3), (0.5, 1e-9)):
        asked = problem(**{"steps.0.exponent": exponent})
        limit, huge = theory.risk(asked), theory.risk(asked, 10**12)
        assert wrong(huge) == pytest.approx(wrong(limit), rel=tolerance)
        assert wrong(limit) < wrong(limit.initial) < 0.5


def test_other_teachers_have_none() -> None:
    for d in (None, 300):
        answer = theory.risk(problem(teacher="sin"), d)
        assert answer.classification_error is None
        assert answer.initial is not None
        assert answer.initial.classification_error is None


def test_grid_is_its_cells() -> None:
    grid = gs.Grid(problem(), {"steps.0.rate": [0.5, 2.0], "steps.0.exponent": [0.25, 0.5]})
    whole = np.asarray(theory.risk(grid, 400).classification_error)
    assert whole.shape == (2, 2)
    assert whole[1, 1] == theory.risk(problem(), 400).classification_error


def test_several_jumps_and_a_biased_teacher() -> None:
    """A step function with three jumps; the sign is never better known than by the best guess."""
    asked = problem(teacher="sign(x)*sign(abs(x) - 0.6744897501960817)")
    answer = theory.risk(asked, 500)
    assert 0.3 < wrong(answer) < 0.5


@pytest.mark.parametrize("bend", [0.0, 0.15])
def test_integral_against_draws(bend: float) -> None:
    rng = np.random.default_rng(0)
    nodes = np.array([-1.2, 0.1, 0.8])
    weights = np.array([0.3, 0.5, 0.2])
    predicted = Predicted(
        weights,
        fit=np.array([-0.4, 0.05, 0.5]),
        slope=np.array([0.3, 0.2, -0.1]),
        bend=np.full(3, bend),
        variance=np.array([0.3, 0.2, 0.25]),
    )
    link = as_function("sign(x - 0.2)*sign(x + 1)", "teacher")
    along, beside = 0.8 * nodes, 0.6
    found = wrong_sign(
        predicted,
        lambda z: np.asarray(link(along[:, None] + beside * z)),
        jumps_of_link(link, along, beside),
    )
    count = 400_000
    at = rng.choice(3, size=count, p=weights)
    z, noise = rng.standard_normal((2, count))
    rest = np.sqrt(predicted.variance - predicted.slope**2 - 2 * bend**2)
    drawn = predicted.fit[at] + predicted.slope[at] * z + bend * (z**2 - 1) + rest[at] * noise
    missed = np.sign(drawn) != np.asarray(link(along[at] + beside * z))
    assert found == pytest.approx(missed.mean(), abs=4 * missed.std() / math.sqrt(count))


def test_jumps_are_found_where_they_are() -> None:
    link = as_function("sign(x - 0.2)*sign(x + 1)", "teacher")
    along = np.array([0.0, 0.5])
    scanned = jumps_by_scan(lambda z: np.asarray(link(along[:, None] + 0.6 * z)), 2)
    assert np.sort(scanned, axis=1) == pytest.approx(
        np.sort(jumps_of_link(link, along, 0.6), axis=1), abs=1e-12
    )


@pytest.mark.parametrize(("loss", "rate"), list(NETWORKS))
def test_one_step_against_networks(loss: str, rate: float) -> None:
    asked = problem(**{"steps.0.loss": loss, "steps.0.rate": rate})
    if loss == "squared":
        asked = asked.replace({"width": 1.2, "steps.0.samples": 3})
    else:
        asked = asked.replace({"width": 1.5, "readout": gs.Ridge(samples=2, penalty=0.1)})
    mean, error = NETWORKS[loss, rate]
    found = wrong(theory.risk(asked, 1000))
    assert abs(found - mean) < 0.01 * mean + 3 * error


def _steps(rates: list[float], exponent: float, **last: Any) -> list[gs.Step]:
    steps = [gs.Step(samples=4, rate=rate, exponent=exponent) for rate in rates]
    return [*steps[:-1], gs.Step(samples=4, rate=rates[-1], exponent=exponent, **last)]


_TWO_VALUES = gs.Vocabulary([-1.0, 2.0], [2 / 3, 1 / 3])
#: 60 networks of d = 1000 per row; no label noise.
SEVERAL = [
    ("tanh", "gaussian", _steps([1, 1], 0.5), 0.101473, 0.000511),
    ("tanh", _TWO_VALUES, _steps([0.7, 0.5], 0.5), 0.110343, 0.000566),
    ("tanh", "constant", _steps([0.8] * 3, 0.5), 0.10569, 0.00058),
    (gs.centered("relu"), "gaussian", _steps([0.5] * 3, 0.5), 0.142253, 0.000601),
    ("tanh", "gaussian", _steps([1, 1], 0.5, batch="previous"), 0.121837, 0.000631),
    ("erf", "gaussian", _steps([1.5] * 3, 0.25), 0.109507, 0.000481),
    ("tanh", "gaussian", _steps([1.5], 0.5, rule="sign"), 0.183688, 0.00082),
]


@pytest.mark.parametrize(("activation", "layer", "steps", "mean", "error"), SEVERAL)
def test_several_steps_and_rules_against_networks(
    activation: Any, layer: Any, steps: list[gs.Step], mean: float, error: float
) -> None:
    """Labels that jump are resolved by every step: these problems used to end in NotConverged."""
    asked = problem(activation=activation, steps=steps, init=gs.Init(second_layer=layer))
    found = theory.risk(asked, 1000)
    assert abs(wrong(found) - mean) < 0.01 * mean + 3 * error
