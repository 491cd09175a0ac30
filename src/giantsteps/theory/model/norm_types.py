r"""Longer and shorter neurons as types of their own, where labels have a mean (theory §5c).

Gaussian neurons differ in norm by ϖ of variance v/d, v = 2 where inputs are isotropic, and to first
order the readout sums over a·ϖ as over a. A centred activation with an even part learns the mean of
the labels from these two sums alone, and after a small step both matter alike: terms of second
order, which mix them, are of order d^{-1/2} then. Two halves of each type,

.. math:: S_t ± e_t\sqrt{v/d},\qquad Σ_t(1 ± \sqrt{v/d}\,f_t/c_t) ,

have the first three moments of ϖ, and need no expansion.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from giantsteps.gaussian import moments
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.types import FloatArray


def halved(model: SpikedFeatures) -> SpikedFeatures:
    """The model with two halves of each type, where the norms learn the mean of the labels."""
    norms, bulk = model.norms, model.bulk
    if norms is None or norms.initial is None or not _learned_by_norms(model):
        return model
    longer = np.sqrt(norms.spread[norms.initial] * model.width / model.neurons)
    half = longer, -longer
    grown = np.concatenate([1.0 + one * norms.growth[norms.initial] / bulk.totals for one in half])
    leans = _twice(model.spikes)
    stretch = np.concatenate([one[:, None] * norms.stretch[norms.initial] for one in half])
    leans[:, : stretch.shape[1]] += stretch
    others = [c for c in range(len(norms.spread)) if c != norms.initial]

    def kept(values: FloatArray) -> FloatArray:
        return _twice(values[others], axis=1)

    return replace(
        model,
        spikes=leans,
        probabilities=_twice(model.probabilities) / 2,
        bulk=replace(
            bulk,
            coefficients=grown[:, None] * _twice(bulk.coefficients),
            excess=None if bulk.excess is None else grown[:, None, None] * _twice(bulk.excess),
        ),
        norms=Norms(
            kept(norms.spread),
            kept(norms.loadings),
            growth=kept(norms.growth),
            stretch=kept(norms.stretch),
            own=kept(norms.own),
        ),
        pull=None if model.pull is None else _twice(_twice(model.pull, axis=1), axis=2),
        weak=None if model.weak is None else _twice(model.weak),
        second_layer=None if model.second_layer is None else _twice(model.second_layer),
    )


def _twice(values: FloatArray, axis: int = 0) -> FloatArray:
    return np.concatenate([values, values], axis=axis)


def _learned_by_norms(model: SpikedFeatures) -> bool:
    """Whether a centred activation with an even part meets labels with a mean, at a size."""
    sigma = moments(model.activation)
    even = sigma.is_centered and not sigma.is_odd and math.isfinite(model.neurons)
    return even and not teacher_moments(model.teacher).is_centered
