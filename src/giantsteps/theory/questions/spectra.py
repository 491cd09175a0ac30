"""``theory.weights``, ``theory.kernel``, ``theory.features``: spectra after the steps."""

from __future__ import annotations

from giantsteps.answers import Spectrum
from giantsteps.problem import Grid, Problem
from giantsteps.theory.scope.dispatch import answer


def weights(problem: Problem | Grid, d: int | None = None) -> Spectrum:
    r"""Singular values of W after the steps: the bulk of W₀ and the spike of the gradient.

    .. math::
        s_1^2 \to \frac{(1+θ_1^2)(β+θ_1^2)}{θ_1^2},\qquad
        ⟨u_1, β^*⟩^2 \to ρ^2\Bigl(1 - \frac{β+θ_1^2}{θ_1^2(θ_1^2+1)}\Bigr)
        \qquad\text{if } θ_1 > β^{1/4}

    ======  ===============================  =============================================
    symbol  field of the problem             meaning
    ======  ===============================  =============================================
    β       ``width``                        N/d
    η       ``steps.0.rate``, ``.exponent``  rate · N^exponent
    μ₁      ``activation``                   E zσ(z)
    b                                        direction of the step, ‖b‖² = μ₁*² + E y₀²/α₀
    ρ                                        μ₁*/‖b‖, cosine between step and teacher
    θ₁                                       η|μ₁|‖b‖(E A²)^½, strength of the spike
    ======  ===============================  =============================================

    Parameters
    ----------
    problem : Problem or Grid
        The readout, if any, plays no part.
    d : int, optional
        Input dimension; without it the limit, in which a positive exponent gives a spike at
        infinity with a finite overlap ρ². With it the bulk is the deformed one, and the initial
        output of the network counts, which moves the outlier of a small step by O(d^{-1/2}).

    Returns
    -------
    Spectrum
        min(d, N) singular values. Overlaps of a spike are squared cosines of its left singular
        vector with the ``teacher`` β* and with the ``gradient`` direction b, and of its right one
        with the ``second_layer``; for a teacher of several directions also with each of them,
        ``x0``, ``x1``, …, by the equivalent model.

    Notes
    -----
    After several steps there is one outlier for each direction of the field that is strong enough,
    with the ``degree`` p of the power A^p that its right vector is closest to; ``gradient`` is then
    the direction of the first step.

    References
    ----------
    theory §1, §2; ba2022. Several steps: theory §7; moniri2026.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="tanh", noise_variance=0.1, width=1.25,
    ...                      steps=[gs.Step(samples=3, rate=3)])
    >>> spike, = weights(problem).spikes
    >>> round(spike.value, 6), round(spike.overlap, 6)
    (2.171984, 0.261306)
    """
    return answer("weights", problem, d)


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
