r"""The law of one sample, its label and teacher, as the second step sees it (theory §7).

A sample has the teacher coordinates u ~ N(0, I_R), the residual y = g*(u) + ε − f₀ of the first
step, with f₀ the mean output of the initial network (its label, where there is none), and the
projection v = ⟨x, b⟩ on the direction of that step, computed without this sample:

.. math:: v = ⟨κ, u⟩ + w,\qquad κ = E[y u],\qquad w ∼ N(0, E y^2/α_0).

Everything a neuron does depends on (y, v) alone, and given u the two are independent. So a
quadrature in (u, ε, w) of any size is compressed once, by interpolation, to a small grid of
(y, v) with two kinds of weights: E[f(y, v)] and E[u f(y, v)].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from giantsteps.functions import Teacher
from giantsteps.gaussian import Rule, coordinate_rule
from giantsteps.theory.model.teacher import teacher_rule
from giantsteps.theory.solver.panel_grid import PanelGrid

#: Panels of the grid end at these multiples of the standard deviations of v and of y.
_V_EDGES = np.array([-8.5, -2.5, 0.0, 2.5, 8.5])
_Y_EDGES = np.array([0.0, 2.0, 6.0, 18.0, 54.0, 162.0])
_ORDER = 12
#: Labels in tails of this mass are moved to their ends.
_NEGLIGIBLE = 1e-11
_NOISE_NODES, _FIRST_STEP_NODES = 40, 60


@dataclass(frozen=True, eq=False)
class SampleLaw:
    """A quadrature for (y, v) and for u given them.

    ======  ==============  ==============  ==============================================
    symbol  attribute       shape           meaning
    ======  ==============  ==============  ==============================================
    y, v    label, step     (Y, 1), (V,)    the nodes, a grid
    \\       mass            (Y, V)          E f = Σ mass · f; not all positive
    \\       along           (R, Y, V)       E[u f] = Σ along · f
    \\       square          (Y, V)          E[u₁² f] = Σ square · f
    κ       linear          (R,)            E[y u]; μ₁* for one direction
    Ey²     label_moment    float           second moment of the labels
    α₀      samples         float           of the first step
    \\       grids           pair            the panels of y and of v
    ======  ==============  ==============  ==============================================
    """

    label: NDArray
    step: NDArray
    mass: NDArray
    along: NDArray
    square: NDArray
    linear: NDArray
    label_moment: float
    samples: float
    grids: tuple[PanelGrid, PanelGrid]

    @property
    def ends(self) -> tuple[float, float]:
        """Largest |y| and |v|, the same at every order."""
        label, step = (float(np.abs(grid.edges).max()) for grid in self.grids)
        return label, step

    @property
    def label_mean(self) -> float:
        """E y."""
        return float(self.mean(self.label))

    @property
    def spread(self) -> float:
        """√(E y²/α₀), the length of the part of b that is orthogonal to the teacher."""
        return float(np.sqrt(self.label_moment / self.samples))

    @property
    def norm_squared(self) -> float:
        """‖b‖² = |κ|² + E y²/α₀."""
        return float(self.linear @ self.linear) + self.label_moment / self.samples

    def mean(self, values: NDArray) -> NDArray:
        """E of values given on the grid, their last two axes."""
        return (values * self.mass).sum(axis=(-2, -1))

    def frame(self, values: NDArray) -> NDArray:
        """E[x f] in the orthonormal frame (teacher directions, rest of b), shape (..., R + 1)."""
        teacher = (values[..., None, :, :] * self.along).sum(axis=(-2, -1))
        rest = (self.mean(values * self.step) - teacher @ self.linear) / self.spread
        return np.concatenate([teacher, rest[..., None]], axis=-1)

    @property
    def direction(self) -> NDArray:
        """b in that frame, shape (R + 1,)."""
        return np.append(self.linear, self.spread)


@lru_cache(maxsize=32)
def sample_law(
    teacher: Teacher,
    noise_variance: float,
    samples: float,
    order: int = _ORDER,
    shift: float = 0.0,
) -> SampleLaw:
    """The law of (u, y, v) for a teacher, a noise variance Δ and a first step with α₀ samples.

    ``order`` nodes on each panel of y and v; ``shift`` is f₀.

    References: theory §7; moniri2026.
    """
    rule = teacher_rule(teacher)
    clean = np.asarray(teacher(rule.nodes), dtype=float) - shift
    label_moment = float(rule.mean(clean**2)) + noise_variance
    linear = rule.mean(rule.nodes.T * clean)
    spread = np.sqrt(label_moment / samples)
    noise = _hermite(_NOISE_NODES, np.sqrt(noise_variance))
    label = (clean[:, None] + noise.nodes).ravel()
    weight = (rule.weights[:, None] * noise.weights).ravel()
    y_panels = _label_panels(label, weight, np.sqrt(label_moment))
    v_panels = _V_EDGES * np.sqrt(float(linear @ linear) + spread**2)
    labels = PanelGrid(y_panels, order)
    steps = PanelGrid(v_panels, order)
    first = _hermite(_FIRST_STEP_NODES, spread)
    (y_share,) = labels.spread(clean[:, None] + noise.nodes, noise.weights)
    (v_share,) = steps.spread((rule.nodes @ linear)[:, None] + first.nodes, first.weights)
    # Given u, label and step are independent: weights are products, summed over u.
    u = rule.nodes.T
    weights = np.concatenate([np.ones((1, len(clean))), u, u[:1] ** 2]) * rule.weights
    joint = np.stack([y_share.T @ (row[:, None] * v_share) for row in weights])
    return SampleLaw(
        label=labels.nodes[:, None],
        step=steps.nodes,
        mass=joint[0],
        along=joint[1:-1],
        square=joint[-1],
        linear=linear,
        label_moment=label_moment,
        samples=samples,
        grids=(labels, steps),
    )


def _hermite(nodes: int, std: float) -> Rule:
    """N(0, std²); one node where it is zero."""
    if std == 0:
        return Rule(np.zeros(1), np.ones(1))
    rule = coordinate_rule(1, nodes=nodes)
    return Rule(std * rule.nodes[:, 0], rule.weights).pruned(1e-19)


def _label_panels(label: NDArray, weight: NDArray, scale: float) -> NDArray:
    """Edges of panels that cover the labels but for a negligible tail, widening outwards."""
    order = np.argsort(label)
    below = np.cumsum(weight[order])
    above = np.cumsum(weight[order][::-1])[::-1]
    kept = label[order][(below > _NEGLIGIBLE) & (above > _NEGLIGIBLE)]
    lower, upper = float(kept[0]), float(kept[-1])
    edges = scale * np.concatenate([-_Y_EDGES[:0:-1], _Y_EDGES])
    # No sliver of a panel: an edge near an end gives way to it.
    margin = 0.1 * scale
    inside = edges[(edges > lower + margin) & (edges < upper - margin)]
    return np.concatenate([[lower], inside, [upper if upper > lower else lower + scale]])
