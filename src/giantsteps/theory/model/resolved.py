"""How much the spikes and the edge of a spectrum change from one resolution to the next (§5d)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from giantsteps.answers import Solution, Spike
from giantsteps.errors import NotConverged
from giantsteps.theory.solver.work import Work

#: Changes of spikes and of the edge from one resolution to the next that are good enough, those
#: that are no answer at the finest, and how many resolutions there are beyond the first. The edge
#: of a bulk with tails, up to the largest of as many draws as there are, converges more slowly.
GOOD, BAD, _MOST = (1e-6, 1e-4), (1e-3, 0.05), 2
#: Operations of a resolution, over those of the one before.
_GROWS = 1.7
#: What rounding does to edges, and to overlaps through differences of quadratic forms.
ROUNDING = 1e-9

T = TypeVar("T")


class Resolved(NamedTuple):
    """The edge of a bulk and the spikes above it at one resolution."""

    edge: float
    spikes: tuple[Spike, ...]


def changes(old: Resolved, new: Resolved) -> tuple[float, float]:
    """Largest change of a spike, in its relative value and its overlaps; and of the edge.

    Overlaps are squared cosines, whose changes are taken as they are. A spike without a partner has
    come out of the bulk, or gone into it: the other one was at its edge, with overlaps zero.
    """
    values, overlaps = [0.0], [0.0]
    for spike, other in pairs(old, new):
        values.append(relative(float(other.value), float(spike.value)))
        for name in {*spike.overlaps, *other.overlaps}:
            apart = float(spike.overlaps.get(name, 0.0)) - float(other.overlaps.get(name, 0.0))
            overlaps.append(abs(apart))
    return max(*values, *overlaps), relative(old.edge, new.edge)


def pairs(old: Resolved, new: Resolved) -> list[tuple[Spike, Spike]]:
    """Each spike with the one at the other resolution, the larger ones first."""
    count = max(len(old.spikes), len(new.spikes))
    first, second = (
        [*one.spikes, *[Spike(value=one.edge)] * (count - len(one.spikes))] for one in (old, new)
    )
    return list(zip(first, second))


def relative(old: float, new: float) -> float:
    """The relative change of a number."""
    return 0.0 if old == new else abs(old - new) / max(abs(new), 1e-300)


def resolve(
    what: str,
    at: Callable[[int, T | None], T],
    seen: Callable[[T], Resolved],
    work: Work,
    bad: float = BAD[1],
) -> tuple[T, Resolved, Solution]:
    """The first of the spectra whose spikes and edge no longer change, and by how much they do.

    * ``what``: for messages.
    * ``at``: the spectrum so many resolutions beyond the first, with the one before it.
    * ``seen``: edge and spikes of a spectrum.
    * ``work``: counts the operations; where a finer resolution would take too many, the last one
      is the finest.
    * ``bad``: the change of the edge that is no answer at the finest resolution.

    Raises
    ------
    NotConverged
        Where spikes still change by too much at the finest resolution.
    """
    used = at(0, None)
    known = seen(used)
    for more in range(1, _MOST + 1):
        before = work.spent
        finer = at(more, used)
        following = seen(finer)
        spikes, edge = changes(known, following)
        affordable = work.allows(_GROWS * (work.spent - before))
        limits = GOOD if more < _MOST and affordable else (BAD[0], bad)
        if spikes <= limits[0] and edge <= limits[1]:
            error = max(spikes, edge, ROUNDING)
            return used, known, Solution(status="converged", error=error)
        if more < _MOST and not affordable:
            raise work.too_much(f"{what}, whose numbers change by {max(spikes, edge):.1g}")
        used, known = finer, following
    raise NotConverged(
        what, max(spikes, edge), _MOST + 1, "another rate or width, or smoother functions"
    )
