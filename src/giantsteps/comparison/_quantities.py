"""What of an answer is compared: paths such as ``"initial.test"`` or ``"spikes.0.overlap"``.

A path that begins with ``"tangent."`` is read from the answer to the same question about the
tangent kernel, ``tangent_risk`` beside ``risk``, which only simulation gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from giantsteps.answers import Answer, Risk, Spectrum
from giantsteps.errors import InvalidProblem
from giantsteps.problem import suggest
from giantsteps.types import FloatArray

#: A number is resolved when its resolution is at most this part of it …
RESOLUTION = 0.02
#: … and an overlap when it is at most this one.
OVERLAP_RESOLUTION = 0.05
#: Beginning of the paths that are read from the answer about the tangent kernel.
TANGENT = "tangent."
_SPIKE = re.compile(r"(initial\.)?spikes\.\d+\.(value|overlap)")


def resolution_limit(path: str) -> float:
    """Largest resolution that counts as resolved."""
    return OVERLAP_RESOLUTION if "overlap" in path else RESOLUTION


@dataclass(frozen=True)
class Quantity:
    """A number of an answer, or an array, named by the path of attributes that leads to it."""

    path: str

    @property
    def tangent(self) -> bool:
        """Whether it is a number of the tangent kernel, for which there is no theory."""
        return self.path.startswith(TANGENT)

    @property
    def within(self) -> str:
        """The path inside the answer that has the number."""
        return self.path.removeprefix(TANGENT)

    @property
    def needs_initial(self) -> bool:
        """Whether it also looks at the network before the steps."""
        return self.within == "gain" or self.within.split(".")[0] == "initial"

    def read(self, answer: Answer) -> FloatArray:
        """The number, of the shape of the grid; an array has its own axes after those.

        NaN where theory is read for a number of the tangent kernel.
        """
        if self.tangent and answer.source != "simulation":
            if not (isinstance(answer, Spectrum) and _SPIKE.fullmatch(self.within)):
                Quantity(self.within).read(answer)  # refuses a name that there is not
            return np.full(answer.shape, np.nan)
        value: Any = answer
        for part in self.within.split("."):
            try:
                value = _step(value, part)
            except (AttributeError, KeyError, IndexError, ValueError):
                value = None
            if value is None:
                self._refuse(answer)
        try:
            array = np.asarray(value, dtype=float)
            if array.shape[: len(answer.shape)] == answer.shape:
                return array
            return np.broadcast_to(array, answer.shape)
        except (TypeError, ValueError):
            self._refuse(answer)

    def axes(self, answer: Answer) -> dict[str, Any]:
        """Further axes of an array and the points along them, which are the rows of a table."""
        shape = self.read(answer).shape[len(answer.shape) :]
        dims, _ = answer._variables().get(self.within, ((), None))
        names = dims[len(answer.dims) :] or tuple(f"axis {n}" for n in range(len(shape)))
        points = answer._axes()
        return {name: points.get(name, np.arange(n)) for name, n in zip(names, shape)}

    def scale(self, answer: Answer) -> FloatArray:
        """What a resolution is relative to: the number itself.

        A gain that vanishes is resolved relative to the error before the steps, a function
        relative to its largest value.
        """
        value = np.abs(self.read(answer))
        if self.path == "gain" and isinstance(answer, Risk) and answer.initial is not None:
            whole = np.abs(np.asarray(answer.initial.test))
            return np.where(value > 1e-9 * whole, value, whole)
        extra = tuple(range(len(answer.shape), value.ndim))
        if not extra:
            return value
        return np.broadcast_to(value.max(axis=extra, keepdims=True), value.shape)

    def _refuse(self, answer: Answer) -> NoReturn:
        known = _paths(answer)
        if not known:
            allowed = f"left out: {answer.source} has no spike for this problem"
            raise InvalidProblem("quantities", self.path, allowed)
        kind = f"{answer._kind()} ({answer.source})"
        raise InvalidProblem("quantities", self.path, f"{suggest(self.path, known)} in a {kind}")


def _step(value: Any, part: str) -> Any:
    if isinstance(value, tuple):
        return value[int(part)]
    if isinstance(value, Mapping):
        return value[part]
    if isinstance(value, np.ndarray):
        return value[..., int(part)]
    return getattr(value, part)


def _paths(answer: Answer) -> list[str]:
    """Names of the numbers of an answer."""
    names = list(answer._variables())
    if isinstance(answer, Spectrum):
        parts = ["value", "overlap", *(f"overlaps.{n}" for n in _overlaps(answer))]
        names = [f"spikes.{n}.{part}" for n in range(len(answer.spikes)) for part in parts]
    derived = ("gain", "ratio", "test_noisy")
    return names + [name for name in derived if getattr(answer, name, None) is not None]


def _overlaps(answer: Spectrum) -> list[str]:
    return list(dict.fromkeys(name for spike in answer.spikes for name in spike.overlaps))
