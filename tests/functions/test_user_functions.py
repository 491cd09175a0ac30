"""Users' own callables: probed, scanned, differentiated, checked."""

from __future__ import annotations

import math
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, as_function, centered

X = np.linspace(-4, 4, 801) + 1e-3 * np.pi
ROOT = (1 + 5**0.5) / 2


def double_kink(x: np.ndarray) -> np.ndarray:
    return np.abs(x - 0.5) + np.abs(x - 0.501)


@pytest.mark.parametrize(
    ("callable", "slope", "points"),
    [
        (np.tanh, lambda x: 1 / np.cosh(x) ** 2, []),
        (np.exp, np.exp, []),
        (lambda x: np.sin(20 * x), lambda x: 20 * np.cos(20 * x), []),
        (lambda x: 1 / (1 + 25 * x**2), lambda x: -50 * x / (1 + 25 * x**2) ** 2, []),
        (lambda x: np.maximum(x, 0), lambda x: (x > 0) * 1.0, [0]),
        (lambda x: np.clip(x, -1, 1 / 3), lambda x: ((x > -1) & (x < 1 / 3)) * 1.0, [-1, 1 / 3]),
        (
            lambda x: np.maximum(x, x**2 - 1),
            lambda x: np.where(x > x**2 - 1, 1, 2 * x),
            [1 - ROOT, ROOT],
        ),
        (double_kink, lambda x: np.sign(x - 0.5) + np.sign(x - 0.501), [0.5, 0.501]),
        (lambda x: np.ones_like(x), np.zeros_like, []),
    ],
)
def test_kinks_are_found_and_slopes_are_good(
    callable: Callable[..., Any], slope: Callable[..., Any], points: list[float]
) -> None:
    function = Function(callable)
    # By intersecting two fits: rounding on some machines is ten times that of a number.
    np.testing.assert_allclose(function.breakpoints(-16, 16), points, rtol=0, atol=1e-12)
    assert not function.has_jumps
    expected = slope(X)
    size = max(1, np.abs(expected).max())
    np.testing.assert_allclose(function.derivative(X), expected, rtol=0, atol=5e-12 * size)
    assert function.derivative.has_jumps == bool(points)


def test_a_kink_of_the_derivative_is_found_as_well() -> None:
    function = Function(lambda x: np.maximum(x - 0.3, 0) ** 2)
    np.testing.assert_allclose(function.breakpoints(-16, 16), [0.3], atol=1e-7)
    np.testing.assert_allclose(function.derivative(X), 2 * np.maximum(X - 0.3, 0), atol=1e-12)
    second = function.derivative.derivative
    # such a kink shows in the values by its square only: it is found to 1e-8, and f'' feels that
    np.testing.assert_allclose(second(X), 2.0 * (X > 0.3), atol=1e-7)


@pytest.mark.parametrize(
    ("callable", "jumps"),
    [
        (lambda x: (x > 1 / 3) * 1.0, [1 / 3]),
        (lambda x: x > 1 / 3, [1 / 3]),
        (lambda x: np.sign(np.sin(3 * x)), np.arange(-15, 16) * np.pi / 3),
        (np.floor, np.arange(-16, 17)),
    ],
)
def test_jumps_are_found(callable: Callable[..., Any], jumps: Any) -> None:
    function = Function(callable)
    np.testing.assert_allclose(function.breakpoints(-16.01, 16.01), jumps, rtol=0, atol=1e-14)
    assert function.has_jumps
    with pytest.raises(InvalidProblem, match="jumps"):
        _ = function.derivative


def test_what_is_declared_is_taken() -> None:
    function = Function(np.abs, kinks=[0.0], jumps=[])
    assert function.breakpoints(-1, 1).tolist() == [0.0]
    assert function.derivative(np.array([-0.001, 0.001])).tolist() == pytest.approx([-1, 1])
    rough = Function(lambda x: np.sqrt(np.abs(x)), kinks=[0], jumps=())
    assert rough(4.0) == 2.0
    assert Function(np.sign, jumps=[0.0]).has_jumps


@pytest.mark.parametrize("callable", [lambda x: np.sqrt(np.abs(x)), lambda x: np.sin(1e6 * x * x)])
def test_a_callable_too_rough_to_scan_must_be_declared(callable: Callable[..., Any]) -> None:
    with pytest.raises(InvalidProblem, match="kinks = None: must be given"):
        Function(callable)


@pytest.mark.parametrize("derivative", [lambda x: 1 - np.tanh(x) ** 2, "1 - tanh(x)**2"])
def test_a_right_derivative_is_used(derivative: Any) -> None:
    function = Function(np.tanh, derivative=derivative)
    assert function.derivative(0.3) == pytest.approx(1 - np.tanh(0.3) ** 2, rel=1e-15)
    second = function.derivative.derivative(0.3)
    assert second == pytest.approx(-2 * np.tanh(0.3) * (1 - np.tanh(0.3) ** 2), rel=1e-10)


