"""Files of a release agree with each other and with the library."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

from giantsteps.questions import QUESTIONS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_one_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['version']}\n" in citation
    latest = re.search(r"^## (\S+)", CHANGELOG, re.MULTILINE)
    assert latest is not None
    assert latest[1] == PROJECT["version"]


def changed_numbers() -> dict[str, tuple[int, int]]:
    """Question → versions of theory and simulation, by the newest row that names it."""
    found: dict[str, tuple[int, int]] = {}
    for section in re.findall(r"^### Changed numbers\n(.*?)(?=^##|\Z)", CHANGELOG, re.M | re.S):
        for row in re.findall(r"^\| (`.*)\|$", section, re.MULTILINE):
            names, theory, simulation, _ = (cell.strip() for cell in row.split("|"))
            for name in re.findall(r"`(\w+)`", names):
                found.setdefault(name, (int(theory or 1), int(simulation or 1)))
    return found


@pytest.mark.parametrize("name", QUESTIONS)
def test_changed_numbers_are_in_the_changelog(name: str) -> None:
    stated = changed_numbers().get(name, (1, 1))
    for side, version in zip(("theory", "simulation"), stated, strict=True):
        if side in QUESTIONS[name].sides:
            assert QUESTIONS[name].version(side) == version, f"CHANGELOG.md, {name} by {side}"


def test_changelog_names_no_unknown_question() -> None:
    assert set(changed_numbers()) <= set(QUESTIONS)


def test_all_is_every_extra_of_a_user() -> None:
    extras = PROJECT["optional-dependencies"]
    (all_of_them,) = extras["all"]
    named = set(all_of_them.removeprefix("giantsteps[").removesuffix("]").split(","))
    assert named == set(extras) - {"all", "cli", "docs", "dev"}


def test_readme_links_work_on_a_package_index() -> None:
    text = ProjectMetadata(str(ROOT), PluginManager()).core.readme
    assert text.startswith("# giantsteps")
    assert "## Two commands" in text
    assert re.findall(r"!?\[[^\]]*\]\((?!https://)[^)]*\)", text) == []


def test_commands_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for file in ("README.md", "CONTRIBUTING.md", "pyproject.toml", "docs/quickstart.rst"):
        text = (ROOT / file).read_text(encoding="utf-8")
        named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", text))
        assert named <= targets, file


def test_source_distribution_includes_what_exists() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    hatch = tomllib.loads(text)["tool"]["hatch"]["build"]["targets"]["sdist"]
    assert {"Makefile", "constraints.txt", "CONTRIBUTING.md"} <= set(hatch["include"])
    assert [name for name in hatch["include"] if not (ROOT / name).exists()] == []


def test_the_package_has_no_stray_files() -> None:
    kinds = {
        ".py",
        ".toml",
        ".typed",
        ".bib",
        ".jinja",
        ".j2",
        ".html",
        ".css",
        ".js",
        ".txt",
        ".woff2",
        ".cu",
    }
    files = [path for path in (ROOT / "src").rglob("*") if path.is_file()]
    assert [path for path in files if path.suffix not in kinds | {".pyc"}] == []
