"""Learning curves of a linear probe from a pool of features (§8)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from giantsteps.answers import ProbeCurve
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Ridge
from giantsteps.theory.questions.classification import (
    Classes,
    classes_of,
    classification_error,
)
from giantsteps.theory.questions.feature_pool import FeaturePool, LeaveOneOut
from giantsteps.theory.questions.leverages import Leverages

__all__ = ["risk_of_features"]

#: Rows per feature that a pool must have.
_ROWS_PER_FEATURE = 2
#: Rows that the search for the best penalty works with; the answer has all of the sample.
_SEARCH_ROWS = 1024
#: Rows of the smallest training set.
_FEWEST = 3
#: Training sets below this size are predicted, and marked.
_FEW = 50
_FEW_SAMPLES = f"at least {_FEW} training samples"
_FINITE = "a finite number >= 0, or 'best'"


def risk_of_features(
    features: Any,
    labels: Any = None,
    readout: Ridge | Sequence[Ridge] | None = None,
    *,
    samples: ArrayLike | None = None,
    penalty: ArrayLike | Literal["best"] | None = None,
    d: int | None = None,
    intercept: bool = True,
    threshold: float | None = None,
) -> ProbeCurve:
    r"""Learning curve of a ridge probe, predicted from a pool of features and labels.

    The features may come from any network and any data.
    A probe b + φᵀa is fitted on n labelled rows, which minimises n⁻¹Σ(y − b − φᵀa)² + λ‖a‖².
    With the eigenvalues e_i of the features' covariance, the error of the probe on new rows is
    the error B of the best probe with penalty κ, times the price of estimating it:

    .. math:: κ\bigl(1 - \tfrac{df_1}{n}\bigr) = λ,\qquad
              E(n, λ) = \frac{B(κ)}{1 - df_2/n},\qquad
              df_k = \sum_i \bigl(\tfrac{e_i}{e_i+κ}\bigr)^k.

    A pool of m rows overfits its own covariance, so B and the e_i are not read off it.
    Its leave-one-out error at a penalty μ obeys the same law with m samples: with μ chosen to
    have the same κ,

    .. math:: E(n, λ) = L_{loo}(μ)\, \frac{1 - df_2/m}{1 - df_2/n}\; c.

    The last factor, c, is one if all rows have the same leverage, as for Gaussian features.
    For real rows it is computed from their leverages, by a self-consistent equation over a sample
    of the pool (section 8 of the theory).

    ======  =============  ==================================================================
    symbol  argument       meaning
    ======  =============  ==================================================================
    φ, y    ``features``,  m rows of the pool
            ``labels``
    n       ``samples``    rows that the probe is trained on; may exceed m
    λ       ``penalty``    ridge penalty per sample: scikit-learn's alpha is nλ
    κ                      effective penalty, ``effective_penalty`` of the answer
    df_1                   ``degrees_of_freedom`` of the answer (the intercept counts as one)
    ======  =============  ==================================================================

    Parameters
    ----------
    features : array (m, p), iterable of arrays, or callable
        For features that do not fit in memory: a memory-mapped array, a list or an iterator of
        chunks of rows, or a function that returns a new iterator at each call.
        The rows are read several times; an iterator is copied to a temporary file meanwhile.
    labels : array (m,) or (m, k), optional
        One or several outputs.
        Leave it out if each chunk is a pair (features, labels).
    readout : Ridge or sequence of Ridge, optional
        Training sets and penalties.
        ``Ridge.samples`` is a multiple of ``d``.
    samples, penalty : int and float, or arrays that broadcast; optional
        Instead of ``readout``: numbers of rows n, and λ.
        ``penalty="best"`` finds the λ ≥ 0 with the smallest predicted test error for each n.
    d : int, optional
        What ``Ridge.samples`` is a multiple of; the number of features p unless given.
    intercept : bool
        Whether the probe has an intercept, which is not penalised.
        For a penalised one add a column of ones and set this to False.
    threshold : float, optional
        Where the output separates two classes; midway between the two labels unless given.

    Returns
    -------
    ProbeCurve
        Floats for one training set, arrays for several.
        ``classification_error`` is there if the labels take two values, or if they are one-hot.

    Raises
    ------
    InvalidProblem
        If the pool has fewer than two rows per feature, or an argument is not allowed.

    Notes
    -----
    The rows of the pool must be independent draws from the law of the new data.
    If a network was trained on the rows of the pool, its features fit their labels better than
    those of new rows, and the prediction is about such fitted rows.
    Below 50 training samples fluctuations that are neglected reach several percent;
    the answer then lists this in ``violated``.

    References
    ----------
    theory §8.

    Examples
    --------
    Features of a random network, 300 labelled rows; what would 60 and 6000 rows give?

    >>> import numpy as np
    >>> from giantsteps import theory
    >>> rng = np.random.default_rng(1)
    >>> x = rng.standard_normal((300, 10))
    >>> y = np.sin(x[:, 0]) + 0.3 * rng.standard_normal(300)
    >>> features = np.tanh(x @ rng.standard_normal((10, 50)) / 3)
    >>> curve = theory.risk_of_features(features, y, samples=[60, 6000], penalty="best")
    >>> curve.test.round(2)
    array([0.18, 0.14])
    """
    if not isinstance(intercept, bool):
        raise InvalidProblem("intercept", intercept, "True or False")
    sizes, penalties, per_feature = _requests(readout, samples, penalty, d)
    with FeaturePool(features, labels, intercept) as pool:
        if per_feature:
            sizes = np.round(sizes * pool.features)
        if np.any(sizes < _FEWEST):
            raise InvalidProblem("samples", float(sizes.min()), f"at least {_FEWEST} rows")
        return _curve(pool, sizes, penalties, threshold)


def _curve(
    pool: FeaturePool,
    sizes: NDArray[np.float64],
    penalties: NDArray[np.float64] | None,
    threshold: float | None,
) -> ProbeCurve:
    """The answer for training sets of given sizes."""
    if pool.rows < _ROWS_PER_FEATURE * pool.features:
        raise InvalidProblem(
            "features",
            (pool.rows, pool.features),
            f"a pool with at least {_ROWS_PER_FEATURE} rows per feature: collect "
            f"{_ROWS_PER_FEATURE * pool.features} rows, or keep fewer features "
            "(their leading principal components)",
        )
    leverages = Leverages(pool.sample, pool.sample_labels, pool.intercept)
    if penalties is None:
        thin = slice(None, None, -(-len(pool.sample) // _SEARCH_ROWS))
        search = Leverages(pool.sample[thin], pool.sample_labels[thin], pool.intercept)
        penalties = _best_penalties(pool, search, sizes)
    cells = [_Transfer.to(pool, n, lam) for n, lam in zip(sizes.ravel(), penalties.ravel())]
    own = pool.leave_one_out(np.array([cell.mu for cell in cells]))
    shape = sizes.shape
    factors = np.array([_factors(leverages, pool.rows, cell) for cell in cells])
    bridge = np.array([cell.price for cell in cells]) * factors[:, 0]
    by_output = own.loss * bridge[:, None]
    test = by_output.mean(axis=1)
    # The residuals of m rows have m − df₁ degrees of freedom.
    lost = np.array([1.0 - cell.first / pool.rows for cell in cells])
    classes = classes_of(pool.labels, threshold)
    wrong = None if classes is None else _classification(pool, cells, own, test, classes)
    few = bool(np.any(sizes < _FEW))
    return ProbeCurve(
        samples=sizes,
        penalty=penalties,
        test=test.reshape(shape),
        train=_train(pool.rows, cells, own, factors, test).reshape(shape),
        standard_error=(own.spread * bridge / np.sqrt(lost)).reshape(shape),
        by_output=by_output.reshape(*shape, pool.outputs),
        classification_error=None if wrong is None else wrong[0].reshape(shape),
        classification_standard_error=None if wrong is None else wrong[1].reshape(shape),
        effective_penalty=np.array([cell.kappa for cell in cells]).reshape(shape),
        degrees_of_freedom=np.array([cell.first for cell in cells]).reshape(shape),
        rows=pool.rows,
        features=pool.features,
        intercept=pool.intercept,
        threshold=None if classes is None else classes.threshold,
        source="theory",
        violated=(_FEW_SAMPLES,) if few else (),
    )


def _requests(
    readout: Any, samples: Any, penalty: Any, d: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64] | None, bool]:
    """Sizes and penalties of one shape, and whether the sizes are multiples of the features.

    There are no penalties if the best ones are wanted.
    """
    if (readout is None) == (samples is None and penalty is None):
        raise InvalidProblem(
            "readout", readout, "given, or samples= and penalty= instead, and not both"
        )
    if readout is not None:
        ridges = list(readout) if isinstance(readout, list | tuple) else [readout]
        wrong = [item for item in ridges if not isinstance(item, Ridge)]
        if wrong or not ridges:
            raise InvalidProblem("readout", wrong or readout, "a Ridge or a list of them")
        if d is not None and (isinstance(d, bool) or not isinstance(d, int) or d < 1):
            raise InvalidProblem("d", d, "a positive integer, the unit of Ridge.samples")
        ratios = np.array([float(ridge.samples) for ridge in ridges])
        found = np.array([float(ridge.penalty) for ridge in ridges])
        if isinstance(readout, Ridge):
            ratios, found = ratios.reshape(()), found.reshape(())
        return (ratios, found, True) if d is None else (np.round(ratios * d), found, False)
    if d is not None:
        raise InvalidProblem("d", d, "left out with samples=, which counts rows")
    counts = _numbers(samples, "samples", f"integers >= {_FEWEST} (rows)")
    if np.any(counts != np.round(counts)):
        raise InvalidProblem("samples", samples, f"integers >= {_FEWEST} (rows)")
    if isinstance(penalty, str):
        if penalty != "best":
            raise InvalidProblem("penalty", penalty, _FINITE)
        return counts, None, False
    found = _numbers(penalty, "penalty", _FINITE)
    if np.any(found < 0):
        raise InvalidProblem("penalty", penalty, _FINITE)
    try:
        counts, found = map(np.array, np.broadcast_arrays(counts, found))
    except ValueError:
        raise InvalidProblem(
            "penalty", found.shape, f"of a shape that broadcasts with samples, {counts.shape}"
        ) from None
    return counts, found, False


def _numbers(value: Any, field: str, allowed: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidProblem(field, value, allowed) from None
    if numbers.size == 0 or not np.all(np.isfinite(numbers)):
        raise InvalidProblem(field, value, allowed)
    return numbers


@dataclass(frozen=True)
class _Transfer:
    """How the pool's own probe with penalty μ speaks for n samples with penalty λ."""

    samples: float
    penalty: float
    mu: float
    kappa: float
    first: float
    second: float
    price: float

    @classmethod
    def to(cls, pool: FeaturePool, samples: float, penalty: float) -> _Transfer:
        """μ with the same κ on m rows as λ on n."""
        lowest = 1e-13 * float(pool.values.max())
        parameters = len(pool.values) + pool.intercept
        if penalty == 0.0 and samples >= parameters:
            mu = lowest
        else:
            high = np.log(
                3.0 * (penalty + 2.0 * float(pool.values.sum()) / min(samples, pool.rows))
            )

            def gap(log: float) -> float:
                kappa, first = _population(pool, np.exp(log))
                return kappa * (1.0 - first / samples) - penalty

            mu = float(np.exp(brentq(gap, np.log(lowest) - 5.0, high + 2.0, xtol=1e-13)))
        kappa, first = _population(pool, mu)
        slope = kappa * float(np.sum(pool.values / (pool.values + mu) ** 2))
        second = (first - slope) / (1.0 - slope / pool.rows)
        left = 1.0 - second / samples
        diverges = left <= 0 or (penalty == 0.0 and samples == parameters)
        price = np.inf if diverges else (1.0 - second / pool.rows) / left
        return cls(samples, penalty, mu, kappa, first, second, price)


