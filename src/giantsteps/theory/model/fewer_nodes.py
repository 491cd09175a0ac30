"""The nonlinear equations on few of their nodes, for densities (theory §5d).

Sums over types, samples of the batches and spike coordinates are quadratures of functions that
depend smoothly on z, and few of them are independent. From states at some points of the half-plane
come a basis of these functions, and from that a quadrature on few of the nodes, with positive
weights, that is as good for them: the law is that of another model of the same kind.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import nnls

from giantsteps.theory.solver.bulk import Bulk
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.packing import packing
from giantsteps.theory.solver.state import State
from giantsteps.theory.solver.system import System
from giantsteps.theory.solver.weights import WeightEquations, WeightState
from giantsteps.types import Array, FloatArray

#: Where nodes are chosen from, over the mean of the bulk.
SEEN_FROM = np.geomspace(1e-4, 1e2, 16) * np.exp(0.1j)
#: Functions below this, relative to the largest, are left out; what a quadrature may miss of one.
_RESOLVED, _MISSED = 1e-7, 1e-9
#: Combinations of functions that stand for all of them.
_COMBINED = 160
#: A share of the nodes that is not worth it.
_MOST = 0.7
#: No two nodes are alike to a quadrature, but for those that are the same.
_APART, _SAME = 1e-3, 1e-12


def on_fewer_nodes(point: State) -> System:
    """The system of these states, one cell, on few of its types, samples and coordinates.

    Its means, norms and targets are those of the nodes that are left: the nonlinear equations do
    not see them.
    """
    equations = point.equations
    system = equations.system.take(np.zeros(1, dtype=int))
    loads = np.concatenate([equations.loads[0].T, system.residual[0].T])
    types, shares = _types(loads, point.tau, system.probabilities[0], system.bulk)
    weights = system.weights[0]
    of_nodes = _basis(equations.features[0], weights)
    along = (point.omega[:, None] * of_nodes).reshape(-1, len(weights))
    nodes, measure = _quadrature(np.concatenate([of_nodes.astype(complex), along]), weights)
    few = {name: getattr(system, name)[:, types] for name in ("mean", "linear", "residual")}
    bulk = _samples(system.bulk, point.dyson, types)
    return replace(system, bulk=bulk, probabilities=shares[None], **few).on_nodes(
        nodes, measure[None]
    )


def weights_on_fewer_nodes(point: WeightState) -> WeightEquations:
    """The equations of the weights, from these states, on few of their types and samples."""
    equations = point.equations
    bulk, probabilities = equations.bulk, equations.probabilities
    types, shares = _types(equations.coefficients.T, point.h, probabilities, bulk)
    bulk = _samples(bulk, point.dyson, types)
    return WeightEquations(equations.width, shares, bulk)


def _types(
    loads: Array, tau: Array, probabilities: FloatArray, bulk: Bulk
) -> tuple[Array, FloatArray]:
    """Some of the types for sums of their loads (L, T), of pairs of these, and of these with τ."""
    if bulk.chained:  # each type multiplies batches by its own: they are rows of the equations
        return np.arange(len(probabilities)), probabilities
    basis = _basis(loads, probabilities)
    pairs = (basis[:, None] * basis).reshape(-1, len(probabilities))
    along = (tau[:, None] * basis).reshape(-1, len(probabilities))
    return _quadrature(np.concatenate([pairs.astype(complex), along]), probabilities)


def _samples(bulk: Bulk, dyson: Dyson, types: Array) -> Bulk:
    """A bulk, one cell, with some of its types and on few of its samples."""
    batches, stages = [], []
    for batch, stage, s, felt in zip(bulk.batches, bulk.stages, dyson.s, dyson.felt, strict=True):
        own = packing(s.shape[-1]).pack(s).swapaxes(1, 2)
        functions = np.concatenate([one.reshape(-1, s.shape[1]) for one in (own, felt)])
        some, weights = _quadrature(functions, batch.weights[0])
        names = ("first", "second", "linear", "factors", "given")
        values = {name: getattr(batch, name) for name in names}
        kept: Any = {name: None if v is None else v[..., some] for name, v in values.items()}
        batches.append(replace(batch, weights=weights[None], **kept))
        stages.append(replace(stage, sums=stage.sums[..., some]))
    return replace(
        bulk,
        batches=tuple(batches),
        stages=tuple(stages),
        coefficients=bulk.coefficients[:, types],
    )


def merge_types(system: System) -> tuple[System, Array]:
    """Types with the same μ₁, μ₂² and covariance as one, and the group that each type joins.

    What the nonlinear part does not see (means, norms, pull) is that of one of them.
    """
    rows = np.concatenate(
        [system.linear[0], system.residual[0], system.bulk.coefficients[0]], axis=1
    )
    scale = np.abs(rows).max()
    _, first, group = np.unique(
        np.round(rows / scale, 11), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()
    if len(first) == len(group):
        return system, np.arange(len(group))
    probabilities = np.bincount(group, weights=system.probabilities[0])[None]
    kept = {name: getattr(system, name)[:, first] for name in ("mean", "linear", "residual")}
    bulk = replace(system.bulk, coefficients=system.bulk.coefficients[:, first])
    return replace(system, probabilities=probabilities, bulk=bulk, **kept), group


def _basis(functions: Array, weights: FloatArray) -> FloatArray:
    """One and the functions (M, n) by orthonormal ones under the weights."""
    root = np.sqrt(weights)
    parts = [functions.real, functions.imag] if np.iscomplexobj(functions) else [functions]
    rows = np.concatenate(parts) * root
    if len(rows) > 2 * _COMBINED:
        random = np.random.default_rng(0)
        # Channels have no sign of their own.
        signs = np.sign(rows @ random.standard_normal(len(weights)))
        mixing = random.standard_normal((_COMBINED, len(rows))) / np.sqrt(_COMBINED)
        rows = (mixing * signs) @ rows
    size = np.linalg.norm(rows, axis=1).max(initial=0.0)
    rows = np.concatenate([root[None] * max(size, 1e-300), rows])
    _, sizes, right = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(right[sizes > _RESOLVED * sizes[0]] / root)


def _quadrature(functions: Array, weights: FloatArray) -> tuple[Array, FloatArray]:
    """Some of the nodes, and weights with which they do for the functions (M, n) what all do."""
    every = np.arange(len(weights))
    if not np.all(weights > 0):
        return every, weights
    basis = _basis(functions, weights)
    distinct = _distinct(basis * np.sqrt(weights))
    if len(basis) > _MOST * len(distinct):
        return every, weights
    # Nodes that are alike would be chosen by rounding.
    unlike = np.sqrt(weights * (1.0 + _APART * np.modf(0.618 * every)[0]))[distinct]
    found, missed = nnls(basis[:, distinct] * unlike, basis @ weights)
    if missed > _MISSED:
        return every, weights
    some = np.flatnonzero(found > 0)
    return distinct[some], np.asarray((found * unlike)[some])


def _distinct(columns: FloatArray) -> Array:
    """The first of the columns (M, n) that are the same."""
    square = (columns**2).sum(axis=0)
    apart = square[:, None] + square - 2.0 * columns.T @ columns
    same = apart <= _SAME * np.maximum(square[:, None], square)
    return np.flatnonzero(same.argmax(axis=0) == np.arange(columns.shape[1]))
