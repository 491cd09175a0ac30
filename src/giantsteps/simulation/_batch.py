"""Many networks of one problem and size, computed together."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from giantsteps.answers import Answer, Risk
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Grid, Problem
from giantsteps.simulation import _many, _questions, _risk
from giantsteps.simulation._answers import SimulatedRisk, lazily
from giantsteps.simulation._cost import networks_together, peak_bytes
from giantsteps.simulation._engine import _machine
from giantsteps.simulation._engine._memory import OVERHEAD, as_bytes
from giantsteps.simulation._engine._numpy_arrays import NumpyArrays
from giantsteps.simulation._network._streams import as_seed
from giantsteps.simulation._networks import Networks
from giantsteps.simulation._options import QUESTIONS, allowed_options
from giantsteps.simulation._readout._ridge import EIGEN_FROM
from giantsteps.simulation._run import Run

_STREAMS = 2  # queues of a GPU: one factorises while the other multiplies


def batch(
    question: str, problem: Problem | Grid, d: int | None, seeds: Iterable[int], **options: Any
) -> list[Answer]:
    """Ask one question of many networks: one answer for each seed, as that seed has alone.

    On a GPU the networks of many seeds are one computation: batched products and factorisations
    that fill the device, as many at a time as the memory allows. On the CPU each thread of the
    linear algebra takes networks of its own. An answer agrees with that of
    ``simulation.<question>(problem, d, seed, ...)`` to rounding, and does not depend on the other
    seeds.

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
        Of that function: ``device``, ``dtype``, ``test_samples``, ``initial``, …; ``memory`` is for
        all networks together.

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
        raise InvalidProblem("question", question, f"one of {', '.join(sorted(QUESTIONS))}")
    function = QUESTIONS[question]
    known = allowed_options(function)
    for name, value in options.items():
        if name not in known:
            raise InvalidProblem(name, value, f"left out: the options are {', '.join(known)}")
    chosen = [as_seed(seed) for seed in seeds]
    if not chosen:
        return []
    plan = (
        _plan(problem, d, chosen, options)
        if question == "risk"
        else _many.plan(question, function, problem, d, chosen, options)
    )
    if plan is not None:
        return plan.run()
    return _by_threads(function, problem, d, chosen, options)


# Networks side by side, on the processors -----------------------------------------------------


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


# Networks as one computation ------------------------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """A `risk` of many seeds as batched computations."""

    asked: Problem | Grid  # the question; cells of a grid differ in their readout alone
    #: Sample sizes and penalties, and where each cell of the grid is among them.
    cells: _risk.Cells
    places: Mapping[int, tuple[int, float]]
    problem: Problem  # the cell with the most samples, whose networks are drawn
    d: int
    seeds: Sequence[int]
    together: int
    degrees: int
    initial: bool
    options: dict[str, Any]

    def run(self) -> list[Answer]:
        groups = [
            self.seeds[start : start + self.together]
            for start in range(0, len(self.seeds), self.together)
        ]
        pending = [self._start(number % _STREAMS, group) for number, group in enumerate(groups)]
        return [answer for finish in pending for answer in finish()]

    def _start(self, queue: int, seeds: Sequence[int]) -> Callable[[], list[Answer]]:
        """Enqueue the work of a group; what is returned waits for it and reads the answers."""
        networks = Networks(self.problem, self.d, tuple(seeds), **self.options)
        with networks.backend.stream(queue):
            weights = networks.trained.weights
            stages = [weights, networks.network.weights()] if self.initial else [weights]
            errors = _risk.errors_of(networks, stages, self.cells, self.degrees)
        networks.__dict__.pop("trained")
        return partial(self._finish, queue, networks, errors)

    def _finish(
        self, queue: int, networks: Networks, errors: Sequence[_risk.Errors]
    ) -> list[Answer]:
        with networks.backend.stream(queue):
            stages = [each.to_host(networks) for each in errors]
        seeds, facts = networks.network.streams.seeds, networks.facts()
        assert isinstance(seeds, tuple)
        answers = []
        for at, seed in enumerate(seeds):
            found = [
                {
                    number: {name: leaf[at] for name, leaf in stage[place].items()}
                    for number, place in self.places.items()
                }
                for stage in stages
            ]
            answers.append(self._answer(seed, found, facts))
        return answers

    def _answer(
        self, seed: int, stages: list[dict[int, dict[str, Any]]], facts: dict[str, Any]
    ) -> Answer:
        leaves = [leaf for stage in stages for cell in stage.values() for leaf in cell.values()]
        if not all(np.all(np.isfinite(leaf)) for leaf in leaves):
            # A factorisation failed: alone, the network has another way.
            extra: dict[str, Any] = {"degrees": self.degrees, "initial": self.initial}
            return _questions.risk(self.asked, self.d, seed, **extra, **self.options)
        fields = [_risk.over_cells(self.asked, stage, facts) for stage in stages]
        if self.initial:
            return Risk(**fields[0], initial=Risk(**fields[1]))
        before = partial(_initial, self.asked, self.d, seed, self.degrees, self.options)
        return lazily(SimulatedRisk, fields[0], initial=before)


def _initial(
    asked: Problem | Grid, d: int, seed: int, degrees: int, options: dict[str, Any]
) -> Risk:
    return _risk.initial(asked, d, lambda cell: Run(cell, d, seed, **options), "conjugate", degrees)


def _plan(
    asked: Problem | Grid,
    d: int | None,
    seeds: Sequence[int],
    options: dict[str, Any],
) -> _Plan | None:
    """How the seeds are computed together; None if one after the other is the way."""
    given = dict(options)
    kind, degrees = given.pop("kind", "conjugate"), given.pop("degrees", 4)
    initial = bool(given.pop("initial", False))
    whole = isinstance(degrees, numbers.Integral) and not isinstance(degrees, bool)
    if kind != "conjugate" or not whole or degrees < 0:
        return None
    if d is None or given.get("data") is not None or not isinstance(asked, Problem | Grid):
        return None
    members = _risk.groups(asked, _risk.without_readout)
    if len(members) != 1:
        return None
    memory = as_bytes(given.get("memory"))
    if memory is not None:
        given["memory"] = memory // _STREAMS
    probe, cells, places = _risk.of_group(
        asked, d, lambda cell: Networks(cell, d, seeds[0], **given), members[0]
    )
    if isinstance(probe.backend, NumpyArrays) or not probe.test_samples:
        return None
    if any(0 in penalties or len(penalties) >= EIGEN_FROM for penalties in cells.values()):
        return None
    # Two queues at least, so that one computes while the other factorises.
    together = min(_together(probe, cells, 1 + initial), -(-len(seeds) // _STREAMS))
    if together < 2:
        return None
    return _Plan(
        asked,
        cells,
        places,
        probe.problem,
        d,
        seeds,
        together,
        int(degrees),
        initial,
        given,
    )


def _together(probe: Networks, cells: _risk.Cells, stages: int) -> int:
    """Networks of one queue: as many as fill the device, and as fit into its share of memory."""
    assert probe.test_samples
    longest = max(probe.test_samples, *cells, *probe.sizes.step_samples)
    shares = _STREAMS if probe.budget.limit is None else 1
    return networks_together(probe, peak_bytes(probe, cells, stages), longest, shares)
