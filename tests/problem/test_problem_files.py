"""TOML, JSON, hashes and the repr: exact, and the same in every process."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import giantsteps as gs
from giantsteps import InvalidProblem

# The canonical form is a promise: results are stored under these hashes. A change of the form must
# raise its version, and with it these values.
KNOWN_HASHES = {
    "plain": "49f3cc73ad3ff904a64d98c996a4bfc5af07ca63fed9590b9565e8f00b041dd4",
    "full": "ac69fe43fe09c51bbc509ce5274b8b1ceb3ec30fffde95ec2ae76ae1f6f7fc5b",
}
PLAIN = gs.Problem(activation="tanh", teacher="sin", width=1.5)
FULL = gs.Problem(
    activation=gs.centered("relu"),
    teacher="tanh(2*x) + 0.3*x**3",
    width=1.5,
    noise_variance=0.05,
    steps=[
        gs.Step(samples=2.0, rate=1.0, exponent=0.35),
        gs.Step(samples=2.0, rate=0.1, exponent=0.45, batch="previous"),
    ],
    readout=gs.Ridge(samples=1 / 3, penalty=1e-5),
    init=gs.Init(weights="sphere", second_layer=gs.Vocabulary([-1, 1], [0.25, 0.75])),
)

NAMES = {
    part.__name__: part
    for part in (
        gs.Problem,
        gs.Step,
        gs.Ridge,
        gs.Init,
        gs.Gaussian,
        gs.Constant,
        gs.Vocabulary,
    )
}
positive = st.floats(1e-8, 1e8, exclude_min=True)
natural = st.floats(0, 1e8)
laws = st.one_of(
    st.just(gs.Gaussian()),
    st.builds(gs.Constant, st.floats(-1e6, 1e6)),
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5, unique=True).map(
        lambda values: gs.Vocabulary(values, [1 / len(values)] * len(values))
    ),
)
functions = st.sampled_from(
    ["tanh", "relu", "erf", "he3", "x + 0.1*x**2", "centered(relu)", "tanh(2*x) - abs(x - 0.5)"]
)


@st.composite
def problems(draw: st.DrawFn) -> gs.Problem:
    steps = [
        gs.Step(samples=draw(positive), rate=draw(natural), exponent=draw(st.floats(0, 0.5)))
        for _ in range(draw(st.integers(0, 3)))
    ]
    if len(steps) > 0 and draw(st.booleans()):
        steps.append(gs.Step(samples=steps[-1].samples, rate=draw(natural), batch="previous"))
    return gs.Problem(
        activation=draw(functions),
        teacher=draw(functions),
        width=draw(positive),
        noise_variance=draw(natural),
        steps=steps,
        readout=draw(st.none() | st.builds(gs.Ridge, samples=positive, penalty=natural)),
        init=gs.Init(
            weights=draw(st.sampled_from(["gaussian", "sphere"])), second_layer=draw(laws)
        ),
    )


@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_round_trips_are_exact(problem: gs.Problem) -> None:
    copies = [
        gs.Problem.from_toml(problem.to_toml()),
        gs.Problem.from_json(problem.to_json()),
        gs.Problem.from_data(problem.to_data()),
        pickle.loads(pickle.dumps(problem)),
        eval(repr(problem), NAMES),
    ]
    for copy in copies:
        assert copy == problem
        assert hash(copy) == hash(problem)
        assert copy.content_hash == problem.content_hash


@settings(max_examples=60, deadline=None)
@given(first=problems(), second=problems())
def test_problems_are_equal_when_their_hashes_are(first: gs.Problem, second: gs.Problem) -> None:
    assert (first == second) == (first.content_hash == second.content_hash)


def test_every_field_enters_the_hash() -> None:
    changes = {
        "activation": "erf",
        "teacher": "sin",
        "width": 1.5000000000000002,
        "noise_variance": 0.0,
        "steps.0.samples": 3,
        "steps.0.rate": 2,
        "steps.1.exponent": 0.0,
        "steps.1.batch": "fresh",
        "steps": [],
        "readout.samples": 1,
        "readout.penalty": 0,
        "readout": None,
        "init.weights": "gaussian",
        "init.second_layer": "gaussian",
        "init.second_layer.probabilities": [0.75, 0.25],
        "steps.0.rule": "sign",
        "steps.0.loss": "hinge",
        "steps.0.decay": 0.1,
        "steps.0.precondition": 0.5,
        "init.output": "unscaled",
        "inputs": gs.PowerLaw(0.1),
    }
    hashes = {FULL.replace({path: value}).content_hash for path, value in changes.items()}
    assert len(hashes | {FULL.content_hash}) == len(changes) + 1


def test_defaults_are_filled_in_and_the_order_of_keys_does_not_matter() -> None:
    data = FULL.to_data()
    shuffled = json.loads(json.dumps(data, sort_keys=True))
    assert list(shuffled) != list(data)
    assert gs.Problem.from_data(shuffled).content_hash == FULL.content_hash
    assert gs.Problem.from_data(dict(reversed(data.items()))) == FULL
    explicit = gs.Problem(
        activation="tanh", teacher="sin", width=1.5, noise_variance=0, steps=(), readout=None
    )
    assert explicit.content_hash == PLAIN.content_hash
    assert explicit.to_toml() == PLAIN.to_toml()


def test_spelling_of_an_expression_does_not_matter() -> None:
    spelled = FULL.replace({"teacher": " tanh( 2*x )+.3*x**3 "})
    assert spelled == FULL
    assert spelled.content_hash == FULL.content_hash


def test_numbers_of_any_kind_hash_alike() -> None:
    integers = gs.Problem(activation="tanh", teacher="sin", width=2, noise_variance=np.int64(1))  # type: ignore[arg-type]
    floats = gs.Problem(activation="tanh", teacher="sin", width=np.float64(2), noise_variance=1.0)
    assert integers.content_hash == floats.content_hash
    text = 'activation = "tanh"\nteacher = "sin"\nwidth = 2\nnoise_variance = 1\n'
    assert gs.Problem.from_toml(text) == floats


@pytest.mark.parametrize(("name", "problem"), [("plain", PLAIN), ("full", FULL)])
def test_hashes_are_those_of_earlier_versions(name: str, problem: gs.Problem) -> None:
    assert problem.content_hash == KNOWN_HASHES[name]


def test_hashes_are_the_same_in_another_process(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "problem.toml"
    path.write_text(FULL.to_toml(), encoding="utf-8")
    code = (
        "import pathlib, sys, giantsteps as gs; "
        "p = gs.Problem.from_toml(pathlib.Path(sys.argv[1])); "
        "print(p.content_hash, gs.Grid(p, {'width': [1, 2]}).content_hash)"
    )
    expected = [FULL.content_hash, gs.Grid(FULL, {"width": [1, 2]}).content_hash]
    for seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert run.stdout.split() == expected


def test_files_are_read_by_path(tmp_path: pathlib.Path) -> None:
    (tmp_path / "p.toml").write_text(FULL.to_toml(), encoding="utf-8")
    (tmp_path / "p.json").write_text(FULL.to_json(), encoding="utf-8")
    assert gs.Problem.from_toml(tmp_path / "p.toml") == FULL
    assert gs.Problem.from_json(tmp_path / "p.json") == FULL


@pytest.mark.parametrize("text", ["activation = ", "[", "a = 1\na = 2", "\x00", "[" * 100_000])
def test_broken_files_are_refused(text: str) -> None:
    with pytest.raises(InvalidProblem, match="valid TOML"):
        gs.Problem.from_toml(text)
    with pytest.raises(InvalidProblem, match="valid JSON"):
        gs.Problem.from_json(text)


def test_files_that_are_no_text_are_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "p").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidProblem, match="valid TOML"):
        gs.Problem.from_toml(tmp_path / "p")
    with pytest.raises(InvalidProblem, match="valid JSON"):
        gs.Problem.from_json(tmp_path / "p")
    with pytest.raises(InvalidProblem, match="valid JSON"):
        gs.Problem.from_json('{"width": ' + "1" * 5000 + "}")


def test_files_hold_tables_of_numbers_only() -> None:
    text = PLAIN.to_toml()
    for value in ("nan", "inf", "1979-05-27", "[1.0]", "true", '"1.5"'):
        with pytest.raises(InvalidProblem, match="width"):
            gs.Problem.from_toml(text.replace("width = 1.5", f"width = {value}"))
    with pytest.raises(InvalidProblem, match="width"):
        gs.Problem.from_json(PLAIN.to_json().replace("1.5", "NaN"))
    with pytest.raises(InvalidProblem, match="Problem"):
        gs.Problem.from_json("[1, 2]")


def test_a_callable_without_a_name_cannot_be_saved() -> None:
    problem = PLAIN.replace({"activation": lambda x: np.arctan(x)})
    assert problem == problem.replace({"width": 1.5})
    for save in (problem.to_toml, problem.to_json, lambda: problem.content_hash):
        with pytest.raises(InvalidProblem):
            save()
    assert "width=1.5" in repr(problem)


def test_the_repr_states_the_scalings() -> None:
    shown = repr(FULL)
    for text in (
        "N/d = 1.5",
        "n0/d = 2, eta = 1 * N**0.35",
        "n0/d = 2, the same once more, eta = 0.1 * N**0.45",
        "n/d = 0.333333, lambda = 1e-05",
        "lambda |a|^2 / N",
        "unit sphere",
        "Var noise = 0.05",
    ):
        assert text in shown
    assert "random features" in repr(PLAIN)


def test_the_html_is_a_table_that_states_the_scalings() -> None:
    shown = FULL._repr_html_()
    assert shown.startswith("<table>")
    assert shown.count("<tr>") == shown.count("</tr>") == 8
    assert "eta = 0.1 * N**0.45" in shown
    assert "&lt;x, beta*&gt;" in shown
    assert "random features" in PLAIN._repr_html_()
