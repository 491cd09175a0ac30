"""Kink-aware quadrature against adaptive Gauss–Kronrod, closed forms and its own refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.integrate import quad_vec

from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, as_function
from giantsteps.gaussian import (
    check_function,
    expectation,
    gauss_rule,
    hermite_coefficients,
    moments,
)


def multiples(step: float) -> np.ndarray:
    return np.arange(-np.floor(14 / step), np.floor(14 / step) + 1) * step


GRADED = np.arange(50)  # towards a vertical tangent

# expression -> an independent implementation and where to split it
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "tanh(20*x)": (lambda x: np.tanh(20 * x), [0.0]),
    "sin(15*x)": (lambda x: np.sin(15 * x), multiples(0.5)),
    "sign(sin(3*x))": (lambda x: np.sign(np.sin(3 * x)), multiples(np.pi / 3)),
    "abs(x-0.5)": (lambda x: abs(x - 0.5), [0.5]),
    "relu(2*x+1)": (lambda x: max(2 * x + 1, 0.0), [-0.5]),
    "tanh(x)": (np.tanh, []),
    "erf(x)": (special.erf, []),
    "gelu(x)": (lambda x: x * special.ndtr(x), []),
    "sigmoid(3*x-1)": (lambda x: special.expit(3 * x - 1), []),
    "softplus(x)": (lambda x: np.logaddexp(0, x), []),
    "silu(x)": (lambda x: x * special.expit(x), []),
    "leaky_relu(x)": (lambda x: max(x, 0.01 * x), [0.0]),
    "cos(4*x)": (lambda x: np.cos(4 * x), []),
    "x*cos(x)": (lambda x: x * np.cos(x), []),
    "exp(-8*x**2)": (lambda x: np.exp(-8 * x**2), [0.0]),
    "x/(1+25*x**2)": (lambda x: x / (1 + 25 * x**2), [-0.2, 0.0, 0.2]),
    "sqrt(abs(x))": (lambda x: np.sqrt(abs(x)), [0.0, *(2.0**-GRADED), *(-(2.0**-GRADED))]),
    "clip(x,-1,1)": (lambda x: np.clip(x, -1, 1), [-1.0, 1.0]),
    "max(x, x**2-1)": (lambda x: max(x, x**2 - 1), [(1 - 5**0.5) / 2, (1 + 5**0.5) / 2]),
    "step(x-0.7)": (lambda x: float(x > 0.7), [0.7]),
    "sign(x**2-1)": (lambda x: np.sign(x**2 - 1), [-1.0, 1.0]),
    "x*sign(x+0.3)": (lambda x: x * np.sign(x + 0.3), [-0.3]),
    "abs(sin(2*x))": (lambda x: abs(np.sin(2 * x)), multiples(np.pi / 2)),
    "relu(x)**3": (lambda x: max(x, 0.0) ** 3, [0.0]),
    "relu(x-2)": (lambda x: max(x - 2, 0.0), [2.0]),
    "abs(abs(x)-1)": (lambda x: abs(abs(x) - 1), [-1.0, 0.0, 1.0]),
    "min(exp(x), 3)": (lambda x: min(np.exp(x), 3.0), [np.log(3.0)]),
    "exp(x)": (np.exp, []),
    "x**5 - 2*x**2": (lambda x: x**5 - 2 * x**2, []),
    "he8(x)": (lambda x: special.eval_hermitenorm(8, x), []),
    "tanh(2*x) + 0.3*x**2": (lambda x: np.tanh(2 * x) + 0.3 * x**2, []),
    "100 + sin(x)": (lambda x: 100 + np.sin(x), []),
    "1e-5*tanh(x)": (lambda x: 1e-5 * np.tanh(x), []),
}


def by_gauss_kronrod(function: Callable[[Any], Any], points: Any, degree: int = 6) -> np.ndarray:
    """E f h_k for k = 0..degree and E f²."""

    def integrand(x: float) -> np.ndarray:
        value = function(x)
        basis = [special.eval_hermitenorm(k, x) for k in range(degree + 1)]
        normalised = np.array(basis) / np.sqrt(special.factorial(np.arange(degree + 1)))
        return np.append(value * normalised, value**2) * np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)

    points = [point for point in points if abs(point) < 14]
    size = max(abs(function(x)) for x in (-1.0, 0.1, 1.3, 2.5))
    tolerances = {"epsabs": 1e-15 * size * min(size, 1.0), "epsrel": 1e-14}
    return quad_vec(integrand, -14.0, 14.0, points=points, limit=20000, **tolerances)[0]


@pytest.mark.parametrize("text", FUNCTIONS)
def test_moments_and_hermite_coefficients(text: str) -> None:
    exact = by_gauss_kronrod(*FUNCTIONS[text])
    function = as_function(text)
    norm = np.sqrt(exact[-1])
    normalised = hermite_coefficients(function, 6) * np.sqrt(special.factorial(np.arange(7)))
    np.testing.assert_allclose(normalised, exact[:-1], rtol=0, atol=1e-12 * norm)
    found = moments(function)
    assert found.second_moment == pytest.approx(exact[-1], rel=1e-12)
    assert found.mean == pytest.approx(exact[0], abs=1e-12 * norm)
    assert found.linear == pytest.approx(exact[1], abs=1e-12 * norm)
    assert found.quadratic == pytest.approx(exact[2] / np.sqrt(2), abs=1e-12 * norm)
    residual = exact[-1] - exact[0] ** 2 - exact[1] ** 2
    assert found.residual_variance == pytest.approx(residual, abs=1e-12 * norm**2)


def test_closed_forms() -> None:
    assert moments(as_function("abs")).mean == pytest.approx(np.sqrt(2 / np.pi), rel=1e-14)
    relu = moments(as_function("relu"))
    assert relu.mean == pytest.approx(1 / np.sqrt(2 * np.pi), rel=1e-14)
    assert relu.residual_variance == pytest.approx(0.25 - 1 / (2 * np.pi), rel=1e-13)
    assert relu.derivative_variance == pytest.approx(0.25, rel=1e-14)
    assert expectation(as_function("cos")) == pytest.approx(np.exp(-0.5), rel=1e-14)
    grown = moments(as_function("exp(x**2/5)"))
    assert grown.mean == pytest.approx((1 - 2 / 5) ** -0.5, rel=1e-13)
    assert grown.second_moment == pytest.approx(np.sqrt(5), rel=1e-13)
    assert gauss_rule(as_function("exp(x**2/5)")).nodes.max() > 24
    logarithm = moments(as_function("log(abs(x))"))
    assert logarithm.mean == pytest.approx(-(np.euler_gamma + np.log(2)) / 2, rel=1e-12)
    assert logarithm.variance == pytest.approx(np.pi**2 / 8, rel=2e-12)


@pytest.mark.parametrize(
    ("function", "mean", "square"),
    [
        (lambda x: np.sign(x - 0.123), 1 - 2 * special.ndtr(0.123), 1.0),
        (lambda x: np.abs(x + 1.7), None, 1 + 1.7**2),
        (lambda x: np.floor(x), None, None),
    ],
)
def test_kinks_and_jumps_that_nobody_declared(
    function: Callable[[Any], Any], mean: float | None, square: float | None
) -> None:
    class Undeclared:
        def __call__(self, x: Any) -> Any:
            return function(x)

        def breakpoints(self, lower: float, upper: float) -> np.ndarray:
            return np.array([])

    found = moments(Undeclared())
    if mean is None:
        edges = np.append(np.arange(-14.0, 15.0), -1.7)
        exact = by_gauss_kronrod(function, edges)
        mean, square = exact[0], exact[-1]
    assert found.mean == pytest.approx(mean, rel=1e-12)
    assert found.second_moment == pytest.approx(square, rel=1e-12)


def test_products_share_one_rule() -> None:
    f, g = as_function("sign(x-0.3)"), as_function("relu(x+1)")
    exact = np.exp(-0.5) / np.sqrt(2 * np.pi) + special.ndtr(1)  # E relu(z + 1)
    upper = np.exp(-0.045) / np.sqrt(2 * np.pi) + special.ndtr(-0.3)  # E (z + 1) 1(z > 0.3)
    value = expectation(lambda z: f(z) * g(z), f, g)
    assert value == pytest.approx(2 * upper - exact, rel=1e-13)
    with pytest.raises(InvalidProblem, match="functions"):
        expectation(lambda z: f(z) * g(z))


def test_lean_rules_are_smaller_and_as_exact() -> None:
    tanh = as_function("tanh")
    lean, full = gauss_rule(tanh, width=14).pruned(), gauss_rule(tanh)
    assert 4 * lean.nodes.size < full.nodes.size
    assert lean.mean(tanh(lean.nodes) ** 2) == pytest.approx(moments(tanh).second_moment, rel=1e-13)
    assert full.weights.sum() == pytest.approx(1, abs=1e-15)


def test_gauss_rule_arguments() -> None:
    bad: list[dict[str, Any]] = [
        {"reach": 50.0},
        {"reach": 0.0},
        {"width": 0.0},
        {"tolerance": -1.0},
    ]
    for keywords in bad:
        with pytest.raises(InvalidProblem, match=next(iter(keywords))):
            gauss_rule(**keywords)


def test_more_breakpoints() -> None:
    """E 1(z > 0.123) = Φ(−0.123) needs the split, and a smooth rule has none there."""

    def above(z: np.ndarray) -> np.ndarray:
        return z > 0.123

    split, plain = gauss_rule(breakpoints=[0.123]), gauss_rule()
    assert split.mean(above(split.nodes)) == pytest.approx(special.ndtr(-0.123), rel=1e-14)
    assert abs(plain.mean(above(plain.nodes)) - special.ndtr(-0.123)) > 1e-4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("exp(x**2/4)", "finite second moment"),
        ("exp(x**2)", "finite second moment"),
        ("exp(x**2/3)*sign(x)", "finite second moment"),
        ("1/x", "finite second moment"),
        ("1/(x-0.3)", "finite"),
        ("1/sqrt(abs(x))", "finite second moment"),
        ("log(x)", "not finite at -"),
        ("sqrt(x)", "not finite at -"),
        ("sqrt(x+5)", "not finite at -5"),
        ("x-x", "not constant"),
        ("2", "not constant"),
        ("relu(x-40)", "not constant"),
        ("sin(10000000*x)", "varies too fast"),
        ("1e200*x", "finite second moment"),
        ("1e-200*x", "underflow"),
    ],
)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidProblem, match=reason) as caught:
        check_function(as_function(text), "teacher.link")
    assert caught.value.field == "teacher.link"


def test_complex_values_are_refused() -> None:
    class Complex:
        def __call__(self, x: Any) -> Any:
            return x + 1j

        def breakpoints(self, lower: float, upper: float) -> np.ndarray:
            return np.array([])

    with pytest.raises(InvalidProblem, match="real values"):
        check_function(Complex(), "activation")


@pytest.mark.parametrize("text", [*FUNCTIONS, "exp(x**2/5)", "sin(x)/x", "identity", "log(abs(x))"])
def test_accepted(text: str) -> None:
    check_function(as_function(text), "activation")


def test_constants_have_moments() -> None:
    one = moments(as_function("identity").derivative)
    assert (one.mean, one.second_moment, one.residual_variance) == pytest.approx((1, 1, 0))


def test_users_own_function() -> None:
    own = Function(lambda x: np.where(x > 0.4, x, 0.0), name="own", kinks=[], jumps=[0.4])
    exact = special.ndtr(-0.4) + 0.4 * np.exp(-0.08) / np.sqrt(2 * np.pi)
    assert moments(own).second_moment == pytest.approx(exact, rel=1e-13)


def test_a_mean_does_not_depend_on_its_batch() -> None:
    rule = gauss_rule()
    table = np.random.default_rng(3).standard_normal((rule.nodes.size, 37)).T
    np.testing.assert_array_equal(rule.mean(table), [rule.mean(row) for row in table])
