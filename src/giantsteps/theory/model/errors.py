"""Errors of ridge regression on equivalent models, each with an estimate of its own error (§5c)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from giantsteps.answers import Risk
from giantsteps.errors import NotConverged, NotCovered
from giantsteps.gaussian import hermite_coefficients, hermite_functions
from giantsteps.problem import Ridge, is_binary
from giantsteps.theory.model.classification import Predicted, wrong_sign
from giantsteps.theory.model.ridge_batch import DEGREES, RidgeBatch, risks_of
from giantsteps.theory.model.rules import LEVELS
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.readout import Readout, read_out
from giantsteps.theory.solver.state import Equations
from giantsteps.theory.solver.system import System
from giantsteps.types import Array, FloatArray

__all__ = [
    "BAD",
    "GOOD",
    "Cell",
    "Solved",
    "refine",
    "ridge_batch",
    "risk_of_models",
    "solve_cells",
]

#: Share of E_k[ω] from |k| > 6 (1e-9 without features) beyond which there is no answer.
_FAR_SHARE = 1e-4
#: Numbers that a stack of cells may hold at once.
_MEMORY = 6_000_000
#: Changes to the next resolution below which an answer is good, and above which it is none: of
#: models of several steps, whose equations are approximate, and of one.
GOOD, BAD = (1e-3, 1e-9), (3e-3, 1e-6)
#: What rounding may do with one type of neurons, and with several, whose functions nearly depend on
#: each other.
_ROUNDING = (1e-13, 3e-10)
#: Channels that a continuous second layer has, for the memory.
_RANK = 6

#: A model and a readout of it.
Cell = tuple[SpikedFeatures, Ridge]


@dataclass(frozen=True, eq=False)
class Solved:
    """The readouts of some cells at one resolution."""

    readouts: list[Readout]
    residual: FloatArray
    iterations: Array


def solve_cells(
    cells: Sequence[Cell], level: int, points: Sequence[FloatArray | None] | None = None
) -> Solved:
    """Solve every cell at one resolution; stacks are by shape and rank, and leave no trace."""
    if points is not None:
        systems = [
            model.at_level(level).system([readout], level, extra)
            for (model, readout), extra in zip(cells, points, strict=True)
        ]
        return _solve(cells, systems)
    return _solve(cells, _systems(cells, [level] * len(cells)))


def _solve(cells: Sequence[Cell], systems: Sequence[System]) -> Solved:
    """The readouts of systems that belong to the cells."""
    readouts: list[Readout | None] = [None] * len(cells)
    residual, iterations = np.zeros(len(cells)), np.zeros(len(cells), dtype=int)
    for members in _stacks(systems):
        whole = System.stack([systems[i] for i in members])
        ranks = whole.decomposed[2]
        for rank in np.unique(ranks):
            some = np.flatnonzero(ranks == rank)
            stack = whole if len(some) == len(members) else whole.take(some)
            solved = solve_state(Equations(stack), stack.penalty)
            places = [members[position] for position in some]
            for position, i in enumerate(places):
                residual[i], iterations[i] = (
                    solved.residual[position],
                    solved.iterations[position],
                )
                if not solved.converged[position]:
                    raise _not_converged(*cells[i], residual[i], int(iterations[i]))
            found = read_out(solved.state)
            for position, i in enumerate(places):
                readouts[i] = found.take(slice(position, position + 1))
    known = [readout for readout in readouts if readout is not None]
    for (model, readout), found in zip(cells, known, strict=True):
        if found.far[0] > _FAR_SHARE:
            raise NotCovered(
                f"{readout} on {model.describe()}",
                "σ saturates, so samples far along the spike have no feature variance and λ → 0 "
                "has no limit",
                "a larger penalty",
            )
    return Solved(known, residual, iterations)


def _systems(cells: Sequence[Cell], levels: Sequence[int]) -> list[System]:
    """One system for each cell; those of one model are made together."""
    groups: dict[tuple[int, int], list[int]] = {}
    for i, (model, _) in enumerate(cells):
        groups.setdefault((id(model), levels[i]), []).append(i)
    found: dict[int, System] = {}
    for (_, level), members in groups.items():
        model = cells[members[0]][0].at_level(level)
        system = model.system([cells[i][1] for i in members], level)
        for position, i in enumerate(members):
            found[i] = system if len(members) == 1 else system.take(np.array([position]))
    return [found[i] for i in range(len(cells))]


def _stacks(systems: Sequence[System]) -> Iterator[list[int]]:
    """Indices of systems solved together: of one shape, and as many as the memory holds."""
    groups: dict[object, list[int]] = {}
    for i, system in enumerate(systems):
        groups.setdefault(system.shape, []).append(i)
    for members in groups.values():
        system = systems[members[0]]
        rank = min(system.probabilities.shape[1], _RANK)
        types, modes, nodes = system.mean.shape[1:]
        packed = rank * (rank + 1) // 2
        size = (packed + types) * (nodes + 3 * (packed + types)) + types * modes * nodes
        for batch, stage in zip(system.bulk.batches, system.bulk.stages, strict=True):
            blocks = (1 + 2 * batch.factors.shape[1]) * rank
            size += batch.weights.shape[1] * (6 * blocks**2 + 3 * blocks * len(stage.place) * rank)
        count = max(1, _MEMORY // size)
        for start in range(0, len(members), count):
            yield members[start : start + count]


def _not_converged(
    model: SpikedFeatures, readout: Ridge, residual: float, rounds: int
) -> Exception:
    return NotConverged(
        f"the equivalent model of {model.describe()} with {readout}",
        float(residual),
        int(rounds),
        "a larger penalty, or samples further from the width (without penalty the error diverges "
        "at n = N)",
    )


@dataclass(frozen=True, eq=False)
class Refined:
    """Readouts at the resolution where they no longer change, and what the last change was.

    Attributes
    ----------
    readouts : list of Readout
    levels : list of int
    error : ndarray of shape (B,)
        Estimate of the relative error: the change from the resolution before.
    residual, iterations : ndarray of shape (B,)
    """

    readouts: list[Readout]
    levels: list[int]
    error: FloatArray
    residual: FloatArray
    iterations: Array


def refine(cells: Sequence[Cell]) -> Refined:
    """Solve every cell at two resolutions, and at finer ones until its errors no longer change.

    Raises
    ------
    NotConverged
        Where the errors still change by too much at the finest resolution.
    """
    count = len(cells)
    first = [model.levels[0] for model, _ in cells]
    # Both of the first two resolutions at once: what has the same shape costs little more than one.
    pairs = [*_systems(cells, first), *_systems(cells, [level + 1 for level in first])]
    both = _solve([*cells, *cells], pairs)
    last, found = list(both.readouts[:count]), list(both.readouts[count:])
    residual, iterations = both.residual[count:], both.iterations[count:]
    levels = [level + 1 for level in first]
    error = np.array([_change(*each) for each in zip(cells, last, found, strict=True)])
    while True:
        waiting = [
            i
            for i, (model, _) in enumerate(cells)
            if (error[i] > GOOD[model.levels[0] > 0] and levels[i] < model.levels[1])
            # One more resolution where there would be no answer at all.
            or (error[i] > BAD[model.levels[0] > 0] and levels[i] == model.levels[1] < LEVELS - 1)
        ]
        if not waiting:
            break
        for i in waiting:
            levels[i] += 1
        some = [cells[i] for i in waiting]
        solved = _solve(some, _systems(some, [levels[i] for i in waiting]))
        for position, i in enumerate(waiting):
            error[i] = _change(cells[i], found[i], solved.readouts[position])
            found[i] = solved.readouts[position]
            residual[i], iterations[i] = solved.residual[position], solved.iterations[position]
    rounding = np.array([_ROUNDING[len(model.probabilities) > 1] for model, _ in cells])
    error = np.maximum(error, np.maximum(rounding, 10.0 * residual))
    bad = np.flatnonzero(~(error <= [BAD[model.levels[0] > 0] for model, _ in cells]))
    for cell in bad.tolist():
        model, readout = cells[cell]
        raise NotConverged(
            f"the quadratures of {model.describe()} with {readout}",
            float(error[cell]),
            LEVELS,
            "a smaller rate, a larger penalty, or smoother functions",
        )
    return Refined(found, levels, error, residual, iterations)


def _change(cell: Cell, old: Readout, new: Readout) -> float:
    """Largest relative change of test and train error."""
    noise = cell[0].noise_variance
    test = abs(float(new.error[0] - old.error[0])) / max(abs(float(new.error[0]) - noise), 1e-300)
    scale = max(float(new.train[0]), 1e-12 * float(new.error[0]))
    return max(test, abs(float(new.train[0] - old.train[0])) / scale)


def ridge_batch(cells: Sequence[Cell]) -> RidgeBatch:
    """Errors of every cell, in this order; none sees its neighbours, to the last bit."""
    refined = refine(cells)
    error = np.array([float(found.error[0]) for found in refined.readouts])
    degrees = [
        by_degree(model.at_level(level), found, level)
        for (model, _), level, found in zip(cells, refined.levels, refined.readouts, strict=True)
    ]
    wrong = [
        wrong_sign_of_model(model.at_level(level), found, level)
        for (model, _), level, found in zip(cells, refined.levels, refined.readouts, strict=True)
    ]
    return RidgeBatch(
        test=error - np.array([model.noise_variance for model, _ in cells]),
        train=np.array([float(found.train[0]) for found in refined.readouts]),
        by_degree=np.stack(degrees),
        residual=refined.residual,
        iterations=refined.iterations,
        error=refined.error,
        classification_error=np.array(wrong),
    )


def wrong_sign_of_model(model: SpikedFeatures, readout: Readout, level: int) -> float:
    """The probability of a wrong sign; NaN unless the teacher takes the values ±1."""
    if not is_binary(model.teacher):
        return math.nan
    rule = model.coordinates(level)
    count = len(rule.weights)
    fit, slope, bend, variance = (
        getattr(readout, name)[0, :count] for name in ("fit", "slope", "bend", "variance")
    )
    predicted = Predicted(rule.weights, fit, slope, bend, variance)
    return wrong_sign(
        predicted, lambda z: model.labels(rule.nodes, z), model.label_jumps(rule.nodes)
    )


def risk_of_models(
    cells: Sequence[Cell],
    initial: Sequence[Risk] | None = None,
    claims: Sequence[Any] | None = None,
) -> list[Risk]:
    """The risk of each model and readout, beside that of the untrained features.

    Claims are those of the models unless given: models may stand for several problems.
    """
    stated = [model.stated for model, _ in cells] if claims is None else claims
    return risks_of(ridge_batch(cells), stated, initial)


def by_degree(
    model: SpikedFeatures, readout: Readout, level: int, degree: int = DEGREES - 1
) -> Array:
    r"""The part of E(f̂ − f*)² on He_j(⟨x, β*⟩), j = 0 … degree, shape (degree + 1,).

    Given k, the prediction is C(k) + s(k) z + b(k)(z² − 1), z the teacher's coordinate orthogonal
    to the spikes, and E_z He_j(γ·k + √(1−|γ|²) z) = |γ|^j He_j(γ̂·k).
    """
    if model.teacher.rank > 1:
        return np.full(degree + 1, np.nan)
    rule = model.coordinates(level)
    length = math.sqrt(float(model.overlap @ model.overlap))
    along = rule.nodes @ (model.overlap / length) if length > 0 else rule.nodes[:, 0]
    basis = hermite_functions(along, degree) * rule.weights
    fit, slope, bend = (
        values[0, : len(along)] for values in (readout.fit, readout.slope, readout.bend)
    )
    powers = length ** np.arange(degree + 1)
    learned = basis @ fit * powers
    # √j! cancels: j He_{j−1}/√j! = √j h_{j−1}, j(j−1) He_{j−2}/√j! = √(j(j−1)) h_{j−2}.
    j = np.arange(degree + 1.0)
    learned[1:] += model.remainder * (basis[:-1] @ slope) * powers[:-1] * np.sqrt(j[1:])
    twice = (basis[:-2] @ bend) * powers[:-2] * np.sqrt(j[2:] * (j[2:] - 1))
    learned[2:] += model.remainder**2 * twice
    factorial = np.exp(gammaln(j + 1) / 2)
    return np.asarray((learned - hermite_coefficients(model.link, degree) * factorial) ** 2)
