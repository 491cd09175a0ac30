"""Speed of the equivalent model against a plain implementation of the same equations.

Run ``python benchmarks/equivalent.py``: both in one process. The plain one is what one would write
first: one type, isotropic bulk, every integral by scalar ``scipy.integrate.quad`` at its default
tolerance, damping ½ until nothing moves by 1e-10, nothing cached.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

import numpy as np
from engine_common import print_table
from scipy.integrate import quad

import giantsteps as gs
from giantsteps import theory

TOLERANCE = 1e-10
REPEATS = 7


def problem(law: str = "constant", **changes: object) -> gs.Problem:
    """tanh → sin, η̃ = 1."""
    base = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.05,
        width=1.5,
        steps=[gs.Step(samples=2.0, rate=1.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.1),
        init=gs.Init(second_layer=law),
    )
    return base.replace(changes)


class Plain:
    """Theory §5c for one type, an isotropic bulk and p = ∞, integral by integral."""

    def __init__(self, given: gs.Problem) -> None:
        model = theory.equivalent(given, simplify="isotropic bulk")
        readout = given.require_readout()
        self.c = float(model.bulk.totals[0])
        self.s = float(model.spikes[0, 0])
        self.gamma = float(model.overlap[0])
        self.noise = given.noise_variance
        self.width = given.width
        self.ratio = readout.samples / given.width
        self.penalty = readout.penalty * self.ratio

    @staticmethod
    def mean(f: Callable[[float], float]) -> float:
        """E f(z), z ~ N(0, 1)."""
        return quad(lambda z: f(z) * math.exp(-z * z / 2), -8.5, 8.5)[0] / math.sqrt(2 * math.pi)

    def mu0(self, k: float) -> float:
        return self.mean(lambda z: math.tanh(self.s * k + math.sqrt(self.c) * z))

    def mu1(self, k: float) -> float:
        root = math.sqrt(self.c)
        return self.mean(lambda z: z * math.tanh(self.s * k + root * z)) / root

    def mu2(self, k: float) -> float:
        square = self.mean(lambda z: math.tanh(self.s * k + math.sqrt(self.c) * z) ** 2)
        return square - self.mu0(k) ** 2 - self.c * self.mu1(k) ** 2

    def teacher(self, k: float) -> tuple[float, float, float]:
        rest = math.sqrt(1 - self.gamma**2)
        h = self.mean(lambda z: math.sin(self.gamma * k + rest * z))
        h1 = self.mean(lambda z: z * math.sin(self.gamma * k + rest * z))
        hh = self.mean(lambda z: math.sin(self.gamma * k + rest * z) ** 2)
        return h, h1, hh + self.noise

    def risk(self) -> float:
        """Test error."""
        ratio, beta, c = self.ratio, self.width, self.c
        v1 = v2 = 1.0
        moved = 1.0
        while moved > TOLERANCE:

            def omega(k: float, v1: float = v1, v2: float = v2) -> float:
                return 1 / (1 + self.mu1(k) ** 2 * v1 + self.mu2(k) * v2)

            v1_hat = ratio * self.mean(lambda k: omega(k) * self.mu1(k) ** 2)
            v2_hat = ratio * self.mean(lambda k: omega(k) * self.mu2(k))
            y = 1 / (v1_hat + 1 / (beta * v2 * c))
            new = y / beta, 1 / (self.penalty + v2_hat + c * (v1_hat - v1_hat**2 * y))
            moved = max(abs(new[0] - v1), abs(new[1] - v2))
            v1, v2 = (v1 + new[0]) / 2, (v2 + new[1]) / 2

        psi_hat = ratio * self.mean(lambda k: omega(k) * self.teacher(k)[1] * self.mu1(k))
        psi = beta * v1 * psi_hat
        # (m, χ) by their 2 × 2 normal equations; m has no penalty.
        a = ratio * self.mean(lambda k: omega(k) * self.mu0(k) ** 2)
        b = ratio * self.mean(lambda k: omega(k) * self.mu0(k) * k * self.mu1(k))
        d = ratio * self.mean(lambda k: omega(k) * (k * self.mu1(k)) ** 2) + 1 / (beta * c * v2)
        right = [
            ratio * self.mean(lambda k: omega(k) * self.mu0(k) * self.teacher(k)[0]),
            ratio * self.mean(lambda k: omega(k) * k * self.mu1(k) * self.teacher(k)[0]),
        ]
        m, chi = np.linalg.solve([[a, b], [b, d]], right)
        chi_hat = chi / (beta * c * v2)

        q = q2 = 0.0
        moved = 1.0
        y = 1 / (v1_hat + 1 / (beta * v2 * c))
        g, ell = v1_hat - v1_hat**2 * y, 1 - v1_hat * y
        while moved > TOLERANCE:

            def error(k: float, q: float = q, q2: float = q2) -> float:
                h, h1, hh = self.teacher(k)
                fit = m * self.mu0(k) + chi * k * self.mu1(k)
                known = hh - 2 * h * fit + fit**2 - 2 * h1 * self.mu1(k) * psi
                return known + self.mu1(k) ** 2 * q + self.mu2(k) * q2

            q_hat = ratio * self.mean(lambda k: omega(k) ** 2 * error(k) * self.mu1(k) ** 2)
            q2_hat = ratio * self.mean(lambda k: omega(k) ** 2 * error(k) * self.mu2(k))
            m1 = q_hat + beta * psi_hat**2
            m2 = q2_hat + beta * c * chi_hat**2
            delta = -(v2**2) * (m2 + c * ell**2 * m1) / (1 - v2**2 * c * g**2 * beta * c)
            new = y**2 * (m1 - beta * c * delta / (beta * v2 * c) ** 2) / beta, -delta
            moved = max(abs(new[0] - q), abs(new[1] - q2))
            q, q2 = (q + new[0]) / 2, (q2 + new[1]) / 2
        return self.mean(error) - self.noise


def main() -> None:
    """Print a table: medians of one process, the plain point once."""
    rates = iter(np.linspace(1.0, 1.1, 1000))

    def fresh(law: str) -> object:
        """A point whose model has not been seen: nothing but functions and labels is cached."""
        return theory.risk(problem(law, **{"steps.0.rate": float(next(rates))})).test

    def once(f: Callable[[], object]) -> float:
        start = time.perf_counter()
        f()
        return time.perf_counter() - start

    fresh("constant"), fresh("gaussian")
    times: dict[str, list[float]] = {"constant": [], "gaussian": []}
    for _ in range(REPEATS):
        for law, found in times.items():
            found.append(once(lambda law=law: fresh(law)))
    plain = Plain(problem())
    slow = once(lambda: times.setdefault("error", [plain.risk()]))
    simple = theory.equivalent(problem(), simplify="isotropic bulk").risk().test
    point = statistics.median(times["constant"])
    rows = [
        ("plain, isotropic bulk, one point", 1e3 * slow, slow / point),
        ("constant second layer, one point", 1e3 * point, 1.0),
        ("gaussian second layer, one point", 1e3 * statistics.median(times["gaussian"]),
         statistics.median(times["gaussian"]) / point),
    ]  # fmt: skip
    print_table("Test error in the limit, tanh and sin", ("", "ms", "ratio"), rows)
    print(f"\nplain and simplified model differ by {abs(times['error'][0] - float(simple)):.1e}")


if __name__ == "__main__":
    main()
