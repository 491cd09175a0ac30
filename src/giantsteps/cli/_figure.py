"""``giantsteps figure``: the published figures by name."""

from __future__ import annotations

from pathlib import Path

import click

from ._options import campaign_options, device_option
from ._output import check_folder, exclusive, folder_option, overwrite_option, table


@click.command(
    "figure",
    epilog="""
    \b
    Examples
      giantsteps figure list
      giantsteps figure cui2024-2 -o figures
      giantsteps figure ba2022-rate --paper -o figures
    """,
)
@click.argument("name")
@click.option("--smoke", is_flag=True, help="Tiny networks, as a test: seconds.")
@click.option("--quick", is_flag=True, help="Small networks: seconds to two minutes (default).")
@click.option("--paper", is_flag=True, help="Sizes for print; an interrupted run can resume.")
@folder_option("the files")
@device_option
@campaign_options
@overwrite_option
def command(
    name: str,
    smoke: bool,
    quick: bool,
    paper: bool,
    output: Path,
    device: str | None,
    workers: int | None,
    time_limit: float | None,
    overwrite: bool,
) -> None:
    """Draw the figure NAME of a paper, or 'list' all names.

    Writes the figure as PDF, SVG and PNG, every plotted point as CSV, and its caption, citation
    and settings as TOML. With --paper every network is kept in NAME.sqlite beside them as soon as
    it is simulated, on a GPU if there is one: run the same command after an interruption to
    resume, on any device.
    """
    exclusive(smoke=smoke, quick=quick, paper=paper)
    from giantsteps.answers import require
    from giantsteps.figures import FIGURES

    if name == "list":
        titles = [figure.title for figure in FIGURES.values()]
        table({"name": list(FIGURES), "title": titles}, f"{len(FIGURES)} figures")
        return
    figure = FIGURES[name]
    require("matplotlib", "a figure", "plot")
    endings = ("pdf", "svg", "png", "csv", "toml")
    check_folder(output, [f"{name}.{ending}" for ending in endings], overwrite)
    if paper:
        device = device or _gpu()
    made = figure.make(
        "paper" if paper else "smoke" if smoke else "quick",
        output,
        device=device,
        workers=workers if paper or workers else 1,
        time_limit=time_limit,
        progress=True,
    )
    click.echo(made.caption)
    for file in made.files:
        click.echo(f"  {file}")


def _gpu() -> str | None:
    """``"cuda"`` where PyTorch sees a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return "cuda" if torch.cuda.is_available() else None
