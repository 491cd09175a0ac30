"""Norms and mean slopes of neurons on inputs with a covariance (theory §10)."""

from __future__ import annotations

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.laws import Law
from giantsteps.theory.model.norm_types import halved
from giantsteps.theory.scope.heavy import heavy_directions
from giantsteps.theory.steps.several.model import several_steps

#: Labels with a mean, which a curved activation turns into a change of the weights.
PROBLEM = gs.Problem(
    activation="softplus",
    teacher="abs",
    noise_variance=0.05,
    width=3.0,
    inputs=gs.Covariance((0.15, 2.95), (0.7, 0.3)),
    steps=[gs.Step(samples=3.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer=gs.Vocabulary((-1.0, 1.0), (0.5, 0.5))),
)


@pytest.mark.parametrize("weights", ["gaussian", "sphere"])
def test_norms_grow_where_the_eigenvalues_are(weights: str) -> None:
    """What squared norms are multiplied by, and their variance, by the sign of the second layer;
    with the mean gain of all directions it is a third of that.
    """
    d, problem = 300, PROBLEM.replace({"init.weights": weights})
    norms = theory.equivalent(problem, d).norms
    assert norms is not None
    assert norms.initial is not None
    root, found = np.sqrt(problem.inputs.variances(d))[:, None], []
    for seed in range(5):
        run = simulation.run(problem, d, seed)
        initial = ((root * run.arrays["W0"]) ** 2).sum(axis=0)
        for value in (-1.0, 1.0):
            some = np.sign(run.arrays["a"]) == value
            bulk = (root * run.arrays["W1"])[:, some]
            after = ((bulk - bulk.mean(axis=1, keepdims=True)) ** 2).sum(axis=0)
            growth = np.cov(after, initial[some])[0, 1] / initial[some].var()
            found.append((growth, d * after.var()))
    growth, variance = np.mean(np.reshape(found, (5, 2, 2)), axis=0).T
    assert norms.growth[norms.initial] == pytest.approx(growth, rel=0.05)
    assert (norms.spread * norms.growth**2).sum(axis=0) == pytest.approx(variance, rel=0.12)


def test_halves_of_neurons_have_the_initial_norms() -> None:
    """A heavy eigenvalue has fluctuations of its own (from a spike of about one on): the errors
    where norms learn the mean of the labels were 17 % lower from there on.
    """
    errors = []
    for strength in (0.8, 1.2, 1.6, 2.0):
        law = gs.Covariance((1.0, 1.0 + strength), (0.998, 0.002), teacher=(0.8, 0.2))
        problem = PROBLEM.replace(
            {
                "activation": gs.centered("relu"),
                "teacher": "softplus",
                "inputs": law,
                "init.second_layer": "constant",
                "steps.0.exponent": 0.0,
                "steps.0.rate": 2.0,
            }
        )
        errors.append(float(theory.risk(problem, d=500).test))
    assert np.abs(np.diff(errors) / errors[0]).max() < 0.02


@pytest.mark.parametrize("exponent", [0.3, 0.7])
def test_halves_have_the_variance_of_the_initial_norms(exponent: float) -> None:
    """With an explicit direction, too, whose initial norms are the first fluctuation."""
    changes = {"activation": gs.centered("softplus"), "inputs": gs.PowerLaw(exponent)}
    problem = PROBLEM.replace(changes)
    model = several_steps(problem, 500)
    whole = several_steps(problem.replace({"activation": "softplus", "teacher": "sin"}), 500)
    assert model.norms is not None
    assert whole.norms is not None
    assert whole.norms.initial is not None
    assert halved(whole) is whole  # nothing to learn by norms
    assert len(model.norms.spread) == len(whole.norms.spread) - 1
    assert model.norms.initial is None
    values = problem.inputs.variances(500)
    explicit = exponent > 0.5
    variance = 2 * float((np.sort(values)[: -1 if explicit else None] ** 2).sum()) / 500
    assert whole.norms.spread[whole.norms.initial, 0] == pytest.approx(variance, rel=0.02)


@pytest.mark.parametrize(("exponent", "size"), [(0.2, "25%"), (0.5, "40%")])
def test_a_curved_first_step_states_more_beside_a_heavy_direction(
    exponent: float, size: str
) -> None:
    """Two of three networks with one were 14 and 27 % below theory."""
    steps = [{"samples": 3.0, "rate": 1.0, "exponent": 0.5}] * 2
    problem = PROBLEM.replace(inputs=gs.PowerLaw(exponent), steps=steps)
    found = [text for text in heavy_directions(problem, 500) if "the first of several" in text]
    assert len(found) == 1
    assert size in found[0]


def test_a_mean_slope_that_is_rounding_has_no_share_of_long_inputs() -> None:
    """Its quotient with another one was: the edge moved by 6e-5 between processors."""
    problem = gs.Problem(
        activation=gs.centered("x**2"),
        teacher="exp(x/3)",
        width=7.64,
        steps=[
            gs.Step(samples=0.867, rate=0.0),
            gs.Step(samples=1.5, rate=0.12),
            gs.Step(samples=0.178, rate=1.36),
        ],
        readout=gs.Ridge(samples=2.02, penalty=0.0614),
        init=gs.Init(second_layer=gs.Vocabulary([0.0, 1.0], [0.5, 0.5])),
        inputs=gs.Covariance((0.825, 1.175), (0.5, 0.5), teacher=(1.0, 0.0)),
    )
    edges = []
    for move in (0.0, 1e-13, -3e-13):
        bulk = theory.weights(problem.replace({"steps.1.rate": 0.12 * (1 + move)}), d=100).bulk
        assert isinstance(bulk, Law)
        edges.append(bulk.edge)
    np.testing.assert_allclose(edges[1:], edges[0], rtol=1e-9)
