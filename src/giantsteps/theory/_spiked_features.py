"""The equivalent model itself: spiked random features with types, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.functions import Function, SingleIndex, Teacher, as_function, as_teacher
from giantsteps.gaussian import Rule, coordinate_rule
from giantsteps.problem import Ridge
from giantsteps.theory._coefficients import (
    COEFFICIENTS,
    Coefficients,
    smoothed_by_symmetry,
    teacher_given,
)
from giantsteps.theory._directions import Directions
from giantsteps.theory._lengths import Lengths
from giantsteps.theory._system import System

if TYPE_CHECKING:
    from giantsteps.answers import LearnedFunction, Risk, Spectrum
    from giantsteps.problem import Problem

__all__ = ["Directions", "SpikedFeatures"]

#: Half-width of the rule for one spike coordinate.
_REACH = 8.5
_FEW = 8


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class SpikedFeatures:
    r"""Spiked random features with types: everything but the readout (theory §5a).

    A neuron of type t sees Sₜ·k + √cₜ z of an input, with k ~ N(0, I_r) the coordinates along r
    spike directions and z from the bulk; the teacher sees ⟨x, β*⟩ = γ·k + √(1−|γ|²) z'.

    ======  ==================  ==============================================================
    symbol  argument            meaning
    ======  ==================  ==============================================================
    σ       activation
    σ*, Δ   teacher,            a rank-one teacher and the variance of the label noise
            noise_variance
    β       width               N/d
    p       neurons             N; ``inf`` leaves the spikes unpenalised, and d = ∞
    πₜ      probabilities       of the types, shape (T,)
    Sₜ      spikes              shape (T, r); a number for one type and one direction
    γ       overlap             shape (r,); a number for one direction
    sₜ(ι)   bulk                :class:`Directions`, or the numbers cₜ of an isotropic bulk
    Aₜ      second_layer        values of the types before the readout, for overlaps of spectra
    κₜ, vₜ  lengths             :class:`Lengths` of the neurons; None: all of a type are equal
    \       coarse              the same model with fewer types, for spectra
    \       span                the model whose μ₀ₜ are the unpenalised functions at p = ∞
    \       problem             where the model comes from
    ======  ==================  ==============================================================

    At finite p the norm of the input adds one coordinate, with d = p/β (theory §5a). At p = ∞ the
    functions μ₀ₜ(k) are regressors without penalty. A continuous second layer has infinitely many
    of them: the fit is then over the closure of the span of all μ₀_A, A ∈ R (for a generic odd σ
    every odd function of the spike), to the 13 digits of a least-squares fit on ``span``'s types,
    whatever the size of the rate.

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
    spikes: NDArray
    overlap: NDArray
    bulk: Directions
    noise_variance: float = 0.0
    neurons: float = math.inf
    probabilities: NDArray = field(default_factory=lambda: np.ones(1))
    second_layer: NDArray | None = None
    lengths: Lengths | None = None
    coarse: SpikedFeatures | None = None
    span: SpikedFeatures | None = None
    problem: Problem | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            activation: Function | str,
            teacher: Teacher | Function | str,
            width: float,
            spikes: ArrayLike,
            overlap: ArrayLike,
            bulk: Directions | ArrayLike,
            noise_variance: float = 0.0,
            neurons: float = math.inf,
            probabilities: ArrayLike = (1.0,),
            second_layer: ArrayLike | None = None,
            lengths: Lengths | None = None,
            coarse: SpikedFeatures | None = None,
            span: SpikedFeatures | None = None,
            problem: Problem | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "activation", as_function(self.activation, "activation"))
        set_(self, "teacher", as_teacher(self.teacher))
        probabilities = np.atleast_1d(np.array(self.probabilities, dtype=float))
        overlap = np.atleast_1d(np.array(self.overlap, dtype=float))
        types, rank = len(probabilities), len(overlap)
        spikes = np.array(self.spikes, dtype=float)
        if spikes.ndim < 2:
            spikes = np.reshape(spikes, (types, rank)) if spikes.size == types * rank else spikes
        bulk = self.bulk
        if not isinstance(bulk, Directions):
            bulk = Directions.isotropic(bulk, rank)
        for name, value in (
            ("probabilities", probabilities),
            ("overlap", overlap),
            ("spikes", spikes),
        ):
            value.setflags(write=False)
            set_(self, name, value)
        set_(self, "bulk", bulk)
        if self.second_layer is not None:
            values = np.atleast_1d(np.array(self.second_layer, dtype=float))
            if values.shape != (types,):
                raise InvalidProblem("second_layer", self.second_layer, f"{types} values")
            set_(self, "second_layer", values)
        self._validate(types, rank)

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

        Neurons with the same second-layer value are of one type (more than 16 values: bins of
        equal counts). The spikes are the significant directions of W p(A), p polynomials of degree
        up to 3, without the share of the noise in them; cₜ is what is left of a neuron's squared
        norm, and the bulk is taken to be isotropic.

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
        from giantsteps.theory._given_weights import model_of_weights

        return model_of_weights(
            weights,
            second_layer,
            teacher_directions,
            activation=activation,
            teacher=teacher,
            noise_variance=noise_variance,
        )

    def _validate(self, types: int, rank: int) -> None:
        positive = (("width", self.width), ("neurons", self.neurons))
        for name, value in positive:
            if not value > 0:
                raise InvalidProblem(name, value, "positive")
        if not (self.noise_variance >= 0 and math.isfinite(self.noise_variance)):
            raise InvalidProblem("noise_variance", self.noise_variance, "finite and >= 0")
        if np.any(self.probabilities <= 0) or abs(self.probabilities.sum() - 1) > 1e-9:
            raise InvalidProblem("probabilities", self.probabilities, "positive with sum one")
        if self.spikes.shape != (types, rank) or not np.all(np.isfinite(self.spikes)):
            raise InvalidProblem("spikes", self.spikes, f"finite, of shape ({types}, {rank})")
        if float(self.overlap @ self.overlap) > 1 + 1e-12:
            raise InvalidProblem("overlap", self.overlap, "a vector of length at most one")
        if self.bulk.variances.shape[0] != types:
            raise InvalidProblem("bulk", self.bulk.variances.shape, f"variances of {types} types")
        if self.bulk.special.shape[1] != rank + 1:
            raise InvalidProblem("bulk", self.bulk.special.shape, f"special of size {rank + 1}")
        if self.span is not None and math.isfinite(self.neurons):
            raise InvalidProblem("span", self.span, "None for finitely many neurons")
        if self.lengths is not None and (rank, len(self.lengths.slope)) != (1, types):
            raise InvalidProblem("lengths", self.lengths, f"one spike, and {types} slopes")
        self._validate_teacher()

    def _validate_teacher(self) -> None:
        if self.teacher.rank != 1:
            raise NotCovered(
                f"a teacher of rank {self.teacher.rank}",
                "the equations are those of one direction",
                "rank-one teachers",
            )

    # -- coordinates and coefficients -----------------------------------------------------------

    @property
    def rank(self) -> int:
        """r, the number of spike directions."""
        return len(self.overlap)

    @property
    def link(self) -> Function:
        """σ*."""
        assert isinstance(self.teacher, SingleIndex)
        return self.teacher.link

    @property
    def dimension(self) -> float:
        """d = p/β."""
        return self.neurons / self.width

    @property
    def remainder(self) -> float:
        """√(1−|γ|²), what the spikes leave of the teacher's direction."""
        return math.sqrt(max(1.0 - float(self.overlap @ self.overlap), 0.0))

    def __repr__(self) -> str:
        return f"SpikedFeatures({self.describe()})"

    def describe(self) -> str:
        """The model in a line, for messages."""
        return (
            f"{self.activation!r} → {self.teacher!r}, width {self.width:g}, "
            f"{len(self.spikes)} types, "
            f"largest spike {float(np.abs(self.spikes).max()):g}, p = {self.neurons:g}"
        )

    @property
    def coordinates(self) -> Rule:
        """Quadrature of the spike coordinates, finer for few types, where it is cheap."""
        if self.rank > 1:
            return coordinate_rule(self.rank)
        return coordinate_rule(1, reach=_REACH, nodes=80 if len(self.spikes) <= _FEW else 48)

    def coefficients(self, points: NDArray) -> Coefficients:
        """μ₀, μ₁, μ₂², ξ of the types and h, h₁, hh of the teacher at points (K, r)."""
        scale = np.sqrt(self.bulk.totals)[:, None]
        seen = smoothed_by_symmetry(self.activation, self.spikes @ points.T, scale)
        target, target_linear, target_square = self._wanted(points)
        mean = seen.mean if self.span is None else self.span.coefficients(points).mean
        return Coefficients(
            mean=mean,
            linear=seen.linear / scale,
            residual=seen.residual_variance,
            norm=math.sqrt(2.0 / self.dimension) * seen.quadratic,
            length=self._varied(seen.quadratic / scale**2, points[:, 0] * seen.linear / scale),
            target=target,
            target_linear=target_linear,
            target_square=target_square + self.noise_variance,
        )

    def _wanted(self, points: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """h, h₁ and hh − Δ at points (K, r)."""
        seen = tuple((points @ self.overlap).tolist())
        wanted = teacher_given(self.link, seen, self.remainder)
        return wanted.mean, wanted.linear, wanted.second_moment

    def _varied(self, by_length: NDArray, by_spike: NDArray) -> NDArray:
        """What lengths that vary add to the functions that are fitted, if they do."""
        lengths = self.lengths
        return by_length[:0] if lengths is None else lengths.functions(by_length, by_spike)

    @cached_property
    def _on_rule(self) -> Coefficients:
        return self.coefficients(self.coordinates.nodes)

    def system(
        self, readouts: Sequence[Ridge], points: NDArray | None = None, rule: Rule | None = None
    ) -> System:
        """The equations of theory §5c, one cell a readout.

        Parameters
        ----------
        readouts : sequence of Ridge
        points : ndarray of shape (X, r), optional
            More points k at which the solution is wanted; they follow the nodes, with weight 0.
        rule : Rule, optional
            Another quadrature of the spike coordinates than ``coordinates``.
        """
        on_rule = self._on_rule if rule is None else self.coefficients(rule.nodes)
        rule = self.coordinates if rule is None else rule
        nodes, weights = rule.nodes, rule.weights
        arrays = {name: getattr(on_rule, name) for name in COEFFICIENTS}
        if points is not None:
            more = self.coefficients(points)
            nodes = np.concatenate([nodes, points])
            weights = np.concatenate([weights, np.zeros(len(points))])
            arrays = {
                name: np.concatenate([array, getattr(more, name)], axis=-1)
                for name, array in arrays.items()
            }
        lengths = self.lengths
        arrays |= {
            "probabilities": self.probabilities,
            "bulk": self.bulk.weights,
            "variances": self.bulk.variances,
            "special": self.bulk.special,
            "special_variances": self.bulk.special_variances,
            "slope": np.empty(0) if lengths is None else lengths.slopes,
            "spread": np.empty(0) if lengths is None else lengths.spreads,
            "width": np.asarray(self.width),
            "inverse_neurons": np.asarray(1.0 / self.neurons),
        }
        cells = len(readouts)
        ratio = np.array([readout.samples / self.width for readout in readouts])
        penalty = np.array([readout.penalty for readout in readouts]) * ratio
        # λ → 0: the equations are homogeneous in (1, λ_s) of ω = 1/(1 + V).
        interpolating = (penalty == 0) & (ratio < 1)
        return System(
            coordinates=nodes,
            weights=weights,
            ratio=ratio,
            penalty=np.where(interpolating, 1.0, penalty),
            unit=np.where(interpolating, 0.0, 1.0),
            **{
                name: np.ascontiguousarray(np.broadcast_to(array, (cells, *array.shape)))
                for name, array in arrays.items()
            },
        )

    # -- answers --------------------------------------------------------------------------------

    def risk(self, readout: Ridge) -> Risk:
        """Errors of ridge regression on these features (theory §5c)."""
        from giantsteps.theory._model_risk import risk_of_model

        return risk_of_model(self, readout)

    def learned_function(
        self,
        readout: Ridge,
        x: ArrayLike | None = None,
        along: Literal["spike", "teacher"] = "spike",
    ) -> LearnedFunction:
        """Mean and spread of the prediction along the first spike or the teacher (theory §5c)."""
        from giantsteps.theory._model_risk import learned_function_of_model

        return learned_function_of_model(self, readout, x, along)

    def kernel(self, samples: float) -> Spectrum:
        """Eigenvalues of K = ΦΦᵀ with n = samples · d: bulk and outliers (theory §5d)."""
        from giantsteps.theory._model_spectra import kernel_of_model

        return kernel_of_model(self, samples)

    def features(self, samples: float) -> Spectrum:
        """Singular values of Φ = N^{-1/2}σ(X̃W) with n = samples · d (theory §5d)."""
        from giantsteps.theory._model_spectra import features_of_model

        return features_of_model(self, samples)

    def weights(self) -> Spectrum:
        """Singular values of the weights (theory §2, last remark)."""
        from giantsteps.theory._model_spectra import weights_of_model

        return weights_of_model(self)

    def stated(self) -> dict[str, Any]:
        """What every answer of this model says of itself."""
        finite = math.isfinite(self.neurons)
        return {
            "problem": self if self.problem is None else self.problem,
            "d": round(self.dimension) if finite else None,
            "source": "finite width" if finite else "limit",
            "exact": True,
            "assumptions": ("the features are those of the equivalent model (theory §5)",),
            "references": ("cui2024", "dandi2024"),
        }
