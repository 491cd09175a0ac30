"""From a problem with several fresh steps to its equivalent model (theory §7, §10)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from giantsteps.errors import NotConverged
from giantsteps.gaussian import smoothed
from giantsteps.problem import Problem
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.rules import CHANNELS
from giantsteps.theory.model.spiked_features import USUAL, SpikedFeatures
from giantsteps.theory.steps.first import by_chance
from giantsteps.theory.steps.neuron import slopes
from giantsteps.theory.steps.one import folds, movement, tails_of
from giantsteps.theory.steps.several.chain import Links
from giantsteps.theory.steps.several.covariance import (
    covariance_of_state,
    norms_of_state,
    pull_of,
    weights_of_state,
)
from giantsteps.theory.steps.several.fresh import take_step
from giantsteps.theory.steps.several.links import by_links, links_of
from giantsteps.theory.steps.several.opening import after_first, before_steps
from giantsteps.theory.steps.several.spectrum import Spectrum, spectrum_of
from giantsteps.theory.steps.several.trained import Trained
from giantsteps.theory.steps.sized import SPECTRA, at_size, by_resolution
from giantsteps.types import FloatArray

#: Functions of a batch that are kept, relative to the largest, by resolution; the same where errors
#: shall be resolved to 1e-6.
RESOLVED, _FINE = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4), (1e-4, 3e-5, 2e-5, 1e-5, 5e-6)
#: Functions of the second layer by which products over batches are kept.
_LINKS = (8e-3, 4e-3, 2e-3, 1e-3, 1e-3)
#: Channels at the first resolution of these.
_FINE_CHANNELS = 3e-4
#: Channels of models with explicit directions, by resolution, after one step and after several.
_CHANNELS = (8e-3, 3e-3, 1e-3, 3e-4, 1e-5, 1e-6), (1e-3, 5e-4, 2e-4, 1e-4, 1e-5, 1e-6)
#: Eigenvalues of one direction, relative to d, from which on it is explicit: the first, the second
#: (before the steps and after one), this one beside an even part of the activation where the step
#: moves the output by less than it.
_HEAVY, _NEAR = (0.01, 0.025), 1.0
#: The same of the first after several steps where the activation has an even part.
_HEAVY_LATER = 0.03
#: The same up to which a continuous second layer has an explicit direction after several steps, and
#: how far the first step may move the output along it: more take minutes.
_TOO_MANY, _TOO_FAR = 0.03, 30.0
#: Share of the teacher from which on a step makes a direction not explicit: all neurons lean along
#: it by more than their initial weights do, of which the first order is enough.
ALIGNED = 0.5
#: Leans of neurons of norm one that no user means.
_DIVERGED = 1e8
#: What neurons a standard deviation longer may add to the power of the features: norms count to
#: first order. Steps of all networks that theory was compared with add 0.05 at most.
_FIRST_ORDER = 0.5


def several_steps(
    problem: Problem,
    d: int | None = None,
    *,
    simplify: tuple[str, ...] = (),
    level: int = USUAL,
    explicit: bool = True,
    **others: Any,
) -> SpikedFeatures:
    """The equivalent model after several steps on fresh batches."""
    return stages_of_steps(problem, d, [others], simplify=simplify, level=level, explicit=explicit)[
        0
    ]


def stages_of_steps(
    problem: Problem,
    d: int | None,
    others: Sequence[Mapping[str, Any]],
    *,
    simplify: tuple[str, ...] = (),
    level: int = USUAL,
    explicit: bool = True,
) -> list[SpikedFeatures]:
    """The equivalent models after the last steps, one for each of ``others``, from one recursion.

    ``others`` are further fields of each model; ``problem`` among them is the one that it is of.
    """
    sized, neurons, shared = at_size(problem, d)
    if d is not None and len(sized.steps) == 1 and sized.init.output == "scaled":
        shared["by_chance"] = lambda: by_chance(sized, d)
    if not sized.steps:
        sized = sized.replace({"steps": [{"samples": 1.0, "rate": 0.0}]})
    spectrum = spectrum_of(sized, d)
    if d is not None and explicit and not simplify:
        spectrum = replace(spectrum, explicit=leading(sized, d))
    continuous = math.isinf(sized.init.second_layer.distinct_nonzero)
    linked = by_links(sized)
    shared["levels"] = (0, 2 + (d is None) - linked) if continuous else (0, 4)
    # Many types, whose errors a finer quadrature of the samples resolves at little cost.
    fine = continuous and spectrum.explicit is None
    if fine:
        shared |= {"fine": True, "channels": (_FINE_CHANNELS, *CHANNELS[1:])}
    if spectrum.explicit is not None:
        shared |= {"levels": (0, 1), "channels": _CHANNELS[len(sized.steps) > 1]}
    # Without a penalty a continuous second layer fits every function that norms could add.
    norms = not simplify and not (continuous and d is None)
    tails = tails_of(sized, d, neurons)

    @lru_cache(maxsize=8)
    def states(level: int) -> list[Trained]:
        return trained_by(sized, spectrum, neurons, level, norms, fine=fine)

    @lru_cache(maxsize=8)
    def cut(level: int, norms: bool) -> list[Trained]:
        return trained_by(sized, spectrum, neurons, level, norms, tails)

    def stage(number: int, fields: dict[str, Any]) -> SpikedFeatures:
        """That after one of the steps, counted from the end."""
        law, finest = (spectrum, simplify, fields), _FINE if fine else RESOLVED

        def resolved(level: int) -> SpikedFeatures:
            trained = states(level)[number]
            links = links_of(trained, sized.activation, _LINKS[level]) if linked else None
            return _model(trained, *law, finest[level], links)

        @lru_cache(maxsize=2)
        def weights(more: int) -> SpikedFeatures:
            level = SPECTRA + more  # without norms, which the singular values of W do not see
            made = _model if spectrum.flat else _of_weights
            return made(cut(level, False)[number], *law, RESOLVED[level])

        return by_resolution(
            resolved,
            min(level, 1),
            lambda level: _model(cut(level, norms)[number], *law, RESOLVED[level]),
            own_weights=lambda: replace(weights(0), bounded=weights),
        )

    return [
        stage(number - len(others), {**shared, **fields}) for number, fields in enumerate(others)
    ]


def leading(problem: Problem, d: int) -> FloatArray | None:
    """Which eigenspaces are explicit at d: single directions whose eigenvalue is a share of d."""
    slope = slopes(problem.activation)
    if problem.inputs.isotropic or not slope.hermite[0]:
        return None
    spectrum = spectrum_of(problem, d)
    order, steps = np.argsort(-spectrum.values), len(problem.steps)
    moved = any(step.rate > 0 for step in problem.steps)
    even = moved and bool(slope.hermite[1])
    largest, law = float(spectrum.values.max()), problem.init.second_layer
    # By how much the first step moves the output along the direction.
    far = movement(problem, 0, float(problem.at(d).neurons)) if moved else 0.0
    far *= slope.hermite[0] ** 2 * law.second_moment * largest ** (1 - spectrum.power)
    if moved and math.isinf(law.distinct_nonzero):
        many = far > _TOO_FAR if steps == 1 else even or largest > _TOO_MANY * d
        if many:
            return None
    single = law.distinct_nonzero == (2 if folds(problem) else 1)
    two = single and steps == 1 and not spectrum.power and (not even or far < _NEAR)
    two = two or not moved  # which costs next to nothing
    least = (_HEAVY_LATER if even and steps > 1 else _HEAVY[0], *_HEAVY[1 : 1 + two])
    found = np.zeros(len(order), dtype=bool)
    for place, heavy in zip(order, least):
        light = spectrum.values[place] < heavy * d or spectrum.shares[place] * d > 1.5
        if light or (moved and spectrum.teacher[place] > ALIGNED):
            break
        found[place] = True
    return found if found.any() else None


def trained_by(
    problem: Problem,
    spectrum: Spectrum,
    neurons: float,
    level: int,
    norms: bool = True,
    tails: tuple[float, float] = (0.0, 0.0),
    fine: bool = False,
) -> list[Trained]:
    """The law of a neuron after each of the steps.

    ``tails`` are the shares of labels and second layer that are cut off (`one.tails_of`); ``fine``
    is whether errors shall be resolved to 1e-6.
    """
    first = 0 if spectrum.explicit is not None else 1
    law = problem, spectrum, neurons, level, norms, tails
    trained = after_first(*law, fine=fine) if first else before_steps(*law)
    states = [trained]
    norms = norms and bool(np.any(trained.values))  # a second layer of zeros moves nothing
    for number, step in enumerate(problem.steps[first:], start=first):
        rate = movement(problem, number, neurons)
        if not np.any(rate * trained.values) and not step.decay:
            states.append(states[-1])
            continue
        cut = tails[0] * problem.steps[0].samples / step.samples
        inverse, at = problem.width / neurons, (states[-1], step, rate, level, spectrum)
        states.append(take_step(problem, *at, norms, tail=cut, inverse=inverse, fine=fine))
        size = float(np.abs(states[-1].spikes).max(initial=0.0))
        if not size < _DIVERGED:
            what = f"weights that grow from step to step, to {size:.0e} times their size"
            raise NotConverged(what, math.inf, number + 1, "smaller rates, or a bounded activation")
        more = _longer(problem, states[-1], neurons / problem.width) if norms else 0.0
        if more > _FIRST_ORDER:
            what = f"norms of neurons that vary so much that features do by {more:.0%}"
            raise NotConverged(what, more, number + 1, "smaller rates, a larger d, or the limit")
    return states


def _longer(problem: Problem, trained: Trained, d: float) -> float:
    """What neurons a standard deviation longer add to the power of the features, relative to it.

    Gaussian weights vary by (2/d)^½ without steps, which does not count.
    """
    totals = trained.totals + (trained.spikes**2).sum(axis=1)
    growth = [
        one.spread * (one.growth + 2 * (trained.spikes * one.stretch).sum(axis=1)) ** 2
        for one in trained.fluctuations
    ]
    spread = np.maximum(np.sum(growth, axis=0) - 2 * totals**2, 0.0) / d
    longer = totals + np.sqrt(spread)
    sizes = np.sqrt([totals, longer])
    moments = smoothed(problem.activation, np.zeros_like(sizes), sizes)
    power, more = moments.second_moment @ trained.probabilities
    return float(more / power - 1.0) if power > 0 else 0.0


def _model(
    trained: Trained,
    spectrum: Spectrum,
    simplify: tuple[str, ...],
    shared: dict[str, Any],
    tolerance: float,
    links: Links | None = None,
) -> SpikedFeatures:
    isotropic = "isotropic bulk" in simplify
    if isotropic:
        bulk = NeuronCovariance.isotropic(trained.totals, trained.directions, trained.teachers)
    else:
        bulk = covariance_of_state(trained, spectrum, tolerance, links=links)
    own = None
    if not simplify and not spectrum.flat:
        weights = trained.probabilities / trained.totals
        own = np.einsum("t,ti,aim->a", weights, trained.along, trained.seen**2)
    return SpikedFeatures(
        spikes=trained.spikes,
        overlap=trained.overlap if trained.teachers > 1 else trained.overlap[0],
        probabilities=trained.probabilities,
        bulk=bulk,
        norms=None if simplify else norms_of_state(trained, bulk),
        pull=_pull(trained, spectrum, shared["neurons"], isotropic),
        weak=trained.weak,
        weak_overlap=trained.weak_overlap,
        own_variances=own,
        second_layer=trained.values,
        step_directions=trained.steps,
        **shared,
    )


def _of_weights(
    trained: Trained,
    spectrum: Spectrum,
    simplify: tuple[str, ...],
    shared: dict[str, Any],
    tolerance: float,
) -> SpikedFeatures:
    """The same network with W in place of Σ^{1/2}W: what its singular values need."""
    found = weights_of_state(trained, spectrum, tolerance)
    return SpikedFeatures(
        spikes=found.spikes,
        overlap=found.overlap if trained.teachers > 1 else found.overlap[0],
        probabilities=trained.probabilities,
        bulk=found.bulk,
        pull=_pull(trained, spectrum, shared["neurons"]),
        weak=found.weak,
        weak_overlap=found.weak_overlap,
        second_layer=trained.values,
        step_directions=found.steps,
        **shared,
    )


def _pull(
    trained: Trained, spectrum: Spectrum, neurons: float, isotropic: bool = False
) -> FloatArray | None:
    """What multiplies traces with functions of Σ in the penalty of m, or with their means."""
    if math.isinf(neurons):
        return None
    functions, found = pull_of(trained, spectrum)
    if not isotropic:
        return found
    means = (functions * spectrum.values) @ spectrum.shares
    return np.tensordot(means, found, axes=1)[None]
