"""Resolvent traces of the initial weights: g1, g2 and their derivatives (theory §1)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblem


def g1(s: ArrayLike, width: ArrayLike) -> NDArray[Any]:
    r"""Normalised trace of the resolvent of W Wᵀ on the side of the inputs.

    .. math:: g_1(s) = \tfrac1d \operatorname{tr}(W W^\top + s)^{-1},\qquad
              s g_1^2 + (s + β - 1) g_1 - 1 = 0 .

    ======  =========  ====================================================
    symbol  argument   meaning
    ======  =========  ====================================================
    s       ``s``      positive, or complex off [−(1+√β)², −(1−√β)²]
    β       ``width``  N/d, positive
    ======  =========  ====================================================

    * ``s``, ``width``: broadcast against each other.

    Returns
    -------
    ndarray
        Real for real ``s``; NaN where a real ``s`` lies on the cut.

    References: theory §1.
    """
    return traces(*_checked(s, width))[0]


def g2(s: ArrayLike, width: ArrayLike) -> NDArray[Any]:
    r"""Normalised trace of the resolvent of Wᵀ W on the side of the neurons.

    .. math:: g_2(s) = \tfrac1N \operatorname{tr}(W^\top W + s)^{-1},\qquad
              β s g_2^2 + (s + 1 - β) g_2 - 1 = 0,\qquad β g_2 = g_1 - (1 - β)/s .

    ======  =========  ====================================================
    symbol  argument   meaning
    ======  =========  ====================================================
    s       ``s``      positive, or complex off [−(1+√β)², −(1−√β)²]
    β       ``width``  N/d, positive
    ======  =========  ====================================================

    Arguments as for `g1`.

    References: theory §1.
    """
    return traces(*_checked(s, width))[1]


def g1_prime(s: ArrayLike, width: ArrayLike) -> NDArray[Any]:
    """Derivative of `g1` in s: :math:`g_1' = -g_1(1 + g_1)/r`, r the root of the discriminant.

    Arguments ``s`` and ``width`` as for `g2`.
    """
    left, _, root = traces(*_checked(s, width))
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite at an edge
        return -left * (1.0 + left) / root


def g2_prime(s: ArrayLike, width: ArrayLike) -> NDArray[Any]:
    """Derivative of `g2` in s: :math:`g_2' = -g_2(1 + β g_2)/r`, r as for `g1_prime`.

    Arguments ``s`` and ``width`` as for `g2`.
    """
    s, width = _checked(s, width)
    _, right, root = traces(s, width)
    with np.errstate(divide="ignore", invalid="ignore"):  # infinite at an edge
        return -right * (1.0 + width * right) / root


def traces(
    s: NDArray[Any], width: NDArray[Any] | float
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """g₁, g₂ and the root r = √((s+β−1)² + 4s) of their discriminant, together."""
    root = _root(s, width)
    return (
        _trace(s + (width - 1.0), s, root),
        _trace(s + (1.0 - width), width * s, root),
        root,
    )


def _checked(s: ArrayLike, width: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    s, width = np.asarray(s), np.asarray(width, dtype=float)
    if not np.all((width > 0) & np.isfinite(width)):
        raise InvalidProblem("width", width, "a positive finite number (N/d)")
    if not np.issubdtype(s.dtype, np.inexact):
        s = s.astype(float)
    return s, width


def _root(s: NDArray[Any], width: NDArray[Any] | float) -> NDArray[Any]:
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
