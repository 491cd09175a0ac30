"""Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro (2024): one giant step, constant readout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps import theory
from giantsteps.displays import GREY
from giantsteps.figures._draft import Draft, logarithmic
from giantsteps.figures._figure import figure
from giantsteps.figures._networks import spiked_ridge
from giantsteps.figures._simulations import Measured
from giantsteps.gaussian import smoothed
from giantsteps.problem import Grid, Problem, Ridge
from giantsteps.theory import SpikedFeatures
from giantsteps.types import FloatArray

_PAPER = ("cui2024",)
_SAMPLES = r"readout samples $\alpha = n/d$"
_RISK = r"test error $R$"


def _problem(**values: Any) -> Problem:
    return Problem.from_convention("cui2024", **values)


@figure(
    "cui2024-1",
    "The function learned along the teacher",
    caption="tanh network, tanh teacher, N = d, n = 2d, η̃ = 2.5 (η = 2.5 N in the paper's units), "
    "λ_s = 0.01, d = {d}, {seeds} networks; the mean of the prediction given the projection of the "
    "input on the teacher, with a band of one standard deviation (theory), and the teacher "
    "(dashed), for batches n₀/d = {batches}; 0 is the network before its step.",
    chosen="the batches above 0, and d.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 2, "batches": (0.0, 4.0)},
    quick={"d": 400, "seeds": 5, "batches": (0.0, 0.5, 2.0, 8.0)},
    paper={"d": 2000, "seeds": 10},
)
def learned(draft: Draft, d: int, seeds: int, batches: Sequence[float]) -> None:
    step = {"activation": "tanh", "teacher": "tanh", "beta": 1.0, "alpha": 2.0,
            "eta_tilde": 2.5, "lam": 0.01}  # fmt: skip
    problems = [
        _problem(**step, alpha0=alpha0) if alpha0 else _problem(**step, alpha0=1.0).untrained()
        for alpha0 in batches
    ]
    runs = [
        draft.answers("learned_function", p, d=d, seeds=seeds, along="teacher") for p in problems
    ]
    label = r"projection on the teacher $\langle x, \beta_*\rangle$"
    labels = [(label, "prediction" if i == 0 else "") for i in range(len(batches))]
    axes = draft.axes(*labels, height=2.1, sharey=True)
    for ax, alpha0, problem, found in zip(axes, batches, problems, runs):
        draft.function(ax, theory.learned_function(problem, d=d, along="teacher"), found)
        if ax is not axes[0]:
            legend = ax.get_legend()
            if legend is not None:
                legend.remove()
        ax.set_title(rf"$\alpha_0 = {alpha0:g}$" + ("" if alpha0 else ", no step"))


@figure(
    "cui2024-2",
    "Learning curves after one giant step",
    caption="Constant second layer, N = d, η̃ = 1: tanh network, (a) tanh teacher, λ_s = 0.01, (b) "
    "sin teacher, λ_s = 0.1, d = {d}, {seeds} networks per point; batches n₀/d = {batches}. "
    "Dashed: the floor of all kernels, E σ*² − μ₁*².",
    chosen="N = d, d, and the batches.",
    references=_PAPER,
    smoke={"d": 50, "seeds": 2, "batches": (1.0, 8.0), "samples": (0.5, 1.5), "fine": 5},
    quick={"d": 400, "seeds": 10, "batches": (0.5, 2.0, 8.0),
           "samples": (0.2, 0.5, 0.8, 1.2, 1.6, 2.0, 2.5, 3.0), "fine": 40},
    paper={"d": 2000, "seeds": 10, "batches": (0.5, 1.0, 2.0, 8.0)},
)  # fmt: skip
def curves(
    draft: Draft, d: int, seeds: int, batches: Sequence[float], samples: Sequence[float], fine: int
) -> None:
    x = np.linspace(min(samples), max(samples), fine)
    teachers = {"tanh": 0.01, "sin": 0.1}

    def problem(teacher: str, alpha0: float) -> Problem:
        return _problem(
            activation="tanh", teacher=teacher, beta=1.0, alpha=1.0, alpha0=alpha0,
            eta_tilde=1.0, lam=teachers[teacher],
        )  # fmt: skip

    def measured(teacher: str, alpha0: float, quantity: str) -> Measured:
        grid = _at(problem(teacher, alpha0), samples, teachers[teacher])
        return draft.measure(grid, quantity, d=d, seeds=seeds)

    found = {(t, a): measured(t, a, "risk.test") for t in teachers for a in batches}
    start = {t: measured(t, batches[0], "risk.initial.test") for t in teachers}
    axes = draft.axes((_SAMPLES, _RISK), (_SAMPLES, _RISK))
    for ax, (teacher, lam) in zip(axes, teachers.items()):
        for number, alpha0 in enumerate(batches):
            answer = draft.stated(theory.risk(_at(problem(teacher, alpha0), x, lam), d=d))
            name = rf"$\alpha_0 = {alpha0:g}$"
            draft.pair(ax, name, number, (x, answer.test), (samples, found[teacher, alpha0]))
        assert answer.initial is not None
        curve = (x, answer.initial.test)
        draft.pair(ax, "before the step", 5, curve, (samples, start[teacher]), color=GREY)
        draft.floor(ax, theory.bounds(problem(teacher, 1.0))["linear"], "kernel floor")
        ax.set_title(f"tanh network, {teacher} teacher")
        logarithmic(ax, "y")
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _at(problem: Problem, samples: Sequence[float] | NDArray[Any], lam: float) -> Grid:
    """Readouts with a fixed penalty of the sum loss: λ = λ_s β/α."""
    return Grid(
        problem,
        {"readout": [Ridge(samples=float(a), penalty=lam * problem.width / a) for a in samples]},
    )


def _model(activation: str, teacher: str, spike: float, d: int | None = None) -> SpikedFeatures:
    """Spiked random features with c = 1 and γ = 1, written down by hand."""
    neurons = math.inf if d is None else float(d)
    return SpikedFeatures(
        activation=activation,
        teacher=teacher,
        width=1.0,
        neurons=neurons,
        spikes=spike,
        overlap=1.0,
        bulk=1.0,
    )


def _sum_loss(alpha: float, lam: float) -> Ridge:
    return Ridge(samples=float(alpha), penalty=lam / float(alpha))


@figure(
    "cui2024-3",
    "The functions that realise the bounds at the best penalty",
    caption="Spiked random features with c = 1 and overlap γ = 1 written down by hand, tanh "
    "network, sin teacher, for spikes r = {spikes}: the teacher h(k) given the projection k on the "
    "spike, the closest multiple of μ₀(k) = E σ(rk + z), whose distance is the upper bound of the "
    "test error at the best penalty, and the closest ν₁μ₀(k) + ν₂kμ₁(k), whose distance is the "
    "lower bound. The legends state both.",
    chosen="the functions and the spikes.",
    references=_PAPER,
    smoke={"fine": 9, "spikes": (0.9,)},
    quick={"fine": 161, "spikes": (0.5, 0.9)},
    paper={"fine": 401},
)
def bounds(draft: Draft, fine: int, spikes: Sequence[float]) -> None:
    label = r"projection on the spike $k$"
    axes = draft.axes(
        *((label, "function of $k$" if i == 0 else "") for i in range(len(spikes))), sharey=True
    )
    x = np.linspace(-4.0, 4.0, fine)
    for ax, spike in zip(axes, spikes):
        model = _model("tanh", "sin", spike)
        found = draft.stated(model.bounds())
        shown = _closest(model, x)
        draft.line(ax, x, shown["target"], "teacher", color="black", linestyle="--", linewidth=0.8,
                   label="teacher $h(k)$")  # fmt: skip
        upper, lower = found.ceilings["infinite penalty"], found.floors["optimal penalty"]
        named = {
            "infinite penalty": rf"upper bound, $R \leq {float(upper):.4f}$",
            "optimal penalty": rf"lower bound, $R \geq {float(lower):.4f}$",
        }
        for number, (name, text) in enumerate(named.items()):
            draft.pair(ax, text, number, (x, shown[name]), None)
        ax.set_title(rf"$r = {spike:g}$")
        ax.set_ylim(-2.1, 3.3)  # room for the legend
        ax.legend(loc="upper left")


def _closest(model: SpikedFeatures, x: FloatArray) -> dict[str, FloatArray]:
    """h(k) and its projections on μ₀(k), and on μ₀(k) and kμ₁(k), in mean square (theory §4)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(101)
    points, root = np.concatenate([nodes, x]), np.sqrt(weights)[:, None]
    strength, scale = float(model.spikes[0, 0]), math.sqrt(float(model.bulk.totals[0]))
    seen = smoothed(model.activation, strength * points, np.full_like(points, scale))
    target = model.target(points[:, None])
    bases = {
        "infinite penalty": np.stack([seen.mean], axis=-1),
        "optimal penalty": np.stack([seen.mean, points * seen.slope], axis=-1),
    }
    found = {"target": target[len(nodes) :]}
    for name, basis in bases.items():
        inside = slice(None, len(nodes))
        fit = np.linalg.lstsq(basis[inside] * root, target[inside] * root[:, 0], rcond=None)[0]
        found[name] = basis[len(nodes) :] @ fit
    return found


