"""Inputs whose covariance has a few eigenvalues, or one direction apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import number, numbers, shares
from giantsteps.problem._inputs import Directions, Inputs
from giantsteps.problem._part import set_fields
from giantsteps.types import FloatArray

_ONE = 1e-12  # sums that are one up to rounding are left alone
_SPIKE = 0.1  # most of the inputs' variance that one direction may carry


@dataclass(frozen=True, repr=False)
class Covariance(Inputs):
    r"""Σ with a few eigenvalues λ_ι, each for a fraction ν_ι of the directions.

    Parameters
    ----------
    eigenvalues : sequence of float
        λ_ι > 0, distinct. Only their ratios matter: they are rescaled to Σ_ι ν_ι λ_ι = 1. Kept in
        increasing order, whatever the order given.
    weights : sequence of float
        ν_ι > 0, summing to one.
    teacher : sequence of float, optional
        ω_ι ≥ 0, shares of ‖β*‖² in the eigenspaces, summing to one. None: a teacher without a
        preference, ω = ν. The norm of β* follows from ⟨β*, Σβ*⟩ = 1.

    Attributes
    ----------
    law : str
        ``"covariance"``, its name in files.

    References
    ----------
    theory §0.

    Examples
    --------
    Half of the directions have a variance of 0.3, and the teacher lies in the other half:

    >>> law = Covariance(eigenvalues=(0.3, 1.7), weights=(0.5, 0.5), teacher=(0, 1))
    >>> law
    Covariance(eigenvalues=(0.3, 1.7), weights=(0.5, 0.5), teacher=(0.0, 1.0))
    """

    eigenvalues: tuple[float, ...]
    weights: tuple[float, ...]
    teacher: tuple[float, ...] | None = None
    law = "covariance"

    if TYPE_CHECKING:

        def __init__(
            self,
            eigenvalues: Sequence[float] | FloatArray,
            weights: Sequence[float] | FloatArray,
            teacher: Sequence[float] | FloatArray | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        values = numbers(self.eigenvalues, "eigenvalues", "a positive number", lower=0.0)
        if not values or 0 in values or len(set(values)) < len(values):
            raise InvalidProblem(
                "eigenvalues", self.eigenvalues, "one or more distinct positive numbers"
            )
        weights = _shares(self.weights, "weights", len(values))
        if 0 in weights:
            raise InvalidProblem("weights", self.weights, "positive: leave out what has no share")
        teacher = None if self.teacher is None else _shares(self.teacher, "teacher", len(values))
        if teacher is not None and np.allclose(teacher, weights, rtol=0, atol=_ONE):
            teacher = None
        order = np.argsort(values)
        weights = tuple(weights[i] for i in order)
        set_fields(
            self,
            eigenvalues=_unit_mean(tuple(values[i] for i in order), weights),
            weights=weights,
            teacher=None if teacher is None else tuple(teacher[i] for i in order),
        )

    @classmethod
    def from_data(
        cls,
        inputs: ArrayLike,
        teacher_direction: ArrayLike | None = None,
        *,
        tolerance: float = 0.001,
        most: int = 24,
    ) -> Covariance:
        r"""Estimate the law from rows of inputs: see :func:`covariance_of_data`.

        Parameters
        ----------
        inputs : array (rows, d)
            At least three rows; their mean is subtracted.
        teacher_direction : array (d,), optional
            β* in the coordinates of the inputs, up to its norm; gives ``teacher``.
        tolerance : float
            Share of the spread of the spectrum, Σ(λ − 1)²/d, that may be lost by replacing groups
            of eigenvalues with their means; as few groups as this allows. The first three
            directions stay alone where each has 1 % of the variance and four times the mean, and
            the spread is that of the others.
        most : int
            Maximal number of groups, whatever the loss.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> inputs = rng.standard_normal((4000, 40)) * np.sqrt(np.repeat([0.5, 1.5], 20))
        >>> law = Covariance.from_data(inputs, tolerance=0.1)
        >>> len(law.eigenvalues), [round(value, 1) for value in law.eigenvalues], law.weights
        (2, [0.5, 1.5], (0.5, 0.5))
        """
        from giantsteps.problem._spectrum_of_data import covariance_of_data

        return cls(*covariance_of_data(inputs, teacher_direction, tolerance, most))

    @property
    def teacher_shares(self) -> tuple[float, ...]:
        """τ_ι, shares of ‖Σ^{1/2}β*‖² over the eigenspaces."""
        given = self.weights if self.teacher is None else self.teacher
        along = [share * value for share, value in zip(given, self.eigenvalues)]
        return tuple(part / math.fsum(along) for part in along)

    def at(self, d: int) -> Covariance:
        sizes = self._sizes(d)
        weights = tuple(size / d for size in sizes)
        return Covariance(self.eigenvalues, weights, self.teacher)

    def _sizes(self, d: int) -> list[int]:
        """The number of coordinates of each eigenspace: νd, rounded so that they sum to d."""
        wanted = np.array(self.weights) * d
        sizes = np.floor(wanted + 1e-9).astype(int)
        for index in np.argsort(sizes - wanted, kind="stable")[: d - int(sizes.sum())]:
            sizes[index] += 1
        if np.any(sizes < 1):
            raise InvalidProblem(
                "inputs.weights",
                self.weights,
                f"larger at d = {d}, where an eigenspace would have no direction",
            )
        return [int(size) for size in sizes]

    def variances(self, d: int) -> FloatArray:
        return np.repeat(self.at(d).eigenvalues, self._sizes(d))

    def teacher_variances(self, d: int, direction: int = 0) -> tuple[FloatArray, tuple[int, ...]]:
        sizes = self._sizes(d)
        shares = np.array(self.at(d).teacher_shares) / sizes
        return np.repeat(shares, sizes), tuple(sizes)

    def directions(self, count: int = 64, d: int | None = None) -> Directions:
        law = self if d is None else self.at(d)
        return np.array(law.eigenvalues), np.array(law.weights), np.array(law.teacher_shares)

    @property
    def isotropic(self) -> bool:
        return len(self.eigenvalues) == 1


@dataclass(frozen=True, repr=False)
class SpikedCovariance(Inputs):
    r"""Σ = I + strength·vvᵀ: one direction v with another variance.

    Σ is not rescaled: its trace is d + strength, in networks and in the theory, so that
    pre-activations have the variance 1 + strength/d at the start. (`Covariance` with the shares
    1 − 1/d and 1/d has the same ratio of eigenvalues and the trace d.)

    Parameters
    ----------
    strength : float
        Above −1. It is a number that does not grow with d: at dimension d it may be at most d/10,
        since the spike would otherwise change the variance of pre-activations.
    alignment : float
        cos² of the angle between v and β*, in [0, 1]; for a teacher with several directions, of
        the first of them, the others being orthogonal to v.

    Attributes
    ----------
    law : str
        ``"spiked"``, its name in files.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> law = SpikedCovariance(strength=4, alignment=0.5)
    >>> law.variances(50)[:3].tolist()
    [5.0, 1.0, 1.0]
    >>> law.directions()[2].round(4).tolist()  # of what the teacher sees of the inputs
    [0.1667, 0.8333]
    """

    strength: float
    alignment: float
    law = "spiked"

    def __post_init__(self) -> None:
        set_fields(
            self,
            strength=number(
                self.strength, "strength", "a finite number > -1", lower=-1.0, open_below=True
            ),
            alignment=number(
                self.alignment, "alignment", "a number in [0, 1] (cos^2)", lower=0.0, upper=1.0
            ),
        )

    @property
    def spike_share(self) -> float:
        """τ of the spike: its share of ‖Σ^{1/2}β*‖²."""
        along = self.alignment * (1 + self.strength)
        return along / (along + (1 - self.alignment))  # so that it is at most one

    def at(self, d: int) -> SpikedCovariance:
        if self.strength > _SPIKE * d:
            raise InvalidProblem(
                "inputs.strength",
                self.strength,
                f"at most {_SPIKE * d:g} at d = {d}: a spike of order d changes the variance of "
                "pre-activations (use a larger d, or a weaker spike)",
            )
        if d < 2:
            raise InvalidProblem("d", d, "at least 2 with a spiked covariance")
        return self

    def variances(self, d: int) -> FloatArray:
        self.at(d)
        values = np.ones(d)
        values[0] += self.strength
        return values

    def teacher_variances(self, d: int, direction: int = 0) -> tuple[FloatArray, tuple[int, ...]]:
        share = self.spike_share if direction == 0 else 0.0
        return np.array([share] + [(1 - share) / (d - 1)] * (d - 1)), (1, d - 1)

    def directions(self, count: int = 64, d: int | None = None) -> Directions:
        share = 0.0 if d is None else 1 / d
        along = self.spike_share
        return (
            np.array([1.0, 1.0 + self.strength]),
            np.array([1 - share, share]),
            np.array([1 - along, along]),
        )

    @property
    def isotropic(self) -> bool:
        return self.strength == 0


def _shares(given: object, field: str, count: int) -> tuple[float, ...]:
    found = shares(given, field, count, "eigenvalue")
    total = math.fsum(found)
    return found if abs(total - 1) <= _ONE else tuple(share / total for share in found)


def _unit_mean(values: tuple[float, ...], weights: tuple[float, ...]) -> tuple[float, ...]:
    mean = math.fsum(weight * value for weight, value in zip(weights, values))
    return values if abs(mean - 1) <= _ONE else tuple(value / mean for value in values)
