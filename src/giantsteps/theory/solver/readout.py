"""The linear part of the equivalent model: what ridge regression learns, and its errors (§5c)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.theory.solver.packing import product, solve, symmetric, transposed
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.solver.state import State
from giantsteps.types import Array

__all__ = ["Prior", "Readout", "read_out"]

#: Functions of the spike below this, relative to the largest, are rounding: without penalty (N = ∞)
#: a fit would use their noise. Weaker regressors are felt from N > 1e18 on.
_RESOLVED = 1e-9
#: Power of the penalised functions up to which normal equations keep all digits.
_NORMAL = 1e7
_FAR = 6.0


@dataclass(frozen=True, eq=False)
class Readout:
    """Ridge regression on the equivalent model, cell by cell.

    Attributes
    ----------
    error : ndarray of shape (B,)
        E_k[err] = R + Δ.
    train : ndarray of shape (B,)
        E_k[ω² err].
    fit : ndarray of shape (B, K)
        C(k), the learned function along the spikes.
    slope : ndarray of shape (B, K)
        Σ μ₁ₜψₜ, what multiplies the teacher's coordinate z orthogonal to the spikes.
    bend : ndarray of shape (B, K)
        What multiplies z² − 1, through the norm of the input.
    variance : ndarray of shape (B, K)
        Variance of the prediction given k.
    far : ndarray of shape (B,)
        Share of E_k[ω] from |k| > 6: of order one where the limit λ → 0 does not exist.
    """

    error: Array
    train: Array
    fit: Array
    slope: Array
    bend: Array
    variance: Array
    far: Array

    def take(self, cells: Array | slice) -> Readout:
        """The readouts of some of the cells."""
        return Readout(*(getattr(self, field.name)[cells] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class Prior:
    r"""Sums over the neurons as the ridge penalty sees them (theory §5c).

    The readout acts through m_t = N^{-1/2}Σ_j a_j, q_t = N^{-1/2}Σ_j a_jw_j and
    l_t = N^{-1/2}Σ_j a_jL_j over the neurons of a type, L_j how far the squared norm of a neuron is
    from that of its type. Given the bulk, χ = Uᵀ⟨q, spikes⟩, the same along the teacher's remainder
    B, and l are Gaussian under the penalty, with covariances that are Schur complements of the
    forms S_ab = f_aᵀ𝒢f_b on the special vectors:

    .. math:: 𝒴_{χχ} = S_{ss}^{-1} - X,\quad 𝒴_{χB} = -S_{ss}^{-1}S_{sB}X,\quad
              𝒴_{BB} = X - X(S_{BB} - S_{Bs}S_{ss}^{-1}S_{sB})X,
    .. math:: 𝒴_{χl} = S_{ss}^{-1}(SL)_s,\quad
              𝒴_{Bl} = X\bigl((SL)_B - S_{Bs}S_{ss}^{-1}(SL)_s\bigr),\quad
              𝒴_{ll} = pv - L^⊤SL + (SL)_s^⊤S_{ss}^{-1}(SL)_s,

    with L_{at} = p_t ℓ_{ta} u_t.
    """

    state: State

    @cached_property
    def forms(self) -> Forms:
        """Forms of the special vectors."""
        return Forms(self.state.dyson)

    @property
    def _spikes(self) -> int:
        """Columns of the spikes: r R."""
        return self.state.equations.system.rank * self.state.equations.rank

    @cached_property
    def _flat(self) -> Array:
        """S of shape (B, FR, FR)."""
        values = self.forms.values
        size = values.shape[1] * values.shape[2]
        return values.reshape(len(values), size, size)

    @cached_property
    def loads(self) -> Array:
        """L of shape (B, FR, CT), or (B, FR, 0) where norms do not vary."""
        equations = self.state.equations
        loadings = equations.system.loadings
        mixing = np.tile(equations.mixing, (1, self.fluctuations, 1))
        loads = self.strengths[:, :, None, None] * loadings[:, :, :, None] * mixing[:, :, None]
        shape = (*loads.shape[:2], loads.shape[2] * loads.shape[3])
        return np.ascontiguousarray(transposed(loads.reshape(shape)))

    @property
    def fluctuations(self) -> int:
        """C, how many independent fluctuations the norms of each type have."""
        system = self.state.equations.system
        return int(system.spread.shape[1] // system.probabilities.shape[1])

    @cached_property
    def strengths(self) -> Array:
        """p_t of the type of each fluctuation, shape (B, CT)."""
        return np.tile(self.state.strength, (1, self.fluctuations))

    @cached_property
    def _solved(self) -> tuple[Array, Array, Array]:
        """S_ss⁻¹, S_ss⁻¹S_sB and S_ss⁻¹(SL)_s."""
        s, rank = self._spikes, self.state.equations.rank
        flat = np.ascontiguousarray(self._flat[:, :s, :s])
        inner = symmetric(np.linalg.inv(flat))
        teacher = product(inner, self._flat[:, :s, s : s + rank])
        return inner, teacher, product(inner, self.carried[:, :s])

    @cached_property
    def carried(self) -> Array:
        """SL of shape (B, FR, T)."""
        return product(self._flat, self.loads)

    @cached_property
    def covariance(self) -> Array:
        """𝒴 of (χ, l), shape (B, rR + T, rR + T)."""
        inner, _, norms = self._solved
        s, count = self._spikes, self.state.equations.system.rank
        first = inner - _lifted(self.state.x, count)
        vary = self.strengths * self.state.equations.system.spread
        last = vary[:, :, None] * np.eye(vary.shape[1])
        last = last - product(transposed(self.loads), self.carried)
        last = last + product(transposed(self.carried[:, :s]), norms)
        return symmetric(np.block([[first, norms], [transposed(norms), last]]))

    @cached_property
    def with_teacher(self) -> Array:
        """𝒴 between (χ, l) and B, shape (B, rR + T, R)."""
        _, teacher, norms = self._solved
        s, rank, x = self._spikes, self.state.equations.rank, self.state.x
        rest = transposed(self.carried[:, s : s + rank])
        rest = rest - product(transposed(norms), self._flat[:, :s, s : s + rank])
        return np.concatenate([-product(teacher, x), product(rest, x)], axis=1)

    @cached_property
    def of_teacher(self) -> Array:
        """𝒴_BB of shape (B, R, R)."""
        s, rank, x = self._spikes, self.state.equations.rank, self.state.x
        block = slice(s, s + rank)
        rest = self._flat[:, block, block] - product(
            transposed(np.ascontiguousarray(self._flat[:, :s, block])), self._solved[1]
        )
        return symmetric(x - product(product(x, rest), x))

    @cached_property
    def precision(self) -> Array:
        """N times the precision of m: (πτ)⁻¹ and the pull of the initial output, (B, T, T)."""
        state, system = self.state, self.state.equations.system
        plain = np.eye(system.probabilities.shape[1]) / (system.probabilities * state.tau)[:, None]
        if not np.any(system.pull):
            return plain
        mixing = state.equations.mixing
        for c in range(system.pull.shape[1]):
            trace = state.dyson.traces[:, 1 + c]
            seen = product(product(mixing, trace), transposed(mixing))
            plain = plain + system.pull[:, c] * symmetric(seen)
        return plain


def _lifted(matrix: Array, count: int) -> Array:
    """I ⊗ matrix."""
    cells, rank, _ = matrix.shape
    blocks = np.eye(count)[None, :, None, :, None] * matrix[:, None, :, None, :]
    return blocks.reshape(cells, count * rank, count * rank)


# -- the least-squares problem --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Learned:
    """What the readout learns: m, χ, the teacher's part, and the forces behind them."""

    m: Array  # (B, T); zero at N = ∞, where it has no bound
    chi: Array  # (B, rR)
    force: Array  # on (χ, l), (B, rR + T)
    psi_hat: Array  # (B, R)
    psi: Array  # (B, R)
    fit: Array  # C on all rows, (B, 1 + M, K)


