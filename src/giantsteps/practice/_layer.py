"""One weight matrix: its bulk, its spikes, and what they say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from giantsteps.practice._bulk import (
    FALSE_ALARMS,
    SMALLEST,
    Bulk,
    WeightSpike,
    fit_bulk,
    singular_values,
    spike_strength,
    uses_gram,
)
from giantsteps.practice._small_floats import ROUNDING
from giantsteps.types import FloatArray

#: What a weight matrix looks like: see `Layer`.
Verdict: TypeAlias = Literal[
    "random",
    "random with spikes",
    "large entries",
    "not random",
    "low rank",
    "too small",
    "zero",
    "not finite",
]

#: Singular values are told from rounding by a gap of this factor.
_GAP = 10.0


@dataclass(frozen=True, eq=False, repr=False)
class Layer:
    r"""One weight matrix against the law of a random one.

    The law is that of a matrix with independent entries of one variance (Marchenko–Pastur).
    A network is initialised like that; training adds spikes first, and changes the bulk later.

    ====================  ==================================================================
    verdict               meaning
    ====================  ==================================================================
    random                nothing tells it from independent entries
    random with spikes    a random bulk, and directions, rows or columns above it
    large entries         most of what stands out is due to few large entries
    not random            the bulk does not follow the law
    low rank              more than half of the singular values are zero: there is no bulk
    too small             the smaller side has fewer than 8 entries that are not zero
    zero, not finite      nothing to say
    ====================  ==================================================================

    Attributes
    ----------
    name : str
        Of the tensor.
    shape : tuple of int
        Of the tensor; a convolution is unfolded to (outputs, inputs × kernel).
    rows, columns : int
        Of the matrix, without rows and columns of zeros.
    dtype : str
        Type in which the tensor is stored.
    verdict : str
        See above.
    values : ndarray
        Singular values, the largest first.
    norm : float
        Frobenius norm.
    stable_rank : float
        ‖W‖²_F/s₁²; NaN for a matrix of zeros.
    rank : int
        Number of singular values above the rounding of ``dtype``.
    scale : float
        Standard deviation of the entries of the bulk; NaN without one.
    edge : float
        Upper end of the bulk.
    margin : float
        Above it a singular value is a spike: the edge and its fluctuations.
    distance : float
        Kolmogorov–Smirnov distance between the bulk and the law.
    spikes : tuple of WeightSpike
        Values above the margin that are directions, rows or columns, the largest first.
    large_entries : int
        Number of further values above the margin, which large entries explain.
    note : str
        What else should be known, or nothing.
    """

    name: str
    shape: tuple[int, ...]
    rows: int
    columns: int
    dtype: str
    verdict: Verdict
    values: FloatArray
    norm: float
    stable_rank: float
    rank: int
    scale: float = np.nan
    edge: float = np.nan
    margin: float = np.nan
    distance: float = np.nan
    spikes: tuple[WeightSpike, ...] = ()
    large_entries: int = 0
    note: str = ""

    @property
    def smallest_spike(self) -> float:
        """θ of the weakest low-rank part that leaves the bulk: σ(rc)^¼."""
        return self.scale * float(self.rows * self.columns) ** 0.25

    @property
    def detectable_spike(self) -> float:
        """θ whose singular value is at the margin: it is found in about half of the cases."""
        return spike_strength(self.margin, self.scale, self.rows, self.columns)[0]

    def sentence(self) -> str:
        """The verdict in a sentence."""
        directions = ", ".join(
            f"{count} {kind}{'s' if count != 1 else ''}"
            for kind in ("direction", "row", "column")
            if (count := sum(spike.kind == kind for spike in self.spikes))
        )
        if self.large_entries:
            large = f"{self.large_entries} values due to large entries"
            directions = f"{directions}, {large}" if directions else large
        directions = directions or "nothing"
        texts = {
            "random": f"looks like independent entries of standard deviation {self.scale:.3g}",
            "random with spikes": f"a random bulk, and {directions} above it",
            "large entries": f"above the bulk: {directions}",
            "not random": f"the bulk is not that of a random matrix (distance "
            f"{self.distance:.3f}); above it: {directions}",
            "low rank": "no bulk to compare with",
            "too small": f"fewer than {SMALLEST} rows or columns: no law to compare with",
            "zero": "all entries are zero",
            "not finite": "some entries are NaN or infinite",
        }
        return texts[self.verdict] + (f" ({self.note})" if self.note else "")

    def to_row(self) -> dict[str, Any]:
        """The numbers of the table."""
        top = self.spikes[0] if self.spikes else None
        return {
            "layer": self.name,
            "shape": "×".join(map(str, self.shape)),
            "verdict": self.verdict,
            "norm": self.norm,
            "largest": float(self.values[0]) if len(self.values) else np.nan,
            "scale": self.scale,
            "edge": self.edge,
            "distance": self.distance,
            "spikes": len(self.spikes),
            "significance": None if top is None else top.significance,
            "strength": None if top is None else top.strength,
            "large_entries": self.large_entries,
            "stable_rank": self.stable_rank,
            "rank": self.rank,
            "note": self.note,
        }

    def __repr__(self) -> str:
        return f"Layer({self.name}, {self.rows}×{self.columns}: {self.sentence()})"


def layer_of_matrix(
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    matrix: FloatArray,
    *,
    false_alarms: float = FALSE_ALARMS,
    seed: int = 0,
    reference: float = 0.0,
) -> Layer:
    """Inspect one matrix; ``reference`` is the typical entry of what it is a difference of."""
    live = matrix.shape

    def made(verdict: Verdict, values: FloatArray, **more: Any) -> Layer:
        largest = float(values[0]) if len(values) else 0.0
        relative = values / largest if largest > 0 else values
        stable = float(relative @ relative) if largest > 0 else np.nan
        norm = largest * float(np.sqrt(stable)) if largest > 0 else 0.0
        rank = more.pop("rank", 0)
        return Layer(
            name, shape, live[0], live[1], dtype, verdict, values, norm, stable,
            rank, **more,
        )  # fmt: skip

    if not np.all(np.isfinite(matrix)):
        return made("not finite", np.zeros(0))
    size = float(np.abs(matrix).max(initial=0.0))
    if size == 0.0:
        return made("zero", np.zeros(min(live)))
    with np.errstate(under="ignore"):
        scaled = matrix / size  # tiny or huge entries would under- or overflow when squared
        alive = scaled[np.any(scaled != 0, axis=1)][:, np.any(scaled != 0, axis=0)]
        values = singular_values(alive)
    live = alive.shape
    floor = _rounding_floor(alive, float(values[0]), dtype, reference / size)
    rank = int(np.sum(values > floor))
    if rank > len(values) // 2 and values[rank - 1] < _GAP * floor:
        rank = len(values)  # no gap: these are the small singular values of a random matrix
    padded = size * np.concatenate([values, np.zeros(min(matrix.shape) - len(values))])
    dropped = (matrix.shape[0] - live[0], matrix.shape[1] - live[1])
    note = _zero_note(*dropped)
    numbers = [np.flatnonzero(np.any(scaled != 0, axis=axis)) for axis in (1, 0)]
    if len(values) < SMALLEST:
        return made("too small", padded, rank=rank, note=note)
    if rank < len(values):
        small = f"rank {rank} of at most {len(values)}"
        if values[rank] > 1e-13 * values[0]:
            small += f", singular values below {size * floor:.2g} are rounding"
        note = "; ".join(filter(None, [note, small]))
        if rank < max(SMALLEST, len(values) // 2):
            return made("low rank", padded, rank=rank, note=note)
    bulk = fit_bulk(alive, values[:rank], false_alarms=false_alarms, seed=seed)
    found = [spike for spike in bulk.spikes if spike.kind != "entries"]
    return made(
        _verdict(bulk),
        padded,
        rank=rank,
        scale=size * bulk.scale,
        edge=size * bulk.edge,
        margin=size * bulk.margin,
        distance=bulk.distance,
        spikes=tuple(
            _scaled(spike, size, numbers) for spike in bulk.spikes if spike.kind != "entries"
        ),
        large_entries=len(bulk.spikes) - len(found),
        note=note,
    )


def _zero_note(rows: int, columns: int) -> str:
    parts = [
        f"{count} {name if count == 1 else name + 's'}"
        for count, name in ((rows, "row"), (columns, "column"))
        if count
    ]
    return f"zero: {' and '.join(parts)}" if parts else ""


def _rounding_floor(matrix: FloatArray, largest: float, dtype: str, reference: float) -> float:
    """Singular values below this may be rounding: of the entries as stored, and of the method.

    The rounding of one entry has about 0.4 times the largest possible one, and the law of a random
    matrix.
    """
    rows, columns = matrix.shape
    typical = max(float(np.sqrt(np.mean(matrix**2))), reference)
    stored = ROUNDING.get(dtype, 2.0**-53) * typical * float(np.sqrt(rows) + np.sqrt(columns))
    return stored + largest * (3e-8 if uses_gram(matrix) else 1e-14)


def _verdict(bulk: Bulk) -> Verdict:
    entries = sum(spike.kind == "entries" for spike in bulk.spikes)
    if 2 * entries > len(bulk.spikes):
        return "large entries"
    if not bulk.fits:
        return "not random"
    return "random with spikes" if bulk.spikes else "random"


def _scaled(spike: WeightSpike, size: float, numbers: list[NDArray[np.intp]]) -> WeightSpike:
    """A spike in the units of the matrix, with the number of its row or column there."""
    place = spike.place
    if place is not None:
        place = int(numbers[0 if spike.kind == "row" else 1][place])
    return replace(spike, value=spike.value * size, strength=spike.strength * size, place=place)
