"""Rank-one deformations of a random matrix: the outlier and its vectors (theory §2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import InvalidProblem


class Outlier(NamedTuple):
    """One outlier for each strength θ; arrays of the shape of the strengths.

    Attributes
    ----------
    value : ndarray
        The singular value it tends to: outside the bulk if ``present``, else the bulk's edge.
    left, right : ndarray
        Squared cosines of its singular vectors with those of the deformation; 0 if absent.
    present : ndarray of bool
        Whether it leaves the bulk.
    """

    value: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    present: NDArray[Any]


def critical_strength(width: ArrayLike) -> NDArray[Any]:
    """β^{1/4}: the strength above which a spike leaves the bulk of W₀.

    * ``width``: β = N/d.
    """
    return np.asarray(width, dtype=float) ** 0.25


def outlier(strength: ArrayLike, width: ArrayLike) -> Outlier:
    r"""Outlier of W₀ + θ u vᵀ, W₀ (d × N) white of variance 1/d, u and v unit vectors.

    .. math:: s^2 = \frac{(1+θ^2)(β+θ^2)}{θ^2},\quad
              ⟨u, \hat u⟩^2 = \frac{θ^4 - β}{θ^2(θ^2+1)},\quad
              ⟨v, \hat v⟩^2 = \frac{θ^4 - β}{θ^2(θ^2+β)}
              \qquad\text{if } θ > β^{1/4},

    else s = 1 + √β and both squared cosines vanish.

    ======  ============  ==========================
    symbol  argument      meaning
    ======  ============  ==========================
    θ       ``strength``  not negative, may be inf
    β       ``width``     N/d
    ======  ============  ==========================

    Deformations of any rank have one for each singular value θ_j, by itself.

    References
    ----------
    theory §2; benaych2012.

    Examples
    --------
    >>> found = outlier([0.5, 1.0, 2.0, 4.0], width=1.0)
    >>> found.value.round(4), found.left.round(4)
    (array([2.  , 2.  , 2.5 , 4.25]), array([0.    , 0.    , 0.75  , 0.9375]))
    """
    strength, width = np.asarray(strength, dtype=float), np.asarray(width, dtype=float)
    if not np.all(strength >= 0):
        raise InvalidProblem("strength", strength, "not negative")
    if not np.all((width > 0) & np.isfinite(width)):
        raise InvalidProblem("width", width, "a positive finite number (N/d)")
    present = strength > critical_strength(width)
    inverse = 1.0 / np.where(present, strength, critical_strength(width)) ** 2  # 1/θ², 0 at inf
    with np.errstate(divide="ignore"):
        value = np.sqrt((inverse + 1.0) * (width * inverse + 1.0) / inverse)
    excess = 1.0 - width * inverse**2
    left, right = excess / (1.0 + inverse), excess / (1.0 + width * inverse)
    edge = 1.0 + np.sqrt(width)
    return Outlier(
        np.where(present, value, edge),
        np.where(present, left, 0.0),
        np.where(present, right, 0.0),
        present,
    )
