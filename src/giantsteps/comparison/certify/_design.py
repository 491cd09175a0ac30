"""The seeded design: which problems are drawn for which function of the theory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.answers import Spectrum
from giantsteps.comparison.certify._families import FAMILIES, Family
from giantsteps.errors import GiantstepsError, NotConverged, NotCovered
from giantsteps.functions import MultiIndex, centered
from giantsteps.problem import Constant, Gaussian, Init, Problem, Ridge, Step, Vocabulary

_LAWS = (
    Gaussian(),
    Constant(),
    Vocabulary(values=(1.0, -1.0), probabilities=(0.5, 0.5)),
    Vocabulary(values=(1.5, 0.5, -1.0), probabilities=(0.25, 0.5, 0.25)),
)
#: A spike is compared if theory puts it so far above the edge, relative to it …
_CLEAR = 1.35
#: … and if its neighbour is so far away, where there are several.
_APART = 1.5
#: So many problems are drawn for a setting at most.
_TRIES = 400


@dataclass(frozen=True)
class Setting:
    """One problem, one quantity: a line of the certificate."""

    number: int  # place in the design
    family: str  # of `FAMILIES`
    problem: Problem
    seed: int = 0  # of the design; with ``number`` it gives the setting seeds that no other has

    @property
    def kind(self) -> Family:
        return FAMILIES[self.family]

    def seeds(self, count: int) -> list[int]:
        rng = np.random.default_rng([self.seed, self.number, 1])
        return [int(value) for value in rng.integers(2**48, size=count)]


def draw(
    number: int, name: str, *, seed: int, sizes: Sequence[int]
) -> tuple[Setting, dict[int, Any]]:
    """The setting with this number, for the family of this name, and what theory said of it.

    Problems that the theory does not cover, or whose spike is not clear of the bulk at every size,
    are drawn again; those where it states that it is approximate are kept, and listed apart.

    Raises
    ------
    GiantstepsError
        If no problem of the family is covered.
    """
    family = FAMILIES[name]
    rng = np.random.default_rng([seed, number])
    refused = "no spike is clear of the bulk"
    for _ in range(_TRIES):
        problem = _draw(rng, family)
        try:
            answers = _answers(family, problem, sizes)
        except NotCovered as error:
            refused = str(error)
            continue
        except (NotConverged, np.linalg.LinAlgError):
            answers = {}  # theory fails on a problem that it covers: the report says so
        if answers is not None:
            return Setting(number, name, problem, seed), answers
    raise GiantstepsError(f"{name}: none of {_TRIES} problems can be asked ({refused})")


def _answers(family: Family, problem: Problem, sizes: Sequence[int]) -> dict[int, Any] | None:
    """What theory says, by size; None if the problem is not for this family."""
    answers: dict[int, Any] = {}
    for d in sizes if family.spike else sizes[:1]:
        answers[d] = answer = family.asked.predict(problem, d)
        if family.spike and not _clear(answer):
            return None
    return answers


def _draw(rng: np.random.Generator, family: Family) -> Problem:
    def between(lower: float, upper: float) -> float:
        """Uniform in the logarithm, to three digits."""
        return float(f"{math.exp(rng.uniform(math.log(lower), math.log(upper))):.3g}")

    def one_of(options: Sequence[Any]) -> Any:
        return options[int(rng.integers(len(options)))]

    samples = between(1.5, 6.0)
    others = family.vary(rng) if callable(family.vary) else family.vary
    exponents = family.exponents(rng) if callable(family.exponents) else family.exponents
    fields = {name: others[name] for name in ("rule", "loss", "decay") if name in others}
    steps = [
        Step(
            samples=samples,
            rate=between(*family.rates),
            exponent=float(f"{exponent:.3g}"),
            batch=others.get("batch", one_of(("fresh", "previous"))) if number else "fresh",
            **fields,
        )
        for number, exponent in enumerate(exponents)
    ]
    link = one_of(family.teachers)
    init = {"output": others["output"]} if "output" in others else {}
    world = {"inputs": others["inputs"]} if "inputs" in others else {}
    return Problem(
        activation=one_of(family.activations),
        teacher=MultiIndex(link, rank=2) if "x0" in link else centered(link),
        noise_variance=others.get("noise", one_of((0.0, 0.1, 0.3))),
        width=between(0.5, 2.0),
        steps=steps,
        readout=Ridge(samples=between(1.0, 4.0), penalty=between(0.1, 2.0)),
        init=Init(weights=one_of(("gaussian", "sphere")), second_layer=one_of(_LAWS), **init),
        **world,
    )


def _clear(spectrum: Spectrum) -> bool:
    """Whether there is a spike, and the first is far from all else."""
    if not spectrum.spikes:
        return False
    values = [float(spike.value) for spike in spectrum.spikes]
    edge = spectrum.bulk.support[-1][1]  # type: ignore[union-attr]
    return values[0] > _CLEAR * edge and (len(values) < 2 or values[0] > _APART * values[1])
