"""The parts of a problem beside its steps: `Ridge`, `Init`, and its integers, `Sizes`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from giantsteps.problem._checks import choice, number
from giantsteps.problem._part import LATER, Part, set_fields
from giantsteps.problem._second_layer import Gaussian, SecondLayer, as_second_layer

BATCHES = ("fresh", "previous")
WEIGHTS = ("gaussian", "sphere")
OUTPUTS = ("scaled", "unscaled")


@dataclass(frozen=True, kw_only=True, repr=False)
class Ridge(Part):
    r"""Ridge regression on the learned features: n⁻¹‖ỹ − Φa‖² + (λ/N)‖a‖² (theory §0).

    ======  ==========  ======================================================================
    symbol  argument    meaning
    ======  ==========  ======================================================================
    n/d     samples     size of the training set of the readout, > 0
    λ       penalty     ridge penalty, ≥ 0 (0: the solution of minimum norm)
    \       batch       (X̃, ỹ) are ``"fresh"`` samples, or once more the batch of the last step
                        (``"previous"``: there must be a step, and ``samples`` are its samples)
    ======  ==========  ======================================================================

    References
    ----------
    theory §0.
    """

    samples: float
    penalty: float
    batch: str = field(default="fresh", metadata=LATER)

    def __post_init__(self) -> None:
        set_fields(
            self,
            samples=number(
                self.samples,
                "samples",
                "a positive finite number (n/d)",
                lower=0.0,
                open_below=True,
            ),
            penalty=number(
                self.penalty, "penalty", "a finite number >= 0 (0: minimum norm)", lower=0.0
            ),
            batch=choice(self.batch, "batch", BATCHES),
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class Init(Part):
    """How the network starts (theory §0).

    Parameters
    ----------
    weights : {"gaussian", "sphere"}
        W_ij ~ N(0, 1/d), or columns of W uniform on the unit sphere.
    second_layer : SecondLayer or str or mapping
        The law of A in a_j = A_j/√N: a law, its name (``"gaussian"``, ``"constant"``), or
        ``{"law": "vocabulary", "values": [...], "probabilities": [...]}``.

    output : {"scaled", "unscaled"}
        The network during its steps: ``"scaled"``, f = N^{-1/2} aᵀσ(Wᵀx), whose output vanishes
        at initialisation (ba2022), or ``"unscaled"``, f = aᵀσ(Wᵀx), whose output is of order one
        there: that of moniri2023 and moniri2026, of PyTorch's default initialisation and of the
        NTK scaling. The update keeps its scale, n⁻¹Xᵀ[(y − f)aᵀ ⊙ σ'(XW)]; only f changes.

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
    output: str = field(default="scaled", metadata=LATER)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            weights: str = "gaussian",
            second_layer: SecondLayer | str | Mapping[str, Any] = "gaussian",
            output: str = "scaled",
        ) -> None: ...

    def __post_init__(self) -> None:
        set_fields(
            self,
            weights=choice(self.weights, "weights", WEIGHTS),
            second_layer=as_second_layer(self.second_layer),
            output=choice(self.output, "output", OUTPUTS),
        )

    def output_scale(self, neurons: int) -> float:
        """Return the factor of aᵀσ(Wᵀx) in f: N^{-1/2} for ``"scaled"``, 1 for ``"unscaled"``."""
        return float(neurons) ** -0.5 if self.output == "scaled" else 1.0


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
    """

    d: int
    neurons: int
    step_samples: tuple[int, ...]
    samples: int | None
