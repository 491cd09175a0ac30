"""Moments of a teacher's labels, for one direction or several (theory §0)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from giantsteps.functions import Function, MultiIndex, SingleIndex, Teacher
from giantsteps.gaussian import Rule, coordinate_rule, gauss_rule, moments
from giantsteps.types import FloatArray

#: Difference of two quadratures of E f*² below which both are right.
_RESOLVED = 1e-7


@dataclass(frozen=True)
class TeacherMoments:
    """Of f* = g(u), u ~ N(0, I_R)."""

    mean: float  # E f*
    linear: float  # μ₁* for one direction, |E[u f*]| for several: the length of the linear part
    second_moment: float  # E f*²

    @property
    def is_centered(self) -> bool:
        """|E f*| ≤ 1e-10 (E f*²)^½."""
        return abs(self.mean) <= 1e-10 * self.second_moment**0.5

    @property
    def residual_variance(self) -> float:
        """E f*² without constant and linear part."""
        return max(self.second_moment - self.mean**2 - self.linear**2, 0.0)


def single_link(teacher: Teacher) -> Function | None:
    """σ* where the teacher depends on one direction."""
    return teacher.link if isinstance(teacher, SingleIndex) else None


def teacher_rule(teacher: Teacher) -> Rule:
    """A quadrature of the teacher's coordinates u, nodes (M, R), split at the kinks of a link."""
    if isinstance(teacher, SingleIndex):
        rule = gauss_rule(teacher.link, width=3.5).pruned(1e-19)
        return Rule(rule.nodes[:, None], rule.weights)
    assert isinstance(teacher, MultiIndex)
    return teacher.rule


@lru_cache(maxsize=256)
def is_resolved(teacher: Teacher) -> bool:
    """Whether Gauss–Hermite nodes on the teacher's directions resolve it; a link has its own."""
    if isinstance(teacher, SingleIndex):
        return True
    powers = []
    for rule in (coordinate_rule(teacher.rank), teacher_rule(teacher)):
        powers.append(float(rule.mean(np.asarray(teacher(rule.nodes), dtype=float) ** 2)))
    return abs(powers[0] - powers[1]) < _RESOLVED * powers[1]


@lru_cache(maxsize=256)
def teacher_moments(teacher: Teacher) -> TeacherMoments:
    """The moments of a teacher (theory §0)."""
    if isinstance(teacher, SingleIndex):
        link = moments(teacher.link)
        return TeacherMoments(link.mean, link.linear, link.second_moment)
    rule = teacher_rule(teacher)
    values = np.asarray(teacher(rule.nodes), dtype=float)
    return TeacherMoments(
        mean=float(rule.mean(values)),
        linear=float(np.linalg.norm(rule.mean(rule.nodes.T * values))),
        second_moment=float(rule.mean(values**2)),
    )


def linear_frame(teacher: Teacher) -> FloatArray:
    """An orthonormal basis of the teacher's directions, rows; the first is that of E[u f*]."""
    rule = teacher_rule(teacher)
    values = np.asarray(teacher(rule.nodes), dtype=float)
    linear = rule.mean(rule.nodes.T * values)
    size = float(np.linalg.norm(linear))
    first = linear / size if size > 1e-12 else np.eye(teacher.rank)[0]
    basis = np.linalg.qr(np.concatenate([first[:, None], np.eye(teacher.rank)], axis=1))[0].T
    return np.asarray(basis * np.where(basis[0] @ first < 0, -1.0, 1.0))


def linear_cosines(teacher: Teacher, overlap: float) -> FloatArray:
    """Cosines (1,) or (R, 1) of a vector whose part along the teacher is along E[u f*]."""
    if isinstance(teacher, SingleIndex):
        return np.array([overlap])
    return overlap * linear_frame(teacher)[:1].T
