"""Our own figures on several steps: time, fresh and reused batches, a second direction."""

from __future__ import annotations

from typing import Any

import numpy as np

from giantsteps import theory
from giantsteps.figures._draft import Draft
from giantsteps.figures._figure import figure
from giantsteps.figures._networks import direction_overlaps
from giantsteps.figures._simulations import Measured
from giantsteps.functions import MultiIndex, centered
from giantsteps.problem import Init, Problem, Ridge, Step

_BATCHES = {"fresh": "fresh batches", "previous": "one batch"}
_TIME = "number of steps $t$"
#: So many steps on one batch are followed by theory, by the law of the second layer.
_REUSED = {"gaussian": 3, "constant": 4}


def _steps(count: int, batch: str, samples: float, rate: float) -> list[Step]:
    first: dict[str, Any] = {"samples": samples, "rate": rate, "exponent": 0.5}
    return [Step(**first, batch=batch if number else "fresh") for number in range(count)]


@figure(
    "own-time",
    "Test error and alignment over several large steps",
    caption="tanh network, sin teacher, N = 1.5 d, n = 3d, λ = 0.1, Δ = 0.05, t steps with η̃ = "
    "0.7 and n₀ = 4d, on fresh batches or on one batch, d = {d}, {seeds} networks per point: test "
    "error with a gaussian (a) and a constant (b) second layer, and squared overlap of the first "
    "singular vector of the weights with the teacher (c, d). Theory follows fresh batches for any "
    "number of steps, and one batch for up to four; with a gaussian second layer the fourth takes "
    "long and is not drawn.",
    references=("cui2024", "moniri2026"),
    smoke={"d": 40, "seeds": 2, "longest": 1},
    quick={"d": 300, "seeds": 5, "longest": 4},
    paper={"d": 1000, "seeds": 20, "longest": 6},
)
def time(draft: Draft, d: int, seeds: int, longest: int) -> None:
    t = np.arange(longest + 1)

    def problem(law: str, batch: str, count: int) -> Problem:
        return Problem(
            activation="tanh",
            teacher="sin",
            noise_variance=0.05,
            width=1.5,
            steps=_steps(count, batch, 4.0, 0.7),
            readout=Ridge(samples=3.0, penalty=0.1),
            init=Init(second_layer=law),
        )

    laws = ("gaussian", "constant")
    networks = {(law, batch): problem(law, batch, longest) for law in laws for batch in _BATCHES}

    def measured(quantity: str) -> dict[tuple[str, str], Measured]:
        return {
            key: draft.measure(p, f"trajectory.{quantity}", d=d, seeds=seeds, top=1)
            for key, p in networks.items()
        }

    errors, overlaps = measured("test"), measured("overlap")
    panels = [(_TIME, r"test error $R$"), (_TIME, ""),
              (_TIME, r"overlap $\langle u_1, \beta_*\rangle^2$"), (_TIME, "")]  # fmt: skip
    axes = draft.axes(*panels, height=2.3)
    for place, law in enumerate(laws):
        for number, (batch, name) in enumerate(_BATCHES.items()):
            covered = longest if batch == "fresh" else min(longest, _REUSED[law])
            path = draft.stated(theory.trajectory(problem(law, batch, covered), d=d))
            assert path.test is not None
            assert path.overlap is not None
            x = np.arange(covered + 1)
            draft.pair(axes[place], name, number, (x, path.test), (t, errors[law, batch]))
            found = overlaps[law, batch].map(lambda samples: samples.reshape(len(t), -1))
            curve = (x, path.overlap[:, 0])
            draft.pair(axes[2 + place], name, number, curve, (t, found))
        draft.floor(axes[place], theory.bounds(problem(law, "fresh", 1))["linear"], "kernel floor")
        for ax in (axes[place], axes[2 + place]):
            ax.set_title(law)
            ax.set_xticks(t)
        axes[place].set_ylim(0.0, 0.32)
        axes[2 + place].set_ylim(-0.03, 1.03)
    axes[0].legend(loc="upper right")
    axes[2].legend(loc="lower right")


@figure(
    "own-directions",
    "A staircase in time: the second direction needs a second step",
    caption="Centred ReLU, teacher x₀ + x₀x₁ of two directions, N = 1.5 d, n = 3d, λ = 0.1, "
    "gaussian second layer, t steps with η̃ = {rate:g} on fresh batches of {samples:g}d samples, "
    "d = {d}, {seeds} networks per point: (a) squared norm of the projection of each direction "
    "onto the two leading singular vectors of the weights; (b) test error. The gradient of the "
    "first step sees x₀ alone; x₁ appears when the weights lean along x₀. Theory takes long for "
    "many steps and is drawn up to t = {followed}.",
    references=("moniri2026",),
    smoke={"d": 40, "seeds": 2, "longest": 2, "samples": 4.0, "rate": 1.0, "followed": 1},
    quick={"d": 300, "seeds": 6, "longest": 6, "samples": 8.0, "followed": 3},
    paper={"d": 1000, "seeds": 20, "longest": 8, "followed": 4},
)
def directions(
    draft: Draft, d: int, seeds: int, longest: int, samples: float, rate: float, followed: int
) -> None:
    def problem(count: int) -> Problem:
        return Problem(
            activation=centered("relu"),
            teacher=MultiIndex("x0 + x0*x1", rank=2),
            width=1.5,
            steps=_steps(count, "fresh", samples, rate),
            readout=Ridge(samples=3.0, penalty=0.1),
        )

    t = np.arange(longest + 1)
    networks = draft.computed(direction_overlaps, problem(longest), d=d, seeds=seeds)
    errors = draft.measure(problem(longest), "trajectory.test", d=d, seeds=seeds, top=1)
    left, right = draft.axes(
        (_TIME, "squared overlap with the weights"), (_TIME, r"test error $R$")
    )
    overlaps = Measured.of_networks(networks, "overlap")
    first = range(followed + 1)
    spikes = [draft.stated(theory.weights(problem(count), d=d)).spikes[:2] for count in first]
    for number in range(2):
        points = (t, overlaps[:, number])
        known = [sum(float(spike.overlaps[f"x{number}"]) for spike in some) for some in spikes]
        draft.pair(left, rf"direction $x_{number}$", number, (first, known), points)
    risks = [draft.stated(theory.risk(problem(count), d=d)).test for count in first]
    draft.pair(right, "theory and networks", 0, (first, risks), (t, errors))
    for ax in (left, right):
        ax.set_xticks(t)
        ax.legend()
    left.set_ylim(-0.03, 1.03)
    right.set_ylim(bottom=0.0)
