r"""
Inputs of one's own: theory for the covariance of digits
========================================================

What does the theory say for inputs with the covariance of a data set, and how far are networks on
the data themselves? ``Covariance.from_data`` reads eigenvalues and the teacher's place among them
off the 8 × 8 digits. Networks are trained on Gaussian inputs with exactly that covariance, and on
the digits as they are. Labels are a sine of one direction: a random one, or the one that tells even
from odd digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.displays import style

digits = load_digits()
x = digits.data[:, digits.data.std(axis=0) > 0]
x = x - x.mean(axis=0)
x /= np.sqrt(np.mean(x**2))  # tr Σ/d = 1
covariance = np.cov(x.T)
root = np.linalg.cholesky(covariance + 1e-9 * np.eye(x.shape[1]))
directions = {
    "random direction": np.random.default_rng(0).standard_normal(x.shape[1]),
    "even or odd": x.T @ np.where(digits.target % 2, 1.0, -1.0),
}


def problem(beta: np.ndarray, samples: float, steps: int) -> gs.Problem:
    return gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.05,
        width=2.0,
        steps=steps * [gs.Step(samples=4.0, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=samples, penalty=0.1),
        init=gs.Init(second_layer="constant"),
        inputs=gs.Covariance.from_data(x, beta),
    )


def data(beta: np.ndarray, kind: str, seed: int) -> gs.Data:
    """The digits in random order, or Gaussian inputs with their covariance; 1000 train."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(x) if kind == "digits" else rng.standard_normal(x.shape) @ root.T
    signal = np.sin(rows @ beta / np.sqrt(beta @ covariance @ beta))
    noise = np.sqrt(0.05) * rng.standard_normal(1000)
    return gs.Data(rows[:1000], signal[:1000] + noise, rows[1000:], signal[1000:])


# %%
# Few directions carry the digits: the first three have 15, 14 and 12 % of the variance. That is
# more than theory is exact for, and its answers say so; nor is d = 61 large.

first = problem(directions["random direction"], 2.0, 1)
print(np.round(first.inputs.eigenvalues, 2))
print(*theory.risk(first, d=x.shape[1]).violated)

# %%
# Lines are theory, full points networks on Gaussian inputs, open points networks on the digits.

ratios = np.geomspace(1, 10, 4)  # n/d
with style():
    figure, axes = plt.subplots(1, 2, figsize=(6.75, 2.6), layout="constrained")
    for ax, (title, beta) in zip(axes, directions.items(), strict=True):
        for steps, color in ((0, "C0"), (1, "C1")):
            when = "after one step" if steps else "before it"
            asked = [problem(beta, n, steps) for n in ratios]
            predicted = np.array([theory.risk(one, d=x.shape[1]).test for one in asked])
            ax.plot(ratios, predicted, color=color, label=f"theory, {when}")
            for kind, fill in (("Gaussian", color), ("digits", "none")):
                found = np.array(
                    [
                        [
                            simulation.risk(one, data=data(beta, kind, seed), seed=seed).test
                            for seed in range(20)
                        ]
                        for one in asked
                    ]
                )
                mean, error = found.mean(axis=1), found.std(axis=1) / np.sqrt(found.shape[1])
                label = f"networks, {kind}" if steps else None
                ax.errorbar(ratios, mean, error, fmt="o", color=color, mfc=fill, label=label)
                gap = 100 * (predicted / mean - 1)
                print(f"{title:16}  {when:14}  {kind:8}  {np.round(gap)} %")
        ax.set(title=title, xlabel="$n/d$", xscale="log", yscale="log")
    axes[0].set_ylabel("test error")
    axes[0].legend(fontsize=6)

# %%
# The table is how far theory is above networks, in per cent of the test error. On Gaussian inputs
# it is within 7 % for the random direction and before the step, and up to 20 % below networks after
# a step along the strong directions. The digits are not Gaussian: networks on them differ by up to
# a quarter where the direction is random, and learn even and odd digits twice as well before the
# step and a third better after it than theory says.
plt.show()
