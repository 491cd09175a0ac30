"""The learned function: closed forms, the limit of the model, what its averages must be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.gaussian import coordinate_rule

SMALL = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=3.0)],
    readout=gs.Ridge(samples=3.0, penalty=0.1),
)
LARGE = SMALL.replace({"steps.0.rate": 1.0, "steps.0.exponent": 0.5})
CONSTANT = LARGE.replace({"init.second_layer": "constant"})
X = np.array([-2.0, -0.5, 1.0, 2.5])

Direction = Literal["spike", "teacher"]
DIRECTIONS: tuple[Direction, ...] = ("spike", "teacher")


@pytest.mark.parametrize("along", ["spike", "teacher"])
@pytest.mark.parametrize("teacher", ["sin", "-sin(x)"])
def test_small_step_is_the_limit_of_the_model(along: Direction, teacher: str) -> None:
    """Closed form of theory §4 against the equivalent model of theory §5 at a huge size.

    What the initial output pulls is of order η̃, here 1e-7.
    """
    problem = SMALL.replace({"teacher": teacher})
    limit = theory.learned_function(problem, along=along, x=X)
    model = theory.learned_function(problem, d=10**14, along=along, x=X)
    for name in ("mean", "band", "target"):
        np.testing.assert_allclose(getattr(model, name), getattr(limit, name), atol=2e-8)
    assert limit.source == "limit"
    assert model.source == "finite width"
    assert limit.x.tolist() == model.x.tolist() == X.tolist()


@pytest.mark.parametrize(
    ("problem", "d"),
    [(SMALL, None), (SMALL.untrained(), None), (SMALL.untrained(), 300), (LARGE, None),
     (CONSTANT, None), (CONSTANT, 500)],
)  # fmt: skip
def test_averages_along_the_teacher_are_the_risk(problem: gs.Problem, d: int | None) -> None:
    """E(m(u) − f*(u))² + E b² = R; at finite d up to 1/d², for the norm of the input."""
    rule = coordinate_rule(1, nodes=140)
    found = theory.learned_function(problem, d, along="teacher", x=rule.nodes[:, 0])
    assert found.target is not None
    np.testing.assert_allclose(found.target, np.sin(rule.nodes[:, 0]), atol=1e-12)
    total = rule.mean((found.mean - found.target) ** 2 + found.band**2)
    rounding = 1e-9 if d is None else 1e-9 + 0.5 / d**2
    assert total == pytest.approx(theory.risk(problem, d).test, rel=rounding)


def test_averages_along_the_spike() -> None:
    """The mean over both directions is the same function: E f̂², E f̂f*."""
    for problem, d in ((SMALL, None), (LARGE, None), (CONSTANT, None), (CONSTANT, 500)):
        rule = coordinate_rule(1, nodes=140)
        spike, teacher = (
            theory.learned_function(problem, d, along=along, x=rule.nodes[:, 0])
            for along in DIRECTIONS
        )
        power = [rule.mean(f.mean**2 + f.band**2) for f in (spike, teacher)]
        assert power[0] == pytest.approx(power[1], rel=1e-9 if d is None else 0.2 / d**2)


def test_linear_network_learns_a_line() -> None:
    """σ = σ* = identity: the slope along β* is that of ridge regression in closed form."""
    problem = SMALL.replace({"activation": "identity", "teacher": "identity"}).untrained()
    found = theory.learned_function(problem, along="teacher", x=[1.0])
    degrees = theory.risk(problem).by_degree
    assert degrees is not None
    assert (1 - found.mean[0]) ** 2 == pytest.approx(degrees[1], rel=1e-9)


def test_grid_and_defaults() -> None:
    grid = gs.Grid(CONSTANT, {"steps.0.rate": [0.5, 2.0]})
    found = theory.learned_function(grid)
    assert found.mean.shape == (2, 61)
    alone = theory.learned_function(grid[1])
    np.testing.assert_array_equal(found[1].mean, alone.mean)
    assert alone.along == "spike"
    np.testing.assert_allclose(alone.mean, -alone.mean[::-1], atol=1e-9)


def test_several_steps_and_refusals() -> None:
    twice = SMALL.replace({"steps": [SMALL.steps[0], SMALL.steps[0]]})
    more = theory.learned_function(twice, along="teacher", x=[1.0])
    assert more.mean[0] > theory.learned_function(SMALL, along="teacher", x=[1.0]).mean[0]
    with pytest.raises(gs.NotCovered, match="d given"):
        theory.learned_function(SMALL.replace({"steps.0.exponent": 0.3}))
    with pytest.raises(gs.InvalidProblem, match="no spike"):
        theory.learned_function(SMALL.untrained())
    with pytest.raises(gs.InvalidProblem, match="along"):
        theory.learned_function(SMALL, along="weights")
    with pytest.raises(gs.InvalidProblem, match="finite"):
        theory.learned_function(SMALL, x=[[0.0]])
    with pytest.raises(gs.InvalidProblem, match="readout"):
        theory.learned_function(SMALL.replace({"readout": None}))


def compare(
    problem: gs.Problem, d: int, seeds: int, x: NDArray[np.float64], draws: int
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]]:
    """Theory, mean and standard error over the seeds, of (m(x) − m(−x))/2 and of the band.

    The half difference removes what is even in the draws of the other coordinates.
    """
    found: dict[Direction, list[tuple[NDArray[np.float64], NDArray[np.float64]]]] = {
        along: [] for along in DIRECTIONS
    }
    for seed in range(seeds):
        run = simulation.run(problem, d, seed)
        for along, values in found.items():
            learned = run.learned_function(along=along, x=[*x, *-x], draws=draws)
            up, down = learned.mean.reshape(2, -1)
            band = np.sqrt(np.mean(learned.band.reshape(2, -1) ** 2, axis=0))
            values.append((0.5 * (up - down), band))
    for along, values in found.items():
        exact = theory.learned_function(problem, d, along=along, x=x)
        means = np.mean(values, axis=0)
        errors = np.std(values, axis=0, ddof=1) / np.sqrt(seeds)
        yield from zip((exact.mean, exact.band), means, errors)


@pytest.mark.agreement
@pytest.mark.parametrize(("problem", "seeds"), [(SMALL, 64), (LARGE, 48)], ids=["small", "large"])
def test_small_networks(problem: gs.Problem, seeds: int) -> None:
    """The mean along both directions, resolved to 2 %.

    After a small step the spike is far from the top singular vector of the weights, along which
    the slope is half as large.
    """
    results = compare(problem, 200, seeds, np.array([1.0, 2.0]), draws=100)
    for wanted, mean, error in list(results)[::2]:
        assert np.all(3 * error / wanted < 0.02)
        assert np.all(np.abs(mean - wanted) < 3 * error)


@pytest.mark.agreement
@pytest.mark.slow
def test_large_networks() -> None:
    """Mean and band, pointwise within three standard errors at d = 2000.

    Ten networks resolve the mean to 2 % and its spread to 5 %.
    """
    results = compare(CONSTANT, 2000, 10, np.linspace(0.5, 3.0, 6), draws=1024)
    for (wanted, mean, error), resolution in zip(results, (0.02, 0.05, 0.02, 0.05)):
        assert np.all(3 * error / wanted < resolution)
        assert np.all(np.abs(mean - wanted) < 3 * error)
