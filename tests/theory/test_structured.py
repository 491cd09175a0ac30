"""Inputs with a covariance: what follows from it, and that the identity is isotropic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.gaussian import coordinate_rule
from giantsteps.laws import Law
from giantsteps.theory.scope.heavy import heavy_directions
from giantsteps.theory.steps import build
from giantsteps.theory.steps.several.model import leading, several_steps

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


@pytest.mark.parametrize("exponent", [0.0, 0.5])
@pytest.mark.parametrize("law", ["constant", "gaussian"])
def test_close_to_the_identity_it_is_the_isotropic_model(exponent: float, law: str) -> None:
    """What norms go with beside b is left out: 3e-6 for tanh."""
    steps = [{"samples": 4.0, "rate": 1.5, "exponent": exponent}]
    problem = PROBLEM.replace({"steps": steps, "init.second_layer": law})
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    ours, plain = several_steps(near, 500), theory.equivalent(problem, 500)
    assert ours.overlap == pytest.approx(plain.overlap, rel=1e-11)
    assert ours.risk().test == pytest.approx(plain.risk().test, rel=1e-5)
    assert ours.risk().train == pytest.approx(plain.risk().train, rel=1e-5)


@pytest.mark.parametrize("steps", [1, 2])
def test_the_identity_is_isotropic(steps: int) -> None:
    problem = PROBLEM.replace(steps=steps * [PROBLEM.steps[0]])
    plain = theory.risk(problem, 500)
    for law in (gs.Covariance((2.0,), (1.0,)), gs.PowerLaw(0.0), gs.SpikedCovariance(0.0, 0.4)):
        same = theory.risk(problem.replace(inputs=law), 500)
        assert (same.test, same.train) == pytest.approx((plain.test, plain.train), rel=1e-10)


@pytest.mark.parametrize("steps", [1, 2])
def test_a_simplified_bulk_is_that_of_isotropic_inputs_close_to_the_identity(steps: int) -> None:
    problem = PROBLEM.replace(steps=steps * [PROBLEM.steps[0]])
    near = problem.replace(inputs=gs.Covariance((0.999, 1.001), (0.5, 0.5)))
    ours, plain = (
        theory.equivalent(one, 200, simplify="isotropic bulk").risk().test
        for one in (near, problem)
    )
    assert ours == pytest.approx(plain, rel=1e-4)


def test_long_inputs_have_another_mean_slope() -> None:
    """E_w σ'(⟨w, x⟩) depends on ‖x‖, so that b shrinks where an eigenvalue is large."""
    d, count = 80, 400_000
    law = gs.SpikedCovariance(7.0, 0.02)
    steps = [{"samples": 1e6, "rate": 1.0, "exponent": 0.5}]  # b without noise
    problem = PROBLEM.replace(inputs=law, steps=steps)
    eigenvalues, _, teacher = law.directions(d=d)
    heavy = int(np.argmax(eigenvalues))
    large, small = float(eigenvalues[heavy]), float(eigenvalues[1 - heavy])
    share = float(teacher[heavy])
    rng = np.random.default_rng(3)
    z = rng.standard_normal((count, 2))
    rest = rng.chisquare(d - 2, count) * small
    squared = (large * z[:, 0] ** 2 + small * z[:, 1] ** 2 + rest) / d
    rule = coordinate_rule(1, nodes=40)
    grid = np.linspace(0.2, 12.0, 400)
    slope = (1 - np.tanh(np.sqrt(grid)[:, None] * rule.nodes[:, 0]) ** 2) @ rule.weights
    slopes = np.interp(squared, grid, slope)
    along = np.array([math.sqrt(share), math.sqrt(1 - share)])
    seen = (np.sin(z @ along) * slopes) @ z / count
    moved = np.array([large, small]) * seen

    def overlap(vector: np.ndarray) -> float:
        return float(vector @ along / np.linalg.norm(vector))

    model = several_steps(problem, d, explicit=False)
    without = overlap(np.array([large, small]) * along)
    assert abs(without - overlap(moved)) > 1e-2
    assert float(model.overlap[0]) == pytest.approx(overlap(moved), abs=2e-3)


