"""Given weights: Gaussian features with their second moments, and models read off arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import moments, smoothed
from giantsteps.problem import Ridge
from giantsteps.theory import SpikedFeatures, risk_of_weights

D, NEURONS = 400, 500


def problem(**changes: object) -> gs.Problem:
    fields = {
        "activation": "tanh",
        "teacher": "sin",
        "noise_variance": 0.1,
        "width": NEURONS / D,
        "readout": Ridge(samples=1.5, penalty=0.1),
        **changes,
    }
    return gs.Problem(**fields)  # type: ignore[arg-type]


def weights(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    beta = rng.standard_normal(D)
    w = rng.standard_normal((D, NEURONS))
    return w / np.linalg.norm(w, axis=0), beta / np.linalg.norm(beta)


def test_unit_columns_are_theory_4_with_singular_triples() -> None:
    w, beta = weights()
    found = risk_of_weights(w, beta, problem())
    sigma, teacher = moments(problem().activation), moments(gs.functions.as_function("sin"))
    left, values, _ = np.linalg.svd(w, full_matrices=False)
    signal = teacher.linear**2 * (left.T @ beta) ** 2
    spectrum = np.zeros(NEURONS)
    spectrum[: len(values)] = sigma.linear**2 * values**2
    total = spectrum + sigma.residual_variance
    samples, penalty = 600, 0.1
    kappa = penalty
    for _ in range(500):  # κ = λ + κ df₁(κ)
        kappa = penalty + kappa * np.sum(total / (total + kappa)) / samples
    second = np.sum((total / (total + kappa)) ** 2) / samples
    shrink = spectrum[: len(values)] / (total[: len(values)] + kappa)
    explained = np.sum(signal * shrink)
    slope = -np.sum(signal * shrink / (total[: len(values)] + kappa))
    wanted = (teacher.second_moment + 0.1 - explained + kappa * slope) / (1 - second) - 0.1
    assert found.test == pytest.approx(wanted, rel=1e-8)
    assert found.test == pytest.approx(theory.risk(problem()).test, rel=0.1)
    assert found.exact
    assert found.d == D


def test_column_norms_have_their_own_coefficients() -> None:
    w, beta = weights()
    norms = np.linspace(0.5, 1.8, NEURONS)
    found = risk_of_weights(w * norms, beta, problem()).test
    # Rescaling every column equally is the activation σ(2x).
    doubled = risk_of_weights(2 * w, beta, problem()).test
    as_function = risk_of_weights(w, beta, problem(activation="tanh(2*x)")).test
    assert doubled == pytest.approx(as_function, rel=1e-8)
    assert abs(float(found / risk_of_weights(w, beta, problem()).test) - 1) > 1e-3
    felt = smoothed(problem().activation, 0.0, norms)
    assert felt.slope[0] > felt.slope[-1]  # tanh saturates


def test_torch_and_numpy_agree() -> None:
    w, beta = weights()
    a = np.ones(NEURONS)
    numpy = risk_of_weights(w, beta, problem()).test
    tensors = (torch.tensor(w, requires_grad=True), torch.tensor(beta))
    assert risk_of_weights(*tensors, problem()).test == numpy
    arguments = {"activation": "tanh", "teacher": "sin"}
    one = SpikedFeatures.from_weights(w, a, beta, **arguments)  # type: ignore[arg-type]
    two = SpikedFeatures.from_weights(tensors[0], torch.tensor(a), tensors[1], **arguments)  # type: ignore[arg-type]
    np.testing.assert_array_equal(one.spikes, two.spikes)


@pytest.mark.parametrize("law", ["constant", "gaussian"])
def test_planted_spikes_are_found(law: str) -> None:
    w, beta = weights()
    rng = np.random.default_rng(1)
    a = np.ones(NEURONS) if law == "constant" else rng.standard_normal(NEURONS)
    direction = rng.standard_normal(D)
    direction = 0.8 * beta + 0.6 * direction / np.linalg.norm(direction)
    direction /= np.linalg.norm(direction)
    trained = 1.1 * w + 0.7 * np.outer(direction, a)
    model = SpikedFeatures.from_weights(
        trained, a, beta, activation="tanh", teacher="sin", noise_variance=0.1
    )
    assert model.rank == 1
    assert model.second_layer is not None
    sign = np.sign(model.overlap[0])
    assert sign * model.overlap[0] == pytest.approx(direction @ beta, abs=0.03)
    np.testing.assert_allclose(
        sign * model.spikes[:, 0],
        0.7 * model.second_layer,
        atol=0.06 if law == "gaussian" else 0.02,
    )
    assert model.bulk.totals @ model.probabilities == pytest.approx(1.21, rel=0.05)
    known = SpikedFeatures(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=NEURONS / D,
        neurons=NEURONS,
        probabilities=model.probabilities,
        spikes=0.7 * model.second_layer[:, None],
        overlap=direction @ beta,
        bulk=np.full(len(model.probabilities), 1.21),
    )
    readout = Ridge(samples=1.5, penalty=0.1)
    assert model.risk(readout).test == pytest.approx(known.risk(readout).test, rel=0.02)


def test_weights_of_a_problem_have_its_risk() -> None:
    one = problem(
        steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.5)],
        init=gs.Init(second_layer="constant"),
    )
    run = simulation.run(one, D, 0)
    model = SpikedFeatures.from_weights(
        run.arrays["W1"],
        run.network.second_layer,
        run.network.teacher,
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
    )
    readout = one.realised(D).require_readout()
    assert model.risk(readout).test == pytest.approx(theory.risk(one, d=D).test, rel=0.06)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("weights", lambda w, a, b: (w[:, :-1], a, b)),
        ("weights", lambda w, a, b: (w[0], a, b)),
        ("weights", lambda w, a, b: (np.full_like(w, np.nan), a, b)),
        ("teacher_directions", lambda w, a, b: (w, a, b[:-1])),
        ("teacher_directions", lambda w, a, b: (w, a, 2 * b)),
    ],
)
def test_shapes_that_contradict_the_problem_are_errors(field: str, change: object) -> None:
    w, beta = weights()
    changed = change(w, np.ones(NEURONS), beta)  # type: ignore[operator]
    with pytest.raises(InvalidProblem, match=field):
        risk_of_weights(changed[0], changed[2], problem())


def test_second_layer_has_one_value_for_a_neuron() -> None:
    w, beta = weights()
    with pytest.raises(InvalidProblem, match="second_layer"):
        SpikedFeatures.from_weights(w, np.ones(3), beta, activation="tanh", teacher="sin")
