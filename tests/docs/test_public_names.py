"""Every public name is documented: what it is, its mathematics, its symbols, and an example.

The rules, by kind of name:

* a function or a class, one that is only returned included, opens with a sentence of its own and
  has an ``Examples`` section whose doctest uses it;
* what states mathematics (a ``.. math::``, or a name of ``gaussian``, ``laws`` or ``theory``) has
  ``References`` to a section of the theory; displayed mathematics has a table of its symbols;
* a record names all its fields, and public methods and properties say what they are;
* a constant or a type has a ``#:`` comment where it is assigned, and a constant is used in a
  doctest of its package.
"""

from __future__ import annotations

import ast
import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import giantsteps

ROOT = Path(__file__).parents[2]
#: Packages whose every function and class is an equation or made of them.
_EQUATIONS = ("giantsteps.gaussian", "giantsteps.laws", "giantsteps.theory")
_SECTIONS = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_SYMBOL_TABLE = re.compile(r"^=+( +=+)+\nsymbol\b", re.MULTILINE)
#: They serve a page until they are stopped.
_INTERACTIVE = ("giantsteps.explorer.explore",)
_THEORY_SECTION = re.compile(r"theory §\d")


def packages() -> list[ModuleType]:
    """giantsteps and its public packages; a module with a public name counts as one."""
    found = [
        info.name
        for info in pkgutil.walk_packages(giantsteps.__path__, "giantsteps.")
        if not any(part.startswith("_") for part in info.name.split("."))
        and not info.name.startswith("giantsteps.theory.")  # its folders are inner layers
    ]
    modules = [importlib.import_module(name) for name in sorted(found)]
    return [giantsteps, *(module for module in modules if getattr(module, "__all__", ()))]


def is_described(value: object) -> bool:
    """Whether a name has a docstring: functions and classes, not constants and types."""
    return (
        inspect.isclass(value)
        or (callable(value) and hasattr(value, "__wrapped__"))
        or (inspect.isroutine(value))
    )


def home(package: ModuleType, name: str, value: object) -> ModuleType:
    """The module that defines a name of a package."""
    if is_described(value):
        return importlib.import_module(value.__module__)
    tree = ast.parse(Path(package.__file__ or "").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            return importlib.import_module(f"{'.' * node.level}{node.module}", package.__name__)
    return package


@dataclasses.dataclass(frozen=True)
class Public:
    """One public name; ``package`` is the one nearest to where it is defined."""

    package: ModuleType
    name: str
    value: Any

    def __str__(self) -> str:
        return f"{self.package.__name__}.{self.name}"

    @cached_property
    def module(self) -> ModuleType:
        return home(self.package, self.name, self.value)

    @property
    def doc(self) -> str:
        text = vars(self.value).get("__doc__") if inspect.isclass(self.value) else None
        return inspect.cleandoc(text or getattr(self.value, "__doc__", None) or "")

    @cached_property
    def sections(self) -> dict[str, str]:
        parts = _SECTIONS.split(self.doc)
        return {"": parts[0], **dict(zip(parts[1::2], parts[2::2]))}

    @property
    def comment(self) -> str:
        """The ``#:`` comment above the assignment of a constant or a type."""
        source = Path(self.module.__file__ or "").read_text(encoding="utf-8")
        found = re.search(rf"((?:^#:.*\n)+){self.name}\b", source, re.MULTILINE)
        return re.sub("^#: ?", "", found[1], flags=re.MULTILINE).strip() if found else ""


def public_names() -> list[Public]:
    """Each public object once, in the innermost package that exports it."""
    names: dict[tuple[str, int], Public] = {}
    for package in packages():
        for name in [*package.__all__, *getattr(package, "RETURNED", ())]:
            value = getattr(package, name)
            names[name, id(value)] = Public(package, name, value)
    return list(names.values())


NAMES = public_names()
DESCRIBED = [name for name in NAMES if is_described(name.value)]
CLASSES = [name for name in DESCRIBED if inspect.isclass(name.value)]
RECORDS = [
    name
    for name in CLASSES
    if dataclasses.is_dataclass(name.value) or hasattr(name.value, "_fields")
]
CONSTANTS = [name for name in NAMES if not is_described(name.value)]


def fail_with(failures: list[str]) -> None:
    assert not failures, f"{len(failures)} names:\n" + "\n".join(failures)


def test_every_kind_of_name_is_found() -> None:
    shown = {str(name) for name in NAMES}
    assert {
        "giantsteps.problem.Problem",
        "giantsteps.gaussian.moments",  # behind a cache
        "giantsteps.theory.risk",
        "giantsteps.comparison.certify.certify",
        "giantsteps.errors.NotCovered",
    } <= shown
    assert "giantsteps.figures.FIGURES" in {str(name) for name in CONSTANTS}
    assert "giantsteps.answers.Spike" in {str(name) for name in RECORDS}


def test_every_package_has_an_api_page() -> None:
    index = (ROOT / "docs" / "api" / "index.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   (giantsteps\.[\w.]+)$", index, re.MULTILINE))
    assert listed == {package.__name__ for package in packages()[1:]}


