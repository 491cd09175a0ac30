r"""One gradient step on inputs x ~ N(0, Σ): its equivalent model (theory §10).

In the frame of z = Σ^{-1/2}x and w' = Σ^{1/2}w the network is that of isotropic inputs, with
weights whose covariance has the eigenvalues λ_ι of Σ. A step with the preconditioner Σ^{-p} moves
neurons along b = Σ^{-p}n₀⁻¹Xᵀr; with the shares τ_ι of Σ^{1/2}β*,

.. math:: ‖Σ^{1/2}b‖² = Σ_ι λ_ι^{2-2p}\Bigl(τ_ι E[ur]² + ν_ι\frac{E r²}{α_0}\Bigr),\qquad
          γ = \frac{E[ur]\,Σ_ι λ_ι^{1-p}τ_ι}{‖Σ^{1/2}b‖},\qquad
          Σ_t = (ϱ + κ_tM)(ϱ + κ_tM^⊤) + ε_t Σ^{-p}\mathbf SΣ^{-p},

Σ^pM and 𝐒 sums over samples of covariance Σ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.norms import Norms
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.solver.bulk import Batch, Stage
from giantsteps.theory.steps.first import EIGENVALUES
from giantsteps.theory.steps.neuron import NeuronLaw
from giantsteps.theory.steps.one import movement, neuron_law, tails_of, types_of
from giantsteps.theory.steps.sized import SPECTRA, at_size, by_resolution
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

    def along(self, exponent: float) -> float:
        """Σ τ_ι λ_ι^exponent."""
        return float(self.teacher @ self.values**exponent)


def spectrum_of(problem: Problem, d: int | None) -> Spectrum:
    """The eigenvalues of Σ, and the preconditioner that all steps share."""
    power = problem.steps[0].precondition if problem.steps else 0.0
    return Spectrum(*problem.inputs.directions(EIGENVALUES, d), power)


def structured_step(
    problem: Problem,
    d: int | None = None,
    *,
    simplify: tuple[str, ...] = (),
    level: int = USUAL,
    **others: Any,
) -> SpikedFeatures:
    """The equivalent model after one step, or none, on inputs with a covariance."""
    sized, neurons, shared = at_size(problem, d, **others)
    spectrum = spectrum_of(sized, d)
    tails = tails_of(sized, d, neurons) if sized.steps else (0.0, 0.0)

    def built(level: int, tails: tuple[float, float] = (0.0, 0.0)) -> SpikedFeatures:
        return _at_level(sized, spectrum, neurons, simplify, level, shared, tails)

    def own_weights() -> SpikedFeatures:
        def at(more: int) -> SpikedFeatures:
            return _of_weights(sized, spectrum, neurons, shared, tails, SPECTRA + more)

        return replace(at(0), bounded=at)

    return by_resolution(built, level, lambda level: built(level, tails), own_weights=own_weights)


def _of_weights(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    shared: dict[str, Any],
    tails: tuple[float, float],
    level: int,
) -> SpikedFeatures:
    """The same network with W in place of Σ^{1/2}W: what its singular values need."""
    rate, inverse = movement(problem, 0, neurons), problem.width / neurons
    unit = neuron_law(problem, np.array([rate]), level, tails[0])
    length, overlap = direction(unit, spectrum, inverse, whitened=False)
    strength = abs(rate * unit.slope.hermite[0] * length)
    values, probabilities = types_of(problem.init.second_layer, level, strength, tails[1])
    law = replace(unit, moved=rate * values)
    return SpikedFeatures(
        spikes=(law.moved * law.slope.hermite[0] * length)[:, None],
        overlap=overlap,
        probabilities=probabilities,
        bulk=covariance_of_weights(law, spectrum),
        pull=None if math.isinf(neurons) else _pull(law, spectrum, values, probabilities, rate),
        second_layer=values,
        **shared,
    )


def covariance_of_weights(law: NeuronLaw, spectrum: Spectrum) -> NeuronCovariance:
    """Σ_t of W itself, along b and β*/‖β*‖."""
    bulk = _covariance(law, spectrum, *direction(law, spectrum, whitened=False))
    external = bulk.external.copy()
    external[1] /= math.sqrt(spectrum.along(-1))
    e, mean, p = law.labels.moment, spectrum.mean, spectrum.power
    means = [1.0, mean(1 - p), mean(2 - 2 * p), mean(1 - 2 * p), e(2) * mean(1 - 2 * p)]
    if bulk.coefficients.shape[1] > len(means):
        square = e(1) ** 2 * mean(2 - 2 * p) + e(2) / law.samples * mean(1 - 2 * p)
        means += [2 * e(1) * mean(1 - p), square]
    return replace(bulk, inputs=None, external=external, means=np.array(means))


def _at_level(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    simplify: tuple[str, ...],
    level: int,
    shared: dict[str, Any],
    tails: tuple[float, float] = (0.0, 0.0),
) -> SpikedFeatures:
    if not problem.steps:
        still = problem.replace({"steps": [{"samples": 1.0, "rate": 0.0}]})
        return _at_level(still, spectrum, neurons, simplify, level, shared)
    rate = movement(problem, 0, neurons)
    unit = neuron_law(problem, np.array([rate]), level, tails[0])
    raw, gamma = direction(unit, spectrum)
    length, overlap = direction(unit, spectrum, problem.width / neurons)
    second_layer = problem.init.second_layer
    strength = abs(rate * unit.slope.hermite[0] * length)
    values, probabilities = types_of(second_layer, level, strength, tails[1])
    law = replace(unit, moved=rate * values)
    bulk = _covariance(law, spectrum, raw, gamma)
    continuous = math.isinf(second_layer.distinct_nonzero)
    norms = None
    if not simplify and not (continuous and math.isinf(neurons)):
        norms = norms_of(law, spectrum, raw, problem.init.weights == "gaussian")
    if "isotropic bulk" in simplify:
        bulk, norms = NeuronCovariance.isotropic(bulk.totals, 1), None
    return SpikedFeatures(
        spikes=(law.moved * law.slope.hermite[0] * length)[:, None],
        overlap=overlap,
        probabilities=probabilities,
        bulk=bulk,
        norms=norms,
        pull=None
        if math.isinf(neurons) or simplify
        else _pull(law, spectrum, values, probabilities, rate),
        second_layer=values,
        own_variances=None if simplify else own_variances(law, spectrum, raw, gamma),
        **shared,
    )


def direction(
    law: NeuronLaw, spectrum: Spectrum, inverse: float = 0.0, whitened: bool = True
) -> tuple[float, float]:
    """‖Σ^{1/2}b‖ and γ at d⁻¹ = ``inverse``; not whitened, ‖b‖ and its overlap with β*/‖β*‖.

    A sample with a long x has another mean slope, E σ'(‖x‖z/√d), which along an eigenvector makes
    b (1 + 2h₂λ/(μ₁d))b. Of this what Σ = I has too is left out, as everywhere.
    """
    seen, square = law.labels.signal, law.labels.moment(2) / law.samples
    linear, _, bend, _ = law.slope.hermite
    frame = np.ones_like(spectrum.values) if whitened else spectrum.values**-0.5
    reach = spectrum.values ** (1 - spectrum.power) * frame
    if linear:
        reach = reach * (1 + 2 * bend / linear * inverse * (spectrum.values - 1))
    signal, noise = spectrum.teacher @ reach**2, spectrum.shares @ reach**2
    length = math.sqrt(seen**2 * float(signal) + square * float(noise))
    size = length * math.sqrt(float(spectrum.teacher @ frame**2))
    overlap = seen * float(spectrum.teacher @ (reach * frame)) / size if length else 0.0
    return length, float(np.clip(overlap, -1.0, 1.0))


def own_variances(law: NeuronLaw, spectrum: Spectrum, length: float, overlap: float) -> FloatArray:
    """Variances of the inputs along b̂ and the teacher's remainder B in the new frame, (2,)."""
    seen, square, p = law.labels.signal, law.labels.moment(2) / law.samples, spectrum.power
    if not length:
        return np.array([1.0, spectrum.along(1)])
    along = seen**2 * spectrum.along(3 - 2 * p) + square * spectrum.mean(3 - 2 * p)
    mixed, rest = seen * spectrum.along(2 - p) / length, 1.0 - overlap**2
    first = along / length**2
    if rest < 1e-12:
        return np.array([first, 1.0])
    return np.array([first, (spectrum.along(1) + overlap * (overlap * first - 2 * mixed)) / rest])


