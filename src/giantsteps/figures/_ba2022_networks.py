"""Ba, Erdogdu, Suzuki, Wang, Wu, Yang (2022): what networks and kernels show by simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from giantsteps import theory
from giantsteps.displays import GREY
from giantsteps.figures._draft import Draft, logarithmic
from giantsteps.figures._figure import figure
from giantsteps.figures._networks import covariance_gap, kernel_errors, neurons
from giantsteps.figures._simulations import Measured
from giantsteps.problem import Grid, Problem, Ridge, Step

_PAPER = ("ba2022",)


@figure(
    "ba2022-neurons",
    "Neurons before and after training to a small loss (settings chosen here)",
    caption="tanh network, tanh teacher, N/d = 2, one batch of 8d samples used {steps} times with "
    "η̃ = 2, d = {d}, one network: every neuron in the plane of the teacher's direction and one at "
    "right angles to it, (a) before and (b) after training; (c) the loss on the batch. Simulation "
    "alone: theory follows one batch for two steps.",
    chosen="everything but what is shown.",
    references=_PAPER,
    smoke={"d": 40, "steps": 3},
    quick={"d": 200, "steps": 30},
    paper={"d": 1000, "steps": 60},
)
def aligned(draft: Draft, d: int, steps: int) -> None:
    step: dict[str, Any] = {"samples": 8.0, "rate": 2.0, "exponent": 0.5}
    problem = Problem(
        activation="tanh",
        teacher="tanh",
        width=2.0,
        steps=[Step(**step), *[Step(**step, batch="previous")] * (steps - 1)],
    )
    (network,) = draft.computed(neurons, problem, d=d, seeds=1).value
    label = (r"along the teacher $\langle w, \beta_*\rangle$", "orthogonal to it")
    left, middle, right = draft.axes(
        label, (label[0], ""), ("number of steps $t$", "loss on the batch"), height=2.2
    )
    reach = 1.05 * float(np.abs(network["after"]).max())
    titles = {"before": "before the first step", "after": f"after {steps} steps"}
    for ax, (name, title) in zip((left, middle), titles.items()):
        along, across = network[name]
        draft.cloud(ax, along, across, f"neurons {name}", s=4.0)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", title=title)
    points = Measured.of(np.asarray(network["loss"])[:, None])
    draft.pair(right, "loss", 0, None, (np.arange(steps + 1), points), markersize=2.0)
    logarithmic(right, "y")


@figure(
    "ba2022-kernels",
    "No rotation-invariant kernel gets below the floor",
    caption="erf teacher, noise of standard deviation 0.1, d = {d}, {seeds} draws per point: test "
    "error against samples of ridge regression with three kernels, each at its best penalty: "
    "Gaussian, exponential of the inner product, and the tangent kernel of an untrained erf "
    "network (both layers, N/d = 2); and of that network's features (conjugate kernel), λ = 0.1, "
    "before and after one step with η̃ = 2 and n₀/d = 8. Dashed: the floor of all "
    "rotation-invariant kernels, E σ*² − μ₁*².",
    chosen="the kernels, d, λ and the step.",
    references=_PAPER,
    smoke={"d": 30, "seeds": 2, "samples": (1.0, 3.0), "fine": 3},
    quick={"d": 150, "seeds": 4, "samples": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0), "fine": 40},
    paper={"d": 400, "seeds": 10},
)
def kernels(draft: Draft, d: int, seeds: int, samples: Sequence[float], fine: int) -> None:
    problem = Problem(
        activation="erf",
        teacher="erf",
        noise_variance=0.01,
        width=2.0,
        steps=[Step(samples=8.0, rate=2.0, exponent=0.5)],
        readout=Ridge(samples=1.0, penalty=0.1),
    )
    grid = Grid(problem, {"readout.samples": samples})
    after = draft.measure(grid, "risk.test", d=d, seeds=seeds)
    before = draft.measure(grid, "risk.initial.test", d=d, seeds=seeds)
    found = draft.computed(kernel_errors, problem, d=d, seeds=seeds, samples=list(samples))
    (ax,) = draft.axes((r"samples $\alpha = n/d$", r"test error $R$"), width=4.5, height=2.6)
    x = np.geomspace(min(samples), max(samples), fine)
    answer = draft.stated(theory.risk(Grid(problem, {"readout.samples": x}), d=d))
    assert answer.initial is not None
    names = {"gaussian": "Gaussian kernel", "exponential": "exponential kernel",
             "tangent": "tangent kernel"}  # fmt: skip
    for number, (key, name) in enumerate(names.items(), 1):
        draft.pair(ax, name, number, None, (samples, Measured.of_networks(found, key)))
    draft.pair(ax, "conjugate kernel", 5, (x, answer.initial.test), (samples, before), color=GREY)
    draft.pair(ax, "after a large step", 0, (x, answer.test), (samples, after))
    draft.floor(ax, theory.bounds(problem)["linear"], "kernel floor")
    logarithmic(ax)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


@figure(
    "ba2022-tangent",
    "Test error with the conjugate and the tangent kernel (settings chosen here)",
    caption="erf network and erf teacher, N/d = 2, noise of standard deviation 0.1, λ = "
    "{penalty:g}: ridge regression with the features of the network (conjugate kernel) and with "
    "those of its tangent kernel, before and after one step on 8d samples, d = {d}, {seeds} "
    "networks per point. (a) η = 2, a step of order one; (b) η = 2 N^(1/2), a giant step. Theory "
    "does not cover the tangent kernel. Dashed: the floor of rotation-invariant kernels.",
    chosen="everything.",
    references=_PAPER,
    smoke={"d": 30, "seeds": 2, "samples": (1.0, 3.0), "fine": 3, "penalty": 0.1},
    quick={"d": 150, "seeds": 5, "samples": (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0), "fine": 40},
    paper={"d": 400, "seeds": 20},
)
def tangent(
    draft: Draft, d: int, seeds: int, samples: Sequence[float], fine: int, penalty: float
) -> None:
    base = Problem(
        activation="erf",
        teacher="erf",
        noise_variance=0.01,
        width=2.0,
        steps=[Step(samples=8.0, rate=2.0)],
        readout=Ridge(samples=1.0, penalty=penalty),
    )
    steps = [base.replace({"steps.0.exponent": exponent}) for exponent in (0.0, 0.5)]
    kernels = {"risk": "conjugate kernel", "tangent_risk": "tangent kernel"}
    measured = [
        {
            name: draft.measure(Grid(problem, {"readout.samples": samples}), name, d=d, seeds=seeds)
            for kernel in kernels
            for name in (f"{kernel}.initial.test", f"{kernel}.test")
        }
        for problem in steps
    ]
    labels = (r"samples $\alpha = n/d$", r"test error $R$")
    axes = draft.axes(labels, labels, height=2.8, sharey=True)
    x = np.geomspace(min(samples), max(samples), fine)
    titles = (r"$\eta = 2$", r"$\eta = 2\sqrt{N}$")
    for ax, title, problem, found in zip(axes, titles, steps, measured):
        ax.set_title(title)
        answer = draft.stated(theory.risk(Grid(problem, {"readout.samples": x}), d=d))
        assert answer.initial is not None
        curves = {"risk.initial.test": answer.initial.test, "risk.test": answer.test}
        for number, (name, points) in enumerate(found.items()):
            kernel, _, when = name.partition(".")
            label = f"{kernels[kernel]}, {'after' if when == 'test' else 'before'}"
            curve = (x, curves[name]) if name in curves else None
            draft.pair(ax, label, number, curve, (samples, points))
        draft.floor(ax, theory.bounds(problem)["linear"], "kernel floor")
        logarithmic(ax)
    axes[0].legend()


@figure(
    "ba2022-covariance",
    "How far features are from Gaussian ones with the same weights",
    caption="Operator norm ‖Σ_Φ − Σ̄_Φ‖ against d: Σ_Φ is the covariance of erf features of the "
    "weights after one step with η = N^e (erf teacher, N/d = 2, n₀/d = 4), Σ̄_Φ that of Gaussian "
    "features with the same weights, {seeds} networks per point. It vanishes for small steps, and "
    "does not for large ones.",
    chosen="functions, proportions and sizes.",
    references=_PAPER,
    smoke={"seeds": 2, "sizes": (20, 40), "exponents": (0.0, 0.5)},
    quick={"seeds": 4, "sizes": (50, 100, 200, 400), "exponents": (0.0, 0.125, 0.25, 0.5)},
    paper={"seeds": 10, "sizes": (100, 200, 400, 800, 1600)},
)
def covariance(draft: Draft, seeds: int, sizes: Sequence[int], exponents: Sequence[float]) -> None:
    base = Problem(activation="erf", teacher="erf", width=2.0, steps=[Step(samples=4.0, rate=1.0)])
    cells = {"no step": base.untrained()} | {
        f"$e = {e:g}$": base.replace({"steps.0.exponent": e}) for e in exponents
    }
    found = {
        (name, d): draft.computed(covariance_gap, problem, d=d, seeds=seeds)
        for name, problem in cells.items()
        for d in sizes
    }
    (ax,) = draft.axes(
        ("input dimension $d$", r"$\Vert\Sigma_\Phi - \bar\Sigma_\Phi\Vert$"), width=4.2
    )
    for number, name in enumerate(cells):
        gaps = Measured.stack([Measured.of_networks(found[name, d], "gap")[0] for d in sizes])
        look: dict[str, Any] = {"color": GREY} if name == "no step" else {}
        draft.pair(ax, name, (number + 5) % 6, None, (sizes, gaps), **look)
    logarithmic(ax, "y")
    ax.set_xscale("log")
    ax.set_xticks(list(sizes), [str(size) for size in sizes])
    ax.minorticks_off()
    ax.legend(title=r"$\eta = N^e$", loc="upper left", bbox_to_anchor=(1.0, 1.0))
