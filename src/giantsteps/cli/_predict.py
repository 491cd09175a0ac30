"""``giantsteps predict``: answers by theory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ._options import build, limit_option, problem_options, question_option
from ._output import check_file, emit, output_options


@click.command(
    "predict",
    epilog="""
    \b
    Examples
      giantsteps predict problem.toml
      giantsteps predict problem.toml -d 2000 --vary readout.samples=0.2:3:15
      giantsteps predict --activation tanh --teacher sin --width 1.25 \\
          --step samples=3,rate=3 --question weights
    """,
)
@problem_options
@question_option("theory")
@limit_option
@output_options
def command(
    question: str, d: int | None, as_json: bool, csv: Path | None, overwrite: bool, **stated: Any
) -> None:
    """Answer by theory, in the limit or, with -d, at a finite size.

    FILE is a problem in TOML; flags, --set and --vary change it. The risk is the error on
    noiseless labels, before ("initial") and after the steps.
    """
    from giantsteps.questions import question as registered

    target = build(**stated)
    check_file(csv, overwrite)
    asked = registered(question)
    if not asked.finite and d is not None:
        raise click.UsageError(f"theory answers '{question}' in the limit alone: leave out -d {d}")
    answer = asked.function("theory")(target, **({} if d is None else {"d": d}))
    emit(answer, as_json, csv, question)
