r"""
Many giant steps
================

Test error after t giant steps, each on a fresh batch.
Theory as lines (:ref:`theory §7 <theory-7-fresh>`), simulated networks as points.
Each step sees the residual of the current network.
"""

import matplotlib.pyplot as plt
import numpy as np

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import style

step = gs.Step(samples=3.0, rate=0.8, exponent=0.5)
problem = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.2,
    steps=[step] * 5,
    readout=gs.Ridge(samples=3.0, penalty=0.03),
    init=gs.Init(second_layer="constant"),
)
settings = {
    "tanh, constant": {},
    "tanh, gaussian": {"init.second_layer": "gaussian"},
    "centred ReLU, constant": {"activation": gs.centered("relu")},
}

with style():
    figure, ax = plt.subplots(figsize=(3.25, 2.4), layout="constrained")
    for color, (name, change) in zip(("C0", "C1", "C2"), settings.items(), strict=True):
        at = problem.replace(change)
        risks = [theory.risk(at.replace(steps=at.steps[:t]), d=200).test for t in range(6)]
        ax.plot(np.arange(len(risks)), risks, color=color)
        tests = np.array([simulation.trajectory(at, d=200, seed=seed).test for seed in range(5)])
        error = tests.std(axis=0, ddof=1) / np.sqrt(len(tests))
        ax.errorbar(
            np.arange(tests.shape[1]), tests.mean(axis=0), error, fmt="o", color=color, label=name
        )
    ax.set(xlabel="giant steps", ylabel="test error")
    ax.legend()
