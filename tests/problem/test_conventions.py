"""Conventions of the papers: known settings, and the way back."""

from __future__ import annotations

import itertools
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import giantsteps as gs
from giantsteps import InvalidProblem
from giantsteps.problem import CONVENTIONS

# What a person writes: up to 12 significant digits.
decimals = st.builds(
    lambda digits, power: float(f"{digits}e{power}"), st.integers(1, 10**12), st.integers(-14, -9)
)
exponents = st.integers(0, 50).map(lambda n: n / 100)


@st.composite
def problems(draw: st.DrawFn) -> gs.Problem:
    steps = [
        gs.Step(samples=draw(decimals), rate=draw(decimals), exponent=draw(exponents))
        for _ in range(draw(st.integers(0, 2)))
    ]
    if len(steps) > 0 and draw(st.booleans()):
        steps.append(gs.Step(samples=steps[-1].samples, rate=draw(decimals), batch="previous"))
    readout = gs.Ridge(samples=draw(decimals), penalty=draw(decimals))
    return gs.Problem(
        activation="tanh",
        teacher="sin",
        width=draw(decimals),
        noise_variance=draw(decimals | st.just(0.0)),
        steps=steps,
        readout=draw(st.sampled_from([readout, None])),
        init=gs.Init(
            weights=draw(st.sampled_from(["gaussian", "sphere"])),
            second_layer=draw(st.sampled_from([gs.Gaussian(), gs.Constant(), gs.Constant(2)])),
        ),
    )


@pytest.mark.parametrize("name", CONVENTIONS)
@settings(max_examples=60, deadline=None)
@given(problem=problems())
def test_the_round_trip_is_exact(name: str, problem: gs.Problem) -> None:
    assert gs.Problem.from_convention(name, **problem.in_convention(name)) == problem


@pytest.mark.parametrize("name", CONVENTIONS)
@settings(max_examples=30, deadline=None)
@given(problem=problems(), d=st.integers(10, 2000))
def test_the_round_trip_through_sizes_is_exact(name: str, problem: gs.Problem, d: int) -> None:
    problem = problem.replace({"width": max(problem.width, 0.1)})
    for index, step in enumerate(problem.steps):
        if step.batch == "fresh":
            path = f"steps.{index}.samples"
            problem = problem.replace({path: max(step.samples, 0.1)})
    if problem.readout:
        samples = max(problem.readout.samples, 0.1)
        problem = problem.replace({"readout.samples": samples})
    written = problem.in_convention(name, d=d)
    assert gs.Problem.from_convention(name, **written) == problem.realised(d)


OURS = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    noise_variance=0.04,
    steps=[gs.Step(samples=6.0, rate=2.0, exponent=0.5)],
    readout=gs.Ridge(samples=3.0, penalty=0.1),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "ba2022",
            {"psi2": 1.5, "psi1": 3.0, "psi1_step": (6.0,), "eta": (2.0,), "exponent": (0.5,)}
            | {"sigma_eps": 0.2, "lam": 0.1},
        ),
        (
            "cui2024",
            {"beta": 1.5, "alpha": 3.0, "alpha0": (6.0,), "eta_tilde": (2.0,), "exponent": (1.0,)}
            | {"noise_variance": 0.04, "lam": 0.2},
        ),
        (
            "moniri2023",
            {"psi": 1 / 1.5, "phi": 1 / 3, "phi_step": (1 / 6,), "eta": (1.0,), "alpha": (0.5,)}
            | {"sigma_eps": 0.2, "lam": 0.1},
        ),
        (
            "moniri2026",
            {"psi": 1 / 1.5, "phi": 1 / 3, "phi_step": (1 / 6,), "eta": (2.0,), "alpha": (0.5,)}
            | {"sigma_eps": 0.2, "lam": 0.1},
        ),
    ],
)
def test_known_translations(name: str, expected: dict[str, object]) -> None:
    written = OURS.in_convention(name)
    for key, value in expected.items():
        assert written[key] == pytest.approx(value, rel=1e-15)


def test_the_learning_rate_of_each_network() -> None:
    d = 1000
    neurons, eta = 1500, 2.0 * math.sqrt(1500)
    assert OURS.in_convention("ba2022", d)["eta"] == (pytest.approx(eta),)
    assert OURS.in_convention("moniri2023", d)["eta"] == (pytest.approx(eta),)
    # cui2024 has no sqrt(N) in its update: eta is sqrt(N) times ours, 2 p
    assert OURS.in_convention("cui2024", d)["eta"] == (pytest.approx(2.0 * neurons),)
    # moniri2023 counts in powers of n: coefficient * n**alpha is the learning rate
    coefficient = OURS.in_convention("moniri2023")["eta"][0]
    assert coefficient * 6000**0.5 == pytest.approx(eta)


