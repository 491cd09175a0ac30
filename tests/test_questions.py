"""The common test of the registry: what every question must pass, on every side that answers it."""

from __future__ import annotations

import csv
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import answers, simulation
from giantsteps.errors import InvalidProblem, NotCovered
from giantsteps.questions import QUESTIONS, RUN_OPTIONS, Question, names, question

D = 40
SIDES = [(name, side) for name, asked in QUESTIONS.items() for side in asked.sides]
BOTH = names("theory", "simulation")

_ONE = gs.Problem(
    activation="tanh",
    teacher="sin",
    noise_variance=0.05,
    width=1.5,
    steps=[gs.Step(samples=4, rate=10)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)
#: Questions about several steps need others.
_TWO = _ONE.replace({"steps": [gs.Step(samples=4, rate=3, exponent=0.25)] * 2})
_BETWEEN = _ONE.replace({"steps.0.rate": 1.0, "steps.0.exponent": 0.25})
#: In the limit neurons move at exponent 1/2 only.
_LARGE = _ONE.replace({"steps.0.rate": 1.0, "steps.0.exponent": 0.5})


def problem_for(name: str) -> gs.Problem:
    """A problem that every side answers."""
    others = {"outlier_count": _TWO, "staircase_risk": _BETWEEN, "movement": _LARGE}
    return others.get(name, _ONE)


def ask(asked: Question, side: Any, problem: gs.Problem | gs.Grid, **options: Any) -> Any:
    where = {"d": D, "seed": 3} if side == "simulation" else {}
    return asked.function(side)(problem, **where, **options)


def numbers(answer: answers.Answer) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, (_, values) in answer._variables().items()}


@pytest.mark.parametrize("asked", QUESTIONS.values(), ids=list(QUESTIONS))
def test_a_row_is_complete(asked: Question) -> None:
    assert QUESTIONS[asked.name] is question(asked.name) is asked
    assert asked.sides
    assert asked.summary[0].islower()
    assert not asked.summary.endswith(".")
    assert issubclass(getattr(answers, asked.answer), answers.Answer)
    assert pickle.loads(pickle.dumps(asked)) == asked
    for name, option in asked.options.items():
        assert option.help.endswith("."), name
        assert option.sides
        assert set(option.sides) <= set(asked.sides)


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_the_options_are_those_of_the_function(name: str, side: Any) -> None:
    asked = QUESTIONS[name]
    function = asked.function(side)
    parameters = inspect.signature(getattr(function, "func", function)).parameters
    common = {"problem", "d", "seed", "options", *RUN_OPTIONS, *asked.fixed}
    assert parameters.keys() - common == asked.takes(side)
    for option in asked.takes(side):
        assert parameters[option].default == asked.options[option].default
    if side == "theory":
        assert ("d" in parameters) == asked.finite


