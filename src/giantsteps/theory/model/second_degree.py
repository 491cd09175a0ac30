r"""The teacher's second degree along the components of the neurons on its direction (theory §5c).

A neuron of type t has the component u on what the spikes leave of the teacher's direction, with

.. math:: E u² = δ_t² + s_t²/d,\qquad d\,\mathrm{Var}\,u² = 4δ_t²s_t² + 2s_t⁴/d,\qquad
          s_t² = e^⊤Σ_te,

δ_t its lean through weak spikes. To second order in u it responds to z² − 1 by ∂μ₀ₜ/∂c · u². This
is of order 1/d, but the teacher's own second degree is of order one, and s² may be large: a step
with an even part of the activation multiplies w along the teacher where labels are even in z.

The term is counted with the weight w = I⁴/(I⁴ + I₀⁴), where I is the share of the second degree in
the teacher times Σ_t π_t(s_t² − c_t)²/d. Where s_t² is like that of every other direction it is one
of the many terms of order 1/d that are left out, and the norm of the input has all of it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import gammaln

from giantsteps.functions import Function, SingleIndex
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.theory.model.spiked_features import SpikedFeatures

#: I₀, and the weight below which there is no such term.
_NOTICED, _NOTHING = 5e-4, 1e-9
#: Degree up to which the teacher is expanded.
_DEGREE = 24


class SecondDegree(NamedTuple):
    """The weight of the term, E u² and d Var u² of each type, shapes (T,)."""

    weight: float
    square: FloatArray
    spread: FloatArray


def second_degree(model: SpikedFeatures) -> SecondDegree | None:
    """None without a dimension, for teachers of several directions, and without weight."""
    if not math.isfinite(model.neurons) or not isinstance(model.teacher, SingleIndex):
        return None
    share = _share(model.teacher.link, model.remainder)
    d, totals = model.dimension, model.bulk.totals
    largest = float(totals.max()) * len(model.bulk.gram)
    if not share * largest**2 > 0:
        return None
    (along,), (left,) = model.shares
    place = model.rank + model.weak_count
    vector = np.zeros(model.bulk.frame)
    vector[model.rank : place], vector[place] = along, left[0]
    square = model.bulk.on(vector)
    index = share * float(model.probabilities @ (square - totals) ** 2) / d
    weight = index**4 / (index**4 + _NOTICED**4)
    if weight < _NOTHING:
        return None
    lean = np.zeros(len(square)) if model.weak is None else model.weak @ along
    spread = 4.0 * lean**2 * square + 2.0 * square**2 / d
    return SecondDegree(weight, lean**2 + square / d, spread)


@lru_cache(maxsize=256)
def _share(link: Function, remainder: float) -> float:
    """Of E f*² that is of second degree in what the spikes leave of the teacher's direction."""
    sizes = hermite_coefficients(link, _DEGREE)
    j = np.arange(2, _DEGREE + 1)
    powers = sizes[2:] ** 2 * np.exp(gammaln(j + 1)) * j * (j - 1) / 2
    kept = powers @ (1.0 - remainder**2) ** (j - 2.0)
    return float(remainder**4 * kept / moments(link).norm ** 2)
