"""Ridge risk at small steps: open values, an independent route, limits, grids (theory §4)."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize

import giantsteps as gs
from giantsteps import theory
from giantsteps.functions import SingleIndex
from giantsteps.gaussian import moments
from giantsteps.laws import MarchenkoPastur
from giantsteps.theory.steps import small
from giantsteps.theory.steps.effective_penalty import GaussianFeatures

OPEN = gs.Problem(
    activation="tanh",
    teacher="tanh",
    noise_variance=0.1,
    width=1.25,
    steps=[gs.Step(samples=3, rate=3)],
    readout=gs.Ridge(samples=3, penalty=0.05),
)


def test_open_values() -> None:
    answer = theory.risk(OPEN)
    assert answer.initial is not None
    assert answer.initial.test == pytest.approx(0.158417, abs=1e-6)
    assert answer.test == pytest.approx(0.121787, abs=1e-6)
    assert answer.initial.train == pytest.approx(0.133609, abs=1e-6)
    assert answer.train == pytest.approx(0.114670, abs=1e-6)
    assert answer.test_noisy == answer.test + 0.1
    assert answer.source == "limit"
    assert answer.exact
    assert answer.citation.startswith("@")


def independent_risk(problem: gs.Problem) -> tuple[float, float]:
    """The same limit without closed forms: κ by bisection, traces by quadrature over the law of
    W Wᵀ, the spike by a 2 × 2 resolvent, P' by a numerical derivative."""
    assert isinstance(problem.teacher, SingleIndex)
    assert problem.readout is not None
    sigma, star = moments(problem.activation), moments(problem.teacher.link)
    mu1, mu2 = sigma.linear**2, sigma.residual_variance
    width, alpha = problem.width, problem.readout.samples
    gamma, penalty = alpha / width, problem.readout.penalty
    law = MarchenkoPastur(width)
    (lower, upper), atom = law.support[0], dict(law.atoms).get(0.0, 0.0)

    def trace(s: float) -> float:
        value = integrate.quad(
            lambda t: (
                law.density(lower + (upper - lower) * np.sin(t) ** 2)
                * (upper - lower)
                * np.sin(2 * t)
                / (lower + (upper - lower) * np.sin(t) ** 2 + s)
            ),
            0,
            np.pi / 2,
            epsabs=1e-13,
            epsrel=1e-13,
            limit=400,
        )[0]
        return value + atom / s

    def neurons(s: float) -> float:  # the other Gram matrix has |d − N| more (or fewer) zeros
        return (trace(s) - (1 - width) / s) / width

    def balance(kappa: float) -> float:
        s = (mu2 + kappa) / mu1
        return kappa * (1 - (1 - kappa * neurons(s) / mu1) / gamma) - penalty

    kappa = optimize.brentq(balance, penalty, penalty + 5 / gamma, xtol=1e-15, rtol=1e-14)
    labels = star.second_moment + problem.noise_variance
    theta, rho2 = 0.0, 0.0
    if problem.steps:
        step = problem.steps[0]
        norm = star.linear**2 + labels / step.samples
        rho2 = star.linear**2 / norm
        theta = step.rate * sigma.linear * np.sqrt(norm)

    def quadratic_form(s: float) -> float:
        """⟨β*, (W₁W₁ᵀ + s)⁻¹ β*⟩ by eliminating the rank-one step from the linearisation
        [[√s, i W₁], [i W₁ᵀ, √s]], whose diagonal blocks have traces √s g₁ and √s g₂."""
        root = np.sqrt(s)
        resolvent = np.diag([root * trace(s), root * neurons(s)]).astype(complex)
        update = 1j * theta * np.array([[0, 1], [1, 0]])
        deformed = np.linalg.inv(np.linalg.inv(resolvent) + update)[0, 0].real / root
        return rho2 * deformed + (1 - rho2) * trace(s)

    def explained(k: float) -> float:
        s = (mu2 + k) / mu1
        return star.linear**2 * (1 - s * quadratic_form(s))

    h = 1e-3 * (mu2 + kappa)
    slope = (
        8 * (explained(kappa + h) - explained(kappa - h))
        - (explained(kappa + 2 * h) - explained(kappa - 2 * h))
    ) / (12 * h)
    q1 = neurons((mu2 + kappa) / mu1) / mu1
    q1_slope = (
        8 * (neurons((mu2 + kappa + h) / mu1) - neurons((mu2 + kappa - h) / mu1))
        - (neurons((mu2 + kappa + 2 * h) / mu1) - neurons((mu2 + kappa - 2 * h) / mu1))
    ) / (12 * h * mu1)
    df2 = (1 - 2 * kappa * q1 - kappa**2 * q1_slope) / gamma
    noisy = (labels - explained(kappa) + kappa * slope) / (1 - df2)
    return noisy - problem.noise_variance, (penalty / kappa) ** 2 * noisy


