"""A :class:`Problem` states a setting once, for theory and simulation alike."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from giantsteps.errors import InvalidProblem
from giantsteps.functions import Function, SingleIndex, Teacher, as_function, as_teacher
from giantsteps.problem import _display, _paths, _serialize
from giantsteps.problem._checks import integer, keywords, number
from giantsteps.problem._covariance import Covariance, SpikedCovariance
from giantsteps.problem._inputs import Inputs, Isotropic
from giantsteps.problem._part import LATER, Part, as_law, as_part, set_fields
from giantsteps.problem._parts import Init, Ridge, Sizes
from giantsteps.problem._power_law import PowerLaw
from giantsteps.problem._serialize import Saved
from giantsteps.problem._step import Step
from giantsteps.problem._translated import Translated
from giantsteps.problem._validation import (
    as_steps,
    check_function_once,
    check_readout,
    check_slope,
    is_binary,
    size_at,
)

#: The laws of the inputs by their names in files.
_INPUTS: dict[str, type[Inputs]] = {
    law.law: law for law in (Isotropic, Covariance, PowerLaw, SpikedCovariance)
}
INPUTS = tuple(_INPUTS)

# Fields that are validated together: a grid over several of them checks every combination.
COUPLED = ("activation", "steps", "readout")


@dataclass(frozen=True, kw_only=True, repr=False)
class Problem(Saved, Translated, Part):
    r"""A two-layer network, its teacher, its gradient steps and its readout (theory §0).

    Inputs x ~ N(0, Σ), by default with Σ = I_d, and labels y = σ*(⟨x, β*⟩) + ε with
    ⟨β*, Σβ*⟩ = 1 and Var ε = Δ. The network f(x) = N^{-1/2} aᵀσ(Wᵀx) starts as ``init`` says,
    takes the ``steps`` on W, and then learns a new second layer by ridge regression (``readout``).

    ======  ================  ====================================================================
    symbol  argument          meaning
    ======  ================  ====================================================================
    σ       activation        a name, an expression, a function (``giantsteps.functions``)
    σ*      teacher           the same, or a teacher of higher rank
    N/d     width             > 0
    Δ       noise_variance    ≥ 0
    \       steps             sequence of :class:`Step`, none for random features
    \       readout           :class:`Ridge`, or None where no question asks for one
    \       init              :class:`Init`
    Σ       inputs            :class:`Isotropic`, :class:`Covariance`, :class:`PowerLaw` or
                              :class:`SpikedCovariance`
    ======  ================  ====================================================================

    Problems are immutable, and equal and hashable by value. A part may be given as a mapping of its
    fields, as in a TOML file. Every field has a dotted path (:meth:`replace`).

    Raises
    ------
    InvalidProblem
        Naming the path of the field, its value and what is allowed.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> problem = Problem(
    ...     activation="tanh",
    ...     teacher="sin",
    ...     width=1.5,
    ...     steps=[Step(samples=2.0, rate=1.0, exponent=0.5)],
    ...     readout=Ridge(samples=2.0, penalty=0.1),
    ... )
    >>> problem.at(1000)
    Sizes(d=1000, neurons=1500, step_samples=(2000,), samples=2000)
    """

    activation: Function
    teacher: Teacher
    width: float
    noise_variance: float = 0.0
    steps: tuple[Step, ...] = ()
    readout: Ridge | None = None
    init: Init = dataclasses.field(default_factory=Init)
    inputs: Inputs = dataclasses.field(default_factory=Isotropic, metadata=LATER)

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            activation: Function | str | Mapping[str, Any] | Callable[..., Any],
            teacher: Teacher | Function | str | Mapping[str, Any] | Callable[..., Any],
            width: float,
            noise_variance: float = 0.0,
            steps: Sequence[Step | Mapping[str, Any]] = (),
            readout: Ridge | Mapping[str, Any] | None = None,
            init: Init | Mapping[str, Any] = ...,
            inputs: Inputs | str | Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        activation = as_function(self.activation, "activation")
        check_function_once(activation, "activation")
        teacher = as_teacher(self.teacher)
        if isinstance(teacher, SingleIndex):
            check_function_once(teacher.link, "teacher")
        width = number(
            self.width, "width", "a positive finite number (N/d)", lower=0.0, open_below=True
        )
        noise = number(
            self.noise_variance, "noise_variance", "a finite number >= 0 (a variance)", lower=0.0
        )
        steps = as_steps(self.steps)
        if steps:
            check_slope(activation)
        readout = None if self.readout is None else as_part(self.readout, Ridge, "readout")
        check_readout(readout, steps)
        set_fields(
            self,
            activation=activation,
            teacher=teacher,
            width=width,
            noise_variance=noise,
            steps=steps,
            readout=readout,
            init=as_part(self.init, Init, "init"),
            inputs=as_law(self.inputs, Inputs, _INPUTS, "inputs", "a law of the inputs"),
        )

    # Sizes -------------------------------------------------------------------------------------

    def at(self, d: int) -> Sizes:
        """Return the integers of a network with inputs of dimension ``d``: round(ratio · d).

        Raises
        ------
        InvalidProblem
            If a ratio is too small for ``d``: each size is at least one; or if the law of the
            inputs needs a larger ``d``.
        """
        d = integer(d, "d", "an integer >= 1 (the dimension of the inputs)")
        self.inputs.at(d)
        return Sizes(
            d=d,
            neurons=size_at(self.width, d, "width"),
            step_samples=tuple(
                size_at(step.samples, d, f"steps.{index}.samples")
                for index, step in enumerate(self.steps)
            ),
            samples=(
                None
                if self.readout is None
                else size_at(self.readout.samples, d, "readout.samples")
            ),
        )

    def realised(self, d: int) -> Problem:
        """Return the problem whose ratios are exactly those of the integers at d.

        These are N/d, n₀/d, n/d, and the shares of the eigenvalues of the inputs.
        """
        sizes, readout = self.at(d), self.readout
        if readout is not None and sizes.samples is not None:
            readout = readout.unchecked(samples=sizes.samples / sizes.d)
        return self.unchecked(
            width=sizes.neurons / sizes.d,
            inputs=self.inputs.at(sizes.d),
            steps=tuple(
                step.unchecked(samples=samples / sizes.d)
                for step, samples in zip(self.steps, sizes.step_samples, strict=True)
            ),
            readout=readout,
        )

    # Parts and paths ---------------------------------------------------------------------------

    def untrained(self) -> Problem:
        """Return the same problem without its steps: random features.

        A readout on the batch of the last step becomes one on fresh samples.
        """
        readout = self.readout and self.readout.unchecked(batch="fresh")
        return self.unchecked(steps=(), readout=readout)

    def split_steps(self, count: int) -> Problem:
        """Return the problem with its steps replaced by ``count`` equal ones on fresh batches.

        The samples of all steps together and the sum of their rates stay; exponent, rule and the
        rest are those of the first step.

        Examples
        --------
        >>> import giantsteps as gs
        >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
        ...                      steps=[gs.Step(samples=6, rate=3, exponent=0.5)])
        >>> [(step.samples, step.rate) for step in problem.split_steps(3).steps]
        [(2.0, 1.0), (2.0, 1.0), (2.0, 1.0)]
        """
        count = integer(count, "count", "an integer >= 1", lower=1)
        if not self.steps:
            raise InvalidProblem("steps", (), "at least one step to split")
        for index, step in enumerate(self.steps):
            if step.batch != "fresh":
                raise InvalidProblem(
                    f"steps.{index}.batch", step.batch, '"fresh": a reused batch is not split'
                )
        part = dataclasses.replace(
            self.steps[0],
            samples=sum(step.samples for step in self.steps) / count,
            rate=sum(step.rate for step in self.steps) / count,
        )
        return dataclasses.replace(self, steps=(part,) * count)

    def require_readout(self, d: int | None = None) -> Ridge:
        """Return the readout, with n/d of the integers at ``d`` if that is given.

        Raises
        ------
        InvalidProblem
            If the problem has no readout.
        """
        if self.readout is None:
            raise InvalidProblem(
                "readout", None, "given for this question: Ridge(samples=..., penalty=...)"
            )
        if d is None:
            return self.readout
        return self.readout.unchecked(
            samples=size_at(self.readout.samples, d, "readout.samples") / d
        )

    @property
    def binary(self) -> bool:
        """Whether the teacher takes the values ±1 only, so that signs can be right or wrong."""
        return is_binary(self.teacher)

    def paths(self) -> tuple[str, ...]:
        """Return the dotted path of every part and field: what :meth:`replace` takes."""
        return tuple(_paths.walk(self))

    def get(self, path: str) -> Any:
        """Return what a dotted path names, such as ``problem.get("steps.0.rate")``."""
        return _paths.get(self, path)

    def replace(self, changes: Mapping[str, Any] | None = None, /, **fields: Any) -> Problem:
        """Return the problem with other values at some dotted paths, validated together.

        Fields of the problem itself may also be given by keyword. A step or a readout that reuses
        the batch of the previous step follows when the samples of that step change.

        Examples
        --------
        >>> problem = Problem(activation="tanh", teacher="sin", width=1.0, steps=[
        ...     Step(samples=2, rate=1)])
        >>> problem.replace(width=2).width, problem.replace({"steps.0.rate": 3}).steps[0].rate
        (2.0, 3.0)
        """
        given = {} if changes is None else changes
        if not isinstance(given, Mapping):
            raise InvalidProblem("changes", changes, 'a mapping such as {"steps.0.rate": 2.0}')
        for name, value in fields.items():
            if name in given:
                raise InvalidProblem(name, value, "given once, in the mapping or by keyword")
        return _paths.replace(self, {**given, **fields})

    # Files and hashes --------------------------------------------------------------------------

    def to_data(self) -> dict[str, Any]:
        """Return the problem as plain dicts, lists, strings and floats, defaults filled in."""
        return _serialize.to_data(self)

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Problem:
        """Build a problem from what :meth:`to_data` returns; defaults may be left out."""
        return cls(**keywords(data, cls))

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the canonical form, in hex: the same for equal problems in every process."""
        return _serialize.content_hash("problem", self.to_data())

    # Display -----------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return _display.text(self)

    def _repr_latex_(self) -> str:
        return _display.latex(self)

    def _repr_html_(self) -> str:
        return _display.html(self)
