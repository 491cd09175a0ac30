"""The test error on fresh points, with its standard error and its parts by degree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from giantsteps.gaussian import hermite_functions
from giantsteps.simulation._arrays import Array, Arrays

__all__ = ["PointError", "error_on_points"]


@dataclass(frozen=True)
class PointError:
    """Errors of several predictors of one network.

    Attributes
    ----------
    mean : ndarray (cells,)
        R = E(f̂ − f*)², without noise.
    standard_error : ndarray (cells,)
        Of ``mean`` over the test points, given the network.
    by_degree : ndarray (cells, degrees + 1) or None
        The parts of R on He_k(⟨x, β*⟩); None for a teacher of several directions or none known.
    """

    mean: np.ndarray
    standard_error: np.ndarray
    by_degree: np.ndarray | None


def error_on_points(
    arrays: Arrays,
    batches: Iterable[tuple[Array, Array | None, Array]],
    predict: Callable[[Array], Array],
    degrees: int,
) -> PointError:
    r"""Monte-Carlo average of (f̂ − f*)² over test points.

    .. math:: R = E e^2, \qquad R[k] = (E[e\, He_k(u)])^2/k!, \qquad e = \hat f − f^*, u = ⟨x, β_*⟩

    The square of a sample mean m of variance v/n overshoots by v/n; by_degree is the unbiased
    m² − v/n, which may be slightly negative where a part is zero.

    Parameters
    ----------
    batches : iterable of (x, coordinates, f*)
        Chunks of test points, the teacher's coordinates (rows, rank) or None, and its noiseless
        values.
    predict : callable
        x ↦ (rows, cells).
    degrees : int
        Highest k of by_degree.
    """
    points = 0
    sums: list[np.ndarray] = []
    single = False  # one direction: coordinates to expand in
    for inputs, coordinates, target in batches:
        errors = arrays.to_host(arrays.wide(predict(inputs)) - target[:, None])
        single = coordinates is not None and coordinates.shape[1] == 1
        basis = np.empty((0, len(errors)))
        if coordinates is not None and single:
            basis = hermite_functions(arrays.to_host(coordinates)[:, 0], degrees)
        squares = errors**2
        terms = [squares.sum(axis=0)[None], (squares**2).sum(axis=0)[None]]
        terms += [basis @ errors, basis**2 @ squares]
        sums.append(np.concatenate(terms))
        points += len(errors)
    total = np.sum(sums, axis=0) / points
    mean, fourth = total[0], total[1]
    spread = np.sqrt(np.maximum(fourth - mean**2, 0.0) / max(points - 1, 1))
    if not single:
        return PointError(mean, spread, None)
    first, second = np.split(total[2:], 2)
    parts = first**2 - np.maximum(second - first**2, 0.0) / max(points - 1, 1)
    return PointError(mean, spread, parts.T)
