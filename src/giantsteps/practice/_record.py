"""What a recorder has kept: tables, and figures against the theory of the first steps."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from giantsteps.answers import Table, of_rows
from giantsteps.campaign import Store
from giantsteps.displays import PALETTE, Display, panels, style
from giantsteps.errors import InvalidProblem
from giantsteps.practice._runs import TrainingRun, run_names
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ARRAYS = ("values", "shape", "first_weights", "first_gradient")
#: The prediction ends where this part of the first gradient is left in the gradient.
_KEPT = 0.75


class Record(Table):
    r"""A training run as a recorder saw it.

    Parameters
    ----------
    source : path-like or TrainingRun
        The store of a :class:`Recorder`.
    run : str, optional
        The name of the run; needed where the store has several.

    Notes
    -----
    As long as the gradient does not change, t steps of SGD add −ηtG to the weights, and t steps
    of Adam about −ηt sign(G).
    With the largest singular value θ of what was added, and the bulk of the first layer as it was
    (standard deviation σ, r rows, c columns), the weights then have the largest singular value

    .. math:: s = \frac{\sqrt{(θ^2 + rσ^2)(θ^2 + cσ^2)}}{θ} \quad (θ^4 > rcσ^4),

    and none above the bulk before.

    ==========  ===========================================================
    symbol      meaning
    ==========  ===========================================================
    η, t        learning rate, number of steps
    G           first gradient
    θ           ηt times the largest singular value of G or sign(G)
    σ, r, c     standard deviation and shape of the weights at the start
    ==========  ===========================================================

    References
    ----------
    theory §2.
    """

    def __init__(self, source: str | PathLike[str] | TrainingRun, run: str | None = None) -> None:
        if isinstance(source, TrainingRun):
            self._run = source
        else:
            store = _open(source)
            try:
                self._run = TrainingRun.open(store, run)
            except BaseException:
                store.close()
                raise
        self.about = self._run.about

    @staticmethod
    def runs(source: str | PathLike[str]) -> tuple[str, ...]:
        """Names of the training runs in a store."""
        with _open(source) as store:
            return run_names(store)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers."""
        return tuple(self.about["layers"])

    def steps(self, layer: str) -> NDArray[np.int64]:
        """Steps that were recorded."""
        return self.get(layer, "movement")[0]

    def get(self, layer: str, name: str) -> tuple[NDArray[np.int64], Any]:
        """Steps and values of one quantity: an array of numbers, or a list of arrays.

        Quantities of a layer: values, scale, edge, margin, distance, spikes, stable_rank, movement,
        gradient, gradient_share, gradient_cosine, gradient_projection, movement_cosine,
        left_alignment, right_alignment; of the layer ``"training"``: loss.
        A store on disk also has first_weights (of step 0) and first_gradient (of step 1).
        """
        values: Any = (
            self._run.arrays(layer, name)
            if name in _ARRAYS
            else {at: row[name] for at, row in self._run.numbers(layer).items() if name in row}
        )
        if not values:
            known = sorted(b for a, b in self.names() if a == layer)
            if layer not in self.layers:
                raise InvalidProblem("layer", layer, f"one of {', '.join(self.layers)}")
            raise InvalidProblem("name", name, f"one of {', '.join(known)}")
        found = list(values.values())
        steps = np.array(list(values), dtype=np.int64)
        return steps, (found if name in _ARRAYS else np.array(found, dtype=np.float64))

    def names(self) -> list[tuple[str, str]]:
        """Layers and quantities that were recorded."""
        return self._run.names()

    def predicted_spike(self, layer: str) -> tuple[NDArray[np.int64], FloatArray]:
        """Steps, and the largest singular value that theory predicts for the first ones.

        NaN before the spike leaves the bulk, and from the step on at which the gradient's component
        along the first gradient has changed by more than a quarter.
        Needs a recorder with an optimizer: SGD, Adam, AdamW, RMSprop or Adagrad.
        """
        if "rule" not in self.about:
            raise InvalidProblem(
                "optimizer",
                self.about.get("optimizer"),
                "one of SGD, Adam, AdamW, RMSprop, Adagrad",
            )
        steps = self.steps(layer)
        result = np.full(len(steps), np.nan)
        name = "gradient" if self.about["rule"] == "gradient" else "gradient_signs"
        if (layer, name) not in self.names():
            return steps, result
        size = float(self.get(layer, name)[1][0])
        scale = float(self.get(layer, "scale")[1][0])
        rows, columns = self.get(layer, "shape")[1][0]
        seen, left = self.get(layer, "gradient_projection")
        changed = seen[np.abs(left - 1) > 1 - _KEPT]
        last = int(changed[0]) if len(changed) else int(steps[-1]) + 1
        theta = self.about["learning_rate"] * self._time(steps) * size
        visible = (theta**4 > rows * columns * scale**4) & (steps < last)
        square = theta[visible] ** 2
        result[visible] = np.sqrt(
            (square + rows * scale**2) * (square + columns * scale**2) / square
        )
        return steps, result

    def _time(self, steps: NDArray[np.int64]) -> FloatArray:
        """Number of steps, counted with the momentum that they gather."""
        momentum = self.about["momentum"] if self.about["rule"] == "gradient" else 0.0
        if momentum == 0.0:
            return steps.astype(np.float64)
        gathered = np.cumsum((1 - momentum ** np.arange(1, steps[-1] + 1)) / (1 - momentum))
        return np.concatenate([[0.0], gathered])[steps]

    # Tables and figures -----------------------------------------------------------------------

    def to_columns(self) -> dict[str, list[Any]]:
        """One row per layer and step."""
        pairs = self.names()
        rows = []
        for layer in self.layers:
            names = [name for found, name in pairs if found == layer and name not in _ARRAYS]
            series = {
                name: dict(zip(*map(np.ndarray.tolist, self.get(layer, name)))) for name in names
            }
            values = dict(zip(self.steps(layer).tolist(), self.get(layer, "values")[1]))
            for step in self.steps(layer).tolist():
                row = {"layer": layer, "step": step, "largest": float(values[step][0])}
                rows.append(row | {name: found.get(step) for name, found in series.items()})
        return of_rows(rows)

    def plot(self, layer: str | None = None) -> RecordDisplay:
        """Singular values, alignments and movement of one layer over the steps."""
        return RecordDisplay(self, layer or self.layers[0]).plot()

    def close(self) -> None:
        """Close the file."""
        self._run.close()

    def __repr__(self) -> str:
        steps = self._run.last_step()
        rule = self.about.get("optimizer", "unknown optimizer")
        return f"Record of {len(self.layers)} layers, {steps} steps of {rule}"


