"""Expectations under N(0, 1) that know where a function has kinks and jumps.

E g(z) = ∫ g(t) φ(t) dt by composite Gauss–Legendre panels, split at the kinks and jumps of the
functions inside g, halved until those functions are resolved (so that products of them are),
over a range that reaches until f² φ is negligible. Gauss–Hermite would be wrong in the third
digit for ReLU and in the second for sign (theory §0).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.gaussian._panels import WEIGHTS, Panels, edges_of, panel_nodes, refine

#: Error of a panel relative to ‖f‖ = (E f²)^½; the sum over panels stays below 1e-12.
TOLERANCE = 1e-13
#: The rule covers at least |z| ≤ REACH and never more than |z| ≤ FARTHEST (φ(38.6) underflows).
REACH, FARTHEST = 14.0, 37.0
#: f² φ on the outermost unit of the range relative to E f², and what is let pass at FARTHEST.
NEGLIGIBLE, NEGLIGIBLE_AT_LAST = 1e-27, 1e-14
#: Standard deviation of a constant function relative to its norm.
CONSTANT = 1e-12
#: E f² of a function that is not zero; below, squares underflow.
SMALLEST = 1e-280
MAX_PANELS = 20_000


class Piecewise(Protocol):
    """What quadrature needs of a function, hashable: its values and where it is not smooth."""

    def __call__(self, x: Any, /) -> Any: ...

    def breakpoints(self, lower: float, upper: float, /) -> np.ndarray: ...


@dataclass(frozen=True, eq=False)
class Rule:
    """Nodes and weights of an expectation: E g ≈ Σ_i weights_i g(nodes_i)."""

    nodes: np.ndarray  # (K,) or (K, r)
    weights: np.ndarray  # (K,): include the density; they sum to one up to rounding

    def __post_init__(self) -> None:
        self.nodes.setflags(write=False)
        self.weights.setflags(write=False)

    def mean(self, values: np.ndarray) -> np.ndarray:
        """E of values given at the nodes, their last axis.

        Summed row by row, not by a matrix product, so that a row does not depend on the others.
        """
        return np.multiply(values, self.weights, order="C").sum(axis=-1)

    def pruned(self, threshold: float = 1e-18) -> Rule:
        """Without the nodes whose weight is at most `threshold`."""
        keep = self.weights > threshold
        return Rule(self.nodes[keep], self.weights[keep])


def gauss_rule(
    *functions: Piecewise,
    breakpoints: Iterable[float] = (),
    width: float = 1.0,
    reach: float = REACH,
    tolerance: float = TOLERANCE,
) -> Rule:
    """A rule for E g(z), z ~ N(0, 1), exact to rounding for products of the given functions.

    E g = ∫ g φ dt over [-L, L]; each panel is resolved for f φ and f² φ of every function f,
    and L ≥ reach grows until f² φ is negligible (L = 25 for exp(x²/5)).

    * ``functions``: the functions whose kinks, jumps and steep places matter. None: a rule for
      smooth g.
    * ``breakpoints``: more places to split at.
    * ``width``: widest panel. 1 serves Hermite polynomials to degree 100; wider panels give a lean
      rule for the outer loop of a multiple integral.
    * ``reach``: least L.
    * ``tolerance``: error of a panel relative to ‖f‖.

    Raises
    ------
    InvalidProblem
        If a function is complex, not finite where the Gaussian has weight, has no finite second
        moment, or cannot be resolved.

    References: theory §0.
    """
    if not 0 < reach <= FARTHEST:
        raise InvalidProblem("reach", reach, f"in (0, {FARTHEST:g}]")
    if not (width > 0 and tolerance > 0):
        raise InvalidProblem("width, tolerance", (width, tolerance), "positive")
    points = tuple(sorted(float(point) for point in breakpoints))
    return _gauss_rule(functions, points, float(width), float(reach), float(tolerance))


@lru_cache(maxsize=1024)
def _gauss_rule(
    functions: tuple[Piecewise, ...],
    breakpoints: tuple[float, ...],
    width: float,
    reach: float,
    tolerance: float,
) -> Rule:
    for function in functions:
        reach = max(reach, _reach(function, reach))
    kinks = [np.asarray(breakpoints, float)]
    kinks += [np.asarray(function.breakpoints(-reach, reach), float) for function in functions]
    # 0 is an edge, so that the rule of a function without other kinks is symmetric.
    edges = np.union1d(
        edges_of(-reach, 0.0, width, np.concatenate(kinks)),
        edges_of(0.0, reach, width, np.concatenate(kinks)),
    )
    left, right = edges[:-1], edges[1:]
    for function in functions:
        panels = _resolve(function, left, right, tolerance)
        left, right = panels.left, panels.right
    nodes = panel_nodes(left, right)
    weights = density(nodes) * WEIGHTS * (right - left)[:, None] / 2
    return Rule(nodes.ravel(), weights.ravel())


def _resolve(function: Piecewise, left: np.ndarray, right: np.ndarray, tolerance: float) -> Panels:
    """Halve the panels until f φ and f² φ are resolved, relative to ‖f‖ and ‖f‖²."""

    def integrands(nodes: np.ndarray) -> np.ndarray:
        values = evaluate(function, nodes)
        with np.errstate(over="ignore", invalid="ignore"):
            rooted = values * np.exp(-(nodes**2) / 4) / (2 * np.pi) ** 0.25
            return np.stack([values * density(nodes), rooted**2])

    def scale(values: np.ndarray) -> np.ndarray:
        square = np.nansum((values[1] @ WEIGHTS) * (right - left) / 2)
        return np.broadcast_to(np.array([[np.sqrt(square)], [square]]), values.shape[:2])

    panels = refine(integrands, left, right, scale, tolerance, MAX_PANELS)
    if not panels.resolved.all():
        raise _unresolved(function, panels)
    return panels


def _unresolved(function: Piecewise, panels: Panels) -> InvalidProblem:
    bad = np.flatnonzero(~panels.resolved)
    infinite = bad[~np.isfinite(panels.values[:, bad]).all(axis=(0, 2))]
    if infinite.size:
        where = panels.left[infinite[np.argmin(np.abs(panels.left[infinite]))]]
        return _refusal(
            function, f"finite wherever the Gaussian has weight; it is not near {where:.6g}"
        )
    where = panels.left[bad[0]]
    if np.sum(panels.right[bad] - panels.left[bad]) < 0.1:
        return _refusal(
            function,
            f"a function with a finite second moment E f(z)^2, z ~ N(0, 1); near {where:.6g} it "
            "has a singularity that is not square integrable",
        )
    return _refusal(
        function, f"a function that quadrature can resolve; near {where:.6g} it varies too fast"
    )


def _refusal(function: Piecewise, allowed: str) -> InvalidProblem:
    return InvalidProblem("function", function, allowed)


def _reach(function: Piecewise, reach: float) -> float:
    """Range outside which f² φ is negligible relative to E f²: reach, or as many units more."""
    last = int(np.ceil(reach))
    units = np.arange(last)
    shares = _shares(function, units)
    share, total = shares[-1], float(shares.sum())
    while share > NEGLIGIBLE * total and last < FARTHEST:
        share = _shares(function, np.array([last]))[0]
        total, last = total + share, last + 1
    if not np.isfinite(total) or share > NEGLIGIBLE_AT_LAST * total:
        raise _refusal(
            function,
            "a function with a finite second moment E f(z)^2, z ~ N(0, 1), within reach of double "
            f"precision; this one grows too fast: f^2 times the density is not negligible at |z| = "
            f"{last} (exp(x**2/5) passes, exp(x**2/4) has no second moment)",
        )
    if total < SMALLEST and evaluate(function, np.linspace(-reach, reach, 100)).any():
        raise _refusal(function, "a function whose square does not underflow; multiply it")
    return float(last)


def _shares(function: Piecewise, units: np.ndarray) -> np.ndarray:
    """∫ f² φ over unit ≤ |z| ≤ unit + 1, without overflow where f is large and φ small."""
    nodes = panel_nodes(np.concatenate([-1 - units, units]), np.concatenate([-units, 1 + units]))
    values = evaluate(function, nodes)
    bad = nodes[~np.isfinite(values)]
    if bad.size:
        where = bad[np.argmin(np.abs(bad))]
        raise _refusal(
            function,
            "a real function that is finite wherever the Gaussian has weight, with a finite second "
            f"moment; it is not finite at {where:.6g}",
        )
    with np.errstate(over="ignore"):
        squares = (values * np.exp(-(nodes**2) / 4)) ** 2 @ WEIGHTS / np.sqrt(8 * np.pi)
    return squares.reshape(2, -1).sum(axis=0)


def density(nodes: np.ndarray) -> np.ndarray:
    """φ(t) = exp(−t²/2)/√(2π)."""
    return np.exp(-(nodes**2) / 2) / np.sqrt(2 * np.pi)


def evaluate(function: Callable[[np.ndarray], np.ndarray], nodes: np.ndarray) -> np.ndarray:
    """f at the nodes, in double precision; overflow gives inf, not a warning."""
    with np.errstate(all="ignore"):
        values = np.asarray(function(nodes))
    if np.iscomplexobj(values):
        raise InvalidProblem("function", function, "a function with real values, not complex ones")
    if values.shape != nodes.shape:
        values = np.broadcast_to(values, nodes.shape)
    return np.array(values, dtype=float)


def expectation(
    integrand: Piecewise | Callable[[np.ndarray], np.ndarray],
    *functions: Piecewise,
    breakpoints: Iterable[float] = (),
) -> float:
    """E g(z) for z ~ N(0, 1).

    Parameters
    ----------
    integrand : callable
        g, evaluated on an array of nodes.
    *functions : Function
        The functions that g is made of: their kinks and steep places are those of g. If there are
        none, g must be a `Function` itself.
    breakpoints : iterable of float
        Further kinks and jumps of g.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> from giantsteps.functions import as_function
    >>> relu, sine = as_function("relu"), as_function("sin")
    >>> round(expectation(relu) * float(np.sqrt(2 * np.pi)), 12)
    1.0
    >>> round(expectation(lambda z: relu(z) * sine(z), relu, sine) * float(np.exp(0.5)), 12)
    0.5
    """
    if not functions:
        if not hasattr(integrand, "breakpoints"):
            raise InvalidProblem(
                "functions", functions, "the functions that the integrand is made of"
            )
        functions = (integrand,)
    rule = gauss_rule(*functions, breakpoints=breakpoints)
    return float(rule.mean(evaluate(integrand, rule.nodes)))


def check_function(function: Piecewise, field: str = "function") -> None:
    """Refuse a function that cannot be an activation or a link: theory §0 needs E f² < ∞.

    * ``function``: f.
    * ``field``: the field that the error names.

    Raises
    ------
    InvalidProblem
        With the given field, if f is complex, not finite where the Gaussian has weight, has no
        finite second moment, varies too fast to be integrated, or is constant.
    """
    try:
        rule = gauss_rule(function)
        values = evaluate(function, rule.nodes)
    except InvalidProblem as error:
        raise InvalidProblem(field, function, error.allowed) from None
    mean, square = rule.mean(values), rule.mean(values**2)
    if rule.mean((values - mean) ** 2) <= CONSTANT**2 * square:
        raise InvalidProblem(
            field, function, "a function that is not constant where the Gaussian has weight"
        )
