"""The teacher's second degree along neurons with large components on it (theory §5c)."""

from __future__ import annotations

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.theory.model.covariance import NeuronCovariance


def even(samples: float, rate: float, **changes: object) -> gs.Problem:
    return gs.Problem(
        activation="relu",
        teacher="he2",
        width=1.5,
        noise_variance=0.2,
        steps=[gs.Step(samples=samples, rate=rate, exponent=0.5)],
        init=gs.Init(second_layer="constant"),
        readout=gs.Ridge(samples=3.0, penalty=0.2),
    ).replace(**changes)


def test_networks_learn_an_even_teacher_by_what_the_step_multiplies() -> None:
    """Without the term the test error is 9 % above these networks (2.42 at d = 300)."""
    problem = even(4.0, 2.5)
    found = [simulation.risk(problem, 300, seed) for seed in range(9)]
    predicted = theory.risk(problem, 300)
    for name, most in (("test", 0.02), ("train", 0.05)):
        values = np.array([getattr(one, name) for one in found])
        error = values.std(ddof=1) / 3
        assert error < most * values.mean()
        assert abs(getattr(predicted, name) - values.mean()) < 3.5 * error


def test_the_teacher_leaves_the_bulk_of_the_weights_by_itself() -> None:
    """γ = 0: no lean points at the teacher, but the batch is not generic along it."""
    problem = even(6.0, 2.5)
    first, second = theory.weights(problem, 600).spikes
    assert first.overlap < 0.02
    measured = [simulation.weights(problem, 600, seed, top=2).spikes[1] for seed in range(4)]
    assert second.value == pytest.approx(np.mean([one.value for one in measured]), rel=0.04)
    assert second.overlap == pytest.approx(np.mean([one.overlap for one in measured]), abs=0.08)


def test_an_odd_teacher_has_no_second_degree() -> None:
    assert theory.equivalent(even(4.0, 2.5, teacher="x"), 300).second_degree is None


def test_without_a_dimension_there_is_none() -> None:
    assert theory.equivalent(even(4.0, 2.5)).second_degree is None


def test_two_eigenvectors_have_the_share_and_the_size_that_they_are_given() -> None:
    """Σ = I + 24 P: half of the teacher's direction is in the range of P."""
    model = theory.equivalent(even(4.0, 2.5), 300)
    assert model.second_degree is not None
    part = np.array([0.5, 0.5])
    bulk = NeuronCovariance(
        shares=part,
        diagonal=np.array([[1.0, 1.0], [0.0, 1.0]]),
        coefficients=np.array([[1.0, 24.0]]),
        external=np.sqrt(part)[None, :, None],
        gram=np.array([[1.0, 0.5], [0.5, 0.5]]),
    )
    p = np.array([0.1, 1.0])
    np.testing.assert_allclose(
        bulk.seen(np.ones(1), np.ones(1), p), 0.5 / (1 + p) + 0.5 / (1 + 25 * p), rtol=1e-12
    )
    np.testing.assert_allclose(bulk.on(np.ones(1)), [13.0], rtol=1e-12)


def test_neurons_that_do_not_move_do_not_say_what_the_others_learn_along() -> None:
    found = []
    for still in (0.2, 0.8):
        law = gs.Vocabulary([0.0, 1.0], [still, 1.0 - still])
        second = theory.equivalent(
            even(4.0, 2.5, activation=gs.centered("relu")).replace({"init.second_layer": law}), 300
        ).second_degree
        assert second is not None
        found.append(second.shares[1:] / np.linalg.norm(second.shares[1:]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6)
