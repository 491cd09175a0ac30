"""``certify``: run the agreement matrix."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from giantsteps import campaign
from giantsteps.campaign import Cells, Progress, Store
from giantsteps.comparison.certify._certificate import Certificate
from giantsteps.comparison.certify._design import Setting, draw
from giantsteps.comparison.certify._families import FAMILIES, SPREAD_AT
from giantsteps.comparison.certify._finding import Finding, Plan, measured, networks, predict
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Problem, integer, suggest


@dataclass(frozen=True)
class Scale:
    """How much is run."""

    settings: int  # settings per family
    sizes: tuple[int, int]  # d₁ < d₂
    blocks: int  # blocks of networks per setting, at least
    small: int  # networks with d₁ per block, beside one with d₂
    families: tuple[str, ...] = tuple(FAMILIES)  # names of the families
    #: Relative standard error at d₂ that is wanted for each setting: a family gets as many blocks
    #: as its spread needs for it.
    error: float | None = None
    most: int = 1000  # blocks of a setting, at most
    #: Test points of a network. By default the expectation over all of them: cheaper on a
    #: processor, while a GPU computes networks with points together.
    points: int | None = None

    def plan(self, family: str) -> Plan:
        """What is simulated for a setting of this family."""
        blocks = self.blocks
        if self.error is not None:
            spread = FAMILIES[family].spread * math.sqrt(SPREAD_AT / self.sizes[1])
            blocks = min(max(blocks, math.ceil((spread / self.error) ** 2)), self.most)
        return Plan(self.sizes, blocks, self.small, self.points)


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
#: By name: half a minute on one core, minutes, and a report for the documentation on a GPU.
SCALES = {
    "short": Scale(3, (30, 120), 8, 4, (*_CHEAP, "test error, large step"), error=0.02, most=16),
    "default": Scale(12, (60, 300), 8, 4, _MAIN, error=0.01, most=48),
    "full": Scale(8, (200, 2000), 6, 2, error=0.003, most=200, points=10_000),
}
#: Processes that share a GPU: while one prepares its networks or reads them, another computes.
_PER_GPU = 3


def certify(
    scale: str | Scale = "default",
    *,
    seed: int = 0,
    families: Sequence[str] | None = None,
    store: str | os.PathLike[str] | None = None,
    workers: int | None = 1,
    device: str | None = None,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
) -> Certificate:
    r"""Compare theory with simulation over a seeded design and test whether the gaps vanish.

    Every setting gives one number: the Student cdf of the t of r^p g(d₂) − g(d₁), where g is
    simulation/theory − 1 and p, in [1/2, 1], is fitted once for a family. If the theory is exact up
    to gaps that close as d^{-p}, these are uniform, and no common error remains at d = ∞.

    Parameters
    ----------
    scale : {"short", "default", "full"} or Scale
        How many settings and networks to run.
    seed : int
        Random seed of the design.
    families : sequence of str, optional
        Names of `FAMILIES`; by default those of the scale.
    device : str, optional
        Where networks are simulated, as in `giantsteps.compare`. Theory, including that for the
        drawn weights of a network, runs on the processors.
    store, workers, time_limit, progress
        As in `giantsteps.compare`; progress counts first the settings, then the networks.
        ``workers=None`` uses one process per processor.

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
    integer(seed, "seed", "a non-negative integer", lower=0)
    name, chosen = (scale, SCALES[scale]) if isinstance(scale, str) else ("own", scale)
    names = chosen.families if families is None else tuple(families)
    for family in names:
        if family not in FAMILIES:
            raise InvalidProblem("families", family, suggest(family, FAMILIES))
    draws = [
        partial(_drawn, number, names[number % len(names)], seed, chosen)
        for number in range(chosen.settings * len(names))
    ]
    with Store(store, write=True) as opened:
        findings = _findings(draws, opened, workers, time_limit, progress, device)
    return Certificate(findings, name, seed)


def recertify(
    file: str | os.PathLike[str],
    *,
    families: Sequence[str] | None = None,
    workers: int | None = 1,
    progress: Progress | bool | None = None,
) -> Certificate:
    """Compare the simulations of a saved certificate with the theory as it is now.

    Nothing is simulated but for families whose theory takes the weights of the network.

    Parameters
    ----------
    file : path-like
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
    try:
        data = json.loads(Path(file).read_text(encoding="utf-8"))
    except ValueError:
        raise InvalidProblem("file", str(file), "a certificate.json: it is no JSON") from None
    if not isinstance(data, dict) or "settings" not in data:
        raise InvalidProblem("file", str(file), "a certificate.json")
    rows = [row for row in data["settings"] if families is None or row["family"] in families]
    for row in rows:
        if row["family"] not in FAMILIES:
            raise InvalidProblem("family", row["family"], suggest(row["family"], FAMILIES))
    saved = [partial(_saved, row, data["design_seed"]) for row in rows]
    with Store(None) as memory:
        findings = _findings(saved, memory, workers, None, progress)
    return Certificate(findings, data["scale"], data["design_seed"])


def _drawn(number: int, family: str, seed: int, scale: Scale) -> Finding:
    setting, answers = draw(number, family, seed=seed, sizes=scale.sizes)
    return predict(setting, scale.plan(family), answers)


def _saved(row: Mapping[str, Any], seed: int) -> Finding:
    setting = Setting(row["number"], row["family"], Problem.from_data(row["problem"]), seed)
    lower, upper, *others = row["plan"]
    finding = predict(setting, Plan((lower, upper), *others))
    if setting.kind.asked.paired or row["failure"] or finding.failure:
        return finding
    return replace(finding, simulated=np.array(row["simulation"], dtype=float))


def _alone(setting: Callable[[], Finding]) -> Finding:
    with campaign.capped(1):
        return setting()


def _findings(
    settings: Sequence[Callable[[], Finding]],
    store: Store,
    workers: int | None,
    time_limit: float | None,
    progress: Progress | bool | None,
    device: str | None = None,
) -> tuple[Finding, ...]:
    """Theory for every setting, then the networks that are not known, and both side by side."""
    executor = campaign.executor_for(workers, time_limit)
    with campaign.crew(executor, workers) as crew, campaign.shown(progress) as report:
        findings = campaign.each(crew, [(_alone, one) for one in settings], report)
        unknown: dict[Any, list[Cells]] = {}  # by device
        for finding in (one for one in findings if one.pending):
            for part in chain.from_iterable(networks(finding, device)):
                unknown.setdefault(part.options.get("device"), []).append(part)
        for where, cells in unknown.items():
            cards = () if executor == "serial" else campaign.gpus(where)
            campaign.run(
                cells,
                store,
                executor="processes" if cards else crew,
                workers=_PER_GPU * len(cards) or None,
                time_limit=time_limit,
                progress=report,
                retry=True,
            ).check()
    return tuple(measured(one, store) if one.pending else one for one in findings)
