r"""
The staircase, and why it is steep only at enormous width
=========================================================

With a learning rate :math:`\eta = N^e` the features of a trained network grow one polynomial spike
after the other, and ridge regression learns the teacher degree by degree. The limit is a
staircase in :math:`e` with steps at 1/4, 1/3, 3/8, … Networks that can be simulated do not show
it: their error falls smoothly. Theory at finite width connects the two.
"""

# %%
# A teacher with three degrees, and an activation that has them all. Weights on the sphere, a
# gaussian second layer.

import sys

import numpy as np

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import ComparisonDisplay, Series, style

problem = gs.Problem(
    activation="tanh(x + 0.8)",
    teacher="x + 0.5*(x**2 - 1) + 0.25*(x**3 - 3*x)",
    noise_variance=0.1,
    width=2.0,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.35)],
    readout=gs.Ridge(samples=4.0, penalty=0.05),
    init=gs.Init(weights="sphere"),
)
print(theory.staircase(problem))

# %%
# One limit per level; theory at :math:`N = 10^3, 10^5, 10^7, 10^9`, which costs no more at
# :math:`10^9` than at :math:`10^3`; and simulated networks of a thousand neurons.

smoke = "--smoke" in sys.argv
exponents = np.linspace(0, 0.5, 6 if smoke else 61)
sizes = [500 * 100**k for k in range(4)]
level = np.arange(1, 9)
ends = np.stack([(level - 1) / (2 * level), level / (2 * level + 2)], axis=1)  # of each step
limit = theory.risk(gs.Grid(problem, {"steps.0.exponent": ends.mean(axis=1)}))
finite = [theory.risk(gs.Grid(problem, {"steps.0.exponent": exponents}), d=d) for d in sizes]
points = gs.Grid(problem, {"steps.0.exponent": [0.1, 0.5] if smoke else np.linspace(0, 0.5, 6)})
runs = [
    simulation.risk(points, d=sizes[0], seed=seed, test_samples="exact")
    for seed in range(2 if smoke else 3)
]

# %%
# Left: the test error. Right: what is left of each degree of the teacher at :math:`N = 10^9`.
# Dashed: the limit.
# Degree two comes with its spike at :math:`e = 1/4` and degree three at 1/3, but each is learned
# only where its spike has become large, to the right of its threshold.

with style():
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(6.75, 2.6), layout="constrained")

nothing = np.empty(0)
found = np.array([run.test for run in runs])
simulated = {
    "x": points.coords["steps.0.exponent"],
    "mean": found.mean(axis=0),
    "standard_error": found.std(axis=0, ddof=1) / np.sqrt(len(runs)),
}
absent = {"x": nothing, "mean": nothing, "standard_error": nothing}
curves = [
    Series(
        label=f"$10^{{{3 + 2 * k}}}$",
        curve_x=exponents,
        curve=answer.test,
        **(absent if k else simulated),
    )
    for k, answer in enumerate(finite)
]
ComparisonDisplay(
    series=curves,
    x_label="exponent $e$",
    y_label="test error",
    legend_title="$N$",
).plot(ax=left)
energy = {1: 1.0, 2: 2 * 0.5**2, 3: 6 * 0.25**2}  # k! c*_k²
parts = [
    Series(label=str(k), curve_x=exponents, curve=finite[-1].by_degree[:, k] / size, **absent)
    for k, size in energy.items()
]
ComparisonDisplay(
    series=parts,
    x_label="exponent $e$",
    y_label="part left",
    legend_title="degree, $N = 10^9$",
).plot(ax=right)
left.plot(ends.ravel(), np.repeat(limit.test, 2), color="black", linestyle="--", zorder=1.5)
for k, size in energy.items():
    steps = np.repeat(limit.by_degree[:, k] / size, 2)
    right.plot(ends.ravel(), steps, color="black", linestyle="--", zorder=1.5)

# %%
# The strength of spike :math:`k` grows as :math:`N^{k(e - e_k)}` beyond its threshold
# :math:`e_k`, and at the end of its own level only as :math:`N^{1/(2k+2)}`. So the width at which
# half of what degree two can give has been learned is astronomical close to the threshold.


def half_learned(exponent: float) -> float:
    """log₁₀ of the width at which degree two is half-way to its limit."""
    at = problem.replace({"steps.0.exponent": exponent})
    limit = theory.risk(at)
    half = (limit.initial.by_degree[2] + limit.by_degree[2]) / 2
    low, high = 1.0, 14.0
    while high - low > (1.0 if smoke else 0.05):
        middle = (low + high) / 2
        left = theory.risk(at, d=round(10**middle / at.width)).by_degree[2]
        low, high = (middle, high) if left > half else (low, middle)
    return low


for exponent in [0.30] if smoke else [0.30, 0.32, 0.35]:
    print(f"exponent {exponent}: half of degree two at N = 10^{half_learned(exponent):.1f}")
