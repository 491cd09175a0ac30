r"""What a step makes of the neurons' leans and norms, by eigenspaces of the inputs (§7, §10).

In the frame of z = Σ^{-1/2}x and w' = Σ^{1/2}w a step multiplies what it adds by Σ^{1−p}:

.. math:: S_A ← ϱS_A + sΣ^{1-p}\bigl(E[rζ_Ak]·e + E[h_1ζ_A]\,B + \text{noise}\bigr),\qquad
          c_A(ι) ← c_A(ι)\bigl(ϱ + sλ_ι^{1-p}E[rξ_A]\bigr)²
          + \frac{s²λ_ι^{2-2p}}{α}E[r²(E σ'² - ζ_A²)] .
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from giantsteps.gaussian import Smoothed
from giantsteps.theory.steps.several.spectrum import Spectrum
from giantsteps.theory.steps.several.view import View
from giantsteps.types import FloatArray

#: Of E σ'², the square of a mean slope that is rounding.
_LEAST = 1e-24


@dataclass(frozen=True, eq=False)
class Pace:
    """s = η̃A of the types, α, ϱ = 1 − decay, and λ_ι^{1−p} with the shares of its noise.

    ======  ==========  ======  ==========================================================
    symbol  attribute   shape   meaning
    ======  ==========  ======  ==========================================================
    s       moved       (T,)
    α       samples
    ϱ       kept
    λ^{1−p} reach       (I,)    with what long inputs make of it
    \\       spectrum
    ======  ==========  ======  ==========================================================
    """

    moved: FloatArray
    samples: float
    kept: float
    reach: FloatArray
    spectrum: Spectrum

    @property
    def size(self) -> float:
        """Root of Σ ν_ιλ_ι^{2−2p}, of the noise of the batch."""
        return math.sqrt(float(self.spectrum.generic @ self.reach**2))

    @property
    def profile(self) -> FloatArray:
        """The noise of the batch in the eigenspaces, a unit vector (I,)."""
        return np.asarray(np.sqrt(self.spectrum.generic) * self.reach / self.size)


def reach_of(view: View, moved: FloatArray, spectrum: Spectrum, inverse: float) -> FloatArray:
    """λ_ι^{1−p}, and what long inputs make of it: their mean slope differs (d⁻¹ ``inverse``).

    As a share of the mean slope that is of first order: where this is smaller than what is added,
    as in an even activation, no longer.
    """
    reach = spectrum.values ** (1 - spectrum.power)
    trained, slope, weight = view.trained, view.slope, view.weights * view.square
    by_type = trained.probabilities * moved**2
    more = 2 * inverse * slope.quadratic
    least = _LEAST * slope.second_moment  # a slope that is rounding has no share
    size = float(by_type @ ((slope.mean**2 + more**2 + least) @ weight))
    if not size or not inverse or spectrum.flat:
        return reach
    bent = float(by_type @ ((slope.mean * more) @ weight)) / size
    own = (trained.probabilities / trained.totals) @ trained.along - 1.0
    if spectrum.explicit is not None:
        own = np.where(spectrum.explicit, 0.0, own)
    return np.asarray(reach * (1 + bent * own))


@dataclass(frozen=True, eq=False)
class MovedNeurons:
    """Neurons after the step: their leans in the enlarged space, and their squared norms.

    The space has the coordinates in the eigenspaces, and functions of k: noise of the batch.
    """

    lean: FloatArray  # (T, I·m + K)
    carried: FloatArray  # (T, I, m), what of the leans is not a sum over the batch
    along: FloatArray  # (T, I), without leans that are dropped
    totals: FloatArray  # (T,), their sum
    gain: FloatArray  # ϱ + sE[rξ_A], (T,)
    gains: FloatArray  # ϱ + sλ^{1−p}E[rξ_A], (T, I)
    mean: FloatArray  # (T,), d⁻¹tr of what the batch adds to an isotropic bulk


def moved_neurons(
    view: View, slope: Smoothed, spikes: FloatArray, along: FloatArray, pace: Pace
) -> MovedNeurons:
    """What the step makes of neurons with these leans, norms c_A(ι) and slopes."""
    w, s, trained, spectrum = view.weights, pace.moved, view.trained, pace.spectrum
    shares = spectrum.shares
    totals = along @ shares
    zeta, xi = slope.mean, slope.linear / np.sqrt(totals)[:, None]
    turn = s * (xi @ (w * view.residual))
    gain = pace.kept + turn[:, None] * pace.reach
    noise = (slope.second_moment - zeta**2) @ (w * view.square) / pace.samples
    rank, some = trained.rank, trained.directions
    weak = np.tensordot(trained.weak, trained.axes[rank:some], axes=1)
    carried = pace.kept * np.tensordot(spikes, trained.axes[:rank], axes=1) + gain[..., None] * weak
    added = s[:, None, None] * along_frame(view, zeta, pace)
    extra = _along_explicit(view, zeta, pace, added)
    lean = [
        (carried + added + extra).reshape(len(s), -1),
        pace.size * s[:, None] * zeta * np.sqrt(w * view.square / pace.samples),
    ]
    bulk = along - np.where(
        shares > 0, (weak**2).sum(axis=2) / np.where(shares > 0, shares, 1.0), 0
    )
    along = bulk * gain**2 + (s[:, None] * pace.reach) ** 2 * noise[:, None]
    return MovedNeurons(
        lean=np.concatenate(lean, axis=1),
        carried=carried + extra,
        along=along,
        totals=along @ shares,
        gain=pace.kept + turn,
        gains=gain,
        mean=2 * totals * (pace.kept + turn) * turn + s**2 * noise,
    )


def on_frame(view: View, functions: FloatArray) -> FloatArray:
    """E[rκf] for the coordinates κ on spikes and remainder, (…, r + R)."""
    sources = [view.residual * k for k in view.points.T]
    return np.asarray(functions @ (view.weights * np.stack([*sources, *view.beside])).T)


def along_frame(view: View, functions: FloatArray, pace: Pace) -> FloatArray:
    """Σ^{1−p}E[rf z], (…, I, m): sums over the batch apart from their noise."""
    seen = np.tensordot(on_frame(view, functions), view.trained.seen, axes=1)
    return np.asarray(pace.reach[:, None] * seen)


def _along_explicit(view: View, zeta: FloatArray, pace: Pace, added: FloatArray) -> FloatArray:
    """What the noise of the batch adds along explicit directions: sign(g)(√(g² + Var g) − |g|)."""
    trained, spectrum, s = view.trained, pace.spectrum, pace.moved
    extra = np.zeros_like(added)
    for place in spectrum.places:
        on = trained.axes[: trained.rank, place, 0]
        square = 1.0 + (view.points @ on) ** 2 - on @ on
        seen = zeta**2 @ (view.weights * view.square * square)
        variance = spectrum.shares[place] * seen / pace.samples
        mean = added[:, place, 0]
        more = np.sqrt(mean**2 + (s * pace.reach[place]) ** 2 * variance) - np.abs(mean)
        extra[:, place, 0] = np.where(mean < 0, -more, more)
    return extra


def gradient_norm(view: View, pace: Pace) -> float:
    """‖√N G‖_F: leans and bulk of a step of the size one, as W has them."""
    trained, values = view.trained, pace.spectrum.values
    unit = Pace(trained.values, pace.samples, 0.0, pace.reach, pace.spectrum)
    moved = moved_neurons(view, view.slope, 0.0 * trained.spikes, trained.along, unit)
    inside = moved.carried[0].size
    lean = (moved.lean[:, :inside].reshape(moved.carried.shape) ** 2).sum(axis=2)
    noise = (moved.lean[:, inside:] ** 2).sum(axis=1)[:, None] * pace.profile**2
    square = lean + noise + pace.spectrum.shares * moved.along
    return math.sqrt(float(trained.probabilities @ square @ (1.0 / values)))
