"""Heat maps over two axes: theory and simulation side by side in one scale of colours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from giantsteps.displays import _style
from giantsteps.displays._comparison import spans_decades
from giantsteps.displays._display import Display
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class HeatMapDisplay(Display):
    """One panel for each map, all of them in one scale of colours.

    * ``x``, ``y``: points of the axes, increasing.
    * ``panels``: title → values of shape (y, x); NaN is left white.
    * ``x_label``, ``y_label``, ``label``: of the axes and of the colour bar.
    * ``title``: above all panels.

    Attributes
    ----------
    ax_ : Axes, or list of Axes where there are several panels
    figure_
        Set by `plot`.
    """

    x: FloatArray
    y: FloatArray
    panels: Mapping[str, FloatArray]
    x_label: str
    y_label: str
    label: str
    title: str = ""
    ax_: Axes | list[Axes] = field(init=False)

    def plot(
        self, *, ax: Axes | None = None, width: float | None = None, height: float | None = None
    ) -> Self:
        """Draw on ``ax`` (the last panel alone), or on a new figure of the given width in inches.

        By default one column wide for one panel, two for more.
        """
        with _style.style():
            panels = self.panels
            if ax is not None:
                panels = dict(list(panels.items())[-1:])
                axes = [_style.given_axes(ax)]
            else:
                axes = _style.panels(len(panels), width, height, sharey=True)
            self.figure_ = axes[0].get_figure(root=True)  # type: ignore[assignment]
            self.ax_ = axes if len(axes) > 1 else axes[0]
            finite = np.concatenate([v[np.isfinite(v)] for v in panels.values()] or [np.empty(0)])
            scale: dict[str, Any] = {"cmap": "viridis", "shading": "nearest", "rasterized": True}
            if finite.size:
                scale |= {"vmin": finite.min(), "vmax": finite.max()}
            for place, (title, values) in zip(axes, panels.items()):
                mesh = place.pcolormesh(self.x, self.y, values, **scale)
                place.set(title=title, xlabel=self.x_label)
                if spans_decades(self.x):
                    place.set_xscale("log")
                if spans_decades(self.y):
                    place.set_yscale("log")
            axes[0].set_ylabel(self.y_label)
            if self.title and ax is None:
                self.figure_.suptitle(self.title)
            self.figure_.colorbar(mesh, ax=axes, label=self.label)
        return self
