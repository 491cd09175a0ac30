"""``theory.kernel`` and ``theory.features``: spectra of the learned features at every rate."""

from __future__ import annotations

from giantsteps.answers import Spectrum
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer


def kernel(problem: Problem | Grid, d: int | None = None) -> Spectrum:
    r"""Eigenvalues of the conjugate kernel K = ΦΦᵀ (n × n): bulk, outliers, overlap with ỹ.

    .. math:: Φ = N^{-1/2} σ(\tilde X W),\qquad
              m(z) = -\Bigl(z - \int \frac{t\,dH(t)}{1 + Γ t m(z)}\Bigr)^{-1}

    ======  ==============================  =================================
    symbol  field of the problem            meaning
    ======  ==============================  =================================
    σ       ``activation``                  applied entrywise
    X̃       ``readout.samples``             n fresh inputs
    W       ``steps``                       the weights after the steps
    Γ       ``readout.samples``, ``width``  n/N
    H       ``activation``, ``width``       law of the eigenvalues of N Cov Φ
    ======  ==============================  =================================

    Parameters
    ----------
    problem : Problem or Grid
        With a readout, whose samples are the rows of X̃; its penalty plays no part.
    d : int, optional
        Input dimension. Without it the limit, for no step or exponent 0.

    Returns
    -------
    Spectrum
        The n eigenvalues with their atom at zero where n > N, the outliers with the squared
        cosine ``labels`` between eigenvector and ỹ, and ``initial``, the same before the steps.

    References
    ----------
    theory §3 for the limit, §5d for every rate at a given d; ba2022, wang2024.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.25,
    ...                      steps=[gs.Step(samples=4, rate=5)],
    ...                      readout=gs.Ridge(samples=1.5, penalty=0.1))
    >>> spectrum = kernel(problem)
    >>> [round(edge, 4) for edge in spectrum.bulk.support[-1]], spectrum.count
    ([0.0007, 3.1279], 1)
    """
    return answer("kernel", problem, d)


def features(problem: Problem | Grid, d: int | None = None) -> Spectrum:
    """Singular values of the features Φ = N^{-1/2} σ(X̃W): bulk and polynomial spikes.

    Parameters
    ----------
    problem : Problem or Grid
        With a readout, whose samples are the rows of X̃.
    d : int, optional
        Input dimension. Without it the limit, for no step or exponent 0.

    Returns
    -------
    Spectrum
        The min(n, N) singular values. Overlaps of a spike: ``monomial``, squared cosine of its
        left vector with the orthogonalised monomial (X̃b)^{∘k} of its ``degree`` k, and
        ``second_layer_power``, of its right vector with a^{∘k}. b is the direction that the
        first step adds, whatever follows. Values are
        the square roots of those of `kernel`.

    References
    ----------
    theory §5d, §6; moniri2023.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=4, rate=1, exponent=0.5)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> features(problem, d=1000).spikes[0].degree
    1
    """
    return answer("features", problem, d)
