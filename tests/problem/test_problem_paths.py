"""Dotted paths: get, replace, and what is said of those that do not exist."""

from __future__ import annotations

import pytest

import giantsteps as gs
from giantsteps import InvalidProblem

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=3.0), gs.Step(samples=2.0, rate=1.0, batch="previous")],
    readout=gs.Ridge(samples=3.0, penalty=0.1),
    init=gs.Init(second_layer="constant"),
)


def test_every_path_can_be_read_and_put_back() -> None:
    for path in PROBLEM.paths():
        assert PROBLEM.replace({path: PROBLEM.get(path)}) == PROBLEM


def test_paths_reach_every_field() -> None:
    assert {
        "activation",
        "teacher",
        "width",
        "noise_variance",
        "steps",
        "steps.0",
        "steps.1.samples",
        "steps.1.rate",
        "steps.1.exponent",
        "steps.1.batch",
        "readout",
        "readout.samples",
        "readout.penalty",
        "init.weights",
        "init.second_layer",
        "init.second_layer.value",
    } <= set(PROBLEM.paths())


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("width", 2, 2.0),
        ("activation", "erf", gs.Function),
        ("steps.1.rate", 7, 7.0),
        ("init.second_layer", "gaussian", gs.Gaussian()),
        ("init.second_layer", {"law": "constant", "value": 3}, gs.Constant(3.0)),
        ("init.second_layer.value", -1, -1.0),
        ("init.weights", "sphere", "sphere"),
        ("readout", {"samples": 1, "penalty": 2}, gs.Ridge(samples=1, penalty=2)),
        ("readout", None, None),
        ("steps", [], ()),
        ("steps.0", {"samples": 2, "rate": 0}, gs.Step(samples=2, rate=0)),
    ],
)
def test_replace_changes_one_field_and_no_other(path: str, value: object, expected: object) -> None:
    changed = PROBLEM.replace({path: value})
    found = changed.get(path)
    assert isinstance(found, expected) if isinstance(expected, type) else found == expected
    assert changed != PROBLEM
    assert changed.replace({path: PROBLEM.get(path)}) == PROBLEM


def test_names_become_functions() -> None:
    assert PROBLEM.replace({"activation": "erf"}).activation.canonical == "erf"
    assert PROBLEM.replace({"teacher": "he3"}).teacher != PROBLEM.teacher


def test_several_fields_are_validated_together() -> None:
    first = PROBLEM.replace({"steps.1.batch": "fresh", "steps.1.samples": 5.0})
    both = first.replace(
        {"steps.0.samples": 4.0, "steps.1.samples": 4, "steps.1.batch": "previous"}
    )
    assert [step.samples for step in both.steps] == [4.0, 4.0]
    with pytest.raises(InvalidProblem, match=r"steps\.1\.samples"):
        first.replace({"steps.1.batch": "previous"})


def test_a_reused_batch_follows_the_step_it_belongs_to() -> None:
    assert [s.samples for s in PROBLEM.replace({"steps.0.samples": 5}).steps] == [5.0, 5.0]
    with pytest.raises(InvalidProblem, match=r"steps\.1\.samples"):
        PROBLEM.replace({"steps.1.samples": 5})
    with pytest.raises(InvalidProblem, match=r"steps\.1\.samples"):
        PROBLEM.replace({"steps.0.samples": 5, "steps.1.samples": 4})
    fresh = PROBLEM.replace({"steps.0.samples": 5, "steps.1.batch": "fresh"})
    assert [step.samples for step in fresh.steps] == [5.0, 2.0]


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("widht", 'did you mean "width"'),
        ("step.0.rate", 'did you mean "steps.0.rate"'),
        ("steps.2.rate", '"steps.1.rate"'),
        ("steps.-1.rate", '"steps.1.rate"'),
        ("steps.00.rate", '"steps.0.rate"'),
        ("readout.lambda", '"readout.penalty"'),
        ("init.second_layer.values", 'did you mean "init.second_layer.value"'),
        ("", '"width"'),
        ("width.", '"width"'),
        ("__class__", '"width"'),
        ("activation.name", '"activation"'),
        (3, '"width"'),
        (("width",), '"width"'),
    ],
)
def test_unknown_paths_are_refused_with_those_that_exist(path: object, hint: str) -> None:
    with pytest.raises(InvalidProblem, match="path = ") as caught:
        PROBLEM.get(path)  # type: ignore[arg-type]
    assert hint in str(caught.value)
    with pytest.raises(InvalidProblem):
        PROBLEM.replace({path: 1.0})  # type: ignore[dict-item]


def test_a_missing_readout_has_no_fields_to_set() -> None:
    with pytest.raises(InvalidProblem, match="set readout=Ridge"):
        PROBLEM.replace({"readout": None}).replace({"readout.samples": 1.0})


def test_a_part_and_its_field_are_not_replaced_at_once() -> None:
    with pytest.raises(InvalidProblem, match=r'"steps.0" is given too'):
        PROBLEM.replace({"steps.0": gs.Step(samples=2, rate=1), "steps.0.rate": 2.0})


def test_changes_are_a_mapping() -> None:
    with pytest.raises(InvalidProblem, match="changes"):
        PROBLEM.replace([("width", 1.0)])  # type: ignore[arg-type]
    assert PROBLEM.replace({}) == PROBLEM
