"""What a certificate covers: families of settings, each with one equation and one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.comparison.certify._asked import ASKED, Asked
from giantsteps.functions import centered

__all__ = ["FAMILIES", "Family"]

_ODD = ("tanh", "erf", "sin", "x/sqrt(1 + x**2)")
_SKEW = (centered("relu"), centered("softplus"), centered("tanh(x) + 0.5*tanh(x)**2"))
#: Those whose features stay linear along a spike at the sizes that are simulated.
_MILD = ("tanh(x/2)", "erf(x/2)", "sin(x/2)", *_SKEW[:2])
#: With s the size of the labels.
_TEACHERS = ("{s}*sin(x)", "{s}*tanh(x)", "{s}*erf(x)", "{s}*sign(x)", "{s}*x",
             "{s}*relu(x)", "{s}*(x + he2(x)/4)")  # fmt: skip
_MANY = ("{s}*(tanh(x0) + tanh(x1)/2)", "{s}*(sin(x0) + x0*x1/4)", "{s}*tanh(x0 + x1)")

Exponents = Callable[[np.random.Generator], Sequence[float]]


@dataclass(frozen=True)
class Family:
    """Settings that one equation answers with one number.

    Attributes
    ----------
    question : str
        Of what a certificate asks.
    quantity : str
        The number in the answer.
    exponents : callable
        Draws the exponents of the steps.
    activations, teachers : tuple
        Of which one is drawn.
    rates : tuple of float
        Range of the learning rates, for labels of size one.
    labels : tuple of int
        Sizes of the labels. Large ones, with rates as much smaller, leave the equations as they
        are and weaken the pull of the initial network, an effect of the size (theory §2).
    effort : int
        How many times as many networks as the calmest family it gets.
    approximate : bool
        Whether the theory may be an approximation by its own account; else problems where it is
        are drawn again.
    slow : str
        Why the gap closes more slowly than the fit allows, if it does: the family is then among
        those where the theory does not hold at these sizes.

    Examples
    --------
    >>> from giantsteps.comparison.certify import FAMILIES, Family
    >>> family = FAMILIES["weights' spike, small step"]
    >>> isinstance(family, Family), family.question, family.quantity
    (True, 'weights', 'spikes.0.value')
    """

    question: str
    quantity: str
    exponents: Exponents
    activations: tuple[Any, ...] = _ODD
    teachers: tuple[str, ...] = _TEACHERS
    rates: tuple[float, float] = (1.0, 6.0)
    labels: tuple[int, ...] = (8, 16, 32)
    effort: int = 1
    approximate: bool = False
    slow: str = ""

    @property
    def asked(self) -> Asked:
        """How theory and simulation are asked."""
        return ASKED[self.question]

    @property
    def spike(self) -> bool:
        """Whether the number belongs to a spike."""
        return self.quantity.startswith("spikes.")


def _none(rng: np.random.Generator) -> list[float]:
    return []


def _small(rng: np.random.Generator) -> list[float]:
    return [0.0]


def _between(rng: np.random.Generator) -> list[float]:
    return [float(rng.uniform(0.1, 0.45))]


def _first_stair(rng: np.random.Generator) -> list[float]:
    return [float(rng.uniform(0.1, 0.2))]


def _large(rng: np.random.Generator) -> list[float]:
    return [0.5]


def _above(rng: np.random.Generator) -> list[float]:
    return [0.5 if rng.random() < 0.5 else float(rng.uniform(0.25, 0.45))]


def _any_small(rng: np.random.Generator) -> list[float]:
    return [0.0] * int(rng.integers(2))


def _several(rng: np.random.Generator) -> list[float]:
    return [0.0] * int(rng.integers(2, 4))


def _two(rng: np.random.Generator) -> list[float]:
    return [float(e) for e in rng.uniform(0.1, 0.4, size=2)]


_BOTH = (*_ODD, *_SKEW)
_VALUE, _TEACHER, _LAYER = (
    "spikes.0.value",
    "spikes.0.overlaps.teacher",
    "spikes.0.overlaps.second_layer",
)
_LABELS, _MONOMIAL = "spikes.0.overlaps.labels", "spikes.0.overlaps.monomial"
_MOVES: dict[str, Any] = {"rates": (0.5, 2.0)}
_GROWS: dict[str, Any] = {"rates": (2.0, 10.0)}

#: Why the operator norm of the gradient's residual is not among the others.
_SOFT = (
    "labels and second layer are bounded (else the bulk of the residual has no sharp edge, theory "
    "§2)"
)
#: Nor labels of size one.
_PULL = (
    "labels are large beside the output of the initial network (else its pull, theory §2, moves "
    "the weights as d^-1/2)"
)

#: What a certificate covers, by name.
FAMILIES: dict[str, Family] = {
    "test error, no step": Family("risk", "test", _none, _BOTH, effort=3),
    "train error, no step": Family("risk", "train", _none, _BOTH, effort=4),
    "training loss": Family("training loss", "loss", _any_small, _BOTH, effort=3),
    "test error, small step, limit": Family("risk in the limit", "test", _small, _BOTH, effort=3),
    "test error, small step": Family("risk", "test", _small, effort=3),
    "train error, small step": Family("risk", "train", _small, effort=5),
    "gain, small step": Family("risk", "gain", _small, **_GROWS, effort=10),
    "test error, several small steps": Family("risk", "test", _several, rates=(0.5, 2.0), effort=3),
    "test error, several directions": Family(
        "risk in the limit", "test", _small, teachers=_MANY, effort=5
    ),
    "test error, between": Family("risk", "test", _between, **_MOVES, effort=5),
    "test error, large step": Family("risk", "test", _large, **_MOVES, effort=5),
    "train error, large step": Family("risk", "train", _large, **_MOVES, effort=4),
    "test error, given weights": Family("given weights", "test", _any_small, _BOTH),
    "degrees of freedom": Family("degrees of freedom", "df2", _none, _BOTH),
    "degrees of freedom, large step": Family("degrees of freedom", "df1", _large, **_MOVES),
    "learned function, small step": Family("learned function", "mean", _small, effort=3),
    "learned function, large step": Family("learned function", "mean", _large, **_MOVES, effort=3),
    "gradient's spike": Family("gradient", "spike_norm", _small, _ODD, effort=2),
    "gradient's residual": Family("gradient", "residual_frobenius_norm", _small, _ODD, effort=2),
    "gradient's residual, operator norm": Family(
        "gradient", "residual_operator_norm", _small, effort=2, slow=_SOFT
    ),
    "weights' spike, small step": Family("weights", _VALUE, _small, _BOTH, **_GROWS, effort=4),
    "weights and teacher, small step": Family(
        "weights", _TEACHER, _small, _BOTH, **_GROWS, effort=5
    ),
    "weights and second layer, small step": Family("weights", _LAYER, _small, _BOTH, **_GROWS),
    "weights' spike, several small steps": Family(
        "weights", _VALUE, _several, _BOTH, rates=(1.0, 4.0), effort=2
    ),
    "weights' spike, several directions": Family(
        "weights", _VALUE, _small, _BOTH, teachers=_MANY, **_GROWS, effort=2
    ),
    "weights' spike, large step": Family("weights", _VALUE, _above, **_MOVES, effort=2),
    "weights and teacher, large step": Family("weights", _TEACHER, _above, **_MOVES, effort=2),
    "kernel's spike, small step": Family(
        "kernel", _VALUE, _small, _MILD, rates=(2.0, 8.0), effort=7
    ),
    "kernel and labels, small step": Family(
        "kernel", _LABELS, _small, _BOTH, rates=(1.5, 4.0), effort=6
    ),
    "kernel's spike, large step": Family("kernel", _VALUE, _above, **_MOVES, effort=5),
    "kernel and labels, large step": Family("kernel", _LABELS, _above, **_MOVES, effort=6),
    "features' spike, large step": Family("features", _VALUE, _above, **_MOVES, effort=2),
    "features and monomial, large step": Family("features", _MONOMIAL, _above, **_MOVES),
    "test error, small step, σ not odd": Family(
        "risk", "test", _small, _SKEW, effort=2, approximate=True
    ),
    "test error, between, σ not odd": Family(
        "risk", "test", _between, _SKEW, **_MOVES, effort=2, approximate=True
    ),
    "test error, large step, σ not odd": Family(
        "risk", "test", _large, _SKEW, **_MOVES, effort=2, approximate=True
    ),
    "weights' spike, large step, σ not odd": Family(
        "weights", _VALUE, _above, _SKEW, **_MOVES, effort=2, approximate=True
    ),
    "kernel's spike, large step, σ not odd": Family(
        "kernel", _VALUE, _above, _SKEW, **_MOVES, effort=4, approximate=True
    ),
    "test error, two steps": Family("risk", "test", _two, **_MOVES, effort=2, approximate=True),
    "weights' spike, two steps": Family(
        "weights", _VALUE, _two, **_MOVES, effort=2, approximate=True
    ),
    "weights' spike, small step, labels of size one": Family(
        "weights", _VALUE, _small, _BOTH, labels=(1,), effort=2, slow=_PULL, **_GROWS
    ),
    "test error, small step, labels of size one": Family(
        "risk", "test", _small, labels=(1,), effort=2, slow=_PULL
    ),
    "test error, limit of the staircase": Family(
        "risk in the limit",
        "test",
        _first_stair,
        rates=(2.0, 6.0),
        effort=2,
        slow="N^e is large (else the limit of theory §6 is far)",
    ),
}
