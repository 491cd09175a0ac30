"""How an explorer starts and ends."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import giantsteps as gs
from giantsteps.errors import InvalidProblem, StoreError
from giantsteps.explorer import serve

pytest.importorskip("starlette", reason="the extra explore is not installed")
pytest.importorskip("uvicorn", reason="the extra explore is not installed")


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidProblem, match="free port"):
            gs.explore(browser=False, port=port)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "example.com"])
def test_only_loopback_addresses_are_served(host: str) -> None:
    with pytest.raises(InvalidProblem, match="loopback"):
        serve(host=host, ready=lambda url: pytest.fail(url))


def test_a_store_without_a_folder_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        gs.explore(browser=False, store=tmp_path / "no" / "store.sqlite")


def test_a_function_of_your_own_cannot_be_explored() -> None:
    problem = gs.Problem(activation="tanh", teacher="scipy.special:erf", width=1.0)
    with pytest.raises(InvalidProblem, match="imports no code"):
        gs.explore(problem, browser=False)


def test_the_command_line_ends_cleanly_on_ctrl_c(tmp_path: Path) -> None:
    import signal

    command = [sys.executable, "-m", "giantsteps", "explore", "--no-browser"]
    command += ["--store", str(tmp_path / "store.sqlite")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]
    assert url.startswith("http://127.0.0.1:")
    assert len(url.rstrip("/").rsplit("/", 1)[1]) >= 32
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors == ""


def test_an_explorer_ends_with_its_owner() -> None:
    explorer = gs.explore(browser=False)
    assert explorer.running
    explorer.stop()
    assert not explorer.running
    assert repr(explorer) == "<Explorer, stopped>"


def test_stopping_with_a_request_under_way_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    from .conftest import Client
    from .test_api import PROBLEM, SLOW, _start

    with gs.explore(browser=False) as explorer:
        client = Client(explorer.url)
        client.ok("ask", {"question": "risk", "problem": PROBLEM})
        connection = _start(client, SLOW)
        time.sleep(0.3)
    connection.close()
    assert capfd.readouterr().err == ""
