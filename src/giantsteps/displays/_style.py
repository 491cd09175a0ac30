"""How figures look: paper widths, 8 pt, a palette for every eye, fonts embedded."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from giantsteps.answers import require, written
from giantsteps.errors import InvalidProblem
from giantsteps.problem import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Width of one column of a paper, in inches.
SINGLE = 3.25
#: Width of both columns of a paper, in inches.
DOUBLE = 6.75

#: Okabe and Ito's colours, told apart by every kind of colour vision; yellow left out.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GREY = "#555555"
MARKERS = ("o", "s", "^", "D", "v", "P")

#: Settings of matplotlib under which every figure is drawn: see `style`.
STYLE: dict[str, Any] = {
    "font.family": "STIXGeneral",
    "mathtext.fontset": "stix",
    "font.size": 8.0,
    "axes.labelsize": 8.0,
    "axes.titlesize": 8.0,
    "legend.fontsize": 7.0,
    "legend.title_fontsize": 7.0,
    "legend.edgecolor": "none",  # a pale ground keeps names readable where a line runs behind
    "legend.handlelength": 1.6,
    "legend.labelspacing": 0.3,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "errorbar.capsize": 1.5,
    "axes.prop_cycle": f"cycler('color', {list(PALETTE)})",
    "savefig.dpi": 300,
    "figure.dpi": 150,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}

# Path of a field or of a quantity → words and the symbol of the documentation.
_LABELS = {
    r"width": r"width $\beta = N/d$",
    r"noise_variance": r"noise variance $\Delta$",
    r"readout\.samples": r"readout samples $\alpha = n/d$",
    r"readout\.penalty": r"ridge penalty $\lambda$",
    r"steps\.(\d+)\.samples": r"step samples $\alpha_0 = n_0/d$",
    r"steps\.(\d+)\.rate": r"learning rate $\eta/N^e$",
    r"steps\.(\d+)\.exponent": r"exponent $e$",
    r"d": r"input dimension $d$",
    r"test": r"test error $R$",
    r"train": r"training error",
    r"gain": r"gain $R_0 - R_1$",
    r"initial\.test": r"test error $R_0$",
    r"by_degree": r"test error by degree",
    r"degree": r"degree of the teacher",
    r"step": r"number of steps $t$",
    r"value": r"singular value of $W$",
    r"top": r"singular value, from the largest",
    r"x": r"input $x$ along the direction",
    r"mean": r"learned function, mean",
    r"band": r"learned function, standard deviation",
    r"kappa": r"effective penalty $\kappa$",
    r"df1": r"degrees of freedom $\mathrm{df}_1$",
    r"df2": r"degrees of freedom $\mathrm{df}_2$",
    r"weights": r"movement of the weights",
    r"spectral": r"movement of the weights, spectral norm",
    r"preactivations": r"movement of the pre-activations",
    r"features": r"movement of the features",
    r"output": r"movement of the output",
    r"floors\.linear": r"lower bound for any kernel method",
    r"loss": r"penalised training loss",
    r"spike_norm": r"norm of the gradient's spike",
    r"residual_operator_norm": r"operator norm of the gradient's residual",
    r"residual_frobenius_norm": r"Frobenius norm of the gradient's residual",
}
#: Values outside the bulk: singular values of weights and features, eigenvalues of kernels.
_VALUES = {
    "weights": ("singular value", "s_{%d}(W)"),
    "features": ("singular value", r"s_{%d}(\Phi)"),
    "kernel": ("eigenvalue", r"\lambda_{%d}(K)"),
    "tangent_kernel": ("eigenvalue", r"\lambda_{%d}(K_\mathrm{NT})"),
}
_ORDINALS = ("largest", "second", "third", "fourth", "fifth")


@contextmanager
def style() -> Iterator[None]:
    """The style as a context manager; matplotlib's own settings return after it.

    The colours of its cycle can be told apart with every kind of colour vision.
    One column of a paper is 3.25 inches wide, two are 6.75.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> with style():
    ...     line, = Figure(figsize=(6.75, 2.4)).subplots().plot([0, 1])
    >>> line.get_linewidth(), line.get_color()
    (1.2, '#0072B2')
    """
    matplotlib = require("matplotlib", "a figure", "plot")
    interactive = matplotlib.is_interactive()
    try:
        with matplotlib.rc_context(STYLE):
            yield
            interactive = matplotlib.is_interactive()
    finally:
        # The backend of a notebook becomes interactive when its first figure is made, here.
        matplotlib.interactive(interactive)


def panels(
    count: int = 1, width: float | None = None, height: float | None = None, **options: Any
) -> list[Axes]:
    """Axes side by side on a new figure of a given size in inches; call it inside `style`.

    One panel is one column of a paper wide, several are two, unless told otherwise, with letters.
    """
    pyplot = require("matplotlib.pyplot", "a figure", "plot")
    width = (SINGLE if count == 1 else DOUBLE) if width is None else width
    for name, inches in {"width": width, "height": height}.items():
        if inches is not None:
            number(inches, name, "a number of inches from 0.1 to 200", lower=0.1, upper=200.0)
    size = (width, 0.74 * width / count if height is None else height)
    shape = {"figsize": size, "layout": "constrained", "squeeze": False}
    axes = list(pyplot.subplots(1, count, **shape, **options)[1][0])
    for letter, ax in zip("abcdef" if count > 1 else "", axes):
        ax.set_title(f"({letter})", loc="left")
    return axes


def given_axes(ax: object) -> Axes:
    """The caller's axes, if that is what they are."""
    if not callable(getattr(ax, "get_figure", None)) or not hasattr(ax, "set_xscale"):
        raise InvalidProblem("ax", ax, "axes of Matplotlib, such as plt.gca() or plt.subplots()[1]")
    return ax  # type: ignore[return-value]


