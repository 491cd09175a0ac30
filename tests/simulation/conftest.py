"""Array namespaces that the numerics of the simulator are tested over."""

from __future__ import annotations

import importlib

import pytest

from giantsteps.simulation._engine._arrays import Arrays
from giantsteps.simulation._engine._devices import resolve

NAMESPACES = ("numpy", "torch", "array_api_strict")


@pytest.fixture(params=NAMESPACES)
def arrays(request: pytest.FixtureRequest) -> Arrays:
    """Double precision arrays of each namespace."""
    return make_arrays(request.param, "float64")


@pytest.fixture(params=NAMESPACES)
def single_arrays(request: pytest.FixtureRequest) -> Arrays:
    """Single precision arrays of each namespace."""
    return make_arrays(request.param, "float32")


@pytest.fixture(params=[(name, dtype) for name in NAMESPACES for dtype in ("float64", "float32")])
def any_arrays(request: pytest.FixtureRequest) -> Arrays:
    """Arrays of each namespace and precision."""
    return make_arrays(*request.param)


def make_arrays(name: str, dtype: str) -> Arrays:
    if name == "numpy":
        return resolve("cpu", dtype)
    pytest.importorskip(name)
    return resolve("torch" if name == "torch" else importlib.import_module(name), dtype)
