"""The largest singular values of the weights, without the rest of their spectrum (theory §2)."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np

from giantsteps.answers import Spectrum
from giantsteps.errors import NotConverged
from giantsteps.laws import Law
from giantsteps.theory.model.covariance import NeuronCovariance
from giantsteps.theory.model.spiked_features import SpikedFeatures
from giantsteps.theory.model.weight_spectrum import WeightSpectrum
from giantsteps.theory.solver.fold import settle
from giantsteps.types import Array, FloatArray

#: Points of the scan above the bulk, and residual of a real solution that is good enough.
_GRID, _SOLVED = 16, 1e-9
#: Plain rounds before Newton's method above the bulk, and relative accuracy of an outlier.
_PLAIN, _CLOSE = 3, 1e-13
#: Points of an interpolation, and how often it is tried.
_NEAR, _MANY = 4, 12
#: Types with fewer neurons than this have none; in the limit of so many.
_ABSENT, _MOST = 1e-5, 1e9
#: Covariance of the neurons, relative to their leans, that is none.
_NO_BULK = 1e-24
#: Outliers are looked for above so many times the edge of an isotropic bulk.
_ABOVE = 1.5


class _Outliers(WeightSpectrum):
    """The outliers far above the bulk; where the bulk ends is only guessed."""

    @cached_property
    def law(self) -> Any:
        """In place of the law, the edge of an isotropic bulk with the largest norm of a neuron."""
        edge = float(self.bulk.totals.max()) * (1.0 + math.sqrt(self.width)) ** 2
        return SimpleNamespace(edge=edge, outside=self._outside)

    @cached_property
    def _solved(self) -> list[tuple[FloatArray, tuple[Array, ...]]]:
        """Points above the bulk and the real solutions there, to start from."""
        return []

    def _outside(self, x: FloatArray) -> tuple[Array, ...]:
        """Real solutions at x from the nearest of those that were found."""
        known, states = self._solved[-1]
        nearest = np.abs(np.log(x[:, None] / known)).argmin(axis=1)
        state, gap = settle(self.branch, tuple(part[nearest] for part in states), x)
        bad = np.flatnonzero(~(gap <= _SOLVED))
        if bad.size:
            for part, found in zip(state, self._far(x[bad])):
                part[bad] = found
            if not np.all(np.isfinite(state[0])):
                what = f"the resolvent of the weights at {float(x[bad[0]]):.6g}, above their bulk"
                raise NotConverged(what, float(gap[bad[0]]), _PLAIN, "another rate or width")
        more = tuple(np.concatenate(parts) for parts in zip(states, state))
        self._solved[-1] = np.concatenate([known, x]), more
        return state

    def _far(self, x: FloatArray) -> tuple[Array, ...]:
        """Real solutions at x above the bulk, without a way around it; NaN where there is none.

        Far above the bulk every start leads to the solution, on which H is negative and grows
        with x.
        """
        state, gap = settle(self.branch, self.branch.far(x), x)
        with np.errstate(all="ignore"):
            rises = self.branch.parameter(self.branch.linearised(state, x).tangent()) > 0
        lost = ~((gap <= _SOLVED) & rises & np.all(state[0] < 0, axis=1))
        for part in state:
            part[lost] = np.nan
        return state

    def largest(self, top: int) -> list[float]:
        """The largest eigenvalues of W Wᵀ far above the bulk, in falling order, at most ``top``."""
        low, high = _ABOVE * self.law.edge, self._highest
        grid = high * (low / high) ** np.linspace(0.0, 1.0, _GRID)
        states = self._far(grid)
        # Below the first point without a real solution is the bulk.
        outside = np.isfinite(states[0][:, 0])
        count = _GRID if outside.all() else int(np.argmin(outside))
        if count < 2:
            return []
        grid, states = grid[:count], tuple(part[:count] for part in states)
        self._solved.append((grid, states))
        values = self._eigenvalues(grid, states)
        passed = np.argwhere((values[:-1] >= 0) & (values[1:] < 0))[:top]
        found = (self._between(1.0 / grid, values[:, r], i, r) for i, r in passed.tolist())
        return sorted(found, reverse=True)

    def _between(self, inverse: FloatArray, values: FloatArray, at: int, rank: int) -> float:
        """The outlier between two points: 1/x by inverse interpolation, or else by bisection."""
        lower, upper, place = float(inverse[at]), float(inverse[at + 1]), math.inf
        while upper - lower > _CLOSE * upper:
            distinct, where = np.unique(values, return_index=True)
            near = where[np.argsort(np.abs(distinct))[:_NEAR]]
            others = values[near] / (values[near] - values[near, None] + np.eye(len(near)))
            new = float(inverse[near] @ np.prod(np.where(np.eye(len(near)), 1.0, others), axis=1))
            if abs(new - place) <= _CLOSE * upper:
                break
            if not lower < new < upper or len(values) > _GRID + _MANY:
                new = (lower + upper) / 2
            value, place = float(self._eigenvalue(np.array([1.0 / new]), np.array([rank]))[0]), new
            lower, upper = (new, upper) if value > 0 else (lower, new)
            inverse, values = np.append(inverse, new), np.append(values, value)
        return 1.0 / place


def largest_value(
    width: float,
    neurons: float,
    probabilities: FloatArray,
    spikes: FloatArray,
    bulk: NeuronCovariance,
) -> float:
    """The largest singular value of weights with these leans and covariances.

    Types of neurons that no network of this width has are left out: their norms may be a hundred
    times the others', with a bulk of their own up there. The others take over what they add to
    the mean squares.
    """
    present = probabilities > _ABSENT / min(neurons, _MOST)
    if not present.all():
        squares = np.stack([bulk.totals, (spikes**2).sum(axis=1)])
        all_of_it, probabilities = squares @ probabilities, probabilities[present]
        probabilities = probabilities / probabilities.sum()
        left = squares[:, present] @ probabilities
        grown, longer = np.where(left > 0, all_of_it / np.where(left > 0, left, 1.0), 1.0)
        spikes = spikes[present] * math.sqrt(longer)
        bulk = replace(bulk, coefficients=bulk.coefficients[present] * grown)
    strength = neurons * float(np.linalg.eigvalsh(spikes.T @ (probabilities[:, None] * spikes))[-1])
    if float(bulk.totals.max()) <= _NO_BULK * strength:  # the change by a linear activation
        return math.sqrt(strength)
    fields: dict[str, Any] = {
        "width": width,
        "neurons": neurons,
        "probabilities": probabilities,
        "spikes": spikes,
        "bulk": bulk,
    }
    found = _Outliers(**fields).largest(1) if np.any(spikes) else []
    if not found:
        whole = WeightSpectrum(**fields)
        found = [*(whole.outliers if np.any(spikes) else ()), whole.law.edge]
    return math.sqrt(float(found[0]))


def leading_of_model(model: SpikedFeatures, top: int) -> tuple[FloatArray, FloatArray]:
    """The largest singular values of W and their squared overlaps with the teacher, (top,) each.

    Where there are fewer outliers, the edge of the bulk takes their place, with overlap zero.
    """
    if model.own_weights is not None:
        model = model.own_weights()
    if math.isfinite(model.neurons):
        used = model if model.bounded is None else model.bounded(0)
        spectrum = _Outliers(
            width=model.width,
            neurons=model.neurons,
            probabilities=used.probabilities,
            spikes=used.leans,
            bulk=used.bulk,
            pull=used.pull,
        )
        found = spectrum.largest(top)
        if len(found) == top:
            teacher = {"teacher": used.directions_of_overlap()["teacher"]}
            overlaps = [spectrum.overlaps(value, teacher, {})["teacher"] for value in found]
            return np.sqrt(found), np.clip(overlaps, 0.0, 1.0)
    return leading_of_spectrum(model.weights(), top)


def leading_of_spectrum(spectrum: Spectrum, top: int) -> tuple[FloatArray, FloatArray]:
    """The same of a whole spectrum."""
    outliers = sorted(spectrum.spikes, key=lambda spike: -float(spike.value))[:top]
    assert isinstance(spectrum.bulk, Law)
    missing = top - len(outliers)
    values = np.array([float(spike.value) for spike in outliers])
    overlaps = np.array([float(spike.overlaps["teacher"]) for spike in outliers])
    if not missing:
        return values, overlaps
    edge = np.full(missing, spectrum.bulk.edge)
    return np.concatenate([values, edge]), np.concatenate([overlaps, np.zeros(missing)])
