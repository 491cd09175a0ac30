r"""
A second step, on fresh data or on the same
===========================================

The second of two large steps uses a fresh batch, or the first one again. For a teacher with a
linear part a fresh batch is better. For a teacher that a single step cannot see, only the reused
batch finds its direction, because the labels enter the second gradient non-linearly
(:ref:`theory §7 <theory-7>`).
"""

import numpy as np

import giantsteps as gs
from giantsteps import theory
from giantsteps.displays import ComparisonDisplay, Series, style

problem = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.02,
    width=1.0,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)] * 2,
    readout=gs.Ridge(samples=3.0, penalty=0.03),
    init=gs.Init(second_layer="constant"),
)


def at(samples: float, batch: str) -> gs.Problem:
    return problem.replace(
        {"steps.0.samples": samples, "steps.1.samples": samples, "steps.1.batch": batch}
    )


# %%
# Risk and overlap with the teacher against the size of the batches.

samples, fine = np.array([1.5, 3.0, 6.0]), np.geomspace(1.2, 7, 10)


def series(label: str, batch: str, question: str, quantity: str) -> Series:
    simulated = [gs.compare(at(x, batch), d=200, seeds=4, question=question) for x in samples]
    found = [comparison[quantity].largest for comparison in simulated]
    if question == "risk":
        curve = [theory.risk(at(x, batch), d=200).test for x in fine]
    else:
        curve = [theory.weights(at(x, batch), d=200).spikes[0].overlap for x in fine]
    return Series(
        label=label,
        x=samples,
        mean=np.array([estimate.mean for estimate in found]),
        standard_error=np.array([estimate.standard_error for estimate in found]),
        curve_x=fine,
        curve=np.array(curve),
    )


with style():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(6.75, 2.6), layout="constrained")
shown = {"test error": ("risk", "test"), "squared overlap": ("weights", "spikes.0.overlap")}
for ax, (name, asked) in zip(axes, shown.items()):
    ComparisonDisplay(
        series=[series("fresh", "fresh", *asked), series("reused", "previous", *asked)],
        x_label=r"step samples $\alpha_0 = n_0/d$",
        y_label=name,
        legend_title="second batch",
    ).plot(ax=ax)

# %%
# Which teachers does a reused batch see? The smallest order in the movement of the neurons:

for teacher in ("sin", "he2(x)/2 + he3(x)/12**0.5", "he3", "he2"):
    hidden = problem.replace(
        {"activation": gs.centered("tanh(x) + 0.5*tanh(x)**2"), "teacher": teacher}
    )
    print(f"{teacher}: {theory.reuse_exponent(hidden)}")