@pytest.mark.parametrize(
    ("law", "steps", "activation"),
    [
        ("constant", 2, "tanh"),
        ("constant", 3, "tanh"),
        ("gaussian", 2, "tanh"),
        ("constant", 2, gs.centered("relu")),
    ],
)
def test_several_steps_close_to_the_identity(law: str, steps: int, activation: object) -> None:
    """Leans and norms are those of isotropic inputs; the bulk of the first batches is generic to
    the spikes, which is worth 0.13 % here.
    """
    rates = (1.0, 0.7, 0.5)[:steps]
    given = [{"samples": 4.0, "rate": rate, "exponent": 0.5} for rate in rates]
    problem = PROBLEM.replace({"steps": given, "init.second_layer": law, "activation": activation})
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    ours, plain = theory.equivalent(near, 1000), theory.equivalent(problem, 1000)
    assert ours.spikes == pytest.approx(plain.spikes, rel=1e-9, abs=1e-11)
    assert ours.overlap == pytest.approx(plain.overlap, rel=1e-9)
    assert ours.step_directions == pytest.approx(plain.step_directions, rel=1e-8)
    assert ours.weak == pytest.approx(plain.weak, rel=1e-8, abs=1e-11)
    assert ours.risk().test == pytest.approx(plain.risk().test, rel=2e-3)
    assert ours.risk().train == pytest.approx(plain.risk().train, rel=2e-3)


def test_natural_steps_lean_as_on_isotropic_inputs() -> None:
    """With p = 1 what a step adds to Σ^{1/2}w has no eigenvalue in it, whatever Σ is."""
    rates = (1.0, 0.7, 0.5)
    given = [{"samples": 4.0, "rate": rate, "exponent": 0.5} for rate in rates]
    natural = [{**step, "precondition": 1.0} for step in given]
    law = gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.1, 0.9))
    ours = theory.equivalent(PROBLEM.replace(steps=natural, inputs=law))
    plain = theory.equivalent(PROBLEM.replace(steps=given))
    assert ours.spikes == pytest.approx(plain.spikes, rel=1e-9)
    assert ours.overlap == pytest.approx(plain.overlap, rel=1e-9)
    assert ours.bulk.totals == pytest.approx(plain.bulk.totals, rel=1e-4)
    with pytest.raises(gs.NotCovered, match="same precondition"):
        theory.equivalent(PROBLEM.replace(steps=[*given[:1], *natural[1:]], inputs=law))


def test_singular_values_close_to_the_identity() -> None:
    """The weights themselves after several steps, with their overlaps."""
    given = [{"samples": 4.0, "rate": rate, "exponent": 0.5} for rate in (1.0, 0.7, 0.5)]
    problem = PROBLEM.replace({"steps": given, "init.second_layer": "constant"})
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    ours, plain = (theory.weights(p, 500).spikes[0] for p in (near, problem))
    assert float(ours.value) == pytest.approx(float(plain.value), rel=3e-4)
    assert {k: float(v) for k, v in ours.overlaps.items()} == pytest.approx(
        {k: float(v) for k, v in plain.overlaps.items()}, abs=3e-4
    )


def test_a_step_of_rate_zero_changes_nothing() -> None:
    law = gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.2, 0.8))
    problem = PROBLEM.replace(inputs=law)
    one = {"samples": 4.0, "rate": 1.0, "exponent": 0.5}
    still = problem.replace(steps=[one, {**one, "rate": 0.0}])
    once, twice = theory.equivalent(problem, 1000), theory.equivalent(still, 1000)
    assert twice.spikes == pytest.approx(once.spikes, rel=1e-9)
    assert twice.overlap == pytest.approx(once.overlap, rel=1e-3)
    assert twice.risk().test == pytest.approx(once.risk().test, rel=3e-3)


