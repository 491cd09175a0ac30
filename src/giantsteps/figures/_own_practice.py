"""Our own figures on steps and inputs as they are in practice: rules, spectra, preconditioning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from giantsteps import theory
from giantsteps.errors import NotCovered
from giantsteps.figures._draft import Draft, logarithmic
from giantsteps.figures._figure import figure
from giantsteps.problem import Grid, PowerLaw, Problem, Ridge, Step

_RISK = r"test error $R$"


def _problem(inputs: PowerLaw | None = None, **step: Any) -> Problem:
    """tanh learns a noisy sine by one large step."""
    given: dict[str, Any] = {} if inputs is None else {"inputs": inputs}
    return Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.05,
        width=1.5,
        steps=[Step(**({"samples": 4.0, "rate": 1.0, "exponent": 0.5} | step))],
        readout=Ridge(samples=3.0, penalty=0.1),
        **given,
    )


@figure(
    "own-rules",
    "What the first step of SGD, Adam and Muon learns",
    caption="tanh network, sin teacher, gaussian second layer, N = 1.5 d, n₀ = 4d, n = 3d, λ = "
    "0.1, Δ = 0.05, d = {d}, {seeds} networks per point, against how far a neuron moves, which is "
    "the same for all rules: (a) test error, (b) squared overlap of the first singular vector of "
    "the weights with the teacher. The first step of Adam is the sign of the gradient; Muon takes "
    "its polar factor, all of whose singular values are equal. Muon is only simulated: there is "
    "no theory for it here.",
    references=("ba2022", "cui2024"),
    smoke={"d": 40, "seeds": 2, "rates": (0.5, 2.0), "fine": 3},
    quick={"d": 300, "seeds": 5, "rates": (0.25, 0.5, 1.0, 2.0, 4.0), "fine": 17},
    paper={"d": 1000, "seeds": 20, "fine": 33},
)
def rules(draft: Draft, d: int, seeds: int, rates: Sequence[float], fine: int) -> None:
    names = {"normalized": "SGD", "sign": "Adam", "muon": "Muon"}
    grids = {rule: Grid(_problem(rule=rule), {"steps.0.rate": rates}) for rule in names}
    errors = {
        rule: draft.measure(grid, "risk.test", d=d, seeds=seeds) for rule, grid in grids.items()
    }
    overlap: dict[str, Any] = {"quantity": "weights.overlap.teacher", "top": 1, "bulk": False}
    overlaps = {
        rule: draft.measure(
            [_problem(rule=rule, rate=float(rate)) for rate in rates], d=d, seeds=seeds, **overlap
        )
        for rule in names
    }
    label = r"movement of a neuron $\tilde\eta$"
    left, right = draft.axes(
        (label, _RISK), (label, r"squared overlap $\langle u_1, \beta_*\rangle^2$")
    )
    x = np.geomspace(min(rates), max(rates), fine)
    for number, (rule, name) in enumerate(names.items()):
        curve: tuple[Any, Any] | None = None
        line: tuple[Any, Any] | None = None
        try:
            grid = Grid(_problem(rule=rule), {"steps.0.rate": x})
            curve = (x, draft.stated(theory.risk(grid, d=d)).test)
            coarse = x[:: max(1, fine // 8)]
            known = [_problem(rule=rule, rate=float(rate)) for rate in coarse]
            spectra = [draft.stated(theory.weights(p, d=d)) for p in known]
            line = (coarse, [s.spikes[0].overlaps["teacher"] if s.spikes else 0 for s in spectra])
        except NotCovered:
            pass  # the caption says so
        draft.pair(left, name, number, curve, (rates, errors[rule]))
        draft.pair(right, name, number, line, (rates, overlaps[rule][:, 0]))
    draft.floor(left, theory.bounds(_problem())["linear"], "kernel floor")
    for ax in (left, right):
        logarithmic(ax, "x")
        ax.legend(loc="upper left", ncols=2)
    top = max(row["y"] for row in draft.rows if row["panel"] == "a" and row["y"] == row["y"])
    left.set_ylim(0.0, 1.35 * top)
    right.set_ylim(-0.03, 1.2)


@figure(
    "own-inputs",
    "Inputs with a power law, and when a preconditioned step helps",
    caption="tanh network, sin teacher, gaussian second layer, one step with η̃ = 1, N = 1.5 d, n₀ "
    "= 4d, n = 3d, λ = 0.1, Δ = 0.05, inputs whose covariance has eigenvalues ∝ i^-a, d = {d}, "
    "{seeds} networks per point; the step multiplies the gradient by Σ^-p: (a) against a, for a "
    "teacher without a preference; (b) against the exponent b of β*_i² ∝ i^-b at a = 0.5: a "
    "teacher along the trailing directions for b < 0, along the leading ones for b > 0.",
    references=("ba2022", "cui2024"),
    smoke={"d": 40, "seeds": 2, "exponents": (0.0, 0.4), "teachers": (-0.5, 0.3), "fine": 3},
    quick={"d": 250, "seeds": 6, "exponents": (0.0, 0.2, 0.4, 0.6, 0.8),
           "teachers": (-1.0, -0.5, 0.0, 0.2, 0.4), "fine": 13},
    paper={"d": 1000, "seeds": 20, "fine": 41},
)  # fmt: skip
def inputs(
    draft: Draft, d: int, seeds: int, exponents: Sequence[float], teachers: Sequence[float],
    fine: int,
) -> None:  # fmt: skip
    powers = {0.0: "gradient", 0.5: r"times $\Sigma^{-1/2}$", 1.0: r"times $\Sigma^{-1}$"}

    def decays(at: Any) -> list[PowerLaw]:
        return [PowerLaw(float(a)) for a in at]

    def aligned(at: Any) -> list[PowerLaw]:
        return [PowerLaw(0.5, float(b)) for b in at]

    panels = ((exponents, decays), (teachers, aligned))
    ask = partial(draft.measure, quantity="risk.test", d=d, seeds=seeds, test_samples=10_000)
    found = [
        [ask([_problem(law, precondition=p) for law in laws(at)]) for p in powers]
        for at, laws in panels
    ]
    axes = draft.axes(
        ("exponent $a$ of the eigenvalues", _RISK), ("exponent $b$ of the teacher", "")
    )
    for ax, (at, laws), measured in zip(axes, panels, found):
        x = np.linspace(min(at), max(at), fine)
        for number, (power, name) in enumerate(powers.items()):
            cells = [_problem(law, precondition=power) for law in laws(x)]
            line = [draft.stated(theory.risk(p, d=d)).test for p in cells]
            draft.pair(ax, name, number, (x, line), (at, measured[number]))
    axes[0].legend()
