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

from giantsteps.answers import Answer, DegreesOfFreedom, Risk, Spectrum
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Ridge, suggest
from giantsteps.types import FloatArray

#: A number is resolved when its resolution is at most this part of it …
RESOLUTION = 0.02
#: … and an overlap when it is at most this one.
OVERLAP_RESOLUTION = 0.05
#: Beginning of the paths that are read from the answer about the tangent kernel.
TANGENT = "tangent."
#: How large terms of order 1/d may be beside their estimate. Of 104 degrees of freedom that are
#: exact in the limit, d = 600, 95 % were within 1.6/n of networks, the last 3.2/n away.
_OF_OVERLAPS, _OF_TRACES = 2.0, 3.0
#: Two vectors that mix change their squared overlaps by at most this.
_MIXED = 0.5
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
        if value is None:  # a name of its tables
            _, value = answer._variables().get(self.within, ((), None))
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

    def uncertain(self, answer: Answer) -> FloatArray:
        r"""How far networks of this d may be from a theory that is right in the limit.

        Squared overlaps, degrees of freedom and κ have terms of order 1/d that no answer knows: the
        vectors of finite networks wander. A random matrix whose elements are all smaller than the
        eigenvalue x of an outlier by d^{-1/2} turns its vector by

        .. math:: \frac1d\Bigl(1 + \sum_{i} \frac{x^2}{(x - x_i)^2}\Bigr)

        in the mean square, x_i the other outliers and the edge of the bulk; this is taken twice,
        and ½ at most. A trace of n terms has corrections of order 1/n, which are 3/n at most.
        """
        nothing = np.zeros(self.read(answer).shape)
        if answer.d is None or self.tangent:
            return nothing
        parts = self.within.split(".")
        if parts[-1] in ("df1", "df2", "kappa") and isinstance(answer, DegreesOfFreedom):
            samples = [_cell(answer.problem, at).samples for at in np.ndindex(answer.shape)]
            share = _OF_TRACES / (answer.d * np.reshape(samples, answer.shape))
            scale = answer.kappa / (1 - np.asarray(answer.df1)) if parts[-1] == "kappa" else 1.0
            return np.asarray(nothing + share * scale)
        if "overlap" not in self.path:
            return nothing
        if not isinstance(answer, Spectrum):
            return np.asarray(nothing + _OF_OVERLAPS / answer.d)
        before = answer.initial if parts[0] == "initial" else answer
        assert isinstance(before, Spectrum)
        number = int(parts[parts.index("spikes") + 1])
        turned = _OF_OVERLAPS / answer.d * _turned(before, number)
        return np.asarray(nothing + np.minimum(turned, _MIXED))

    def _refuse(self, answer: Answer) -> NoReturn:
        known = _paths(answer)
        if not known:
            allowed = f"left out: {answer.source} has no spike for this problem"
            raise InvalidProblem("quantities", self.path, allowed)
        kind = f"{answer._kind()} ({answer.source})"
        raise InvalidProblem("quantities", self.path, f"{suggest(self.path, known)} in a {kind}")


def _cell(problem: Any, cell: tuple[int, ...]) -> Ridge:
    """The readout of a problem, or of one cell of a grid."""
    return (problem[cell] if cell else problem).require_readout()


def _turned(spectrum: Spectrum, number: int) -> FloatArray:
    """1 + Σ x²/(x − x_i)² over the other outliers and the edge; x = s² for singular values."""
    own = np.asarray(spectrum.spikes[number].value, dtype=float)
    others = [spike.value for i, spike in enumerate(spectrum.spikes) if i != number]
    if isinstance(spectrum.bulk, np.ndarray):
        others.append(np.reshape([law.edge for law in spectrum.bulk.flat], spectrum.shape))
    elif spectrum.bulk is not None:
        others.append(spectrum.bulk.edge)
    total, power = np.ones_like(own), 1 if "kernel" in str(spectrum.matrix) else 2
    with np.errstate(divide="ignore", invalid="ignore"):
        for other in others:
            part = 1.0 / (1.0 - (np.asarray(other, dtype=float) / own) ** power) ** 2
            total = total + np.where(np.isnan(part), 0.0, part)
    return total


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
        names = list(dict.fromkeys(name for spike in answer.spikes for name in spike.overlaps))
        parts = ["value", "overlap", *(f"overlaps.{n}" for n in names)]
        names = [f"spikes.{n}.{part}" for n in range(len(answer.spikes)) for part in parts]
    derived = ("gain", "ratio", "test_noisy")
    return names + [name for name in derived if getattr(answer, name, None) is not None]
