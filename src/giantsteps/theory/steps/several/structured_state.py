"""The law of a neuron after some steps on inputs with a covariance (theory §10)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from giantsteps.theory.steps.several.trained import Trained
from giantsteps.types import FloatArray


@dataclass(frozen=True, eq=False)
class Passed:
    """A batch that is behind: what it adds to the bulk, and the frame of its samples.

    ======  ==========  ============  =======================================================
    symbol  attribute   shape         meaning
    ======  ==========  ============  =======================================================
    α       samples
    \\       weights     (Y,)          of the nodes
    κ       first,      (E, Y),       moments of the coordinates on the frame
            second      (E, E, Y)
    ψ_A     added       (T, Y)        n⁻¹Σψ_A x xᵀ is what the batch adds to Σ_A
    φ, s    tilt,       (0 or 1, Y),  beside (ϱ + s_AM)P(ϱ + s_AM) with M = n⁻¹Σφ x xᵀ and P beside
            turned      (T, 2)        explicit directions, a part of ψ_A where φ is not given: ϱs_A
                                      and s_A²
    \\       frame       (E, I, m)     spikes before the step and the teacher's remainder
    \\       multiplier  (T,)          what later steps make of it
    a       sums        (r' + V, Y)   new spikes and new vectors of norms as sums over it …
    c       carry       (r', r)       … beside the spikes before
    ======  ==========  ============  =======================================================
    """

    samples: float
    weights: FloatArray
    first: FloatArray
    second: FloatArray
    added: FloatArray
    frame: FloatArray
    multiplier: FloatArray
    sums: FloatArray
    carry: FloatArray
    reach: FloatArray
    noise: FloatArray
    tilt: FloatArray
    turned: FloatArray


@dataclass(frozen=True, eq=False)
class Resolved:
    """The law of a neuron after some steps, by eigenspaces.

    ======  ============  ============  =======================================================
    symbol  attribute     shape         meaning
    ======  ============  ============  =======================================================
    \\       trained                     S_A, c_A, γ and the fluctuations of norms
    c_A(ι)  along         (T, I)        squared norm of the bulk: c_A = Σ ν_ιc_A(ι)
    \\       frame         (r + 1, I, m) spikes and teacher's remainder, by coordinates
    \\       others        (V, I, m)     vectors that norms go with
    \\       gradients     (s, I, m)     unit vectors along the direction Xᵀr of each step
    J(ι)    memory        (I, T, T)     what is left of W₀ along the types' right vectors
    \\       passed                      the batches
    ======  ============  ============  =======================================================
    """

    trained: Trained
    along: FloatArray
    frame: FloatArray
    others: FloatArray
    gradients: FloatArray
    memory: FloatArray
    passed: tuple[Passed, ...]


def remainder_of(teacher: FloatArray, spikes: FloatArray, overlap: FloatArray) -> FloatArray:
    """B = (β* − Σγe)/√(1 − |γ|²)."""
    rest = math.sqrt(max(1.0 - float(overlap @ overlap), 0.0))
    beside = teacher - np.tensordot(overlap, spikes, axes=1)
    return np.asarray(beside / rest if rest > 1e-12 else 0.0 * beside)
