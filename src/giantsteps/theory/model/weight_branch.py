"""The equations of the weights' bulk, in the half-plane and at real points outside it (§5b)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from giantsteps.theory.model.fewer_nodes import SEEN_FROM, weights_on_fewer_nodes
from giantsteps.theory.solver.continuation import Continuation
from giantsteps.theory.solver.fold import Linearised
from giantsteps.theory.solver.iterate import iterate
from giantsteps.theory.solver.weights import WeightEquations, WeightState
from giantsteps.theory.solver.work import Work
from giantsteps.types import Array, FloatArray

_ROUNDS, _WARM_UP = 200, 3
#: Plain rounds at the first point above the bulk.
_PLAIN = 3
#: Operations of a round beside those of its points, and those of a point beyond which a density is
#: taken on fewer nodes.
_ROUND, _MANY_NODES = 1.6e6, 1e5


class WeightBranch:
    """(H, 𝔤) and m(z) of the d eigenvalues of W Wᵀ.

    Parameters
    ----------
    equations : WeightEquations
    scale : float
        Mean eigenvalue.
    work : Work
        Counts the operations.
    """

    def __init__(self, equations: WeightEquations, scale: float, work: Work) -> None:
        self.equations, self.scale, self.work = equations, scale, work
        self._follow = Continuation(self._solve, scale, "the resolvent of the weights")

    def at(self, z: Array, h: Array, active: Array) -> WeightState:
        """A point of the equations."""
        self._spend(len(z), 0)
        return self.equations.at(z, h, active)

    def _spend(self, points: int, derived: int) -> None:
        """Count the operations at so many points, and of so many derivatives."""
        value, slope = self.equations.operations
        self.work.spend(_ROUND + points * value + derived * slope)

    @property
    def many_nodes(self) -> bool:
        """Whether a density is that of `of_density`."""
        return self.equations.operations[0] > _MANY_NODES

    @cached_property
    def of_density(self) -> WeightBranch:
        """The same on fewer nodes where they are many."""
        if not self.many_nodes:
            return self
        z = self.scale * SEEN_FROM
        point = self.at(z, *self.above(z))
        equations = weights_on_fewer_nodes(point.move(*point.newton()))
        return WeightBranch(equations, self.scale, self.work)

    def _solve(
        self, z: Array, start: tuple[Array, ...] | None, rounds: int | None
    ) -> tuple[tuple[Array, ...], Array]:
        """(H, 𝔤) and their residuals."""
        point, warm_up = self.equations.start(z), _WARM_UP
        if start is not None:
            point, warm_up = point.move(*(np.asarray(part, dtype=z.dtype) for part in start)), 0
        found = iterate(point, rounds or _ROUNDS, warm_up)
        self._spend(int((found.rounds + 1).sum()), found.derived)
        return found.parts, found.residual

    def above(self, z: Array, start: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """(H, 𝔤) at z in the upper half-plane, from states nearby if they are given."""
        return self._follow(z, start)

    def transform(self, state: tuple[Array, ...], z: Array) -> Array:
        """m(z)."""
        return np.asarray(-self.at(z, *state).dyson.traces[:, 0, 0, 0] / z)

    def far(self, x: FloatArray) -> tuple[Array, ...]:
        """(H, 𝔤) at x far above the bulk, where every start leads to the solution."""
        point = self.equations.start(x)
        for _ in range(_PLAIN):
            point = point.move(*point.image, point.dyson.image)
        return point.parts

    def linearised(self, state: tuple[Array, ...], x: Array) -> Linearised:
        """The equations around real x."""
        point = self.at(x, *state)

        def step(by: WeightState | None) -> tuple[Array, ...]:
            self._spend(0, 0 if by else len(x))
            return tuple(new - old for new, old in zip(point.newton(by), state))

        return Linearised(point.gap, step, point.tangent, point)

    def parameter(self, state: tuple[Array, ...]) -> Array:
        """Σ π_tH_t, which grows with x outside the bulk."""
        return np.asarray(state[0] @ self.equations.probabilities)

    def regular(self, state: tuple[Array, ...], x: FloatArray) -> Array:
        """Whether −H > 0 and the samples of the steps are as they are at x = ∞."""
        return np.all(state[0] < 0, axis=1) & self.at(x, *state).dyson.regular
