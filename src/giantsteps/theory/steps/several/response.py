r"""How a neuron answers a sample after the first step: means of σ and its slopes (theory §7).

The pre-activation of a neuron with second-layer value A, s = η̃₁A, on a sample that is used again
is (theory §7)

.. math:: h = ag + s\,(y\,σ'(g)/α_0 + μ_1 v) + \sqrt ω\,ξ

with g, ξ ~ N(0, 1), a = 1 + sh₁E y and ω = s² Ey² Var σ'/α₀: the sample finds a neuron that has
seen it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import BSpline, make_interp_spline

from giantsteps.errors import NotConverged
from giantsteps.functions import Function
from giantsteps.gaussian import (
    Moments,
    Rule,
    gauss_rule,
    moments,
    smoothed,
    smoothed_around,
)
from giantsteps.theory.solver.panel_grid import PanelGrid
from giantsteps.theory.steps.several.sample_law import SampleLaw

#: Half-width of the integral over g, its widest panel, and the least weight of a node.
_REACH, _PANEL, _PRUNED = 8.5, 4.25, 1e-14
#: Panels of the law of h and nodes on each; spacing and degree of tabulated functions.
_WIDTH, _ORDER, _SPACING, _SPLINE_DEGREE = 1.5, 12, 0.1, 7
#: Signs of E(σ, σ', σ'', σ'²)(−h) where σ is odd.
_TURNED = np.array([-1.0, 1.0, -1.0, 1.0])
#: Nodes of one type.
_AFFORDABLE = 600_000


@dataclass(frozen=True, eq=False)
class Response:
    """Means over (g, ξ) at the nodes of a :class:`SampleLaw`, shape (T, Y, V): one layer a type.

    Attributes
    ----------
    output : E σ(h)
    slope : ζ = E σ'(h)
    curvature : E σ''(h)
    slope_square : E σ'(h)²
    tilt : E[g σ'(h)]
    echo : E[σ'(g) σ'(h)]
    """

    output: NDArray
    slope: NDArray
    curvature: NDArray
    slope_square: NDArray
    tilt: NDArray
    echo: NDArray


def lengths(sigma: Moments, law: SampleLaw, moved: NDArray) -> NDArray:
    """c₁ = a² + ω, the squared length of a neuron's bulk after the first step."""
    return gains(sigma, law, moved) ** 2 + widths(sigma, law, moved)


def gains(sigma: Moments, law: SampleLaw, moved: NDArray) -> NDArray:
    """a = 1 + sh₁E y, what the first step makes of the initial weights."""
    return 1.0 + 2 * sigma.quadratic * law.label_mean * moved


def widths(sigma: Moments, law: SampleLaw, moved: NDArray) -> NDArray:
    """ω = s² Ey² Var σ'/α₀, the variance of what the other samples add in the first step."""
    return moved**2 * (law.label_moment * sigma.derivative_variance / law.samples)


def reused_response(activation: Function, law: SampleLaw, moved: NDArray) -> Response:
    """The response of neurons with s = ``moved``, (T,), to a sample of the first step's batch.

    The mean over ξ is a smoothed function of one variable, tabulated once a type; that over g is
    a quadrature, split and refined at the kinks of σ' to the scale of ξ.
    """
    sigma, label = moments(activation), law.label
    # For an odd σ, h is odd in (s, g, ξ) and in (y, v, g, ξ): halves of symmetric laws are enough.
    distinct, where = np.unique(np.abs(moved) if sigma.is_odd else moved, return_inverse=True)
    mirrored = sigma.is_odd and np.allclose(label, -label[::-1], 1e-12, 1e-12 * law.ends[0])
    label = label[len(label) // 2 :] if mirrored else label
    spread, gain = np.sqrt(widths(sigma, law, distinct)), gains(sigma, law, distinct)
    laws = [
        _law_of_neuron(activation, sigma.linear, law, label, *one) if one[1] > 0 else None
        for one in zip(distinct.tolist(), spread.tolist(), gain.tolist())
    ]
    tables = _tables(activation, [one for one in laws if one is not None])
    rows = [_at_rest(activation, law) if one is None else one.means(next(tables)) for one in laws]
    sign = np.where(moved < 0, -1.0, 1.0)[:, None, None]
    response = []
    for field, parts in zip(fields(Response), zip(*rows)):
        turned = field.name in ("output", "curvature", "tilt")
        if mirrored:
            lower = len(law.label) // 2
            parts = [
                np.concatenate(
                    [(-1) ** turned * part[: -lower - 1 : -1, ::-1], part[-len(label) :]]
                )
                for part in parts
            ]
        values = np.stack(parts)[where]
        response.append(sign * values if turned and sigma.is_odd else values)
    return Response(*response)


def _at_rest(activation: Function, law: SampleLaw) -> tuple[NDArray, ...]:
    """A neuron that does not move: h = g."""
    slope = moments(activation.derivative)
    still = moments(activation)
    values = {
        "output": still.mean,
        "slope": slope.mean,
        "curvature": slope.linear,
        "slope_square": slope.second_moment,
        "tilt": slope.linear,
        "echo": slope.second_moment,
    }
    return tuple(np.full(law.mass.shape, values[field.name]) for field in fields(Response))


@dataclass(frozen=True, eq=False)
class _NeuronLaw:
    """h without ξ on nodes for each label and shift, and ξ's standard deviation."""

    plain: NDArray  # weights of the nodes, (Y, K) …
    tilted: NDArray  # … times g
    echoed: NDArray  # … times σ'(g)
    h: NDArray  # (K, V)
    end: int  # larger than |h|, at every order of the law of the samples
    spread: float

    def means(self, table: BSpline) -> tuple[NDArray, ...]:
        """Means over (g, ξ), in the order of `Response`."""
        output, slopes, curvature, squares = np.moveaxis(table(self.h), -1, 0)  # over ξ, (K, V)
        return (
            self.plain @ output,
            self.plain @ slopes,
            self.plain @ curvature,
            self.plain @ squares,
            self.tilted @ slopes,
            self.echoed @ slopes,
        )


def _law_of_neuron(
    activation: Function,
    linear: float,
    law: SampleLaw,
    label: NDArray,
    moved: float,
    spread: float,
    gain: float,
) -> _NeuronLaw:
    shift = moved * linear * law.step
    kick = moved / law.samples * label
    crossed = float(np.abs(shift).max() + np.abs(kick).max())
    rule = _neuron_rule(activation, spread, crossed, gain)
    _affordable(label.size * len(rule.weights), kick)
    slope = np.asarray(activation.derivative(rule.nodes), dtype=float)
    rest = gain * rule.nodes + kick * slope  # h without shift and ξ, (Y, G)
    reach = float(np.ptp(rest)) + float(np.ptp(shift))
    _affordable(reach / min(_SPACING, _WIDTH / _ORDER), kick)
    # For each label the law of `rest` on nodes, then one product for all shifts.
    edges = _edges(activation, spread, crossed, float(rest.min()), float(rest.max()))
    grid = PanelGrid(edges, _ORDER)
    _affordable(len(grid.nodes) * len(law.step), kick)
    weights = rule.weights
    shares = np.stack(grid.spread(rest, weights, weights * rule.nodes, weights * slope))
    some = np.abs(shares).max(axis=(0, 1)) > _PRUNED
    far = abs(moved) * (law.ends[0] / law.samples * np.abs(slope).max() + abs(linear) * law.ends[1])
    end = math.ceil(float(max(abs(gain), 1.0) * np.abs(rule.nodes).max() + far))
    plain, tilted, echoed = shares[..., some]
    return _NeuronLaw(plain, tilted, echoed, grid.nodes[some, None] + shift, end, spread)


def _affordable(nodes: float, kick: NDArray) -> None:
    """One sample that moves a neuron far across kinks of σ' needs too many nodes."""
    if nodes > _AFFORDABLE:
        raise NotConverged(
            "the response to a reused sample, which moves a neuron by up to "
            f"{float(np.abs(kick).max()):.3g} through its label: {nodes:.3g} nodes",
            float(nodes),
            1,
            "a smaller rate or more samples in the first step, or labels that are not so far from "
            "their mean",
        )


def _edges(
    activation: Function, spread: float, crossed: float, lower: float, upper: float
) -> NDArray:
    """Panels for functions of h: wide, but of the scale of ξ where a kink of σ' may be."""
    edges = np.linspace(lower, upper, 2 + int((upper - lower) / _WIDTH))
    kinks = activation.derivative.breakpoints(lower - crossed, upper + crossed)
    fine = np.add.outer(kinks, _graded(spread, crossed, _WIDTH)).ravel()
    edges = np.unique(np.concatenate([edges, fine[(fine > lower) & (fine < upper)]]))
    return edges[np.concatenate([[True], np.diff(edges) > 1e-12])]


def _graded(spread: float, crossed: float, widest: float) -> NDArray:
    """Distances from a kink, both signs: steps of 3·spread to `crossed`, then growing."""
    step = 3.0 * spread
    near = step * np.arange(1.0, np.ceil(crossed / step) + 1.0)
    beyond = near[-1] + step * np.cumsum(2.0 ** np.arange(1.0, 60.0))
    distance = np.concatenate([near, beyond[: 1 + int(np.log2(max(widest / step, 1.0)))]])
    return np.concatenate([-distance[::-1], [0.0], distance])


def _neuron_rule(activation: Function, spread: float, crossed: float, gain: float) -> Rule:
    """A quadrature of g: panels of the scale of ξ where a kink of σ' may be crossed."""
    slope, size = activation.derivative, max(abs(gain), 0.1)
    kinks = slope.breakpoints(-_REACH, _REACH)
    points = np.add.outer(kinks, _graded(spread, crossed, _PANEL)).ravel() / size
    points = np.concatenate([points, kinks])
    points = points[np.abs(points) < _REACH]
    rule = gauss_rule(slope, breakpoints=points, width=_PANEL, reach=_REACH, tolerance=1e-9)
    return rule.pruned(1e-17)


def _tables(activation: Function, laws: Sequence[_NeuronLaw]) -> Iterator[BSpline]:
    """t ↦ E_ξ (σ, σ', σ'', σ'²)(t + spread · ξ), splines with four columns, one for each law."""
    return iter(_splines(activation, tuple((one.spread, one.end) for one in laws)))


@lru_cache(maxsize=32)
def _splines(activation: Function, ranges: tuple[tuple[float, int], ...]) -> tuple[BSpline, ...]:
    """Splines of all (spread, end), their values in one go; the same for all laws of labels."""
    if not ranges:
        return ()
    slope = activation.derivative
    points = [_points(slope, *one) for one in ranges]
    odd = moments(activation).is_odd
    if odd:  # the other half follows
        points = [some[some > -_SPACING / 100] for some in points]
    counts = [len(some) for some in points]
    flat, spread = np.concatenate(points), np.repeat([one[0] for one in ranges], counts)
    means, slopes = _smoothed(activation, flat, spread), _smoothed(slope, flat, spread)
    values = np.stack([means[0], slopes[0], slopes[1] / spread, slopes[3]], axis=-1)
    found = list(zip(points, np.split(values, np.cumsum(counts)[:-1])))
    if odd:
        found = [(_both(t, t, -1.0), _both(t, f, _TURNED)) for t, f in found]
    return tuple(make_interp_spline(t, f, k=_SPLINE_DEGREE) for t, f in found)


def _both(points: NDArray, values: NDArray, sign: float | NDArray) -> NDArray:
    """Values at points ≥ 0 and before them, with a sign, at their opposites."""
    return np.concatenate([sign * values[points > _SPACING / 100][::-1], values])


def _smoothed(function: Function, mean: NDArray, std: NDArray) -> NDArray:
    """Mean, linear and quadratic part and second moment at each point, (≥ 4, points)."""
    even = smoothed_around(function, mean, std, order=1)
    if even is not None:
        return even[..., 0]
    found = smoothed(function, mean, std)
    return np.stack([found.mean, found.linear, found.quadratic, found.second_moment])


def _points(slope: Function, spread: float, end: int) -> NDArray:
    """Where the functions are tabulated: closer next to the kinks of σ'."""
    points = np.arange(-end - 4 * _SPACING, end + 5 * _SPACING, _SPACING)
    kinks = slope.breakpoints(-end, end)
    if kinks.size and spread < 4 * _SPACING:
        distance = spread / 4 * 1.15 ** np.arange(0.0, 200.0)
        distance = np.cumsum(distance[distance < _SPACING])
        distance = np.concatenate([spread / 4 * np.arange(1.0, 25.0), 6 * spread + distance])
        fine = np.add.outer(kinks, np.concatenate([-distance, [0.0], distance])).ravel()
        far = np.abs(points[:, None] - kinks).min(axis=1) > distance[-1]
        points = np.unique(np.concatenate([points[far], fine]))
    return points
