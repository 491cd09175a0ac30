"""Does a simulation agree with a number? Student t, resolution, trend in the size, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from giantsteps.answers._leaves import Leaf, Record, as_leaf

__all__ = [
    "BEYOND",
    "VERDICTS",
    "Agreement",
    "Estimate",
    "Verdict",
    "chance",
    "combined_p_value",
    "estimate",
    "judge",
]

#: What a comparison says of a quantity, from best to worst.
Verdict: TypeAlias = Literal["agree", "finite size", "unresolved", "disagree"]
#: From best to worst.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
#: A gap is a disagreement when it is beyond so many standard errors.
BEYOND = 3.0
#: A gap shrinks with the size when the slope of its trend is beyond so many standard errors.
SHRINKS = 2.0
#: Powers of 1/d by which gaps close: most effects of the size fall as 1/d, the pull of the
#: initial network in the gradient as d^{-1/2} (theory §2).
POWERS = (1.0, 0.5)


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate(Record):
    r"""A mean over seeds beside the number it should have.

    .. math:: se = s/\sqrt S, \quad t = (\bar x - \tau)/se, \quad
              resolution = 3\,se/|\tau|

    ===========  ==================  ===================================================
    symbol       attribute           meaning
    ===========  ==================  ===================================================
    τ            ``theory``          what it should be
    x̄            ``mean``            over S independent seeds
    se           ``standard_error``  of the mean, s the standard deviation with S − 1
    t            ``t``               Student with S − 1 degrees of freedom if x̄ → τ
    p            ``p_value``         two-sided
    resolution   ``resolution``      the smallest relative gap that would be seen
    ===========  ==================  ===================================================

    Every attribute is a float, or an array of the shape of the grid. NaN where theory has no
    finite value.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> estimate = gs.compare(problem, d=50, seeds=4, test_samples=500)["test"].largest
    >>> isinstance(estimate, Estimate)
    True
    >>> t = (estimate.mean - estimate.theory) / estimate.standard_error
    >>> abs(t - estimate.t) < 1e-12
    True
    >>> abs(3 * estimate.standard_error / estimate.theory - estimate.resolution) < 1e-12
    True
    """

    theory: Leaf
    mean: Leaf
    standard_error: Leaf
    t: Leaf
    p_value: Leaf
    resolution: Leaf

    def __post_init__(self) -> None:
        for name, value in self._fields().items():
            object.__setattr__(self, name, as_leaf(value, np.shape(self.theory), name))


def estimate(samples: ArrayLike, theory: ArrayLike, scale: ArrayLike | None = None) -> Estimate:
    """Mean of ``samples`` over their first axis, the seeds, compared with ``theory``.

    Parameters
    ----------
    samples : array_like, shape (seeds, ...)
    theory : array_like, shape (...)
    scale : array_like, optional
        What the resolution is relative to; |theory| unless given.
    """
    samples, theory = np.asarray(samples, dtype=float), np.asarray(theory, dtype=float)
    seeds = samples.shape[0]
    compared = np.isfinite(theory)
    mean = samples.mean(axis=0)
    error = samples.std(axis=0, ddof=1) / np.sqrt(seeds)
    gap = np.where(compared, mean - theory, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap == 0, 0.0, gap / error)
        size = np.abs(theory) if scale is None else np.asarray(scale, dtype=float)
        resolution = np.where(compared, 3 * error / size, np.nan)
        resolution = np.where((error == 0) & compared, 0.0, resolution)
    return Estimate(
        theory=theory,
        mean=mean,
        standard_error=error,
        t=t,
        p_value=2 * stats.t.sf(np.abs(t), seeds - 1),
        resolution=resolution,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement(Record):
    """The verdict on one quantity, and what it rests on.

    Attributes
    ----------
    by_size : tuple of Estimate
        One a size d, increasing.
    extrapolated : Estimate or None
        With two sizes or more: the simulation plus g∞ of the trend gap(d) = g∞ + c/d^p, that is,
        the estimate with its finite-size gap removed; p is 1 or ½, whichever leaves less.
    slope_t : float, ndarray or None
        Student t of c, positive where the gap shrinks with d.
    limit : float
        Largest resolution that counts as resolved.
    verdict : str or ndarray of str
        ``"agree"``, ``"finite size"``, ``"unresolved"`` or ``"disagree"``; ``""`` where theory
        has no finite value.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> agreement = gs.compare(problem, d=[40, 80], seeds=3, test_samples=500)["test"]
    >>> isinstance(agreement, Agreement), len(agreement.by_size), agreement.limit
    (True, 2, 0.02)
    >>> agreement.largest is agreement.by_size[-1]
    True
    """

    by_size: tuple[Estimate, ...]
    extrapolated: Estimate | None
    slope_t: Leaf | None
    limit: float
    verdict: Any

    @property
    def largest(self) -> Estimate:
        """The estimate at the largest size."""
        return self.by_size[-1]

    @property
    def p_value(self) -> Leaf:
        """That of the estimate on which the verdict rests."""
        if self.extrapolated is None:
            return self.largest.p_value
        explained = np.isin(self.verdict, ["finite size", "unresolved"])
        beyond = np.abs(self.largest.t) > BEYOND
        p = np.where(explained & beyond, self.extrapolated.p_value, self.largest.p_value)
        return as_leaf(p, p.shape, "p_value")


def judge(
    samples: ArrayLike,
    theory: ArrayLike,
    sizes: Sequence[int],
    *,
    limit: float,
    scale: ArrayLike | None = None,
) -> Agreement:
    """Compare a quantity, simulated at several sizes with the same seeds, with theory.

    At the largest size |t| ≤ 3 means "agree" if the resolution is within ``limit``, else
    "unresolved". Beyond that, a single size means "disagree"; with two sizes or more the gap may
    be an effect of the size: it must shrink (slope of the trend beyond 2 standard errors), and
    what the trend leaves at d = ∞ is judged as above, with "finite size" in place of "agree".
    Trends are contrasts taken seed by seed, so draws shared between sizes do no harm and every t
    is Student's with seeds − 1 degrees of freedom.

    Parameters
    ----------
    samples : array_like, shape (sizes, seeds, ...)
    theory : array_like, shape (sizes, ...)
    sizes : sequence of int
        Increasing.
    limit : float
        Largest resolution that counts as resolved.
    scale : array_like, shape (sizes, ...), optional
        What resolutions are relative to; |theory| unless given.
    """
    samples, theory = np.asarray(samples, dtype=float), np.asarray(theory, dtype=float)
    scale = np.abs(theory) if scale is None else np.asarray(scale, dtype=float)
    by_size = tuple(estimate(*of_size) for of_size in zip(samples, theory, scale))
    last = by_size[-1]
    beyond = np.abs(last.t) > BEYOND
    resolved = np.asarray(last.resolution) <= limit
    verdict = np.where(beyond, "disagree", np.where(resolved, "agree", "unresolved"))

    extrapolated, slope_t = None, None
    if len(sizes) > 1:
        gaps = samples - theory[:, None]
        trends = []
        for power in POWERS:
            at_infinity, slope = (np.tensordot(row, gaps, axes=1) for row in _trend(sizes, power))
            limit_gap = estimate(theory[-1] + at_infinity, theory[-1], scale[-1])
            trends.append((limit_gap, estimate(slope, np.zeros_like(theory[-1]))))
        extrapolated, trend = _closest(*trends)
        slope_t = np.asarray(trend.t) * np.sign(np.asarray(last.mean) - theory[-1])
        explained = beyond & (slope_t >= SHRINKS) & (np.abs(extrapolated.t) <= BEYOND)
        clear = np.asarray(extrapolated.resolution) <= limit
        verdict = np.where(explained, np.where(clear, "finite size", "unresolved"), verdict)
        slope_t = as_leaf(slope_t, slope_t.shape, "slope_t")
    verdict = np.where(np.isfinite(theory[-1]), verdict, "")
    return Agreement(
        by_size=by_size,
        extrapolated=extrapolated,
        slope_t=slope_t,
        limit=limit,
        verdict=verdict if verdict.ndim else verdict.item(),
    )


def _closest(
    one: tuple[Estimate, Estimate], other: tuple[Estimate, Estimate]
) -> tuple[Estimate, Estimate]:
    """Cell by cell, the trend (its limit and its slope) that leaves the smaller |t| at d = ∞."""
    first = np.abs(one[0].t) <= np.abs(other[0].t)
    limit, slope = (
        Estimate(**{k: np.where(first, v, getattr(b, k)) for k, v in a._fields().items()})
        for a, b in zip(one, other)
    )
    return limit, slope


def _trend(sizes: Sequence[int], power: float) -> NDArray[np.float64]:
    """Rows that give g∞ and c of gap(d) = g∞ + c (d₁/d)^power by least squares with weights d."""
    d = np.asarray(sizes, dtype=float)
    design = np.stack([np.ones_like(d), (d[0] / d) ** power], axis=1)
    weights = np.sqrt(d / d[-1])
    return np.linalg.pinv(design * weights[:, None]) * weights


def chance(seeds: int) -> float:
    """Probability of |t| > 3 when theory is right: Student with seeds − 1 degrees of freedom."""
    return float(2 * stats.t.sf(BEYOND, seeds - 1))


def combined_p_value(p_values: ArrayLike) -> float:
    """One p-value for many dependent tests: the Cauchy combination, NaN left out.

    The mean of Cauchy variables is Cauchy however they depend on one another, in the tail; so
    neither one cell in a hundred beyond 3 standard errors counts as a disagreement, nor is a
    small gap shared by all of them lost.
    """
    p = np.asarray(p_values, dtype=float)
    p = p[np.isfinite(p)]
    if p.size == 0:
        return 1.0
    return float(stats.cauchy.sf(np.mean(stats.cauchy.isf(np.minimum(p, 0.99)))))
