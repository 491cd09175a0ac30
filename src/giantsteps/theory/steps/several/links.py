r"""Products of batches for neurons of many types, by few functions of the second layer (§7).

A chain y ← G_ty_t has a link for each batch, and one row in it for each type. As functions of A
the y_t of a link are spanned by few: by the mean slopes E σ'(S_A·k + √c_A z) at first, and then,
from the last batch to the first, by what G_A makes of those. Functions that are small under the law
of A are left out, which makes Σ_A a covariance still.
"""

from __future__ import annotations

import numpy as np

from giantsteps.functions import Function
from giantsteps.gaussian import moments, smoothed
from giantsteps.problem import Problem
from giantsteps.theory.model.teacher import single_link, teacher_moments
from giantsteps.theory.steps.several.chain import Links, multiplies, turns
from giantsteps.theory.steps.several.trained import Trained
from giantsteps.theory.steps.several.view import sample_nodes
from giantsteps.types import FloatArray

#: Share of a linear part in Var σ* from which on sums over batches are as good as products.
_LINEAR = 0.8


def by_links(problem: Problem) -> bool:
    """Whether products over batches are needed, and types too many for rows of their own: where
    both activation and labels have an even part, steps multiply neurons along the teacher.
    """
    teacher, link = teacher_moments(problem.teacher), single_link(problem.teacher)
    even = teacher.linear**2 <= _LINEAR * (teacher.second_moment - teacher.mean**2)
    odd = moments(problem.activation).is_odd or (link is not None and moments(link).is_odd)
    return even and not odd and problem.inputs.isotropic and not multiplies(problem)


def links_of(trained: Trained, activation: Function, tolerance: float) -> Links | None:
    """Functions of A and their duals, (2, T, L), of the link that each batch makes; none where it
    leaves neurons as they are. Those below the tolerance, relative to the largest, are left out.
    """
    if len(trained.records) < 2 or not any(map(turns, trained.records)):
        return None
    root = np.sqrt(trained.probabilities)[:, None]
    points, weights = sample_nodes(trained.rank, 0)
    scale = np.broadcast_to(np.sqrt(trained.totals)[:, None], (len(root), len(points)))
    slope = smoothed(activation.derivative, trained.spikes @ points.T, scale).mean
    size = np.sqrt(trained.probabilities @ slope**2 @ weights)
    wanted = np.concatenate([slope * np.sqrt(weights), np.full_like(root, size)], axis=1)
    wanted = root * wanted
    found: list[FloatArray | None] = []
    for record in reversed(trained.records):
        if not turns(record):
            found.append(None)
            continue
        own, size = _leading(root * record.bent * np.sqrt(np.abs(record.weights)), tolerance)
        made = [wanted, *(wanted * one[:, None] for one in (own * size / root).T)]
        kept, size = _leading(np.concatenate(made, axis=1), tolerance)
        wanted = kept * size
        found.append(np.stack([kept / root, kept * root]))
    return tuple(found[::-1])


def _leading(functions: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    left, size, _ = np.linalg.svd(functions, full_matrices=False)
    kept = size > tolerance * size[0]
    return left[:, kept], size[kept]
