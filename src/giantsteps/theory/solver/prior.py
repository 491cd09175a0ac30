"""Sums over the neurons as the ridge penalty sees them (theory §5c)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from giantsteps.theory.solver.once import once
from giantsteps.theory.solver.packing import identity, inverse, product, symmetric, transposed
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.solver.state import State
from giantsteps.types import Array


@dataclass(frozen=True, eq=False)
class Prior:
    r"""Sums over the neurons as the ridge penalty sees them (theory §5c).

    The readout acts through m_t = N^{-1/2}Σ_j a_j, q_t = N^{-1/2}Σ_j a_jw_j and
    l_t = N^{-1/2}Σ_j a_jL_j over the neurons of a type, L_j how far the squared norm of a neuron is
    from that of its type. Given the bulk, χ = Uᵀ⟨q, spikes⟩, the same along the directions B that
    the spikes leave of the teacher, and l are Gaussian under the penalty, with covariances that are
    Schur complements of the forms S_ab = f_aᵀ𝒢f_b on the special vectors:

    .. math:: 𝒴_{χχ} = S_{ss}^{-1} - X,\quad 𝒴_{χB} = -S_{ss}^{-1}S_{sB}X,\quad
              𝒴_{BB} = X - X(S_{BB} - S_{Bs}S_{ss}^{-1}S_{sB})X,
    .. math:: 𝒴_{χl} = S_{ss}^{-1}(SL)_s,\quad
              𝒴_{Bl} = X\bigl((SL)_B - S_{Bs}S_{ss}^{-1}(SL)_s\bigr),\quad
              𝒴_{ll} = pv - L^⊤SL + (SL)_s^⊤S_{ss}^{-1}(SL)_s,

    with L_{at} = p_t ℓ_{ta} u_t. Where the covariances have more on the special vectors than their
    operators, Σ_t + Σ_ab Δ_tab f_af_bᵀ, the forms are (S^{-1} + D)^{-1}, D_{ab} = Σ_t p_tΔ_tab
    u_tu_tᵀ: an excess on few vectors leaves the traces alone.
    """

    state: State

    @once
    def forms(self) -> Forms:
        """Forms of the special vectors."""
        return Forms(self.state.dyson)

    @property
    def _spikes(self) -> int:
        """Columns of the spikes: r R."""
        return self.state.equations.system.rank * self.state.equations.rank

    @property
    def _teacher(self) -> slice:
        """Columns of the teacher's remainder, E R."""
        beside = self.state.equations.system.beside * self.state.equations.rank
        return slice(self._spikes, self._spikes + beside)

    @once
    def flat(self) -> Array:
        """S of shape (B, FR, FR)."""
        values = self.forms.values
        size = values.shape[1] * values.shape[2]
        flat = values.reshape(len(values), size, size)
        if not self.state.equations.system.excess.shape[2]:
            return flat
        return symmetric(product(flat, self._opened))

    @once
    def _opened(self) -> Array:
        """(I + DS)⁻¹ of shape (B, FR, FR), S without the excess."""
        equations, values = self.state.equations, self.forms.values
        excess, rank = equations.system.excess, equations.rank
        count, size = excess.shape[2] * rank, values.shape[1] * rank
        loads = self.state.strength[:, :, None, None] * excess  # (B, T, F', F')
        outer = equations.mixing[:, :, :, None] * equations.mixing[:, :, None]
        d = np.einsum("btac,btij->baicj", loads, outer).reshape(len(excess), count, count)
        matrix = np.tile(identity(size), (len(excess), 1, 1))
        rows = values.reshape(len(excess), size, size)[:, :count]
        matrix[:, :count] += product(d, np.ascontiguousarray(rows))
        return np.asarray(np.linalg.inv(matrix))

    def slopes(self, force: Array) -> tuple[Array, Array]:
        """Minus the derivatives of the form φᵀSφ in X and every P_c, (B, 1 + m, R, R), and in the
        p_t of the excess, (B, T).
        """
        system = self.state.equations.system
        types = np.zeros_like(system.probabilities)
        if not system.excess.shape[2]:
            return self.forms.slopes(force), types
        rank, count = self.state.equations.rank, system.excess.shape[2]
        inner = product(self._opened, force[:, :, None])[:, :, 0]
        seen = product(self.flat, force[:, :, None]).reshape(len(force), -1, rank)[:, :count]
        along = product(self.state.equations.mixing, transposed(seen))  # ⟨f_a, ρ⟩ of a type
        types = (product(along[:, :, None], system.excess)[:, :, 0] * along).sum(axis=-1)
        return self.forms.slopes(inner), types

    @once
    def loads(self) -> Array:
        """L of shape (B, FR, CT), or (B, FR, 0) where norms do not vary."""
        loadings = self.state.equations.system.loadings[:, :, :, None]
        loads = self.strengths[:, :, None, None] * loadings * self.mixing[:, :, None]
        shape = (*loads.shape[:2], loads.shape[2] * loads.shape[3])
        return np.ascontiguousarray(transposed(loads.reshape(shape)))

    @property
    def fluctuations(self) -> int:
        """C, how many independent fluctuations the norms of each type have."""
        system = self.state.equations.system
        return int(system.spread.shape[1] // system.probabilities.shape[1])

    @once
    def mixing(self) -> Array:
        """u_t of the type of each fluctuation, shape (B, CT, R)."""
        return _repeated(self.state.equations.mixing, self.fluctuations)

    @once
    def strengths(self) -> Array:
        """p_t of the type of each fluctuation, shape (B, CT)."""
        return _repeated(self.state.strength, self.fluctuations)

    @once
    def _solved(self) -> tuple[Array, Array, Array]:
        """S_ss⁻¹, S_ss⁻¹S_sB and S_ss⁻¹(SL)_s."""
        s = self._spikes
        flat = np.ascontiguousarray(self.flat[:, :s, :s])
        inner = symmetric(inverse(flat))
        teacher = product(inner, self.flat[:, :s, self._teacher])
        return inner, teacher, product(inner, self.carried[:, :s])

    @once
    def carried(self) -> Array:
        """SL of shape (B, FR, T)."""
        return product(self.flat, self.loads)

    @once
    def covariance(self) -> Array:
        """𝒴 of (χ, l), shape (B, rR + T, rR + T)."""
        inner, _, norms = self._solved
        s, count = self._spikes, self.state.equations.system.rank
        first = inner - _lifted(self.state.x, count)
        vary = self.strengths * self.state.equations.system.spread
        last = vary[:, :, None] * identity(vary.shape[1])
        last = last - product(transposed(self.loads), self.carried)
        last = last + product(transposed(self.carried[:, :s]), norms)
        found = np.empty((len(first), s + len(last[0]), s + len(last[0])), dtype=first.dtype)
        found[:, :s, :s], found[:, s:, s:] = first, last
        found[:, :s, s:], found[:, s:, :s] = norms, transposed(norms)
        return symmetric(found)

    @once
    def with_teacher(self) -> Array:
        """𝒴 between (χ, l) and B, shape (B, rR + T, ER)."""
        _, teacher, norms = self._solved
        s, x = self._spikes, _lifted(self.state.x, self.state.equations.system.beside)
        rest = transposed(self.carried[:, self._teacher])
        rest = rest - product(transposed(norms), self.flat[:, :s, self._teacher])
        return np.concatenate([-product(teacher, x), product(rest, x)], axis=1)

    @once
    def of_teacher(self) -> Array:
        """𝒴_BB of shape (B, ER, ER)."""
        s, block = self._spikes, self._teacher
        x = _lifted(self.state.x, self.state.equations.system.beside)
        rest = self.flat[:, block, block] - product(
            transposed(np.ascontiguousarray(self.flat[:, :s, block])), self._solved[1]
        )
        return symmetric(x - product(product(x, rest), x))

    @once
    def precision(self) -> Array:
        """N times the precision of m: (πτ)⁻¹ and the pull of the initial output, (B, T, T)."""
        state, system = self.state, self.state.equations.system
        plain = (
            identity(system.probabilities.shape[1]) / (system.probabilities * state.tau)[:, None]
        )
        if not system.pull.any():
            return plain
        mixing = state.equations.mixing
        for c in range(system.pull.shape[1]):
            trace = state.dyson.traces[:, 1 + c]
            seen = product(product(mixing, trace), transposed(mixing))
            plain = plain + system.pull[:, c] * symmetric(seen)
        return plain


def _repeated(of_types: Array, count: int) -> Array:
    """What types have (B, T, …), once for each of their fluctuations."""
    return np.concatenate([of_types] * count, axis=1) if count else of_types[:, :0]


def _lifted(matrix: Array, count: int) -> Array:
    """I ⊗ matrix."""
    cells, rank, _ = matrix.shape
    if count == 1:
        return matrix
    blocks = identity(count)[None, :, None, :, None] * matrix[:, None, :, None, :]
    return blocks.reshape(cells, count * rank, count * rank)
