"""The options of a run, stated once: questions take them all, and refuse others by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

from giantsteps.errors import InvalidProblem
from giantsteps.problem import suggest
from giantsteps.simulation._network._data import Data
from giantsteps.simulation._networks import Networks

_F = TypeVar("_F", bound=Callable[..., Any])

#: Functions of this package that ask a network, by name: what `batch` can be asked.
QUESTIONS: dict[str, Callable[..., Any]] = {}
#: Options of earlier versions or of other functions, and what to do instead.
_ELSEWHERE = {
    "rng": "left out: numbers are drawn where they are used, the same on every device",
    "seeds": "left out: one call draws one network, with seed=0; for several give "
    "simulation.batch a list of seeds, or average them against theory by gs.compare",
}


class RunOptions(TypedDict, total=False):
    """How a network is drawn and computed, whatever is asked of it; defaults: `Networks`."""

    device: object
    dtype: str
    test_samples: int | str | None
    memory: str | int | None
    inputs: object
    data: Data | None


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of `Run` among those given, and the others."""
    names = RunOptions.__annotations__
    own = {name: value for name, value in options.items() if name in names}
    return own, {name: value for name, value in options.items() if name not in names}


def allowed_options(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments that are given by keyword only."""
    parameters = inspect.signature(function).parameters.values()
    return [item.name for item in parameters if item.kind is item.KEYWORD_ONLY]


def refuse_unknown(function: _F) -> _F:
    """Raise `InvalidProblem` for a keyword that ``function`` does not take, with those it does.

    Its ``**options`` are those of a run, and its signature has them written out.
    """
    own = inspect.signature(function)
    parameters = {key: item for key, item in own.parameters.items() if key != "options"}
    if len(parameters) < len(own.parameters):
        of_run = inspect.signature(Networks).parameters
        parameters |= {key: of_run[key] for key in RunOptions.__annotations__}

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        for name, value in options.items():
            if name not in parameters:
                known = suggest(name, allowed_options(checked)).removeprefix("one of ")
                hint = _ELSEWHERE.get(name, f"left out: the options are {known}")
                raise InvalidProblem(name, value, hint)
        return function(*args, **options)

    checked.__signature__ = own.replace(parameters=list(parameters.values()))  # type: ignore[attr-defined]
    return checked  # type: ignore[return-value]


def question(function: _F) -> _F:
    """Of a function that asks one network: `batch` knows it, and unknown keywords are refused."""
    checked = QUESTIONS[function.__name__] = refuse_unknown(function)
    return checked
