"""The display of spectra: what is drawn, where, and what is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.patches import StepPatch

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.answers import Spectrum, Spike
from giantsteps.displays import SINGLE, SpectrumDisplay
from giantsteps.laws import EmpiricalLaw, KernelBulk, MarchenkoPastur

PROBLEM = gs.Problem(
    activation="tanh",
    teacher=gs.centered("relu"),
    width=2.0,
    steps=[gs.Step(samples=4.0, rate=6.0)],
)


def spectrum(
    law: Any,
    spikes: tuple[Spike, ...] = (),
    matrix: Literal["weights", "kernel"] = "kernel",
    source: Literal["limit", "simulation"] = "limit",
    d: int | None = None,
) -> Spectrum:
    return Spectrum(
        problem=PROBLEM, d=d, source=source, exact=True, bulk=law, spikes=spikes, matrix=matrix
    )


def texts(display: SpectrumDisplay) -> list[str]:
    legend = display.axes_[-1].get_legend()
    assert legend is not None
    return [legend.get_title().get_text()] + [text.get_text() for text in legend.get_texts()]


def bars(display: SpectrumDisplay) -> Any:
    drawn = display.ax_.patches[0]
    assert isinstance(drawn, StepPatch)
    return drawn.get_data()


def test_one_call_draws_theory_and_simulation() -> None:
    display = SpectrumDisplay.from_spectra(
        theory.weights(PROBLEM), simulation.weights(PROBLEM, d=120, seed=0)
    )
    assert display.figure_.get_size_inches()[0] == SINGLE
    assert display.ax_.get_xlabel() == "singular value of $W$"
    assert display.axes_ == (display.ax_,)
    assert len(display.predicted) == len(display.found) == 1
    assert display.found[0].value == pytest.approx(display.predicted[0].value, rel=0.1)
    heights, edges, _ = bars(display)
    mass = np.sum(heights * np.diff(edges))
    assert 1 - 2 / 120 <= mass <= 1 + 1e-12
    title, *names = texts(display)
    assert names == ["simulation, $d = 120$", "theory", "predicted spike", "simulated spike"]
    assert f"{display.predicted[0].overlap:.3f}" in title
    line = next(line for line in display.ax_.lines if line.get_label() == "theory")
    law = MarchenkoPastur(2.0).singular_values()
    np.testing.assert_allclose(np.asarray(line.get_ydata()), law.density(line.get_xdata()))


def test_a_far_spike_goes_behind_a_break_of_the_axis() -> None:
    law = KernelBulk(width=1.25, samples=2.0, linear=0.5, residual=0.4)
    near = Spike(value=1.2 * law.edge, overlaps={"labels": 0.4})
    far = Spike(value=80.0, overlaps={"labels": 0.0}, degree=0)
    farther = Spike(value=900.0, overlaps={"labels": 0.0})
    display = SpectrumDisplay.from_spectra(spectrum(law, (farther, far, near)))
    assert len(display.axes_) == 3
    (lo, hi), *others = [panel.get_xlim() for panel in display.axes_]
    assert lo < law.support[0][0] < near.value < hi < 80
    assert [low < value < high for (low, high), value in zip(others, (80.0, 900.0))] == [True] * 2
    assert len({panel.get_ylim() for panel in display.axes_}) == 1
    assert "mass 0.375 at 0" in texts(display)
    assert "0.400" in texts(display)[0]  # of the first spike that aligns with the labels
    display.figure_.draw_without_rendering()
    boxes = [panel.get_position() for panel in display.axes_]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_spikes_at_infinity_are_said_not_drawn() -> None:
    law = KernelBulk(width=1.25, samples=2.0, linear=0.5, residual=0.4)
    display = SpectrumDisplay.from_spectra(spectrum(law, (Spike(value=np.inf),)))
    assert len(display.axes_) == 1
    assert texts(display)[-1] == r"spike at $\infty$"
    assert "predicted spike" not in texts(display)


def test_axes_of_the_caller_and_pooled_seeds() -> None:
    figure, axes = plt.subplots(1, 2)
    runs = [simulation.weights(PROBLEM, d=60, seed=seed) for seed in range(3)]
    display = SpectrumDisplay.from_spectra(theory.weights(PROBLEM), runs, ax=axes[1], bins=12)
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert display.values is not None
    assert display.values.size == 180
    assert len(bars(display)[0]) >= 12
    assert display.plot(ax=axes[0]).ax_ is axes[0]  # it keeps its data


def test_a_pole_of_the_density_leaves_room_for_the_rest() -> None:
    law = MarchenkoPastur(1.0)  # ρ(x) ~ 1/√x at 0
    values = law.sample(2000, seed=0)
    measured = spectrum(EmpiricalLaw(values), source="simulation", d=2000)
    display = SpectrumDisplay.from_spectra(spectrum(law), measured)
    assert display.ax_.get_ylim()[1] < 1.0
    assert np.isfinite(display.ax_.get_ylim()[1])


def test_only_values_that_left_the_bulk_are_found() -> None:
    law = MarchenkoPastur(1.0).singular_values()
    spikes = (Spike(value=2.5), Spike(value=2.005))
    measured = spectrum(EmpiricalLaw(law.sample(500, 0)), spikes, "weights", "simulation", 500)
    display = SpectrumDisplay.from_spectra(spectrum(law, matrix="weights"), measured)
    assert [mark.value for mark in display.found] == [2.5]


def test_a_predicted_spike_near_the_edge_is_found() -> None:
    law, values = MarchenkoPastur(0.5), np.linspace(0.1, 2.9, 100)
    edge = law.support[-1][1]
    near = (Spike(value=np.float64(edge + 0.01)), Spike(value=np.float64(edge + 0.005)))
    run = spectrum(EmpiricalLaw(values), near, source="simulation", d=100)
    assert SpectrumDisplay.from_spectra(spectrum(law), run).found == []
    predicted = spectrum(law, (Spike(value=np.float64(edge + 0.02)),))
    (mark,) = SpectrumDisplay.from_spectra(predicted, run).found
    assert mark.value == edge + 0.01


class _Island(MarchenkoPastur):
    """A bulk with a gap, and a mass of 5e-4 or of 5e-2 behind it."""

    def __init__(self, mass: float) -> None:
        super().__init__(0.5)
        self.mass = mass

    @property
    def support(self) -> tuple[tuple[float, float], ...]:
        return ((super().support[0][0], 4.0),)

    def density(self, x: Any) -> Any:
        return super().density(x) + np.where(np.abs(np.asarray(x) - 3.9) < 0.1, 5 * self.mass, 0.0)


@pytest.mark.parametrize(("mass", "end"), [(5e-4, 3.0), (5e-2, 4.0)])
def test_an_island_of_no_mass_at_the_edge_is_not_drawn(mass: float, end: float) -> None:
    display = SpectrumDisplay(law=_Island(mass)).plot()
    x = np.asarray(display.ax_.lines[0].get_xdata())
    assert x.max() == pytest.approx(end, abs=0.1)


def test_saves_at_exact_width_with_embedded_fonts(tmp_path: Path) -> None:
    path = tmp_path / "spectrum.pdf"
    SpectrumDisplay.from_spectra(theory.weights(PROBLEM)).save(path)
    content = path.read_bytes()
    assert f"/MediaBox [ 0 0 {72 * SINGLE:g}".encode() in content
    assert b"/Type3" not in content


def test_refusals() -> None:
    law = MarchenkoPastur(2.0)
    with pytest.raises(gs.InvalidProblem, match="simulation"):
        SpectrumDisplay.from_spectra(spectrum(law), spectrum(law, matrix="weights"))
    with pytest.raises(gs.InvalidProblem, match="law"):
        SpectrumDisplay.from_spectra(spectrum(EmpiricalLaw([1.0])))
    grid = gs.Grid(PROBLEM, {"width": [1.0, 2.0]})
    with pytest.raises(gs.InvalidProblem, match="theory"):
        SpectrumDisplay.from_spectra(theory.weights(grid))
    assert SpectrumDisplay.from_spectra(theory.weights(grid)[0]).ax_ is not None
