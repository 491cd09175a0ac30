"""Expressions: canonical text, exact derivatives, and what is refused."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import giantsteps as gs
from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, _breakpoints, as_function
from giantsteps.functions._tree import postorder

X = np.linspace(-2.9, 3.1, 61)

# Atoms that are smooth and of moderate size, so that differences can be trusted.
SMOOTH = ["tanh", "sin", "cos", "erf", "sigmoid", "softsign", "arctan", "gaussian", "he2", "relu"]


@st.composite
def expressions(draw: st.DrawFn, depth: int = 4) -> str:
    """Random texts of the language, with random spaces and superfluous parentheses."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        number = draw(st.sampled_from(["x", "x", "x", "2", ".5", "1e-1", "pi", "0.30", "-1", "3."]))
        return f"({number})" if draw(st.booleans()) else number
    left, right = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    space = " " * draw(st.integers(0, 2))
    form = draw(st.integers(0, 7))
    if form <= 2:
        return f"({left}){space}{'+-*'[form]}{space}({right})"
    if form == 3:
        return f"{left}{space}/{space}(1 + square({right}))"
    if form == 4:
        return f"-{space}{left}"
    if form == 5:
        return f"({left})**{draw(st.sampled_from(['2', '3', '2.0', '(1)']))}"
    if form == 6:
        return f"{draw(st.sampled_from(['max', 'min']))}({left},{space}{right})"
    return f"{draw(st.sampled_from(SMOOTH))}({space}{left})"


def python_value(text: str, x: np.ndarray) -> np.ndarray:
    """The text as Python would read it: an independent evaluation, for these texts only."""
    known: dict[str, Any] = {name: as_function(name) for name in [*SMOOTH, "square"]}
    known |= {"x": x, "pi": np.pi, "max": np.maximum, "min": np.minimum}
    with np.errstate(all="ignore"):
        # square(2) and its like reach Python as functions of numbers
        return eval(text, {"__builtins__": {}}, known) + 0 * x


@settings(max_examples=150, deadline=None, derandomize=True)
@given(expressions())
def test_canonical_text_round_trip_and_value(text: str) -> None:
    function = as_function(text)
    again = as_function(function.canonical)
    assert again == function
    assert again.canonical == function.canonical
    assert hash(again) == hash(function)
    assert as_function(f"  {text.replace(',', ' ,  ')} ") == function
    expected = python_value(text, X)
    np.testing.assert_allclose(function(X), expected, rtol=1e-12, atol=1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(expressions(depth=3))
def test_derivative_is_the_slope_between_breakpoints(text: str) -> None:
    function = as_function(text)
    if function.has_jumps:
        return
    x, h = X, 1e-3
    for point in function.breakpoints(-10, 10):
        x = x[np.abs(x - point) > 4 * h]
    differences = [(function(x + k * h) - function(x - k * h)) / h for k in (1, 2, 3)]
    slope = (45 * differences[0] - 9 * differences[1] + differences[2]) / 60
    # truncation of order h^6, felt where the expression varies on the scale of 1/10
    size = np.abs(slope).max() + np.abs(function(x)).max() + 1
    calm = np.abs(differences[0] - differences[2] / 3) < 1e-2 * size
    np.testing.assert_allclose(
        function.derivative(x)[calm], slope[calm], rtol=1e-7, atol=1e-8 * size
    )


@pytest.mark.parametrize(
    ("text", "same", "canonical"),
    [
        ("tanh( 2*x )+.3*x**2", "tanh(2*x) + 0.3*x**2", "tanh(2*x) + 0.3*x**2"),
        ("tanh(x)", "tanh", "tanh"),
        ("x", "identity", "identity"),
        ("2.0*x", "2*x", "2*x"),
        ("swish(2*x)", "silu(2*x)", "silu(2*x)"),
        ("x**2.0", "(x)**2", "x**2"),
        ("+x", "x", "identity"),
        ("-(2)*x", "-2*x", "-2*x"),
        ("3.141592653589793*x", "pi*x", "pi*x"),
        ("max(x,0,1)", "max(max(x, 0), 1)", "max(max(x, 0), 1)"),
        ("clamp(x,-1,1)", "clip(x, -1, 1)", "clip(x, -1, 1)"),
        ("identity(tanh(x))", "tanh", "tanh"),
        ("x\n + 1", "x+1", "x + 1"),
    ],
)
def test_texts_that_mean_the_same(text: str, same: str, canonical: str) -> None:
    assert as_function(text) == as_function(same)
    assert hash(as_function(text)) == hash(as_function(same))
    assert as_function(text).canonical == canonical


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x - (1 - x)", "x - 1 - x"),
        ("(-x)**2", "-x**2"),
        ("x/(2*x)", "x/2*x"),
        ("2**(x+1)", "2**x+1"),
    ],
)
def test_parentheses_that_matter_stay(one: str, other: str) -> None:
    a, b = as_function(one), as_function(other)
    assert a != b
    assert a(1.7) != b(1.7)
    assert as_function(a.canonical)(1.7) == a(1.7)
    assert as_function(b.canonical)(1.7) == b(1.7)


