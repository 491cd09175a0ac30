"""``certify``: run the agreement matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

from giantsteps.comparison.certify._certificate import Certificate
from giantsteps.comparison.certify._design import FAMILIES, design
from giantsteps.comparison.certify._finding import Finding, examine
from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import suggest

__all__ = ["SCALES", "Scale", "certify"]


@dataclass(frozen=True)
class Scale:
    """How much is run: settings, the two sizes d, networks a setting and size.

    Attributes
    ----------
    settings : int
        How many.
    sizes : tuple of int
        The two input dimensions.
    seeds : int
        Networks a setting and size.

    Examples
    --------
    >>> isinstance(SCALES["full"], Scale), SCALES["full"].settings > SCALES["short"].settings
    (True, True)
    """

    settings: int
    sizes: tuple[int, int]
    seeds: int


#: How much is run: ``"short"``, in seconds, and ``"full"``, a report for the documentation.
SCALES = {"short": Scale(30, (25, 100), 5), "full": Scale(320, (50, 200), 6)}


def certify(
    scale: str = "short",
    *,
    seed: int = 0,
    families: Sequence[str] = tuple(FAMILIES),
    settings: int | None = None,
    sizes: tuple[int, int] | None = None,
    seeds: int | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Certificate:
    """Compare theory with simulation over a seeded design and test whether the gaps vanish.

    Every setting gives one number: the Student cdf of the t of r^p g(d₂) − g(d₁), where g is
    simulation − theory and p, in [1/2, 1], is fitted once for a family. If the theory is exact up
    to gaps that close as d^{-p}, these are uniform.

    Parameters
    ----------
    scale : {"short", "full"}
        Which of `SCALES`.
    seed : int
        Of the design.
    families : sequence of str
        Of `FAMILIES`; settings go to them in turn.
    settings, sizes, seeds
        Other numbers than those of the scale.
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
    >>> found = certify(families=["risk, no step"], settings=2, sizes=(20, 40), seeds=2)
    >>> found.scale, found.seeds, len(found.groups)
    ('short', 2, 1)
    """
    if scale not in SCALES:
        raise InvalidProblem("scale", scale, suggest(scale, SCALES))
    for name in families:
        if name not in FAMILIES:
            raise InvalidProblem("families", name, suggest(name, FAMILIES))
    chosen = SCALES[scale]
    count, sizes, seeds = settings or chosen.settings, sizes or chosen.sizes, seeds or chosen.seeds
    drawn = design(count, seed=seed, sizes=sizes, families=families)
    work = partial(examine, sizes=sizes, seeds=seeds)
    findings: list[Finding] = []

    def done(finding: Finding) -> None:
        findings.append(finding)
        if progress is not None:
            progress(len(findings), count)

    if workers == 1:
        for setting in drawn:
            done(work(setting))
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for finding in pool.map(work, drawn):
                done(finding)
    return Certificate(tuple(findings), scale, tuple(sizes), seeds, seed)
