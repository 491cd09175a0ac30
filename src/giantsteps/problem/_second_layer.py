r"""Laws of the second layer: a_j = A_j / √N with A_j independent of one law.

A law samples A for the simulation and lists its *types* (values and probabilities) for the theory,
so that neither has to ask which law it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from array_api_compat import array_namespace

from giantsteps.errors import InvalidProblem
from giantsteps.gaussian import split_rule
from giantsteps.problem._checks import number, numbers, shares
from giantsteps.problem._part import Law, as_law


class SecondLayer(Law, ABC):
    """The law of A, where the second layer starts as a_j = A_j / √N (theory §0).

    Attributes
    ----------
    law : str
        The name of the law in files and in ``Init(second_layer=...)``.
    """

    @abstractmethod
    def of_normal(self, z: Any) -> Any:
        """Return A for each entry of an array of N(0, 1), elementwise: how the law is drawn."""

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        """Draw A_1 … A_size, shape (size,), float64; the first m draws do not depend on size."""
        return np.asarray(self.of_normal(rng.standard_normal(size)))

    @abstractmethod
    def types(self, nodes: int = 20) -> tuple[np.ndarray, np.ndarray]:
        """Return (values, probabilities), each of shape (T,), with E g(A) = Σ_t π_t g(A_t).

        Exact for a finite law. For a continuous law the types are quadrature nodes, ``nodes`` of
        them on either side of zero.
        """

    @cached_property
    def mean(self) -> float:
        """E A."""
        values, probabilities = self.types()
        return float(probabilities @ values)

    @cached_property
    def second_moment(self) -> float:
        """E A²."""
        values, probabilities = self.types()
        return float(probabilities @ values**2)

    @cached_property
    def symmetric(self) -> bool:
        """Whether A and −A have the same law."""
        values, mass = self.types()
        mirrored = bool(np.array_equal(values, -values[::-1]))
        return mirrored and bool(np.allclose(mass, mass[::-1], rtol=0, atol=1e-12))

    @cached_property
    def distinct_nonzero(self) -> float:
        """How many non-zero values A takes (``inf`` for a continuous law): it bounds the number
        of spikes (theory §6)."""
        return float(np.count_nonzero(self.types()[0]))


@dataclass(frozen=True, kw_only=True, repr=False)
class Gaussian(SecondLayer):
    """A ~ N(0, 1): the second layer of ba2022, moniri2023 and moniri2026.

    Attributes
    ----------
    law : str
        ``"gaussian"``, its name in files.

    References
    ----------
    theory §0; ba2022, moniri2023, moniri2026.

    Examples
    --------
    >>> law = Gaussian()
    >>> law.mean, law.second_moment, law.symmetric, law.distinct_nonzero
    (0.0, 1.0, True, inf)
    >>> values, probabilities = law.types()  # theory's quadrature of A
    >>> values.shape, round(float(probabilities @ values**4), 3)
    ((40,), 3.0)
    """

    law: ClassVar[str] = "gaussian"
    mean, second_moment, symmetric, distinct_nonzero = 0.0, 1.0, True, math.inf  # exactly

    def of_normal(self, z: Any) -> Any:
        return z

    def types(self, nodes: int = 20) -> tuple[np.ndarray, np.ndarray]:
        """Gauss–Legendre nodes on [−6, 0] and [0, 6], weighted by the density and normalised.

        Split at zero because what a neuron learns may have a kink there; 14 Gauss–Hermite nodes
        are 0.4 % off at η̃ = 3 (theory §5b).
        """
        rule = split_rule(nodes, reach=6.0)
        return rule.nodes.copy(), rule.weights.copy()


@dataclass(frozen=True, repr=False)
class Constant(SecondLayer):
    """A = value for every neuron: the second layer of cui2024, with value 1.

    Parameters
    ----------
    value : float
        Any finite number. At zero the steps do not move the first layer.

    Attributes
    ----------
    law : str
        ``"constant"``, its name in files.

    References
    ----------
    theory §0; cui2024.

    Examples
    --------
    >>> law = Constant(0.5)
    >>> law.mean, law.second_moment, law.symmetric, law.distinct_nonzero
    (0.5, 0.25, False, 1.0)
    """

    value: float = 1.0
    law: ClassVar[str] = "constant"

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", number(self.value, "value", "a finite number"))

    def of_normal(self, z: Any) -> Any:
        return array_namespace(z).full_like(z, self.value)

    def sample(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return np.full(size, self.value)

    def types(self, nodes: int = 20) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self.value]), np.array([1.0])

    def to_data(self) -> str | dict[str, Any]:
        return self.law if self.value == 1 else super().to_data()


@dataclass(frozen=True, repr=False)
class Vocabulary(SecondLayer):
    """A takes finitely many values: P(A = values[i]) = probabilities[i] (dandi2024).

    Parameters
    ----------
    values : sequence of float
        Finite and distinct. Kept in increasing order: the order given does not matter.
    probabilities : sequence of float
        One per value, not negative, summing to one within 1e-9.

    Attributes
    ----------
    law : str
        ``"vocabulary"``, its name in files.

    References
    ----------
    theory §0; dandi2024.

    Examples
    --------
    >>> law = Vocabulary([1.0, -1.0, 0.0], [0.25, 0.25, 0.5])
    >>> law.values, law.second_moment, law.symmetric, law.distinct_nonzero
    ((-1.0, 0.0, 1.0), 0.5, True, 2.0)
    """

    values: tuple[float, ...]
    probabilities: tuple[float, ...]
    law: ClassVar[str] = "vocabulary"

    if TYPE_CHECKING:

        def __init__(
            self,
            values: Sequence[float] | np.ndarray,
            probabilities: Sequence[float] | np.ndarray,
        ) -> None: ...

    def __post_init__(self) -> None:
        values = numbers(self.values, "values", "a finite number")
        if not values or len(set(values)) < len(values):
            raise InvalidProblem("values", self.values, "one or more distinct numbers")
        probabilities = shares(self.probabilities, "probabilities", len(values), "value")
        pairs = sorted(zip(values, probabilities, strict=True))
        object.__setattr__(self, "values", tuple(value for value, _ in pairs))
        object.__setattr__(self, "probabilities", tuple(mass for _, mass in pairs))

    def of_normal(self, z: Any) -> Any:
        xp = array_namespace(z)
        values, probabilities = self.types()
        found = xp.full_like(z, float(values[0]))
        for value, below in zip(values[1:], np.cumsum(probabilities)):
            edge = NormalDist().inv_cdf(min(float(below), 1 - 2.0**-53))
            found = xp.where(z > edge, xp.full_like(z, float(value)), found)
        return found

    def types(self, nodes: int = 20) -> tuple[np.ndarray, np.ndarray]:
        values, mass = np.array(self.values), np.array(self.probabilities)
        return values[mass > 0], mass[mass > 0] / mass.sum()


_LAWS: dict[str, type[SecondLayer]] = {law.law: law for law in (Gaussian, Constant, Vocabulary)}


def as_second_layer(spec: object) -> SecondLayer:
    """Return the law that ``spec`` names: a law, its name, or ``{"law": name, ...parameters}``.

    * ``spec``: A law, its name, or a table with its name and parameters as it stands in a file.
    * ``field``: the field that the error names.

    Raises
    ------
    InvalidProblem
        When the specification means no law.
    """
    return as_law(spec, SecondLayer, _LAWS, "second_layer", "a law of the second layer")