def test_one_more_step_follows_the_eigenvalues() -> None:
    """Leans of networks after two steps, neuron by neuron, and what theory says of them."""
    d, p = 300, 450
    law = gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.3, 0.7))
    steps = [{"samples": 4.0, "rate": rate, "exponent": 0.5} for rate in (1.0, 0.7)]
    problem = PROBLEM.replace(inputs=law, steps=steps)
    model = theory.equivalent(problem, d)
    variances, found = law.variances(d), []
    for seed in range(6):
        run = simulation.run(problem, d, seed)
        weights = np.sqrt(variances)[:, None] * run.arrays["W2"]
        assert weights.shape == (d, p)
        lean = weights.mean(axis=1)
        teacher = np.sqrt(variances) * run.arrays["beta"][:, 0]
        size = float(np.linalg.norm(lean))
        spread = ((weights - lean[:, None]) ** 2).sum(axis=0).mean()
        found.append((size, float(lean @ teacher) / size, spread))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / math.sqrt(5)
    expected = [abs(model.spikes[0, 0]), model.overlap[0], model.bulk.totals[0]]
    for value, seen, noise in zip(expected, mean, error, strict=True):
        assert abs(float(value) - seen) < 0.01 * seen + 3 * noise


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"steps.1.batch": "previous"}, "fresh"),
        ({"steps.1.rule": "normalized"}, "fresh"),
        ({"steps.1.precondition": 0.5}, "precondition"),
    ],
)
def test_other_steps_on_a_covariance_are_refused(changes: dict[str, object], word: str) -> None:
    steps = [{"samples": 4.0, "rate": rate, "exponent": 0.5} for rate in (1.0, 0.7)]
    problem = PROBLEM.replace(inputs=gs.PowerLaw(0.3), steps=steps)
    theory.equivalent(problem, 500)
    with pytest.raises(gs.NotCovered, match=word):
        theory.risk(problem.replace(changes), 500)
    with pytest.raises(gs.NotCovered, match="moments"):
        theory.risk(problem)


def test_spectra_of_features_end() -> None:
    """The spectrum before the steps is that of the model without them, not of its own past."""
    given = [{"samples": 4.0, "rate": 1.0, "exponent": 0.5}] * 2
    problem = PROBLEM.replace(inputs=gs.Covariance((0.3, 1.7), (0.5, 0.5)), steps=given)
    for known in (problem.replace(steps=given[:1]), problem):
        spectrum = theory.kernel(known, d=400)
        assert spectrum.spikes
        assert spectrum.initial is not None
        assert isinstance(spectrum.initial.bulk, Law)
        assert spectrum.spikes[0].value > spectrum.initial.bulk.edge


@pytest.mark.parametrize("activation", ["tanh", gs.centered("relu")])
def test_weights_close_to_the_identity(activation: object) -> None:
    """What the pull of the initial output does through M is left out: 2e-6 for ReLU."""
    problem = PROBLEM.replace(activation=activation)
    near = problem.replace(inputs=gs.Covariance((1.0, 1.0 + 1e-13), (0.5, 0.5)))
    # Where inputs have a covariance the direction of the step has no initial output in it, and
    # leans do not vary with the norms.
    model = theory.equivalent(problem, 500)
    assert model.bounded is not None
    cut = replace(model.bounded(0), norms=None, first_direction=None)
    plain = replace(model, first_direction=None, bounded=lambda more: cut).weights()
    ours = theory.weights(near, d=500)
    close = 1e-8 if activation == "tanh" else 1e-5
    assert isinstance(ours.bulk, Law)
    assert isinstance(plain.bulk, Law)
    assert ours.bulk.support[0] == pytest.approx(plain.bulk.support[0], rel=1e-8)
    assert ours.spikes[0].value == pytest.approx(plain.spikes[0].value, rel=close)
    assert ours.spikes[0].overlaps == pytest.approx(plain.spikes[0].overlaps, rel=close)


def test_a_natural_step_has_the_overlap_of_isotropic_inputs() -> None:
    """Σ^{-1} on the gradient whitens it: Σ^{1/2}b is that of isotropic inputs."""
    law = gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.2, 0.8))
    natural = PROBLEM.replace({"inputs": law, "steps.0.precondition": 1.0})
    ours, plain = theory.equivalent(natural), theory.equivalent(PROBLEM)
    assert ours.overlap == pytest.approx(plain.overlap, rel=1e-11)
    assert ours.spikes == pytest.approx(plain.spikes, rel=1e-11)


