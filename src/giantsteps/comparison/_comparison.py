"""The result of a comparison: theory and simulation side by side, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Answer, Record, Table, of_rows, plain
from giantsteps.campaign import (
    VERDICTS,
    Agreement,
    Estimate,
    Verdict,
    holm,
    html_table,
    seeds_to_resolve,
)
from giantsteps.comparison._quantities import Quantity
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.problem import suggest

if TYPE_CHECKING:
    from giantsteps.displays import ComparisonDisplay
    from giantsteps.problem import Grid, Problem


#: More seeds than this are no advice.
_MANY = 10_000.0


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(Table, Record):
    """Theory and simulation of one question, with a verdict for each quantity and cell.

    ``comparison["test"]`` is the `Agreement` of that quantity.

    Attributes
    ----------
    problem : Problem or Grid
        What was asked.
    question : str
        ``"risk"``, ``"weights"``, …
    sizes : tuple of int
        Input dimensions d, increasing.
    seeds : tuple of int
        Seeds of the simulations, the same at every size.
    agreements : mapping of str to Agreement
        By quantity.
    theory : tuple of Answer
        The answers of theory, one per size.
    refinable : bool
        Whether theory is that of the package, so that `plot` can ask it for more points.
    """

    problem: Problem | Grid
    question: str
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    agreements: Mapping[str, Agreement]
    theory: tuple[Answer, ...]
    refinable: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "agreements", MappingProxyType(dict(self.agreements)))

    def __getitem__(self, quantity: str) -> Agreement:
        if quantity not in self.agreements:
            raise InvalidProblem("quantity", quantity, suggest(quantity, self.quantities))
        return self.agreements[quantity]

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of what was compared."""
        return tuple(self.agreements)

    @cached_property
    def p_value(self) -> float:
        """The p-value of the largest gap, with allowance for the number of comparisons."""
        cells = [np.ravel(agreement.p_value) for agreement in self.agreements.values()]
        adjusted = holm(np.concatenate(cells))
        return float(np.nanmin(adjusted)) if np.isfinite(adjusted).any() else 1.0

    @cached_property
    def verdict(self) -> Verdict:
        """The worst of all verdicts; each of them allows for the number of cells."""
        found = {str(verdict) for a in self.agreements.values() for verdict in np.ravel(a.verdict)}
        return max((v for v in VERDICTS if v in found), key=VERDICTS.index, default="agree")

    @property
    def passed(self) -> bool:
        """Whether theory and simulation agree, at the largest size or in the trend over sizes."""
        return self.verdict in ("agree", "finite size")

    # Tables -----------------------------------------------------------------------------------

    def to_columns(self) -> dict[str, list[Any]]:
        """The tidy table as columns: one row per cell, quantity, entry of it, and size."""
        return of_rows(list(self._rows()))

    def _rows(self) -> Iterable[dict[str, Any]]:
        first = self.theory[0]
        labels = {dim: [plain(v) for v in values] for dim, values in first.coords.items()}
        for cell in np.ndindex(first.shape):
            where = {dim: labels[dim][index] for dim, index in zip(first.dims, cell)}
            for name, agreement in self.agreements.items():
                axes = Quantity(name).axes(first)
                for entry in np.ndindex(tuple(len(points) for points in axes.values())):
                    at = {dim: float(axes[dim][n]) for dim, n in zip(axes, entry)}
                    for d, estimate in zip(self.sizes, agreement.by_size):
                        place = (*cell, *entry)
                        row = where | {"quantity": name} | at | {"d": d} | _numbers(estimate, place)
                        if agreement.extrapolated is not None:
                            limit = _numbers(agreement.extrapolated, place)
                            row["extrapolated"] = limit["simulation"]
                            row["extrapolated_standard_error"] = limit["standard_error"]
                        row["verdict"] = str(np.asarray(agreement.verdict)[place])
                        yield row

    def plot(self, x: str | None = None, *, points: int = 50, **options: Any) -> ComparisonDisplay:
        """Draw theory as lines and simulation as markers along the path ``x`` (needs matplotlib).

        Parameters
        ----------
        x : str, optional
            Path of the horizontal axis, ``"d"``, or an axis of the quantity such as the ``"x"``
            of a learned function; by default the first axis with numbers.
        points : int
            Number of points of a line of theory, which are computed anew; 0: those of the grid.
        **options
            For `giantsteps.displays.ComparisonDisplay.from_comparison`: ``quantity``, ``floor``,
            ``curve``, ``ax``, ``width``, …
        """
        from giantsteps.displays import ComparisonDisplay, horizontal_axis

        x = horizontal_axis(self, x, options.get("quantity"))
        if "curve" not in options and self.refinable and x in self.theory[-1].dims:
            options["curve"] = self._curves(x, points)
        return ComparisonDisplay.from_comparison(self, x=x, **options)

    def _curves(self, x: str, points: int) -> list[Answer] | None:
        """Theory on a finer grid along ``x``, one answer per size; None where it does not cover
        what lies between."""
        from giantsteps.problem import Grid
        from giantsteps.questions import question

        assert isinstance(self.problem, Grid)
        coarse = self.theory[-1].coords[x]
        if points <= coarse.size:
            return None
        low, high = coarse.min(), coarse.max()
        space = np.geomspace if low > 0 and high / low >= 50 else np.linspace
        grid = Grid(self.problem.problem, self.problem.axes | {x: space(low, high, points)})
        ask = question(self.question).function("theory")
        try:
            return [ask(grid, d=answer.d) for answer in self.theory]
        except NotCovered:
            return None

    # Display ----------------------------------------------------------------------------------

    def _summary(self) -> list[list[str]]:
        if not self.theory[0].shape and not any(np.shape(a.p_value) for a in self._judged):
            head = ["quantity", "d", "theory", "simulation", "t", "resolution", "verdict"]
            return [head, *(_cells(row) for row in self._rows())]
        head = ["quantity", "cells", "largest |t|", "worst resolution", *VERDICTS]
        return [head, *(_totals(name, a) for name, a in self.agreements.items())]

    def _title(self) -> str:
        sizes = ", ".join(map(str, self.sizes))
        return (
            f"Comparison of {self.question}, d = {sizes}, {len(self.seeds)} seeds: {self.verdict}"
        )

    @property
    def _judged(self) -> list[Agreement]:
        return list(self.agreements.values())

    @property
    def notes(self) -> list[str]:
        """Remarks on the verdict: chance, assumptions that do not hold, what would resolve it."""
        notes = []
        t = np.abs(np.concatenate([np.ravel(a.largest.t) for a in self._judged]))
        count = int(np.sum(~np.isnan(t)))
        if count > len(self._judged):
            notes.append(
                f"largest |t| = {np.nanmax(t):.2f} among {count} numbers (p = {self.p_value:.2g} "
                "with allowance for their number)"
            )
        simulated = [name for name in self.agreements if Quantity(name).tangent]
        if simulated:
            notes.append(f"simulated only, without theory or verdict: {', '.join(simulated)}")
        violated = dict.fromkeys(text for answer in self.theory for text in answer.violated)
        if violated:
            notes.append(
                f"the theory is approximate here, because it assumes: {'; '.join(violated)}"
            )
        if self.verdict == "disagree" and len(self.sizes) == 1:
            (d,) = self.sizes
            notes.append(
                "one size does not tell a finite-size gap from an error: give several, such as "
                f"d = {d}, {2 * d}, {4 * d}"
            )
        needed = {name: seeds_to_resolve(a) for name, a in self.agreements.items()}
        small = [name for name, seeds in needed.items() if seeds > _MANY]
        seeds = max((seeds for seeds in needed.values() if seeds <= _MANY), default=0.0)
        if self.verdict == "unresolved" and seeds > len(self.seeds):
            notes.append(
                f"about {float(f'{seeds:.2g}'):.0f} seeds, or a larger d, would resolve it"
            )
        if self.verdict == "unresolved" and small:
            notes.append(f"more than {_MANY:,.0f} seeds would resolve: {', '.join(small)}")
        return notes

    def __repr__(self) -> str:
        rows = self._summary()
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self._title(), *(f"  {line}" for line in lines + self.notes)])

    def _repr_html_(self) -> str:
        head, *rows = self._summary()
        return html_table(self._title(), dict(zip(head, zip(*rows))), self.notes)


