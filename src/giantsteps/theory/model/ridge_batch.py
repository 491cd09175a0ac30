"""Errors of many readouts at once: what every equation for the risk returns (§4, §5c, §6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from giantsteps.answers import Risk, Solution
from giantsteps.types import FloatArray

#: Degrees 0, 1, … reported by ``Risk.by_degree``.
DEGREES = 5


@dataclass(frozen=True, eq=False)
class RidgeBatch:
    """Errors of many readouts, one entry each, and how far they may be off (relative).

    ``by_degree`` has the degree on its last axis; ``classification_error`` is NaN unless the
    teacher takes the values ±1.
    """

    test: FloatArray
    train: FloatArray
    by_degree: FloatArray
    residual: FloatArray
    iterations: FloatArray
    error: FloatArray
    classification_error: FloatArray

    def take(self, cells: FloatArray) -> RidgeBatch:
        """Some of the entries, in this order."""
        return RidgeBatch(*(getattr(self, one.name)[cells] for one in fields(self)))


def _degrees(batch: RidgeBatch) -> FloatArray:
    """The parts by degree; what is below the rounding of the whole is zero."""
    parts = batch.by_degree
    return np.where(np.abs(parts) <= 1e-14 * np.abs(batch.test)[:, None], 0.0, parts)


def risks_of(
    batch: RidgeBatch, claims: Sequence[Any], initial: Sequence[Risk] | None = None
) -> list[Risk]:
    """The errors as answers, each with its claim, beside those of the untrained features."""
    degrees = _degrees(batch)
    return [
        Risk(
            **claim,
            solution=Solution(
                status="converged",
                residual=float(batch.residual[i]),
                iterations=float(batch.iterations[i]),
                error=float(batch.error[i]),
            ),
            test=batch.test[i],
            train=batch.train[i],
            by_degree=degrees[i] if _one_direction(claim["problem"]) else None,
            classification_error=_number(batch.classification_error[i]),
            initial=None if initial is None else initial[i],
        )
        for i, claim in enumerate(claims)
    ]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _one_direction(problem: Any) -> bool:
    """Of a problem, or of a model that stands for one."""
    return int(problem.teacher.rank) == 1
