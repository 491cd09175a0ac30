"""What the equations assume of a problem: in words, as a test, with the way to satisfy it (§0)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from giantsteps.gaussian import moments
from giantsteps.problem import PowerLaw, Problem
from giantsteps.theory.model.teacher import teacher_moments
from giantsteps.theory.scope.predicates import (
    activation_centered,
    curved,
    curved_and_preconditioned,
    finite_moments,
    fresh,
    mean_free_or_odd,
    mean_out_of_reach,
    most_uses,
    no_initial_output,
    no_marginal_spike,
    off_the_peak,
    plain,
    remembered,
    rules,
    teacher_centered,
)
from giantsteps.theory.steps.kinds import staircase_level


@dataclass(frozen=True)
class Condition:
    """Something an equation assumes of a problem, with the way to satisfy it."""

    text: str  # the assumption
    refusal: str  # why there is no answer without it
    #: What to do, in words or from the problem and d.
    fix: str | Callable[[Problem, int | None], str]
    holds: Callable[[Problem], bool]  # whether a problem satisfies it
    #: Whether that depends on the sizes, which are whole numbers where d is given.
    of_sizes: bool = False

    def satisfied(self, problem: Problem, d: int | None) -> bool:
        """Whether the problem satisfies it, at the sizes of d if it is given."""
        return self.holds(problem.realised(d) if self.of_sizes and d is not None else problem)

    def advice(self, problem: Problem, d: int | None) -> str:
        """What would be covered, for this problem."""
        return self.fix if isinstance(self.fix, str) else self.fix(problem, d)


def _one_sided_limits(problem: Problem, d: int | None) -> str:
    level, _ = staircase_level(problem.steps[0].exponent)
    ends = [k / (2 * k + 2) for k in (level - 2, level - 1, level)]
    return (
        f"the limit from below, which is that of every exponent in ({ends[0]:g}, {ends[1]:g}), "
        f"that from above, of every exponent in ({ends[1]:g}, {ends[2]:g}), "
        "and this exponent with d given"
    )


_CENTERED_TEACHER = 'gs.centered(teacher), in TOML {name = "...", centered = true}'


def _or_give_d(advice: str) -> Callable[[Problem, int | None], str]:
    """Advice that names d where d is not given yet and would help."""

    def fix(problem: Problem, d: int | None) -> str:
        helps = d is None and problem.teacher.rank == 1
        return f"{advice}, or pass d" if helps else advice

    return fix


def _isotropic_or_give_d(problem: Problem, d: int | None) -> str:
    """Inputs with a covariance are met by the equivalent model, at any exponent."""
    helps = d is None and problem.steps and plain(problem) and problem.teacher.rank == 1
    if not helps:
        return "inputs=gs.Isotropic(), or simulation"
    asked = "theory.risk, theory.learned_function or theory.equivalent"
    return f"inputs=gs.Isotropic(), simulation, or pass d to {asked}"


CONDITIONS: dict[str, Condition] = {
    "single index": Condition(
        "the teacher depends on one direction",
        "the teacher depends on several directions",
        "a rank-one teacher",
        lambda problem: problem.teacher.rank == 1,
    ),
    "one direction where reused": Condition(
        "no batch is reused, or the teacher depends on one direction (else the covariance of the "
        "neurons is taken to be isotropic and their norms to be equal: test errors of networks at "
        "d = 300 are within 1 % for tanh and 2.1 % for ReLU)",
        "the teacher depends on several directions",
        'a rank-one teacher, or batch="fresh"',
        lambda problem: problem.teacher.rank == 1 or fresh(problem),
    ),
    "centered teacher": Condition(
        "E σ*(z) = 0",
        "the teacher must have mean zero",
        _CENTERED_TEACHER,
        teacher_centered,
    ),
    "no mean or odd": Condition(
        "E σ*(z) = 0 or σ is odd",
        "the teacher must have mean zero, or the activation must be odd",
        _or_give_d(f"{_CENTERED_TEACHER}, or an odd activation"),
        mean_out_of_reach,
    ),
    "centered activation": Condition(
        "E σ(z) = 0",
        "the activation must have mean zero",
        _or_give_d("gs.centered(activation)"),
        activation_centered,
    ),
    "mean-free or odd": Condition(
        "σ is odd or the second layer has mean zero",
        "the activation must be odd, or the second layer must have mean zero",
        _or_give_d('second_layer="gaussian", or an odd activation'),
        mean_free_or_odd,
    ),
    "few directions": Condition(
        "the teacher depends on at most three directions",
        "the teacher depends on more than three directions",
        "a teacher of rank three or less",
        lambda problem: problem.teacher.rank <= 3,
    ),
    "directions in plain steps": Condition(
        "a teacher of several directions is met by gradient steps, normalised or not, of a scaled "
        "network on isotropic inputs",
        "the equations of teachers of several directions are those of gradient steps of a scaled "
        "network on isotropic inputs",
        'a teacher of one direction, rule="gradient" or "normalized" with init.output="scaled" and '
        "inputs=gs.Isotropic(), or simulation",
        lambda problem: (
            problem.teacher.rank == 1
            or (
                problem.inputs.isotropic
                and problem.init.output == "scaled"
                and rules("gradient", "normalized")(problem)
            )
        ),
    ),
    "two steps": Condition(
        "there are at most two steps",
        "the terms are those of two steps",
        "at most two steps",
        lambda problem: len(problem.steps) <= 2,
    ),
    "no initial output": Condition(
        "E σ(z) = 0 or the second layer has mean zero",
        "the output of the initial network must vanish",
        'gs.centered(activation), or second_layer="gaussian"',
        no_initial_output,
    ),
    "batches add up": Condition(
        "there is one step (else, unless the second layer has few values, covariances of the "
        "batches are added up beside spikes and teacher where labels have no even part, and weak "
        "directions of the leans count to first order: test errors of networks at d = 1000 are "
        "within 1.2 %)",
        "there are several steps",
        "one step",
        lambda problem: len(problem.steps) <= 1 or all(s.exponent == 0 for s in problem.steps),
    ),
    "few curved batches": Condition(
        "there are at most two steps, the activation is odd, or batches are fresh and inputs "
        "isotropic (else products of the batches' covariances are left out: test errors of "
        "networks are within 4 % at d = 1000, 9 % at d = 600)",
        "there are several steps of an activation with an even part",
        'at most two steps, an odd activation, or batch="fresh" and inputs=gs.Isotropic()',
        lambda problem: (
            not curved(problem)
            or (
                fresh(problem)
                and (problem.inputs.isotropic or problem.init.second_layer.distinct_nonzero <= 1)
            )
        ),
    ),
    "linear labels": Condition(
        "there are at most two steps, the activation is odd, or the teacher has a linear part "
        "(else neurons learn by what the steps multiply: test errors of networks are up to 10 % "
        "higher at d = 1000 and 15 % at d = 500, 45 % on inputs with a covariance)",
        "several steps of an activation with an even part meet a teacher without a linear part",
        "at most two steps, an odd activation, or a teacher with a linear part",
        lambda problem: not curved(problem) or teacher_moments(problem.teacher).linear > 1e-9,
    ),
    "linear labels where reused": Condition(
        "no batch is reused, the activation is odd, or the teacher has a linear part (else the "
        "first step sees the teacher only by chance: test errors of networks are up to 12 % higher "
        "at d = 150, 6.5 % at d = 300 and 2.5 % at d = 600)",
        "a batch is reused for a teacher without a linear part",
        'batch="fresh", an odd activation, or a teacher with a linear part',
        lambda problem: (
            fresh(problem)
            or moments(problem.activation).is_odd
            or teacher_moments(problem.teacher).linear > 1e-9
            or not any(step.exponent for step in problem.steps)
        ),
    ),
    "odd where reused": Condition(
        "of more than two steps that reuse a batch at most four share one, the teacher has one "
        "direction, σ or σ* is odd, and E σ(z) = 0 or the second layer has mean zero",
        "with a batch that more than two steps reuse, among others, even parts of both activation "
        "and teacher and an initial output need products of its covariances",
        "an odd activation or teacher of one direction with gs.centered(activation), at most four "
        'steps on a batch, batch="fresh", or simulation',
        remembered,
    ),
    "no marginal spike": Condition(
        "no polynomial spike appears at this very exponent (else the limits from its two sides "
        "differ)",
        "a polynomial spike appears at this very exponent, and the limits from its sides differ",
        _one_sided_limits,
        no_marginal_spike,
    ),
    "gradient steps": Condition(
        "steps follow the gradient",
        "the equations are those of gradient steps",
        'rule="gradient", or simulation',
        rules("gradient"),
    ),
    "known rules": Condition(
        "steps follow the gradient, normalised or not, or its sign",
        "there is no theory for this rule",
        'rule="gradient", "normalized" or "sign", one step of "adam", or simulation',
        lambda problem: (
            rules("gradient", "normalized", "sign")(problem)
            or (len(problem.steps) == 1 and problem.steps[0].rule == "adam")
        ),
    ),
    "smooth rules": Condition(
        "steps follow the gradient, normalised or not",
        "the equations of several steps are those of gradients, normalised or not",
        'rule="gradient" or "normalized", or simulation',
        rules("gradient", "normalized"),
    ),
    "plain where reused": Condition(
        "a reused batch is met by plain gradient steps on the squared loss",
        "the equations of a reused batch are those of plain gradient steps on the squared loss",
        'rule="gradient", loss="squared" and decay=0 with a reused batch, or simulation',
        lambda problem: (
            fresh(problem)
            or all(
                (step.rule, step.loss, step.decay) == ("gradient", "squared", 0.0)
                for step in problem.steps
            )
        ),
    ),
    "one sign step": Condition(
        "a sign step is the only step",
        "there is no theory for sign steps that follow another step",
        'one step, rule="gradient" or "normalized", or simulation',
        lambda problem: (
            len(problem.steps) <= 1 or all(step.rule != "sign" for step in problem.steps)
        ),
    ),
    "few uses of a batch": Condition(
        "at most four steps share a batch",
        "more than four steps share a batch",
        'at most four steps on a batch, batch="fresh", or simulation',
        lambda problem: most_uses(problem) <= 4,
    ),
    "squared loss": Condition(
        "the loss is the squared one",
        "the equations are those of the squared loss",
        'loss="squared", or simulation',
        lambda problem: all(step.loss == "squared" for step in problem.steps),
    ),
    "no decay": Condition(
        "weights do not decay",
        "the equations are those of steps without decay",
        "decay=0, or simulation",
        lambda problem: all(step.decay == 0 for step in problem.steps),
    ),
    "no preconditioner": Condition(
        "gradients are not preconditioned",
        "the equations are those of steps without a preconditioner",
        "precondition=0, or simulation",
        lambda problem: all(step.precondition == 0 for step in problem.steps),
    ),
    "isotropic inputs": Condition(
        "inputs are isotropic",
        "the equations are those of isotropic inputs",
        _isotropic_or_give_d,
        lambda problem: problem.inputs.isotropic,
    ),
    "isotropic or one direction": Condition(
        "inputs are isotropic, or the teacher depends on one direction",
        "the equations of teachers of several directions are those of isotropic inputs",
        "inputs=gs.Isotropic(), a rank-one teacher, or simulation",
        lambda problem: problem.inputs.isotropic or problem.teacher.rank == 1,
    ),
    "fresh on a covariance": Condition(
        "several steps on inputs with a covariance are gradient steps on fresh batches",
        "the equations of several steps on such inputs are those of gradient steps, each on a "
        "fresh batch",
        'rule="gradient" and batch="fresh" for every step, inputs=gs.Isotropic(), or simulation',
        lambda problem: problem.inputs.isotropic or plain(problem),
    ),
    "light eigenvalues": Condition(
        "no direction has more than 2 % of the variance of the inputs (in the limit: a power law "
        "has an exponent of at most 1/2)",
        "the first eigenvalues are a finite share of d",
        "PowerLaw(exponent) up to 0.5",
        lambda problem: not isinstance(problem.inputs, PowerLaw) or problem.inputs.exponent <= 0.5,
    ),
    "samples given a sign step": Condition(
        "no step is a sign step (else samples across its direction are taken as generic: test "
        "errors of networks at d = 1000 are within 0.6 %; of unscaled networks at d = 300 within "
        "2.5 %)",
        "there is a sign step",
        'rule="gradient" or "normalized"',
        rules("gradient", "normalized"),
    ),
    "finite moments": Condition(
        "the steps have a limit on a power law: (2t + 1)·exponent + teacher < 1 after t steps",
        "every step multiplies by the eigenvalues once more, and their moments grow with d here",
        "the same question with d given, or a smaller exponent of the power law",
        finite_moments,
    ),
    "finite moments of bounds": Condition(
        "the step has a limit on a power law: 3·exponent + teacher < 1",
        "a step multiplies by the eigenvalues, and their moments grow with d here",
        "theory.equivalent(problem, d).bounds(), or a smaller exponent of the power law",
        finite_moments,
    ),
    "scaled output": Condition(
        'the network starts with a small output, output="scaled"',
        "the equations are those of a network whose output starts small",
        'init.output="scaled", or simulation',
        lambda problem: problem.init.output == "scaled",
    ),
    "seams one at a time": Condition(
        "inputs with a covariance are met by plain gradient steps",
        "the equations of inputs with a covariance are those of gradient steps of a scaled network",
        'rule="gradient", init.output="scaled" with such inputs, or simulation',
        lambda problem: (
            problem.inputs.isotropic
            or (
                all(step.rule == "gradient" for step in problem.steps)
                and problem.init.output == "scaled"
            )
        ),
    ),
    "one preconditioner": Condition(
        "all steps have the same preconditioner",
        "the equations of preconditioned steps are those of one preconditioner",
        "the same precondition for every step, or simulation",
        lambda problem: len({step.precondition for step in problem.steps}) <= 1,
    ),
    "no output where preconditioned": Condition(
        "E σ(z) = 0 or the second layer has mean zero where several steps of an activation with an "
        "even part are preconditioned",
        "an initial output lets several preconditioned steps multiply the weights in another way "
        "in each eigenspace",
        'gs.centered(activation), second_layer="gaussian", precondition=0, one step, or simulation',
        lambda problem: no_initial_output(problem) or not curved_and_preconditioned(problem),
    ),
    "odd where preconditioned": Condition(
        "σ is odd where several steps are preconditioned (else later batches multiply the weights "
        "as if they saw samples on one scale: test errors of networks at d = 500 to 800 are "
        "within 4 %, training errors within 8 %)",
        "several steps of an activation with an even part are preconditioned",
        "an odd activation, precondition=0, or one step",
        lambda problem: not curved_and_preconditioned(problem),
    ),
    "no mean output": Condition(
        "an unscaled network has E σ(z) = 0 or a second layer of mean zero",
        "the output of the unscaled network would start at order √N",
        'gs.centered(activation), or second_layer="gaussian"',
        lambda problem: problem.init.output == "scaled" or no_initial_output(problem),
    ),
    "steady output": Condition(
        "an unscaled network has E σ(z) = 0 (else its initial output has a mean of its own in "
        "every network, which is counted as noise: test errors of networks at d = 300 are within "
        "4 %, leading singular values of the weights within 6 %, and their squared overlaps "
        "within 10 %)",
        "the mean of the initial output differs from network to network",
        "gs.centered(activation)",
        lambda problem: (
            problem.init.output == "scaled" or not problem.steps or activation_centered(problem)
        ),
    ),
    "fresh readout": Condition(
        "the readout is trained on fresh samples",
        "the equations are those of a readout on fresh samples",
        'readout.batch="fresh", or simulation',
        lambda problem: problem.readout is None or problem.readout.batch == "fresh",
    ),
    "penalty or n ≠ N": Condition(
        "there is a penalty, or n ≠ N",
        "without a penalty the error of the readout is infinite at n = N",
        "readout.penalty > 0, or readout.samples other than the width",
        off_the_peak,
        of_sizes=True,
    ),
}
