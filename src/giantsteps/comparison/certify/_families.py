"""What a certificate covers: families of settings, each with one equation and one number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from giantsteps.comparison.certify._asked import ASKED, Asked
from giantsteps.functions import centered
from giantsteps.problem import Covariance, PowerLaw

#: The d at which spreads of the families are stated.
SPREAD_AT = 1000

_ODD = ("tanh", "erf", "sin", "x/sqrt(1 + x**2)")
_ALL = (*_ODD, *(centered(name) for name in ("relu", "softplus", "gelu")))
#: Those whose features stay linear along a spike at the sizes that are simulated.
_MILD = ("tanh(x/2)", "erf(x/2)", "sin(x/2)", centered("relu"), centered("softplus"))
_TEACHERS = ("sin(x)", "tanh(x)", "erf(x)", "sign(x)", "x", "relu(x)", "x + he2(x)/4")
_MANY = ("tanh(x0) + tanh(x1)/2", "sin(x0) + x0*x1/4", "tanh(x0 + x1)")

#: Exponents of the steps, or a function that draws them …
Exponents = Sequence[float] | Callable[[np.random.Generator], Sequence[float]]
#: … and fields of every step, of the initialisation and of the problem, by name.
Vary = Mapping[str, Any] | Callable[[np.random.Generator], Mapping[str, Any]]
_NONE, _SMALL, _LARGE = (), (0.0,), (0.5,)


@dataclass(frozen=True)
class Family:
    """Settings that one equation answers with one number."""

    question: str  # of what a certificate asks
    quantity: str  # the number in the answer
    exponents: Exponents
    #: Of which one is drawn.
    activations: tuple[Any, ...] = _ALL
    teachers: tuple[str, ...] = _TEACHERS
    rates: tuple[float, float] = (1.0, 6.0)  # range of the learning rates
    #: What else the settings of the family have: ``rule``, ``loss``, ``decay`` and ``batch`` of the
    #: steps, ``output`` of the network, ``inputs``, ``noise``.
    vary: Vary = field(default_factory=dict)
    #: Typical relative standard deviation of the number over networks with d = `SPREAD_AT`; it
    #: falls as d^{-1/2}, and says how many networks a setting gets.
    spread: float = 0.035
    #: Why the gap closes more slowly than the fit allows, if it does: the family is then listed
    #: with those where the theory does not hold at these sizes.
    slow: str = ""

    @property
    def asked(self) -> Asked:
        return ASKED[self.question]

    @property
    def spike(self) -> bool:
        """Whether the number belongs to a spike."""
        return self.quantity.startswith("spikes.")


def _above(rng: np.random.Generator) -> list[float]:
    return [0.5 if rng.random() < 0.5 else float(rng.uniform(0.25, 0.45))]


def _any_small(rng: np.random.Generator) -> list[float]:
    return [0.0] * int(rng.integers(2))


def _several(rng: np.random.Generator) -> list[float]:
    return [0.0] * int(rng.integers(2, 4))


def _two(rng: np.random.Generator) -> list[float]:
    return [_above(rng)[0] for _ in range(2)]


def _two_variances(rng: np.random.Generator) -> Mapping[str, Any]:
    low, share = (round(float(rng.uniform(*ends)), 2) for ends in ((0.2, 0.8), (0.3, 0.7)))
    return {"inputs": Covariance((low, 2.0), (share, 1 - share))}


_VALUE, _TEACHER, _LAYER = (
    "spikes.0.value",
    "spikes.0.overlaps.teacher",
    "spikes.0.overlaps.second_layer",
)
_LABELS, _MONOMIAL = "spikes.0.overlaps.labels", "spikes.0.overlaps.monomial"
_MOVES: dict[str, Any] = {"rates": (0.5, 2.0)}
_GROWS: dict[str, Any] = {"rates": (2.0, 10.0)}
_FRESH = {"batch": "fresh"}


def _error(exponents: Exponents, spread: float = 0.035, **others: Any) -> Family:
    """The test error at the size of the networks."""
    return Family("risk", "test", exponents, spread=spread, **others)


#: What a certificate covers, by name.
FAMILIES: dict[str, Family] = {
    "test error, no step": _error(_NONE, 0.028),
    "train error, no step": Family("risk", "train", _NONE),
    "training loss": Family("training loss", "loss", _any_small, spread=0.028),
    "test error, small step, limit": Family("risk in the limit", "test", _SMALL),
    "test error, small step": _error(_SMALL),
    "train error, small step": Family("risk", "train", _SMALL),
    "gain, small step": Family("risk", "gain", _SMALL, **_GROWS, spread=0.056),
    "test error, several small steps": _error(_several, rates=(0.5, 2.0)),
    "test error, several directions": Family("risk in the limit", "test", _SMALL, teachers=_MANY),
    "test error, between": _error(lambda rng: [float(rng.uniform(0.1, 0.45))], **_MOVES),
    "test error, large step": _error(_LARGE, **_MOVES),
    "train error, large step": Family("risk", "train", _LARGE, **_MOVES),
    "test error, two fresh steps": _error(_two, **_MOVES, vary=_FRESH),
    "test error, two steps on one batch": _error(_two, **_MOVES, vary={"batch": "previous"}),
    "test error, three to five fresh steps": _error(
        lambda rng: [0.5] * int(rng.integers(3, 6)), rates=(0.3, 1.0), vary=_FRESH
    ),
    "test error, sign step": _error(_LARGE, **_MOVES, vary={"rule": "sign"}),
    "test error, normalized step": _error(_LARGE, **_MOVES, vary={"rule": "normalized"}),
    "test error, weight decay": _error(
        _LARGE, **_MOVES, vary=lambda rng: {"decay": round(float(rng.uniform(0.05, 0.5)), 2)}
    ),
    "test error, other losses": _error(
        _LARGE,
        **_MOVES,
        teachers=("sign(x)",),
        vary=lambda rng: {
            "loss": ("logistic", "hinge", "huber")[int(rng.integers(3))],
            "noise": 0.0,
        },
    ),
    "test error, unscaled output": _error(_LARGE, **_MOVES, vary={"output": "unscaled"}),
    "test error, two variances of the inputs": _error(_LARGE, **_MOVES, vary=_two_variances),
    "test error, power law of the inputs": _error(
        _LARGE,
        **_MOVES,
        vary=lambda rng: {"inputs": PowerLaw(round(float(rng.uniform(0.1, 0.45)), 2))},
    ),
    "test error, given weights": Family("given weights", "test", _any_small, spread=0.011),
    "degrees of freedom": Family("degrees of freedom", "df2", _NONE, spread=0.001),
    "degrees of freedom, large step": Family(
        "degrees of freedom", "df1", _LARGE, **_MOVES, spread=0.002
    ),
    "learned function, small step": Family("learned function", "mean", _SMALL),
    "learned function, large step": Family("learned function", "mean", _LARGE, **_MOVES),
    "gradient's spike": Family("gradient", "spike_norm", _SMALL, spread=0.023),
    "gradient's residual": Family("gradient", "residual_frobenius_norm", _SMALL, spread=0.017),
    "gradient's residual, operator norm": Family(
        "gradient", "residual_operator_norm", _SMALL, spread=0.023
    ),
    "weights' spike, small step": Family("weights", _VALUE, _SMALL, **_GROWS, spread=0.02),
    "weights and teacher, small step": Family("weights", _TEACHER, _SMALL, **_GROWS, spread=0.023),
    "weights and second layer, small step": Family(
        "weights", _LAYER, _SMALL, **_GROWS, spread=0.007
    ),
    "weights' spike, several small steps": Family(
        "weights", _VALUE, _several, rates=(1.0, 4.0), spread=0.016
    ),
    "weights' spike, several directions": Family(
        "weights", _VALUE, _SMALL, teachers=_MANY, **_GROWS, spread=0.018
    ),
    "weights' spike, large step": Family("weights", _VALUE, _above, **_MOVES, spread=0.023),
    "weights and teacher, large step": Family("weights", _TEACHER, _above, **_MOVES, spread=0.017),
    "weights' spike, two steps": Family("weights", _VALUE, _two, **_MOVES, spread=0.025),
    "kernel's spike, small step": Family(
        "kernel", _VALUE, _SMALL, _MILD, rates=(2.0, 8.0), spread=0.053
    ),
    "kernel and labels, small step": Family(
        "kernel", _LABELS, _SMALL, rates=(1.5, 4.0), spread=0.072
    ),
    "kernel's spike, large step": Family("kernel", _VALUE, _above, **_MOVES, spread=0.048),
    "kernel and labels, large step": Family("kernel", _LABELS, _above, **_MOVES, spread=0.045),
    "features' spike, large step": Family("features", _VALUE, _above, **_MOVES, spread=0.023),
    "features and monomial, large step": Family(
        "features", _MONOMIAL, _above, **_MOVES, spread=0.002
    ),
    "test error, limit of the staircase": Family(
        "risk in the limit",
        "test",
        lambda rng: [float(rng.uniform(0.1, 0.2))],
        rates=(2.0, 6.0),
        slow="N^e is large (else the limit of theory §6 is far)",
    ),
}
