"""Hermite coefficients of a function at many scales of its argument."""

from __future__ import annotations

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian._hermite import hermite_functions
from giantsteps.gaussian._panels import legendre_panels
from giantsteps.types import FloatArray

_REACH, _ORDER = 9.0, 20
#: Panels have at most this width, in units of the smallest scale, and there are at most so many.
_WIDTH, _PANELS = 1.0, 400
#: Numbers of a block of scales.
_BLOCK = 4_000_000


def hermite_at_scales(function: Function, scales: FloatArray, degree: int) -> FloatArray:
    r"""b_k(s) = E[f(s z) h_k(z)], h_k = He_k/√k!, for every scale s: shape (S, degree + 1).

    Products of features are a series in the cosines of their weights:

    .. math:: E[f(⟨w, x⟩) f(⟨w', x⟩)] = \sum_k b_k(‖w‖) b_k(‖w'‖) \cos(w, w')^k .

    ======  ============  ========================
    symbol  argument      meaning
    ======  ============  ========================
    f       ``function``  an activation
    s       ``scales``    norms ‖w‖ of neurons
    k       ``degree``    up to this degree
    ======  ============  ========================

    * ``function``: f.
    * ``scales``: (S,). Positive.
    * ``degree``: highest k.
    """
    scales = np.asarray(scales, dtype=float)
    reach = _REACH * float(scales.max())
    kinks = np.asarray(function.breakpoints(-reach, reach), dtype=float)
    width = max(_WIDTH * float(scales.min()), 2.0 * reach / _PANELS)
    count = int(np.ceil(2.0 * reach / width))
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, count + 1), kinks]))
    nodes, lengths = legendre_panels(edges, _ORDER)
    values = np.asarray(function(nodes), dtype=float) * lengths
    found = np.empty((len(scales), degree + 1))
    block = max(1, _BLOCK // (len(nodes) * (degree + 1)))
    for start in range(0, len(scales), block):
        some = scales[start : start + block, None]
        z = np.clip(nodes / some, -38.0, 38.0)
        density = np.exp(-z * z / 2) / (np.sqrt(2 * np.pi) * some)
        found[start : start + block] = np.einsum(
            "ksq,sq->sk", hermite_functions(z, degree), density * values
        )
    return found
