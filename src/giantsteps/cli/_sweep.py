"""``giantsteps sweep``: thousands of cells from one file, resumed after any interruption."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import FAILED, INTERRUPTED, OK
from ._group import HelpfulGroup
from ._options import full_path, read_toml
from ._output import PATH, check_drawing, check_file, exclusive, options, overwrite_option, table
from ._texts import assignment, once

if TYPE_CHECKING:
    from giantsteps.campaign import Status
    from giantsteps.sweeps import Sweep

_place = options(
    click.argument("file", type=PATH),
    click.option("--store", type=PATH, help="Store to use instead of that of FILE."),
)


@click.group(
    "sweep",
    cls=HelpfulGroup,
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

    FILE is a sweep in TOML, or the store (.sqlite) of one. No cell is computed twice: after a
    crash, a kill or an added value, 'run' computes only what is missing.
    """


_run_options = options(
    click.option(
        "--workers",
        type=click.IntRange(1),
        metavar="N",
        help="Number of processes (or SLURM jobs); default: one per processor or GPU.",
    ),
    click.option(
        "--threads",
        type=click.IntRange(1),
        metavar="N",
        default=1,
        show_default=True,
        help="Threads of the linear algebra in each worker.",
    ),
    click.option("--serial", is_flag=True, help="Run in this process alone."),
    click.option(
        "--time-limit",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Stop a cell after this many seconds; it counts as failed.",
    ),
    click.option(
        "--dask",
        metavar="ADDRESS",
        help="Run on a Dask cluster: the address of a scheduler, 'local' or 'slurm'.",
    ),
    click.option(
        "--job",
        multiple=True,
        metavar="KEY=VALUE",
        help="Option of a SLURM job, such as cores=8, memory=16GB, walltime=02:00:00; repeatable.",
    ),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Only count the cells to run and estimate their time; print the SLURM script.",
    ),
)


@command.command("run", short_help="Run all cells that are not done.")
@_place
@_run_options
def run(file: Path, store: Path | None, **options: Any) -> int:
    """Run all cells that are not done; run it again to resume.

    Cells that failed keep their error and are skipped: see 'status' and 'retry'. Two runs on one
    machine share the work.
    """
    return _run(_sweep(file, store), _command(file, store), again=False, **options)


@command.command("retry", short_help="Run failed cells again, and all that are not done.")
@_place
@_run_options
def retry(file: Path, store: Path | None, **options: Any) -> int:
    """Forget errors and run those cells again, with all others that are not done."""
    return _run(_sweep(file, store), _command(file, store), again=True, **options)


def _run(
    sweep: Sweep,
    resume: str,
    again: bool,
    workers: int | None,
    threads: int,
    serial: bool,
    time_limit: float | None,
    dask: str | None,
    job: tuple[str, ...],
    dry_run: bool,
) -> int:
    exclusive(serial=serial, dask=dask)
    exclusive(serial=serial, workers=workers)
    exclusive(serial=serial, time_limit=time_limit)
    if job and dask != "slurm":
        raise click.UsageError("--job is for --dask slurm")
    keywords = dict(_job(text) for text in job)
    from giantsteps.campaign import WorkersGone

    if dry_run:
        return _dry_run(sweep, again, dask, keywords, 1 if serial else workers)
    with ExitStack() as stack:
        stack.enter_context(_terminated_as_interrupted())
        try:
            executor: Any = "serial" if serial else "processes"
            if dask:
                from giantsteps.campaign import dask_workers

                executor = stack.enter_context(dask_workers(dask, workers, keywords))
            status = sweep.run(
                executor=executor,
                workers=workers,
                threads=threads,
                time_limit=time_limit,
                progress=True,
                retry=again,
            )
        except KeyboardInterrupt:
            _say_stopped(sweep, resume, "stopped")
            return INTERRUPTED
        except WorkersGone as error:
            _say_stopped(sweep, resume, f"giantsteps: error: {error}")
            return FAILED
    _show(status, sweep, resume)
    return FAILED if status.failed else OK


def _command(file: Path, store: Path | None) -> str:
    """The command that goes on from here, with {} for run or retry."""
    where = [] if store is None else ["--store", str(store)]
    words = shlex.join([str(file), *where]).replace("{", "{{").replace("}", "}}")
    return f"giantsteps sweep {{}} {words}"


def _say_stopped(sweep: Sweep, resume: str, why: str) -> None:
    found = sweep.status()
    click.echo(
        f"{why}: {found.done} of {found.total} cells are done and saved in {sweep.store}; "
        f"resume with: {resume.format('run')}",
        err=True,
    )


