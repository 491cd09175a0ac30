"""One line of a certificate: a setting asked of theory and simulation at two sizes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps import theory
from giantsteps.comparison.certify._design import Setting
from giantsteps.errors import NotConverged
from giantsteps.gaussian import Rule, coordinate_rule
from giantsteps.theory import SpikedFeatures

__all__ = ["Finding", "Plan", "examine", "simulate"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plan:
    """What is simulated for a setting: blocks of ``small`` networks with d₁ and one with d₂.

    Attributes
    ----------
    sizes : tuple of int
        d₁ < d₂.
    blocks : int
    small : int
        Networks with d₁ a block.

    Examples
    --------
    >>> from giantsteps.comparison.certify import Plan
    >>> Plan(sizes=(100, 600), blocks=8, small=4).networks
    40
    """

    sizes: tuple[int, int]
    blocks: int
    small: int

    @property
    def networks(self) -> int:
        """How many there are."""
        return self.blocks * (self.small + 1)


@dataclass(frozen=True, eq=False)
class Finding:
    r"""What theory and simulation say of one setting.

    .. math:: x_i = r^p\,g_i(d_2) - g_i(d_1),\qquad
              g_i(d) = \frac{\text{simulation}_i(d)}{\text{theory}(d)} - 1,\quad r = d_2/d_1

    over the blocks i has mean zero if the relative gap closes as d^{-p}, so that t = x̄/se is
    Student's.

    ======  ==============  ===================================================
    symbol  attribute       meaning
    ======  ==============  ===================================================
    g       ``gaps``        relative gaps of each block at the two sizes
    d₁, d₂  ``plan.sizes``
    ======  ==============  ===================================================

    Attributes
    ----------
    setting : Setting
    plan : Plan
    theory : ndarray of shape (2,)
        At the two sizes.
    simulated : ndarray of shape (2, blocks)
        Means over a block's networks, which no other setting has.
    residual : float
        Of the solver; 0 for closed forms.
    quadrature : float
        Relative change when the nodes of the spike coordinates are doubled; NaN where there are
        none.
    violated : tuple of str
        Assumptions of the theory that the setting leaves.
    failure : str
        What the theory raised, if it failed on a problem that it covers; nothing was compared.

    References
    ----------
    theory §2 and §6, on finite sizes.

    Examples
    --------
    >>> from giantsteps.comparison.certify import Finding, Plan, design, examine
    >>> plan = Plan(sizes=(20, 80), blocks=3, small=2)
    >>> (setting,) = design(1, sizes=plan.sizes)
    >>> finding = examine(setting, plan)
    >>> isinstance(finding, Finding), finding.gaps.shape, finding.exact
    (True, (2, 3), True)
    """

    setting: Setting
    plan: Plan
    theory: Array
    simulated: Array
    residual: float
    quadrature: float
    violated: tuple[str, ...] = ()
    failure: str = ""

    @property
    def exact(self) -> bool:
        """Whether the theory claims to be exact here."""
        return not self.violated and not self.failure

    @cached_property
    def gaps(self) -> Array:
        """simulation/theory − 1, of shape (2, blocks)."""
        gaps: Array = self.simulated / self.theory[:, None] - 1
        return gaps

    @property
    def gap(self) -> float:
        """Mean relative gap at the larger size."""
        return float(self.gaps[1].mean())

    @property
    def resolution(self) -> float:
        """Three standard errors of that gap."""
        return 3 * float(self.gaps[1].std(ddof=1)) / math.sqrt(self.plan.blocks)


def simulate(setting: Setting, plan: Plan) -> Array:
    """The means of all blocks, of shape (2, blocks)."""
    question, quantity = setting.kind.asked, setting.kind.quantity

    def measured(d: int, seed: int) -> float:
        return question.number(question.measure(setting.problem, d, seed), quantity)

    lower, upper = plan.sizes
    seeds = np.array(setting.seeds(plan.blocks * (plan.small + 1))).reshape(plan.blocks, -1)
    means = [
        [np.mean([measured(lower, int(seed)) for seed in row[1:]]), measured(upper, int(row[0]))]
        for row in seeds
    ]
    return np.array(means).T


def examine(
    setting: Setting,
    plan: Plan,
    simulated: Array | None = None,
    answers: Mapping[int, Any] | None = None,
) -> Finding:
    """Ask theory, and simulation unless its numbers are there already.

    Parameters
    ----------
    setting : Setting
        What is asked.
    plan : Plan
        At which sizes, of how many networks.
    simulated : ndarray of shape (2, blocks), optional
        The numbers of the simulation.
    answers : mapping, optional
        What theory says, by size.

    Examples
    --------
    >>> import numpy as np
    >>> from giantsteps.comparison.certify import Plan, design, examine
    >>> plan = Plan(sizes=(20, 80), blocks=3, small=2)
    >>> (setting,) = design(1, sizes=plan.sizes)
    >>> finding = examine(setting, plan, np.ones((2, 3)))
    >>> bool(np.allclose(finding.gaps, 1 / finding.theory[:, None] - 1))
    True
    """
    family = setting.kind
    try:
        known = answers or {}
        said = [known.get(d) or family.asked.predict(setting.problem, d) for d in plan.sizes]
        quadrature = _quadrature(setting, plan.sizes[1])
    except (NotConverged, np.linalg.LinAlgError) as error:
        nothing = np.full((2, plan.blocks), np.nan)
        text = f"{type(error).__name__}: {error}"
        return Finding(setting, plan, nothing[:, 0], nothing, np.nan, np.nan, (), text)
    if simulated is None:
        simulated = simulate(setting, plan)
    solution = getattr(said[1], "solution", None)
    return Finding(
        setting=setting,
        plan=plan,
        theory=np.array([family.asked.number(answer, family.quantity) for answer in said]),
        simulated=simulated,
        residual=0.0 if solution is None else float(np.max(solution.residual)),
        quadrature=quadrature,
        violated=(family.slow,) if family.slow else getattr(said[1], "violated", ()),
    )


class _Doubled(SpikedFeatures):
    """The equivalent model with twice the nodes along each spike coordinate."""

    @property
    def coordinates(self) -> Rule:
        if self.rank > 1:
            return coordinate_rule(self.rank, nodes=62)
        return coordinate_rule(1, reach=8.5, nodes=160)


def _quadrature(setting: Setting, d: int) -> float:
    """Relative change of the test error when the nodes are doubled."""
    problem = setting.problem
    if setting.kind.question != "risk" or not problem.steps:
        return math.nan
    model = theory.equivalent(problem, d)
    fields = {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}
    readout = problem.realised(d).require_readout()
    once, twice = model.risk(readout).test, _Doubled(**fields).risk(readout).test
    return abs(float(twice) / float(once) - 1)