@pytest.mark.parametrize(
    ("text", "at", "value", "slope"),
    [
        ("2**x", 1.5, 2**1.5, 2**1.5 * np.log(2)),
        ("abs(x)**1.5", -2.0, 2**1.5, -1.5 * 2**0.5),
        ("(2 + x**2)**-2", 2.0, 1 / 36, -8 / 216),
        ("(1 + x**2)**x", 0.5, 1.25**0.5, 1.25**0.5 * (np.log(1.25) + 0.5 * 1 / 1.25)),
        ("exp(-x)/(1 + x**2)", 1.0, np.exp(-1) / 2, -np.exp(-1)),
        ("max(x, x**2-1)", 2.0, 3.0, 4.0),
        ("clip(x**2, x, 2)", 1.2, 1.44, 2.4),
        ("x**40", 1.1, 1.1**40, 40 * 1.1**39),
        ("x**70", 1.1, 1.1**70, 70 * 1.1**69),
        ("sqrt(1 + x**2)", 2.0, 5**0.5, 2 / 5**0.5),
    ],
)
def test_value_and_slope(text: str, at: float, value: float, slope: float) -> None:
    function = as_function(text)
    assert function(at) == pytest.approx(value, rel=1e-13)
    assert function.derivative(at) == pytest.approx(slope, rel=1e-13)


def test_a_tie_on_an_interval_has_the_right_slope() -> None:
    np.testing.assert_array_equal(as_function("max(relu(x), x)").derivative(np.array([2.0])), [1.0])
    np.testing.assert_array_equal(as_function("max(2*x, x + x)").derivative(np.array([2.0])), [2.0])


def test_shared_parts_are_not_expanded() -> None:
    function = as_function("mish(" * 30 + "x" + ")" * 30)
    start = time.process_time()
    second = function.derivative.derivative
    assert np.isfinite(second(0.3))
    assert time.process_time() - start < 5


HOSTILE = [
    "__import__('os').system('x')",
    "().__class__.__mro__",
    "x.__class__",
    "x.__class__.__base__.__subclasses__()",
    "lambda x: x",
    "lambda: 0",
    "(" * 10_000 + "x" + ")" * 10_000,
    "(" * 300 + "x" + ")" * 300,
    "-" * 900 + "x",
    "x**" * 300 + "x",
    "x+" * 400 + "x",
    "max(" + "x," * 300 + "x)",
    "9**9**9**9",
    "9**9**9",
    "10**400",
    "1/0",
    "0**-1",
    "log(0)*x",
    "sqrt(-1) + x",
    "exp(1000)*x",
    "1e999",
    "1" * 400,
    "1" * 5000,
    "ｘ + 1",
    "х",  # a Cyrillic letter
    "tanh(х)",
    "x × 2",
    "x" * 1_000_000,
    "x+" * 500_000 + "x",
    " " * 1_000_000,
    "[x for x in x]",
    "(y := x)",
    "f'{x}'",
    "'a'",
    "x if x>0 else 0",
    "__x__",
    "__import__",
    "__builtins__",
    "x; x",
    "import os",
    "eval(x)",
    "exec(x)",
    "open(x)",
    "getattr(x, 1)",
    "x\x00",
    "True",
    "x*False",
    "None",
    "...",
    "1j*x",
    "nan",
    "inf*x",
    "",
    "   ",
    "x, x",
    "x[0]",
    "{x}",
    "x @ x",
    "x // 2",
    "x % 2",
    "x < 1",
    "not x",
    "x and x",
    "x*(yield)",
    "await x",
    "2x",
    "x^2",
    "tanh()",
    "tanh(x, x)",
    "tanh(x=1)",
    "tanh(*x)",
    "tanh + 1",
    "max(x)",
    "clip(x, 1)",
    "unknown(x)",
    "centered()",
    "centered(3)",
    "no_such_module_anywhere:attr",
    "os:no_such_attribute",
    "os:sep",
    "os:system",
    "builtins:eval",
    "os.path:__doc__",
    "__main__:f",
    "a.b:c.d",
    "a::b",
    ":a",
    "a:",
    "os:system('x')",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:30]))
