"""The one progress display: cells done, rate, time left and failures, on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from giantsteps.errors import InvalidProblem

#: Called with the number of cells that are done, that failed, and of all.
Progress: TypeAlias = Callable[[int, int, int], None]


@contextmanager
def shown(
    progress: Progress | bool | None, before: Callable[[], str | None] = str
) -> Iterator[Progress | None]:
    """The callable that is meant: True stands for a bar on the terminal, after a word before."""
    if progress is True:
        with progress_bar(before) as report:
            yield report
    elif progress is None or progress is False or callable(progress):
        yield progress or None
    else:
        raise InvalidProblem("progress", progress, "true or false, or a function")


@contextmanager
def progress_bar(before: Callable[[], str | None] = str) -> Iterator[Progress]:
    """``report(done, failed, total)``: a bar if standard error is a terminal, else silence."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.3g}/s" if task.speed else "–/s")

    console = Console(stderr=True)
    if console.is_terminal and (text := before()):
        console.print(text, highlight=False)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task("cells", total=None, failed="")

        def report(done: int, failed: int, total: int) -> None:
            text = f"[red]{failed} failed" if failed else ""
            progress.update(task, completed=done + failed, total=total, failed=text)

        yield report
