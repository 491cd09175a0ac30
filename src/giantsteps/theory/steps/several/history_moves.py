r"""Neurons after each of several steps, some on batches used again, and their changes (theory §7).

Weights at a time lean along teacher and directions by F_A^s and have a part of their own with the
squared norm K_A^{ss}; their change by a step leans by F_A^{s+1} − F_A^s, and

.. math:: c_A = K_A^{s+1,s+1} - 2K_A^{s+1,s} + K_A^{ss} .
"""

from __future__ import annotations

import numpy as np

from giantsteps.functions import SingleIndex
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.solver.work import Work
from giantsteps.theory.steps.one import movement
from giantsteps.theory.steps.several.directions import DIRECTIONS, WEAK, kept_directions
from giantsteps.theory.steps.several.history_law import follow, initial_output
from giantsteps.theory.steps.several.history_model import (
    INSTEAD,
    MOST,
    added,
    batches_of,
    beside_spikes,
    neurons_of,
    sums_over_batches,
    views_of,
)
from giantsteps.theory.steps.several.history_view import Course, View, sample_nodes
from giantsteps.types import FloatArray

#: Resolution of the recursion and of the samples of the bulk, and of the functions of a batch.
_LEVEL, _TOLERANCE = 3, 1e-2


def moves_of(problem: Problem, neurons: float) -> tuple[Course, list[View]]:
    """The course of all steps, and their batches after the last."""
    rates = tuple(movement(problem, s, neurons) for s in range(len(problem.steps)))
    batches, samples = batches_of(problem)
    assert isinstance(problem.teacher, SingleIndex)
    link, noise = problem.teacher.link, problem.noise_variance
    own = neurons_of(problem, rates, Work("movement on a batch that is used again", INSTEAD, MOST))
    course = follow(own, link, noise, batches, samples, rates, _LEVEL)
    nodes = sample_nodes(link, noise, course.sizes_seen, initial_output(own), _LEVEL)
    return course, views_of(course, nodes)


def leans_at(course: Course, time: int) -> FloatArray:
    """Leans at a time along teacher and all directions, (T, 1 + V)."""
    lean, size = course.leans[time], course.leans[-1].shape[1]
    return np.pad(lean, ((0, 0), (0, size - lean.shape[1])))


def law_at(
    views: list[View], time: int, since: int | None = None
) -> tuple[FloatArray, NeuronCovariance]:
    """Leans along spikes, and the covariance beside them, at a time or of the change since."""
    course = views[0].course
    lean, own = leans_at(course, time), course.covariance[:, time, time]
    if since is not None:
        lean = lean - leans_at(course, since)
        own = own - 2 * course.covariance[:, time, since] + course.covariance[:, since, since]
    if not lean.any():
        return np.zeros((len(lean), 1)), NeuronCovariance.isotropic(np.maximum(own, 0.0), 1)
    basis, _, _ = kept_directions(
        lean, course.neurons.probabilities, np.eye(1, lean.shape[1]), WEAK
    )
    leans = lean @ basis
    parts = [added(view, time, since) for view in views]
    none = [np.zeros((0, len(view.samples.weights))) for view in views]
    law = basis, own + beside_spikes(lean, leans), _TOLERANCE, none
    return leans[:, :DIRECTIONS], sums_over_batches(views, parts, *law)[0]
