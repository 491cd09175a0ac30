"""What a convention is: rows that say how a paper writes each quantity, read in both directions.

Every row is a monomial, theirs = offset + ours^power · ∏ factors, so that its formula, its inverse
and the text of both come from one piece of data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem, suggest
from giantsteps.problem._checks import integer, number
from giantsteps.problem._problem import Problem

# What formulas call our fields, by path; a star stands for the number of the step.
NAMES = {
    "width": "width",
    "steps.*.samples": "step.samples",
    "steps.*.rate": "step.rate",
    "steps.*.exponent": "step.exponent",
    "readout.samples": "readout.samples",
    "noise_variance": "noise_variance",
    "readout.penalty": "penalty",
}
_MANY = (list, tuple, np.ndarray)  # what holds one value for each step
# What every convention writes as we do, and, of these, what is written where it is not the default.
_OF_STEP = ("batch", "rule", "loss", "decay", "precondition")
_RARE = {"output": "init.output", "inputs": "inputs", "readout_batch": "readout.batch"}
_PLAIN = ("activation", "teacher", "weights", "second_layer", *_OF_STEP, *_RARE, "d")

Lookup = Callable[[str], float]


@dataclass(frozen=True)
class Factor:
    """The field at ``path`` to the ``power``; to the power · step.exponent if ``times_e``."""

    path: str
    power: float = 1.0
    times_e: bool = False


@dataclass(frozen=True)
class Row:
    """How a paper writes one quantity: theirs = offset + ours^power · ∏ factors."""

    #: What it is, the paper's symbol, and the name it has in ``in_convention``.
    quantity: str
    symbol: str
    keyword: str
    path: str  # our field
    #: The monomial.
    power: float = 1.0
    factors: tuple[Factor, ...] = ()
    offset: float = 0.0
    size: str | None = None  # for a ratio: keyword of the integer that replaces it when d is given
    #: For the coefficient of a learning rate: keyword of the learning rate itself, which replaces
    #: it when d is given, and the paper's extra power s: theirs = rate · N^(exponent + s).
    total: tuple[str, float] | None = None
    same_as: str | None = None  # keyword whose value is taken where this one is left out
    default: float | None = None  # the paper's own value, taken where this one is left out

    @property
    def per_step(self) -> bool:
        return "*" in self.path

    @property
    def formula(self) -> str:
        """The paper's symbol in terms of our fields."""
        terms = [(NAMES[self.path], self.power, False)]
        terms += [(NAMES[f.path], f.power, f.times_e) for f in self.factors]
        shift = f" + {self.offset:g}" if self.offset else ""
        return f"{self.symbol} = {_monomial(terms)}{shift}"

    @property
    def inverse(self) -> str:
        """Our field in terms of the paper's symbol (and of our ratios)."""
        shifted = f"({self.symbol} − {self.offset:g})" if self.offset else self.symbol
        terms = [(shifted, 1 / self.power, False)]
        terms += [(NAMES[f.path], -f.power / self.power, f.times_e) for f in self.factors]
        return f"{NAMES[self.path]} = {_monomial(terms)}"

    def key(self, d: int | None) -> str:
        """The keyword in use: that of the ratio, or at given d that of the size itself."""
        if d is not None and self.size:
            return self.size
        return self.total[0] if d is not None and self.total else self.keyword

    def write(self, value: float, ours: Lookup, d: int | None) -> float:
        """Our value in the paper's units; ``ours`` looks up our other quantities."""
        if d is not None and self.size:
            return round(value * d)
        return self.offset + value**self.power * self._scale(ours, d)

    def read(self, theirs: object, ours: Lookup, d: int | None, field: str) -> float:
        """The paper's value in our units: the simplest number that :meth:`write` turns into it."""
        if d is not None and self.size:
            return integer(theirs, field, "an integer >= 1") / d
        value = number(theirs, field, "a finite number")
        shifted = (value - self.offset) / self._scale(ours, d)
        if shifted < 0 or (shifted == 0 and self.power < 0):
            raise InvalidProblem(field, theirs, f"such that {self.inverse} is a number")
        return _simplest(shifted ** (1 / self.power), lambda x: self.write(x, ours, d) == value)

    def _scale(self, ours: Lookup, d: int | None) -> float:
        if d is not None and self.total:
            return float(round(ours("width") * d)) ** (ours("steps.*.exponent") + self.total[1])
        powers = ((f, ours("steps.*.exponent") if f.times_e else 1.0) for f in self.factors)
        return math.prod(ours(f.path) ** (f.power * e) for f, e in powers)


