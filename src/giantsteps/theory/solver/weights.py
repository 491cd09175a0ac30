"""The equations of the singular values of W at a point, and their derivative (theory §5b)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.chain import dyson_at
from giantsteps.theory.solver.dyson import Directions, Dyson
from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import identity, product, solve
from giantsteps.types import Array, FloatArray

#: Factors of operations: of the equations of types, of nodes of samples, of the Dyson equation's
#: own unknowns.
_OF_TYPES, _OF_NODES, _OF_UNKNOWNS = 0.03, 3.5, 0.2


@dataclass(frozen=True, eq=False)
class WeightEquations:
    r"""The map on (H, 𝔤): the Dyson equation with one channel, and

    .. math:: 𝒢 = \Bigl(I + βΣ_t π_tH_tΣ_t\Bigr)^{-1},\qquad H_t = \frac{-1}{z - τ(Σ_t𝒢)} .

    ======  =============  =========  =====================
    symbol  attribute      shape      meaning
    ======  =============  =========  =====================
    β       width
    πₜ      probabilities  (T,)
    Σₜ      bulk                      of one cell
    ======  =============  =========  =====================
    """

    width: float
    probabilities: FloatArray
    bulk: Bulk

    @once
    def coefficients(self) -> FloatArray:
        """m_tc, (T, m)."""
        return np.asarray(self.bulk.coefficients[0])

    @once
    def weights(self) -> FloatArray:
        """βπₜ, (T,)."""
        return np.asarray(self.width * self.probabilities)

    @once
    def operations(self) -> tuple[float, float]:
        """Of the equations at one point, and of their derivative."""
        types, count = self.coefficients.shape
        layout = self.at(np.ones(1), np.zeros((1, types)), np.zeros((1, 0, 0))).dyson.layout
        pairs = zip(self.bulk.batches, layout.own)
        nodes = sum(b.weights.shape[1] * len(own) ** 2 * (1 + count) for b, own in pairs)
        unknowns = len(layout.outer) if self.bulk.batches else 0
        derived = _OF_TYPES * types**2 * (types + count) + _OF_UNKNOWNS * unknowns**3
        return _OF_NODES * nodes, derived

    @once
    def _stacks(self) -> dict[int, Bulk]:
        """The bulk at so many points."""
        return {}

    def repeated(self, cells: int) -> Bulk:
        """The bulk at so many points."""
        if cells not in self._stacks:
            self._stacks[cells] = self.bulk.repeated(cells)
        return self._stacks[cells]

    def at(self, z: Array, h: Array, active: Array) -> WeightState:
        """The map at points (H, 𝔤), H (Z, T) and 𝔤 (Z, Q, Q)."""
        return WeightState(self, z, h, active)

    def start(self, z: Array) -> WeightState:
        """Where to begin at z (Z,): without samples."""
        h = -1.0 / np.repeat(z[:, None], len(self.probabilities), axis=1)
        bare = self.at(z, h, np.zeros((len(z), 0, 0)))
        return bare.move(h, bare.dyson.alone())


@dataclass(frozen=True, eq=False)
class WeightState:
    """A point (H, 𝔤), and what the equations make of it."""

    equations: WeightEquations
    z: Array  # (Z,)
    h: Array  # (Z, T)
    active: Array  # (Z, Q, Q)

    @property
    def parts(self) -> tuple[Array, Array]:
        """(H, 𝔤)."""
        return self.h, self.active

    def move(self, h: Array, active: Array) -> WeightState:
        """The same equations at another point."""
        return WeightState(self.equations, self.z, h, active)

    def take(self, cells: Array) -> WeightState:
        """Some of the points."""
        return WeightState(self.equations, self.z[cells], self.h[cells], self.active[cells])

    @once
    def dyson(self) -> Dyson:
        """The Dyson equation of the bulk."""
        equations, cells = self.equations, len(self.h)
        bulk = equations.repeated(cells)
        strengths = (self.h * equations.weights) @ equations.coefficients
        unit = np.ones((cells, 1, 1))
        return dyson_at(bulk, unit, strengths[:, :, None, None], self.active)

    def _of(self, traces: Array) -> Array:
        """H from the traces of the Dyson equation."""
        seen = traces[:, 1:, 0, 0] @ self.equations.coefficients.T
        return np.asarray(-1.0 / (self.z[:, None] - seen))

    @once
    def image(self) -> tuple[Array]:
        """What the equations make of H."""
        return (self._of(self.dyson.traces),)

    @once
    def gap(self) -> Array:
        """Relative distance of the point from its image."""
        gap = np.abs(self.image[0] / self.h - 1.0).max(axis=1)
        if self.equations.bulk.batches:
            apart = np.abs(self.dyson.image - self.active).max(axis=(1, 2))
            gap = np.maximum(gap, apart / np.abs(self.active).max(axis=(1, 2)))
        return gap

    @property
    def inside(self) -> Array:
        """Whether H is in the upper half-plane, or positive at real z."""
        part = self.h.imag if np.iscomplexobj(self.h) else self.h
        return np.all(part > 0, axis=1)

    @once
    def _settled(self) -> Array:
        """H after one Newton step of 𝔤."""
        return self._of(self.dyson.corrected())

    @once
    def _curved(self) -> tuple[Array, Array]:
        """The hessian in the strengths of the operators, (Z, m, m), and how 𝔤 moves with them."""
        cells, count = len(self.h), self.equations.coefficients.shape[1]
        each = np.tile(identity(count), (cells, 1, 1))
        others = np.pad(each, ((0, 0), (1, 0), (0, 0)))
        return self.dyson.response(Directions(0, others, each, np.ones((cells, count, 1))))

    @once
    def _jacobian(self) -> Array:
        equations, curved = self.equations, self._curved[0]
        change = equations.coefficients @ curved @ equations.coefficients.T * equations.weights
        return identity(len(equations.weights)) + (self._settled**2)[:, :, None] * change

    def newton(self, by: WeightState | None = None) -> tuple[Array, Array]:
        """(H, 𝔤) that solve the linearised equations; with the derivatives of a point nearby, if
        there is one.
        """
        by = by or self
        image = self._settled if by is self else self._of(self.dyson.corrected(by.dyson))
        step, active = by._moved(image - self.h)
        if self.equations.bulk.batches:
            active = active + self.dyson.layout.outer.unpack(self.dyson.settled(by.dyson))
        return self.h + step, self.active + active

    def tangent(self) -> tuple[Array, Array]:
        """Derivatives of (H, 𝔤) in z where the equations hold."""
        return self._moved(self._settled**2)

    def _moved(self, source: Array) -> tuple[Array, Array]:
        """How (H, 𝔤) move when the image of H is moved by ``source``."""
        equations = self.equations
        step = solve(self._jacobian, source)
        if not equations.bulk.batches:
            return step, np.zeros_like(self.active)
        moved = (step * equations.weights) @ equations.coefficients
        active = product(self._curved[1], moved[:, :, None])[:, :, 0]
        return step, self.dyson.layout.outer.unpack(active)
