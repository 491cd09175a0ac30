"""Smooth functions smoothed by Gaussians, at the nodes of a table, by the trapezoidal rule.

For a function that is smooth on the scale of the spacing the rule converges exponentially: the
error of one spacing is about the square of that of twice the spacing. In units of s the nodes of
the rule and of the table are the same for all s, and so are the weights.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.gaussian._hermite import moments
from giantsteps.gaussian._quadrature import evaluate

if TYPE_CHECKING:
    from giantsteps.functions import Function

#: Nodes of a panel of width 2s: Gaussian smoothing on the scale s leaves nothing finer.
ORDER = 20
#: Standard deviations that the rule covers beyond a panel.
_REACH = 12
#: How often a spacing of s is halved at most.
_FINEST = 7
#: What twice the spacing may leave, relative to (E f²)^½, and f² φ at the ends to E f²
#: (or ‖f‖, if that is larger).
_COARSE, _NEGLIGIBLE = 1e-7, 1e-16


def table_nodes() -> np.ndarray:
    """Chebyshev nodes on [−1, 1]."""
    return np.asarray(np.cos((np.arange(ORDER) + 0.5) * np.pi / ORDER))


def smoothed_on_panels(function: Function, panel: np.ndarray, std: np.ndarray) -> np.ndarray | None:
    """The five moments of `Smoothed` at m = s(2p + 1 + x), x the nodes of the table.

    Parameters
    ----------
    function : Function
        f.
    panel : ndarray of int, shape (P,)
        p.
    std : ndarray of shape (P,)
        s > 0.

    Returns
    -------
    ndarray of shape (5, P, ORDER), or None where f is not smooth enough.
    """
    low = float((std * (2 * panel - _REACH)).min())
    high = float((std * (2 * panel + 2 + _REACH)).max())
    if function.breakpoints(low, high).size:
        return None
    halvings = np.maximum(1, np.ceil(np.log2(std)).astype(int) + _halvings(function))
    out = np.empty((5, len(panel), ORDER))
    for number in np.unique(halvings):
        some = np.flatnonzero(halvings == number)
        found = _panels(function, panel[some], std[some], int(number))
        if found is None:
            return None
        out[:, some] = found
    return out


@lru_cache(maxsize=256)
def _halvings(function: Function) -> int:
    """How often a spacing of one is halved for a function that is smoothed by N(0, 1)."""
    panel = np.arange(-3, 3)
    for number in range(1, _FINEST):
        if _panels(function, panel, np.ones(len(panel)), number) is not None:
            return number
    return _FINEST


def _panels(
    function: Function, panel: np.ndarray, std: np.ndarray, halvings: int
) -> np.ndarray | None:
    if halvings > _FINEST:
        return None
    u, weights, coarse = _weights(halvings)
    f = evaluate(function, std[:, None] * (2 * panel[:, None] + 1 + u))
    # What is left of f beside a line: its variance does not cancel.
    middle = f @ weights[1]
    line = middle[:, 0, None] + middle[:, 1, None] * u
    rest = f - line
    mean, linear, quadratic = np.moveaxis((rest @ weights[0]).reshape(-1, 3, ORDER), 1, 0)
    square = rest**2 @ weights[0][:, :ORDER]
    variance = np.maximum(square - mean**2 - linear**2, 0.0)
    mean = mean + middle[:, 0, None] + middle[:, 1, None] * table_nodes()
    linear = linear + middle[:, 1, None]
    second = variance + mean**2 + linear**2
    with np.errstate(over="ignore", invalid="ignore"):
        scale = second + moments(function).second_moment
        close = np.abs(f @ coarse - mean) <= _COARSE * np.sqrt(scale)
        close &= np.abs(f**2 @ coarse - second) <= _COARSE * scale
        ends = (_REACH**2 * np.exp(-0.5 * _REACH**2)) * f[:, [0, -1]] ** 2
        if not (close.all() and (ends <= _NEGLIGIBLE * scale.min(axis=1)[:, None]).all()):
            return None
    return np.stack([mean, linear, quadratic, second, variance])


@lru_cache(maxsize=8)
def _weights(halvings: int) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]:
    """Nodes u relative to the middle of a panel, in units of s; weights (U, 3·ORDER) of f, of z f
    and of (z² − 1)f/2, (U, 2) of the first two at the middle, and (U, ORDER) of f at every other
    node.
    """
    count = (1 + _REACH) * 2**halvings
    u = np.arange(-count, count + 1) / 2.0**halvings
    z = u[:, None] - np.append(table_nodes(), 0.0)
    weights = np.exp(-z * z / 2) / (np.sqrt(2 * np.pi) * 2.0**halvings)
    coarse = np.where((np.arange(len(u)) % 2 == 0)[:, None], 2 * weights[:, :ORDER], 0.0)
    parts = [weights, z * weights, (z * z - 1) / 2 * weights]
    at_nodes = np.concatenate([moment[:, :ORDER] for moment in parts], axis=1)
    at_middle = np.stack([moment[:, ORDER] for moment in parts[:2]], axis=1)
    return u, (at_nodes, at_middle), coarse
