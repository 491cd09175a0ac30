"""Terms of order 1/n: how the test error fluctuates with the rows of the training set (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotri

from giantsteps.theory.probe.leverages import Leverages
from giantsteps.types import FloatArray

#: Relative steps of the differences in the weight of the labels, and in n.
_LABELS, _SAMPLES = 1e-4, 0.02
#: Part of terms that cancel which may not.
_CANCELS = 0.2
#: The effect of missing rows is known up to about this factor; test rows that it is found from,
#: most rows that are like one, and the probability below which it is nothing.
_MISSING = 2.0
_TEST_ROWS, _MOST_ALIKE, _RARE = 60, 400, 1e-4


@dataclass(frozen=True)
class Terms:
    """Relative change of an error.

    ``leverages`` comes from leverages that vary from one training set to another, ``size`` from
    drawing exactly n rows rather than n on average.
    ``missing`` is what training sets without any row like the test row add, roughly; it is no
    part of an expansion in 1/n, and of ``total``.
    """

    leverages: float = 0.0
    size: float = 0.0
    missing: float = 0.0

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.leverages))

    @property
    def total(self) -> float:
        return self.leverages + self.size if self.known else 0.0

    @property
    def spread(self) -> float:
        """Half of how far the expansion goes: near interpolation large terms cancel, not wholly."""
        large = _CANCELS * (abs(self.leverages) + abs(self.size))
        return (abs(self.leverages + self.size) + large + _MISSING * self.missing) / 2

    def times(self, factor: float) -> Terms:
        """The same for another share of the pool in the training set."""
        return Terms(factor * self.leverages, factor * self.size, self.missing)


@dataclass(frozen=True)
class Fluctuations:
    """Terms of the test error and of the training error."""

    test: Terms = Terms()
    train: Terms = Terms()

    def times(self, factor: float) -> Fluctuations:
        return Fluctuations(self.test.times(factor), self.train.times(factor))


def fluctuations(at: Leverages) -> Fluctuations:
    """All terms, for n < m; infinite where the leverages have no stable mean.

    Each row of the pool is in the training set with probability π = n/m.
    The mean of log det(nλ + Σ_S g gᵀ) over training sets S is that of the leverages at their mean,
    plus Ω, which is exact for each pair of rows and sums the rings of three rows and more.
    Test rows enter with an infinitesimal weight ε, and labels as a feature of infinitesimal
    weight η: the test error is the second derivative in both, and the training error that in η
    and in the weight 1 + ε of the rows of S.
    """
    pool, samples, h, fit = at.pool, at.samples, at.h, at.fit
    share = samples / pool.rows
    rows = fit.half / np.sqrt(samples)
    gram = rows.T @ rows
    labels = pool.sample_labels
    residual = labels - gram @ (share * fit.weights[:, None] * labels)
    residual /= np.sqrt(labels.shape[1])
    square = ((residual / fit.left[:, None]) ** 2).sum(axis=1)
    error = fit.solve(square)
    assert error is not None  # K is below one at the solution
    # A weight η of the labels moves the matrix gᵀA⁻¹g and the leverages along these directions.
    inner = (rows * (share * (1.0 - share) * fit.weights**2 * error)) @ rows.T
    moved = rows.T @ (inner @ rows) + residual @ residual.T
    factors = np.vstack([rows, residual.T])
    step = _LABELS * min(float(h.mean() / error.mean()), 1.0 / float(np.max(error / (1.0 + h))))
    slopes = []
    for weight in (step, -step):
        middle = np.zeros((len(factors),) * 2)
        middle[: len(rows), : len(rows)] = np.eye(len(rows)) + weight * inner
        middle[len(rows) :, len(rows) :] = weight * np.eye(residual.shape[1])
        slopes.append(_slope(gram + weight * moved, factors, middle, h + weight * error, share))
    train = error / (1.0 + h) ** 2
    sums = np.array([(1.0 - share) * error.sum(), share * train.sum()])
    leverages = (slopes[0] - slopes[1]) / (2.0 * step * sums)
    if not np.all(np.isfinite(leverages)):
        return Fluctuations(Terms(np.inf), Terms(np.inf))
    size = _fixed_size(at, float(error.mean()), float(train.mean()))
    missing = _missing_rows(at, gram, residual, error)
    return Fluctuations(
        Terms(float(leverages[0]), float(size[0]), missing),
        Terms(float(leverages[1]), float(size[1])),
    )


def _slope(
    gram: FloatArray,
    factors: FloatArray,
    middle: FloatArray,
    h: FloatArray,
    share: float,
) -> FloatArray:
    """dΩ/dε for rows outside S and in S, gram = factorsᵀ middle factors; NaN for K not below 1."""
    both = share * (1.0 - share)
    weights = 1.0 / (1.0 + (1.0 - share) * h)
    level = share * weights  # c, the weight of a row in nA
    lifted = (1.0 + h) * weights  # 1 + c h
    size = lifted * weights  # b: a row in S adds (1 − π)b, one outside −πb
    square = gram**2
    np.fill_diagonal(square, 0.0)
    pairs = size[:, None] * square * size  # w
    rings = both * pairs  # K
    inverse = _inverse(np.eye(len(h)) - rings)
    if inverse is None:
        return np.full(2, np.nan)
    # dΩ/dw over π(1 − π): exact for pairs, then rings, less what they have of pairs.
    alone = 1.0 / (1.0 - rings**2)
    gradient = rings * (alone + 2.0 * alone**2)
    gradient -= inverse
    gradient -= _squared(inverse)
    for weight, power in ((2.0, both), (-1.0, -((1.0 - share) ** 2)), (-1.0, -(share**2))):
        gradient += weight * both / (1.0 + power * pairs)
    np.fill_diagonal(gradient, 0.0)
    gradient *= both
    by_size = (gradient * pairs).sum(axis=1)
    bent = factors @ (gradient * gram * size[:, None] * size) @ factors.T
    by_level = np.einsum("ij,ij->j", factors, middle @ bent @ middle @ factors)
    # What ε does to the leverages h, to c and to log b, which is seen on the rows it leaves alone.
    outside = (1.0 - share) * lifted**2, -1.0 / (1.0 - level), -1.0 / (1.0 + h)
    inside = share * weights**2, 1.0 / level, np.zeros_like(h)
    found = np.empty(2)
    for place, (given, by_c, by_h) in enumerate((outside, inside)):
        h_slope = lifted**2 * (inverse @ (-size * (square @ given))) / size
        level_slope = given - both * weights**2 * h_slope
        size_slope = level_slope * (h / lifted + by_c) + h_slope * (level / lifted + by_h)
        found[place] = size_slope @ by_size - level_slope @ by_level
    return found


def _inverse(matrix: FloatArray) -> FloatArray | None:
    """Of a symmetric matrix; None if it is not positive."""
    root, failed = dpotrf(matrix, lower=1)
    if failed:
        return None
    found, failed = dpotri(root, lower=1)
    return None if failed else _symmetric(found)


def _squared(matrix: FloatArray) -> FloatArray:
    return _symmetric(dsyrk(1.0, matrix, lower=1))


def _symmetric(lower: FloatArray) -> FloatArray:
    """The matrix whose lower triangle is given, with zeros above."""
    full = lower + lower.T
    np.fill_diagonal(full, lower.diagonal())
    return full


def _fixed_size(at: Leverages, test: float, train: float) -> FloatArray:
    """−½ Var(n) d²E/dn² over E, for rows that are drawn one by one; nλ stays the same.

    For the training error it is the sum of the n squares that has this mean.
    """
    pool, samples = at.pool, at.samples
    part = min(_SAMPLES, (pool.rows / samples - 1.0) / 2)
    near = np.zeros(2)
    for factor in (1.0 + part, 1.0 - part):
        found = Leverages.of(pool, samples * factor, at.penalty / factor, at.h).errors()
        near += found.error.mean(), factor * found.train
    curvature = (near / (test, train) - 2.0) / part**2
    return np.asarray(-0.5 * (1.0 - samples / pool.rows) / samples * curvature)


def _missing_rows(
    at: Leverages,
    gram: FloatArray,
    residual: FloatArray,
    error: FloatArray,
) -> float:
    """What it adds to the error, over it, that no row like the test row is in the training set.

    Rows that are alike have the same K_ij, so that (Σ_j K_ij)²/Σ_j K_ij² counts those like row i.
    Twice as many, those with the largest K_ij, are taken out of the fit, for some of the rows.
    """
    operator, share = at.fit.operator, at.samples / at.pool.rows
    squares = (operator**2).sum(axis=1)
    alike = operator.sum(axis=1) ** 2 / np.where(squares > 0, squares, np.inf)
    chance = np.where(squares > 0, (1.0 - share) ** alike, 0.0)
    rows = np.unique(np.linspace(0, len(alike) - 1, _TEST_ROWS).astype(int))
    added = 0.0
    for i in rows[chance[rows] > _RARE]:
        like = min(int(2 * alike[i]), _MOST_ALIKE, len(alike) // 2)
        out = np.append(i, np.argsort(-operator[i])[:like])
        matrix = np.eye(len(out)) - gram[np.ix_(out, out)] * (share * at.fit.weights[out])
        without = np.linalg.solve(matrix, residual[out])[0]
        added += chance[i] * max(float(without @ without) - error[i], 0.0)
    return float(added / (len(rows) * error.mean()))
