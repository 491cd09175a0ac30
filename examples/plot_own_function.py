r"""
Your own activation and teacher
===============================

Functions are names, expressions, or Python callables; theory and simulation accept all three. What
the network has learned is a function of the coordinate along the spike, which is drawn here.
"""

import numpy as np

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import LearnedFunctionDisplay, style


def leaky_clip(x):
    """Clipped at one, with a small slope beyond."""
    return np.clip(x, -1, 1) + 0.1 * x


activations = {
    "a name": "tanh",
    "an expression": "tanh(2*x) - 0.3*x",
    "a callable": gs.Function(leaky_clip, name="leaky_clip", kinks=[-1, 1], jumps=[]),
}

# %%
# The teacher is an expression. It has a linear and a cubic part; theory needs its mean to be zero,
# and says so if it is not.

problem = gs.Problem(
    activation="tanh",
    teacher="sin(1.5*x) + 0.2*he3(x)",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=8.0, rate=2.0, exponent=0.5)],
    readout=gs.Ridge(samples=4.0, penalty=0.05),
)

with style():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(6.75, 2.3), layout="constrained", sharey=True)
    for ax, (kind, activation) in zip(axes, activations.items()):
        own = problem.replace({"activation": activation})
        runs = [simulation.learned_function(own, d=200, seed=seed) for seed in range(2)]
        LearnedFunctionDisplay.from_answers(theory.learned_function(own, d=200), runs, ax=ax)
        ax.set_title(f"{kind}: R = {theory.risk(own, d=200).test:.3f}")
for ax in axes[1:]:
    ax.set_ylabel("")
