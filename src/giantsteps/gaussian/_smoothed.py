"""A function smoothed by Gaussians: moments of z ↦ f(m + s z) for many (m, s) at once.

E g(z) f(m + s z) = ∫ g((t − m)/s) f(t) φ((t − m)/s) dt/s. The integral is taken in t, on panels
that belong to f and to the octave of s alone: cells of width h = 2^j, 2s < h ≤ 4s, anchored at
t = 0, split at f's kinks and jumps and halved until f is resolved. f is evaluated on each cell
once and kept, so a call costs one Gaussian a node; and because the panels of an entry (m, s) do
not know the other entries of the call, neither does its answer, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.errors import InvalidProblem, NotConverged, NotCovered
from giantsteps.gaussian._hermite import moments
from giantsteps.gaussian._panels import NODES, ORDER, WEIGHTS, Panels, refine
from giantsteps.gaussian._quadrature import TOLERANCE, evaluate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from giantsteps.functions import Function

#: Cells that are resolved and cached together.
BLOCK = 16
MAX_PANELS = 4096
#: The integral covers |z| ≤ R for the first R at which z² f² φ is negligible relative to E f².
REACHES = (10.0, 14.0, 20.0, 28.0, 37.0)
NEGLIGIBLE = 1e-16
#: s below this, relative to max(1, |m|), is a point: f(m).
POINT = 1e-13
#: Panels handled at once, a matter of cache and memory only.
CHUNK = 512


@dataclass(frozen=True)
class Smoothed:
    """Moments of z ↦ f(m + s z), z ~ N(0, 1): the names of `Moments`, one entry for each (m, s)."""

    mean: np.ndarray  # μ₀ = E f
    linear: np.ndarray  # E z f = s E f'
    quadratic: np.ndarray  # E (z² − 1) f/2 = s² E f''/2; √(2/d) times it is the norm response ξ
    second_moment: np.ndarray  # E f²
    #: μ₂² = E (f − E f − z E z f)² = E f² − (E f)² − (E z f)², without the cancellation.
    residual_variance: np.ndarray
    std: np.ndarray  # s

    @property
    def slope(self) -> np.ndarray:
        """μ₁ = E f'(m + s z) = E[z f]/s, for s > 0."""
        if not np.all(self.std > 0):
            raise InvalidProblem("std", self.std, "positive for E f' = E[z f]/std")
        return self.linear / self.std


def smoothed(function: Function, mean: ArrayLike, std: ArrayLike) -> Smoothed:
    """Moments of f(m + s z) under z ~ N(0, 1), elementwise in (m, s).

    ================  ==========================================
    symbol            argument or attribute
    ================  ==========================================
    f                 `function`
    m, s              `mean`, `std` (broadcast together)
    μ₀ₜ(k)            ``smoothed(f, S*k, c**0.5).mean``
    μ₁ₜ(k)            ``.slope``
    μ₂ₜ²(k)           ``.residual_variance``
    ξₜ(k)             ``(2/d)**0.5 * .quadratic``
    h, h₁, hh − Δ     ``.mean``, ``.linear``, ``.second_moment``
    ================  ==========================================

    Errors are below 1e-12 of the larger of (E f(m + s z)²)^½ and ‖f‖. An entry's answer does not
    depend on the other entries of the call, bitwise.

    * ``function``: f, with a finite second moment under N(0, 1); kinks and jumps allowed.
    * ``mean``, ``std``: m, finite, and s ≥ 0, of shapes that broadcast. s = 0 gives f(m).

    Raises
    ------
    NotCovered
        Where f² is not finite or not integrable against N(m, s²).

    References: theory §5c.
    """
    m, s = np.broadcast_arrays(np.asarray(mean, float), np.asarray(std, float))
    shape, m, s = m.shape, m.ravel(), s.ravel()
    if not np.isfinite(m).all():
        raise InvalidProblem("mean", mean, "finite")
    if not (np.isfinite(s) & (s >= 0)).all():
        raise InvalidProblem("std", std, "finite and not negative")
    out = np.zeros((5, m.size))
    point = s <= POINT * np.maximum(1.0, np.abs(m))
    if point.any():
        out[0, point] = evaluate(function, m[point])
        with np.errstate(over="ignore"):
            out[3, point] = out[0, point] ** 2
    waiting = np.flatnonzero(~point)
    octave = np.frexp(s)[1] + 1
    for reach in REACHES:
        again = []
        for level in np.unique(octave[waiting]):
            entries = waiting[octave[waiting] == level]
            out[:, entries], complete = _integrate(
                function, int(level), m[entries], s[entries], reach
            )
            again.append(entries[~complete])
        waiting = np.concatenate(again) if again else waiting
        if not waiting.size:
            break
    if waiting.size or not np.isfinite(out).all():
        bad = waiting[0] if waiting.size else np.flatnonzero(~np.isfinite(out).all(axis=0))[0]
        raise _not_integrable(function, m[bad], s[bad], "f(m + s z)^2 has no finite mean there")
    rows = [row.reshape(shape) for row in (*out, s)]
    return Smoothed(*rows)


def _not_integrable(function: Function, m: float, s: float, why: str) -> NotCovered:
    return NotCovered(
        f"E f(m + s z) of f = {function!r} at m = {m:.6g}, s = {s:.6g}",
        why,
        "functions that are finite and square integrable against N(m, s^2): a slower growing "
        "function, or a smaller learning rate",
    )


