"""The simulator against the ways in which such curves are computed by hand, on the CPU.

    python benchmarks/engine.py               # about five minutes on two cores
    python benchmarks/engine.py --d 1000 --point 1500 --repeats 1

All in one process, each contestant in turn, so that ratios hold on a machine that is not quiet.
Wall time and processor time are medians over the repetitions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from functools import partial

import numpy as np
from engine_common import NOISE, TEST_POINTS, flops, interleaved, print_table, problem

from giantsteps import simulation
from giantsteps.simulation._engine._machine import threads

ALPHAS = (0.5, 0.8, 1.2, 1.6, 2.0, 2.5, 3.0)
PENALTIES = (0.01, 0.1, 1.0)


# By hand -------------------------------------------------------------------------------------


def draw(rng: np.random.Generator, rows: int, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((rows, beta.size))
    return x, np.sin(x @ beta) + math.sqrt(NOISE) * rng.standard_normal(rows)


def start(rng: np.random.Generator, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights, second layer and teacher."""
    weights, a = rng.standard_normal((d, d)) / math.sqrt(d), rng.standard_normal(d) / math.sqrt(d)
    beta = rng.standard_normal(d)
    return weights, a, beta / np.linalg.norm(beta)


def step(rng: np.random.Generator, weights: np.ndarray, a: np.ndarray, beta: np.ndarray) -> None:
    """One gradient step on the weights, in place."""
    d = len(beta)
    x, y = draw(rng, 2 * d, beta)
    z = x @ weights
    residual = y - np.tanh(z) @ a / math.sqrt(d)
    slopes = (1 - np.tanh(z) ** 2) * residual[:, None] * a
    weights += math.sqrt(d) * (x.T @ slopes) / (2 * d)


def plain_script(d: int) -> np.ndarray:
    """The step once; then for each size and penalty: data, features, inverse, test error."""
    rng = np.random.default_rng(0)
    weights, a, beta = start(rng, d)
    step(rng, weights, a, beta)
    risks = np.empty((len(ALPHAS), len(PENALTIES)))
    for i, alpha in enumerate(ALPHAS):
        for j, penalty in enumerate(PENALTIES):
            n = round(alpha * d)
            x, y = draw(rng, n, beta)
            phi = np.tanh(x @ weights) / math.sqrt(d)
            shift = n * penalty / d
            readout = np.linalg.inv(phi.T @ phi + shift * np.eye(d)) @ (phi.T @ y)
            x = rng.standard_normal((TEST_POINTS, d))
            predicted = np.tanh(x @ weights) @ readout / math.sqrt(d)
            risks[i, j] = np.mean((predicted - np.sin(x @ beta)) ** 2)
    return risks


def scikit_learn(d: int) -> np.ndarray:
    """The features once, also those of the test points; then a Ridge for each size and penalty."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    weights, a, beta = start(rng, d)
    step(rng, weights, a, beta)
    x, y = draw(rng, round(max(ALPHAS) * d), beta)
    phi = np.tanh(x @ weights) / math.sqrt(d)
    x = rng.standard_normal((TEST_POINTS, d))
    test, target = np.tanh(x @ weights) / math.sqrt(d), np.sin(x @ beta)
    risks = np.empty((len(ALPHAS), len(PENALTIES)))
    for i, alpha in enumerate(ALPHAS):
        for j, penalty in enumerate(PENALTIES):
            n = round(alpha * d)
            model = Ridge(alpha=n * penalty / d, fit_intercept=False).fit(phi[:n], y[:n])
            risks[i, j] = np.mean((model.predict(test) - target) ** 2)
    return risks


def autograd(d: int) -> None:
    """The step by PyTorch's automatic differentiation, draws included."""
    import torch

    generator = torch.Generator().manual_seed(0)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    beta = normal(d)
    beta /= torch.linalg.norm(beta)
    weights = (normal(d, d) / math.sqrt(d)).requires_grad_()
    a = normal(d) / math.sqrt(d)
    x = normal(2 * d, d)
    y = torch.sin(x @ beta) + math.sqrt(NOISE) * normal(2 * d)
    loss = torch.sum((y - torch.tanh(x @ weights) @ a / math.sqrt(d)) ** 2) / (4 * d)
    loss.backward()
    with torch.no_grad():
        weights -= d * weights.grad  # √N · η with η = √N


# Ours ----------------------------------------------------------------------------------------


def our_curve(d: int, seed: int = 0) -> np.ndarray:
    return simulation.run(problem(), d, seed).risk(samples=ALPHAS, penalties=PENALTIES).test


def our_point(d: int, **options: object) -> float:
    return simulation.risk(problem(), d, 0, **options).test


