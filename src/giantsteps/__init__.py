"""giantsteps: what the first gradient steps do to a two-layer network, by theory and simulation.

The names below are loaded when they are first used, so that ``import giantsteps`` costs nothing.
The package behind ``giantsteps.compare`` is ``giantsteps.comparison``: importing a subpackage
binds its name here, and this name belongs to the function.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from giantsteps.errors import (
    GiantstepsError,
    InvalidProblem,
    NotConverged,
    NotCovered,
    StoreError,
)

if TYPE_CHECKING:
    from giantsteps.comparison import compare as compare
    from giantsteps.explorer import explore as explore
    from giantsteps.functions import Function as Function
    from giantsteps.functions import MultiIndex as MultiIndex
    from giantsteps.functions import centered as centered
    from giantsteps.practice import inspect as inspect
    from giantsteps.problem import Constant as Constant
    from giantsteps.problem import Covariance as Covariance
    from giantsteps.problem import Gaussian as Gaussian
    from giantsteps.problem import Grid as Grid
    from giantsteps.problem import Init as Init
    from giantsteps.problem import Isotropic as Isotropic
    from giantsteps.problem import PowerLaw as PowerLaw
    from giantsteps.problem import Problem as Problem
    from giantsteps.problem import Ridge as Ridge
    from giantsteps.problem import SpikedCovariance as SpikedCovariance
    from giantsteps.problem import Step as Step
    from giantsteps.problem import Vocabulary as Vocabulary
    from giantsteps.problem import learning_rate_of_rate as learning_rate_of_rate
    from giantsteps.problem import rate_of_learning_rate as rate_of_learning_rate
    from giantsteps.simulation import Data as Data
    from giantsteps.sweeps import Sweep as Sweep

#: Package → names that it gives to this one.
_NAMES = {
    "comparison": ["compare"],
    "explorer": ["explore"],
    "functions": ["Function", "MultiIndex", "centered"],
    "practice": ["inspect"],
    "problem": [
        *("Problem", "Grid", "Step", "Ridge", "Init"),
        *("Constant", "Gaussian", "Vocabulary"),
        *("Covariance", "Isotropic", "PowerLaw", "SpikedCovariance"),
        *("learning_rate_of_rate", "rate_of_learning_rate"),
    ],
    "simulation": ["Data"],
    "sweeps": ["Sweep"],
}
_LAZY = {name: package for package, names in _NAMES.items() for name in names}
_PACKAGES = (
    *("problem", "functions", "gaussian", "laws", "answers", "theory", "simulation"),
    *("campaign", "comparison", "sweeps", "displays", "figures", "practice", "explorer", "errors"),
)

__all__ = [
    "GiantstepsError",
    "InvalidProblem",
    "NotConverged",
    "NotCovered",
    "StoreError",
    *_LAZY,
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(import_module(f"giantsteps.{_LAZY[name]}"), name)
    elif name in _PACKAGES:
        value = import_module(f"giantsteps.{name}")
    elif name == "__version__":
        from importlib.metadata import version

        value = version("giantsteps")
    else:
        from giantsteps.questions import QUESTIONS

        sides = [f"giantsteps.{side}.{name}" for side in getattr(QUESTIONS.get(name), "sides", ())]
        where = f"; there is {' and '.join(sides)}" if sides else ""
        message = f"module 'giantsteps' has no attribute {name!r}{where}"
        raise AttributeError(message, name=name, obj=import_module("giantsteps"))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES, "__version__"})
