"""Smoothed functions against closed forms and Gauss–Kronrod; batches; refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad_vec
from scipy.special import erf, expit, ndtr

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.functions import as_function
from giantsteps.gaussian import _smoothed, moments, smoothed, smoothed_around, table_nodes

LEAVES = ("mean", "linear", "quadratic", "second_moment", "residual_variance")
MEANS = np.array([0.0, 0.5, -0.5, 1.0, -2.7, 4.0, 6.3, -9.1])
STDS = np.array([1e-9, 1e-3, 0.05, 0.3, 0.999, 1.0, 1.01, 1.9, 2.0, 5.3])


def pdf(x: Any) -> Any:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


def check(function: Any, mean: Any, std: Any, exact: Any, tolerance: float = 1e-12) -> None:
    """Five moments against the exact first four, relative to the local norm or ‖f‖."""
    found = smoothed(function, mean, std)
    size = np.maximum(np.sqrt(exact[3]), moments(function).norm)
    for name, value, power in zip(LEAVES, exact, (1, 1, 1, 2)):
        error = np.abs(getattr(found, name) - value) / size**power
        assert error.max() < tolerance, name
    residual = exact[3] - exact[0] ** 2 - exact[1] ** 2
    assert (np.abs(found.residual_variance - residual) / size**2).max() < tolerance
    assert (found.residual_variance >= 0).all()


@pytest.mark.parametrize("text", ["relu(x)", "relu(x-0.5)", "abs(x)", "sign(x)", "step(x-0.5)"])
def test_closed_forms_of_kinks_and_jumps(text: str) -> None:
    m, s = MEANS[:, None], STDS
    shift = 0.5 if "0.5" in text else 0.0
    a = (m - shift) / s
    step = (ndtr(a), pdf(a), -a * pdf(a) / 2, ndtr(a))
    relu = (
        (m - shift) * ndtr(a) + s * pdf(a),
        s * ndtr(a),
        s * pdf(a) / 2,
        ((m - shift) ** 2 + s**2) * ndtr(a) + (m - shift) * s * pdf(a),
    )
    exact: tuple[Any, Any, Any, Any]
    if "relu" in text:
        exact = relu
    elif "step" in text:
        exact = step
    elif "sign" in text:
        exact = (2 * step[0] - 1, 2 * step[1], 2 * step[2], np.ones_like(a))
    else:
        exact = (2 * relu[0] - m, 2 * relu[1] - s, 2 * relu[2], m**2 + s**2)
    check(as_function(text), m, s, exact)


def test_closed_forms_of_smooth_functions() -> None:
    m, s = MEANS[:, None], STDS
    damped, twice = np.exp(-(s**2) / 2), np.exp(-2 * s**2)
    wave = (
        np.sin(m) * damped,
        s * np.cos(m) * damped,
        -(s**2) * np.sin(m) * damped / 2,
        (1 - np.cos(2 * m) * twice) / 2,
    )
    check(as_function("sin"), m, s, wave)
    s15 = STDS[:4]
    d15 = np.exp(-112.5 * s15**2)
    fast = (
        np.sin(15 * m) * d15,
        15 * s15 * np.cos(15 * m) * d15,
        -((15 * s15) ** 2) * np.sin(15 * m) * d15 / 2,
        (1 - np.cos(30 * m) * d15**4) / 2,
    )
    check(as_function("sin(15*x)"), m, s15, fast)
    found = smoothed(as_function("erf"), m, s).mean
    np.testing.assert_allclose(found, erf(m / np.sqrt(1 + 2 * s**2)), rtol=0, atol=1e-13)
    s = STDS[:-1]
    grown = np.exp(m + s**2 / 2)
    exponential = (grown, s * grown, s**2 * grown / 2, np.exp(2 * m + 2 * s**2))
    check(as_function("exp"), m, s, exponential)


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "tanh(x)": (np.tanh, []),
    "tanh(20*x)": (lambda x: np.tanh(20 * x), [0.0]),
    "gelu(x)": (lambda x: x * ndtr(x), []),
    "x*sigmoid(5*x)": (lambda x: x * expit(5 * x), []),
    "sign(sin(3*x))": (lambda x: np.sign(np.sin(3 * x)), np.arange(-90, 91) * np.pi / 3),
    "clip(x,-1,1)": (lambda x: np.clip(x, -1, 1), [-1.0, 1.0]),
    "max(x, x**2-1)": (lambda x: max(x, x**2 - 1), [(1 - 5**0.5) / 2, (1 + 5**0.5) / 2]),
    "exp(-3*x**2)": (lambda x: np.exp(-3 * x**2), []),
    "he8(x)": (np.polynomial.HermiteE.basis(8), []),
    "1 - tanh(x)": (lambda x: 1 - np.tanh(x), []),
    "x/(1+9*x**2)": (lambda x: x / (1 + 9 * x**2), []),
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_against_gauss_kronrod(text: str) -> None:
    function, kinks = FUNCTIONS[text]
    for m, s in [(0.0, 1.0), (0.4, 1.7), (-3.1, 0.2), (2.2, 1.0), (1.0, 3.9)]:

        def integrand(z: float, m: float = m, s: float = s) -> np.ndarray:
            f = function(m + s * z)
            return pdf(z) * np.array([f, z * f, (z**2 - 1) * f / 2, f * f])

        points = [float((kink - m) / s) for kink in kinks]
        points = [point for point in points if abs(point) < 13]
        scale = max(1.0, abs(function(m + s)), abs(function(m - s)))
        tolerance = {"epsabs": 1e-14 * scale, "epsrel": 1e-13}
        exact = quad_vec(integrand, -13, 13, points=points, limit=20000, **tolerance)[0]
        check(as_function(text), m, s, exact)


def test_names_agree_with_moments() -> None:
    for text in ("tanh(x) + 0.6*x**2", "relu", "sign(x-0.2)"):
        function = as_function(text)
        standard, here = moments(function), smoothed(function, 0.0, 1.0)
        for name in LEAVES:
            value = getattr(standard, name)
            assert float(getattr(here, name)) == pytest.approx(value, rel=1e-12, abs=1e-13)


def test_residual_variance_does_not_cancel() -> None:
    """f = x + 1e-6 sin x: μ₂² is 1e-12 of E f², and still has nine digits."""
    m, s = np.array([0.3, 50.0]), 1.0
    found = smoothed(as_function("x + 1e-6*sin(x)"), m, s).residual_variance
    sine = smoothed(as_function("sin"), m, s).residual_variance * 1e-12
    assert found[0] == pytest.approx(sine[0], rel=1e-8)
    # At m = 50, f carries rounding errors of 7e-15, 7e-9 of the residual: five digits remain.
    assert found[1] == pytest.approx(sine[1], rel=1e-5)
    line = smoothed(as_function("2*x - 1"), m, s).residual_variance
    assert (line <= 1e-26).all()


def test_derivatives_by_parts() -> None:
    """μ₁ = E f', and s² E f''/2 = the quadratic moment."""
    tanh = as_function("tanh")
    found = smoothed(tanh, MEANS[:, None], STDS[3:])
    slope = smoothed(tanh.derivative, MEANS[:, None], STDS[3:])
    np.testing.assert_allclose(found.slope, slope.mean, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.quadratic, slope.linear * STDS[3:] / 2, rtol=0, atol=1e-14)
    with pytest.raises(InvalidProblem, match="std"):
        smoothed(tanh, 0.0, 0.0).slope  # noqa: B018


