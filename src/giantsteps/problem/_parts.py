"""The parts of a problem: :class:`Step`, :class:`Ridge`, :class:`Init`, and its :class:`Sizes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import choice, keywords, number, under
from giantsteps.problem._part import Part
from giantsteps.problem._second_layer import Gaussian, SecondLayer, as_second_layer

__all__ = ["Init", "Ridge", "Sizes", "Step", "as_part"]

_BATCHES = ("fresh", "previous")
_WEIGHTS = ("gaussian", "sphere")
_RATIO = "a positive finite number"


@dataclass(frozen=True, kw_only=True)
class Step(Part):
    r"""One gradient step on the first layer: W ← W + η √N G with η = rate · N^exponent (theory §0).

    ======  ===========  ==========================================================================
    symbol  argument     meaning
    ======  ===========  ==========================================================================
    n₀/d    samples      size of the batch, > 0
    \       rate         coefficient of the learning rate, ≥ 0 (0: a step that does not move)
    e       exponent     in [0, 1/2]: 0 "small" steps, 1/2 "giant" steps, between them the staircase
    \       batch        ``"fresh"`` samples, or those of the ``"previous"`` step once more
    ======  ===========  ==========================================================================

    References
    ----------
    theory §0; ba2022, moniri2023, cui2024.

    Examples
    --------
    >>> step = Step(samples=4, rate=2, exponent=0.5)  # a giant step, η = 2√N
    >>> step.learning_rate(neurons=900)
    60.0
    """

    samples: float
    rate: float
    exponent: float = 0.0
    batch: str = "fresh"

    def __post_init__(self) -> None:
        _set(
            self,
            samples=number(self.samples, "samples", f"{_RATIO} (n0/d)", lower=0.0, open_below=True),
            rate=number(
                self.rate, "rate", "a finite number >= 0 (eta = rate * N**exponent)", lower=0.0
            ),
            exponent=number(
                self.exponent,
                "exponent",
                "a number in [0, 1/2] (eta = rate * N**exponent)",
                lower=0.0,
                upper=0.5,
            ),
            batch=choice(self.batch, "batch", _BATCHES),
        )

    def learning_rate(self, neurons: int) -> float:
        """Return η = rate · N^exponent for a network of N = ``neurons``."""
        return self.rate * float(neurons) ** self.exponent


@dataclass(frozen=True, kw_only=True)
class Ridge(Part):
    """Ridge regression on the learned features: n⁻¹‖ỹ − Φa‖² + (λ/N)‖a‖², fresh (X̃, ỹ) (theory §0).

    ======  ==========  ======================================================
    symbol  argument    meaning
    ======  ==========  ======================================================
    n/d     samples     size of the training set of the readout, > 0
    λ       penalty     ridge penalty, ≥ 0 (0: the solution of minimum norm)
    ======  ==========  ======================================================

    References
    ----------
    theory §0.

    Examples
    --------
    >>> readout = Ridge(samples=2, penalty=0.1)
    >>> readout
    Ridge(samples=2.0, penalty=0.1)
    """

    samples: float
    penalty: float

    def __post_init__(self) -> None:
        _set(
            self,
            samples=number(self.samples, "samples", f"{_RATIO} (n/d)", lower=0.0, open_below=True),
            penalty=number(
                self.penalty, "penalty", "a finite number >= 0 (0: minimum norm)", lower=0.0
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Init(Part):
    """How the network starts (theory §0).

    Parameters
    ----------
    weights : {"gaussian", "sphere"}
        W_ij ~ N(0, 1/d), or columns of W uniform on the unit sphere.
    second_layer : SecondLayer or str or mapping
        The law of A in a_j = A_j/√N: a law, its name (``"gaussian"``, ``"constant"``), or
        ``{"law": "vocabulary", "values": [...], "probabilities": [...]}``.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> Init()
    Init(weights='gaussian', second_layer=Gaussian())
    >>> Init(weights="sphere", second_layer={"law": "constant", "value": 2.0}).second_layer
    Constant(value=2.0)
    """

    weights: str = "gaussian"
    second_layer: SecondLayer = field(default_factory=Gaussian)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            weights: str = "gaussian",
            second_layer: SecondLayer | str | Mapping[str, Any] = "gaussian",
        ) -> None: ...

    def __post_init__(self) -> None:
        _set(
            self,
            weights=choice(self.weights, "weights", _WEIGHTS),
            second_layer=as_second_layer(self.second_layer, "second_layer"),
        )


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The integers of a finite network.

    ======  =============  =======================================
    symbol  attribute      meaning
    ======  =============  =======================================
    d       d              dimension of the inputs
    N       neurons        width of the network
    n₀      step_samples   one for each step
    n       samples        of the readout, None if there is none
    ======  =============  =======================================

    References
    ----------
    theory §0.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=1.0)])
    >>> problem.at(10) == Sizes(d=10, neurons=15, step_samples=(40,), samples=None)
    True
    """

    d: int
    neurons: int
    step_samples: tuple[int, ...]
    samples: int | None


_P = TypeVar("_P", bound=Part)


def as_part(value: object, part: type[_P], path: str) -> _P:
    """Return ``value`` if it is a ``part``, or build one from a mapping."""
    if isinstance(value, part):
        return value
    if not isinstance(value, Mapping):
        raise InvalidProblem(path, value, f"a {part.__name__}(...) or a table of its fields")
    with under(path):
        return part(**keywords(value, part, ""))


def _set(part: Part, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(part, name, value)
