"""Ask theory and simulation the same question and judge the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from giantsteps.answers import Answer
from giantsteps.comparison._comparison import Comparison
from giantsteps.comparison._quantities import Quantity
from giantsteps.comparison._stats import judge
from giantsteps.errors import InvalidProblem
from giantsteps.questions import question as registered

if TYPE_CHECKING:
    from giantsteps.problem import Grid, Problem

__all__ = ["compare"]


def compare(
    problem: Problem | Grid,
    d: int | Sequence[int],
    *,
    seeds: int | Sequence[int] = 20,
    question: str = "risk",
    quantities: Sequence[str] | None = None,
    theory_d: int | Literal["finite"] | None = "finite",
    theory: Callable[..., Answer] | None = None,
    simulation: Callable[..., Answer] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Comparison:
    r"""Compare theory with the mean of simulations, with error bars and a verdict.

    .. math:: t = (\bar x - \tau)/se, \qquad resolution = 3\,se/|\tau|

    over independent seeds. A quantity *agrees* if |t| ≤ 3 and the resolution is at most 2 %
    (overlaps: 5 %), is *unresolved* if |t| ≤ 3 but the resolution is worse (take more seeds or a
    larger d), *disagrees* if |t| > 3; with several sizes, a gap that shrinks towards zero, as
    1/d or d^{-1/2}, is an effect of the *finite size*.

    ======  ============  ==============================
    symbol  argument      meaning
    ======  ============  ==============================
    x̄       ``seeds``     mean over independent networks
    se                    its standard error
    τ       ``theory_d``  what theory says
    ======  ============  ==============================

    Parameters
    ----------
    problem : Problem or Grid
        What is asked.
    d : int or sequence of int
        Input dimension of the simulated networks; several sizes show the trend.
    seeds : int or sequence of int
        How many seeds (0, 1, …), or which; at least two.
    question : {"risk", "weights", "kernel", "features"}
        What is asked of both.
    quantities : sequence of str, optional
        Paths of numbers in the answer. For the risk ``"test"``, ``"train"``, ``"initial.test"``
        and ``"gain"`` (initial.test − test, paired on the same draws); for spectra the values
        and overlaps of the predicted spikes.
    theory_d : "finite", int or None
        The d given to theory: that of the simulation, another one, or None for the limit.
    theory, simulation : callable, optional
        Other answers to compare: ``theory(problem, d=...)``, ``simulation(problem, d=...,
        seed=..., **options)``.
    progress : callable, optional
        Called as ``progress(done, total)`` after each simulation.
    **options
        For the simulation: ``device``, ``dtype``, ``test_samples``, …

    Returns
    -------
    Comparison
        ``.verdict``, ``.passed``, ``comparison["test"]``, ``.plot()``, ``.to_frame()``,
        ``.to_csv()``.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> import giantsteps as gs
    >>> problem = gs.Problem(activation="tanh", teacher="sin", noise_variance=0.05, width=1.5,
    ...                      steps=[gs.Step(samples=4, rate=3)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> comparison = compare(problem, d=60, seeds=4)
    >>> comparison.quantities
    ('test', 'train', 'initial.test', 'gain')
    >>> abs(comparison["test"].largest.t) < 3  # within the error bars, which are wide
    True
    >>> print(comparison.verdict)
    unresolved
    """
    sizes, seeds = _sizes(d), _seeds(seeds)
    asked = registered(question)
    ask_theory = theory or asked.function("theory")
    ask_simulation = simulation or asked.function("simulation")

    predicted = [
        ask_theory(problem, d=size if theory_d == "finite" else theory_d) for size in sizes
    ]
    names = asked.quantities(predicted[-1]) if quantities is None else tuple(quantities)
    measured = [Quantity(name) for name in names]
    expected = {
        q.path: [(q.read(answer), q.scale(answer)) for answer in predicted] for q in measured
    }

    samples: dict[str, list[list[Any]]] = {q.path: [[] for _ in sizes] for q in measured}
    total = len(sizes) * len(seeds)
    for done in range(total):
        size, seed = divmod(done, len(seeds))
        run = ask_simulation(problem, d=sizes[size], seed=seeds[seed], **options)
        for q in measured:
            samples[q.path][size].append(q.read(run))
        if progress is not None:
            progress(done + 1, total)

    agreements = {}
    for q in measured:
        values, scales = map(np.stack, zip(*expected[q.path]))
        agreements[q.path] = judge(
            np.array(samples[q.path]), values, sizes, limit=q.limit, scale=scales
        )
    return Comparison(
        problem=problem,
        question=question,
        sizes=sizes,
        seeds=seeds,
        agreements=agreements,
        theory=tuple(predicted),
        refinable=theory is None,
    )


def _sizes(d: int | Sequence[int]) -> tuple[int, ...]:
    sizes = _integers(d if isinstance(d, Iterable) else [d])
    if not sizes or min(sizes) < 1 or len(set(sizes)) < len(sizes):
        raise InvalidProblem("d", d, "an integer ≥ 1, or several distinct ones")
    return tuple(sorted(sizes))


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    chosen = _integers(seeds) if isinstance(seeds, Iterable) else _integers([seeds])
    if chosen and not isinstance(seeds, Iterable):
        chosen = tuple(range(chosen[0]))
    if len(chosen) < 2 or min(chosen) < 0 or len(set(chosen)) < len(chosen):
        raise InvalidProblem("seeds", seeds, "a number ≥ 2, or a list of distinct integers ≥ 0")
    return chosen


def _integers(values: Iterable[Any]) -> tuple[int, ...]:
    """The values as integers; none if one of them is not."""
    try:
        return tuple(index(value) for value in values)
    except TypeError:
        return ()
