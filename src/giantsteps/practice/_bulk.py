"""One matrix against the law of a random one: bulk, distance from it, spikes above it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import ndtri

from giantsteps.laws import MarchenkoPastur
from giantsteps.practice._tracy_widom import edge_scale, tail, tail_quantile
from giantsteps.types import FloatArray

#: Probability that a random matrix is said to have a spike, unless another is asked for.
FALSE_ALARMS = 0.01
#: The smaller side of a matrix must have this many entries for a law to be fitted.
SMALLEST = 8
#: Candidates for spikes lie above the edge less this many units of its fluctuation.
_CANDIDATES = 3.0
#: Part of the entries that the kurtosis leaves out.
_LARGEST_ENTRIES = 1e-3
#: Matrices with random signs that tell a spike from large entries.
_FLIPS = 10
#: Mean and standard deviation of the Tracy–Widom law.
_TW_MEAN, _TW_DEVIATION = -1.2065336, 1.2679831
#: Rounds of random signs per matrix; spikes left after them are told by their vectors.
_ROUNDS = 8
#: A vector lies on one coordinate if this part of what is expected of its square is there.
_LOCALISED = 0.5
#: Probability that a row or column on which a spike lies is called large without being so.
_LARGER = 0.01
#: From this size on singular values come from the Gram matrix, and vectors from a Krylov space.
_LARGE = 2048


#: What a spike is: see `WeightSpike`.
SpikeKind: TypeAlias = Literal["direction", "row", "column", "entries"]


@dataclass(frozen=True)
class WeightSpike:
    r"""A singular value above the bulk, and the low-rank part that explains it.

    A matrix θuvᵀ + noise of variance σ² per entry (rows r, columns c) has the singular value
    s = √((θ² + rσ²)(θ² + cσ²))/θ if θ⁴ > rcσ⁴, and none outside the bulk otherwise.

    Attributes
    ----------
    value : float
        The singular value s.
    significance : float
        Probability that a random matrix of this shape has such a value (Tracy–Widom).
    strength : float
        θ, what is left of s without the noise.
    left_overlap, right_overlap : float
        Squared cosine between the singular vectors seen and those without noise, as predicted.
    kind : {"direction", "row", "column", "entries"}
        What it is.
        A direction is more than the size of entries explains: the same entries with random signs
        have no such value.
        A row (one output) or a column (one input) is larger than the others.
        Otherwise few large entries, or rows of unequal size, explain it.
    place : int or None
        Number of the row or column.
    """

    value: float
    significance: float
    strength: float
    left_overlap: float
    right_overlap: float
    kind: SpikeKind
    place: int | None = None


@dataclass(frozen=True)
class Bulk:
    """What was fitted to the singular values of one matrix.

    ``scale`` is the standard deviation of its entries without the spikes, ``edge`` where its bulk
    ends, ``margin`` where spikes begin (the edge and its fluctuations), ``distance`` the
    Kolmogorov–Smirnov distance of the bulk from the law, ``fits`` whether a random matrix has
    such a distance in 99 of 100 cases.
    """

    scale: float
    edge: float
    margin: float
    distance: float
    fits: bool
    spikes: tuple[WeightSpike, ...]


@lru_cache(maxsize=256)
def law_of_shape(rows: int, columns: int) -> Any:
    """Law of s/√(smaller side) for entries of variance one."""
    low, high = sorted((rows, columns))
    return MarchenkoPastur(high / low).singular_values()


@lru_cache(maxsize=1024)
def _median(rows: int, columns: int) -> float:
    low = min(rows, columns)
    return float(law_of_shape(rows, columns).quantile(0.5) * np.sqrt(low))


def uses_gram(matrix: FloatArray) -> bool:
    """Whether the singular values of such a matrix come from its Gram matrix."""
    return min(matrix.shape) >= _LARGE


def singular_values(matrix: FloatArray) -> FloatArray:
    """All singular values, the largest first."""
    if not uses_gram(matrix):
        return np.asarray(np.linalg.svd(matrix, compute_uv=False))
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    squares = np.linalg.eigvalsh(tall.T @ tall)[::-1]
    return np.sqrt(np.maximum(squares, 0.0))


def top_vectors(matrix: FloatArray, count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The leading left vectors (rows, count), values, and right vectors (columns, count)."""
    count = min(count, *matrix.shape)
    if not uses_gram(matrix):
        left, values, right = np.linalg.svd(matrix, full_matrices=False)
        return left[:, :count], values[:count], right[:count].T
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(0).standard_normal(min(matrix.shape))
    found = svds(matrix, k=count, v0=start)
    left, values, right = (np.asarray(part, dtype=np.float64) for part in found)
    order = np.argsort(values)[::-1]
    return left[:, order], values[order], right[order].T


