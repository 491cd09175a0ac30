"""One network, or the networks of several seeds together: drawing, training, fitting."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from giantsteps.answers import small_size
from giantsteps.errors import InvalidProblem
from giantsteps.problem import Problem
from giantsteps.simulation._cost import check_time
from giantsteps.simulation._engine._arrays import Array
from giantsteps.simulation._engine._devices import resolve
from giantsteps.simulation._engine._memory import Budget, as_bytes
from giantsteps.simulation._network._data import Data, as_dimension
from giantsteps.simulation._network._gradient import Descent, gradient
from giantsteps.simulation._network._laws import as_law
from giantsteps.simulation._network._network import Network
from giantsteps.simulation._network._rules import RULES, Optimizer
from giantsteps.simulation._network._samples import DrawnSamples, GivenSamples, as_test_samples
from giantsteps.simulation._network._streams import Streams
from giantsteps.simulation._readout._ridge import EIGEN_FROM, Fit, Gram, RidgeCurve, fit_features
from giantsteps.simulation._readout._targets import targets


@dataclass(frozen=True)
class Trained:
    """The first layer after the steps."""

    weights: Array  # (…, d, N): W
    direction: Array | None  # (…, d): b of the first step, float64; None without steps
    spike: Array | None  # (…, d): along what that step added; b unless its rule bends it


class Networks:
    """The networks of one problem and size, one for each seed; arrays of several seeds have one
    more axis in front.

    Nothing is computed before it is asked for; the weights after the steps are kept, samples are
    drawn again where they are needed. Parameters as of `Run`.
    """

    def __init__(
        self,
        problem: Problem,
        d: int | None,
        seeds: int | Sequence[int],
        *,
        device: object = None,
        dtype: str = "float64",
        test_samples: int | str | None = None,
        memory: str | int | None = None,
        inputs: object = "gaussian",
        data: Data | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise InvalidProblem("problem", problem, "a Problem")
        law = as_law(inputs)
        self.problem, self.data = problem, data
        #: How they are drawn and computed: what a `Run` of one of them takes.
        self.options: dict[str, Any] = {
            "device": device,
            "dtype": dtype,
            "test_samples": test_samples,
            "memory": memory,
            "inputs": inputs,
        }
        self.sizes = problem.at(as_dimension(d, data))
        self.d = self.sizes.d
        self.backend = resolve(device, dtype)
        streams = Streams(seeds, self.backend)
        self.test_samples = as_test_samples(test_samples, data)
        if data is not None:
            _check_data(data, problem, law is None, inputs, streams)
        if law is not None and self.test_samples is None:
            allowed = "a number: the exact expectation is over Gaussian inputs"
            raise InvalidProblem("test_samples", test_samples, allowed)
        self.network = Network(
            problem,
            self.sizes,
            streams,
            DrawnSamples(problem, self.sizes, streams, law)
            if data is None
            else GivenSamples.of(data, problem, self.sizes, self.backend),
        )
        if self.sizes.samples is not None:
            self.network.require(self.sizes.samples)
        self.budget = Budget(as_bytes(memory), self.backend, math.prod(streams.lead))
        self._gram: Gram | None = None
        if data is None:
            check_time(self)

    @property
    def lead(self) -> tuple[int, ...]:
        """The axes in front: one over several seeds, none for one seed."""
        return self.network.streams.lead

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each network."""
        seeds = self.network.streams.seeds
        return seeds if isinstance(seeds, tuple) else (seeds,)

    @property
    def count(self) -> int:
        """How many networks there are."""
        return math.prod(self.lead)

    def each(self, x: Array | None) -> list[Any]:
        """An array as NumPy's, in float64, for each network; None for each if there is none."""
        if x is None:
            return [None] * self.count
        host = np.asarray(self.backend.to_host(x), dtype=float)
        return list(host) if self.lead else [host]

    @property
    def binary(self) -> bool:
        """Whether the targets of the test points are ±1, so that wrong signs can be counted."""
        return self.problem.binary if self.data is None else self.data.binary

    @cached_property
    def deviations(self) -> Array | None:
        """Standard deviations of the coordinates of the inputs, float64; None if all are one."""
        law = self.problem.inputs
        if law.isotropic:
            return None
        return self.backend.asarray(np.sqrt(law.variances(self.d)), wide=True)

    def whitened(self, columns: Array) -> Array:
        """Σ^{1/2}V in float64 for columns V, (d, …): their pre-activations are those of z."""
        wide = self.backend.wide(columns)
        return wide if self.deviations is None else wide * self.deviations[:, None]

    def facts(self) -> dict[str, Any]:
        """What every answer of these networks carries."""
        return {
            "problem": self.problem,
            "d": self.d,
            "source": "simulation",
            "exact": self.data is None,
            "violated": small_size(self.d),
        }

    def shortened(self, step: int) -> Self:
        """The same networks after their first ``step`` steps; nothing computed is carried over.

        A readout on the batch of the last step keeps those samples, which are fresh to networks
        that stop before it.
        """
        shorter = copy.copy(self)
        for name in ("trained", "arrays"):
            shorter.__dict__.pop(name, None)
        shorter._gram = None
        readout = self.problem.readout
        if step < len(self.problem.steps) and readout is not None:
            readout = dataclasses.replace(readout, batch="fresh")
        shorter.problem = dataclasses.replace(
            self.problem, steps=self.problem.steps[:step], readout=readout
        )
        shorter.sizes = dataclasses.replace(self.sizes, step_samples=self.sizes.step_samples[:step])
        return shorter

    def taught_by(self, other: Networks) -> Self:
        """The same networks with the teacher of others."""
        taught = copy.copy(self)
        samples = dataclasses.replace(self.network.samples, known=other.network.teacher)  # type: ignore[type-var]
        taught.network = dataclasses.replace(self.network, samples=samples)
        return taught

    # Training ---------------------------------------------------------------------------------

    @cached_property
    def trained(self) -> Trained:
        """The first layer after all steps."""
        weights, first = self.start(), (None, None)
        for found in self.steps(weights):
            first = found if first[0] is None else first
        return Trained(weights, *first)

    def start(self) -> Array:
        """W₀, a fresh copy; an error if the memory is too small for the steps from there."""
        held = self.step_bytes if self.problem.steps else self.weight_bytes
        self.budget.rows(self.sizes.d, self.sizes.neurons, held, "the weights")
        return self.network.weights()

    def steps(self, weights: Array) -> Iterator[tuple[Array, Array]]:
        """Take the steps on ``weights``, in place; after each, yield its direction b and that of
        what it added."""
        backend = self.backend
        optimizer = Optimizer(backend, None if self.deviations is None else self.deviations**2)
        for number, step in enumerate(self.problem.steps):
            descent = self.descent(weights, number)
            direction = descent.direction
            update = optimizer.update(step, descent.update)
            if step.decay:
                weights *= 1 - step.decay
            weights += backend.narrow(update)
            spike = direction
            if RULES[step.rule].coordinatewise:
                spike = backend.wide((update @ self.network.second_layer[..., None])[..., 0])
            elif self.deviations is not None:
                spike = direction * self.deviations ** (-2 * step.precondition)
            del descent, update  # the next step makes its own
            yield direction, spike

    def descent(self, weights: Array, step: int) -> Descent:
        """The gradient of a step at the given weights."""
        samples, activation = self.sizes.step_samples[step], self.problem.activation
        batches = (
            self.network.step_batch(step, start, stop)
            for start, stop in self.chunks(samples, self.step_bytes, "a gradient step")
        )
        return gradient(
            self.backend,
            batches,
            samples,
            weights,
            self.network.second_layer,
            activation,
            self.problem.steps[step].residual,
            self.problem.init.output_scale(self.sizes.neurons),
        )

    # Readout ----------------------------------------------------------------------------------

    def activations(self, inputs: Array, weights: Array) -> Array:
        """σ(XW) for rows of inputs."""
        return self.backend.transform(self.problem.activation, inputs @ weights)

    def embed(self, inputs: Array, weights: Array | None = None) -> Array:
        """Φ = N^{-1/2} σ(XW) for rows of inputs, by default with the weights after the steps."""
        scale, activation = 1 / math.sqrt(self.sizes.neurons), self.problem.activation
        weights = self.trained.weights if weights is None else weights
        return self.backend.transform(lambda z: activation(z) * scale, inputs @ weights)

    def readouts(
        self, stages: Sequence[Array], cells: Mapping[int, Sequence[float]], fixed: int
    ) -> list[dict[tuple[int, float], Fit]]:
        """Readouts on the features of several first layers, by sample size n and penalty λ, from
        one pass over the samples; ``fixed`` bytes are held beside the chunks."""
        curves = [RidgeCurve(self.backend, self.sizes.neurons, cells, self.lead) for _ in stages]
        for start, stop in self.chunks(max(cells), fixed, "the readout"):
            inputs, labels = self.network.readout_batch(start, stop)
            for curve, weights in zip(curves, stages):
                curve.add(self.embed(inputs, weights), labels[..., None])
        for curve in curves:
            curve.finish()
        return [curve.fits for curve in curves]

    def fit(self, cells: Mapping[int, Sequence[float]], fixed: int) -> dict[tuple[int, float], Fit]:
        """Readouts after the steps for each sample size n and penalty λ, from one pass over the
        samples; the Gram matrix of the networks' own sample size is kept for what is asked next."""
        last, direction = max(cells), self.trained.spike
        if self._gram is not None and tuple(cells) == (self.sizes.samples,):
            found = fit_features(self.backend, self._gram, last, cells[last])
            return {(last, penalty): fit for penalty, fit in zip(cells[last], found)}
        self._gram = None
        curve = RidgeCurve(self.backend, self.sizes.neurons, cells, self.lead)
        for start, stop in self.chunks(last, fixed, "the readout"):
            inputs, labels = self.network.readout_batch(start, stop)
            curve.add(self.embed(inputs), targets(self.backend, inputs, labels, direction))
        gram = curve.finish()
        if gram.samples == self.sizes.samples:
            self._gram = gram
        return curve.fits

    @property
    def gram(self) -> Gram:
        """The Gram matrix of the readout's features, kept once it was computed."""
        if self._gram is None:
            self.problem.require_readout()
            samples = self.sizes.samples
            assert samples is not None
            self.fit({samples: ()}, self.readout_bytes({samples: ()}))
        assert self._gram is not None
        return self._gram

    # Memory -----------------------------------------------------------------------------------

    @property
    def weight_bytes(self) -> int:
        """Bytes of W of one network."""
        return self.backend.itemsize * self.sizes.d * self.sizes.neurons

    @property
    def step_bytes(self) -> int:
        """Bytes held during a step beside the chunks, for one network: W, the sum, its copy if W
        is narrower, and what the rules hold."""
        copies = 1 if self.backend.itemsize == 8 else 2
        extra = max((RULES[step.rule].held for step in self.problem.steps), default=0)
        return copies * self.weight_bytes + (1 + extra) * 8 * self.sizes.d * self.sizes.neurons

    def readout_bytes(self, cells: Mapping[int, Sequence[float]], stages: int = 1) -> int:
        """Bytes held for each network while readouts are fitted on the features of so many first
        layers, beside the chunks."""
        neurons = self.sizes.neurons
        held = max((n for n in cells if n <= neurons), default=0)
        summed = neurons if max(cells) > neurons else 0
        # Factors beside the Gram matrix, or eigenvectors and what their computation needs.
        vectors = any(
            0 in penalties or len(penalties) >= EIGEN_FROM for penalties in cells.values()
        )
        most = max(len(penalties) for penalties in cells.values())
        copies = max(4 if vectors else 0, self.backend.factors(most))
        working = copies * max(summed, held) ** 2
        kept = self.weight_bytes + 8 * (summed**2 + held**2)
        kept += self.backend.itemsize * held * neurons
        return stages * kept + 8 * working

    def chunks(
        self, count: int, fixed: int, question: str, columns: int = 0
    ) -> Iterator[tuple[int, int]]:
        """Pairs (start, stop) that cover ``range(count)``, with as many rows as the budget allows
        beside ``fixed`` bytes for matrices of d, N and a few ``columns`` more."""
        rows = self.budget.rows(self.sizes.d, self.sizes.neurons + columns, fixed, question)
        return ((start, min(start + rows, count)) for start in range(0, count, rows))


def _check_data(
    data: Data, problem: Problem, gaussian: bool, inputs: object, streams: Streams
) -> None:
    """Refuse what samples of one's own leave no room for."""
    if not gaussian:
        raise InvalidProblem("inputs", inputs, "left out where data are given")
    if streams.lead:
        raise InvalidProblem("data", data, "given to one network at a time")
    if any(step.precondition for step in problem.steps) and not problem.inputs.isotropic:
        raise InvalidProblem(
            "data",
            data,
            "left out with a preconditioned step: the covariance of the data is not known "
            "(whiten the inputs instead)",
        )
