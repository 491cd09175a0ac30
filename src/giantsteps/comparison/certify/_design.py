"""The seeded design: which problems are drawn for which function of the theory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps import theory
from giantsteps.answers import Spectrum
from giantsteps.errors import NotConverged, NotCovered
from giantsteps.functions import centered
from giantsteps.problem import Constant, Gaussian, Init, Problem, Ridge, Step, Vocabulary
from giantsteps.theory._regime import resolve

__all__ = ["FAMILIES", "Family", "Setting", "design"]

_ODD = ("tanh", "erf", "sin", "x/sqrt(1 + x**2)")
_ACTIVATIONS = (
    *_ODD,
    centered("relu"),
    centered("softplus"),
    centered("tanh(x) + 0.5*tanh(x)**2"),
)
_TEACHERS = ("sin", "tanh", "erf", "sign", "he1", centered("relu"), "he1(x) + he2(x)/4")
_LAWS = (Gaussian(), Constant(), Vocabulary(values=(1.0, -1.0), probabilities=(0.5, 0.5)))
#: A spike is compared if theory puts it so far above the edge, relative to it …
_CLEAR = 1.2
#: … and if its neighbour is so far away, where there are several.
_APART = 1.3


@dataclass(frozen=True)
class Family:
    """Settings that one equation answers.

    Attributes
    ----------
    question : str
        Function of ``theory`` and ``simulation``.
    exponents : callable
        Draws the exponents of the steps.
    quantities : tuple of str
        Of which one is drawn for each setting.
    odd : bool
        Whether the activations are odd ones only.

    Examples
    --------
    >>> family = FAMILIES["risk, exponent 1/2"]
    >>> isinstance(family, Family), family.question, family.exponents(np.random.default_rng(0))
    (True, 'risk', [0.5])
    """

    question: str
    exponents: Callable[[np.random.Generator], Sequence[float]]
    quantities: tuple[str, ...]
    odd: bool = False


def _between(rng: np.random.Generator) -> list[float]:
    return [float(rng.uniform(0.05, 0.45))]


def _two(rng: np.random.Generator) -> list[float]:
    return [float(e) for e in rng.uniform(0.0, 0.4, size=2)]


_ERRORS = ("test", "train")
_SPIKE = ("spikes.0.value",)
#: What a certificate covers, by the name of the family.
FAMILIES: dict[str, Family] = {
    "risk, no step": Family("risk", lambda rng: [], _ERRORS),
    "risk, exponent 0": Family("risk", lambda rng: [0.0], (*_ERRORS, "gain")),
    "risk, exponent between": Family("risk", _between, _ERRORS),
    "risk, exponent 1/2": Family("risk", lambda rng: [0.5], _ERRORS),
    "risk, two steps": Family("risk", _two, _ERRORS),
    "weights, exponent 0": Family("weights", lambda rng: [0.0], _SPIKE),
    "weights, exponent 1/2": Family("weights", lambda rng: [0.5], _SPIKE),
    "kernel, exponent 0": Family("kernel", lambda rng: [0.0], _SPIKE),
    "kernel, exponent 1/2": Family("kernel", lambda rng: [0.5], _SPIKE, odd=True),
    "gradient": Family("gradient", lambda rng: [0.0], ("spike_norm", "residual_frobenius_norm")),
}


@dataclass(frozen=True)
class Setting:
    """One problem, one quantity: a line of the certificate.

    Attributes
    ----------
    number : int
        Place in the design; its seeds are those of no other setting.
    family : str
        Of `FAMILIES`.
    question, quantity : str
        What is asked, and which number of the answer is compared.
    problem : Problem
        The setting itself.

    Examples
    --------
    >>> setting = next(design(1, sizes=(50, 200)))
    >>> isinstance(setting, Setting), setting.number, setting.family, setting.question
    (True, 0, 'risk, no step', 'risk')
    """

    number: int
    family: str
    question: str
    quantity: str
    problem: Problem


def design(
    count: int,
    *,
    seed: int = 0,
    sizes: Sequence[int],
    families: Sequence[str] = tuple(FAMILIES),
) -> Iterator[Setting]:
    """Draw settings, the families in turn; the n-th does not depend on how many there are.

    Settings that the theory does not cover, or whose spike is not clear of the bulk at every
    size, are drawn again.

    Parameters
    ----------
    count : int
        How many settings.
    seed : int
        Of all draws.
    sizes : sequence of int
        Input dimensions at which they will be compared.
    families : sequence of str
        Of `FAMILIES`.

    Examples
    --------
    >>> [setting.family for setting in design(3, sizes=(50, 200))]
    ['risk, no step', 'risk, exponent 0', 'risk, exponent between']
    >>> few, many = list(design(2, sizes=(50, 200))), list(design(3, sizes=(50, 200)))
    >>> few == many[:2]
    True
    """
    for number in range(count):
        name = families[number % len(families)]
        family = FAMILIES[name]
        rng = np.random.default_rng([seed, number])
        while True:
            problem = _draw(rng, family)
            quantity = str(rng.choice(list(family.quantities)))
            try:
                if all(_usable(family, problem, d) for d in sizes):
                    break
            except NotCovered:
                continue
            except (NotConverged, np.linalg.LinAlgError):
                break  # theory fails on a problem that it covers: that belongs into the report
        yield Setting(number, name, family.question, quantity, problem)


def _draw(rng: np.random.Generator, family: Family) -> Problem:
    def between(lower: float, upper: float) -> float:
        """Uniform in the logarithm, to three digits."""
        return float(f"{math.exp(rng.uniform(math.log(lower), math.log(upper))):.3g}")

    def one_of(options: Sequence[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    samples = between(1.0, 6.0)
    steps = [
        Step(
            samples=samples,
            rate=between(0.5, 2.0) if exponent else between(1.0, 8.0),
            exponent=float(f"{exponent:.3g}"),
            batch="previous" if number and rng.random() < 0.5 else "fresh",
        )
        for number, exponent in enumerate(family.exponents(rng))
    ]
    return Problem(
        activation=one_of(_ODD if family.odd else _ACTIVATIONS),
        teacher=one_of(_TEACHERS),
        noise_variance=one_of((0.0, 0.1, 0.3)),
        width=between(0.5, 2.0),
        steps=steps,
        readout=Ridge(samples=between(0.5, 4.0), penalty=between(0.02, 1.0)),
        init=Init(weights=one_of(("gaussian", "sphere")), second_layer=one_of(_LAWS)),
    )


def _usable(family: Family, problem: Problem, d: int) -> bool:
    """Whether theory answers, and its first spike, if one is asked for, is far from all else."""
    resolve(family.question, problem, d)
    if family.quantities != _SPIKE:
        return True
    answer: Spectrum = getattr(theory, family.question)(problem, d=d)
    if not answer.spikes:
        return False
    values = [float(spike.value) for spike in answer.spikes]
    edge = answer.bulk.support[-1][1]  # type: ignore[union-attr]
    return values[0] > _CLEAR * edge and (len(values) < 2 or values[0] > _APART * values[1])
