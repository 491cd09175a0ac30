"""``theory.weights``: singular values of the weights after the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from giantsteps.answers import Solution, Spectrum, Spike
from giantsteps.laws import Law, MarchenkoPastur, outlier
from giantsteps.problem import Grid, Problem

from giantsteps.theory.scope.dispatch import Solver, answer
from giantsteps.theory.equivalent.build import equivalent
from giantsteps.theory.steps.first import first_step
from giantsteps.theory.steps.several.small import first_batch_alignment, summed
from giantsteps.theory.scope.table import Rule
from giantsteps.theory.steps.several.weights import several_steps_weights

__all__ = ["weights"]


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
        infinity with a finite overlap ρ².

    Returns
    -------
    Spectrum
        min(d, N) singular values. Overlaps of a spike are squared cosines of its left singular
        vector with the ``teacher`` β* and with the ``gradient`` direction b, and of its right one
        with the ``second_layer``.

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
    return answer("weights", problem, d, _SOLVERS)


def _rank_one(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Spectrum]:
    """No step, or one step whose strength θ₁ (finite or infinite) meets the bulk of W₀."""
    return [_spectrum(problem, rule, d) for problem, rule in zip(problems, rules, strict=True)]


def _spectrum(problem: Problem, rule: Rule, d: int | None) -> Spectrum:
    sized = problem if d is None else problem.realised(d)
    spikes = _spikes(sized, None if d is None else problem.at(d).neurons) if problem.steps else ()
    return _stated(problem, rule, d, MarchenkoPastur(sized.width).singular_values(), spikes)


def _stated(
    problem: Problem, rule: Rule, d: int | None, bulk: Law, spikes: tuple[Spike, ...]
) -> Spectrum:
    return Spectrum(
        **rule.stated(problem, d),
        solution=Solution(status="closed form"),
        matrix="weights",
        bulk=bulk,
        spikes=spikes,
    )


def _spikes(problem: Problem, neurons: int | None) -> tuple[Spike, ...]:
    step = first_step(problem, neurons)
    value, left, right, present = outlier(step.strength, problem.width)
    overlaps = {"teacher": step.alignment * left, "gradient": left, "second_layer": right}
    return (Spike(value=value, overlaps=overlaps),) if present else ()


def _summed(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Spectrum]:
    """Many small steps, whose limit is that of one (theory §7)."""
    return [
        _stated(
            problem,
            rule,
            d,
            MarchenkoPastur(problem.width).singular_values(),
            _seen_from_first(problem, _spikes(summed(problem), None)),
        )
        for problem, rule in zip(problems, rules, strict=True)
    ]


def _seen_from_first(problem: Problem, spikes: Sequence[Spike]) -> tuple[Spike, ...]:
    """The spikes of all steps together, with the ``gradient`` of the first of them."""
    cosine = first_batch_alignment(problem)
    return tuple(
        Spike(
            value=spike.value,
            overlaps={**spike.overlaps, "gradient": cosine * spike.overlaps["gradient"]},
        )
        for spike in spikes
    )


def _two_steps(problems: Sequence[Problem], rules: Sequence[Rule], d: int | None) -> list[Spectrum]:
    """Two steps of any rates, or more with exponent 0 (theory §7)."""
    return [
        _stated(problem, rule, d, *several_steps_weights(problem, d))
        for problem, rule in zip(problems, rules, strict=True)
    ]


def _equivalent(
    problems: Sequence[Problem], rules: Sequence[Rule], d: int | None
) -> list[Spectrum]:
    """One step of any rate at a size, with the bulk that it deforms (theory §2, §5b)."""
    found = [equivalent(problem, d).weights() for problem in problems]
    return [
        _stated(problem, rule, d, cast(Law, spectrum.bulk), spectrum.spikes)
        for problem, rule, spectrum in zip(problems, rules, found, strict=True)
    ]


_SOLVERS: Mapping[str, Solver[Spectrum]] = {
    "initial": _rank_one,
    "small step": _rank_one,
    "infinite strength": _rank_one,
    "summed": _summed,
    "two steps": _two_steps,
    "equivalent": _equivalent,
}
