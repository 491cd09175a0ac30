"""Our own figures: every rate on one curve, and the phases of one step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from giantsteps import theory
from giantsteps.displays import GREY, PhaseDiagramDisplay, colours
from giantsteps.figures._draft import Draft, logarithmic
from giantsteps.figures._figure import figure
from giantsteps.problem import Grid, Init, Problem, Ridge, Step

_PAPERS = ("ba2022", "moniri2023", "cui2024")


@figure(
    "own-rates",
    "One curve from no step to a giant step",
    caption="Test error against the learning rate η, tanh network, sin teacher, N = 1.5 d, n₀ = "
    "4d, n = 3d, λ = 0.1, Δ = 0.05, gaussian second layer, d = {d}, {seeds} networks per point. "
    "The equivalent model (theory §5) at that d over simulation, beside the limits it joins: a "
    "step of order one (theory §4) and of order √N (theory §5, N → ∞). Verticals: the rate at "
    "which the spike leaves the bulk, and the stairs N^{{1/4}}, N^{{1/3}} and √N.",
    references=_PAPERS,
    smoke={"d": 60, "seeds": 2, "fine": 7, "points": 3},
    quick={"d": 500, "seeds": 6, "fine": 50, "points": 12},
    paper={"d": 2000, "seeds": 20, "fine": 100, "points": 16},
)
def rates(draft: Draft, d: int, seeds: int, fine: int, points: int) -> None:
    problem = Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.05,
        width=1.5,
        steps=[Step(samples=4.0, rate=1.0)],
        readout=Ridge(samples=3.0, penalty=0.1),
    )
    neurons = problem.at(d).neurons
    top = 4.0 * math.sqrt(neurons)
    (ax,) = draft.axes((r"learning rate $\eta$", r"test error $R$"), width=4.5, height=2.8)
    x, coarse = np.geomspace(0.1, top, fine), np.geomspace(0.1, top, points)
    answer = draft.stated(theory.risk(Grid(problem, {"steps.0.rate": x}), d=d))
    grid = Grid(problem, {"steps.0.rate": coarse})
    found = draft.measure(grid, "risk.test", d=d, seeds=seeds)
    look: dict[str, Any] = {"linewidth": 0.9}
    small = theory.risk(Grid(problem, {"steps.0.rate": x}))
    draft.pair(ax, r"limit of $\eta = \Theta(1)$", 1, (x, small.test), None, **look, linestyle="--")
    large = problem.replace({"steps": [Step(samples=4.0, rate=1.0, exponent=0.5)]})
    moved = x[x > 0.05 * math.sqrt(neurons)]
    giant = theory.risk(Grid(large, {"steps.0.rate": moved / math.sqrt(neurons)}))
    name = r"limit of $\eta = \Theta(\sqrt{N})$"
    draft.pair(ax, name, 2, (moved, giant.test), None, **look, linestyle="-.")
    draft.pair(ax, f"every rate, $d = {d}$", 0, (x, answer.test), (coarse, found))
    draft.floor(ax, theory.bounds(problem)["linear"], "kernel floor")
    logarithmic(ax, "x")
    ax.set_xlim(x[0] / 1.1, x[-1] * 1.1)
    ax.set_ylim(bottom=0.0)
    places = {r"$\eta_c$": float(theory.critical_rate(problem)), r"$N^{1/4}$": neurons**0.25,
              r"$N^{1/3}$": neurons ** (1 / 3), r"$\sqrt{N}$": math.sqrt(neurons)}  # fmt: skip
    for text, place in places.items():
        draft.mark(ax, place, text)
        ax.annotate(
            text, (place, 1.0), xycoords=("data", "axes fraction"), xytext=(0, 2),
            textcoords="offset points", ha="center", va="bottom", fontsize=7, color=GREY,
        )  # fmt: skip
    handles, names = ax.get_legend_handles_labels()
    shown = [(h, n) for h, n in zip(handles, names) if n not in places]
    ax.legend(*zip(*shown), loc="lower left")


@figure(
    "own-phases",
    "Phases of one step",
    caption="What one step gains over the floor of all kernels, (E σ*² − μ₁*²) − R, over the "
    "movement η̃ = η/√N of a neuron and the batch n₀/d: tanh network, sin teacher, constant second "
    "layer, N = 2d, n = 6d, λ = 0.1, at d = {d} (theory), with the line on which the floor is "
    "crossed and the one on which the spike leaves the bulk of the weights.",
    references=_PAPERS,
    smoke={"d": 100, "fine": 5},
    quick={"d": 1000, "fine": 36},
    paper={"d": 4000, "fine": 72},
)
def phases(draft: Draft, d: int, fine: int) -> None:
    problem = Problem(
        activation="tanh",
        teacher="sin",
        width=2.0,
        steps=[Step(samples=4.0, rate=1.0, exponent=0.5)],
        readout=Ridge(samples=6.0, penalty=0.1),
        init=Init(second_layer="constant"),
    )
    label = (r"movement of a neuron $\tilde\eta = \eta/\sqrt{N}$", r"step samples $n_0/d$")
    (ax,) = draft.axes(label, height=2.8)
    x, y = np.geomspace(0.01, 3.0, fine), np.geomspace(0.2, 20.0, fine)
    display = PhaseDiagramDisplay.from_grid(
        problem,
        x="steps.0.rate",
        y="steps.0.samples",
        x_values=x,
        y_values=y,
        quantity="gain over floor",
        lines=("floor", "critical rate"),
        d=d,
        ax=ax,
    )
    ax.set_xlabel(label[0])
    draft.theory[problem.content_hash] = problem
    for alpha0, row in zip(y, display.values):
        draft.record(ax, f"floor - R at n0/d = {alpha0:.4g}", "theory", x, row, np.nan)
    for line in display.lines:
        for number, piece in enumerate(line.pieces):
            name = f"{line.label} {number}".replace("$", "")
            draft.record(ax, name, "theory", piece[:, 0], piece[:, 1], np.nan)


@figure(
    "own-bounds",
    "Bounds of the test error at the best penalty",
    caption="Spiked random features with c = 1, spike r = 0.9 and overlap γ = 1 written down by "
    "hand: tanh network, sin teacher, N = d, no noise. The risk at its best penalty lies between "
    "the two bounds of cui2024; thin lines: fixed penalties λ_s.",
    references=("cui2024",),
    smoke={"fine": 3, "penalties": (0.1,), "largest": 8.0},
    quick={"fine": 40, "penalties": (0.01, 0.1, 1.0), "largest": 500.0},
    paper={"fine": 120},
)
def bounds(draft: Draft, fine: int, penalties: Sequence[float], largest: float) -> None:
    (ax,) = draft.axes((r"readout samples $\alpha = n/d$", r"test error $R$"))
    model = theory.SpikedFeatures(
        activation="tanh", teacher="sin", width=1.0, spikes=0.9, overlap=1.0, bulk=1.0
    )
    x = np.geomspace(0.2, largest, fine)

    def error(alpha: float, lam: float) -> float:
        readout = Ridge(samples=float(alpha), penalty=lam / float(alpha))
        return float(draft.stated(model.risk(readout)).test)

    def best(alpha: float) -> float:
        found = minimize_scalar(
            lambda log: error(alpha, 10.0**log),
            bounds=(-4.0, 4.0), method="bounded", options={"xatol": 1e-3},
        )  # fmt: skip
        return float(found.fun)

    for number, lam in enumerate(penalties):
        look: dict[str, Any] = {"color": colours(6)[number + 1], "linewidth": 0.8, "zorder": 3}
        curve = (x, [error(a, lam) for a in x])
        draft.pair(ax, rf"$\lambda_s = {lam:g}$", number, curve, None, **look)
    draft.pair(ax, r"best $\lambda_s$", 0, (x, [best(a) for a in x]), None, linewidth=2.4)
    found = draft.stated(model.bounds())
    levels = (
        (found.ceilings["infinite penalty"], "upper bound", "--"),
        (found.floors["optimal penalty"], "lower bound", ":"),
    )
    for level, name, style in levels:
        look = {"color": "black", "linestyle": style, "linewidth": 0.8}
        draft.line(ax, x[[0, -1]], [level, level], name, **look, label=name)
    logarithmic(ax, "x")
    ax.set_ylim(bottom=0.0)
    ax.legend()
