"""The conventions of the papers, as data."""

from __future__ import annotations

from collections.abc import Mapping

from giantsteps.errors import InvalidProblem, suggest
from giantsteps.problem._convention import Convention, Factor, Row

_BA2022 = Convention(
    name="ba2022",
    rows=(
        Row("width, N/d", "ψ₂", "psi2", "width", size="N"),
        Row("samples of the readout, n/d", "ψ₁", "psi1", "readout.samples", size="n"),
        Row(
            "samples of a step, n/d",
            "ψ₁",
            "psi1_step",
            "steps.*.samples",
            size="n_step",
            same_as="psi1",
        ),
        Row("exponent of the learning rate", "e", "exponent", "steps.*.exponent", default=0.0),
        Row("coefficient of the learning rate", "η/N^e", "eta", "steps.*.rate", total=("eta", 0.0)),
        Row("standard deviation of the noise", "σ_ε", "sigma_eps", "noise_variance", power=0.5),
        Row("ridge penalty", "λ", "lam", "readout.penalty"),
    ),
    weights="gaussian",
    second_layer="gaussian",
    statements=(
        ("network", "f(x) = N^{-1/2} aᵀσ(Wᵀx), a_j ~ N(0, 1/N): the one of giantsteps"),
        ("update", "W ← W + η √N G, G the negative gradient of (2n)⁻¹‖y − f(X)‖²"),
        ("loss of the readout", "n⁻¹‖ỹ − Φa‖² + (λ/N)‖a‖², Φ = N^{-1/2} σ(X̃W)"),
        ("samples", "one n for the step and the readout; psi1_step only if they differ"),
    ),
)

_CUI2024 = Convention(
    name="cui2024",
    rows=(
        Row("width, p/d", "β", "beta", "width", size="p"),
        Row("samples of the readout, n/d", "α", "alpha", "readout.samples", size="n"),
        Row("samples of a step, n₀/d", "α₀", "alpha0", "steps.*.samples", size="n0"),
        Row(
            "exponent of the learning rate",
            "e'",
            "exponent",
            "steps.*.exponent",
            offset=0.5,
            default=1.0,
        ),
        Row(
            "coefficient of the learning rate",
            "η̃",
            "eta_tilde",
            "steps.*.rate",
            total=("eta", 0.5),
        ),
        Row("variance of the noise", "Δ", "noise_variance", "noise_variance"),
        Row(
            "ridge penalty of the sum loss",
            "λ_s",
            "lam",
            "readout.penalty",
            factors=(Factor("readout.samples"), Factor("width", -1.0)),
        ),
    ),
    weights="sphere",
    second_layer="constant",
    statements=(
        ("network", "f(x) = p^{-1/2} aᵀσ(Wx), √p a_j = 1, p neurons"),
        (
            "update",
            "W ← W + η G without the √p of ba2022: η = η̃ p^e', with e' = 1 in the paper "
            '("η = 2.5 p" is eta_tilde = 2.5), so that η̃ is how far one neuron moves',
        ),
        ("loss of the readout", "‖ỹ − Φa‖² + λ_s‖a‖², not divided by n"),
    ),
)

_MONIRI_SIZES = (
    Row("width, d/N", "ψ", "psi", "width", power=-1.0, size="N"),
    Row("samples of the readout, d/n", "φ", "phi", "readout.samples", power=-1.0, size="n"),
    Row(
        "samples of a step, d/n",
        "φ",
        "phi_step",
        "steps.*.samples",
        power=-1.0,
        size="n_step",
        same_as="phi",
    ),
)
_MONIRI_REST = (
    Row("standard deviation of the noise", "σ_ε", "sigma_eps", "noise_variance", power=0.5),
    Row("ridge penalty", "λ", "lam", "readout.penalty"),
)
_MONIRI_NETWORK = (
    "network",
    'f(x) = aᵀσ(Wx), a_j ~ N(0, 1/N), without N^{-1/2}: output="unscaled". The default '
    "is the network of ba2022: the step c₁ η a_j b of neuron j is the same, but its output at "
    "initialisation vanishes, while that of the unscaled network is Θ(1) and enters the first "
    "gradient",
)
_MONIRI_LOSS = (
    "loss of the readout",
    "n⁻¹‖ỹ − Fa‖² + λ‖a‖², F = σ(X̃W) = √N Φ: the same λ, for a is √N times smaller",
)

_MONIRI2023 = Convention(
    name="moniri2023",
    rows=(
        *_MONIRI_SIZES,
        Row("exponent of the learning rate", "α", "alpha", "steps.*.exponent", default=0.0),
        Row(
            "coefficient of the learning rate",
            "η/n^α",
            "eta",
            "steps.*.rate",
            factors=(Factor("width", 1.0, True), Factor("steps.*.samples", -1.0, True)),
            total=("eta", 0.0),
        ),
        *_MONIRI_REST,
    ),
    weights="sphere",
    second_layer="gaussian",
    statements=(
        _MONIRI_NETWORK,
        ("update", "W ← W + η G with η ≍ n^α: a power of the samples of the step, not of N"),
        _MONIRI_LOSS,
    ),
)

_MONIRI2026 = Convention(
    name="moniri2026",
    rows=(
        *_MONIRI_SIZES,
        Row("exponent of the learning rate", "α_t", "alpha", "steps.*.exponent", default=0.0),
        Row(
            "coefficient of the learning rate",
            "η_t/N^α_t",
            "eta",
            "steps.*.rate",
            total=("eta", 0.0),
        ),
        *_MONIRI_REST,
    ),
    weights="sphere",
    second_layer="gaussian",
    statements=(
        _MONIRI_NETWORK,
        ("update", "two steps, η₁ ≍ N^α₁ and η₂ ≍ N^α₂, on fresh batches or on one batch twice"),
        _MONIRI_LOSS,
    ),
)

#: The conventions of the papers by their keys in the bibliography.
CONVENTIONS: Mapping[str, Convention] = {
    paper.name: paper for paper in (_BA2022, _CUI2024, _MONIRI2023, _MONIRI2026)
}


def convention(name: object) -> Convention:
    if not isinstance(name, str) or name not in CONVENTIONS:
        raise InvalidProblem("convention", name, suggest(name, CONVENTIONS))
    return CONVENTIONS[name]
