"""The equivalent model: published values, its limits, batches, and what it refuses."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Risk
from giantsteps.errors import InvalidProblem, NotConverged, NotCovered
from giantsteps.problem import Ridge, Vocabulary
from giantsteps.theory import SpikedFeatures
from giantsteps.theory.model.errors import ridge_batch
from giantsteps.theory.model.given_coordinates import coordinates
from giantsteps.theory.model.ridge_batch import RidgeBatch
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.readout import read_out
from giantsteps.theory.solver.state import Equations

from .commuting import along_directions


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
    weights: str = "gaussian",
) -> gs.Problem:
    return gs.Problem(
        activation=activation,  # type: ignore[arg-type]
        teacher=teacher,  # type: ignore[arg-type]
        noise_variance=noise,
        width=width,
        steps=[gs.Step(samples=step, rate=rate, exponent=exponent)],
        readout=Ridge(samples=samples, penalty=penalty),
        init=gs.Init(second_layer=law, weights=weights),  # type: ignore[arg-type]
    )


def risk(given: gs.Problem, d: int | None = None, simplify: str | tuple[str, ...] = ()) -> Risk:
    return theory.equivalent(given, d, simplify=simplify).risk()


def batch(cells: list[gs.Problem], d: int | None = None) -> RidgeBatch:
    """Each problem with its own model, all solved together."""
    sized = cells if d is None else [cell.realised(d) for cell in cells]
    return ridge_batch(
        [(theory.equivalent(p, d), s.require_readout()) for p, s in zip(cells, sized)]
    )


def cui(samples: float) -> gs.Problem:
    """cui2024's notebook: λ_s = 0.1, α₀ = 20, η̃ = 3."""
    return problem(
        noise=0.0, width=1.0, step=20.0, rate=3.0, samples=samples, penalty=0.1 / samples
    )


BULK_MATTERS = {"noise": 0.1, "rate": 3.0, "step": 1.0}

# -- values ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("simplify", "wanted"),
    [
        ("isotropic bulk", [0.0484829, 0.0425039, 0.0373113, 0.0343047, 0.0325182]),
        ("equal norms", [0.0484921, 0.0425231, 0.0373292, 0.0343206, 0.0325327]),
    ],
)
def test_learning_curve_of_cui2024(simplify: str, wanted: list[float]) -> None:
    samples = (0.2, 0.9, 1.6, 2.3, 3.0)
    found = [float(risk(cui(each), simplify=simplify).test) for each in samples]
    np.testing.assert_allclose(found, wanted, atol=6e-8)


def test_parameters_of_cui2024() -> None:
    model = theory.equivalent(cui(1.0), simplify="isotropic bulk")
    assert model.bulk.totals == pytest.approx(1.0189732, abs=5e-8)
    assert model.spikes == pytest.approx(1.1340555, abs=5e-8)
    assert model.overlap == pytest.approx(0.9718544, abs=5e-8)


def test_exact_bulk_where_it_matters() -> None:
    solved = risk(problem(**BULK_MATTERS), simplify="equal norms")  # type: ignore[arg-type]
    assert solved.test == pytest.approx(0.2093097735, abs=5e-10)
    assert solved.train == pytest.approx(0.1295175967, abs=5e-10)
    isotropic = risk(problem(**BULK_MATTERS), simplify="isotropic bulk")  # type: ignore[arg-type]
    assert isotropic.test == pytest.approx(0.1979224, abs=5e-8)
    assert not isotropic.exact


def test_gaussian_second_layer_at_finite_width() -> None:
    """By the reference; without norms, pull and own norm it has the 0.199116 of cui2024's form."""
    small = problem(rate=0.03, penalty=0.075, law="gaussian")
    assert risk(small, 1000).test == pytest.approx(0.1989873982, abs=1e-9)


def test_norm_of_the_inputs_matters_for_centred_relu() -> None:
    """Networks have 0.191; without the norm of the input the model would say 0.178."""
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
    model = theory.equivalent(relu, 2000)
    assert model.risk().test == pytest.approx(0.191, abs=1.5e-3)
    system = model.at_level(2).system([relu.require_readout()])
    mean, target = system.mean.copy(), system.target.copy()
    mean[:, :, 1:], target[:, 1:] = 0.0, 0.0  # the modes of ‖x‖²
    system = dataclasses.replace(system, mean=mean, target=target)
    found = read_out(solve_state(Equations(system), system.penalty).state)
    assert found.error[0] - 0.05 == pytest.approx(0.178, abs=2e-3)


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", ["gaussian", "constant", Vocabulary((-1.0, 1.0), (0.5, 0.5))])
def test_small_steps_approach_gaussian_equivalence(law: object) -> None:
    """What is left is of order η̃ = η/√N (the pull of f₀)."""
    small = problem(exponent=0.0, rate=2.0, law=law)
    limit = theory.risk(small).test
    gaps = [float(risk(small, d).test - limit) * math.sqrt(d) for d in (10**5, 10**7, 10**9)]
    assert abs(gaps[1]) < 0.5
    assert gaps[2] == pytest.approx(gaps[1], rel=0.05, abs=0.02)


def test_no_step_is_gaussian_equivalence_at_every_size() -> None:
    for given in (problem(), problem(noise=0.4, width=0.5)):
        untrained = given.untrained()
        assert risk(untrained).test == pytest.approx(theory.risk(untrained).test, rel=1e-10)
        model, small = risk(untrained, 500), theory.risk(untrained, d=500)
        assert model.train == pytest.approx(small.train, rel=1e-8)


def test_a_step_of_rate_zero_is_none() -> None:
    for d in (None, 500):
        still = risk(problem(rate=0.0), d)
        assert still.test == pytest.approx(theory.risk(problem().untrained(), d=d).test, rel=1e-9)


