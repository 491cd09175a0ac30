"""The linear part of the equivalent model: what ridge regression learns, and its errors (§5c)."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from giantsteps.theory.solver.dyson import Directions
from giantsteps.theory.solver.least_squares import fitted, fitted_freely, square_root, triangular
from giantsteps.theory.solver.packing import inverse, product, solve, symmetric, transposed
from giantsteps.theory.solver.prior import Prior
from giantsteps.theory.solver.state import State
from giantsteps.types import Array

_FAR = 6.0


@dataclass(frozen=True, eq=False)
class Readout:
    """Ridge regression on the equivalent model, cell by cell."""

    error: Array  # (B,): E_k[err] = R + Δ
    train: Array  # (B,): E_k[ω² err]
    fit: Array  # (B, K): C(k), the learned function along the spikes
    #: (B, E, K): Σ μ₁ₜψₜ, what multiplies the teacher's coordinates z orthogonal to the spikes.
    slope: Array
    bend: Array  # (B, K): what multiplies |z|² − E, through the norm of the input
    variance: Array  # (B, K): variance of the prediction given k
    #: (B,): share of E_k[ω] from |k| > 6: of order one where the limit λ → 0 does not exist.
    far: Array

    def take(self, cells: Array | slice) -> Readout:
        """The readouts of some of the cells."""
        return Readout(*(getattr(self, field.name)[cells] for field in fields(self)))


@dataclass(frozen=True, eq=False)
class _Learned:
    """What the readout learns: m, χ, the teacher's part, and the forces behind them."""

    m: Array  # (B, T); zero at N = ∞, where it has no bound
    chi: Array  # (B, rR)
    force: Array  # on (χ, l), (B, rR + T)
    psi_hat: Array  # (B, ER)
    psi: Array  # (B, ER)
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
    psi_hat = product(measure[:, None] * system.target_linear, transposed(channels))
    psi_hat = psi_hat.reshape(cells, -1, 1)
    offset = product(prior.with_teacher, psi_hat)  # (B, rR + T, 1)
    # Only the first modes have regressors.
    own = system.own_regressors(channels)
    own = own.reshape(*own.shape[:2], -1)
    order = system.modes
    mean, wanted = system.mean, system.target
    if system.weak:
        mean, wanted = mean.take(order, axis=2), wanted.take(order, axis=1)
    flat, wanted = mean.reshape(cells, count, -1), wanted.reshape(cells, -1)

    # Columns that are penalised, whitened: what multiplies them has variance one under the penalty.
    short = product(transposed(square_root(prior.covariance)), own)
    finite = bool((system.inverse_neurons > 0).all())
    root = np.concatenate([np.sqrt(measure)] * modes, axis=1)
    known = np.zeros_like(wanted)
    known[:, : own.shape[2]] = product(transposed(offset), own)[:, 0]
    target = wanted - known
    if finite:
        inverse_root = inverse(triangular(prior.precision))
        whole = product(inverse_root, flat) / np.sqrt(system.inverse_neurons)[:, None, None]
        fit = fitted(short, whole, target, root)
    else:
        fit = fitted_freely(short, flat, target, root)
    residual = ((target - fit).reshape(cells, modes, nodes) * measure[:, None]).reshape(cells, -1)
    force = product(own, residual[:, : own.shape[2], None])
    theta = offset + product(prior.covariance, force)
    fit = (fit + known).reshape(cells, modes, nodes)
    if system.weak:
        fit = fit.take(np.argsort(order), axis=1)
    m = np.zeros_like(system.probabilities)
    if finite:
        pulled = product(flat, residual[:, :, None])[:, :, 0]
        m = solve(prior.precision, pulled) / system.inverse_neurons[:, None]
    psi = product(transposed(prior.with_teacher), force) + product(prior.of_teacher, psi_hat)
    return _Learned(
        m=m,
        chi=theta[:, : system.rank * equations.rank, 0],
        force=force[:, :, 0],
        psi_hat=psi_hat[:, :, 0],
        psi=psi[:, :, 0],
        fit=fit,
    )


