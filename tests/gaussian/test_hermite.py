"""Hermite coefficients against closed forms; Parseval; parity; information exponent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import eval_hermitenorm, factorial, factorial2

from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, as_function, centered
from giantsteps.gaussian import (
    gauss_rule,
    hermite_coefficients,
    hermite_functions,
    information_exponent,
    moments,
)

DEGREE = 20
K = np.arange(DEGREE + 1)


def erf() -> np.ndarray:
    """erf' = 2 e^{-z²}/√π and E e^{-z²} He_2j = (2j)!/j! (−1/3)^j/√3."""
    c = np.zeros(DEGREE + 1)
    for j in range(DEGREE // 2):
        c[2 * j + 1] = 2 / np.sqrt(3 * np.pi) * (-1 / 3) ** j / (factorial(j) * (2 * j + 1))
    return c


def sign() -> np.ndarray:
    """E sign He_k = √(2/π) He_{k−1}(0), k odd."""
    c = np.sqrt(2 / np.pi) * np.array([eval_hermitenorm(k - 1, 0.0) if k % 2 else 0 for k in K])
    return c / factorial(K)


def relu() -> np.ndarray:
    c = np.zeros(DEGREE + 1)
    c[0], c[1] = 1 / np.sqrt(2 * np.pi), 0.5
    for k in range(2, DEGREE + 1, 2):
        double = factorial2(k - 3) if k > 3 else 1.0
        c[k] = (-1) ** (k // 2 - 1) * double / np.sqrt(2 * np.pi) / factorial(k)
    return c


def wave(a: float, phase: float) -> np.ndarray:
    """E f^{(k)} of sin (phase 0) and cos (phase 1) of a z: a^k e^{−a²/2} times sin or cos at 0."""
    return a**K * np.exp(-(a**2) / 2) * np.round(np.sin((phase + K) * np.pi / 2)) / factorial(K)


def gaussian_growth(b: float) -> np.ndarray:
    """E e^{b z²} He_2j = (1 − 2b)^{−1/2} (2j)!/j! (b/(1 − 2b))^j."""
    c = np.zeros(DEGREE + 1)
    for j in range(DEGREE // 2 + 1):
        c[2 * j] = (1 - 2 * b) ** -0.5 * (b / (1 - 2 * b)) ** j / factorial(j)
    return c


CLOSED = {
    "erf(x)": erf(),
    "sign(x)": sign(),
    "relu(x)": relu(),
    "abs(x)": 2 * relu() - (K == 1),
    "step(x)": (sign() + (K == 0)) / 2,
    "sin(x)": wave(1.0, 0),
    "cos(3*x)": wave(3.0, 1),
    "exp(x/2)": 0.5**K * np.exp(1 / 8) / factorial(K),
    "exp(x**2/5)": gaussian_growth(1 / 5),
    "exp(-3*x**2)": gaussian_growth(-3.0),
    "he5(x) + x**2": 1.0 * (K == 5) + (K == 2) + (K == 0),
}


@pytest.mark.parametrize("text", CLOSED)
def test_closed_forms(text: str) -> None:
    function = as_function(text)
    root = np.sqrt(factorial(K))
    found = hermite_coefficients(function, DEGREE)
    norm = np.sqrt(moments(function).second_moment)
    np.testing.assert_allclose(found * root, CLOSED[text] * root, rtol=0, atol=1e-13 * norm)


def test_normalised_polynomials_are_orthonormal_to_degree_100() -> None:
    rule = gauss_rule(reach=27.0)
    basis = hermite_functions(rule.nodes, 100)
    np.testing.assert_allclose((basis * rule.weights) @ basis.T, np.eye(101), rtol=0, atol=1e-12)
    x = np.linspace(-4, 4, 9)
    exact = eval_hermitenorm(7, x) / np.sqrt(factorial(7))
    np.testing.assert_allclose(hermite_functions(x, 7)[7], exact, rtol=1e-13, atol=1e-13)


def tail(function: Function, degree: int) -> float:
    """E f² − Σ k! c_k²."""
    series = hermite_coefficients(function, degree) ** 2 * factorial(np.arange(degree + 1))
    return float(moments(function).second_moment - series.sum())


@pytest.mark.parametrize("text", ["tanh", "relu", "sign(sin(3*x))", "exp(x**2/5)", "sin(15*x)"])
def test_parseval(text: str) -> None:
    function = as_function(text)
    square = moments(function).second_moment
    tails = [tail(function, degree) for degree in (0, 3, 10, 100)]
    assert min(tails) >= -1e-13 * square
    assert np.all(np.diff(tails) <= 1e-13 * square)
    assert tails[0] == pytest.approx(moments(function).variance, rel=1e-11, abs=1e-13 * square)


def test_parseval_closes_for_a_smooth_function() -> None:
    assert tail(as_function("sin(2*x)"), 60) < 1e-13
    assert tail(as_function("he8"), 8) < 1e-9  # of E he8² = 40320


def test_degree_is_checked() -> None:
    for degree in (-1, 101):
        with pytest.raises(InvalidProblem, match="degree"):
            hermite_coefficients(as_function("tanh"), degree)


def test_coefficients_are_shared_and_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        hermite_coefficients(as_function("tanh"), 3)[0] = 1.0


@pytest.mark.parametrize(
    ("text", "odd", "even", "is_centered"),
    [
        ("tanh", True, False, True),
        ("sign(sin(3*x))", True, False, True),
        ("he2", False, True, True),
        ("abs", False, True, False),
        ("relu", False, False, False),
        ("he2 + he3", False, False, True),
        ("tanh(x) + 0.00001*x**2", False, False, False),
    ],
)
def test_symmetries(text: str, odd: bool, even: bool, is_centered: bool) -> None:
    found = moments(as_function(text.replace("he2 + he3", "he2(x) + he3(x)")))
    assert (found.is_odd, found.is_even, found.is_centered) == (odd, even, is_centered)


def test_centered_function_is_centered() -> None:
    found = moments(centered("relu"))
    assert found.is_centered
    assert abs(found.mean) < 1e-15
    assert found.linear == pytest.approx(0.5, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "exponent"),
    [(f"he{k}(x)", k) for k in range(1, 9)]
    + [("x**3", 1), ("he3(x) + he5(x)", 3), ("cos(x)", 2), ("abs(x)", 2), ("x**2 - 5", 2)]
    + [("he2(x) + 1e-12*x", 2), ("he2(x) + 1e-7*x", 1)]
    + [("x**20 - x**20 + he6(x)", 6)],
)
def test_information_exponent(text: str, exponent: Any) -> None:
    assert information_exponent(as_function(text)) == exponent


def test_information_exponent_of_a_constant() -> None:
    with pytest.raises(InvalidProblem, match="Hermite coefficient"):
        information_exponent(as_function("identity").derivative)


@pytest.mark.parametrize(
    ("text", "variance"),
    [
        ("identity", 0.0),
        ("sin", (1 + np.exp(-2)) / 2 - np.exp(-1)),
        ("relu", 0.25),
        ("he3", 18.0),  # 9 E He_2²
        ("erf", 4 / np.pi * (1 / np.sqrt(5) - 1 / 3)),
        ("exp(x)", np.exp(2) - np.exp(1)),
    ],
)
def test_derivative_variance(text: str, variance: float) -> None:
    found = moments(as_function(text))
    assert found.derivative_variance == pytest.approx(variance, rel=1e-12, abs=1e-14)


def test_derivative_variance_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="jump"):
        moments(as_function("sign")).derivative_variance  # noqa: B018
    with pytest.raises(InvalidProblem, match="second moment"):
        moments(as_function("sqrt(abs(x))")).derivative_variance  # noqa: B018
