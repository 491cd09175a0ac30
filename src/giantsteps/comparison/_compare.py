"""Ask theory and simulation the same question and judge the answers."""

from __future__ import annotations

import inspect
import json
import os
import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, Literal

import numpy as np

from giantsteps import campaign
from giantsteps.answers import Answer
from giantsteps.campaign import (
    Cells,
    Progress,
    decide,
    integers,
    measure,
    read_answers,
)
from giantsteps.comparison._comparison import Comparison
from giantsteps.comparison._quantities import Quantity, resolution_limit
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.questions import QUESTIONS, Question
from giantsteps.questions import question as registered
from giantsteps.simulation import run as draw


def compare(
    problem: Problem | Grid,
    d: int | Sequence[int],
    *,
    seeds: int | Sequence[int] = 20,
    question: str = "risk",
    quantities: str | Sequence[str] | None = None,
    theory_d: int | Literal["finite"] | None = "finite",
    theory: Callable[..., Answer] | None = None,
    simulation: Callable[..., Answer] | None = None,
    workers: int | None = None,
    store: str | os.PathLike[str] | None = None,
    device: Any = None,
    time_limit: float | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Comparison:
    r"""Compare theory with the mean of simulations, with error bars and a verdict.

    .. math:: t = (\bar x - \tau)/se, \qquad resolution = c_S\,se/|\tau|

    over S independent seeds. A number *disagrees* if its gap is too large for chance: Student's
    t with S − 1 degrees of freedom and Holm's method keep the chance that any number of the
    comparison disagrees, though the theory is right, at 1 %. Otherwise it *agrees* if its
    resolution is at most 2 % (overlaps: 5 %), and is *unresolved* if not (take more seeds or a
    larger d). With several sizes, a gap that shrinks towards zero, as 1/d or d^{-1/2}, is an
    effect of the *finite size*. So is, at any size, a gap of a squared overlap or of degrees of
    freedom that is no larger than the terms of order 1/d that the theory does not include:
    2/d times 1 + Σ x²/(x − x_i)² over the other outliers and the edge of the bulk, or 3/n.

    ======  ============  ==============================================
    symbol  argument      meaning
    ======  ============  ==============================================
    x̄       ``seeds``     mean over independent networks
    se                    its standard error
    τ       ``theory_d``  prediction of theory
    c_S                   quantile of Student's t, 3 for many seeds
    ======  ============  ==============================================

    Parameters
    ----------
    problem : Problem or Grid
        What is asked.
    d : int or sequence of int
        Input dimension of the simulated networks; several sizes show the trend.
    seeds : int or sequence of int
        Number of seeds (0, 1, …), or a list of them; at least two.
    question : str
        Question to both, such as ``"risk"``, ``"weights"`` or ``"trajectory"``: any that theory
        and simulation both answer (``giantsteps compare --help`` lists them).
    quantities : str or sequence of str, optional
        Paths of numbers in the answer. For the risk ``"test"``, ``"train"``, ``"initial.test"``
        and ``"gain"`` (initial.test − test, paired on the same draws); for spectra the values
        and overlaps of the predicted spikes, such as ``"spikes.0.value"``; an array, such as the
        ``"mean"`` of a learned function, is compared entry by entry. ``"tangent."`` before a
        number of ``risk`` or ``kernel``, such as ``"tangent.test"``, is that of the tangent
        kernel of the same networks, which is simulated alongside, without theory or verdict.
    theory_d : "finite", int or None
        The d given to theory: that of the simulation, another one, or None for the limit.
    theory, simulation : callable, optional
        Other answers to compare: ``theory(problem, d=...)``, ``simulation(problem, d=...,
        seed=..., **options)``.
    workers : int, optional
        Processes that simulate. 1, the default, works in this process; with a device ``"cuda"``
        and several GPUs the default is one process per GPU.
    store : path-like, optional
        SQLite file that keeps every network, so that an interrupted comparison can resume and a
        larger one simulates only new networks. None keeps nothing.
    device : str, optional
        Where to simulate, as in `simulation.run`.
    time_limit : float, optional
        Seconds per network, after which the comparison stops with an error.
    progress : callable or bool, optional
        Called as ``progress(done, failed, total)``; True shows a bar on the terminal.
    **options
        Of the question (``along``, ``top``, …) and of the simulation (``dtype``,
        ``test_samples``, …).

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
    sizes, chosen, asked = _sizes(d), _seeds(seeds), registered(question)
    for name, function in {"theory": theory, "simulation": simulation}.items():
        if function is not None and not callable(function):
            raise InvalidProblem(name, function, "a function of a problem, or None")
    if simulation is None:
        asked.function("simulation")
        _check_options(asked, options)
    campaign.check_store(store)
    known = {name: value for name, value in options.items() if name in asked.takes("theory")}
    ask = theory or partial(asked.function("theory"), **known)
    predicted = [ask(problem, d=size if theory_d == "finite" else theory_d) for size in sizes]
    measured = _quantities(quantities, asked, predicted[-1])
    plans = _plans(problem, asked, sizes, chosen, measured, {"device": device, **options})
    expected = {
        q.path: [(q.read(answer), q.scale(answer), q.uncertain(answer)) for answer in predicted]
        for q in measured
    }
    if simulation is None:
        answers = _simulate(plans, store, workers, time_limit, progress)
    elif set(plans) == {False}:
        answers = {False: plans[False].ask(simulation, store, workers, time_limit, progress)}
    else:
        allowed = "without the tangent kernel, which a simulation of your own is not asked for"
        raise InvalidProblem("quantities", quantities, allowed)
    agreements = {}
    for q in measured:
        values, scales, uncertain = map(np.stack, zip(*expected[q.path]))
        samples = np.array([[q.read(answer) for answer in row] for row in answers[q.tangent]])
        limit = resolution_limit(q.path)
        found = measure(samples, values, sizes, limit=limit, scale=scales)
        agreements[q.path] = replace(found, uncertain=uncertain[-1])
    return Comparison(
        problem=problem,
        question=question,
        sizes=sizes,
        seeds=chosen,
        agreements=decide(agreements),
        theory=tuple(predicted),
        refinable=theory is None,
    )


def comparison_cells(
    problem: Problem | Grid,
    d: int | Sequence[int],
    *,
    seeds: int | Sequence[int] = 20,
    question: str = "risk",
    quantities: str | Sequence[str] | None = None,
    **options: Any,
) -> list[Cells]:
    """The networks that `compare` would simulate."""
    asked = registered(question)
    named = [Quantity("gain")] if asked.initial else []
    if quantities:
        named = _quantities(quantities, asked, None)
    plans = _plans(problem, asked, _sizes(d), _seeds(seeds), named, options)
    return [cells for plan in plans.values() for cells in plan.cells]


def _plans(
    problem: Problem | Grid,
    asked: Question,
    sizes: tuple[int, ...],
    seeds: tuple[int, ...],
    quantities: Sequence[Quantity],
    options: Mapping[str, Any],
) -> dict[bool, _Plan]:
    """The networks for the question itself, and those for the tangent kernel, as far as needed."""
    plans = {}
    for tangent in sorted({q.tangent for q in quantities}) or [False]:
        chosen = [q for q in quantities if q.tangent is tangent]
        which = registered(f"tangent_{asked.name}") if tangent else asked
        plans[tangent] = _Plan(problem, which, sizes, seeds, chosen, options)
    return plans


def _simulate(
    plans: Mapping[bool, _Plan],
    store: str | os.PathLike[str] | None,
    workers: int | None,
    time_limit: float | None,
    progress: Progress | bool | None,
) -> dict[bool, list[list[Answer]]]:
    """Answers of all networks, per plan, size and seed."""
    for plan in plans.values():
        plan.check(store)
    device = next(iter(plans.values())).options.get("device")
    if workers is None and len(campaign.gpus(device)) < 2:
        workers = 1
    parts = {tangent: plan.cells for tangent, plan in plans.items()}
    cells = list(chain.from_iterable(parts.values()))
    with campaign.simulated(cells, store, workers, time_limit, progress) as opened:
        return {tangent: read_answers(part[-1], opened) for tangent, part in parts.items()}


@dataclass(frozen=True)
class _Plan:
    problem: Problem | Grid
    asked: Question
    sizes: tuple[int, ...]
    seeds: tuple[int, ...]
    quantities: Sequence[Quantity]
    options: Mapping[str, Any]

    @property
    def cells(self) -> list[Cells]:
        """Networks after their steps, and before them where that is compared."""
        known = self.asked.takes("simulation")
        theirs = self.asked.options.keys() - known
        options = {k: v for k, v in self.options.items() if k not in theirs}
        if "bulk" in known:
            options.setdefault("bulk", False)
        if "top" in known:
            options.setdefault("top", max(4, 1 + max(map(_spike, self.quantities), default=0)))
        initial = self.asked.initial and any(q.needs_initial for q in self.quantities)
        return Cells.of_networks(
            self.problem, self.asked, self.sizes, self.seeds, options, initial=initial
        )

    def check(self, store: str | os.PathLike[str] | None) -> None:
        """Refuse what cannot be kept, and options that no network takes, before any is drawn."""
        for name, value in self.options.items() if store is not None else ():
            try:
                json.dumps(value)
            except (TypeError, ValueError):
                allowed = f"None with this {name}: only numbers, texts and lists can be kept"
                raise InvalidProblem("store", str(store), allowed) from None
        problem = next(iter(self.problem)) if isinstance(self.problem, Grid) else self.problem
        options = {k: v for k, v in self.options.items() if k not in self.asked.options}
        for d in self.sizes:
            draw(problem, d, self.seeds[0], **options)

    def ask(
        self,
        simulation: Callable[..., Answer],
        store: Any,
        workers: int | None,
        time_limit: float | None,
        progress: Progress | bool | None,
    ) -> list[list[Answer]]:
        """The same of a function of the caller's own, of which nothing is kept."""
        if store is not None:
            allowed = "None with a simulation of your own: nobody could tell when it changes"
            raise InvalidProblem("store", str(store), allowed)
        given = {name: value for name, value in self.options.items() if value is not None}
        call = partial(simulation, self.problem, **given)
        workers = 1 if workers is None else workers
        executor = campaign.executor_for(workers, time_limit)
        if executor != "serial":
            try:
                pickle.dumps(simulation)
            except (pickle.PicklingError, AttributeError, TypeError):
                allowed = "a function of a module, which workers can import; or workers=1"
                raise InvalidProblem("simulation", simulation, allowed) from None
        calls = [(_call, call, d, seed) for d in self.sizes for seed in self.seeds]
        with campaign.crew(executor, workers) as crew, campaign.shown(progress) as report:
            found = campaign.each(crew, calls, report, time_limit)
        count = len(self.seeds)
        return [found[start : start + count] for start in range(0, len(found), count)]


def _call(function: Callable[..., Answer], d: int, seed: int) -> Answer:
    return function(d=d, seed=seed)


def _check_options(asked: Question, given: Mapping[str, Any]) -> None:
    """Refuse unknown options, and those that make one side answer another question."""
    named = inspect.signature(compare).parameters.values()
    asked.check_options(given, beside=[one.name for one in named if one.kind is one.KEYWORD_ONLY])
    for name, value in given.items():
        option = asked.options.get(name)
        if option is not None and not option.detail and len(option.sides) == 1:
            allowed = f"left out: only {option.sides[0]} takes it, so the answers would differ"
            raise InvalidProblem(name, value, allowed)


def _quantities(given: Any, asked: Question, answer: Answer | None) -> list[Quantity]:
    if given is None:
        names = tuple(asked.quantities(answer))
    else:
        names = (given,) if isinstance(given, str) else given
    if not isinstance(names, Iterable):
        raise InvalidProblem("quantities", given, "names of numbers, such as 'test'")
    names = tuple(names)
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidProblem("quantities", given, "names of numbers, such as 'test'")
    found = [Quantity(name) for name in dict.fromkeys(names)]
    for quantity in found:
        if quantity.tangent and f"tangent_{asked.name}" not in QUESTIONS:
            known = [name for name in QUESTIONS if f"tangent_{name}" in QUESTIONS]
            allowed = (
                f"left out: the tangent kernel is asked with the question {' or '.join(known)}"
            )
            raise InvalidProblem("quantities", quantity.path, allowed)
    if all(quantity.tangent for quantity in found):
        allowed = 'given with one that theory answers too, such as "test" beside "tangent.test"'
        raise InvalidProblem("quantities", given, allowed)
    return found


def _spike(quantity: Quantity) -> int:
    """Number of the spike that a path speaks of."""
    parts = quantity.within.removeprefix("initial.").split(".")
    return int(parts[1]) if parts[0] == "spikes" and parts[1].isdigit() else 0


def _sizes(d: int | Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(integers(d, "d", 1)))


def _seeds(seeds: int | Sequence[int]) -> tuple[int, ...]:
    none = isinstance(seeds, int) and seeds == 0
    chosen = () if none else integers(seeds, "seeds", 0, count=True)
    if len(chosen) < 2:
        allowed = "an integer >= 2, or a list of as many distinct ones: one has no error bar"
        raise InvalidProblem("seeds", seeds, allowed)
    return chosen
