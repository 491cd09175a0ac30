"""The spectra of `Run` for a problem, or for every cell of a grid."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Unpack

from giantsteps.answers import Spectrum
from giantsteps.problem import Grid, Problem
from giantsteps.simulation import _risk, _spectrum
from giantsteps.simulation._answers import SimulatedSpectrum, lazily
from giantsteps.simulation._options import RunOptions, question
from giantsteps.simulation._risk import Kind
from giantsteps.simulation._run import Run


@question
def weights(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 4,
    bulk: bool = True,
    **options: Unpack[RunOptions],
) -> Spectrum:
    """Singular values of the weights after the steps: ``run(...).weights(top)``.

    Parameters
    ----------
    problem : Problem or Grid
        The readout, if any, plays no part.
    top : int
        Number of the largest that are returned as ``spikes``, with overlaps: ``teacher`` ⟨u, β*⟩²,
        ``gradient`` ⟨u, b⟩²/‖b‖² (with steps), ``second_layer`` ⟨v, a⟩²/‖a‖².
    bulk : bool
        Whether ``bulk``, the law of all min(d, N) values, is available; it is computed when first
        read.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    Spectrum
        The min(d, N) singular values; the largest with their overlaps.

    References
    ----------
    theory §2; ba2022.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> predicted, = theory.weights(problem, d=300).spikes
    >>> measured = weights(problem, d=300, seed=0, top=2).spikes[0]
    >>> round(predicted.value, 2), round(measured.value, 2)
    (2.24, 2.2)
    """
    return _spectra(problem, d, seed, "weights", top, bulk, options)


@question
def kernel(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 4,
    kind: Kind = "conjugate",
    bulk: bool = True,
    **options: Unpack[RunOptions],
) -> Spectrum:
    """Eigenvalues of the kernel of the readout's samples: ``run(...).kernel(top, kind=kind)``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout, whose samples are the rows.
    top : int
        Number of the largest that are returned as ``spikes``, with their overlap with the
        ``labels``, ⟨u, ỹ⟩²/‖ỹ‖².
    kind : {"conjugate", "tangent"}
        ΦΦᵀ with Φ = N^{-1/2}σ(X̃W), or (X̃X̃ᵀ/d) ⊙ N⁻¹σ'(X̃W)σ'(X̃W)ᵀ.
    bulk : bool
        As in `weights`; all n eigenvalues, those at zero included.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    Spectrum
        The n eigenvalues, and the overlaps of the largest with the labels.

    References
    ----------
    theory §3, §4; ba2022.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=10)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> predicted, = theory.kernel(problem, d=300).spikes
    >>> measured = kernel(problem, d=300, seed=0, top=2).spikes[0]
    >>> round(predicted.value, 1), round(measured.value, 1)
    (9.7, 9.7)
    """
    matrix = "kernel" if _risk.as_kind(kind) == "conjugate" else "tangent"
    return _spectra(problem, d, seed, matrix, top, bulk, options)


@question
def features(
    problem: Problem | Grid,
    d: int | None = None,
    seed: int = 0,
    *,
    top: int = 4,
    bulk: bool = True,
    **options: Unpack[RunOptions],
) -> Spectrum:
    """Singular values of the features after the steps: ``run(...).features(top)``.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout, whose samples are the rows.
    top : int
        Number of the largest that are returned as ``spikes``. Each has the ``degree`` k whose
        monomial its left vector is closest to, and the overlaps ``monomial``, with (X̃b)^∘k, and
        ``second_layer_power``, of its right vector with a^∘k; both orthogonal to those of lower
        degree; k runs over the Hermite coefficients c_k ≠ 0, k ≤ 4, of σ. b is the direction
        that the first step adds, whatever follows.
    bulk : bool
        As in `weights`; min(n, N) values.
    d, seed, device, dtype, test_samples, memory, inputs, data
        Of the run: see `Run`.

    Returns
    -------
    Spectrum
        The min(n, N) singular values; the largest with the monomial that they are closest to.

    References
    ----------
    theory §5d, §6; moniri2023.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import simulation
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=10)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> spike = features(problem, d=200, seed=0, top=2).spikes[0]
    >>> spike.degree, round(spike.overlap, 1)
    (1, 0.9)
    >>> eigenvalue = simulation.kernel(problem, d=200, seed=0, top=2).spikes[0].value
    >>> round(spike.value**2 / eigenvalue, 9)
    1.0
    """
    return _spectra(problem, d, seed, "features", top, bulk, options)


def _spectra(
    problem: Problem | Grid,
    d: int | None,
    seed: int,
    matrix: str,
    top: int,
    bulk: bool,
    options: RunOptions,
) -> Spectrum:
    if not isinstance(problem, Grid):
        return Run(problem, d, seed, **options).spectrum(matrix, top, bulk)

    def stacked(untrained: bool) -> Spectrum:
        cells = [
            _spectrum.complete(run.shortened(0) if untrained else run, matrix, top, bulk)
            for run in (Run(cell, d, seed, **options) for cell in problem)
        ]
        return Spectrum.stack(problem, cells)

    after = stacked(untrained=False)
    known = {field.name: getattr(after, field.name) for field in dataclasses.fields(after)}
    del known["initial"]
    return lazily(SimulatedSpectrum, known, initial=partial(stacked, untrained=True))
