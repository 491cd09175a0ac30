"""Newton's method from a point, cell by cell, with plain rounds where it does not help (§5c)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from giantsteps.theory.solver.dyson import Dyson
from giantsteps.types import Array

TOLERANCE = 1e-13
#: At complex arguments, for densities.
_OF_DENSITY = 1e-10
#: The tolerance that rounding leaves to an ill-conditioned cell.
ENOUGH = 1e-11
#: Rounds in which the residual of a cell that goes on has halved, or its point has come down.
_PATIENCE = 25
#: A residual that falls so much in a round goes on with the same derivatives.
_QUICK = 0.1
#: Shares of a Newton step that are tried before a plain one.
_SHARES = (1.0, 0.5, 0.2)


class Point(Protocol):
    """Unknowns, 𝔤 last, and what equations make of them, cell by cell."""

    @property
    def parts(self) -> tuple[Array, ...]:
        """The unknowns."""

    @property
    def image(self) -> tuple[Array, ...]:
        """What the equations make of all but 𝔤; the last of them falls on its way from above."""

    @property
    def dyson(self) -> Dyson:
        """The Dyson equation of the bulk."""

    @property
    def gap(self) -> Array:
        """Relative distance from the image."""

    @property
    def inside(self) -> Array:
        """Whether the unknowns are positive, or, at complex arguments, in the upper half-plane."""

    @property
    def move(self) -> Callable[..., Self]:
        """Makes of unknowns the same equations there."""

    def take(self, cells: Array) -> Self:
        """Some of the cells."""

    def newton(self, by: Self | None) -> tuple[Array, ...]:
        """What solves the linearised equations, with the derivatives of a point nearby."""


P = TypeVar("P", bound=Point)


class Found(NamedTuple, Generic[P]):
    """The best of the points of each cell: its unknowns and residual, the rounds that a cell has
    gone and the last of all, and how many derivatives were taken; and the point itself, if it is
    the last one of all cells.
    """

    parts: tuple[Array, ...]
    residual: Array
    rounds: Array
    last: int
    derived: int
    point: P | None


@np.errstate(all="ignore")  # a cell whose numbers leave the range has no finite residual
def iterate(current: P, rounds: int, warm_up: int) -> Found[P]:
    """Newton's method from a point, after so many plain rounds."""
    parts = [np.array(part) for part in current.parts]
    cells, at_complex = len(parts[0]), np.iscomplexobj(parts[0])
    residual, taken = np.full(cells, np.inf), np.zeros(cells, dtype=int)
    active = np.arange(cells)
    tolerance = _OF_DENSITY if at_complex else TOLERANCE
    marks, since, last = np.full(cells, np.inf), np.zeros(cells, dtype=int), parts[-2].copy()
    # Near a start at complex λ_s cells go on with derivatives of an earlier round, if all gain.
    nearby = at_complex and not warm_up
    by, before, going = None, np.full(cells, np.inf), np.ones(cells, dtype=bool)
    count = derived = 0
    for count in range(rounds):
        gap = current.gap
        better = (gap < residual[active]) & going
        residual[active[better]] = gap[better]
        taken[active] = count
        for part, new in zip(parts, current.parts):
            part[active[better]] = new[better]
        # Converged, or as close as rounding allows: the last step did not help.
        keep = ~((gap <= tolerance) | (~better & (residual[active] <= ENOUGH)))
        halved = residual[active] < 0.5 * marks[active]
        marks[active[halved]] = residual[active[halved]]
        down = np.all((current.parts[-2] <= last[active]).real, axis=1)  # on its way from above
        since[active[halved | down]] = count
        last[active] = current.parts[-2]
        keep &= (count - since[active] <= _PATIENCE) & (np.isfinite(gap) | (count == 0)) & going
        if not keep.any():
            whole = len(active) == cells and better.all() and np.all(residual <= ENOUGH)
            return Found(tuple(parts), residual, taken, count, derived, current if whole else None)
        if by is None or not np.all(gap[keep] <= _QUICK * before[keep]):
            if not keep.all():
                active, gap = active[keep], gap[keep]
                current, keep = current.take(keep), keep[keep]
            by = current if nearby else None
            derived += len(active)
        before, going = gap, keep
        current = _step(current, count < warm_up, by)
    return Found(tuple(parts), residual, taken, count, derived, None)


def _step(current: P, plain: bool, by: P | None) -> P:
    """A Newton step where it helps, shortened if need be, and a plain step elsewhere; with the
    derivatives of an earlier point, if there is one.
    """
    *here, active = current.parts
    image = (*current.image, 0.5 * (active + current.dyson.image))
    if plain:
        return current.move(*image)
    goal = current.newton(by)
    bold = current.move(*goal)
    good = _helps(current, bold)
    if good.all():
        return bold
    chosen = [part.copy() for part in image]
    waiting = np.ones(len(active), dtype=bool)
    for share in _SHARES:
        if share < 1:
            bold = current.move(*(a + share * (b - a) for a, b in zip((*here, active), goal)))
            good = _helps(current, bold)
        good &= waiting
        for part, new in zip(chosen, bold.parts):
            part[good] = new[good]
        waiting &= ~good
        if not waiting.any():
            break
    return current.move(*chosen)


def _helps(current: P, bold: P) -> Array:
    """Whether a step stays in the cone and comes closer to the solution.

    At complex λ_s the residual may rise on the way, and to stay in the half-plane is enough.
    """
    if np.iscomplexobj(bold.parts[0]):
        return np.asarray(bold.inside & np.isfinite(bold.gap))
    closer = bold.gap < current.gap
    if not closer.all():
        closer |= _descends(current, bold)
    return np.asarray(bold.inside & closer)


def _descends(current: P, bold: P) -> Array:
    """Whether the step went down and stays above the solution, on its way from above."""
    old, new = current.parts[-2], bold.parts[-2]
    return np.all((new <= old) & (bold.image[-1] <= new), axis=1)