def read_out(state: State) -> Readout:
    """Errors and learned function at a solution of the nonlinear part.

    err(k) = known(k) + Σ C_aC_b Q_ab + Σ μ₂ₜ² q₂ₜ, where (Q, q₂) is the derivative of the minimum
    in (Ĉ, V̂₂): it solves the linear system of Newton's method with the sources below.
    """
    equations, system = state.equations, state.equations.system
    matrix, (outer, inner) = state.jacobian  # first: a hessian that is known serves the sources
    prior = Prior(state)
    found = _learn(state, prior)
    psi = found.psi.reshape(system.cells, system.beside, equations.rank)
    fit, slope = found.fit[:, 0], product(psi, equations.channels)
    norms, wanted = found.fit[:, 1:], system.target[:, 1:]
    known = system.target_square - 2 * system.target[:, 0] * fit + fit * fit
    known = known + (norms * norms - 2 * wanted * norms).sum(axis=1)
    known = known - 2 * (system.target_linear * slope).sum(axis=1)
    channels, types = _sources(state, prior, found)
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
    weak = system.weak
    bend, own = np.zeros_like(fit), system.norms.shape[2] - 1
    if norms.shape[1] > weak + own:
        # The norm of the input contains every z² as one of d squares.
        share = np.sqrt(0.5 * system.width * system.inverse_neurons) * system.second[:, 0]
        bend = share[:, None] * norms[:, own]
    if own:
        bend = bend + product(system.second[:, None, 1:], norms[:, :own])[:, 0] / np.sqrt(2.0)
    if weak:  # of the remainder beside the spikes proper
        along = product(system.shares, norms[:, norms.shape[1] - weak :])
        slope = along + product(system.left, slope)
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

    With F = (χ̃, ψ̂) on spikes and teacher's remainder, χ̃ = χ̂ + Ĉχ, φ = XF − Ll̂ and ρ = 𝒢φ,

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
    known = count + system.beside
    forces = forces.reshape(cells, known, rank)
    phi = np.zeros((cells, prior.loads.shape[1]))
    phi[:, : known * rank] = product(forces, state.x).reshape(cells, -1)
    if l_hat.shape[1]:
        phi = phi - product(prior.loads, l_hat[:, :, None])[:, :, 0]
    seen = product(prior.flat, phi[:, :, None]).reshape(cells, -1, rank)  # ⟨f_a, ρ⟩
    slopes, excess = prior.slopes(phi)
    if system.pull.any():
        slopes = slopes - _pulled(state, found.m)

    mixed = product(transposed(forces), seen[:, :known])
    inner = product(transposed(forces), forces) - mixed - transposed(mixed) + slopes[:, 0]
    moved = product(product(state.x, inner), state.x)
    chi = chi.reshape(cells, count, rank)
    channels = equations.packing.pack(symmetric(moved - product(transposed(chi), chi)))

    packed = equations.packing.pack(slopes[:, 1:]) * equations.packing.count
    felt = product(equations.mixing_pairs, transposed(packed))
    types = (felt * system.bulk.coefficients).sum(axis=-1) + excess
    if l_hat.shape[1]:
        along = product(system.loadings, seen)  # (B, CT, R)
        norms = l_hat * (2 * (along * prior.mixing).sum(axis=-1) + system.spread * l_hat)
        types = types + norms.reshape(cells, prior.fluctuations, -1).sum(axis=1)
    m_hat = found.m / (system.probabilities * state.tau)
    types = system.width[:, None] * types + system.inverse_neurons[:, None] * m_hat * m_hat
    return channels, types


def _pulled(state: State, m: Array) -> Array:
    """What the pull of the initial output on m adds to minus the slopes, (B, 1 + m, R, R)."""
    system, packed = state.equations.system, state.equations.packing
    mixing, size = state.equations.mixing, len(packed)
    drive = np.zeros((system.cells, state.dyson.layout.parameters, 1))
    for c in range(system.pull.shape[1]):
        weights = system.pull[:, c] * m[:, :, None] * m[:, None]
        inner = symmetric(product(product(transposed(mixing), weights), mixing))
        drive[:, (1 + c) * size : (2 + c) * size, 0] = packed.pack(inner)
    total = state.dyson.curved(Directions(0, drive))[:, :, 0]
    total = (
        total.reshape(system.cells, -1, size) / packed.count * system.inverse_neurons[:, None, None]
    )
    return packed.unpack(total)


def _far(state: State) -> Array:
    system = state.equations.system
    share = state.omega * system.weights
    beyond = np.abs(system.coordinates).max(axis=2) > _FAR
    return (share * beyond).sum(axis=-1) / share.sum(axis=-1)