def our_step(d: int) -> None:
    _ = simulation.run(problem(), d, 0).trained


# Tables --------------------------------------------------------------------------------------


def against(d: int, repeats: int) -> None:
    curves: dict[str, Callable[[], object]] = {
        "giantsteps": partial(our_curve, d),
        "(a) plain script": partial(plain_script, d),
        "(b) scikit-learn Ridge": partial(scikit_learn, d),
    }
    steps = {"giantsteps": partial(our_step, d), "(c) PyTorch autograd": partial(autograd, d)}
    for title, contestants in (
        (f"Curve: d = N = {d}, n0 = 2 d, {len(ALPHAS)} sample sizes to 3 d, 3 penalties", curves),
        (f"Step alone: d = N = {d}, n0 = 2 d", steps),
    ):
        timings = interleaved(contestants, repeats)
        ours = timings["giantsteps"]
        rows = [
            (
                name,
                each.seconds,
                each.seconds / ours.seconds,
                each.processor_seconds,
                each.processor_seconds / ours.processor_seconds,
            )
            for name, each in timings.items()
        ]
        print_table(title, ("", "wall s", "ratio", "processor s", "ratio"), rows)


def product(d: int) -> None:
    """A matrix product of the size of the weights; its arrays are made beforehand."""
    x = MATRICES.setdefault(d, np.random.default_rng(0).standard_normal((d, d)))
    _ = x @ x


MATRICES: dict[int, np.ndarray] = {}


def achieved(sizes: list[int], repeats: int) -> None:
    rows = []
    for d in sizes:
        product(d)
        count, one = flops(d, d, 2 * d, 2 * d), 2.0 * d**3
        contestants = {"ours": partial(our_point, d), "product": partial(product, d)}
        timings = interleaved(contestants, repeats)
        rate, best = (
            [work / timings[name].seconds / 1e9, work / timings[name].processor_seconds / 1e9]
            for name, work in (("ours", count), ("product", one))
        )
        cost = simulation.run(problem(), d, 0).cost()
        rows.append(
            (
                d,
                timings["ours"].seconds,
                cost.seconds,
                rate[0],
                best[0],
                rate[0] / best[0],
                rate[1] / best[1],
            )
        )
    header = (
        "d",
        "wall s",
        "estimate s",
        "GFLOP/s",
        "product GFLOP/s",
        "share",
        "share by processor time",
    )
    print_table("One point: N = d, n0 = n = 2 d, one penalty, 10,000 test points", header, rows)
    exponent = np.polyfit(np.log(sizes), np.log([row[1] for row in rows]), 1)[0]
    print(f"\nWall time grows as d^{exponent:.2f}.")


def precision(d: int, repeats: int) -> None:
    sizes, penalties = (0.5, 0.9, 1.0, 1.1, 2.0), (1e-8, 1e-6, 1e-4, 1e-2, 1.0)
    header = ("", *(f"λ = {penalty:g}" for penalty in penalties))

    def risk(activation: str, dtype: str, seed: int) -> np.ndarray:
        asked = problem().replace({"activation": activation})
        run = simulation.run(asked, d, seed, dtype=dtype)
        return run.risk(samples=sizes, penalties=penalties).test

    for activation in ("tanh", "relu"):
        changes = [
            np.abs(risk(activation, "float32", seed) / risk(activation, "float64", seed) - 1)
            for seed in range(repeats)
        ]
        lines = np.max(changes, axis=0).tolist()
        rows = [
            (f"n = {size:g} N", *(f"{change:.0e}" for change in line))
            for size, line in zip(sizes, lines)
        ]
        title = f"float32: largest relative change of the risk over {repeats} seeds, {activation}"
        print_table(f"{title}, d = N = {d}", header, rows)
    contestants = {dtype: partial(our_point, d, dtype=dtype) for dtype in ("float64", "float32")}
    timings = interleaved(contestants, repeats)
    print_table(
        f"float32: time of one point, d = N = {d}",
        ("", "wall s", "processor s"),
        [(name, each.seconds, each.processor_seconds) for name, each in timings.items()],
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--d", type=int, default=2000, help="dimension of the comparison")
    parser.add_argument("--point", type=int, default=3000, help="largest dimension of one point")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{threads()} threads")
    for contestant in (our_curve, our_step, plain_script, scikit_learn, autograd):
        contestant(100)  # imports and first calls
    sizes = [d for d in (500, 1000, 2000) if d < arguments.point]
    achieved([*sizes, arguments.point], arguments.repeats)
    against(arguments.d, arguments.repeats)
    precision(1000, arguments.repeats)


if __name__ == "__main__":
    main()
