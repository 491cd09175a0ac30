"""Moniri, Lee, Hassani, Dobriban (2023): polynomial spikes, one more at each stair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from giantsteps import theory
from giantsteps.displays import GREY, PALETTE
from giantsteps.errors import NotCovered
from giantsteps.figures._draft import Draft
from giantsteps.figures._figure import figure
from giantsteps.figures._networks import leading_vectors
from giantsteps.functions import centered
from giantsteps.problem import Grid, Init, Problem, Ridge, Step

_PAPER = ("moniri2023",)
_ACTIVATION = "tanh(x) + 0.6*tanh(x)**2"


def _problem(teacher: Any, rate: float, exponent: float, penalty: float = 0.01) -> Problem:
    """A smooth activation with c₁ and c₂, centred; weights on the sphere."""
    return Problem(
        activation=centered(_ACTIVATION),
        teacher=teacher,
        width=1.0,
        noise_variance=0.0,
        steps=[Step(samples=4.0, rate=rate, exponent=exponent)],
        readout=Ridge(samples=2.0, penalty=penalty),
        init=Init(weights="sphere"),
    )


@figure(
    "moniri2023-spectra",
    "One and two polynomial spikes in the features (settings chosen here)",
    caption="Singular values of Φ = N^{{-1/2}} σ(X̃W₁) for η = {rate:g} N^e, e = {exponents}, σ = "
    "tanh + 0.6 tanh² centred, teacher sin, N = d, n₀ = 4d, n = 2d, d = {d}: below e = 1/4 one "
    "spike leaves the bulk, above it a second one.",
    chosen="the activation (its c₁ and c₂ do not vanish), the teacher, all proportions, the factor "
    "of the rate and d.",
    references=_PAPER,
    smoke={"d": 100, "seeds": 1, "rate": 3.0, "exponents": (0.12,)},
    quick={"d": 600, "seeds": 2, "exponents": (0.12, 0.4)},
    paper={"d": 2000, "seeds": 3},
)
def spectra(draft: Draft, d: int, seeds: int, rate: float, exponents: Sequence[float]) -> None:
    problems = [_problem("sin", rate, exponent) for exponent in exponents]
    runs = [draft.answers("features", p, d=d, seeds=seeds, top=3) for p in problems]
    labels = [(r"singular value of $\Phi$", "density")] * len(exponents)
    axes = draft.axes(*labels)
    for ax, exponent, problem, found in zip(axes, exponents, problems, runs):
        display = draft.spectrum(ax, theory.features(problem, d=d), found)
        display.axes_[0].set_title(rf"$e = {exponent:g}$")


@figure(
    "moniri2023-vectors",
    "The left singular vectors are monomials of the step's direction (settings chosen here)",
    caption="Entries of the first two left singular vectors of Φ against z = ⟨x, b⟩/‖b‖, η = "
    "{rate:g} N^{{{exponent:g}}}, σ = tanh + 0.6 tanh² centred, teacher sin, N = d, n₀ = 4d, n = "
    "2d, d = {d}. Lines: the cosine that theory gives times z and z²/√3. At such d the neurons "
    "have moved by about one, so that tanh bends the monomials at their ends.",
    chosen="the activation, the teacher, all proportions, the rate and d.",
    references=_PAPER,
    smoke={"d": 120, "rate": 3.0, "exponent": 0.12},
    quick={"d": 800, "exponent": 0.4},
    paper={"d": 2000, "rate": 2.0},
)
def vectors(draft: Draft, d: int, rate: float, exponent: float) -> None:
    problem = _problem("sin", rate, exponent)
    answer = draft.stated(theory.features(problem, d=d))
    (network,) = draft.computed(leading_vectors, problem, d=d, seeds=1, top=2).value
    z, left = network["projection"], network["vectors"]
    monomials = (lambda k: k, lambda k: k**2 / np.sqrt(3))
    x = np.linspace(-3.2, 3.2, 101)
    axes = draft.axes(
        *[(r"$z = \langle x, b\rangle/\|b\|$", rf"$\sqrt{{n}}\,u_{k}$") for k in (1, 2)]
    )
    for number, ax in enumerate(axes):
        basis = monomials[number]
        vector = left[:, number] * np.sign(left[:, number] @ basis(z))
        draft.cloud(ax, z, vector, f"u{number + 1}")
        spike = next((s for s in answer.spikes if s.degree == number + 1), None)
        found = float((vector @ basis(z)) ** 2 / (len(z) * np.sum(basis(z) ** 2)))
        overlap = spike.overlap if spike is not None else 0.0
        y = np.sqrt(overlap) * basis(x)
        draft.line(ax, x, y, "theory", color=PALETTE[0], label="theory", zorder=4)
        title = f"squared overlap:\ntheory {overlap:.3f}, simulation {found:.3f}"
        ax.legend(title=title, loc="upper center")


@figure(
    "moniri2023-errors",
    "Errors against the exponent of the rate: degree by degree (settings chosen here)",
    caption="Test and training error against e, η = {rate:g} N^e, σ = tanh + 0.6 tanh² centred, N "
    "= d, n₀ = 4d, n = 2d, λ = 0.01; (a) teacher He₁, (b) teacher He₁ + He₂/√2 (a linear and a "
    "quadratic part), {seeds} networks per point at d = {d}. Solid: theory §5 at that d; dashed: "
    "the limits of ℓ = 0, 1, 2 spikes; dotted verticals: where the limit has its stairs.",
    chosen="the activation, all proportions, the rate, λ and d. The limits include the lengthening "
    "κ₀ of the neurons, which the paper's quadratic term leaves out.",
    references=_PAPER,
    smoke={"d": 50, "seeds": 2, "rate": 1.0, "exponents": (0.1, 0.4), "fine": 4},
    quick={"d": 300, "seeds": 6, "exponents": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5), "fine": 26},
    paper={"d": 1000, "seeds": 20, "fine": 51},
)
def errors(
    draft: Draft, d: int, seeds: int, rate: float, exponents: Sequence[float], fine: int
) -> None:
    x = np.linspace(0.0, 0.5, fine)
    teachers = {"linear teacher": "he1", "linear and quadratic teacher": "he1(x) + he2(x)/2**0.5"}
    problems = [_problem(teacher, rate, 0.1) for teacher in teachers.values()]
    parts = ("test", "train")
    grids = [Grid(p, {"steps.0.exponent": list(exponents)}) for p in problems]
    found = [[draft.measure(g, f"risk.{part}", d=d, seeds=seeds) for part in parts] for g in grids]
    label = (r"exponent $e$ of $\eta \propto N^e$", "error")
    axes = draft.axes(label, label)
    for ax, title, problem, measured in zip(axes, teachers, problems, found):
        answer = draft.stated(theory.risk(Grid(problem, {"steps.0.exponent": x}), d=d))
        for number, part in enumerate(parts):
            curve = (x, getattr(answer, part))
            draft.pair(ax, part, number, curve, (exponents, measured[number]))
            _limits(draft, ax, problem, part, PALETTE[number])
        for level in (1, 2):
            draft.mark(ax, level / (2 * level + 2), "stairs" if level == 1 else "")
        ax.plot([], [], color=GREY, linestyle="--", linewidth=0.9, label="limit")
        ax.set_ylim(bottom=0.0)
        ax.set_title(title)
    axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _limits(draft: Draft, ax: Any, problem: Problem, part: str, colour: str) -> None:
    """The limits of ℓ = 0, 1, 2 spikes, each over its interval of exponents."""
    stairs: list[tuple[float, float, Problem]] = [(0.0, 0.02, problem.untrained())]
    for level in (1, 2, 3):
        lower, upper = (level - 1) / (2 * level), level / (2 * level + 2)
        inside = problem.replace({"steps.0.exponent": 0.5 * (lower + upper)})
        stairs.append((lower, upper, inside))
    for lower, upper, cell in stairs:
        try:
            level_of: NDArray[Any] | float = getattr(theory.risk(cell), part)
        except NotCovered:
            continue
        look: dict[str, Any] = {"color": colour, "linestyle": "--", "linewidth": 0.9}
        draft.line(ax, [lower, upper], [level_of, level_of], f"limit of {part}", **look)
