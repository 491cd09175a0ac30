"""Ridge regression for many penalties and nested sample sizes, in the smaller dimension."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from giantsteps.simulation._arrays import Array, Arrays

__all__ = [
    "EIGEN_FROM",
    "Fit",
    "Gram",
    "fit_features",
    "fit_kernel",
    "ridge_curve",
    "solve_shifted",
]

#: From this many penalties on, one eigendecomposition replaces a Cholesky factorisation for each:
#: it costs 14 to 20 of them (measured at sizes 1000, 2000 and 3000, with one thread and two).
EIGEN_FROM = 16


@dataclass(frozen=True)
class Fit:
    """A fitted readout.

    Attributes
    ----------
    coefficients : array (N,) or (n,)
        â of the features; for a kernel, α of the samples. float64.
    train : float
        n⁻¹‖ỹ − Φâ‖².
    """

    coefficients: Array
    train: float


@dataclass(frozen=True)
class Gram:
    """What a spectrum or a fit needs of the features, in the smaller dimension.

    Attributes
    ----------
    matrix : array (m, m)
        ΦᵀΦ if n > N, else ΦΦᵀ; symmetric, lower triangle.
    samples, neurons : int
        n and N.
    targets : array (n or N, columns)
        The rows of the targets if n ≤ N, else ΦᵀT.
    squares : array (columns, columns)
        TᵀT.
    features : array (n, N) or None
        Φ itself if n ≤ N.
    """

    matrix: Array
    samples: int
    neurons: int
    targets: Array
    squares: Array
    features: Array | None

    @property
    def by_samples(self) -> bool:
        """Whether the matrix is the kernel ΦΦᵀ."""
        return self.features is not None


def solve_shifted(
    arrays: Arrays, symmetric: Array, shifts: Sequence[float], rhs: Array
) -> list[tuple[Array, Array]]:
    """x = (S + s)⁻¹ r for each shift s, S positive semidefinite; s = 0 is the pseudo-inverse.

    Returns pairs (x, r − (S + s) x): the second is the part of r outside the range of S + s, zero
    unless s is. Eigenvalues of S + s below max(m ε, 16 ε²_features) λ_max count as zero (m the size
    of S; ε that of float64, in which S is summed): through a Gram matrix, singular values below
    √(m ε) of the largest cannot be told from zero.
    """
    xp = arrays.xp
    found: list[tuple[Array, Array] | None] = [None] * len(shifts)
    if len(shifts) < EIGEN_FROM:
        positive = [number for number, shift in enumerate(shifts) if shift > 0]
        solved = arrays.solve_many(symmetric, [shifts[number] for number in positive], rhs)
        for number, x in zip(positive, solved):
            found[number] = None if x is None else (x, xp.zeros_like(x))
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
    samples = labels.shape[0]
    shifts = [samples * penalty / neurons for penalty in penalties]
    return [
        Fit(x, float(arrays.xp.sum((shift * x + lost) ** 2)) / samples)
        for shift, (x, lost) in zip(shifts, solve_shifted(arrays, kernel, shifts, labels))
    ]


def fit_features(arrays: Arrays, gram: Gram, samples: int, penalties: Sequence[float]) -> list[Fit]:
    r"""â = argmin n⁻¹‖ỹ − Φa‖² + (λ/N)‖a‖² for each penalty λ, from one Gram matrix.

    With s = nλ/N:  (ΦᵀΦ + s) â = Φᵀỹ,  or  â = Φᵀα with (ΦΦᵀ + s) α = ỹ. The labels are the
    first target. ``samples`` may be fewer than those of a kernel: the first ones.
    """
    xp = arrays.xp
    if gram.features is not None:
        kernel, labels = gram.matrix[:samples, :samples], gram.targets[:samples, 0]
        fits = fit_kernel(arrays, kernel, labels, gram.neurons, penalties)
        if not fits:
            return []
        alphas = xp.stack([fit.coefficients for fit in fits], axis=1)
        found = arrays.transposed_product(gram.features[:samples, :], alphas)
        return [Fit(found[:, number], fit.train) for number, fit in enumerate(fits)]
    moments, square = gram.targets[:, 0], float(gram.squares[0, 0])
    shifts = [samples * penalty / gram.neurons for penalty in penalties]
    fits = []
    for shift, (x, _) in zip(shifts, solve_shifted(arrays, gram.matrix, shifts, moments)):
        explained = float(xp.sum(x * moments)) + shift * float(xp.sum(x * x))
        fits.append(Fit(x, max(square - explained, 0.0) / samples))
    return fits


def ridge_curve(
    arrays: Arrays,
    chunks: Iterable[tuple[Array, Array]],
    neurons: int,
    cells: Mapping[int, Sequence[float]],
) -> tuple[dict[tuple[int, float], Fit], Gram]:
    """Fits at several sample sizes and penalties from one pass over the samples.

    Parameters
    ----------
    chunks : iterable of (features, targets)
        Consecutive rows of Φ, (rows, N), and of the targets, (rows, columns), labels first. At
        least as many rows as the largest sample size.
    neurons : int
        N.
    cells : mapping of int to sequence of float
        Penalties for each sample size n.

    Returns
    -------
    fits : dict
        By (n, penalty).
    gram : Gram
        Of the largest sample size.

    Notes
    -----
    Sizes n ≤ N share one kernel ΦΦᵀ, whose leading blocks are the smaller ones; sizes n > N are
    answered as the sum ΦᵀΦ passes them. Samples are nested, so a cell is the same as alone.
    """
    xp = arrays.xp
    sizes = sorted(cells)
    last = sizes[-1]
    held = max((n for n in sizes if n <= neurons), default=0)
    kept = arrays.zeros(held, neurons, wide=False) if held else None
    matrix = arrays.zeros(neurons, neurons) if last > neurons else None
    fits: dict[tuple[int, float], Fit] = {}
    labels: list[Array] = []
    moments: Array = 0.0
    squares: Array = 0.0
    gram: Gram | None = None

    def answer(gram: Gram, n: int) -> None:
        for penalty, found in zip(cells[n], fit_features(arrays, gram, n, cells[n])):
            fits[n, penalty] = found

    start = 0
    for features, targets in chunks:
        stop = min(start + features.shape[0], last)
        if kept is not None and start < held:
            upto = min(stop, held)
            kept[start:upto, :] = features[: upto - start, :]
            labels.append(targets[: upto - start, :])
        if matrix is not None:
            ends = sorted({n for n in sizes if n > neurons and start < n <= stop} | {stop})
            for begin, end in zip([start, *ends], ends):
                part = features[begin - start : end - start, :]
                target = targets[begin - start : end - start, :]
                matrix = arrays.add_gram(matrix, part)
                moments = moments + arrays.transposed_product(part, target)
                squares = squares + xp.matrix_transpose(target) @ target
                gram = Gram(matrix, end, neurons, moments, squares, None)
                if end in cells and end > neurons:
                    answer(gram, end)
        start = stop
        if start == last:
            break
    if kept is not None:
        every = xp.concat(labels, axis=0)
        kernel = arrays.add_gram(arrays.zeros(held, held), xp.matrix_transpose(kept))
        total = xp.matrix_transpose(every) @ every
        small = Gram(kernel, held, neurons, every, total, kept)
        for n in sizes:
            if n <= neurons:
                answer(small, n)
        gram = gram or small
    assert gram is not None
    return fits, gram
