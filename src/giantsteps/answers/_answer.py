"""What every answer carries: the question, where it comes from, and what it assumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from inspect import get_annotations
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from giantsteps.answers import _export
from giantsteps.answers._bibliography import bibliography, bibtex
from giantsteps.answers._leaves import Index, Record, as_leaf, as_mapping, expand_index, take
from giantsteps.answers._solution import Solution, stack_solutions, union

if TYPE_CHECKING:
    from giantsteps.displays import Display
    from giantsteps.problem import Grid, Problem

#: Where an answer comes from. ``"limit"``: d → ∞ at fixed ratios; ``"finite width"``: theory at a
#: given d with the terms that vanish in the limit; ``"simulation"``: a finite network with a seed.
Source: TypeAlias = Literal["limit", "finite width", "simulation"]


#: Input dimension below which an answer says that it is far from a limit.
_SMALL = 30


def small_size(d: int | None) -> tuple[str, ...]:
    """What an answer at a small d says of it, theory and simulation alike."""
    if d is None or d >= _SMALL:
        return ()
    return (f"d of at least about {_SMALL} (here {d}): small networks are far from a limit",)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Answer(_export.Table, Record):
    """Base of all answers: float leaves for a ``Problem``, arrays of its shape over a ``Grid``.

    Attributes
    ----------
    problem : Problem or Grid
        What was asked.
    d : int or None
        Input dimension; None for the limit.
    source : {"limit", "finite width", "simulation"}
        Where the answer comes from.
    exact : bool
        Whether the theory claims to be exact in its limit for this problem (over a grid: for
        every cell); a simulation is exact for the network that it drew.
    assumptions : tuple of str
        What the equations assume.
    violated : tuple of str
        The assumptions that the problem does not satisfy (over a grid: in some cell).
    references : tuple of str
        Keys of the bibliography; ``citation`` has them as BibTeX.
    evidence : str
        What the equations rest on: ``"theorem"``, ``"replica"`` (a computation of statistical
        physics, checked but not proved), ``"derived"`` (in docs/theory, checked against networks),
        followed by the theorem or the section; empty for a simulation.
    solution : Solution or None
        How the equations were solved.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> answer = theory.risk(problem)
    >>> isinstance(answer, Answer), answer.source, answer.exact, answer.references
    (True, 'limit', True, ('ba2022',))
    >>> grid = gs.Grid(problem, {"readout.samples": [1.0, 2.0, 4.0]})
    >>> theory.risk(grid).test.shape, theory.risk(grid).dims
    ((3,), ('readout.samples',))
    >>> theory.risk(grid)[1].test == answer.test
    True
    """

    problem: Problem | Grid
    d: int | None = None
    source: Source
    exact: bool
    assumptions: tuple[str, ...] = ()
    violated: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    evidence: str = ""
    solution: Solution | None = None

    #: Numerical fields and the names of their axes after those of the grid (`over`), and fields
    #: that map names to leaves: by their annotations.
    _leaves: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    _mappings: ClassVar[tuple[str, ...]] = ()
    #: Fields with leaves inside: other answers, spikes, laws.
    _parts: ClassVar[tuple[str, ...]] = ()
    #: Axes after those of the grid that make rows of a table; other axes make columns.
    _row_dims: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        leaves, mappings = dict(cls._leaves), list(cls._mappings)
        for name, kind in get_annotations(cls).items():
            axes = getattr(cls.__dict__.get(name), "metadata", {}).get("axes")
            if axes or kind in ("Leaf", "Leaf | None"):
                leaves[name] = axes or ()
            elif kind == "Mapping[str, Leaf]":
                mappings.append(name)
        cls._leaves, cls._mappings = leaves, tuple(mappings)

    def __post_init__(self) -> None:
        if self.source not in get_args(Source):
            raise ValueError(f"source = {self.source!r}: must be one of {get_args(Source)}")
        for name in ("assumptions", "violated", "references"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        unknown = [key for key in self.references if key not in bibliography()]
        if unknown:
            raise ValueError(f"references {unknown}: must be keys of {sorted(bibliography())}")
        if self.solution is not None and self.solution.shape not in ((), self.shape):
            raise ValueError(f"solution has shape {self.solution.shape}, expected {self.shape}")
        for name, extra in self._leaves.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_leaf(value, self.shape, name, extra))
        for name in self._mappings:
            object.__setattr__(self, name, as_mapping(getattr(self, name), self.shape, name))

    # The grid ---------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the grid, ``()`` for one problem."""
        return tuple(getattr(self.problem, "shape", ()))

    @property
    def dims(self) -> tuple[str, ...]:
        """Paths that vary, one per axis of the leaves; ``()`` for one problem."""
        return tuple(getattr(self.problem, "dims", ()))

    @property
    def coords(self) -> dict[str, NDArray[Any]]:
        """Values along each of ``dims``."""
        return dict(getattr(self.problem, "coords", {}))

    def field(self, path: str) -> Any:
        """The problem's field at ``path``: a value, or an array that broadcasts over the grid."""
        if path in self.dims:
            axis = self.dims.index(path)
            return np.expand_dims(
                self.coords[path], [i for i in range(len(self.dims)) if i != axis]
            )
        base: Any = getattr(self.problem, "problem", self.problem)
        return base.get(path)

    def __getitem__(self, index: Index) -> Self:
        """The answer of one cell, or of a smaller grid."""
        if isinstance(index, str):
            raise IndexError("names are attributes: answer.test; axes are in answer.coords")
        if not self.shape:
            raise IndexError("the answer to a single problem has no cells; ask a Grid")
        entries = expand_index(index, len(self.shape))
        values = self._fields()
        for name in (*self._leaves, *self._mappings, *self._parts):
            values[name] = take(values[name], entries)
        if self.solution is not None and self.solution.shape:
            values["solution"] = self.solution[entries]
        values["problem"] = self.problem[entries]  # type: ignore[index]
        return type(self)(**values)

    def __iter__(self) -> Iterator[Self]:
        """Iterate over the cells of the first axis."""
        if not self.shape:
            raise TypeError("the answer to a single problem has no cells; ask a Grid")
        return (self[number] for number in range(self.shape[0]))

    @classmethod
    def stack(cls, grid: Grid, cells: Sequence[Self] | NDArray[Any]) -> Self:
        """One answer over ``grid`` from the answers of its cells, in row-major order.

        ``exact`` holds if it holds in every cell; ``assumptions``, ``violated`` and
        ``references`` are the unions.
        """
        flat = list(np.asarray(cells, dtype=object).ravel())
        if len(flat) != int(np.prod(grid.shape)):
            raise ValueError(f"{len(flat)} cells for a grid of shape {grid.shape}")
        values = cls._stack_fields(tuple(grid.shape), flat)
        initial: list[Any] = [getattr(cell, "initial", None) for cell in flat]
        if flat and all(cell is not None for cell in initial):
            values["initial"] = cls.stack(grid, initial)
        return cls(
            problem=grid,
            d=flat[0].d,
            source=flat[0].source,
            exact=all(cell.exact for cell in flat),
            assumptions=union(cell.assumptions for cell in flat),
            violated=union(cell.violated for cell in flat),
            references=union(cell.references for cell in flat),
            evidence="; ".join(union([cell.evidence] for cell in flat if cell.evidence)),
            solution=stack_solutions(grid.shape, [cell.solution for cell in flat]),
            **values,
        )

    @classmethod
    def _stack_fields(cls, shape: tuple[int, ...], cells: list[Any]) -> dict[str, Any]:
        """The fields of this type for ``stack``; types with other fields extend it."""
        values: dict[str, Any] = {}
        for name in cls._leaves:
            leaves = [getattr(cell, name) for cell in cells]
            if all(leaf is not None for leaf in leaves):
                values[name] = np.reshape(leaves, shape + np.shape(leaves[0]))
        for name in cls._mappings:
            mappings = [getattr(cell, name) for cell in cells]
            values[name] = {
                key: np.reshape([mapping.get(key, np.nan) for mapping in mappings], shape)
                for key in union(mappings)
            }
        return values

    @classmethod
    def from_variables(
        cls, problem: Problem | Grid, d: int | None, variables: Mapping[str, Any], **fields: Any
    ) -> Self:
        """An answer from its numbers, by the names under which they are exported."""
        initial = {
            name.removeprefix("initial."): value
            for name, value in variables.items()
            if name.startswith("initial.")
        }
        if initial:
            fields["initial"] = cls.from_variables(problem, d, initial, **fields)
        values = cls._from_variables(variables) | fields
        return cls(problem=problem, d=d, **values)

    @classmethod
    def _from_variables(cls, variables: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of this type for ``from_variables``; types with other fields extend it."""
        values = {name: variables[name] for name in cls._leaves if name in variables}
        for name in cls._mappings:
            start = f"{name}."
            values[name] = {
                key.removeprefix(start): value
                for key, value in variables.items()
                if key.startswith(start)
            }
        return values

    # Exports ----------------------------------------------------------------------------------

    @property
    def citation(self) -> str:
        """BibTeX of the papers behind the answer."""
        return bibtex(self.references)

    def _variables(self) -> dict[str, _export.Variable]:
        """Every number of the answer with the names of its axes."""
        variables: dict[str, _export.Variable] = {}
        for name, extra in self._leaves.items():
            value = getattr(self, name)
            if value is not None:
                variables[name] = (self.dims + extra, np.asarray(value))
        for name in self._mappings:
            for key, value in getattr(self, name).items():
                variables[f"{name}.{key}"] = (self.dims, np.asarray(value))
        initial = getattr(self, "initial", None)
        if initial is not None:
            for name, (extra, values) in initial._variables().items():
                variables[f"initial.{name}"] = (self.dims + extra[len(initial.dims) :], values)
        return variables

    def _axes(self) -> dict[str, NDArray[Any]]:
        """Coordinates of the axes after those of the grid, where they have any."""
        return {}

    to_columns = _export.columns
    to_xarray = _export.to_xarray

    # Display ----------------------------------------------------------------------------------

    def plot(self, x: str | None = None, quantity: str | None = None, **options: Any) -> Display:
        """Draw a quantity along an axis of the answer (needs matplotlib).

        Parameters
        ----------
        x : str, optional
            The axis: a path that varies, or an axis of the answer itself such as ``"step"``.
        quantity : str, optional
            What to draw, such as ``"test"`` or ``"spikes.0.value"``.
        **options
            For the display: ``ax``, ``width``, ``height``.

        Raises
        ------
        InvalidProblem
            If the answer has no axis with numbers.
        """
        from giantsteps.displays import curves

        return curves(self, x, quantity, **options)

    def _summary(self) -> list[tuple[str, str]]:
        rows = [(name, _shown(value)) for name, (_, value) in self._variables().items()]
        where = self.source if self.d is None else f"{self.source}, d = {self.d}"
        rows.append(("source", where))
        rows.append(("exact", "yes" if self.exact else "no"))
        if self.dims:
            sizes = (f"{path}: {size}" for path, size in zip(self.dims, self.shape))
            rows.insert(0, ("grid", ", ".join(sizes)))
        if self.solution is not None:
            rows.append(
                ("solved", f"{self.solution.status}, residual {_shown(self.solution.residual)}")
            )
        rows.append(("violated", "; ".join(self.violated) or "none"))
        if self.evidence:
            rows.append(("evidence", self.evidence))
        if self.references:
            rows.append(("references", ", ".join(self.references)))
        return rows

    def _kind(self) -> str:
        """Name of the answer's type, also where a subclass computes its parts when read."""
        package = __name__.rpartition(".")[0]
        return next(k.__name__ for k in type(self).__mro__ if k.__module__.startswith(package))

    def __repr__(self) -> str:
        rows = self._summary()
        width = max(len(name) for name, _ in rows)
        lines = (f"  {name:<{width}}  {value}" for name, value in rows)
        return "\n".join([self._kind(), *lines])

    def _repr_latex_(self) -> str:
        """What was found, as an array of names and values."""
        found = takewhile(lambda row: row[0] != "source", self._summary())
        rows = [
            rf"\texttt{{{name.replace('_', chr(92) + '_')}}} & {_in_latex(value)}"
            for name, value in found
        ]
        newline = r" \\ "
        return rf"$$\begin{{array}}{{ll}} {newline.join(rows)} \end{{array}}$$"

    def _repr_html_(self) -> str:
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(value)}</td></tr>"
            for name, value in self._summary()
        )
        return f"<table><caption>{self._kind()}</caption><tbody>{body}</tbody></table>"


def _in_latex(shown: str) -> str:
    """A number as it is, other values as text."""
    try:
        float(shown)
    except ValueError:
        return rf"\text{{{shown.replace('_', chr(92) + '_')}}}"
    return shown


def _shown(value: ArrayLike) -> str:
    """A number, or the range of an array."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{array.item():.6g}" if array.dtype.kind == "f" else str(array.item())
    if array.dtype.kind != "f":
        return f"{array.shape}"
    finite = array[np.isfinite(array)]
    if array.size <= 6:
        return "  ".join(f"{number:.6g}" for number in array.ravel())
    if finite.size == 0:
        return f"{array.shape}, none finite"
    return f"{finite.min():.6g} … {finite.max():.6g}  {array.shape}"
