"""How fast the explorer follows: 200 moves of a slider, and ten clients at once.

One client moves the rate of the default problem and waits for the coarse curve each time, as the
page does while a slider is dragged. Then ten clients do so at once, and at last one client does so
while four long requests are at work. Times in milliseconds, and ratios to the first median.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
import urllib.request
from typing import Any

import numpy as np

import giantsteps as gs
from giantsteps.explorer._states import DEFAULT

MOVES, CLIENTS, POINTS = 200, 10, 11


def ask(url: str, body: dict[str, Any]) -> float:
    """Milliseconds of one request."""
    request = urllib.request.Request(
        url + "ask", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    started = time.perf_counter()
    with urllib.request.urlopen(request) as response:
        response.read()
    return 1e3 * (time.perf_counter() - started)


def curve(rate: float) -> dict[str, Any]:
    """The body of a move."""
    samples = np.geomspace(0.1, 20, POINTS).tolist()
    problem = DEFAULT.replace({"steps.0.rate": rate}).to_data()
    return {"question": "risk", "problem": problem, "axes": {"readout.samples": samples}}


def moves(url: str, count: int, seed: int = 0) -> list[float]:
    """Times of moves to new places, one after the other."""
    rates = np.random.default_rng(seed).uniform(0.1, 9.9, count)
    return [ask(url, curve(float(rate))) for rate in rates]


def show(name: str, times: list[float], base: float) -> None:
    """One line."""
    median, late = statistics.median(times), float(np.quantile(times, 0.95))
    print(
        f"{name:34s} median {median:7.0f}  95 % {late:7.0f}  ratio {median / base:5.2f}", flush=True
    )


def main() -> None:
    """Print the table."""
    gaussian = DEFAULT.replace({"init.second_layer": "gaussian"})
    long = {
        "question": "risk",
        "problem": gaussian.to_data(),
        "axes": {"steps.0.rate": np.linspace(0.1, 9, 200).tolist()},
    }
    with gs.explore(browser=False) as explorer:
        url = explorer.url
        moves(url, 5)
        alone = moves(url, MOVES)
        base = statistics.median(alone)
        show("one client, 200 moves", alone, base)
        found: list[float] = []
        threads = [
            threading.Thread(target=lambda k=k: found.extend(moves(url, MOVES // CLIENTS, k)))
            for k in range(CLIENTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        show("ten clients at once", found, base)

        def endless() -> None:
            try:
                ask(url, long)
            except OSError:  # when the explorer is stopped, or the time limit is met
                return

        for _ in range(4):
            threading.Thread(target=endless, daemon=True).start()
        time.sleep(1.0)
        show("beside four long requests", moves(url, 40), base)


if __name__ == "__main__":
    main()
