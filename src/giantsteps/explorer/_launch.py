"""Start an explorer: in this process for the command line, beside it for Python and notebooks."""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from giantsteps.answers import require
from giantsteps.campaign import check_store
from giantsteps.errors import GiantstepsError, InvalidProblem, StoreError
from giantsteps.problem import integer

if TYPE_CHECKING:
    from giantsteps.problem import Problem

#: Bytes of the token; nobody guesses so many.
_TOKEN = 24


def serve(
    problem: dict[str, Any] | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    time_limit: float = 60.0,
    workers: int | None = None,
    store: Path | None = None,
    ready: Callable[[str], None],
) -> None:
    """Serve the explorer in this process until it is interrupted.

    * ``problem``: where the page starts, as ``Problem.to_data`` has it.
    * ``host``, ``port``: where to listen; port 0 takes a free one.
    * ``time_limit``: seconds per request.
    * ``workers``: processes that compute.
    * ``store``: file that keeps the simulations.
    * ``ready``: called with the URL once the server listens.
    """
    uvicorn = require("uvicorn", "the explorer", "explore")
    require("starlette", "the explorer", "explore")
    _check_host(host)
    integer(port, "port", "an integer from 0 to 65535", lower=0)
    check_store(store)
    listening = _listen(host, port)
    token = secrets.token_urlsafe(_TOKEN)
    shown = f"[{host}]" if ":" in host else host
    with listening, suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end
        ready(f"http://{shown}:{listening.getsockname()[1]}/{token}/")
        # Loaded while the browser starts: its first request waits until all is there.
        from giantsteps.explorer._server import Settings, application

        settings = Settings(
            token=token,
            problem=problem,
            host=shown,
            time_limit=time_limit,
            workers=workers,
            store=store,
        )
        app = application(settings)

        class Server(uvicorn.Server):  # type: ignore[misc, name-defined]
            """Answers requests that are under way before it closes."""

            async def shutdown(self, sockets: Any = None) -> None:
                app.state.stopping.set()
                await super().shutdown(sockets)

        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=1,
            timeout_keep_alive=30,
            limit_concurrency=200,
            server_header=False,
        )
        Server(config).run(sockets=[listening])


def _check_host(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        allowed = (
            "a loopback address such as 127.0.0.1: the explorer is for this machine. From another "
            "one, forward the port (ssh -L 8765:127.0.0.1:8765 machine)"
        )
        raise InvalidProblem("host", host, allowed)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)  # so that the first requests wait instead of being refused
    except (OSError, OverflowError) as error:
        listening.close()
        allowed = f"a free port, or 0 to take any ({getattr(error, 'strerror', None) or error})"
        raise InvalidProblem("port", port, allowed) from None
    return listening


class Explorer:
    """An explorer that runs beside this process and ends with it.

    Attributes
    ----------
    url : str
        Where it is; the path holds its token, so keep it to yourself.

    Notes
    -----
    A context manager: leaving it stops the explorer. In a notebook it shows the page.
    """

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process, self.url = process, url

    @property
    def running(self) -> bool:
        """Whether it still answers."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the explorer and its processes."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()  # which it watches
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def wait(self) -> None:
        """Wait until it is stopped."""
        self._process.wait()

    def __enter__(self) -> Explorer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Explorer {self.url}>" if self.running else "<Explorer, stopped>"

    def _repr_html_(self) -> str:
        link = escape(self.url)
        return (
            f'<iframe src="{link}" width="100%" height="820" style="border:0" '
            f'title="giantsteps explorer"></iframe><p><a href="{link}">{link}</a></p>'
        )


def explore(
    problem: Problem | None = None,
    *,
    port: int = 0,
    browser: bool | None = None,
    time_limit: float = 60.0,
    store: str | Path | None = None,
) -> Explorer:
    """Open the explorer: a page in the browser with every field of a problem as a control.

    Parameters
    ----------
    problem : Problem, optional
        Problem to start from; by default a network with one giant step.
    port : int
        Where to listen on the loopback address; 0 takes a free port.
    browser : bool, optional
        Whether to open a browser window. By default yes, but not in a notebook, which shows the
        page itself.
    time_limit : float
        Seconds that one request to theory may take.
    store : path-like, optional
        SQLite file that keeps the networks simulated on the page; by default one in the user's
        cache folder.

    Returns
    -------
    Explorer
        With ``.url`` and ``.stop()``. It ends with this process.

    Raises
    ------
    MissingDependency
        Without the extra ``explore``.
    InvalidProblem
        If the problem cannot be written as plain data, or the port is taken.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.5)
    >>> explorer = gs.explore(problem)  # doctest: +SKIP
    >>> explorer.url  # doctest: +SKIP
    'http://127.0.0.1:43219/2hY…/'
    >>> explorer.stop()  # doctest: +SKIP
    """
    require("uvicorn", "the explorer", "explore")
    require("starlette", "the explorer", "explore")
    data = None if problem is None else _as_data(problem)
    settings = {
        "problem": data,
        "port": port,
        "time_limit": time_limit,
        "store": None if store is None else str(store),
    }
    command = [sys.executable, "-m", "giantsteps.explorer"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(settings) + "\n")
    process.stdin.flush()
    told = json.loads(process.stdout.readline() or "{}")
    if "url" not in told:
        process.stdin.close()
        process.stdout.close()
        process.wait()
        if "field" in told:
            raise InvalidProblem(told["field"], told["value"], told["allowed"])
        if "store" in told:
            raise StoreError(told["store"])
        raise GiantstepsError("the explorer did not start; its error output says why")
    explorer = Explorer(process, told["url"])
    if browser if browser is not None else not _in_notebook():
        webbrowser.open(explorer.url)
    return explorer


def _as_data(problem: Any) -> dict[str, Any]:
    from giantsteps.explorer._requests import read_problem
    from giantsteps.problem import Problem

    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", problem, "a Problem")
    data = problem.to_data()
    read_problem(data)
    return data


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    if shell is None:
        return False
    running = shell.get_ipython()
    return running is not None and "IPKernelApp" in running.config
