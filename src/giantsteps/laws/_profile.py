"""Singular values of a random matrix whose rows or columns have different variances."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InvalidProblem
from ._empirical import EmpiricalLaw
from ._sample_covariance import SampleCovariance
from ._singular_values import SingularValues


def variance_profile(
    variances: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    width: float,
    along: Literal["columns", "rows"] = "columns",
) -> SingularValues:
    """Law of the min(d, N) singular values of W (d × N) with variances c/d.

    Columns: W = Z C^{1/2}/√d with c_j the variance of column (neuron) j; W Wᵀ is the sample
    covariance of population βc at ratio 1/β. Rows: W = C^{1/2} Z/√d; Wᵀ W is that of population
    c at ratio β. Equal variances give the Marchenko–Pastur law.

    ======  =============  =================================================
    symbol  argument       meaning
    ======  =============  =================================================
    c       ``variances``  values, not negative, not all zero
    π       ``weights``    the fraction of columns or rows of each; equal
    β       ``width``      N/d
    ======  =============  =================================================

    ``along`` says whether columns or rows have the variances.

    References
    ----------
    theory §2.

    Examples
    --------
    A step has doubled the variance of half of the neurons:

    >>> law = variance_profile([1.0, 2.0], width=1.5)
    >>> round(law.edge, 4), round(variance_profile([1.0], width=1.5).edge, 4)  # 1 + √1.5
    (2.8257, 2.2247)
    >>> round(float(law.expectation(lambda x: x**2)), 6)  # β E c
    2.25
    """
    if not 0 < width < np.inf:
        raise InvalidProblem("width", width, "a positive finite number (N/d)")
    if along == "columns":
        population = EmpiricalLaw(width * np.asarray(variances, dtype=float), weights)
        gram = SampleCovariance(population, 1.0 / width)
    elif along == "rows":
        gram = SampleCovariance(EmpiricalLaw(variances, weights), width)
    else:
        raise InvalidProblem("along", along, "'columns' or 'rows'")
    return SingularValues(gram, kept=min(1.0, 1.0 / gram.ratio))