def test_the_options_of_a_network_are_those_of_a_run() -> None:
    parameters = inspect.signature(simulation.Run).parameters
    assert parameters.keys() - {"problem", "d", "seed"} == RUN_OPTIONS.keys()
    for name, option in RUN_OPTIONS.items():
        assert parameters[name].default == option.default


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_a_problem_and_a_grid_give_the_same_answer(name: str, side: Any) -> None:
    asked, problem = QUESTIONS[name], problem_for(name)
    alone = ask(asked, side, problem)
    assert isinstance(alone, getattr(answers, asked.answer))
    assert alone.source == ("limit" if side == "theory" else "simulation")
    assert alone.d == (None if side == "theory" else D)
    grid = gs.Grid(problem, {"noise_variance": [0.05, 0.2]})
    over = ask(asked, side, grid)
    assert over.shape == (2,)
    found, expected = numbers(over[0]), numbers(alone)
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        if key == "degree":  # over a grid, known where all cells have the same
            continue
        np.testing.assert_allclose(found[key], value, rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("name", [n for n in names("theory") if QUESTIONS[n].finite])
def test_theory_answers_at_a_size(name: str) -> None:
    answer: Any = QUESTIONS[name].function("theory")(problem_for(name), d=D)
    assert (answer.source, answer.d) == ("finite width", D)
    assert answer.evidence
    assert answer.evidence in repr(answer)
    assert pickle.loads(pickle.dumps(answer)) == answer
    bulk = getattr(answer, "bulk", None)
    if bulk is not None:  # a law at a size holds the equations that its density is solved from
        copy = pickle.loads(pickle.dumps(answer)).bulk
        inside = np.mean(bulk.support[-1])
        assert copy.density(inside) == bulk.density(inside) > 0
        assert pickle.loads(pickle.dumps(answer)) == answer
        other: Any = QUESTIONS[name].function("theory")(problem_for(name), d=D + 1)
        assert bulk != other.bulk


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_an_answer_can_be_exported_and_pickled(name: str, side: Any, tmp_path: Path) -> None:
    asked, problem = QUESTIONS[name], problem_for(name)
    for target in (problem, gs.Grid(problem, {"noise_variance": [0.05, 0.2]})):
        answer = ask(asked, side, target)
        copy = pickle.loads(pickle.dumps(answer))
        assert numbers(copy).keys() == numbers(answer).keys()
        assert all(np.array_equal(v, numbers(copy)[k], True) for k, v in numbers(answer).items())
        frame = answer.to_frame()
        assert len(frame)
        assert set(frame["source"]) == {answer.source}
        answer.to_csv(tmp_path / "table.csv")
        with open(tmp_path / "table.csv", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == list(frame.columns)
        assert len(rows) == len(frame)
        dataset = answer.to_xarray()
        assert set(dataset.data_vars) == numbers(answer).keys()
        assert repr(answer).startswith(asked.answer)


@pytest.mark.parametrize(("name", "side"), SIDES)
def test_bad_input_is_refused_in_words(name: str, side: Any) -> None:
    asked, problem = QUESTIONS[name], problem_for(name)
    if asked.needs_readout:
        with pytest.raises(InvalidProblem, match="readout"):
            ask(asked, side, problem.replace({"readout": None}))
    if asked.needs_step:
        with pytest.raises((InvalidProblem, NotCovered), match="step"):
            ask(asked, side, problem.replace({"steps": ()}))
    if "d" in inspect.signature(asked.function(side)).parameters:
        for wrong in (0, -3, 2.5, "many"):
            with pytest.raises(InvalidProblem, match="d = "):
                asked.function(side)(problem, d=wrong)


@pytest.mark.parametrize("name", BOTH)
def test_what_is_compared_both_sides_have(name: str) -> None:
    asked, problem = QUESTIONS[name], problem_for(name)
    theory = asked.function("theory")(problem, d=D)
    paths = asked.quantities(theory)
    assert paths
    assert len(set(paths)) == len(paths)
    comparison = gs.compare(problem, d=D, seeds=2, question=name)
    assert comparison.quantities == tuple(paths)
    for path in paths:
        assert np.all(np.isfinite(comparison[path].largest.mean)), path


def test_a_question_says_who_does_not_answer_it() -> None:
    with pytest.raises(InvalidProblem, match='only simulation answers "tangent_kernel"'):
        question("tangent_kernel").function("theory")
    with pytest.raises(InvalidProblem, match='only theory answers "bounds"'):
        gs.compare(_ONE, d=D, question="bounds")
    with pytest.raises(InvalidProblem, match='did you mean "learned_function"'):
        question("learned_functions")
    with pytest.raises(InvalidProblem, match="question = 3"):
        question(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidProblem, match='did you mean "degrees"'):
        question("risk").check_options({"degree": 3})


def test_tangent_questions_are_those_of_the_tangent_kernel() -> None:
    found = ask(QUESTIONS["tangent_kernel"], "simulation", _ONE, top=1)
    assert found.matrix == "tangent kernel"
    expected = simulation.risk(_ONE, d=D, seed=3, kind="tangent").test
    assert ask(QUESTIONS["tangent_risk"], "simulation", _ONE).test == expected
