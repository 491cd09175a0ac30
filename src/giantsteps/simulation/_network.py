"""The finite network and its data, drawn from their streams (theory §0)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.simulation._arrays import Array, Arrays
from giantsteps.simulation._streams import BLOCK, Role, Streams

if TYPE_CHECKING:
    from giantsteps.problem import Problem, Sizes

__all__ = ["Network"]


@dataclass(frozen=True)
class Network:
    r"""What a seed draws for a problem at dimension d: the network at its start, and the samples.

    .. math:: f(x) = N^{-1/2} a^\top σ(W^\top x), \qquad y = σ_*(⟨x, β_*⟩) + ε

    ======  =======================  =====================================================
    symbol  attribute or method      shape and law
    ======  =======================  =====================================================
    W₀      weights()                (d, N): N(0, 1/d), or columns uniform on the sphere
    a       second_layer             (N,): A_j/√N
    β*      teacher                  (d, rank): orthonormal columns, uniform
    X, y    step_batch(step, …)      rows of the batch of a step, with noise of variance Δ
    X̃, ỹ   readout_batch(…)         rows of the readout's samples, likewise
    x, f*   test_batch(…)            fresh points with the noiseless teacher
    ======  =======================  =====================================================

    Neurons are blocks of rows of Wᵀ, so networks of one seed and d are nested in their width.
    """

    problem: Problem
    sizes: Sizes
    streams: Streams

    @property
    def arrays(self) -> Arrays:
        """The arrays in use."""
        return self.streams.arrays

    def weights(self) -> Array:
        """W₀, a fresh copy that the caller may overwrite."""
        d, neurons = self.sizes.d, self.sizes.neurons
        rows = self.streams.normal(Role.WEIGHTS, 0, 0, neurons, d)
        if self.problem.init.weights == "sphere":
            rows /= self.arrays.xp.linalg.vector_norm(rows, axis=1, keepdims=True)
        else:
            rows /= math.sqrt(d)
        return self.arrays.xp.matrix_transpose(rows)

    @cached_property
    def second_layer(self) -> Array:
        """a, with a_j = A_j/√N."""
        law, neurons = self.problem.init.second_layer, self.sizes.neurons
        blocks = [
            law.sample(self.streams.generator(Role.SECOND_LAYER, 0, block), BLOCK)
            for block in range(-(-neurons // BLOCK))
        ]
        values = np.concatenate(blocks)[:neurons] / math.sqrt(neurons)
        return self.arrays.asarray(values)

    @cached_property
    def teacher(self) -> Array:
        """β*, one column for each direction of the teacher."""
        rank, d = self.problem.teacher.rank, self.sizes.d
        drawn = self.arrays.wide(self.streams.normal(Role.TEACHER, 0, 0, rank, d))
        columns = self.arrays.xp.linalg.qr(self.arrays.xp.matrix_transpose(drawn)).Q
        rows = self.arrays.xp.matrix_transpose(columns)
        # QR leaves the sign of each column open; that of the drawn row decides.
        signs = self.arrays.xp.sign(self.arrays.xp.vecdot(rows, drawn))
        return self.arrays.narrow(columns * signs)

    def batch_of(self, step: int) -> int:
        """The step whose batch a step uses: its own, or an earlier one that it reuses."""
        while self.problem.steps[step].batch == "previous":
            step -= 1
        return step

    def step_batch(self, step: int, start: int, stop: int) -> tuple[Array, Array]:
        """Rows of the batch of a step."""
        return self._labelled(Role.STEP_INPUTS, Role.STEP_NOISE, self.batch_of(step), start, stop)

    def readout_batch(self, start: int, stop: int) -> tuple[Array, Array]:
        """Rows of the samples of the readout."""
        return self._labelled(Role.READOUT_INPUTS, Role.READOUT_NOISE, 0, start, stop)

    def test_batch(self, start: int, stop: int) -> tuple[Array, Array, Array]:
        """Test points, the teacher's coordinates of them (rows, rank), and f*."""
        inputs = self.streams.normal(Role.TEST_INPUTS, 0, start, stop, self.sizes.d)
        coordinates = self.arrays.wide(inputs @ self.teacher)
        return inputs, coordinates, self.problem.teacher(coordinates)

    def _labelled(
        self, inputs: Role, noise: Role, step: int, start: int, stop: int
    ) -> tuple[Array, Array]:
        """Inputs in the run's precision and labels in float64."""
        x = self.streams.normal(inputs, step, start, stop, self.sizes.d)
        labels = self.problem.teacher(self.arrays.wide(x @ self.teacher))
        if self.problem.noise_variance > 0:
            draws = self.streams.normal(noise, step, start, stop, 1)[:, 0]
            labels = labels + math.sqrt(self.problem.noise_variance) * self.arrays.wide(draws)
        return x, labels
