"""How the norms of neurons vary after a step on a fresh batch (theory §7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from giantsteps.gaussian import coordinate_rule
from giantsteps.theory.steps.several.chain import is_chain
from giantsteps.theory.steps.several.conditional import Conditional
from giantsteps.theory.steps.several.excess import Push
from giantsteps.theory.steps.several.moves import MovedNeurons, Pace, moved_neurons
from giantsteps.theory.steps.several.spectrum import Spectrum
from giantsteps.theory.steps.several.trained import (
    Fluctuation,
    Trained,
    few_functions,
)
from giantsteps.theory.steps.several.view import REACH, View, coordinates_of, split_normal
from giantsteps.types import FloatArray

#: Variance of the norms, relative to their squares, that is rounding.
_NO_SPREAD = 1e-26
#: Variances of squared weights that are rounding, relative to all of it.
_NOTHING = 1e-12
#: Functions of a batch that the norms of its types go with, relative to the largest.
LOADS = 1e-2
#: Relative step of derivatives in c and S, and nodes of moments of σ' beyond the second.
_STEP, _GAUSSIAN = 1e-3, 40


def with_fluctuations(
    view: View,
    trained: Trained,
    after: Trained,
    basis: FloatArray,
    norms: NewNorms,
    push: Push | None,
    new: Fluctuation,
) -> Trained:
    """The fluctuations of the neurons after the step: those before, and a new one of the norms.

    The new one goes with the weights along λ, and so with those before: ϖ = ϖ' + Σ_c ρ_cϖ_c with
    ρ_c = ⟨λ, ℓ_c⟩/v_c, and ϖ' independent of them. ``push`` knows ℓ_c on the frame of the samples;
    without one they are what the vectors have there.
    """
    count = new.loadings.shape[1] - len(trained.others)
    linear, step, gain = norms.on_frame, norms.step, norms.gain
    chain, found, profile = is_chain(after), [], new.spaces
    for old in trained.fluctuations:
        size = _STEP * float(trained.totals.min())
        size /= max(float(np.abs(old.growth).max()), float(np.abs(old.stretch).max()), 1e-12)
        ends, grown = [], old.grown(trained)
        for sign in (1.0, -1.0):
            change = sign * size * old.stretch, sign * size * old.growth
            law = trained.spikes + change[0], trained.along + sign * size * grown
            ends.append(moved_neurons(view, view.slopes_near(*change), *law, step))
        before = old.along @ trained.onto if push else _loaded(old, trained, step)
        both = (before * linear).sum(axis=1)
        share = np.where(old.spread > 0, both / np.where(old.spread > 0, old.spread, 1.0), 0.0)
        loadings = np.zeros_like(new.loadings)
        # Vectors of a chain are multiplied by G itself.
        loadings[:, : old.loadings.shape[1]] = (1.0 if chain else gain[:, None]) * old.loadings
        along = (before[:, :, None] * push.pushed).sum(axis=1) if push else new.along
        new = replace(
            new,
            spread=np.maximum(new.spread - share * both, 0.0),
            loadings=new.loadings - share[:, None] * loadings,
            along=new.along - share[:, None] * along if push else new.along,
        )
        spaces = (ends[0].along - ends[1].along) / (2 * size) + share[:, None] * profile
        found.append(
            replace(
                old,
                growth=spaces @ step.spectrum.shares,
                spaces=spaces,
                stretch=(ends[0].lean - ends[1].lean) @ basis / (2 * size),
                loadings=loadings,
                along=along,
            )
        )
    others = (*trained.others, *(0,) * count)
    return replace(after, fluctuations=(*found, new), others=others)


@dataclass(frozen=True, eq=False)
class NewNorms:
    r"""What a step adds to ‖w‖², with φ = σ' − ζ − ξh: the terms of theory §5b at each (k, r).

    The bulk before the step is isotropic; where inputs have a covariance, what curvature and noise
    have in common is left out of variance and covariances alike. In units of its norm, p = g +
    sξr/α, D = s²E[ξ²r²]/α and q = p² + D − n₂; h_j and the moments of φ are functions of k.
    """

    view: View
    law: Conditional
    step: Pace
    gain: FloatArray

    @cached_property
    def _weights(self) -> FloatArray:
        return np.asarray(self.view.weights[:, None] * self.law.weights)

    @cached_property
    def _phi(self) -> Mapping[str, FloatArray]:
        """h₃ = E[φHe₃]/6, and E[z^aφ^b] as φ{b}{z…}, (T, K)."""
        trained, slope, sigma = self.view.trained, self.view.slope, self.view.problem.activation
        scale = np.sqrt(trained.totals)[:, None]
        mean = trained.spikes @ self.view.points.T
        reach = float(np.abs(mean).max()) + REACH * float(scale.max())
        kinks = np.asarray(sigma.derivative.breakpoints(-reach, reach), dtype=float)
        if kinks.size:
            z, w = split_normal(
                ((kinks - mean[:, :, None]) / scale[:, :, None]).reshape(-1, len(kinks))
            )
            z, w = (part.reshape(*mean.shape, -1) for part in (z, w))
        else:
            rule = coordinate_rule(1, nodes=_GAUSSIAN)
            z, w = (part[None, None] for part in (rule.nodes[:, 0], rule.weights))
        phi = np.array(sigma.derivative(mean[:, :, None] + scale[:, :, None] * z), dtype=float)
        phi -= slope.mean[:, :, None] + slope.linear[:, :, None] * z
        found = {"third": np.sum(phi * (w * (z**3 - 3 * z)), axis=-1) / 6}
        square = phi * phi  # powers of large arrays are slow
        found |= {"2": np.sum(square * w, axis=-1), "2z": np.sum(square * (w * z), axis=-1)}
        found["2zz"] = np.sum(square * (w * z * z), axis=-1)
        found["4"] = np.sum(square * square * w, axis=-1)
        phi *= square
        return found | {"3": np.sum(phi * w, axis=-1), "3z": np.sum(phi * (w * z), axis=-1)}

    def _powers(self, *functions: FloatArray) -> FloatArray:
        """Σ_j r^j f_j for functions (T, K) of k, j = 1, 2, …: (T, K, m)."""
        r = self.law.nodes
        return np.asarray(sum(f[:, :, None] * r ** (j + 1) for j, f in enumerate(functions)))

    @cached_property
    def linear(self) -> FloatArray:
        """λ_A: n⁻¹Σλ x multiplies w in ‖w‖², (T, Y)."""
        s, root = self.step.moved[:, None], np.sqrt(self.view.trained.totals)[:, None]
        h1, h2 = self.view.slope.linear, self.view.slope.quadratic
        powers = [4 * (s * self.gain[:, None]) * h2]
        if self.step.spectrum.flat:
            square = s**2 / (self.step.samples * root) * (self._phi["2z"] + 4 * h1 * h2)
            powers.append(square)
        return self._powers(*powers).reshape(len(s), -1)

    @cached_property
    def single(self) -> FloatArray:
        """What single samples add to the covariance of w and ‖w‖², n⁻¹Σψx, (T, Y)."""
        s, root = self.step.moved[:, None], np.sqrt(self.view.trained.totals)[:, None]
        alpha, phi = self.step.samples, self._phi
        h1, h2 = self.view.slope.linear, self.view.slope.quadratic
        square = 2 * root * s**2 / alpha * self.gain[:, None] * (phi["2z"] + 2 * h1 * h2)
        cube = s**3 / alpha**2 * (phi["3"] + 2 * h1 * phi["2z"] + 2 * h1**2 * h2)
        return self._powers(0.0 * square, square, cube).reshape(len(s), -1)

    @cached_property
    def on_frame(self) -> FloatArray:
        """λ_A on the spikes and the teacher's remainder, (T, E)."""
        first, _ = coordinates_of(self.view, self.law)
        return np.asarray(self.linear @ first.T)

    @cached_property
    def variance(self) -> FloatArray:
        """v of the new fluctuation, (T,)."""
        c, alpha, phi = self.view.trained.totals, self.step.samples, self._phi
        s = (self.step.moved / np.sqrt(c))[:, None, None]
        r, weights = self.law.nodes, self._weights
        tilt = s * self.view.slope.linear[:, :, None]  # sξ
        bent = tilt * r

        def mean(values: FloatArray) -> FloatArray:
            return np.asarray((values * weights).sum(axis=(1, 2)))

        def at(name: str) -> FloatArray:
            return phi[name][:, :, None]

        k1 = self.step.kept + mean(bent)
        k2, k3, k4 = (mean(bent**j) / alpha ** (j - 1) for j in (2, 3, 4))
        n2 = k2 + k1**2
        n4 = k4 + 4 * k1 * k3 + 2 * k2**2 + 6 * k1**2 * k2 + k1**4
        p = k1[:, None, None] + bent / alpha
        q = p**2 + (k2 - n2)[:, None, None]
        new = mean(s**2 * r**2 * at("2"))
        total = 2 * (n4 - n2**2) + 2 / alpha**2 * new**2
        total = total + 4 / alpha * (mean(s**2 * r**2 * p**2 * at("2zz")) + k2 * new)
        total = total + mean(s**4 * r**4 * (at("4") - at("2") ** 2)) / alpha**3
        if self.step.spectrum.flat:  # what curvature and noise have in common
            total = total + 24 * mean(s * at("third") * r * p * q)
            total = total + 2 / alpha * mean(s**2 * r**2 * q * (at("2zz") - at("2")))
            total = total + 4 / alpha**2 * mean(s**3 * r**3 * p * at("3z"))
        return np.asarray(np.maximum(c**2 * total + c * (self.on_frame**2).sum(axis=1), 0.0))

    def few(self) -> tuple[FloatArray, FloatArray]:
        """d Cov(w, ‖w‖²)/(c_Ag_A) as combinations (T, L) of few functions of (k, r)."""
        functions = self.linear
        if self.step.spectrum.flat:
            size = (self.view.trained.totals * self.gain)[:, None]
            functions = functions + self.single / np.where(size == 0, 1.0, size)
        mixing, few = few_functions(functions, self._weights.ravel(), LOADS)
        return mixing, few.reshape(-1, *self.law.weights.shape)