@pytest.mark.parametrize(
    ("activation", "teacher", "width", "step_samples", "rate", "samples", "penalty", "noise"),
    [
        ("tanh", "sin", 0.4, 2.0, 3.0, 1.7, 0.2, 0.0),
        ("erf", "sign", 3.0, 0.5, 1.0, 0.6, 0.01, 0.3),
        (gs.centered("relu"), gs.centered("relu"), 1.0, 4.0, 5.0, 3.0, 0.5, 0.1),
        (gs.centered("softplus"), "x + 0.5*he2(x)", 2.0, 1.0, 0.3, 6.0, 1e-3, 0.05),
    ],
)
def test_independent_route(
    activation: gs.Function | str,
    teacher: Any,
    width: float,
    step_samples: float,
    rate: float,
    samples: float,
    penalty: float,
    noise: float,
) -> None:
    problem = gs.Problem(
        activation=activation,
        teacher=teacher,
        width=width,
        noise_variance=noise,
        steps=[gs.Step(samples=step_samples, rate=rate)],
        readout=gs.Ridge(samples=samples, penalty=penalty),
    )
    answer = theory.risk(problem)
    test, train = independent_risk(problem)
    assert answer.test == pytest.approx(test, rel=1e-8)
    assert answer.train == pytest.approx(train, rel=1e-8)
    test, train = independent_risk(problem.untrained())
    assert answer.initial is not None
    assert answer.initial.test == pytest.approx(test, rel=1e-8)
    assert answer.initial.train == pytest.approx(train, rel=1e-8)


def test_step_helps_and_only_with_a_linear_part() -> None:
    rates = gs.Grid(OPEN, {"steps.0.rate": [0, 0.5, 1, 2, 4, 8, 16]})
    gain = np.asarray(theory.risk(rates).gain)
    assert gain[0] == 0
    assert np.all(np.diff(gain) > 0)
    blind = OPEN.replace({"teacher": "he3"})
    assert theory.risk(blind).gain == pytest.approx(0, abs=1e-14)
    even = OPEN.replace({"activation": gs.centered("abs")})
    assert theory.risk(even).gain == pytest.approx(0, abs=1e-14)


def test_an_even_activation_sees_no_linear_teacher() -> None:
    answer = theory.risk(OPEN.replace({"activation": gs.centered("abs"), "teacher": "identity"}))
    star = moments(gs.centered("abs"))
    kappa_free = star.residual_variance  # Σ = μ₂² I: κ solves a quadratic
    gamma, penalty = 3 / 1.25, 0.05
    b = kappa_free * (1 - 1 / gamma) - penalty
    kappa = (-b + np.sqrt(b**2 + 4 * penalty * kappa_free)) / 2
    df2 = (kappa_free / (kappa_free + kappa)) ** 2 / gamma
    assert answer.test_noisy == pytest.approx(1.1 / (1 - df2), rel=1e-10)


def test_by_degree() -> None:
    problem = OPEN.replace({"teacher": "x + 0.5*he2(x) + 0.2*he3(x)"})
    answer = theory.risk(problem)
    assert answer.by_degree is not None
    assert answer.initial is not None
    assert answer.initial.by_degree is not None
    assert answer.by_degree[2:] == pytest.approx([0.5, 0.24, 0], abs=1e-12)
    assert 0 < answer.by_degree[1] < answer.initial.by_degree[1] < 1
    assert answer.by_degree[0] == pytest.approx(0, abs=1e-20)


@pytest.mark.parametrize("samples", [0.5, 3.0])
def test_without_penalty(samples: float) -> None:
    ridgeless = theory.risk(OPEN.replace({"readout": {"samples": samples, "penalty": 0.0}}))
    small = theory.risk(OPEN.replace({"readout": {"samples": samples, "penalty": 1e-9}}))
    assert ridgeless.test == pytest.approx(small.test, rel=1e-6)
    assert ridgeless.train == pytest.approx(small.train, abs=1e-8)


def test_a_cell_never_depends_on_its_batch() -> None:
    grid = gs.Grid(
        OPEN, {"readout.samples": np.linspace(0.2, 3, 7), "readout.penalty": [0, 1e-3, 1]}
    )
    together = theory.risk(grid)
    assert together.initial is not None
    for index in np.ndindex(grid.shape):
        alone = theory.risk(grid[index])
        assert alone.initial is not None
        assert alone.test == np.asarray(together.test)[index]
        assert alone.train == np.asarray(together.train)[index]
        assert alone.initial.test == np.asarray(together.initial.test)[index]


@pytest.mark.parametrize(
    ("field", "factor"),
    [(field.name, 1.05) for field in dataclasses.fields(GaussianFeatures)],
)
def test_every_scalar_matters(field: str, factor: float) -> None:
    """A 5 % error in any one scalar moves the open value far beyond its printed digits."""
    features = GaussianFeatures.of([OPEN])
    if "mean" in field:  # a part of the teacher that norms may learn
        features = dataclasses.replace(
            features, teacher_mean=np.array([0.2]), mean_strength=np.array([0.3])
        )
    changed = dataclasses.replace(features, **{field: factor * getattr(features, field)})
    exact, wrong = small.ridge_errors(features), small.ridge_errors(changed)
    assert abs(wrong.test[0] - exact.test[0]) > 1e-4
