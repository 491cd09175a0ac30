"""Limits of the errors on the staircase: an independent route, other limits, mutations."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Risk
from giantsteps.functions import SingleIndex
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.laws import MarchenkoPastur
from giantsteps.theory import NeuronCovariance, SpikedFeatures
from giantsteps.theory.steps.effective_penalty import (
    GaussianFeatures,
    effective_penalty,
    freedom,
    shrinkage,
)
from giantsteps.theory.steps.first import first_step, link_of
from giantsteps.theory.steps.small import ridge_errors
from giantsteps.theory.steps.staircase import risk as staircase

ODD = "x + 0.2*(x**3 - 3*x)"
EVEN = "x + 0.5*(x**2 - 1)"
MIXED = "x + 0.5*(x**2 - 1) + 0.2*(x**3 - 3*x)"
FOURTH = "x + 0.3*(x**2 - 1) + 0.1*(x**3 - 3*x) + 0.1*(x**4 - 6*x**2 + 3)"
RAW = "x + 0.5*x**2"
CUBIC = "x + 0.7*(x**2 - 1) + 0.3*(x**3 - 3*x)"
QUARTIC = "0.5*x - 0.4*(x**2 - 1) + 0.2*(x**3 - 3*x) + 0.1*(x**4 - 6*x**2 + 3)"
SIGNS = gs.Vocabulary([-1, 1], [0.5, 0.5])
LEVELS = {1: 0.1, 2: 0.3, 3: 0.35, 4: 0.39}


def problem(
    activation: gs.Function | str,
    level: int,
    teacher: Any = CUBIC,
    weights: str = "sphere",
    second_layer: gs.Vocabulary | str = "gaussian",
) -> gs.Problem:
    return gs.Problem(
        activation=activation,
        teacher=teacher,
        noise_variance=0.1,
        width=1.5,
        steps=[gs.Step(samples=3, rate=1, exponent=LEVELS[level])],
        readout=gs.Ridge(samples=2, penalty=0.1),
        init=gs.Init(weights=weights, second_layer=second_layer),
    )


# -- an independent route ------------------------------------------------------------------------


def independent(
    case: gs.Problem, degrees: tuple[int, ...], *, lengthening: bool = True
) -> tuple[float, float, float]:
    """The limit without Hermite algebra and closed forms: κ by bisection, traces by quadrature over
    the law of W Wᵀ, polynomials and norms on a grid of (z, z'), derivatives by differences."""
    assert isinstance(case.teacher, SingleIndex)
    assert case.readout is not None
    sigma, link = moments(case.activation), case.teacher.link
    mu1, mu2, width = sigma.linear**2, sigma.residual_variance, case.width
    gamma, penalty = case.readout.samples / width, case.readout.penalty
    law = MarchenkoPastur(width)
    (low, high), atom = law.support[0], dict(law.atoms).get(0.0, 0.0)

    def trace(kappa: float) -> tuple[float, float]:
        """N⁻¹ tr (μ₁²WᵀW + μ₂² + κ)⁻¹ and μ₁⁻² s g₁(s) from the density of W Wᵀ's eigenvalues."""
        s = (mu2 + kappa) / mu1

        def f(angle: float) -> float:
            x = (low + high) / 2 - (high - low) / 2 * np.cos(angle)
            return law.density(x) * (high - low) / 2 * np.sin(angle) / (x + s)

        inputs = integrate.quad(f, 0, np.pi, epsabs=1e-13, epsrel=1e-12)[0] + atom / s
        return (inputs - (1 - width) / s) / width / mu1, s * inputs

    def excess(kappa: float) -> float:
        return kappa * (1 - (1 - kappa * trace(kappa)[0]) / gamma) - penalty

    kappa = optimize.brentq(excess, penalty, penalty + (mu1 + mu2) / gamma, xtol=1e-15, rtol=1e-14)

    x, w = np.polynomial.hermite_e.hermegauss(40)
    w = w / w.sum()
    z, other, weight = x[:, None], x[None, :], w[:, None] * w[None, :]
    step = first_step(case)
    rho = moments(link).linear / math.sqrt(step.norm_squared)
    labels = link(rho * z + math.sqrt(1 - rho**2) * other)
    kappa0 = step.label_moment * sigma.derivative_variance / case.steps[0].samples
    kappa0 = kappa0 / (mu1 * step.norm_squared) if lengthening else 0.0
    spread = math.sqrt(kappa0)
    columns = [
        ((z[..., None] + spread * x) ** k * w).sum(-1) * np.ones_like(other) for k in degrees
    ]

    def parts(f: np.ndarray) -> tuple[float, float, float, np.ndarray]:
        """Constant, the two linear coefficients, and the rest as a function."""
        constant = (f * weight).sum()
        first, second = (f * z * weight).sum(), (f * other * weight).sum()
        return constant, first, second, f - constant - first * z - second * other

    def objective(kappa: float) -> float:
        q1, price = trace(kappa)
        constant = 2 * sigma.quadratic**2 * width * q1 if case.init.weights == "gaussian" else 0.0

        def scaled(f: np.ndarray) -> np.ndarray:
            mean, first, second, rest = parts(f)
            return np.concatenate(
                [
                    [mean / math.sqrt(1 + constant)],
                    math.sqrt(price) * np.array([first, second]),
                    (rest * np.sqrt(weight)).ravel(),
                ]
            )

        design = np.stack([scaled(column) for column in columns], axis=1)
        target = scaled(labels)
        fit = np.linalg.lstsq(design, target, rcond=None)[0]
        return ((target - design @ fit) ** 2).sum() + case.noise_variance

    h = 1e-4 * kappa
    slope = (objective(kappa + h) - objective(kappa - h)) / (2 * h)
    df1 = (1 - kappa * trace(kappa)[0]) / gamma
    df2_complement = (excess(kappa + h) - excess(kappa - h)) / (2 * h)
    noisy = (objective(kappa) - kappa * slope) / df2_complement
    return noisy - case.noise_variance, (1 - df1) ** 2 * noisy, (1 - df1) * objective(kappa)


@pytest.mark.parametrize("lengthening", [True, False])
@pytest.mark.parametrize(
    ("case", "degrees"),
    [
        (problem(MIXED, 1), (1,)),
        (problem(EVEN, 2), (1, 2)),
        (problem(EVEN, 2, weights="gaussian"), (1, 2)),
        (problem(ODD, 2), (1,)),
        (problem(ODD, 3, teacher=QUARTIC), (1, 3)),
        (problem(MIXED, 3, teacher=QUARTIC), (1, 2, 3)),
        (problem(FOURTH, 4, teacher=QUARTIC, weights="gaussian"), (1, 2, 3, 4)),
        (problem(RAW, 2), (0, 1, 2)),
        (problem(RAW, 2, second_layer="constant"), (0,)),
        (problem(MIXED, 3, second_layer=SIGNS), (1, 2)),
        (problem(gs.centered("relu"), 4, teacher=QUARTIC), (1, 2, 4)),
        (
            problem(EVEN, 2).replace(
                {"width": 0.4, "readout.penalty": 1e-3, "noise_variance": 0.5}
            ),
            (1, 2),
        ),
    ],
)
def test_independent_route(case: gs.Problem, degrees: tuple[int, ...], lengthening: bool) -> None:
    test, train, loss = independent(case, degrees, lengthening=lengthening)
    answer = theory.staircase_risk(case, lengthening=lengthening)
    assert answer.test == pytest.approx(test, rel=1e-6)
    assert answer.train == pytest.approx(train, rel=1e-6)
    assert theory.training_loss(case, lengthening=lengthening).loss == pytest.approx(loss, rel=1e-9)
    if lengthening:
        assert theory.risk(case).test == answer.test


# -- other limits --------------------------------------------------------------------------------


def two_scales(case: gs.Problem, rate: float, neurons: float) -> Risk:
    """Theory §5 with η̃ and p independent of each other: every limit of theory §6 is inside it.

    Gaussian weights have neurons of length 1 ± (2/d)^½: two types for each value of A. Beyond the
    values of p below the model refuses: its functions of the spike differ by less than rounding.
    """
    assert isinstance(case.teacher, SingleIndex)
    sigma, step = moments(case.activation), first_step(case)
    law = case.init.second_layer
    values, probabilities = law.types()
    shorter = 1 - 2 * sigma.quadratic * rate * values * sigma.mean * law.mean
    growth = step.label_moment * sigma.derivative_variance / case.steps[0].samples
    lengths = shorter**2 + (rate * values) ** 2 * growth
    spikes = rate * values * sigma.linear * math.sqrt(step.norm_squared)
    if case.init.weights == "gaussian":
        unequal = math.sqrt(2 * case.width / neurons)
        lengths = np.concatenate([lengths * (1 - unequal), lengths * (1 + unequal)])
        spikes, probabilities = np.tile(spikes, 2), np.tile(probabilities, 2) / 2
    model = SpikedFeatures(
        activation=case.activation,
        teacher=case.teacher,
        noise_variance=case.noise_variance,
        width=case.width,
        neurons=neurons,
        spikes=spikes[:, None],
        overlap=moments(case.teacher.link).linear / math.sqrt(step.norm_squared),
        probabilities=probabilities,
        bulk=NeuronCovariance.isotropic(lengths, 1),
    )
    return model.risk(case.readout)


TWO_SCALES = [
    # (problem, η̃, p, relative accuracy): what is left is O(η̃²) or O(η̃ E A)
    (problem(EVEN, 2), 1e-3, 1e22, 1e-5),
    (problem(EVEN, 2, weights="gaussian"), 1e-2, 1e14, 1e-3),
    (problem(MIXED, 3), 1e-3, 1e22, 2e-5),
    (problem(ODD, 3, teacher=QUARTIC), 1e-3, 1e22, 2e-5),
    (problem(RAW, 2), 3e-3, 1e18, 9e-5),
    (problem(RAW, 2, second_layer="constant"), 1e-3, 1e22, 4e-3),
    (problem(MIXED, 3, second_layer="constant"), 1e-3, 1e22, 5e-3),
    (problem(MIXED, 3, second_layer=SIGNS), 1e-3, 1e26, 2e-5),
    (problem(RAW, 2, second_layer=SIGNS), 1e-3, 1e20, 2e-5),
    (
        problem("0.4 + " + MIXED, 3, second_layer=gs.Vocabulary([-1, 0.5, 1], [0.2, 0.3, 0.5])),
        3e-3,
        1e18,
        6e-3,
    ),
    (problem("x + 0.1*(x**4 - 6*x**2 + 3)", 4, second_layer=SIGNS), 1e-2, 1e18, 1e-3),
]


@pytest.mark.parametrize(("case", "rate", "neurons", "accuracy"), TWO_SCALES)
def test_limit_inside_the_equivalent_model(
    case: gs.Problem, rate: float, neurons: float, accuracy: float
) -> None:
    answer, limit = two_scales(case, rate, neurons), theory.risk(case)
    assert limit.test == pytest.approx(answer.test, rel=accuracy)
    assert limit.train == pytest.approx(answer.train, rel=accuracy)
    assert limit.by_degree == pytest.approx(answer.by_degree, rel=5 * accuracy, abs=accuracy)


@pytest.mark.parametrize("broken", ["lengthening_of", "prices"])
def test_mutations_are_seen(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """κ₀, and the price of a constant, each 5 % off: the equivalent model tells."""
    case, rate, neurons, _ = TWO_SCALES[1]
    reference = np.asarray(two_scales(case, rate, neurons).by_degree)[0]
    right = getattr(staircase, broken)
    assert np.asarray(theory.risk(case).by_degree)[0] == pytest.approx(reference, rel=2e-3)
    if broken == "lengthening_of":
        monkeypatch.setattr(staircase, broken, lambda p: 1.05 * right(p))
    else:

        def wrong(*args: Any) -> Any:
            price, slope = right(*args)
            return price * (1.05, 1.0), slope

        monkeypatch.setattr(staircase, broken, wrong)
    assert np.asarray(theory.risk(case).by_degree)[0] != pytest.approx(reference, rel=6e-3)


@pytest.mark.parametrize("teacher", [CUBIC, QUARTIC, "sin"])
@pytest.mark.parametrize("activation", ["tanh", gs.centered("relu"), EVEN])
def test_first_level_is_an_infinite_small_step(activation: gs.Function | str, teacher: Any) -> None:
    case = problem(activation, 1, teacher=teacher)
    answer = theory.risk(case)
    small = ridge_errors(GaussianFeatures.of([case]))
    assert answer.test == pytest.approx(small.test[0], rel=1e-10)
    assert answer.train == pytest.approx(small.train[0], rel=1e-10)
    huge = theory.risk(case.replace({"steps.0.exponent": 0.0, "steps.0.rate": 1e7}))
    assert answer.test == pytest.approx(huge.test, rel=1e-10)
    assert answer.by_degree == pytest.approx(huge.by_degree, rel=1e-10, abs=1e-12)


def test_second_level_in_closed_form() -> None:
    """E y² drops by 4c*₂²ρ⁴/(3 + 2κ₀ + κ₀²), by 4c*₂²ρ⁴/3 with κ₀ = 0 (moniri2023)."""
    one, two = problem(EVEN, 1), problem(EVEN, 2)
    answer = theory.staircase(two)
    kappa0, rho2, c2 = answer.lengthening, answer.alignment, 0.7
    f = GaussianFeatures.of([two])
    kappa, _, _ = effective_penalty(f)
    _, df2 = freedom(f, kappa)
    for k0, with_it in ((kappa0, True), (0.0, False)):
        drop = 4 * c2**2 * rho2**2 / (3 + 2 * k0 + k0**2) / (1 - df2[0])
        gain = theory.risk(one).test - theory.staircase_risk(two, lengthening=with_it).test
        assert gain == pytest.approx(drop, rel=1e-10)


def test_an_odd_activation_learns_no_even_degree() -> None:
    levels = [np.asarray(theory.risk(problem("tanh", level)).by_degree) for level in LEVELS]
    for by_degree in levels:
        assert by_degree[0] == pytest.approx(0, abs=1e-30)
        assert by_degree[2] == pytest.approx(2 * 0.7**2, rel=1e-12)
    assert levels[0][3] == levels[1][3] == pytest.approx(6 * 0.3**2, rel=1e-12)
    assert levels[2][3] == levels[3][3] < 0.8 * levels[0][3]


def test_learns_degree_by_degree() -> None:
    """With the constant a regressor, level ℓ learns all that the spike sees up to degree ℓ."""
    grid = gs.Grid(
        problem("0.2 + " + FOURTH, 1, teacher=QUARTIC),
        {"steps.0.exponent": list(LEVELS.values())},
    )
    answer = theory.risk(grid)
    assert np.all(np.diff(answer.test) < 0)
    assert np.all(np.diff(answer.train) < 0)
    assert answer.by_degree is not None
    assert answer.initial is not None
    first = grid[0]
    assert isinstance(first, gs.Problem)
    rho2 = theory.staircase(first).alignment
    for degree, coefficient in ((2, -0.4), (3, 0.2), (4, 0.1)):
        energy = math.factorial(degree) * coefficient**2
        left = np.where(np.array(list(LEVELS)) >= degree, (1 - rho2**degree) ** 2, 1.0)
        assert answer.by_degree[:, degree] == pytest.approx(energy * left, rel=1e-10)
    centered = problem(FOURTH, 1, teacher=QUARTIC).untrained()
    assert answer.initial.test == pytest.approx(theory.risk(centered).test, rel=1e-10)
    assert np.all(answer.by_degree.sum(axis=-1) < answer.test)


@pytest.mark.parametrize(("penalty", "samples"), [(0.0, 0.7), (0.0, 4.0), (1e3, 2.0)])
def test_extreme_readouts(penalty: float, samples: float) -> None:
    case = problem(EVEN, 2).replace({"readout.penalty": penalty, "readout.samples": samples})
    near = case.replace({"readout.penalty": max(penalty, 1e-9)})
    assert theory.risk(case).test == pytest.approx(theory.risk(near).test, rel=1e-5)
    assert np.isfinite(theory.risk(case).train)


@pytest.mark.parametrize("exponent", [0.47, 0.49])
def test_many_levels_approach_all_of_the_polynomials(exponent: float) -> None:
    """With ever more powers only what is orthogonal to the spike, and the bulk, are left."""
    case = problem("tanh", 1, teacher="sin").replace({"steps.0.exponent": exponent})
    rho2 = theory.staircase(case).alignment
    known = np.asarray(theory.risk(case).by_degree)[3]
    assert isinstance(case.teacher, SingleIndex)
    teacher = moments(case.teacher.link)
    assert teacher.is_odd
    c3 = math.exp(-0.5) / 6
    assert known == pytest.approx(6 * c3**2 * (1 - rho2**3) ** 2, rel=1e-9)


# -- boundaries, grids, losses -------------------------------------------------------------------


def test_a_boundary_is_refused_with_both_limits_named() -> None:
    case = problem(EVEN, 2).replace({"steps.0.exponent": 0.25})
    with pytest.raises(gs.NotCovered) as error:
        theory.risk(case)
    assert "(0, 0.25)" in str(error.value)
    assert "(0.25, 0.333333)" in str(error.value)
    assert theory.risk(case, d=200).test > 0


@pytest.mark.parametrize("change", [{"activation": "tanh"}, {"init.second_layer": "constant"}])
def test_a_boundary_without_spike_has_a_limit(change: dict[str, Any]) -> None:
    case = problem(EVEN, 2).replace({"steps.0.exponent": 0.25}).replace(change)
    around = [theory.risk(case.replace({"steps.0.exponent": e})).test for e in (0.2, 0.3)]
    assert theory.risk(case).test == around[0] == around[1]


def test_a_cell_is_what_it_is_alone() -> None:
    grid = gs.Grid(
        problem(FOURTH, 1, teacher=QUARTIC),
        {"steps.0.exponent": [0.0, 0.1, 0.3, 0.39], "readout.penalty": [0.01, 0.3]},
    )
    answer = theory.risk(grid)
    for index in np.ndindex(grid.shape):
        assert np.asarray(answer.test)[index] == theory.risk(grid[index]).test
    loss = theory.training_loss(grid)
    assert isinstance(loss.drop, np.ndarray)
    assert loss.drop.shape == grid.shape
    assert np.asarray(loss.loss)[2, 1] == theory.training_loss(grid[2, 1]).loss


@pytest.mark.parametrize("level", [1, 2, 3])
def test_training_loss_integrates_the_training_error(level: int) -> None:
    """train = L − λ dL/dλ, hence L(λ) = λ ∫ train(t)/t² dt from λ to infinity."""
    case = problem(MIXED, level, weights="gaussian")
    assert case.readout is not None
    penalty = case.readout.penalty

    def train(inverse: float) -> float:
        return float(theory.risk(case.replace({"readout.penalty": 1 / inverse})).train)

    integral = integrate.quad(train, 0, 1 / penalty, epsrel=1e-9, limit=200)[0]
    assert theory.training_loss(case).loss == pytest.approx(penalty * integral, rel=1e-7)


def drops(case: gs.Problem, lengthening: bool) -> tuple[float, float]:
    """What the first spike takes from the training loss, (λ/κ)wμ₁*²ρ², and the second besides,
    (λ/κ)4c*₂²ρ⁴/(2 + w₀(1 + κ₀)²): the closed forms of moniri2023.
    """
    f = GaussianFeatures.of([case])
    kappa, _, _ = effective_penalty(f)
    (price, _), step = staircase.prices([case], f, kappa), first_step(case)
    _, first, second = hermite_coefficients(link_of(case), 2)
    _, linear, quadratic = hermite_coefficients(case.activation, 2)
    assert linear
    shrunk = float(shrinkage(f, kappa)[0])
    # An activation with a mean has the constant as a regressor of its own.
    constant = 0.0 if abs(moments(case.activation).mean) > 1e-12 else float(price[0, 0])
    longer = 1 + (staircase.lengthening_of(case) if lengthening else 0.0)
    reach = 4 * second**2 * step.alignment**2 if abs(quadratic) > 1e-12 else 0.0
    taken = float(price[0, 1]) * first**2 * step.alignment
    return shrunk * taken, shrunk * reach / (2 + constant * longer**2)


@pytest.mark.parametrize("weights", ["sphere", "gaussian"])
@pytest.mark.parametrize("activation", [EVEN, RAW, "tanh", gs.centered("relu")])
@pytest.mark.parametrize("lengthening", [True, False])
def test_named_drops_of_the_training_loss(
    activation: gs.Function | str, weights: str, lengthening: bool
) -> None:
    case = problem(activation, 2, weights=weights)
    first, second = drops(case, lengthening)
    drop = theory.training_loss(case, lengthening=lengthening).drop
    assert drop == pytest.approx(first + second, rel=1e-12)
    assert theory.training_loss(case.replace({"steps.0.exponent": 0.1})).drop == pytest.approx(
        first, rel=1e-12
    )
    if activation == "tanh":
        assert second == 0


def test_drop_of_moniri2023() -> None:
    """Weights on the sphere, κ₀ = 0: (λ/κ) 4c*₂²ρ⁴/3."""
    case = problem(EVEN, 2)
    kappa, _, _ = effective_penalty(GaussianFeatures.of([case]))
    rho2 = theory.staircase(case).alignment
    assert case.readout is not None
    expected = case.readout.penalty / kappa[0] * 4 * 0.7**2 * rho2**2 / 3
    assert drops(case, False)[1] == pytest.approx(expected, rel=1e-10)


def test_small_steps_have_a_training_loss() -> None:
    case = problem("tanh", 1).replace({"steps.0.exponent": 0.0, "steps.0.rate": 1e7})
    expected = theory.training_loss(case.replace({"steps.0.exponent": 0.1})).loss
    assert theory.training_loss(case).loss == pytest.approx(expected, rel=1e-10)
    assert theory.training_loss(case.untrained()).drop == 0
    with pytest.raises(gs.NotCovered):
        theory.training_loss(case.replace({"steps.0.exponent": 0.5}))
