"""Panels of Legendre nodes that stand for functions of one variable, by interpolation."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

_legendre = np.polynomial.legendre


@lru_cache(maxsize=32)
def _basis(order: int) -> tuple[NDArray, NDArray]:
    """Legendre nodes, and the matrix from values there to coefficients."""
    points = _legendre.leggauss(order)[0]
    return points, np.linalg.inv(_legendre.legvander(points, order - 1))


class PanelGrid:
    """Legendre nodes on each of the panels between given edges.

    A measure Σ_m w_m δ(t_m) is carried over to the nodes: `spread` gives the weights W_k with
    Σ_k W_k f(node_k) = Σ_m w_m f(t_m) for every f that is a polynomial on each panel.

    Parameters
    ----------
    edges : ndarray of shape (panels + 1,)
        Increasing. Points beyond the ends count as the ends.
    order : int
        Nodes of a panel.
    """

    def __init__(self, edges: NDArray, order: int) -> None:
        self.edges, self.order = edges, order
        self._points, self._inverse = _basis(order)

    @cached_property
    def nodes(self) -> NDArray:
        """All nodes, increasing, shape (K,)."""
        half = np.diff(self.edges)[:, None] / 2
        return (self.edges[:-1, None] + half * (1 + self._points)).ravel()

    def spread(self, points: NDArray, *weights: NDArray) -> list[NDArray]:
        """Weights of the nodes for measures on points (..., M), one array (..., K) a measure."""
        edges, order, panels = self.edges, self.order, len(self.edges) - 1
        panel = np.clip(np.searchsorted(edges, points, side="right") - 1, 0, panels - 1)
        local = np.clip(2 * (points - edges[panel]) / np.diff(edges)[panel] - 1, -1.0, 1.0).ravel()
        rows = int(np.prod(points.shape[:-1]))
        place = (np.arange(rows)[:, None] * panels + panel.reshape(rows, -1)).ravel()
        measures = [np.broadcast_to(w, points.shape).ravel() for w in weights]
        # Moments with Legendre polynomials on each panel, by their recursion; then to the nodes.
        found = np.empty((len(measures), order, rows * panels))
        before, current = np.zeros_like(local), np.ones_like(local)
        for j in range(order):
            for moment, measure in zip(found, measures):
                moment[j] = np.bincount(place, measure * current, rows * panels)
            before, current = current, ((2 * j + 1) * local * current - j * before) / (j + 1)
        spread = found.swapaxes(1, 2) @ self._inverse
        return [part.reshape(*points.shape[:-1], panels * order) for part in spread]
