"""The equivalent model: published values, its limits, batches, and what it refuses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from giantsteps.theory._directions import Directions
from giantsteps.theory._readout import regress
from giantsteps.theory.model.build import equivalent, risk_batch

import giantsteps as gs
from giantsteps.errors import InvalidProblem, NotConverged, NotCovered
from giantsteps.problem import Ridge, Vocabulary
from giantsteps.theory import _one_step
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.steps.small import risk_small_step


def problem(
    *,
    activation: object = "tanh",
    teacher: object = "sin",
    noise: float = 0.05,
    width: float = 1.5,
    step: float = 2.0,
    rate: float = 1.0,
    exponent: float = 0.5,
    samples: float = 2.0,
    penalty: float = 0.1,
    law: object = "constant",
) -> gs.Problem:
    return gs.Problem(
        activation=activation,  # type: ignore[arg-type]
        teacher=teacher,  # type: ignore[arg-type]
        noise_variance=noise,
        width=width,
        steps=[gs.Step(samples=step, rate=rate, exponent=exponent)],
        readout=Ridge(samples=samples, penalty=penalty),
        init=gs.Init(second_layer=law),  # type: ignore[arg-type]
    )


def cui(samples: float) -> gs.Problem:
    """cui2024's notebook: λ_s = 0.1, α₀ = 20, η̃ = 3."""
    return problem(
        noise=0.0, width=1.0, step=20.0, rate=3.0, samples=samples, penalty=0.1 / samples
    )


BULK_MATTERS = {"noise": 0.1, "rate": 3.0, "step": 1.0}

# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bulk", "wanted"),
    [
        ("isotropic", [0.0484829, 0.0425039, 0.0373113, 0.0343047, 0.0325182]),
        ("exact", [0.0484921, 0.0425231, 0.0373292, 0.0343206, 0.0325327]),
    ],
)
def test_learning_curve_of_cui2024(bulk: str, wanted: list[float]) -> None:
    solved = risk_batch([cui(samples) for samples in (0.2, 0.9, 1.6, 2.3, 3.0)], bulk=bulk)
    np.testing.assert_allclose(solved.test, wanted, atol=6e-8)


def test_parameters_of_cui2024() -> None:
    model = equivalent(cui(1.0), bulk="isotropic")
    assert model.bulk.totals == pytest.approx(1.0189732, abs=5e-8)
    assert model.spikes == pytest.approx(1.1340555, abs=5e-8)
    assert model.overlap == pytest.approx(0.9718544, abs=5e-8)


def test_exact_bulk_where_it_matters() -> None:
    solved = risk_batch([problem(**BULK_MATTERS)])
    assert solved.test[0] == pytest.approx(0.2093097735, abs=5e-10)
    assert solved.train[0] == pytest.approx(0.1295175967, abs=5e-10)
    isotropic = risk_batch([problem(**BULK_MATTERS)], bulk="isotropic")
    assert isotropic.test[0] == pytest.approx(0.1979224, abs=5e-8)


def test_gaussian_second_layer_at_finite_width() -> None:
    small = problem(rate=0.03, penalty=0.075, law="gaussian")
    assert risk_batch([small], 1000).test[0] == pytest.approx(0.199116, abs=2e-6)


def test_norm_of_the_inputs_matters_for_centred_relu() -> None:
    relu = problem(
        activation=gs.centered("relu"),
        teacher="tanh",
        width=1.0,
        step=4.0,
        rate=4.0,
        exponent=0.0,
        samples=3.0,
        penalty=0.05,
    )
    assert risk_batch([relu], 2000).test[0] == pytest.approx(0.191, abs=1.5e-3)
    system = equivalent(relu, 2000).system([relu.require_readout()])
    (without,) = regress([dataclasses.replace(system, norm=0 * system.norm)])
    assert without.error[0] - 0.05 == pytest.approx(0.178, abs=2e-3)


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["gaussian", "constant", Vocabulary((-1.0, 1.0), (0.5, 0.5))])
def test_small_steps_approach_gaussian_equivalence(law: object) -> None:
    small = problem(exponent=0.0, rate=2.0, law=law)
    limit = risk_small_step([small])
    gaps = [
        (risk_batch([small], d).test[0] - limit.test[0]) * d for d in (4_000, 400_000, 40_000_000)
    ]
    assert abs(gaps[1]) < 1.0  # falls as 1/d
    assert gaps[2] == pytest.approx(gaps[1], rel=0.05, abs=0.05)


def test_no_step_is_gaussian_equivalence_at_every_size() -> None:
    untrained = [problem().untrained(), problem(noise=0.4, width=0.5).untrained()]
    np.testing.assert_allclose(
        risk_batch(untrained).test, risk_small_step(untrained).test, rtol=1e-10
    )
    np.testing.assert_allclose(
        risk_batch(untrained, 500).train, risk_small_step(untrained, 500).train, rtol=1e-8
    )


