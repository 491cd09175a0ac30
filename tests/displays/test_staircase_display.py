"""The display of the staircase: what it draws, and that it leaves no trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

import giantsteps as gs
from giantsteps import theory
from giantsteps.answers import Risk, Spectrum, Spike
from giantsteps.displays import SpectrumDisplay, StaircaseDisplay
from giantsteps.laws import MarchenkoPastur

PROBLEM = gs.Problem(
    activation="tanh(x + 0.8)",
    teacher="x + 0.5*(x**2 - 1)",
    width=2.0,
    steps=[gs.Step(samples=4, rate=1, exponent=0.1)],
    readout=gs.Ridge(samples=4, penalty=0.05),
    init=gs.Init(weights="sphere"),
)
EXPONENTS = np.array([0.0, 0.2, 0.4])


def risk(d: int | None, source: str, scale: float = 1.0) -> Risk:
    grid = gs.Grid(PROBLEM, {"steps.0.exponent": EXPONENTS})
    by_degree = np.outer(scale * (1 - EXPONENTS), [0.0, 1.0, 0.5, 0.0, 0.0])
    common: dict[str, Any] = {"problem": grid, "d": d, "source": source, "exact": True}
    return Risk(**common, test=by_degree.sum(-1), train=by_degree.sum(-1), by_degree=by_degree)


@pytest.fixture
def limit() -> Iterator[Risk]:
    yield theory.risk(gs.Grid(PROBLEM, {"steps.0.exponent": theory.staircase_exponents(3)}))
    plt.close("all")


def test_sizes(limit: Risk) -> None:
    finite = [risk(500, "finite width"), risk(500_000, "finite width", 0.9)]
    runs = [risk(500, "simulation", scale) for scale in (0.98, 1.0, 1.05)]
    size = matplotlib.rcParams["font.size"]
    display = StaircaseDisplay.from_sizes(finite, limit, simulated=runs)
    assert matplotlib.rcParams["font.size"] == size
    small, large, steps = display.series
    assert [series.label for series in display.series] == ["$10^{3}$", "$10^{6}$", "limit"]
    assert_allclose(small.curve, 1.5 * (1 - EXPONENTS))
    assert_allclose(small.mean, 1.5 * (1 - EXPONENTS) * 1.01)
    spread = np.std([0.98, 1.0, 1.05], ddof=1) / np.sqrt(3)
    assert_allclose(small.standard_error, 1.5 * (1 - EXPONENTS) * spread)
    assert large.points_x.size == 0
    assert_allclose(steps.steps_x, [0, 1 / 4, 1 / 4, 1 / 3, 1 / 3, 3 / 8], atol=1e-12)
    assert_allclose(steps.steps, np.repeat(limit.test, 2))
    legend = display.ax_.get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["$10^{3}$", "$10^{6}$", "limit"]


def test_degrees_are_parts_of_the_teachers_energy(limit: Risk) -> None:
    display = StaircaseDisplay.from_degrees(risk(500, "finite width"), limit, degrees=(1, 2))
    first, second = display.series
    assert_allclose(first.curve, 1 - EXPONENTS)  # c*₁² = 1
    assert_allclose(second.curve, 1 - EXPONENTS)  # 2 c*₂² = 1/2
    assert second.steps[0] == pytest.approx(1)  # below its threshold nothing is learned
    assert second.steps[2] < 0.5
    assert display.ax_.get_ylim()[0] == 0
    legend = display.ax_.get_legend()
    assert legend is not None
    words = [text.get_text() for text in legend.get_texts()]
    assert words == ["1", "2", "limit"]


def test_it_draws_again_and_saves(limit: Risk, tmp_path: Path) -> None:
    display = StaircaseDisplay.from_sizes([risk(500, "finite width")], limit, degree=2)
    figure, axes = plt.subplots()
    display.plot(ax=axes)
    assert display.figure_ is figure
    display.save(tmp_path / "staircase.pdf")
    assert (tmp_path / "staircase.pdf").stat().st_size > 1000


@pytest.mark.parametrize("degree", [0, 3, 7])
def test_degrees_that_the_teacher_or_the_answer_does_not_have(degree: int) -> None:
    with pytest.raises(gs.InvalidProblem, match="degree"):
        StaircaseDisplay.from_sizes([risk(500, "finite width")], degree=degree)


def test_other_axes_are_refused() -> None:
    grid = gs.Grid(PROBLEM, {"readout.penalty": [0.1, 0.2]})
    other = Risk(
        problem=grid,
        d=500,
        source="finite width",
        exact=True,
        test=np.array([1.0, 2.0]),
        train=np.array([1.0, 2.0]),
    )
    with pytest.raises(gs.InvalidProblem, match=r"steps\.0\.exponent"):
        StaircaseDisplay.from_sizes([other])
    with pytest.raises(gs.InvalidProblem, match="given d"):
        StaircaseDisplay.from_sizes([risk(None, "limit")])
    with pytest.raises(gs.InvalidProblem, match="two or more"):
        StaircaseDisplay.from_sizes(
            [risk(500, "finite width")], simulated=[risk(500, "simulation")]
        )


def test_spikes_of_the_features_carry_their_degrees() -> None:
    spikes = [Spike(value=v, overlaps={"monomial": 0.9}, degree=k) for k, v in ((1, 9.0), (2, 2.4))]
    spectrum = Spectrum(
        problem=PROBLEM,
        d=600,
        source="finite width",
        exact=True,
        matrix="features",
        bulk=MarchenkoPastur(1.0).singular_values(),
        spikes=tuple(spikes),
    )
    display = SpectrumDisplay.from_spectra(spectrum)
    words = [text.get_text() for panel in display.axes_ for text in panel.texts]
    plt.close("all")
    assert sorted(words) == ["degree 1", "degree 2"]