@pytest.mark.parametrize(("exponent", "count"), [(0.3, 0), (0.5, 1), (0.9, 2)])
def test_heavy_eigenvalues_are_explicit(exponent: float, count: int) -> None:
    problem = PROBLEM.replace(inputs=gs.PowerLaw(exponent))
    model = build.model(problem, None, 1000)
    assert model.rank == 1 + count
    assert build.model(problem, None, 1000, explicit=False).rank == 1


def test_signs_of_a_second_layer_are_nothing_to_an_odd_activation() -> None:
    """A neuron with −A and −w is one with A and w: networks of A = ±1 and of A = 1 are the same."""
    problem = PROBLEM.replace(inputs=gs.PowerLaw(0.8))
    signs = problem.replace({"init.second_layer": gs.Vocabulary([-1.0, 1.0], [0.5, 0.5])})
    assert build.model(signs, None, 1000).rank == 3
    found, wanted = (theory.risk(one, d=1000) for one in (signs, problem))
    assert found.test == pytest.approx(wanted.test, rel=1e-9)
    assert found.train == pytest.approx(wanted.train, rel=1e-9)


@pytest.mark.parametrize("exponent", [0.0, 0.5])
def test_explicit_directions_change_nothing_for_linear_neurons(exponent: float) -> None:
    """Types of the weights along an eigenvector are then the bulk in other words."""
    step = {"steps.0.exponent": exponent, "steps.0.rate": 3.0 if exponent == 0 else 1.0}
    problem = PROBLEM.replace({"inputs": gs.PowerLaw(0.5), "activation": "x", **step})
    plain = build.model(problem, None, 1000, explicit=False).risk(problem.readout)
    found = build.model(problem, None, 1000).risk(problem.readout)
    assert found.test == pytest.approx(plain.test, rel=3e-3)
    assert found.train == pytest.approx(plain.train, rel=3e-3)


def test_a_heavy_eigenvalue_bends_the_gradient() -> None:
    """Networks (tests/agreement): 0.2655(5); without explicit directions theory is 4.6 % above."""
    problem = PROBLEM.replace(inputs=gs.PowerLaw(0.7))
    found, plain = (
        build.model(problem, None, 1000, explicit=explicit).risk(problem.readout).test
        for explicit in (True, False)
    )
    assert found == pytest.approx(0.2655, rel=1e-2)
    assert plain > 1.04 * found


