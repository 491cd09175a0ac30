"""Covariances of the neurons that commute."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.theory import NeuronCovariance


def along_directions(
    shares: ArrayLike,
    variances: ArrayLike,
    special: ArrayLike | None = None,
    special_variances: ArrayLike | None = None,
) -> NeuronCovariance:
    """Variances s_t(ι), of shape (T, I), along directions ι with given shares (I,).

    ``special`` (J, r+1, r+1), with sum I: how much of the r spikes and of the teacher's remainder
    lies along each of J directions, whose variances are ``special_variances`` (T, J); without it
    one spike and the teacher see the directions as the shares do.
    """
    shares, variances = np.asarray(shares, dtype=float), np.asarray(variances, dtype=float)
    masses = shares[:, None, None] * np.eye(2) if special is None else np.asarray(special)
    along = variances if special is None else np.asarray(special_variances, dtype=float)
    values, vectors = np.linalg.eigh(masses)
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None]
    frame = masses.shape[1]
    external = np.zeros((frame, len(shares) + len(masses), frame))
    external[:, len(shares) :] = np.moveaxis(roots, 1, 0)
    types = np.concatenate([variances, along], axis=1)
    known = np.concatenate([np.ones((1, len(shares))), variances])
    return NeuronCovariance(
        shares=np.concatenate([shares, np.zeros(len(masses))]),
        diagonal=np.concatenate([np.ones((1, types.shape[1])), types]),
        coefficients=np.concatenate([np.zeros((len(types), 1)), np.eye(len(types))], axis=1),
        external=external,
        gram=(known * shares) @ known.T,
    )
