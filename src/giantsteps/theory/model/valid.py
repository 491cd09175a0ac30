"""The fields of a model of spiked features: taken as users state them, and validated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.functions import as_function, as_teacher
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.theory.model.spiked_features import SpikedFeatures


def settle(model: SpikedFeatures) -> None:
    """Functions and arrays as the model keeps them, from what a user may give; `validate` them."""
    set_ = object.__setattr__
    set_(model, "activation", as_function(model.activation, "activation"))
    set_(model, "teacher", as_teacher(model.teacher))
    probabilities = np.atleast_1d(np.array(model.probabilities, dtype=float))
    overlap = np.atleast_1d(np.array(model.overlap, dtype=float))
    types, rank = len(probabilities), overlap.shape[-1]
    spikes = np.array(model.spikes, dtype=float)
    if spikes.ndim < 2:
        spikes = np.reshape(spikes, (types, rank)) if spikes.size == types * rank else spikes
    bulk = model.bulk
    if not isinstance(bulk, NeuronCovariance):
        bulk = NeuronCovariance.isotropic(bulk, rank + model.weak_count, model.teacher.rank)
    for name, value in (
        ("probabilities", probabilities),
        ("overlap", overlap),
        ("spikes", spikes),
    ):
        value.setflags(write=False)
        set_(model, name, value)
    set_(model, "bulk", bulk)
    if model.second_layer is not None:
        values = np.atleast_1d(np.array(model.second_layer, dtype=float))
        if values.shape != (types,):
            raise InvalidProblem("second_layer", model.second_layer, f"{types} values")
        set_(model, "second_layer", values)
    validate(model, types, rank)


def validate(model: SpikedFeatures, types: int, rank: int) -> None:
    """Refuse what is no model, by its field."""
    positive = (("width", model.width), ("neurons", model.neurons))
    for name, value in positive:
        if not value > 0:
            raise InvalidProblem(name, value, "positive")
    if not (model.noise_variance >= 0 and math.isfinite(model.noise_variance)):
        raise InvalidProblem("noise_variance", model.noise_variance, "finite and >= 0")
    if model.probabilities.min() <= 0 or abs(model.probabilities.sum() - 1) > 1e-9:
        raise InvalidProblem("probabilities", model.probabilities, "positive with sum one")
    if model.spikes.shape != (types, rank) or not np.isfinite(model.spikes).all():
        raise InvalidProblem("spikes", model.spikes, f"finite, of shape ({types}, {rank})")
    directions, cosines = model.teacher.rank, model.cosines
    if cosines.shape != (directions, rank):
        allowed = f"of shape ({directions}, {rank}), a row for each direction of the teacher"
        raise InvalidProblem("overlap", model.overlap, allowed)
    if _norm(cosines) > 1 + 1e-12:
        raise InvalidProblem("overlap", model.overlap, "of norm at most one")
    if len(model.bulk.coefficients) != types:
        raise InvalidProblem("bulk", model.bulk.totals, f"variances of {types} types")
    if not model.bulk.totals.min() > 0:
        raise InvalidProblem("bulk", model.bulk.totals, "positive")
    frame = rank + model.weak_count + directions
    if model.bulk.frame < frame:
        raise InvalidProblem("bulk", model.bulk.frame, f"with {frame} special vectors")
    if model.norms is not None and model.norms.types != types:
        raise InvalidProblem("norms", model.norms.spread, f"spreads of {types} types")


def _norm(matrix: FloatArray) -> float:
    """The largest singular value."""
    if len(matrix) == 1:
        return math.sqrt(float(matrix[0] @ matrix[0]))
    return float(np.linalg.norm(matrix, 2))
