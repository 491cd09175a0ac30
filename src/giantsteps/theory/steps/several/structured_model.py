"""The equivalent model after several fresh steps on inputs with a covariance (theory §10)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.solver.bulk import Stage
from giantsteps.theory.steps.neuron import slopes
from giantsteps.theory.steps.one import tails_of
from giantsteps.theory.steps.several.model import RESOLVED, batch_of, norms_of
from giantsteps.theory.steps.several.structured import resolved_steps
from giantsteps.theory.steps.several.structured_state import Passed, Resolved
from giantsteps.theory.steps.several.trained import few_functions
from giantsteps.theory.steps.sized import at_size, stages_by_resolution
from giantsteps.theory.steps.structured import Spectrum, spectrum_of
from giantsteps.types import FloatArray

#: Functions of λ that are kept, relative to the largest, and where directions are explicit.
_DIAGONAL = (1e-6, 3e-3)
#: Channels of models with explicit directions, by resolution.
_CHANNELS = (1e-3, 5e-4, 2e-4, 1e-4, 1e-5, 1e-6)
#: Eigenvalues of one direction, relative to d, from which on it is explicit: the first, the second;
#: the first where the activation has an even part.
_HEAVY, _HEAVY_EVEN = (0.01, 0.025), 0.03
#: The same up to which a continuous second layer has explicit directions: more take minutes.
_TOO_MANY = 0.08


def leading(problem: Problem, d: int) -> FloatArray | None:
    """Which eigenspaces are explicit at d: single directions whose eigenvalue is a share of d."""
    slope = slopes(problem.activation)
    if problem.inputs.isotropic or not problem.steps or not slope.hermite[0]:
        return None
    spectrum = spectrum_of(problem, d)
    order = np.argsort(-spectrum.values)
    even = bool(slope.hermite[1])
    values = problem.init.second_layer.distinct_nonzero
    heaviest = float(spectrum.values.max()) / d
    if math.isinf(values) and (even or heaviest > _TOO_MANY):
        return None
    two = values == 1 and not even and len(problem.steps) == 1 and not spectrum.power
    least = (_HEAVY_EVEN if even else _HEAVY[0], *_HEAVY[1 : 1 + two])
    found = np.zeros(len(order), dtype=bool)
    for place, heavy in zip(order, least):
        if spectrum.values[place] < heavy * d or spectrum.shares[place] * d > 1.5:
            break
        found[place] = True
    return found if found.any() else None


def structured_stages(
    problem: Problem,
    d: int | None,
    others: Sequence[Mapping[str, Any]],
    *,
    simplify: tuple[str, ...] = (),
    level: int = USUAL,
    explicit: bool = True,
) -> list[SpikedFeatures]:
    """The equivalent models after the last steps, one for each of ``others``, from one recursion.

    ``others`` are further fields of each model, as for `stages_of_steps`.
    """
    sized, neurons, shared = at_size(problem, d)
    spectrum = spectrum_of(sized, d)
    if d is not None and explicit and not simplify:
        spectrum = replace(spectrum, explicit=leading(sized, d))
    continuous = math.isinf(sized.init.second_layer.distinct_nonzero)
    shared["levels"] = (0, 2) if continuous else (0, 3)
    if spectrum.explicit is not None:
        shared |= {"levels": (0, 1), "channels": _CHANNELS}
    norms = not simplify and not continuous

    def built(
        states: list[Resolved], number: int, fields: Mapping[str, Any], level: int
    ) -> SpikedFeatures:
        last = states[number]
        before = states[number - 1] if len(states) > -number else None
        return _model(last, before, spectrum, simplify, {**shared, **fields}, RESOLVED[level])

    return stages_by_resolution(
        others,
        level,
        lambda level: resolved_steps(sized, spectrum, neurons, level, norms),
        lambda level: resolved_steps(
            sized, spectrum, neurons, level, norms, tails_of(sized, d, neurons)
        ),
        built,
    )


def _model(
    state: Resolved,
    before: Resolved | None,
    spectrum: Spectrum,
    simplify: tuple[str, ...],
    shared: dict[str, Any],
    tolerance: float,
) -> SpikedFeatures:
    trained = state.trained
    if "isotropic bulk" in simplify:
        bulk = NeuronCovariance.isotropic(trained.totals, trained.rank)
    else:
        bulk = _covariance(state, before, spectrum, tolerance)
    weights = trained.probabilities / trained.totals
    own = np.einsum("t,ti,aim->a", weights, state.along, state.frame**2)
    return SpikedFeatures(
        spikes=trained.spikes,
        overlap=trained.overlap[0],
        probabilities=trained.probabilities,
        bulk=bulk,
        norms=None if simplify else norms_of(trained, bulk),
        pull=None if math.isinf(shared["neurons"]) or simplify else _pull(state, spectrum),
        own_variances=None if simplify else own,
        second_layer=trained.values,
        step_directions=trained.steps,
        **shared,
    )


def _powers(spectrum: Spectrum) -> FloatArray:
    """Operators 1, λ and λ² that the pull of the output acts through, (3, I)."""
    return np.stack([spectrum.values**power for power in (0.0, 1.0, 2.0)])


def _pull(state: Resolved, spectrum: Spectrum) -> FloatArray:
    """What multiplies traces with these powers in the penalty of m, fitted to J(ι)c(ι)J(ι)ᵀ."""
    c, memory = (state.along / spectrum.values).T, state.memory  # (I, T), (I, T, T)
    kept = np.einsum("its,is,ius->itu", memory, c, memory)
    root = np.sqrt(state.trained.probabilities)
    change = (kept - c[:, :, None] * np.eye(c.shape[1])) / np.outer(root, root)
    weight = np.sqrt(spectrum.shares * spectrum.values)[:, None]
    powers = _powers(spectrum).T[:, : len(np.unique(spectrum.values))]
    fit = np.linalg.lstsq(weight * powers, weight * change.reshape(len(c), -1), rcond=None)[0]
    found = np.zeros((3, *change.shape[1:]))
    found[: powers.shape[1]] = fit.reshape(-1, *change.shape[1:])
    return found


def _covariance(
    state: Resolved, before: Resolved | None, spectrum: Spectrum, tolerance: float
) -> NeuronCovariance:
    """Σ_A: what every batch adds, and the rest of c_A(ι), which is diagonal.

    Vectors before the last batch are given by their coordinates in the eigenspaces; the last batch
    makes the spikes of its own samples.
    """
    values, types = spectrum.values, len(state.trained.values)
    scales, root = _scales(state, spectrum), np.sqrt(values)
    rank = state.trained.rank
    tolerance = tolerance * (5.0 if spectrum.explicit is not None else 1.0)
    parts = [
        few_functions(one.multiplier[:, None] * one.added, np.abs(one.weights), tolerance)
        for one in state.passed
    ]
    averages = [functions @ one.weights for one, (_, functions) in zip(state.passed, parts)]
    rest = state.along / values
    for one, (mixing, _), average in zip(state.passed, parts, averages):
        rest = rest - np.multiply.outer(mixing @ average, scales)
        rest = rest - _turned(one) @ _tilted(one, spectrum.shares, scales)
    small = _DIAGONAL[spectrum.explicit is not None]
    mixed, functions = few_functions(rest, spectrum.shares + 1e-12, small)
    diagonal = np.concatenate([_powers(spectrum), functions])
    coefficients = [np.zeros((types, 3)), mixed]
    for one, (mixing, _) in zip(state.passed, parts):
        coefficients += [mixing, _turned(one)]
    # Vectors: frames of all batches, then spikes and norms before the last one, the teacher.
    width = state.frame.shape[2]
    frames = [_padded(one.frame, width) * (one.reach / root)[:, None] for one in state.passed]
    spikes = np.zeros((0, len(values), width))
    others = spikes
    if before is not None:
        spikes = _padded(before.frame[:-1], width) / root[:, None]
        others = _padded(before.others, width) / root[:, None]
    teacher = np.zeros((1, len(values), width))
    teacher[0, :, 0] = np.sqrt(spectrum.teacher) / root
    leading = np.zeros((len(spectrum.places), len(values), width))
    leading[np.arange(len(leading)), spectrum.places, 0] = 1.0
    leading = leading / root[:, None]
    external = np.concatenate([*frames, spikes, others, leading, teacher])
    starts = np.cumsum([0, *(len(frame) for frame in frames)])
    batches, stages = [], []
    for number, (one, (_, functions)) in enumerate(zip(state.passed, parts)):
        tilted = len(one.tilt) > 0
        batches.append(replace(batch_of(one, functions), factors=one.tilt, crossed=tilted))
        frame = np.zeros((len(one.frame), len(external)))
        frame[:, starts[number] : starts[number + 1]] = np.eye(len(one.frame))
        # M multiplies what is left of the weights beside explicit directions, their first vectors.
        within = frame.copy() if tilted else None
        if within is not None:
            within[: len(leading)] = 0.0
        carry, sums = np.eye(len(external)), np.zeros((len(external), len(one.weights)))
        if number == len(state.passed) - 1:
            carry, sums = _last(one, int(starts[-1]), len(others), rank, len(leading))
        place = (0,) * len(carry)
        stages.append(Stage(frame=frame, carry=carry, sums=sums, place=place, within=within))
    count = len(carry)
    special = np.zeros((count, count))
    special[:rank, :rank] = np.eye(rank)
    beside, overlap = float(state.trained.beside[0, 0]), state.trained.overlap[0]
    inverse = 1.0 / beside if beside > 1e-12 else 0.0
    special[rank, :rank], special[rank, -1] = -inverse * overlap, inverse
    special[np.arange(rank + 1, count), np.arange(rank, count - 1)] = 1.0
    means, gram = _gram(spectrum, diagonal, state, parts)
    return NeuronCovariance(
        shares=spectrum.shares,
        diagonal=diagonal,
        coefficients=np.concatenate(coefficients, axis=1),
        external=external,
        special=special,
        gram=gram,
        means=means,
        inputs=values,
        scales=scales,
        batches=tuple(batches),
        stages=tuple(stages),
    )


def _turned(one: Passed) -> FloatArray:
    """Coefficients of MP + PM and MPM of a batch, (T, 0 or 2)."""
    return one.multiplier[:, None] * one.turned[:, : 2 * len(one.tilt)]


def _tilted(one: Passed, shares: FloatArray, scales: FloatArray) -> FloatArray:
    """Diagonals of MP + PM and MPM, (0 or 2, I)."""
    mean, square = one.tilt @ one.weights, one.tilt**2 @ one.weights / one.samples
    first = np.multiply.outer(mean, scales)
    last = first**2 + np.multiply.outer(square, scales * (shares @ scales))
    return np.concatenate([2 * first, last])


def _scales(state: Resolved, spectrum: Spectrum) -> FloatArray:
    """Variances of what a step takes for its samples; the explicit direction is a frame's."""
    scales = state.passed[-1].reach ** 2 / spectrum.values
    return scales if spectrum.explicit is None else np.where(spectrum.explicit, 0.0, scales)


