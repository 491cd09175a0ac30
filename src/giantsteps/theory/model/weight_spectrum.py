"""Singular values of the weights of the equivalent model: deformed bulk and outliers (§2, §5b)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize import elementwise

from giantsteps.errors import NotConverged
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.implicit_law import ImplicitLaw, may_lose
from giantsteps.theory.model.weight_branch import WeightBranch
from giantsteps.theory.solver.packing import solve
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.solver.weights import WeightEquations
from giantsteps.theory.solver.work import Work, of_forms
from giantsteps.types import Array, FloatArray

#: Points above the bulk where outliers are looked for, and how well they are found.
_GRID, _CLOSE = 12, 1e-13
#: A factor of the operations of the forms of special vectors.
_OF_FORMS = 2.5
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
    def branch(self) -> WeightBranch:
        """The equations of its bulk."""
        equations = WeightEquations(self.width, self.probabilities, self.bulk.bulk())
        scale = self.width * float(self.probabilities @ self.bulk.totals)
        return WeightBranch(equations, scale, self.work)

    @cached_property
    def law(self) -> ImplicitLaw:
        """Law of the d eigenvalues of W Wᵀ without outliers; an atom at zero if d > N.

        The same if W is made from fewer than d samples alone, as a gradient is.
        """
        branch, rank = self.branch, self.width
        one = branch.equations.bulk
        if not (one.chained or np.any(one.coefficients[:, :, : one.diagonal.shape[1]])):
            rank = min(rank, sum(float(batch.samples[0]) for batch in one.batches))
        atoms = ((0.0, 1.0 - rank),) if rank < 1 else ()
        return ImplicitLaw(branch, atoms, may_lose(one))

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
        dyson, root = self.branch.at(x, h, active).dyson, np.sqrt(self.probabilities)
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
        self.work.spend(_OF_FORMS * len(x) * of_forms(self.branch.equations.bulk, 1))
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
        x = np.array([value])
        dyson = self.branch.at(x, *self.law.outside(x)).dyson
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
        ranks, at = np.nonzero(((values[:-1] < 0) & (values[1:] >= 0)).T)
        if not ranks.size:
            return ()
        found = elementwise.find_root(
            self._eigenvalue,
            (grid[at], grid[at + 1]),
            args=(ranks,),
            tolerances={"xatol": 0.0, "xrtol": _CLOSE},
        )
        return tuple(sorted(found.x.tolist(), reverse=True))

    def _eigenvalue(self, x: FloatArray, ranks: Array) -> FloatArray:
        with np.errstate(divide="ignore", invalid="ignore"):
            try:
                found = self._eigenvalues(x)
            except NotConverged:  # a root is a pole of 𝔊, and x is exactly there
                found = self._eigenvalues(x * (1 + 1e-12))
        return np.asarray(found[np.arange(len(x)), ranks.astype(int)])

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
