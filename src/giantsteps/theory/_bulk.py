r"""The bulk of the weights after one step: laws of sums of x xᵀ weighted by the labels.

Given the batch, the rows of a neuron have covariance made of 𝐒 = Xᵀdiag(y²)X/n₀ and, for an
activation with c₂ ≠ 0, of M = Xᵀdiag(y)X/n₀ (theory §5b). Both are Q = Xᵀdiag(q)X/n₀. Its law ν
has the Stieltjes transform m(z) with

.. math:: z = -1/m + E[q/(1 + qm/α_0)],

and the directions b = Xᵀy/n₀ and β* see spectral measures of their own. What the equivalent model
needs are sums over few directions ι that integrate analytic functions of ι: the Rayleigh–Ritz
values of Q on the span of the vectors (Q − z_i)⁻¹ v, v = b, β* or a generic one. Their Gram
matrices are divided differences of the transforms, which have closed forms without
cancellation; nodes are real, weights positive, atoms and several intervals need no care.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import NotConverged
from giantsteps.theory._continuation import Continuation, State

if TYPE_CHECKING:
    from giantsteps.functions import Function

__all__ = ["LabelLaw", "Labels", "label_law", "labels"]

_REACH = 8.5
_PANEL = 0.5
_ORDER = 12
_KEPT = 1e-14
_NEWTON = 60
_ANGLES = (np.arange(10) + 0.5) * np.pi / 10
#: Confocal ellipses around [−1, 1], upper halves.
_ELLIPSES = np.cos(_ANGLES + 1j * np.array([[0.4], [0.9]]))


@dataclass(frozen=True, eq=False)
class Labels:
    """A quadrature for the pair (u, y), u = ⟨x, β*⟩ and y = σ*(u) − shift + noise.

    Attributes
    ----------
    u, y, weights : ndarray of shape (Q,)
    """

    u: NDArray
    y: NDArray
    weights: NDArray

    def mean(self, values: NDArray) -> float:
        """E f(u, y) from the values of f at the nodes."""
        return float(values @ self.weights)


@lru_cache(maxsize=64)
def labels(link: Function, noise_variance: float, shift: float) -> Labels:
    """Panels in u split at the kinks of σ*, times Gauss–Hermite nodes in the noise."""
    edges = np.arange(-_REACH, _REACH + _PANEL / 2, _PANEL)
    edges = np.union1d(edges, link.breakpoints(-_REACH, _REACH))
    x, w = np.polynomial.legendre.leggauss(_ORDER)
    half = np.diff(edges)[:, None] / 2
    u = (edges[:-1, None] + half * (1 + x)).ravel()
    weights = (half * w).ravel() * np.exp(-u * u / 2)
    u, weights = u[weights > 1e-17], weights[weights > 1e-17]
    y = np.asarray(link(u), dtype=float) - shift
    if noise_variance > 0:
        scale = np.sqrt(noise_variance)
        g, v = np.polynomial.hermite_e.hermegauss(16 + int(48 * min(scale, 2.0)))
        g, v = g[v > 1e-16], v[v > 1e-16]
        y = (y[:, None] + scale * g).ravel()
        u, weights = np.repeat(u, len(g)), (weights[:, None] * v).ravel()
    return Labels(u, y, weights / weights.sum())


@lru_cache(maxsize=64)
def _marginal(link: Function, noise_variance: float, shift: float) -> tuple[NDArray, NDArray]:
    """Nodes and weights for y alone: with noise, its smooth density on a grid that widens with |y|.

    The trapezoidal rule in t, y = s sinh t, is exact to rounding for a density smoothed by noise.
    """
    rule = labels(link, noise_variance, shift)
    if noise_variance == 0:
        return rule.y, rule.weights
    clean = labels(link, 0.0, shift)
    scale = np.sqrt(noise_variance)
    top = float(np.abs(clean.y).max()) + 9 * scale
    step = min(scale / 3, 0.03)
    t = np.arange(-1, 1, min(step, 0.05) / max(np.arcsinh(top), 1.0)) * np.arcsinh(top)
    y = np.sinh(t)
    distance = (y[:, None] - clean.y) / scale
    density = np.exp(-distance * distance / 2) @ clean.weights * np.cosh(t)
    kept = density > 1e-17 * density.max()
    return y[kept], density[kept] / density[kept].sum()


@dataclass(frozen=True, eq=False)
class LabelLaw:
    """Directions of Q = Xᵀdiag(q)X/n₀ as nodes.

    Attributes
    ----------
    nodes, weights : ndarray of shape (I,)
        A quadrature of ν.
    special_nodes : ndarray of shape (J,)
    special : ndarray of shape (J, 2, 2)
        Matrix weights of the measures of (b̂, B), B = (β* − γb̂)/√(1−γ²); they sum to I.
    square, special_square : ndarray of shapes (I,), (J,)
        𝐒(ι), what 𝐒 is on average along the direction ι: ι itself for q = y².
    """

    nodes: NDArray
    weights: NDArray
    special_nodes: NDArray
    special: NDArray
    square: NDArray
    special_square: NDArray


@lru_cache(maxsize=512)
def label_law(
    link: Function, noise_variance: float, shift: float, samples: float, reach: float, signed: bool
) -> LabelLaw:
    r"""Nodes for the law of 𝐒 (``signed=False``, q = y²) or of M (``signed=True``, q = y).

    ======  ================  =====================================================
    symbol  argument          meaning
    ======  ================  =====================================================
    σ*      link
    Δ       noise_variance
    \       shift             c₀E A, subtracted from the labels
    α₀      samples
    \       reach             functions of ι are analytic up to 1/reach from the law
    \       signed            q = y instead of y²
    ======  ================  =====================================================
    """
    rule = labels(link, noise_variance, shift)
    q = rule.y if signed else rule.y**2
    size = rule.mean(np.abs(q))
    top = (1 + samples**-0.5) ** 2 * float(np.abs(q).max())
    near = min(1 / reach, size)
    if signed:
        bound = (1 + samples**-0.5) ** 2 * np.sqrt(rule.mean(q * q))
        far = np.geomspace(bound, 30 * top, 4 + int(2.0 * np.log10(30 * top / bound)))
        z = np.concatenate([(bound * _ELLIPSES).ravel(), 1j * far])
        m = _transform(rule, q, samples, z)
        m, z = np.concatenate([m, m.conj()]), np.concatenate([z, z.conj()])
    else:
        far = 30 * top
        ends = _transform(rule, q, samples, np.array([-far, -near]))
        count = int(np.ceil(2.0 * np.log10(far / near))) + 8
        m = np.geomspace(ends[0], ends[1], count)
        z = -1 / m + (q / (1 + np.multiply.outer(m, q) / samples)) @ rule.weights
    nodes, weights, special_nodes, special, square = _ritz_nodes(rule, q, samples, m, z)
    if signed:
        y, mass = _marginal(link, noise_variance, shift)
        square = np.maximum(square, 0.0)
        special_square = _square_along(y, mass, samples, special_nodes)
    else:  # 𝐒 has no negative eigenvalue, up to rounding
        nodes = square = np.maximum(nodes, 0.0)
        special_nodes = special_square = np.maximum(special_nodes, 0.0)
    return LabelLaw(nodes, weights, special_nodes, special, square, special_square)


def _square_along(y: NDArray, weights: NDArray, samples: float, nodes: NDArray) -> NDArray:
    """𝐒(ι) = Im[m E(y²/(1 + ym/α₀))]/Im m at ι + i0, q = y; outside the law its continuation."""
    scale = float(np.sqrt(weights @ (y * y)))

    def solver(z: NDArray, start: State | None, rounds: int | None) -> tuple[State, NDArray]:
        m = -1 / z if start is None else start[0]
        for _ in range(rounds or _NEWTON):
            shrink = 1 / (1 + m[:, None] * (y / samples))
            image = -1 / (z - (shrink * y) @ weights)
            gap = np.abs(image / m - 1)
            if np.all(gap <= 1e-13):
                break
            slope = image * image * ((shrink * shrink) @ (weights * y * y)) / samples
            bold = m + (image - m) / (1 - slope)
            m = np.where(bold.imag > 0, bold, image)
        return (m,), gap

    raised = nodes + 1e-7j * (scale + np.abs(nodes))
    (m,) = Continuation(solver, scale, "the law of the labels' covariance")(raised)
    total = m * ((1 / (1 + m[:, None] * (y / samples))) @ (weights * y * y))
    return np.maximum(total.imag / m.imag, 0.0)


def _transform(rule: Labels, q: NDArray, samples: float, z: NDArray) -> NDArray:
    """m(z) by Newton's method in x = 1/m, from the right of the root for z < 0."""
    x = -z + rule.mean(q)
    weighted = rule.weights * q
    for _ in range(_NEWTON):
        shrink = 1 / (x[:, None] + q / samples)
        value = x - (x[:, None] * shrink) @ weighted + z
        slope = 1 - (shrink * shrink * (q / samples)) @ weighted
        step = value / slope
        x = x - step
        if np.all(np.abs(step) <= 1e-14 * np.abs(x)):
            return 1 / x
    raise NotConverged(
        f"law of the labels' covariance at α₀ = {samples:g}",
        float(np.max(np.abs(step / x))),
        _NEWTON,
        "bulk='isotropic'",
    )


