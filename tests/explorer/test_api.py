"""The API: the same numbers as the Python API, and clear refusals."""

from __future__ import annotations

import asyncio
import json
import shlex
import socket
import threading
import time
import tomllib
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.explorer._states import DEFAULT, GALLERY
from giantsteps.questions import QUESTIONS

from .conftest import Client

PROBLEM = DEFAULT.to_data()
SMALL = DEFAULT.replace({"steps.0.exponent": 0.0})


def ask(client: Client, question: str = "risk", **body: Any) -> tuple[int, Any]:
    return client.send("ask", {"question": question, "problem": PROBLEM, **body})


# Answers --------------------------------------------------------------------------------------


def test_an_answer_has_the_columns_of_python(client: Client) -> None:
    status, found = ask(client, d=500)
    answer = theory.risk(DEFAULT, d=500)
    assert status == 200
    assert found["columns"]["test"] == [pytest.approx(answer.test, rel=1e-9)]
    assert found["columns"].keys() == answer.to_columns().keys()
    assert found["facts"]["evidence"] == answer.evidence
    assert tuple(found["facts"]["violated"]) == answer.violated


def test_axes_make_a_grid(client: Client) -> None:
    samples = [0.5, 1.0, 2.0]
    status, found = ask(client, axes={"readout.samples": samples})
    curve = theory.risk(gs.Grid(DEFAULT, {"readout.samples": samples}))
    assert status == 200
    assert found["columns"]["readout.samples"] == samples
    np.testing.assert_allclose(found["columns"]["test"], curve.test, rtol=1e-9)


def test_a_spectrum_brings_the_density_of_its_bulk(client: Client) -> None:
    found = client.ok("ask", {"question": "weights", "problem": SMALL.to_data()})
    law: Any = theory.weights(SMALL).bulk
    (piece,) = found["bulk"]["pieces"]
    mass = np.trapezoid(piece["density"], piece["x"])
    assert mass == pytest.approx(1.0, abs=2e-3)
    assert found["bulk"]["support"][0] == pytest.approx(law.support[0], rel=1e-9)


def test_every_question_of_the_registry_is_in_the_schema(client: Client) -> None:
    schema = client.ok("schema")
    assert schema["questions"].keys() == QUESTIONS.keys()
    asked = schema["ask"]["properties"]["question"]["enum"]
    assert asked == [name for name, row in QUESTIONS.items() if "theory" in row.sides]
    assert set(schema["ask"]["properties"]["problem"]["properties"]) == {
        path for path in DEFAULT.paths() if "." not in path
    }


def test_a_plane_has_values_and_lines(client: Client) -> None:
    body = {
        "problem": PROBLEM,
        "quantity": "test",
        "lines": ["floor", "critical rate"],
        "x": {"path": "steps.0.rate", "values": [1.0, 3.0]},
        "y": {"path": "steps.0.samples", "values": [2.0, 20.0]},
    }
    found = client.ok("plane", body)
    grid = gs.Grid(DEFAULT, {"steps.0.samples": [2.0, 20.0], "steps.0.rate": [1.0, 3.0]})
    np.testing.assert_allclose(found["values"], theory.risk(grid).test, rtol=1e-9)
    (line,) = found["lines"]
    (expected,) = theory.level_curves(grid)
    np.testing.assert_allclose(line["pieces"][0], expected[:, ::-1], rtol=1e-9)
    assert "critical rate" in found["refused"]  # whose spike has no threshold at exponent 1/2


def test_a_function_brings_its_graph_and_coefficients(client: Client) -> None:
    found = client.ok("function", {"function": "relu", "field": "activation"})
    np.testing.assert_allclose(found["hermite"][:2], [1 / np.sqrt(2 * np.pi), 0.5], atol=1e-12)
    assert found["y"][0] == 0.0
    assert found["y"][-1] == found["x"][-1] == 4.0


def test_the_floor_of_the_teacher_is_that_of_the_bounds(client: Client) -> None:
    found = client.ok("function", {"function": "sin", "field": "teacher"})
    assert found["floor"] == pytest.approx(theory.bounds(DEFAULT)["linear"], rel=1e-9)


