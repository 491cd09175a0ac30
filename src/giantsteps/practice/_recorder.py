"""Record a training loop: spectra, spikes, alignments and gradients of every layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np

from giantsteps.answers import require
from giantsteps.campaign import Store
from giantsteps.errors import InvalidProblem
from giantsteps.practice._bulk import FALSE_ALARMS, top_vectors
from giantsteps.practice._layer import layer_of_matrix
from giantsteps.practice._record import Record
from giantsteps.practice._runs import TrainingRun
from giantsteps.practice._torch import linear_layers, torch_library, unfolded
from giantsteps.problem import integer
from giantsteps.types import FloatArray

#: Singular values that are kept per layer and step.
_VALUES = 256
#: Numbers of a layer that are kept.
_NUMBERS = ("scale", "edge", "margin", "distance", "stable_rank")
#: Largest number of weights of a layer whose start is kept, so that a run can be resumed.
_START = 2**26


@dataclass
class _Start:
    """What later steps of one layer are compared with."""

    weights: FloatArray
    gradient: FloatArray | None = None
    left: FloatArray | None = None
    right: FloatArray | None = None

    def follow(self, gradient: FloatArray) -> None:
        """Compare later steps with this gradient."""
        left, _, right = top_vectors(gradient, 1)
        self.gradient, self.left, self.right = gradient, left[:, 0], right[:, 0]


class Recorder:
    """Follow the linear and convolution layers of a module through a training loop.

    Every ``every`` steps it keeps, for each layer, the singular values of the weights, the bulk
    and the spikes, how far the weights have moved, how the movement aligns with the first gradient,
    and the cosine of the gradient with the first one.

    Parameters
    ----------
    module : nn.Module
        The module that is trained.
    optimizer : torch.optim.Optimizer, optional
        With it, steps are counted automatically, and its rate and rule are kept for the
        comparison with theory.
        Without it, call :meth:`step` after each step of the optimizer.
    every : int
        Steps between records; the first step is always recorded.
    path : path-like, optional
        The store, an SQLite file that :class:`Record` opens later; by default in memory.
        It may also hold other runs, sweeps and comparisons.
    run : str
        The name of the run in the store.
        A name that already has records is refused, unless the run is resumed.
    resume : int, optional
        Continue a run of the store after this many steps: those of the checkpoint from which the
        module was loaded.
        Later records are deleted.
    layers : sequence of str, optional
        Names of weights; by default all linear and convolution layers.

    Notes
    -----
    A record costs one singular value decomposition per layer.
    Gradients are those that the optimizer saw, the batch of that step.
    Each record is on disk before the next step begins.
    A file also keeps the weights at the start and the first gradient of each layer of at most
    2²⁶ weights, against which a resumed run is measured.

    Examples
    --------
    >>> import torch
    >>> from giantsteps.practice import Recorder
    >>> module = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(),
    ...                              torch.nn.Linear(30, 1))
    >>> optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    >>> x = torch.randn(100, 20)
    >>> with Recorder(module, optimizer, every=2) as recorder:
    ...     for _ in range(6):
    ...         optimizer.zero_grad()
    ...         loss = ((module(x)[:, 0] - x[:, 0]) ** 2).mean()
    ...         loss.backward()
    ...         optimizer.step()
    >>> record = recorder.record
    >>> print(record.layers, record.steps("0.weight").tolist())
    ('0.weight', '2.weight') [0, 1, 2, 4, 6]
    """

    def __init__(
        self,
        module: Any,
        optimizer: Any = None,
        *,
        every: int = 1,
        path: str | PathLike[str] | None = None,
        run: str = "training",
        resume: int | None = None,
        layers: Sequence[str] | None = None,
    ) -> None:
        integer(every, "every", "a positive integer")
        if not isinstance(run, str) or not run:
            raise InvalidProblem("run", run, "a name")
        if resume is not None:
            integer(resume, "resume", "a number of steps, 0, 1, …", lower=0)
            if path is None or not Path(str(path)).is_file():
                allowed = "the store that has the run, where resume= is given"
                raise InvalidProblem("path", path, allowed)
        found = linear_layers(module)
        if not found:
            kind = type(module).__name__
            raise InvalidProblem("module", kind, "a module with linear or convolution layers")
        store = Store(path, write=True)
        try:
            about = {"run": run, "every": every} | _rule(optimizer, found)
            self._run = (
                TrainingRun(store, about) if resume is None else TrainingRun.open(store, run)
            )
            if self._run.exists and resume is None:
                raise InvalidProblem(
                    "run",
                    run,
                    f"a new name or file: {path} has records of this run. "
                    "Continue it with resume=, the steps of your checkpoint",
                )
            known = self._run.about.get("layers")
            chosen = list(known or found) if layers is None else list(layers)
            unknown = [name for name in chosen if name not in found]
            if unknown or not chosen:
                raise InvalidProblem("layers", unknown or layers, f"some of {', '.join(found)}")
            self._parts = {name: found[name] for name in chosen}
            self._every = every
            self._keeps_start = path is not None
            self._count = 0 if resume is None else resume
            if resume is None:
                self._run.about["layers"] = chosen
                self._start = {name: _Start(self._matrix(name)) for name in chosen}
                self._write()
            else:
                self._start = {name: self._read_start(name, resume) for name in chosen}
                self._run.forget_after(resume)
        except BaseException:
            store.close()
            raise
        self._handle: Any = None
        if optimizer is not None:
            self._handle = optimizer.register_step_post_hook(lambda *_: self.step())

    @property
    def record(self) -> Record:
        """What was recorded so far."""
        return Record(self._run)

    def step(self, loss: float | None = None) -> None:
        """Count one step of the optimizer, and record it if it is due.

        Parameters
        ----------
        loss : float, optional
            Kept with the record.
        """
        self._count += 1
        if self._count == 1:
            for name, start in self._start.items():
                gradient = self._gradient(name)
                if gradient is not None and np.any(gradient) and np.all(np.isfinite(gradient)):
                    start.follow(gradient)
        if self._count == 1 or self._count % self._every == 0:
            self._write(loss)

    def close(self) -> None:
        """Stop following the optimizer and close the file; the record can still be read."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        self._run.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Recorder of {len(self._parts)} layers after {self._count} steps; see record"

    def lightning_callback(self) -> Any:
        """A callback of Lightning that counts its training steps (needs lightning).

        Make the recorder without an optimizer, and pass the callback to the ``Trainer``.
        The optimizer is then the trainer's first one.
        """
        lightning = require("lightning.pytorch", "a Lightning callback", extra="")
        recorder = self

        class RecorderCallback(lightning.Callback):  # type: ignore[name-defined]
            """Counts a step of the recorder after each training batch."""

            def on_train_start(self, trainer: Any, module: Any) -> None:
                recorder._learn_rule(trainer.optimizers[0])

            def on_train_batch_end(
                self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int
            ) -> None:
                loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
                recorder.step(None if loss is None else float(loss))

        return RecorderCallback()

    def _learn_rule(self, optimizer: Any) -> None:
        """Describe a run that has not begun by the optimizer that it gets."""
        if self._count == 0 and "optimizer" not in self._run.about:
            self._run.forget_after(-1)
            self._run.about |= _rule(optimizer, self._parts)
            self._write()

    # What is recorded -------------------------------------------------------------------------

    def _write(self, loss: float | None = None) -> None:
        records: dict[str, dict[str, Any]] = {name: self._layer(name) for name in self._parts}
        if loss is not None:
            records["training"] = {"loss": float(loss)}
        self._run.write(self._count, records)

    def _layer(self, name: str) -> dict[str, Any]:
        start = self._start[name]
        weights = self._matrix(name)
        layer = layer_of_matrix(
            name, weights.shape, "float32", weights, false_alarms=FALSE_ALARMS, seed=0
        )
        largest = layer.values[:_VALUES]
        if not np.all(np.isfinite(weights)):  # training has diverged
            largest = np.full(min(_VALUES, *weights.shape), np.nan)
        moved = weights - start.weights
        size = float(np.linalg.norm(start.weights))
        kept: dict[str, Any] = {
            "values": largest,
            "spikes": len(layer.spikes),
            **{name: getattr(layer, name) for name in _NUMBERS},
            "shape": [layer.rows, layer.columns],
            "movement": float(np.linalg.norm(moved)) / size if size > 0 else np.nan,
        }
        keeps = self._keeps_start and weights.size <= _START
        if keeps and self._count == 0:
            kept["first_weights"] = weights
        if keeps and self._count == 1 and start.gradient is not None:
            kept["first_gradient"] = start.gradient
        gradient = self._gradient(name)
        if start.gradient is None or start.left is None or start.right is None:
            return kept
        if gradient is None or not np.all(np.isfinite([weights, gradient])):
            return kept
        values = np.linalg.svd(gradient, compute_uv=False)
        kept["gradient"] = float(values[0])
        total = float(values @ values)
        kept["gradient_share"] = float(values[0]) ** 2 / total if total > 0 else 0.0
        kept["gradient_cosine"] = _cosine(gradient, start.gradient)
        first = float(np.sum(start.gradient**2))
        kept["gradient_projection"] = float(np.sum(gradient * start.gradient)) / first
        if self._count == 1:
            signs = np.sign(gradient)
            kept["gradient_signs"] = float(np.linalg.norm(signs, 2))
        if np.any(moved):
            kept["movement_cosine"] = -_cosine(moved, start.gradient)
        left, _, right = top_vectors(weights, 1)
        kept["left_alignment"] = float(left[:, 0] @ start.left) ** 2
        kept["right_alignment"] = float(right[:, 0] @ start.right) ** 2
        return kept

    def _read_start(self, name: str, step: int) -> _Start:
        """The start of a layer from the store."""
        weights = self._run.arrays(name, "first_weights").get(0)
        shape = self._matrix(name).shape
        if weights is None or weights.shape != shape:
            raise InvalidProblem(
                "resume",
                name,
                f"layers whose start the store has, of shape {shape}: see layers= and run=",
            )
        start = _Start(weights)
        gradient = self._run.arrays(name, "first_gradient").get(1)
        if step > 0 and gradient is not None:
            start.follow(gradient)
        return start

    def _matrix(self, name: str) -> FloatArray:
        return unfolded(self._parts[name], self._parts[name].weight)

    def _gradient(self, name: str) -> FloatArray | None:
        gradient = self._parts[name].weight.grad
        return None if gradient is None else unfolded(self._parts[name], gradient)


def _cosine(a: FloatArray, b: FloatArray) -> float:
    sizes = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(np.sum(a * b)) / sizes if sizes > 0 else 0.0


def _rule(optimizer: Any, layers: Mapping[str, Any]) -> dict[str, Any]:
    """What the comparison with theory needs of an optimizer."""
    if optimizer is None:
        return {}
    torch = torch_library()
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InvalidProblem("optimizer", optimizer, "an optimizer of torch.optim, or None")
    trained = {id(weight) for group in optimizer.param_groups for weight in group["params"]}
    if trained.isdisjoint(id(layer.weight) for layer in layers.values()):
        kind = type(optimizer).__name__
        raise InvalidProblem("optimizer", kind, "one that trains layers of the module")
    group = optimizer.param_groups[0]
    adaptive = (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad)
    if isinstance(optimizer, torch.optim.SGD):
        rule = "gradient"
    elif isinstance(optimizer, adaptive):
        rule = "sign"
    else:
        return {"optimizer": type(optimizer).__name__}
    return {
        "optimizer": type(optimizer).__name__,
        "rule": rule,
        "learning_rate": float(group["lr"]),
        "momentum": float(group.get("momentum", 0.0) or 0.0),
    }
