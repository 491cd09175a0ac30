"""``theory.weights``: singular values of the weights after the steps."""

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
