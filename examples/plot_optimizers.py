r"""
The first step of SGD, Adam and Muon
====================================

Three optimizers turn the same gradient into different steps.
All updates have the same norm, so that each neuron moves by :math:`\tilde\eta`.
SGD preserves the ratio of spike and noise in the gradient.
Adam's first step takes signs, which changes the direction of the spike.
Muon makes all singular values equal, so that the spike is lost (:ref:`theory §9 <theory-9>`).
"""

import matplotlib.pyplot as plt
import numpy as np

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import style

problem = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5, rule="normalized")],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)
rates, dots = np.geomspace(0.1, 4.0, 12), np.geomspace(0.1, 4.0, 4)
rules = {"normalized": "SGD (normalised)", "sign": "Adam, first step", "muon": "Muon"}

with style():
    figure, ax = plt.subplots(figsize=(3.25, 2.4), layout="constrained")
    for color, (rule, name) in zip(("C0", "C1", "C2"), rules.items(), strict=True):
        at = problem.replace({"steps.0.rule": rule})
        if rule != "muon":  # for which there is no theory
            curve = [theory.risk(at.replace({"steps.0.rate": rate}), d=200).test for rate in rates]
            ax.plot(rates, curve, color=color)
        found = np.array(
            [
                [
                    simulation.risk(at.replace({"steps.0.rate": rate}), d=200, seed=seed).test
                    for seed in range(5)
                ]
                for rate in dots
            ]
        )
        error = found.std(axis=1, ddof=1) / np.sqrt(found.shape[1])
        ax.errorbar(dots, found.mean(axis=1), error, fmt="o", color=color, label=name)
    ax.axhline(theory.risk(problem.untrained()).test, color="0.5", ls=":", label="no step")
    ax.set(xscale="log", xlabel=r"movement of a neuron, $\tilde\eta$", ylabel="test error")
    ax.legend()
