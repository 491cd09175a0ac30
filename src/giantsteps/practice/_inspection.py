"""What an inspection found: tables, figures, a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from giantsteps.answers import ProbeCurve, of_rows, require, to_csv
from giantsteps.errors import InvalidProblem
from giantsteps.practice._gradient import FirstGradient
from giantsteps.practice._layer import Layer
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from giantsteps.practice._display import InspectionDisplay, LayerDisplay

#: Tables of an inspection, for `Inspection.to_frame`.
TABLES = ("layers", "spikes", "changes", "gradients", "probes", "skipped")
#: The reason for which vectors are left out; they are counted, not named, in the text.
VECTOR = "a vector or scalar"


@dataclass(frozen=True, eq=False, repr=False)
class Change:
    """What training or fine-tuning changed in one matrix.

    Attributes
    ----------
    layer : Layer
        ΔW, inspected like a weight matrix.
    relative_norm : float
        ‖ΔW‖_F over that of the base.
    cosines : dict
        ``"weights-base"``, ``"change-base"``, ``"change-weights"``: |cosines| between the three
        leading left vectors of the two matrices, and between the right ones, as two arrays.
    """

    layer: Layer
    relative_norm: float
    cosines: Mapping[str, tuple[FloatArray, FloatArray]]

    def to_row(self) -> dict[str, Any]:
        row = {"layer": self.layer.name, "relative_norm": self.relative_norm}
        row |= {key: value for key, value in self.layer.to_row().items() if key != "layer"}
        for pair, (left, right) in self.cosines.items():
            row[f"cosine.{pair}.left"] = float(left[0, 0])
            row[f"cosine.{pair}.right"] = float(right[0, 0])
        return row


@dataclass(frozen=True, eq=False, repr=False)
class Inspection:
    """What :func:`giantsteps.inspect` found.

    Attributes
    ----------
    title : str
        Of the source.
    layers : tuple of Layer
        One per weight matrix.
    changes : tuple of Change
        One per matrix that the base has too.
    gradients : tuple of FirstGradient
        One per linear or convolution layer, with data.
    probes : dict
        Name of a layer → learning curve of a linear probe on its inputs, or why there is none.
    skipped : dict
        Name of a tensor → why it was left out.
    false_alarms : float
        Probability that a random matrix is reported to have a spike.
    """

    title: str
    layers: tuple[Layer, ...]
    changes: tuple[Change, ...] = ()
    gradients: tuple[FirstGradient, ...] = ()
    probes: Mapping[str, ProbeCurve | str] = ()  # type: ignore[assignment]
    skipped: Mapping[str, str] = ()  # type: ignore[assignment]
    false_alarms: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "probes", dict(self.probes))
        object.__setattr__(self, "skipped", dict(self.skipped))

    def __getitem__(self, name: str) -> Layer:
        """The layer of a name."""
        for layer in self.layers:
            if layer.name == name:
                return layer
        names = ", ".join(layer.name for layer in self.layers)
        raise InvalidProblem("layer", name, f"one of {names}")

    # Tables -----------------------------------------------------------------------------------

    def to_columns(self, table: str = "layers") -> dict[str, list[Any]]:
        """One of the tables, ``"layers"`` or another of ``TABLES``, as columns."""
        if table not in TABLES:
            raise InvalidProblem("table", table, f"one of {', '.join(TABLES)}")
        makers: dict[str, Callable[[], list[dict[str, Any]]]] = {
            "layers": lambda: [layer.to_row() for layer in self.layers],
            "spikes": self._spike_rows,
            "changes": lambda: [change.to_row() for change in self.changes],
            "gradients": lambda: [gradient.to_row() for gradient in self.gradients],
            "probes": self._probe_rows,
            "skipped": lambda: [{"tensor": t, "reason": why} for t, why in self.skipped.items()],
        }
        return of_rows(makers[table]())

    def to_frame(self, table: str = "layers") -> pd.DataFrame:
        """One of the tables as a data frame (needs pandas)."""
        frame: pd.DataFrame = require("pandas", "to_frame").DataFrame(self.to_columns(table))
        return frame

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table of the layers as CSV."""
        to_csv(self.to_columns(), path)

    def _spike_rows(self) -> list[dict[str, Any]]:
        matrices = [("weights", layer) for layer in self.layers]
        matrices += [("change", change.layer) for change in self.changes]
        names = ("significance", "strength", "left_overlap", "right_overlap")
        return [
            {
                "layer": layer.name,
                "matrix": matrix,
                "spike": place,
                "kind": spike.kind if spike.place is None else f"{spike.kind} {spike.place}",
                "value": spike.value,
                "edge": layer.edge,
                **{name: getattr(spike, name) for name in names},
            }
            for matrix, layer in matrices
            for place, spike in enumerate(layer.spikes)
        ]

    def _probe_rows(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        for name, curve in self.probes.items():
            if isinstance(curve, str):
                rows.append({"layer": name, "note": curve})
                continue
            columns = curve.to_columns()
            kept = [key for key in columns if not key.startswith(("by_output", "source"))]
            rows += [
                {"layer": name, **{key: columns[key][i] for key in kept}}
                for i in range(len(columns["samples"]))
            ]
        return rows

    # Display ----------------------------------------------------------------------------------

    def plot(self) -> InspectionDisplay:
        """One overview of all layers (needs matplotlib)."""
        from giantsteps.practice._display import InspectionDisplay

        return InspectionDisplay(self).plot()

    def plot_layer(self, name: str) -> LayerDisplay:
        """Singular values of one layer against the law of its bulk (needs matplotlib)."""
        from giantsteps.practice._display import LayerDisplay

        return LayerDisplay(self[name]).plot()

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write everything as one page that needs no other file (needs jinja2 and matplotlib)."""
        from giantsteps.practice._report import write_report

        write_report(self, path)

    def __repr__(self) -> str:
        count = len(self.layers)
        lines = [f"Inspection of {self.title}: {count} matri{'x' if count == 1 else 'ces'}"]
        width = max(len(layer.name) for layer in self.layers)
        sizes = ["×".join(map(str, layer.shape)) for layer in self.layers]
        size = max(map(len, sizes))
        for layer, shape in zip(self.layers, sizes):
            lines.append(
                f"  {layer.name:<{width}}  {shape:<{size}}  {layer.verdict}: {layer.sentence()}"
            )
        if self.changes:
            lines.append("Against the base")
        for change in self.changes:
            lines.append(
                f"  {change.layer.name:<{width}}  change {change.relative_norm:.2g} of the norm, "
                f"{change.layer.verdict}: {change.layer.sentence()}"
            )
        if self.gradients:
            lines.append("First gradient (critical rates: SGD, signs or Adam)")
        for gradient in self.gradients:
            rates = (gradient.critical_rate, gradient.critical_rate_sign)
            critical = ", ".join(f"{rate:.2g}" if np.isfinite(rate) else "none" for rate in rates)
            lines.append(
                f"  {gradient.name:<{width}}  {gradient.sentence()}; critical rates {critical}"
            )
        if self.probes:
            lines.append("Linear probe on the inputs of each layer")
        for name, curve in self.probes.items():
            lines.append(f"  {name:<{width}}  {probe_sentence(curve)}")
        named = {name: why for name, why in self.skipped.items() if why != VECTOR}
        if named:
            lines.append("Left out")
        lines += [f"  {name:<{width}}  {why}" for name, why in named.items()]
        return "\n".join(lines)


def probe_sentence(curve: ProbeCurve | str) -> str:
    """The first and last point of a curve, or why there is none."""
    if isinstance(curve, str):
        return curve
    wrong = curve.classification_error
    what = "squared error" if wrong is None else "wrong classes"
    values = np.atleast_1d(curve.test if wrong is None else wrong)
    sizes = np.atleast_1d(curve.samples)
    shown = [f"{v:.3g}" if wrong is None else f"{100 * v:.1f} %" for v in values]
    shown = ["no answer" if np.isnan(v) else text for v, text in zip(values, shown)]
    points = ", ".join(f"{v} at n = {n:.0f}" for v, n in zip(shown, sizes))
    return f"{what}: {points}"
