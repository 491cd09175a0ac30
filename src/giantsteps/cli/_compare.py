"""``giantsteps compare``: theory and simulation side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import DISAGREEMENT
from ._options import build, device_option, problem_options, question_option
from ._output import output_options, progress_bar, table, write_json

__all__ = ["command"]

#: Column of the comparison → heading of the table; the axes of a grid stand before them.
SHOWN = {
    "quantity": "quantity",
    "d": "d",
    "theory": "theory",
    "simulation": "simulation",
    "standard_error": "± se",
    "t": "t",
    "resolution": "resolution",
    "verdict": "verdict",
}


@click.command(
    "compare",
    short_help="Put theory and simulation side by side, with a verdict.",
    epilog="""
    \b
    Examples
      giantsteps compare problem.toml -d 500 --seeds 20
      giantsteps compare problem.toml -d 400 --seeds 10 \\
          --vary readout.samples=0.5:3:6 -o curve.png --csv curve.csv
      giantsteps compare problem.toml -d 250,500,1000 --quantity test
    """,
)
@problem_options
@click.option(
    "-d",
    "--dimension",
    "sizes",
    required=True,
    metavar="D[,D...]",
    help="Input dimension; several show whether a gap shrinks with d.",
)
@click.option("--seeds", type=int, default=20, show_default=True, help="How many networks.")
@question_option("theory", "simulation")
@click.option(
    "--quantity",
    "quantities",
    multiple=True,
    metavar="NAME",
    help="What to compare, such as test, train, initial.test, gain; repeatable.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Draw the comparison along the first --vary (or d): .png, .pdf or .svg.",
)
@device_option
@output_options
def command(
    sizes: str,
    seeds: int,
    question: str,
    quantities: tuple[str, ...],
    output: Path | None,
    device: str | None,
    as_json: bool,
    csv: Path | None,
    **stated: Any,
) -> int:
    """Simulate several networks and compare their mean with theory, in standard errors.

    Verdicts: agree (|t| ≤ 3 and resolved to 2 %, overlaps to 5 %), unresolved (too few seeds or
    too small a d to tell), finite size (the gap shrinks with d), disagree. The exit code is 3 if
    theory and simulation disagree.
    """
    target = build(**stated)
    from giantsteps import compare

    with progress_bar("simulating") as report:
        comparison = compare(
            target,
            d=_sizes(sizes),
            seeds=seeds,
            question=question,
            quantities=quantities or None,
            progress=report,
            device=device,
        )
    if csv is not None:
        comparison.to_csv(csv)
    if output is not None:
        comparison.plot().save(output)
    columns = comparison.to_columns()
    if as_json:
        write_json(
            {
                "problem": target.to_data(),
                "question": question,
                "verdict": comparison.verdict,
                "seeds": len(comparison.seeds),
                "values": columns,
            }
        )
    else:
        axes = {name: name for name in getattr(target, "dims", ())}
        shown = {heading: columns[name] for name, heading in (axes | SHOWN).items()}
        table(shown, f"{question}: {comparison.verdict}")
        for note in comparison.notes:
            click.echo(note)
    return DISAGREEMENT if comparison.verdict == "disagree" else 0


def _sizes(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"'{text}' is not a whole number or a list such as 250,500"
        ) from None