def _numbers(estimate: Estimate, cell: tuple[int, ...]) -> dict[str, float]:
    names = {"mean": "simulation"}
    return {
        names.get(name, name): float(np.asarray(value)[cell])
        for name, value in estimate._fields().items()
    }


def _cells(row: dict[str, Any]) -> list[str]:
    simulated = f"{row['simulation']:.6g} ± {row['standard_error']:.1g}"
    return [
        row["quantity"],
        str(row["d"]),
        "–" if np.isnan(row["theory"]) else f"{row['theory']:.6g}",
        simulated,
        "–" if np.isnan(row["t"]) else f"{row['t']:+.2f}",
        _percent(row["resolution"]),
        row["verdict"] or "–",
    ]


def _totals(name: str, agreement: Agreement) -> list[str]:
    verdicts: NDArray[Any] = np.asarray(agreement.verdict)
    compared = verdicts != ""
    counts = [str(int(np.sum(verdicts == verdict))) for verdict in VERDICTS]
    t = np.abs(np.asarray(agreement.largest.t))[compared]
    resolution = np.asarray(agreement.largest.resolution)[compared]
    return [
        name,
        str(int(compared.sum())),
        f"{t.max(initial=0.0):.2f}",
        _percent(np.max(resolution, initial=0.0, where=~np.isnan(resolution))),
        *counts,
    ]


def _percent(value: float) -> str:
    """A resolution; that of zero is none."""
    return "–" if np.isnan(value) else f"{float(f'{100 * value:.2g}'):g} %"
