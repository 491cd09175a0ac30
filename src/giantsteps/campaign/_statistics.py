"""Does a simulation agree with a number? Means, Student's t, the trend in the size, a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from giantsteps.answers import Leaf, Record, as_leaf
from giantsteps.types import FloatArray

#: What a comparison says of a quantity, from best to worst.
Verdict: TypeAlias = Literal["agree", "finite size", "unresolved", "disagree"]
#: From best to worst.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
#: Chance that a whole comparison says "disagree" somewhere though the theory is right.
LEVEL = 0.01
#: A number disagrees when its p-value, adjusted for their number, is at most this. The rest up to
#: `LEVEL` is for what the allowance for skewness leaves.
_NOMINAL = 0.009
#: Chance of a gap beyond three standard errors, on one side, if they are known exactly.
_RARE = float(stats.norm.sf(3.0))
#: A gap shrinks with the size when the slope of its trend is beyond so many standard errors.
SHRINKS = 2.0
#: Powers of 1/d by which gaps close: most effects of the size fall as 1/d, the pull of the
#: initial network in the gradient as d^{-1/2} (theory §2).
POWERS = (1.0, 0.5)
#: Numbers whose relative difference is below this differ by rounding; one so much smaller than
#: its scale is zero.
_ROUNDING, _ZERO = 1e-12, 1e-9


def mean_and_error(samples: ArrayLike, axis: int = 0) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean over the seeds along an axis, its standard error, and how many seeds there are.

    NaN is left out; the error of a single seed is NaN.
    """
    values = np.asarray(samples, dtype=float)
    there = ~np.isnan(values)
    count = there.sum(axis=axis).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, values, 0.0).sum(axis=axis) / count
        gaps = np.where(there, values - np.expand_dims(mean, axis), 0.0)
        error = np.sqrt((gaps**2).sum(axis=axis) / (count - 1) / count)
    return mean, np.where(count > 1, error, np.nan), count


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate(Record):
    r"""A mean over seeds beside the number it should have.

    .. math:: se = s/\sqrt S, \quad t = (\bar x - \tau)/se, \quad
              resolution = c_S\,se/|\tau|

    ===========  ==================  ===================================================
    symbol       attribute           meaning
    ===========  ==================  ===================================================
    τ            ``theory``          what it should be
    x̄            ``mean``            over S independent seeds
    S            ``seeds``           how many there are
    se           ``standard_error``  of the mean, s the standard deviation with S − 1
    t            ``t``               Student with S − 1 degrees of freedom if x̄ → τ
    p            ``p_value``         two-sided, with allowance for skewness
    resolution   ``resolution``      the smallest relative gap that would be seen
    c_S                              quantile of Student's t that is as rare as three
                                     standard errors are when they are known: 3 for many
                                     seeds, 3.5 for 20, 6.6 for 5, 236 for 2
    ===========  ==================  ===================================================

    Every attribute is a float, or an array of the shape of the grid. NaN where theory has no
    finite value; the resolution of a number that is zero is NaN.

    References: theory §0.
    """

    theory: Leaf
    mean: Leaf
    standard_error: Leaf
    t: Leaf
    p_value: Leaf
    resolution: Leaf
    seeds: Leaf

    def __post_init__(self) -> None:
        for name, value in self._fields().items():
            object.__setattr__(self, name, as_leaf(value, np.shape(self.theory), name))


