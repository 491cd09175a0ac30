"""A spectrum: the law of its bulk and the spikes outside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import _export
from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf, Record, as_leaf, as_mapping, frozen
from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.displays import Display
    from giantsteps.laws import Law

#: Whose spectrum it is: singular values of weights and features, eigenvalues of kernels.
Matrix: TypeAlias = Literal["weights", "features", "kernel", "tangent kernel"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Spike(Record):
    """One value outside the bulk and the alignment of its singular vector.

    Attributes
    ----------
    value : float or ndarray
        Singular value or eigenvalue; over a grid NaN in cells without this spike.
    overlaps : mapping of str to float or ndarray
        Squared cosines with named directions. Weights: teacher, gradient (of the first step),
        second_layer; kernel: labels; features: monomial, second_layer_power.
    degree : int or None
        Degree of the monomial that causes the spike, for features.

    References
    ----------
    theory §2, §3, §5d.
    """

    value: Leaf
    overlaps: Mapping[str, Leaf] = field(default_factory=dict)
    degree: int | None = None

    def __post_init__(self) -> None:
        value = frozen(self.value)
        object.__setattr__(self, "value", as_leaf(value, value.shape, "value"))
        overlaps = {k: np.broadcast_to(v, value.shape) for k, v in self.overlaps.items()}
        object.__setattr__(self, "overlaps", as_mapping(overlaps, value.shape, "overlaps"))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the leaves, ``()`` for one problem."""
        return np.shape(self.value)

    @property
    def overlap(self) -> Leaf:
        """The first of ``overlaps``; NaN if there is none."""
        nothing = np.nan if self.shape == () else frozen(np.full(self.shape, np.nan))
        return next(iter(self.overlaps.values()), nothing)