def test_finite_width_approaches_the_limit() -> None:
    large = problem()
    limit = risk_batch([large]).test[0]
    gaps = [risk_batch([large], d).test[0] - limit for d in (1_000, 100_000)]
    assert abs(gaps[1]) < 0.02 * abs(gaps[0]) + 1e-12


def test_exact_bulk_becomes_isotropic_for_many_samples() -> None:
    gaps = []
    for step in (10.0, 100.0):
        both = [
            risk_batch([problem(rate=2.0, step=step)], bulk=b).test[0] for b in _one_step._BULKS
        ]
        gaps.append(abs(both[0] / both[1] - 1))
    assert gaps[1] < 0.05 * gaps[0] < 1e-3


@pytest.mark.parametrize("samples", [0.7, 4.0])
def test_penalty_to_zero(samples: float) -> None:
    penalties = [0.0, 1e-5, 2e-5]
    exact, near, far = risk_batch(
        [problem(samples=samples, penalty=penalty, rate=0.3) for penalty in penalties]
    ).test
    assert exact == pytest.approx(2 * near - far, rel=1e-6)


def test_closure_of_the_span_does_not_depend_on_a_small_rate() -> None:
    # p = ∞: every odd function of the spike is free, however small η̃ is.
    tests = risk_batch(
        [problem(rate=rate, law="gaussian", activation="erf") for rate in (1e-4, 1e-3)]
    ).test
    assert tests[1] == pytest.approx(tests[0], rel=1e-4)
    constant = risk_batch([problem(rate=1e-3, activation="erf")]).test[0]
    assert tests[0] < 0.95 * constant


# -- shape of the answers --------------------------------------------------------------------------


def test_by_degree_is_part_of_the_risk() -> None:
    solved = risk_batch([problem(), problem(teacher="tanh(x) + 0.3*(x**2 - 1)")])
    assert np.all(solved.by_degree.sum(axis=1) < solved.test)
    assert np.all(solved.by_degree[0, [0, 2, 4]] < 1e-20)
    untrained = risk_batch([problem().untrained()])
    wanted = risk_small_step([problem().untrained()])
    np.testing.assert_allclose(untrained.by_degree, wanted.by_degree, atol=1e-10)


def test_learned_function_along_spike_and_teacher() -> None:
    model = equivalent(problem(rate=2.0))
    readout = Ridge(samples=3.0, penalty=0.05)
    spike = model.learned_function(readout)
    assert spike.x.shape == spike.mean.shape == spike.band.shape
    assert np.all(spike.band >= 0)
    np.testing.assert_allclose(spike.mean, -spike.mean[::-1], atol=1e-10)
    # Averages over the coordinate give back the risk's ingredients.
    rule = model.coordinates
    along = model.learned_function(readout, x=rule.nodes[:, 0], along="teacher")
    bias = (along.mean - np.sin(rule.nodes[:, 0])) ** 2
    total = rule.weights @ (bias + along.band**2)
    assert total == pytest.approx(model.risk(readout).test, rel=1e-8)
    with pytest.raises(InvalidProblem, match="along"):
        model.learned_function(readout, along="sideways")  # type: ignore[arg-type]


def test_cell_does_not_depend_on_its_batch() -> None:
    for law, activation, d in (
        ("constant", "tanh", None),
        ("gaussian", "tanh", 700),
        (Vocabulary((-1.0, 0.5, 2.0), (0.3, 0.4, 0.3)), "relu", 700),
    ):
        grid = gs.Grid(
            problem(law=law, activation=activation),
            {"readout.samples": [0.3, 1.4, 3.0], "steps.0.rate": [0.05, 1.0, 3.0]},
        )
        cells = list(grid.problems().ravel())
        together = risk_batch(cells, d)
        for i in (0, 4, 8, 5):
            alone = risk_batch([cells[i]], d)
            assert alone.test[0] == together.test[i]
            assert alone.train[0] == together.train[i]
            assert alone.iterations[0] == together.iterations[i]
            np.testing.assert_array_equal(alone.by_degree[0], together.by_degree[i])
        turned = risk_batch(cells[::-1], d)
        np.testing.assert_array_equal(turned.test[::-1], together.test)


