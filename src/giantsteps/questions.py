"""The registry of questions: what theory and simulation can be asked, in one table.

``compare``, sweeps, the command line, the certificate and the golden values read it; nothing else
lists questions. A new question is an answer type, a function on either side, and a row here; the
common test of the registry says whether it behaves like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from giantsteps.errors import InvalidProblem, NotCovered, check_names, suggest

if TYPE_CHECKING:
    from giantsteps.answers import Answer

#: Who answers.
Side: TypeAlias = Literal["theory", "simulation"]


@dataclass(frozen=True)
class Option:
    """A keyword of a question."""

    default: Any  # its value unless given
    allowed: str  # the values that it takes, in words
    help: str  # what it does, as a full phrase
    sides: tuple[Side, ...] = ("theory", "simulation")  # who takes it
    #: Whether it only says how much of a simulation is kept, so that theory answers the same
    #: question without it.
    detail: bool = False


@dataclass(frozen=True)
class _Same:
    """The same quantities for every answer."""

    paths: tuple[str, ...]

    def __call__(self, answer: Any) -> Sequence[str]:
        return self.paths


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question: who answers it, with what, and what is compared."""

    name: str  # its name in ``compare``, sweeps and the command line
    summary: str  # what is asked, as a phrase for help texts
    answer: str  # name of the answer's type in `giantsteps.answers`
    #: ``"package:function"``, imported when first used; None where that side has no answer.
    theory: str | None = None
    simulation: str | None = None
    #: What the problem must have.
    needs_readout: bool = False
    needs_step: bool = False
    #: Its keywords; those of every simulated network are in `RUN_OPTIONS`.
    options: Mapping[str, Option] = field(default_factory=dict)
    #: What is compared unless asked otherwise: an answer of theory → paths of its numbers.
    quantities: Callable[[Any], Sequence[str]] = _Same(())
    #: Raised when values of that side change, be it by a corrected equation or by another order of
    #: random numbers. Stored results carry it in their addresses, so that what an old version
    #: answered is computed again. The golden values of the tests guard it.
    theory_version: int = 2
    simulation_version: int = 3
    finite: bool = True  # whether theory also answers at a given d
    #: Keywords that are always passed to the functions.
    fixed: Mapping[str, Any] = field(default_factory=dict)
    #: Fields of the problem that play no part → what stands in their place, so that problems which
    #: differ in nothing else are simulated once.
    unseen: Mapping[str, Any] = field(default_factory=dict)
    initial: bool = False  # whether it is also asked of the network before its steps
    together: bool = False  # whether one call answers many problems faster than many calls do

    @property
    def sides(self) -> tuple[Side, ...]:
        """Who answers."""
        found: dict[Side, Any] = {"theory": self.theory, "simulation": self.simulation}
        return tuple(side for side, function in found.items() if function is not None)

    def function(self, side: Side) -> Callable[..., Answer]:
        """The function that answers.

        Raises
        ------
        InvalidProblem
            If that side has no answer, with the questions that it does answer.
        """
        reference = getattr(self, side)
        if reference is None:
            known = ", ".join(f'"{name}"' for name in names(side))
            only = f'only {self.sides[0]} answers "{self.name}"'
            beside = self.name.removeprefix("tangent_")
            if beside != self.name:
                only += (
                    f'; compare "{beside}" with the quantity "tangent.NAME" shows it beside theory'
                )
            raise InvalidProblem("question", self.name, f"one that {side} answers: {known}; {only}")
        module, _, name = reference.partition(":")
        found: Callable[..., Answer] = getattr(import_module(module), name)
        return partial(found, **self.fixed) if self.fixed else found

    def version(self, source: str) -> int:
        """The version of its answers, by where they come from (see ``answers.Source``)."""
        return self.simulation_version if source == "simulation" else self.theory_version

    def takes(self, side: Side) -> frozenset[str]:
        """Names of the options that a side takes."""
        return frozenset(name for name, option in self.options.items() if side in option.sides)

    def check_options(self, given: Mapping[str, Any], beside: Iterable[str] = ()) -> None:
        """Refuse names that are neither options of the question nor of a simulated network.

        The error names those ``beside`` them, too: arguments of the caller itself.
        """
        known = dict.fromkeys([*beside, *self.options, *RUN_OPTIONS])
        check_names(given, known, "the options")


