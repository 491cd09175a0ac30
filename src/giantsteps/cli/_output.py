"""How answers leave the command line: a table for people, JSON for programs, CSV for both."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from giantsteps.answers import Answer

__all__ = ["emit", "output_options", "progress_bar", "table", "write_json"]

Command = TypeVar("Command", bound=Callable[..., Any])


def output_options(command: Command) -> Command:
    """``--json`` and ``--csv``."""
    for decorator in (
        click.option("--csv", "csv", type=click.Path(path_type=Path), help="Also write a CSV."),
        click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
    ):
        command = decorator(command)
    return command


def emit(answer: Answer, as_json: bool, csv: Path | None, title: str) -> None:
    """Print an answer, and write it where asked; the parts by degree go to JSON and CSV alone."""
    columns = answer.to_columns()
    if csv is not None:
        answer.to_csv(csv)
    if as_json:
        write_json(
            {
                "problem": answer.problem.to_data(),
                "d": answer.d,
                "source": answer.source,
                "exact": answer.exact,
                "violated": list(answer.violated),
                "references": list(answer.references),
                "values": columns,
            }
        )
        return
    where = answer.source if answer.d is None else f"{answer.source}, d = {answer.d}"
    shown = {k: v for k, v in columns.items() if k not in _IN_TITLE and "by_degree" not in k}
    table(shown, f"{title} ({where})")
    support = getattr(getattr(answer, "bulk", None), "support", ())
    for lower, upper in support:
        click.echo(f"bulk: [{lower:.6g}, {upper:.6g}]")
    for text in answer.violated:
        click.echo(f"approximate here, because the theory assumes: {text}")
    if answer.references:
        click.echo(f"references: {', '.join(answer.references)}")


#: Columns that the title of the table states for all rows.
_IN_TITLE = ("d", "source")


def table(columns: Mapping[str, list[Any]], title: str) -> None:
    """A plain table, numbers to six digits, nothing cut off; a single row stands upright."""
    rows = [[_cell(value) for value in row] for row in zip(*columns.values(), strict=True)]
    click.echo(title)
    if not rows:
        click.echo("  none")
    elif len(rows) == 1:
        longest = max(map(len, columns))
        for name, cell in zip(columns, rows[0], strict=True):
            click.echo(f"  {name:<{longest}}  {cell}")
    else:
        rows.insert(0, list(columns))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            click.echo("  " + "  ".join(map(str.rjust, row, widths)))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write_json(data: Any) -> None:
    """Print strict JSON: NaN as null, infinities as strings."""
    click.echo(json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """``report(done, total)``: a bar on standard error if it is a terminal, else silence."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
