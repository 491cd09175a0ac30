r"""
Theory and simulation on one learning curve
===========================================

A tanh network takes one large gradient step towards a sine, then its second layer is fitted by
ridge regression on :math:`n` fresh samples. Before the step, no number of samples of order
:math:`d` brings the test error below the kernel floor. After it, the error crosses the floor.
"""

import numpy as np

import giantsteps as gs
from giantsteps import theory

problem = gs.Problem(
    activation="tanh",
    teacher="sin",  # y = sin(<x, beta*>)
    width=2.0,  # N/d
    steps=[gs.Step(samples=20.0, rate=1.0, exponent=0.5)],  # n0/d, eta = sqrt(N)
    readout=gs.Ridge(samples=2.0, penalty=0.1),  # n/d, lambda
    init=gs.Init(second_layer="constant"),
)

# %%
# Simulate at five sample sizes, and ask theory about the same networks. One run gives the whole
# curve, because smaller samples are the beginning of larger ones. At this small :math:`d` networks
# can be a few per cent below theory; that gap closes as :math:`1/d`.

grid = gs.Grid(problem, {"readout.samples": [0.5, 1.5, 3.0, 5.0, 8.0]})
comparison = gs.compare(grid, d=200, seeds=4, test_samples="exact")
print(comparison)

# %%
# Theory again, on a finer grid, for smooth lines. Solid: after the step. Dotted: before it.

fine = theory.risk(gs.Grid(problem, {"readout.samples": np.linspace(0.3, 8, 40)}), d=200)
floor = theory.bounds(problem)["linear"]
comparison.plot(x="readout.samples", curve=fine, floor=floor)

# %%
# Where exactly does the curve cross the floor? Theory solves for it.

print(theory.crossing(problem, along="readout.samples", d=200).statement)
