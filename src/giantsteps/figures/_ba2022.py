"""Ba, Erdogdu, Suzuki, Wang, Wu, Yang (2022): one step of order one, its spike and its gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from giantsteps import theory
from giantsteps.displays import GREY, PALETTE
from giantsteps.figures._draft import Draft, logarithmic
from giantsteps.figures._figure import figure
from giantsteps.figures._networks import (
    leading_direction,
    leading_vectors,
    risk_of_its_weights,
)
from giantsteps.figures._simulations import Measured
from giantsteps.functions import centered
from giantsteps.problem import Grid, Problem, Ridge, Step

_PAPER = ("ba2022",)
_SAMPLES = r"samples $\alpha = n/d$"
_WIDTH = r"width $\beta = N/d$"
_RISK = r"test error $R$"
_VALUE = r"singular value of $W_1$"


#: The two readings of the published learning rate.
_READINGS = (
    "The published η = 2 is read for a loss without the factor 1/2, which is rate {rate:g} here: "
    "θ₁ = {high} > {threshold}, and there is a spike as in the paper. For a loss with that factor "
    "it would be rate 2, θ₁ = {low} < {threshold}, and there would be none."
)


@figure(
    "ba2022-weights",
    "The spike in the weights after one step",
    caption="tanh and a ReLU teacher (centred), n₀/d = 4, N/d = 2, d = {d}: (a) singular values of "
    "W₁; (b) entries of its first left singular vector against those of the teacher's direction, "
    "with the slope that theory predicts. "
    + _READINGS.replace("{high}", "1.40").replace("{low}", "0.70").replace("{threshold}", "1.19"),
    chosen="d, and no label noise.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 1, "rate": 4.0},
    quick={"d": 400, "seeds": 3},
    paper={"d": 2000, "seeds": 5},
)
def weights(draft: Draft, d: int, seeds: int, rate: float) -> None:
    problem = Problem(
        activation="tanh",
        teacher=centered("relu"),
        width=2.0,
        steps=[Step(samples=4.0, rate=rate)],
    )
    runs = draft.answers("weights", problem, d=d, seeds=seeds, top=1)
    first = draft.computed(leading_direction, problem, d=d, seeds=1)
    left, right = draft.axes(
        (_VALUE, "density"), (r"teacher $\sqrt{d}\,\beta_{*i}$", r"$\sqrt{d}\,u_{1i}$")
    )
    answer = theory.weights(problem)
    draft.spectrum(left, answer, runs)
    left.set_ylim(top=1.2 * left.get_ylim()[1])  # room for the legend
    found, overlap = first.value[0], answer.spikes[0].overlaps["teacher"]
    _cloud(draft, right, found["teacher"], found["vector"], float(overlap), "teacher")


@figure(
    "ba2022-kernel",
    "The spike in the conjugate kernel, and its eigenvector against the labels",
    caption="Centred SoftPlus, tanh teacher, n/d = n₀/d = 3/2, N/d = 5/4, d = {d}: (a) eigenvalues "
    "of K after one step; (b) entries of its top eigenvector against the labels, with the slope "
    "that theory predicts. "
    + _READINGS.replace("{high}", "1.59").replace("{low}", "0.79").replace("{threshold}", "1.06"),
    chosen="d, no label noise, and the centring of SoftPlus.",
    references=_PAPER,
    smoke={"d": 60, "seeds": 1, "rate": 4.0},
    quick={"d": 400, "seeds": 3},
    paper={"d": 2000, "seeds": 3},
)
def kernel(draft: Draft, d: int, seeds: int, rate: float) -> None:
    problem = Problem(
        activation=centered("softplus"),
        teacher="tanh",
        width=1.25,
        steps=[Step(samples=1.5, rate=rate)],
        readout=Ridge(samples=1.5, penalty=1e-3),
    )
    runs = draft.answers("kernel", problem, d=d, seeds=seeds, top=1)
    last = draft.computed(leading_vectors, problem, d=d, seeds=1, top=1)
    left, right = draft.axes(
        ("eigenvalue of $K$", "density"), (r"label $\tilde{y}_i$", r"$\sqrt{n}\,u_{1i}$")
    )
    answer = theory.kernel(problem)
    draft.spectrum(left, answer, runs)
    found, overlap = last.value[0], answer.spikes[0].overlap
    _cloud(draft, right, found["labels"], found["vectors"][:, 0], float(overlap), "labels")


def _cloud(draft: Draft, ax: Any, x: Any, vector: Any, overlap: float, name: str) -> None:
    """Entries of a singular vector of norm √n against x, and the line of that squared overlap."""
    vector = vector * np.sign(vector @ x)
    draft.cloud(ax, x, vector, f"singular vector against {name}")
    slope = np.sqrt(overlap * len(x) / (x @ x))
    ends = np.array([x.min(), x.max()])
    draft.line(ax, ends, slope * ends, "theory", color=PALETTE[0], zorder=4, label="theory")
    found = float((vector @ x) ** 2 / (len(vector) * (x @ x)))
    ax.set_ylim(top=1.5 * float(vector.max()))
    ax.legend(title=f"squared overlap:\ntheory {overlap:.3f}, simulation {found:.3f}")


def _curves(
    draft: Draft,
    ax: Any,
    problem: Callable[[float], Problem],
    x: Sequence[float],
    fine: Any,
    path: str,
    values: Sequence[Any],
    name: str,
    *,
    d: int,
    seeds: int,
    before: bool = True,
    gains: Any = None,
) -> None:
    """Curves along x, a problem per point, for several values of one field; theory at the same d.

    On the axes ``gains``, what the step takes off the error.
    """
    grids = [Grid(problem(at), {path: values}) for at in x]

    found = draft.measure(grids, "risk.test", d=d, seeds=seeds)
    start = draft.measure(grids, "risk.initial.test", d=d, seeds=seeds)[:, 0] if before else None
    smooth = [Grid(problem(at), {path: values}) for at in fine]
    curve = [draft.stated(theory.risk(grid, d=d)) for grid in smooth]
    if start is not None:
        line = [np.ravel(answer.initial.test)[0] for answer in curve if answer.initial is not None]
        draft.pair(ax, "before the step", 5, (fine, line), (x, start), color=GREY)
    for number, value in enumerate(values):
        after = [np.ravel(answer.test)[number] for answer in curve]
        points = found[:, number]
        draft.pair(ax, name.format(value), number, (fine, after), (x, points))
        if gains is not None and start is not None:
            gained = Measured.of(start.samples - points.samples)
            less = np.subtract(line, after)
            draft.pair(gains, name.format(value), number, (fine, less), (x, gained))


@figure(
    "ba2022-samples",
    "Test error and gain against samples after one step of order one",
    caption="tanh, SoftPlus teacher (centred), N/d = 2, λ = 1e-4, noise of standard deviation "
    "0.25, d = {d}, {seeds} networks per point; the step and the readout have n samples each: (a) "
    "test error, (b) what the step takes off it, network by network.",
    chosen="the rates η = {rates} and no bias (the teacher is centred).",
    references=_PAPER,
    smoke={"d": 40, "seeds": 2, "samples": (0.5, 1.0, 2.0), "fine": 7, "rates": (1.0, 3.0)},
    quick={"d": 160, "seeds": 6, "samples": (0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0),
           "fine": 60, "rates": (2.0, 4.0, 8.0)},
    paper={"d": 512, "seeds": 20},
)  # fmt: skip
def samples(
    draft: Draft, d: int, seeds: int, samples: Sequence[float], fine: int, rates: Sequence[float]
) -> None:
    def problem(alpha: float) -> Problem:
        return Problem(
            activation="tanh",
            teacher=centered("softplus"),
            noise_variance=0.25**2,
            width=2.0,
            steps=[Step(samples=alpha, rate=1.0)],
            readout=Ridge(samples=alpha, penalty=1e-4),
        )

    ax, right = draft.axes((_SAMPLES, _RISK), (_SAMPLES, r"gain of the step $R_0 - R_1$"))
    x = np.geomspace(min(samples), max(samples), fine)
    _curves(
        draft, ax, problem, samples, x,
        "steps.0.rate", list(rates), r"$\eta = {:g}$", d=d, seeds=seeds, gains=right,
    )  # fmt: skip
    logarithmic(ax)
    logarithmic(right, "x")
    right.axhline(0.0, color=GREY, linewidth=0.6, zorder=0)
    top = max(row["y"] for row in draft.rows if row["panel"] == "b" and row["source"] == "theory")
    right.set_ylim(-0.5 * top, 1.8 * top)  # the error bars at n = N are long
    ax.legend()
    right.legend()


@figure(
    "ba2022-width",
    "Test error against width after one step of order one",
    caption="tanh, ReLU teacher (centred), n/d = n₀/d = 5, λ = 1e-2, noise of standard deviation "
    "0.1, d = {d}, {seeds} networks per point.",
    chosen="d and the rates η = {rates}.",
    references=_PAPER,
    smoke={"d": 40, "seeds": 2, "widths": (0.5, 1.0, 2.0), "fine": 7, "rates": (1.0, 3.0)},
    quick={"d": 120, "seeds": 6, "widths": (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0),
           "fine": 40, "rates": (1.0, 2.0, 4.0)},
    paper={"d": 512, "seeds": 20},
)  # fmt: skip
def width(
    draft: Draft, d: int, seeds: int, widths: Sequence[float], fine: int, rates: Sequence[float]
) -> None:
    base = Problem(
        activation="tanh",
        teacher=centered("relu"),
        noise_variance=0.1**2,
        width=1.0,
        steps=[Step(samples=5.0, rate=1.0)],
        readout=Ridge(samples=5.0, penalty=1e-2),
    )
    (ax,) = draft.axes((_WIDTH, _RISK))
    x = np.linspace(min(widths), max(widths), fine)
    _curves(
        draft, ax, lambda beta: base.replace({"width": beta}), widths, x,
        "steps.0.rate", list(rates), r"$\eta = {:g}$", d=d, seeds=seeds,
    )  # fmt: skip
    draft.floor(ax, theory.bounds(base)["linear"], "kernel floor")
    ax.legend()


@figure(
    "ba2022-rate",
    "From small to large steps: below the floor of all kernels",
    caption="erf network and erf teacher, N/d = 2, λ = 1e-3, noise of standard deviation 0.1, η = "
    "N^e, d = {d}, {seeds} networks per point; the step and the readout have n samples each. "
    "Dashed: the floor of random features and rotation-invariant kernels; dotted: the slope Θ(d/n) "
    "of the paper's upper bound for e = 1/2.",
    chosen="d; theory is that of theory §5 at the same d, where the paper has bounds.",
    references=_PAPER,
    smoke={"d": 40, "seeds": 2, "samples": (1.0, 3.0), "fine": 5, "exponents": (0.0, 0.5)},
    quick={"d": 150, "seeds": 5, "samples": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0, 10.0),
           "fine": 80, "exponents": (0.0, 0.25, 0.375, 0.5)},
    paper={"d": 512, "seeds": 20},
)  # fmt: skip
def rate(
    draft: Draft, d: int, seeds: int, samples: Sequence[float], fine: int,
    exponents: Sequence[float],
) -> None:  # fmt: skip
    def problem(alpha: float) -> Problem:
        return Problem(
            activation="erf",
            teacher="erf",
            noise_variance=0.01,
            width=2.0,
            steps=[Step(samples=alpha, rate=1.0, exponent=0.5)],
            readout=Ridge(samples=alpha, penalty=1e-3),
        )

    (ax,) = draft.axes((_SAMPLES, _RISK))
    x = np.geomspace(min(samples), max(samples), fine)
    _curves(
        draft, ax, problem, samples, x,
        "steps.0.exponent", list(exponents), r"$e = {:g}$", d=d, seeds=seeds, before=False,
    )  # fmt: skip
    draft.floor(ax, theory.bounds(problem(1.0))["linear"], "kernel floor")
    last = float(theory.risk(problem(x[-1]).replace({"steps.0.exponent": exponents[-1]}), d=d).test)
    look: dict[str, Any] = {"color": GREY, "linestyle": ":", "linewidth": 0.9}
    draft.line(ax, x, 0.6 * last * x[-1] / x, "slope d/n", **look, label=r"slope $d/n$")
    logarithmic(ax)
    ax.legend(title=r"$\eta = N^e$", loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _several(steps: int, rate: float, alpha: float = 2.0) -> Problem:
    """ReLU (centred) and a tanh teacher after a few steps of order one."""
    return Problem(
        activation=centered("relu"),
        teacher="tanh",
        noise_variance=0.01,
        width=1.5,
        steps=[Step(samples=4.0, rate=rate)] * steps,
        readout=Ridge(samples=alpha, penalty=1e-2),
    )


@figure(
    "ba2022-steps",
    "Gaussian equivalence over several steps",
    caption="Centred ReLU, tanh teacher, t steps with η = {rate:g}, N/d = 1.5, n₀/d = 4 (fresh), λ "
    "= 0.01, noise of standard deviation 0.1, d = {d}, {seeds} networks per point. Lines: Gaussian "
    "features with the covariance of the very weights that were simulated; points: the network.",
    chosen="d, proportions, λ, noise, the rate, fresh batches and the numbers of steps.",
    references=_PAPER,
    smoke={"d": 40, "seeds": 2, "samples": (0.75, 2.0), "steps": (0, 2), "rate": 1.5},
    quick={"d": 200, "seeds": 6, "steps": (0, 1, 3, 6),
           "samples": (0.3, 0.6, 0.9, 1.2, 1.5, 1.8, 2.2, 2.8, 3.5, 4.5)},
    paper={"d": 600, "seeds": 20},
)  # fmt: skip
def steps(
    draft: Draft, d: int, seeds: int, samples: Sequence[float], steps: Sequence[int], rate: float
) -> None:
    problems = [_several(count, rate) for count in steps]
    grids = [Grid(p, {"readout.samples": samples}) for p in problems]
    found = draft.measure(grids, "risk.test", d=d, seeds=seeds)
    equivalent = [
        draft.computed(risk_of_its_weights, p, d=d, seeds=seeds, samples=list(samples))
        for p in problems
    ]
    (ax,) = draft.axes((r"readout samples $\alpha = n/d$", _RISK))
    for number, count in enumerate(steps):
        line = Measured.of_networks(equivalent[number], "test").mean
        name = "before the steps" if count == 0 else rf"$t = {count}$"
        draft.pair(ax, name, number, (samples, line), (samples, found[number]))
    draft.floor(ax, theory.bounds(problems[0])["linear"], "kernel floor")
    logarithmic(ax, "y")
    ax.set_ylim(0.02, 1.0)
    ax.legend(loc="upper right", ncols=2)


@figure(
    "ba2022-time",
    "Test error and alignment against the number of steps",
    caption="Centred ReLU, tanh teacher, steps with η on fresh batches, N/d = 1.5, n₀/d = 4, n/d = "
    "2, λ = 0.01, noise of standard deviation 0.1, d = {d}, {seeds} networks per point. Left: test "
    "error; right: squared overlap of the top singular vector of W_t with the teacher.",
    chosen="everything but the functions. Theory: the sum of small steps (theory §7) at the same "
    "d, in which the limit d → ∞ lets no step see the ones before.",
    references=_PAPER,
    smoke={"d": 40, "seeds": 2, "longest": 2, "rates": (2.0,)},
    quick={"d": 200, "seeds": 6, "longest": 8, "rates": (0.5, 1.0, 2.0)},
    paper={"d": 1000, "seeds": 20},
)
def time(draft: Draft, d: int, seeds: int, longest: int, rates: Sequence[float]) -> None:
    t = np.arange(longest + 1)
    curves = {rate: [_several(int(count), rate) for count in t] for rate in rates}

    networks = list(curves.values())
    risks = [draft.measure(curve, "risk.test", d=d, seeds=seeds) for curve in networks]
    overlap: dict[str, Any] = {"quantity": "weights.overlap.teacher", "top": 1, "bulk": False}
    overlaps = [draft.measure(curve, d=d, seeds=seeds, **overlap) for curve in networks]
    left, right = draft.axes(
        ("number of steps $t$", _RISK),
        ("number of steps $t$", r"squared overlap $\langle u_1, \beta_*\rangle^2$"),
    )
    for number, (rate, problems) in enumerate(curves.items()):
        name = rf"$\eta = {rate:g}$"
        error = [draft.stated(theory.risk(p, d=d)).test for p in problems]
        draft.pair(left, name, number, (t, error), (t, risks[number]))
        spectra = [draft.stated(theory.weights(p, d=d)) for p in problems]
        line = [s.spikes[0].overlap if s.spikes else 0.0 for s in spectra]
        draft.pair(right, name, number, (t, line), (t, overlaps[number][:, 0]))
    draft.floor(left, theory.bounds(problems[0])["linear"], "kernel floor")
    left.set_ylim(bottom=0.0)
    left.legend(loc="lower left", bbox_to_anchor=(0.0, 0.08), ncols=2)
    right.set_ylim(-0.03, 1.0)
    right.legend()