def _covariance(
    law: NeuronLaw, spectrum: Spectrum, length: float, overlap: float
) -> NeuronCovariance:
    """Σ_t through I, three powers of Σ for the initial output, 𝐒, M + Mᵀ and MMᵀ.

    M = Σ^{-p}n₀⁻¹Σ r_ix_ix_iᵀ takes samples as they are on its right, where it meets the weights.
    """
    r, alpha, e = law.labels.nodes, law.samples, law.labels.moment
    values, p, mean = spectrum.values, spectrum.power, spectrum.mean
    tilt = law.tilt
    even = bool(np.any(tilt))
    whole, zero = np.full_like(law.moved, law.kept**2), np.zeros_like(law.moved)
    columns = [whole, zero, zero, zero, law.noise]
    means = [1.0, mean(2 - p), mean(3 - 2 * p), mean(2 - 2 * p), e(2) * mean(2 - 2 * p)]
    if even:
        columns += [law.kept * tilt, tilt**2]
        square = e(1) ** 2 * mean(3 - 2 * p) + e(2) / alpha * mean(2 - 2 * p)
        means += [2 * e(1) * mean(2 - p), square]
    root = np.sqrt(spectrum.teacher)
    rest = math.sqrt(max(1.0 - overlap**2, 0.0))
    inverse = 1.0 / rest if rest > 1e-12 else 0.0
    # Vectors after the batch: b̂ in the frame of Σ^{-1/2}, b of the norms, the teacher.
    unit = r / length if length else 0.0 * r
    batch = Batch(
        samples=np.array(alpha),
        weights=law.labels.weights,
        first=law.labels.first,
        second=law.labels.second,
        linear=(r * r)[None],
        factors=r[None] if even else np.zeros((0, len(r))),
        crossed=even,
    )
    apart = even and p > 0  # the frame of the samples on the two sides of M
    vectors = [values ** (0.5 - p), 1.0 / np.sqrt(values), *([np.sqrt(values)] if apart else [])]
    count = len(vectors)
    stage = Stage(
        frame=np.eye(1, count),
        carry=np.array([np.zeros(count), np.eye(count)[1]]),
        sums=np.stack([unit, 0.0 * r]),
        place=(0, 0),
        within=np.eye(count)[2:] if apart else None,
    )
    return NeuronCovariance(
        shares=spectrum.shares,
        diagonal=np.stack([values**power for power in (0.0, 1 - p, 2 - 2 * p, 1 - 2 * p)]),
        coefficients=np.stack(columns, axis=1),
        external=(np.stack(vectors) * root)[:, :, None],
        special=np.array([[1.0, 0.0], [-overlap * inverse, inverse], [1.0, 0.0]]),
        gram=_gram(np.array(means), spectrum, law, even),
        means=np.array(means),
        inputs=values,
        scales=values ** (1 - 2 * p),
        within=values if apart else None,
        batches=(batch,),
        stages=(stage,),
    )


