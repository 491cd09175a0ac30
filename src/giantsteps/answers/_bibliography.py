"""The one bibliography of the package: ``references.bib``, read once, looked up by key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from types import MappingProxyType

_ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?^\}", re.MULTILINE | re.DOTALL)


@cache
def bibliography() -> MappingProxyType[str, str]:
    """Every BibTeX entry of the package by its key, such as ``"ba2022"``."""
    text = resources.files(__package__).joinpath("references.bib").read_text(encoding="utf-8")
    return MappingProxyType({entry[1]: entry[0] for entry in _ENTRY.finditer(text)})


def bibtex(keys: Iterable[str]) -> str:
    """The BibTeX entries of ``keys``, in this order, separated by blank lines.

    Examples
    --------
    >>> bibtex(["ba2022"]).splitlines()[0]
    '@inproceedings{ba2022,'
    """
    return "\n\n".join(bibliography()[key] for key in keys)
