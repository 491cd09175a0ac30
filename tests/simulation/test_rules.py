"""Every rule and loss of a step: identities, PyTorch's automatic differentiation and optimizers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation

RULES = ("gradient", "sign", "normalized", "muon", "adam")
LOSSES = ("squared", "logistic", "hinge", "huber")
PROBLEM = gs.Problem(
    activation="tanh(x) + 0.2*x**2",
    teacher="sin(2*x)",
    noise_variance=0.3,
    width=1.5,
    steps=[gs.Step(samples=3.0, rate=0.7, exponent=0.5)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)


def moved(problem: gs.Problem, d: int = 40, seed: int = 0, **options: Any) -> np.ndarray:
    """W₁ − W₀."""
    run = simulation.run(problem, d, seed, **options)
    first, last = (np.asarray(run.arrays[name]) for name in ("W0", "W1"))
    return last - first


# Identities -----------------------------------------------------------------------------------


def test_the_norm_of_an_update_is_eta_whatever_the_gradient() -> None:
    neurons = 60
    for rule in RULES[1:]:
        step = {"steps.0.rule": rule}
        first = moved(PROBLEM.replace(step))
        # A second layer of another size scales the gradient, and nothing else at f₀ = 0.
        louder = PROBLEM.replace(step | {"init.second_layer": gs.Constant(3.0)})
        for update in (first, moved(louder)):
            assert np.linalg.norm(update) == pytest.approx(0.7 * math.sqrt(neurons), rel=1e-6)


def test_sign_is_the_sign_of_the_gradient() -> None:
    gradient, sign = moved(PROBLEM), moved(PROBLEM.replace({"steps.0.rule": "sign"}))
    expected = 0.7 * np.sign(gradient) / math.sqrt(40)
    np.testing.assert_allclose(sign, expected, rtol=0, atol=1e-13)


def test_normalized_is_the_gradient_at_an_effective_rate() -> None:
    gradient, found = moved(PROBLEM), moved(PROBLEM.replace({"steps.0.rule": "normalized"}))
    rate = 0.7 * 0.7 * math.sqrt(60) / np.linalg.norm(gradient)
    again = moved(PROBLEM.replace({"steps.0.rate": rate}))
    np.testing.assert_allclose(found, again, rtol=0, atol=1e-13)


@pytest.mark.parametrize("samples", [3.0, 0.5])
@pytest.mark.parametrize("width", [1.5, 0.5])
def test_muon_makes_all_singular_values_equal(samples: float, width: float) -> None:
    problem = PROBLEM.replace({"steps.0.samples": samples, "width": width})
    gradient, found = moved(problem), moved(problem.replace({"steps.0.rule": "muon"}))
    neurons, rank = round(40 * width), min(40, round(40 * width), round(40 * samples))
    u, _, vt = np.linalg.svd(gradient, full_matrices=False)
    expected = 0.7 * math.sqrt(neurons / rank) * u[:, :rank] @ vt[:rank]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_adams_first_step_is_the_sign_step_up_to_epsilon() -> None:
    adam, sign = (moved(PROBLEM.replace({"steps.0.rule": rule})) for rule in ("adam", "sign"))
    assert np.max(np.abs(adam - sign)) < 1e-3 * np.max(np.abs(sign))
    assert np.median(np.abs(adam - sign)) < 1e-7 * np.max(np.abs(sign))


@pytest.mark.parametrize("rule", RULES)
def test_decay_shrinks_what_was_there(rule: str) -> None:
    plain, decayed = (
        simulation.run(PROBLEM.replace({"steps.0.rule": rule, "steps.0.decay": decay}), 40, 0)
        for decay in (0.0, 0.25)
    )
    expected = plain.arrays["W1"] - 0.25 * plain.arrays["W0"]
    np.testing.assert_allclose(decayed.arrays["W1"], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("rule", RULES)
def test_a_step_of_rate_zero_does_not_move(rule: str) -> None:
    assert not np.any(moved(PROBLEM.replace({"steps.0.rule": rule, "steps.0.rate": 0.0})))
    silent = PROBLEM.replace({"steps.0.rule": rule, "init.second_layer": gs.Constant(0.0)})
    assert not np.any(moved(silent))  # a gradient of zero has no direction, and is no error


# PyTorch --------------------------------------------------------------------------------------


def loss_of(torch: Any, name: str, output: Any, labels: Any) -> Any:
    functional = torch.nn.functional
    if name == "squared":
        return 0.5 * functional.mse_loss(output, labels)
    if name == "logistic":
        return functional.softplus(-labels * output).mean()
    if name == "hinge":
        return functional.relu(1 - labels * output).mean()
    return functional.huber_loss(output, labels)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("output", ["scaled", "unscaled"])
@pytest.mark.parametrize("device", ["cpu", "torch", "strict"])
def test_the_gradient_is_that_of_automatic_differentiation(
    loss: str, output: str, device: str
) -> None:
    torch = pytest.importorskip("torch")
    where = pytest.importorskip("array_api_strict") if device == "strict" else device
    problem = PROBLEM.replace({"steps.0.loss": loss, "init.output": output})
    run = simulation.run(problem, 40, 0, device=where)
    w0, w1, a, x, y = (
        torch.tensor(np.asarray(run.arrays[name])) for name in ("W0", "W1", "a", "X0", "y0")
    )
    scale = 60**-0.5 if output == "scaled" else 1.0
    weights = w0.clone().requires_grad_()
    z = x @ weights
    f = scale * ((torch.tanh(z) + 0.2 * z**2) @ a)
    loss_of(torch, loss, f, y).backward()
    eta = 0.7 * math.sqrt(60)
    expected = w0 - eta / scale * weights.grad
    np.testing.assert_allclose(w1.numpy(), expected.numpy(), rtol=0, atol=1e-10)


def test_the_unscaled_network_is_a_sequential_of_pytorch() -> None:
    """A module in PyTorch's own scaling, trained by torch.optim.SGD on the same arrays."""
    torch = pytest.importorskip("torch")
    steps = [gs.Step(samples=3, rate=0.3, decay=0.1), gs.Step(samples=2, rate=0.2, exponent=0.25)]
    problem = PROBLEM.replace({"activation": "tanh", "init.output": "unscaled", "steps": steps})
    run = simulation.run(problem, 40, 0)
    arrays = {name: torch.tensor(np.asarray(value)) for name, value in run.arrays.items()}
    module = torch.nn.Sequential(
        torch.nn.Linear(40, 60, bias=False), torch.nn.Tanh(), torch.nn.Linear(60, 1, bias=False)
    ).double()
    with torch.no_grad():
        module[0].weight.copy_(arrays["W0"].T)
        module[2].weight.copy_(arrays["a"][None, :])
    for number, step in enumerate(steps):
        # Decoupled decay: torch.optim.AdamW multiplies before it steps, SGD has only the coupled.
        optimizer = torch.optim.SGD(module[0].parameters(), lr=step.learning_rate(60))
        loss = torch.nn.MSELoss()
        optimizer.zero_grad()
        output = module(arrays[f"X{number}"])[:, 0]
        (0.5 * loss(output, arrays[f"y{number}"])).backward()
        with torch.no_grad():
            module[0].weight *= 1 - step.decay
        optimizer.step()
        found = arrays[f"W{number + 1}"].T
        np.testing.assert_allclose(module[0].weight.detach(), found, rtol=0, atol=1e-10)