def save(figure: Figure, path: str | PathLike[str]) -> None:
    """Save a figure at its exact width, with embedded fonts.

    * ``figure``: of matplotlib.
    * ``path``: the file; its ending says the format.
    """
    known = figure.canvas.get_supported_filetypes()
    ending = Path(path).suffix.lower()[1:]
    if ending and ending not in known:
        raise InvalidProblem("path", str(path), f"a file that ends in one of {', '.join(known)}")
    content = io.BytesIO()  # matplotlib hides what a disk says
    with style(), written(path if ending else f"{path}.png") as draft:
        figure.savefig(content, format=ending or "png")
        draft.write_bytes(content.getvalue())


def label(path: str, question: str = "") -> str:
    """The axis label of a field or of a question's quantity, in words."""
    if path.startswith("tangent.") or question == "tangent_risk":
        kernel = question.removeprefix("tangent_")
        return f"{label(path.removeprefix('tangent.'), kernel)} with the tangent kernel"
    for pattern, text in _LABELS.items():
        match = re.fullmatch(pattern, path)
        if match:
            number = int(match[1]) if match.groups() else 0
            return text if number == 0 else f"{text} ({number + 1})"
    if path.startswith("arguments."):
        return f"best {label(path.removeprefix('arguments.'))}"
    if path.startswith("initial."):
        return f"{label(path.removeprefix('initial.'), question)} before the steps"
    if match := re.fullmatch(r"spikes\.(\d+)\.value", path):
        number = int(match[1])
        name, symbol = _VALUES.get(question, ("value", r"\lambda_{%d}"))
        return f"{_ordinal(number)} {name} ${symbol % (number + 1)}$"
    if match := re.fullmatch(r"(?:spikes\.(\d+)\.)?overlaps?(?:\.(\w+))?", path):
        of = f" of the {_ordinal(int(match[1]))} value" if match[1] else ""
        other = f" with the {match[2].replace('_', ' ')}" if match[2] else ""
        return f"squared overlap{of}{other}"
    if match := re.fullmatch(r"by_degree\.(\d+)", path):
        return f"test error of degree {match[1]}"
    return path.replace("_", " ")


def symbol(path: str) -> str:
    """The symbol of a field, of the step it belongs to; its label where it has none."""
    words = label(path)
    found = re.search(r"\$([^$=]+?) ?(?:=[^$]*)?\$(.*)", words)
    return f"${found[1]}${found[2]}" if found else words


def _ordinal(number: int) -> str:
    return _ORDINALS[number] if number < len(_ORDINALS) else f"{number + 1}th"


def colours(count: int) -> list[Any]:
    """As many colours as asked for: the palette, or samples of a colour map beyond its length."""
    if count <= len(PALETTE):
        return list(PALETTE[:count])
    colormap = require("matplotlib", "a figure", "plot").colormaps["viridis"]
    return [colormap(0.9 * number / (count - 1)) for number in range(count)]
