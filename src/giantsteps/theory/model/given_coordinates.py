"""What is known of a model given the coordinates k along its spikes (theory §5c)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.functions import SingleIndex
from giantsteps.gaussian import Rule
from giantsteps.theory.model.classification import jumps_by_scan, jumps_of_link
from giantsteps.theory.model.functions_of_spike import (
    Wanted,
    smoothed_by_symmetry,
    teacher_given,
)
from giantsteps.theory.model.rules import spike_rule
from giantsteps.theory.model.teacher import single_link
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.theory.model.spiked_features import SpikedFeatures

#: Modes of the norm of the input that are followed: the norm itself, and the batch's own.
_MODES = 4
#: Functions of the spike that are zero, relative to σ.
_ROUNDING = 1e-13


def coordinates(model: SpikedFeatures, level: int, bound: float = 0.0) -> Rule:
    """Quadrature of the coordinates k, nodes (K, r); ``bound`` as for `bounded_points`."""
    # Many functions without penalty need more nodes than averages.
    types = None if bound or model.regressors is not None else model.probabilities
    return spike_rule(
        level,
        model.spikes,
        model.bulk.totals,
        model.cosines[0],
        single_link(model.teacher),
        types,
        bound,
    )


def bounded_points(model: SpikedFeatures, points: FloatArray, bound: float) -> FloatArray:
    """Points k (K, r) moved towards zero, to the ellipsoid on which leans are at most those of
    a point so far along the strongest direction.
    """
    leans = model.spikes * np.sqrt(model.probabilities / model.bulk.totals)[:, None]
    strengths, axes = np.linalg.eigh(leans.T @ leans)
    if not strengths[-1] > 0:
        return points
    lengths = np.sqrt((points @ axes) ** 2 @ np.maximum(strengths / strengths[-1], 0.0))
    return points * np.minimum(1.0, bound / np.maximum(lengths, bound))[:, None]


def wanted_at(model: SpikedFeatures, points: FloatArray) -> Wanted:
    """The teacher at points (K, r)."""
    return teacher_given(model.teacher, model.cosines @ points.T, model.beside)


def labels(model: SpikedFeatures, along: FloatArray, z: FloatArray) -> FloatArray:
    """f* where the teacher's coordinates are along (K, R) and z (K, Q) times the first left."""
    u = along[:, None] + z[:, :, None] * model.beside[:, 0]
    return np.asarray(model.teacher(u), dtype=float)


def label_jumps(model: SpikedFeatures, along: FloatArray) -> FloatArray:
    """Values of z at which f* jumps there, shape (K, J)."""
    if isinstance(model.teacher, SingleIndex):
        return jumps_of_link(model.link, along[:, 0], float(model.beside[0, 0]))
    return jumps_by_scan(lambda z: labels(model, along, z), len(along))


def functions_at(model: SpikedFeatures, points: FloatArray) -> dict[str, FloatArray]:
    """What `System` needs of types and teacher at points (K, r)."""
    totals = model.bulk.totals
    scale = np.sqrt(totals)[:, None]
    seen = smoothed_by_symmetry(model.activation, model.spikes @ points.T, scale)
    wanted, linear = wanted_at(model, points), seen.linear / scale
    by_norm = seen.quadratic / totals[:, None]
    share, mean, target = np.ones(len(totals)), [seen.mean], [wanted.mean]
    finite = math.isfinite(model.neurons)
    if not finite:
        # Functions without penalty, which rounding knows by their size: that of rare neurons.
        share = np.sqrt(model.probabilities)
        # What is zero but for rounding would be fitted.
        size = np.sqrt(np.max(seen.second_moment, initial=0.0))
        present = np.abs(seen.mean).max(axis=1, initial=0.0) > _ROUNDING * size
        mean = [np.where(present[:, None], share[:, None] * seen.mean, 0.0)]
    if model.regressors is not None:
        mean = [model.regressors(points)]
    norms = np.zeros((0, 1, len(points)))
    if model.norms is not None:
        by_spike = points.T[:, None] * linear
        norms = model.norms.functions(by_norm, by_spike, points)[:, None]
    if finite:
        # The norm of the input: its own coordinates along the spikes, and further modes.
        inverse = 1.0 / model.dimension
        own = np.ones(model.rank + 1) if model.own_variances is None else model.own_variances
        excess = (points**2 - 1.0) @ own[: model.rank] * inverse
        mean[0] = seen.mean + seen.quadratic * excess
        aside, size = own[-1] * wanted.quadratic, math.sqrt(2.0 * inverse)
        second = model.second_degree
        if second is not None:
            # Forms of second degree, to which neurons respond by their own components.
            aside, root = second.shares[0] * aside, math.sqrt(2.0)
            mean[0] = mean[0] + by_norm * second.excess[:, None]
            mean += [root * square[:, None] * by_norm for square in second.square]
            target += [root * share * wanted.quadratic for share in second.shares[1:]]
            norms = np.pad(norms, ((0, 0), (0, 3), (0, 0)))
            for number, growth in enumerate(second.growth):
                parts = np.zeros((len(by_norm), 4, len(points)))
                parts[:, 0], parts[:, 1 + number] = growth * by_norm, root * by_norm
                norms = np.concatenate([norms, parts])
        for number, mode in enumerate(model.bulk.modes.T[:_MODES]):
            mean.append(size * mode[:, None] * by_norm)
            target.append(size * aside if number == 0 else np.zeros(len(points)))
    shares, left = model.shares
    for j in range(model.weak_count):
        assert model.weak is not None
        mean.append((share * model.weak[:, j])[:, None] * linear)
        target.append(shares[:, j] @ wanted.linear)
    return {
        "mean": np.stack(mean, axis=1),
        "linear": linear,
        "residual": seen.residual_variance,
        "norms": norms,
        "target": np.stack(target),
        "target_linear": left @ wanted.linear,
        "target_square": wanted.square + model.noise_variance,
    }