def _population(pool: FeaturePool, mu: float) -> tuple[float, float]:
    """κ and df₁ of the population, as the pool's penalty μ sees them."""
    first = float(np.sum(pool.values / (pool.values + mu))) + pool.intercept
    return mu / (1.0 - first / pool.rows), first


def _factors(leverages: Leverages, rows: int, cell: _Transfer) -> tuple[float, float]:
    """What uneven leverages change in the test and training error, from m rows to n."""
    if not np.isfinite(cell.price):
        return 1.0, 1.0
    here = leverages.errors(cell.samples, cell.penalty)
    pool = leverages.errors(rows, cell.mu)
    test = (here.test / here.even_test) / (pool.test / pool.even_test)
    train = (here.train / here.even_train) / (pool.train / pool.even_train)
    return test, train


def _train(
    rows: int,
    cells: Sequence[_Transfer],
    own: LeaveOneOut,
    factors: NDArray[np.float64],
    test: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The pool's training error, moved by the law train = (1 − df₁/n)² test."""
    loss = own.loss.mean(axis=1)
    result = np.zeros(len(cells))
    for i, cell in enumerate(cells):
        here = max(1.0 - cell.first / cell.samples, 0.0) ** 2 * test[i] / factors[i, 0]
        pool = (1.0 - cell.first / rows) ** 2 * loss[i]
        result[i] = own.train[i] * here / pool * factors[i, 1] if np.isfinite(here) else 0.0
    return result


def _best_penalties(
    pool: FeaturePool, leverages: Leverages, sizes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """λ with the smallest predicted test error for each n."""
    values = pool.values
    logs = np.linspace(np.log(1e-9 * values.mean()), np.log(1e3 * values.max()), 61)
    loss = CubicSpline(logs, np.log(pool.leave_one_out(np.exp(logs)).loss.mean(axis=1)))
    dense = np.linspace(logs[0], logs[-1], 1201)
    smooth = loss(dense)
    kappa, first = np.array([_population(pool, mu) for mu in np.exp(dense)]).T
    slope = kappa * (values / (values + np.exp(dense)[:, None]) ** 2).sum(axis=1)
    second = (first - slope) / (1.0 - slope / pool.rows)
    best = np.empty(sizes.size)
    for i, n in enumerate(sizes.ravel()):
        penalties = kappa * (1.0 - first / n)
        usable = (penalties > 0) & (second < n)
        curve = smooth[usable] + np.log1p(-second[usable] / pool.rows)
        curve -= np.log1p(-second[usable] / n)
        best[i] = _lowest(leverages, float(n), np.log(penalties[usable]), curve)
    return best.reshape(sizes.shape)


def _lowest(
    leverages: Leverages,
    samples: float,
    logs: NDArray[np.float64],
    curve: NDArray[np.float64],
) -> float:
    """Minimum of a curve over log λ once the leverages have moved it."""
    center = float(logs[np.argmin(curve)])
    for _ in range(4):
        places = np.clip(center + np.log(4.0) * np.arange(-1, 2), logs[0], logs[-1])
        places = np.unique(places)
        moved = []
        for at in places:
            here = leverages.errors(samples, float(np.exp(at)))
            moved.append(np.log(here.test / here.even_test))
        factor = np.polynomial.Polynomial.fit(places, moved, len(places) - 1)
        near = (logs >= places[0]) & (logs <= places[-1])
        found = float(logs[near][np.argmin(curve[near] + factor(logs[near]))])
        if places[0] < found < places[-1] or len(places) < 3:
            break
        center = found
    return float(np.exp(found))


def _classification(
    pool: FeaturePool,
    cells: Sequence[_Transfer],
    own: LeaveOneOut,
    test: NDArray[np.float64],
    classes: Classes,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Fraction of wrong classes and its standard error."""
    wrong = np.empty(len(cells))
    for i, cell in enumerate(cells):
        # Variance of a prediction that n samples add to that of the pool's own probe.
        added = test[i] / cell.samples - float(own.loss[i].mean()) / pool.rows
        wrong[i] = (
            classification_error(pool, classes, cell.mu, cell.kappa, cell.second, added)
            if np.isfinite(added)
            else np.nan
        )
    return wrong, np.sqrt(wrong * (1.0 - wrong) / pool.rows)
