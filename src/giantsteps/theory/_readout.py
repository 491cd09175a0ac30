"""The linear part of the equivalent model: what ridge regression learns, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from giantsteps.theory._resolvent import Equations, Resolvent, solve_stacked
from giantsteps.theory._solve import solve
from giantsteps.theory._special import SpecialResolvent, special_resolvent, total, transposed
from giantsteps.theory._system import System

__all__ = [
    "Readout",
    "Regression",
    "regress",
    "regression",
    "sources",
]

_LEAST_SQUARES_TOLERANCE = 1e-13
_FAR = 6.0
#: Numbers that a stack of cells may hold at once.
_MEMORY = 4_000_000


@dataclass(frozen=True, eq=False)
class Readout:
    """Ridge regression on the equivalent model (theory §5c), cell by cell.

    Attributes
    ----------
    error : ndarray of shape (B,)
        E_k[err] = R + Δ.
    train : ndarray of shape (B,)
        E_k[ω² err].
    fit : ndarray of shape (B, K)
        C(k), the learned function along the spikes.
    slope : ndarray of shape (B, K)
        Σ μ₁ₜψₜ, what multiplies the teacher's coordinate orthogonal to the spikes.
    variance : ndarray of shape (B, K)
        Σ μ₁ₜμ₁ₛQₜₛ + Σ μ₂ₜ²q2ₜ + Cₙ², variance of the prediction given k.
    residual, iterations : ndarray of shape (B,)
        Of the nonlinear part.
    converged : ndarray of shape (B,)
    far : ndarray of shape (B,)
        Share of E_k[ω] from |k| > 6: of order one where the limit λ → 0 does not exist.
    """

    error: NDArray
    train: NDArray
    fit: NDArray
    slope: NDArray
    variance: NDArray
    residual: NDArray
    iterations: NDArray
    converged: NDArray
    far: NDArray

    def take(self, cells: NDArray | slice) -> Readout:
        """The readouts of some of the cells."""
        return Readout(*(getattr(self, field.name)[cells] for field in fields(self)))


def regress(systems: Sequence[System]) -> list[Readout]:
    """Solve every cell of every system; stacks are by shape and rank, and leave no trace."""
    ends = np.cumsum([system.cells for system in systems])
    solved: list[Readout | None] = [None] * int(ends[-1])
    shapes: dict[tuple[int, ...], list[int]] = {}
    for i, system in enumerate(systems):
        shapes.setdefault(system.shape, []).append(i)
    for members in shapes.values():
        stack = System.stack([systems[i] for i in members])
        where = np.concatenate([np.arange(ends[i] - systems[i].cells, ends[i]) for i in members])
        for cells in _chunks(stack):
            readout = _regress(stack.take(cells))
            for position, cell in enumerate(where[cells]):
                solved[cell] = readout.take(slice(position, position + 1))
    starts = ends - [system.cells for system in systems]
    return [_join(solved[start:end]) for start, end in zip(starts, ends)]


def _join(cells: Sequence[Readout | None]) -> Readout:
    known = [cell for cell in cells if cell is not None]
    return Readout(
        *(
            np.concatenate([getattr(cell, field.name) for cell in known])
            for field in fields(Readout)
        )
    )


def _chunks(stack: System) -> Iterator[NDArray]:
    """Cells of one rank, few enough for the memory."""
    types, nodes, _, directions, special, _ = stack.shape
    ranks = stack.channels()[2]
    for rank in np.unique(ranks):
        members = np.flatnonzero(ranks == rank)
        packed = rank * (rank + 1) // 2
        size = (packed + types) * (nodes + 3 * (packed + types))
        size += (directions + special) * types * (types + packed)
        count = max(1, _MEMORY // int(size))
        for start in range(0, len(members), count):
            yield members[start : start + count]


@dataclass(frozen=True, eq=False)
class Regression:
    """What the readout learns, in channels: (m, χ, ψ) and their conjugates (theory §5c)."""

    m: NDArray  # (B, T), or one entry for each unpenalised function at p = ∞
    chi: NDArray  # Uᵀχ and what the lengths are fitted with, of shape (B, rR + L, 1)
    chi_hat: NDArray  # (B, rR + L, 1)
    psi: NDArray  # Uᵀψ of shape (B, R, 1)
    psi_hat: NDArray  # (B, R, 1)
    fit: NDArray  # C(k) of shape (B, K)
    norm: NDArray  # Cₙ(k) of shape (B, K)
    slope: NDArray  # Σ μ₁ₜψₜ of shape (B, K)


def regression(point: Resolvent, special: SpecialResolvent) -> Regression:
    r"""(m, χ, ψ) by one least-squares problem.

    ψ̂ does not depend on the fit, and (m, χ) minimise

    .. math:: ΓE[ω((h - C)² + C_n²)] + Σ m_t²/(pV2_t) +
              (χ - χ_0)ᵀ\mathcal Y_{bb}^{-1}(χ - χ_0), \qquad
              χ_0 = \mathcal Y_{bB}\hat ψ.
    """
    equations, system = point.equations, point.equations.system
    channels, measure = equations.channels, point.measure
    spikes = _spike_features(point)
    psi_hat = channels @ (measure * system.target_linear)[:, :, None]
    offset = special.mixed @ psi_hat
    factor = np.linalg.cholesky(0.5 * (special.spikes + transposed(special.spikes)))
    m, x = _ridge(
        point,
        design=np.concatenate([system.mean, transposed(factor) @ spikes], axis=1),
        target=system.target - (transposed(offset) @ spikes)[:, 0],
        ridge=np.sqrt(system.inverse_neurons[:, None] / (system.probabilities * point.tau)),
    )
    chi = factor @ x + offset
    chi_hat = np.linalg.solve(transposed(factor), x)
    psi = transposed(special.mixed) @ chi_hat + special.teacher @ psi_hat
    return Regression(
        m=m,
        chi=chi,
        chi_hat=chi_hat,
        psi=psi,
        psi_hat=psi_hat,
        fit=(m[:, None] @ system.mean + transposed(chi) @ spikes)[:, 0],
        norm=(m[:, None] @ system.norm)[:, 0],
        slope=(transposed(psi) @ channels)[:, 0],
    )


def sources(
    point: Resolvent, special: SpecialResolvent, found: Regression
) -> tuple[NDArray, NDArray]:
    r"""What drives (Q, q2) besides the errors themselves.

    Along a special direction M1 has β[ν_BB ψ̂ψ̂ᵀ + ν_bB(ψ̂χ̃ᵀ + χ̃ψ̂ᵀ) + ν_bb χ̃χ̃ᵀ],
    χ̃ = χ̂ + V̂1χ; it moves Q by β⁻¹Y M1 Y − χχᵀ, and the types by sₜ(L M1 Lᵀ)ₜₜ + p m̂ₜ². Where
    lengths vary, their pull κl̂ on the initial weights joins χ̃ (theory §5e).

    Returns
    -------
    channels : ndarray of shape (B, R2)
    types : ndarray of shape (B, T)
    """
    equations, system = point.equations, point.equations.system
    cells, rank, count = system.cells, equations.rank, system.coordinates.shape[1]
    size, own = count * rank, system.slope.shape[1]
    chi, pull = found.chi[:, :size], found.chi_hat[:, size:]
    tilt = system.slope[:, :, None] * pull
    reach = special.lengths @ tilt  # UᵀPκl̂
    vectors = np.concatenate(
        [found.chi_hat[:, :size] + special.lifted @ chi, found.psi_hat], axis=1
    )
    vectors[:, :rank] -= point.c_hat @ reach
    vectors = transposed(vectors.reshape(cells, 1, count + 1, rank))
    seen = (equations.mixing[:, None] @ special.damping) @ vectors  # (B, J, T, r+1)
    weighted = seen @ system.special
    felt = total((weighted * seen).sum(axis=-1) * transposed(system.special_variances))
    ways = (cells, own // felt.shape[1], felt.shape[1])
    vary = ((system.slope**2 + system.spread) * pull[:, :, 0] ** 2).reshape(ways)
    felt += total(2 * tilt.reshape(ways) * total(weighted[..., 0])[:, None] + vary)
    m_hat = found.m / (system.probabilities * point.tau)
    types = system.width[:, None] * felt + system.inverse_neurons[:, None] * (m_hat * m_hat)
    pushed = special.inner @ vectors
    pushed[..., 0] += reach[:, None, :, 0]
    chi = chi.reshape(cells, count, rank)
    moved = total(pushed @ system.special @ transposed(pushed)) - transposed(chi) @ chi
    return equations.pack(moved), types


def _regress(system: System) -> Readout:
    equations = Equations(system)
    solved = solve(equations, system.penalty)
    point = equations.at(solved.v1, solved.tau, system.penalty)
    special = special_resolvent(point)
    found = regression(point, special)
    known = (
        system.target_square
        - 2 * system.target * found.fit
        + found.fit * found.fit
        + found.norm * found.norm
        - 2 * system.target_linear * found.slope
    )
    # err = known + spread, with the spread affine in err through the Jacobian of the equations.
    channels, types = sources(point, special, found)
    matrix, (outer, inner) = point.jacobian
    hats = equations.features @ (point.measure * point.omega * known)[:, :, None]
    packed = hats[:, : channels.shape[1]]
    channels = channels + (outer @ packed)[:, :, 0]
    types = types + (inner @ packed + hats[:, channels.shape[1] :])[:, :, 0]
    right = np.concatenate([channels, types], axis=1)
    unknowns = solve_stacked(matrix, right) * equations.counted
    spread = (unknowns[:, None] @ equations.features)[:, 0]
    error = known + spread
    kept = system.unit[:, None] * point.omega
    return Readout(
        error=(error * system.weights).sum(axis=-1),
        train=(error * (kept * kept) * system.weights).sum(axis=-1),
        fit=found.fit,
        slope=found.slope,
        variance=spread + found.norm * found.norm,
        residual=solved.residual,
        iterations=solved.iterations,
        converged=solved.converged,
        far=_far(point),
    )


def _spike_features(point: Resolvent) -> NDArray:
    """k_j C_a(k), and what the lengths change, of shape (B, rR + L, K)."""
    system, channels = point.equations.system, point.equations.channels
    spikes = system.coordinates.T[None, :, None, :] * channels[:, None]
    spikes = spikes.reshape(len(channels), -1, len(system.coordinates))
    return np.concatenate([spikes, system.length], axis=1)


def _far(point: Resolvent) -> NDArray:
    system = point.equations.system
    share = point.omega * system.weights
    beyond = np.abs(system.coordinates).max(axis=1) > _FAR
    return (share * beyond).sum(axis=-1) / share.sum(axis=-1)


def _ridge(
    point: Resolvent, *, design: NDArray, target: NDArray, ridge: NDArray
) -> tuple[NDArray, NDArray]:
    """Coefficients m (B, T) and x (B, rR, 1) of the penalised least-squares problem.

    Through the singular values of √weight·features, not their Gram matrix: spikes may be tiny.
    Columns are scaled; what is null to 1e-13 gets no coefficient, so that without penalty (p = ∞)
    many types stand for the closure of their span.
    """
    system = point.equations.system
    types, size = ridge.shape[1], design.shape[1]
    root = np.sqrt(point.measure)[:, None, :]
    norm = np.zeros_like(design)
    norm[:, :types] = system.norm
    penalty = np.concatenate([ridge, np.ones((len(ridge), size - types))], axis=1)
    rows = np.concatenate([design * root, norm * root, penalty[:, None] * np.eye(size)], axis=2)
    wanted = np.zeros(rows.shape[::2])
    wanted[:, : target.shape[1]] = target * root[:, 0]
    scale = np.sqrt((rows * rows).sum(axis=-1))
    scale = np.where(scale > 0, scale, 1.0)
    right, values, left = np.linalg.svd(rows / scale[:, :, None], full_matrices=False)
    kept = values > _LEAST_SQUARES_TOLERANCE * values[:, :1]
    inverse = np.where(kept, 1.0 / np.where(kept, values, 1.0), 0.0)
    solution = (right @ ((left @ wanted[:, :, None]) * inverse[:, :, None]))[:, :, 0] / scale
    return solution[:, :types], solution[:, types:, None]