def test_finite_width_approaches_the_limit() -> None:
    large = problem()
    limit = risk(large).test
    gaps = [float(risk(large, d).test - limit) for d in (1_000, 100_000)]
    assert abs(gaps[1]) < 0.02 * abs(gaps[0]) + 1e-12


@pytest.mark.parametrize("activation", ["tanh", gs.centered("relu")])
@pytest.mark.parametrize("law", ["gaussian", Vocabulary((-1.0, 0.5, 2.0), (0.3, 0.4, 0.3))])
def test_infinitely_many_neurons_are_the_limit(law: object, activation: object) -> None:
    """p = ∞ fits the closure of the types' functions; finite p comes near, as its penalty lets."""
    large = problem(activation=activation, law=law)
    limit = risk(large)
    gaps = [float(risk(large, d).test / limit.test) - 1 for d in (10**6, 10**8, 10**10)]
    assert abs(gaps[0]) < 0.05
    assert abs(gaps[2]) < 0.3 * abs(gaps[0]) + 1e-6
    assert abs(gaps[2]) < 5e-3


def test_exact_bulk_becomes_isotropic_for_many_samples() -> None:
    gaps = []
    for step in (10.0, 100.0):
        both = [
            float(risk(problem(rate=2.0, step=step), simplify=name).test)
            for name in ("equal norms", "isotropic bulk")
        ]
        gaps.append(abs(both[0] / both[1] - 1))
    assert gaps[1] < 0.05 * gaps[0] < 1e-3


@pytest.mark.parametrize("samples", [0.7, 4.0])
def test_penalty_to_zero(samples: float) -> None:
    exact, near, far = (
        risk(problem(samples=samples, penalty=penalty, rate=0.3)).test
        for penalty in (0.0, 1e-5, 2e-5)
    )
    assert exact == pytest.approx(2 * near - far, rel=1e-6)


def test_closure_of_the_span_does_not_depend_on_a_small_rate() -> None:
    # p = ∞: every odd function of the spike is free, however small η̃ is.
    tests = [
        risk(problem(rate=rate, law="gaussian", activation="erf")).test for rate in (1e-4, 1e-3)
    ]
    assert tests[1] == pytest.approx(tests[0], rel=1e-4)
    constant = risk(problem(rate=1e-3, activation="erf")).test
    assert tests[0] < 0.95 * constant


# -- shape of the answers --------------------------------------------------------------------------


def test_by_degree_is_part_of_the_risk() -> None:
    odd, even = risk(problem()), risk(problem(teacher="tanh(x) + 0.3*(x**2 - 1)"))
    for solved in (odd, even):
        assert solved.by_degree is not None
        assert np.sum(solved.by_degree) < solved.test
    assert np.all(np.asarray(odd.by_degree)[[0, 2, 4]] < 1e-20)
    untrained = problem().untrained()
    found, wanted = risk(untrained).by_degree, theory.risk(untrained).by_degree
    assert found is not None
    assert wanted is not None
    np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_learned_function_along_spike_and_teacher() -> None:
    model = theory.equivalent(problem(rate=2.0))
    readout = Ridge(samples=3.0, penalty=0.05)
    spike = model.learned_function(readout)
    assert spike.x.shape == spike.mean.shape == spike.band.shape
    assert np.all(spike.band >= 0)
    np.testing.assert_allclose(spike.mean, -spike.mean[::-1], atol=1e-10)
    # Averages over the coordinate give back the risk's ingredients.
    rule = coordinates(model, 3)
    along = model.learned_function(readout, x=rule.nodes[:, 0], along="teacher")
    bias = (along.mean - np.sin(rule.nodes[:, 0])) ** 2
    total = rule.weights @ (bias + along.band**2)
    assert total == pytest.approx(model.risk(readout).test, rel=1e-8)
    with pytest.raises(InvalidProblem, match="along"):
        model.learned_function(readout, along="sideways")


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
        together = batch(cells, d)
        for i in (0, 4, 8, 5):
            alone = batch([cells[i]], d)
            assert alone.test[0] == together.test[i]
            assert alone.train[0] == together.train[i]
            assert alone.iterations[0] == together.iterations[i]
            np.testing.assert_array_equal(alone.by_degree[0], together.by_degree[i])
        turned = batch(cells[::-1], d)
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
        solved = batch([one], None if count % 2 else 1000)
        assert solved.residual[0] < 1e-10
        assert 0 < solved.test[0] < math.inf
        assert solved.train[0] > 0
        assert solved.iterations[0] < 25


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
        bulk=along_directions([0.3, 0.7], [[1.3, 1.3], [1.3, 1.3]]),
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
    with pytest.raises(InvalidProblem, match="simplify"):
        theory.equivalent(problem(), simplify="spherical")
    with pytest.raises(NotCovered, match="exponents 1/2, or any exponent with d given"):
        theory.equivalent(problem(exponent=0.3))
    with pytest.raises(NotCovered, match="a larger penalty"):
        # σ saturates: samples far along the spike have no features to interpolate with
        risk(problem(rate=5.0, step=8.0, samples=0.8, penalty=0.0))
    with pytest.raises(NotConverged, match="a larger penalty"):
        risk(problem(rate=0.3, samples=1.5, penalty=0.0))


def test_failure_names_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("giantsteps.theory.solver.newton._ROUNDS", 2)
    monkeypatch.setattr("giantsteps.theory.solver.numbers._ROUNDS", 1)
    with pytest.raises(NotConverged, match=r"samples=2\.0.*larger penalty"):
        risk(problem())
