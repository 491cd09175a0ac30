r"""
The spectrum of the kernel
==========================

The conjugate kernel :math:`K = \Phi\Phi^\top` is all that ridge regression sees of the network.
A step adds a spike to it, whose eigenvector is correlated with the labels. The position of the
spike depends on the size of the step: at :math:`\eta = \Theta(1)` it is next to the
bulk (:ref:`theory §3 <theory-3>`), at :math:`\eta = \Theta(\sqrt N)` it is of order :math:`N`
(:ref:`theory §5d <theory-5d>`).
"""

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import SpectrumDisplay, style

small = gs.Problem(
    activation="tanh",
    teacher="tanh",
    width=1.25,
    steps=[gs.Step(samples=3.0, rate=6.0)],
    readout=gs.Ridge(samples=1.5, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)
large = small.replace({"steps.0.rate": 1.0, "steps.0.exponent": 0.5})

with style():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(6.75, 2.4), layout="constrained")
    for ax, problem, title in zip(axes, (small, large), (r"$\eta = 6$", r"$\eta = \sqrt{N}$")):
        runs = [simulation.kernel(problem, d=300, seed=seed, top=2) for seed in range(3)]
        SpectrumDisplay.from_spectra(theory.kernel(problem, d=300), runs, ax=ax)
        ax.set_title(title)

# %%
# What the theory says of each: the values, and the squared overlaps with the labels.

for problem in (small, large):
    for spike in theory.kernel(problem, d=300).spikes:
        print(f"value {spike.value:8.3f}, overlap with the labels {spike.overlap:.3f}")
