"""The mark of what dotted paths may walk into, and of laws that files call by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from giantsteps.errors import InvalidProblem, check_names, suggest
from giantsteps.problem._checks import keywords, under

#: Metadata of a field that an older edition did not have. At its default such a field is left out
#: of files, of the canonical form and of the representation, so that problems that were written or
#: hashed before it existed stay what they were.
LATER = MappingProxyType({"later": True})


class Part:
    """A frozen dataclass whose fields are named by dotted paths, such as ``steps.0.rate``."""

    def __new__(cls, *args: Any, **named: Any) -> Self:
        """Refuse names that are no fields, with the fields that there are."""
        kind: Any = cls
        known = _names(kind)
        check_names(named, known, f"the fields of {cls.__name__}")
        if args and all(item.kw_only for item in fields(kind)):
            allowed = f"given by name: {', '.join(f'{name}=...' for name in known)}"
            raise InvalidProblem(f"arguments of {cls.__name__}", args, allowed)
        return super().__new__(cls)

    def named(self) -> dict[str, Any]:
        """Return the fields by name, in the order of their definition."""
        kind: Any = type(self)
        return {name: getattr(self, name) for name in _names(kind)}

    def unchecked(self, **values: Any) -> Self:
        """Return the same part with other values of some fields, known to be valid."""
        new = object.__new__(type(self))
        new.__dict__.update(self.named(), **values)
        return new

    def stated(self) -> dict[str, Any]:
        """Return the fields that files hold: all but the `LATER` ones that are at their default."""
        return {
            item.name: getattr(self, item.name)
            for item in fields(self)  # type: ignore[arg-type]
            if not (item.metadata == LATER and getattr(self, item.name) == _default(item))
        }

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.stated().items())
        return f"{type(self).__name__}({inside})"


@lru_cache(maxsize=128)
def _names(part: Any) -> tuple[str, ...]:
    """The names of the fields of a class."""
    return tuple(item.name for item in fields(part))


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


class Law(Part):
    """A part that files call by a name: the name alone, or a table with its parameters.

    Attributes
    ----------
    law : str
        The name.
    """

    law: ClassVar[str]

    def to_data(self) -> str | dict[str, Any]:
        """The law as it stands in a file: its name, or a table with its parameters."""
        parameters = {key: value for key, value in self.stated().items() if value is not None}
        if not parameters:
            return self.law
        lists = {key: list(v) if isinstance(v, tuple) else v for key, v in parameters.items()}
        return {"law": self.law, **lists}


_P = TypeVar("_P", bound=Part)
_L = TypeVar("_L", bound=Law)


def as_part(value: object, part: type[_P], path: str) -> _P:
    """Return ``value`` if it is a ``part``, or build one from a mapping."""
    if isinstance(value, part):
        return value
    if not isinstance(value, Mapping):
        article = "an" if part.__name__[0] in "AEIOU" else "a"
        allowed = f"{article} {part.__name__}(...) or a table of its fields"
        raise InvalidProblem(path, value, allowed)
    with under(path):
        return part(**keywords(value, part))


def as_law(spec: object, base: Any, known: Mapping[str, type[_L]], field: str, what: str) -> _L:
    """Return the law that ``spec`` means: a law, its name, or ``{"law": name, ...parameters}``."""
    if isinstance(spec, base):
        return spec
    name = spec.get("law") if isinstance(spec, Mapping) else spec
    if not isinstance(name, str) or name not in known:
        shown = f"{field}.law" if isinstance(spec, Mapping) else field
        missing = isinstance(spec, Mapping) and name is None
        needed = "given: it has no default" if missing else what
        raise InvalidProblem(shown, name, f"{needed}: {suggest(name, known)}")
    parameters = dict(spec) if isinstance(spec, Mapping) else {}
    parameters.pop("law", None)
    with under(field):
        return known[name](**keywords(parameters, known[name]))


def set_fields(part: Part, **values: object) -> None:
    """Set fields of a frozen part, from its ``__post_init__``."""
    for name, value in values.items():
        object.__setattr__(part, name, value)
