r"""How far each step moves weights, pre-activations, features and output (theory §5b, §7, §10).

A neuron of type A has the lean L_A and a bulk of squared norm c_A. With the law of its change,
leans ΔL_A and a bulk of squared norm Δc_A, pre-activations h, h' before and after a step are
Gaussian with

.. math:: E h² = |L_A|² + c_A = v_A,\qquad E(h' - h)² = |ΔL_A|² + Δc_A = Δ_A,\qquad
          E h h' = (v_A + v'_A - Δ_A)/2 .

The output is E_A[A σ(h)] given the coordinates along the leans, so that its products are series in
the cosines of leans:

.. math:: E[f f'] = E_{A,B}\Bigl[AB\sum_k b_k(\sqrt{v_A})\,b_k(\sqrt{v'_B})
          \Bigl(\frac{⟨L_A, L'_B⟩}{\sqrt{v_Av'_B}}\Bigr)^k\Bigr] .
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.answers import Movement, Solution
from giantsteps.functions import Function
from giantsteps.gaussian import gauss_rule, hermite_at_scales, smoothed
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.leading import largest_value
from giantsteps.theory.steps.one import movement as rate_of
from giantsteps.theory.steps.several.covariance import covariance_of_state, weights_of_state
from giantsteps.theory.steps.several.fresh import leans_after, take_step
from giantsteps.theory.steps.several.history_moves import law_at, leans_at, moves_of
from giantsteps.theory.steps.several.model import trained_by
from giantsteps.theory.steps.several.opening import after_first
from giantsteps.theory.steps.several.spectrum import spectrum_of
from giantsteps.theory.steps.several.trained import Trained
from giantsteps.theory.steps.sign import SIGNS, sign_step
from giantsteps.types import FloatArray

#: Resolution of the recursion, and of the functions of a batch.
_LEVEL, _TOLERANCE = 2, 1e-2
#: Degree of the series of products of outputs, and ends of panels next to a kink.
_DEGREE, _NEAR = 100, 0.4 ** np.arange(1.0, 9.0)


@dataclass(frozen=True, eq=False)
class _Stage:
    """Neurons after some steps, or their change by one: leans (T, r) and bulk."""

    spikes: FloatArray
    bulk: NeuronCovariance

    @property
    def squares(self) -> FloatArray:
        """Squared norms of the neurons of each type."""
        return np.asarray((self.spikes**2).sum(axis=1) + self.bulk.totals)


@dataclass(frozen=True, eq=False)
class _Step:
    """One step: types, neurons before and after, their change, and leans in one space.

    With a covariance Σ of the inputs these are Σ^{1/2}w, and ``own`` the w before and their change.
    """

    values: FloatArray
    probabilities: FloatArray
    before: _Stage
    after: _Stage
    change: _Stage
    leans: tuple[FloatArray, FloatArray]
    own: tuple[_Stage, _Stage] | None = None

    @property
    def weights(self) -> tuple[_Stage, _Stage]:
        """The weights before the step, and their change."""
        return self.own or (self.before, self.change)


def movement(problems: Sequence[Problem], claims: Sequence[Any], d: int | None) -> list[Movement]:
    """The movement of each step of each problem."""
    return [_movement(problem, claim, d) for problem, claim in zip(problems, claims, strict=True)]


def _movement(problem: Problem, claim: Any, d: int | None) -> Movement:
    neurons = math.inf if d is None else float(problem.at(d).neurons)
    sized = problem if d is None else problem.realised(d)
    sign = sized.steps[0].rule in SIGNS
    reused = any(step.batch == "previous" for step in sized.steps)
    if sign:
        steps = [_sign(sized, d, neurons)]
    elif reused:
        steps = _remembered(sized, neurons)
    else:
        steps = _gradient(sized, d, neurons)
    rows = np.array([_row(sized, step, neurons) for step in steps]).T
    names = ("weights", "spectral", "preactivations", "features", "output")
    return Movement(
        **claim, solution=Solution(status="converged"), **dict(zip(names, rows, strict=True))
    )


def _row(problem: Problem, step: _Step, neurons: float) -> list[float]:
    p, sigma = step.probabilities, problem.activation
    before, change = step.weights
    return [
        math.sqrt((p @ change.squares) / (p @ before.squares)),
        _spectral(problem, step, neurons),
        math.sqrt(p @ step.change.squares),
        _features(sigma, step),
        _output(sigma, step),
    ]


# -- the steps -----------------------------------------------------------------------------------


def _start(types: int) -> _Stage:
    return _Stage(np.zeros((types, 1)), NeuronCovariance.isotropic(np.ones(types), 1))


def _gradient(problem: Problem, d: int | None, neurons: float) -> list[_Step]:
    """Steps along the gradient, each on a fresh batch."""
    spectrum, inverse = spectrum_of(problem, d), problem.width / neurons
    states = trained_by(problem, spectrum, neurons, _LEVEL, norms=False)
    first = states[0]

    def stage(trained: Trained) -> _Stage:
        return _Stage(trained.spikes, covariance_of_state(trained, spectrum, _TOLERANCE))

    def own(trained: Trained) -> _Stage:
        found = weights_of_state(trained, spectrum, _TOLERANCE)
        return _Stage(found.spikes, found.bulk)

    law = problem, spectrum, neurons, _LEVEL, False, (0.0, 0.0)
    changes, start = [after_first(*law, change=True)], _start(len(first.values))
    leans = [(0.0 * first.spikes, first.spikes)]
    for number, before in enumerate(states[:-1], start=1):
        taken = problem.steps[number]
        step = before, taken, rate_of(problem, number, neurons), _LEVEL, spectrum
        changes.append(take_step(problem, *step, kept=-taken.decay, inverse=inverse))
        leans.append(leans_after(problem, *step, inverse=inverse))
    stages = [start, *map(stage, states)]
    weights = stages if spectrum.flat else [start, *map(own, states)]
    return [
        _Step(
            first.values,
            first.probabilities,
            stages[number],
            stages[number + 1],
            stage(change),
            leans[number],
            None if spectrum.flat else (weights[number], own(change)),
        )
        for number, change in enumerate(changes)
    ]


def _remembered(problem: Problem, neurons: float) -> list[_Step]:
    """Steps of which some use a batch again."""
    course, views = moves_of(problem, neurons)
    own, times = course.neurons, range(len(course.rates))
    stages = [_start(len(own.values)), *(_Stage(*law_at(views, s + 1)) for s in times)]
    leans = [leans_at(course, s) for s in range(len(stages))]
    return [
        _Step(
            own.values,
            own.probabilities,
            stages[s],
            stages[s + 1],
            _Stage(*law_at(views, s + 1, since=s)),
            (leans[s], leans[s + 1]),
        )
        for s in times
    ]


def _sign(problem: Problem, d: int | None, neurons: float) -> _Step:
    """One sign step; what of its noise goes with the weights is in the norms after it."""
    after = sign_step(problem, d)
    change = sign_step(problem, d, kept=-problem.steps[0].decay)
    assert after.second_layer is not None
    leans = (0.0 * after.spikes, after.spikes)
    return _Step(
        after.second_layer,
        after.probabilities,
        _start(len(after.spikes)),
        _Stage(after.spikes, after.bulk),
        _Stage(change.spikes, change.bulk),
        leans,
    )


# -- what moves ----------------------------------------------------------------------------------


def _spectral(problem: Problem, step: _Step, neurons: float) -> float:
    """‖ΔW‖/‖W‖ in operator norm."""
    sizes = []
    for stage in reversed(step.weights):
        if math.isinf(neurons) and np.any(stage.spikes):
            gram = stage.spikes.T @ (step.probabilities[:, None] * stage.spikes)
            sizes.append((math.inf, math.sqrt(float(np.linalg.eigvalsh(gram)[-1]))))
            continue
        still = not stage.squares.any()
        law = (step.probabilities, stage.spikes, stage.bulk)
        sizes.append((0.0 if still else largest_value(problem.width, neurons, *law), 0.0))
    (moved, strong), (total, strength) = sizes
    return strong / strength if math.isinf(total) else moved / total


def _features(sigma: Function, step: _Step) -> float:
    """Root of E(σ(h') − σ(h))²/E σ(h)²."""
    v, w, change = (stage.squares[:, None] for stage in (step.before, step.after, step.change))
    slope = (v + w - change) / (2 * v)
    rest = np.sqrt(np.maximum(w - slope * slope * v, 0.0))
    # Panels narrow towards kinks of σ: given h, E σ(h') changes there on the scale of the noise.
    kinks = np.append(sigma.breakpoints(-8.5, 8.5), 0.0)
    near = kinks[:, None] + np.concatenate([-_NEAR, _NEAR])
    rule = gauss_rule(sigma, width=1.0, breakpoints=near.ravel())
    h = np.sqrt(v) * rule.nodes
    now, after = np.asarray(sigma(h), dtype=float), smoothed(sigma, slope * h, rest)
    spread = after.residual_variance + after.linear**2
    moved = rule.mean((after.mean - now) ** 2 + spread)
    return math.sqrt(
        float(step.probabilities @ moved) / float(step.probabilities @ rule.mean(now**2))
    )


def _output(sigma: Function, step: _Step) -> float:
    """Root of E(f' − f)²."""
    scales = [np.sqrt(stage.squares) for stage in (step.before, step.after)]
    series = [hermite_at_scales(sigma, scale, _DEGREE) for scale in scales]
    weights = step.probabilities * step.values

    def mean(i: int, j: int) -> float:
        cosines = step.leans[i] @ step.leans[j].T / np.outer(scales[i], scales[j])
        total, power = np.zeros_like(cosines), np.ones_like(cosines)
        for first, second in zip(series[i].T, series[j].T, strict=True):
            total, power = total + np.outer(first, second) * power, power * cosines
        return float(weights @ total @ weights)

    return math.sqrt(max(mean(0, 0) + mean(1, 1) - 2 * mean(0, 1), 0.0))
