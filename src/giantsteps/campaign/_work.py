"""What a worker does: ask one question about some problems, and keep the values."""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from giantsteps import simulation
from giantsteps.answers import Answer, Source
from giantsteps.campaign._provenance import provenance
from giantsteps.campaign._values import Outcome, read_answer
from giantsteps.problem import Grid, Problem
from giantsteps.questions import Question
from giantsteps.threads import capped


@dataclass(frozen=True, kw_only=True)
class Task:
    """A question to be answered: about a problem or a block of them, by theory (seeds
    ``(None,)``) or for networks with these seeds, also before their steps if ``initial``. The
    ``threads`` of the linear algebra decide, with the machine, the last bits."""

    question: Question
    source: Source
    target: Problem | Grid
    d: int | None
    seeds: tuple[int | None, ...]
    options: Mapping[str, Any]
    initial: bool = False
    threads: int = 1

    @property
    def size(self) -> int:
        """Number of cells."""
        block = 1 if isinstance(self.target, Problem) else self.target.size
        return block * len(self.seeds) * (1 + self.initial)


def work(task: Task) -> list[Outcome]:
    """Answer a task: for each seed the cells of the block, row-major; then before the steps.

    A task that raises has one outcome, the error, however many cells it has.
    """
    torch = task.options.get("device") not in (None, "cpu")
    if torch:
        import_module("torch")  # its threads are capped below, if it is there by then
    with capped(task.threads):
        origin = provenance(task.threads, torch)
        started = time.perf_counter()
        try:
            answers = _answers(task)
            values = [(cell, _notes(one)) for one in answers for cell in read_answer(one)]
        except Exception as error:
            return [failure(error, time.perf_counter() - started, task)]
    seconds = (time.perf_counter() - started) / task.size
    return [
        Outcome(
            numbers=numbers,
            arrays=arrays,
            notes=notes,
            seconds=seconds,
            finished=time.time(),
            provenance=origin,
        )
        for (numbers, arrays), notes in values
    ]


def _answers(task: Task) -> list[Any]:
    if task.source != "simulation":
        where = {} if task.d is None else {"d": task.d}
        return [task.question.function("theory")(task.target, **where, **task.options)]
    assert task.d is not None
    options = dict(task.options)
    if task.initial and "initial" in task.question.options:
        options["initial"] = True  # in the same pass over the samples
    after = simulate(task.question, task.target, task.d, task.seeds, **options)
    return [*after, *(one.initial for one in after)] if task.initial else after


def simulate(
    question: Question, problem: Problem | Grid, d: int, seeds: Sequence[Any], **options: Any
) -> list[Any]:
    """Networks that differ in the seed alone, and what the question finds in each of them."""
    package, _, name = str(question.simulation).partition(":")
    if package == "giantsteps.simulation":
        return list(simulation.batch(name, problem, d, seeds, **question.fixed, **options))
    ask = question.function("simulation")
    return [ask(problem, d=d, seed=seed, **options) for seed in seeds]


#: What errors without a message mean.
_SILENT: dict[type[BaseException], str] = {MemoryError: "no memory was left for it"}


def failure(error: BaseException, seconds: float, task: Task) -> Outcome:
    """The outcome of a cell whose computation ended with an error."""
    reason = str(error) or _SILENT.get(type(error), "no reason given")
    return Outcome(
        error=f"{type(error).__name__}: {reason}",
        traceback="".join(traceback.format_exception(error)),
        seconds=seconds,
        finished=time.time(),
        provenance=provenance(task.threads, False),
    )


def _notes(answer: Any) -> str | None:
    """What a theory says of itself; a simulation has nothing to say."""
    if not isinstance(answer, Answer) or answer.source == "simulation":
        return None
    return json.dumps({"violated": answer.violated, "references": answer.references})
