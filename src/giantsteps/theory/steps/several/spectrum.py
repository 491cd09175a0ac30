"""Eigenvalues of the inputs' covariance, and what steps along them share (theory §10).

In the frame of z = Σ^{-1/2}x and w' = Σ^{1/2}w the network is that of isotropic inputs, with
weights whose covariance has the eigenvalues λ_ι of Σ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from giantsteps.problem import Problem
from giantsteps.theory.steps.first import EIGENVALUES
from giantsteps.types import FloatArray

#: Eigenvalues beyond this are lost to rounding beside one; those of a limit are nodes of next to no
#: weight.
_LARGEST = 1e15


@dataclass(frozen=True, eq=False)
class Spectrum:
    """λ_ι, ν_ι and τ_ι, and the power p of the preconditioner."""

    values: FloatArray
    shares: FloatArray
    teacher: FloatArray
    power: float
    #: Eigenspaces whose coordinates of the initial weights are types of neurons.
    explicit: FloatArray | None = None
    #: 1/d, zero in the limit.
    inverse: float = 0.0

    @property
    def flat(self) -> bool:
        """Whether Σ = I."""
        return len(self.values) == 1

    @property
    def places(self) -> NDArray[np.intp]:
        """Of the explicit directions, from the largest eigenvalue on."""
        found = np.zeros(0, dtype=int) if self.explicit is None else np.flatnonzero(self.explicit)
        return found[np.argsort(-self.values[found])]

    @property
    def generic(self) -> FloatArray:
        """ν_ι without the explicit directions."""
        return self.shares if self.explicit is None else np.where(self.explicit, 0.0, self.shares)

    @property
    def start(self) -> FloatArray:
        """Variances of the initial weights in the new frame, apart from explicit directions."""
        if self.explicit is None:
            return self.values
        return np.where(self.explicit, 0.0, self.values)

    @cached_property
    def heavy(self) -> FloatArray:
        """Which share of d⁻¹tr Σ² the largest single direction has, (I,); explicit ones aside."""
        parts = self.shares * self.start**2
        single = (self.shares > 0) & (self.shares < 1.5 * self.inverse)
        largest = np.arange(len(parts)) == np.argmax(np.where(single, parts, -1.0))
        return np.asarray(np.where(single & largest, parts / parts.sum(), 0.0))

    def mean(self, exponent: float) -> float:
        """d⁻¹tr Σ^exponent."""
        return float(self.shares @ self.values**exponent)


def spectrum_of(problem: Problem, d: int | None) -> Spectrum:
    """The eigenvalues of Σ, and the preconditioner that all steps share."""
    power = problem.steps[0].precondition if problem.steps else 0.0
    inverse = 0.0 if d is None else 1.0 / d
    if problem.inputs.isotropic:  # as every law may be
        return Spectrum(np.ones(1), np.ones(1), np.ones(1), power, inverse=inverse)
    values, shares, teacher = problem.inputs.directions(EIGENVALUES, d)
    if d is None and values.max() > _LARGEST:
        order = np.argsort(values)
        last = int(np.searchsorted(values[order], _LARGEST))
        values, shares, teacher = (
            values[order][:last],
            *(
                np.append(part[order][: last - 1], part[order][last - 1 :].sum())
                for part in (shares, teacher)
            ),
        )
    return Spectrum(values, shares, teacher, power, inverse=inverse)
