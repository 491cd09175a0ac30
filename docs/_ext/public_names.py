"""Every public name has a page: constants and types with the ``#:`` comment above them.

Autodoc looks for such a comment in the package that exports a name, but the name is assigned in
one of its private modules. After a build a public name without a page is a warning, and so fails
``make docs``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import get_args

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

logger = logging.getLogger(__name__)


def public_names(package: str = "giantsteps") -> Iterator[tuple[str, str]]:
    """(package, name) for every public package below ``package``: its ``__all__``, and the classes
    that its functions return.

    A package without ``__all__`` is a folder of the one around it, which exports what is public.
    """
    for info in iter_modules(import_module(package).__path__, f"{package}."):
        inner = package == "giantsteps.theory"  # its folders are layers, not packages
        if inner or info.name.rpartition(".")[2].startswith("_"):
            continue
        module = import_module(info.name)
        if not hasattr(module, "__all__"):
            continue
        yield from ((info.name, name) for name in documented(module))
        if info.ispkg:
            yield from public_names(info.name)


def documented(module: ModuleType) -> list[str]:
    """What is called, and the classes of what comes back."""
    return [*module.__all__, *getattr(module, "RETURNED", ())]


def comment(package: str, name: str) -> list[str]:
    """The ``#:`` comment of a name, from the module of the package that assigns it."""
    for module in sorted(sys.modules):
        if module.startswith(f"{package}.") and vars(sys.modules[module]).get(name) is not None:
            found = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if found:
                return list(found)
    return []


def value(obj: object) -> list[str]:
    """What a constant or a type is, where that is short."""
    if choices := get_args(obj):
        shown = [choice if isinstance(choice, type) else repr(choice) for choice in choices]
        return ["One of " + ", ".join(f"``{getattr(c, '__name__', c)}``" for c in shown) + "."]
    text = repr(obj)
    return [f"Value: ``{text}``."] if len(text) < 100 else []


def describe(
    app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]
) -> None:
    if what == "data":
        package, _, short = name.rpartition(".")
        lines[:] = [*comment(package, short), "", *value(obj), ""]


def check(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    documented = app.env.get_domain("py").objects  # type: ignore[attr-defined]
    for package, name in public_names():
        if f"{package}.{name}" not in documented:
            logger.warning("%s.%s is public and has no page", package, name)


def list_returned(app: Sphinx) -> None:
    """Let autosummary, which lists ``__all__``, list the classes of what is returned, too."""
    for package in {package for package, _ in public_names()}:
        module = import_module(package)
        module.__all__ = list(dict.fromkeys(documented(module)))


def setup(app: Sphinx) -> dict[str, object]:
    app.connect("builder-inited", list_returned, priority=1)
    app.connect("autodoc-process-docstring", describe, priority=50)
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
