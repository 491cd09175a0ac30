"""The code of README, documentation and notebook runs, at a small size."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
#: Run by tests of its own, with the files that it needs.
_ELSEWHERE = ("docs/guides/sweeps.rst",)
_FENCED = r"^```{language}\n(.*?)^```"
_BLOCK = r"^( *)\.\. code-block:: {language}\n\n((?:\1   .*\n|\n)+)"


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of one language in a Markdown or reStructuredText file."""
    text = (ROOT / page).read_text(encoding="utf-8")
    if page.endswith(".md"):
        pattern = _FENCED.format(language=language)
        return re.findall(pattern, text, re.MULTILINE | re.DOTALL)
    found = re.findall(_BLOCK.format(language=language), text, re.MULTILINE)
    return [dedent(block) for _, block in found]


def small(code: str) -> str:
    """The same code for small networks and few seeds."""
    code = re.sub(r"(\bd=|-d )\d+", r"\g<1>60", code)
    return re.sub(r"(\bseeds[= ])\d+", r"\g<1>3", code)


PAGES = [
    page
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("[!_]*.rst")),
                 *sorted((ROOT / "docs" / "guides").glob("*.rst")),
                 *sorted((ROOT / "docs" / "practice").glob("*.rst"))]
    if (page := path.relative_to(ROOT).as_posix()) not in _ELSEWHERE and blocks(page, "python")
]  # fmt: skip
COMMANDS = [page for page in PAGES if "$ giantsteps" in "".join(blocks(page, "console"))]


def test_pages_with_code_are_found() -> None:
    assert {"README.md", "docs/index.rst", "docs/quickstart.rst"} <= set(PAGES)
    assert {"README.md", "docs/quickstart.rst"} <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(small(block), page, "exec"), namespace)


def test_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    notebook = json.loads((ROOT / "docs" / "quickstart.ipynb").read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in code[1:])  # the first one imports
    namespace: dict[str, object] = {}
    for cell in code:
        source = "".join(cell["source"])
        exec(compile(small(source), "quickstart.ipynb", "exec"), namespace)
        if source in ("problem", "theory.risk(problem)"):
            shown = "".join(cell["outputs"][0]["data"]["text/plain"])
            assert shown == repr(eval(source, namespace))


def test_quick_start_and_notebook_state_one_problem() -> None:
    page: dict[str, object] = {}
    exec(blocks("docs/quickstart.rst", "python")[0], page)
    notebook = json.loads((ROOT / "docs" / "quickstart.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    own: dict[str, object] = {}
    for cell in cells[:2]:
        exec(cell, own)
    assert own["problem"] == page["problem"]


def test_quick_start_file_is_its_problem() -> None:
    from giantsteps import Problem

    namespace: dict[str, object] = {}
    exec(blocks("docs/quickstart.rst", "python")[0], namespace)
    (file,) = blocks("docs/quickstart.rst", "toml")
    assert Problem.from_toml(file) == namespace["problem"]


def write_networks() -> None:
    """The files that the pages on trained networks name."""
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    rng = np.random.default_rng(0)
    for name in ("model", "base", "tuned"):
        save_file({"fc.weight": torch.tensor(rng.standard_normal((20, 30)))}, f"{name}.safetensors")
    module = torch.nn.Sequential(torch.nn.Linear(6, 9), torch.nn.ReLU(), torch.nn.Linear(9, 1))
    torch.save(module.state_dict(), "mlp.pt")
    np.savez("batch.npz", X=rng.standard_normal((60, 6)), y=rng.standard_normal(60))


@pytest.mark.parametrize("page", COMMANDS)
def test_commands_run(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from giantsteps.cli import main

    monkeypatch.chdir(tmp_path)
    for file in blocks(page, "toml"):
        Path("problem.toml").write_text(file, encoding="utf-8")
    if page.startswith("docs/practice"):
        write_networks()
    text = "".join(blocks(page, "console")).replace("\\\n", "")
    commands = re.findall(r"^\$ giantsteps (.*)$", text, re.MULTILINE)
    assert commands, f"{page} has no commands"
    for command in commands:
        command = re.sub("--(quick|paper)", "--smoke", command)
        if command.startswith("certify"):  # it has tests of its own
            command += " --help"
        with pytest.raises(SystemExit) as ended:
            main(shlex.split(small(command)))
        # A small network may differ from the limit: compare then says so by its exit code.
        allowed = (0, 3) if command.startswith("compare") else (0,)
        assert ended.value.code in allowed, capsys.readouterr().err
