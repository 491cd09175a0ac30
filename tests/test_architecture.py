"""What may import what: every import of the library against the table of the architecture page."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import simulation, theory

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "giantsteps"
FILES = sorted(SOURCE.rglob("*.py"))
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))

_CORE = {"errors", "functions", "gaussian", "laws", "problem", "answers"}
_MODULES = ("errors", "questions")  # of one file
_SHARED = ("threads", "types")  # of every package
_BOTH = _CORE | {"theory", "simulation", "questions"}
#: Package → packages that it may import.
ALLOWED = {
    "errors": set(),
    "functions": {"errors", "gaussian"},  # gaussian: only when a mean is asked for
    "gaussian": {"errors", "functions"},
    "laws": {"errors"},
    "problem": {"errors", "functions", "gaussian"},
    "answers": {"errors", "laws", "problem", "displays"},  # displays: only when drawn
    "questions": {"errors"},
    "theory": _CORE,
    "simulation": _CORE,
    "campaign": _CORE | {"simulation", "questions"},
    "displays": _CORE | {"theory", "comparison"},
    "comparison": _BOTH | {"campaign", "displays"},
    "sweeps": _BOTH | {"campaign", "comparison", "displays"},
    "figures": _BOTH | {"campaign", "displays"},
    "practice": _CORE | {"theory", "campaign", "displays"},
    "explorer": _BOTH | {"campaign", "displays"},
    "cli": _BOTH
    | {"campaign", "comparison", "displays", "sweeps", "figures", "practice", "explorer"},
}
#: Libraries of the extras, and the packages whose modules may load them on import.
EDGES = {"click": {"cli"}, "starlette": {"explorer"}}
EXTRAS = ("matplotlib", "pandas", "xarray", "pyarrow", "h5netcdf", "torch", "rich", "dask",
          "distributed", "dask_jobqueue", "click", "jinja2", "safetensors", "sklearn",
          "lightning", "starlette", "uvicorn", "selenium")  # fmt: skip


@dataclass(frozen=True)
class Import:
    """One import statement: who, what, and whether it runs when the module is loaded."""

    file: Path
    line: int
    name: str
    on_load: bool

    @property
    def package(self) -> str:
        parts = self.file.relative_to(SOURCE).parts
        return parts[0] if len(parts) > 1 else self.file.stem

    @property
    def target(self) -> str | None:
        """The package of this library that is imported, if one is."""
        parts = self.name.split(".")
        return parts[1] if parts[0] == "giantsteps" and len(parts) > 1 else None

    def __str__(self) -> str:
        return f"{self.file.relative_to(SOURCE)}:{self.line} imports {self.name}"


def imports(file: Path) -> Iterator[Import]:
    """All imports but those for type checkers."""

    def visit(node: ast.AST, on_load: bool) -> Iterator[Import]:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name, on_load)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = ("giantsteps", *file.relative_to(SOURCE).parts)[: -node.level]
                base = ".".join((*parts, base)) if base else ".".join(parts)
            for alias in node.names:
                whole = f"{base}.{alias.name}" if base == "giantsteps" else base
                yield Import(file, node.lineno, whole, on_load)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, on_load and not inside)

    return visit(ast.parse(file.read_text(encoding="utf-8")), True)


IMPORTS = [found for file in FILES for found in imports(file)]


def test_every_package_is_in_the_table() -> None:
    assert {*PACKAGES, *_MODULES} == set(ALLOWED)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_imports_what_it_may(package: str) -> None:
    wrong = [
        str(found)
        for found in IMPORTS
        if found.package == package
        and found.target in ALLOWED
        and found.target not in ALLOWED[package] | {package}
    ]
    assert not wrong


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_a_package_leaves_the_private_modules_of_others_alone(package: str) -> None:
    private = [
        str(found)
        for found in IMPORTS
        if found.package == package
        and found.target in ALLOWED
        and found.target != package
        and (
            any(part.startswith("_") for part in found.name.split(".")[2:]) or _inside_theory(found)
        )
    ]
    assert not private


#: The folders of theory, each of which knows only itself and those before it.
_LAYERS = ("solver", "model", "steps", "scope", "questions", "search")
_OF_FEATURES = "probe"  # of the public functions alone: it knows none of the others


def _inside_theory(found: Import) -> bool:
    """Whether it is an import of a module of theory, whose folders show nothing themselves."""
    return found.target == "theory" and found.name.split(".")[2:3] not in ([], ["theory"])


def _layer(name: str) -> str:
    return name.split(".")[2]


def test_folders_of_theory_know_only_what_is_below_them() -> None:
    folders = {path.parent.name for path in (SOURCE / "theory").glob("*/__init__.py")}
    assert folders == {*_LAYERS, _OF_FEATURES}
    wrong = []
    for found in IMPORTS:
        parts = found.file.relative_to(SOURCE).parts
        if parts[0] != "theory" or len(parts) < 3 or found.target != "theory":
            continue
        below: tuple[str, ...] = (_OF_FEATURES,)
        if parts[1] in _LAYERS:
            below = _LAYERS[: _LAYERS.index(parts[1]) + 1]
        if not found.name.startswith("giantsteps.theory.") or _layer(found.name) not in below:
            wrong.append(str(found))
    assert not wrong


def test_theory_and_simulation_do_not_know_each_other() -> None:
    targets = {(found.package, found.target) for found in IMPORTS}
    assert ("theory", "simulation") not in targets
    assert ("simulation", "theory") not in targets
    assert {("comparison", "theory"), ("comparison", "simulation")} <= targets


def test_packages_load_in_one_order() -> None:
    """Imports on load have no cycle between packages."""
    graph: dict[str, set[str]] = {package: set() for package in ALLOWED}
    for found in IMPORTS:
        if found.on_load and found.target in ALLOWED and found.package in ALLOWED:
            graph[found.package] |= {found.target} - {found.package}
    order = list(TopologicalSorter(graph).static_order())
    assert order[0] == "errors"


def test_libraries_of_the_extras_are_loaded_late() -> None:
    wrong = [
        str(found)
        for found in IMPORTS
        if found.on_load
        and found.name.split(".")[0] in EXTRAS
        and found.package not in EDGES.get(found.name.split(".")[0], set())
    ]
    assert not wrong


def test_modules_are_private_and_packages_say_what_is_public() -> None:
    open_ones = [
        file
        for file in FILES
        if not file.stem.startswith("_")
        and file.stem not in (*_MODULES, *_SHARED)
        and file.relative_to(SOURCE).parts[0] != "theory"  # its folders are private as they stand
    ]
    assert not open_ones
    for package in PACKAGES:
        module = import_module(f"giantsteps.{package}")
        assert all(hasattr(module, name) for name in module.__all__), package


def test_importing_the_library_loads_nothing() -> None:
    code = "import sys, giantsteps; print({'numpy', 'scipy', 'matplotlib'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "set()"


@pytest.mark.parametrize("package", ["theory", "simulation"])
def test_numerics_load_no_library_of_the_extras(package: str) -> None:
    code = f"import sys, giantsteps.{package}; print(set({EXTRAS!r}) & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "set()"


def test_theory_loads_its_modules_when_they_are_asked_for() -> None:
    """So that ``import giantsteps.theory`` takes a moment, whatever NumPy and SciPy take."""
    code = "import sys, giantsteps.theory; print({'numpy', 'scipy'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == "set()"


def between(mark: str) -> str:
    """The part of the architecture page between two comments."""
    page = (ROOT / "docs" / "architecture.rst").read_text(encoding="utf-8")
    return page.split(f".. {mark} begin")[1].split(f".. {mark} end")[0]


def test_the_architecture_page_has_the_same_table() -> None:
    """The rows of the page's table: package, what it is, what it may import."""
    table = between("imports")
    rows = [row.split("\n     - ") for row in table.split("\n   * - ")[2:]]
    stated = {
        name.strip().strip("`"): {word.strip("`, ") for word in allowed.split() if "`" in word}
        for name, _, allowed in rows
    }
    assert stated == ALLOWED


