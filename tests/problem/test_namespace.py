"""The public names: loaded on first use, and ``compare`` is the function."""

from __future__ import annotations

import subprocess
import sys

import pytest

import giantsteps as gs


def run(code: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_importing_loads_nothing_heavy() -> None:
    code = "import giantsteps, sys; print([m for m in ('numpy', 'scipy') if m in sys.modules])"
    assert run(code) == "[]"


@pytest.mark.parametrize("name", gs.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(gs, name).__name__.split(".")[-1] == name
    assert name in dir(gs)


@pytest.mark.parametrize(
    "code",
    [
        "import giantsteps as gs; import giantsteps.comparison; print(gs.compare.__name__)",
        "import giantsteps as gs; gs.compare; import giantsteps.comparison; "
        "print(gs.compare.__name__)",
        "from giantsteps import compare; print(compare.__name__)",
        "from giantsteps.comparison import compare; import giantsteps; "
        "assert giantsteps.compare is compare; print(compare.__name__)",
    ],
)
def test_compare_is_the_function_however_it_is_reached(code: str) -> None:
    assert run(code) == "compare"


def test_packages_are_attributes() -> None:
    assert run("import giantsteps as gs; print(gs.problem.Problem is gs.Problem)") == "True"


def test_nothing_else_is_listed() -> None:
    packages = {name for name in dir(gs) if name not in gs.__all__} - {"__version__"}
    assert packages == {name for name in packages if type(getattr(gs, name)).__name__ == "module"}
    assert not {"Any", "TYPE_CHECKING", "annotations", "import_module", "types"} & set(dir(gs))


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'problems'"):
        gs.problems  # noqa: B018
    assert gs.__version__.count(".") == 2
