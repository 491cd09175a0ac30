"""The answer for one training set: theory, and trained probes where it is not precise (§8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.probe.classification import Classes, classification_error
from giantsteps.theory.probe.feature_pool import FeaturePool
from giantsteps.theory.probe.fluctuations import Fluctuations, Terms, fluctuations
from giantsteps.theory.probe.leverages import Leverages, RowErrors, row_errors
from giantsteps.theory.probe.subsets import probes_on_subsets
from giantsteps.theory.probe.transfer import Transfer
from giantsteps.types import FloatArray

#: Least rows that the terms of order 1/n are found from.
_ROWS = 600
#: Relative error of the theory above which probes are trained, and up to which there is an answer.
_PRECISE, _LARGEST = 0.01, 0.1


@dataclass(frozen=True)
class Point:
    """``theory`` is the relative error beside that of the pool, ``probes`` how many trained."""

    by_output: FloatArray
    train: float
    spread: float
    wrong: float
    theory: float = 0.0
    probes: int = 0
    refused: bool = False

    @classmethod
    def of(
        cls,
        pool: FeaturePool,
        sample: FeaturePool,
        cell: Transfer,
        own: FloatArray,
        place: int,
        classes: Classes | None,
    ) -> Point:
        """By the rows of the sample; a larger pool corrects what even leverages say of it."""
        if not np.isfinite(cell.price):
            return cls(np.full(pool.outputs, np.inf), 0.0, np.inf, np.nan)
        if cell.samples < sample.rows:
            at = Leverages.of(sample, cell.samples, cell.penalty)
            rows, finite, penalty = at.errors(), _finite_size(at), at.penalty
        else:
            rows, finite = row_errors(sample, cell.samples, cell.penalty), Fluctuations()
            penalty = cell.penalty
        by_output = rows.influence @ rows.residual**2 / sample.rows * (1.0 + finite.test.total)
        train = max(0.0, rows.train * (1.0 + finite.train.total))
        theory, wrong, known, probes = finite.test.spread, np.nan, None, 0
        if classes is not None:
            known = classes.of_sample(rows.predicted + rows.residual)
            wrong = _wrong_classes(rows, known, finite.test)
        if theory > _PRECISE:
            found = probes_on_subsets(sample, cell.samples, penalty, known)
            if found is not None:
                probes = found.probes
                weight = _weight(theory, found.spread)
                by_output = by_output + weight * (found.by_output - by_output)
                wrong += weight * (found.wrong - wrong)
                train += _weight(finite.train.spread, found.train_spread) * (found.train - train)
                theory = np.sqrt(weight) * found.spread
        if not theory <= _LARGEST:
            nothing = np.full(pool.outputs, np.nan)
            return cls(nothing, np.nan, np.nan, np.nan, np.nan, probes, refused=True)
        if sample is not pool:
            even = Transfer.to(sample, cell.samples, cell.penalty)
            loss = sample.leave_one_out(np.array([even.mu]))[0]
            ratio = own[place] * cell.price / (loss * even.price)
            by_output, train = by_output * ratio, train * float(ratio.mean())
        parts = rows.influence * (rows.residual**2).mean(axis=1)
        relative = float(np.std(parts) / np.mean(parts)) / np.sqrt(pool.rows)
        # The residuals of m rows have m − df₁ degrees of freedom.
        relative /= np.sqrt(1.0 - cell.first / pool.rows)
        spread = float(np.hypot(relative, theory) * by_output.mean())
        return cls(by_output, train, spread, wrong, theory, probes)


def _finite_size(at: Leverages) -> Fluctuations:
    """Terms of order 1/n, from enough of the rows; they vanish like 1 − n/m."""
    part = at.pool.thinned(max(_ROWS, int(6 * at.samples)))
    if part is at.pool:
        return fluctuations(at)
    found = fluctuations(Leverages.of(part, at.samples, at.penalty))
    return found.times((1.0 - at.samples / at.pool.rows) / (1.0 - at.samples / part.rows))


def _weight(theory: float, measured: float) -> float:
    """Of the trained probes, by the two standard errors."""
    if theory == 0.0 or not np.isfinite(theory):
        return float(theory != 0.0)
    return theory**2 / (theory**2 + measured**2)


def _wrong_classes(rows: RowErrors, known: Classes, terms: Terms) -> float:
    error, square = float(rows.error.mean()), float((rows.residual**2).mean())
    growth = error / square
    if error > square:  # what the fluctuations add is noise, too
        growth *= max(0.0, 1.0 + terms.total * error / (error - square))
    return classification_error(known, rows.predicted, rows.residual, growth * rows.noise)
