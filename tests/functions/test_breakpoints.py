"""Kinks and jumps of expressions, against their exact positions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfinv

from giantsteps.errors import InvalidProblem
from giantsteps.functions import as_function

PHI = (1 + np.sqrt(5)) / 2
PI = np.pi


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("max(x, x**2-1)", [1 - PHI, PHI]),
        ("clip(x,-1,1)", [-1, 1]),
        ("clip(2*x + 1, 0, x**2 + 2)", [-0.5, 1]),
        ("abs(x-0.5)", [0.5]),
        ("relu(2*x+1)", [-0.5]),
        ("sign(sin(3*x))", [-2 * PI / 3, -PI / 3, 0, PI / 3, 2 * PI / 3]),
        ("max(sin(x), cos(x))", [-3 * PI / 4, PI / 4]),
        ("relu(abs(x)-1)", [-1, 0, 1]),
        ("abs(abs(abs(x)-1)-0.5)", [-1.5, -1, -0.5, 0, 0.5, 1, 1.5]),
        ("max(x, 0.5, x**2)", [-np.sqrt(0.5), 0.5, 1]),
        ("abs(tanh(x)-0.5)", [np.arctanh(0.5)]),
        ("abs(exp(x)-2)", [np.log(2)]),
        ("sign(x**2-2)", [-np.sqrt(2), np.sqrt(2)]),
        ("sign((x-1)**3)", [1]),
        ("abs(x**3 - 3*x**2 + 3*x - 1)", [1]),
        ("sign((x**2-2)**2*(x-0.1))", [-np.sqrt(2), 0.1, np.sqrt(2)]),
        ("abs((x-0.5)**2 - 1e-8)", [0.4999, 0.5001]),
        ("abs(tanh((x-0.5)**2 - 1e-8))", [0.4999, 0.5001]),
        ("sqrt((x-0.3)**2)", [0.3]),
        ("abs(he3(x))", [-np.sqrt(3), 0, np.sqrt(3)]),
        ("step(x)*step(1-x)", [0, 1]),
        ("exp(-abs(x))", [0]),
        ("1/(x-1.5)", [1.5]),
        ("abs(x)**0.5", [0]),
        ("min(relu(x), 1)", [0, 1]),
        ("selu(x - 1)", [1]),
        ("2*centered(relu(x - 0.25))", [0.25]),
        ("relu(0.4 - erf(x) + step(x - 0.375))", [erfinv(0.4), 0.375]),  # a root beside a jump
        ("tanh(3*x) + x**5", []),
        ("1/(1+x**2)", []),
        ("max(relu(x), x)", [0]),
        ("abs(sin(x)**2 + cos(x)**2 - 1)", []),
        ("max(x, x)", []),
        ("relu(2)", []),
        ("relu(exp(x))", []),
    ],
)
def test_breakpoints(text: str, expected: Any) -> None:
    found = as_function(text).breakpoints(-3, 3)
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, np.asarray(expected), rtol=0, atol=1e-14)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    slope=st.floats(0.01, 100).map(lambda a: round(a, 6)),
    sign=st.sampled_from([-1, 1]),
    kink=st.floats(-9, 9),
)
def test_affine_arguments(slope: float, sign: float, kink: float) -> None:
    offset = -sign * slope * kink
    found = as_function(f"relu({sign * slope!r}*x + {offset!r})").breakpoints(-10, 10)
    np.testing.assert_allclose(found, [kink], rtol=4e-16, atol=1e-15)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(roots=st.lists(st.integers(-40, 40), min_size=2, max_size=5, unique=True))
def test_polynomial_arguments(roots: list[float]) -> None:
    exact = np.sort(np.array(roots) / 16)
    text = "*".join(f"(x - {root})" for root in exact)
    np.testing.assert_allclose(
        as_function(f"sign({text})").breakpoints(-3, 3), exact, rtol=0, atol=1e-14
    )


@pytest.mark.parametrize("frequency", [1.0, 17.3, 64 * PI, 400.0])
def test_oscillations_are_not_aliased(frequency: float) -> None:
    found = as_function(f"sign(sin({frequency!r}*x))").breakpoints(-3.003, 3.003)
    count = int(3.003 * frequency / PI)
    exact = np.arange(-count, count + 1) * PI / frequency
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-14)


def test_too_many_oscillations_are_refused() -> None:
    with pytest.raises(InvalidProblem, match="slow enough"):
        as_function("sign(sin(1e7*x))").breakpoints(-1, 1)


@pytest.mark.parametrize(
    ("text", "jumps"),
    [
        ("sign(x)", True),
        ("sign(sin(3*x))", True),
        ("x*sign(x)", False),
        ("x*sign(x - 1)", True),
        ("(x - 1)*step(x - 1)", False),
        ("sign(x)*sqrt(abs(x))", False),
        ("sign(x**2 + 1)", False),
        ("x + 1e-6*sign(x)", True),
        ("1/x", True),
        ("1/abs(x)", True),
        ("x**-2", True),
        ("abs(x)**-0.5", True),
        ("log(abs(x))", True),
        ("sin(x)/x", False),
        ("max(x, x**2-1)", False),
        ("sign(tanh(x) - 0.5)", True),
        ("tanh(1000*x)", False),
    ],
)
def test_jumps_are_told_from_kinks(text: str, jumps: Any) -> None:
    assert as_function(text).has_jumps == jumps


def test_jump_that_cancels_has_its_derivative() -> None:
    slope = as_function("x*sign(x)").derivative
    np.testing.assert_array_equal(slope(np.array([-2.0, 3.0])), [-1.0, 1.0])
    assert slope.has_jumps


def test_intervals() -> None:
    function = as_function("abs(x - 50) + relu(x)")
    assert function.breakpoints(-1, 1).tolist() == [0.0]
    assert function.breakpoints(1, 2).tolist() == []
    assert function.breakpoints(0, 60).tolist() == [0.0, 50.0]
    assert function.breakpoints(0, 0).tolist() == [0.0]
    assert as_function("abs(x**2 - 1e6)").breakpoints(-5000, 5000).tolist() == [-1000.0, 1000.0]
    for bad in ((1, 0), (np.nan, 1), (0, np.inf)):
        with pytest.raises(InvalidProblem, match="interval"):
            function.breakpoints(*bad)
