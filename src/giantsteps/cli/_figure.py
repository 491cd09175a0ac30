"""``giantsteps figure``: the published figures by name."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ._output import progress_bar, table

__all__ = ["command"]

#: Processes that keep one GPU busy: with twice as many it is little faster.
GPU_WORKERS = 4


@click.command(
    "figure",
    short_help="Draw a published figure by name.",
    epilog="""
    \b
    Examples
      giantsteps figure list
      giantsteps figure cui2024-2 -o figures
      giantsteps figure ba2022-rate --paper -o figures
    """,
)
@click.argument("name")
@click.option("--smoke", "size", flag_value="smoke", help="Tiny, to see that it works: seconds.")
@click.option("--quick", "size", flag_value="quick", help="Under a minute (default).")
@click.option("--paper", "size", flag_value="paper", help="The published sizes; can be resumed.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("."),
    help="Folder of the files; default: here.",
)
@click.option(
    "--device", help="Where to simulate: cpu, cuda …; with --paper a GPU if there is one."
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    help="Processes that simulate; with --paper one a processor, or four for a GPU.",
)
def command(
    name: str, size: str | None, output: Path, device: str | None, workers: int | None
) -> None:
    """Draw the figure NAME of a paper, or 'list' all names.

    Writes the figure as PDF, SVG and PNG, every plotted point as CSV, and its caption, citation
    and settings as TOML. With --paper every network is kept in NAME.sqlite beside them as soon as
    it is simulated: run it again after an interruption and it goes on, on whatever device.
    """
    from giantsteps.figures import FIGURES, published

    if name == "list":
        table(
            {"name": list(FIGURES), "title": [f.title for f in FIGURES.values()]},
            f"{len(FIGURES)} figures",
        )
        return
    figure = published(name)
    chosen = size or "quick"
    if chosen == "paper":
        device = device or _gpu()
        workers = workers or _workers(device)
    with progress_bar("simulating") as report:
        made = figure.make(
            chosen,  # type: ignore[arg-type]
            output,
            device=device,
            workers=workers or 1,
            progress=report,
        )
    click.echo(made.caption)
    for file in made.files:
        click.echo(f"  {file}")


def _workers(device: str | None) -> int:
    """One a processor; on a GPU a few, which draw the random numbers for it."""
    processors = os.cpu_count() or 1
    return processors if device in (None, "cpu", "torch") else min(processors, GPU_WORKERS)


def _gpu() -> str | None:
    """``"cuda"`` where PyTorch sees a GPU."""
    try:
        import torch
    except ImportError:
        return None
    return "cuda" if torch.cuda.is_available() else None
