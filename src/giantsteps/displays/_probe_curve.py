"""Learning curves of a linear probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from giantsteps.displays._display import AxesDisplay
from giantsteps.displays._style import PALETTE
from giantsteps.problem import choice

if TYPE_CHECKING:
    from giantsteps.answers import ProbeCurve

_QUANTITIES = ("test", "classification_error")


class ProbeCurveDisplay(AxesDisplay):
    """Learning curves of a probe: predictions as lines with their bands, measurements as markers.

    Parameters
    ----------
    curve : ProbeCurve
        A prediction over several numbers of samples.
    measured : ProbeCurve, optional
        The same, measured.
    quantity : {"test", "classification_error"}
        What to draw.

    Examples
    --------
    >>> import numpy as np
    >>> from giantsteps import theory
    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((200, 10))
    >>> curve = theory.risk_of_features(x, x[:, 0] ** 3, samples=[40, 80, 160], penalty=0.1)
    >>> ProbeCurveDisplay(curve).plot().ax_.get_xscale()
    'log'
    """

    def __init__(
        self, curve: ProbeCurve, measured: ProbeCurve | None = None, quantity: str = "test"
    ) -> None:
        known = ("test",) if curve.classification_error is None else _QUANTITIES
        self.curve, self.measured = curve, measured
        self.quantity = choice(quantity, "quantity", known)

    def plot(self, *, label: str | None = None, color: str = PALETTE[0], **where: Any) -> Self:
        """Draw a curve of this label and colour on ``ax``, or on a new figure."""
        self._look = label, color
        return super().plot(**where)

    def _draw(self) -> None:
        label, color = self._look
        ax, n = self.ax_, np.ravel(self.curve.samples)
        order = np.argsort(n)
        values = np.ravel(getattr(self.curve, self.quantity))
        ax.plot(n[order], values[order], color=color, label=label or "predicted")
        if self.quantity == "test":
            low, high = (np.ravel(side)[order] for side in self.curve.band)
            ax.fill_between(n[order], low, high, color=color, alpha=0.15, linewidth=0)
        if self.measured is not None:
            error = (
                self.measured.standard_error
                if self.quantity == "test"
                else self.measured.classification_standard_error
            )
            ax.errorbar(
                np.ravel(self.measured.samples),
                np.ravel(getattr(self.measured, self.quantity)),
                np.ravel(error),  # type: ignore[arg-type]
                fmt="o",
                color=color,
                label=None if label else "measured",
            )
        name = "test error" if self.quantity == "test" else "wrong classes"
        ax.set(xscale="log", xlabel="labelled samples $n$", ylabel=name)
        ax.set_xticks(np.unique(n), [f"{size:.0f}" for size in np.unique(n)])
        ax.minorticks_off()
        ax.legend()