def names(*sides: Side) -> tuple[str, ...]:
    """Names of the questions that all these sides answer."""
    return tuple(
        name for name, asked in QUESTIONS.items() if all(side in asked.sides for side in sides)
    )


def question(name: str) -> Question:
    """The question of that name.

    * ``name``: such as ``"risk"``.

    Raises
    ------
    InvalidProblem
        If there is none, with the names that there are.
    """
    if not isinstance(name, str) or name not in QUESTIONS:
        raise InvalidProblem("question", name, suggest(name, QUESTIONS))
    return QUESTIONS[name]


# What is compared -----------------------------------------------------------------------------


def _risk_quantities(answer: Any) -> Sequence[str]:
    before = answer.initial is not None and bool(answer.field("steps"))
    return ("test", "train", *(("initial.test", "gain") if before else ()))


def _spike_quantities(answer: Any) -> Sequence[str]:
    if not answer.spikes:
        raise NotCovered(
            "a comparison of spikes",
            "theory predicts none for this problem",
            "problems beyond the threshold (a larger rate or more samples)",
        )
    parts = ("value", "overlap")
    return [f"spikes.{n}.{part}" for n in range(len(answer.spikes)) for part in parts]


def _gradient_quantities(answer: Any) -> Sequence[str]:
    # Directions that coincide in the limit have overlap one: simulations only approach it.
    moving = [name for name, value in answer.overlaps.items() if not _is_one(value)]
    return ("spike_norm", "residual_frobenius_norm", *(f"overlaps.{name}" for name in moving))


def _is_one(value: Any) -> bool:
    return value == 1.0 if isinstance(value, float) else bool((value == 1.0).all())


def _trajectory_quantities(answer: Any) -> Sequence[str]:
    return ("value",) if answer.test is None else ("test", "train")


# Options --------------------------------------------------------------------------------------


def _simulated(default: Any, allowed: str, help: str, detail: bool = False) -> Option:
    return Option(default, allowed, help, sides=("simulation",), detail=detail)


#: Options of every simulated network, by name.
RUN_OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        "device": _simulated(None, '"cpu", or one of PyTorch such as "cuda"', "Where to simulate."),
        "dtype": _simulated("float64", '"float64" or "float32"', "Precision of the products."),
        "test_samples": _simulated(None, 'an integer, or "exact"', "Number of test points."),
        "memory": _simulated(None, 'bytes, or a text such as "4 GB"', "Memory of a network."),
        "inputs": _simulated("gaussian", "a law of the inputs", "Law of the inputs."),
        "data": _simulated(None, "a gs.Data", "Data of your own in place of drawn ones."),
    }
)

_KIND = _simulated("conjugate", '"conjugate" or "tangent"', "Which kernel the readout uses.")
_TOP = _simulated(4, "an integer >= 1", "How many of the largest values are kept.", True)
_LEADING = Option(1, "an integer >= 1", "How many of the largest singular values are given.")
_BULK = _simulated(True, "true or false", "Whether all values are kept.", True)
_INITIAL = _simulated(
    False, "true or false", "Whether the errors before the steps are computed alongside.", True
)
_DEGREES = _simulated(4, "an integer >= 0", "Highest degree of the parts of the error.", True)
_LENGTHENING = Option(True, "true or false", "Whether the steps lengthen the weights.", ("theory",))
_ALONG = Option("spike", '"spike" or "teacher"', "The direction that is looked along.")
_POINTS = Option(None, "a list of numbers", "Points along the direction.")

# The table ------------------------------------------------------------------------------------


def _question(name: str, answer: str, summary: str, sides: str, **facts: Any) -> Question:
    """A row whose functions are called as the question: ``sides`` "t", "s" or "ts"."""
    packages = {"t": "theory", "s": "simulation"}
    found = {packages[side]: f"giantsteps.{packages[side]}:{name}" for side in sides}
    return Question(name=name, answer=answer, summary=summary, **{**found, **facts})


