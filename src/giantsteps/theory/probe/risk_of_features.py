"""Learning curves of a linear probe from a pool of features (§8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.answers import ProbeCurve
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Ridge, integer
from giantsteps.theory.probe.best_penalty import best_penalties
from giantsteps.theory.probe.classification import classes_of
from giantsteps.theory.probe.feature_pool import FeaturePool
from giantsteps.theory.probe.point import Point
from giantsteps.theory.probe.transfer import Transfer
from giantsteps.types import FloatArray

#: Rows per feature that a pool must have.
_ROWS_PER_FEATURE = 2
#: Rows that the search for the best penalty works with.
_SEARCH_ROWS = 1024
#: Rows of the smallest training set.
_FEWEST = 3
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

    A pool of m rows overfits its own covariance, so B and the e_i cannot be read off it.
    Its leave-one-out error at a penalty μ obeys the same law with m samples: with μ chosen to
    give the same κ,

    .. math:: E(n, λ) = L_{loo}(μ)\, \frac{1 - df_2/m}{1 - df_2/n}.

    This is for rows that all have the same leverage, as for Gaussian features.
    For the rows of the pool as they are, it becomes one equation per row, which is solved
    (section 8 of the theory) and corrected for the fluctuations between training sets; for n = m
    the answer is the leave-one-out error itself.

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
        Unit of ``Ridge.samples``; by default the number of features p.
    intercept : bool
        Whether the probe has an intercept, which is not penalised.
        For a penalised one add a column of ones and set this to False.
    threshold : float, optional
        Where the output separates two classes; by default midway between the two labels.

    Returns
    -------
    ProbeCurve
        Floats for one training set, arrays for several.
        ``classification_error`` is there if the labels take two values, or if they are one-hot.

    Raises
    ------
    InvalidProblem
        If the pool has fewer than two rows per feature, if no point has an answer, or if an
        argument is not allowed.

    Notes
    -----
    The rows of the pool must be independent draws from the law of the new data.
    If a network was trained on the rows of the pool, its features fit their labels better than
    those of new rows, and the prediction is about such fitted rows.
    For n < m, terms of order 1/n are added: training sets of n rows differ from one another.
    Half of their size is part of the standard error, in addition to the variation between pools.
    Where they exceed 2 %, 40 to 400 probes are trained on random subsets of the pool, and the
    answer is the mean of theory and training with the weights of their errors; ``probes`` says
    how many.
    Where the mean error is still uncertain by more than 10 % there is no answer: the point is NaN
    and ``violated`` says so, or the call is refused if it has no other points.

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
    sizes: FloatArray,
    penalties: FloatArray | None,
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
    if penalties is None:
        penalties = best_penalties(pool, pool.thinned(_SEARCH_ROWS), sizes)
    cells = [Transfer.to(pool, n, lam) for n, lam in zip(sizes.ravel(), penalties.ravel())]
    own = pool.leave_one_out(np.array([cell.mu for cell in cells]))
    classes = classes_of(pool.labels, threshold)
    sample = pool.thinned()
    found = [Point.of(pool, sample, cell, own, i, classes) for i, cell in enumerate(cells)]
    refused = [f"{cell.samples:.0f}" for cell, point in zip(cells, found) if point.refused]
    sizes_refused = ", ".join(dict.fromkeys(refused))
    if len(refused) == len(found):
        raise InvalidProblem(
            "samples",
            sizes_refused,
            "more rows, or a larger penalty: from one training set of this size to another the "
            "error of the probe varies too much for a mean",
        )
    few = f"training sets that differ little from one another: no answer for n = {sizes_refused}"
    shape = sizes.shape
    wrong = np.array([point.wrong for point in found]).reshape(shape)
    missing = np.array([point.theory for point in found]).reshape(shape)
    spread = np.sqrt(wrong * (1.0 - wrong) / sample.rows + (missing * wrong) ** 2)
    return ProbeCurve(
        samples=sizes,
        penalty=penalties,
        test=np.array([point.by_output.mean() for point in found]).reshape(shape),
        train=np.array([point.train for point in found]).reshape(shape),
        standard_error=np.array([point.spread for point in found]).reshape(shape),
        by_output=np.array([point.by_output for point in found]).reshape(*shape, pool.outputs),
        classification_error=None if classes is None else wrong,
        classification_standard_error=None if classes is None else spread,
        effective_penalty=np.array([cell.kappa for cell in cells]).reshape(shape),
        degrees_of_freedom=np.array([cell.first for cell in cells]).reshape(shape),
        probes=np.array([point.probes for point in found], dtype=float).reshape(shape),
        rows=pool.rows,
        features=pool.features,
        intercept=pool.intercept,
        threshold=None if classes is None else classes.threshold,
        source="theory",
        violated=(few,) if refused else (),
    )


def _requests(
    readout: Any, samples: Any, penalty: Any, d: Any
) -> tuple[FloatArray, FloatArray | None, bool]:
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
        if d is not None:
            integer(d, "d", "a positive integer, the unit of Ridge.samples")
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


def _numbers(value: Any, field: str, allowed: str) -> FloatArray:
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidProblem(field, value, allowed) from None
    if numbers.size == 0 or not np.all(np.isfinite(numbers)):
        raise InvalidProblem(field, value, allowed)
    return numbers