@figure(
    "cui2024-4",
    "Spiked random features: error against samples for several spikes",
    caption="Spiked random features with c = 1, overlap γ = 1 and spike r, weights on the sphere, "
    "N = d, λ_s = 0.1: (a) sin activation, sign teacher; (b) tanh, tanh. Points: direct draws of "
    "the model, d = {d}, {seeds} draws per point; lines: theory at the same d.",
    chosen="N = d, the overlap γ = 1, the spikes r = {spikes} and d.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 2, "spikes": (0.0, 1.0), "samples": (0.5, 2.0), "fine": 4},
    quick={"d": 300, "seeds": 6, "spikes": (0.0, 0.5, 1.0, 2.0),
           "samples": (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0), "fine": 30},
    paper={"d": 1000, "seeds": 20},
)  # fmt: skip
def spiked(
    draft: Draft, d: int, seeds: int, spikes: Sequence[float], samples: Sequence[float], fine: int
) -> None:
    panels = (("sin", "sign"), ("tanh", "tanh"))

    def drawn(functions: tuple[str, str], spike: float) -> Measured:
        features = Problem(activation=functions[0], teacher=functions[1], width=1.0)
        readouts = [(r.samples, r.penalty) for r in (_sum_loss(a, 0.1) for a in samples)]
        networks = draft.computed(
            spiked_ridge, features, d=d, seeds=seeds, spike=spike, readouts=readouts
        )
        return Measured.of_networks(networks, "test")

    found = {(f, spike): drawn(f, spike) for f in panels for spike in spikes}
    axes = draft.axes((_SAMPLES, _RISK), (_SAMPLES, _RISK))
    x = np.linspace(min(samples), max(samples), fine)
    for ax, functions in zip(axes, panels):
        for number, spike in enumerate(spikes):
            model = _model(*functions, spike, d)
            line = [draft.stated(model.risk(_sum_loss(a, 0.1))).test for a in x]
            name = rf"$r = {spike:g}$"
            draft.pair(ax, name, number, (x, line), (samples, found[functions, spike]))
        ax.set_title(f"{functions[0]} features, {functions[1]} teacher")
        logarithmic(ax, "y")
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