@pytest.mark.parametrize(
    "derivative",
    [lambda x: 1 - np.tanh(x), "cos", lambda x: 1.0001 * (1 - np.tanh(x) ** 2), np.log],
)
def test_a_wrong_derivative_is_refused(derivative: Any) -> None:
    with pytest.raises(InvalidProblem, match="derivative of the callable: at x"):
        Function(np.tanh, derivative=derivative)


def test_a_derivative_is_checked_away_from_kinks() -> None:
    function = Function(lambda x: np.maximum(x, 0), derivative=lambda x: (x > 0) * 1.0)
    assert function.derivative.has_jumps
    np.testing.assert_allclose(function.derivative.breakpoints(-1, 1), [0], atol=1e-14)


@pytest.mark.parametrize(
    ("callable", "match"),
    [
        (math.tanh, "vectorize"),
        (lambda x: x.sum(), "not one number"),
        (lambda x: x - x.mean(), "elementwise"),
        (3, "callable"),
        (lambda x: 1j * x, "real-valued"),
        (lambda x: None, "real-valued"),
    ],
)
def test_what_is_not_a_function_of_arrays_is_refused(
    callable: Callable[..., Any], match: str
) -> None:
    with pytest.raises(InvalidProblem, match=match):
        Function(callable)


@pytest.mark.parametrize("points", [3, ["a"], [np.nan], [np.inf]])
def test_bad_points(points: Any) -> None:
    with pytest.raises(InvalidProblem, match="kinks"):
        Function(np.abs, kinks=points, jumps=[])


@pytest.mark.parametrize("name", ["relu", "swish", "x", "pi", "a b", "x+1", "", "__a", "a:b:c", 3])
def test_bad_names(name: Any) -> None:
    with pytest.raises(InvalidProblem, match="name"):
        Function(np.tanh, name=name)


def test_anonymous_callables_are_equal_by_identity_only() -> None:
    one, other = Function(np.tanh), Function(lambda x: np.tanh(x))
    assert one == Function(np.tanh)
    assert one != other
    assert one.name is None
    assert not one.is_named
    with pytest.raises(InvalidProblem, match="named"):
        _ = one.canonical
    with pytest.raises(InvalidProblem, match="named"):
        one.to_data()


def test_a_label_names_but_does_not_identify() -> None:
    one = Function(np.tanh, name="mine")
    other = Function(np.sin, name="mine")
    assert one.canonical == one.to_data() == "mine"
    assert one.is_named
    assert one != other
    with pytest.raises(InvalidProblem, match="neither x nor a known function"):
        as_function("mine")


def test_imported_functions_round_trip() -> None:
    function = as_function("numpy:tanh")
    assert function.canonical == "numpy:tanh"
    assert as_function(function.to_data()) == function == Function(np.tanh, name="numpy:tanh")
    shifted = centered(function)
    assert shifted.to_data() == {"name": "numpy:tanh", "centered": True}
    assert as_function(shifted.to_data()) == shifted == as_function("centered(numpy:tanh)")
    assert shifted(0.5) == pytest.approx(np.tanh(0.5), abs=1e-15)


def test_a_module_may_hold_a_function_with_its_declarations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module: Any = types.ModuleType("a_module_of_mine")
    module.corner = Function(lambda x: np.abs(x), kinks=[0.0], jumps=[])
    module.broken = Function
    monkeypatch.setitem(sys.modules, "a_module_of_mine", module)
    function = as_function("a_module_of_mine:corner")
    assert function.canonical == "a_module_of_mine:corner"
    assert function.breakpoints(-1, 1).tolist() == [0.0]
    with pytest.raises(InvalidProblem):
        as_function("a_module_of_mine:broken")


def test_pickles() -> None:
    for function in (Function(np.tanh), Function(double_kink), centered("numpy:tanh")):
        assert pickle.loads(pickle.dumps(function.derivative)) == function.derivative


def test_arrays_of_other_libraries() -> None:
    function = Function(lambda x: x * x * x / (1 + x * x), name="rational")
    values = [-1.3, 0.2, 2.0]
    expected = [function(v) for v in values]
    slopes = [function.derivative(v) for v in values]
    for xp in (torch, array_api_strict):
        for dtype, tolerance in ((xp.float64, 1e-14), (xp.float32, 1e-6)):
            x = xp.asarray(values, dtype=dtype)
            for f, target in ((function, expected), (function.derivative, slopes)):
                y = f(x)
                assert type(y) is type(x)
                assert y.dtype == dtype
                assert [float(v) for v in y] == pytest.approx(target, rel=tolerance)
    kinked = Function(lambda x: abs(x) * x + abs(x - 1))
    x = torch.asarray(values, dtype=torch.float64)
    assert [float(v) for v in kinked.derivative(x)] == pytest.approx([1.6, -0.6, 5.0], rel=1e-11)
