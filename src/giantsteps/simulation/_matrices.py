"""The matrices of a run by name, drawn or computed when they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._engine._arrays import Array

if TYPE_CHECKING:
    from giantsteps.simulation._run import Run


class Matrices(Mapping[str, Array]):
    """Read-only view of a run: ``run.arrays["W1"]``. Nothing is kept but what the run keeps."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __iter__(self) -> Iterator[str]:
        steps = len(self._run.problem.steps)
        yield from (f"W{number}" for number in range(steps + 1))
        yield "a"
        if self._run.data is None:
            yield "beta"
        for number in range(steps):
            yield from (f"X{number}", f"y{number}")
        if steps:
            yield "b"
        if self._run.sizes.samples is not None:
            yield from ("X", "y", "Phi")
        if self._run.test_samples:
            yield from ("X_test", "f_test")

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in tuple(self)

    def __getitem__(self, name: str) -> Array:
        found = self._find(name)
        if isinstance(found, np.ndarray):  # what the run keeps must not be changed from outside
            found = found.view()
            found.flags.writeable = False
        return found

    def _find(self, name: str) -> Array:
        if name not in self:
            raise InvalidProblem("arrays", name, f"one of {', '.join(self)}")
        run, network = self._run, self._run.network
        match = re.fullmatch(r"([WXy])(\d+)", name)
        if match and match[1] == "W":
            return run.after(int(match[2])).trained.weights
        if match:
            step = int(match[2])
            batch = network.step_batch(step, 0, run.sizes.step_samples[step])
            return batch["Xy".index(match[1])]
        if name in ("X", "y", "Phi"):
            assert run.sizes.samples is not None
            inputs, labels = network.readout_batch(0, run.sizes.samples)
            return {"X": inputs, "y": labels}[name] if name != "Phi" else run.embed(inputs)
        if name in ("X_test", "f_test"):
            assert run.test_samples is not None
            inputs, _, target = network.test_batch(0, run.test_samples)
            return inputs if name == "X_test" else target
        if name == "b":
            return run.trained.direction
        return network.second_layer if name == "a" else network.teacher
