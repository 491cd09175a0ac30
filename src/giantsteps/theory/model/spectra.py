"""Spectra of the equivalent model: kernel, features and weights (theory §2, §5d)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from giantsteps.answers import Solution, Spectrum, Spike
from giantsteps.errors import NotCovered
from giantsteps.gaussian import hermite_coefficients, hermite_rule, moments
from giantsteps.laws import SingularValues
from giantsteps.problem import Ridge
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.kernel_outlier import Outlier
from giantsteps.theory.model.kernel_spectrum import KernelSpectrum
from giantsteps.theory.model.resolved import BAD, Resolved, resolve
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.model.step_direction import StepDirection
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.model.weight_spectrum import WeightSpectrum
from giantsteps.theory.solver.work import MOST, Work
from giantsteps.types import Array, FloatArray

#: Highest monomial that a spike of the features is compared with.
_MONOMIALS = 4
_DEGREES = np.arange(1, _MONOMIALS + 1)
#: Types of less than so many neurons are left out of the weights' spectrum; in the limit of these.
_UNLIKELY, _MOST = 0.05, 1e9
#: Negative weights of a quadrature of samples beyond which the bulk is taken to be isotropic.
_SIGNED = 1e-2
#: Resolution of the spike coordinates.
_LEVEL = 0
#: In the limit every direction is infinitely strong: those weaker than this, relative to the
#: strongest, are not listed.
_LISTED = 1e-6
#: What to try where a spectrum takes too long.
_INSTEAD = (
    "simulation.{}, or a smaller problem: fewer steps, steps on fresh batches, a second layer of "
    "few values, smaller rates"
)
#: A direction of which less is left is one of the spikes.
_WHOLE = 1e-6


def kernel_of_model(model: SpikedFeatures, samples: float) -> Spectrum:
    """Eigenvalues of K = ΦΦᵀ (n × n); overlaps with the labels."""
    moment = teacher_moments(model.teacher).second_moment + model.noise_variance
    inverse = 1.0 / (samples * model.dimension)

    def spike(used: _Used, found: Outlier) -> Spike:
        system = used.spectrum.system
        weights, overlap = system.weights[0] * found.pull[0] ** 2, found.labels / moment
        # What the labels have beside this vector falls on it by chance: E[u²y²]/(n E y²).
        square = weights @ (system.target_square[0] / moment - 1.0) + 1.0
        overlap += (1.0 - overlap) * inverse * float(square)
        return Spike(value=found.value, overlaps={"labels": overlap})

    used, seen, solution = _of_features(model, samples, spike, lambda edge: edge)
    return Spectrum(
        **model.stated,
        solution=solution,
        matrix="kernel",
        bulk=used.spectrum.bulk,
        spikes=seen.spikes,
    )


def features_of_model(model: SpikedFeatures, samples: float) -> Spectrum:
    """Singular values of Φ; overlaps with monomials of ⟨x, b⟩ and powers of the second layer.

    b is what the first step added to W (the direction of its gradient, whose overlaps
    `weights_of_model` calls ``gradient``), whatever the steps after it add.
    The degree of a spike is that of the orthogonalised monomial closest to its left vector.
    """
    used, seen, solution = _of_features(model, samples, _feature_spike, math.sqrt)
    return Spectrum(
        **model.stated,
        solution=solution,
        matrix="features",
        bulk=SingularValues(used.spectrum.bulk, kept=min(1.0, model.width / samples)),
        spikes=seen.spikes,
    )


class _Used(NamedTuple):
    """A model at one resolution, and the spectrum of its kernel."""

    model: SpikedFeatures
    spectrum: KernelSpectrum


def _of_features(
    model: SpikedFeatures,
    samples: float,
    spike: Callable[[_Used, Outlier], Spike],
    scale: Callable[[float], float],
) -> tuple[_Used, Resolved, Solution]:
    """The spectrum of the kernel, resolved; ``scale`` makes of an eigenvalue what is shown."""
    if math.isinf(model.neurons):
        raise NotCovered(
            "the spectrum of the features in the limit",
            "its spikes grow like N",
            "a finite number of neurons (give d)",
        )
    draws, what = samples * model.dimension, f"the spectrum of the features of {model.describe()}"
    work = Work(what, _INSTEAD.format("kernel or simulation.features"), MOST)

    def at(more: int, coarser: _Used | None) -> _Used:
        used = _resolution(model, more)
        system = used.system([Ridge(samples=samples, penalty=1.0)], _LEVEL + more, draws=draws)
        return _Used(used, KernelSpectrum(system, coarser and coarser.spectrum, work))

    def seen(used: _Used) -> Resolved:
        bulk, outliers = used.spectrum.bulk, used.spectrum.outliers
        return Resolved(scale(bulk.edge), tuple(spike(used, found) for found in outliers))

    return resolve(what, at, seen, work)


def _resolution(model: SpikedFeatures, more: int) -> SpikedFeatures:
    """The model so many resolutions finer than spectra usually need, its bulks with edges."""
    if model.bounded is not None:
        return model.bounded(more)
    return model.at_level(USUAL - 1 + more) if more else model


def weights_of_model(model: SpikedFeatures) -> Spectrum:
    """Singular values of W; overlaps with the teacher, the first step and the second layer.

    In the limit (p = ∞) outliers are infinite, with finite overlaps. After two steps on one batch
    with heavy-tailed labels the bulk is taken to be isotropic.
    """
    if model.own_weights is not None:
        model = model.own_weights()
    if model.bulk.inputs is not None:
        raise NotCovered(
            "the singular values of W after several steps on inputs with a covariance",
            "the model has the weights Σ^{1/2}W",
            "risk, kernel and features, or simulation.weights",
        )

    def seen(used: _Weights) -> Resolved:
        edge = math.sqrt(used.spectrum.law.edge)
        if math.isinf(model.neurons):
            return Resolved(edge, _infinite(used.model))
        outliers = used.spectrum.outliers
        return Resolved(edge, tuple(_weight_spike(*used, value) for value in outliers))

    what = f"the spectrum of the weights of {model.describe()}"
    work = Work(what, _INSTEAD.format("weights"), MOST)
    # In the limit an edge of unbounded labels is that of so many draws, a number by agreement: its
    # error is stated, and does not take the outliers away.
    bad = math.inf if math.isinf(model.neurons) else BAD[1]
    used, resolved, solution = resolve(
        what, lambda more, _: _weights(model, more, work), seen, work, bad
    )
    return Spectrum(
        **model.stated,
        solution=solution,
        matrix="weights",
        bulk=SingularValues(used.spectrum.law, kept=min(1.0, model.width)),
        spikes=resolved.spikes,
    )


class _Weights(NamedTuple):
    """A model at one resolution, and the spectrum of its weights."""

    model: SpikedFeatures
    spectrum: WeightSpectrum


def _weights(model: SpikedFeatures, more: int, work: Work) -> _Weights:
    used = _resolution(model, more)
    # The nodes of a continuous second layer that is cut are not its types.
    law = None if model.problem is None else model.problem.init.second_layer
    if model.bounded is None or law is None or math.isfinite(law.distinct_nonzero):
        used = _likely(used)
    signed = any(-np.minimum(batch.weights, 0.0).sum() > _SIGNED for batch in used.bulk.batches)
    if model.bounded is None and signed:
        # The quadrature of a reused sample with heavy-tailed labels is no law of samples.
        used = replace(used, bulk=NeuronCovariance.isotropic(used.bulk.totals, used.leans.shape[1]))
    pull, excess = used.pull, None
    if pull is not None and model.first_direction is not None:
        common = model.first_direction().common * np.outer(used.spikes[:, 0], used.spikes[:, 0])
        pull = np.concatenate([pull[:1] + common, pull[1:]])
    if used.norms is not None and used.norms.stretch.any():
        excess = used.norms.of_leans()
    spectrum = WeightSpectrum(
        width=model.width,
        neurons=model.neurons,
        probabilities=used.probabilities,
        spikes=used.leans,
        bulk=used.bulk,
        pull=pull,
        beside=used.teacher.rank,
        work=work,
        excess=excess,
    )
    return _Weights(used, spectrum)


def _likely(model: SpikedFeatures) -> SpikedFeatures:
    """The model without types that no network of its width has a neuron of."""
    least = _UNLIKELY / min(model.neurons, _MOST)
    kept = model.probabilities > least
    if kept.all():
        return model
    probabilities = model.probabilities[kept] / model.probabilities[kept].sum()
    second = None if model.second_layer is None else model.second_layer[kept]
    return replace(
        model,
        probabilities=probabilities,
        spikes=model.spikes[kept],
        weak=None if model.weak is None else model.weak[kept],
        bulk=replace(model.bulk, coefficients=model.bulk.coefficients[kept], excess=None),
        second_layer=second,
        values_within=model.values_within
        and (model.values_within[0], model.values_within[1][kept]),
        norms=None,
        pull=None if model.pull is None else model.pull[:, kept][:, :, kept],
    )


def _weight_spike(model: SpikedFeatures, spectrum: WeightSpectrum, value: float) -> Spike:
    """An outlier of W; after several steps its degree is that of the closest polynomial of A."""
    left = model.directions_of_overlap()
    right: dict[str, FloatArray] = {}
    if model.second_layer is not None:
        right["second_layer"] = model.second_layer
        if _steps(model) > 1:
            basis = _monomials(model.second_layer, model.probabilities, _DEGREES)
            right |= {f"degree {degree}": values for degree, values in basis.items()}
    found = spectrum.overlaps(value, left, right)
    if "second_layer" in found:
        found["second_layer"] *= _explained(model)
    if model.by_chance is not None:
        found["teacher"] += model.by_chance() * found["gradient"]
    if model.first_direction is not None:
        traces = spectrum.traces(value)
        found["gradient"] = model.first_direction().squared_cosine(found["gradient"], *traces)
    degrees = {name: cosine for name, cosine in found.items() if name.startswith("degree ")}
    return Spike(
        value=math.sqrt(value),
        overlaps={
            name: min(max(cosine, 0.0), 1.0)
            for name, cosine in found.items()
            if name not in degrees
        },
        degree=int(max(degrees, key=degrees.__getitem__).split()[1]) if degrees else None,
    )


def _steps(model: SpikedFeatures) -> int:
    return 0 if model.problem is None else len(model.problem.steps)


def _explained(model: SpikedFeatures) -> float:
    """The share of E A² that is between the types."""
    if model.values_within is None:
        return 1.0
    values, joint = model.values_within
    means = joint @ values / model.probabilities
    return float(model.probabilities @ means**2 / (joint.sum(axis=0) @ values**2))


def _infinite(model: SpikedFeatures) -> tuple[Spike, ...]:
    """The outliers of infinitely many neurons: the eigenvectors of E[S Sᵀ] over the types."""
    strength, vectors = np.linalg.eigh(
        model.spikes.T @ (model.probabilities[:, None] * model.spikes)
    )
    found = []
    for value, vector in zip(strength[::-1], vectors.T[::-1]):
        if not value > _LISTED * strength[-1]:
            continue
        overlaps = {
            name: float(((np.atleast_2d(direction)[:, : model.rank] @ vector) ** 2).sum())
            for name, direction in model.directions_of_overlap().items()
        }
        degree = None
        if model.second_layer is not None:
            right = model.probabilities * (model.spikes @ vector) / math.sqrt(value)
            square = float(model.probabilities @ model.second_layer**2)
            cosine = float(right @ model.second_layer) ** 2 / square
            overlaps["second_layer"] = cosine * _explained(model)
            if _steps(model) > 1:
                basis = _monomials(model.second_layer, model.probabilities, _DEGREES)
                degree = max(basis, key=lambda k: abs(float(right @ basis[k])), default=None)
        found.append(Spike(value=math.inf, overlaps=overlaps, degree=degree))
    return tuple(found)


def _feature_spike(used: _Used, found: Outlier) -> Spike:
    model, spectrum = used
    value = math.sqrt(found.value)
    sizes = np.abs(hermite_coefficients(model.activation, _MONOMIALS))
    present = np.flatnonzero(sizes > 1e-10 * moments(model.activation).norm)
    if not np.any(model.spikes):
        present = present[present == 0]
    if not len(present):
        return Spike(value=value)
    left = _components(*_along_first(model, spectrum, found), present)
    best = int(np.argmax(left))
    overlaps = {"monomial": float(left[best])}
    if model.second_layer is not None:
        pull = found.types / math.sqrt(model.neurons)
        values, joint = model.joint_values
        right = _components(values, joint.sum(axis=0), pull / model.probabilities @ joint, present)
        overlaps["second_layer_power"] = float(right[best])
    return Spike(value=value, overlaps=overlaps, degree=int(present[best]))


def _along_first(
    model: SpikedFeatures, spectrum: KernelSpectrum, found: Outlier
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The coordinate along what the first step added to W at nodes, their weights, and these times
    the pull there.

    With the cosines ρ_j it is Σ ρ_j k_j + s z. What weak spikes w have of z counts to first order,
    E[w_j|z] = z ρ_j/s, and so do leans along the initial output; z is averaged over otherwise.
    """
    along, weights = spectrum.system.coordinates[0], spectrum.system.weights[0]
    count = model.rank + model.weak_count
    cosines = np.eye(1, count)[0]
    if model.step_directions is not None and _steps(model) > 1:
        cosines = model.step_directions[0, :count]
    first = StepDirection() if model.first_direction is None else model.first_direction()
    cosines = cosines / math.sqrt(1.0 + first.beside)
    strong, weak = cosines[: model.rank], cosines[model.rank :]
    left = math.sqrt(max(1.0 - float(strong @ strong), 0.0))
    if left < _WHOLE:
        return along @ strong, weights, weights * found.pull[0]
    beyond = hermite_rule(_MONOMIALS + 2)
    z = beyond.nodes[:, None]
    x = along @ strong + left * z
    weights = weights * beyond.weights[:, None]
    beside = (weak @ found.pull[1:]) / left
    if model.first_direction is not None:
        beside = beside + found.slope(first.leans(model.spikes[:, 0]), spectrum.system)
    return x.ravel(), weights.ravel(), (weights * (found.pull[0] + z * beside)).ravel()


def _components(x: FloatArray, weights: FloatArray, pull: FloatArray, degrees: Array) -> FloatArray:
    """(Σ pull·e_k)² on the monomials x^k, orthogonalised in this order; 0 if there is none new."""
    basis = _monomials(x, weights, degrees)
    return np.array([float(pull @ basis[int(k)]) ** 2 if int(k) in basis else 0.0 for k in degrees])


def _monomials(x: FloatArray, weights: FloatArray, degrees: Array) -> dict[int, FloatArray]:
    """The monomials x^k, orthonormalised in this order, without those that add nothing new."""
    basis: dict[int, FloatArray] = {}
    for degree in degrees.tolist():
        rest = x**degree
        size = math.sqrt(weights @ rest**2)
        if not size > 0:
            continue
        rest = rest / size
        for other in basis.values():
            rest = rest - (weights @ (rest * other)) * other
        norm = math.sqrt(max(float(weights @ rest**2), 0.0))
        if norm > 1e-5:
            basis[degree] = rest / norm
    return basis
