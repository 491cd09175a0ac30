"""The spectrum of inputs of one's own, as a few eigenvalues."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import integer, number
from giantsteps.types import FloatArray

_Array = FloatArray
#: So many directions stay alone where they have this share of the variance and so many times the
#: mean: theory takes a few of them one by one.
_ALONE, _HEAVY, _APART = 3, 0.01, 4.0
_POINTS = 512  # neighbours are merged to so many points before they are grouped


def covariance_of_data(
    inputs: ArrayLike, teacher_direction: ArrayLike | None, tolerance: float, most: int
) -> tuple[_Array, _Array, _Array | None]:
    r"""Eigenvalues, their weights and the teacher's shares, estimated from rows of inputs.

    The eigenvalues ℓ_i of the sample covariance S spread more than those of Σ. They are drawn
    towards their mean m,

    .. math:: λ_i = m + \sqrt{1 - ρ}\,(ℓ_i - m), \qquad
              ρ = \min\Bigl(1, \frac{n^{-2}\sum_k \|x_k x_k^\top - S\|_F^2}{\|S - mI\|_F^2}\Bigr),

    with ρ the intensity of Ledoit and Wolf (2004): tr Σ and tr Σ² are then those of the consistent
    estimates, which a plain shrinkage by 1 − ρ would not keep. Higher moments are not corrected.
    Groups of neighbours are replaced by their means, in the way that loses least of the spread
    Σ(λ_i − m)², with as few groups as ``tolerance`` allows. (The first three directions stay alone
    where each has 1 % of the variance and four times its mean.) The sample's eigenvectors blur the
    teacher's shares unless n is several times d.
    """
    tolerance = number(tolerance, "tolerance", "a number in [0, 1)", lower=0.0, upper=1.0)
    most = integer(most, "most", "an integer >= 1")
    try:
        rows = np.asarray(inputs, dtype=float)
    except (TypeError, ValueError):
        raise InvalidProblem("inputs", inputs, "an array of numbers, of shape (rows, d)") from None
    if rows.ndim != 2 or rows.shape[0] < 3 or not np.all(np.isfinite(rows)):
        raise InvalidProblem(
            "inputs", f"of shape {rows.shape}", "finite numbers of shape (rows, d), rows >= 3"
        )
    count, d = rows.shape
    rows = rows - rows.mean(axis=0)
    sample = rows.T @ rows / (count - 1)
    values, vectors = np.linalg.eigh(sample)
    mean = float(values.mean())
    if not 0 < mean < np.inf:
        raise InvalidProblem("inputs", "rows that are all the same", "inputs that vary")
    values, sample, rows = values / mean, sample / mean, rows / np.sqrt(mean)
    spread = float(np.sum((values - 1) ** 2))
    # Σ_k ‖x_k x_kᵀ − S‖² = Σ_k ‖x_k‖⁴ − n‖S‖², up to 1/n.
    noise = float(np.sum(np.sum(rows**2, axis=1) ** 2)) / count**2
    noise = max(noise - float(np.sum(sample**2)) / count, 0.0)
    kept = max(1 - noise / spread, 0.0) if spread > 0 else 0.0
    values = np.maximum(1 + np.sqrt(kept) * (values - 1), 0.0)
    alone = min(int(np.sum(values[-_ALONE:] >= max(_HEAVY * d, _APART))), most - 1, d - 1)
    rest = values[: d - alone]
    ends = _groups(rest, tolerance, most - alone)
    ends = np.append(ends, np.arange(d - alone, d) + 1)
    means = _means(values, ends)
    ends = ends[np.append(np.diff(means) > 0, True)]
    means, sizes = _means(values, ends), np.diff(ends, prepend=0)
    if teacher_direction is None:
        return means, sizes / d, None
    beta = np.asarray(teacher_direction, dtype=float)
    if beta.shape != (d,) or not np.all(np.isfinite(beta)) or not np.any(beta):
        raise InvalidProblem(
            "teacher_direction", f"of shape {beta.shape}", f"{d} finite numbers, not all zero"
        )
    squares = (vectors.T @ (beta / np.linalg.norm(beta))) ** 2
    shares = np.add.reduceat(squares, np.concatenate([[0], ends[:-1]]))
    return means, sizes / d, shares / shares.sum()


def _means(values: _Array, ends: NDArray[np.int64]) -> _Array:
    """Means of groups that end there; inputs may have fewer dimensions than coordinates."""
    sizes = np.diff(ends, prepend=0)
    means = np.add.reduceat(values, np.concatenate([[0], ends[:-1]])) / sizes
    return np.asarray(np.maximum(means, 1e-12))


def _groups(values: _Array, tolerance: float, most: int) -> NDArray[np.int64]:
    """Where groups of sorted values end: the fewest that lose at most ``tolerance`` of the spread.

    Dynamic programming over the ends; long spectra are cut into runs of neighbours first.
    """
    size = len(values)
    cuts = np.unique(np.rint(np.linspace(0, size, min(size, _POINTS) + 1)).astype(np.int64))
    first = np.concatenate([[0.0], np.cumsum(values)])[cuts]
    second = np.concatenate([[0.0], np.cumsum(values**2)])[cuts]
    # within[i, j]: what is lost when the points i … j − 1 become one group.
    length = np.maximum(cuts[None, :] - cuts[:, None], 1)
    within = (second[None, :] - second[:, None]) - (first[None, :] - first[:, None]) ** 2 / length
    within = np.where(cuts[None, :] > cuts[:, None], np.maximum(within, 0.0), np.inf)
    total = within[0, -1]
    best = within[0]
    chosen: list[NDArray[np.int64]] = []
    while best[-1] > tolerance * total and len(chosen) + 1 < min(most, len(cuts) - 1):
        paths = best[:, None] + within
        chosen.append(np.argmin(paths, axis=0))
        best = np.min(paths, axis=0)
    ends = [len(cuts) - 1]
    for step in reversed(chosen):
        ends.append(int(step[ends[-1]]))
    return np.unique(cuts[ends])