def _gram(means: FloatArray, spectrum: Spectrum, law: NeuronLaw, even: bool) -> FloatArray:
    """d⁻¹tr ΣΩΣΩ' to leading order: products of means, and what Σ and the batch add on the
    diagonal.
    """
    gram = np.outer(means, means)
    p, e, alpha, mean = spectrum.power, law.labels.moment, law.samples, spectrum.mean
    gram[0, 0] = mean(2)
    inner, mixed = mean(2 - 2 * p), mean(2 - p)
    gram[4, 4] = e(4) / alpha * inner**2 + e(2) ** 2 * mean(4 - 4 * p)
    gram[0, 4] = gram[4, 0] = e(2) * mean(3 - 2 * p)
    if even:
        own = 2 * e(2) / alpha * (mixed**2 + inner * mean(2))
        gram[5, 5] = own + 4 * e(1) ** 2 * mean(4 - 2 * p)
        gram[4, 5] = 2 * (e(3) / alpha * inner * mixed + e(1) * e(2) * mean(4 - 3 * p))
        gram[5, 4] = gram[4, 5]
        gram[0, 5] = gram[5, 0] = 2 * e(1) * mean(3 - p)
    return gram


def norms_of(law: NeuronLaw, spectrum: Spectrum, length: float, gaussian: bool) -> Norms:
    """Norms Σ^{1/2}w: their initial spread is there for weights on the sphere too, as Σ is not
    I.
    """
    plain, square = law.norms(True), spectrum.mean(2)
    bent = 4 * law.moved * law.slope.hermite[2] * law.kept  # of b in the part of ‖w‖² linear in w₀
    seen, noise = law.labels.signal**2, law.labels.moment(2) / law.samples
    power = 1 - 2 * spectrum.power
    own = seen * spectrum.along(power) + noise * spectrum.mean(power)  # ‖b‖²
    rest = np.maximum(plain.spread[0] - (bent * law.length) ** 2, 0.0)
    spread = square * rest + (square * bent) ** 2 * own
    loadings = np.zeros((2, len(spread), 3))
    loadings[0, :, 2] = square * law.kept * bent * length
    initial = 2 * (spectrum.mean(2) - (0.0 if gaussian else 1.0))
    stretch = law.moved * law.slope.hermite[2] * length
    return Norms(
        np.stack([spread, np.full_like(spread, max(initial, 0.0))]),
        loadings,
        growth=plain.growth,
        stretch=np.stack([0 * spread, stretch])[:, :, None],
    )


def _pull(
    law: NeuronLaw,
    spectrum: Spectrum,
    values: FloatArray,
    probabilities: FloatArray,
    rate: float,
) -> FloatArray:
    """What multiplies traces with I, Σ^{1−p}, Σ^{2−2p} and Σ^{1−2p} in the penalty of m."""
    linear = rate * law.slope.hermite[0] ** 2
    outer = np.outer(values, values)
    square = linear**2 * float(probabilities @ values**2)
    parts = (0.0, -2.0 * law.kept * linear, square, square / law.samples)
    return np.multiply.outer(np.array(parts), outer)