def _ritz_nodes(
    rule: Labels, q: NDArray, samples: float, m: NDArray, z: NDArray
) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Nodes and weights of ν and of the special measures, and 𝐒(ι) at the nodes of ν.

    Rayleigh–Ritz values on the span of (Q − z_i)⁻¹v, from divided differences at (z̄_i, z_j).
    """
    u, y, w = rule.u, rule.y, rule.weights
    shrink = 1 / (1 + np.multiply.outer(m, q) / samples)

    def single(f: NDArray) -> NDArray:
        return shrink @ (w * f)

    def double(f: NDArray) -> NDArray:
        return (shrink.conj() * (w * f)) @ shrink.T

    def outer(a: NDArray, b: NDArray) -> NDArray:
        return np.multiply.outer(a.conj(), b)

    # Divided differences (f(z̄_i) − f(z_j))/(z̄_i − z_j), first of m; of E[f/(1+qm/α₀)] they are
    # −E[f q/((1+qm̄_i/α₀)(1+qm_j/α₀))] dm/α₀.
    dm = 1 / (1 / outer(m, m) - double(q * q) / samples)
    label, label_u = single(y * y), single(y * u)
    g = 1 / (single(u * u * q) - z)
    dg = outer(g, g) * (1 + double(u * u * q * q) * dm / samples)
    d_label_u = -double(y * u * q) * dm / samples
    d_label = -double(y * y * q) * dm / samples
    ones = np.ones_like(m)
    d_mixed = outer(label_u, ones) * dg + outer(ones, g) * d_label_u
    d_square = outer(label, ones) * dm + outer(ones, m) * d_label
    total = outer(label_u, ones) + outer(ones, label_u)
    d_bb = d_square / samples + outer(label_u**2, ones) * dg + outer(ones, g) * total * d_label_u

    linear = rule.mean(u * y)
    length = np.sqrt(linear**2 + rule.mean(y * y) / samples)
    gamma = linear / length
    rest = np.sqrt(1 - gamma**2)
    frame = np.array([[1 / length, 0.0], [-gamma / (rest * length), 1 / rest]])  # of (b, β*)
    gram = _in_frame(frame, d_bb, d_mixed, dg)
    transforms = _in_frame(frame, m * label / samples + label_u**2 * g, label_u * g, g)

    basis = _Basis(m, z)
    nodes, vectors = basis.ritz(dm[None, None], m[None, None])
    start = basis.overlaps(vectors, m[None, None])[:, 0]
    # The transform of 𝐒(ι)ν is m E[y²/(1+qm/α₀)]: its weights over those of ν.
    square = basis.overlaps(vectors, (m * label)[None, None])[:, 0] / start
    special_nodes, special_vectors = basis.ritz(gram, transforms)
    components = basis.overlaps(special_vectors, transforms)
    special = components[:, :, None] * components[:, None, :]
    return nodes, start**2, special_nodes, special, square


def _in_frame(frame: NDArray, bb: NDArray, mixed: NDArray, teacher: NDArray) -> NDArray:
    """Forms given on (b, β*) in the orthonormal frame (b̂, B): shape (2, 2, …)."""
    forms = np.array([[bb, mixed], [mixed, teacher]])
    return np.einsum("ia,jb,ab...->ij...", frame, frame, forms)


class _Basis:
    """Functions 1/(ι − z_i), scaled and, for pairs of conjugates, made real."""

    def __init__(self, m: NDArray, z: NDArray) -> None:
        self.z = z
        self.scale = np.abs(z)
        n = len(z)
        self.real = np.eye(n)
        if np.iscomplexobj(m):
            half = np.eye(n // 2)
            self.real = np.block([[half, half], [-1j * half, 1j * half]]) / 2

    def _flat(self, forms: NDArray) -> NDArray:
        """(s, s, n, n) as one real symmetric matrix on the s n functions."""
        forms = forms * np.multiply.outer(self.scale, self.scale)
        forms = (self.real.conj() @ forms @ self.real.T).real
        size = forms.shape[0] * forms.shape[2]
        flat = np.swapaxes(forms, 1, 2).reshape(size, size)
        return (flat + flat.T) / 2

    def ritz(self, gram: NDArray, transforms: NDArray) -> tuple[NDArray, NDArray]:
        """Ritz values of multiplication by ι, and the coefficients of their vectors."""
        # ι/((ι−z̄_i)(ι−z_j)) = 1/(ι−z̄_i) + z_j/((ι−z̄_i)(ι−z_j))
        shifted = transforms.conj()[..., :, None] + self.z * gram
        values, vectors = np.linalg.eigh(self._flat(gram))
        kept = values > _KEPT * values[-1]
        vectors = vectors[:, kept] / np.sqrt(values[kept])
        nodes, mixing = np.linalg.eigh(vectors.T @ self._flat(shifted) @ vectors)
        return nodes, vectors @ mixing

    def overlaps(self, vectors: NDArray, transforms: NDArray) -> NDArray:
        """Products of the Ritz vectors with the s start vectors: shape (nodes, s)."""
        scaled = (transforms * self.scale).conj() @ self.real.conj().T
        count = transforms.shape[0]
        return vectors.T @ np.moveaxis(scaled.real, 1, 2).reshape(-1, count)