def test_names_open_with_a_sentence_of_their_own() -> None:
    fail_with(
        [
            str(name)
            for name in DESCRIBED
            if not name.doc or name.doc.startswith(f"{name.name}(")  # what dataclass writes
        ]
    )


def examples(name: Public) -> list[doctest.Example]:
    """What pytest runs of a name's examples."""
    found = doctest.DocTestFinder(recurse=True).find(name.module, name.module.__name__)
    wanted = f"{name.module.__name__}.{name.name}"
    return [
        example
        for test in found
        if test.name == wanted
        for example in test.examples
        if not example.options.get(doctest.SKIP)
    ]


def test_functions_have_an_example_that_uses_them() -> None:
    """An example where it teaches: small classes, which others return, may do without one."""
    fail_with(
        [
            f"{name}: {'no doctest' if not shown else 'not used in its doctest'}"
            for name in DESCRIBED
            if not inspect.isclass(name.value) and str(name) not in _INTERACTIVE
            for shown in [examples(name)]
            if "Examples" not in name.sections
            or not any(re.search(rf"\b{name.name}\b", example.source) for example in shown)
        ]
    )


def states_mathematics(name: Public) -> bool:
    if issubclass(name.value, Exception) if inspect.isclass(name.value) else False:
        return False
    return ".. math::" in name.doc or name.package.__name__ in _EQUATIONS


def test_mathematics_has_references() -> None:
    fail_with(
        [
            str(name)
            for name in DESCRIBED
            if states_mathematics(name)
            and not _THEORY_SECTION.search(name.sections.get("References", ""))
        ]
    )


def test_displayed_mathematics_has_a_table_of_symbols() -> None:
    fail_with(
        [
            str(name)
            for name in DESCRIBED
            if ".. math::" in name.doc and not _SYMBOL_TABLE.search(name.doc)
        ]
    )


def test_records_name_all_their_fields() -> None:
    failures = []
    for name in RECORDS:
        for owner in name.value.__mro__:
            own = vars(owner).get("__annotations__", {})
            text = inspect.cleandoc(vars(owner).get("__doc__") or "")
            missing = [
                field
                for field in own
                if not field.startswith("_") and not re.search(rf"\b{field}\b", text)
            ]
            if owner.__module__.startswith("giantsteps") and missing:
                failures.append(f"{name} ({owner.__name__}): {', '.join(missing)}")
    fail_with(failures)


def members(cls: type) -> dict[str, Any]:
    """Public methods and properties that giantsteps defines for a class."""
    return {
        key: value
        for owner in reversed(cls.__mro__)
        if owner.__module__.startswith("giantsteps")
        for key, value in vars(owner).items()
        if not key.startswith("_")
        and (inspect.isroutine(value) or isinstance(value, property | cached_property))
    }


def test_methods_and_properties_say_what_they_are() -> None:
    fail_with(
        [
            f"{name}.{key}"
            for name in CLASSES
            for key in members(name.value)
            if not inspect.getdoc(getattr(name.value, key))
        ]
    )


def test_parameters_are_described() -> None:
    """Each parameter of a function occurs in its docstring, as a word."""
    failures = []
    for name in DESCRIBED:
        if inspect.isclass(name.value):
            continue
        parameters = inspect.signature(name.value).parameters
        missing = [key for key in parameters if not re.search(rf"\b{key}\b", name.doc)]
        if missing:
            failures.append(f"{name}: {', '.join(missing)}")
    fail_with(failures)


def test_constants_and_types_have_a_comment() -> None:
    fail_with([str(name) for name in CONSTANTS if not name.comment])


@pytest.mark.parametrize("package", packages()[1:], ids=lambda package: package.__name__)
def test_constants_are_used_in_an_example(package: ModuleType) -> None:
    shown = doctest.DocTestParser().get_examples(package.__doc__ or "")
    for name in DESCRIBED:
        shown += examples(name) if name.package is package else []
    code = "".join(example.source for example in shown)
    names = [name.name for name in CONSTANTS if name.package is package and name.name.isupper()]
    assert not [name for name in names if not re.search(rf"\b{name}\b", code)]