_NO_READOUT: dict[str, Any] = {"unseen": {"readout": None}}
_NO_PENALTY: dict[str, Any] = {"needs_readout": True, "unseen": {"readout.penalty": 0.0}}
_RISK: dict[str, Any] = {"needs_readout": True, "quantities": _risk_quantities}
_TRAINED: dict[str, Any] = {"initial": True, "together": True}
_SPECTRUM: dict[str, Any] = {"initial": True, "quantities": _spike_quantities}
_LIMIT: dict[str, Any] = {"finite": False}
_TANGENT: dict[str, Any] = {"fixed": {"kind": "tangent"}}
_ROWS = (
    _question(
        "risk", "Risk", "test and training error of the readout", "ts",
        theory_version=6, options={"kind": _KIND, "degrees": _DEGREES, "initial": _INITIAL},
        **_RISK, **_TRAINED,
    ),
    _question(
        "weights", "Spectrum", "singular values of the weights", "ts",
        theory_version=8, options={"top": _TOP, "bulk": _BULK}, **_NO_READOUT, **_SPECTRUM,
    ),
    _question(
        "kernel", "Spectrum", "eigenvalues of the kernel of the readout's samples", "ts",
        theory_version=8, options={"top": _TOP, "kind": _KIND, "bulk": _BULK},
        **_NO_PENALTY, **_SPECTRUM,
    ),
    _question(
        "features", "Spectrum", "singular values of the features", "ts",
        theory_version=8, simulation_version=4,
        options={"top": _TOP, "bulk": _BULK}, **_NO_PENALTY, **_SPECTRUM,
    ),
    _question(
        "gradient", "Gradient", "the first gradient: its spike and the rest", "ts",
        needs_step=True, theory_version=5, quantities=_gradient_quantities, **_NO_READOUT,
    ),
    _question(
        "learned_function", "LearnedFunction", "the learned function along one direction", "ts",
        needs_readout=True, theory_version=6, simulation_version=4,
        options={"along": _ALONG, "x": _POINTS},
        quantities=_Same(("mean",)),
    ),
    _question(
        "degrees_of_freedom", "DegreesOfFreedom",
        "effective penalty and degrees of freedom of the readout", "ts",
        needs_readout=True, theory_version=6, quantities=_Same(("kappa", "df1", "df2")),
    ),
    _question(
        "bounds", "Bounds", "lower and upper bounds on the test error", "t",
        theory_version=4, **_LIMIT,
    ),
    _question(
        "training_loss", "TrainingLoss", "minimum of the penalised training loss", "t",
        needs_readout=True, options={"lengthening": _LENGTHENING}, **_LIMIT,
    ),
    _question(
        "staircase_risk", "Risk",
        "test and training error between small and large learning rates", "t",
        needs_step=True, options={"lengthening": _LENGTHENING}, **_RISK, **_LIMIT,
    ),
    _question(
        "outlier_count", "OutlierCount", "number of outliers of the weights after two steps", "t",
        **_NO_READOUT, **_LIMIT,
    ),
    _question(
        "movement", "Movement", "how far each step moves weights, features and output", "ts",
        needs_step=True, theory_version=4, simulation_version=2,
        quantities=_Same(("weights", "preactivations", "features", "output")),
        **_NO_READOUT,
    ),
    _question(
        "trajectory", "Trajectory", "errors, outliers and overlaps after each step", "ts",
        needs_step=True, theory_version=5, simulation_version=3, options={"top": _LEADING},
        quantities=_trajectory_quantities,
    ),
    _question(
        "tangent_kernel", "Spectrum", "eigenvalues of the tangent kernel of the readout's samples",
        "", simulation="giantsteps.simulation:kernel", options={"top": _TOP, "bulk": _BULK},
        **_NO_PENALTY, **_SPECTRUM, **_TANGENT,
    ),
    _question(
        "tangent_risk", "Risk",
        "test and training error of ridge regression with the tangent kernel",
        "", simulation="giantsteps.simulation:risk",
        options={"degrees": _DEGREES, "initial": _INITIAL},
        **_RISK, **_TRAINED, **_TANGENT,
    ),
)  # fmt: skip

#: Every question by name.
QUESTIONS: Mapping[str, Question] = MappingProxyType({row.name: row for row in _ROWS})
