"""Moniri, Hassani (2026): two steps, fresh or on one batch twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps import simulation, theory
from giantsteps.displays._style import GREY
from giantsteps.figures._draft import Draft, Measured
from giantsteps.figures._figure import figure
from giantsteps.functions import centered
from giantsteps.problem import Grid, Init, Problem, Step

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_PAPER = ("moniri2026",)
_ACTIVATION = "tanh(x) + 0.5*tanh(x)**2"
_HIDDEN = "he2(x)/2 + he3(x)/12**0.5"
_CHOSEN = "the activation tanh + 0.5 tanh² (centred; its c₂ does not vanish), proportions, rates"


def _problem(
    teacher: str, exponents: tuple[float, float], batch: str, rate: float = 2.0
) -> Problem:
    """Two steps with N = d, n₀ = 4d."""
    first, second = exponents
    return Problem(
        activation=centered(_ACTIVATION),
        teacher=teacher,
        width=1.0,
        steps=[
            Step(samples=4.0, rate=rate, exponent=first),
            Step(samples=4.0, rate=rate, exponent=second, batch=batch),
        ],
        init=Init(weights="sphere"),
    )


@figure(
    "moniri2026-spectra",
    "The spectrum of the weights after two steps",
    caption="Singular values of W₂, exponents {exponents} with rate 2, N = d, n₀ = 4d, d = {d}; "
    "teacher He₂/2 + He₃/√12 (information exponent two): fresh batches (left), one batch twice "
    "(right).",
    chosen=f"{_CHOSEN}, the teacher and d.",
    references=_PAPER,
    smoke={"d": 80, "seeds": 1, "exponents": (0.35, 0.45)},
    quick={"d": 600, "seeds": 2, "exponents": (0.4, 0.5)},
    paper={"d": 2000, "seeds": 3},
)
def spectra(draft: Draft, d: int, seeds: int, exponents: tuple[float, float]) -> Drawing:
    label = (r"singular value of $W_2$", "density")
    drawing, axes = draft.axes(label, label)
    for ax, batch, title in zip(axes, ("fresh", "previous"), ("fresh batch", "reused batch")):
        problem = _problem(_HIDDEN, tuple(exponents), batch)
        runs = draft.simulated(simulation.weights, problem, d=d, seeds=seeds, top=3)
        display = draft.spectrum(ax, theory.weights(problem, d=d), runs)
        display.axes_[0].set_title(title)
    return drawing


@figure(
    "moniri2026-count",
    "The number of outliers over the two exponents",
    caption="Terms of W₂ that do not vanish, over the exponents (e₁, e₂) of the two steps, in the "
    "limit: the first outlier, and one more for each k = 1 … ⌊e₂/(1/2 − e₁)⌋ with c_{{k+1}} ≠ 0. "
    "Lines: e₂ = k(1/2 − e₁).",
    chosen=f"{_CHOSEN}.",
    references=_PAPER,
    smoke={"fine": 8, "most": 5},
    quick={"fine": 80},
    paper={"fine": 200},
)
def count(draft: Draft, fine: int, most: int) -> Drawing:
    drawing, (ax,) = draft.axes((r"exponent $e_1$ of the first step", r"exponent $e_2$ of the second"),
                                height=2.7)  # fmt: skip
    # Cell centres: the lines themselves are boundaries.
    centres = (np.arange(fine) + 0.5) / fine * 0.5
    problem = _problem("sin", (0.25, 0.25), "fresh")
    grid = Grid(problem, {"steps.0.exponent": 0.98 * centres, "steps.1.exponent": centres})
    answer = draft.stated(theory.outlier_count(grid))
    counts = np.minimum(np.asarray(answer.count, dtype=float).T, most)
    colours = _shades(most)
    mesh = ax.pcolormesh(
        0.98 * centres, centres, counts, cmap=colours, vmin=0.5, vmax=most + 0.5,
        shading="nearest", rasterized=True,
    )  # fmt: skip
    for j, e2 in enumerate(centres):
        draft._record(ax, f"outliers at e2 = {e2:.4g}", "theory", 0.98 * centres, counts[j], np.nan)
    for k in range(1, most):
        e1 = np.linspace(0.0, 0.5, 101)
        e2 = k * (0.5 - e1)
        inside = e2 <= 0.5
        look: dict[str, Any] = {"color": "white", "linewidth": 0.8}
        draft.line(ax, e1[inside], e2[inside], f"k = {k}", **look)
    bar = drawing.colorbar(mesh, ax=ax, ticks=np.arange(1, most + 1), label="outliers")
    bar.ax.set_yticklabels([*map(str, range(1, most)), rf"$\geq {most}$"])
    ax.set_xlim(0.0, 0.49)
    ax.set_ylim(0.0, 0.5)
    return drawing


def _shades(count: int) -> Any:
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(0.05, 0.92, count)))


@figure(
    "moniri2026-overlap",
    "What a reused batch sees and a fresh one does not",
    caption="Largest squared overlap with the teacher among the leading singular vectors of W₂ "
    "against the rate of both steps, e = (0.35, 0.45), teacher He₂/2 + He₃/√12, N = d, n₀ = 4d, "
    "d = {d}, {seeds} networks a point: fresh batches or one batch twice. The overlap of a network "
    "is summed over its two leading singular vectors.",
    chosen=f"{_CHOSEN} and d.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 2, "rates": (1.0, 3.0), "fine": 3},
    quick={"d": 400, "seeds": 8, "rates": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0), "fine": 15},
    paper={"d": 1500, "seeds": 20, "fine": 31},
)
def overlap(draft: Draft, d: int, seeds: int, rates: Sequence[float], fine: int) -> Drawing:
    drawing, (ax,) = draft.axes(
        (r"rate of both steps", r"squared overlap $\langle u, \beta_*\rangle^2$")
    )
    x = np.linspace(min(rates), max(rates), fine)
    for number, (batch, name) in enumerate(
        (("fresh", "fresh batch"), ("previous", "reused batch"))
    ):
        curve = [_leading(draft, _problem(_HIDDEN, (0.35, 0.45), batch, float(r)), d) for r in x]
        found = [
            _found(draft, _problem(_HIDDEN, (0.35, 0.45), batch, float(r)), d, seeds) for r in rates
        ]
        draft.pair(ax, name, number, (x, curve), (rates, Measured.stack(found)))
    ax.set_ylim(-0.03, 1.0)
    ax.legend()
    return drawing


#: How many leading vectors count.
_LEADING = 2


def _leading(draft: Draft, problem: Problem, d: int) -> float:
    """Squared length of the teacher in the span of the leading outliers, by theory."""
    spikes = draft.stated(theory.weights(problem, d=d)).spikes
    return float(sum(spike.overlaps["teacher"] for spike in spikes[:_LEADING]))


def _found(draft: Draft, problem: Problem, d: int, seeds: int) -> Measured:
    runs = draft.simulated(simulation.weights, problem, d=d, seeds=seeds, top=_LEADING, bulk=False)
    return Measured.of([sum(spike.overlap for spike in run.spikes) for run in runs])


@figure(
    "moniri2026-exponents",
    "Information exponents one, two and three",
    caption="Squared length of the teacher in the span of the two leading singular vectors of W₂, "
    "against the exponent e₂ of the second step (e₁ = 0.35, rates 2, N = d, n₀ = 4d, d = {d}, "
    "{seeds} networks a point), for teachers of information exponent one (sin), two "
    "(He₂/2 + He₃/√12) and three (He₃/√6): (a) fresh batches, (b) one batch twice.",
    chosen=f"{_CHOSEN}, the teachers and d.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 2, "exponents": (0.2, 0.45), "fine": 3},
    quick={"d": 300, "seeds": 8, "exponents": (0.1, 0.2, 0.3, 0.4, 0.5), "fine": 11},
    paper={"d": 1500, "seeds": 20, "fine": 21},
)
def exponents(draft: Draft, d: int, seeds: int, exponents: Sequence[float], fine: int) -> Drawing:
    label = (r"exponent $e_2$ of the second step", r"squared overlap with $\beta_*$")
    drawing, axes = draft.axes(label, label, sharey=True)
    teachers = {"1": "sin", "2": _HIDDEN, "3": "he3(x)/6**0.5"}
    x = np.linspace(min(exponents), max(exponents), fine)
    for ax, batch, title in zip(axes, ("fresh", "previous"), ("fresh batch", "reused batch")):
        for number, (name, teacher) in enumerate(teachers.items()):
            curve = [_leading(draft, _problem(teacher, (0.35, float(e)), batch), d) for e in x]
            found = [
                _found(draft, _problem(teacher, (0.35, float(e)), batch), d, seeds)
                for e in exponents
            ]
            label_ = f"information exponent {name}"
            draft.pair(ax, label_, number, (x, curve), (exponents, Measured.stack(found)))
        ax.axhline(_LEADING / d, color=GREY, linewidth=0.6, linestyle=":")
        draft._record(ax, "by chance", "reference", np.nan, _LEADING / d, np.nan)
        ax.set_title(title)
        ax.set_ylim(-0.03, 1.0)
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawing
