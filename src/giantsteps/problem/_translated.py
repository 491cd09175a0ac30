"""Other ways to state a problem: by integers, by a PyTorch module, in the units of a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Self

from giantsteps.errors import InvalidProblem
from giantsteps.problem._checks import integer
from giantsteps.problem._parts import Ridge
from giantsteps.problem._step import Step
from giantsteps.problem._validation import with_samples


class Translated:
    """What a problem translates from and into."""

    @classmethod
    def from_sizes(
        cls,
        *,
        d: int,
        neurons: int,
        step_samples: Sequence[int] = (),
        samples: int | None = None,
        steps: Sequence[Step | Mapping[str, Any]] = (),
        readout: Ridge | Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Self:
        """Build a problem from integers: the inverse of :meth:`at`.

        Parameters
        ----------
        d, neurons, step_samples, samples : int
            d, N, one n₀ for each step, n (None without a readout).
        steps, readout, **fields
            The rest of the problem; steps and readout as mappings without ``samples``, or as
            :class:`Step` and :class:`Ridge`, whose ``samples`` are replaced.

        Examples
        --------
        >>> import giantsteps as gs
        >>> problem = gs.Problem.from_sizes(
        ...     d=1000, neurons=1500, step_samples=[2000], steps=[{"rate": 1.0}],
        ...     activation="tanh", teacher="sin",
        ... )
        >>> problem.width
        1.5
        """
        d = integer(d, "d", "an integer >= 1")
        if "width" in fields:
            raise InvalidProblem("width", fields["width"], "left out: it is neurons / d")
        allowed = f"a list of {len(steps)} integers, one for each step"
        if isinstance(step_samples, str) or not hasattr(step_samples, "__len__"):
            raise InvalidProblem("step_samples", step_samples, allowed)
        if len(step_samples) != len(steps):
            raise InvalidProblem("step_samples", step_samples, allowed)
        if (readout is None) != (samples is None):
            raise InvalidProblem("samples", samples, "given together with the readout")
        make: Any = cls
        return make(
            width=integer(neurons, "neurons", "an integer >= 1") / d,
            steps=[
                with_samples(step, n0, d, f"step_samples.{index}")
                for index, (step, n0) in enumerate(zip(steps, step_samples, strict=True))
            ],
            readout=None if readout is None else with_samples(readout, samples, d, "samples"),
            **fields,
        )

    @classmethod
    def from_module(
        cls,
        module: Any,
        data: Any,
        *,
        activation: Any = None,
        steps: Sequence[Step] = (),
        readout: Ridge | None = None,
        output: str = "scaled",
    ) -> Self:
        """Return the problem that a two-layer PyTorch module and its data pose.

        The activation and the width come from the module, the teacher and the noise from the data
        (:func:`giantsteps.practice.fit_teacher`), the law of the second layer from its weights.

        Parameters
        ----------
        module : nn.Module
            Linear(d, N), an activation, Linear(N, 1), as it is before training.
        data : (inputs, labels), mapping, Data, or path
            White inputs, one output.
        activation : Function, str or callable, optional
            Where the module does not tell.
        steps, readout
            Of the problem; rates in the theory's convention.
        output : {"scaled", "unscaled"}
            Whether the output is small at the start or of order one, as in PyTorch's default
            initialisation; see :class:`Init`. It matters to steps alone.

        Raises
        ------
        InvalidProblem, NotCovered
            If module or data do not fit the theory; the message says what does.

        Notes
        -----
        The theory has no biases: those of the first layer may have 0.2 of the neurons' norm.
        Steps of a network whose output is not small at the start need ``output="unscaled"``.

        Examples
        --------
        >>> import numpy as np, torch
        >>> import giantsteps as gs
        >>> from giantsteps import theory
        >>> module = torch.nn.Sequential(torch.nn.Linear(50, 80, bias=False), torch.nn.Tanh(),
        ...                              torch.nn.Linear(80, 1, bias=False))
        >>> x = np.random.default_rng(0).standard_normal((3000, 50))
        >>> problem = gs.Problem.from_module(module, (x, np.sin(x[:, 0])),
        ...                                  readout=gs.Ridge(samples=4, penalty=0.1))
        >>> problem.width, bool(0 < theory.risk(problem).test < 1)
        (1.6, True)
        """
        found: Self = import_module("giantsteps.practice").problem_of_module(
            module, data, activation=activation, steps=steps, readout=readout, output=output
        )
        return found

    def in_convention(self, name: str, d: int | None = None) -> dict[str, Any]:
        """Return the problem in the symbols and units of a paper: keyword → value.

        Parameters
        ----------
        name : {"ba2022", "cui2024", "moniri2023", "moniri2026"}
        d : int, optional
            If given, sizes are integers instead of ratios, and learning rates are those of the
            network instead of the coefficients of its powers.
        """
        from giantsteps.problem._conventions import convention

        problem: Any = self
        return convention(name).write(problem, d)

    @classmethod
    def from_convention(cls, name: str, /, **values: Any) -> Self:
        """Build a problem from the symbols and units of a paper: the inverse of in_convention.

        Examples
        --------
        >>> import giantsteps as gs
        >>> problem = gs.Problem.from_convention(
        ...     "cui2024", activation="tanh", teacher="sin",
        ...     beta=1.0, alpha0=20.0, alpha=2.0, eta_tilde=3.0, lam=0.1,
        ... )
        >>> problem.steps[0].exponent, problem.readout.penalty
        (0.5, 0.05)
        """
        from giantsteps.problem._conventions import convention

        found: Any = convention(name).read(values)
        return found