def test_what_is_taken_away_states_the_same_problem(client: Client) -> None:
    from giantsteps.cli._options import build

    fields = ("activation", "teacher", "width", "noise_variance", "samples", "penalty", "weights",
              "second_layer")  # fmt: skip
    for entry in GALLERY:
        problem = entry.problem
        found = client.ok("take", {"problem": problem.to_data()})
        assert gs.Problem.from_toml(found["toml"]) == problem
        statement = found["python"].rsplit("answer =", 1)[0]
        scope: dict[str, Any] = {}
        exec(statement, scope)
        assert scope["problem"] == problem
        words = shlex.split(found["command"].replace("\\\n", " "))[2:]
        stated: dict[str, Any] = {"steps": [], "assignments": [], **dict.fromkeys(fields)}
        for flag, value in zip(words[::2], words[1::2], strict=True):
            name = flag.removeprefix("--").replace("-", "_")
            if name in ("step", "set"):
                stated[{"step": "steps", "set": "assignments"}[name]].append(value)
            else:
                stated[name] = value
        assert build(None, axes=(), **stated) == problem


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_figures_are_drawn(client: Client, form: str) -> None:
    import base64

    request = {"question": "risk", "problem": PROBLEM, "axes": {"readout.samples": [1.0, 2.0]}}
    found = client.ok("figure", {"panel": "errors", "format": form, "request": request})
    start = base64.b64decode(found["content"])[:100]
    assert start.startswith(b"%PDF" if form == "pdf" else b"<?xml")


PLANE = {
    "problem": PROBLEM,
    "x": {"path": "steps.0.rate", "values": [1.0, 2.0]},
    "y": {"path": "readout.samples", "values": [1.0, 2.0]},
}
#: Panel → its request, and simulated points for its figure.
FIGURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "errors": (
        {"question": "risk", "problem": PROBLEM, "axes": {"readout.samples": [1.0, 2.0]}},
        {"test": {"x": [1.0, 2.0], "mean": [0.2, None], "error": [0.01, None]}},
    ),
    "spectrum": (
        {"question": "weights", "problem": PROBLEM, "d": 200},
        {"edges": [0.5, 1.0, 1.5], "density": [0.4, 0.6], "spikes": [3.0]},
    ),
    "learned": (
        {"question": "learned_function", "problem": PROBLEM},
        {"x": [-1.0, 1.0], "mean": [-0.5, 0.5], "error": [0.1, 0.1]},
    ),
    "plane": (PLANE, {"x": [1.5], "y": [1.5], "mean": [0.2], "error": [0.01]}),
}


@pytest.mark.parametrize("panel", FIGURES)
def test_figures_have_the_simulated_points(client: Client, panel: str) -> None:
    import base64

    request, points = FIGURES[panel]
    body = {"panel": panel, "format": "svg", "request": request}
    sizes = [
        len(base64.b64decode(client.ok("figure", given)["content"]))
        for given in (body, {**body, "points": points})
    ]
    assert sizes[1] > sizes[0]
    broken = dict.fromkeys(points, "text")
    status, found = client.send("figure", {**body, "points": broken})
    assert status == 422
    assert "points" in found["error"]["message"]


@pytest.mark.parametrize(
    "points", [[1], {"x": [1] * 2000, "y": [1], "mean": [1], "error": [1]}, {"x": [1, 2]}]
)
def test_points_that_are_none_are_refused(client: Client, points: Any) -> None:
    body = {"panel": "plane", "format": "svg", "request": PLANE, "points": points}
    status, found = client.send("figure", body)
    assert status == 422
    assert "points" in found["error"]["message"]


# Refusals -------------------------------------------------------------------------------------


def test_without_the_token_there_is_nothing(client: Client) -> None:
    parts = urlsplit(client.url)
    for path in ("/", "/wrong/", f"/{'x' * 32}/"):
        status, _ = Client(f"http://{parts.netloc}{path}").send("ask", {})
        assert status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Host": "evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
def test_other_pages_are_refused(client: Client, headers: dict[str, str]) -> None:
    status, found = client.send("ask", {"question": "risk", "problem": PROBLEM}, headers)
    assert status == 403, found


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"\xff", 400),
        (b'{"d": NaN}', 400),
        (b"[" * 60_000, 400),
        (b" " * 70_000, 413),
        (b"[]", 422),
        (b'{"question": "risk"}', 422),
        (b'{"question": "risk", "problem": {}, "more": 1}', 422),
    ],
)
def test_malformed_and_huge_bodies_are_refused(client: Client, body: bytes, status: int) -> None:
    assert client.send("ask", body)[0] == status