def test_hostile_text_is_refused_at_once(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    start = time.process_time()
    with pytest.raises(InvalidProblem) as caught:
        as_function(text, "teacher")
    assert time.process_time() - start < 0.1
    assert caught.value.field == "teacher"
    assert len(str(caught.value)) < 2000
    assert capfd.readouterr() == ("", "")


def test_nothing_is_imported_by_an_expression() -> None:
    before = set(sys.modules)
    for text in (
        "__import__('antigravity')",
        "antigravity.x",
        "x.antigravity",
        "import antigravity",
    ):
        with pytest.raises(InvalidProblem):
            as_function(text)
    assert "antigravity" not in set(sys.modules) - before


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ReLU", "did you mean relu"),
        ("tanhh(x)", "did you mean tanh"),
        ("x^2", r"written x\*\*2"),
        ("x > 0", "step"),
        ("tanh + 1", r"tanh\(x\)"),
        ("foo(x)", "known: abs"),
        ("my-module:f", "module:attr"),
    ],
)
def test_the_error_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(InvalidProblem, match=hint):
        as_function(text)


NESTED = {
    "max": "max(x, {})",
    "abs": "abs({} - 1)",
    "poles": "x/(2.5 + sin({}))",
    "folds": "abs(sin(3*{}))",
}


@pytest.mark.parametrize("name", NESTED)
def test_the_search_for_kinks_is_bounded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deeply nested functions are answered or refused after a bounded number of operations."""
    text = "x"
    for _ in range(15):
        text = NESTED[name].replace("{}", text)
    function, plain, spent = as_function(text), Function.__call__, []

    def counted(self: Function, x: Any) -> Any:
        spent.append(sum(1 for _ in postorder(self._tree)) * np.size(x))
        return plain(self, x)

    monkeypatch.setattr(Function, "__call__", counted)
    with contextlib.suppress(InvalidProblem):
        function.breakpoints(-8.0, 8.0)
    assert 0 < sum(spent) <= _breakpoints.MAX_WORK


def test_a_search_that_is_too_long_says_so() -> None:
    text = "x"
    for _ in range(15):
        text = f"abs(sin(3*{text}))"
    with pytest.raises(InvalidProblem, match="simpler: nest fewer functions"):
        as_function(text).breakpoints(-8.0, 8.0)


ORDINARY = ["abs(sin(50*x))", "max(max(max(x, 1), 2*x), -x)", "1/(2 + cos(9*x))"]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_expressions_are_not_refused(text: str) -> None:
    assert np.all(np.isfinite(as_function(text).breakpoints(-8.0, 8.0)))


OVERFLOWING = ["tanh(exp(x**4))", "1/(1 + exp(-300*x))", "exp(exp(x))", "x**200"]


@pytest.mark.parametrize("text", OVERFLOWING)
def test_overflow_on_the_way_does_not_leak(text: str) -> None:
    """Warnings are errors in the tests: overflow is either harmless or refused."""
    as_function(text)(np.linspace(-8, 8, 101))
    with pytest.raises(InvalidProblem, match="finite"):
        gs.Problem(activation=text, teacher="sin", width=1.0, steps=[gs.Step(samples=1, rate=1)])


@pytest.mark.parametrize(
    ("teacher", "needle"),
    [
        ("x0 + x1", 'gs.MultiIndex("x0*x1", rank=2)'),
        ({"expression": "x0 + x2", "rank": 2}, "x0 and x1, so x2 needs a larger rank"),
        ({"expression": "x + x1", "rank": 2}, "its variables are x0 and x1, not x"),
        ({"expression": "x1 + x7", "rank": 3}, "x0, x1 and x2, so x7"),
    ],
)
def test_coordinates_of_a_teacher_are_explained(teacher: Any, needle: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Problem(activation="tanh", teacher=teacher, width=1.0)
    assert needle in str(caught.value)
