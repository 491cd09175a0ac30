"""How many outliers the steps bring to the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutlierCount(Answer):
    """The number of outliers of W that the exponents of the steps allow.

    It counts the terms of the weights' movement, one for each power A^p of the second layer in the
    right vectors, whose size N^e does not vanish: e ≥ 0. Those with e > 0 diverge and are outliers
    of every large network. Those with e = 0, on a boundary line, stay of order one, and are
    outliers if they are strong enough.

    Attributes
    ----------
    count : float or ndarray
        The number of all of them; ``inf`` where every power contributes.
    marginal : float or ndarray
        The number of those of order one.
    sizes : mapping of str to float or ndarray
        Exponent of the size of each, by its right vector ``"A"``, ``"A^2"``, …; the first ten.

    References
    ----------
    theory §7; moniri2026.
    """

    count: Leaf
    marginal: Leaf
    sizes: Mapping[str, Leaf] = field(default_factory=dict)

    def __int__(self) -> int:
        return int(self.count)