class Spikes(tuple[Spike, ...]):
    """A tuple of spikes that says how many there are when one is asked for that there is not."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        try:
            return super().__getitem__(index)
        except IndexError:
            there = f"{len(self)} spikes" if len(self) > 1 else "one spike" if self else "no spike"
            raise IndexError(
                f"no spike number {index}: this spectrum has {there} outside its bulk "
                "(spectrum.count)"
            ) from None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Spectrum(Answer):
    """The law of a bulk and the spikes outside, largest first.

    Weights and features have min(rows, columns) singular values; the kernel is n × n and keeps
    its atom at zero. In a simulated spectrum ``bulk`` is the empirical law of all values and
    ``spikes`` are the largest of them, whether or not they are outside the bulk.

    Attributes
    ----------
    bulk : Law, ndarray of Laws, or None
        Over a grid an object array of its shape; None where only top values were asked for.
    spikes : tuple of Spike
        Over a grid their leaves are arrays with NaN where a cell has no such spike.
    initial : Spectrum or None
        The same spectrum before the steps.
    matrix : {"weights", "features", "kernel", "tangent kernel"} or None
        The matrix whose spectrum it is.

    References
    ----------
    theory §2, §3, §5d.
    """

    bulk: Law | NDArray[Any] | None
    spikes: tuple[Spike, ...] = ()
    initial: Spectrum | None = None
    matrix: Matrix | None = None

    _parts: ClassVar[tuple[str, ...]] = ("bulk", "spikes", "initial")
    _row_dims: ClassVar[tuple[str, ...]] = ("spike",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "spikes", Spikes(self.spikes))
        if self.shape and self.bulk is not None:
            bulk = np.asarray(self.bulk, dtype=object)
            if bulk.shape != self.shape:
                raise ValueError(f"bulk has shape {bulk.shape}, expected {self.shape}")
            object.__setattr__(self, "bulk", bulk)
        for number, spike in enumerate(self.spikes):
            if spike.shape != self.shape:
                raise ValueError(f"spikes[{number}] has shape {spike.shape}, expected {self.shape}")
        if self.initial is not None and self.initial.shape != self.shape:
            raise ValueError(f"initial has shape {self.initial.shape}, expected {self.shape}")

    @property
    def count(self) -> int | NDArray[np.int64]:
        """Number of spikes, over a grid in each cell."""
        present = [~np.isnan(np.asarray(spike.value)) for spike in self.spikes]
        counted = np.zeros(self.shape, dtype=np.int64)
        for spike in present:
            counted = counted + spike
        return counted if self.shape else int(counted)

    def _variables(self) -> dict[str, _export.Variable]:
        if not self.spikes:
            return {}
        names = dict.fromkeys(name for spike in self.spikes for name in spike.overlaps)
        absent = np.full(self.shape, np.nan)
        stacked: dict[str, Any] = {"value": [spike.value for spike in self.spikes]}
        for name in names:
            stacked[f"overlap.{name}"] = [s.overlaps.get(name, absent) for s in self.spikes]
        dims = (*self.dims, "spike")
        variables = {
            name: (dims, np.stack([np.asarray(v, dtype=float) for v in values], axis=-1))
            for name, values in stacked.items()
        }
        if any(spike.degree is not None for spike in self.spikes):
            degrees = [np.nan if s.degree is None else s.degree for s in self.spikes]
            variables["degree"] = (("spike",), np.asarray(degrees, dtype=float))
        return variables

    def to_columns(self) -> dict[str, list[Any]]:
        """The tidy table as columns, one row per spike of a cell."""
        table = super().to_columns()
        if not self.spikes:
            return {name: [] for name in table}
        return _export.present(table, "value")

    def plot(self, x: str | None = None, quantity: str | None = None, **options: Any) -> Display:
        """Draw the density and the spikes, or over a grid a spike along an axis."""
        from giantsteps.displays import SpectrumDisplay

        if self.shape or x is not None or quantity is not None:
            return super().plot(x, quantity, **options)
        if self.source == "simulation":
            raise InvalidProblem(
                "spectrum",
                "a simulated one",
                "drawn with its theory: SpectrumDisplay.from_spectra(theory, simulation)",
            )
        return SpectrumDisplay.from_spectra(self, **options)

    def _summary(self) -> list[tuple[str, str]]:
        rows = super()._summary()
        if not self.spikes:
            rows.insert(bool(self.dims), ("spikes", "none"))
        # A simulated bulk is computed when it is first read; showing the answer does not read it.
        bulk = vars(self).get("bulk")
        if not self.shape and bulk is not None and bulk.support:
            intervals = (f"[{low:.6g}, {high:.6g}]" for low, high in bulk.support)
            rows.insert(0, ("bulk", " ∪ ".join(intervals)))
        return rows

    @classmethod
    def _stack_fields(cls, shape: tuple[int, ...], cells: list[Any]) -> dict[str, Any]:
        bulk = np.empty(len(cells), dtype=object)
        bulk[:] = [cell.bulk for cell in cells]
        known = all(law is not None for law in bulk)
        most = max((len(cell.spikes) for cell in cells), default=0)
        return {
            "bulk": bulk.reshape(shape) if known else None,
            "matrix": cells[0].matrix,
            "spikes": tuple(_stack_spikes(shape, cells, number) for number in range(most)),
        }

    @classmethod
    def _from_variables(cls, variables: Mapping[str, Any]) -> dict[str, Any]:
        values = np.asarray(variables["value"])
        degrees = np.asarray(variables.get("degree", np.full(values.shape, np.nan)))
        overlaps = {
            name.removeprefix("overlap."): np.asarray(overlap)
            for name, overlap in variables.items()
            if name.startswith("overlap.")
        }
        spikes = tuple(
            Spike(
                value=values[..., number],
                overlaps={name: overlap[..., number] for name, overlap in overlaps.items()},
                degree=_one(degrees[..., number]),
            )
            for number in range(values.shape[-1])
        )
        bulk = variables.get("bulk")
        return {"spikes": spikes, "bulk": None if bulk is None else _laws(np.asarray(bulk))}


def _one(degrees: FloatArray) -> int | None:
    """The degree, if all cells have the same."""
    found = set(np.ravel(degrees).tolist())
    return int(found.pop()) if len(found) == 1 and np.isfinite(degrees).all() else None


def _laws(values: FloatArray) -> Any:
    """The empirical law of the last axis, NaN left out; over a grid an array of them."""
    from giantsteps.laws import EmpiricalLaw

    laws = np.empty(values.shape[:-1], dtype=object)
    for index in np.ndindex(laws.shape):
        laws[index] = EmpiricalLaw(values[index][~np.isnan(values[index])])
    return laws if laws.ndim else laws.item()


def _stack_spikes(shape: tuple[int, ...], cells: list[Spectrum], number: int) -> Spike:
    """The spike of this number over all cells, NaN where a cell has fewer."""
    spikes = [cell.spikes[number] if number < len(cell.spikes) else None for cell in cells]
    present = [spike for spike in spikes if spike is not None]
    names = dict.fromkeys(name for spike in present for name in spike.overlaps)
    degrees = {spike.degree for spike in present}
    return Spike(
        value=np.reshape([np.nan if s is None else s.value for s in spikes], shape),
        overlaps={
            name: np.reshape(
                [np.nan if s is None else s.overlaps.get(name, np.nan) for s in spikes], shape
            )
            for name in names
        },
        degree=degrees.pop() if len(degrees) == 1 else None,
    )
