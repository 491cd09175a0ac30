"""Ridge regression for many penalties and nested sample sizes, in the smaller dimension.

Every array may have one more axis in front, over the networks of a batch.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from giantsteps.simulation._engine._arrays import Array, Arrays

#: From this many penalties on, one eigendecomposition replaces a Cholesky factorisation for each:
#: it costs 14 to 20 of them (measured at sizes 1000, 2000 and 3000, with one thread and two).
EIGEN_FROM = 16


@dataclass(frozen=True)
class Fit:
    """A fitted readout."""

    coefficients: Array  # (…, N): â of the features; for a kernel, α of the samples. float64.
    train: Array  # (…): n⁻¹‖ỹ − Φâ‖²


@dataclass(frozen=True)
class Gram:
    """What a spectrum or a fit needs of the features, in the smaller dimension."""

    matrix: Array  # (…, m, m): ΦᵀΦ if n > N, else ΦΦᵀ; symmetric, lower triangle
    #: n and N.
    samples: int
    neurons: int
    targets: Array  # (…, n or N, columns): the rows of the targets if n ≤ N, else ΦᵀT
    squares: Array  # (…, columns, columns): TᵀT
    features: Array | None  # (…, n, N): Φ itself if n ≤ N


def solve_shifted(
    arrays: Arrays, symmetric: Array, shifts: Sequence[float], rhs: Array
) -> list[tuple[Array, Array]]:
    """x = (S + s)⁻¹ r for each shift s, S positive semidefinite; s = 0 is the pseudo-inverse.

    Returns pairs (x, r − (S + s) x): the second is the part of r outside the range of S + s, zero
    unless s is. Eigenvalues of S + s below max(m ε, 16 ε²_features) λ_max count as zero (m the size
    of S; ε that of float64, in which S is summed): through a Gram matrix, singular values below
    √(m ε) of the largest cannot be told from zero.

    The matrices of a batch are factorised by Cholesky only, whatever the shifts: x is NaN where
    that failed, without a word, for the caller to solve alone.
    """
    xp = arrays.xp
    if rhs.ndim > 1:
        pairs = arrays.solve_many(symmetric, shifts, rhs)
        batch = [xp.where(done[..., None], x, xp.full_like(x, float("nan"))) for x, done in pairs]
        return [(x, xp.zeros_like(x)) for x in batch]
    found: list[tuple[Array, Array] | None] = [None] * len(shifts)
    if len(shifts) < EIGEN_FROM:
        positive = [number for number, shift in enumerate(shifts) if shift > 0]
        solved = arrays.solve_many(symmetric, [shifts[number] for number in positive], rhs)
        for number, (x, done) in zip(positive, solved):
            found[number] = (x, xp.zeros_like(x)) if bool(done) else None
    if any(pair is None for pair in found):
        values, vectors = arrays.eigh(symmetric)
        components = xp.matrix_transpose(vectors) @ rhs
        relative = max(values.shape[0] * sys.float_info.epsilon, 16 * arrays.epsilon**2)
        cutoff = max(float(values[-1]), 0.0) * relative
        zeros, ones = xp.zeros_like(values), xp.ones_like(values)
        for number, shift in enumerate(shifts):
            if found[number] is None:
                usable = values + shift > cutoff
                inverse = xp.where(usable, 1 / xp.where(usable, values + shift, ones), zeros)
                lost = xp.where(usable, zeros, components)
                found[number] = (vectors @ (inverse * components), vectors @ lost)
    return [pair for pair in found if pair is not None]


def fit_kernel(
    arrays: Arrays, kernel: Array, labels: Array, neurons: int, penalties: Sequence[float]
) -> list[Fit]:
    """α = (K + nλ/N)⁻¹ ỹ for each penalty λ; the residual ỹ − Kα is (nλ/N) α."""
    samples = labels.shape[-1]
    shifts = [samples * penalty / neurons for penalty in penalties]
    return [
        Fit(x, arrays.xp.sum((shift * x + lost) ** 2, axis=-1) / samples)
        for shift, (x, lost) in zip(shifts, solve_shifted(arrays, kernel, shifts, labels))
    ]


def fit_features(arrays: Arrays, gram: Gram, samples: int, penalties: Sequence[float]) -> list[Fit]:
    r"""â = argmin n⁻¹‖ỹ − Φa‖² + (λ/N)‖a‖² for each penalty λ, from one Gram matrix.

    With s = nλ/N:  (ΦᵀΦ + s) â = Φᵀỹ,  or  â = Φᵀα with (ΦΦᵀ + s) α = ỹ. The labels are the
    first target. ``samples`` may be fewer than those of a kernel: the first ones.
    """
    xp = arrays.xp
    if gram.features is not None:
        kernel, labels = gram.matrix[..., :samples, :samples], gram.targets[..., :samples, 0]
        fits = fit_kernel(arrays, kernel, labels, gram.neurons, penalties)
        if not fits:
            return []
        alphas = xp.stack([fit.coefficients for fit in fits], axis=-1)
        found = arrays.transposed_product(gram.features[..., :samples, :], alphas)
        return [Fit(found[..., number], fit.train) for number, fit in enumerate(fits)]
    moments, square = gram.targets[..., 0], gram.squares[..., 0, 0]
    shifts = [samples * penalty / gram.neurons for penalty in penalties]
    fits = []
    for shift, (x, _) in zip(shifts, solve_shifted(arrays, gram.matrix, shifts, moments)):
        explained = xp.sum(x * moments, axis=-1) + shift * xp.sum(x * x, axis=-1)
        left = square - explained
        fits.append(Fit(x, xp.where(left < 0, xp.zeros_like(left), left) / samples))
    return fits


class RidgeCurve:
    """Fits at several sample sizes and penalties from one pass over the samples.

    Sizes n ≤ N share one kernel ΦΦᵀ, whose leading blocks are the smaller ones; sizes n > N are
    answered as the sum ΦᵀΦ passes them. Samples are nested, so a cell is the same as alone.

    * ``neurons``: N.
    * ``cells``: penalties for each sample size n.
    * ``lead``: the axes in front, if any.

    Attributes
    ----------
    fits : dict
        By (n, penalty), complete once `finish` was called.
    """

    def __init__(
        self,
        arrays: Arrays,
        neurons: int,
        cells: Mapping[int, Sequence[float]],
        lead: tuple[int, ...] = (),
    ) -> None:
        self.arrays, self.neurons, self.cells = arrays, neurons, cells
        self.fits: dict[tuple[int, float], Fit] = {}
        self._last = max(cells)
        self._held = max((n for n in cells if n <= neurons), default=0)
        self._kept = arrays.zeros(*lead, self._held, neurons, wide=False) if self._held else None
        self._sum = arrays.zeros(*lead, neurons, neurons) if self._last > neurons else None
        self._targets: list[Array] = []
        self._moments: Array = 0.0
        self._squares: Array = 0.0
        self._gram: Gram | None = None
        self._start = 0

    def add(self, features: Array, targets: Array) -> None:
        """The next rows of Φ, (…, rows, N), and of the targets, (…, rows, columns), labels first;
        rows beyond the largest sample size are left out."""
        start, stop = self._start, min(self._start + features.shape[-2], self._last)
        if self._kept is not None and start < self._held:
            upto = min(stop, self._held)
            self._kept[..., start:upto, :] = features[..., : upto - start, :]
            self._targets.append(targets[..., : upto - start, :])
        if self._sum is not None and start < stop:
            ends = sorted(
                {n for n in self.cells if n > self.neurons and start < n <= stop} | {stop}
            )
            for begin, end in zip([start, *ends], ends):
                rows = slice(begin - start, end - start)
                self._accumulate(features[..., rows, :], targets[..., rows, :], end)
        self._start = stop

    def _accumulate(self, features: Array, targets: Array, end: int) -> None:
        """Add rows to the sums, up to sample number ``end``, and answer that size."""
        transposed = self.arrays.xp.matrix_transpose(targets)
        self._sum = self.arrays.add_gram(self._sum, features)
        self._moments = self._moments + self.arrays.transposed_product(features, targets)
        self._squares = self._squares + transposed @ targets
        self._gram = Gram(self._sum, end, self.neurons, self._moments, self._squares, None)
        if end in self.cells and end > self.neurons:
            self._answer(self._gram, end)

    def _answer(self, gram: Gram, n: int) -> None:
        for penalty, found in zip(self.cells[n], fit_features(self.arrays, gram, n, self.cells[n])):
            self.fits[n, penalty] = found

    def finish(self) -> Gram:
        """Answer the sizes n ≤ N; return the Gram matrix of the largest size."""
        if self._kept is not None:
            xp = self.arrays.xp
            every = xp.concat(self._targets, axis=-2)
            shape = (*self._kept.shape[:-1], self._held)
            kernel = self.arrays.add_gram(
                self.arrays.zeros(*shape), xp.matrix_transpose(self._kept)
            )
            total = xp.matrix_transpose(every) @ every
            small = Gram(kernel, self._held, self.neurons, every, total, self._kept)
            for n in sorted(n for n in self.cells if n <= self.neurons):
                self._answer(small, n)
            self._gram = self._gram or small
        assert self._gram is not None
        return self._gram
