r"""The model of one step by its equations alone: slow, plain and independent (theory §5).

`risk` solves the equations by damped iteration and differentiates the minimum by a complex step;
nothing of it is shared with the package's solver, which is tested against it. Symbols are those of
theory §0: s = η̃A_t, r = y − c₀E A on a sample of the batch, u = ⟨x, β*⟩, τ(·) = d⁻¹tr, b_j =
n₀⁻¹Σ_i r_i^j x_i.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.functions import SingleIndex
from giantsteps.gaussian import coordinate_rule, gauss_rule, moments, smoothed
from giantsteps.problem import Problem
from giantsteps.types import Array, FloatArray

__all__ = ["Batch", "batch_law", "risk"]

_STEP, _TOLERANCE, _ROUNDS = 1e-20, 1e-13, 5000
#: Blocks of the linearised resolvent: M𝒢 is at (A, X), 𝒢M at (X, C), M𝒢M at (A, C).
_A, _C, _X = 0, 1, 2


@dataclass(frozen=True, eq=False)
class Batch:
    r"""The law of a neuron given the batch: w = S_tb̂ + (I + κ_tM)w₀ + ζ.

    ========  ========================  =======================================================
    symbol    attribute                 meaning
    ========  ========================  =======================================================
    r, u      residual, along, weights  samples of the batch as a quadrature
    κ, ε      tilt, noise               Σ_t = (I + κ_tM)² + ε_t𝐒, 𝐒 = n₀⁻¹Σ r²xxᵀ
    c, S, γ   total, spike, overlap     τ(Σ_t), lean along b̂ = b/‖b‖, ⟨b̂, β*⟩
    λ, ζ      linear, own               d·Cov(w, ‖w‖²) = (I + κM)λ + ζ on (b, b₂, b₃), (3, T)
    v         spread                    d·Var‖w‖², sphere weights
    f, e      growth, stretch           what ‖w₀‖² − 1 makes of ‖w‖² and of the lean
    \         products                  τ(Σ_tΣ_s), shape (T, T)
    ‖b‖, μ₁   length, slope
    ========  ========================  =======================================================
    """

    residual: FloatArray
    along: FloatArray
    weights: FloatArray
    tilt: FloatArray
    noise: FloatArray
    total: FloatArray
    spike: FloatArray
    overlap: float
    linear: FloatArray
    own: FloatArray
    spread: FloatArray
    growth: FloatArray
    stretch: FloatArray
    products: FloatArray
    length: float
    slope: float


def _samples(problem: Problem, nodes: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(u, r) and weights; ``nodes`` of the label noise."""
    assert isinstance(problem.teacher, SingleIndex)
    rule = gauss_rule(problem.teacher.link, width=2.0).pruned(1e-18)
    shift = moments(problem.activation).mean * problem.init.second_layer.mean
    u, r, w = rule.nodes, np.asarray(problem.teacher.link(rule.nodes), float) - shift, rule.weights
    if problem.noise_variance > 0:
        g, v = np.polynomial.hermite_e.hermegauss(nodes)
        r = (r[:, None] + math.sqrt(problem.noise_variance) * g).ravel()
        u, w = np.repeat(u, nodes), (w[:, None] * v).ravel()
    return u, r, w / w.sum()