def _dry_run(
    sweep: Sweep, again: bool, dask: str | None, job: dict[str, Any], workers: int | None
) -> int:
    from giantsteps.campaign import in_words, processors

    if dask == "slurm":
        from giantsteps.campaign import slurm_script

        click.echo(slurm_script(job))
    found = sweep.status()
    count = found.left + found.running + (found.failed if again else 0)
    click.echo(f"{count} of {found.total} cells to run, into {sweep.store}", err=dask == "slurm")
    networks, cost = sweep.cost()
    if networks:
        click.echo(in_words(networks, cost, workers or processors()), err=True)
    return OK


@command.command("status", short_help="Show which cells are done, failed and left.")
@_place
def status(file: Path, store: Path | None) -> None:
    """Count cells by source and question, and list the errors."""
    sweep = _sweep(file, store)
    _show(sweep.status(), sweep, _command(file, store))


@command.command("export", short_help="Write all results to one file.")
@_place
@click.option(
    "-o",
    "--output",
    required=True,
    type=PATH,
    help="A file that ends in .nc (NetCDF), .parquet or .csv.",
)
@click.option(
    "--summary",
    is_flag=True,
    help="In tables, write means, theory and verdicts instead of one row per seed.",
)
@click.option("--spectra", is_flag=True, help="In NetCDF, include all simulated eigenvalues.")
@overwrite_option
def export(
    file: Path, store: Path | None, output: Path, summary: bool, spectra: bool, overwrite: bool
) -> None:
    """Write the results as NetCDF, Parquet or CSV; cells that are not done are NaN."""
    exclusive(summary=summary, spectra=spectra)
    if summary and output.suffix == ".nc":
        raise click.UsageError("--summary is for tables: .csv or .parquet")
    if spectra and output.suffix != ".nc":
        raise click.UsageError("--spectra is for .nc")
    from giantsteps.answers import require

    check_file(output, overwrite, ".nc", ".parquet", ".csv")
    require("xarray" if output.suffix == ".nc" else "pandas", f"a {output.suffix} file")
    sweep = _sweep(file, store)
    sweep.export(output, summary=summary, spectra=spectra)
    click.echo(f"results: {output.resolve()}")


@command.command("plot", short_help="Draw curves, or a map over two axes.")
@_place
@click.option("-x", metavar="PATH", help="Horizontal axis: a path that varies, or d.")
@click.option("-y", metavar="PATH", help="Vertical axis: draws a heat map.")
@click.option(
    "--quantity",
    metavar="NAME",
    help="Quantity to draw, such as risk.test (default), risk.gain or weights.spikes.0.value.",
)
@click.option(
    "--at",
    multiple=True,
    metavar="PATH=VALUE",
    help="Fix an axis at one of its values, such as rate=0.5; repeatable.",
)
@click.option("-o", "--output", type=PATH, help="Figure to write; default: FILE.png.")
@overwrite_option
def plot(
    file: Path,
    store: Path | None,
    x: str | None,
    y: str | None,
    quantity: str | None,
    at: tuple[str, ...],
    output: Path | None,
    overwrite: bool,
) -> None:
    """Draw theory as lines and simulation with three standard errors; with -y, a heat map."""
    output = file.with_suffix(".png") if output is None else output
    check_drawing(output, overwrite, "a figure")
    sweep = _sweep(file, store)
    pairs = (assignment(text, "--at") for text in at)
    problem = sweep.grid.problem
    held = once(((full_path(path, problem, "--at"), value) for path, value in pairs), "--at")
    axes = [path and full_path(path, problem, "-x and -y") for path in (x, y)]
    sweep.plot(*axes, quantity=quantity, at=held).save(output)
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
        if store is not None:
            raise click.UsageError(f"'{file}' is a store already: leave out --store")
        return Sweep.from_store(file)
    if file.suffix in (".sqlite", ".db"):
        raise click.UsageError(f"'{file}' is not a store: it is a file of another kind")
    read_toml(file)  # names the file in errors of TOML
    return Sweep.from_toml(file, store=store)


def _job(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key or not value:
        raise click.BadParameter(f"'{text}' is not KEY=VALUE, such as cores=8", param_hint="--job")
    return key, int(value) if value.isdigit() else value


def _show(status: Status, sweep: Sweep, resume: str) -> None:
    table(status.to_columns(), f"{sweep.store}")
    for error, count in list(status.errors.items())[:10]:
        click.echo(f"{count} × {error}")
    if len(status.errors) > 10:
        click.echo(f"… and {len(status.errors) - 10} other errors")
    if status.failed:
        click.echo(f"try them again with: {resume.format('retry')}")
    if status.left:
        click.echo(f"run the remaining cells with: {resume.format('run')}")


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
