"""Every public function of theory as a call of one problem, and what its answer must satisfy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import giantsteps as gs
from giantsteps import theory

__all__ = ["CALLS", "FIELDS", "call", "complaints", "jumps"]

Call = Callable[[gs.Problem, int], Any]
#: A complaint: its kind and the numbers.
Complaint = tuple[str, str]

_ROUNDING = 1e-9
#: Numbers of a problem that are moved by one part in a million.
FIELDS = ("readout.penalty", "readout.samples", "width", "noise_variance", "steps.0.rate",
          "steps.0.samples", "steps.1.rate")  # fmt: skip
_NUDGE, _JUMP = 1e-6, 0.05


def _optimize(problem: gs.Problem, d: int) -> Any:
    return theory.optimize(problem)


def _crossing(problem: gs.Problem, d: int) -> Any:
    return theory.crossing(problem)


def _level_curves(problem: gs.Problem, d: int) -> Any:
    grid = gs.Grid(problem, {"readout.samples": [0.5, 1.0, 2.0], "readout.penalty": [0.1, 1.0]})
    return theory.level_curves(grid)


def _risk_of_weights(problem: gs.Problem, d: int) -> Any:
    random = np.random.default_rng(0)
    width = problem.at(50).neurons
    weights = random.standard_normal((50, width)) / math.sqrt(50)
    directions = np.linalg.qr(random.standard_normal((50, problem.teacher.rank)))[0]
    return theory.risk_of_weights(weights, directions, problem)


def _of_limit(name: str) -> Call:
    return lambda problem, d: getattr(theory, name)(problem)


def _of_size(name: str) -> Call:
    return lambda problem, d: getattr(theory, name)(problem, d=d)


def _approximation_error(problem: gs.Problem, d: int) -> Any:
    link = getattr(problem.teacher, "link", None)
    return None if link is None else theory.approximation_error(problem.activation, link)


_BOTH = ("risk", "weights", "kernel", "features", "gradient", "learned_function",
         "degrees_of_freedom", "equivalent", "critical_rate", "movement", "trajectory")  # fmt: skip
_LIMIT = ("bounds", "training_loss", "staircase_risk", "outlier_count", "staircase",
          "reuse_exponent")  # fmt: skip

#: Name → call. ``@d`` asks at the size of the seed, the others in the limit.
CALLS: dict[str, Call] = {
    **{name: _of_limit(name) for name in (*_BOTH, *_LIMIT)},
    **{f"{name}@d": _of_size(name) for name in _BOTH},
    "optimize": _optimize,
    "crossing": _crossing,
    "level_curves": _level_curves,
    "risk_of_weights": _risk_of_weights,
    "approximation_error": _approximation_error,
}


def call(name: str, problem: gs.Problem, d: int) -> Any:
    """The answer of a call; a dot reads a part of it, ``~field`` moves that field first."""
    name, _, field = name.partition("~")
    name, _, part = name.partition(".")
    if field:
        problem = next(nudged for path, nudged in nudges(problem) if path.endswith(field))
    answer = CALLS[name](problem, d)
    return getattr(answer, part) if part else answer


# Numbers that cannot be -----------------------------------------------------------------------


def complaints(name: str, problem: gs.Problem, answer: Any) -> Iterator[Complaint]:
    """What is wrong with an answer, if anything."""
    from giantsteps import answers

    if isinstance(answer, answers.Risk):
        yield from _risk(answer)
    elif isinstance(answer, answers.Spectrum):
        yield from _spectrum(answer)
    elif isinstance(answer, answers.DegreesOfFreedom):
        yield from _degrees_of_freedom(answer)
    elif isinstance(answer, answers.Gradient):
        yield from _gradient(answer)
    elif isinstance(answer, answers.LearnedFunction):
        yield from _finite(mean=answer.mean, band=answer.band, target=answer.target)
        if np.any(answer.band < 0):
            yield "NEGATIVE", f"band {answer.band.min()}"
    elif isinstance(answer, answers.Bounds):
        yield from _bounds(answer)
    elif isinstance(answer, answers.Optimum):
        yield from _finite(**answer.arguments)
        yield from _risk(answer.value)
    elif isinstance(answer, answers.Movement | answers.Trajectory):
        yield from _steps(answer)
    elif isinstance(answer, answers.TrainingLoss):
        yield from _finite(**answer.to_columns())
    elif isinstance(answer, int | float | np.floating) and not name.startswith("critical_rate"):
        yield from _finite(value=answer)
    elif name.startswith("critical_rate") and not answer > 0:
        yield "NEGATIVE", f"critical rate {answer}"


def _finite(**values: Any) -> Iterator[Complaint]:
    for name, value in values.items():
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype.kind in "fc" and not np.all(np.isfinite(array)):
            yield "NONFINITE", f"{name} = {value}"


def _risk(answer: Any, label: str = "") -> Iterator[Complaint]:
    yield from _finite(test=answer.test, train=answer.train)
    for name in ("test", "train"):
        value = getattr(answer, name)
        if value < -_ROUNDING:
            yield "NEGATIVE", f"{label}{name} {value}"
    if answer.by_degree is not None:
        degrees = np.asarray(answer.by_degree)
        if np.any(degrees < -_ROUNDING * max(1.0, answer.test)):
            yield "BYDEGREE<0", f"{label}{degrees}"
        if degrees.sum() > answer.test * (1 + 1e-6) + _ROUNDING:
            yield "BYDEGREE>TEST", f"{label}{degrees.sum()} > {answer.test}"
    wrong = answer.classification_error
    if wrong is not None and not 0 <= wrong <= 1:
        yield "PROBABILITY", f"{label}classification_error {wrong}"
    if answer.initial is not None:
        yield from _risk(answer.initial, "initial.")


def _spectrum(answer: Any, label: str = "") -> Iterator[Complaint]:
    bulk = answer.bulk
    edge = bulk.edge
    for number, spike in enumerate(answer.spikes):
        grows = answer.d is None and spike.value == math.inf  # with N, in the limit
        if not math.isfinite(spike.value) and not grows:
            yield "NONFINITE", f"{label}spikes.{number}.value {spike.value}"
        elif spike.value < edge * (1 - 1e-6):
            yield "SPIKE<EDGE", f"{label}spikes.{number} {spike.value} edge {edge}"
        for direction, overlap in spike.overlaps.items():
            if not -_ROUNDING <= overlap <= 1 + 1e-6:
                yield "OVERLAP", f"{label}spikes.{number} {direction} {overlap}"
    atoms = [x for x, _ in bulk.atoms]
    flat = all(lower == upper for lower, upper in bulk.support)
    total = float(bulk.cdf(edge)) if bulk.support or atoms else 0.0
    if not abs(total - 1) < 1e-5 and not flat:
        yield "MASS", f"{label}cdf(edge) = {total}"
    for lower, upper in bulk.support:
        density = np.asarray(bulk.density(np.linspace(lower, upper, 41)[1:-1]))
        if not np.all(np.isfinite(density)) or np.any(density < -_ROUNDING):
            yield "DENSITY", f"{label}density between {lower} and {upper}: {density.min()}"
    if answer.initial is not None:
        yield from _spectrum(answer.initial, "initial.")


def _degrees_of_freedom(answer: Any) -> Iterator[Complaint]:
    yield from _finite(kappa=answer.kappa, df1=answer.df1, df2=answer.df2)
    ordered = -_ROUNDING <= answer.df2 <= answer.df1 + _ROUNDING and answer.df1 <= 1 + _ROUNDING
    if not ordered or answer.kappa < -_ROUNDING:
        yield "DF", f"{(answer.kappa, answer.df1, answer.df2)}"


def _gradient(answer: Any) -> Iterator[Complaint]:
    norms = {
        name: getattr(answer, name)
        for name in ("spike_norm", "residual_operator_norm", "residual_frobenius_norm")
    }
    yield from _finite(**norms)
    if min(norms.values()) < 0:
        yield "NEGATIVE", f"{norms}"
    for direction, overlap in answer.overlaps.items():
        if not -_ROUNDING <= overlap <= 1 + 1e-6:
            yield "OVERLAP", f"{direction} {overlap}"


def _steps(answer: Any) -> Iterator[Complaint]:
    for name in answer._leaves:
        value = getattr(answer, name)
        if value is None:
            continue
        array = np.asarray(value, dtype=float)
        grows = answer.d is None and not np.any(np.isnan(array))  # with N, in the limit
        if not np.all(np.isfinite(array)) and not grows:
            yield "NONFINITE", f"{name} = {array}"
        elif np.any(array < -_ROUNDING):
            yield "NEGATIVE", f"{name} = {array}"


def _bounds(answer: Any) -> Iterator[Complaint]:
    yield from _finite(**answer.floors, **answer.ceilings)
    for name, value in {**answer.floors, **answer.ceilings}.items():
        if value < -_ROUNDING:
            yield "NEGATIVE", f"{name} {value}"


# Continuity -----------------------------------------------------------------------------------


def nudges(problem: gs.Problem, size: float = _NUDGE) -> Iterator[tuple[str, gs.Problem]]:
    """The problem with one number larger by one part in a million, for each of `FIELDS`."""
    for path in FIELDS:
        if path not in problem.paths() or not problem.get(path):
            continue
        try:
            yield path, problem.replace({path: problem.get(path) * (1 + size)})
        except gs.InvalidProblem:  # samples of a batch that is used again
            continue


def jumps(path: str, before: Any, after: Any) -> Iterator[Complaint]:
    """Whether the test error moves by more than 5 % for such a change."""
    gap = abs(after.test - before.test)
    if gap <= _JUMP * max(abs(before.test), _ROUNDING):
        return
    # Next to n = N and with hardly a penalty the error is steep: then a smaller step moves it less.
    smaller = dict(nudges(before.problem, _NUDGE / 8))[path]
    if abs(theory.risk(smaller, d=before.d).test - before.test) > gap / 3:
        yield "JUMP", f"{path}: {before.test} vs {after.test}"