def test_random_problems_converge() -> None:
    rng = np.random.default_rng(11)

    def log(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    laws = ["constant", "gaussian", Vocabulary((-1.0, 0.5, 2.0), (0.3, 0.4, 0.3))]
    activations = ["tanh", "relu", "erf", gs.centered("relu")]
    teachers = ["sin", "sign", "he3", "tanh(x) + 0.3*(x**2 - 1)"]
    for count in range(60):
        one = problem(
            activation=activations[rng.integers(4)],
            teacher=teachers[rng.integers(4)],
            noise=float(rng.uniform()),
            width=log(0.2, 10),
            step=log(0.2, 10),
            rate=log(1e-3, 5),
            samples=log(0.2, 10),
            penalty=log(1e-4, 10),
            law=laws[count % 3],
        )
        solved = risk_batch([one], None if count % 2 else 1000)
        assert solved.residual[0] < 1e-10
        assert 0 < solved.test[0] < math.inf
        assert solved.train[0] > 0
        assert solved.iterations[0] < 20


# -- by hand, and refusals -------------------------------------------------------------------------


def test_model_by_hand_is_the_model_of_the_problem() -> None:
    readout = Ridge(samples=3.0, penalty=0.1 / 3.0)
    by_hand = SpikedFeatures(
        activation="tanh",
        teacher="sin",
        width=1.0,
        spikes=1.1340555,
        overlap=0.9718544,
        bulk=1.0189732,
    )
    assert by_hand.risk(readout).test == pytest.approx(0.0325182, abs=5e-7)
    assert by_hand.risk(readout).source == "limit"
    assert by_hand.risk(readout).solution is not None


def test_types_and_directions_may_be_split_without_effect() -> None:
    shared = {"activation": "tanh", "teacher": "sin", "width": 1.2, "overlap": 0.6}
    readout = Ridge(samples=1.0, penalty=0.1)
    one = SpikedFeatures(spikes=0.8, bulk=1.3, neurons=900, **shared)  # type: ignore[arg-type]
    two = SpikedFeatures(
        spikes=[[0.8], [0.8]],
        bulk=Directions.generic([0.3, 0.7], [[1.3, 1.3], [1.3, 1.3]], rank=1),
        probabilities=[0.25, 0.75],
        neurons=900,
        **shared,  # type: ignore[arg-type]
    )
    assert two.risk(readout).test == pytest.approx(one.risk(readout).test, rel=1e-10)
    assert two.risk(readout).train == pytest.approx(one.risk(readout).train, rel=1e-10)


def test_spike_coordinates_may_be_rotated() -> None:
    angle = 0.7
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    shared = {"activation": "tanh", "teacher": "sin", "width": 1.2, "bulk": [1.1, 1.4]}
    spikes, overlap = np.array([[0.9, 0.1], [-0.4, 0.6]]), np.array([0.5, 0.3])
    readout = Ridge(samples=1.0, penalty=0.1)
    tests = [
        SpikedFeatures(
            spikes=spikes @ r.T,
            overlap=r @ overlap,
            probabilities=[0.4, 0.6],
            neurons=600.0,
            **shared,  # type: ignore[arg-type]
        )
        .risk(readout)
        .test
        for r in (np.eye(2), turn)
    ]
    assert tests[1] == pytest.approx(tests[0], rel=1e-6)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("width", -1.0),
        ("neurons", 0.0),
        ("noise_variance", -0.1),
        ("probabilities", [0.5, 0.6]),
        ("spikes", [1.0, 2.0]),
        ("overlap", 1.2),
        ("bulk", [1.0, 2.0]),
        ("bulk", -1.0),
        ("second_layer", [1.0, 2.0]),
    ],
)
def test_bad_models_are_refused(field: str, value: object) -> None:
    arguments = {
        "activation": "tanh",
        "teacher": "sin",
        "width": 1.0,
        "spikes": 1.0,
        "overlap": 0.5,
        "bulk": 1.0,
        field: value,
    }
    with pytest.raises(InvalidProblem, match=field):
        SpikedFeatures(**arguments)  # type: ignore[arg-type]


def test_what_is_not_covered_says_what_is() -> None:
    with pytest.raises(InvalidProblem, match="bulk"):
        equivalent(problem(), bulk="spherical")
    with pytest.raises(NotCovered, match="exponent 1/2, or any exponent with d"):
        equivalent(problem(exponent=0.3))
    with pytest.raises(NotCovered, match="a larger penalty"):
        # σ saturates: samples far along the spike have no features to interpolate with
        risk_batch([problem(rate=5.0, step=8.0, samples=0.8, penalty=0.0)])
    with pytest.raises(NotConverged, match="a larger penalty"):
        risk_batch([problem(rate=0.3, samples=1.5, penalty=0.0)])


def test_failure_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("giantsteps.theory._solve._ROUNDS", 2)
    with pytest.raises(NotConverged, match=r"samples=2\.0.*larger penalty"):
        risk_batch([problem()])
