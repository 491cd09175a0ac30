r"""
Every learning rate
===================

One theory for every size of the step, from none to giant. The line is the equivalent model
(:ref:`theory §5 <theory-5>`) at the size of the simulated networks; the points are networks. It
joins the two limits of the literature: :math:`\eta` of order one, and :math:`\eta` of order
:math:`\sqrt N`.
"""

import numpy as np

import giantsteps as gs
from giantsteps import theory
from giantsteps.displays import ComparisonDisplay

problem = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0)],
    readout=gs.Ridge(samples=3.0, penalty=0.1),
)
neurons = problem.at(300).neurons
points = np.geomspace(0.3, 3 * neurons**0.5, 7)
comparison = gs.compare(
    gs.Grid(problem, {"steps.0.rate": points}), d=300, seeds=4, test_samples="exact"
)

# %%
# The regimes are marked: left of the first line the step is lost in the bulk of the weights. Then
# a spike is there, but the features stay linear in it. From :math:`N^{1/4}` on the quadratic term
# of the features counts, and around :math:`\sqrt N` all of them do.

fine = gs.Grid(problem, {"steps.0.rate": np.geomspace(0.3, 3 * neurons**0.5, 40)})
display = ComparisonDisplay.from_comparison(
    comparison,
    before=False,
    curve=theory.risk(fine, d=300),
    floor=theory.bounds(problem)["linear"],
    width=4.5,
    height=2.9,
)
ax = display.ax_
ax.set(xscale="log", xlabel=r"learning rate $\eta$")
critical = theory.critical_rate(problem)
marks = {r"$\eta_c$": critical, r"$N^{1/4}$": neurons**0.25, r"$\sqrt{N}$": neurons**0.5}
for name, place in marks.items():
    ax.axvline(place, color="0.7", linewidth=0.6, zorder=0)
    ax.text(place, 1.01, name, transform=ax.get_xaxis_transform(), ha="center", size=8)
