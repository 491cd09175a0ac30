r"""Which powers of the spike coordinate can grow a spike of their own (theory §6).

Averaged over the bulk, a neuron with second-layer value A answers to the spike coordinate z with

.. math:: μ_0(z) = \sum_k c_k\, (η̃ μ_1 \|b\| A)^k\, p_k(z),

so the features hold the sum of the rank-one matrices :math:`p_k(\tilde X b)\,(A^{∘k})^⊤`, each
smaller than the one before by a factor η̃ → 0. Term k adds a singular value of its own if
c_k ≠ 0 and if A^{∘k} is no combination of the powers before it that do; else it only corrects a
larger term by a vanishing amount. The constant k = 0, present if c₀ ≠ 0, comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from scipy.special import gammaln

from giantsteps.errors import NotCovered
from giantsteps.functions import Function
from giantsteps.gaussian import hermite_coefficients, moments
from giantsteps.problem import Problem
from giantsteps.theory.steps.first import first_step

#: Highest degree that is told apart; beyond it the exponent is within 0.005 of 1/2.
MAX_LEVEL = 100
#: A coefficient √k! c_k smaller than this, relative to the norm of the function, is zero.
ZERO = 1e-10

NO_STEP = "the step does not move the weights along one direction (μ₁ = 0, rate 0 or A = 0)"
NO_COEFFICIENT = "the activation has no Hermite component of this degree"
NO_VALUE = "the second layer takes too few values: its power is a combination of lower ones"


def nonzero(function: Function, degree: int) -> list[bool]:
    """Whether c_k ≠ 0, k = 0 … degree."""
    size = np.abs(hermite_coefficients(function, degree)) * np.exp(
        gammaln(np.arange(1, degree + 2)) / 2
    )
    return [bool(entry) for entry in size > ZERO * moments(function).norm]


def spike_degrees(problem: Problem, level: int) -> dict[int, str | None]:
    """The degrees 0 … level of the powers of the spike coordinate, each with what it lacks.

    * ``problem``: with one step and a rank-one teacher.
    * ``level``: ℓ, the number of powers that are large enough to diverge.

    Returns
    -------
    dict
        Degree → None for a spike of its own, else the reason why there is none.

    Raises
    ------
    NotCovered
        If ℓ > 100; or if the gradient changes the neurons' lengths to first order (c₀c₂E A ≠ 0)
        while the activation skips a degree, so that powers mix.
    """
    if level > MAX_LEVEL:
        raise NotCovered(
            f"the staircase with {level} powers",
            "the exponent is too close to 1/2 to tell its powers apart",
            "exponents below 0.495, the exponent 1/2, or any exponent with d given",
        )
    present = nonzero(problem.activation, max(level, 1))
    law = problem.init.second_layer
    moved = present[1] and first_step(problem).strength > 0
    values = list(law.types()[0]) if np.isfinite(law.distinct_nonzero) else None
    span = _Span(values)
    found: dict[int, str | None] = {}
    for degree in range(level + 1):
        if degree and not moved:
            found[degree] = NO_STEP
        elif not present[degree]:
            found[degree] = NO_COEFFICIENT
        else:
            found[degree] = None if span.add(degree) else NO_VALUE
    skipped = any(not there for there in present[3:level])
    if moved and skipped and span.dimension > 3 and _lengthens_at_once(problem):
        raise NotCovered(
            f"the staircase with {level} powers of {problem.activation!r}",
            "it skips a degree while c₀, c₂ and the mean of the second layer are not zero, so "
            "that powers of the spike coordinate mix",
            "a centred activation, a second layer of mean zero, or give d",
        )
    return found


def _lengthens_at_once(problem: Problem) -> bool:
    """Whether ‖w_j‖² changes by a term linear in η̃, −4c₀c₂E A · η̃A_j (theory §5b)."""
    constant, _, quadratic = nonzero(problem.activation, 2)
    return constant and quadratic and abs(problem.init.second_layer.mean) > 1e-12


class _Span:
    """Powers of A as vectors over its values, independent ones kept; exact in rationals.

    Without values (a continuous law) all powers are independent.
    """

    def __init__(self, values: Sequence[float] | None) -> None:
        self._values = None if values is None else [Fraction(float(value)) for value in values]
        self._rows: list[tuple[int, list[Fraction]]] = []

    @property
    def dimension(self) -> float:
        """Of the space the powers live in."""
        return np.inf if self._values is None else len(self._values)

    def add(self, power: int) -> bool:
        """Add A^power; False if it is a combination of those added before."""
        if self._values is None:
            return True
        row = [value**power for value in self._values]
        for pivot, other in self._rows:
            factor = row[pivot] / other[pivot]
            row = [a - factor * b for a, b in zip(row, other)]
        left = [index for index, entry in enumerate(row) if entry]
        if left:
            self._rows.append((left[0], row))
        return bool(left)
