"""Starting points: the settings of published figures, each with one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from giantsteps.functions import centered
from giantsteps.problem import Init, Problem, Ridge, Step

#: Where the explorer starts: one giant step, and a constant second layer, for which theory is fast
#: enough to follow a slider.
DEFAULT = Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    noise_variance=0.05,
    steps=[Step(samples=8.0, rate=3.0, exponent=0.5)],
    readout=Ridge(samples=3.0, penalty=0.1),
    init=Init(second_layer="constant"),
)

#: The phase diagram of settings that take long: cells that differ in the readout share a model.
_READOUT = {"x": "readout.samples", "y": "readout.penalty", "quantity": "test"}


@dataclass(frozen=True, kw_only=True)
class Start:
    """A state of the page."""

    figure: str = ""  # name of the figure in ``giantsteps figure``; empty for a setting of our own
    #: What it is, and what to look at.
    title: str
    sentence: str
    problem: Problem  # the setting
    view: dict[str, Any]  # what the page shows: the field that varies (``x``), the spectrum, d

    def to_data(self) -> dict[str, Any]:
        """Plain data for the page."""
        return {**vars(self), "problem": self.problem.to_data()}


_QUADRATIC = centered("tanh(x) + 0.6*tanh(x)**2")
_TWO_STEPS = centered("tanh(x) + 0.5*tanh(x)**2")


def _two(batch: str) -> Problem:
    return Problem(
        activation=_TWO_STEPS,
        teacher="he2(x)/2 + he3(x)/12**0.5",
        width=1.0,
        steps=[
            Step(samples=4.0, rate=2.0, exponent=0.35),
            Step(samples=4.0, rate=2.0, exponent=0.45, batch=batch),
        ],
        readout=Ridge(samples=2.0, penalty=0.01),
        init=Init(weights="sphere"),
    )


#: In the order of the page.
GALLERY = (
    Start(
        title="One giant step",
        sentence="The starting point: one step with a rate of order √N takes the test error below "
        "the floor of every kernel method.",
        problem=DEFAULT,
        view={"x": "readout.samples"},
    ),
    Start(
        figure="ba2022-weights",
        title="The spike in the weights (Ba et al. 2022)",
        sentence="A step of order one adds a spike to the singular values of the weights once its "
        "rate passes a threshold: move the rate between 2 and 6.",
        problem=Problem(
            activation="tanh",
            teacher=centered("relu"),
            width=2.0,
            steps=[Step(samples=4.0, rate=6.0)],
            readout=Ridge(samples=2.0, penalty=0.1),
        ),
        view={"x": "steps.0.rate", "spectrum": "weights"},
    ),
    Start(
        figure="ba2022-kernel",
        title="The spike in the kernel (Ba et al. 2022)",
        sentence="The same spike appears among the eigenvalues of the conjugate kernel, and its "
        "eigenvector aligns with the labels.",
        problem=Problem(
            activation=centered("softplus"),
            teacher="tanh",
            width=1.25,
            steps=[Step(samples=1.5, rate=6.0)],
            readout=Ridge(samples=1.5, penalty=0.1),
        ),
        view={"x": "steps.0.rate", "spectrum": "kernel"},
    ),
    Start(
        figure="ba2022-width",
        title="Error against width after a small step (Ba et al. 2022)",
        sentence="A step of order one improves on random features at every width, but stays above "
        "the floor of kernel methods.",
        problem=Problem(
            activation="tanh",
            teacher=centered("relu"),
            width=2.0,
            noise_variance=0.01,
            steps=[Step(samples=5.0, rate=3.0)],
            readout=Ridge(samples=5.0, penalty=0.01),
        ),
        view={"x": "width"},
    ),
    Start(
        figure="cui2024-2",
        title="Learning curves after a giant step (Cui et al. 2024)",
        sentence="With the rate η = √N and a constant second layer, more samples in the step push "
        "the whole learning curve down.",
        problem=Problem(
            activation="tanh",
            teacher="tanh",
            width=1.0,
            steps=[Step(samples=8.0, rate=1.0, exponent=0.5)],
            readout=Ridge(samples=1.0, penalty=0.01),
            init=Init(second_layer="constant"),
        ),
        view={"x": "readout.samples"},
    ),
    Start(
        figure="cui2024-5",
        title="Error against width after a giant step (Cui et al. 2024)",
        sentence="With few samples in the readout, a wider network helps only up to a point.",
        problem=Problem(
            activation="tanh",
            teacher="sin",
            width=1.0,
            steps=[Step(samples=1.5, rate=1.0, exponent=0.5)],
            readout=Ridge(samples=1.2, penalty=0.08),
            init=Init(second_layer="constant"),
        ),
        view={"x": "width"},
    ),
    Start(
        figure="moniri2023-spectra",
        title="Two spikes in the features (Moniri et al. 2023)",
        sentence="Above the exponent 1/4 a second, quadratic spike leaves the bulk of the "
        "features: compare the exponents 0.12 and 0.4.",
        problem=Problem(
            activation=_QUADRATIC,
            teacher="sin",
            width=1.0,
            steps=[Step(samples=4.0, rate=1.0, exponent=0.4)],
            readout=Ridge(samples=2.0, penalty=0.01),
            init=Init(weights="sphere"),
        ),
        view={"x": "steps.0.exponent", "spectrum": "features", "d": 600, "plane": _READOUT},
    ),
    Start(
        figure="moniri2023-errors",
        title="The staircase (Moniri et al. 2023)",
        sentence="As the exponent of the rate grows, the network learns the teacher degree by "
        "degree; the limit has stairs where finite networks have slopes.",
        problem=Problem(
            activation=_QUADRATIC,
            teacher="he1(x) + he2(x)/2**0.5",
            width=1.0,
            steps=[Step(samples=4.0, rate=1.0, exponent=0.4)],
            readout=Ridge(samples=2.0, penalty=0.01),
            init=Init(weights="sphere"),
        ),
        view={"x": "steps.0.exponent", "d": 300, "plane": _READOUT},
    ),
    Start(
        figure="moniri2026-overlap",
        title="Two steps on fresh batches (Moniri et al. 2026)",
        sentence="A teacher without a linear part stays hidden from two steps on fresh batches.",
        problem=_two("fresh"),
        view={"x": "readout.samples", "spectrum": "weights", "d": 500, "plane": _READOUT},
    ),
    Start(
        figure="moniri2026-overlap",
        title="Two steps on one batch (Moniri et al. 2026)",
        sentence="Using the same batch twice reveals what fresh batches hide: a spike that aligns "
        "with the teacher.",
        problem=_two("previous"),
        view={"x": "readout.samples", "spectrum": "weights", "d": 500, "plane": _READOUT},
    ),
    Start(
        figure="own-phases",
        title="Phases of one step",
        sentence="Where a step beats every kernel method, over its rate and its batch, with the "
        "line on which the floor is crossed.",
        problem=Problem(
            activation="tanh",
            teacher="sin",
            width=2.0,
            steps=[Step(samples=4.0, rate=1.0, exponent=0.5)],
            readout=Ridge(samples=6.0, penalty=0.1),
            init=Init(second_layer="constant"),
        ),
        view={
            "x": "steps.0.rate",
            "plane": {"x": "steps.0.rate", "y": "steps.0.samples", "quantity": "gain over floor"},
        },
    ),
)
