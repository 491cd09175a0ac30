"""The named functions: values against independent formulas, derivatives, arrays of three kinds."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import array_api_strict
import numpy as np
import pytest
import scipy.special as sp
import torch

from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, as_function, centered, names

POINTS = np.linspace(-4.13, 4.07, 173)

# Written down independently of the registry.
FORMULAS: dict[str, Callable[..., Any]] = {
    "identity": lambda x: x,
    "abs": np.abs,
    "arctan": np.arctan,
    "arcsinh": np.arcsinh,
    "cos": np.cos,
    "cosh": np.cosh,
    "cube": lambda x: x * x * x,
    "elu": lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1),
    "erf": sp.erf,
    "exp": np.exp,
    "expm1": lambda x: np.exp(x) - 1,
    "gaussian": lambda x: np.exp(-(x**2)),
    "gelu": lambda x: 0.5 * x * (1 + sp.erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    "hard_shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "log": np.log,
    "log1p": np.log1p,
    "log_cosh": lambda x: np.log(np.cosh(x)),
    "log_sigmoid": lambda x: np.log(sp.expit(x)),
    "mish": lambda x: x * np.tanh(np.log(1 + np.exp(x))),
    "normal_cdf": lambda x: 0.5 * sp.erfc(-x / np.sqrt(2)),
    "normal_pdf": lambda x: np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi),
    "relu": lambda x: np.where(x > 0, x, 0),
    "relu6": lambda x: np.minimum(np.maximum(x, 0), 6),
    "relu_squared": lambda x: np.where(x > 0, x**2, 0),
    "sech": lambda x: 2 / (np.exp(x) + np.exp(-x)),
    "selu": lambda x: (
        1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0)))
    ),
    "sigmoid": sp.expit,
    "sign": np.sign,
    "silu": lambda x: x * sp.expit(x),
    "sin": np.sin,
    "sinh": np.sinh,
    "snake": lambda x: x + np.sin(x) ** 2,
    "soft_shrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0),
    "softplus": lambda x: np.log(1 + np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "sqrt": np.sqrt,
    "square": lambda x: x**2,
    "step": lambda x: np.heaviside(x, 0.5),
    "tanh": np.tanh,
    "tanh_shrink": lambda x: x - np.tanh(x),
    **{f"he{k}": (lambda x, k=k: sp.eval_hermitenorm(k, x)) for k in range(1, 9)},
}

KINKS: dict[str, list[float]] = {
    "abs": [0],
    "elu": [0],
    "hard_shrink": [-0.5, 0, 0.5],  # 0 is smooth: it is a kink of abs in its definition
    "hard_sigmoid": [-3, 3],
    "hard_swish": [-3, 3],
    "hard_tanh": [-1, 1],
    "leaky_relu": [0],
    "log": [0],
    "log1p": [-1],
    "relu": [0],
    "relu6": [0, 6],
    "relu_squared": [0],
    "selu": [0],
    "sign": [0],
    "soft_shrink": [-0.5, 0.5],
    "softsign": [0],
    "sqrt": [0],
    "step": [0],
}
JUMPING = {"sign", "step", "hard_shrink", "log", "log1p"}


def arrays(values: Any, dtype: str) -> Iterator[Any]:
    yield np.asarray(values, dtype=dtype)
    yield torch.asarray(values, dtype=getattr(torch, dtype))
    yield array_api_strict.asarray(values, dtype=getattr(array_api_strict, dtype))


def test_every_name_has_a_formula_here() -> None:
    assert set(names()) == set(FORMULAS)


@pytest.mark.parametrize("name", names())
def test_value(name: str) -> None:
    with np.errstate(all="ignore"):
        expected = FORMULAS[name](POINTS)
    np.testing.assert_allclose(as_function(name)(POINTS), expected, rtol=2e-13, atol=1e-14)


@pytest.mark.parametrize("name", names())
def test_kinks_and_jumps(name: str) -> None:
    function = as_function(name)
    found = function.breakpoints(-20, 20)
    np.testing.assert_allclose(found, KINKS.get(name, []), rtol=0, atol=1e-14)
    assert function.has_jumps == (name in JUMPING)


@pytest.mark.parametrize("name", sorted(set(names()) - JUMPING))
def test_derivative_is_the_slope(name: str) -> None:
    function, formula = as_function(name), FORMULAS[name]
    x, h = POINTS, 1e-3
    for point in KINKS.get(name, []):
        x = x[np.abs(x - point) > (0.5 if name == "sqrt" else 5 * h)]
    with np.errstate(all="ignore"):
        differences = [(formula(x + k * h) - formula(x - k * h)) / h for k in (1, 2, 3)]
    slope = (45 * differences[0] - 9 * differences[1] + differences[2]) / 60
    defined = np.isfinite(slope)
    assert defined.sum() > 50
    size = max(1.0, np.abs(formula(x[defined])).max())
    found = function.derivative(x)
    np.testing.assert_allclose(found[defined], slope[defined], rtol=1e-9, atol=1e-11 * size)


@pytest.mark.parametrize("name", sorted(JUMPING))
def test_a_jump_has_no_derivative(name: str) -> None:
    with pytest.raises(InvalidProblem, match=r"without jumps.*try"):
        _ = as_function(name).derivative


def test_the_slope_at_a_kink_is_the_mean_of_its_two_sides() -> None:
    assert as_function("relu").derivative(0.0) == 0.5
    assert as_function("abs").derivative(0.0) == 0.0
    assert as_function("leaky_relu").derivative(0.0) == pytest.approx(0.505)


def test_a_derivative_knows_its_own_jumps() -> None:
    slope = as_function("hard_tanh").derivative
    assert slope.has_jumps
    np.testing.assert_array_equal(slope.breakpoints(-5, 5), [-1, 1])
    with pytest.raises(InvalidProblem, match="jumps at x = -1, 1"):
        _ = slope.derivative
    assert not as_function("relu_squared").derivative.has_jumps
    assert not as_function("elu").derivative.has_jumps


@pytest.mark.parametrize("name", ["tanh", "erf", "gelu", "silu", "softplus", "he5", "mish", "sin"])
def test_second_derivative(name: str) -> None:
    first = as_function(name).derivative
    h = 1e-4
    slope = (first(POINTS + h) - first(POINTS - h)) / (2 * h)
    size = np.abs(first(POINTS)).max()
    np.testing.assert_allclose(first.derivative(POINTS), slope, rtol=1e-6, atol=1e-6 * size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", names())
def test_arrays_of_every_kind(name: str, dtype: str) -> None:
    function = as_function(name)
    functions = [function] if function.has_jumps else [function, function.derivative]
    values = [[0.3, -1.2, 4.0], [0.0, 90.0, -90.0]]
    for f in functions:
        expected = f(np.asarray(values))
        for x in arrays(values, dtype):
            y = f(x)
            assert type(y) is type(x)
            assert y.dtype == x.dtype
            assert y.shape == x.shape
            tolerance = 1e-12 if dtype == "float64" else 2e-5
            limit = np.finfo(dtype).max
            clear = (np.abs(expected) < 0.1 * limit) | ~np.isfinite(expected)
            got = np.asarray([[float(y[i, j]) for j in range(3)] for i in range(2)])
            scale = tolerance * (1 + np.abs(expected))
            same = np.isclose(got, expected, rtol=tolerance, atol=1e-6 * tolerance, equal_nan=True)
            with np.errstate(invalid="ignore"):
                near = np.abs(got - expected) < scale
            assert np.all(same | near | ~clear)


def test_numbers_and_integers() -> None:
    tanh = as_function("tanh")
    assert type(tanh(0.3)) is float
    assert tanh(0.3) == np.tanh(0.3)
    assert tanh(2) == np.tanh(2.0)
    np.testing.assert_array_equal(tanh(np.arange(3)), np.tanh([0.0, 1.0, 2.0]))
    assert tanh(torch.arange(3)).dtype == torch.float32


def test_no_warning_where_there_is_no_value() -> None:
    assert np.isnan(as_function("log")(-1.0))
    assert as_function("1/x")(np.zeros(2)).tolist() == [np.inf, np.inf]
    assert np.isnan(as_function("sqrt")(array_api_strict.asarray([-1.0]))[0])
    assert as_function("exp(x**2)")(np.array([100.0]))[0] == np.inf


def test_stable_in_the_tails() -> None:
    assert as_function("softplus")(1000.0) == 1000.0
    assert as_function("softplus")(-50.0) == pytest.approx(np.exp(-50), rel=1e-14)
    assert as_function("log_cosh")(-1000.0) == pytest.approx(1000 - np.log(2), rel=1e-15)
    assert as_function("sigmoid")(-1000.0) == 0.0
    assert as_function("sigmoid")(-40.0) == pytest.approx(np.exp(-40), rel=1e-14)
    assert as_function("silu")(-1000.0) == 0.0
    assert as_function("elu")(-1e-20) == -1e-20
    assert as_function("gelu")(-20.0) == pytest.approx(-20 * sp.ndtr(-20.0), rel=1e-12)


def test_large_arrays_are_the_same_as_small_ones() -> None:
    x = np.random.default_rng(0).standard_normal((300, 301))
    for text in ("tanh", "gelu", "tanh(2*x) + 0.3*x**2", "1", "x"):
        function = as_function(text)
        whole = function(x)
        assert whole.shape == x.shape
        np.testing.assert_array_equal(whole[7], function(x[7]))
        np.testing.assert_array_equal(function(x.T), whole.T)
        assert whole is not x


def test_a_result_never_shares_memory_with_its_argument() -> None:
    x = np.ones(3)
    assert not np.shares_memory(as_function("identity")(x), x)


def test_torch_gradients_flow() -> None:
    x = torch.linspace(-2, 2, 9, dtype=torch.float64, requires_grad=True)
    function = as_function("gelu")
    function(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad, function.derivative(x).detach(), rtol=1e-12)


@pytest.mark.parametrize(
    ("alias", "name"),
    [("swish", "silu"), ("heaviside", "step"), ("linear", "identity"), ("relu2", "relu_squared")],
)
def test_an_alias_is_the_same_function(alias: str, name: str) -> None:
    assert as_function(alias) == as_function(name)
    assert as_function(alias).canonical == name


def test_centered() -> None:
    function = centered("relu")
    assert function.canonical == "centered(relu)"
    assert function(0.0) == pytest.approx(-1 / np.sqrt(2 * np.pi), abs=1e-15)
    assert as_function("centered(relu)") == function
    assert centered(function) == function
    assert function.derivative == as_function("relu").derivative
    assert function.breakpoints(-1, 1).tolist() == [0.0]
    assert centered("tanh")(0.7) == pytest.approx(np.tanh(0.7), abs=1e-15)
    assert centered("x**2")(2.0) == pytest.approx(3.0, abs=1e-14)
    assert as_function("2*centered(abs)")(0.0) == pytest.approx(-2 * np.sqrt(2 / np.pi), abs=1e-14)


@pytest.mark.parametrize(
    "data",
    [
        "tanh",
        "tanh(2*x) + 0.3*x**2",
        {"name": "relu", "centered": True},
        {"expression": "x**2 + abs(x)", "centered": True},
    ],
)
def test_data_round_trip(data: Any) -> None:
    assert as_function(data).to_data() == data


def test_other_ways_to_write_the_data() -> None:
    assert as_function({"name": "relu"}).to_data() == "relu"
    assert as_function({"name": "relu", "centered": False}) == as_function("relu")
    assert as_function({"expression": "x + 1"}) == as_function("x+1")


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": "relu", "expression": "x"},
        {"name": 3},
        {"name": "relu", "centred": True},
        {"name": "relu", "centered": 1},
        {"centered": True},
        None,
        3.0,
        True,
        ["relu"],
    ],
)
def test_data_that_means_nothing(data: Any) -> None:
    with pytest.raises(InvalidProblem, match="activation"):
        as_function(data)


@pytest.mark.parametrize("text", ["tanh", "max(x, x**2 - 1)", "centered(relu)"])
def test_equal_hashable_and_picklable(text: str) -> None:
    function = as_function(text)
    again = pickle.loads(pickle.dumps(function))
    assert again == function
    assert hash(again) == hash(function)
    assert again.derivative == function.derivative
    assert function != as_function("sin")
    assert function != text


def test_a_function_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        as_function("tanh").name = "sin"  # type: ignore[misc]
    assert isinstance(as_function("tanh"), Function)
    assert repr(as_function("tanh")) == "<Function tanh>"
