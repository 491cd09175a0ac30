"""Resolvent traces of the initial weights: g1, g2 and their derivatives (theory §1)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Traces(NamedTuple):
    """g₁, g₂ and the root r of their discriminant."""

    left: NDArray[Any]
    right: NDArray[Any]
    root: NDArray[Any]
    width: NDArray[Any]

    @property
    def left_slope(self) -> NDArray[Any]:
        """g₁', infinite at an edge."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return -self.left * (1.0 + self.left) / self.root

    @property
    def right_slope(self) -> NDArray[Any]:
        """g₂', infinite at an edge."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return -self.right * (1.0 + self.width * self.right) / self.root


def traces(s: ArrayLike, width: ArrayLike) -> Traces:
    r"""Normalised traces of the resolvents of W Wᵀ (inputs) and of Wᵀ W (neurons).

    .. math:: g_1(s) = \tfrac1d \operatorname{tr}(W W^\top + s)^{-1},\qquad
              s g_1^2 + (s + β - 1) g_1 - 1 = 0,\qquad g_1' = -g_1(1 + g_1)/r, \\
              g_2(s) = \tfrac1N \operatorname{tr}(W^\top W + s)^{-1},\qquad
              β s g_2^2 + (s + 1 - β) g_2 - 1 = 0,\qquad g_2' = -g_2(1 + β g_2)/r,

    r = √((s+β−1)² + 4s) the root of the discriminant, and β g₂ = g₁ − (1 − β)/s.

    ======  =========  ====================================================
    symbol  argument   meaning
    ======  =========  ====================================================
    s       ``s``      positive, or complex off [−(1+√β)², −(1−√β)²]
    β       ``width``  N/d, positive
    ======  =========  ====================================================

    * ``s``, ``width``: broadcast against each other. Real for real ``s``; NaN where a real ``s``
      lies on the cut.

    References: theory §1.
    """
    s, width = np.asarray(s), np.asarray(width, dtype=float)
    root = _root(s, width)
    left = _trace(s + (width - 1.0), s, root)
    right = _trace(s + (1.0 - width), width * s, root)
    return Traces(left, right, root, width)


def _root(s: NDArray[Any], width: NDArray[Any]) -> NDArray[Any]:
    """√((s+β−1)² + 4s), ~ s at infinity, analytic off the cut; factored, hence stable near it.

    (1−√β)² is written ((1−β)/(1+√β))² so that it keeps its digits for β near one.
    """
    sqrt_width = np.sqrt(width)
    far = s + (1.0 + sqrt_width) ** 2
    near = s + ((1.0 - width) / (1.0 + sqrt_width)) ** 2
    if np.iscomplexobj(s):
        return np.sqrt(far) * np.sqrt(near)
    with np.errstate(invalid="ignore"):
        return np.where(far < 0.0, -1.0, 1.0) * np.sqrt(far * near)


def _trace(linear: NDArray[Any], quadratic: NDArray[Any], root: NDArray[Any]) -> NDArray[Any]:
    """The root g ~ 1/s of quadratic g² + linear g − 1 = 0, without cancellation."""
    same_sign = (linear * np.conj(root)).real >= 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(same_sign, 2.0 / (linear + root), (root - linear) / (2.0 * quadratic))