def test_both_losses_have_the_same_minimum() -> None:
    """n⁻¹‖y − Φa‖² + (λ/N)‖a‖², the sum loss of cui2024 and the F = √N Φ of moniri2023."""
    rng = np.random.default_rng(0)
    sizes = OURS.at(20)
    n, neurons = sizes.samples, sizes.neurons
    assert n is not None
    phi, y = rng.standard_normal((n, neurons)), rng.standard_normal(n)

    def ridge(features: np.ndarray, data: float, penalty: float) -> np.ndarray:
        gram = data * features.T @ features + penalty * np.eye(neurons)
        return features @ np.linalg.solve(gram, data * features.T @ y)

    ours = ridge(phi, 1 / n, 0.1 / neurons)
    sum_loss = ridge(phi, 1.0, OURS.in_convention("cui2024", 20)["lam"])
    unscaled = ridge(np.sqrt(neurons) * phi, 1 / n, OURS.in_convention("moniri2023")["lam"])
    assert np.allclose(ours, sum_loss, rtol=1e-10)
    assert np.allclose(ours, unscaled, rtol=1e-10)


def test_a_setting_of_cui2024_is_read_with_its_initialisation() -> None:
    problem = gs.Problem.from_convention(
        "cui2024",
        activation="tanh",
        teacher="sin",
        beta=1.0,
        alpha0=20.0,
        alpha=2.0,
        eta_tilde=3.0,
        lam=0.1,
    )
    assert problem == gs.Problem(
        activation="tanh",
        teacher="sin",
        width=1.0,
        steps=[gs.Step(samples=20.0, rate=3.0, exponent=0.5)],
        readout=gs.Ridge(samples=2.0, penalty=0.05),
        init=gs.Init(weights="sphere", second_layer="constant"),
    )
    sized = gs.Problem.from_convention(
        "cui2024",
        activation="tanh",
        teacher="sin",
        d=1000,
        p=1000,
        n0=20_000,
        n=2000,
        eta=3000.0,
        lam=0.1,
    )
    assert sized == problem


def test_one_sample_size_serves_both_batches_in_ba2022() -> None:
    problem = gs.Problem.from_convention(
        "ba2022", activation="tanh", teacher="sin", psi1=3.0, psi2=1.25, eta=3.0, lam=0.05
    )
    assert problem.steps == (gs.Step(samples=3.0, rate=3.0),)
    assert problem.readout == gs.Ridge(samples=3.0, penalty=0.05)
    assert problem.init == gs.Init()


def test_two_steps_of_moniri2026() -> None:
    problem = gs.Problem.from_convention(
        "moniri2026",
        activation="tanh",
        teacher="he3",
        psi=1.0,
        phi_step=0.25,
        eta=np.array([2.0, 2.0]),
        alpha=[0.35, 0.45],
        batch=["fresh", "previous"],
    )
    assert problem.steps == (
        gs.Step(samples=4.0, rate=2.0, exponent=0.35),
        gs.Step(samples=4.0, rate=2.0, exponent=0.45, batch="previous"),
    )
    assert problem.readout is None
    assert problem.init == gs.Init(weights="sphere")


def test_random_features_in_every_convention() -> None:
    for name in CONVENTIONS:
        written = OURS.untrained().in_convention(name)
        assert gs.Problem.from_convention(name, **written) == OURS.untrained()


CUI = {"activation": "tanh", "teacher": "sin", "beta": 1.0, "alpha0": 2.0, "eta_tilde": 1.0}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"psi1": 1.0}, "psi1"),
        ({"lambda": 1.0}, "lambda"),
        ({"n0": 100}, "n0"),
        ({"beta": -1.0}, "beta"),
        ({"beta": "1"}, "beta"),
        ({"beta": 0.0}, "width"),
        ({"lam": 0.1}, "readout.samples"),
        ({"exponent": 0.3}, "exponent"),
        ({"exponent": 1.2}, "steps.0.exponent"),
        ({"alpha0": [1.0, 2.0]}, "alpha0"),
        ({"batch": "previous"}, "steps.0.batch"),
        ({"weights": "cube"}, "init.weights"),
        ({"d": 0}, "d"),
        ({"d": 10}, "beta"),
    ],
)
def test_what_is_refused(values: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        gs.Problem.from_convention("cui2024", **{**CUI, **values})
    assert caught.value.field == field


def test_unknown_conventions() -> None:
    with pytest.raises(InvalidProblem, match='did you mean "cui2024"'):
        OURS.in_convention("cui2023")
    with pytest.raises(InvalidProblem, match="ba2022"):
        gs.Problem.from_convention("x", activation="tanh")


def test_tables_list_every_row() -> None:
    file = Path(__file__).parents[2] / "docs" / "_ext" / "conventions_table.py"
    markdown = runpy.run_path(str(file))["conventions_table"]()
    for name, convention in CONVENTIONS.items():
        assert name in markdown
        for row in convention.rows:
            assert row.formula in markdown
            assert row.inverse in markdown
    assert "λ_s = penalty · readout.samples / width" in markdown
    assert "penalty = λ_s · width / readout.samples" in markdown
    assert "σ_ε = √noise_variance" in markdown
    assert "noise_variance = σ_ε²" in markdown
    widths = {line.count("|") for line in markdown.splitlines() if line.startswith("|")}
    assert len(widths) == 1


def test_keywords_are_distinct() -> None:
    for convention, d in itertools.product(CONVENTIONS.values(), (None, 10)):
        keys = [row.key(d) for row in convention.rows]
        assert len(set(keys)) == len(keys)
