"""Users' own callables as atoms: probed, with breakpoints declared or found, derivative checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import InvalidProblem
from ._numerical import numerical_derivative, scan
from ._tree import Atom, Call, Node, X


@dataclass(frozen=True)
class Own:
    """A user's callable as the value of an atom; what it returns gets the dtype of its argument."""

    callable: Callable[[Any], Any]

    def __call__(self, xp: Any, x: Any) -> Any:
        return xp.astype(xp.asarray(self.callable(x)), x.dtype, copy=False)


def user_atom(
    callable: Callable[[Any], Any],
    *,
    name: str | None,
    derivative: Callable[[Any], Any] | Node | None,
    kinks: Iterable[float] | None,
    jumps: Iterable[float] | None,
) -> Atom:
    """An atom for a callable; breakpoints that are not given are found.

    Found points are listed as jumps: whether the callable jumps there is seen from its values.
    """
    value = Own(callable)
    _probe(value, "callable", callable)
    corners = _points("kinks", kinks)
    jumping = _points("jumps", jumps)
    if kinks is None or jumps is None:
        jumping = tuple(sorted({*jumping, *scan(value, [*corners, *jumping])}))
    partials: tuple[Node, ...] = ()
    if derivative is not None and not isinstance(derivative, Node):
        slope = Own(derivative)
        _probe(slope, "derivative", derivative)
        breaks = tuple(sorted({*corners, *jumping}))
        partials = (Call(Atom(None, slope, jumps=breaks, user=True), (X,)),)
    elif derivative is not None:
        partials = (derivative,)
    return Atom(name, value, partials, kinks=corners, jumps=jumping, user=True)


def check_derivative(atom: Atom, slope: Callable[[np.ndarray], np.ndarray], given: object) -> None:
    """Compare a derivative that a user gave with the numerical one, away from breakpoints."""
    assert atom.value is not None
    breaks = (*atom.kinks, *atom.jumps)
    x = np.linspace(-3.97, 4.01, 173)
    for point in breaks:
        x = x[np.abs(x - point) > 1e-3]
    numerical = numerical_derivative(atom.value, breaks)
    with np.errstate(all="ignore"):
        expected, found = numerical(np, x), slope(x)
        wrong = np.abs(found - expected)
    sound = np.isfinite(expected)
    worst = int(np.argmax(np.where(sound, np.nan_to_num(wrong, nan=np.inf), -1.0)))
    if sound.any() and not wrong[worst] <= 1e-6 * np.max(np.abs(expected[sound])):
        raise InvalidProblem(
            "derivative",
            given,
            f"the derivative of the callable: at x = {x[worst]:.6g} it gives {found[worst]:.6g}, "
            f"a difference quotient {expected[worst]:.6g}",
        )


def _probe(value: Own, field: str, given: object) -> None:
    """Refuse what is not a function of arrays, elementwise and real."""
    x = np.linspace(-2.9, 3.1, 7)
    if not callable(value.callable):
        allowed = (
            "a function of arrays; a name or an expression is given as it is, without Function"
        )
        raise InvalidProblem(field, given, allowed)
    try:
        with np.errstate(all="ignore"):
            whole, part = np.asarray(value.callable(x)), np.asarray(value.callable(x[1:3]))
    except Exception as error:
        raise InvalidProblem(
            field,
            given,
            "a function that takes an array and returns an array "
            f"({type(error).__name__}: {error}); numpy.vectorize turns a scalar function into one",
        ) from error
    if whole.dtype.kind not in "fiub":
        raise InvalidProblem(field, given, f"real-valued, not {whole.dtype}")
    if not whole.shape:
        allowed = "a function that returns an array of the shape of its argument, not one number"
        raise InvalidProblem(field, given, allowed)
    if whole.shape != x.shape or not np.allclose(whole[1:3], part, rtol=1e-6, equal_nan=True):
        raise InvalidProblem(field, given, "elementwise: the value at x must depend on x alone")


def _points(field: str, points: Iterable[float] | None) -> tuple[float, ...]:
    if points is None:
        return ()
    try:
        values = sorted({float(point) for point in points})
    except (TypeError, ValueError) as error:
        raise InvalidProblem(field, points, "a list of finite numbers") from error
    if not np.isfinite(values).all():
        raise InvalidProblem(field, points, "a list of finite numbers")
    return tuple(values)
