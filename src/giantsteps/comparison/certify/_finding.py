"""One line of a certificate: a setting asked of theory and simulation at several sizes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from giantsteps import simulation, theory
from giantsteps.comparison._quantities import Quantity
from giantsteps.comparison.certify._design import Setting
from giantsteps.errors import NotConverged
from giantsteps.gaussian import Rule, coordinate_rule
from giantsteps.problem import Problem
from giantsteps.theory import SpikedFeatures

__all__ = ["Finding", "examine"]

Array = NDArray[np.float64]

#: Options of the simulation for each question.
_OPTIONS: dict[str, dict[str, Any]] = {
    "risk": {"test_samples": "exact", "degrees": 1},
    "weights": {"top": 1, "bulk": False},
    "kernel": {"top": 1, "bulk": False},
    "gradient": {},
}


@dataclass(frozen=True, eq=False)
class Finding:
    r"""What theory and simulation say of one setting.

    .. math:: x_i = r^p\,g_i(d_2) - g_i(d_1),\qquad g_i(d) = \text{simulation}_i - \text{theory},
              \quad r = d_2/d_1

    has mean zero if the gap closes as d^{-p}; over the seeds i, t = x̄/se is Student's.

    ======  =========================  ==========================================================
    symbol  attribute                  meaning
    ======  =========================  ==========================================================
    g_i     ``simulated``, ``theory``  gap of seed i
    d₁, d₂  ``sizes``                  input dimensions
    p                                  power with which the gap closes, fitted once for a `Group`
    ======  =========================  ==========================================================

    Attributes
    ----------
    setting : Setting
        What was asked.
    sizes : tuple of int
        d₁ < d₂.
    theory : ndarray of shape (2,)
        Its answer at the two sizes.
    simulated : ndarray of shape (2, seeds)
        A block of seeds that no other setting has.
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
    theory §0.

    Examples
    --------
    >>> from giantsteps.comparison.certify import design
    >>> setting = next(design(1, sizes=(20, 40)))
    >>> found = examine(setting, sizes=(20, 40), seeds=3)
    >>> isinstance(found, Finding), found.exact, found.gaps.shape, 0 < found.uniform(1.0) < 1
    (True, True, (2, 3), True)
    """

    setting: Setting
    sizes: tuple[int, ...]
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
        """(simulation − theory)/|theory at the largest size|, of shape (2, seeds)."""
        scale = abs(float(self.theory[-1]))
        gaps: Array = (self.simulated - self.theory[:, None]) / scale
        return gaps

    @property
    def gap(self) -> float:
        """Mean relative gap at the largest size."""
        return float(self.gaps[-1].mean())

    @property
    def resolution(self) -> float:
        """Three standard errors of that gap."""
        return 3 * self._error(self.gaps[-1])

    def _error(self, values: Array) -> float:
        return float(values.std(ddof=1) / math.sqrt(len(values)))

    def t(self, power: float) -> float:
        """Student t of the hypothesis that the gap closes as d^{-power}."""
        ratio = self.sizes[-1] / self.sizes[0]
        contrast = ratio**power * self.gaps[-1] - self.gaps[0]
        return float(contrast.mean() / self._error(contrast))

    def uniform(self, power: float) -> float:
        """The Student cdf of t: uniform on [0, 1] if the theory holds."""
        return float(stats.t.cdf(self.t(power), self.simulated.shape[1] - 1))


def examine(setting: Setting, sizes: Sequence[int], seeds: int) -> Finding:
    """Ask theory and simulation about a setting.

    Parameters
    ----------
    setting : Setting
        What is asked.
    sizes : sequence of int
        Two input dimensions.
    seeds : int
        Networks at each of them.

    Examples
    --------
    >>> from giantsteps.comparison.certify import design
    >>> setting = next(design(1, sizes=(20, 40)))
    >>> examine(setting, sizes=(20, 40), seeds=3).simulated.shape
    (2, 3)
    """
    quantity = Quantity(setting.quantity)
    try:
        answers = [getattr(theory, setting.question)(setting.problem, d=d) for d in sizes]
        expected = np.array([float(quantity.read(answer)) for answer in answers])
        quadrature = _quadrature(setting, sizes[-1])
    except (NotConverged, np.linalg.LinAlgError) as error:
        nothing = np.full((len(sizes), seeds), np.nan)
        text = f"{type(error).__name__}: {error}"
        return Finding(setting, tuple(sizes), nothing[:, 0], nothing, np.nan, np.nan, (), text)
    ask = getattr(simulation, setting.question)
    first = setting.number * seeds
    simulated = [
        [
            float(quantity.read(ask(setting.problem, d, seed, **_OPTIONS[setting.question])))
            for seed in range(first, first + seeds)
        ]
        for d in sizes
    ]
    last = answers[-1]
    return Finding(
        setting=setting,
        sizes=tuple(sizes),
        theory=expected,
        simulated=np.array(simulated),
        residual=0.0 if last.solution is None else float(np.max(last.solution.residual)),
        quadrature=quadrature,
        violated=last.violated,
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
    problem: Problem = setting.problem
    if setting.question != "risk" or not problem.steps:
        return math.nan
    model = theory.equivalent(problem, d)
    fields = {f.name: getattr(model, f.name) for f in dataclasses.fields(model)}
    readout = problem.realised(d).require_readout()
    once, twice = model.risk(readout).test, _Doubled(**fields).risk(readout).test
    return abs(float(twice) / float(once) - 1)
