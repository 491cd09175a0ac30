"""Versions of the answers: one integer a question, apart for theory and for simulation.

A number is raised when the values of that question change, be it by a corrected equation or by
another order of random numbers. Stored results carry it in their addresses, so that a sweep
computes again what an old version answered. The golden values of the tests guard it: a value
that moves without its version fails.
"""

from __future__ import annotations

__all__ = ["SIMULATION", "THEORY", "version"]

THEORY = {
    "bounds": 1,
    "features": 1,
    "gradient": 2,
    "kernel": 1,
    "learned_function": 1,
    "risk": 1,
    "weights": 1,
}
SIMULATION = {
    "features": 2,
    "gradient": 2,
    "kernel": 2,
    "learned_function": 2,
    "movement": 1,
    "risk": 2,
    "trajectory": 1,
    "weights": 2,
}


def version(source: str, question: str) -> int:
    """The version of a question, by where the answer comes from (see ``answers.Source``)."""
    return (SIMULATION if source == "simulation" else THEORY)[question]
