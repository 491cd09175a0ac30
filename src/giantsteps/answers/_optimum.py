"""Where the test error is smallest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import _export
from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf
from giantsteps.answers._readout import Risk


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Optimum(Answer):
    r"""The best values of some fields of a problem and the error that they reach.

    .. math:: x^* = \arg\min_{l \le x \le u} R(x)

    ======  =============  ========================================================================
    symbol  attribute      meaning
    ======  =============  ========================================================================
    x*      ``arguments``  the best values, path by path; with a budget also ``"readout.samples"``,
                           which takes the rest
    R       ``value``      the errors there; over a grid its ``problem`` is the grid that was asked
    l, u    ``sides``      −1 where x* sits on its lower bound, 1 on its upper bound, 0 inside
    ======  =============  ========================================================================

    References
    ----------
    theory §4, §5c.
    """

    arguments: Mapping[str, Leaf]
    value: Risk
    sides: Mapping[str, Leaf]

    _parts: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def at_bound(self) -> dict[str, bool | NDArray[np.bool_]]:
        """Whether x* sits on a bound, path by path: a wider interval may contain a better value."""
        sides = {path: np.asarray(side) != 0 for path, side in self.sides.items()}
        return {path: side if side.ndim else bool(side) for path, side in sides.items()}

    @property
    def best(self) -> Any:
        """The problem at x*; over a grid an object array of its shape."""
        if not self.shape:
            changes: dict[str, Any] = dict(self.arguments)
            problem: Any = self.problem
            if "steps" not in changes:
                return problem.replace(changes)
            count = int(changes.pop("steps"))  # the other fields are those of all steps together
            return problem.split_steps(1).replace(changes).split_steps(count)
        cells = np.empty(self.shape, dtype=object)
        for index in np.ndindex(*self.shape):
            here = {path: float(values[index]) for path, values in self.arguments.items()}  # type: ignore[index]
            cells[index] = self.problem[index].replace(here)  # type: ignore[index]
        return cells

    @property
    def one_batch(self) -> Any:
        """The alternative to a split budget: all samples for the step, and again for the readout.

        The problem with one batch of the whole budget that both the step and the readout use,
        ``Ridge(batch="previous")``; None without a budget, over a grid, or with several steps. It
        may beat every split; there is no theory for it, but :meth:`simulate_one_batch` measures by
        how much.
        """
        if self.shape or "readout.samples" not in self.arguments:
            return None
        best = self.best
        if len(best.steps) != 1:
            return None
        total = best.steps[0].samples + best.readout.samples
        changes = {"steps.0.samples": total, "readout.samples": total, "readout.batch": "previous"}
        return best.replace(changes)

    @property
    def note(self) -> str:
        """What the theory leaves out of a split budget; empty where nothing was split."""
        rival = self.one_batch
        if rival is None:
            return ""
        return (
            f"one batch of all {rival.readout.samples:g} d samples, used by the step and again by "
            "the readout, may beat every split; there is no theory for it"
        )

    def simulate_one_batch(self, d: int | None = None, seeds: int = 20, **options: Any) -> Any:
        """Networks with the best split against networks that use one batch twice.

        Parameters
        ----------
        d : int, optional
            Their dimension; by default that of the optimum.
        seeds : int
            Number of networks of each kind.
        **options
            Of `giantsteps.compare`: ``workers``, ``store``, ``device`` and others.
        """
        comparison = import_module("giantsteps.comparison")
        return comparison.against_one_batch(self, d, seeds, **options)

    def _summary(self) -> list[tuple[str, str]]:
        rows = [row for row in super()._summary() if not row[0].startswith("sides.")]
        for path, side in self.sides.items():
            count = np.count_nonzero(side)
            which = "a" if self.shape else "its lower" if np.less(side, 0) else "its upper"
            cells = f" in {count} of {np.size(side)} cells" if self.shape else ""
            if count:
                rows.append(
                    ("note", f"{path} is at {which} bound{cells}: a wider one may be better")
                )
        if self.note:
            rows.append(("note", f"{self.note}: simulate_one_batch(d) says by how much"))
        return rows

    def _variables(self) -> dict[str, _export.Variable]:
        return super()._variables() | self.value._variables()
