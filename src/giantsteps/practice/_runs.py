"""Training runs in the campaign's store: one cell per layer and recorded step."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Mapping
from typing import Any

import numpy as np

from giantsteps.campaign import Cell, Outcome, Store, provenance
from giantsteps.errors import InvalidProblem
from giantsteps.problem import content_hash
from giantsteps.types import FloatArray

#: The source of these cells; networks and theory have others, and may share the store.
TRAINING = "training"
_QUESTION, _VERSION = "record", 1


def run_names(store: Store) -> tuple[str, ...]:
    """Names of the training runs in a store."""
    return tuple(sorted(str(json.loads(text)["run"]) for text in store.contents(TRAINING).values()))


class TrainingRun:
    """One run in an open store: numbers and arrays by layer and step.

    * ``store``: where it is kept.
    * ``about``: what holds for the whole run; ``about["run"]`` is its name. Facts of a run that is
      in the store already are read from there.
    """

    def __init__(self, store: Store, about: Mapping[str, Any]) -> None:
        self._store, self._file = store, store.path
        self._open = weakref.finalize(self, store.close)
        self._key = content_hash(TRAINING, about["run"])
        found = store.contents(TRAINING).get(self._key)
        self.about: dict[str, Any] = dict(about) if found is None else json.loads(found)
        self.exists = found is not None

    @property
    def store(self) -> Store:
        """The store; a file that was closed is opened again, to read it."""
        if not self._open.alive:
            self._store = Store(self._file)
            self._open = weakref.finalize(self, self._store.close)
        return self._store

    def close(self) -> None:
        """Close the file; what is in memory stays as long as the run."""
        if self._file is not None:
            self._open()

    @classmethod
    def open(cls, store: Store, name: str | None) -> TrainingRun:
        """A run that is in the store; the only one, unless it is named."""
        known = run_names(store)
        if name not in known and (name is not None or len(known) != 1):
            raise InvalidProblem(
                "run",
                name,
                f"one of {', '.join(map(repr, known))}" if known else "a store with training runs",
            )
        return cls(store, {"run": known[0] if name is None else name})

    def _cells(self) -> dict[str, dict[int, str]]:
        """Layer → step → address; read each time, for another process may be writing."""
        found: dict[str, dict[int, str]] = {}
        for address, options in self.store.find(TRAINING, self._key):
            place = json.loads(options)
            found.setdefault(place["layer"], {})[place["step"]] = address
        return {layer: dict(sorted(steps.items())) for layer, steps in found.items()}

    def write(self, step: int, records: Mapping[str, Mapping[str, Any]]) -> None:
        """Keep what was seen at one step, all layers or none: layer → name → number or array."""
        finished = []
        for layer, values in records.items():
            options = json.dumps({"layer": layer, "step": step}, sort_keys=True)
            cell = Cell(
                address=content_hash(_QUESTION, [self.about["run"], layer, step]),
                source=TRAINING,
                question=_QUESTION,
                version=_VERSION,
                d=None,
                seed=None,
                problem=self._key,
                content=json.dumps(self.about, sort_keys=True),
                options=options,
            )
            known = {name: np.asarray(value, dtype="<f8") for name, value in values.items()}
            outcome = Outcome(
                numbers={name: float(value) for name, value in known.items() if not value.ndim},
                arrays={
                    name: (tuple(f"{name}.{axis}" for axis in range(value.ndim)),
                           np.ascontiguousarray(value))
                    for name, value in known.items() if value.ndim
                },
                seconds=0.0,
                finished=time.time(),
                provenance=provenance(1, torch=True),
            )  # fmt: skip
            finished.append((cell, outcome))
        self.store.save(finished)
        self.exists = True

    def forget_after(self, step: int) -> None:
        """Delete what was recorded after a step."""
        places = (place for steps in self._cells().values() for place in steps.items())
        self.store.forget([address for found, address in places if found > step])

    def last_step(self) -> int | None:
        """The last step that was recorded."""
        return max((max(steps) for steps in self._cells().values()), default=None)

    def numbers(self, layer: str) -> dict[int, dict[str, float]]:
        """Step → the numbers of a layer."""
        cells = self._cells().get(layer, {})
        found = self.store.numbers(cells.values())
        return {step: found[address] for step, address in cells.items()}

    def arrays(self, layer: str, name: str) -> dict[int, FloatArray]:
        """Step → the array of this name of a layer, where it has one."""
        cells = self._cells().get(layer, {})
        found = self.store.arrays(cells.values(), name)
        return {step: found[address][1] for step, address in cells.items() if address in found}

    def names(self) -> list[tuple[str, str]]:
        """All pairs of a layer and a quantity."""
        pairs: dict[tuple[str, str], None] = {}
        for layer, cells in self._cells().items():
            for numbers in self.store.numbers(cells.values()).values():
                pairs.update({(layer, name): None for name in numbers})
            pairs.update({(layer, name): None for name in self.store.array_names(cells.values())})
        return list(pairs)
