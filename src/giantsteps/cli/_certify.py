"""``giantsteps certify``: the agreement matrix and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import DISAGREEMENT, OK
from ._output import progress_bar, table

if TYPE_CHECKING:
    from giantsteps.comparison.certify import Certificate

__all__ = ["command"]


@click.command(
    "certify",
    short_help="Run the agreement matrix and write a certificate.",
    epilog="""
    \b
    Examples
      giantsteps certify
      giantsteps certify --full -o certificate --store certificate/networks.jsonl
      giantsteps certify --again certificate/certificate.json
    """,
)
@click.option(
    "--short", "scale", flag_value="short", help="Small networks: half a minute on one core."
)
@click.option(
    "--full",
    "scale",
    flag_value="full",
    help="516 settings, 3 % are found in every equation: six minutes on 16 cores, three quarters "
    "of an hour on two.",
)
@click.option(
    "--again",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Simulate nothing: the networks of this certificate.json beside the theory as it is "
    "now. A minute or two, with the power of that certificate.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Folder of certificate.html and certificate.json; default: here.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the design.")
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that keeps the simulations; what was stopped goes on from there.",
)
@click.option("--workers", type=click.IntRange(1), help="Processes; default: one a core.")
def command(
    scale: str | None,
    again: Path | None,
    output: Path,
    seed: int,
    store: Path | None,
    workers: int | None,
) -> int:
    """Compare theory with simulation over settings of all kinds, and say where it fails.

    Settings are drawn from a seeded design: activations, teachers, proportions, rates and
    second layers, for every equation of the theory that a network can be asked. The report says
    of each how large an error would have been found. Without --short or --full it takes five
    minutes on two cores, and finds an error of 3 % in the main equations of risk and weights.

    The exit code is 3 if theory and simulation disagree where the theory claims to be exact.
    """
    from giantsteps.comparison.certify import certify, recertify

    processes = workers or _cores()
    with progress_bar("certifying") as report:
        certificate = (
            recertify(again, workers=processes, progress=report)
            if again is not None
            else certify(
                scale or "default", seed=seed, store=store, workers=processes, progress=report
            )
        )
    _show(certificate)
    for file in certificate.save(output):
        click.echo(f"  {file}")
    return OK if certificate.passed else DISAGREEMENT


def _cores() -> int:
    """How many this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _show(certificate: Certificate) -> None:
    groups = certificate.groups
    table(
        {
            "family": [group.name for group in groups],
            "settings": [len(group.findings) for group in groups],
            "left at d = ∞": [
                f"{100 * group.error:+.2f} ± {100 * group.standard_error:.2f} %" for group in groups
            ],
            "found from": [f"{100 * group.detectable:.1f} %" for group in groups],
            "p-value": [f"{group.p_value():.2g}" for group in groups],
            "KS": [f"{group.kolmogorov:.2g}" for group in groups],
            "verdict": ["passed" if group.passed else "failed" for group in groups],
        },
        f"certificate: {'passed' if certificate.passed else 'failed'}",
    )
    for line in certificate.exceptions:
        click.echo(f"  {line}")