def _open(source: str | PathLike[str]) -> Store:
    if not Path(source).is_file():
        raise InvalidProblem("source", str(source), "a file that exists")
    return Store(source)


#: Singular values that are drawn.
_LINES = 12


class RecordDisplay(Display):
    """One layer over the steps: singular values against theory, alignments, movement."""

    axes_: list[Axes]

    def __init__(self, record: Record, layer: str) -> None:
        self.record, self.layer = record, layer

    def plot(self) -> Self:
        with style():
            self.axes_ = panels(2, height=2.4)
            self.figure_ = self.axes_[0].get_figure(root=True)  # type: ignore[assignment]
            self._draw_values(self.axes_[0])
            self._draw_alignments(self.axes_[1])
            for ax in self.axes_:
                ax.set_xlabel("step")
            self.axes_[0].set_title(self.layer, loc="right")
        return self

    def _draw_values(self, ax: Axes) -> None:
        steps, values = self.record.get(self.layer, "values")
        for place in range(min(_LINES, min(map(len, values)))):
            label = "largest singular values" if place == 0 else None
            line = [found[place] for found in values]
            ax.plot(steps, line, "o-", color="#8899A6", markersize=2, linewidth=0.6, label=label)
        _, edges = self.record.get(self.layer, "edge")
        ax.plot(steps, edges, color=PALETTE[0], linestyle=":", label="edge of the bulk")
        if "rule" in self.record.about:
            steps, predicted = self.record.predicted_spike(self.layer)
            if np.any(np.isfinite(predicted)):
                ax.plot(steps, predicted, color=PALETTE[1], label="theory, first steps")
        ax.set_ylabel("singular value")
        ax.legend()

    def _draw_alignments(self, ax: Axes) -> None:
        labels = {
            "gradient_cosine": "gradient with the first",
            "movement_cosine": "movement with the first gradient",
            "right_alignment": "top input direction, squared",
            "left_alignment": "top output direction, squared",
        }
        lowest = 0.0
        known = {name for layer, name in self.record.names() if layer == self.layer}
        for place, (name, label) in enumerate(labels.items()):
            if name in known:
                steps, values = self.record.get(self.layer, name)
                ax.plot(steps, values, color=PALETTE[place], label=label)
                lowest = min(lowest, *values)
        ax.set(ylabel="cosine", ylim=(lowest - 0.05, 1.05))
        if known & set(labels):
            ax.legend()
