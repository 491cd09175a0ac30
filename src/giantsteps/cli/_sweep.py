"""``giantsteps sweep``: thousands of cells from one file, resumed after anything."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import FAILED, INTERRUPTED, OK
from ._options import _assignment, _read
from ._output import table

if TYPE_CHECKING:
    from giantsteps.sweeps import Status, Sweep

__all__ = ["command"]

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.argument("file", type=click.Path(path_type=Path))
_STORE = click.option(
    "--store", type=click.Path(path_type=Path), help="Another store than the file's own."
)


@click.group(
    "sweep",
    short_help="Run, resume, export and draw a grid of problems, sizes and seeds.",
    epilog="""
    \b
    Example: sweep.toml
      d = [250, 500]
      seeds = 20
      [problem]
      activation = "tanh"
      teacher = "sin"
      width = 1.5
      steps = [{samples = 2.0, rate = 1.0}]
      readout = {samples = 2.0, penalty = 0.1}
      [vary]
      "readout.samples" = {from = 0.2, to = 3.0, count = 15}
      "steps.0.rate" = [0.5, 1.0, 2.0]
    \b
      giantsteps sweep run sweep.toml
      giantsteps sweep export sweep.toml -o sweep.nc
      giantsteps sweep plot sweep.toml -o sweep.png
    """,
)
def command() -> None:
    """Ask theory and simulation about every problem of a grid, and keep the answers in one file.

    FILE is a sweep in TOML, or the store (.sqlite) of one. What is done is never done again:
    after a crash, a kill or an added value, 'run' does what is left.
    """


def _run_options(command: Command) -> Command:
    for decorator in reversed(
        [
            click.option(
                "--workers", type=click.IntRange(1), help="Processes (or SLURM jobs); default all."
            ),
            click.option(
                "--threads",
                type=click.IntRange(1),
                default=1,
                show_default=True,
                help="Threads of the linear algebra in each worker.",
            ),
            click.option("--serial", is_flag=True, help="Work in this process."),
            click.option(
                "--dask",
                metavar="ADDRESS",
                help="Work on a Dask cluster: a scheduler's address, 'local' or 'slurm'.",
            ),
            click.option(
                "--job",
                multiple=True,
                metavar="KEY=VALUE",
                help="Of a SLURM job, such as cores=8, memory=16GB, walltime=02:00:00; repeatable.",
            ),
            click.option(
                "--dry-run", is_flag=True, help="Say what would be run; print the SLURM script."
            ),
        ]
    ):
        command = decorator(command)
    return command


@command.command("run", short_help="Run what is not done yet.")
@_FILE
@_STORE
@_run_options
def run(file: Path, store: Path | None, **options: Any) -> int:
    """Run all cells that are not done; run it again to resume.

    Cells that failed keep their error and are left out: see 'status' and 'retry'. Two runs on
    one machine share the work.
    """
    return _run(_sweep(file, store), f"giantsteps sweep run {file}", again=False, **options)


@command.command("retry", short_help="Run the cells that failed, and what is not done yet.")
@_FILE
@_STORE
@_run_options
def retry(file: Path, store: Path | None, **options: Any) -> int:
    """Forget errors and run those cells again, with all that is not done yet."""
    return _run(_sweep(file, store), f"giantsteps sweep run {file}", again=True, **options)


def _run(
    sweep: Sweep,
    resume: str,
    again: bool,
    workers: int | None,
    threads: int,
    serial: bool,
    dask: str | None,
    job: tuple[str, ...],
    dry_run: bool,
) -> int:
    if serial and dask:
        raise click.UsageError("--serial and --dask exclude each other")
    if job and dask != "slurm":
        raise click.UsageError("--job is for --dask slurm")
    keywords = dict(_job(text) for text in job)
    if dry_run:
        return _dry_run(sweep, again, dask, keywords)
    with ExitStack() as stack:
        stack.enter_context(_terminated_as_interrupted())
        try:
            executor: Any = "serial" if serial else "processes"
            if dask:
                from giantsteps.sweeps import dask_crew

                executor = stack.enter_context(dask_crew(dask, workers, keywords))
            report = stack.enter_context(_bar())
            work = sweep.retry if again else sweep.run
            status = work(executor=executor, workers=workers, threads=threads, progress=report)
        except KeyboardInterrupt:
            found = sweep.status()
            click.echo(
                f"stopped: {found.done} of {found.total} cells are done and saved in "
                f"{sweep.store}; resume with: {resume}",
                err=True,
            )
            return INTERRUPTED
    _show(status, sweep, resume)
    return FAILED if status.failed else OK


def _dry_run(sweep: Sweep, again: bool, dask: str | None, job: dict[str, Any]) -> int:
    if dask == "slurm":
        from giantsteps.sweeps import slurm_script

        click.echo(slurm_script(job))
    found = sweep.status()
    count = found.left + found.running + (found.failed if again else 0)
    click.echo(f"{count} of {found.total} cells to run, into {sweep.store}", err=dask == "slurm")
    return OK


@command.command("status", short_help="Show what is done, failed and left.")
@_FILE
@_STORE
def status(file: Path, store: Path | None) -> None:
    """Count cells by source and question, and list the errors."""
    sweep = _sweep(file, store)
    _show(sweep.status(), sweep, f"giantsteps sweep run {file}")


@command.command("export", short_help="Write all results to one file.")
@_FILE
@_STORE
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="A file that ends in .nc (NetCDF), .parquet or .csv.",
)
@click.option("--summary", is_flag=True, help="Tables: means and theory, not one row a seed.")
@click.option("--spectra", is_flag=True, help="NetCDF: with all simulated eigenvalues.")
def export(file: Path, store: Path | None, output: Path, summary: bool, spectra: bool) -> None:
    """Write the results as NetCDF, Parquet or CSV; cells that are not done are NaN."""
    sweep = _sweep(file, store)
    sweep.export(output, summary=summary, spectra=spectra)
    click.echo(f"results: {output.resolve()}")


@command.command("plot", short_help="Draw curves, or a map over two axes.")
@_FILE
@_STORE
@click.option("-x", metavar="PATH", help="Horizontal axis: a path that varies, or d.")
@click.option("-y", metavar="PATH", help="Vertical axis: draws a heat map.")
@click.option("--quantity", metavar="NAME", help="Such as risk.test (default) or risk.gain.")
@click.option("--at", multiple=True, metavar="PATH=VALUE", help="Hold an axis fixed; repeatable.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: FILE.png.")
def plot(
    file: Path,
    store: Path | None,
    x: str | None,
    y: str | None,
    quantity: str | None,
    at: tuple[str, ...],
    output: Path | None,
) -> None:
    """Draw theory as lines and simulation with three standard errors; with -y, a heat map."""
    output = file.with_suffix(".png") if output is None else output
    held = dict(_assignment(text, "--at") for text in at)
    _sweep(file, store).plot(x, y, quantity=quantity, at=held).save(output)
    click.echo(f"figure: {output.resolve()}")


# Helpers --------------------------------------------------------------------------------------


def _sweep(file: Path, store: Path | None) -> Sweep:
    """The sweep of a TOML file, or the last one of a store."""
    try:
        with open(file, "rb") as opened:
            is_store = opened.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise click.UsageError(f"cannot read '{file}': {error.strerror}") from None
    from giantsteps.sweeps import Sweep

    if is_store:
        return Sweep.from_store(file)
    _read(file)  # names the file in errors of TOML
    return Sweep.from_toml(file, store=store)


def _job(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise click.BadParameter(f"'{text}' is not KEY=VALUE, such as cores=8", param_hint="--job")
    return key, int(value) if value.isdigit() else value


def _show(status: Status, sweep: Sweep, resume: str) -> None:
    rows = [*status.layers, status] if len(status.layers) > 1 else list(status.layers)
    columns: dict[str, list[Any]] = {
        "source": [getattr(row, "source", "all") for row in rows],
        "question": [getattr(row, "question", "") for row in rows],
    }
    for name in ("total", "done", "failed", "running", "left"):
        columns[name] = [getattr(row, name) for row in rows]
    table(columns, f"{sweep.store}")
    for error, count in list(status.errors.items())[:10]:
        click.echo(f"{count} × {error}")
    if len(status.errors) > 10:
        click.echo(f"… and {len(status.errors) - 10} other errors")
    if status.failed:
        click.echo(f"try them again with: {resume.replace('sweep run', 'sweep retry')}")
    if status.left:
        click.echo(f"run what is left with: {resume}")


@contextmanager
def _bar() -> Iterator[Callable[[int, int, int], None]]:
    """``report(done, failed, total)``: a bar with rate, time left and failures on a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.3g}/s" if task.speed else "–/s")

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        Rate(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}"),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as progress:
        task = progress.add_task("cells", total=None, failed="")

        def report(done: int, failed: int, total: int) -> None:
            shown = f"[red]{failed} failed" if failed else ""
            progress.update(task, completed=done + failed, total=total, failed=shown)

        yield report


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """What batch systems send before they kill, SIGTERM, stops as cleanly as Ctrl-C."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
