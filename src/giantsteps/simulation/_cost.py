"""What a question will take: memory, operations and time, before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from giantsteps.errors import InvalidProblem
from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._engine._memory import BLOCK, OVERHEAD, in_words
from giantsteps.simulation._network._streams import Role, Streams

if TYPE_CHECKING:
    from giantsteps.functions import Function
    from giantsteps.simulation._networks import Networks
    from giantsteps.simulation._risk import Cells

_TRIAL, _TRIAL_ON_GPU = 1024, 4096  # size of the matrices that speed is measured on
_REPEATS = 3  # the best counts
_SHORT = 1e13  # operations that no device takes long for
_HOURS = 12  # that one network may take
_USUAL = 50  # ratios to d up to which d is what is large
_ENTRIES = 2**27  # of the features of a chunk of all networks: more does not make a GPU faster


@dataclass(frozen=True)
class Cost:
    """What a question will take.

    Attributes
    ----------
    memory : int
        Bytes at the peak, with the chunks that the budget allows.
    flops : float
        Floating-point operations of the matrix products and factorisations.
    seconds : float
        Time, from the speed of small trials on this device.
    """

    memory: int
    flops: float
    seconds: float

    def __str__(self) -> str:
        return f"{in_words(self.memory)}, {self.flops / 1e9:.3g} GFLOP, {self.seconds:.2g} s"


@dataclass(frozen=True)
class Speed:
    """Seconds for each operation of a matrix product, each draw, each value of σ and of σ'."""

    product: float
    draw: float
    activation: float
    derivative: float


@lru_cache(maxsize=64)
def measure_speed(arrays: Arrays, activation: Function, with_derivative: bool) -> Speed:
    """Time small trials on the device: a few tenths of a second on a processor."""
    streams = Streams(0, arrays)
    size = _TRIAL_ON_GPU if arrays.on_gpu else _TRIAL
    x = streams.normal(Role.WEIGHTS, 0, 0, size, size)
    entries = size**2

    def best(trial: Callable[[], Array]) -> float:
        times = []
        for _ in range(_REPEATS):
            start = time.perf_counter()
            arrays.to_host(trial()[:1, :1])  # which waits for the device
            times.append(time.perf_counter() - start)
        return min(times)

    def elementwise(function: Callable[[Array], Array]) -> float:
        return best(lambda: arrays.transform(function, x + 0.0)) / entries

    return Speed(
        product=best(lambda: x @ x) / (2 * entries * size),
        draw=best(lambda: streams.normal(Role.WEIGHTS, 0, 0, size, size)) / entries,
        activation=elementwise(activation),
        derivative=elementwise(activation.derivative) if with_derivative else 0.0,
    )


def peak_bytes(run: Networks, cells: Cells, stages: int) -> int:
    """Bytes held at the peak for each network, beside the chunks."""
    d, neurons = run.sizes.d, run.sizes.neurons
    held = [run.readout_bytes(cells, stages)]
    if run.problem.steps:
        held.append(run.step_bytes + (stages - 1) * run.weight_bytes)
    if run.test_samples is None:  # WᵀW and a copy of W beside what the readout leaves
        held.append(held[0] + 8 * neurons * (neurons + d))
    return max(held)


