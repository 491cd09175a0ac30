"""Every published figure in its smallest form: files, points, captions."""

from __future__ import annotations

import csv
import math
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from giantsteps import theory
from giantsteps.cli._group import giantsteps
from giantsteps.errors import InvalidProblem
from giantsteps.figures import FIGURES, Figure, Made
from giantsteps.figures._draft import Draft
from giantsteps.figures._figure import figure
from giantsteps.figures._simulations import Measured
from giantsteps.problem import Grid, Init, Problem, Ridge, Step

pytest.importorskip("matplotlib")

#: Every figure that the papers and we have.
NAMES = [
    "ba2022-weights",
    "ba2022-kernel",
    "ba2022-samples",
    "ba2022-width",
    "ba2022-rate",
    "ba2022-steps",
    "ba2022-time",
    "ba2022-neurons",
    "ba2022-kernels",
    "ba2022-tangent",
    "ba2022-covariance",
    "cui2024-1",
    "cui2024-2",
    "cui2024-3",
    "cui2024-4",
    "cui2024-5",
    "moniri2023-spectra",
    "moniri2023-vectors",
    "moniri2023-errors",
    "moniri2026-spectra",
    "moniri2026-count",
    "moniri2026-overlap",
    "moniri2026-exponents",
    "own-rates",
    "own-phases",
    "own-bounds",
    "own-rules",
    "own-inputs",
    "own-time",
    "own-directions",
]