def _integrate(
    function: Function, level: int, m: np.ndarray, s: np.ndarray, reach: float
) -> tuple[np.ndarray, np.ndarray]:
    """The five moments over |z| ≤ reach, and whether f² φ is negligible beyond."""
    width = 2.0**level * BLOCK
    first = np.floor((m - reach * s) / width).astype(int)
    last = np.floor((m + reach * s) / width).astype(int)
    span = int((last - first).max()) + 1
    blocks = np.unique(np.minimum(first[:, None] + np.arange(span), last[:, None]))
    mesh = _mesh(function, level, tuple(blocks.tolist()))
    begin = np.searchsorted(mesh.right, m - reach * s, side="right")
    end = np.searchsorted(mesh.left, m + reach * s, side="left")
    lost = np.concatenate([[0], np.cumsum(~mesh.resolved)])
    for entry in np.flatnonzero(lost[end] > lost[begin])[:1]:
        raise _unresolved(function, mesh, slice(begin[entry], end[entry]), m[entry], s[entry])
    out, complete = np.empty((5, m.size)), np.empty(m.size, bool)
    cuts = np.cumsum(end - begin) // CHUNK
    for chunk in np.split(np.arange(m.size), np.flatnonzero(np.diff(cuts)) + 1):
        out[:, chunk], complete[chunk] = _window(mesh, begin[chunk], end[chunk], m[chunk], s[chunk])
    return out, complete


def _window(
    mesh: Panels, begin: np.ndarray, end: np.ndarray, m: np.ndarray, s: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Moments of each entry from its panels begin:end, entry after entry in one long array."""
    count = end - begin
    start = np.cumsum(count) - count
    entry = np.repeat(np.arange(m.size), count)
    panel = np.arange(count.sum()) + (begin - start)[entry]
    left, right = mesh.left[panel], mesh.right[panel]
    # Differences first: (left − m) is exact where it matters, however small s is.
    half = (right - left) / (2 * s[entry])
    z = ((left - m[entry]) / s[entry])[:, None] + half[:, None] * (1 + NODES)
    f = mesh.values[0, panel]
    weight = np.exp(-(z**2) / 2) * (half[:, None] * (WEIGHTS / np.sqrt(2 * np.pi)))

    def total(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values.ravel(), ORDER * start)

    with np.errstate(over="ignore", invalid="ignore"):
        weighted = weight * f
        tilted = weighted * z
        mean, linear, square = total(weighted), total(tilted), total(weighted * f)
        quadratic = (total(tilted * z) - mean) / 2
        residual = f - mean[entry, None] - linear[entry, None] * z
        variance = total(weight * residual**2)
        outer = np.stack([ORDER * start, ORDER * (start + count) - 1])
        z_outer, f_outer = z.ravel()[outer], f.ravel()[outer]
        edge = (z_outer * f_outer * np.exp(-(z_outer**2) / 4)) ** 2
        complete = (edge <= NEGLIGIBLE * square).all(axis=0)
    return np.stack([mean, linear, quadratic, square, variance]), complete


def _unresolved(
    function: Function, mesh: Panels, window: slice, m: float, s: float
) -> NotCovered | NotConverged:
    bad = ~mesh.resolved[window]
    where = mesh.left[window][bad][0]
    with np.errstate(over="ignore"):
        finite = np.isfinite(mesh.values[0, window][bad] ** 2).all()
    if finite:
        return NotConverged(
            f"panels of {function!r} near t = {where:.6g}",
            float(np.max(mesh.right[window][bad] - mesh.left[window][bad])),
            MAX_PANELS,
            "a function that varies more slowly, or a larger std",
        )
    return _not_integrable(function, m, s, f"f(t)^2 is not finite near t = {where:.6g}")


@lru_cache(maxsize=256)
def _mesh(function: Function, level: int, blocks: tuple[int, ...]) -> Panels:
    """The panels of several blocks, side by side."""
    parts = [_block(function, level, index) for index in blocks]
    return Panels(
        left=np.concatenate([part.left for part in parts]),
        right=np.concatenate([part.right for part in parts]),
        values=np.concatenate([part.values for part in parts], axis=1),
        resolved=np.concatenate([part.resolved for part in parts]),
    )


@lru_cache(maxsize=8192)
def _block(function: Function, level: int, index: int) -> Panels:
    """Cells index·BLOCK … (index+1)·BLOCK of width 2^level, with f at their nodes.

    f and f² are resolved relative to max(|f| on the cell, ‖f‖): where a function has decayed to
    rounding noise there is nothing left to resolve.
    """
    cell = 2.0**level
    cells = (index * BLOCK + np.arange(BLOCK + 1)) * cell
    edges = np.union1d(cells, function.breakpoints(float(cells[0]), float(cells[-1])))
    edges = edges[(edges >= cells[0]) & (edges <= cells[-1])]
    left, right = edges[:-1], edges[1:]
    floor = moments(function).norm

    def integrands(nodes: np.ndarray) -> np.ndarray:
        values = evaluate(function, nodes)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([values, values**2])

    def scale(values: np.ndarray) -> np.ndarray:
        owner = np.searchsorted(cells, left, side="right") - 1
        largest = np.full(BLOCK, floor)
        np.fmax.at(largest, owner, np.abs(values[0]).max(axis=-1))
        with np.errstate(over="ignore"):
            return cell * np.stack([largest, largest**2])[:, owner]

    panels = refine(integrands, left, right, scale, TOLERANCE, MAX_PANELS)
    return Panels(panels.left, panels.right, panels.values[:1], panels.resolved)
