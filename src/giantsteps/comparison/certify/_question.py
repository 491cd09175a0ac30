"""What a certificate asks: one number of the theory, and the same number of a simulated network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps import simulation, theory
from giantsteps.comparison._quantities import Quantity
from giantsteps.problem import Problem

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True)
class Question:
    """A number that theory predicts and a network has.

    Attributes
    ----------
    predict : callable
        (problem, d) → the answer of the theory.
    measure : callable
        (problem, d, seed) → that of a simulated network.
    equation : str
        Function of ``theory`` that is asked.
    read : callable, optional
        (answer, quantity) → the number; by the path of the quantity unless given.
    limit : bool
        Whether the theory is asked for its limit, with the ratios of the size.
    paired : bool
        Whether the theory's answer depends on the network: what is measured is then the ratio of
        the two, and the prediction one.
    """

    predict: Callable[[Problem, int], Any]
    measure: Callable[[Problem, int, int], Any]
    equation: str
    read: Callable[[Any, str], float] | None = None
    limit: bool = False
    paired: bool = False

    def number(self, answer: Any, quantity: str) -> float:
        """The number asked for."""
        if self.read is not None:
            return self.read(answer, quantity)
        return float(Quantity(quantity).read(answer))


def _same(name: str, *, limit: bool = False, **options: Any) -> Question:
    """A function that theory and simulation both have, at the size or in the limit."""

    def predict(problem: Problem, d: int) -> Any:
        ask = getattr(theory, name)
        return ask(problem.realised(d)) if limit else ask(problem, d=d)

    def measure(problem: Problem, d: int, seed: int) -> Any:
        exact = name == "risk" and problem.teacher.rank == 1
        chosen = {"test_samples": "exact"} if exact else {}
        return getattr(simulation, name)(problem, d, seed, **options, **chosen)

    return Question(predict, measure, name, limit=limit)


_RISK: dict[str, Any] = {"degrees": 1}
_SPECTRUM: dict[str, Any] = {"top": 1, "bulk": False}
#: Where learned functions are compared.
_POINT = [1.0]


def _function_of_theory(problem: Problem, d: int) -> Any:
    return theory.learned_function(problem, d, along="teacher", x=_POINT)


def _function_of_network(problem: Problem, d: int, seed: int) -> Any:
    return simulation.run(problem, d, seed).learned_function("teacher", x=_POINT)


def _first(answer: Any, quantity: str) -> float:
    return float(getattr(answer, quantity)[0])


def _loss_of_theory(problem: Problem, d: int) -> Any:
    return theory.training_loss(problem.realised(d))


def _loss_of_network(problem: Problem, d: int, seed: int) -> Mapping[str, float]:
    """min n⁻¹‖y − Φa‖² + (λ/N)‖a‖² = n⁻¹ y·(y − Φâ)."""
    run = simulation.run(problem, d, seed)
    phi, y = run.arrays["Phi"], run.arrays["y"]
    samples, neurons = phi.shape
    gram = phi.T @ phi
    gram[np.diag_indices(neurons)] += problem.require_readout().penalty * samples / neurons
    fitted = phi @ np.linalg.solve(gram, phi.T @ y)
    return {"loss": float(y @ (y - fitted)) / samples}


def _entry(answer: Any, quantity: str) -> float:
    return float(answer[quantity] if isinstance(answer, Mapping) else getattr(answer, quantity))


def _one(problem: Problem, d: int) -> Mapping[str, float]:
    return {"test": 1.0, "train": 1.0}


def _given_weights(problem: Problem, d: int, seed: int) -> Mapping[str, float]:
    """Errors of a network over those that theory predicts for its very weights."""
    run = simulation.run(problem, d, seed, test_samples="exact")
    weights = run.arrays[f"W{len(problem.steps)}"]
    expected = theory.risk_of_weights(weights, run.arrays["beta"], problem)
    found = run.risk(degrees=1)
    return {
        name: float(getattr(found, name) / getattr(expected, name)) for name in _one(problem, d)
    }


#: By name.
QUESTIONS: dict[str, Question] = {
    "risk": _same("risk", **_RISK),
    "risk in the limit": _same("risk", limit=True, **_RISK),
    "weights": _same("weights", **_SPECTRUM),
    "weights in the limit": _same("weights", limit=True, **_SPECTRUM),
    "kernel": _same("kernel", **_SPECTRUM),
    "features": _same("features", **_SPECTRUM),
    "gradient": _same("gradient"),
    "degrees of freedom": _same("degrees_of_freedom"),
    "learned function": Question(
        _function_of_theory, _function_of_network, "learned_function", _first
    ),
    "training loss": Question(
        _loss_of_theory, _loss_of_network, "training_loss", _entry, limit=True
    ),
    "given weights": Question(_one, _given_weights, "risk_of_weights", _entry, paired=True),
}