def test_heavy_directions_are_stated_with_a_size() -> None:
    problem = PROBLEM.replace(inputs=gs.PowerLaw(0.7))
    (stated,) = heavy_directions(problem, 1000)
    assert "here 4.2%" in stated
    assert "within 1.4%" in stated
    assert not heavy_directions(problem.replace(inputs=gs.PowerLaw(0.5)), 1000)
    assert not heavy_directions(problem.replace(inputs=gs.SpikedCovariance(3.0, 0.5)), 1000)
    # Most of a teacher along it makes all neurons lean there alike: no more than 1 % is left.
    along = PROBLEM.replace(inputs=gs.SpikedCovariance(30.0, 0.5), activation=gs.centered("relu"))
    assert not heavy_directions(along, 1000)
    periods = along.replace({"activation": "sin", "steps.0.rate": 0.2})
    assert "within 12.0%" in heavy_directions(periods, 1000)[0]
    assert "within 20.0%" in heavy_directions(along.replace(activation="sin"), 1000)[0]
    assert "within 60.0%" in heavy_directions(along.replace(activation="he3(x) + 0.3*x"), 1000)[0]
    beside = along.replace(inputs=gs.SpikedCovariance(30.0, 0.01))
    answer = theory.risk(beside, 1000)
    assert not answer.exact
    assert answer.violated == heavy_directions(beside, 1000)
    twice = problem.replace(inputs=gs.PowerLaw(0.5), steps=[*problem.steps] * 2)
    assert "overshoots" in heavy_directions(twice, 1000)[0]
    assert "compared up to 11%" in heavy_directions(problem, 50)[0]


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_the_bulk_of_a_preconditioned_step_is_that_of_matrices(power: float) -> None:
    """Traces of ΣΩ and ΣΩΣΩ' for 𝐒, M + Mᵀ and MMᵀ, against a draw of the samples."""
    d, law = 800, gs.Covariance((0.3, 1.7), (0.5, 0.5))
    teacher, sigma = "x + 0.5*(x**2 - 1)", gs.centered("softplus")
    changes = {"inputs": law, "activation": sigma, "teacher": teacher}
    problem = PROBLEM.replace({**changes, "steps.0.precondition": power})
    bulk = several_steps(problem, d, simplify=("equal norms",)).bulk
    rng = np.random.default_rng(5)
    values = np.repeat([0.3, 1.7], d // 2)
    x = rng.standard_normal((4 * d, d)) * np.sqrt(values)
    u = x @ np.full(d, 1.0 / np.sqrt(values.sum()))
    r = u + 0.5 * (u * u - 1) + np.sqrt(0.05) * rng.standard_normal(4 * d)
    r = (r - r.mean()) / r.std() * np.sqrt(1.55)
    left = x * values**-power
    m, noise = left.T @ (r[:, None] * x) / len(r), left.T @ ((r * r)[:, None] * left) / len(r)
    order = (noise, m + m.T, m @ m.T) if power else (m + m.T, noise, m @ m.T)
    found = [one * values[:, None] for one in order]
    assert bulk.means is not None
    seen = np.array([np.trace(one) / d for one in found])
    assert np.abs(seen - bulk.means[-3:]).max() < 0.03
    wanted = np.array([[(a * b.T).sum() / d for a in found[:2]] for b in found[:2]])
    assert np.abs(wanted / bulk.gram[-3:-1, -3:-1] - 1).max() < 0.15


def test_a_heavy_direction_of_the_teacher_is_not_explicit() -> None:
    """200 networks of d = 1000 have 0.36(23) % more; with an explicit direction it was 4 %."""
    law = gs.Covariance((1.0, 13.11), (0.999, 0.001), teacher=(0.2, 0.8))
    problem = PROBLEM.replace(inputs=law, activation="erf")
    assert leading(problem, 1000) is None
    other = gs.Covariance((1.0, 13.11), (0.999, 0.001), teacher=(0.99, 0.01))
    assert leading(problem.replace(inputs=other), 1000) is not None


def test_norms_along_a_spike_are_felt_beside_its_coordinate() -> None:
    """200 networks of d = 1000 have 0.08684(10); theory was 2.3 % below that."""
    law = gs.Covariance((1.0, 31.11), (0.999, 0.001), teacher=(0.34, 0.66))
    problem = gs.Problem(
        activation="tanh",
        teacher="clip(x, -1, 1)",
        noise_variance=0.05,
        width=0.73,
        inputs=law,
        steps=[gs.Step(samples=1.96, rate=1.07, exponent=0.5)],
        readout=gs.Ridge(samples=1.52, penalty=0.3562),
        init=gs.Init(second_layer="constant"),
    )
    model = theory.equivalent(problem, 1000)
    assert model.norms is not None
    assert model.risk().test == pytest.approx(0.08684, rel=6e-3)
    # Half of the initial spread is that of the spike, which is not felt where k = 0.
    spread, growth, own = model.norms.spread, model.norms.growth, model.norms.own
    assert spread[3, 0] == pytest.approx(spread[2, 0], rel=0.05)
    assert np.abs(growth[3] - own[3, :, 0]).max() < 0.05
    assert not own[2].any()


def test_what_an_even_part_makes_of_a_heavy_direction_is_felt() -> None:
    """Without it test errors of such networks at d = 1000 were met to −1.8(3) %, now −0.2(3)."""
    sigma = gs.centered("gelu")
    pm = gs.Vocabulary((-1.0, 1.0), (0.5, 0.5))
    problem = PROBLEM.replace(
        {"inputs": gs.PowerLaw(0.8), "activation": sigma, "init.second_layer": pm}
    )
    model = build.model(problem, None, 1000)
    assert model.weak is not None
    assert model.weak.shape[1] == 1
    sizes = np.abs(model.weak)  # in proportion to the neuron's weight along the direction
    assert sizes.max() > 1e-2
    assert sizes.min() < 1e-9
    odd = build.model(problem.replace(activation="tanh"), None, 1000)
    assert odd.weak_count == 0


def test_the_limit_of_a_spike_is_that_of_finite_sizes() -> None:
    """A direction without a share keeps its variance in the limit, before steps and after."""
    spiked = PROBLEM.replace(inputs=gs.SpikedCovariance(2.0, 0.3))
    for problem in (spiked.untrained(), spiked, spiked.replace(steps=[*PROBLEM.steps] * 2)):
        limit, large = (several_steps(problem, d).risk(PROBLEM.readout) for d in (None, 20_000))
        assert limit.test == pytest.approx(large.test, rel=3e-3)


def test_the_learned_function_beside_explicit_directions_has_the_test_error() -> None:
    """R = E_u[(f*(u) − m(u))² + b(u)²]; two explicit directions make three axes given u."""
    law = PROBLEM.replace(inputs=gs.PowerLaw(0.7))
    x, weights = np.polynomial.hermite_e.hermegauss(24)
    found = theory.learned_function(law, 400, along="teacher", x=x)
    assert found.target is not None
    error = (weights / weights.sum()) @ ((found.target - found.mean) ** 2 + found.band**2)
    assert float(error) == pytest.approx(theory.risk(law, 400).test, rel=1e-3)


@pytest.mark.parametrize("law", ["constant", "gaussian"])
def test_power_laws_have_answers_up_to_where_the_limit_ends(law: str) -> None:
    """After one step it ends at 1/3; with d the answers rise towards it, ever more slowly."""
    problem = PROBLEM.replace({"inputs": gs.PowerLaw(0.3), "init.second_layer": law})
    limit, large = theory.risk(problem).test, theory.risk(problem, 10**8).test
    assert theory.risk(problem, 10**5).test < large < limit < 1.05 * large
    still = problem.replace({"inputs": gs.PowerLaw(0.7), "steps": []})
    assert theory.risk(still).test == pytest.approx(theory.risk(still, 10**8).test, rel=6e-3)


def test_before_the_steps_the_second_layer_is_nothing_to_heavy_directions() -> None:
    """Two of them are explicit there; neurons differ in their weights along these alone."""
    law = gs.Covariance((0.75, 5.0, 9.0), (58 / 60, 1 / 60, 1 / 60))
    still = PROBLEM.replace({"inputs": law, "steps": []})
    explicit = leading(still.realised(60), 60)
    assert explicit is not None
    assert explicit.sum() == 2
    tests = [
        theory.risk(still.replace({"init.second_layer": name}), 60).test
        for name in ("constant", "gaussian")
    ]
    assert tests[0] == pytest.approx(tests[1], rel=1e-12)


def test_several_preconditioned_steps_of_an_even_part_are_stated_with_a_size() -> None:
    """And networks are within it: the rows of docs §10 are at d = 500 to 800."""
    law = gs.Covariance((0.2, 1.8), (0.5, 0.5))
    steps = [gs.Step(samples=3.0, rate=r, exponent=0.5, precondition=1.0) for r in (1.3, 0.5)]
    problem = PROBLEM.replace({"inputs": law, "steps": steps, "activation": gs.centered("relu")})
    found, count = theory.risk(problem, 300), 12
    assert not found.exact
    assert any("within 4 %" in text for text in found.violated)
    drawn = np.array([simulation.risk(problem, 300, seed).test for seed in range(count)])
    error = 3 * float(drawn.std(ddof=1)) / math.sqrt(count)
    assert abs(found.test - drawn.mean()) < 0.04 * drawn.mean() + error
    with pytest.raises(gs.NotCovered, match="initial output"):
        theory.risk(problem.replace({"activation": "relu"}), 300)
    isotropic = problem.replace(inputs=gs.Isotropic())
    assert not any("preconditioned" in text for text in theory.risk(isotropic, 300).violated)


def test_an_outlier_at_a_pole_of_the_resolvent_is_found() -> None:
    """The teacher, where neurons do not lean: the root is a pole, and was hit to the last bit."""
    step = gs.Step(samples=2.0, rate=1.0, exponent=0.5)
    problem = gs.Problem(
        activation="he3",
        teacher="square",
        noise_variance=0.1,
        width=1.5,
        steps=[step],
        inputs=gs.SpikedCovariance(5.0, 0.5),
    )
    near = problem.replace({"noise_variance": 0.1001})
    found, beside = (theory.gradient(p, 300).residual_operator_norm for p in (problem, near))
    assert found == pytest.approx(beside, rel=1e-3)
