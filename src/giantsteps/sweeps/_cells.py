"""The cells of a sweep: what is asked of theory and of networks, by source and question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from giantsteps.answers import Source
from giantsteps.campaign import Cells
from giantsteps.questions import QUESTIONS, Question

if TYPE_CHECKING:
    from giantsteps.sweeps._sweep import Sweep


def cells_of(sweep: Sweep) -> list[Cells]:
    """Theory first, then networks before their steps and after them."""
    return [
        part
        for source in sweep.sources
        for question in sweep.questions
        for part in _asked(sweep, source, QUESTIONS[question])
    ]


def _asked(sweep: Sweep, source: Source, question: Question) -> list[Cells]:
    options, grid = sweep.questions[question.name], sweep.grid
    if source == "simulation":
        if "simulation" not in question.sides:
            return []
        steps = bool(grid.problem.steps) or "steps" in grid.axes
        return Cells.of_networks(
            grid,
            question,
            sweep.d,
            sweep.seeds,
            {"dtype": sweep.dtype, **sweep.options, **options},
            initial=sweep.initial and question.initial and steps,
            share=sweep.share,
        )
    if "theory" not in question.sides or (source == "finite width" and not question.finite):
        return []
    known = question.takes("theory")
    if any(name not in known and not question.options[name].detail for name in options):
        return []  # it would answer another question
    return [
        Cells(
            grid=grid,
            question=question,
            source=source,
            sizes=(None,) if source == "limit" else sweep.d,
            seeds=(None,),
            options={name: value for name, value in options.items() if name in known},
        )
    ]
