"""The seams of a problem: rule, loss, decay, output, readout's batch, preconditioner."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import giantsteps as gs
from giantsteps.errors import InvalidProblem

PLAIN = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=4, rate=1, exponent=0.5), gs.Step(samples=2, rate=1)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)
FULL = PLAIN.replace(
    {
        "steps.0.rule": "sign",
        "steps.0.loss": "logistic",
        "steps.0.decay": 0.1,
        "steps.1.rule": "muon",
        "steps.1.precondition": 0.5,
        "readout.batch": "previous",
        "init.output": "unscaled",
        "inputs": gs.Covariance((0.3, 1.7), (0.5, 0.5), (0.2, 0.8)),
    }
)
LOSSES = {
    "squared": lambda f, y: (y - f) ** 2 / 2,
    "logistic": lambda f, y: np.logaddexp(0, -y * f),
    "hinge": lambda f, y: np.maximum(0, 1 - y * f),
    "huber": lambda f, y: np.where(np.abs(y - f) < 1, (y - f) ** 2 / 2, np.abs(y - f) - 0.5),
}


def test_defaults_are_in_no_file_and_in_no_repr() -> None:
    data = PLAIN.to_data()
    assert set(data["steps"][0]) == {"samples", "rate", "exponent", "batch"}
    assert set(data["readout"]) == {"samples", "penalty"}
    assert set(data["init"]) == {"weights", "second_layer"}
    assert "inputs" not in data
    for word in ("rule", "loss", "decay", "precondition", "output", "inputs"):
        assert word not in repr(PLAIN)
    stated = PLAIN.replace({"steps.0.rule": "gradient", "init.output": "scaled"})
    assert stated.content_hash == PLAIN.content_hash


def test_every_seam_goes_through_files_and_repr() -> None:
    for law in (FULL.inputs, gs.PowerLaw(0.4, 0.1), gs.SpikedCovariance(2, 0.5)):
        problem = FULL.replace(inputs=law)
        assert gs.Problem.from_toml(problem.to_toml()) == problem
        assert gs.Problem.from_json(problem.to_json()) == problem
        names = {name: getattr(gs, name) for name in gs.__all__}
        assert eval(repr(problem), names) == problem
        assert "Sigma" in problem._repr_latex_()
        assert "inputs" in problem._repr_html_()


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        ("steps.0.rule", "adamw", 'did you mean "adam"'),
        ("steps.0.loss", "mse", '"huber"'),
        ("steps.0.decay", 1.0, "erase"),
        ("steps.0.decay", -0.1, "[0, 1)"),
        ("steps.0.precondition", 0.25, "1/2"),
        ("readout.batch", "same", '"previous"'),
        ("init.output", "ntk", '"unscaled"'),
        ("inputs", "powerlaw", 'did you mean "power_law"'),
        ("inputs", {"law": "spiked", "strength": 1.0, "alignment": 2.0}, "cos^2"),
    ],
)
def test_bad_values_are_refused_by_their_path(path: str, value: object, word: str) -> None:
    with pytest.raises(InvalidProblem) as caught:
        PLAIN.replace({path: value})
    assert caught.value.field.startswith(path)
    assert word in str(caught.value)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_residual_is_minus_the_derivative_of_the_loss(loss: str) -> None:
    step = gs.Step(samples=1, rate=1, loss=loss)
    rng = np.random.default_rng(0)
    for f, y in rng.standard_normal((50, 2)) * 2:
        slope = approx_fprime(
            np.array([f]), partial(lambda v, y: LOSSES[loss](v[0], y), y=y), 1e-7
        )[0]
        found = step.residual(np.array([f]), np.array([y]))[0]
        assert found == pytest.approx(-slope, abs=2e-6)


def test_a_residual_overflows_nowhere() -> None:
    step = gs.Step(samples=1, rate=1, loss="logistic")
    found = step.residual(np.array([-1e4, 1e4]), np.ones(2))
    np.testing.assert_array_equal(found, [1.0, 0.0])


def test_a_readout_on_the_last_batch_needs_that_batch() -> None:
    with pytest.raises(InvalidProblem, match="no step whose batch"):
        PLAIN.replace({"steps": [], "readout.batch": "previous"})
    with pytest.raises(InvalidProblem, match=r"4\.0, the samples of the last step"):
        PLAIN.replace({"steps": PLAIN.steps[:1], "readout.batch": "previous"})
    followed = FULL.replace({"steps.1.samples": 3})
    assert followed.readout is not None
    assert followed.readout.samples == 3
    untrained = FULL.untrained()
    assert untrained.readout == gs.Ridge(samples=2, penalty=0.1)
    with pytest.raises(InvalidProblem, match=r"readout\.samples"):
        gs.Grid(FULL, {"readout.samples": [1.0, 2.0]})


def test_replace_by_keyword() -> None:
    assert PLAIN.replace(width=2) == PLAIN.replace({"width": 2})
    assert PLAIN.replace({"steps.0.rate": 2}, width=3).get("steps.0.rate") == 2
    with pytest.raises(InvalidProblem, match="once"):
        PLAIN.replace({"width": 1}, width=2)
    with pytest.raises(InvalidProblem, match="path"):
        PLAIN.replace(widht=2)
    with pytest.raises(InvalidProblem, match="a mapping"):
        PLAIN.replace([("width", 2)])  # type: ignore[arg-type]


def test_a_scale_of_the_output() -> None:
    assert gs.Init().output_scale(100) == pytest.approx(0.1)
    assert gs.Init(output="unscaled").output_scale(100) == 1.0


@pytest.mark.parametrize("name", ["ba2022", "cui2024", "moniri2023", "moniri2026"])
@pytest.mark.parametrize("d", [None, 200])
def test_conventions_carry_every_seam(name: str, d: int | None) -> None:
    problem = FULL if d is None else FULL.realised(d)
    values = problem.in_convention(name, d)
    assert values["rule"] == ("sign", "muon")
    assert gs.Problem.from_convention(name, **values) == problem
    assert not {"rule", "output", "inputs", "readout_batch"} & PLAIN.in_convention(name).keys()
