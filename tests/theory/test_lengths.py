"""Lengths of the neurons that vary (theory §5e): identities, draws of the model, networks."""

from __future__ import annotations

import math

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.gaussian import hermite_coefficients
from giantsteps.theory import Directions, Lengths, SpikedFeatures

READOUT = gs.Ridge(samples=3.0, penalty=0.01)
GIVEN = {"activation": "tanh", "teacher": "sin(2*x)", "width": 1.0, "overlap": 0.97}
PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.0,
    steps=[gs.Step(samples=20.0, rate=3.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.05),
    init=gs.Init(second_layer="constant", weights="sphere"),
)


def test_lengths_that_do_not_vary_change_nothing() -> None:
    for neurons in (250.0, math.inf):
        given = GIVEN | {"spikes": 1.5, "bulk": 1.3, "neurons": neurons}
        plain = SpikedFeatures(**given).risk(READOUT)
        same = SpikedFeatures(**given, lengths=Lengths(0.0, 0.0)).risk(READOUT)
        assert same.test == pytest.approx(plain.test, rel=1e-12)
        assert same.train == pytest.approx(plain.train, rel=1e-12)


@pytest.mark.parametrize("stretch", [None, 0.8])
def test_a_spread_is_that_of_two_kinds_of_neurons(stretch: float | None) -> None:
    """Half of them longer by √(v/d), half shorter, spikes with them: the two agree to 1/d."""
    c, v, d = 1.3, 5.0, 1e6
    given = GIVEN | {"neurons": d}
    shift = math.sqrt(v / d)
    tilt = 0.0 if stretch is None else stretch * shift
    halves = SpikedFeatures(
        **given,
        spikes=[1.5 + tilt, 1.5 - tilt],
        bulk=[c + shift, c - shift],
        probabilities=[0.5, 0.5],
    )
    lengths = Lengths(0.0, v) if stretch is None else Lengths(0, 0, initial=v, stretch=stretch)
    one = SpikedFeatures(**given, spikes=1.5, bulk=c, lengths=lengths)
    equal = SpikedFeatures(**given, spikes=1.5, bulk=c)
    wanted, found, without = (model.risk(READOUT) for model in (halves, one, equal))
    assert found.test == pytest.approx(wanted.test, rel=1e-5)
    assert found.train == pytest.approx(wanted.train, rel=1e-5)
    assert abs(without.test / wanted.test - 1) > 0.01
    x = np.array([0.5, 2.0])
    functions = [model.learned_function(READOUT, x).mean for model in (halves, one)]
    np.testing.assert_allclose(functions[1], functions[0], rtol=1e-5)


# Draws of the model: two bulk directions, a spike and a teacher that are not generic in them.
D, SEEDS, TEST = 240, 100, 1500
WEIGHTS, EXTRA = np.array([0.4, 0.6]), np.array([0.3, 1.1])
VARIANCES = 1 + EXTRA[None]
PART = np.array([[0.75, 0.2], [0.2, 0.25]])
SLOPE, SPREAD = -1.5, 1.0


def drawn_model(lengths: Lengths | None) -> SpikedFeatures:
    return SpikedFeatures(
        **GIVEN,
        neurons=D,
        spikes=1.5,
        bulk=Directions(
            WEIGHTS, 1 + EXTRA[None], np.stack([PART, np.eye(2) - PART]), 1 + EXTRA[None]
        ),
        lengths=lengths,
    )


def draw(given: SpikedFeatures, seed: int) -> tuple[float, float]:
    """Test error of one draw of the rows w₀ + e, and what stretching them changes of it."""
    rng = np.random.default_rng(seed)
    sizes = [round(D * WEIGHTS[0]), D - round(D * WEIGHTS[0])]
    group = np.repeat([0, 1], sizes)
    frame = np.zeros((D, 2))
    for i, size in enumerate(sizes):
        basis, _ = np.linalg.qr(rng.standard_normal((size, 2)))
        frame[group == i] = basis @ np.linalg.cholesky(given.bulk.special[i]).T
    beta = frame @ np.append(given.overlap, given.remainder)
    start = rng.standard_normal((D, D)) / np.sqrt(D)
    bulk = start + np.sqrt(EXTRA[group] / D)[:, None] * rng.standard_normal((D, D))
    equal = bulk * np.sqrt(given.bulk.totals[0] / (bulk**2).sum(axis=0))
    change = SLOPE * (frame[:, 0] @ start) + np.sqrt(SPREAD / D) * rng.standard_normal(D)
    stretched = equal * np.sqrt(1 + change / given.bulk.totals[0])
    samples = round(READOUT.samples * D)
    x = rng.standard_normal((samples + TEST, D))
    y = np.sin(2 * x @ beta)
    errors = []
    for rows in (equal, stretched):
        phi = np.tanh(x @ (rows + 1.5 * frame[:, :1])) / np.sqrt(D)
        fit, rest = phi[:samples], phi[samples:]
        gram = fit.T @ fit / samples + READOUT.penalty / D * np.eye(D)
        a = np.linalg.solve(gram, fit.T @ y[:samples] / samples)
        errors.append(float(np.mean((rest @ a - y[samples:]) ** 2)))
    return errors[0], errors[1] - errors[0]