def test_a_point() -> None:
    found = smoothed(as_function("abs(x-0.5)"), [0.5, 2.0, -1.0], [0.0, 0.0, 1e-15])
    np.testing.assert_array_equal(found.mean, [0.0, 1.5, 1.5])
    np.testing.assert_array_equal(found.second_moment, [0.0, 2.25, 2.25])
    np.testing.assert_array_equal(found.linear, 0.0)
    np.testing.assert_array_equal(found.residual_variance, 0.0)


@pytest.mark.parametrize("text", ["tanh", "relu(2*x+1)", "sign(sin(3*x))", "sin(15*x)", "he6"])
def test_an_entry_does_not_depend_on_its_batch(text: str) -> None:
    function = as_function(text)
    rng = np.random.default_rng(5)
    m, s = 3 * rng.standard_normal(97), np.exp(rng.uniform(-4, 1, 97))
    s[:5] = 0.0
    whole = smoothed(function, m, s)
    order = rng.permutation(97)
    _smoothed._block.cache_clear()
    _smoothed._mesh.cache_clear()
    shuffled = smoothed(function, m[order], s[order])
    alone = [smoothed(function, a, b) for a, b in zip(m, s)]
    with_more = smoothed(
        function, np.append(m, np.linspace(-60, 60, 301)), np.append(s, [2.5] * 301)
    )
    for name in LEAVES:
        value = getattr(whole, name)
        np.testing.assert_array_equal(getattr(shuffled, name), value[order])
        np.testing.assert_array_equal([getattr(one, name) for one in alone], value)
        np.testing.assert_array_equal(getattr(with_more, name)[:97], value)