def new_fluctuation(
    norms: NewNorms, trained: Trained, moved: MovedNeurons, rank: int, mixing: FloatArray
) -> Fluctuation:
    """What the step itself adds to the norms."""
    types = len(trained.values)
    step, square = norms.step, _square(norms.step)
    spread = square * norms.variance
    if not step.spectrum.flat and step.spectrum.explicit is None:
        added = moved.mean - 2 * trained.totals * norms.gain * (norms.gain - step.kept)
        larger = larger_forms(trained.along, moved.gains, norms.gain, added, step)
        spread = larger * norms.variance
    spread = np.where(spread > _NO_SPREAD * trained.totals**2, spread, 0.0)  # linear activations
    size = np.where(spread > 0, square * trained.totals * norms.gain, 0.0)
    loadings = np.pad(size[:, None] * mixing, ((0, 0), (len(trained.others), 0)))
    return Fluctuation(
        spread=spread,
        growth=np.ones(types),
        stretch=np.zeros((types, rank)),
        loadings=loadings,
        spaces=profile_of(moved.along, trained.along * moved.gains**2, step.spectrum),
        heavy=step.spectrum.heavy,
    )


def larger_forms(
    along: FloatArray, gains: FloatArray, gain: FloatArray, added: FloatArray, step: Pace
) -> FloatArray:
    """By how much forms of what a step adds, with old weights and with itself, are larger than in
    an isotropic bulk of the same norm, (T,).

    * ``along``: c_A(ι) of the old weights, (T, I).
    * ``gains``, ``gain``: by eigenspaces (T, I), and without them (T,).
    * ``added``: to the squared norm where reach is one, (T,).
    """
    shares, reach = step.spectrum.generic, step.reach
    norm, own = along @ shares, float(shares @ reach**2)
    mixed = own * ((along * gains) ** 2 @ shares) + (along * gains @ (shares * reach)) ** 2
    plain = (2 * norm * gain**2 + added) * norm
    some = plain > 0
    found = (mixed + added * norm * own**2) / np.where(some, plain, 1.0)
    return np.asarray(np.where(some, found, 1.0))


def profile_of(after: FloatArray, kept: FloatArray, spectrum: Spectrum) -> FloatArray:
    """Where what a step adds to the norms lies: in proportion to the variance of w_ι² that is not
    that of the weights before it, (T, I).
    """
    more = after**2 - kept**2
    more = np.where(more > _NOTHING * after**2, more, 0.0)
    more = np.where(more.any(axis=1, keepdims=True), more, 1.0)
    return np.asarray(more / (more @ spectrum.shares)[:, None])


def _loaded(one: Fluctuation, trained: Trained, step: Pace) -> FloatArray:
    """d times its covariance with the weights on the frame, as its vectors have it, (T, E)."""
    weights = step.reach / step.spectrum.values
    gram = np.einsum("vim,eim,i->ve", trained.vectors, trained.seen, weights)
    return np.asarray(_square(step) * one.loadings @ gram[: one.loadings.shape[1]])


def _square(step: Pace) -> float:
    """d⁻¹tr Σ² without explicit directions."""
    return float(step.spectrum.shares @ step.spectrum.start**2)