def _padded(vectors: FloatArray, width: int) -> FloatArray:
    return np.pad(vectors, ((0, 0), (0, 0), (0, width - vectors.shape[2])))


def _last(
    one: Passed, start: int, others: int, rank: int, leading: int
) -> tuple[FloatArray, FloatArray]:
    """Vectors after the last batch: spikes, those of norms before, its own, and the teacher."""
    own, before = len(one.sums) - rank, one.carry.shape[1]
    count = rank + others + own + 1
    found = np.zeros((count, start + before + others + leading + 1))
    found[:rank, start : start + before] = one.carry
    here = start + before
    found[np.arange(rank, rank + others), np.arange(here, here + others)] = 1.0
    if leading:
        found[:rank, here + others : -1] = one.noise
    found[-1, -1] = 1.0
    total = np.zeros((count, one.sums.shape[1]))
    total[:rank] = one.sums[:rank]
    total[rank + others : rank + others + own] = one.sums[rank:]
    return found, total


def _gram(
    spectrum: Spectrum,
    diagonal: FloatArray,
    state: Resolved,
    parts: Sequence[tuple[FloatArray, FloatArray]],
) -> tuple[FloatArray, FloatArray]:
    """d⁻¹tr ΣΩ and d⁻¹tr ΣΩΣΩ' of diagonal operators and of sums over batches."""
    values, shares = spectrum.values, spectrum.shares
    scales = _scales(state, spectrum)
    profiles = [*diagonal]
    own = np.zeros((0, 0))
    inner = float(shares @ (values * scales))
    blocks = [np.zeros((len(diagonal), len(diagonal)))]
    for one, (_, functions) in zip(state.passed, parts):
        profiles += [mean * scales for mean in functions @ one.weights]
        profiles += [*_tilted(one, shares, scales)]
        both = np.concatenate([functions, 2 * one.tilt, 0 * one.tilt])
        blocks.append((both * one.weights) @ both.T / one.samples * inner**2)
    stacked = np.stack(profiles) * values
    size = len(stacked)
    own = np.zeros((size, size))
    start = 0
    for block in blocks:
        own[start : start + len(block), start : start + len(block)] = block
        start += len(block)
    return stacked @ shares, (stacked * shares) @ stacked.T + own
