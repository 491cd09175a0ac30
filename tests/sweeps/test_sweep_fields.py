"""A sweep as Python and as TOML: round trips, and every field that can be wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.errors import InvalidProblem

PROBLEM = {
    "activation": "tanh",
    "teacher": "sin",
    "width": 1.5,
    "steps": [{"samples": 2.0, "rate": 1.0}],
    "readout": {"samples": 2.0, "penalty": 0.1},
}


def data(**changes: Any) -> dict[str, Any]:
    return {"problem": PROBLEM, "d": 50, "store": "s.sqlite"} | changes


def test_defaults_and_normal_forms() -> None:
    sweep = gs.Sweep.from_data(data(d=[50, 20], seeds=3, questions="weights", sources="limit"))
    assert sweep.d == (50, 20)
    assert sweep.seeds == (0, 1, 2)
    assert sweep.questions == {"weights": {}}
    assert sweep.sources == ("limit",)
    plain = gs.Sweep.from_data(data())
    assert len(plain.seeds) == 20
    assert plain.sources == ("finite width", "simulation")
    assert plain.questions == {"risk": {}}


def test_round_trip_through_toml(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(
        vary={"readout.samples": [0.1, 1 / 3], "activation": ["tanh", "erf(x)"]},
        questions={"risk": {"degrees": 2}, "weights": {"top": 1}},
        sources=["simulation", "limit"],
        options={"test_samples": "exact", "device": "cpu"},
        initial=False,
        share=False,
    )
    again = gs.Sweep.from_toml(sweep.to_toml())
    assert again.to_data() == sweep.to_data()
    assert again.addresses == sweep.addresses
    assert again.sources == ("limit", "simulation")


def test_paths_may_stand_without_quotes_and_ranges_for_lists() -> None:
    text = """
    d = 50
    store = "s.sqlite"
    [problem]
    activation = "tanh"
    teacher = "sin"
    width = 1.5
    steps = [{samples = 2.0, rate = 1.0}]
    readout = {samples = 2.0, penalty = 0.1}
    [vary]
    readout.samples = {from = 0.5, to = 2.0, count = 4}
    steps.0.rate = {from = 0.1, to = 10, count = 3, log = true}
    "width" = [1.0, 2]
    """
    grid = gs.Sweep.from_toml(text).grid
    assert grid.dims == ("readout.samples", "steps.0.rate", "width")
    np.testing.assert_allclose(grid.coords["readout.samples"], [0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(grid.coords["steps.0.rate"], [0.1, 1.0, 10.0])


def test_the_store_of_a_file_is_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "curve.toml"
    sweep = gs.Sweep.from_data(data())
    text = sweep.to_toml()
    file.write_text(text)
    assert gs.Sweep.from_toml(file).store == tmp_path / "s.sqlite"
    file.write_text(text.replace('store = "s.sqlite"\n', ""))
    assert gs.Sweep.from_toml(file).store == tmp_path / "curve.sqlite"
    assert gs.Sweep.from_toml(file, store="other").store == Path("other")
    file.write_text(text.replace('"s.sqlite"', f'"{tmp_path}/far.sqlite"'))
    assert gs.Sweep.from_toml(file).store == tmp_path / "far.sqlite"
    with pytest.raises(InvalidProblem, match="store"):
        gs.Sweep.from_toml(text.replace('store = "s.sqlite"\n', ""))


def test_a_store_knows_its_last_sweep(make: Callable[..., gs.Sweep]) -> None:
    make(seeds=1).run(executor="serial")
    last = make(seeds=2)
    last.run(executor="serial")
    found = gs.Sweep.from_store(last.store)
    assert found.addresses == last.addresses
    assert found.status().complete


@pytest.mark.parametrize(
    ("changes", "field", "hint"),
    [
        ({"d": 0}, "d", "an integer >= 1"),
        ({"d": []}, "d", "distinct integers"),
        ({"d": [10, 10]}, "d", "distinct integers"),
        ({"d": "10"}, "d", "an integer"),
        ({"d": 10.0}, "d", "an integer"),
        ({"seeds": 0}, "seeds", "an integer >= 1"),
        ({"seeds": [-1, 2]}, "seeds", "integers >= 0"),
        ({"seeds": True}, "seeds", "an integer"),
        ({"questions": []}, "questions", "one of"),
        ({"questions": ["rsk"]}, "questions", 'did you mean "risk"'),
        ({"questions": {"risk": 3}}, "questions.risk", "a table of options"),
        ({"questions": {"risk": {"degree": 3}}}, "questions.risk.degree", 'mean "degrees"'),
        ({"questions": {"weights": {"dtype": "float32"}}}, "questions.weights.dtype", "left out"),
        ({"questions": 3}, "questions", "one of"),
        ({"questions": [3]}, "questions", "one of"),
        ({"sources": []}, "sources", "one of"),
        ({"sources": 3}, "sources", "one of"),
        ({"sources": ["theory"]}, "sources", '"finite width"'),
        ({"dtype": "float16"}, "dtype", "one of"),
        ({"options": {"tests": 3}}, "options.tests", "test_samples"),
        ({"options": {"device": object()}}, "options.device", "a number, a text"),
        ({"options": 3}, "options", "a table"),
        ({"initial": 1}, "initial", "true or false"),
        ({"share": "no"}, "share", "true or false"),
        ({"store": 3}, "store", "the path of a file"),
        ({"seed": 3}, "seed", 'did you mean "seeds"'),
        ({"vary": {"width": []}}, "width", "at least one value"),
        ({"vary": {"widht": [1.0]}}, "path", 'did you mean "width"'),
        (
            {"vary": {"width": {"from": 1, "to": 2, "count": 0}}},
            "vary.width.count",
            "from 1 to 10000",
        ),
        ({"vary": {"width": {"from": 1, "to": 2, "count": 2, "step": 1}}}, "vary.width", "log"),
        ({"vary": {"width": {"from": "a", "to": 2, "count": 2}}}, "vary.width", "from = a"),
        ({"vary": 3}, "vary", "a table"),
        ({"vary": {"width": [0.001, 1.0]}}, "width", "larger at d = 50"),
        ({"problem": {**PROBLEM, "readout": None}}, "readout", "Ridge"),
    ],
)
def test_every_wrong_field_is_named(changes: dict[str, Any], field: str, hint: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Sweep.from_data(data(**changes))
    assert caught.value.field == field
    assert hint in str(caught.value)


@pytest.mark.parametrize("missing", ["problem", "d"])
def test_what_has_no_default_must_be_given(missing: str) -> None:
    given = data()
    del given[missing]
    with pytest.raises(InvalidProblem, match=missing):
        gs.Sweep.from_data(given)
    with pytest.raises(InvalidProblem, match="a table"):
        gs.Sweep.from_data([])  # type: ignore[arg-type]


def test_a_grid_is_needed() -> None:
    with pytest.raises(InvalidProblem, match="a Grid or a Problem"):
        gs.Sweep(grid=3, d=10, store="s")  # type: ignore[arg-type]


def test_weights_need_no_readout() -> None:
    bare = {key: value for key, value in PROBLEM.items() if key != "readout"}
    sweep = gs.Sweep.from_data(data(problem=bare, questions=["weights", "gradient"]))
    names = [(part.source, part.name) for part in sweep.cells]
    assert ("simulation", "weights.initial") in names
    assert ("simulation", "gradient") in names


def test_theory_is_not_asked_what_it_would_take_for_something_else() -> None:
    def sources(options: dict[str, Any]) -> set[str]:
        sweep = gs.Sweep.from_data(data(questions={"risk": options}))
        return {part.source for part in sweep.cells}

    assert sources({"degrees": 2}) == {"finite width", "simulation"}
    assert sources({"kind": "tangent"}) == {"simulation"}
