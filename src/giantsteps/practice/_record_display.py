"""The figure of a training record: spectrum and alignments over the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np

from giantsteps.displays import PALETTE, Display, panels, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from giantsteps.practice._record import Record

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