def estimate(samples: ArrayLike, theory: ArrayLike, scale: ArrayLike | None = None) -> Estimate:
    """Mean of ``samples`` over their first axis, the seeds (NaN: missing), beside ``theory``.

    The resolution is relative to ``scale``, |theory| unless given. The skewness that the p-values
    allow for is that of all cells together.
    """
    theory = np.asarray(theory, dtype=float)
    size = np.abs(theory) if scale is None else np.asarray(scale, dtype=float)
    mean, error, count = mean_and_error(samples)
    gap = np.where(np.isfinite(theory), mean - theory, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        same = np.abs(gap) <= _ROUNDING * size
        t = np.where(same & (count > 1), 0.0, gap / error)
        resolution = np.where(gap == gap, _reach(count) * error / size, np.nan)
    return Estimate(
        theory=theory,
        mean=mean,
        standard_error=error,
        t=t,
        p_value=2 * stats.t.sf(_allow_for_skewness(t, samples, theory), np.maximum(count - 1, 1)),
        resolution=np.where(size > 0, resolution, np.nan),
        seeds=count,
    )


def _allow_for_skewness(t: FloatArray, samples: ArrayLike, theory: FloatArray) -> FloatArray:
    r"""Size of t, made smaller where skewness alone makes it large.

    The mean of skewed samples and their spread depend on each other, so that t is too often large
    on the side opposite to the long tail. With the skewness γ, to first order in S^{-1/2}

    .. math:: t + b\,t^2, \qquad b = \frac{\gamma}{3\sqrt S}

    is Student's again (Johnson, 1978). Where this makes |t| smaller it is used, as
    log(1 + 2|b t|)/(2|b|), which has the same expansion and grows with |t| without bound; nowhere
    does |t| become larger.

    The skewness of a few seeds says little. It is that of all cells together, without a correction
    for its bias, which shrinks it the more the fewer seeds there are. Numbers of which no sample
    has another sign than theory are taken to be at least as skewed as a lognormal of their spread,
    γ = 3s/x̄: test errors of networks are, within a fifth.
    """
    values = np.asarray(samples, dtype=float)
    mean, error, count = mean_and_error(values)
    away = np.where(theory < 0, -1.0, 1.0)  # from zero
    with np.errstate(divide="ignore", invalid="ignore"):
        second, third = (np.nansum((values - mean) ** k, axis=0) / count for k in (2, 3))
        skewness = away * third / second**1.5
        known = (count > 2) & (second > (_ROUNDING * mean) ** 2)
        pooled = float(np.mean(skewness[known])) if known.any() else 0.0
        one_sign = (theory != 0) & ~np.any(away * values <= 0, axis=0)
        lognormal = np.where(one_sign, 3 * error * np.sqrt(count) / np.abs(mean), 0.0)
        opposite = np.where(away * t < 0, np.maximum(pooled, lognormal), -pooled)
        twice = 2 * np.maximum(opposite, 0.0) / (3 * np.sqrt(count))
        size = np.abs(t)
        return np.where(twice > 0, np.log1p(twice * size) / twice, size)


def _reach(seeds: ArrayLike) -> FloatArray:
    """As rare as three standard errors, for Student's t."""
    return np.asarray(stats.t.isf(_RARE, np.maximum(np.asarray(seeds, dtype=float) - 1, 1)))


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement(Record):
    """The verdict on one quantity, and what it rests on.

    Attributes
    ----------
    by_size : tuple of Estimate
        One per size d, increasing.
    extrapolated : Estimate or None
        With two sizes or more: the simulation plus g∞ of the trend gap(d) = g∞ + c/d^p, that is,
        the estimate with its finite-size gap removed; p is 1 or ½, whichever leaves less.
    slope_t : float, ndarray or None
        Student t of c, positive where the gap shrinks with d.
    limit : float
        Largest resolution that counts as resolved.
    p_value : float or ndarray
        Of the hypothesis that theory is right: at the largest size, and with several sizes also
        at d = ∞, whichever favours it more.
    uncertain : float or ndarray
        How far from theory the number may be at the largest size by terms of order 1/d that theory
        leaves out.
    verdict : str or ndarray of str
        ``"agree"``, ``"finite size"``, ``"unresolved"`` or ``"disagree"``; ``""`` where theory
        has no finite value.
    """

    by_size: tuple[Estimate, ...]
    extrapolated: Estimate | None
    slope_t: Leaf | None
    limit: float
    p_value: Leaf
    uncertain: Any = 0.0
    verdict: Any = ""

    @property
    def largest(self) -> Estimate:
        """The estimate at the largest size."""
        return self.by_size[-1]


def measure(
    samples: ArrayLike,
    theory: ArrayLike,
    sizes: Sequence[int],
    *,
    limit: float,
    scale: ArrayLike | None = None,
) -> Agreement:
    """A quantity that was simulated at several sizes with the same seeds, beside theory.

    ``samples`` have the shape (sizes, seeds, ...), ``theory`` and ``scale`` (sizes, ...), sizes
    increase. Trends are contrasts taken seed by seed, so draws shared between sizes do no harm
    and every t is Student's with seeds − 1 degrees of freedom. Where the scale is much smaller
    than elsewhere, the number is taken to be zero. `decide` adds the verdict.
    """
    samples, theory = np.asarray(samples, dtype=float), np.asarray(theory, dtype=float)
    scale = np.abs(theory) if scale is None else np.asarray(scale, dtype=float)
    largest = np.max(scale, where=np.isfinite(scale), initial=0.0)
    scale = np.where(scale > _ZERO * largest, scale, 0.0)
    by_size = tuple(estimate(*of_size) for of_size in zip(samples, theory, scale))
    last, extrapolated, slope_t = by_size[-1], None, None
    p_value = np.asarray(last.p_value)
    if len(sizes) > 1:
        gaps = samples - theory[:, None]
        trends = []
        for power in POWERS:
            at_infinity, slope = (np.tensordot(row, gaps, axes=1) for row in _trend(sizes, power))
            limit_gap = estimate(theory[-1] + at_infinity, theory[-1], scale[-1])
            trends.append((limit_gap, estimate(slope, np.zeros_like(theory[-1]))))
        extrapolated, trend = _closest(*trends)
        slope = np.asarray(trend.t) * np.sign(np.asarray(last.mean) - theory[-1])
        slope_t = as_leaf(slope, slope.shape, "slope_t")
        p_value = np.maximum(p_value, extrapolated.p_value)
    return Agreement(
        by_size=by_size,
        extrapolated=extrapolated,
        slope_t=slope_t,
        limit=limit,
        p_value=as_leaf(p_value, p_value.shape, "p_value"),
    )


def decide(agreements: Mapping[str, Agreement]) -> dict[str, Agreement]:
    """The same with their verdicts, which allow for the number of cells and quantities.

    All numbers together are a family of tests, and by Holm's method the chance that any of them
    is said to disagree though the theory is right is at most `LEVEL`, whatever the number of
    seeds and cells and however they depend on one another; p-values allow for skewness.
    A number that does not disagree *agrees* if it is resolved (or zero), else it is *unresolved*.
    With several sizes a number disagrees only if it does so at the largest size and at d = ∞; a gap
    that is seen at the largest size alone is an effect of the *finite size* if it shrinks and what
    the trend leaves is resolved. So is a gap that would disagree but is no larger than what is
    ``uncertain`` of the number, and what is known better than that is resolved.
    """
    disagree = _below_level([a.p_value for a in agreements.values()])
    seen = _below_level([a.largest.p_value for a in agreements.values()])
    found = {}
    for (name, agreement), wrong, gap in zip(agreements.items(), disagree, seen):
        last, beyond = agreement.largest, agreement.extrapolated
        known = _reach(last.seeds) * np.asarray(last.standard_error) <= agreement.uncertain
        resolved = ~(np.asarray(last.resolution) > agreement.limit) | known
        verdict = np.where(resolved, "agree", "unresolved")
        if beyond is not None:
            clear = ~(np.asarray(beyond.resolution) > agreement.limit)
            closes = clear & (np.asarray(agreement.slope_t) >= SHRINKS)
            verdict = np.where(gap, np.where(closes, "finite size", "unresolved"), verdict)
        small = np.abs(np.asarray(last.mean) - last.theory) <= agreement.uncertain
        verdict = np.where(wrong, np.where(small, "finite size", "disagree"), verdict)
        verdict = np.where(np.isnan(last.t), "", verdict)
        found[name] = replace(agreement, verdict=verdict if verdict.ndim else verdict.item())
    return found


def _below_level(p_values: Sequence[Leaf]) -> list[NDArray[np.bool_]]:
    """Where a hypothesis is rejected, of all together."""
    shapes = [np.shape(p) for p in p_values]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
    adjusted = holm(np.concatenate([np.ravel(p) for p in p_values] or [np.empty(0)]))
    parts = np.split(adjusted <= _NOMINAL, ends)
    return [part.reshape(shape) for part, shape in zip(parts, shapes)]


def holm(p_values: ArrayLike) -> FloatArray:
    """P-values adjusted for their number by Holm's method; NaN stays and does not count."""
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    there = np.flatnonzero(~np.isnan(p))
    order = there[np.argsort(p[there], kind="stable")]
    steps = p[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def seeds_to_resolve(agreement: Agreement) -> float:
    """How many seeds would bring what is unresolved to the limit; 0 if nothing is."""
    last, beyond = agreement.largest, agreement.extrapolated
    open_ = np.asarray(agreement.verdict) == "unresolved"
    wide = np.asarray(last.resolution)
    if beyond is not None:
        wide = np.where(wide > agreement.limit, wide, beyond.resolution)
    needed = np.where(open_, wide, np.nan) / agreement.limit
    if not np.isfinite(needed).any():
        return 0.0
    worst = np.nanargmax(np.where(np.isfinite(needed), needed, np.nan))
    seeds = float(np.ravel(last.seeds)[worst])
    per_error = float(np.ravel(needed)[worst]) * np.sqrt(seeds) / float(_reach(seeds))
    for _ in range(50):  # the quantile of Student's t depends on the number, weakly
        seeds = max(2.0, (per_error * float(_reach(seeds))) ** 2)
    return seeds


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


def _trend(sizes: Sequence[int], power: float) -> FloatArray:
    """Rows that give g∞ and c of gap(d) = g∞ + c (d₁/d)^power by least squares with weights d."""
    d = np.asarray(sizes, dtype=float)
    design = np.stack([np.ones_like(d), (d[0] / d) ** power], axis=1)
    weights = np.sqrt(d / d[-1])
    return np.linalg.pinv(design * weights[:, None]) * weights
