"""Spectra of the equivalent model: kernel, features and weights."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Solution, Spectrum, Spike
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.gaussian import coordinate_rule, hermite_coefficients, moments
from giantsteps.laws import SingularValues
from giantsteps.problem import Ridge
from giantsteps.theory._kernel_spectrum import KernelSpectrum, Outlier
from giantsteps.theory._spiked_features import SpikedFeatures
from giantsteps.theory._weight_spectrum import WeightSpectrum

__all__ = ["features_of_model", "kernel_of_model", "weights_of_model"]

#: Highest monomial that a spike of the features is compared with.
_MONOMIALS = 4
_FEW = 4


def kernel_of_model(model: SpikedFeatures, samples: float) -> Spectrum:
    """Eigenvalues of K = ΦΦᵀ (n × n); overlaps with the labels."""
    spectrum = _kernel(model, samples)
    moment = moments(model.link).second_moment + model.noise_variance
    return Spectrum(
        **model.stated(),
        solution=Solution(status="converged"),
        matrix="kernel",
        bulk=spectrum.bulk,
        spikes=tuple(
            Spike(value=found.value, overlaps={"labels": found.labels / moment})
            for found in spectrum.outliers
        ),
    )


def features_of_model(model: SpikedFeatures, samples: float) -> Spectrum:
    """Singular values of Φ; overlaps with monomials of the spike and powers of the second layer.

    The degree of a spike is that of the orthogonalised monomial closest to its left vector.
    """
    spectrum = _kernel(model, samples)
    used = model.coarse or model
    return Spectrum(
        **model.stated(),
        solution=Solution(status="converged"),
        matrix="features",
        bulk=SingularValues(spectrum.bulk, kept=min(1.0, model.width / samples)),
        spikes=tuple(_feature_spike(used, spectrum, found) for found in spectrum.outliers),
    )


def weights_of_model(model: SpikedFeatures) -> Spectrum:
    """Singular values of W; overlaps with the teacher, the first spike and the second layer."""
    _finite(model, "weights", "√N")
    used = model.coarse or model
    spectrum = WeightSpectrum(
        width=model.width,
        neurons=model.neurons,
        probabilities=used.probabilities,
        spikes=used.spikes,
        bulk=used.bulk,
    )
    left = {
        "teacher": np.append(model.overlap, model.remainder),
        "gradient": np.eye(model.rank + 1)[0],
    }
    right = {} if used.second_layer is None else {"second_layer": used.second_layer}
    return Spectrum(
        **model.stated(),
        solution=Solution(status="converged"),
        matrix="weights",
        bulk=SingularValues(spectrum.law, kept=min(1.0, model.width)),
        spikes=tuple(
            Spike(value=math.sqrt(value), overlaps=spectrum.overlaps(value, left, right))
            for value in spectrum.outliers
        ),
    )


def _kernel(model: SpikedFeatures, samples: float) -> KernelSpectrum:
    if not (samples > 0 and math.isfinite(samples)):
        raise InvalidProblem("samples", samples, "a positive finite number (n/d)")
    _finite(model, "features", "N")
    if model.lengths is not None:
        raise NotCovered(
            "the spectrum of the features of neurons whose lengths vary",
            "the equations of theory §5e are those of the readout",
            'the same model with lengths=None, or theory.equivalent with lengths="equal"',
        )
    used = model.coarse or model
    # With few types the tail of the samples along the spike is worth resolving.
    fine = model.rank == 1 and len(used.spikes) <= _FEW
    rule = coordinate_rule(1, reach=8.5, nodes=200) if fine else None
    return KernelSpectrum(used.system([Ridge(samples=samples, penalty=1.0)], rule=rule))


def _finite(model: SpikedFeatures, matrix: str, growth: str) -> None:
    if math.isinf(model.neurons):
        raise NotCovered(
            f"the spectrum of the {matrix} in the limit",
            f"its spikes grow like {growth}",
            "a finite number of neurons (give d)",
        )


def _feature_spike(model: SpikedFeatures, spectrum: KernelSpectrum, found: Outlier) -> Spike:
    value = math.sqrt(found.value)
    sizes = np.abs(hermite_coefficients(model.activation, _MONOMIALS))
    present = np.flatnonzero(sizes > 1e-10 * moments(model.activation).norm)
    if not np.any(model.spikes):
        present = present[present == 0]
    if not len(present):
        return Spike(value=value)
    along, weights = spectrum.system.coordinates[:, 0], spectrum.system.weights
    left = _components(along, weights, weights * found.pull, present)
    best = int(np.argmax(left))
    overlaps = {"monomial": float(left[best])}
    if model.second_layer is not None:
        pull = found.types / math.sqrt(model.neurons)
        right = _components(model.second_layer, model.probabilities, pull, present)
        overlaps["second_layer_power"] = float(right[best])
    return Spike(value=value, overlaps=overlaps, degree=int(present[best]))


def _components(x: NDArray, weights: NDArray, pull: NDArray, degrees: NDArray) -> NDArray:
    """(Σ pull·e_k)² on the monomials x^k, orthogonalised in this order; 0 if there is none new."""
    basis: list[NDArray] = []
    components = np.zeros(len(degrees))
    for number, degree in enumerate(degrees):
        rest = x ** int(degree)
        rest = rest / math.sqrt(weights @ rest**2)
        for other in basis:
            rest = rest - (weights @ (rest * other)) * other
        norm = math.sqrt(max(float(weights @ rest**2), 0.0))
        if norm > 1e-5:
            basis.append(rest / norm)
            components[number] = float(pull @ basis[-1]) ** 2
    return components