def fit_bulk(
    matrix: FloatArray,
    values: FloatArray,
    *,
    false_alarms: float = FALSE_ALARMS,
    seed: int = 0,
) -> Bulk:
    """Fit the law of a random matrix to the bulk of the singular values and test what is above.

    The median gives a first scale that spikes cannot move.
    Values near the edge and above are candidates; from the lowest up, one is tested against the
    largest value of a random matrix whose variance is that of all values from it down.
    ``values`` may be fewer than the smaller side: a matrix of lower rank is compared with a
    random one whose smaller side is that rank.
    """
    rows, columns = matrix.shape
    missing = min(rows, columns) - len(values)
    rows, columns = (rows, columns - missing) if rows >= columns else (rows - missing, columns)
    squares = values**2
    start = (float(np.median(values)) / _median(rows, columns)) ** 2
    excess = _excess_kurtosis(matrix)
    centre, unit = edge_scale(rows, columns, excess)
    candidates = int(np.sum(squares > start * (centre - _CANDIDATES * unit)))
    margin_units = tail_quantile(false_alarms)
    count = 0
    for place in range(min(candidates, len(values) // 2), 0, -1):
        variance, centre, unit = _rest(squares, rows, columns, place - 1, excess)
        if squares[place - 1] > variance * (centre + margin_units * unit):
            count = place
            break
    variance, centre, unit = _rest(squares, rows, columns, count, excess)
    scale = float(np.sqrt(variance))
    spikes = []
    for place in range(count):
        strength, left, right = spike_strength(float(values[place]), scale, rows, columns)
        significance = tail((squares[place] / variance - centre) / unit)
        spikes.append(
            WeightSpike(float(values[place]), significance, strength, left, right, "entries")
        )
    spikes = _kinds(matrix, spikes, variance * unit, margin_units, seed) if spikes else []
    bulk = np.sort(values[count:])
    size = len(bulk)
    law = law_of_shape(rows - count, columns - count)
    below = law.cdf(bulk / (scale * np.sqrt(min(rows, columns) - count)))
    steps = np.arange(size + 1) / size
    distance = float(max(np.max(steps[1:] - below), np.max(below - steps[:-1])))
    return Bulk(
        scale=scale,
        edge=scale * float(np.sqrt(rows - count) + np.sqrt(columns - count)),
        margin=float(np.sqrt(variance * (centre + margin_units * unit))),
        distance=distance,
        fits=distance <= (1.4 + 0.37 * np.log(size)) / size,
        spikes=tuple(spikes),
    )


def _rest(
    squares: FloatArray, rows: int, columns: int, count: int, excess: float
) -> tuple[float, float, float]:
    """Variance of the entries without the first values; centre and unit of the largest left."""
    r, c = rows - count, columns - count
    return float(squares[count:].sum()) / (r * c), *edge_scale(r, c, excess)


def _excess_kurtosis(matrix: FloatArray) -> float:
    """Of the entries but for the very largest, which may be what is looked for."""
    squares = np.square(matrix / np.max(np.abs(matrix))).ravel()
    kept = squares[squares <= np.quantile(squares, 1.0 - _LARGEST_ENTRIES)]
    return float(np.mean(kept**2) / np.mean(kept) ** 2) - 3.0


def spike_strength(
    value: float, scale: float, rows: int, columns: int
) -> tuple[float, float, float]:
    """θ behind a singular value, and the squared overlaps of its vectors; zeros in the bulk."""
    noise = scale**2
    product = float(rows) * columns * noise**2
    half = (value**2 - (rows + columns) * noise) / 2
    if half**2 <= product or half <= 0:
        return 0.0, 0.0, 0.0
    square = half + float(np.sqrt(half**2 - product))
    gap = 1 - product / square**2
    left = gap / (1 + rows * noise / square)
    right = gap / (1 + columns * noise / square)
    return float(np.sqrt(square)), left, right


def _kinds(
    matrix: FloatArray,
    spikes: list[WeightSpike],
    unit: float,
    margin_units: float,
    seed: int,
) -> list[WeightSpike]:
    """Tell directions from large rows, columns and entries.

    Random signs keep the size of every entry and destroy directions: what exceeds the largest
    value of such matrices is a direction.
    Directions are then subtracted, large rows and columns left out, and the next spike is asked
    against what remains; after one that is due to large entries, vectors decide.
    """
    left, values, right = top_vectors(matrix, len(spikes))
    required = float(ndtri(1 - _LARGER / (len(spikes) * sum(matrix.shape))))
    sizes = _Sizes(matrix)
    told: list[WeightSpike] = []
    rest = matrix
    for _ in range(_ROUNDS):
        ceiling = _sign_flips(rest, unit, margin_units, seed)
        passed = [spike for spike in spikes[len(told) :] if spike.value**2 > ceiling]
        for spike in passed:
            place = len(told)
            told.append(replace(spike, kind="direction"))
            rest = rest - values[place] * np.outer(left[:, place], right[:, place])
        place = len(told)
        if place == len(spikes):
            return told
        if not passed:
            told.append(
                _by_vectors(sizes, spikes[place], left[:, place], right[:, place], required)
            )
            if told[-1].kind == "entries":
                break
            rest = rest.copy()
            rest[(told[-1].place,) if told[-1].kind == "row" else (..., told[-1].place)] = 0.0
    return told + [
        _by_vectors(sizes, spikes[place], left[:, place], right[:, place], required)
        for place in range(len(told), len(spikes))
    ]


class _Sizes:
    """Sizes of the entries of a matrix, and how large those of a row or column are in rank."""

    def __init__(self, matrix: FloatArray) -> None:
        self.entries = np.abs(matrix)
        self._values, counts = np.unique(self.entries, return_counts=True)
        shares = counts / self.entries.size
        self._ranks = np.cumsum(shares) - shares / 2
        self._deviation = np.sqrt(max(1.0 - float(np.sum(shares**3)), 1e-12) / 12)

    def excess(self, entries: FloatArray) -> float:
        """Mean rank of some entries above one half, in standard deviations (Wilcoxon's test)."""
        ranks = self._ranks[np.searchsorted(self._values, entries)]
        return float((ranks.mean() - 0.5) / self._deviation * np.sqrt(len(entries)))


def _by_vectors(
    sizes: _Sizes,
    spike: WeightSpike,
    left: FloatArray,
    right: FloatArray,
    required: float,
) -> WeightSpike:
    """One row or column, if a vector lies on it and its entries are large; or entries."""
    found: list[tuple[float, SpikeKind, int]] = []
    sides: tuple[tuple[SpikeKind, FloatArray, float], ...] = (
        ("row", left, spike.left_overlap),
        ("column", right, spike.right_overlap),
    )
    for kind, vector, overlap in sides:
        place = int(np.argmax(vector**2))
        excess = sizes.excess(sizes.entries[place] if kind == "row" else sizes.entries[:, place])
        if vector[place] ** 2 > _LOCALISED * overlap and excess > required:
            found.append((excess, kind, place))
    if not found:
        return spike
    _, kind, place = max(found)
    return replace(spike, kind=kind, place=place)


def _sign_flips(matrix: FloatArray, unit: float, margin_units: float, seed: int) -> float:
    """What the square of a singular value must exceed to be more than large entries."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(_FLIPS):
        signs = rng.integers(0, 2, matrix.shape, dtype=np.int8) * 2 - 1
        found.append(largest_value(matrix * signs) ** 2)
    deviation = max(float(np.std(found, ddof=1)), _TW_DEVIATION * unit)
    return float(np.mean(found)) + (margin_units - _TW_MEAN) / _TW_DEVIATION * deviation


def largest_value(matrix: FloatArray, order: int = 1, tolerance: float = 1e-3) -> float:
    """The largest singular value, or that of a further order, to a relative tolerance."""
    if min(matrix.shape) < max(200, 4 * order):
        return float(np.linalg.svd(matrix, compute_uv=False)[order - 1])
    from scipy.sparse.linalg import svds

    start = np.random.default_rng(0).standard_normal(min(matrix.shape))
    found = svds(matrix, k=order, v0=start, tol=tolerance, return_singular_vectors=False)
    return float(np.min(found))
