"""The guided tour: eight states of the page, each with a few sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from giantsteps.explorer._gallery import DEFAULT
from giantsteps.problem import Init, Problem, Ridge, Step, Vocabulary


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One stop of the tour."""

    #: What to learn here; formulas stand between dollar signs.
    title: str
    text: str
    panel: str  # where to look
    problem: Problem  # the setting
    view: dict[str, Any]  # what the page shows

    def to_data(self) -> dict[str, Any]:
        """Plain data for the page."""
        return {**vars(self), "problem": self.problem.to_data()}


def _small(rate: float) -> Problem:
    return DEFAULT.replace(
        {
            "width": 2.0,
            "teacher": "centered(relu)",
            "steps": [Step(samples=4.0, rate=rate)],
        }
    )


#: In the order of the tour.
TOUR = (
    Stop(
        title="What a spike is",
        text="The weights start random, and their singular values fill a bulk. One gradient step "
        "adds nearly a matrix of rank one: all neurons move along the same direction, which leans "
        "towards the teacher. Here the step is large enough for one singular value to leave the "
        "bulk. That is the spike, and its singular vector holds what the network has learned about "
        "the direction of the teacher.",
        panel="spectrum",
        problem=_small(6.0),
        view={"spectrum": "weights", "x": "steps.0.rate"},
    ),
    Stop(
        title="When it appears",
        text="The same step with a smaller rate: the bulk hides it, and the spectrum shows "
        "nothing. Between the two lies a sharp threshold. Move the slider of the rate slowly from "
        "2 to 6 and watch the spike come out. A smaller batch lowers the threshold, for its noise "
        "makes the gradient larger; but then the spike points less towards the teacher.",
        panel="spectrum",
        problem=_small(2.0),
        view={"spectrum": "weights", "x": "steps.0.rate"},
    ),
    Stop(
        title="The floor",
        text="Spike or not, a step whose rate is of order one leaves the features close to linear "
        "in the inputs. The dotted line is the part of the teacher beyond its linear part, "
        "$E\\sigma_*^2 - (E\\sigma_*)^2 - c_1^2$: with a number of samples proportional to $d$, "
        "neither random features nor any other kernel method gets below it. The step helps "
        "(compare with the dashed line), yet the test error stays above the floor however many "
        "samples the readout has.",
        panel="errors",
        problem=DEFAULT.replace({"steps.0.exponent": 0.0}),
        view={"x": "readout.samples"},
    ),
    Stop(
        title="Passing it",
        text="Now the rate grows with the width: $\\eta = 3\\sqrt N$, an exponent of 1/2. The step "
        "is no longer small beside the initial weights, the features become nonlinear functions of "
        "the spike, and the readout fits the teacher along it. The test error passes the floor. "
        "Slide the exponent back towards 0 to lose this again, or change the samples of the step, "
        "which sharpen its direction.",
        panel="errors",
        problem=DEFAULT.replace({"readout.samples": 6.0}),
        view={"x": "readout.samples"},
    ),
    Stop(
        title="The staircase",
        text="Between small and giant steps lies a staircase. This teacher has a linear and a "
        "quadratic part. Once the exponent passes 1/4, the features contain the square of the "
        "spike and the quadratic part can be learned: the error falls below the floor. In the "
        "limit it falls in stairs, one for each degree; at a finite size, here $d = 20000$, the "
        "stairs are slopes. The second layer takes the values ±1, so that neurons move both ways.",
        panel="errors",
        problem=Problem(
            activation="centered(tanh(x) + 0.6*tanh(x)**2)",
            teacher="he1(x) + he2(x)/2**0.5",
            width=2.0,
            steps=[Step(samples=20.0, rate=1.5, exponent=0.35)],
            readout=Ridge(samples=8.0, penalty=0.1),
            init=Init(second_layer=Vocabulary((-1.0, 1.0), (0.5, 0.5))),
        ),
        view={"x": "steps.0.exponent", "d": 20000},
    ),
    Stop(
        title="Readouts",
        text="What the step has put into the features still has to be read out. With almost no "
        "penalty the test error peaks where the readout has about as many samples as neurons, "
        "$n \\approx N$: there it fits the noise. Raise the penalty and the peak goes away; raise "
        "it much further and the error grows again.",
        panel="errors",
        problem=DEFAULT.replace({"readout.samples": 1.5, "readout.penalty": 0.0001}),
        view={
            "x": "readout.samples",
            "plane": {"x": "readout.samples", "y": "readout.penalty", "quantity": "test"},
        },
    ),
    Stop(
        title="Two steps",
        text="A second step on a fresh batch starts from weights that already lean towards the "
        "teacher. Move the rate of step 2: at zero there is one step only, a moderate rate "
        "improves on it, and a large one overshoots. You can add more steps, remove them and "
        "change their order.",
        panel="errors",
        problem=DEFAULT.replace({"steps": [Step(samples=2.0, rate=1.0, exponent=0.5)] * 2}),
        view={"x": "steps.1.rate"},
    ),
    Stop(
        title="Reuse",
        text="This teacher has neither a linear nor a quadratic part, and a step on a fresh batch "
        "sees nothing of its direction. Here the second step uses the batch of the first one "
        "again. Weights and samples now depend on each other, and through this dependence the "
        "spike does align with the teacher: its squared overlap stands below the spectrum. Set the "
        "batch of step 2 to “fresh”, and it falls to zero.",
        panel="spectrum",
        problem=Problem(
            activation="centered(tanh(x) + 0.5*tanh(x)**2)",
            teacher="he3(x)/6**0.5",
            width=1.0,
            steps=[
                Step(samples=8.0, rate=1.0, exponent=0.5),
                Step(samples=8.0, rate=6.0, exponent=0.5, batch="previous"),
            ],
            readout=Ridge(samples=8.0, penalty=0.1),
            init=Init(second_layer="constant"),
        ),
        view={"x": "readout.samples", "spectrum": "weights"},
    ),
)