def test_a_body_that_is_not_json_is_refused(client: Client) -> None:
    status, _ = client.send("ask", b"{}", {"Content-Type": "text/plain"})
    assert status == 415


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"question": "rsk"}, "question"),
        ({"question": "movements"}, "question"),
        ({"problem": {**PROBLEM, "width": -1}}, "width"),
        ({"problem": {**PROBLEM, "steps": [{"samples": 1, "rate": -2}]}}, "steps.0.rate"),
        ({"problem": {**PROBLEM, "steps": [{"samples": 1, "rate": 1}] * 21}}, "steps"),
        ({"problem": {**PROBLEM, "activation": "tanh("}}, "activation"),
        ({"problem": {**PROBLEM, "activation": "os:getcwd"}}, "activation"),
        ({"problem": {**PROBLEM, "teacher": {"name": "os:getcwd"}}}, "teacher"),
        ({"problem": {**PROBLEM, "teacher": "x+" * 400 + "x"}}, "teacher"),
        ({"axes": {"activation": ["tanh", "os:getcwd"]}}, "activation"),
        ({"axes": {"width": list(range(1, 3000))}}, "axes"),
        ({"axes": {"no.such": [1.0]}}, "path"),
        ({"d": 10**9}, "d"),
        ({"question": "bounds", "d": 100}, "d"),
        ({"options": {"top": 4}}, "top"),
    ],
)
def test_bad_fields_are_named(client: Client, change: dict[str, Any], field: str) -> None:
    status, found = client.send("ask", {"question": "risk", "problem": PROBLEM, **change})
    assert status == 422
    assert found["error"]["type"] == "InvalidProblem"
    assert found["error"]["field"] == field


def test_what_theory_does_not_cover_is_said(client: Client) -> None:
    relu = {**SMALL.to_data(), "activation": "relu"}
    status, found = ask(client, problem=relu)
    assert status == 422
    assert found["error"]["type"] == "NotCovered"
    assert "centered" in found["error"]["covered"]


def test_only_files_of_the_page_are_served(client: Client) -> None:
    for path in ("../_server.py", "%2e%2e/_server.py", "_server.py", "page/index.html"):
        assert client.send(path)[0] == 404


# At once --------------------------------------------------------------------------------------

SLOW = {
    "question": "risk",
    "problem": DEFAULT.replace({"init.second_layer": "gaussian"}).to_data(),
    "axes": {"steps.0.rate": np.linspace(0.1, 9.0, 400).tolist()},
}


def _start(client: Client, body: Any) -> socket.socket:
    """Send a request and do not wait for its answer."""
    parts = urlsplit(client.url)
    connection = socket.create_connection((parts.hostname, parts.port))
    text = json.dumps(body).encode()
    head = f"POST {parts.path}ask HTTP/1.1\r\nHost: {parts.netloc}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    connection.sendall(head.encode() + text)
    return connection


def test_long_requests_do_not_block_short_ones(client: Client) -> None:
    ask(client)
    long = [_start(client, SLOW) for _ in range(4)]  # twice the places of the smallest pool
    try:
        time.sleep(0.2)
        found: list[int] = []
        threads = [threading.Thread(target=lambda: found.append(ask(client)[0])) for _ in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert found == [200] * 10
        for connection in long:  # and they are still at work
            connection.setblocking(False)
            with pytest.raises(BlockingIOError):
                connection.recv(1)
    finally:
        for connection in long:
            connection.close()


def test_a_request_nobody_waits_for_is_ended() -> None:
    from giantsteps.explorer._pool import Pool

    async def scenario() -> None:
        pool = Pool(1)
        try:
            await pool.start()
            (worker,) = pool._all
            task = asyncio.ensure_future(pool.run("ask", SLOW))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            found = await pool.run("ask", {"question": "risk", "problem": PROBLEM})
            assert "ok" in found
            await asyncio.sleep(0.1)
            assert not worker.process.is_alive()
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_a_request_that_takes_too_long_is_ended() -> None:
    from giantsteps.explorer._pool import Pool, TooLong

    async def scenario() -> None:
        pool = Pool(1, time_limit=1.0)
        try:
            await pool.start()
            with pytest.raises(TooLong, match="1 s"):
                await pool.run("ask", SLOW)
        finally:
            await pool.close()

    asyncio.run(scenario())


def test_the_toml_of_a_problem_is_toml(client: Client) -> None:
    assert tomllib.loads(client.ok("take", {"problem": PROBLEM})["toml"]) == PROBLEM