def networks_together(probe: Networks, held: int, longest: int, shares: int = 1) -> int:
    """Networks of one computation: as many as fill the device, and as fit into a share of the
    memory with so many bytes held for each.

    ``longest`` is the most samples that any part of it has.
    """
    d, neurons = probe.sizes.d, probe.sizes.neurons
    rows = min(longest, 2 * BLOCK)
    wanted = max(1, _ENTRIES // (rows * neurons))
    available = probe.budget.available
    if available is None:
        return wanted
    return int(
        min(wanted, available // shares // (held + rows * probe.budget.row_bytes(d, neurons)))
    )


def fits_memory(run: Networks, cells: Cells, stages: int) -> bool:
    """Whether a `risk` of so many first layers fits into the budget."""
    return run.budget.fits(run.sizes.d, run.sizes.neurons, peak_bytes(run, cells, stages))


def check_memory(run: Networks, cells: Cells, stages: int = 1) -> int:
    """Bytes at the peak of a `risk`, for each network.

    Raises
    ------
    InvalidProblem
        If that is more than the budget.
    """
    d, neurons = run.sizes.d, run.sizes.neurons
    peak = peak_bytes(run, cells, stages)
    rows = run.budget.rows(d, neurons, peak, "the risk")
    return peak + OVERHEAD + rows * run.budget.row_bytes(d, neurons)


def cost(run: Networks, cells: Cells) -> Cost:
    """Memory, operations and time of a `risk` with penalties for each sample size."""
    return Cost(check_memory(run, cells), _operations(run, cells), _seconds(run, cells))


def check_time(run: Networks) -> None:
    """Refuse a network that takes days, before anything is drawn.

    Raises
    ------
    InvalidProblem
        It names the number that costs most.
    """
    sizes, readout = run.sizes, run.problem.readout
    cells = {} if readout is None or sizes.samples is None else {sizes.samples: (readout.penalty,)}
    if _operations(run, cells) + 100 * _entries(run, cells) < _SHORT:
        return
    run.budget.rows(sizes.d, sizes.neurons, run.weight_bytes, "the weights")
    hours = _seconds(run, cells) / 3600
    if hours <= _HOURS:
        return
    ratios = {path: run.problem.get(path) for path in run.problem.paths() if "samples" in path}
    ratios |= {"width": run.problem.width, "test_samples": (run.test_samples or 0) / sizes.d}
    field = max(ratios, key=lambda path: ratios[path])
    if ratios[field] <= _USUAL:  # none of them is large: d is
        field, ratios = "d", {"d": sizes.d}
    rows = max(_rows(run, cells))
    times = f"{hours / 8766:.2g} years" if hours > 20000 else f"{hours:.3g} hours"
    raise InvalidProblem(
        field,
        run.test_samples if field == "test_samples" else ratios[field],
        f"smaller: one network with d = {sizes.d}, N = {sizes.neurons:.3g} and {rows:.3g} samples "
        f"would take about {times} on this device, and at most {_HOURS} hours are allowed",
    )


def _rows(run: Networks, cells: Cells) -> tuple[int, int, int]:
    """Samples of the steps and of the readout, and test points or what they cost otherwise."""
    points = run.sizes.neurons if run.test_samples is None else run.test_samples
    return sum(run.sizes.step_samples), max(cells, default=0), points


def _entries(run: Networks, cells: Cells) -> float:
    """Numbers that are drawn, and pre-activations."""
    return float(sum(_rows(run, cells))) * (run.sizes.d + run.sizes.neurons)


def _operations(run: Networks, cells: Cells) -> float:
    """Of the matrix products and factorisations."""
    (steps, last, points), (d, neurons) = _rows(run, cells), (run.sizes.d, run.sizes.neurons)
    flops = 4.0 * steps * d * neurons + 2.0 * (last + points) * d * neurons
    flops += float(max(last, neurons)) * min(last, neurons) ** 2
    # A full decomposition of d × N, at about this many operations.
    polar = sum(step.rule == "muon" for step in run.problem.steps)
    flops += 22.0 * polar * min(d, neurons) ** 2 * max(d, neurons)
    for n, penalties in cells.items():
        flops += len(penalties) * float(min(n, neurons)) ** 3 / 3
    return flops


def _seconds(run: Networks, cells: Cells) -> float:
    """Time on this device."""
    (steps, last, points), (d, neurons) = _rows(run, cells), (run.sizes.d, run.sizes.neurons)
    speed = measure_speed(run.backend, run.problem.activation, steps > 0)
    return (
        _operations(run, cells) * speed.product
        + (neurons + steps + last + points) * d * speed.draw
        + (steps + last + points) * neurons * speed.activation
        + steps * neurons * speed.derivative
    )
