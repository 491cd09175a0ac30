r"""
The spike in the weights
========================

One gradient step adds a matrix of rank one to the random weights. If the step is weak, it is lost
among the singular values. Beyond the critical rate :math:`\eta_c` one singular value leaves the
bulk, and its left singular vector points towards the teacher (:ref:`theory §2 <theory-2>`).
"""

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import SpectrumDisplay, style

problem = gs.Problem(
    activation="tanh",
    teacher=gs.centered("relu"),
    width=2.0,
    steps=[gs.Step(samples=4.0, rate=1.0)],
)
critical = theory.critical_rate(problem)
print(f"critical rate: {critical:.3f}")

# %%
# Below and above it. The number beside the spike is its squared overlap with the teacher.

with style():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(6.75, 2.4), layout="constrained")
    for ax, factor in zip(axes, (0.6, 2.0)):
        at = problem.replace({"steps.0.rate": factor * critical})
        runs = [simulation.weights(at, d=300, seed=seed, top=1) for seed in range(3)]
        SpectrumDisplay.from_spectra(theory.weights(at), runs, ax=ax)
        ax.set_title(rf"$\eta = {factor:g}\,\eta_c$")

# %%
# The same as numbers.

at = problem.replace({"steps.0.rate": 2.0 * critical})
print(gs.compare(at, d=300, seeds=6, question="weights"))
