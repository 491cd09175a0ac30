"""Each extra alone: a command that needs it runs with it, the core, and nothing else installed.

Other libraries are hidden from a fresh interpreter: everything but the standard library and what
the metadata of the core and of the extra require, directly or not.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import giantsteps as gs

PYPROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
FLAGS = ["--activation", "tanh", "--teacher", "sin", "--width", "1.5", "--samples", "2",
         "--penalty", "0.1"]  # fmt: skip
SWEEP = """d = 20
seeds = 2
[problem]
activation = "tanh"
teacher = "sin"
width = 1.5
readout = {samples = 2.0, penalty = 0.1}
[vary]
"readout.samples" = [1.0, 2.0]
"""
HIDING = """
import importlib.metadata as metadata, re, sys

def name(requirement):
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower().replace("_", "-").replace(".", "-")

wanted, pending = set(), [name(r) for r in {requirements!r}]
while pending:
    found = pending.pop()
    if found in wanted:
        continue
    wanted.add(found)
    try:
        pending += [name(r) for r in metadata.requires(found) or () if "extra ==" not in r]
    except metadata.PackageNotFoundError:
        pass
owners = metadata.packages_distributions()

from importlib.machinery import PathFinder
find = PathFinder.find_spec

def find_spec(module, path=None, target=None):
    top = module.partition(".")[0]
    known = top in sys.stdlib_module_names or top == "giantsteps" or top not in owners
    if known or wanted & {{name(owner) for owner in owners[top]}}:
        return find(module, path, target)

PathFinder.find_spec = find_spec
from giantsteps import cli
cli.main({arguments!r})
"""
COMMANDS = {
    "core: predict": ("", ["predict", *FLAGS, "-d", "50"]),
    "core: compare": ("", ["compare", *FLAGS, "-d", "20", "--seeds", "3"]),
    "core: optimize": ("", ["optimize", *FLAGS]),
    "core: sweep": ("", ["sweep", "run", "curve.toml", "--serial"]),
    "plot: optimize": ("plot", ["optimize", *FLAGS, "-o", "best.png"]),
    "plot: compare": ("plot", ["compare", *FLAGS, "-d", "20,30", "--seeds", "3", "-o", "c.png"]),
    "sweep: csv": ("sweep", ["sweep", "export", "curve.toml", "-o", "curve.csv"]),
    "sweep: nc": ("sweep", ["sweep", "export", "curve.toml", "-o", "curve.nc"]),
    "sweep: parquet": ("sweep", ["sweep", "export", "curve.toml", "-o", "curve.parquet"]),
    "torch: simulate": ("torch", ["simulate", *FLAGS, "-d", "20", "--device", "torch"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", COMMANDS)
def test_each_extra_alone(case: str, tmp_path: Path) -> None:
    extra, arguments = COMMANDS[case]
    if extra:
        pytest.importorskip({"plot": "matplotlib", "sweep": "pandas"}.get(extra, extra))
    (tmp_path / "curve.toml").write_text(SWEEP)
    if arguments[:2] == ["sweep", "export"]:
        gs.Sweep.from_toml(tmp_path / "curve.toml").run(executor="serial")
    extras = PYPROJECT["optional-dependencies"]
    requirements = PYPROJECT["dependencies"] + (extras[extra] if extra else [])
    code = HIDING.format(requirements=requirements, arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 3), done.stderr[-800:]


@pytest.mark.slow
@pytest.mark.parametrize("case", ["plot: optimize", "sweep: csv", "torch: simulate"])
def test_without_the_extra_there_is_one_line(case: str, tmp_path: Path) -> None:
    extra, arguments = COMMANDS[case]
    (tmp_path / "curve.toml").write_text(SWEEP)
    code = HIDING.format(requirements=PYPROJECT["dependencies"], arguments=arguments)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode in (1, 2)
    assert f'pip install "giantsteps[{extra}]"' in done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