def test_equations_link_to_modules_that_name_their_section() -> None:
    """A page of the theory says where it is computed; that module says of which section it is."""
    unnamed = []
    for page in sorted((ROOT / "docs" / "theory").glob("[0-9]*.rst")):
        linked = re.findall(r":source:`([\w/]+)`", page.read_text(encoding="utf-8"))
        assert linked or page.stem.startswith("00"), page.name
        for module in linked:
            first = (SOURCE / f"{module}.py").read_text(encoding="utf-8").partition("\n")[0]
            unnamed += [module] if "§" not in first else []
    assert not unnamed


def entered(call: Callable[[], object]) -> list[str]:
    """Modules of the library in the order in which a call comes to their functions."""
    files: dict[str, None] = {}

    def profile(frame: Any, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            files.setdefault(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = [Path(file) for file in files if Path(file).is_relative_to(SOURCE)]
    return [path.relative_to(SOURCE).with_suffix("").as_posix() for path in inside]


def test_walks_of_the_architecture_page_are_walked() -> None:
    """The modules that a walk names are entered, those outside of parentheses in this order."""
    problem = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.0123,  # numbers that no other test has, so that nothing is remembered
        width=1.37,
        steps=[gs.Step(samples=3.7, rate=1.3)],
        readout=gs.Ridge(samples=2.1, penalty=0.11),
    )
    large = problem.replace({"steps.0.exponent": 0.5})
    calls: list[Callable[[], object]] = [
        lambda: theory.risk(problem),
        lambda: theory.risk(large, d=100),
        lambda: theory.risk(large.replace({"steps": large.steps * 2}), d=100),
        lambda: simulation.run(large, 30, 0).risk(),
    ]
    walks = between("walks").split("\n* ")[1:]
    for walk, call, package in zip(walks, calls, [*["theory"] * 3, "simulation"], strict=True):
        order, named = (
            [f"{package}/{name}" for name in re.findall(r"``([a-z_/]+[a-z])``", text)]
            for text in (re.sub(r"\(.*?\)", "", walk), walk)
        )
        found = entered(call)
        assert [module for module in found if module in order] == order, walk
        assert set(named) <= set(found), walk