@dataclass(frozen=True)
class Convention:
    """The conventions of one paper."""

    name: str  # the key of the paper in the bibliography
    #: In an order in which each can be inverted with the help of those before it.
    rows: tuple[Row, ...]
    #: The paper's initialisation, taken where none is given.
    weights: str
    second_layer: str
    statements: tuple[tuple[str, str], ...]  # what is no formula: the network, the update, the loss

    def write(self, problem: Problem, d: int | None = None) -> dict[str, Any]:
        """Return ``problem`` in this convention: keyword → value, tuples over the steps."""
        result: dict[str, Any] = {
            "activation": problem.activation,
            "teacher": problem.teacher,
            "weights": problem.init.weights,
            "second_layer": problem.init.second_layer,
            "batch": tuple(step.batch for step in problem.steps),
        }
        for name in _OF_STEP:
            if any(name in step.stated() for step in problem.steps):
                result[name] = tuple(getattr(step, name) for step in problem.steps)
        for name, path in _RARE.items():
            part, _, field = path.rpartition(".")
            owner = problem.get(part) if part else problem
            if owner is not None and field in owner.stated():
                result[name] = problem.get(path)
        if d is not None:
            problem = problem.realised(d)
            result["d"] = d = int(d)
        for row in self.rows:
            if row.path.startswith("readout.") and problem.readout is None:
                continue
            lookups = [_lookup(problem, step) for step in range(max(1, len(problem.steps)))]
            used = lookups[: len(problem.steps)] if row.per_step else lookups[:1]
            values = tuple(row.write(ours(row.path), ours, d) for ours in used)
            result[row.key(d)] = values if row.per_step else values[0]
        return result

    def read(self, values: Mapping[str, Any]) -> Problem:
        """Build a problem from this convention: the inverse of :meth:`write`.

        A single value stands for all steps. Sizes are integers if ``d`` is among the values, else
        ratios. As many steps are taken as there are learning rates.
        """
        d = values.get("d")
        if d is not None:
            d = integer(d, "d", "an integer >= 1")
        known = {row.key(d): row for row in self.rows}
        for key, value in values.items():
            if key not in known and key not in _PLAIN:
                raise InvalidProblem(key, value, f"left out: use {suggest(key, [*known, *_PLAIN])}")
        rates = values.get(
            next(key for key, row in known.items() if row.path == "steps.*.rate"), ()
        )
        count = len(rates) if isinstance(rates, _MANY) else 1
        ours: dict[str, list[float]] = {}
        for key, row in known.items():
            value = self._given(values, row, d)
            if value is not None:
                listed = _listed(value, count, key) if row.per_step else [value]
                ours[row.path] = [
                    row.read(item, _known(ours, step), d, key) for step, item in enumerate(listed)
                ]
        plain = {name: _listed(values[name], count, name) for name in _OF_STEP if name in values}
        data: dict[str, Any] = {
            **{key: values[key] for key in ("activation", "teacher") if key in values},
            **{path: value for path, (value, *_) in _below(ours, "").items()},
            "steps": [
                {
                    **{k: v[step] for k, v in _below(ours, "steps.*.").items()},
                    **{k: v[step] for k, v in plain.items()},
                }
                for step in range(count)
            ],
            "init": {
                "weights": values.get("weights", self.weights),
                "second_layer": values.get("second_layer", self.second_layer),
            },
        }
        readout = {key: value for key, (value, *_) in _below(ours, "readout.").items()}
        if "readout_batch" in values:
            readout["batch"] = values["readout_batch"]
        if "output" in values:
            data["init"]["output"] = values["output"]
        if "inputs" in values:
            data["inputs"] = values["inputs"]
        return Problem.from_data({**data, "readout": readout} if readout else data)

    def _given(self, values: Mapping[str, Any], row: Row, d: int | None) -> Any:
        if row.key(d) in values:
            return values[row.key(d)]
        if row.same_as is not None:
            other = next(other for other in self.rows if other.keyword == row.same_as)
            return values.get(other.key(d), row.default)
        return row.default

    def table(self) -> list[tuple[str, str, str, str, str]]:
        """Return rows (quantity, symbol, keyword, formula, inverse) for the documentation."""
        rows = [(r.quantity, r.symbol, r.keyword, r.formula, r.inverse) for r in self.rows]
        rows += [("first layer", "W", "weights", f'"{self.weights}"', "")]
        rows += [("second layer", "a", "second_layer", f'"{self.second_layer}"', "")]
        return rows + [(quantity, "", "", text, "") for quantity, text in self.statements]


def _lookup(problem: Problem, step: int) -> Lookup:
    return lambda path: problem.get(path.replace("*", str(step)))


def _known(ours: Mapping[str, list[float]], step: int) -> Lookup:
    def look(path: str) -> float:
        if path not in ours:
            raise InvalidProblem(path, None, "given: another quantity depends on it")
        return ours[path][step if "*" in path else 0]

    return look


def _listed(value: Any, count: int, key: str) -> list[Any]:
    """One value for each step."""
    if not isinstance(value, _MANY):
        return [value] * count
    if len(value) != count:
        raise InvalidProblem(key, value, f"{count} values, one for each learning rate")
    return list(value)


def _below(ours: Mapping[str, list[float]], prefix: str) -> dict[str, list[float]]:
    found = {path.removeprefix(prefix): v for path, v in ours.items() if path.startswith(prefix)}
    return {name: values for name, values in found.items() if "." not in name}


def _simplest(value: float, accepted: Callable[[float], bool]) -> float:
    """The number of fewest digits, near ``value``, that is accepted; ``value`` if none is.

    Multiplying and dividing by a ratio loses the last digit. Asking which short number is written
    as the number given recovers 0.1 from 0.1 · 2 / 1.5, instead of 0.10000000000000002.
    """
    for digits in range(17):
        candidate = float(f"{value:.{digits}e}")
        if accepted(candidate):
            return candidate
    return value


def _monomial(terms: list[tuple[str, float, bool]]) -> str:
    """A product of powers as text, such as ``λ · α / β`` or ``√Δ``."""
    above = [_power(name, power, e) for name, power, e in terms if power > 0]
    below = [_power(name, -power, e) for name, power, e in terms if power < 0]
    text = " · ".join(above) or "1"
    return " / ".join([text, *below])


def _power(name: str, power: float, times_e: bool) -> str:
    if times_e:
        return f"{name}^step.exponent" if power == 1 else f"{name}^({power:g} step.exponent)"
    return {1.0: name, 0.5: f"√{name}", 2.0: f"{name}²"}.get(power, f"{name}^{power:g}")
