"""``giantsteps simulate``: answers by finite networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ._options import build, device_option, dimension_option, problem_options, question_option
from ._output import check_file, emit, output_options


@click.command(
    "simulate",
    epilog="""
    \b
    Examples
      giantsteps simulate problem.toml -d 1000
      giantsteps simulate problem.toml -d 1000 --seed 3 --question weights
      giantsteps simulate problem.toml -d 500 --vary readout.samples=0.2:3:15 --csv curve.csv
    """,
)
@problem_options
@question_option("simulation")
@dimension_option(required=True, help="Input dimension.")
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Random seed; the same seed gives the same network.",
)
@device_option
@output_options
def command(
    question: str,
    d: int,
    seed: int,
    device: str | None,
    as_json: bool,
    csv: Path | None,
    overwrite: bool,
    **stated: Any,
) -> None:
    """Draw one network of input dimension d, take its steps, and measure it.

    standard_error is that of the test points, for this one network; for error bars over networks
    use 'giantsteps compare'.
    """
    from giantsteps.questions import question as registered

    check_file(csv, overwrite)
    ask = registered(question).function("simulation")
    answer = ask(build(**stated), d=d, seed=seed, device=device)
    emit(answer, as_json, csv, question)
