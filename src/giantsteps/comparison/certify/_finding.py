"""One line of a certificate: a setting asked of theory and simulation at two sizes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from giantsteps.campaign import Cells, Store, mean_and_error
from giantsteps.comparison.certify._design import Setting
from giantsteps.errors import NotConverged
from giantsteps.types import FloatArray


@dataclass(frozen=True)
class Plan:
    """What is simulated for a setting: blocks of ``small`` networks with d₁ and one with d₂."""

    sizes: tuple[int, int]  # d₁ < d₂
    blocks: int
    small: int  # networks with d₁ per block
    #: Test points of a network; None: the expectation over all of them, where it can be had.
    points: int | None = None

    @property
    def networks(self) -> int:
        return self.blocks * (self.small + 1)


@dataclass(frozen=True, eq=False, kw_only=True)
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
    """

    setting: Setting
    plan: Plan
    theory: FloatArray  # (2,): at the two sizes
    residual: float = math.nan  # of the solver; 0 for closed forms
    #: The theory's own estimate of the relative error of its quadratures and linear systems, by a
    #: second resolution; NaN where it gives none.
    numerics: float = math.nan
    violated: tuple[str, ...] = ()  # assumptions of the theory that the setting does not satisfy
    #: What the theory raised, if it failed on a problem that it covers; nothing was compared.
    failure: str = ""
    #: (2, blocks): means over a block's networks, which no other setting has; NaN before they ran.
    simulated: FloatArray

    @property
    def pending(self) -> bool:
        """Whether networks are to be simulated for it."""
        return not self.failure and bool(np.isnan(self.simulated).all())

    @property
    def exact(self) -> bool:
        """Whether the theory claims to be exact here."""
        return not self.violated and not self.failure

    @cached_property
    def gaps(self) -> FloatArray:
        """simulation/theory − 1, of shape (2, blocks)."""
        gaps: FloatArray = self.simulated / self.theory[:, None] - 1
        return gaps

    @property
    def gap(self) -> float:
        """Mean relative gap at the larger size."""
        return float(self.gaps[1].mean())

    @property
    def resolution(self) -> float:
        """Three standard errors of that gap."""
        return 3 * float(mean_and_error(self.gaps[1])[1])


def predict(setting: Setting, plan: Plan, answers: Mapping[int, Any] | None = None) -> Finding:
    """Ask theory, and no network yet; ``answers`` are those that it gave already, by size."""
    family, known = setting.kind, answers or {}
    here: Any = {"setting": setting, "plan": plan, "simulated": np.full((2, plan.blocks), np.nan)}
    try:
        said = [known.get(d) or family.asked.predict(setting.problem, d) for d in plan.sizes]
    except (NotConverged, np.linalg.LinAlgError) as error:
        return Finding(
            **here, theory=np.full(2, np.nan), failure=f"{type(error).__name__}: {error}"
        )
    solution = getattr(said[1], "solution", None)
    return Finding(
        **here,
        theory=np.array([family.asked.number(answer, family.quantity) for answer in said]),
        residual=0.0 if solution is None else float(np.max(solution.residual)),
        numerics=math.nan if solution is None else float(np.max(solution.error)),
        violated=(family.slow,) if family.slow else getattr(said[1], "violated", ()),
    )


def networks(finding: Finding, device: str | None = None) -> list[list[Cells]]:
    """The networks of a setting: those with d₁, and those with d₂."""
    setting, plan, family = finding.setting, finding.plan, finding.setting.kind
    seeds = np.array(setting.seeds(plan.networks)).reshape(plan.blocks, -1)
    lower, upper = plan.sizes
    return [
        family.asked.cells(
            setting.problem, family.quantity, d, chosen.tolist(), plan.points, device
        )
        for d, chosen in ((lower, seeds[:, 1:].ravel()), (upper, seeds[:, 0]))
    ]


def measured(finding: Finding, store: Store) -> Finding:
    """The finding with what the networks in a store say."""
    family, blocks = finding.setting.kind, finding.plan.blocks
    means = [
        np.reshape(family.asked.measured(cells[-1], family.quantity, store), (blocks, -1)).mean(1)
        for cells in networks(finding)
    ]
    return replace(finding, simulated=np.stack(means))
