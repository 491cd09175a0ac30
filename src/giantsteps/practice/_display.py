"""Figures of an inspection: one layer against its law, and all layers at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from giantsteps.answers import ProbeCurve
from giantsteps.displays import PALETTE, AxesDisplay, Display, ProbeCurveDisplay, panels, style
from giantsteps.practice._bulk import law_of_shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from giantsteps.practice._inspection import Inspection
    from giantsteps.practice._layer import Layer

_THEORY, _FOUND = PALETTE[:2]
_HISTOGRAM = "#C9D3DB"


class LayerDisplay(AxesDisplay):
    """Singular values of one layer: histogram, law of the bulk, edge and spikes."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def _draw(self) -> None:
        layer, ax = self.layer, self.ax_
        values = layer.values[: max(layer.rank, 1)] if len(layer.values) else np.zeros(1)
        bins = int(np.clip(len(values) // 5, 12, 60))
        ax.hist(values, bins=bins, density=True, color=_HISTOGRAM, label="weights")
        if np.isfinite(layer.scale):
            unit = layer.scale * np.sqrt(min(layer.rows, layer.columns))
            law = law_of_shape(layer.rows, layer.columns)
            ((low, high),) = law.support
            # the density may have a pole at a hard edge
            x = np.linspace(low + 1e-3 * (high - low), high, 300)
            bulk = 1 - len(layer.spikes) / len(layer.values)
            ax.plot(unit * x, bulk * law.density(x) / unit, color=_THEORY, label="random matrix")
            ax.axvline(layer.margin, color=_THEORY, linewidth=0.7, linestyle=":")
        spikes = [spike.value for spike in layer.spikes]
        if spikes:
            ax.plot(spikes, np.zeros(len(spikes)), "v", color=_FOUND, clip_on=False, label="spikes")
        title = f"{layer.name}: {layer.verdict}"
        ax.set(xlabel="singular value", ylabel="density", title=title)
        ax.legend()


class InspectionDisplay(Display):
    """All layers at a glance: singular values in units of the edge, probe curves beside them."""

    axes_: list[Axes]

    def __init__(self, inspection: Inspection) -> None:
        self.inspection = inspection

    def plot(self) -> Self:
        curves = {
            name: curve
            for name, curve in self.inspection.probes.items()
            if isinstance(curve, ProbeCurve)
        }
        count = 1 + bool(self.inspection.changes) + bool(curves)
        with style():
            height = max(1.6, 0.22 * len(self.inspection.layers) + 0.8)
            self.axes_ = panels(count, height=height)
            self.figure_ = self.axes_[0].get_figure(root=True)  # type: ignore[assignment]
            remaining = iter(self.axes_)
            self._draw_values(next(remaining), self.inspection.layers, "weights")
            if self.inspection.changes:
                changes = tuple(change.layer for change in self.inspection.changes)
                self._draw_values(next(remaining), changes, "change from the base")
            if curves:
                self._draw_curves(next(remaining), curves)
        return self

    @staticmethod
    def _draw_values(ax: Axes, layers: tuple[Layer, ...], title: str) -> None:
        for place, layer in enumerate(layers):
            if not len(layer.values) or layer.values[0] == 0:
                continue
            unit = layer.edge if np.isfinite(layer.edge) else float(layer.values[0])
            values = layer.values[: layer.rank] / unit
            ax.plot(values, np.full(len(values), place), "|", color="#8899A6", markersize=5)
            spikes = [spike.value / unit for spike in layer.spikes]
            ax.plot(spikes, [place] * len(spikes), "o", color=_FOUND)
        ax.axvline(1.0, color=_THEORY, linewidth=0.8)
        ax.set_yticks(range(len(layers)), [layer.name for layer in layers])
        ax.set(xlabel="singular value / edge of the bulk", title=title)
        ax.set_ylim(len(layers) - 0.5, -0.5)

    @staticmethod
    def _draw_curves(ax: Axes, curves: dict[str, Any]) -> None:
        quantity = "test"
        if all(curve.classification_error is not None for curve in curves.values()):
            quantity = "classification_error"
        for place, (name, curve) in enumerate(curves.items()):
            drawn = ProbeCurveDisplay(curve, quantity=quantity)
            drawn.plot(ax=ax, label=name, color=PALETTE[place % len(PALETTE)])
        ax.set_title("linear probe on the inputs of")
