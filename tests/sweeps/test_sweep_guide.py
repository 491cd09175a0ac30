"""The guide to sweeps: its file and its code are one sweep, and its commands run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from textwrap import dedent

import pytest

import giantsteps as gs
from giantsteps import cli

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "sweeps.rst"


def blocks(language: str) -> list[str]:
    pattern = rf"^\.\. code-block:: {language}\n\n((?:   .*\n|\n)+)"
    return [dedent(found) for found in re.findall(pattern, GUIDE.read_text(), re.MULTILINE)]


def test_the_file_and_the_code_are_the_same_sweep() -> None:
    (file,), (code,) = blocks("toml"), blocks("python")
    namespace: dict[str, object] = {"__name__": "imported"}
    exec(compile(code, str(GUIDE), "exec"), namespace)
    sweep = namespace["sweep"]
    assert isinstance(sweep, gs.Sweep)
    assert gs.Sweep.from_toml(file, store="curves.sqlite").addresses == sweep.addresses


def test_the_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (file,), (commands, _) = blocks("toml"), blocks("console")
    small = file.replace("[250, 500]", "[12, 16]").replace("seeds = 20", "seeds = 2")
    Path("curves.toml").write_text(small.replace("count = 12", "count = 4"))
    for line in commands.replace("d=500", "d=16").strip().splitlines():
        arguments = shlex.split(line.removeprefix("$ giantsteps "))
        if arguments[1] == "run":
            arguments.append("--serial")
        with pytest.raises(SystemExit) as left:
            cli.main(arguments)
        assert not left.value.code, capsys.readouterr().err
    written = {path.name for path in tmp_path.iterdir()}
    assert {"curves.sqlite", "curves.nc", "curves.csv", "curves.png", "map.png"} <= written