@pytest.mark.parametrize("output", ["scaled", "unscaled"])
@pytest.mark.parametrize("device", ["cpu", "torch"])
def test_adam_over_several_steps_is_pytorchs(output: str, device: str) -> None:
    """Moments are carried through all steps with this rule, and past those with another one."""
    torch = pytest.importorskip("torch")
    adam = gs.Step(samples=2, rate=0.4, exponent=0.5, rule="adam")
    other = gs.Step(samples=2, rate=0.2, exponent=0.5)
    problem = PROBLEM.replace({"steps": [adam, adam, other, adam], "init.output": output})
    arrays = simulation.run(problem, 40, 0, device=device).arrays
    scale = 60**-0.5 if output == "scaled" else 1.0
    weights = torch.tensor(np.asarray(arrays["W0"])).requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=0.4 / math.sqrt(40))
    a = torch.tensor(np.asarray(arrays["a"]))
    for number, step in enumerate(problem.steps):
        x, y = (torch.tensor(np.asarray(arrays[f"{name}{number}"])) for name in "Xy")
        optimizer.zero_grad()
        z = x @ weights
        f = scale * ((torch.tanh(z) + 0.2 * z**2) @ a)
        (0.5 * torch.mean((y - f) ** 2)).backward()
        if step.rule == "adam":
            rms = float(torch.sqrt(torch.mean(weights.grad**2)))
            optimizer.param_groups[0]["eps"] = 1e-8 * rms
            optimizer.step()
        else:
            with torch.no_grad():
                weights -= step.learning_rate(60) / scale * weights.grad
        found = np.asarray(arrays[f"W{number + 1}"])
        np.testing.assert_allclose(found, weights.detach().numpy(), rtol=0, atol=1e-10)


# Everything at once ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_devices_precisions_and_chunks_agree(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    problem = PROBLEM.replace(
        {"steps.0.rule": rule, "steps.0.loss": "huber", "init.output": "unscaled"}
    )
    expected = simulation.risk(problem, 60, 0, test_samples=500).test
    there = simulation.risk(problem, 60, 0, test_samples=500, device="torch").test
    assert there == pytest.approx(expected, rel=1e-9)
    single = simulation.risk(problem, 60, 0, test_samples=500, dtype="float32").test
    assert single == pytest.approx(expected, rel=1e-3)
    assert single != expected
    big = problem.replace({"steps.0.samples": 60.0, "readout.samples": 60.0})
    whole = simulation.risk(big, 60, 0, test_samples=5000).test
    chunked = simulation.risk(big, 60, 0, test_samples=5000, memory="70MB").test
    assert chunked == pytest.approx(whole, rel=1e-9)


def test_the_gradient_question_sees_loss_and_output() -> None:
    """b = Xᵀr/n with the residuals of the loss: by hand."""
    for changes in ({"steps.0.loss": "logistic"}, {"init.output": "unscaled"}):
        problem = PROBLEM.replace(changes)
        run = simulation.run(problem, 60, 0)
        x, y, w, a = (run.arrays[name] for name in ("X0", "y0", "W0", "a"))
        z = x @ w
        f = (np.tanh(z) + 0.2 * z**2) @ a * problem.init.output_scale(90)
        r = y / (1 + np.exp(y * f)) if "steps.0.loss" in changes else y - f
        b = x.T @ r / len(y)
        np.testing.assert_allclose(run.arrays["b"], b, rtol=0, atol=1e-13)
        mean_slope = 1 - np.mean(np.tanh(np.random.default_rng(0).standard_normal(10**6)) ** 2)
        expected = mean_slope * np.linalg.norm(a) * np.linalg.norm(b)
        assert run.gradient().spike_norm == pytest.approx(expected, rel=2e-3)
