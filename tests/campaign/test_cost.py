"""Forecasts: what a campaign will take, from trials on the machine."""

from __future__ import annotations

import giantsteps as gs
from giantsteps.campaign import Cells, forecast, in_words, operations
from giantsteps.campaign._cost import announcement
from giantsteps.questions import QUESTIONS

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2, rate=3)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)


def cells(d: int, seeds: int, question: str = "risk", initial: bool = False) -> list[Cells]:
    return Cells.of_networks(PROBLEM, QUESTIONS[question], [d], range(seeds), {}, initial=initial)


def test_a_forecast_counts_networks_and_grows_with_them() -> None:
    few, cost = forecast(cells(200, 10))
    many, more = forecast(cells(200, 30, initial=True))
    assert (few, many) == (10, 60)
    assert 3 < more.flops / cost.flops <= 6.01
    assert more.memory >= cost.memory > 0
    assert forecast(cells(200, 10), cells(200, 10)[0].distinct)[0] == 0
    assert forecast(cells(200, 10, "gradient"))[1].seconds > 0


def test_long_campaigns_announce_themselves() -> None:
    assert operations(cells(100, 10)) < operations(cells(200, 10)) / 7
    assert announcement(cells(60, 4), (), 1) is None
    long = cells(2000, 200)
    text = announcement(long, (), 2)
    assert text is not None
    assert "200 networks" in text
    assert announcement(long, long[0].distinct, 2) is None


def test_times_are_in_units_of_their_size() -> None:
    from giantsteps.simulation import Cost

    for seconds, start in ((0.2, "about 1 s "), (80.0, "about 80 s "), (7200.0, "about 2 h ")):
        assert in_words(3, Cost(2**30, 1.0, seconds), 1).startswith(start)
    assert in_words(3, Cost(2**30, 1.0, 1200.0), 2).startswith("about 10 min with 2 workers")
