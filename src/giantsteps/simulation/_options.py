"""Options that do not exist are refused by name, as every other bad input is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from giantsteps.errors import InvalidProblem

__all__ = ["allowed_options", "refuse_unknown", "run_options", "split_options"]

_F = TypeVar("_F", bound=Callable[..., Any])

#: Options of earlier versions, and what became of them.
_GONE = {"rng": "left out: numbers are drawn where they are used, the same on every device"}
#: How a network is drawn and computed, whatever is asked of it: the options of `Run`.
_OF_RUN = ("device", "dtype", "test_samples", "memory", "inputs", "data")


def run_options(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The options of `Run` among the arguments of a question."""
    return {name: arguments[name] for name in _OF_RUN}


def split_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of `Run` among those given, and the others."""
    own = {name: value for name, value in options.items() if name in _OF_RUN}
    return own, {name: value for name, value in options.items() if name not in _OF_RUN}


def allowed_options(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments that are given by keyword only."""
    parameters = inspect.signature(function).parameters.values()
    return [item.name for item in parameters if item.kind is item.KEYWORD_ONLY]


def refuse_unknown(function: _F) -> _F:
    """Raise `InvalidProblem` for a keyword that ``function`` does not take, with those it does."""
    parameters, allowed = inspect.signature(function).parameters, allowed_options(function)

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        for name, value in options.items():
            if name not in parameters:
                hint = _GONE.get(name, f"left out: the options are {', '.join(allowed)}")
                raise InvalidProblem(name, value, hint)
        return function(*args, **options)

    return checked  # type: ignore[return-value]
