"""``giantsteps certify``: the agreement matrix and its report."""

from __future__ import annotations

from pathlib import Path

import click

from . import DISAGREEMENT, OK
from ._options import campaign_options, device_option, store_option
from ._output import check_folder, exclusive, folder_option, overwrite_option, table


@click.command(
    "certify",
    epilog="""
    \b
    Examples
      giantsteps certify
      giantsteps certify --full --device cuda -o certificate --store certificate/networks.sqlite
      giantsteps certify --again certificate/certificate.json -o now
    """,
)
@click.option("--short", is_flag=True, help="Small networks: half a minute on one core.")
@click.option(
    "--full",
    is_flag=True,
    help="All families, with networks of d = 200 and 2000: minutes on a GPU (--device cuda), days "
    "on few cores.",
)
@click.option(
    "--again",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Re-check the current theory against the simulations stored in FILE, a "
    "certificate.json: a minute or two.",
)
@folder_option("certificate.html and certificate.json")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of the benchmark design."
)
@store_option
@device_option
@campaign_options
@overwrite_option
def command(
    short: bool,
    full: bool,
    again: Path | None,
    output: Path,
    seed: int,
    store: Path | None,
    device: str | None,
    workers: int | None,
    time_limit: float | None,
    overwrite: bool,
) -> int:
    """Compare theory with simulation over settings of all kinds, and report where they disagree.

    Settings are drawn from a seeded design: activations, teachers, proportions, rates and
    second layers, for every equation that networks can test. The report states for each the
    smallest error that would have been found. Without --short or --full it takes five
    minutes on two cores, and finds an error of 3 % in the main equations of risk and weights.

    The exit code is 3 if theory and simulation disagree where the theory claims to be exact.
    """
    exclusive(short=short, full=full, again=again)
    exclusive(again=again, store=store)
    exclusive(again=again, seed=seed)
    exclusive(again=again, device=device)
    check_folder(output, ["certificate.json", "certificate.html"], overwrite)
    if store is not None:
        store.parent.mkdir(parents=True, exist_ok=True)
    from giantsteps.comparison.certify import certify, recertify

    if again is not None:
        certificate = recertify(again, workers=workers, progress=True)
    else:
        scale = "short" if short else "full" if full else "default"
        certificate = certify(
            scale, seed=seed, store=store, workers=workers, device=device, time_limit=time_limit,
            progress=True,
        )  # fmt: skip
    table(certificate.to_columns(), f"certificate: {'passed' if certificate.passed else 'failed'}")
    for line in certificate.exceptions:
        click.echo(f"  {line}")
    for file in certificate.save(output):
        click.echo(f"  {file}")
    return OK if certificate.passed else DISAGREEMENT