def _learn(state: State, prior: Prior) -> _Learned:
    r"""m, χ, l by one least-squares problem.

    ψ̂ does not depend on the fit, and (m, χ, l) minimise

    .. math:: ΓE[ω Σ_e (h_e - C_e)²] + m^⊤Cov_m^{-1}m + (θ - θ_0)ᵀ𝒴^{-1}(θ - θ_0),
              \qquad θ = (χ, l),\quad θ_0 = 𝒴_{·B}\hat ψ .

    Families of functions (one for each type) are replaced by a few that span them.
    """
    equations, system = state.equations, state.equations.system
    cells, count, modes, nodes = system.mean.shape
    channels, measure = equations.channels, state.measure
    psi_hat = product(channels, (measure * system.target_linear)[:, :, None])
    offset = product(prior.with_teacher, psi_hat)  # (B, rR + T, 1)
    along = np.ascontiguousarray(transposed(system.coordinates))
    spikes = (along[:, :, None] * channels[:, None]).reshape(cells, -1, nodes)
    own = np.concatenate([spikes, system.norms], axis=1)

    # Columns that are penalised, whitened: what multiplies them has variance one under the penalty.
    columns = [_main(product(transposed(_root(prior.covariance)), own), modes)]
    flat = system.mean.reshape(cells, count, modes * nodes)
    finite = bool(np.all(system.inverse_neurons > 0))
    if finite:
        inverse_root = np.linalg.inv(_triangular(prior.precision))
        scale = 1.0 / np.sqrt(system.inverse_neurons)[:, None, None]
        columns.append(scale * product(inverse_root, flat))
    penalised = np.concatenate(columns, axis=1)
    free = (
        np.zeros((cells, 0, modes * nodes))
        if finite
        else _span(flat, np.tile(system.weights, (1, modes))[:, None])
    )

    root = np.tile(np.sqrt(measure), (1, modes))
    target = system.target.copy()
    target[:, 0] -= product(transposed(offset), own)[:, 0]
    target = target.reshape(cells, -1)
    fit = _fitted(penalised, free, target, root).reshape(cells, modes, nodes)
    rest = (target.reshape(fit.shape) - fit) * measure[:, None]
    residual = rest.reshape(cells, -1)
    force = product(own, rest[:, 0, :, None])
    theta = offset + product(prior.covariance, force)
    fit[:, 0] += product(transposed(offset), own)[:, 0]
    m = np.zeros_like(system.probabilities)
    if finite:
        pulled = product(flat, residual[:, :, None])[:, :, 0]
        m = solve(prior.precision, pulled) / system.inverse_neurons[:, None]
    psi = product(transposed(prior.with_teacher), force) + product(prior.of_teacher, psi_hat)
    return _Learned(
        m=m,
        chi=theta[:, : spikes.shape[1], 0],
        force=force[:, :, 0],
        psi_hat=psi_hat[:, :, 0],
        psi=psi[:, :, 0],
        fit=fit,
    )


