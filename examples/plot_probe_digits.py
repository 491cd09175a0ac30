r"""
Learning curves of a linear probe on digits
===========================================

How many labels does a probe need? The curve of test error against the number of labelled rows is
predicted from one pool of features and labels, even beyond the size of the pool. Three kinds of
features of the 8 × 8 digits are compared: the pixels, random features, and the hidden layer of a
network that was trained on other digits.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

from giantsteps import theory
from giantsteps.displays import style
from giantsteps.practice import ProbeCurveDisplay, measure_probe

digits = load_digits()
order = np.random.default_rng(0).permutation(len(digits.data))
x, classes = (digits.data[order] / 16 - 0.3).astype(np.float32), digits.target[order]
labels = np.eye(10)[classes]  # one output per class

# %%
# The network is trained on the first 700 digits. The other 1097 are the pool: a network fits the
# rows that it was trained on, so its features must be judged on others.

torch.manual_seed(0)
hidden = torch.nn.Sequential(torch.nn.Linear(64, 200), torch.nn.ReLU())
network = torch.nn.Sequential(hidden, torch.nn.Linear(200, 10))
random_features = hidden(torch.tensor(x[700:])).detach().numpy()
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
for _ in range(150):
    optimizer.zero_grad()
    out = network(torch.tensor(x[:700]))
    torch.nn.functional.cross_entropy(out, torch.tensor(classes[:700])).backward()
    optimizer.step()
trained_features = hidden(torch.tensor(x[700:])).detach().numpy()
pool = {"pixels": x[700:], "random": random_features, "trained": trained_features}

# %%
# Predictions at a fixed penalty, and the same probes trained on 40 random splits of the pool.

sizes = [60, 120, 240, 480, 960, 1920, 7680]
with style():
    figure, axes = plt.subplots(1, 2, figsize=(6.75, 2.6), layout="constrained")
    for letter, ax in zip("ab", axes, strict=True):
        ax.set_title(f"({letter})", loc="left")
colors = ("#0072B2", "#D55E00", "#009E73")
for color, (name, features) in zip(colors, pool.items(), strict=True):
    curve = theory.risk_of_features(features, labels[700:], samples=sizes, penalty=0.01)
    measured = measure_probe(features, labels[700:], curve, splits=40)
    for ax, quantity in zip(axes, ("test", "classification_error"), strict=True):
        drawn = ProbeCurveDisplay(curve, measured, quantity)
        drawn.plot(ax=ax, label=name, color=color)
    known = np.isfinite(measured.test)
    gap = 100 * (curve.test[known] / measured.test[known] - 1)
    print(f"{name}: predicted against measured test error, in %:", gap.round(1))
axes[0].set_yscale("log")

# %%
# The best penalty for each number of labels comes with it.

best = theory.risk_of_features(trained_features, labels[700:], samples=sizes, penalty="best")
print(best)
