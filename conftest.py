"""What every test and doctest shares."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import hypothesis
import pytest

# A slow machine is no failure.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(autouse=True)
def _no_figure_left_open() -> Iterator[None]:
    """Close what a test drew: matplotlib warns of the twenty-first open figure, in whichever test
    of the same process happens to draw it."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
