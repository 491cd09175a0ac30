"""What a trained network and its readout look like: degrees of freedom, alignments."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.answers import DegreesOfFreedom
from giantsteps.errors import InvalidProblem
from giantsteps.simulation import _spectrum
from giantsteps.simulation._risk import as_kind
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.simulation._networks import Networks
    from giantsteps.simulation._run import Run


def degrees_of_freedom(networks: Networks) -> list[DegreesOfFreedom]:
    r"""κ, df₁ and df₂ of the fitted readout of each network, from the spectrum of its kernel.

    With e_i the n eigenvalues of ΦΦᵀ and s = nλ/N,

    .. math:: 1 - df_1 = \frac sn \sum_i \frac{1}{e_i + s},\qquad κ = \frac{λ}{1 - df_1},\qquad
              1 - df_2 = \frac{\bigl(\sum_i (e_i+s)^{-1}\bigr)^2}{n \sum_i (e_i+s)^{-2}},

    which is 1/(dκ/dλ), as in the theory: no population covariance is needed. The sums are over
    eigenvalues, or traces of an inverse for a batch of networks.
    """
    penalty = networks.problem.require_readout().penalty
    gram, neurons = networks.gram, networks.sizes.neurons
    samples, zeros = gram.samples, max(gram.samples - neurons, 0)
    shift = samples * penalty / neurons
    if networks.lead:
        found = networks.backend.inverse_traces(gram.matrix, shift)
        sums = [(*pair, zeros) for pair in zip(*map(networks.each, found))]
    else:
        sums = [_sums(networks, shift, zeros)]
    answers = []
    for first, second, none in sums:
        if shift == 0 and none:
            kappa, df1, df2 = 0.0, 1 - none / samples, 1 - none / samples
        else:
            inverse = first + (none / shift if none else 0.0)
            squared = second + (none / shift**2 if none else 0.0)
            kappa = neurons / inverse
            df1, df2 = 1.0 - shift * inverse / samples, 1.0 - inverse**2 / (samples * squared)
        answers.append(
            DegreesOfFreedom(**networks.facts(), kappa=float(kappa), df1=float(df1), df2=float(df2))
        )
    return answers


def _sums(networks: Networks, shift: float, zeros: int) -> tuple[float, float, int]:
    """Σ 1/(e + s) and Σ 1/(e + s)² over the eigenvalues that are not zero, and the number of those
    that are, of one network."""
    backend = networks.backend
    values = np.maximum(backend.to_host(backend.eigvalsh(networks.gram.matrix)), 0.0)
    cutoff = values[-1] * values.size * np.finfo(np.float64).eps
    used = values[values + shift > cutoff] + shift
    return float(np.sum(1 / used)), float(np.sum(1 / used**2)), zeros + values.size - used.size


def kernel_alignment(run: Run, kind: str) -> float:
    """Kernel–target alignment ⟨K, ỹỹᵀ⟩/(‖K‖_F ‖ỹ‖²) on the readout's samples."""
    run.problem.require_readout()
    if as_kind(kind) == "tangent":
        kernel, labels = _spectrum.tangent(run)
        matrix = run.backend.to_host(run.backend.mirror(kernel))
        y = run.backend.to_host(labels)
        return float(y @ matrix @ y / (np.linalg.norm(matrix) * (y @ y)))
    gram = run.gram
    lower = run.backend.to_host(run.backend.xp.tril(gram.matrix))
    frobenius = math.sqrt(2.0 * np.sum(lower**2) - np.sum(np.diag(lower) ** 2))
    targets = run.backend.to_host(gram.targets)[:, 0]
    if gram.features is not None:  # Φᵀỹ
        targets = run.backend.to_host(gram.features).T.astype(np.float64) @ targets
    return float(targets @ targets / (frobenius * run.backend.to_host(gram.squares)[0, 0]))


def neuron_alignments(run: Run) -> FloatArray:
    """Cosine of every neuron w_j with β*: shape (N,), or (N, rank) for several directions."""
    teacher = run.network.teacher
    if teacher is None:
        raise InvalidProblem("data", run.data, "none for this question: it has no known teacher")
    weights = run.backend.to_host(run.backend.wide(run.trained.weights))
    beta = run.backend.to_host(run.backend.wide(teacher))
    cosines = weights.T @ beta
    cosines /= np.linalg.norm(weights, axis=0)[:, None] * np.linalg.norm(beta, axis=0)
    return cosines[:, 0] if cosines.shape[1] == 1 else cosines
