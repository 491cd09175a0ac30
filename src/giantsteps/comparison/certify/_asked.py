"""What a certificate asks: one number of the theory, and the same number of a simulated network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from giantsteps import simulation, theory
from giantsteps.campaign import Cells, Store, read_answers, read_table
from giantsteps.comparison._quantities import Quantity
from giantsteps.problem import Isotropic, Problem
from giantsteps.questions import QUESTIONS, Question


@dataclass(frozen=True)
class Asked:
    """How theory and networks are asked.

    ``limit``: the theory is asked for its limit, with the ratios of the size. ``paired``: its
    answer depends on the network; what is measured is their ratio, and the prediction one.
    """

    question: Question
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: bool = False
    paired: bool = False

    @property
    def equation(self) -> str:
        """Function of ``theory`` that is asked."""
        return str(self.question.theory).partition(":")[2]

    def predict(self, problem: Problem, d: int) -> Any:
        if self.paired:
            return {"test": 1.0, "train": 1.0}
        known = {k: v for k, v in self.options.items() if k in self.question.takes("theory")}
        ask = partial(self.question.function("theory"), **known)
        return ask(problem.realised(d)) if self.limit else ask(problem, d=d)

    def number(self, answer: Any, quantity: str) -> float:
        if isinstance(answer, Mapping):
            return float(answer[quantity])
        return float(Quantity(quantity).read(answer).ravel()[0])

    def cells(
        self,
        problem: Problem,
        quantity: str,
        d: int,
        seeds: Sequence[int],
        points: int | None = None,
        device: str | None = None,
    ) -> list[Cells]:
        """The networks, which are also asked about before their steps where that is needed.

        * ``points``: test points of each; None: the expectation over all of them, where it can be
          had.
        * ``device``: where they are simulated; on the processor if theory takes their weights.
        """
        options = dict(self.options)
        if self.question.name == "risk":
            plain = problem.teacher.rank == 1 and isinstance(problem.inputs, Isotropic)
            options["test_samples"] = "exact" if plain and points is None else points
        if not self.paired:
            options["device"] = device
        initial = self.question.initial and Quantity(quantity).needs_initial
        return Cells.of_networks(problem, self.question, [d], seeds, options, initial=initial)

    def measured(self, cells: Cells, quantity: str, store: Store) -> list[float]:
        """The number of each network, in the order of the seeds."""
        if not self.question.answer:
            return [float(value) for value in read_table(cells, store)[quantity][1].ravel()]
        (answers,) = read_answers(cells, store)
        return [self.number(answer, quantity) for answer in answers]


# Networks that are measured here --------------------------------------------------------------


def loss_of_network(
    problem: Problem, d: int, seed: int, device: str | None = None
) -> Mapping[str, float]:
    """min n⁻¹‖y − Φa‖² + (λ/N)‖a‖²."""
    run, penalty = (
        simulation.run(problem, d, seed, device=device),
        problem.require_readout().penalty,
    )
    samples, neurons = run.sizes.samples, run.sizes.neurons
    assert samples is not None
    (fit,) = run.fit({samples: (penalty,)}, run.readout_bytes({samples: (penalty,)})).values()
    square = float(run.backend.xp.sum(fit.coefficients**2))
    return {"loss": float(fit.train) + penalty / neurons * square}


def ratio_to_given_weights(problem: Problem, d: int, seed: int) -> Mapping[str, float]:
    """Errors of a network over those that theory predicts for its very weights."""
    options: dict[str, Any] = {"test_samples": "exact"}
    run = simulation.run(problem, d, seed, **options)
    weights = run.arrays[f"W{len(problem.steps)}"]
    expected = theory.risk_of_weights(weights, run.arrays["beta"], problem)
    found = run.risk(degrees=1)
    names = ("test", "train")
    return {name: float(getattr(found, name) / getattr(expected, name)) for name in names}


def _own(name: str, network: str, equation: str, **facts: Any) -> Question:
    return Question(
        name=f"certify.{name}",
        summary="a number that a certificate measures by itself",
        answer="",
        theory=equation,
        simulation=f"{__name__}:{network}",
        simulation_version=QUESTIONS["risk"].simulation_version,
        theory_version=QUESTIONS["risk"].theory_version,
        **facts,
    )


_RISK: dict[str, Any] = {"degrees": 1}
_TOP: dict[str, Any] = {"top": 1, "bulk": False}

#: By name.
ASKED: dict[str, Asked] = {
    "risk": Asked(QUESTIONS["risk"], _RISK),
    "risk in the limit": Asked(QUESTIONS["risk"], _RISK, limit=True),
    "weights": Asked(QUESTIONS["weights"], _TOP),
    "weights in the limit": Asked(QUESTIONS["weights"], _TOP, limit=True),
    "kernel": Asked(QUESTIONS["kernel"], _TOP),
    "features": Asked(QUESTIONS["features"], _TOP),
    "gradient": Asked(QUESTIONS["gradient"]),
    "degrees of freedom": Asked(QUESTIONS["degrees_of_freedom"]),
    "learned function": Asked(QUESTIONS["learned_function"], {"along": "teacher", "x": [1.0]}),
    "training loss": Asked(
        _own("training_loss", "loss_of_network", "giantsteps.theory:training_loss"), limit=True
    ),
    "given weights": Asked(
        _own("given_weights", "ratio_to_given_weights", "giantsteps.theory:risk_of_weights"),
        paired=True,
    ),
}