def _main(functions: Array, modes: int) -> Array:
    """Functions of k as rows over all modes: they do not see the norm of the input."""
    cells, count, nodes = functions.shape
    out = np.zeros((cells, count, modes, nodes))
    out[:, :, 0] = functions
    return out.reshape(cells, count, -1)


def _triangular(precision: Array) -> Array:
    """The Cholesky factor of the penalty of the types."""
    try:
        return np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        lowest = float(np.linalg.eigvalsh(precision).min())
        raise NotConverged(
            "the pull of the initial output, which at these rates is more than a correction",
            abs(lowest),
            1,
            "smaller rates, a larger d, or the limit",
        ) from None


def _root(covariance: Array) -> Array:
    """F with FFᵀ = covariance: triangular, or where it is singular by eigenvectors of the
    correlations.
    """
    diagonal = np.einsum("bii->bi", covariance)
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    matrix = covariance / (scale[:, :, None] * scale[:, None])
    try:
        return np.asarray(scale[:, :, None] * np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        if len(matrix) > 1:  # no cell sees its neighbours
            return np.concatenate([_root(one[None]) for one in covariance])
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(scale[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None])


def _span(functions: Array, weights: Array) -> Array:
    """Orthonormal functions that span those given, without what is rounding."""
    root = np.sqrt(weights)
    size = np.sqrt(((functions * root) ** 2).sum(axis=-1, keepdims=True))
    scaled = functions / np.where(size > 0, size, 1.0)
    left, values, right = np.linalg.svd(scaled * root, full_matrices=False)
    kept = values > _RESOLVED * values[:, :1]
    # At points without weight by the combination that makes them, elsewhere to the last digits.
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    combined = product(transposed(left * inverse[:, None]), scaled)
    exact = right / np.where(weights > 0, root, 1.0)
    return np.asarray(np.where(weights > 0, np.where(kept[:, :, None], exact, 0.0), combined))


def _fitted(penalised: Array, free: Array, target: Array, root: Array) -> Array:
    """The fit of the target, weights root², on functions with unit penalty and on free ones."""
    scaled, wanted = penalised * root[:, None], target * root
    power = (scaled * scaled).sum(axis=(1, 2)).max()
    if free.shape[1] == 0 and power < _NORMAL:
        matrix = product(scaled, transposed(scaled)) + np.eye(scaled.shape[1])
        factor = np.linalg.inv(np.linalg.cholesky(matrix))
        coefficients = np.zeros((*scaled.shape[:2], 1))
        for _ in range(2):  # the second round removes what the normal equations have lost
            rest = wanted[:, :, None] - product(transposed(scaled), coefficients)
            right = product(scaled, rest) - coefficients
            coefficients = coefficients + product(transposed(factor), product(factor, right))
        return product(transposed(coefficients), penalised)[:, 0]
    return _by_rotations(penalised, free, target, root)


def _by_rotations(penalised: Array, free: Array, target: Array, root: Array) -> Array:
    """The same without forming products of functions, which lose half of the digits."""
    cells, count, nodes = penalised.shape
    functions = np.concatenate([penalised, free], axis=1)
    rows = np.zeros((cells, nodes + count, functions.shape[1] + 1))
    rows[:, :nodes, :-1] = transposed(functions * root[:, None])
    rows[:, :nodes, -1] = target * root
    rows[:, nodes:, :count] = np.eye(count)
    # A column of zeros stands for a function that is not there.
    scale = np.sqrt((rows[:, :, :-1] ** 2).sum(axis=1))
    empty = scale == 0
    scale = np.where(empty, 1.0, scale)
    rows[:, :, :-1] /= scale[:, None]
    triangle = np.asarray(np.linalg.qr(rows, mode="r"))
    square, right = triangle[:, : functions.shape[1], :-1], triangle[:, : functions.shape[1], -1]
    square = square + empty[:, :, None] * np.eye(square.shape[1])
    coefficients = solve(square, np.where(empty, 0.0, right)) / scale
    return product(coefficients[:, None], functions)[:, 0]


# -- errors -------------------------------------------------------------------------------------


def read_out(state: State) -> Readout:
    """Errors and learned function at a solution of the nonlinear part.

    err(k) = known(k) + Σ C_aC_b Q_ab + Σ μ₂ₜ² q₂ₜ, where (Q, q₂) is the derivative of the minimum
    in (Ĉ, V̂₂): it solves the linear system of Newton's method with the sources below.
    """
    equations, system = state.equations, state.equations.system
    prior = Prior(state)
    found = _learn(state, prior)
    fit, slope = found.fit[:, 0], product(found.psi[:, None], equations.channels)[:, 0]
    norms, wanted = found.fit[:, 1:], system.target[:, 1:]
    known = system.target_square - 2 * system.target[:, 0] * fit + fit * fit
    known = known + (norms * norms - 2 * wanted * norms).sum(axis=1)
    known = known - 2 * system.target_linear * slope
    channels, types = _sources(state, prior, found)
    matrix, (outer, inner) = state.jacobian
    hats = product(equations.features, (state.measure * state.omega * known)[:, :, None])
    packed = hats[:, : channels.shape[1]]
    right = np.concatenate(
        [
            channels + product(outer, packed)[:, :, 0],
            types + (product(inner, packed) + hats[:, channels.shape[1] :])[:, :, 0],
        ],
        axis=1,
    )
    unknowns = solve(matrix, right) * equations.counted
    spread = product(unknowns[:, None], equations.features)[:, 0]
    error = known + spread
    kept = system.unit[:, None] * state.omega
    # The norm of the input contains z² as one of d squares.
    share = np.sqrt(0.5 * system.width * system.inverse_neurons)[:, None]
    bend = share * norms[:, 0] if norms.shape[1] else np.zeros_like(fit)
    return Readout(
        error=(error * system.weights).sum(axis=-1),
        train=(error * (kept * kept) * system.weights).sum(axis=-1),
        fit=fit,
        slope=slope,
        bend=bend,
        variance=spread + (norms * norms).sum(axis=1),
        far=_far(state),
    )


def _sources(state: State, prior: Prior, found: _Learned) -> tuple[Array, Array]:
    r"""What drives (Q, q₂) besides the errors themselves: derivatives of the minimum in (Ĉ, τ).

    With F = (χ̃, ψ̂) on spikes and teacher, χ̃ = χ̂ + Ĉχ, φ = XF − Ll̂ and ρ = 𝒢φ,

    .. math:: ∂_{\hat C} = X\bigl[FF^⊤ - Fρ^⊤ - ρF^⊤ + ρρ^⊤\bigr]X - χχ^⊤,\qquad
              -∂_{p_t} = ρ_t^⊤Σ_tρ_t + 2\hat l_tℓ_t^⊤ρ_t + v_t\hat l_t² .

    Returns
    -------
    ndarray of shapes (B, P), (B, T)
    """
    equations, system = state.equations, state.equations.system
    cells, rank, count = system.cells, equations.rank, system.rank
    size = count * rank
    chi, l_hat = found.chi, found.force[:, size:]
    lifted = product(chi.reshape(cells, count, rank), state.c_hat).reshape(cells, size)
    forces = np.concatenate([found.force[:, :size] + lifted, found.psi_hat], axis=1)
    forces = forces.reshape(cells, count + 1, rank)
    phi = np.zeros((cells, prior.loads.shape[1]))
    phi[:, : size + rank] = product(forces, state.x).reshape(cells, -1)
    if l_hat.shape[1]:
        phi = phi - product(prior.loads, l_hat[:, :, None])[:, :, 0]
    values = prior.forms.values
    whole = values.reshape(cells, len(phi[0]), len(phi[0]))
    seen = product(whole, phi[:, :, None]).reshape(cells, -1, rank)  # ⟨f_a, ρ⟩
    slopes = prior.forms.slopes(phi)
    if np.any(system.pull):
        slopes = slopes - _pulled(state, found.m)

    mixed = product(transposed(forces), seen[:, : count + 1])
    inner = product(transposed(forces), forces) - mixed - transposed(mixed) + slopes[:, 0]
    moved = product(product(state.x, inner), state.x)
    chi = chi.reshape(cells, count, rank)
    channels = equations.packing.pack(symmetric(moved - product(transposed(chi), chi)))

    packed = equations.packing.pack(slopes[:, 1:]) * equations.packing.count
    felt = product(equations.mixing_pairs, transposed(packed))
    types = (felt * system.bulk.coefficients).sum(axis=-1)
    if l_hat.shape[1]:
        along = product(system.loadings, seen)  # (B, CT, R)
        mixing = np.tile(equations.mixing, (1, prior.fluctuations, 1))
        norms = l_hat * (2 * (along * mixing).sum(axis=-1) + system.spread * l_hat)
        types = types + norms.reshape(cells, prior.fluctuations, -1).sum(axis=1)
    m_hat = found.m / (system.probabilities * state.tau)
    types = system.width[:, None] * types + system.inverse_neurons[:, None] * m_hat * m_hat
    return channels, types


def _pulled(state: State, m: Array) -> Array:
    """What the pull of the initial output on m adds to minus the slopes, (B, 1 + m, R, R)."""
    system, packed = state.equations.system, state.equations.packing
    mixing, hessian = state.equations.mixing, state.dyson.hessian
    size = len(packed)
    total = np.zeros((system.cells, hessian.shape[1]))
    for c in range(system.pull.shape[1]):
        weights = system.pull[:, c] * m[:, :, None] * m[:, None]
        inner = symmetric(product(product(transposed(mixing), weights), mixing))
        place = slice((1 + c) * size, (2 + c) * size)
        total += product(hessian[:, :, place], packed.pack(inner)[:, :, None])[:, :, 0]
    total = (
        total.reshape(system.cells, -1, size) / packed.count * system.inverse_neurons[:, None, None]
    )
    return packed.unpack(total)


def _far(state: State) -> Array:
    system = state.equations.system
    share = state.omega * system.weights
    beyond = np.abs(system.coordinates).max(axis=2) > _FAR
    return (share * beyond).sum(axis=-1) / share.sum(axis=-1)
