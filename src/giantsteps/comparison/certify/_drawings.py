"""Small drawings of a report, as inline SVG that follows the colours of the page."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats


def histogram(values: ArrayLike) -> str:
    """Bars over [0, 1], with the line of the uniform law at a third of the height."""
    bins, width, height = 10, 80, 26
    counts = np.histogram(values, bins, (0.0, 1.0))[0] * bins / max(np.size(values), 1)
    wide = width / bins
    bars = "".join(
        f"<rect class='bar' x='{wide * i:.1f}' y='{height * (1 - min(h, 3) / 3):.1f}' "
        f"width='{wide - 1:.1f}' height='{height * min(h, 3) / 3:.1f}'/>"
        for i, h in enumerate(counts)
    )
    level = height * 2 / 3
    line = f"<line class='law' x1='0' x2='{width}' y1='{level}' y2='{level}'/>"
    return _drawing(width, height, bars + line, "histogram of u")


def interval(centre: float, spread: float, allowed: Sequence[float], reach: float) -> str:
    """An error with its standard error on the band of errors that would pass, from −reach on."""
    width, height, middle = 130, 16, 8

    def at(value: float) -> float:
        return width * (0.5 + 0.5 * min(max(value / reach, -1.0), 1.0))

    low, high = at(allowed[0]), at(allowed[1])
    parts = [
        f"<rect class='band' x='{low:.1f}' y='4' width='{max(high - low, 1):.1f}' height='8'/>",
        f"<line class='axis' x1='{width / 2}' x2='{width / 2}' y1='0' y2='{height}'/>",
        f"<line class='bar' x1='{at(centre - spread):.1f}' x2='{at(centre + spread):.1f}' "
        f"y1='{middle}' y2='{middle}'/>",
        f"<circle class='bar' cx='{at(centre):.1f}' cy='{middle}' r='3'/>",
    ]
    return _drawing(width, height, "".join(parts), "error and what would pass")


def quantiles(values: ArrayLike) -> str:
    """Sorted values against those of the uniform law, with the 99 % band of each."""
    width, u = 260, np.sort(np.asarray(values, dtype=float))
    count = len(u)
    rank = np.arange(1, count + 1)
    expected = rank / (count + 1)
    low, high = (np.asarray(stats.beta.ppf(q, rank, count + 1 - rank)) for q in (0.005, 0.995))

    def place(x: ArrayLike, y: ArrayLike) -> str:
        points = zip(np.atleast_1d(x) * width, (1 - np.atleast_1d(y)) * width)
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in points)

    band = place(np.append(expected, expected[::-1]), np.append(low, high[::-1]))
    parts = [
        f"<rect class='frame' x='0.5' y='0.5' width='{width - 1}' height='{width - 1}'/>",
        f"<polygon class='band' points='{band}'/>",
        f"<line class='law' x1='0' y1='{width}' x2='{width}' y2='0'/>",
        f"<polyline class='curve' points='{place(expected, u)}'/>",
    ]
    return _drawing(width, width, "".join(parts), "u against the uniform law")


def _drawing(width: float, height: float, parts: str, title: str) -> str:
    return (
        f"<svg width='{width}' height='{height}' viewBox='0 0 {width} {height}' role='img'>"
        f"<title>{title}</title>{parts}</svg>"
    )
