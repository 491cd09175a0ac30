"""The error split into what all networks share and what differs between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import Leaf


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BiasVariance(Answer):
    r"""Bias and variance over everything that a seed draws except the teacher.

    .. math:: R = E_x(E\hat f - f^*)^2 + E_x \operatorname{Var}\hat f

    ========  ============  ==================================================================
    symbol    attribute     meaning
    ========  ============  ==================================================================
    R         ``test``      mean test error over the seeds, the sum of the two
    bias²     ``bias``      error of the average network, unbiased (so it may dip below zero)
    variance  ``variance``  mean spread of the networks around it, unbiased
    ========  ============  ==================================================================

    Attributes
    ----------
    test_error, bias_error, variance_error : float or ndarray
        Standard errors of the three over the seeds (jackknife).
    seeds : int
        Number of networks.

    References
    ----------
    theory §0.
    """

    test: Leaf
    bias: Leaf
    variance: Leaf
    test_error: Leaf
    bias_error: Leaf
    variance_error: Leaf
    seeds: int

    @classmethod
    def _stack_fields(cls, shape: tuple[int, ...], cells: list[Any]) -> dict[str, Any]:
        return super()._stack_fields(shape, cells) | {"seeds": cells[0].seeds}
