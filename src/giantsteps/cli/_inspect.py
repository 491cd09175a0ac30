"""``giantsteps inspect``: the weights of a trained network."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import OK
from ._output import PATH, check_file, overwrite_option, table, write_json

if TYPE_CHECKING:
    from giantsteps.practice import Inspection

_EXISTING = click.Path(path_type=Path, exists=True)
#: Spikes of one matrix that the text shows.
_SHOWN = 5


@click.command(
    "inspect",
    epilog="""
    \b
    Examples
      giantsteps inspect model.safetensors
      giantsteps inspect finetuned.safetensors --base base.safetensors --html report.html
      giantsteps inspect mlp.pt --data batch.npz --activation relu
    """,
)
@click.argument("source", type=_EXISTING)
@click.option(
    "--base",
    type=_EXISTING,
    help="Weights to compare with: those at initialisation, or of the base model.",
)
@click.option(
    "--data",
    type=_EXISTING,
    help="Batch of inputs X and labels y (.npz or .safetensors): adds the first gradient and the "
    "probe curve of each layer. Needs --activation.",
)
@click.option(
    "--activation",
    help="Activation between the layers of an MLP, such as relu, tanh or gelu; used with --data.",
)
@click.option(
    "--false-alarms",
    type=click.FloatRange(1e-12, 0.5),
    default=0.01,
    show_default=True,
    help="Probability that a random matrix is reported to have a spike.",
)
@click.option(
    "--permutations",
    type=click.IntRange(2),
    default=40,
    show_default=True,
    help="Number of permuted labels that the gradients are compared with.",
)
@click.option(
    "--no-probes", "probes", is_flag=True, default=True, flag_value=False,
    help="Do not predict the probe curves.",
)  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Random seed.")
@click.option(
    "--html",
    type=PATH,
    metavar="FILE",
    help="Write a report with figures to FILE, which ends in .html.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--csv", type=PATH, help="Also write the layers as CSV.")
@overwrite_option
def command(
    source: Path,
    base: Path | None,
    data: Path | None,
    html: Path | None,
    as_json: bool,
    csv: Path | None,
    overwrite: bool,
    **options: Any,
) -> int:
    """Compare each weight matrix of SOURCE with a random matrix of its shape.

    SOURCE is a .safetensors file or a folder of them, an .npz or .npy file, or a PyTorch
    checkpoint that holds tensors only. No code from a file is executed.
    """
    from giantsteps.answers import require
    from giantsteps.practice import inspect

    if options["activation"] is not None and data is None:
        raise click.UsageError("--activation is used with --data")
    check_file(csv, overwrite)
    check_file(html, overwrite, ".html", ".htm")
    if html is not None:
        require("matplotlib", "--html", "practice")

    found = inspect(source, base, data, **options)
    with ExitStack() as files:
        if html is not None:
            files.callback(found.to_html, html)
        if csv is not None:
            files.callback(found.to_csv, csv)
        _print(found, as_json)
    if html is not None and not as_json:
        click.echo(f"Report: {html}")
    return OK


def _print(found: Inspection, as_json: bool) -> None:
    if as_json:
        from giantsteps.practice import TABLES

        tables = {name: found.to_columns(name) for name in TABLES}
        write_json({"title": found.title, **tables})
        return
    click.echo(repr(found))
    spikes = found.to_columns("spikes")
    if spikes:
        first = [i for i, place in enumerate(spikes["spike"]) if place < _SHOWN]
        rest = len(spikes["spike"]) - len(first)
        more = f" ({rest} more with --json or --html)" if rest else ""
        table(
            {name: [values[i] for i in first] for name, values in spikes.items()}, f"Spikes{more}"
        )
