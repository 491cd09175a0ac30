"""``theory.level_curves``: lines in a plane of two fields, solved and not read off a grid."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import require
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid
from giantsteps.theory.search.quantity import asked_of, level_of, values_of
from giantsteps.theory.search.walk import Bracket, roots
from giantsteps.theory.steps.build import Models
from giantsteps.types import FloatArray

#: A pair of neighbouring nodes of the grid, each an index (i, j).
Edge = tuple[tuple[int, int], tuple[int, int]]

#: Of the position along an edge of the grid, relative to its length.
_TOLERANCE = 1e-12


def level_curves(
    grid: Grid,
    quantity: str = "test",
    level: float | str = "floor",
    d: int | None = None,
    *,
    values: NDArray | None = None,
) -> tuple[FloatArray, ...]:
    """The curves q(x, y) = ℓ in the plane of two fields.

    The grid gives their topology (marching squares); every point where a curve passes an edge of
    the grid is then solved along this edge, so that points lie on the curve to 12 digits however
    coarse the grid is.

    Parameters
    ----------
    grid : Grid
        Over two numeric fields with increasing values.
    quantity, level
        As in `crossing`; ``"floor"`` is taken cell by cell.
    d : int, optional
        Input dimension. Sizes (samples, width) are taken as they are given: between whole sizes
        the curve jumps with them.
    values : ndarray, optional
        The quantity on the grid, if it is known already.

    Returns
    -------
    tuple of ndarray of shape (points, 2)
        One array per curve, closed curves ending where they begin; empty if the level is not met.

    References
    ----------
    theory §4.

    Examples
    --------
    Where a giant step beats every kernel, in the plane of its size and its batch:

    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=20, rate=3, exponent=0.5)],
    ...                      readout=gs.Ridge(samples=1, penalty=0.1),
    ...                      init=gs.Init(second_layer="constant"))
    >>> grid = gs.Grid(problem, {"steps.0.rate": [1.0, 3.0], "steps.0.samples": [2.0, 20.0]})
    >>> curve, = level_curves(grid)
    >>> curve.round(3)
    array([[ 1.907, 20.   ],
           [ 3.   ,  7.802]])
    """
    coords = _numeric_axes(grid)
    if values is None:
        values = values_of(quantity, list(grid), d).reshape(grid.shape)
    known = np.asarray(values, dtype=float)
    if known.shape != grid.shape:
        raise InvalidProblem("values", known.shape, f"of the grid's shape {grid.shape}")
    gaps = known - np.array([level_of(p, level, quantity) for p in grid]).reshape(grid.shape)
    curves = _chains(gaps)
    edges = list(dict.fromkeys(edge for curve in curves for edge in curve))

    def place(edge: Edge, t: float) -> FloatArray:
        start, end = (np.array([c[i] for c, i in zip(coords, node)]) for node in edge)
        return (1.0 - t) * start + t * end

    models: Models = {}

    def evaluate(numbers: list[int], ts: FloatArray) -> FloatArray:
        points = [place(edges[n], float(t)) for n, t in zip(numbers, ts.flat)]
        asked = [grid.problem.replace(dict(zip(grid.dims, map(float, p)))) for p in points]
        levels = np.array([level_of(p, level, quantity) for p in asked])
        return asked_of(quantity, asked, d, known=models).values - levels

    brackets = [
        Bracket(n, (0.0, 1.0), (float(gaps[a]), float(gaps[b]))) for n, (a, b) in enumerate(edges)
    ]
    solved = dict(zip(edges, roots(brackets, evaluate, _TOLERANCE)))
    found = [[place(edge, solved[edge]) for edge in curve] for curve in curves]
    kept = [[point for point in curve if np.all(np.isfinite(point))] for curve in found]
    return tuple(np.array(curve) for curve in kept if len(curve) > 1)


def _numeric_axes(grid: Grid) -> tuple[FloatArray, FloatArray]:
    axes = list(grid.coords.values()) if isinstance(grid, Grid) else []
    if len(axes) != 2 or any(axis.dtype.kind != "f" or len(axis) < 2 for axis in axes):
        raise InvalidProblem(
            "grid", grid, "a Grid over two numeric fields, two values or more each"
        )
    if any(np.any(np.diff(axis) <= 0) for axis in axes):
        raise InvalidProblem("grid", grid, "a Grid with increasing values")
    return axes[0], axes[1]


def _chains(gaps: FloatArray) -> list[list[Edge]]:
    """Curves of the zero level as lists of the edges that they pass, one after the other."""
    contourpy = require("contourpy", "level curves", "plot")
    lines = contourpy.contour_generator(z=np.ma.masked_invalid(gaps), corner_mask=False).lines(0.0)
    return [[_edge(gaps, place) for place in line[:, ::-1]] for line in lines]


def _edge(gaps: FloatArray, place: FloatArray) -> Edge:
    """The edge that has a point (row, column) on it: along the one that is no whole number."""
    start = np.rint(place).astype(int)
    axis = int(np.argmax(np.abs(place - start)))
    first = min(math.floor(place[axis]), gaps.shape[axis] - 2)
    start[axis] = first
    end = start.copy()
    end[axis] = first + 1
    return (int(start[0]), int(start[1])), (int(end[0]), int(end[1]))
