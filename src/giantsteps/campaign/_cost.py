"""What a campaign will take, before it starts."""

from __future__ import annotations

from collections.abc import Container, Sequence

from giantsteps import simulation
from giantsteps.campaign._cells import Cells
from giantsteps.campaign._jobs import Job, operations, plan
from giantsteps.problem import Grid, Ridge
from giantsteps.simulation import Cost

#: Jobs that are looked at; of more, so many are taken to stand for all.
SAMPLE = 40
#: Operations from which a campaign is long, and worth a word before it starts.
LONG = 1e12


def forecast(cells: Sequence[Cells], known: Container[str] = ()) -> tuple[int, Cost]:
    """How many networks are left to simulate, and what they take one after the other.

    The time is that of small trials on the device, scaled; the memory is that of the largest
    network.
    """
    jobs = [job for job in plan(cells, known) if job.cells.source == "simulation"]
    networks = sum(len(job.seeds) * len(job.parts) for job in jobs)
    step = max(1, len(jobs) // SAMPLE)
    costs = [(len(job.seeds) * len(job.parts), _network(job)) for job in jobs[::step]]
    share = networks / max(sum(count for count, _ in costs), 1)
    return networks, Cost(
        memory=max((cost.memory for _, cost in costs), default=0),
        flops=share * sum(count * cost.flops for count, cost in costs),
        seconds=share * sum(count * cost.seconds for count, cost in costs),
    )


def announcement(cells: Sequence[Cells], known: Container[str], workers: int) -> str | None:
    """What a long campaign will take, in words; None for a short one."""
    if operations(cells) < LONG:
        return None
    networks, cost = forecast(cells, known)
    return in_words(networks, cost, workers) if networks else None


def in_words(networks: int, cost: Cost, workers: int) -> str:
    """What so many networks take with so many workers."""
    seconds = cost.seconds / workers
    units = ((3600, "h"), (60, "min"), (1, "s"))
    size, unit = next(((s, u) for s, u in units if seconds >= 1.5 * s), units[-1])
    return (
        f"about {max(seconds / size, 1):.2g} {unit} with {workers} worker{'s' * (workers != 1)}: "
        f"{networks} networks, up to {cost.memory / 2**30:.2g} GiB each"
    )


def _network(job: Job) -> Cost:
    """Of one network, with all readouts of the block."""
    target = job.cells.target(job.place)
    problem = target.problem if isinstance(target, Grid) else target
    if problem.readout is None:  # its spectrum costs about as much as so many samples
        problem = problem.replace({"readout": Ridge(samples=1.0, penalty=1.0)})
    axes = target.axes if isinstance(target, Grid) else {}
    options = {k: v for k, v in job.cells.options.items() if k not in job.cells.question.options}
    run = simulation.run(problem, job.d, 0, **options)
    return run.cost(axes.get("readout.penalty"), axes.get("readout.samples"))
