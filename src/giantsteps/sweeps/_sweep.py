"""A :class:`Sweep`: a grid of problems, sizes, seeds and questions, answered into a store."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from giantsteps import campaign
from giantsteps.answers import Source
from giantsteps.campaign import (
    Cells,
    Progress,
    Status,
    Store,
    Workers,
    html_table,
    integers,
    read_status,
)
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem, choice, content_hash, to_toml
from giantsteps.simulation import Cost
from giantsteps.sweeps import _export, _file
from giantsteps.sweeps._cells import cells_of
from giantsteps.sweeps._fields import (
    as_options,
    as_path,
    as_questions,
    as_sources,
    check_problems,
    try_options,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from giantsteps.displays import ComparisonDisplay, HeatMapDisplay

_DTYPES = ("float64", "float32")


@dataclass(frozen=True, kw_only=True, eq=False)
class Sweep:
    """Every problem of a grid × every d × every seed × every question, kept in one file.

    A cell is one of these combinations, stored under the hash of everything that determines its
    result (the canonical problem, d, seed, dtype, options, question and its version). So a sweep
    can be killed and resumed, and when values are added only the new cells run.

    Parameters
    ----------
    grid : Grid or Problem
        The problems.
    d : int or sequence of int
        Input dimension of the networks; theory answers at the same d.
    seeds : int or sequence of int
        Number of seeds (0, 1, …), or a list of them.
    questions : str, sequence of str, or mapping of str to mapping
        Names such as ``"risk"``; as a mapping, with the options of each question
        (``{"weights": {"top": 2}}``).
    sources : sequence of {"limit", "finite width", "simulation"}
        Where answers come from: theory in the limit, theory at the same d, simulation.
    store : path-like
        The SQLite file with the results.
    dtype : {"float64", "float32"}
        Precision of the simulation.
    options : mapping
        Further options of the simulation: ``test_samples``, ``device``, ``memory``.
    initial : bool
        Also simulate the networks before their steps (once for all steps that start alike).
    share : bool
        Readouts (samples and penalties) of one network share its run, which is many times
        faster; which readouts run together can change the last bits of a result. If False,
        every cell runs alone, and its bits depend on its address only.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2.0, rate=2.0)],
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> sweep = gs.Sweep(grid=gs.Grid(problem, {"readout.samples": [0.5, 1.0, 2.0]}),
    ...                  d=100, seeds=4, store="curve.sqlite")
    >>> sweep
    Sweep of risk: 27 cells (readout.samples: 3, d: 1, seeds: 4) in curve.sqlite
    """

    grid: Grid
    d: tuple[int, ...]
    seeds: tuple[int, ...] = tuple(range(20))
    questions: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"risk": {}})
    sources: tuple[Source, ...] = ("finite width", "simulation")
    store: Path
    dtype: str = "float64"
    options: Mapping[str, Any] = field(default_factory=dict)
    initial: bool = True
    share: bool = True

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            grid: Grid | Problem,
            d: int | Sequence[int],
            seeds: int | Sequence[int] = 20,
            questions: str | Sequence[str] | Mapping[str, Mapping[str, Any]] = "risk",
            sources: Sequence[Source] = ("finite width", "simulation"),
            store: str | os.PathLike[str],
            dtype: str = "float64",
            options: Mapping[str, Any] = ...,
            initial: bool = True,
            share: bool = True,
        ) -> None: ...

    def __post_init__(self) -> None:
        given: Any = self.grid
        grid = Grid(given, {}) if isinstance(given, Problem) else given
        if not isinstance(grid, Grid):
            raise InvalidProblem("grid", given, "a Grid or a Problem")
        values: dict[str, Any] = {
            "grid": grid,
            "d": integers(self.d, "d", 1),
            "seeds": integers(self.seeds, "seeds", 0, count=True),
            "questions": as_questions(self.questions),
            "sources": as_sources(self.sources),
            "store": as_path(self.store),
            "dtype": choice(self.dtype, "dtype", _DTYPES),
            "options": as_options(self.options),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        for name in ("initial", "share"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidProblem(name, getattr(self, name), "true or false")
        check_problems(grid, self.d, self.questions)

    # Cells ------------------------------------------------------------------------------------

    @cached_property
    def cells(self) -> list[Cells]:
        """The cells, by source and question: theory first, then networks before their steps."""
        return cells_of(self)

    @cached_property
    def addresses(self) -> frozenset[str]:
        """The address of every cell, each once."""
        return frozenset().union(*(part.distinct for part in self.cells))

    # Work -------------------------------------------------------------------------------------

    def run(
        self,
        *,
        executor: str | Executor | Workers = "processes",
        workers: int | None = None,
        threads: int = 1,
        time_limit: float | None = None,
        progress: Progress | bool | None = None,
        retry: bool = False,
    ) -> Status:
        """Run all cells that are neither done nor failed, and return the status of the sweep.

        Finished cells are saved whatever interrupts the run; run it again to resume. Two processes
        on one machine may run the same sweep and share the work.

        Parameters
        ----------
        executor : {"processes", "serial"}, Executor or Workers
            Worker processes of this machine, this process, or any executor of
            ``concurrent.futures``, such as that of a Dask client.
        workers : int, optional
            How many processes; by default one per processor, or one per GPU for a device
            ``"cuda"``.
        threads : int
            Threads of the linear algebra in each worker. The last bits of a result depend on
            them, but on neither the executor nor the number of workers.
        time_limit : float, optional
            Seconds per cell; one that takes longer is stopped and counts as failed.
        progress : callable or bool, optional
            Called as ``progress(done, failed, total)``; True shows a bar on the terminal.
        retry : bool
            Also run the cells that failed before.
        """
        if "simulation" in self.sources:
            away = () if isinstance(executor, str) else ("device",)  # a cluster has its own
            options = {key: value for key, value in self.options.items() if key not in away}
            try_options(self.grid.problem, self.d[0], options)
        with Store(self.store, write=True) as store:
            self._remember(store)
            return campaign.run(
                self.cells,
                store,
                executor=executor,
                workers=workers,
                threads=threads,
                time_limit=time_limit,
                progress=progress,
                retry=retry,
            )

    def status(self) -> Status:
        """Return how many cells are done, failed, running and left."""
        if not self.store.exists():
            return read_status(self.cells, None)
        with Store(self.store) as store:
            return read_status(self.cells, store)

    def cost(self) -> tuple[int, Cost]:
        """Estimate how many networks are left, and what they take one after the other.

        ``cost.seconds`` is the time of one worker, from small trials on the device;
        ``cost.memory`` is that of the largest network.
        """
        known: dict[str, str] = {}
        if self.store.exists():
            with Store(self.store) as store:
                known = store.status()
        return campaign.forecast(self.cells, known)

    def _remember(self, store: Store) -> None:
        data = {key: value for key, value in self.to_data().items() if key != "store"}
        store.remember(content_hash("sweep", data), json.dumps(data), time.time())

    # Results ----------------------------------------------------------------------------------

    def to_xarray(self, *, spectra: bool = False) -> xr.Dataset:
        """All results as a dataset whose dimensions are the paths of the grid, d and seed.

        ``dataset["risk.test"]`` is the simulated test error; ``risk.test.mean``,
        ``.standard_error`` and ``.seeds`` are its statistics over the seeds that are done,
        ``.theory`` and ``.limit`` the answers of theory, ``.t`` is (mean − theory)/standard error.
        NaN where a cell is not done.

        Parameters
        ----------
        spectra : bool
            Also all simulated eigenvalues and singular values, filled up with NaN.
        """
        return _export.to_xarray(self, spectra)

    def to_frame(self) -> pd.DataFrame:
        """The simulated numbers as a tidy table: one row per problem, d and seed."""
        return _export.to_frame(self, summary=False)

    def summary(self) -> pd.DataFrame:
        """A tidy table over the seeds: one row per problem, d and quantity.

        The verdicts are those of `compare`, over all rows together and for all sizes of a
        problem at once.
        """
        return _export.to_frame(self, summary=True)

    def export(
        self, path: str | os.PathLike[str], *, summary: bool = False, spectra: bool = False
    ) -> None:
        """Write the results to a file: NetCDF (``.nc``), Parquet (``.parquet``) or ``.csv``.

        Parameters
        ----------
        path : path-like
        summary : bool
            For tables: means, standard errors, theory and verdicts, not one row per seed.
        spectra : bool
            For NetCDF: also all simulated eigenvalues and singular values.
        """
        _export.export(self, Path(path), summary, spectra)

    def values(
        self, question: str, problem: Problem, d: int | None = None, seed: int | None = None
    ) -> dict[str, Any]:
        """Numbers and arrays of one cell, such as ``values("weights", p, 500, 0)["bulk"]``.

        With a seed the simulation, without one theory at d, without d theory in the limit.
        """
        return _export.values(self, question, problem, d, seed)

    def provenance(
        self, question: str, problem: Problem, d: int | None = None, seed: int | None = None
    ) -> dict[str, Any]:
        """Where a cell was computed: versions, machine, commit, seconds, time."""
        address = _export.address(self, question, problem, d, seed)
        with Store(self.store) as store:
            return store.provenance(address)

    def plot(
        self,
        x: str | None = None,
        y: str | None = None,
        *,
        quantity: str | None = None,
        at: Mapping[str, Any] | None = None,
        points: int = 50,
        **options: Any,
    ) -> ComparisonDisplay | HeatMapDisplay:
        """Draw the results: curves along ``x``, or with ``y`` a heat map (needs matplotlib).

        Curves show theory as lines and the mean over seeds with three standard errors.

        Parameters
        ----------
        x, y : str, optional
            Paths of axes of the grid, or ``"d"``; by default the first axis with numbers.
        quantity : str, optional
            Such as ``"risk.test"`` (default), ``"risk.gain"`` or ``"weights.spikes.0.value"``:
            the question, then the name that `compare` uses.
        at : mapping, optional
            Axes that are held fixed: path (or ``"d"``) → one of its values. Of the others, each
            combination makes a curve; a map needs all but two of them fixed.
        points : int
            Number of points of a line of theory, which are computed anew; 0: those of the grid.
        **options
            For the display: ``ax``, ``width``, ``height``.
        """
        from giantsteps.sweeps import _plot

        return _plot.plot(self, x, y, quantity, at or {}, points, options)

    # Files ------------------------------------------------------------------------------------

    def to_data(self) -> dict[str, Any]:
        """The sweep as plain data, as in a TOML file."""
        return _file.to_data(self)

    @classmethod
    def from_data(
        cls, data: Mapping[str, Any], *, store: str | os.PathLike[str] | None = None
    ) -> Sweep:
        """Build a sweep from what `to_data` returns; ``store`` where the data names none."""
        return cls(**{"store": store, **_file.fields_of(data, cls)})

    def to_toml(self) -> str:
        """The sweep as TOML text."""
        return to_toml(self.to_data())

    @classmethod
    def from_toml(
        cls, source: str | os.PathLike[str], *, store: str | os.PathLike[str] | None = None
    ) -> Sweep:
        """Read a sweep from TOML: a text, or a ``pathlib.Path`` to a file.

        A store that the file names is relative to the file; the default is next to the file, with
        the ending ``.sqlite``. ``store`` overrides both.
        """
        return cls.from_data(_file.read(source, store))

    @classmethod
    def from_store(cls, path: str | os.PathLike[str]) -> Sweep:
        """The sweep that was last run with a store."""
        with Store(path) as store:
            return cls.from_data(store.latest_sweep(), store=path)

    def __repr__(self) -> str:
        axes = ", ".join(f"{path}: {size}" for path, size in zip(self.grid.dims, self.grid.shape))
        sizes = f"d: {len(self.d)}, seeds: {len(self.seeds)}"
        where = ", ".join([axes, sizes] if axes else [sizes])
        questions = ", ".join(self.questions)
        return f"Sweep of {questions}: {len(self.addresses)} cells ({where}) in {self.store}"

    def _repr_html_(self) -> str:
        """The grid, and what is asked of it, for notebooks."""
        fields = {
            "d": ", ".join(map(str, self.d)),
            "seeds": str(len(self.seeds)),
            "questions": ", ".join(self.questions),
            "sources": ", ".join(self.sources),
            "cells": str(len(self.addresses)),
            "store": str(self.store),
        }
        columns = {"field": list(fields), "value": list(fields.values())}
        return self.grid._repr_html_() + html_table("Sweep", columns)
