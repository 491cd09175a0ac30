r"""
When does the step pay? A phase diagram
=======================================

Test error after one step, against the size of the step and of its batch. Two lines are solved for
directly, not read off the map: where the spike leaves the bulk of the weights, and where the error
falls below the floor of all kernel methods.
"""

import numpy as np

import giantsteps as gs
from giantsteps import theory
from giantsteps.displays import PhaseDiagramDisplay

problem = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=2.0,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=6.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)
PhaseDiagramDisplay.from_grid(
    problem,
    x="steps.0.rate",
    y="steps.0.samples",
    x_values=np.geomspace(0.02, 2.0, 18),
    y_values=np.geomspace(0.3, 20.0, 14),
    lines=["critical rate", "floor"],
    d=1000,
    width=4.2,
)

# %%
# The best penalty, and the best way to split a budget of :math:`10 d` samples between the step and
# the readout.

best = theory.optimize(problem, over=("readout.penalty",), d=1000)
print(f"penalty {best.arguments['readout.penalty']:.3g}: test error {best.value.test:.4f}")
split = theory.optimize(problem, over=("steps.0.samples",), budget=10.0, d=1000)
print({path: round(value, 2) for path, value in split.arguments.items()})
