"""Many networks of one problem and size, computed together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from giantsteps.answers import Answer
from giantsteps.errors import InvalidProblem, check_names
from giantsteps.problem import Grid, Problem, suggest
from giantsteps.simulation import _many
from giantsteps.simulation._engine import _machine
from giantsteps.simulation._engine._memory import OVERHEAD, as_bytes
from giantsteps.simulation._network._streams import as_seed
from giantsteps.simulation._options import QUESTIONS, allowed_options


def batch(
    question: str, problem: Problem | Grid, d: int | None, seeds: Iterable[int], **options: Any
) -> list[Answer]:
    """Ask one question of many networks: one answer per seed.

    On a GPU the networks of many seeds are one computation: batched products and factorisations
    that fill the device, as many at a time as the memory allows. On the CPU each thread of the
    linear algebra computes networks of its own. An answer agrees with that of
    ``simulation.<question>(problem, d, seed, ...)`` up to rounding, and does not depend on the
    other seeds.

    Parameters
    ----------
    question : str
        The name of a function of this package, such as ``"risk"`` or ``"weights"``.
    problem : Problem or Grid
        As that function takes it.
    d : int
        Dimension of the inputs; None where ``data`` are given.
    seeds : iterable of int
        One network each.
    **options
        Options of that function: ``device``, ``dtype``, ``test_samples``, …; ``memory`` is for all
        networks together.

    Returns
    -------
    list of Answer
        In the order of the seeds.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import simulation
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2, rate=2)],
    ...                      readout=gs.Ridge(samples=2, penalty=0.1))
    >>> answers = batch("risk", problem, 100, range(4), test_samples=1000)
    >>> alone = simulation.risk(problem, 100, seed=3, test_samples=1000)
    >>> len(answers), bool(abs(answers[3].test / alone.test - 1) < 1e-12)
    (4, True)
    """
    if question not in QUESTIONS:
        raise InvalidProblem("question", question, suggest(question, sorted(QUESTIONS)))
    function = QUESTIONS[question]
    check_names(options, allowed_options(function), "the options")
    if not isinstance(seeds, Iterable):
        raise InvalidProblem("seeds", seeds, "a list of seeds, such as range(10)")
    chosen = [as_seed(seed) for seed in seeds]
    if not chosen:
        return []
    plan = _many.plan(question, function, problem, d, chosen, options)
    if plan is not None:
        return plan.run()
    return _by_threads(function, problem, d, chosen, options)


def _by_threads(
    function: Callable[..., Answer],
    problem: Problem | Grid,
    d: int | None,
    seeds: Sequence[int],
    options: dict[str, Any],
) -> list[Answer]:
    """A network for each thread, where there are several threads and NumPy does the work."""
    workers = 1
    if options.get("device") in (None, "cpu", np) and d is not None:
        workers = min(_machine.threads(), len(seeds), _beside(problem, d, options))
    if workers == 1:
        return [function(problem, d, seed, **options) for seed in seeds]
    memory = as_bytes(options.get("memory"))
    if memory is not None:
        options = options | {"memory": memory // workers}
    with _machine.one_thread(), ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda seed: function(problem, d, seed, **options), seeds))


def _beside(problem: Problem | Grid, d: int, options: dict[str, Any]) -> int:
    """Networks that fit into the memory side by side, by a generous estimate of one."""
    limit = as_bytes(options.get("memory")) or _machine.memory()
    if limit is None:
        return 1
    cells = [problem] if isinstance(problem, Problem) else list(problem)
    sizes = [cell.at(d) for cell in cells]
    largest = max(each.neurons + (each.samples or 0) for each in sizes)
    return max(1, limit // (OVERHEAD + 8 * 8 * largest * (largest + d)))
