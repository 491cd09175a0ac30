"""The path of a network: errors, outliers and overlaps after each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.laws import Law


def problem(count: int = 2, **changes: Any) -> gs.Problem:
    found = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=1.0,
        steps=[gs.Step(samples=4, rate=1, exponent=0.5)] * count,
        readout=gs.Ridge(samples=3, penalty=0.05),
        init=gs.Init(second_layer="constant"),
    )
    return found.replace(changes)


def prefix(asked: gs.Problem, count: int) -> gs.Problem:
    return asked.replace({"steps": asked.steps[:count]})


@pytest.mark.parametrize("exponent", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("d", [None, 300])
def test_points_are_the_answers_after_each_step(exponent: float, d: int | None) -> None:
    asked = problem().replace({"steps.0.exponent": exponent, "steps.1.exponent": exponent})
    if d is None and exponent == 0.25:
        with pytest.raises(NotCovered):
            theory.trajectory(asked)
        return
    path = theory.trajectory(asked, d, top=2)
    assert path.step.tolist() == [0, 1, 2]
    assert path.test is not None
    assert path.train is not None
    assert path.overlap is not None
    start = theory.risk(prefix(asked, 1), d).initial
    assert start is not None
    assert path.test[0] == start.test
    for count in (1, 2):
        after = prefix(asked, count)
        risk, spectrum = theory.risk(after, d), theory.weights(after, d)
        assert isinstance(spectrum.bulk, Law)
        assert path.test[count] == pytest.approx(risk.test, rel=1e-9)
        assert path.train[count] == pytest.approx(risk.train, rel=1e-9)
        outliers = [float(spike.value) for spike in spectrum.spikes]
        expected = sorted([*outliers, *[spectrum.bulk.edge] * 2], reverse=True)[:2]
        assert path.value[count] == pytest.approx(expected, rel=1e-9)
        overlaps = [spike.overlaps["teacher"] for spike in spectrum.spikes]
        assert path.overlap[count] == pytest.approx([*overlaps, 0.0, 0.0][:2], abs=1e-9)


def test_without_a_readout_there_are_no_errors() -> None:
    path = theory.trajectory(problem(readout=None), 300)
    assert path.test is None
    assert path.train is None
    assert path.value.shape == (3, 1)


def test_a_reused_batch() -> None:
    steps = [gs.Step(samples=4, rate=1, exponent=0.5)] * 2
    steps[1] = gs.Step(samples=4, rate=1, exponent=0.5, batch="previous")
    asked = problem(steps=steps)
    path = theory.trajectory(asked, 400)
    assert path.test is not None
    assert path.test[2] == pytest.approx(theory.risk(asked, 400).test, rel=1e-9)


def test_grids_pad_what_is_missing() -> None:
    grid = gs.Grid(problem(), {"steps.1.rate": [0.5, 1.0]})
    path = theory.trajectory(grid, 300)
    assert path.test is not None
    assert path.test.shape == (2, 3)
    assert path.test[1] == pytest.approx(theory.trajectory(problem(), 300).test, rel=1e-12)


def test_refusals_come_from_the_table() -> None:
    with pytest.raises(InvalidProblem, match="step"):
        theory.trajectory(problem(steps=()))
    with pytest.raises(InvalidProblem, match="top"):
        theory.trajectory(problem(), top=0)
    muon = problem().replace({"steps.1.rule": "muon"})
    with pytest.raises(NotCovered, match="rule"):
        theory.trajectory(muon, 300)


#: 60 networks of d = 1000: means and standard errors of the test error after each step,
#: of the largest singular value and of its squared overlap with the teacher.
GAUSSIAN = {
    "test": [
        [0.231969, 0.11375, 0.064523, 0.046048, 0.038272],
        [0.001047, 0.000522, 0.000318, 0.000219, 0.000195],
    ],
    "value": [
        [1.989135, 13.63077, 19.431919, 23.539578, 26.647299],
        [0.001286, 0.053201, 0.047376, 0.040272, 0.035471],
    ],
    "overlap": [
        [0.001221, 0.731494, 0.883161, 0.937998, 0.961359],
        [0.000198, 0.001066, 0.000599, 0.000351, 0.000228],
    ],
}
CONSTANT = {
    "test": [[0.676878, 0.492999, 0.4209, 0.371332], [0.002098, 0.001167, 0.001048, 0.000942]],
    "value": [
        [1.990095, 14.484475, 22.001231, 27.604836],
        [0.001128, 0.020207, 0.016844, 0.014765],
    ],
    "overlap": [[0.000776, 0.714674, 0.86085, 0.916241], [0.000129, 0.001296, 0.000767, 0.000471]],
}


@pytest.mark.parametrize(
    ("changes", "networks"),
    [
        ({"teacher": "sign", "noise_variance": 0.0, "count": 3, "rate": 0.8}, CONSTANT),
        pytest.param(
            {"init": gs.Init(second_layer="gaussian"), "count": 4, "rate": 1.0},
            GAUSSIAN,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_each_step_against_networks(changes: dict[str, Any], networks: dict[str, Any]) -> None:
    rate = changes.pop("rate")
    asked = problem(changes.pop("count"), **changes)
    asked = asked.replace({f"steps.{s}.rate": rate for s in range(len(asked.steps))})
    path = theory.trajectory(asked, 1000)
    assert path.test is not None
    assert path.overlap is not None
    for found, name in ((path.test, "test"), (path.value[:, 0], "value")):
        mean, error = np.array(networks[name])
        assert np.all(np.abs(found - mean) < 0.01 * mean + 3 * error)
    mean, error = np.array(networks["overlap"])
    assert np.all(np.abs(path.overlap[:, 0] - mean) < 0.01 + 3 * error)
