"""``certify``: run the agreement matrix."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from giantsteps.comparison.certify._certificate import Certificate
from giantsteps.comparison.certify._design import Setting, draw
from giantsteps.comparison.certify._families import FAMILIES
from giantsteps.comparison.certify._finding import Array, Finding, Plan, examine
from giantsteps.comparison.certify._store import Store, key_of
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Problem
from giantsteps.problem._checks import suggest

__all__ = ["SCALES", "Scale", "certify", "recertify"]


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Attributes
    ----------
    settings : int
        A family.
    sizes : tuple of int
        d₁ < d₂.
    blocks : int
        Of networks a setting, for a family of effort one.
    small : int
        Networks with d₁ a block, beside one with d₂.
    families : tuple of str
        Which.
    most : int
        Effort above which a family gets no more blocks.

    Examples
    --------
    >>> from giantsteps.comparison.certify import SCALES, Scale
    >>> full = SCALES["full"]
    >>> isinstance(full, Scale), full.settings * len(full.families) >= 300
    (True, True)
    """

    settings: int
    sizes: tuple[int, int]
    blocks: int
    small: int
    families: tuple[str, ...] = tuple(FAMILIES)
    most: int = 100

    def plan(self, family: str) -> Plan:
        """What is simulated for a setting of this family."""
        effort = min(FAMILIES[family].effort, self.most)
        return Plan(self.sizes, self.blocks * effort, self.small)


#: Equations that are asked first, the cheap ones …
_CHEAP = (
    "test error, no step",
    "training loss",
    "degrees of freedom",
    "degrees of freedom, large step",
    "gradient's spike",
    "weights' spike, small step",
    "weights and teacher, small step",
    "weights and second layer, small step",
    "weights' spike, several small steps",
    "weights' spike, several directions",
    "kernel's spike, small step",
)
#: … and those that take longer.
_MAIN = (
    *_CHEAP,
    "test error, small step, limit",
    "test error, small step",
    "test error, between",
    "test error, large step",
    "train error, large step",
    "weights' spike, large step",
)
#: By name: half a minute on one core, minutes, and a report for the documentation.
SCALES = {
    "short": Scale(3, (30, 120), 8, 4, (*_CHEAP, "test error, large step"), most=2),
    "default": Scale(12, (60, 300), 8, 4, _MAIN),
    "full": Scale(12, (100, 600), 8, 4),
}


def certify(
    scale: str | Scale = "default",
    *,
    seed: int = 0,
    families: Sequence[str] | None = None,
    store: str | Path | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    r"""Compare theory with simulation over a seeded design and test whether the gaps vanish.

    Every setting gives one number: the Student cdf of the t of r^p g(d₂) − g(d₁), where g is
    simulation/theory − 1 and p, in [1/2, 1], is fitted once for a family. If the theory is exact up
    to gaps that close as d^{-p}, these are uniform, and no common error is left at d = ∞.

    Parameters
    ----------
    scale : {"short", "default", "full"} or Scale
        How much is run.
    seed : int
        Of the design.
    families : sequence of str, optional
        Of `FAMILIES`; those of the scale unless given.
    store : path, optional
        A file that keeps every setting's simulations as they are done. What it holds is not
        simulated again, so a certificate that was stopped goes on where it was.
    workers : int
        Processes; 1 works in this one.
    progress : callable, optional
        Called as ``progress(done, total)``.

    Returns
    -------
    Certificate
        ``.passed``, ``.groups``, ``.exceptions``, ``.save(folder)``.

    Examples
    --------
    >>> from giantsteps.comparison.certify import Scale, certify
    >>> scale = Scale(settings=2, sizes=(20, 80), blocks=4, small=2)
    >>> certify(scale, families=["degrees of freedom", "training loss"]).passed
    True
    """
    if isinstance(scale, str) and scale not in SCALES:
        raise InvalidProblem("scale", scale, suggest(scale, SCALES))
    name, chosen = (scale, SCALES[scale]) if isinstance(scale, str) else ("own", scale)
    names = chosen.families if families is None else tuple(families)
    for family in names:
        if family not in FAMILIES:
            raise InvalidProblem("families", family, suggest(family, FAMILIES))
    kept = Store(store)
    jobs = [
        _Job(number, names[number % len(names)], seed, chosen, kept.of(number))
        for number in range(chosen.settings * len(names))
    ]
    return Certificate(_findings(jobs, kept, workers, progress), name, seed)


def recertify(
    file: str | Path,
    *,
    families: Sequence[str] | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """The simulations of a saved certificate beside the theory as it is now.

    Nothing is simulated but for families whose theory takes the weights of the network.

    Parameters
    ----------
    file : path
        A ``certificate.json``.
    families : sequence of str, optional
        Those of the certificate unless given.
    workers, progress
        As in `certify`.

    Examples
    --------
    >>> import tempfile
    >>> from giantsteps.comparison.certify import Scale, certify, recertify
    >>> scale = Scale(settings=2, sizes=(20, 80), blocks=4, small=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report, _ = certify(scale, families=["degrees of freedom"]).save(folder)
    ...     recertify(report).passed
    True
    """
    data = json.loads(Path(file).read_text(encoding="utf-8"))
    if not isinstance(data, dict) or "settings" not in data:
        raise InvalidProblem("file", str(file), "a certificate.json")
    rows = [row for row in data["settings"] if families is None or row["family"] in families]
    jobs = [_Again(row, data["design_seed"]) for row in rows]
    found = _findings(jobs, Store(None), workers, progress)
    return Certificate(found, data["scale"], data["design_seed"])


@dataclass(frozen=True)
class _Job:
    """A setting yet to be drawn and examined."""

    number: int
    family: str
    seed: int
    scale: Scale
    known: Mapping[str, Array]

    def __call__(self) -> Finding:
        plan = self.scale.plan(self.family)
        setting, answers = draw(self.number, self.family, seed=self.seed, sizes=self.scale.sizes)
        return examine(setting, plan, self.known.get(key_of(setting, plan)), answers)


@dataclass(frozen=True)
class _Again:
    """A setting of a saved certificate."""

    row: Mapping[str, Any]
    seed: int

    def __call__(self) -> Finding:
        row = self.row
        if row["family"] not in FAMILIES:
            raise InvalidProblem("family", row["family"], suggest(row["family"], FAMILIES))
        problem = Problem.from_data(row["problem"])
        setting = Setting(row["number"], row["family"], problem, self.seed)
        lower, upper, blocks, small = row["plan"]
        anew = setting.kind.asked.paired or row["failure"]
        known = None if anew else np.array(row["simulation"], dtype=float)
        return examine(setting, Plan((lower, upper), blocks, small), known)


def _findings(
    jobs: Sequence[Callable[[], Finding]],
    store: Store,
    workers: int,
    progress: Callable[[int, int], None] | None,
) -> tuple[Finding, ...]:
    """Of all jobs, in their order; kept as they come."""
    found: dict[int, Finding] = {}
    for place, finding in _as_they_come(jobs, workers):
        store.add(finding)
        found[place] = finding
        if progress is not None:
            progress(len(found), len(jobs))
    return tuple(found[place] for place in range(len(jobs)))


def _as_they_come(
    jobs: Sequence[Callable[[], Finding]], workers: int
) -> Iterator[tuple[int, Finding]]:
    if workers == 1:
        yield from ((place, job()) for place, job in enumerate(jobs))
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        places = {pool.submit(job): place for place, job in enumerate(jobs)}
        try:
            for future in as_completed(places):
                yield places[future], future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
