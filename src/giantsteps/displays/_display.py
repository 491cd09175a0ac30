"""What displays share: they keep their data, draw it when asked, and save what they drew."""

from __future__ import annotations

from abc import ABC, abstractmethod
from os import PathLike
from typing import TYPE_CHECKING, Self

from giantsteps.displays import _style
from giantsteps.errors import InvalidProblem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def check_kind(field: str, kind: type, *values: object) -> None:
    """Refuse what is not of the kind that a display draws."""
    for value in values:
        if not isinstance(value, kind):
            raise InvalidProblem(field, type(value).__name__, f"a {kind.__name__}")


class Display:
    """A drawing that can be saved once ``plot`` has set ``figure_``."""

    figure_: Figure

    def save(self, path: str | PathLike[str]) -> None:
        """Save the figure at its exact width, with embedded fonts."""
        _style.save(self.figure_, path)


class AxesDisplay(Display, ABC):
    """A display on one pair of axes, ``ax_``, the caller's or new ones; ``_draw`` says how."""

    ax_: Axes

    def plot(
        self,
        *,
        ax: Axes | None = None,
        width: float | None = None,
        height: float | None = None,
    ) -> Self:
        """Draw on ``ax``, or on a new figure of the given width in inches."""
        with _style.style():
            self.ax_ = _style.panels(1, width, height)[0] if ax is None else _style.given_axes(ax)
            self.figure_ = self.ax_.get_figure(root=True)  # type: ignore[assignment]
            self._draw()
        return self

    @abstractmethod
    def _draw(self) -> None:
        """Draw on ``ax_``, inside the style."""
