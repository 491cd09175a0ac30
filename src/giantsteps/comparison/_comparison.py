"""The result of a comparison: theory and simulation side by side, cell by cell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Answer, require, to_csv
from giantsteps.answers._export import plain
from giantsteps.answers._leaves import Record
from giantsteps.comparison._stats import (
    BEYOND,
    VERDICTS,
    Agreement,
    Estimate,
    Verdict,
    chance,
    combined_p_value,
)
from giantsteps.errors import NotCovered

if TYPE_CHECKING:
    import pandas as pd

    from giantsteps.displays import ComparisonDisplay
    from giantsteps.problem import Grid, Problem

__all__ = ["Comparison"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Comparison(Record):
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
        The answers of theory, one a size.
    refinable : bool
        Whether theory is that of the package, so that `plot` can ask it for more points.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> found = gs.compare(gs.Grid(problem, {"readout.penalty": [0.01, 0.1]}), d=50, seeds=3)
    >>> isinstance(found, Comparison), found.sizes, found.seeds, found.question
    (True, (50,), (0, 1, 2), 'risk')
    >>> found["gain"].verdict.shape, sorted(found.to_columns())[:3]
    ((2,), ['d', 'p_value', 'quantity'])
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
        return self.agreements[quantity]

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of what was compared."""
        return tuple(self.agreements)

    @cached_property
    def p_value(self) -> float:
        """Of all cells and quantities together: how surprising the gaps are if theory is right."""
        cells = [np.ravel(agreement.p_value) for agreement in self.agreements.values()]
        return combined_p_value(np.concatenate(cells))

    @cached_property
    def verdict(self) -> Verdict:
        """The worst verdict, with allowance for the number of cells.

        Of many cells some are beyond |t| = 3 by chance. The comparison as a whole disagrees
        where all gaps together are as surprising as |t| > 3 is in a single cell; else it is the
        worst of the other verdicts.
        """
        if self.p_value < chance(len(self.seeds)):
            return "disagree"
        found = {str(verdict) for a in self.agreements.values() for verdict in np.ravel(a.verdict)}
        return max((v for v in VERDICTS[:3] if v in found), key=VERDICTS.index, default="agree")

    @property
    def passed(self) -> bool:
        """Whether theory and simulation agree, at the largest size or in the trend over sizes."""
        return self.verdict in ("agree", "finite size")

    # Tables -----------------------------------------------------------------------------------

    def to_columns(self) -> dict[str, list[Any]]:
        """The tidy table as columns: one row for each cell, quantity and size."""
        rows = list(self._rows())
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _rows(self) -> Iterable[dict[str, Any]]:
        first = self.theory[0]
        labels = {dim: [plain(v) for v in values] for dim, values in first.coords.items()}
        for cell in np.ndindex(first.shape):
            where = {dim: labels[dim][index] for dim, index in zip(first.dims, cell)}
            for name, agreement in self.agreements.items():
                for d, estimate in zip(self.sizes, agreement.by_size):
                    row = where | {"quantity": name, "d": d} | _numbers(estimate, cell)
                    row["seeds"] = len(self.seeds)
                    if agreement.extrapolated is not None:
                        limit = _numbers(agreement.extrapolated, cell)
                        row["extrapolated"] = limit["simulation"]
                        row["extrapolated_standard_error"] = limit["standard_error"]
                    row["verdict"] = str(np.asarray(agreement.verdict)[cell])
                    yield row

    def to_frame(self) -> pd.DataFrame:
        """A tidy data frame: one row for each cell, quantity and size (needs pandas)."""
        return require("pandas", "to_frame()").DataFrame(self.to_columns())

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the tidy table as CSV, floats with all their digits."""
        to_csv(self.to_columns(), path)

    def plot(self, x: str | None = None, *, points: int = 50, **options: Any) -> ComparisonDisplay:
        """Draw theory as lines and simulation as markers along the path ``x`` (needs matplotlib).

        Parameters
        ----------
        x : str, optional
            Path of the horizontal axis, or ``"d"``; the first axis with numbers unless given.
        points : int
            Points of a line of theory, for which it is asked again; 0: those of the grid.
        **options
            For `giantsteps.displays.ComparisonDisplay.from_comparison`: ``quantity``, ``floor``,
            ``curve``, ``ax``, ``width``, …
        """
        from giantsteps.displays import ComparisonDisplay
        from giantsteps.displays._comparison import horizontal_axis

        x = horizontal_axis(self, x)
        if "curve" not in options and self.refinable and x != "d":
            options["curve"] = self._curve(x, points)
        return ComparisonDisplay.from_comparison(self, x=x, **options)

    def _curve(self, x: str, points: int) -> Answer | None:
        """Theory on a finer grid along ``x``; None where it does not cover what lies between."""
        from giantsteps import theory
        from giantsteps.problem import Grid

        assert isinstance(self.problem, Grid)
        coarse = self.theory[-1].coords[x]
        if points <= coarse.size:
            return None
        low, high = coarse.min(), coarse.max()
        space = np.geomspace if low > 0 and high / low >= 50 else np.linspace
        grid = Grid(self.problem.problem, self.problem.axes | {x: space(low, high, points)})
        try:
            answer: Answer = getattr(theory, self.question)(grid, d=self.theory[-1].d)
        except NotCovered:
            return None
        return answer

    # Display ----------------------------------------------------------------------------------

    def _summary(self) -> list[list[str]]:
        if not self.theory[0].shape:
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
    def notes(self) -> list[str]:
        """What to know of the verdict: chance, assumptions that are left, what would decide it."""
        notes = []
        if self.theory[0].shape:
            t = np.concatenate([np.ravel(a.largest.t) for a in self.agreements.values()])
            t = np.abs(t[~np.isnan(t)])
            beyond, expected = np.sum(t > BEYOND), t.size * chance(len(self.seeds))
            notes.append(
                f"{beyond} of {t.size} beyond |t| = {BEYOND:g}, {expected:.1f} expected by chance; "
                f"together p = {self.p_value:.2g}"
            )
        violated = dict.fromkeys(text for answer in self.theory for text in answer.violated)
        if violated:
            notes.append(f"theory is approximate here, it assumes: {'; '.join(violated)}")
        if self.verdict == "disagree" and len(self.sizes) == 1:
            (d,) = self.sizes
            notes.append(
                "one size does not tell a finite-size gap from an error: give several, such as "
                f"d = {d}, {2 * d}, {4 * d}"
            )
        if self.verdict == "unresolved":
            notes.append(f"about {self._seeds_to_resolve()} seeds, or a larger d, would resolve it")
        return notes

    def _seeds_to_resolve(self) -> int:
        """How many seeds bring the worst resolution down to its limit, to two digits."""
        worst = 1.0
        for agreement in self.agreements.values():
            at, beyond = agreement.largest, agreement.extrapolated
            wide = np.asarray(at.resolution)
            if beyond is not None:
                wide = np.where(np.abs(at.t) > BEYOND, beyond.resolution, wide)
            wide = wide[np.asarray(agreement.verdict) == "unresolved"]
            worst = max(worst, float(wide.max(initial=0.0)) / agreement.limit)
        return int(float(f"{worst**2 * len(self.seeds):.2g}"))

    def __repr__(self) -> str:
        rows = self._summary()
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join([self._title(), *(f"  {line}" for line in lines + self.notes)])

    def _repr_html_(self) -> str:
        head, *rows = self._summary()
        top = "".join(f"<th>{escape(name)}</th>" for name in head)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
        )
        return (
            f"<table><caption>{escape(self._title())}</caption>"
            f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
            + "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        )


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
        f"{row['theory']:.6g}",
        simulated,
        f"{row['t']:+.2f}",
        f"{100 * row['resolution']:.2g} %",
        row["verdict"],
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
        f"{100 * resolution.max(initial=0.0):.2g} %",
        *counts,
    ]
