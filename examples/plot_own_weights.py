r"""
Your own weights and data
=========================

Theory also answers for weights that come from elsewhere, from any optimiser after any number of
steps. Here a network takes ten steps of plain gradient descent on fresh batches, written out below.
The equivalent model reads the spike off its weights and predicts the error of a ridge readout, to
within a few per cent at this size.
"""

import numpy as np

import giantsteps as gs
from giantsteps import theory
from giantsteps.displays import ComparisonDisplay, Series

d, neurons, samples = 200, 300, 1600
rng = np.random.default_rng(0)
beta = np.zeros(d)
beta[0] = 1.0
W = rng.standard_normal((d, neurons)) / np.sqrt(d)
a = np.ones(neurons) / np.sqrt(neurons)

for _ in range(10):
    X = rng.standard_normal((samples, d))
    hidden = np.tanh(X @ W)
    residual = np.sin(X @ beta) - hidden @ a / np.sqrt(neurons)
    G = X.T @ (np.outer(residual, a) * (1 - hidden**2)) / (samples * np.sqrt(neurons))
    W = W + 3.0 * np.sqrt(neurons) * G

# %%
# The model of these weights: types of neurons, their spike, its overlap with the teacher.

model = theory.SpikedFeatures.from_weights(W, a, beta, activation="tanh", teacher="sin")
print(f"spike {model.spikes[0, 0]:.3f}, overlap {model.overlap[0]:.3f}")

# %%
# Ridge regression on the features of ``W``, by theory and by doing it ten times.


def features(X):
    return np.tanh(X @ W) / np.sqrt(neurons)


def error(n, penalty):
    X, X_test = rng.standard_normal((n, d)), rng.standard_normal((2000, d))
    phi = features(X)
    gram = phi.T @ phi / n + penalty / neurons * np.eye(neurons)
    readout = np.linalg.solve(gram, phi.T @ np.sin(X @ beta) / n)
    return np.mean((features(X_test) @ readout - np.sin(X_test @ beta)) ** 2)


ratios = [1.0, 2.0, 3.0, 4.0]
fine = np.linspace(0.8, 4.2, 20)
curve = np.array([model.risk(gs.Ridge(samples=ratio, penalty=0.05)).test for ratio in fine])
found = np.array([[error(round(ratio * d), 0.05) for _ in range(10)] for ratio in ratios])

series = Series(
    label="",
    x=np.array(ratios),
    mean=found.mean(axis=1),
    standard_error=found.std(axis=1, ddof=1) / np.sqrt(found.shape[1]),
    curve_x=fine,
    curve=curve,
)
display = ComparisonDisplay(
    series=[series], x_label=r"readout samples $n/d$", y_label=r"test error $R$"
).plot()
