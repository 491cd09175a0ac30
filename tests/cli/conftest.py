"""The command line, called in this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from giantsteps import cli


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str, str]]:
    """``run(*arguments)``: exit code, standard output and error of ``giantsteps``."""

    def call(*arguments: object) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return call
