"""Moniri, Hassani (2026): two steps, fresh or on one batch twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from giantsteps import theory
from giantsteps.answers import OutlierCount
from giantsteps.figures._draft import Draft
from giantsteps.figures._figure import figure
from giantsteps.figures._simulations import Measured
from giantsteps.functions import centered
from giantsteps.problem import Grid, Init, Problem, Step

_PAPER = ("moniri2026",)
_ACTIVATION = "tanh(x) + 0.5*tanh(x)**2"
_HIDDEN = "he2(x)/2 + he3(x)/12**0.5"
_BATCHES = {"fresh": "fresh batch", "previous": "reused batch"}
_MANY = 7  # counts from here on share a colour
_CHOSEN = "the activation tanh + 0.5 tanh² (centred; its c₂ does not vanish), proportions, rates"


def _problem(
    teacher: Any,
    exponents: tuple[float, float],
    batch: str,
    rate: float = 2.0,
    activation: str = _ACTIVATION,
) -> Problem:
    """Two steps with N = d, n₀ = 4d."""
    first, second = exponents
    return Problem(
        activation=centered(activation),
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
    "The spectrum of the weights after two steps (settings chosen here)",
    caption="Singular values of W₂, exponents {exponents} with rate 2, N = d, n₀ = 4d, d = {d}; σ "
    "= tanh + tanh², teacher sin x − cos 1.5x (both centred): fresh batches (left), one batch "
    "twice (right).",
    chosen="functions (c₂ and c₂* do not vanish, labels are bounded: those with heavy tails bring "
    "outliers of their own), proportions, rates and d.",
    references=_PAPER,
    smoke={"d": 80, "seeds": 1, "exponents": (0.35, 0.45)},
    quick={"d": 600, "seeds": 2, "exponents": (0.4, 0.5)},
    paper={"d": 2000, "seeds": 3},
)
def spectra(draft: Draft, d: int, seeds: int, exponents: tuple[float, float]) -> None:
    teacher = centered("sin(x) - cos(1.5*x)")
    problems = [
        _problem(teacher, exponents, batch, activation="tanh(x) + tanh(x)**2") for batch in _BATCHES
    ]
    runs = [draft.answers("weights", p, d=d, seeds=seeds, top=4) for p in problems]
    label = (r"singular value of $W_2$", "density")
    axes = draft.axes(label, label)
    for ax, problem, found, title in zip(axes, problems, runs, _BATCHES.values()):
        display = draft.spectrum(ax, theory.weights(problem, d=d), found)
        display.axes_[0].set_title(title)


@figure(
    "moniri2026-count",
    "The number of outliers over the two exponents (settings chosen here)",
    caption="Over the exponents (e₁, e₂) of the two steps, in the limit: (a) all outliers of W₂, "
    "(b) the formula ⌊e₂/(1/2 − e₁)⌋ of the paper's abstract. The formula counts what the second "
    "step adds; all outliers are these, if the Hermite coefficient of order k + 1 does not vanish "
    "for each k up to it, and the outlier along A that both steps share. Lines: e₂ = k(1/2 − e₁).",
    chosen=f"{_CHOSEN}.",
    references=_PAPER,
    smoke={"fine": 8},
    quick={"fine": 99},
    paper={"fine": 197},
)
def count(draft: Draft, fine: int) -> None:
    label = (r"first exponent $e_1$", r"second exponent $e_2$")
    axes = draft.axes(label, label, height=2.6)
    first, second = np.linspace(0.0, 0.49, fine), np.linspace(0.0, 0.5, fine)
    problem = _problem("sin", (0.25, 0.25), "fresh")
    grid = Grid(problem, {"steps.0.exponent": first, "steps.1.exponent": second})
    answer = draft.stated(theory.outlier_count(grid))
    formula = np.floor(second / (0.5 - first[:, None]) + 1e-9)
    counts = {
        "all outliers of $W_2$": answer,
        "formula of the abstract": replace(answer, count=formula),
    }
    for ax, (title, shown) in zip(axes, counts.items()):
        _outlier_map(ax, shown)
        ax.set_title(title)
        for e2, row in zip(second, np.asarray(shown.count).T):
            draft.record(ax, f"outliers at e2 = {e2:.4g}", "theory", first, row, np.nan)


def _outlier_map(ax: Any, answer: OutlierCount) -> None:
    """Counts over the plane of the two exponents, light for few and dark for many, even in grey.

    Lines are e₂ = k(1/2 − e₁), where the term with right vector A^(k+1) appears, if it does.
    """
    from matplotlib import colormaps, colors

    values = np.minimum(np.asarray(answer.count), _MANY).T
    shades = [colormaps["Blues"](0.02 + 0.9 * k / _MANY) for k in range(_MANY + 1)]
    norm = colors.BoundaryNorm(np.arange(-0.5, _MANY + 1), _MANY + 1)
    first, second = answer.coords.values()
    mesh = ax.pcolormesh(
        first, second, values, cmap=colors.ListedColormap(shades), norm=norm, rasterized=True
    )
    low, high = int(values.min()), int(values.max())
    for name in list(answer.sizes)[1 : _MANY + 1 - low]:
        k = int(name.partition("^")[2] or 1) - 1
        ends = np.array([max(0.5 - second.max() / k, 0.0), first.max()])
        ax.plot(ends, k * (0.5 - ends), color="black", linewidth=0.7)
    ax.set(xlim=(first.min(), first.max()), ylim=(second.min(), second.max()))
    bar = ax.figure.colorbar(mesh, ax=ax, ticks=np.arange(low, high + 1), label="outliers")
    bar.ax.set_ylim(low - 0.5, high + 0.5)
    names = [f"{k}" if k < _MANY else rf"$\geq {k}$" for k in range(low, high + 1)]
    bar.ax.set_yticklabels(names)
    bar.ax.minorticks_off()


@figure(
    "moniri2026-overlap",
    "What a reused batch sees and a fresh one does not (settings chosen here)",
    caption="Squared length of the teacher in the span of the two leading singular vectors of W₂ "
    "against the rate of both steps, e = (0.35, 0.45), teacher He₂/2 + He₃/√12, N = d, n₀ = 4d, d "
    "= {d}, {seeds} networks per point: fresh batches or one batch twice.",
    chosen=f"{_CHOSEN} and d.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 2, "rates": (3.0,), "fine": 1},
    quick={"d": 400, "seeds": 8, "rates": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0), "fine": 12},
    paper={"d": 1500, "seeds": 20, "fine": 31},
)
def overlap(draft: Draft, d: int, seeds: int, rates: Sequence[float], fine: int) -> None:
    def problems(batch: str, at: Sequence[float]) -> list[Problem]:
        return [_problem(_HIDDEN, (0.35, 0.45), batch, float(rate)) for rate in at]

    found = [_found(draft, problems(batch, rates), d, seeds) for batch in _BATCHES]
    (ax,) = draft.axes((r"rate of both steps", r"squared overlap $\langle u, \beta_*\rangle^2$"))
    x = np.linspace(min(rates), max(rates), fine)
    for number, (batch, name) in enumerate(_BATCHES.items()):
        curve = [_leading(draft, p, d) for p in problems(batch, x.tolist())]
        draft.pair(ax, name, number, (x, curve), (rates, found[number]))
    ax.set_ylim(bottom=-0.01)
    ax.legend()


#: How many leading vectors count.
_LEADING = 2


def _leading(draft: Draft, problem: Problem, d: int) -> float:
    """Squared length of the teacher in the span of the leading outliers, by theory."""
    spikes = draft.stated(theory.weights(problem, d=d)).spikes
    return float(sum(spike.overlaps["teacher"] for spike in spikes[:_LEADING]))


def _found(draft: Draft, problems: Sequence[Problem], d: int, seeds: int) -> Measured:
    """The same by simulation, for each problem."""
    name, options = "weights.overlap.teacher", {"top": _LEADING, "bulk": False}
    found = draft.measure(problems, name, d=d, seeds=seeds, **options)
    return found.map(lambda samples: samples.sum(axis=1))


@figure(
    "moniri2026-exponents",
    "Information exponents one, two and three (settings chosen here)",
    caption="Squared length of the teacher in the span of the two leading singular vectors of W₂, "
    "against the exponent e₂ of the second step (e₁ = 0.35, rates 2, N = d, n₀ = 4d, d = {d}, "
    "{seeds} networks per point), for teachers of information exponent one (sin), two (He₂/2 + "
    "He₃/√12) and three (He₃/√6): (a) fresh batches, (b) one batch twice.",
    chosen=f"{_CHOSEN}, the teachers and d.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 2, "exponents": (0.3, 0.5), "fine": 2, "highest": 1},
    quick={
        "d": 300,
        "seeds": 8,
        "exponents": (0.1, 0.2, 0.3, 0.4, 0.5),
        "fine": 9,
        "highest": 3,
    },
    paper={"d": 1500, "seeds": 20, "fine": 21},
)
def exponents(
    draft: Draft, d: int, seeds: int, exponents: Sequence[float], fine: int, highest: int
) -> None:
    teachers = ("sin", _HIDDEN, "he3(x)/6**0.5")[:highest]

    def problems(teacher: str, batch: str, at: Sequence[float]) -> list[Problem]:
        return [_problem(teacher, (0.35, float(e)), batch) for e in at]

    found = {
        (batch, teacher): _found(draft, problems(teacher, batch, exponents), d, seeds)
        for batch in _BATCHES
        for teacher in teachers
    }
    label = (r"exponent $e_2$ of the second step", r"squared overlap with $\beta_*$")
    axes = draft.axes(label, (label[0], ""), sharey=True)
    x = np.linspace(min(exponents), max(exponents), fine)
    for ax, (batch, title) in zip(axes, _BATCHES.items()):
        for number, teacher in enumerate(teachers):
            curve = [_leading(draft, p, d) for p in problems(teacher, batch, x.tolist())]
            points = (exponents, found[batch, teacher])
            draft.pair(ax, f"{number + 1}", number, (x, curve), points)
        ax.set(title=title, ylim=(-0.03, 1.0))
    axes[1].legend(title="information\nexponent", loc="upper left", bbox_to_anchor=(1.0, 1.0))
