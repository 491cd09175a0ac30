r"""The teacher's second degree, as neurons with large components along it see it (theory §5c).

Neurons of type t have the covariance Σ_t/d. To second order in its components, a neuron responds to
the quadratic form (⟨x, f⟩² − 1)/√2 by √2 ∂μ₀ₜ/∂c ⟨w, f⟩². This is of order 1/d, but the teacher's
own second degree is of order one, and a step with an even part of the activation may multiply w
along the teacher where labels are even in z.

The teacher's direction e (what the spikes leave of it) is no eigenvector of Σ_t, and forms of
different eigenvectors are learned one by one. Two of them stand for all,

.. math:: e = \sqrt{w}\,f_1 + \sqrt{1 - w}\,f_2,\qquad
          e^⊤(1 + pΣ)^{-1}e = \frac{w}{1 + pλ_1} + \frac{1 - w}{1 + pλ_2} :

e^⊤Σe and two values of the left side say what they are. The form of e is w times that of f₁,
√(2w(1 − w)) times the mixed one and 1 − w times that of f₂. To the first neurons respond by λ₁/d,
with the variance 2λ₁²/d² of ⟨w, f₁⟩², which is part of their norm, likewise to the last, and to the
mixed one by nothing, with the variance 2λ₁λ₂/d².

The term is counted with the weight I⁴/(I⁴ + I₀⁴), where I is the share of the second degree in the
teacher times Σ_t π_t(e^⊤Σ_te − c_t)²/d. Where e is like all other directions, it is one of many
terms of order 1/d that are left out.
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
#: Values of p e^⊤Σe at which the resolvent of Σ is represented.
_PLACES = np.array([0.1, 1.0])
#: What is left of it beside one eigenvector that is none, and the least share of a second.
_POINT, _LEAST = 1e-7, 1e-6


class SecondDegree(NamedTuple):
    """What the three forms are to the teacher and to the neurons of each type."""

    shares: FloatArray  # (4,): of the norm of the input in z², and of the forms
    square: FloatArray  # (3, T): mean response of a neuron, over √2 ∂μ₀/∂c
    spread: FloatArray  # (3, T): d times its variance
    growth: FloatArray  # (3,): whether that is part of the norm
    excess: FloatArray  # (T,): of the squared norm


def second_degree(model: SpikedFeatures) -> SecondDegree | None:
    """None without a dimension, for teachers of several directions, for an odd activation with an
    odd teacher, whose second degree has mean zero, and without weight.
    """
    if not math.isfinite(model.neurons) or not isinstance(model.teacher, SingleIndex):
        return None
    odd = moments(model.activation).is_odd and moments(model.teacher.link).is_odd
    share = 0.0 if odd else _share(model.teacher.link, model.remainder)
    if not share > 0:
        return None
    d, totals = model.dimension, model.bulk.totals
    (along,), (left,) = model.shares
    place = model.rank + model.weak_count
    vector = np.zeros(model.bulk.frame)
    vector[model.rank : place], vector[place] = along, left[0]
    square = np.maximum(model.bulk.on(vector), 0.0)
    index = share * float(model.probabilities @ (square - totals) ** 2) / d
    weight = index**4 / (index**4 + _NOTICED**4)
    if weight < _NOTHING:
        return None
    part, lower = _eigenvectors(model, vector, square)
    upper = lower + (square - lower) / part
    lean = np.zeros(len(square)) if model.weak is None else model.weak @ along
    shares = np.array([part, math.sqrt(2.0 * part * (1.0 - part)), 1.0 - part])
    own = np.stack([upper / d, np.zeros_like(upper), lower / d])
    spread = 2.0 * np.stack([upper**2, upper * lower, lower**2]) / d
    root = math.sqrt(weight)
    return SecondDegree(
        np.append(1.0 - weight, root * shares),
        root * (own + shares[:, None] * lean**2),
        spread + 4.0 * lean**2 * shares[:, None] ** 2 * square,
        root * np.array([1.0, 0.0, 1.0]),
        weight * (upper - totals) / d,
    )


def _eigenvectors(
    model: SpikedFeatures, vector: FloatArray, square: FloatArray
) -> tuple[float, FloatArray]:
    """w, of the mean of Σ over the neurons that the form is learned by, and λ₂ of each type, (T,).

    They count by (e^⊤Σ_te − c_t)², as in I: types that a step has not stretched along the teacher
    have Σ_t without such an eigenvector.
    """
    law = model.probabilities * (square - model.bulk.totals) ** 2
    mean = float(law @ square)
    if not mean > 0:
        return 1.0, square
    law, mean = law / law.sum(), mean / law.sum()
    seen = model.bulk.seen(vector, law, _PLACES / mean)
    # 1 + (b − 1)p = S(1 + bp + cp²) in units of e^⊤Σe, with b = λ₁ + λ₂ and c = λ₁λ₂
    matrix = np.stack([_PLACES * (1.0 - seen), -seen * _PLACES**2], axis=1)
    if not np.max(seen * (1.0 + _PLACES) - 1.0) > _POINT:  # e is an eigenvector
        return 1.0, square
    b, c = np.linalg.solve(matrix, seen - 1.0 + _PLACES)
    apart = math.sqrt(max(b * b / 4 - c, 0.0))
    if not apart > 0:
        return 1.0, square
    lower = max(b / 2 - apart, 0.0)
    part = min(max((1.0 - lower) / (2 * apart), _LEAST), 1.0)
    return part, lower * square


@lru_cache(maxsize=256)
def _share(link: Function, remainder: float) -> float:
    """Of E f*² that is of second degree in what the spikes leave of the teacher's direction."""
    sizes = hermite_coefficients(link, _DEGREE)
    j = np.arange(2, _DEGREE + 1)
    powers = sizes[2:] ** 2 * np.exp(gammaln(j + 1)) * j * (j - 1) / 2
    kept = powers @ (1.0 - remainder**2) ** (j - 2.0)
    return float(remainder**4 * kept / moments(link).norm ** 2)
