"""Eigenvalues of the kernel of the equivalent model: bulk and outliers at every rate (§5d)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from scipy.optimize import elementwise

from giantsteps.theory.model.fewer_nodes import SEEN_FROM, merge_types, on_fewer_nodes
from giantsteps.theory.model.implicit_law import ImplicitLaw, may_lose
from giantsteps.theory.model.kernel_outlier import Cores, Outlier, weighted_gram
from giantsteps.theory.solver.continuation import Continuation
from giantsteps.theory.solver.fold import Linearised
from giantsteps.theory.solver.newton import solve_state
from giantsteps.theory.solver.packing import symmetric, transposed
from giantsteps.theory.solver.prior import Prior
from giantsteps.theory.solver.state import Equations, State
from giantsteps.theory.solver.system import System
from giantsteps.theory.solver.work import Work, of_forms
from giantsteps.types import Array, FloatArray

_MEMORY = 3_000_000
#: Channels of the types that a density shows: it changes by their squares.
_CHANNELS = 5e-3
#: Operations of a round beyond which it takes fewer nodes.
_MANY_NODES = 1e6
_GRID = 8
#: Operations of a round beside those of its points, and factors: of a round at complex and at real
#: z, of the forms of special vectors, of the matrix of regressors and of what it is multiplied by.
_ROUND, _AT_COMPLEX, _AT_REAL, _OF_FORMS, _OF_GRAM, _OF_PRODUCTS = 2e6, 2.0, 0.4, 1.2, 0.05, 3
#: Numbers of points whose equations are kept.
_STACKS = 4
#: Plain rounds at most at the first point above the bulk, and a residual that ends them.
_PLAIN, _SETTLED = 12, 0.01
#: An eigenvalue that vanishes (it does not jump), and how well it is found.
_ZERO, _CLOSE = 1e-3, 1e-12
#: How far around a likely place an outlier is looked for first.
_NEAR = 1e-4
#: Regressors of this size, relative to the largest, are combinations of the others.
_NOTHING = 1e-14
#: μ₂² that is rounding beside μ₁².
_LINEAR = 1e-13
#: Share of V by the linear part that counts as none.
_NO_PART = 1e-8
#: Differences for derivatives, relative to the distance in which x or the solution double.
_STEP = 1e-3
#: Places and weights of a derivative.
_SLOPE = {-2.0: 1 / 12, -1.0: -2 / 3, 1.0: 2 / 3, 2.0: -1 / 12}


class KernelSpectrum:
    r"""Spectrum of K = ΦΦᵀ (n × n) from the nonlinear part at λ_s = −z (theory §5d).

    .. math:: n^{-1}\mathrm{tr}(K - z)^{-1} = E_k[ω]/(-z),

    and outliers at the real x above the bulk where, at λ_s = −x, the matrix of the least-squares
    problem of the readout is singular,

    .. math:: \mathcal M = ΓE\bigl[ωΣ_eφ_eφ_eᵀ\bigr] +
              \mathrm{diag}\bigl(\mathrm{Cov}_m^{-1},\ 𝒴^{-1}\bigr),

    φ the regressors μ₀ₜ, k_jC_a and those of the norms, e the modes of the norm of the input. With
    B = FFᵀ the first term, positive above the bulk, and ℭ = diag(Cov_m, 𝒴), which may be anything,
    that is where an eigenvalue of I + 𝓛, 𝓛 = FᵀℭF, vanishes; with its vector y, q = −ℭFy and
    qᵀ𝓜'q = −yᵀ𝓛'y. F has as many columns as there are independent regressors.

    Parameters
    ----------
    system : System
        One cell; its penalty is not used.
    coarser : KernelSpectrum, optional
        At another resolution: where edge and outliers are likely to be.
    work : Work, optional
        Counts the operations.
    """

    def __init__(
        self, system: System, coarser: KernelSpectrum | None = None, work: Work | None = None
    ) -> None:
        self.system, self.work = system, work or Work()
        self.near = [found.value for found in coarser.outliers] if coarser else []
        self._likely = coarser.bulk.edge if coarser else None
        merged, self.group = merge_types(system)
        # The nonlinear part knows nothing of the means, which are large.
        self.equations = Equations(replace(merged, mean=merged.mean[:, :, :0]))
        self._stacks: dict[tuple[int, bool], Equations] = {}

    # -- bulk -----------------------------------------------------------------------------------

    def above(self, z: Array, start: tuple[Array, ...] | None = None) -> tuple[Array, ...]:
        """(V₁, τ, 𝔤) at z (Z,) in the upper half-plane, from states nearby if they are given."""
        size = self.equations.features[0].size * 6 + 4 * self.equations.features.shape[1] ** 2
        for batch in self.equations.system.bulk.batches:
            blocks = (1 + batch.factors.shape[1]) * self.equations.rank
            size += 8 * batch.weights.shape[1] * blocks**2
        count = max(1, _MEMORY // size)
        parts = [
            self._follow(z[i : i + count], start and tuple(part[i : i + count] for part in start))
            for i in range(0, len(z), count)
        ]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    @cached_property
    def _follow(self) -> Continuation:
        return Continuation(self._solve, self.scale, "the resolvent of the kernel")

    def _solve(
        self, z: Array, start: tuple[Array, ...] | None, rounds: int | None
    ) -> tuple[tuple[Array, ...], Array]:
        """(V₁, τ, 𝔤) and their residuals."""
        known = None if start is None else (start[0], start[1], start[2])
        solved = solve_state(self._repeat(len(z)), -z, known, rounds)
        taken, state = solved.iterations + 1, solved.state
        complex_rounds = float(_AT_COMPLEX * self._operations * taken.sum())
        self.work.spend(_ROUND * int(taken.max()) + complex_rounds)
        return (state.v1, state.tau, state.active), solved.residual

    def _repeat(self, count: int, whole: bool = False) -> Equations:
        """The equations at so many points, of merged types or of all; the last ones are kept."""
        if (count, whole) not in self._stacks:
            while len(self._stacks) >= _STACKS:
                self._stacks.pop(next(iter(self._stacks)))
            equations = self._all_types if whole else self.equations
            self._stacks[count, whole] = equations.take(np.zeros(count, dtype=int))
        return self._stacks[count, whole]

    def transform(self, state: tuple[Array, ...], z: Array) -> Array:
        """m(z) = E_k[ω]/(−z)."""
        omega = self._repeat(len(z)).at(state[0], state[1], -z, state[2]).omega
        return np.asarray((omega * self.system.weights[0]).sum(axis=-1) / -z)

    @cached_property
    def scale(self) -> float:
        """Mean of the bulk's eigenvalues."""
        system = self.equations.system
        power = system.residual[0] + system.bulk.totals[0][:, None] * system.linear[0] ** 2
        return float(system.probabilities[0] @ power @ system.weights[0])

    @cached_property
    def bulk(self) -> ImplicitLaw:
        """Law of the n eigenvalues without the outliers; an atom at zero if n > N, or if n > d and
        the features are linear.
        """
        system = self.system
        rank = 1.0 / float(system.ratio[0])
        if np.all(system.residual <= _LINEAR * (system.linear**2).max()):
            rank = min(rank, rank / float(system.width[0]))
        atoms = ((0.0, 1.0 - rank),) if rank < 1 else ()
        return ImplicitLaw(self, atoms, may_lose(self.system.bulk), self._likely)

    @cached_property
    def of_density(self) -> KernelSpectrum:
        """The same with fewer channels, if there are fewer that a density shows, and on fewer nodes
        where they are many.
        """
        coarse = replace(self.system, tolerance=np.array([_CHANNELS]))
        fewer = KernelSpectrum(coarse, work=self.work)
        used = fewer if fewer.equations.rank < self.equations.rank else self
        if not self.many_nodes:
            return used
        z = used.scale * SEEN_FROM
        v1, tau, active = used.above(z)
        point = used._repeat(len(z)).at(v1, tau, -z, active)
        # Of functions that are small, what is not solved for would choose.
        return KernelSpectrum(on_fewer_nodes(point.move(*point.newton())), work=self.work)

    @property
    def many_nodes(self) -> bool:
        """Whether a density is that of `of_density`."""
        return self._operations > _MANY_NODES

    @cached_property
    def _operations(self) -> float:
        """Of a round of the solver at one point."""
        return float(self.equations.system.work)

    # -- outside the bulk -----------------------------------------------------------------------

    def far(self, x: FloatArray) -> tuple[Array, ...]:
        """(V₁, τ, 𝔤) at x far above the bulk, where every start leads to the solution."""
        point = self._repeat(len(x)).start(-x)
        for _ in range(_PLAIN):
            point = point.move(*point.image, point.dyson.image)
            if np.all(point.gap <= _SETTLED):
                break
        return point.v1, point.tau, point.active

    def linearised(self, state: tuple[Array, ...], x: Array) -> Linearised:
        """The equations around real x."""
        v1, tau, active = state
        point = self._repeat(len(x)).at(v1, tau, -x, active)
        self.work.spend(_ROUND + _AT_REAL * self._operations * len(x))
        return Linearised(
            point.gap,
            lambda by: tuple(new - old for new, old in zip(point.newton(by), state)),
            lambda: tuple(-part for part in point.tangent()),
            point,
        )

    def parameter(self, state: tuple[Array, ...]) -> Array:
        """Σ π_tτ_t, which grows with x outside the bulk."""
        return np.asarray(state[1] @ self.equations.system.probabilities[0])

    def regular(self, state: tuple[Array, ...], x: FloatArray) -> Array:
        """Whether ω > 0, −τ > 0 and the samples of the steps are as they are at x = ∞."""
        v1, tau, active = state
        point = self._repeat(len(x)).at(v1, tau, -x, active)
        positive = np.all(point.omega > 0, axis=1) & np.all(tau < 0, axis=1)
        return np.asarray(positive & point.dyson.regular)

    # -- outliers -------------------------------------------------------------------------------

    @cached_property
    def outliers(self) -> tuple[Outlier, ...]:
        """Eigenvalues above the bulk, largest first."""
        edge = self.bulk.edge
        found = np.array(self._roots(edge, 4.0 * (edge + self._bound)))
        return self._describe(np.sort(found)[::-1]) if found.size else ()

    @cached_property
    def _bound(self) -> float:
        """Γ(p Σ π E[μ₀ₜ²] + the part of χ): no outlier is above it and the bulk together."""
        system = self.system
        power = (system.mean[0] ** 2).sum(axis=1) @ system.weights[0]
        neurons = 1.0 / float(system.inverse_neurons[0])
        squares = (system.coordinates[0] ** 2).sum(axis=1) * system.weights[0]
        spread = system.bulk.totals.max() * float(system.width[0])
        linear = spread * float(system.probabilities[0] @ (system.linear[0] ** 2 @ squares))
        norms = ((system.norms[0] ** 2).sum(axis=1) @ system.weights[0]) * system.spread[0]
        more = float(system.width[0]) * float(norms.sum())
        return float(system.ratio[0]) * (
            neurons * float(system.probabilities[0] @ power) + linear + more
        )

    def _roots(self, lower: float, upper: float) -> list[float]:
        """Where eigenvalues of I + 𝓛 change sign strictly between two points above the bulk."""
        ends = max(lower, 1e-4 * upper) * (1 + 1e-5), upper * (1 - 1e-5)
        around = sorted(x * (1 + side) for x in self.near for side in (-_NEAR, _NEAR))
        inside = [x for x in around if ends[0] < x < ends[1]]
        brackets = self._brackets(np.array([ends[0], *inside, ends[1]])) if inside else []
        # Each likely place has one, and there are no others; else all is searched.
        apart = [1.0 / low > (1 + 3 * _NEAR) / high for low, high, _ in brackets]
        if len(brackets) != len(self.near) or any(apart) or not brackets:
            brackets = self._brackets(np.geomspace(*ends, _GRID))
        if not brackets:
            return []
        low, high, ranks = (np.array(side) for side in zip(*brackets))

        def eigenvalue(inverse: FloatArray, ranks: Array) -> FloatArray:
            values = self._eigenvalues(1.0 / inverse)
            return np.asarray(values[np.arange(len(ranks)), ranks.astype(int)])

        # In 1/x the eigenvalues are almost linear.
        solved = elementwise.find_root(
            eigenvalue, (low, high), args=(ranks,), tolerances={"xatol": 0.0, "xrtol": _CLOSE}
        )
        return (1.0 / solved.x[np.abs(solved.f_x) < _ZERO]).tolist()

    def _brackets(self, grid: FloatArray) -> list[tuple[float, float, int]]:
        """Where the number of negative eigenvalues changes: ends in 1/x, and rank."""
        values = self._eigenvalues(grid)
        counts = (values < 0).sum(axis=1)
        return [
            (1.0 / grid[i + 1], 1.0 / grid[i], rank)
            for i in range(len(grid) - 1)
            for rank in range(min(counts[i : i + 2]), max(counts[i : i + 2]))
        ]

    def _eigenvalues(self, x: FloatArray) -> FloatArray:
        """Eigenvalues of I + 𝓛 at points above the bulk, ascending, (X, E)."""
        return np.asarray(np.linalg.eigvalsh(self._cores(self._outside(x)).matrix))

    def _outside(self, x: FloatArray) -> State:
        """The real solutions at x (X,) above the bulk."""
        v1, tau, active = self.bulk.outside(x)
        return self._repeat(len(x)).at(v1, tau, -x, active)

    @cached_property
    def _basis(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """φ on all modes (E, MK) = U·rows, with orthonormal rows: φ itself and on the modes of weak
        spikes (E, 1 + J, K), U and the rows.
        """
        system = self.system
        own = system.regressors(self.equations.channels)[0]
        rows = np.concatenate([system.mean[0], own])
        flat = rows.reshape(len(rows), -1)
        # What is small may be multiplied by a large covariance.
        norms = np.linalg.norm(flat, axis=1, keepdims=True)
        norms = np.where(norms > 0, norms, 1.0)
        self.work.spend(_OF_GRAM * _OF_PRODUCTS * len(flat) * flat.size)
        left, size, right = np.linalg.svd(flat / norms, full_matrices=False)
        kept = size > _NOTHING * size[0]
        own = rows[:, system.modes[: 1 + system.weak]]
        return own, norms * left[:, kept] * size[kept], right[kept]

    def _cores(self, point: State) -> Cores:
        """I + 𝓛 at points above the bulk, and what belongs to it."""
        system, prior = self.system, Prior(self._whole(point))
        types, modes, _ = system.mean.shape[1:]
        channels = self.equations.channels[0]
        _, basis, rows = self._basis
        forms = of_forms(self.system.bulk, self.equations.rank)
        gram = _OF_GRAM * (len(rows) * rows.size + _OF_PRODUCTS * len(basis) ** 3)
        self.work.spend(len(point.tau) * (_OF_FORMS * forms + gram))
        whole = np.tile(point.measure, (1, modes))
        power = np.stack([weighted_gram(rows, one) for one in whole])
        values, vectors = np.linalg.eigh(power)
        roots = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors @ transposed(vectors)
        target = whole * system.target[0].ravel() @ rows.T @ basis.T
        factor = basis @ roots  # F, B = FFᵀ
        covariance = np.zeros((len(whole), len(basis), len(basis)))
        inverse = np.linalg.inv(prior.precision)
        covariance[:, :types, :types] = inverse / system.inverse_neurons[0]
        covariance[:, types:, types:] = prior.covariance
        moved = covariance @ factor
        psi_hat = ((point.measure[:, None] * system.target_linear[0]) @ channels.T).reshape(
            len(whole), -1
        )
        shift = np.zeros((len(whole), len(basis)))
        shift[:, types:] = (prior.with_teacher @ psi_hat[:, :, None])[:, :, 0]
        matrix = np.eye(factor.shape[2]) + transposed(factor) @ moved
        shift = (transposed(factor) @ shift[:, :, None])[:, :, 0]
        return Cores(symmetric(matrix), moved, target, shift)

    def _whole(self, point: State) -> State:
        """The points with all types, where some were merged."""
        if len(self.group) == point.tau.shape[1]:
            return point
        equations = self._repeat(len(point.tau), whole=True)
        return State(equations, point.v1, point.tau[:, self.group], point.active, point.penalty)

    @cached_property
    def _all_types(self) -> Equations:
        """The equations of all types, in the channels of the merged ones."""
        whole = Equations(self.system)
        merged = self.equations
        whole.mixing = np.ascontiguousarray(merged.mixing[:, self.group])
        whole.channels, whole.rank, whole.packing = merged.channels, merged.rank, merged.packing
        rows, columns = merged.packing.rows, merged.packing.columns
        pairs = whole.channels.take(rows, 1) * whole.channels.take(columns, 1)
        whole.features = np.concatenate([pairs, self.system.residual], axis=1)
        whole.mixing_pairs = whole.mixing.take(rows, 2) * whole.mixing.take(columns, 2)
        whole.counted = np.concatenate([merged.packing.count, np.ones(len(self.group))])
        return whole

    def _describe(self, x: FloatArray) -> tuple[Outlier, ...]:
        """The outliers at x, with a derivative by differences along the tangent of the solution.

        Next to the edge the solution bends like a root, its tangent does not.
        """
        middle = self._outside(x)
        state = x, middle.v1, middle.tau, middle.active
        tangent = np.ones_like(x), *(-part for part in middle.tangent())
        rates = np.zeros_like(x)
        # A linear part that is rounding (an even activation) sets no scale.
        least = _NO_PART * np.abs(middle.variance).max(axis=1)
        for part, change in zip(state, tangent, strict=True):
            size, moved = (
                np.linalg.norm(one.reshape(len(x), -1), axis=1) for one in (part, change)
            )
            size = np.maximum(size, least) if part is middle.v1 else size
            rates = np.maximum(rates, moved / np.where(size > 0, size, np.inf))
        step, places = _STEP / rates, np.array([0.0, *_SLOPE])
        shifts = np.outer(step, places)
        z, v1, tau, active = (
            np.concatenate(part[:, None] + np.einsum("xp,x...->xp...", shifts, change))
            for part, change in zip(state, tangent, strict=True)
        )
        points = self._repeat(len(z)).at(v1, tau, -z, active)
        cores, features = self._cores(points), self._basis[0]
        ratio, found = float(self.system.ratio[0]), []
        for i, value in enumerate(x.tolist()):
            first = i * len(places)
            values, vectors = np.linalg.eigh(cores.matrix[first])
            y = vectors[:, int(np.argmin(np.abs(values)))]
            slope = sum(
                weight * float(y @ cores.matrix[first + 1 + j] @ y)
                for j, weight in enumerate(_SLOPE.values())
            )
            y = y / np.sqrt(abs(slope) / step[i])
            vector = -cores.moved[first] @ y
            labels = float(vector @ cores.target[first] - y @ cores.shift[first])
            scale = points.omega[first] * np.sqrt(ratio / value)
            pull = scale * np.tensordot(vector, features, 1)
            types = vector[: len(self.system.probabilities[0])]
            found.append(Outlier(value, types, pull, labels**2 / (ratio * value), scale))
        return tuple(found)
