"""Problems as plain data: TOML and JSON without loss, and the canonical form that is hashed."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import tomli_w

from giantsteps.errors import InvalidProblem
from giantsteps.problem._part import Law, Part

_FORM = 1  # version of the canonical form: to be raised when the meaning of a field changes


class Saved:
    """What problems and grids share: TOML and JSON, by way of their plain data."""

    if TYPE_CHECKING:

        def to_data(self) -> dict[str, Any]: ...

        @classmethod
        def from_data(cls, data: Mapping[str, Any]) -> Self: ...

    def to_toml(self) -> str:
        """Return it as TOML text."""
        return to_toml(self.to_data())

    @classmethod
    def from_toml(cls, source: str | os.PathLike[str]) -> Self:
        """Read it from TOML: a text, or a ``pathlib.Path`` to a file."""
        return cls.from_data(read_toml(source))

    def to_json(self) -> str:
        """Return it as JSON text."""
        return json.dumps(self.to_data(), indent=2, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, source: str | os.PathLike[str]) -> Self:
        """Read it from JSON: a text, or a ``pathlib.Path`` to a file."""
        try:
            data = json.loads(_text(source))
        except (ValueError, RecursionError) as error:
            raise InvalidProblem("json", source, f"valid JSON ({error})") from None
        return cls.from_data(data)


def to_data(value: Any) -> Any:
    """Return a part of a problem as plain data; a field that is None is left out."""
    if isinstance(value, Part) and not isinstance(value, Law):
        return {name: to_data(item) for name, item in value.stated().items() if item is not None}
    if isinstance(value, tuple | list):
        return [to_data(item) for item in value]
    if hasattr(value, "to_data"):
        return value.to_data()
    return value


def content_hash(kind: str, data: Any) -> str:
    """Return the SHA-256 of the canonical form, in hex; ``kind`` keeps problems and grids apart.

    The canonical form of ``data`` (from :func:`to_data`: defaults filled in, but for fields of
    later editions, which are left out at their default; functions by canonical text) is JSON with
    sorted keys and floats by ``repr``, so that neither the process, nor the machine, nor the order
    of a dict matters.
    """
    form = {"form": _FORM, "kind": kind, "content": data}
    text = json.dumps(form, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def to_toml(data: dict[str, Any]) -> str:
    try:
        return tomli_w.dumps(data)
    except TypeError as error:
        allowed = f"without None, for which TOML has no word ({error})"
        raise InvalidProblem("toml", data, allowed) from None


def read_toml(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Read TOML from a text or a path."""
    try:
        return tomllib.loads(_text(source))
    except (ValueError, RecursionError) as error:
        if isinstance(source, str) and source.strip().endswith(".toml"):
            allowed = f'TOML text, or the path of a file: pathlib.Path("{source.strip()}")'
            raise InvalidProblem("toml", source, allowed) from None
        raise InvalidProblem("toml", source, f"valid TOML ({error})") from None


def _text(source: str | os.PathLike[str]) -> str:
    if isinstance(source, str):
        return source
    if not isinstance(source, os.PathLike):
        raise InvalidProblem("source", source, "a text, or a pathlib.Path to a file")
    return Path(source).read_text(encoding="utf-8-sig")
