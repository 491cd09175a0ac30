"""``giantsteps compare``: theory and simulation side by side."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import DISAGREEMENT
from ._options import (
    build,
    campaign_options,
    device_option,
    problem_options,
    question_option,
    store_option,
)
from ._output import PATH, check_drawing, check_file, output_options, table, write_json

if TYPE_CHECKING:
    from giantsteps.comparison import Comparison
    from giantsteps.problem import Grid, Problem

#: Column of the comparison → heading of the table; the axes of a grid stand before them.
SHOWN = {
    "quantity": "quantity",
    "x": "x",
    "d": "d",
    "theory": "theory",
    "simulation": "simulation",
    "standard_error": "± se",
    "t": "t",
    "resolution": "resolution",
    "verdict": "verdict",
}
#: Operations below which it is not worth starting workers.
SHORT = 5e10


@click.command(
    "compare",
    epilog="""
    \b
    Examples
      giantsteps compare problem.toml -d 500 --seeds 20
      giantsteps compare problem.toml -d 400 --seeds 10 \\
          --vary readout.samples=0.5:3:6 -o curve.png --csv curve.csv
      giantsteps compare problem.toml -d 250,500,1000 --quantity test \\
          --workers 4 --store networks.sqlite
    """,
)
@problem_options
@click.option(
    "-d",
    "--dimension",
    "sizes",
    required=True,
    multiple=True,
    metavar="D[,D...]",
    help="Input dimension; several show whether a gap shrinks with d.",
)
@click.option(
    "--seeds", type=int, default=20, show_default=True, help="Number of networks per point."
)
@question_option("theory", "simulation")
@click.option(
    "--quantity",
    "quantities",
    multiple=True,
    metavar="NAME",
    help="Number to compare, such as test, train, initial.test, gain or spikes.0.value; "
    "tangent.test is the test error with the tangent kernel, simulated only; repeatable.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="Draw the comparison along the first --vary (or d): .png, .pdf or .svg.",
)
@store_option
@campaign_options
@device_option
@click.option("--dry-run", is_flag=True, help="Only estimate what the simulation would take.")
@output_options
def command(
    sizes: tuple[str, ...],
    seeds: int,
    question: str,
    quantities: tuple[str, ...],
    device: str | None,
    output: Path | None,
    store: Path | None,
    workers: int | None,
    time_limit: float | None,
    dry_run: bool,
    as_json: bool,
    csv: Path | None,
    overwrite: bool,
    **stated: Any,
) -> int:
    """Simulate several networks and compare their mean with theory, in standard errors.

    Verdicts: agree (chance explains the gap, resolved to 2 %, overlaps to 5 %), unresolved (too few
    seeds or too small a d to tell), finite size (the gap shrinks with d, or is of a size expected
    of finite networks in overlaps and degrees of freedom), disagree. If the theory is right, the
    chance that any part of the comparison disagrees is at most 1 %. The exit code is 3 if theory
    and simulation disagree.
    """
    target, dimensions = build(**stated), _sizes(",".join(sizes))
    check_file(csv, overwrite)
    _check_drawing(output, overwrite, target, dimensions, question)
    from giantsteps import campaign, compare
    from giantsteps.comparison import comparison_cells

    quantities = tuple(name for names in quantities for name in names.split(","))
    asked: Any = {"seeds": seeds, "question": question, "device": device}
    cells = comparison_cells(target, dimensions, quantities=quantities, **asked)
    if workers is None:
        short = campaign.operations(cells) < SHORT
        workers = 1 if short else None if campaign.gpus(device) else campaign.processors()
    if dry_run:
        known: dict[str, str] = {}
        if store is not None and store.exists():
            with campaign.Store(store) as opened:
                known = opened.status()
        count = workers or len(campaign.gpus(device))
        click.echo(campaign.in_words(*campaign.forecast(cells, known), count), err=True)
        return 0
    comparison = compare(
        target,
        d=dimensions,
        quantities=quantities or None,
        workers=workers,
        store=store,
        time_limit=time_limit,
        progress=True,
        **asked,
    )
    with ExitStack() as files:
        if output is not None:
            files.callback(lambda: comparison.plot().save(output))
        if csv is not None:
            files.callback(comparison.to_csv, csv)
        _print(comparison, target, as_json)
    return DISAGREEMENT if comparison.verdict == "disagree" else 0


def _print(comparison: Comparison, target: Problem | Grid, as_json: bool) -> None:
    columns = comparison.to_columns()
    if as_json:
        write_json(
            {
                "problem": target.to_data(),
                "question": comparison.question,
                "verdict": comparison.verdict,
                "seeds": len(comparison.seeds),
                "values": columns,
            }
        )
        return
    axes = {name: name for name in getattr(target, "dims", ())}
    shown = {heading: columns[name] for name, heading in (axes | SHOWN).items() if name in columns}
    table(shown, f"{comparison.question}: {comparison.verdict}")
    for note in comparison.notes:
        click.echo(note)


def _check_drawing(
    output: Path | None, overwrite: bool, target: Any, sizes: list[int], question: str
) -> None:
    if output is None:
        return
    check_drawing(output, overwrite)
    coords = getattr(target, "coords", {})
    numeric = any(values.dtype.kind == "f" for values in coords.values())
    if not numeric and len(sizes) == 1 and question != "learned_function":
        raise click.UsageError(
            "--output needs an axis to draw along: --vary a field with numbers, or give several -d"
        )


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is not a whole number or a list such as 250,500", param_hint="-d"
        ) from None