def test_shapes_broadcast() -> None:
    function = as_function("tanh")
    table = smoothed(function, np.linspace(-1, 1, 3), np.array([[1.0], [2.0]]))
    assert all(getattr(table, name).shape == (2, 3) for name in (*LEAVES, "std"))
    assert table.mean[1, 2] == smoothed(function, 1.0, 2.0).mean
    assert smoothed(function, np.zeros((0, 3)), 1.0).mean.shape == (0, 3)


def test_growth_decides_where_it_is_defined() -> None:
    grown = as_function("exp(x**2/5)")
    s = 1.05
    found = smoothed(grown, 0.0, s)
    assert found.mean == pytest.approx((1 - 0.4 * s**2) ** -0.5, rel=1e-12)
    assert found.second_moment == pytest.approx((1 - 0.8 * s**2) ** -0.5, rel=1e-12)
    for std in (1.2, 2.0, 10.0):
        with pytest.raises(NotCovered, match="square integrable"):
            smoothed(grown, [0.0, 0.1], std)


def test_bad_arguments() -> None:
    tanh = as_function("tanh")
    with pytest.raises(InvalidProblem, match="std"):
        smoothed(tanh, 0.0, -1.0)
    with pytest.raises(InvalidProblem, match="std"):
        smoothed(tanh, 0.0, np.nan)
    with pytest.raises(InvalidProblem, match="mean"):
        smoothed(tanh, np.inf, 1.0)
    with pytest.raises(NotCovered, match="not finite"):
        smoothed(as_function("sqrt(x+20)"), -15.0, 1.0)
    with pytest.raises(NotCovered, match="finite"):
        smoothed(as_function("sqrt(x+20)"), -21.0, 0.0)


@pytest.mark.parametrize("name", ["tanh", "softplus", "x**3 - 3*x", "sin", "x*exp(-x**2)"])
@pytest.mark.parametrize("order", [1, 20])
def test_trapezoidal_rule_agrees_with_panels(name: str, order: int) -> None:
    function = as_function(name)
    centre = np.tile(np.linspace(-9.0, 9.0, 7), 5)
    std = np.repeat([0.02, 0.4, 0.9, 1.3, 4.0], 7)
    found = smoothed_around(function, centre, std, order)
    assert found is not None
    expected = smoothed(function, centre[:, None] + std[:, None] * table_nodes(order), std[:, None])
    size = np.maximum(np.sqrt(expected.second_moment), moments(function).norm)
    for leaf, values, power in zip(LEAVES, found, (1, 1, 1, 2, 2), strict=True):
        assert np.max(np.abs(values - getattr(expected, leaf)) / size**power) < 1e-12, leaf


def test_trapezoidal_rule_refuses_what_it_does_not_resolve() -> None:
    one = np.array([0.5])
    assert smoothed_around(as_function("relu"), one, one) is None  # a kink
    assert smoothed_around(as_function("sin(x**2)"), 40 * one, 4 * one) is None  # too fast
    assert smoothed_around(as_function("exp(x)"), one, 20 * one) is None  # beyond its reach
