r"""What a reused batch can see that a fresh one cannot (theory §7).

On a sample of its own batch a neuron that has taken one step sees, with s = η̃₁A,

.. math:: h = g + s\,(y\,σ'(g)/α_0 + μ_1 v) + s\,\hat τ\,ξ .

For a teacher without a linear part, κ = E[y u] = 0, v is independent of u, and the second step
points to the teacher by E[u r ζ_A] = Σ_k η̃₁^k (…), an expansion in the movement of the neurons.
Its coefficients are sums of

.. math:: E[u\,y^{i+1}]\;E[v^l]\;E[σ^{(k+1)}(g)\,σ'(g)^i],\qquad i + l + 2j = k,

and of products of such terms for the residual r = y − E_A[A E σ(h)]. A fresh batch has i = 0 only,
and E[u y] = 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.signal import convolve2d
from scipy.special import ndtr

from giantsteps.errors import NotCovered
from giantsteps.functions import Function
from giantsteps.gaussian import coordinate_rule, gauss_rule, moments
from giantsteps.problem import Problem
from giantsteps.theory.model.teacher import teacher_rule

#: Highest order that is searched.
_HIGHEST = 6
#: Powers of the label that decide whether it is ever of use.
_POWERS = 14
#: What counts as zero, relative to the sum of the absolute terms.
_ZERO = 1e-9
_REACH = 8.5


def order_of_reuse(problem: Problem) -> int | None:
    """The order k of `theory.reuse_exponent`; None where there is none."""
    labels = _Labels.of(problem)
    if labels.sees(labels.linear[:1], [1.0]):
        return 0
    if not any(labels.sees(labels.linear[i : i + 1], [1.0], i) for i in range(_POWERS)):
        return None
    if problem.activation.derivative.breakpoints(-_REACH, _REACH).size:
        return _at_kinks(problem, labels)
    for order in range(1, _HIGHEST + 1):
        for part in _second_step(problem, labels, order):
            powers = part @ labels.step_moments(part.shape[1])  # coefficient of each y^i
            if labels.sees(labels.linear[: len(powers) - 1], powers[1:]):
                return order
    raise _not_found(f"to order {_HIGHEST}")


@dataclass(frozen=True, eq=False)
class _Labels:
    """Moments of the labels of a teacher without a linear part."""

    linear: NDArray  # (P, R): E[u y^i], i = 1 … P
    size: NDArray  # (P,): E|u||y|^i, what ``linear`` is compared with
    nodes: tuple[NDArray, NDArray, NDArray]  # u (M, R), y (M,) and weights (M,)
    spread: float  # ‖b‖, the standard deviation of v
    samples: float  # α₀

    @classmethod
    def of(cls, problem: Problem) -> _Labels:
        samples = problem.steps[0].samples if problem.steps else 1.0
        rule = teacher_rule(problem.teacher)
        clean = np.asarray(problem.teacher(rule.nodes), dtype=float)
        noise = coordinate_rule(1, nodes=24)
        y = np.add.outer(clean, math.sqrt(problem.noise_variance) * noise.nodes[:, 0]).ravel()
        u = np.repeat(rule.nodes, len(noise.weights), axis=0)
        weights = np.multiply.outer(rule.weights, noise.weights).ravel()
        powers = y ** np.arange(1, _POWERS + 1)[:, None]
        length = np.linalg.norm(u, axis=1)
        return cls(
            linear=(powers * weights) @ u,
            size=(np.abs(powers) * weights) @ length,
            nodes=(u, y, weights),
            spread=math.sqrt(float(weights @ y**2) / samples),
            samples=samples,
        )

    def sees(self, linear: NDArray, coefficients: ArrayLike, first: int = 0) -> bool:
        """Whether Σ_i c_i E[u y^i] is not zero, i from first + 1."""
        c = np.asarray(coefficients, dtype=float)
        size = float(np.abs(c) @ self.size[first : first + len(c)])
        return bool(np.linalg.norm(c @ linear) > _ZERO * size)

    def step_moments(self, count: int) -> NDArray:
        """E v^l, l = 0 … count − 1."""
        even = np.array([0.0 if l % 2 else math.prod(range(1, l, 2)) for l in range(count)])
        return even * self.spread ** np.arange(count)


def _second_step(problem: Problem, labels: _Labels, order: int) -> Iterator[NDArray]:
    """The parts of r ζ_A at an order in η̃₁, one for each power of A: coefficients of y^i v^l."""
    law = problem.init.second_layer
    values, probabilities = law.types()
    sigma = moments(problem.activation)
    scales = (
        1.0 / labels.samples,
        sigma.linear,
        sigma.derivative_variance * labels.spread**2 / 2.0,
    )

    def response(derivative: int, k: int) -> NDArray:
        return _taylor(problem.activation, derivative, k, scales)

    direct = response(1, order)
    yield np.vstack([np.zeros((1, direct.shape[1])), direct])  # y ζ
    for k in range(1, order + 1):
        moment = float(probabilities @ values ** (k + 1))
        yield -moment * convolve2d(response(0, k), response(1, order - k))


def _taylor(
    activation: Function, derivative: int, order: int, scales: tuple[float, float, float]
) -> NDArray:
    """Order ``order`` in s of E σ^(derivative)(h), as coefficients of y^i v^l."""
    out = np.zeros((order + 1, order + 1))
    for i in range(order + 1):
        for l in range(order + 1 - i):
            j, odd = divmod(order - i - l, 2)
            if not odd:
                size = scales[0] ** i * scales[1] ** l * scales[2] ** j
                size /= math.factorial(i) * math.factorial(l) * math.factorial(j)
                out[i, l] = size * echoes(activation, derivative + order, i)
    return out


@lru_cache(maxsize=1024)
def echoes(activation: Function, derivative: int, power: int) -> float:
    """E[σ^(n)(g) σ'(g)^i] for n = ``derivative`` and i = ``power``; 0 where it is rounding."""
    outer, slope = activation, activation.derivative
    for _ in range(derivative):
        outer = outer.derivative
    rule = gauss_rule(outer, slope)
    values = np.asarray(outer(rule.nodes), dtype=float) * slope(rule.nodes) ** power
    value, size = float(rule.mean(values)), float(rule.mean(np.abs(values)))
    return value if abs(value) > _ZERO * size else 0.0


def _at_kinks(problem: Problem, labels: _Labels) -> int:
    r"""Order one for an activation whose slope jumps by J at t: with ω ~ N(0, μ₁²‖b‖² + τ̂²)

    .. math:: ζ_A = μ_1 + |s|\bigl(E[σ''σ']_{smooth}\,y/α_0 + \sum J φ(t)
              \{E(q_- + ω)_+ - E(q_+ + ω)_-\}\bigr),\qquad q_± = ±_s\,y\,σ'(t±)/α_0 .
    """
    slope, sigma = problem.activation.derivative, moments(problem.activation)
    kinks = slope.breakpoints(-_REACH, _REACH)
    sides = [np.asarray(slope(kinks + h), dtype=float) for h in (-1e-9, 1e-9)]
    density = np.exp(-(kinks**2) / 2) / math.sqrt(2 * math.pi)
    rule = gauss_rule(slope)
    square = rule.mean(rule.nodes * np.asarray(slope(rule.nodes), dtype=float) ** 2)
    smooth = (square - density @ (sides[1] ** 2 - sides[0] ** 2)) / 2
    width = labels.spread * math.sqrt(sigma.linear**2 + sigma.derivative_variance)
    u, y, weights = labels.nodes
    for sign in (1.0, -1.0):
        q = [sign * np.multiply.outer(side, y) / labels.samples for side in sides]
        jump = (sides[1] - sides[0]) * density
        crossed = jump @ (_positive_part(q[0], width) - _positive_part(-q[1], width))
        response = sign * smooth * y / labels.samples + crossed
        pulled = (weights * y * response) @ u
        size = float((weights * np.abs(y * response)) @ np.linalg.norm(u, axis=1))
        if np.linalg.norm(pulled) > _ZERO * size:
            return 1
    raise _not_found("to order 1, the highest for an activation with kinks")


def _positive_part(mean: NDArray, width: float) -> NDArray:
    """E (mean + ω)₊."""
    z = mean / width
    return mean * ndtr(z) + width * np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def _not_found(where: str) -> NotCovered:
    return NotCovered(
        "the order at which a reused batch aligns",
        f"E[u | y] is not zero, but nothing points to the teacher {where}",
        "smooth activations with an even part, and simulation",
    )
