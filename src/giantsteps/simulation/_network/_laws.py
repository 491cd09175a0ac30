"""Laws of the entries of z in x = Σ^{1/2}z: Gaussian, or another one, to check universality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from giantsteps.errors import InvalidProblem

#: (generator, rows, d) ↦ an array of shape (rows, d). None: Gaussian, from the normal streams.
Law: TypeAlias = Callable[[np.random.Generator, int, int], Any] | None


def rademacher(generator: np.random.Generator, rows: int, d: int) -> np.ndarray:
    """Independent signs, ±1 with probability ½."""
    return 2.0 * generator.integers(0, 2, (rows, d), dtype=np.int8) - 1.0


_LAWS: dict[str, Law] = {"gaussian": None, "rademacher": rademacher}


def as_law(inputs: object) -> Law:
    """The law that ``"gaussian"``, ``"rademacher"`` or a callable (generator, rows, d) means."""
    if isinstance(inputs, str) and inputs in _LAWS:
        return _LAWS[inputs]
    if callable(inputs):
        return inputs
    allowed = f"one of {', '.join(map(repr, _LAWS))}, or a callable (generator, rows, d)"
    raise InvalidProblem("inputs", inputs, allowed)


def draw_block(law: Law, generator: np.random.Generator, rows: int, d: int) -> np.ndarray:
    """Rows of a law, checked."""
    assert law is not None
    found = np.asarray(law(generator, rows, d), dtype=float)
    if found.shape != (rows, d) or not np.isfinite(found).all():
        problem = f"of shape {found.shape}" if found.shape != (rows, d) else "that are not finite"
        allowed = f"a callable that returns finite numbers of shape {(rows, d)}: it returned some "
        raise InvalidProblem("inputs", law, allowed + problem)
    return found
