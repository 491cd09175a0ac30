"""The linear part of the equivalent model: what ridge regression learns, and its errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from giantsteps.theory._resolvent import Equations, Resolvent, solve_stacked
from giantsteps.theory._solve import solve
from giantsteps.theory._system import System

__all__ = [
    "Readout",
    "Regression",
    "SpecialResolvent",
    "regress",
    "regression",
    "sources",
    "special_resolvent",
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
    types, nodes, _, directions, special = stack.shape
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
class SpecialResolvent:
    """Resolvents along the spikes and the teacher's remainder (theory §5c: 𝒴_bb, 𝒴_bB, 𝒴_BB)."""

    damping: NDArray  # ℓ_ι of shape (B, J, R, R)
    inner: NDArray  # UᵀY_ιU of shape (B, J, R, R)
    lifted: NDArray  # I ⊗ Ĉ of shape (B, rR, rR)
    spikes: NDArray  # 𝒴_bb of shape (B, rR, rR)
    mixed: NDArray  # 𝒴_bB of shape (B, rR, R)
    teacher: NDArray  # 𝒴_BB of shape (B, R, R)


def special_resolvent(point: Resolvent) -> SpecialResolvent:
    """𝒴_bb, 𝒴_bB and 𝒴_BB at a solution of the nonlinear part."""
    system = point.equations.system
    count = system.coordinates.shape[1]
    damping, inner = point.directions(system.special_variances)
    joint = _kronecker_sum(system.special, inner)
    size = count * point.equations.rank
    lifted = _lift(point.c_hat, count)
    opened = np.linalg.solve(np.eye(size) - joint[:, :size, :size] @ lifted, joint[:, :size])
    mixed = opened[:, :, size:]
    teacher = joint[:, size:, size:] + _t(joint[:, :size, size:]) @ (lifted @ mixed)
    return SpecialResolvent(damping, inner, lifted, opened[:, :, :size], mixed, teacher)


@dataclass(frozen=True, eq=False)
class Regression:
    """What the readout learns, in channels: (m, χ, ψ) and their conjugates (theory §5c)."""

    m: NDArray  # (B, T), or one entry for each unpenalised function at p = ∞
    chi: NDArray  # Uᵀχ of shape (B, rR, 1)
    chi_hat: NDArray  # (B, rR, 1)
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
    factor = np.linalg.cholesky(0.5 * (special.spikes + _t(special.spikes)))
    m, x = _ridge(
        point,
        design=np.concatenate([system.mean, _t(factor) @ spikes], axis=1),
        target=system.target - (_t(offset) @ spikes)[:, 0],
        ridge=np.sqrt(system.inverse_neurons[:, None] / (system.probabilities * point.tau)),
    )
    chi = factor @ x + offset
    chi_hat = np.linalg.solve(_t(factor), x)
    psi = _t(special.mixed) @ chi_hat + special.teacher @ psi_hat
    return Regression(
        m=m,
        chi=chi,
        chi_hat=chi_hat,
        psi=psi,
        psi_hat=psi_hat,
        fit=(m[:, None] @ system.mean + _t(chi) @ spikes)[:, 0],
        norm=(m[:, None] @ system.norm)[:, 0],
        slope=(_t(psi) @ channels)[:, 0],
    )


def sources(
    point: Resolvent, special: SpecialResolvent, found: Regression
) -> tuple[NDArray, NDArray]:
    r"""What drives (Q, q2) besides the errors themselves.

    Along a special direction M1 has β[ν_BB ψ̂ψ̂ᵀ + ν_bB(ψ̂χ̃ᵀ + χ̃ψ̂ᵀ) + ν_bb χ̃χ̃ᵀ],
    χ̃ = χ̂ + V̂1χ; it moves Q by β⁻¹Y M1 Y − χχᵀ, and the types by sₜ(L M1 Lᵀ)ₜₜ + p m̂ₜ².

    Returns
    -------
    channels : ndarray of shape (B, R2)
    types : ndarray of shape (B, T)
    """
    equations, system = point.equations, point.equations.system
    cells, rank, count = system.cells, equations.rank, system.coordinates.shape[1]
    vectors = np.concatenate([found.chi_hat + special.lifted @ found.chi, found.psi_hat], axis=1)
    vectors = vectors.reshape(cells, 1, count + 1, rank)
    source = _t(vectors) @ (system.special @ vectors)  # (B, J, R, R), without its factor β
    seen = equations.mixing[:, None] @ special.damping
    felt = ((seen @ source) * seen).sum(axis=-1) * _t(system.special_variances)
    felt = np.ascontiguousarray(_t(felt)).sum(axis=-1)
    m_hat = found.m / (system.probabilities * point.tau)
    types = system.width[:, None] * felt + system.inverse_neurons[:, None] * (m_hat * m_hat)
    pushed = np.moveaxis(special.inner @ source @ special.inner, 1, 3)
    chi = found.chi.reshape(cells, count, rank)
    pushed = np.ascontiguousarray(pushed).sum(axis=-1) - _t(chi) @ chi
    return equations.pack(pushed), types


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
    """k_j C_a(k) of shape (B, rR, K)."""
    coordinates, channels = point.equations.system.coordinates, point.equations.channels
    spikes = coordinates.T[None, :, None, :] * channels[:, None]
    return spikes.reshape(len(channels), -1, len(coordinates))


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


def _kronecker_sum(special: NDArray, inner: NDArray) -> NDArray:
    """Σ_ι special(ι) ⊗ UᵀY_ιU, of shape (B, (r+1)R, (r+1)R)."""
    cells, directions, count, _ = special.shape
    rank = inner.shape[-1]
    left = np.ascontiguousarray(_t(special.reshape(cells, directions, count * count)))
    product = left @ inner.reshape(cells, directions, rank * rank)
    product = product.reshape(cells, count, count, rank, rank)
    return np.swapaxes(product, 2, 3).reshape(cells, count * rank, count * rank)


def _lift(matrix: NDArray, count: int) -> NDArray:
    """I ⊗ matrix."""
    cells, rank, _ = matrix.shape
    blocks = np.eye(count)[None, :, None, :, None] * matrix[:, None, :, None, :]
    return blocks.reshape(cells, count * rank, count * rank)


def _t(matrix: NDArray) -> NDArray:
    return np.swapaxes(matrix, -1, -2)
