"""How answers leave the command line: a table for people, JSON for programs, CSV for both."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from giantsteps.answers import Answer

Command = TypeVar("Command", bound=Callable[..., Any])

#: Endings of a drawing.
DRAWINGS = (".png", ".pdf", ".svg")

#: The type of a file or folder.
PATH = click.Path(path_type=Path)


def options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    """Several options as one decorator, in the order of the help."""

    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def folder_option(what: str) -> Callable[[Command], Command]:
    """``-o`` of a command that writes several files."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, file_okay=False),
        default=Path("."),
        help=f"Folder for {what}; default: the current folder.",
    )


overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace output files that exist."
)
output_options = options(
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table."),
    click.option("--csv", type=PATH, help="Also write the values to a CSV file."),
    overwrite_option,
)


# Before the work ------------------------------------------------------------------------------


def check_file(path: Path | None, overwrite: bool, *endings: str) -> None:
    """Refuse an output that could not be written, or would replace a file unasked."""
    if path is None:
        return
    given = [other for other in click.get_current_context().params.values() if path == other]
    if len(given) > 1:
        raise click.UsageError(f"'{path}' is given twice: each file needs a name of its own")
    if str(path) == "-":
        raise click.UsageError("'-' is no file: give it a name; --json prints all values")
    if endings and path.suffix.lower() not in endings:
        raise click.UsageError(f"'{path}' must end in {', '.join(endings)}")
    if path.is_dir():
        raise click.UsageError(f"'{path}' is a folder, not a file")
    folder = path.parent
    if not folder.is_dir():
        raise click.UsageError(f"there is no folder '{folder}' for '{path.name}': create it first")
    exists = path.exists()
    if exists and not overwrite:
        if all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr)):
            click.confirm(f"'{path}' exists. Replace it?", abort=True, err=True)
        else:
            raise click.UsageError(f"'{path}' exists: add --overwrite, or choose another name")
    try:
        with open(path, "ab"):  # what permissions say is not all: a file system may be read-only
            pass
        if not exists:
            path.unlink()
    except OSError as error:
        raise click.UsageError(f"'{path}' cannot be written: {error.strerror}") from None


def check_drawing(path: Path, overwrite: bool, what: str = "--output") -> None:
    """Refuse a drawing that could not be made."""
    from giantsteps.answers import require

    require("matplotlib", what, "plot")
    check_file(path, overwrite, *DRAWINGS)


def check_folder(folder: Path, names: list[str], overwrite: bool) -> None:
    """The same for files of a folder, which is made by the one who writes there."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            check_file(folder / name, overwrite)
    except OSError as error:
        raise click.UsageError(f"cannot create the folder '{folder}': {error.strerror}") from None
    finally:
        for place in missing:
            if place.is_dir():
                place.rmdir()


def exclusive(**flags: object) -> None:
    """Refuse flags that contradict each other."""
    given = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} cannot be combined: give one of them")


# Answers --------------------------------------------------------------------------------------


def emit(answer: Answer, as_json: bool, csv: Path | None, title: str) -> None:
    """Print an answer, and write it where asked; the parts by degree go to JSON and CSV alone."""
    with ExitStack() as files:  # written even if nobody reads what is printed, as after "| head"
        if csv is not None:
            files.callback(answer.to_csv, csv)
        _print(answer, as_json, title)


def _print(answer: Answer, as_json: bool, title: str) -> None:
    columns = answer.to_columns()
    if as_json:
        write_json(
            {
                "problem": answer.problem.to_data(),
                "d": answer.d,
                "source": answer.source,
                "exact": answer.exact,
                "violated": list(answer.violated),
                "evidence": answer.evidence,
                "references": list(answer.references),
                "values": columns,
            }
        )
        return
    where = answer.source if answer.d is None else f"{answer.source}, d = {answer.d}"
    shown = {k: v for k, v in columns.items() if k not in _IN_TITLE and "by_degree" not in k}
    if hasattr(answer, "spikes") and not any(shown.values()):
        click.echo(f"{title} ({where})\n  no spike: all values lie in the bulk")
    else:
        table(shown, f"{title} ({where})")
    support = getattr(getattr(answer, "bulk", None), "support", ())
    for lower, upper in support:
        click.echo(f"bulk: [{lower:.6g}, {upper:.6g}]")
    for text in answer.violated:
        click.echo(f"the theory is approximate here, because it assumes: {text}")
    if answer.evidence:
        click.echo(f"evidence: {answer.evidence}")
    if answer.references:
        click.echo(f"references: {', '.join(answer.references)}")


#: Columns that the title of the table states for all rows.
_IN_TITLE = ("d", "source")


def table(columns: Mapping[str, list[Any]], title: str) -> None:
    """A table, numbers to six digits, nothing cut off; a single row stands upright."""
    from rich.console import Console
    from rich.table import Table

    rows = [[_cell(value) for value in row] for row in zip(*columns.values(), strict=True)]
    click.echo(title)
    if not rows:
        click.echo("  none")
        return
    upright = len(rows) == 1
    drawn = Table(box=None, show_header=not upright, pad_edge=True, padding=(0, 1), highlight=False)
    if upright:
        drawn.add_column(no_wrap=True)
        drawn.add_column(no_wrap=True)
        rows = [[name, cell] for name, cell in zip(columns, rows[0], strict=True)]
    else:
        for name, values in columns.items():
            text = any(isinstance(value, str) for value in values)
            drawn.add_column(name, justify="left" if text else "right", no_wrap=True)
    for row in rows:
        drawn.add_row(*row)
    console = Console(width=10_000, markup=False, highlight=False, emoji=False)
    with console.capture() as printed:
        console.print(drawn)
    for line in printed.get().splitlines():
        click.echo(line.rstrip())


def _cell(value: Any) -> str:
    if value is None or value == "" or value != value:
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