def points(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_the_list_is_complete() -> None:
    assert sorted(FIGURES) == sorted(NAMES)


def test_the_guide_names_every_figure() -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "figures.rst"
    lines = [line.strip() for line in guide.read_text(encoding="utf-8").splitlines()]
    rows = [i for i, line in enumerate(lines) if line.startswith("* - ``")]
    listed = [(lines[i][6:-2], lines[i + 1][2:]) for i in rows]
    assert listed == [(name, made.title) for name, made in FIGURES.items()]


#: Figures of theory alone.
THEORY = ("cui2024-3", "moniri2026-count", "own-phases", "own-bounds")
#: Figures of simulation alone.
SIMULATED = ("ba2022-neurons", "ba2022-covariance")


@pytest.mark.parametrize("name", NAMES)
def test_smoke(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spy_on: Any) -> None:
    spy = spy_on(monkeypatch)
    reports: list[tuple[int, int, int]] = []
    made = FIGURES[name].make(
        "smoke",
        tmp_path,
        device="cpu",
        formats=("svg",),
        progress=lambda *report: reports.append(report),
    )
    assert set(spy.devices) == (set() if name in THEORY else {"cpu"})
    check_progress(reports, name not in THEORY)
    assert {file.suffix for file in made.files} == {".svg", ".csv", ".toml"}
    rows = points(tmp_path / f"{name}.csv")
    assert {row["panel"] for row in rows} == set(made.draft.panels)
    theory = [float(row["y"]) for row in rows if row["source"] == "theory"]
    assert bool(theory) == (name not in SIMULATED)
    assert not any(math.isnan(y) for y in theory)
    data = tomllib.loads((tmp_path / f"{name}.toml").read_text(encoding="utf-8"))
    assert data["figure"] == name
    assert data["settings"] == {k: _plain(v) for k, v in made.settings.items()}
    assert name.startswith("own") or f"{{{name.partition('-')[0]}," in data["citation"]
    assert "{" not in data["caption"].replace("^{", "")
    for text in made.violated:
        assert text in data["caption"]
    assert made.settings.get("d", 0) <= 200
    named = {problem.content_hash for table in data["problems"] for problem in written(table)}
    for target in made.draft.problems.values():
        problems = target if isinstance(target, Grid) else [target]
        assert {problem.content_hash for problem in problems} <= named


def written(table: dict[str, Any]) -> list[Problem]:
    """The problems that a table of the settings stands for."""
    return list(Grid(Problem.from_data(table["problem"]), table.get("vary", {})))


def check_progress(reports: list[tuple[int, int, int]], simulated: bool) -> None:
    """All is asked before anything runs, so that the total stands; what is done only grows."""
    assert bool(reports) == simulated
    assert len({total for *_, total in reports}) <= 1
    counts = [done for done, *_ in reports]
    assert counts == sorted(counts)
    assert all((done, failed) == (total, 0) for done, failed, total in reports[-1:])


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def test_all_formats_and_the_store_of_the_paper_form(tmp_path: Path) -> None:
    small: dict[str, Any] = {"d": 30, "seeds": 2, "rates": (1.0,), "widths": (0.5, 1.0), "fine": 3}
    made = FIGURES["cui2024-5"].make("paper", tmp_path, **small)
    assert made.draft.store == tmp_path / "cui2024-5.sqlite"
    assert made.draft.store.exists()
    assert all((tmp_path / f"cui2024-5.{kind}").stat().st_size > 1000 for kind in ("pdf", "png"))


def test_simulated_points_are_those_of_the_simulation(tmp_path: Path) -> None:
    from giantsteps import simulation

    made = FIGURES["cui2024-5"].make(
        "smoke", tmp_path, formats=(), d=30, seeds=2, rates=(1.0,), widths=(0.5, 1.0), fine=2
    )
    rows = [r for r in made.draft.rows if r["source"] == "simulation" and "eta" in r["series"]]
    asked = [p for p in made.draft.problems.values() if isinstance(p, Problem)]
    problem = next(p for p in asked if p.steps and p.width == 0.5)
    risks = (simulation.risk(problem, 30, seed, test_samples="exact") for seed in range(2))
    runs = [float(risk.test) for risk in risks]
    row = next(r for r in rows if r["x"] == 0.5)
    assert row["y"] == pytest.approx(np.mean(runs), rel=1e-9)
    assert row["standard_error"] == pytest.approx(np.std(runs, ddof=1) / np.sqrt(2), rel=1e-9)


def test_a_violated_assumption_stands_in_the_caption(tmp_path: Path) -> None:
    steps = [Step(samples=4.0, rate=1.0, exponent=0.5)] * 2
    problem = Problem(
        activation="tanh", teacher="sin", width=1.0, steps=steps,
        readout=Ridge(samples=2.0, penalty=0.1), init=Init(second_layer="constant"),
    )  # fmt: skip
    draft = Draft(store=tmp_path / "none.sqlite")
    answer = draft.stated(theory.risk(problem, d=50))
    assert answer.violated
    figure = FIGURES["moniri2026-count"]
    settings = figure.settings["smoke"]
    made = Made(figure=figure, size="smoke", settings=settings, draft=draft, folder=tmp_path)
    assert made.violated == answer.violated
    assert "approximate" in made.caption
    assert made.violated[0] in made.caption


def test_unknown_names_sizes_and_settings(tmp_path: Path) -> None:
    with pytest.raises(InvalidProblem, match="cui2024-1"):
        FIGURES["cui2024-9"]
    with pytest.raises(InvalidProblem, match="smoke"):
        FIGURES["cui2024-1"].make("huge", tmp_path)  # type: ignore[arg-type]
    with pytest.raises(InvalidProblem, match="seeds"):
        FIGURES["cui2024-1"].make("smoke", tmp_path, seed=3)


def test_adding_a_figure_takes_one_function(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("giantsteps.figures._figure.FIGURES", {})
    from giantsteps.figures import _figure

    @figure("new-1", "A line", caption="To {end:g}.", references=("ba2022",),
            smoke={"end": 1.0}, quick={"end": 2.0}, paper={})  # fmt: skip
    def draw(draft: Draft, end: float) -> None:
        (ax,) = draft.axes(("x", "y"))
        draft.line(ax, [0.0, end], [0.0, 1.0], "line")
        draft.points(ax, [0.0], Measured.of([[1.0, 2.0]]), "points", marker="o")

    made = _figure.FIGURES["new-1"].make("quick", tmp_path, formats=())
    assert made.caption.startswith("A line. To 2.")
    assert made.draft.rows[1] == {
        "panel": "a", "series": "line", "source": "theory", "x": 2.0, "y": 1.0,
        "standard_error": pytest.approx(math.nan, nan_ok=True),
    }  # fmt: skip
    assert made.draft.rows[2]["standard_error"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("gpu", "given", "device", "workers"),
    [
        (None, ["--paper"], None, None),  # one per processor
        ("cuda", ["--paper"], "cuda", None),  # one per GPU
        ("cuda", ["--paper", "--device", "cpu"], "cpu", None),
        ("cuda", ["--paper", "--workers", "2"], "cuda", 2),
        ("cuda", ["--quick"], None, 1),
    ],
)
def test_the_paper_form_uses_what_the_machine_has(
    gpu: str | None,
    given: list[str],
    device: str | None,
    workers: int | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    asked: dict[str, Any] = {}

    def make(self: Figure, size: str, folder: Path, **options: Any) -> Any:
        asked.update(options)
        return SimpleNamespace(caption="", files=[])

    monkeypatch.setattr("giantsteps.cli._figure._gpu", lambda: gpu)
    monkeypatch.setattr(Figure, "make", make)
    called = CliRunner().invoke(giantsteps, ["figure", "cui2024-1", *given, "-o", str(tmp_path)])
    assert called.exit_code == 0, called.output
    assert (asked["device"], asked["workers"]) == (device, workers)


def test_command_line(tmp_path: Path) -> None:
    runner = CliRunner()
    listed = runner.invoke(giantsteps, ["figure", "list"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in NAMES)
    drawn = runner.invoke(
        giantsteps, ["figure", "moniri2026-count", "--smoke", "-o", str(tmp_path)]
    )
    assert drawn.exit_code == 0, drawn.output
    assert "number of outliers" in drawn.output
    assert (tmp_path / "moniri2026-count.pdf").exists()
