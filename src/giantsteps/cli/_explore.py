"""``giantsteps explore``: the explorer in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from ._options import build, one_problem_options


@click.command(
    "explore",
    epilog="""
    \b
    Examples
      giantsteps explore
      giantsteps explore problem.toml --port 8765 --no-browser
    """,
)
@one_problem_options
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=0,
    show_default=True,
    help="Port on the loopback address; 0 takes a free one.",
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@click.option(
    "--time-limit",
    type=click.FloatRange(1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop a request after this many seconds.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes; default: one per processor.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep simulated networks in this SQLite file; default: one in the user's cache folder.",
)
def command(
    port: int,
    no_browser: bool,
    time_limit: float,
    workers: int | None,
    store: Path | None,
    **stated: Any,
) -> None:
    """Open a page in the browser with a control for every field of a problem, and all answers live.

    The page is served to this machine alone, under an address with a random token. FILE is the
    problem to start from, in TOML; flags and --set change it. Stop with Ctrl-C.
    """
    from giantsteps.explorer import serve

    problem = build(**stated).to_data() if any(stated.values()) else None

    def ready(url: str) -> None:
        click.echo(f"giantsteps explorer: {url}\nStop with Ctrl-C.")
        if not no_browser:
            webbrowser.open(url)

    serve(problem, port=port, time_limit=time_limit, workers=workers, store=store, ready=ready)
