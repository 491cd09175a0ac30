"""The errors of giantsteps: each names the field, the value, what is allowed and what to try."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = [
    "GiantstepsError",
    "InvalidProblem",
    "MissingDependency",
    "NotConverged",
    "NotCovered",
    "StoreError",
]


class GiantstepsError(Exception):
    """Base of every error that giantsteps raises on purpose.

    Examples
    --------
    >>> import giantsteps as gs
    >>> try:
    ...     gs.Problem(activation="tanh", teacher="sin", width=-1)
    ... except GiantstepsError as error:
    ...     print(error)
    width = -1: must be a positive finite number (N/d)
    """


class InvalidProblem(GiantstepsError, ValueError):
    """A field has a value that is not allowed.

    Parameters
    ----------
    field : str
        Dotted path of the field, such as ``"steps.0.rate"``.
    value : object
        The value that was given.
    allowed : str
        What would have been allowed and, where it helps, what to try.
    """

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        try:
            shown = " ".join(repr(value).split())  # one line
        except ValueError:  # an integer too long to print
            shown = f"{type(value).__name__} too long to show"
        if len(shown) > 80:
            shown = shown[:77] + "..."
        super().__init__(f"{field} = {shown}: must be {allowed}")

    def __reduce__(self) -> tuple[type, tuple[str, object, str]]:
        return type(self), (self.field, self.value, self.allowed)


class NotCovered(GiantstepsError):
    r"""The theory does not answer this question for this problem.

    Parameters
    ----------
    what : str
        The question and the setting, such as ``"theory.risk at exponent 0.25"``.
    why : str
        What is outside the scope.
    covered : str
        What would be covered instead.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import theory
    >>> problem = gs.Problem(activation="relu", teacher="sin", width=1.0,
    ...                      steps=[gs.Step(samples=2, rate=1)],
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> try:
    ...     theory.risk(problem)
    ... except NotCovered as error:
    ...     print(error.why, error.covered, sep="\n")
    the activation must have mean zero
    gs.centered(activation), or pass d
    """

    def __init__(self, what: str, why: str, covered: str) -> None:
        self.what, self.why, self.covered = what, why, covered
        super().__init__(f"{what} is not covered: {why}. Try {covered}.")

    def __reduce__(self) -> tuple[type, tuple[str, str, str]]:
        return type(self), (self.what, self.why, self.covered)


class NotConverged(GiantstepsError):
    """A solver stopped before its tolerance; no approximate answer is returned.

    Parameters
    ----------
    setting : str
        What was being solved, with its parameters.
    residual : float
        Residual at which the solver stopped.
    iterations : int
        Number of iterations that it took.
    advice : str
        What to try.
    """

    def __init__(self, setting: str, residual: float, iterations: int, advice: str) -> None:
        self.setting, self.residual, self.iterations = setting, residual, iterations
        self.advice = advice
        super().__init__(
            f"{setting}: no convergence after {iterations} iterations "
            f"(residual {residual:.1e}). Try: {advice}."
        )

    def __reduce__(self) -> tuple[type, tuple[str, float, int, str]]:
        return type(self), (self.setting, self.residual, self.iterations, self.advice)


class MissingDependency(GiantstepsError, ImportError):
    """A library is missing that an extra of this package installs."""


class StoreError(GiantstepsError):
    """A results store cannot be read or written; nothing in it was changed."""


#: What things are called elsewhere → here.
_USUAL = {
    "lr": "rate",
    "eta": "rate",
    "learning_rate": "rate",
    "step_size": "rate",
    "batch_size": "samples",
    "n_samples": "samples",
    "lambda": "penalty",
    "lam": "penalty",
    "regularization": "penalty",
    "weight_decay": "decay",
    "noise": "noise_variance",
    "alpha": "penalty",
    "sgd": "gradient",
    "gd": "gradient",
    "signsgd": "sign",
    "adamw": "adam",
    "mse": "squared",
    "l2": "squared",
    "cross_entropy": "logistic",
    "bce": "logistic",
    "normal": "gaussian",
    "ones": "constant",
    "rademacher": "vocabulary",
    "discrete": "vocabulary",
    "identity": "isotropic",
}


def suggest(value: object, known: Iterable[str]) -> str:
    """Say which names are known and which of them was probably meant."""
    names = tuple(known)
    text = "one of " + ", ".join(f'"{name}"' for name in names)
    close: list[str] = []
    if isinstance(value, str):
        above, dot, last = value.lower().rpartition(".")
        usual = above + dot + _USUAL.get(last, last)
        close = [name for name in names if name == usual or name.endswith(f".{usual}")][:2]
        close = close or difflib.get_close_matches(value, names, n=1)
        ends = {name.rpartition(".")[2]: name for name in reversed(names)}
        close = close or [ends[end] for end in difflib.get_close_matches(value, ends, n=1)]
    meant = " or ".join(f'"{name}"' for name in close)
    return f"{text} (did you mean {meant}?)" if close else text


def check_names(
    given: Mapping[str, Any], known: Iterable[str], what: str, prefix: str = ""
) -> None:
    """Refuse a name that is not ``known``, and say ``what`` the known ones are: "the options"."""
    names = tuple(known)
    for name, value in given.items():
        if name not in names:
            listed = suggest(name, names).removeprefix("one of ")
            raise InvalidProblem(f"{prefix}{name}", value, f"left out: {what} are {listed}")