def batch_law(problem: Problem, moved: FloatArray, nodes: int = 24) -> Batch:
    r"""Neurons that move by s, shape (T,), in the first step of ``problem``.

    With h_k = E[σ'He_k]/k!, φ = σ' − μ₁, φ_h = φ − h₁g, κ = h₁s, m̄ = E r:

    .. math::
        λ &= 4sh_2(1+κm̄)\,b + (s²/α_0)E[gφ²]\,b_2, \\
        ζ &= (2s²/α_0)(1+κm̄)E[gφφ_h]\,b_2 + (s³/α_0²)E[φ²φ_h]\,b_3, \\
        v &= 2(N_4-N_2²) + 24sh_3E[rpq] + \tfrac{4s²}{α_0}a_2E[r²q]
             + \tfrac{4s²}{α_0}(E[r²p²]E[g²φ_h²] + Dv_hE r²) \\
          &\quad + \tfrac{4s³}{α_0²}E[r³p]E[gφ_h³] + \tfrac{s⁴}{α_0³}E r⁴(Eφ_h⁴-v_h²)
             + \tfrac{2s⁴}{α_0²}v_h²(E r²)² + E[uf]²,

    f = 4sh₂rp + (s²/α₀)a₁r², a₁ = E[gφ_h²], a₂ = ½E[He₂φ_h²], p = 1 + κm̄ + κr/α₀, D = κ²E r²/α₀,
    q = p² + D − N₂, and N_j = τ((I + κM)^j) from the free cumulants E r^j/α₀^{j−1} of M.
    """
    s, alpha = np.asarray(moved, float), problem.steps[0].samples
    derivative = problem.activation.derivative
    rule = gauss_rule(derivative, width=2.0)
    g, mean = rule.nodes, rule.mean
    slope = np.asarray(derivative(g), float)
    he = (1.0, g, (g * g - 1) / 2, (g**3 - 3 * g) / 6)
    mu1, h1, h2, h3 = (float(mean(slope * he_k)) for he_k in he)
    phi = slope - mu1
    rest = phi - h1 * g
    v_h, a1, a2 = mean(rest**2), mean(g * rest**2), mean((g * g - 1) * rest**2) / 2
    u, r, w = _samples(problem, nodes)
    e = [float(w @ r**j) for j in range(5)]
    kappa, eps = h1 * s, s**2 * v_h / alpha
    k1 = 1 + kappa * e[1]
    k2, k3, k4 = (kappa**j * e[j] / alpha ** (j - 1) for j in (2, 3, 4))
    n2, n4 = k2 + k1**2, k4 + 4 * k1 * k3 + 2 * k2**2 + 6 * k1**2 * k2 + k1**4
    linear = np.stack([4 * s * h2 * k1, s**2 / alpha * mean(g * phi**2), 0 * s])
    own = [0 * s, 2 * s**2 / alpha * k1 * mean(g * phi * rest)]
    own.append(s**3 / alpha**2 * mean(phi**2 * rest))

    p = (1 + kappa * e[1])[:, None] + kappa[:, None] * r / alpha
    own_sample = kappa**2 * e[2] / alpha  # D
    q = p**2 + (own_sample - n2)[:, None]
    f = (4 * s * h2)[:, None] * r * p + (s**2 / alpha * a1)[:, None] * r**2
    spread = 2 * (n4 - n2**2) + 24 * s * h3 * ((r * p * q) @ w)
    spread += 4 * s**2 / alpha * a2 * ((r**2 * q) @ w)
    product = (r * p) ** 2 @ w * mean((g * rest) ** 2) + own_sample * v_h * e[2]
    spread += 4 * s**2 / alpha * product + 4 * s**3 / alpha**2 * ((r**3 * p) @ w) * mean(
        g * rest**3
    )
    spread += s**4 / alpha**3 * e[4] * (mean(rest**4) - v_h**2)
    spread += 2 * s**4 / alpha**2 * v_h**2 * e[2] ** 2 + (f @ (w * u)) ** 2

    along = float(w @ (u * r))
    length = math.sqrt(along**2 + e[2] / alpha)
    second = e[2] / alpha + e[1] ** 2
    return Batch(
        residual=r,
        along=u,
        weights=w,
        tilt=kappa,
        noise=eps,
        total=n2 + eps * e[2],
        spike=s * mu1 * length,
        overlap=along / length,
        linear=linear,
        own=np.stack(own),
        spread=spread,
        growth=n2 + 6 * s * h3 * (e[1] + kappa * second) + s**2 / alpha * a2 * e[2],
        stretch=s * h2 * length,
        products=_products(kappa, eps, e, alpha),
        length=length,
        slope=mu1,
    )


def _products(kappa: FloatArray, eps: FloatArray, e: list[float], alpha: float) -> FloatArray:
    """τ(Σ_tΣ_s) of Σ = I + 2κM + κ²M² + ε𝐒: M and 𝐒 are free compound Poisson with one X."""
    m1, m2 = e[1], e[2] / alpha + e[1] ** 2
    m3 = e[3] / alpha**2 + 3 * e[1] * e[2] / alpha + e[1] ** 3
    m4 = e[4] / alpha**3 + 4 * e[1] * e[3] / alpha**2 + 2 * e[2] ** 2 / alpha**2
    m4 += 6 * e[1] ** 2 * e[2] / alpha + e[1] ** 4
    s1, ss, ms = e[2], e[4] / alpha + e[2] ** 2, e[3] / alpha + e[1] * e[2]
    mms = e[4] / alpha**2 + 2 * e[1] * e[3] / alpha + e[2] ** 2 / alpha + e[1] ** 2 * e[2]
    moments_of = np.array(
        [
            [1, 2 * m1, m2, s1],
            [2 * m1, 4 * m2, 2 * m3, 2 * ms],
            [m2, 2 * m3, m4, mms],
            [s1, 2 * ms, mms, ss],
        ]
    )
    powers = np.stack([np.ones_like(kappa), kappa, kappa**2, eps])
    return np.asarray(powers.T @ moments_of @ powers)


