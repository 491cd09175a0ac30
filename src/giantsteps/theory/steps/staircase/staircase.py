"""``theory.staircase``: how many polynomial spikes a step grows, and how large (theory §6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.answers import bibtex
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.gaussian import hermite_coefficients
from giantsteps.problem import Problem
from giantsteps.theory.steps.first import first_step, link_of
from giantsteps.theory.steps.kinds import Kind, kind_of, staircase_level
from giantsteps.theory.steps.staircase.degrees import nonzero, spike_degrees
from giantsteps.theory.steps.staircase.risk import lengthening_of, regressors


@dataclass(frozen=True, kw_only=True)
class StaircaseSpike:
    """One polynomial spike of the features: the singular vectors are p_k(X̃b) and A^{∘k}.

    Attributes
    ----------
    degree : int
        k; 0 is the constant of an activation with a mean.
    coefficient : float
        c_k of the activation.
    exponent : float
        The singular value of Φ grows as N^exponent: 1/2 − k(1/2 − e).
    """

    degree: int
    coefficient: float
    exponent: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Staircase:
    r"""Where a step stands on the staircase, in the limit (theory §6).

    ======  ==================  ==================================================================
    symbol  attribute           meaning
    ======  ==================  ==================================================================
    \       ``problem``         what was asked
    e       ``exponent``        of the learning rate, η = rate · N^e
    ℓ       ``level``           powers of the spike coordinate that are large enough
    \       ``interval``        (ℓ−1)/(2ℓ), ℓ/(2ℓ+2): e stands at its left end or inside
    \       ``boundary``        whether e is the left end, the threshold of degree ℓ
    \       ``spikes``          those that diverge, largest first
    \       ``marginal``        on a boundary, the spike that stays bounded there and diverges above
    \       ``missing``         degrees up to ℓ without a spike of their own, each with the reason
    \       ``learnable``       degrees of the teacher that the diverging spikes can fit, in part
                                or in full: He_j with c*_j ≠ 0 that occurs in some p_k
    ρ²      ``alignment``       of the spike direction with the teacher
    κ₀      ``lengthening``     noise of the gradient that enters p_k
    \       ``references``      keys of the bibliography
    ======  ==================  ==================================================================

    The errors have one limit at this exponent unless there is a ``marginal`` spike; then they
    have a limit on either side, that of the degrees ``below`` and that of the degrees ``above``.
    """

    problem: Problem
    exponent: float
    level: int
    interval: tuple[float, float]
    boundary: bool
    spikes: tuple[StaircaseSpike, ...]
    marginal: StaircaseSpike | None
    missing: dict[int, str]
    learnable: tuple[int, ...]
    alignment: float
    lengthening: float
    references: tuple[str, ...] = ("moniri2023",)

    @property
    def below(self) -> tuple[int, ...]:
        """Degrees of the spikes just below this exponent."""
        return tuple(spike.degree for spike in self.spikes)

    @property
    def above(self) -> tuple[int, ...]:
        """Degrees of the spikes just above this exponent."""
        return self.below if self.marginal is None else (*self.below, self.marginal.degree)

    @property
    def citation(self) -> str:
        """BibTeX of the papers behind the answer."""
        return bibtex(self.references)

    def __repr__(self) -> str:
        lower, upper = self.interval
        where = "at the left end of" if self.boundary else "in"
        lines = [f"exponent {self.exponent:g}, level {self.level}: {where} ({lower:g}, {upper:g})"]
        for spike in (*self.spikes, *([self.marginal] if self.marginal else [])):
            state = "bounded, diverges above" if spike is self.marginal else "diverges"
            lines.append(f"  degree {spike.degree}: N^{spike.exponent:.4g}, {state}")
        lines += [f"  degree {degree}: none, {why}" for degree, why in self.missing.items()]
        degrees = ", ".join(map(str, self.learnable)) or "none"
        lines.append(f"  degrees of the teacher within reach: {degrees}")
        return "\n".join(lines)


def staircase(problem: Problem) -> Staircase:
    r"""The polynomial spikes of the features after one step with η ≍ N^e, 0 ≤ e < 1/2.

    .. math:: Φ \approx Φ_0 + N^{-1/2} \sum_k c_k\, (η̃μ_1\|b\|)^k\, p_k(\tilde X \hat b)\,
              (A^{∘k})^⊤,\qquad \text{term } k \sim N^{1/2 - k(1/2 - e)}

    Term k diverges if e > (k−1)/(2k). It has its own spike if c_k ≠ 0 and A^{∘k} is independent of
    the lower powers that have one (k = 0 included where c₀ ≠ 0): every power for a gaussian second
    layer, only the first for a constant one, and at most as many as A has values.

    =======  ===============================  =================================================
    symbol   field of the problem             meaning
    =======  ===============================  =================================================
    c_k, μ₁  ``activation``                   Hermite coefficients, μ₁ = c₁
    η̃        ``steps.0.rate``, ``.exponent``  η/√N
    b, b̂                                      direction of the step, and the same of length one
    A        ``init.second_layer``            values of the neurons
    Φ₀                                        features before the step
    p_k                                       polynomial of degree k, theory §6
    =======  ===============================  =================================================

    Parameters
    ----------
    problem : Problem
        With one step of exponent below 1/2.

    Returns
    -------
    Staircase

    Raises
    ------
    NotCovered
        Without a step, with several, or at exponent 1/2, where all powers have one size.

    Notes
    -----
    For the outliers at finite size ask ``theory.features``.

    References
    ----------
    theory §6; moniri2023.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.3)])
    >>> answer = staircase(problem)
    >>> answer.level, [spike.degree for spike in answer.spikes], list(answer.missing)
    (2, [1], [2])
    """
    _require_one_step(problem)
    exponent = problem.steps[0].exponent
    level, boundary = staircase_level(exponent)
    degrees = spike_degrees(problem, level)
    own = [degree for degree, lacks in degrees.items() if lacks is None]
    coefficients = hermite_coefficients(problem.activation, level)
    spikes = [
        StaircaseSpike(
            degree=degree,
            coefficient=float(coefficients[degree]),
            exponent=0.0 if boundary and degree == level else 0.5 - degree * (0.5 - exponent),
        )
        for degree in own
    ]
    marginal = spikes.pop() if boundary and degrees[level] is None else None
    return Staircase(
        problem=problem,
        exponent=exponent,
        level=level,
        interval=((level - 1) / (2 * level), level / (2 * level + 2)),
        boundary=boundary,
        spikes=tuple(spikes),
        marginal=marginal,
        missing={k: lacks for k, lacks in degrees.items() if k and lacks is not None},
        learnable=_learnable(problem, [spike.degree for spike in spikes]),
        alignment=first_step(problem).alignment,
        lengthening=lengthening_of(problem),
    )


def _learnable(problem: Problem, degrees: list[int]) -> tuple[int, ...]:
    """Degrees j ≥ 1 of the teacher that occur in a regressor, if the spike sees the teacher."""
    size = max((1, *degrees)) + 1
    reached = np.abs(regressors(degrees, 0.0, size)).max(axis=1, initial=0.0) > 0
    wanted = nonzero(link_of(problem), size - 1)
    return tuple(j for j in range(1, size) if reached[j] and wanted[j]) if wanted[1] else ()


def _require_one_step(problem: Problem) -> None:
    if not isinstance(problem, Problem):
        raise InvalidProblem("problem", problem, "a single Problem: a Grid has one stair per cell")
    kind = kind_of(problem)
    covered = "one step with 0 ≤ exponent < 1/2 and a teacher of one direction"
    if len(problem.steps) != 1:
        raise NotCovered(f"theory.staircase for {kind.value}", "it needs one step", covered)
    if kind is Kind.LARGE:
        raise NotCovered(
            f"theory.staircase for {kind.value}", "all powers have one size there", covered
        )
    if problem.teacher.rank != 1:
        raise NotCovered(
            f"theory.staircase for a teacher of rank {problem.teacher.rank}",
            "the step moves along several directions",
            covered,
        )
