r"""The equivalent model of a teacher that depends on several directions (theory §5, §7).

With T the cosines of the R teacher directions with r spike directions, u = T k + ρ where ρ has the
covariance I − TTᵀ = Σ λ_i e_i e_iᵀ. All but one of the e_i become coordinates of the model on which
no neuron has a spike; the last is what the spikes leave of the teacher, as for one direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.functions import Function
from giantsteps.gaussian import coordinate_rule
from giantsteps.problem import Problem
from giantsteps.theory.model.classification import jumps_by_scan
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.functions_of_spike import Wanted
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.steps.several.two import field_of, leading_modes
from giantsteps.theory.steps.sized import at_size
from giantsteps.types import FloatArray

#: Coordinates that a quadrature can afford.
_COORDINATES = 3
_NODES = 40


@dataclass(frozen=True, eq=False, kw_only=True)
class SeveralDirections(SpikedFeatures):
    r"""Spiked random features whose teacher has R directions: u = Γk + g z.

    ======  ============  ========  =====================================================
    symbol  argument      shape     meaning
    ======  ============  ========  =====================================================
    Γ       directions    (R, r)    of the teacher along the coordinates, spikes or not
    g       last          (R,)      and along the direction z that is left
    ======  ============  ========  =====================================================

    ``overlap`` plays no part and is zero. Γ Γᵀ + g gᵀ = I.
    """

    directions: FloatArray
    last: FloatArray

    def _validate_teacher(self) -> None:
        gram = self.directions @ self.directions.T + np.outer(self.last, self.last)
        if gram.shape != (self.teacher.rank,) * 2 or np.abs(gram - np.eye(len(gram))).max() > 1e-6:
            raise InvalidProblem("directions", self.directions, "orthonormal with `last`")

    @property
    def link(self) -> Function:
        raise NotCovered(
            "this answer for a teacher of several directions",
            "it is about one direction",
            "risk and weights",
        )

    def labels(self, points: FloatArray, z: FloatArray) -> FloatArray:
        u = (points @ self.directions.T)[:, None, :] + z[:, :, None] * self.last
        return np.asarray(self.teacher(u), dtype=float)

    def label_jumps(self, points: FloatArray) -> FloatArray:
        return jumps_by_scan(lambda z: self.labels(points, z), len(points))

    def directions_of_overlap(self) -> dict[str, FloatArray]:
        """The teacher's directions, (R, r + 1), whose squared cosines add up, each of them, and the
        gradient.
        """
        teacher = np.concatenate([self.directions, self.last[:, None]], axis=1)
        each = {f"x{number}": direction for number, direction in enumerate(teacher)}
        return {"teacher": teacher, "gradient": np.eye(1, self.rank + 1)[0], **each}

    def _wanted(self, points: FloatArray) -> Wanted:
        rule = coordinate_rule(1, nodes=_NODES)
        u = (points @ self.directions.T)[:, None, :] + rule.nodes * self.last
        values = np.asarray(self.teacher(u), dtype=float)
        z = rule.nodes[:, 0]
        return Wanted(
            rule.mean(values),
            rule.mean(values * z),
            rule.mean(values * (z * z - 1.0)) / 2,
            rule.mean(values**2),
        )


def several_directions(problem: Problem, d: int | None = None, **others: Any) -> SeveralDirections:
    """The equivalent model after at most two steps, for a teacher of two or three directions.

    The bulk is isotropic. Of the spike directions as many are kept as leave no more than three
    coordinates.

    Parameters
    ----------
    problem : Problem
    d : int, optional
        Input dimension; without it all exponents must be 1/2.
    """
    field = field_of(problem, d)
    _, neurons, shared = at_size(problem, d, **others)
    rank = problem.teacher.rank
    modes = leading_modes(field.modes, neurons, _COORDINATES - (rank - 1))
    seen = modes.teacher  # (R, r)
    values, vectors = np.linalg.eigh(np.eye(rank) - seen @ seen.T)
    rest = vectors * np.sqrt(np.maximum(values, 0.0))  # columns, the last the largest
    unmoved = np.zeros((len(field.values), rank - 1))
    spikes = np.concatenate([modes.spikes, unmoved], axis=1)
    return SeveralDirections(
        probabilities=field.probabilities,
        spikes=spikes,
        overlap=np.zeros(spikes.shape[1]),
        directions=np.concatenate([seen, rest[:, :-1]], axis=1),
        last=rest[:, -1],
        bulk=NeuronCovariance.isotropic(field.variances, spikes.shape[1]),
        second_layer=field.values,
        **shared,
    )