def risk(
    problem: Problem,
    d: int | None = None,
    *,
    leave_out: Collection[str] = (),
    types: int = 20,
    nodes: int = 80,
    noise_nodes: int = 24,
    channels: float = 1e-3,
) -> tuple[float, float]:
    r"""Test and train error after one plain gradient step.

    With sample weights c(k), the minimum of Σ c_i(y_i − f_i)² + λ_s‖a‖², over N, is F[c] of
    `_Minimum`, and

    .. math:: R + Δ = Γ^{-1}\,\frac{dF}{dδ}\Big|_{c = 1 + δ/ω²}, \qquad
              \mathrm{train} = Γ^{-1}\,\frac{dF}{dδ}\Big|_{c = 1 + δ} ,

    a total derivative through the whole fixed point, by the complex step δ = 10⁻²⁰i.

    Parameters
    ----------
    problem : Problem
        One step of the gradient's own rule, squared loss, isotropic inputs, a scaled output.
    d : int, optional
        Dimension; None for the limit.
    leave_out : collection of str
        Terms to leave out: ``"norms"``, ``"pull"``, ``"own norm"`` (the own coordinates of the norm
        of the input), ``"norm"`` (its fluctuations).
    types, nodes, noise_nodes : int
        Nodes of the second layer, of the coordinate k, of the label noise.
    channels : float
        Singular values of μ₁ₜ(k) below this share of the largest are left out.
    """
    minimum = _Minimum(problem, d, frozenset(leave_out), types, nodes, noise_nodes, channels)
    one = np.ones_like(minimum.k)
    _, state, omega = minimum.at(one, None)
    slopes = [
        minimum.at(one + 1j * _STEP * direction, state)[0].imag / _STEP / minimum.ratio
        for direction in (1 / omega**2, one)
    ]
    return float(slopes[0] - problem.noise_variance), float(slopes[1])


