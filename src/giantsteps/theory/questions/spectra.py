"""``theory.kernel`` and ``theory.features``: spectra of the learned features at every rate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from giantsteps.answers import Spectrum
from giantsteps.problem import Grid, Problem

from giantsteps.theory.scope.dispatch import Solver, answer
from giantsteps.theory.equivalent.build import equivalent
from giantsteps.theory.equivalent.kernel_small import features_small_step, kernel_small_step
from giantsteps.theory.scope.table import Rule
from giantsteps.theory.equivalent.model import SpikedFeatures

__all__ = ["features", "kernel"]


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
    theory §3 for no step and exponent 0, §5d for every other rate; ba2022, wang2024.

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
    return answer("kernel", problem, d, _KERNEL)


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
        ``second_layer_power``, of its right vector with a^{∘k}. Values are the square roots of
        those of `kernel`.

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
    return answer("features", problem, d, _FEATURES)


def _small_step(spectrum: Callable[[Problem, int | None], Spectrum]) -> Solver[Spectrum]:
    def solve(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Spectrum]:
        return [spectrum(problem, d) for problem in problems]

    return solve


def _equivalent(
    spectrum: Callable[[SpikedFeatures, float], Spectrum],
    before: Callable[[Problem, int | None], Spectrum],
) -> Solver[Spectrum]:
    def solve(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Spectrum]:
        return [one(problem, rule, d) for problem, rule in zip(problems, rules, strict=True)]

    def one(problem: Problem, rule: Rule, d: int | None) -> Spectrum:
        sized = problem if d is None else problem.realised(d)
        found = spectrum(equivalent(problem, d), sized.require_readout().samples)
        return replace(
            found,
            **rule.stated(problem, d),
            initial=before(problem.untrained(), d),
        )

    return solve


_KERNEL: Mapping[str, Solver[Spectrum]] = {
    "small step": _small_step(kernel_small_step),
    "equivalent": _equivalent(SpikedFeatures.kernel, kernel_small_step),
    "two steps": _equivalent(SpikedFeatures.kernel, kernel_small_step),
}
_FEATURES: Mapping[str, Solver[Spectrum]] = {
    "small step": _small_step(features_small_step),
    "equivalent": _equivalent(SpikedFeatures.features, features_small_step),
    "two steps": _equivalent(SpikedFeatures.features, features_small_step),
}
