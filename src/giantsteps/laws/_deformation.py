"""Finite-rank deformations of a random matrix: outliers and their vectors (theory §2)."""

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


class Outliers(NamedTuple):
    """Outliers of W₀ + P Qᵀ, strongest first along the last axis of length r.

    Attributes
    ----------
    strength : ndarray of shape (..., r)
        θ_j, the singular values of P Qᵀ.
    value, left, right, present : ndarray of shape (..., r)
        As in `Outlier`.
    left_vectors, right_vectors : ndarray of shape (..., r, r)
        ``P @ left_vectors[:, j]`` and ``Q @ right_vectors[:, j]`` are the unit singular vectors
        of P Qᵀ; a direction e has squared cosine ``left[j] * (e @ P @ left_vectors[:, j])**2``
        with the j-th left outlier.
    """

    strength: NDArray[Any]
    value: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    present: NDArray[Any]
    left_vectors: NDArray[Any]
    right_vectors: NDArray[Any]


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


def outliers(left_gram: ArrayLike, right_gram: ArrayLike, width: ArrayLike) -> Outliers:
    r"""Outliers of W₀ + P Qᵀ of any rank, from the Gram matrices of P (d × r) and Q (N × r).

    The strengths θ_j are the singular values of P Qᵀ, that is of
    :math:`(P^\top P)^{1/2}(Q^\top Q)^{1/2}`; each gives an outlier by itself (`outlier`), and a
    singular vector of one is orthogonal to those of the others in the limit.

    Parameters
    ----------
    left_gram, right_gram : array_like of shape (..., r, r)
        Pᵀ P and Qᵀ Q, symmetric and positive semi-definite; may be singular.
    width : array_like
        β = N/d, broadcast against the leading axes.

    References
    ----------
    theory §2; benaych2012.

    Examples
    --------
    A rank-two change whose right vectors are the same is of rank one, of strength √(1 + 4):

    >>> found = outliers(np.eye(2), [[1.0, 2.0], [2.0, 4.0]], width=1.0)
    >>> found.strength.round(6) + 0.0, found.present
    (array([2.236068, 0.      ]), array([ True, False]))
    """
    left_root, left_inverse = _square_roots(left_gram, "left_gram")
    right_root, right_inverse = _square_roots(right_gram, "right_gram")
    u, strength, vt = np.linalg.svd(left_root @ right_root)
    each = outlier(strength, np.asarray(width, dtype=float)[..., None])
    return Outliers(
        strength,
        *each,
        left_vectors=left_inverse @ u,
        right_vectors=right_inverse @ np.swapaxes(vt, -1, -2),
    )


def _square_roots(gram: ArrayLike, field: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Square root of a Gram matrix and its pseudo-inverse."""
    gram = np.asarray(gram, dtype=float)
    if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2]:
        raise InvalidProblem(field, gram, "square in its last two axes")
    values, vectors = np.linalg.eigh(gram)
    top = np.maximum(values[..., -1:], 0.0)
    if np.any(values < -1e-9 * top) or not np.all(np.isfinite(values)):
        raise InvalidProblem(field, gram, "positive semi-definite and finite")
    keep = values > 1e-14 * top
    root = np.sqrt(np.where(keep, values, 0.0))
    inverse = np.where(keep, 1.0 / np.where(keep, root, 1.0), 0.0)
    transposed = np.swapaxes(vectors, -1, -2)
    return (vectors * root[..., None, :]) @ transposed, (
        vectors * inverse[..., None, :]
    ) @ transposed
