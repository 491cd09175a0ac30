"""``giantsteps certify``: the agreement matrix and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import DISAGREEMENT, OK
from ._output import progress_bar, table

if TYPE_CHECKING:
    from giantsteps.comparison.certify import Group

__all__ = ["command"]


@click.command(
    "certify",
    short_help="Run the agreement matrix and write a certificate.",
    epilog="""
    \b
    Examples
      giantsteps certify
      giantsteps certify --full -o certificate --workers 8
    """,
)
@click.option("--short", "scale", flag_value="short", help="Seconds, small networks (default).")
@click.option("--full", "scale", flag_value="full", help="More than 300 settings: minutes.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Folder of certificate.html and certificate.json; default: here.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the design.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
def command(scale: str | None, output: Path, seed: int, workers: int) -> int:
    """Compare theory with simulation over settings of all kinds, and say where it fails.

    Settings are drawn from a seeded design: activations, teachers, proportions, rates and
    second layers. The exit code is 3 if theory and simulation disagree where the theory claims
    to be exact.
    """
    from giantsteps.comparison.certify import certify

    with progress_bar("certifying") as report:
        certificate = certify(scale or "short", seed=seed, workers=workers, progress=report)
    groups = certificate.groups
    table(
        {
            "family": [group.name for group in groups],
            "settings": [len(group.findings) for group in groups],
            "KS p": [group.kolmogorov for group in groups],
            "shift p": [group.shift for group in groups],
            "power": [group.power for group in groups],
            "verdict": [_verdict(group) for group in groups],
        },
        f"certificate: {'passed' if certificate.passed else 'failed'}",
    )
    for line in certificate.exceptions:
        click.echo(f"  {line}")
    for file in certificate.save(output):
        click.echo(f"  {file}")
    return OK if certificate.passed else DISAGREEMENT


def _verdict(group: Group) -> str:
    if not group.findings:
        return "claimed nowhere"
    return "passed" if group.passed else "failed"
