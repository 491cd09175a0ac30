"""Random legal problems: theory answers within 5 s and 2 GB, sanely, or raises a GiantstepsError.

The campaign runs as a program, in processes with limits of their own. Its complaints are compared
with nothing: there must be none.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits by fork and setrlimit")


def complaints(*options: object) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(HERE / "campaign.py"), *map(str, options)],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert bool(found) == bool(done.returncode), done.stderr
    return found


def in_words(found: Iterable[dict[str, Any]]) -> str:
    return "\n".join(
        f"{line['kind']} {line['call']} (seed {line.get('seed')}, d = {line['d']}): "
        f"{line['detail']}\n    {json.dumps(line['problem'])}"
        for line in found
    )


def test_the_generator_is_the_same_everywhere() -> None:
    code = (
        "import generator, hashlib\n"
        "texts = [generator.problem(seed).to_toml() for seed in range(40)]\n"
        "print(hashlib.sha256(''.join(texts).encode()).hexdigest()[:16], len(set(texts)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["b3c1eda7ef0aba71", "40"]


def test_every_function_of_theory_is_asked() -> None:
    import inspect

    from giantsteps import theory

    code = "import calls; print(*calls.CALLS)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, check=True
    )
    asked = {name.partition("@")[0] for name in done.stdout.split()}
    functions = {name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))}
    without_a_problem = {"risk_of_features"}
    assert functions - without_a_problem == asked


def test_the_campaign_finds_what_it_looks_for(tmp_path: Path) -> None:
    """Broken answers are found: each check is run against a theory that fails it."""
    code = BROKEN.format(here=str(HERE))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == EXPECTED


#: Name of the fault → the complaint that it must cause.
EXPECTED = {
    "crash": "CRASH",
    "warning": "WARNING",
    "hang": "HANG>0.5s",
    "memory": "MEMORY",
    "negative": "NEGATIVE",
    "infinite": "NONFINITE",
    "degrees": "BYDEGREE>TEST",
    "refused": None,
}
BROKEN = """
import dataclasses, json, sys, warnings
sys.path.insert(0, {here!r})
import numpy as np
import calls, campaign, generator
import giantsteps as gs
from giantsteps import theory

problem = gs.Problem(activation="tanh", teacher="sin", width=1.5,
                     readout=gs.Ridge(samples=2, penalty=0.1))
risk = theory.risk(problem)
campaign.SECONDS = 0.5

def crash(*_): raise KeyError("x")
def warning(*_): warnings.warn("divide by zero", RuntimeWarning); return risk
def hang(*_):
    while True: pass
def memory(*_): return np.zeros(2**29)
def negative(*_): return dataclasses.replace(risk, test=-1e-6, by_degree=None)
def infinite(*_): return dataclasses.replace(risk, test=np.inf, by_degree=None)
def degrees(*_): return dataclasses.replace(risk, by_degree=np.full(5, risk.test / 4))
def refused(*_): raise gs.NotCovered("a", "b", "c")

found = {{}}
for fault in (crash, warning, hang, memory, negative, infinite, degrees, refused):
    calls.CALLS["broken"] = fault
    lines = campaign.isolated(problem, 100, ["broken"])
    found[fault.__name__] = lines[0]["kind"] if lines else None
print(json.dumps(found))
"""


def test_a_few_random_problems() -> None:
    found = complaints("--limit", "--first", FEW[0], "--count", 3)
    assert not found, in_words(found)


def test_a_few_random_problems_at_a_size() -> None:
    found = complaints("--first", FEW[0], "--count", FEW[1], "--calls", ",".join(CHEAP))
    assert not found, in_words(found)


#: First seed and number of problems of the default tier.
FEW = (1_000_000, 5)
#: What is asked there at a size: no spectra, and no errors with each of their fields moved.
CHEAP = ("equivalent@d", "degrees_of_freedom@d", "gradient@d", "movement@d", "learned_function@d")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 500, 50))
def test_many_random_problems(first: int) -> None:
    found = complaints("--first", first, "--count", 50, "--workers", os.cpu_count() or 1)
    assert not found, in_words(found)


@pytest.mark.slow
def test_what_failed_in_the_first_edition() -> None:
    file = HERE / "first_edition.jsonl"
    found = complaints("--replay", file, "--workers", os.cpu_count() or 1)
    assert not found, in_words(found)