@pytest.mark.agreement
def test_draws_have_the_errors_of_the_theory() -> None:
    """The change is paired on the same draws: 0.5 % of the error is seen."""
    model = drawn_model(Lengths(SLOPE, SPREAD))
    found = np.array([draw(model, seed) for seed in range(SEEDS)])
    mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
    equal = drawn_model(None).risk(READOUT).test
    change = model.risk(READOUT).test - equal
    assert 3 * error[0] / equal <= 0.02
    assert abs(mean[0] - equal) <= 3 * error[0]
    assert 3 * error[1] / equal <= 0.005
    assert abs(mean[1] - change) <= 3 * error[1]
    assert abs(change) > 15 * error[1]


@pytest.mark.parametrize("weights", ["sphere", "gaussian"])
def test_lengths_of_a_network_are_those_of_its_step(weights: str) -> None:
    """κ, v and e measured over the neurons of one network, to their own errors."""
    d, neurons = 400, 4000
    changed = {"width": neurons / d, "steps.0.samples": 6.0, "steps.0.rate": 2.0}
    problem = PROBLEM.replace(changed | {"init.weights": weights})
    run = simulation.run(problem, d, 0)
    before, after, b = (np.asarray(run.arrays[name]) for name in ("W0", "W1", "b"))
    unit = b / np.linalg.norm(b)
    along, spikes = unit @ before, unit @ (after - before)
    squares = ((after - np.outer(unit, unit @ after)) ** 2).sum(axis=0)
    start = (before**2).sum(axis=0) - along**2
    model = theory.equivalent(problem, d, lengths="drawn")
    lengths = model.lengths
    assert lengths is not None
    mu1, c3 = hermite_coefficients(problem.activation, 3)[[1, 3]]
    # The batch has a step of its own length.
    ratio = np.linalg.norm(b) / (model.spikes[0, 0] / (2.0 * mu1))
    assert lengths.slope == pytest.approx([12 * 2.0 * c3 * np.linalg.norm(b) / ratio])
    columns = np.stack([np.ones(neurons), along, start - start.mean()], axis=1)
    columns = columns if weights == "gaussian" else columns[:, :2]
    inverse = np.linalg.inv(columns.T @ columns)
    (_, slope, *growth), (_, _, *stretch) = (
        inverse @ (columns.T @ measured) for measured in (squares, spikes)
    )
    rest = squares - columns @ (inverse @ (columns.T @ squares))
    error = math.sqrt(float(rest.var()) * inverse[1, 1])
    assert 3 * error / abs(slope) <= 0.02
    assert slope == pytest.approx(lengths.slope[0] * ratio, abs=3 * error)
    assert d * float(rest.var()) == pytest.approx(lengths.spread[0], rel=0.1)
    assert lengths.initial == (2.0 if weights == "gaussian" else 0.0)
    if weights == "gaussian":
        assert growth[0] == pytest.approx(lengths.growth[0], rel=0.02)
        assert stretch[0] == pytest.approx(lengths.stretch[0] * ratio, rel=0.03)


def test_a_continuous_second_layer_does_not_care() -> None:
    """Every odd function of the spike is learned without a penalty there already."""
    problem = PROBLEM.replace({"init.second_layer": "gaussian"})
    readout = problem.require_readout()
    equal, drawn = (
        theory.equivalent(problem, lengths=lengths).risk(readout).test
        for lengths in ("equal", "drawn")
    )
    assert drawn == pytest.approx(equal, rel=1e-6)


@pytest.mark.slow
@pytest.mark.agreement
@pytest.mark.parametrize(("weights", "excess"), [("sphere", 0.02), ("gaussian", 0.04)])
def test_networks_learn_the_function_of_drawn_lengths(weights: str, excess: float) -> None:
    """tanh → sin, n₀ = 20d, η̃ = 3: equal lengths are too high at k = 2.8, by 2 or 4 %."""
    d, seeds, x = 300, 120, [2.8]
    problem = PROBLEM.replace({"init.weights": weights})
    found = [
        simulation.run(problem, d, seed).learned_function(x=x).mean[0] for seed in range(seeds)
    ]
    mean, error = float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(seeds))
    equal, drawn = (
        theory.equivalent(problem, d, lengths=lengths)
        .learned_function(problem.realised(d).require_readout(), x)
        .mean[0]
        for lengths in ("equal", "drawn")
    )
    assert equal / drawn - 1 > excess
    assert 3 * error / drawn <= 0.02
    assert abs(mean - drawn) <= 3 * error
    assert abs(mean - equal) > 3 * error


def test_what_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="'equal', 'drawn'"):
        theory.equivalent(PROBLEM, lengths="long")
    with pytest.raises(InvalidProblem, match="lengths"):
        SpikedFeatures(**GIVEN, spikes=1.0, bulk=1.0, lengths=Lengths([0, 0], [1, 1]))
    with pytest.raises(InvalidProblem, match="spread"):
        Lengths(0.0, -1.0)
    with pytest.raises(InvalidProblem, match="initial"):
        Lengths(0.0, 1.0, initial=-1.0)
    with pytest.raises(InvalidProblem, match="stretch"):
        Lengths(0.0, 1.0, stretch=[1.0, 2.0])
    even = PROBLEM.replace({"activation": gs.centered("relu")})
    with pytest.raises(NotCovered, match="not odd"):
        theory.equivalent(even, lengths="drawn")
    twice = PROBLEM.replace({"steps": PROBLEM.steps * 2})
    with pytest.raises(NotCovered, match="one step"):
        theory.equivalent(twice, lengths="drawn")
    model = theory.equivalent(PROBLEM, 100, lengths="drawn")
    with pytest.raises(NotCovered, match="lengths=None"):
        model.kernel(2.0)
