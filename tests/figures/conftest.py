"""A watch over every network that a figure draws."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from giantsteps import simulation
from giantsteps.figures import _networks


class Spy:
    """The devices of the networks that were drawn; after ``most`` of them, Ctrl-C."""

    def __init__(self, patch: pytest.MonkeyPatch, most: float = np.inf) -> None:
        self.devices: list[object] = []
        self._most = most
        self._watch(patch, simulation.Run, "__init__", lambda *_, device=None, **__: device)
        self._watch(patch, _networks, "_spiked_features", lambda device, *_: device)

    def _watch(
        self, patch: pytest.MonkeyPatch, owner: Any, name: str, device: Callable[..., object]
    ) -> None:
        real = getattr(owner, name)

        @functools.wraps(real)
        def watched(*arguments: Any, **options: Any) -> Any:
            if len(self.devices) >= self._most:
                raise KeyboardInterrupt
            self.devices.append(device(*arguments, **options))
            return real(*arguments, **options)

        patch.setattr(owner, name, watched)


@pytest.fixture
def spy_on() -> type[Spy]:
    """``spy_on(monkeypatch, most=3)``: see `Spy`."""
    return Spy
