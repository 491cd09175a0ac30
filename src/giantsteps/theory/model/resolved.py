"""How much the spikes and the edge of a spectrum change from one resolution to the next (§5d)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from giantsteps.answers import Solution, Spike
from giantsteps.errors import NotConverged

#: Relative change of a spike above which there is no answer at that resolution, and how many finer
#: ones are tried. An edge is never refused: that of a bulk with tails is the one up to the largest
#: of as many draws as there are, differs from one network to the next, and converges slowly.
BAD, _MOST = 0.05, 2
#: What rounding does to edges, and to overlaps through differences of quadratic forms.
ROUNDING = 1e-9

T = TypeVar("T")


class Resolved(NamedTuple):
    """The edge of a bulk and the spikes above it at one resolution."""

    edge: float
    spikes: tuple[Spike, ...]


def changes(old: Resolved, new: Resolved) -> tuple[float, float]:
    """Largest relative change of a spike's value; and of anything: values, edge and overlaps.

    Overlaps are squared cosines, whose changes are taken as they are. A spike that the bulk has
    swallowed is at its edge, with overlaps zero.
    """
    values, overlaps = [0.0], [0.0]
    for before, after in zip(old.spikes, new.spikes, strict=True):
        values.append(relative(float(before.value), float(after.value)))
        for name, overlap in before.overlaps.items():
            overlaps.append(abs(float(overlap) - float(after.overlaps.get(name, 0.0))))
    return max(values), max(*values, *overlaps, relative(old.edge, new.edge))


def relative(old: float, new: float) -> float:
    """The relative change of a number."""
    return 0.0 if old == new else abs(old - new) / max(abs(new), 1e-300)


def resolve(
    what: str,
    at: Callable[[int], T],
    seen: Callable[[T], Resolved],
    again: Callable[[T, T], Resolved],
) -> tuple[T, Resolved, Solution]:
    """The first of the spectra whose spikes and edge no longer change, and by how much they do.

    Parameters
    ----------
    what : str
        For messages.
    at : callable
        The spectrum so many resolutions beyond the first, in ascending order.
    seen : callable
        Edge and all spikes of a spectrum.
    again : callable
        Edge and spikes of a spectrum, each next to one of the spectrum before.

    Raises
    ------
    NotConverged
        Where spikes still change by too much at the finest resolution.
    """
    used = at(0)
    known = seen(used)
    for more in range(1, _MOST + 1):
        following = at(more)
        values, change = changes(known, again(following, used))
        if values <= BAD:
            error = max(change, ROUNDING)
            return used, known, Solution(status="converged", error=error)
        if more < _MOST:
            used, known = following, seen(following)
    raise NotConverged(what, values, _MOST + 1, "another rate or width, or smoother functions")
