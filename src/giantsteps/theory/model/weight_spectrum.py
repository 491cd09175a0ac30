"""Singular values of the weights of the equivalent model: deformed bulk and outliers (§2, §5b)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.optimize import brentq

from giantsteps.errors import NotConverged
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.implicit_law import ImplicitLaw, may_lose
from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.chain import dyson_at
from giantsteps.theory.solver.continuation import Continuation
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.fold import Linearised
from giantsteps.theory.solver.packing import solve
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.solver.work import Work, of_forms
from giantsteps.types import Array, FloatArray

_ROUNDS = 200
_TOLERANCE, _ENOUGH = 1e-13, 1e-11
#: At complex z.
_OF_DENSITY = 1e-10
_WARM_UP = 3
#: Plain rounds at the first point above the bulk.
_PLAIN = 3
_GRID = 40
#: Operations of a round beside those of its points, and factors: of the equations of types, of
#: nodes of samples, of the forms of special vectors.
_ROUND, _OF_TYPES, _OF_NODES, _OF_FORMS = 1.6e6, 0.03, 3.5, 2.5
#: Where residues are taken, relative to the distance from the edge, and their shares: sixth order.
_PLACES = 1e-2 * np.array([1.0, -1.0, 2.0, -2.0, 3.0, -3.0])
_SHARES = (0.75, 0.75, -0.3, -0.3, 0.05, 0.05)


@dataclass(frozen=True, eq=False)
class WeightSpectrum:
    r"""Spectrum of W Wᵀ for rows of covariance Σ_t/d and spikes: W = bulk + Σ_j b̂_j S_jᵀ.

    .. math:: G = -z^{-1}𝒢,\qquad 𝒢 = \Bigl(I + βΣ_t π_tH_tΣ_t\Bigr)^{-1},\qquad
              H_t = \frac{-1}{z(1 + τ(Σ_tG))},\qquad m(z) = τ(G),

    the Dyson equation of theory §5b with one channel, and outliers at the z above the bulk where
    I − z 𝔊ℌ is singular,

    .. math:: 𝔊 = \hat b^⊤ G \hat b,\qquad ℌ = N Σ_{ts}\sqrt{π_tπ_s}\,S_tS_s^⊤ H_{ts},\qquad
              -(zH)^{-1}_{ts} = δ_{ts}(1 + τ(Σ_tG)) + \sqrt{π_tπ_s}\,Σ_cQ^c_{ts}τ(Ω_cG):

    the initial output pulls on W along the right vectors of the types, and that is the noise under
    which the spikes are seen.

    ======  =================  ==================================
    symbol  argument           meaning
    ======  =================  ==================================
    β, N    width, neurons
    πₜ, Sₜ  probabilities,     shapes (T,), (T, r)
            spikes
    Σₜ      bulk               with spikes as its first r special vectors
    Q       pull               of the initial output, (c, T, T), as in the penalty of mₜ
    \       beside             directions that the spikes leave of the teacher, the next of them
    \       work               counts the operations
    Δ       excess             of Σ_t on the spikes: d Cov(S_j) within the types, (T, r, r)
    ======  =================  ==================================
    """

    width: float
    neurons: float
    probabilities: FloatArray
    spikes: FloatArray
    bulk: NeuronCovariance
    pull: FloatArray | None = None
    beside: int = 1
    work: Work = field(default_factory=Work)
    excess: FloatArray | None = None

    # -- the bulk -------------------------------------------------------------------------------

    @cached_property
    def _one(self) -> Bulk:
        return self.bulk.bulk()

    @cached_property
    def _stacks(self) -> dict[int, Bulk]:
        """The bulk at so many points."""
        return {}

    def _dyson(self, h: Array, active: Array | None) -> Dyson:
        """The Dyson equation at H (Z, T) and 𝔤."""
        cells = len(h)
        self.work.spend(_ROUND + cells * self._operations)
        if cells not in self._stacks:
            self._stacks[cells] = self._one.repeated(cells)
        bulk = self._stacks[cells]
        strengths = self.width * (h * self.probabilities) @ self.bulk.coefficients
        unit = np.ones((cells, 1, 1))
        found = dyson_at(bulk, unit, strengths[:, :, None, None], np.zeros((cells, 0, 0)))
        return replace(found, active=found.alone() if active is None else active)

    @cached_property
    def _operations(self) -> float:
        """Of a round of the solver at one point."""
        types, count = self.bulk.coefficients.shape
        nodes = sum(
            batch.weights.shape[1] * (1 + batch.factors.shape[1]) ** 2
            for batch in self._one.batches
        )
        return _OF_TYPES * types**2 * (types + count) + _OF_NODES * nodes * (1 + count)

    def _image(self, z: Array, dyson: Dyson, traces: Array) -> Array:
        """What the equations make of H."""
        seen = traces[:, 1:, 0, 0] @ self.bulk.coefficients.T
        return np.asarray(-1.0 / (z[:, None] - seen))

    def _solve(
        self, z: Array, start: tuple[Array, ...] | None, rounds: int | None
    ) -> tuple[tuple[Array, ...], Array]:
        """(H, 𝔤) by Newton's method inside the upper half-plane, else by damped steps.

        A point is left alone when it has converged, or is as close as rounding allows.
        """
        types = len(self.probabilities)
        if start is None:
            h = -1.0 / np.repeat(z[:, None], types, axis=1)
            dyson = self._dyson(h, None)
        else:
            known = [np.asarray(part, dtype=z.dtype) for part in start]
            h, dyson = known[0], self._dyson(*known)
        image, gap = self._step(z, h, dyson)
        tolerance = _OF_DENSITY if np.iscomplexobj(z) else _TOLERANCE
        best, left = [h.copy(), dyson.active.copy(), gap.copy()], np.arange(len(z))
        for count in range(rounds or _ROUNDS):
            warm = start is None and count < _WARM_UP
            new_h, new_active = (image, dyson.image) if warm else self._newton(z, h, dyson)
            new = self._dyson(new_h, new_active)
            new_image, new_gap = self._step(z, new_h, new)
            better = new_gap < gap
            stalled = ~better & (gap <= _ENOUGH) & (not warm)
            if start is not None:  # near a hard edge the residual is small far from the solution
                better = np.isfinite(new_gap)
            good = warm | (_inside(new_h) & (better | _descends(h, new_h, new_image)))
            if not np.all(good | stalled):
                new_h = np.where(good[:, None], new_h, 0.5 * (h + image))
                plain = 0.5 * (dyson.active + dyson.image)
                new = self._dyson(new_h, np.where(good[:, None, None], new.active, plain))
                new_image, new_gap = self._step(z, new_h, new)
            h, dyson, image, gap = new_h, new, new_image, new_gap
            better = gap < best[2][left]
            for kept, found in zip(best, (h, dyson.active, gap)):
                kept[left[better]] = found[better]
            go = ~(stalled | (gap <= tolerance))
            if not go.any():
                break
            if not go.all():
                left, z, h = left[go], z[go], h[go]
                dyson = self._dyson(h, dyson.active[go])
                image, gap = image[go], gap[go]
        return (best[0], best[1]), best[2]

    def _step(self, z: Array, h: Array, dyson: Dyson) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            image = self._image(z, dyson, dyson.traces)
            gap = np.abs(image / h - 1.0).max(axis=1)
            if self._one.batches:
                apart = np.abs(dyson.image - dyson.active).max(axis=(1, 2))
                gap = np.maximum(gap, apart / np.abs(dyson.active).max(axis=(1, 2)))
        return image, np.where(np.isfinite(gap), gap, np.inf)

    def _newton(self, z: Array, h: Array, dyson: Dyson) -> tuple[Array, Array]:
        with np.errstate(all="ignore"):
            image = self._image(z, dyson, dyson.corrected())
            step, active = self._moved(image, dyson, image - h)
            if self._one.batches:
                active = active + dyson.layout.outer.unpack(dyson.settled())
        return h + step, dyson.active + active

    def _moved(self, image: Array, dyson: Dyson, source: Array) -> tuple[Array, Array]:
        """How (H, 𝔤) move when the image of H is moved by ``source``."""
        coefficients = self.bulk.coefficients
        weights = self.width * self.probabilities
        change = coefficients @ dyson.hessian[:, 1:, 1:] @ coefficients.T * weights
        matrix = np.eye(len(weights)) + (image * image)[:, :, None] * change
        step = solve(matrix, source)
        if not self._one.batches:
            return step, np.zeros_like(dyson.active)
        moved = (step * weights) @ coefficients
        moved = np.concatenate([np.zeros((len(step), 1)), moved], axis=1)
        return step, dyson.layout.outer.unpack(dyson.followed(moved))

    def transform(self, state: tuple[Array, ...], z: Array) -> Array:
        """m(z) of the d eigenvalues of W Wᵀ."""
        return np.asarray(-self._dyson(*state).traces[:, 0, 0, 0] / z)

    @cached_property
    def _follow(self) -> Continuation:
        return Continuation(self._solve, self.scale, "the resolvent of the weights")

    @cached_property
    def scale(self) -> float:
        """Mean eigenvalue of W Wᵀ: βΣ πₜcₜ."""
        return self.width * float(self.probabilities @ self.bulk.totals)

    @cached_property
    def law(self) -> ImplicitLaw:
        """Law of the d eigenvalues of W Wᵀ without outliers; an atom at zero if d > N.

        The same if W is made from fewer than d samples alone, as a gradient is.
        """
        one, rank = self._one, self.width
        if not (one.chained or np.any(one.coefficients[:, :, : one.diagonal.shape[1]])):
            rank = min(rank, sum(float(batch.samples[0]) for batch in one.batches))
        atoms = ((0.0, 1.0 - rank),) if rank < 1 else ()
        return ImplicitLaw(self, lambda: self, self.scale, self.work, atoms, may_lose(one))

    # -- outside the bulk -----------------------------------------------------------------------

    def above(self, z: Array, start: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """(H, 𝔤) at z in the upper half-plane, from states nearby if they are given."""
        return self._follow(z, start)

    def far(self, x: FloatArray) -> tuple[Array, ...]:
        """(H, 𝔤) at x far above the bulk, where every start leads to the solution."""
        h = -1.0 / np.repeat(x[:, None], len(self.probabilities), axis=1)
        dyson = self._dyson(h, None)
        for _ in range(_PLAIN):
            h = self._image(x, dyson, dyson.traces)
            dyson = self._dyson(h, dyson.image)
        return h, dyson.active

    def linearised(self, state: tuple[Array, ...], x: Array) -> Linearised:
        """The equations around real x."""
        h, dyson = state[0], self._dyson(*state)

        def step(_: None) -> tuple[Array, ...]:
            return tuple(new - old for new, old in zip(self._newton(x, h, dyson), state))

        def tangent() -> tuple[Array, ...]:
            image = self._image(x, dyson, dyson.corrected())
            return self._moved(image, dyson, image * image)

        return Linearised(self._step(x, h, dyson)[1], step, tangent, None)

    def parameter(self, state: tuple[Array, ...]) -> Array:
        """Σ π_tH_t, which grows with x outside the bulk."""
        return np.asarray(state[0] @ self.probabilities)

    def regular(self, state: tuple[Array, ...], x: FloatArray) -> Array:
        """Whether −H > 0 and the samples of the steps are as they are at x = ∞."""
        return np.all(state[0] < 0, axis=1) & self._dyson(*state).regular

    # -- outliers -------------------------------------------------------------------------------

    @property
    def _rank(self) -> int:
        return self.spikes.shape[1]

    def _forms(
        self, x: FloatArray, state: tuple[Array, ...] | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """At x (X,) above the bulk: 𝔊 on the special vectors, ℌ, and what H makes of the spikes,
        N^½Σ_s √π_s H_ts S_s, (X, T, r).
        """
        h, active = self.law.outside(x) if state is None else state
        dyson, root = self._dyson(h, active), np.sqrt(self.probabilities)
        left = root[:, None] * self.spikes
        if self.pull is None:
            seen = h[:, :, None] * left
        else:
            own = -1.0 / (x[:, None] * h)
            matrix = own[:, :, None] * np.eye(len(root)) + 0.0 * self.pull[0]
            for c, pull in enumerate(self.pull):
                trace = -dyson.traces[:, 1 + c, 0, 0] / x
                matrix = matrix + trace[:, None, None] * (pull * np.outer(root, root))
            seen = -solve(matrix, np.broadcast_to(left, (len(x), *left.shape))) / x[:, None, None]
        self.work.spend(_OF_FORMS * len(x) * of_forms(self._one, 1))
        forms = Forms(dyson).values[:, :, 0, :, 0]
        if self.excess is not None:
            rank, loads = self.excess.shape[1], self.width * h * self.probabilities
            more = np.tensordot(loads, self.excess, 1) @ forms[:, :rank]
            opened = np.eye(rank) + more[:, :, :rank]
            forms = forms - forms[:, :, :rank] @ np.linalg.solve(opened, more)
        neurons = np.sqrt(self.neurons)
        return -forms / x[:, None, None], self.neurons * left.T @ seen, neurons * seen

    def traces(self, value: float) -> tuple[float, float]:
        """τ(𝒢) and 𝒢 along the first spike at an eigenvalue outside the bulk."""
        dyson = self._dyson(*self.law.outside(np.array([value])))
        return float(dyson.traces[0, 0, 0, 0]), float(Forms(dyson).values[0, 0, 0, 0, 0])

    def _whole(
        self, x: FloatArray, state: tuple[Array, ...] | None = None
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The same on spikes and teacher's remainder, (X, F, F) and (X, T, F): ℌ and what H makes
        of the spikes are zero on the remainder.
        """
        g, h, seen = self._forms(x, state)
        size = min(self._rank + self.beside, g.shape[1])
        more = size - self._rank
        return (
            g[:, :size, :size],
            np.pad(h, ((0, 0), (0, more), (0, more))),
            np.pad(seen, ((0, 0), (0, 0), (0, more))),
        )

    def _eigenvalues(self, x: FloatArray, state: tuple[Array, ...] | None = None) -> FloatArray:
        """Of −(x𝔊)⁻¹ + ℌ, ascending, (X, F); an outlier where one of them is zero."""
        left, right, _ = self._whole(x, state)
        if not (np.isfinite(left).all() and np.isfinite(right).all()):
            what = "the outliers of W, whose numbers leave the range of floating point"
            raise NotConverged(what, math.inf, 0, "smaller rates")
        core = right - np.linalg.inv(x[:, None, None] * left)
        return np.asarray(np.linalg.eigvalsh(0.5 * (core + np.swapaxes(core, 1, 2))))

    @cached_property
    def _highest(self) -> float:
        """Above every outlier."""
        total = self.neurons * float(self.probabilities @ (self.spikes**2).sum(axis=1))
        return 4.0 * (2.0 * self.law.edge + total)

    @cached_property
    def outliers(self) -> tuple[float, ...]:
        """Eigenvalues of W Wᵀ above the bulk, largest first.

        Far above the bulk −(x𝔊)⁻¹ + ℌ is positive, and towards it eigenvalues fall. Those of the
        spikes pass zero for a lean that leaves the bulk, that of the remainder where the teacher
        does by itself: the batch of a step is not generic along it.
        """
        low, high = self.law.edge * (1 + 1e-7), self._highest
        grid = low * (high / low) ** (np.linspace(0.0, 1.0, _GRID) ** 2)
        values = self._eigenvalues(grid)
        found = []
        for rank in range(values.shape[1]):
            for i in np.flatnonzero((values[:-1, rank] < 0) & (values[1:, rank] >= 0)):
                ends = float(grid[i]), float(grid[i + 1])
                x = float(brentq(self._eigenvalue, *ends, args=(rank,), xtol=1e-13 * ends[1]))
                found.append(x)
        return tuple(sorted(found, reverse=True))

    def _eigenvalue(self, x: float, rank: int) -> float:
        return float(self._eigenvalues(np.array([x]))[0, rank])

    def overlaps(
        self, value: float, left: Mapping[str, FloatArray], right: Mapping[str, FloatArray]
    ) -> dict[str, float]:
        """Squared cosines of an outlier's singular vectors, from the poles of quadratic forms.

        Parameters
        ----------
        value : float
            The eigenvalue.
        left : mapping
            Directions of the left vector in the frame of the special vectors (spikes, teacher's
            remainder, …), or several whose squared cosines are added.
        right : mapping
            Functions of the type, of shape (T,), for the right vector.
        """
        found = dict.fromkeys([*left, *right], 0.0)
        steps = _PLACES * (value - self.law.edge)
        for step, share, *both in zip(steps, _SHARES, *self._whole(value + steps)):
            x, (g, h, types) = value + step, both
            core = np.linalg.inv(np.linalg.inv(g) - x * h)
            for name, given in left.items():
                for direction in np.atleast_2d(given):
                    size = min(len(direction), len(core))
                    form = direction[:size] @ core[:size, :size] @ direction[:size]
                    found[name] -= share * step * float(form)
            for name, values in right.items():
                weighted = np.sqrt(self.probabilities) * values
                cross = types.T @ weighted / np.linalg.norm(weighted)
                found[name] -= share * step * float(x * cross @ core @ cross)
        return found


def _inside(h: Array) -> Array:
    """Whether H is in the upper half-plane, or positive at real z."""
    return np.all((h.imag if np.iscomplexobj(h) else h) > 0, axis=1)


def _descends(h: Array, new: Array, image: Array) -> Array:
    """Whether a step at negative z went down and stays above the solution."""
    if np.iscomplexobj(h):
        return np.zeros(len(h), dtype=bool)
    return np.all((new <= h) & (image <= new), axis=1)
