"""Composite Gauss–Legendre panels that split themselves until a function is resolved.

A panel [a, b] carries the n-point Gauss–Legendre rule. It is *resolved* for an integrand q when
the panel's own rule and the rules of its two halves agree on

    ∫_a^b q(t) P_j(t) dt,   j = 0, …, J   (P_j: Legendre polynomials of the panel),

that is, on the integral of q against anything that varies slowly on the panel. Panels that
disagree are halved, so that a kink or a jump that nobody declared costs one panel a generation
and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

#: Nodes and weights of one panel, on [-1, 1].
ORDER = 24
NODES, WEIGHTS = np.polynomial.legendre.leggauss(ORDER)

#: Degree of the polynomials against which a panel is tested.
DEGREE = 12

#: Halvings before a point is called singular: 2**-100 is far below any spacing of doubles
#: but at 0, where an integrable singularity may need it.
MAX_DEPTH = 100

_OWN = np.polynomial.legendre.legvander(NODES, DEGREE) * WEIGHTS[:, None]
_LOWER = np.polynomial.legendre.legvander((NODES - 1) / 2, DEGREE) * WEIGHTS[:, None] / 2
_UPPER = np.polynomial.legendre.legvander((NODES + 1) / 2, DEGREE) * WEIGHTS[:, None] / 2


@dataclass(frozen=True)
class Panels:
    """Panels sorted from left to right."""

    #: (panels,): ends of each panel.
    left: np.ndarray
    right: np.ndarray
    values: np.ndarray  # (integrands, panels, ORDER): the integrands at the nodes of each panel
    #: (panels,): false where the integrand is not finite, singular, or varies too fast.
    resolved: np.ndarray


def edges_of(lower: float, upper: float, width: float, points: np.ndarray) -> np.ndarray:
    """Edges of equal panels of at most `width` on [lower, upper], split at `points` too."""
    count = max(1, int(np.ceil((upper - lower) / width - 1e-9)))
    inside = points[(points > lower) & (points < upper)]
    return np.unique(np.concatenate([np.linspace(lower, upper, count + 1), inside]))


@lru_cache(maxsize=32)
def _legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(order)


def legendre_panels(edges: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss–Legendre nodes and weights between edges (…, E), of so many nodes a panel, on one last
    axis."""
    x, w = _legendre(order)
    half = np.diff(edges, axis=-1)[..., None] / 2
    shape = (*edges.shape[:-1], -1)
    return (edges[..., :-1, None] + half * (1 + x)).reshape(shape), (half * w).reshape(shape)


def normal_panels(edges: np.ndarray, order: int) -> tuple[np.ndarray, np.ndarray]:
    """The same for z ~ N(0, 1) between the first and the last edge: weights sum to one."""
    nodes, lengths = legendre_panels(edges, order)
    weights = lengths * np.exp(-nodes * nodes / 2)
    return nodes, weights / weights.sum(axis=-1, keepdims=True)


def panel_nodes(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Gauss–Legendre nodes of each panel, shape (panels, ORDER)."""
    half = (right - left)[:, None] / 2
    return left[:, None] + half * (1 + NODES)


def refine(
    evaluate: Callable[[np.ndarray], np.ndarray],
    left: np.ndarray,
    right: np.ndarray,
    scale: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    max_panels: int,
) -> Panels:
    """Halve panels until each is resolved.

    * ``evaluate``: nodes (panels, ORDER) -> integrands (integrands, panels, ORDER).
    * ``left``, ``right``: (panels,). The panels to begin with.
    * ``scale``: integrands on the first panels -> (integrands, panels): what `tolerance` is
      relative to.
    * ``tolerance``: largest disagreement of ∫ q P_j between a panel and its halves, relative to the
      scale.
    * ``max_panels``: more panels than this in one generation: the integrand varies too fast.
    """
    values = evaluate(panel_nodes(left, right))
    allowed = tolerance * scale(values)
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    for depth in range(MAX_DEPTH + 1):
        finite = np.isfinite(values).all(axis=(0, 2))
        hopeless = depth == MAX_DEPTH or finite.sum() > max_panels
        if hopeless or not finite.all():
            lost = np.ones_like(finite) if hopeless else ~finite
            kept.append((left[lost], right[lost], values[:, lost], np.zeros(lost.sum(), bool)))
            left, right, values = left[~lost], right[~lost], values[:, ~lost]
            allowed = allowed[:, ~lost]
        if not left.size:
            break
        middle = left + (right - left) / 2
        lower, upper = evaluate(panel_nodes(left, middle)), evaluate(panel_nodes(middle, right))
        with np.errstate(invalid="ignore", over="ignore"):
            defect = np.abs(values @ _OWN - lower @ _LOWER - upper @ _UPPER).max(axis=-1)
            done = (defect * (right - left) / 2 <= allowed).all(axis=0)
        kept.append((left[done], right[done], values[:, done], np.ones(done.sum(), bool)))
        left, right = (
            np.concatenate([left[~done], middle[~done]]),
            np.concatenate([middle[~done], right[~done]]),
        )
        values = np.concatenate([lower[:, ~done], upper[:, ~done]], axis=1)
        allowed = np.tile(allowed[:, ~done], 2)
    all_left, all_right, all_values, resolved = (
        np.concatenate(parts, axis=axis) for parts, axis in zip(zip(*kept), (0, 0, 1, 0))
    )
    order = np.argsort(all_left, kind="stable")
    return Panels(all_left[order], all_right[order], all_values[:, order], resolved[order])
