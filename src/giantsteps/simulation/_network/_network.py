"""The finite network, drawn from its streams, and its samples (theory §0)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from giantsteps.simulation._engine._arrays import Array, Arrays
from giantsteps.simulation._network._samples import Samples
from giantsteps.simulation._network._streams import Role, Streams

if TYPE_CHECKING:
    from giantsteps.problem import Problem, Sizes


@dataclass(frozen=True)
class Network:
    r"""What a seed draws for a problem at dimension d: the network at its start, and the samples.

    .. math:: f(x) = N^{-1/2} a^\top σ(W^\top x), \qquad y = σ_*(⟨x, β_*⟩) + ε

    ======  =======================  =====================================================
    symbol  attribute or method      shape and law
    ======  =======================  =====================================================
    W₀      weights()                (d, N): N(0, 1/d), or columns uniform on the sphere
    a       second_layer             (N,): A_j/√N
    β*      teacher                  (d, rank): orthonormal columns in the metric of Σ
    X, y    step_batch(step, …)      rows of the batch of a step, with noise of variance Δ
    X̃, ỹ   readout_batch(…)         rows of the readout's samples, likewise
    x, f*   test_batch(…)            fresh points with the noiseless teacher
    ======  =======================  =====================================================

    Neurons are rows of Wᵀ, so networks of one seed and d are nested in their width. With several
    seeds every shape has one more axis in front.
    """

    problem: Problem
    sizes: Sizes
    streams: Streams
    samples: Samples

    @property
    def arrays(self) -> Arrays:
        return self.streams.arrays

    def weights(self) -> Array:
        """W₀, a fresh copy that the caller may overwrite."""
        d, neurons = self.sizes.d, self.sizes.neurons
        rows = self.streams.normal(Role.WEIGHTS, 0, 0, neurons, d)
        if self.problem.init.weights == "sphere":
            rows /= self.arrays.xp.linalg.vector_norm(rows, axis=-1, keepdims=True)
        else:
            rows /= math.sqrt(d)
        return self.arrays.xp.matrix_transpose(rows)

    @cached_property
    def second_layer(self) -> Array:
        """a, with a_j = A_j/√N."""
        law, neurons = self.problem.init.second_layer, self.sizes.neurons
        drawn = self.streams.normal(Role.SECOND_LAYER, 0, 0, neurons, 1)[..., 0]
        return law.of_normal(drawn) / math.sqrt(neurons)

    @property
    def teacher(self) -> Array | None:
        """β*, one column for each direction of the teacher; None with data of one's own."""
        return self.samples.teacher

    def batch_of(self, step: int) -> int:
        """The step whose batch a step uses: its own, or an earlier one that it reuses."""
        while self.problem.steps[step].batch == "previous":
            step -= 1
        return step

    def step_batch(self, step: int, start: int, stop: int) -> tuple[Array, Array]:
        """Rows of the batch of a step."""
        return self.samples.step(self.batch_of(step), start, stop)

    def require(self, samples: int) -> None:
        """Raise unless there are so many samples for the readout beside those of the steps."""
        self.samples.require(0 if self._reuses else samples)

    @property
    def _reuses(self) -> bool:
        """Whether the readout uses the batch of the last step."""
        return self.problem.readout is not None and self.problem.readout.batch == "previous"

    def readout_batch(self, start: int, stop: int) -> tuple[Array, Array]:
        """Rows of the samples of the readout: fresh ones, or the batch of the last step."""
        if self._reuses:
            return self.step_batch(len(self.problem.steps) - 1, start, stop)
        return self.samples.readout(start, stop)

    def test_batch(self, start: int, stop: int) -> tuple[Array, Array | None, Array]:
        """Test points, the teacher's coordinates of them (rows, rank), and f*."""
        return self.samples.test(start, stop)
