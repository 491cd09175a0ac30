"""Eigenvalues of the inputs' covariance, and what steps along them share (theory §10).

In the frame of z = Σ^{-1/2}x and w' = Σ^{1/2}w the network is that of isotropic inputs, with
weights whose covariance has the eigenvalues λ_ι of Σ.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from giantsteps.problem import Problem
from giantsteps.theory.steps.first import EIGENVALUES
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Spectrum:
    """λ_ι, ν_ι and τ_ι, and the power p of the preconditioner."""

    values: FloatArray
    shares: FloatArray
    teacher: FloatArray
    power: float
    #: Eigenspaces whose coordinates of the initial weights are types of neurons.
    explicit: FloatArray | None = None

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

    def mean(self, exponent: float) -> float:
        """d⁻¹tr Σ^exponent."""
        return float(self.shares @ self.values**exponent)


def spectrum_of(problem: Problem, d: int | None) -> Spectrum:
    """The eigenvalues of Σ, and the preconditioner that all steps share."""
    power = problem.steps[0].precondition if problem.steps else 0.0
    return Spectrum(*problem.inputs.directions(EIGENVALUES, d), power)