@figure(
    "cui2024-5",
    "Test error against width after one giant step",
    caption="tanh network, sin teacher, n₀/d = 1.5, n/d = 1.2, λ_s = 0.1, constant second layer, d "
    "= {d}, {seeds} networks per point; η̃ = {rates}.",
    chosen="the rates η̃ and d.",
    references=_PAPER,
    smoke={"d": 50, "seeds": 2, "rates": (1.0,), "widths": (0.5, 1.5), "fine": 5},
    quick={"d": 250, "seeds": 6, "rates": (0.5, 1.0, 2.0),
           "widths": (0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0), "fine": 40},
    paper={"d": 1000, "seeds": 20},
)  # fmt: skip
def width(
    draft: Draft, d: int, seeds: int, rates: Sequence[float], widths: Sequence[float], fine: int
) -> None:
    x = np.linspace(min(widths), max(widths), fine)

    def problems(rate: float, at: Sequence[float] | NDArray[Any]) -> list[Problem]:
        return [
            _problem(
                activation="tanh", teacher="sin", beta=float(beta), alpha=1.2, alpha0=1.5,
                eta_tilde=rate, lam=0.1,
            )
            for beta in at
        ]  # fmt: skip

    found = [draft.measure(problems(r, widths), "risk.test", d=d, seeds=seeds) for r in rates]
    start = draft.measure(problems(rates[0], widths), "risk.initial.test", d=d, seeds=seeds)
    (ax,) = draft.axes((r"width $\beta = N/d$", _RISK))
    for number, rate in enumerate(rates):
        answers = [draft.stated(theory.risk(p, d=d)) for p in problems(rate, x)]
        curve = (x, [answer.test for answer in answers])
        name = rf"$\tilde\eta = {rate:g}$"
        draft.pair(ax, name, number, curve, (widths, found[number]))
    line = [answer.initial.test for answer in answers if answer.initial is not None]
    draft.pair(ax, "before the step", 5, (x, line), (widths, start), color=GREY)
    draft.floor(ax, theory.bounds(problems(1.0, [1.0])[0])["linear"], "kernel floor")
    ax.legend()
