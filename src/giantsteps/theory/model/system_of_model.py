"""Arrays of the equations that a model states (theory §5c)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from giantsteps.gaussian import hermite_coefficients
from giantsteps.problem import Ridge
from giantsteps.theory.model.given_coordinates import bounded_points, coordinates, functions_at
from giantsteps.theory.model.rules import largest_draw
from giantsteps.theory.solver.system import System
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.theory.model.spiked_features import SpikedFeatures

#: Channels of the types that spectra keep, relative to the largest.
_CHANNELS = 3e-4


def system_of_model(
    model: SpikedFeatures,
    readouts: Sequence[Ridge],
    level: int,
    points: FloatArray | None = None,
    draws: float | None = None,
) -> System:
    """The equations of theory §5c, one cell for each readout.

    * ``level``: resolution of the coordinates.
    * ``points``: (X, r): more points k at which the solution is wanted; they follow the nodes, with
      weight 0.
    * ``draws``: what the bulk sees of k is bounded by the largest of so many draws, that it has an
      edge.
    """
    key = level, None if points is None else points.tobytes(), draws
    if key not in model.systems:
        model.systems[key] = _without_readout(model, level, points, draws)
    ratio = np.array([readout.samples / model.width for readout in readouts])
    penalty = np.array([readout.penalty for readout in readouts]) * ratio
    # λ → 0: the equations are homogeneous in (1, λ_s) of ω = 1/(1 + V).
    interpolating = (penalty == 0) & (ratio < 1)
    penalty, unit = np.where(interpolating, 1.0, penalty), np.where(interpolating, 0.0, 1.0)
    return model.systems[key].with_readouts(ratio, penalty, unit)


def _curved_by_norms(model: SpikedFeatures) -> FloatArray:
    """What norms add to the mean of σ in second order, (T, 1): ½ Var‖w‖² ∂²E σ/∂c² = 3c₄ Var‖w‖².

    It is of order 1/d, and an outlier of order n sees it.
    """
    if model.norms is None:
        return np.zeros((1, 1))
    variance = (model.norms.spread * model.norms.growth**2).sum(axis=0) / model.dimension
    fourth = hermite_coefficients(model.activation, 4)[4]
    return np.asarray(3.0 * fourth * variance[:, None])


def _without_readout(
    model: SpikedFeatures, level: int, points: FloatArray | None, draws: float | None
) -> System:
    """The equations as all readouts share them."""
    bound = 0.0 if draws is None else largest_draw(draws)
    rule = coordinates(model, level, bound)
    nodes, weights = rule.nodes, rule.weights
    arrays = functions_at(model, nodes)
    if bound:
        seen = functions_at(model, bounded_points(model, nodes, bound))
        arrays |= {name: seen[name] for name in ("linear", "residual")}
        arrays["mean"][:, 0] += _curved_by_norms(model)
    if points is not None:
        more = functions_at(model, points)
        nodes = np.concatenate([nodes, points])
        weights = np.concatenate([weights, np.zeros(len(points))])
        arrays = {
            name: np.concatenate([array, more[name]], axis=-1) for name, array in arrays.items()
        }
    types = len(model.probabilities)
    norms, frame = model.norms, model.bulk.frame
    loadings = np.zeros((0, frame)) if norms is None else norms.on(frame)
    spread = np.zeros(0) if norms is None else norms.variances
    second = model.second_degree
    if second is not None:
        loadings = np.concatenate([loadings, np.zeros((3 * types, frame))])
        spread = np.concatenate([spread, second.spread.ravel()])
    arrays |= {
        "loadings": loadings,
        "spread": spread,
        "second": np.ones(1) if second is None else second.shares,
        "probabilities": model.probabilities,
        "shares": model.shares[0],
        "left": model.shares[1],
        "excess": np.zeros((len(model.spikes), 0, 0))
        if model.bulk.excess is None
        else model.bulk.excess,
        "pull": np.zeros((1, types, types)) if model.pull is None else model.pull,
        "width": np.asarray(model.width),
        "inverse_neurons": np.asarray(1.0 / model.neurons),
        "tolerance": np.asarray(max(model.channels[level], _CHANNELS if bound else 0.0)),
    }
    arrays |= {"coordinates": nodes, "weights": weights}
    one = np.ones(1)
    return System(
        ratio=one,
        penalty=one,
        unit=one,
        bulk=model.bulk.bulk(),
        **{name: np.ascontiguousarray(array[None]) for name, array in arrays.items()},
    )