class _Minimum:
    """F[c], the minimum of the weighted objective over N, as a function of the sample weights."""

    def __init__(
        self,
        problem: Problem,
        d: int | None,
        leave_out: frozenset[str],
        types: int,
        nodes: int,
        noise_nodes: int,
        channels: float,
    ) -> None:
        sized = problem if d is None else problem.realised(d)
        self.neurons = math.inf if d is None else float(problem.at(d).neurons)
        step, readout = sized.steps[0], sized.require_readout()
        self.rate = step.rate * (1.0 if d is None else self.neurons ** (step.exponent - 0.5))
        self.values, self.pi = sized.init.second_layer.types(types)
        self.batch = batch_law(sized, self.rate * self.values, noise_nodes)
        self.alpha, self.width = step.samples, sized.width
        self.ratio = readout.samples / sized.width  # Γ
        self.penalty = readout.penalty * self.ratio  # λ_s
        self.d, self.leave_out = d, leave_out
        self.norms = "norms" not in leave_out
        self.gaussian = self.norms and sized.init.weights == "gaussian"
        self._functions(sized, nodes)
        self._channels(channels)

    def _functions(self, problem: Problem, nodes: int) -> None:
        """Functions of the coordinate k = ⟨x, b̂⟩: moments of σ(S_tk + √c_t z) and of the
        teacher.
        """
        assert isinstance(problem.teacher, SingleIndex)
        rule = coordinate_rule(1, reach=8.5, nodes=nodes)
        self.k, self.w = rule.nodes[:, 0], rule.weights
        batch, scale = self.batch, np.sqrt(self.batch.total)[:, None]
        seen = smoothed(problem.activation, batch.spike[:, None] * self.k, scale)
        self.mean, self.mu1, self.mu2 = seen.mean, seen.linear / scale, seen.residual_variance
        self.bend = seen.quadratic  # g_t = ½E[(z²−1)σ]
        if self.d is not None and "own norm" not in self.leave_out:
            self.mean = self.mean + self.bend * (self.k**2 - 1) / self.d
        self.rest = math.sqrt(max(1 - batch.overlap**2, 0.0))
        wanted = smoothed(problem.teacher.link, batch.overlap * self.k, self.rest)
        self.h, self.h1, self.h2 = wanted.mean, wanted.linear, wanted.quadratic
        self.hh = wanted.second_moment + problem.noise_variance

    def _channels(self, tolerance: float) -> None:
        """μ₁ₜ(k) = Σ_a U_ta C_a(k) with orthonormal C."""
        root = np.sqrt(self.pi)[:, None]
        left, values, _ = np.linalg.svd(root * self.mu1 * np.sqrt(self.w), full_matrices=False)
        self.rank = max(1, int((values > tolerance * values[0]).sum()))
        left, values = left[:, : self.rank], values[: self.rank]
        self.c = (left * root).T @ self.mu1 / values[:, None]
        self.u = left / root * values

    # -- the fixed point ------------------------------------------------------------------------

    def _start(self) -> tuple[Array, Array, Array]:
        eye = np.eye(self.rank)
        tau = np.full(len(self.pi), min(1 / self.penalty, 10.0))
        return eye, tau, np.kron(np.diag([-1.0, -1.0, 0.5]), eye)

    def _weighted(self, weights: Array) -> Array:
        """Σ_t weights_t u_tu_tᵀ."""
        return np.einsum("t,ta,tb->ab", weights, self.u, self.u)

    def _seen(self, matrix: Array) -> Array:
        """u_tᵀ matrix u_t."""
        return np.einsum("ta,ab,tb->t", self.u, matrix, self.u)

    def _mean(self, values: Array, matrices: Array) -> Array:
        """E over the batch of a number times a matrix for each sample."""
        return np.einsum("n,nij->ij", self.batch.weights * values, matrices)

    def at(self, c: Array, state: Any) -> tuple[Any, Any, Array]:
        r"""F, the fixed point (V₁, τ, 𝔤) and ω at sample weights c(k).

        V = Σ V₁CC + Σ π_tτ_tμ₂ₜ², ω = c/(1 + cV), Ĉ = ΓE[ωCCᵀ], V̂₂ₜ = ΓE[ωμ₂ₜ²], p_t = βπ_tτ_t,
        P_j = Σp_tκ_t^ju_tu_tᵀ, P_ε = Σp_tε_tu_tu_tᵀ, and with T_l = (I + 𝔤Q/α₀)⁻¹, T_r = (I +
        Q𝔤/α₀)⁻¹, Ψ = 𝔤T_r

        .. math::
            𝔤 &= (Z + E[QT_l])^{-1}, \quad
            τ_t^{-1} = λ_s + \hat V_{2t} + u_t^⊤[τ(𝒢) + 2κτ(M𝒢) + κ²τ(M²𝒢) + ετ(𝐒𝒢)]u_t, \\
            V_1 &= β^{-1}\hat C^{-1}[τ(𝒢)P_0 + 2τ(M𝒢)^⊤P_1 + τ(M²𝒢)^⊤P_2 + τ(𝐒𝒢)P_ε] .
        """
        kind: Any = complex if np.iscomplexobj(c) else float
        v1, tau, g = (np.asarray(part, kind) for part in (state or self._start()))
        batch, rank, r = self.batch, self.rank, self.batch.residual
        kappa, eye, x = batch.tilt, np.eye(3 * self.rank), slice(2 * self.rank, None)
        a = slice(0, rank)
        for _ in range(_ROUNDS):
            omega = c / (
                1 + c * (np.einsum("ab,ak,bk->k", v1, self.c, self.c) + (self.pi * tau) @ self.mu2)
            )
            measure = self.ratio * self.w * omega
            inverse = np.linalg.inv((self.c * measure) @ self.c.T)  # Ĉ⁻¹
            p = self.width * self.pi * tau
            p0, p1, p2, pe = (self._weighted(p * f) for f in (1.0, kappa, kappa**2, batch.noise))
            z = np.kron(np.diag([-1.0, -1.0, 0.0]), np.eye(rank)).astype(kind)
            z[rank : 2 * rank, a], z[x, x] = p2, inverse + p0
            q = np.zeros((len(r), 3 * rank, 3 * rank), kind)
            q[:, a, x] = q[:, x, rank : 2 * rank] = r[:, None, None] * np.eye(rank)
            q[:, x, x] = r[:, None, None] * 2 * p1 + (r * r)[:, None, None] * pe
            left = np.linalg.inv(eye + g @ q / self.alpha)
            new_g = np.linalg.inv(z + self._mean(np.ones_like(r), q @ left))
            right = np.linalg.inv(eye + q @ g / self.alpha)
            psi = g @ right
            t0, tm, tm2, ts = (
                g[x, x],
                g[a, x],
                self._mean(r, psi)[a, x],
                self._mean(r * r, psi)[x, x],
            )
            seen = self._seen(t0) + 2 * kappa * self._seen(tm) + kappa**2 * self._seen(tm2)
            seen = seen + batch.noise * self._seen(ts)
            new_tau = 1 / (self.penalty + self.mu2 @ measure + seen)
            new_v1 = inverse @ (t0 @ p0 + 2 * tm.T @ p1 + tm2.T @ p2 + ts @ pe) / self.width
            new_v1 = (new_v1 + new_v1.T) / 2
            moved = [_moved(*pair) for pair in ((new_v1, v1), (new_tau, tau), (new_g, g))]
            v1, tau, g = (v1 + new_v1) / 2, (tau + new_tau) / 2, (g + new_g) / 2
            if max(moved) < _TOLERANCE:
                break
        else:
            raise RuntimeError(f"the reference did not converge: {max(moved):g}")
        forms = self._forms(z, q, left, right, psi)
        value = self._least_squares(inverse, measure, tau, forms, (t0, tm))
        return value, (v1.real, tau.real, g.real), omega.real

    # -- the least squares ----------------------------------------------------------------------

    def _forms(self, z: Array, q: Array, left: Array, right: Array, psi: Array) -> Array:
        r"""G_ij of the vectors (β*, b, b₂, b₃), shape (4, 4, 3R, 3R).

        G_** = (Z + E[u²QT_l])⁻¹, G_*j = G_**E[ur^jT_r], G_ij = E[r^{i+j}Ψ]/α₀ +
        E[ur^iT_l]G_**E[ur^jT_r].
        """
        u, r = self.batch.along, self.batch.residual
        star = np.linalg.inv(z + self._mean(u * u, q @ left))
        eye = np.eye(len(z))
        before = [eye, *(self._mean(u * r**j, left) for j in (1, 2, 3))]
        after = [eye, *(self._mean(u * r**j, right) for j in (1, 2, 3))]
        found = np.array([[b @ star @ a for a in after] for b in before])
        for i in (1, 2, 3):
            for j in (1, 2, 3):
                found[i, j] += self._mean(r ** (i + j), psi) / self.alpha
        return found

    def _least_squares(
        self, inverse: Array, measure: Array, tau: Array, forms: Array, traces: tuple[Array, Array]
    ) -> Any:
        r"""F = ΓE[ω hh] − ψ̂ᵀ𝒴_BBψ̂ + min_θ J, θ = (m, χ, l, ϱ):

        .. math:: J = -2\hat h^⊤θ + θ^⊤Hθ + (θ-o)^⊤𝒞^{-1}(θ-o), \quad
                  𝒴 = (I-KE)^{-1}K, \quad o = 𝒴_B\hat ψ, \quad E = \mathrm{diag}(\hat C, 0)

        with K_xy = Ĉ⁻¹ − Ĉ⁻¹𝒢_xyĈ⁻¹ on b̂ and B, K_{x,l_t} = Ĉ⁻¹(xᵀ𝒢ℓ_t)u_tp_t and
        K_{l_tl_s} = δ_tsp_tv_t − p_tp_su_tᵀ(ℓ_tᵀ𝒢ℓ_s)u_s.
        """
        batch, rank, kind = self.batch, self.rank, inverse.dtype
        count = len(self.pi) if self.norms else 0
        p = self.width * self.pi * tau

        def form(x: FloatArray, y: FloatArray, row: int, column: int) -> Array:
            block = forms[:, :, row * rank : (row + 1) * rank, column * rank : (column + 1) * rank]
            return np.einsum("i,j,ijab->ab", x, y, block)

        spike = np.array([0.0, 1 / batch.length, 0.0, 0.0])
        teacher = (np.array([1.0, 0.0, 0.0, 0.0]) - batch.overlap * spike) / self.rest
        lam = np.concatenate([np.zeros((1, len(self.pi))), batch.linear]).T
        both = np.concatenate([np.zeros((1, len(self.pi))), batch.linear + batch.own]).T

        def with_norm(x: FloatArray) -> Array:
            seen = [
                form(x, both[t], _X, _X) + batch.tilt[t] * form(x, lam[t], _X, _C)
                for t in range(count)
            ]
            rows = [inverse @ matrix @ self.u[t] * p[t] for t, matrix in enumerate(seen)]
            return np.array(rows, kind).reshape(count, rank)

        def of_norms(t: int, s: int) -> Any:
            kt, ks = batch.tilt[t], batch.tilt[s]
            seen = form(both[t], both[s], _X, _X) + kt * form(lam[t], both[s], _A, _X)
            seen = (
                seen + ks * form(both[t], lam[s], _X, _C) + kt * ks * form(lam[t], lam[s], _A, _C)
            )
            return -p[t] * p[s] * self.u[t] @ seen @ self.u[s] + (
                p[t] * batch.spread[t] if t == s else 0
            )

        def of(x: FloatArray, y: FloatArray, same: bool) -> Array:
            return same * inverse - inverse @ form(x, y, _X, _X) @ inverse

        norms = np.array([[of_norms(t, s) for s in range(count)] for t in range(count)], kind)
        norms = norms.reshape(count, count)
        k = np.block([[of(spike, spike, True), with_norm(spike).T], [with_norm(spike), norms]])
        k_teacher = np.concatenate([of(spike, teacher, False), with_norm(teacher)])
        opened = np.zeros_like(k)
        opened[:rank, :rank] = np.linalg.inv(inverse)
        solve = np.linalg.inv(np.eye(len(k)) - k @ opened)
        prior, prior_teacher = solve @ k, solve @ k_teacher
        own = of(teacher, teacher, True) + k_teacher.T @ opened @ prior_teacher

        psi_hat = self.c @ (measure * self.h1)
        regressors = [self.mean, self.k * self.c]
        by_norm = self.bend / batch.total[:, None]
        if count:
            regressors.append(by_norm)
        if self.gaussian:
            lean = batch.stretch[:, None] * self.k * self.mu1
            regressors.append(batch.growth[:, None] * by_norm + lean)
        phi = np.concatenate(regressors)
        gram, target = (phi * measure) @ phi.T, phi @ (measure * self.h)
        types, inner = len(self.pi), slice(len(self.pi), len(self.pi) + rank + count)
        precision = np.zeros((len(phi), len(phi)), kind)
        if self.d is not None:
            self._finite_size(gram, target, precision, by_norm, measure, tau, traces)
        precision[inner, inner] = np.linalg.inv((prior + prior.T) / 2)
        if self.gaussian:
            precision[inner.stop :, inner.stop :] = np.diag(1 / (2 * p))
        offset = np.zeros(len(phi), kind)
        offset[inner] = prior_teacher @ psi_hat
        assert types == inner.start
        theta = np.linalg.solve(gram + precision, target + precision @ offset)
        value = theta @ gram @ theta - 2 * target @ theta
        value = value + (theta - offset) @ precision @ (theta - offset)
        return measure @ self.hh - psi_hat @ own @ psi_hat + value

    def _finite_size(
        self,
        gram: Array,
        target: Array,
        precision: Array,
        by_norm: Array,
        measure: Array,
        tau: Array,
        traces: tuple[Array, Array],
    ) -> None:
        """The penalty of m, the norm of the input, and the pull of the initial output."""
        batch, d, m = self.batch, self.d, slice(0, len(self.pi))
        assert d is not None
        if "norm" not in self.leave_out:
            gram[m, m] += (by_norm * measure) @ by_norm.T * 2 / d * batch.products
        if "own norm" not in self.leave_out:
            target[m] += 2 / d * self.bend @ (measure * self.h2)
        precision[m, m] = np.diag(1 / (self.neurons * self.pi * tau))
        if "pull" not in self.leave_out:
            g0, gm = (self.u @ trace @ self.u.T for trace in traces)
            linear = self.rate * batch.slope**2
            square = linear**2 * (1 + 1 / self.alpha) * (self.pi @ self.values**2)
            tilt = np.add.outer(batch.tilt, batch.tilt)
            pulled = -linear * (2 * g0 + tilt * (gm + gm.T) / 2) + square * g0
            precision[m, m] += np.outer(self.values, self.values) * pulled / self.neurons


def _moved(new: Array, old: Array) -> float:
    """Largest relative change of the real part, and of the imaginary one."""
    change = np.abs((new - old).real).max() / np.abs(old.real).max()
    imaginary = np.abs(old.imag).max()
    if imaginary == 0:
        return float(change) if not np.any(new.imag) else 1.0
    return float(max(change, np.abs((new - old).imag).max() / imaginary))
