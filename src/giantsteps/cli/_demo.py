"""``giantsteps demo``: the main job in one command: learning curves, theory over simulation."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from ._options import campaign_options
from ._output import PATH, check_drawing, check_file, overwrite_option, table


@click.command("demo")
@click.option(
    "-d",
    "--dimension",
    "d",
    type=int,
    default=500,
    show_default=True,
    help="Input dimension of the simulated networks.",
)
@click.option(
    "--seeds", type=int, default=8, show_default=True, help="Number of networks per point."
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    default=Path("giantsteps-demo.png"),
    show_default=True,
    help="Figure to write; the table is written beside it as CSV.",
)
@campaign_options
@overwrite_option
def command(
    d: int, seeds: int, output: Path, workers: int | None, time_limit: float | None, overwrite: bool
) -> None:
    """Learning curves of a tanh network with a sine teacher after one giant step.

    Test error against the samples of the readout, for three batch sizes of the step: theory as
    lines, simulation as points with three standard errors, and the lower bound for any kernel
    method, dashed. Writes a figure and a CSV file.
    """
    csv = output.with_suffix(".csv")
    check_drawing(output, overwrite, "the figure of the demo")
    check_file(csv, overwrite)
    import numpy as np

    import giantsteps as gs
    from giantsteps import campaign, theory

    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        width=2.0,
        steps=[gs.Step(samples=1.0, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=1.0, penalty=0.1),
        init=gs.Init(second_layer="constant"),
    )
    batches = {"steps.0.samples": [1.0, 5.0, 20.0]}
    grid = gs.Grid(problem, {"readout.samples": [0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0], **batches})
    smooth = gs.Grid(problem, {"readout.samples": np.geomspace(0.45, 8.5, 60), **batches})
    comparison = gs.compare(
        grid,
        d=d,
        seeds=seeds,
        quantities=("test", "initial.test"),
        test_samples="exact",
        workers=campaign.processors() if workers is None else workers,
        time_limit=time_limit,
        progress=True,
    )
    display = comparison.plot(
        x="readout.samples",
        curve=theory.risk(smooth, d=d),
        floor=theory.bounds(problem)["linear"],
        floor_label="kernel floor",
    )
    display.ax_.set_yscale("log")
    display.ax_.set_yticks([0.06, 0.1, 0.2, 0.4], labels=["0.06", "0.1", "0.2", "0.4"], minor=False)
    display.ax_.tick_params(which="minor", labelleft=False)
    columns = comparison.to_columns()
    rows = [i for i, name in enumerate(columns["quantity"]) if name == "test"]
    with ExitStack() as files:
        files.callback(display.save, output)
        files.callback(comparison.to_csv, csv)
        table(
            {title: [columns[name][i] for i in rows] for title, name in _TITLES.items()},
            f"test error after one step, d = {d}, {seeds} networks per point: {comparison.verdict}",
        )
        for note in comparison.notes:
            click.echo(note)
    click.echo(f"figure: {output.resolve()}\ntable:  {csv.resolve()}")


#: Heading → column of the comparison.
_TITLES = {
    "n/d": "readout.samples",
    "n0/d": "steps.0.samples",
    "theory": "theory",
    "simulation": "simulation",
    "± se": "standard_error",
    "t": "t",
}
