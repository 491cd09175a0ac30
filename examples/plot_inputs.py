r"""
Inputs with a covariance, and preconditioned steps
==================================================

Half of the input directions have a variance of 0.3, the others 1.7.
The more of the teacher lies in directions of large variance, the more easily a giant step finds it.
Multiplying the gradient by :math:`\Sigma^{-p}` removes this preference
(:ref:`theory §10 <theory-10>`).
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
    steps=[gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


def at(share: float, power: float) -> gs.Problem:
    law = gs.Covariance((0.3, 1.7), (0.5, 0.5), teacher=(1 - share, share))
    return problem.replace({"inputs": law, "steps.0.precondition": power})


shares, dots = np.linspace(0.02, 0.98, 13), np.linspace(0.02, 0.98, 4)
with style():
    figure, ax = plt.subplots(figsize=(3.25, 2.4), layout="constrained")
    for color, power in zip(("C0", "C1", "C2"), (0.0, 0.5, 1.0), strict=True):
        ax.plot(shares, [theory.risk(at(x, power), d=200).test for x in shares], color=color)
        found = np.array(
            [
                [simulation.risk(at(x, power), d=200, seed=seed).test for seed in range(5)]
                for x in dots
            ]
        )
        error = found.std(axis=1, ddof=1) / np.sqrt(found.shape[1])
        ax.errorbar(dots, found.mean(axis=1), error, fmt="o", color=color, label=f"p = {power:g}")
    ax.axhline(theory.risk(problem, d=200).test, color="0.5", ls=":", label="isotropic")
    ax.set(xlabel="share of the teacher where the variance is 1.7", ylabel="test error")
    ax.legend(title=r"step along $\Sigma^{-p}G$")
