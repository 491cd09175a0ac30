"""Simulate here: the networks of `giantsteps.simulation`, kept, followed and cancelled."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from giantsteps import simulation
from giantsteps.explorer._states import DEFAULT

from .conftest import Client

PROBLEM = DEFAULT.to_data()


def start(client: Client, d: int, seeds: int, *asks: dict[str, Any]) -> tuple[int, Any]:
    asked = [{"problem": PROBLEM, **ask} for ask in asks]
    return client.send("simulate", {"d": d, "seeds": seeds, "asks": asked})


def finish(client: Client, job: Any) -> Any:
    end = time.monotonic() + 90
    while job["state"] == "running":
        assert time.monotonic() < end
        time.sleep(0.05)
        job = client.ok(f"simulate/{job['id']}")
    return job


def test_means_and_errors_are_those_of_the_networks(client: Client) -> None:
    samples = [1.0, 2.0]
    status, job = start(
        client,
        30,
        3,
        {"question": "risk", "axes": {"readout.samples": samples}},
        {"question": "weights", "options": {"bulk": True}},
    )
    assert status == 202
    job = finish(client, job)
    assert job["state"] == "done", job["message"]
    risk, weights = job["results"]
    for place, value in enumerate(samples):
        problem = DEFAULT.replace({"readout.samples": value})
        tests = [float(simulation.risk(problem, d=30, seed=seed).test) for seed in range(3)]
        assert risk["numbers"]["test"]["mean"][place] == pytest.approx(np.mean(tests), rel=1e-6)
        error = np.std(tests, ddof=1) / np.sqrt(3)
        assert risk["numbers"]["test"]["error"][place] == pytest.approx(error, rel=1e-4)
    spectra = (simulation.weights(DEFAULT, d=30, seed=seed) for seed in range(3))
    top = [float(spectrum.spikes[0].value) for spectrum in spectra]
    assert weights["numbers"]["value"]["mean"][0] == pytest.approx(np.mean(top), rel=1e-6)
    edges, density = (np.array(weights["histogram"][key]) for key in ("edges", "density"))
    assert 0.9 < np.sum(np.diff(edges) * density) <= 1.0 + 1e-9


def test_one_simulation_at_a_time_and_cancelled_at_once(client: Client) -> None:
    status, job = start(client, 2000, 20, {"question": "risk"})
    assert status == 202
    assert start(client, 30, 2, {"question": "risk"})[0] == 409
    status, cancelled = client.send(f"simulate/{job['id']}", method="DELETE")
    assert status == 200
    assert cancelled["state"] == "cancelled"
    assert start(client, 30, 2, {"question": "risk"})[0] == 202


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"d": 10**6, "seeds": 2, "asks": [{"question": "risk", "problem": PROBLEM}]}, "d"),
        ({"d": 50, "seeds": 1, "asks": [{"question": "risk", "problem": PROBLEM}]}, "seeds"),
        ({"d": 50, "seeds": 10**4, "asks": [{"question": "risk", "problem": PROBLEM}]}, "seeds"),
        ({"d": 50, "seeds": 2, "asks": []}, "asks"),
        ({"d": 50, "seeds": 2, "asks": [{"question": "bounds", "problem": PROBLEM}]}, "question"),
        (
            {"d": 2, "seeds": 2, "asks": [{"question": "risk", "problem": PROBLEM,
                                           "axes": {"readout.samples": [0.1]}}]},
            "readout.samples",
        ),
    ],
)  # fmt: skip
def test_bad_requests_are_refused_before_anything_runs(
    client: Client, body: dict[str, Any], field: str
) -> None:
    status, found = client.send("simulate", body)
    assert status == 422
    assert found["error"]["field"] == field


def test_an_unknown_simulation_is_not_found(client: Client) -> None:
    assert client.send("simulate/nothing")[0] == 404
