"""The equivalent model: spiked random features with types of neurons (theory §5a)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.functions import Function, SingleIndex, Teacher
from giantsteps.problem import Ridge, number
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.frame import Frame
from giantsteps.theory.model.given_coordinates import wanted_at
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.rules import CHANNELS, LEVELS
from giantsteps.theory.model.second_degree import SecondDegree, second_degree
from giantsteps.theory.model.step_direction import StepDirection
from giantsteps.theory.model.system_of_model import system_of_model
from giantsteps.theory.model.valid import settle
from giantsteps.theory.solver.system import System
from giantsteps.threads import capped
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.answers import (
        Answer,
        Bounds,
        DegreesOfFreedom,
        LearnedFunction,
        Risk,
        Spectrum,
    )
    from giantsteps.problem import Problem

#: Resolution of the spectra, and of what asks for one resolution.
USUAL = 2


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SpikedFeatures(Frame):
    r"""Random features whose weights lean along a few spike directions, by types of neurons.

    A neuron of type t sees the input through

    .. math:: S_t · k + \sqrt{c_t}\; z, \qquad k ∼ N(0, I_r),\quad z ∼ N(0, 1), \qquad
              ⟨x, β^*⟩ = γ · k + \sqrt{1-|γ|^2}\; z',

    k the coordinates of x along r orthonormal spike directions. Weights of type t have the
    covariance Σ_t/d apart from their spike. A teacher may depend on R orthonormal directions: then
    γ has a row for each, and their coordinates are Γk + (I − ΓΓᵀ)^{1/2} z'.

    ======  ==================  ==============================================================
    symbol  argument            meaning
    ======  ==================  ==============================================================
    σ, σ*   activation,         functions (names and expressions are taken too)
            teacher
    Δ       noise_variance
    β       width               N/d
    p       neurons             N; ``inf`` leaves the spikes unpenalised, and d = ∞
    πₜ      probabilities       of the types, shape (T,)
    Sₜ      spikes              shape (T, r); a number for one type and one direction
    γ       overlap             shape (r,), or (R, r); a number for one spike and one direction
    Σₜ      bulk                :class:`NeuronCovariance`, or the numbers cₜ of an isotropic bulk
    Aₜ      second_layer        values of the types before the readout, for overlaps of spectra
    \       values_within       where neurons of a type have several values of A: these
                                (V,), and their joint probabilities with the types (T, V)
    \       step_directions     cosines of the direction of each step with the spikes, (steps, r),
                                or with them and the teacher's remainder, (steps, r + R)
    \       by_chance           what the squared cosine of one step's direction with the teacher has
                                at finite d beyond |γ|²
    \       first_direction     :class:`StepDirection` of one step, with the initial output
    \       norms               :class:`Norms` of the neurons; None: all of a type are equal
    \       pull                what the initial output does to the penalty of mₜ, (c, T, T)
    \       weak                spikes along further directions, so weak that their coordinates
                                count to first order, shape (T, J)
    \       weak_overlap        of β* with these directions, shape (J,), or (R, J)
    \       own_variances       of the bulk along the spikes and the teacher's remainder, over their
                                mean, (r + 1,); None: ones
    \       regressors          at p = ∞, functions (M, K) of points (K, r) in place of the μ₀ₜ(k),
                                with the same span (or its closure)
    \       problem             where the model comes from
    \       finer               the same model at another resolution of its types and labels
    \       bounded             the same model with labels and second layer cut at the largest of
                                as many draws as there are, so that its bulks have edges; so
                                many resolutions finer than spectra usually need
    \       own_weights         that of W for its singular values, where this one has norms or
                                is one of Σ^{1/2}W (inputs with a covariance)
    \       plain               that of spectra and bounds, where leading eigenvectors of the inputs
                                are spikes of this one
    \       levels              first and last resolution at which errors are computed
    \       fine                whether many types are resolved as well as few
    \       channels            of the types that are kept, relative to the largest, by resolution
    \       claim               what answers say of themselves: exactness, evidence, references
    \       before              a question's answer before the steps, by its name
    ======  ==================  ==============================================================

    At finite p the norm of the input adds coordinates, with d = p/β (theory §5c). At p = ∞ the
    functions μ₀ₜ(k) are regressors without penalty; a continuous second layer then fits the closure
    of their span.

    References
    ----------
    theory §5a; cui2024, dandi2024.

    Examples
    --------
    cui2024's (c, r, γ) is one type, S = r, isotropic c:

    >>> from giantsteps.problem import Ridge
    >>> model = SpikedFeatures(activation="tanh", teacher="sin", width=1.0,
    ...                        spikes=1.1340555, overlap=0.9718544, bulk=1.0189732)
    >>> round(model.risk(Ridge(samples=3.0, penalty=0.1 / 3.0)).test, 6)
    0.032518
    """

    activation: Function
    teacher: Teacher
    width: float
    spikes: FloatArray
    overlap: FloatArray
    bulk: NeuronCovariance
    noise_variance: float = 0.0
    neurons: float = math.inf
    probabilities: FloatArray = field(default_factory=lambda: np.ones(1))
    second_layer: FloatArray | None = None
    values_within: tuple[FloatArray, FloatArray] | None = None
    step_directions: FloatArray | None = None
    by_chance: Callable[[], float] | None = None
    first_direction: Callable[[], StepDirection] | None = None
    norms: Norms | None = None
    pull: FloatArray | None = None
    weak: FloatArray | None = None
    weak_overlap: FloatArray | None = None
    own_variances: FloatArray | None = None
    regressors: Callable[[FloatArray], FloatArray] | None = None
    problem: Problem | None = None
    finer: Callable[[int], SpikedFeatures] | None = None
    bounded: Callable[[int], SpikedFeatures] | None = None
    own_weights: Callable[[], SpikedFeatures] | None = None
    plain: Callable[[], SpikedFeatures] | None = None
    levels: tuple[int, int] = (1, LEVELS - 2)
    fine: bool = False
    channels: tuple[float, ...] = CHANNELS
    claim: dict[str, Any] | None = None
    before: Callable[[str], Answer | None] | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            activation: Function | str,
            teacher: Teacher | Function | str,
            width: float,
            spikes: ArrayLike,
            overlap: ArrayLike,
            bulk: NeuronCovariance | ArrayLike,
            noise_variance: float = 0.0,
            neurons: float = math.inf,
            probabilities: ArrayLike = (1.0,),
            second_layer: ArrayLike | None = None,
            **others: Any,  # the further fields, as they are
        ) -> None: ...

    def __post_init__(self) -> None:
        settle(self)

    @classmethod
    def from_weights(
        cls,
        weights: Any,
        second_layer: Any,
        teacher_directions: Any,
        *,
        activation: Function | str,
        teacher: Teacher | Function | str,
        noise_variance: float = 0.0,
    ) -> SpikedFeatures:
        """The model of a trained network, from its arrays (NumPy or torch).

        Neurons with the same second-layer value are of one type (more than 16 values: bins of equal
        counts). The spikes are the significant directions of W p(A), p polynomials of degree up to
        3, without the share of the noise in them; Σ_t is the covariance of what is left of the
        neurons of a type, through its eigenvalues and its forms on spikes and teacher.

        Parameters
        ----------
        weights : array of shape (d, N)
        second_layer : array of shape (N,)
            a or A of the step that trained the weights: only which neurons share a value matters.
        teacher_directions : array of shape (d,) or (d, 1)
            β*, of norm one.
        activation, teacher, noise_variance
            As for the class.
        """
        from giantsteps.theory.model.from_weights import model_of_weights

        return model_of_weights(
            weights,
            second_layer,
            teacher_directions,
            activation=activation,
            teacher=teacher,
            noise_variance=noise_variance,
        )

    @cached_property
    def second_degree(self) -> SecondDegree | None:
        """What neurons have along the teacher; None where it is like along any direction."""
        return second_degree(self)

    @cached_property
    def systems(self) -> dict[Any, System]:
        """The equations that were asked for, without a readout: `system_of_model` keeps them."""
        return {}

    @cached_property
    def answered(self) -> dict[Ridge, Any]:
        """What searches know of readouts of this model (`refine`)."""
        return {}

    @property
    def link(self) -> Function:
        """σ* of a teacher of one direction."""
        if not isinstance(self.teacher, SingleIndex):
            raise NotCovered(
                f"this answer for a teacher of {self.teacher.rank} directions",
                "it is about a function of one direction",
                "risk, weights, kernel, features and learned functions along a direction",
            )
        return self.teacher.link

    def __repr__(self) -> str:
        return f"SpikedFeatures({self.describe()})"

    def describe(self) -> str:
        """The model in a line, for messages."""
        return (
            f"{self.activation!r} → {self.teacher!r}, width {self.width:g}, "
            f"{len(self.spikes)} types, "
            f"largest spike {float(np.abs(self.spikes).max()):g}, p = {self.neurons:g}"
        )

    def at_level(self, level: int) -> SpikedFeatures:
        """The same model with its types and labels at another resolution."""
        return self if self.finer is None else self.finer(level)

    def target(self, points: FloatArray) -> FloatArray:
        """h(k) = E[f* | k] at points (K, r)."""
        return wanted_at(self, points).mean

    def system(
        self,
        readouts: Sequence[Ridge],
        level: int = USUAL,
        points: FloatArray | None = None,
        draws: float | None = None,
    ) -> System:
        """The equations of theory §5c, one cell for each readout, as `system_of_model` has them."""
        return system_of_model(self, readouts, level, points, draws)

    # -- answers --------------------------------------------------------------------------------

    def readout_of(self, readout: Ridge | None) -> Ridge:
        """The readout asked for, or that of the problem at its realised size."""
        if isinstance(readout, Ridge):
            return readout
        if self.problem is None or readout is not None:
            raise InvalidProblem("readout", readout, "a Ridge(samples=..., penalty=...)")
        finite = math.isfinite(self.neurons)
        sized = self.problem.realised(round(self.dimension)) if finite else self.problem
        return sized.require_readout()

    @capped(1)
    def risk(self, readout: Ridge | None = None) -> Risk:
        """Errors of ridge regression on these features (theory §5c)."""
        from giantsteps.theory.model.errors import risk_of_models

        initial = self.initial("risk") if readout is None else None
        return risk_of_models([(self, self.readout_of(readout))], initial and [initial])[0]

    def initial(self, question: str) -> Any:
        """The answer before the steps, if it is known."""
        return None if self.before is None else self.before(question)

    @capped(1)
    def learned_function(
        self,
        readout: Ridge | None = None,
        *,
        along: str = "spike",
        x: ArrayLike | None = None,
    ) -> LearnedFunction:
        """Mean and spread of the prediction along the first spike or a direction of the teacher."""
        from giantsteps.theory.model.learned import learned_function_of_model

        return learned_function_of_model(self, self.readout_of(readout), x, along)

    @capped(1)
    def degrees_of_freedom(self, readout: Ridge | None = None) -> DegreesOfFreedom:
        """Effective penalty and degrees of freedom of the readout (theory §5c)."""
        from giantsteps.theory.model.degrees_of_freedom import degrees_of_freedom_of_model

        return degrees_of_freedom_of_model(self, self.readout_of(readout))

    @capped(1)
    def kernel(self, samples: float | None = None) -> Spectrum:
        """Eigenvalues of K = ΦΦᵀ with n = samples · d: bulk and outliers (theory §5d)."""
        from giantsteps.theory.model.spectra import kernel_of_model

        found = kernel_of_model(self._of_spectra, self._samples(samples))
        return found if samples is not None else replace(found, initial=self.initial("kernel"))

    @capped(1)
    def features(self, samples: float | None = None) -> Spectrum:
        """Singular values of Φ = N^{-1/2}σ(X̃W) with n = samples · d (theory §5d)."""
        from giantsteps.theory.model.spectra import features_of_model

        found = features_of_model(self._of_spectra, self._samples(samples))
        return found if samples is not None else replace(found, initial=self.initial("features"))

    @property
    def _of_spectra(self) -> SpikedFeatures:
        return self if self.plain is None else self.plain()

    def _samples(self, samples: float | None) -> float:
        if samples is None:
            return self.readout_of(None).samples
        allowed = "a positive finite number (n/d)"
        return number(samples, "samples", allowed, lower=0.0, open_below=True)

    @capped(1)
    def weights(self) -> Spectrum:
        """Singular values of the weights (theory §2, last remark)."""
        from giantsteps.theory.model.spectra import weights_of_model

        return weights_of_model(self._of_spectra)

    @capped(1)
    def bounds(self) -> Bounds:
        """Floor and ceiling of the test error at the best penalty, for one type (theory §4)."""
        from giantsteps.theory.model.bounds import bounds_of_model

        return bounds_of_model(self._of_spectra)

    @cached_property
    def stated(self) -> dict[str, Any]:
        """What every answer of this model says of itself."""
        if self.claim is not None:
            return self.claim
        finite = math.isfinite(self.neurons)
        return {
            "problem": self if self.problem is None else self.problem,
            "d": round(self.dimension) if finite else None,
            "source": "finite width" if finite else "limit",
            "exact": True,
            "evidence": "replica",
            "assumptions": ("the features are those of the equivalent model (theory §5)",),
            "references": ("cui2024", "dandi2024"),
        }
