"""Learning rates of PyTorch: the same update as autograd, and back again."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import giantsteps as gs
from giantsteps.problem import Step

if TYPE_CHECKING:
    import torch
else:
    torch = pytest.importorskip("torch")

N, D, SAMPLES = 96, 40, 60
#: Name → (scale of the stored first layer, of the second, inner and outer multiplier).
NETWORKS: dict[str, tuple[Any, Any, float, float]] = {
    "pytorch": (None, None, 1.0, 1.0),
    "standard": (D**-0.5, N**-0.5, 1.0, 1.0),
    "he": ((2 / D) ** 0.5, (2 / N) ** 0.5, 1.0, 1.0),
    "ntk": (1.0, 1.0, D**-0.5, N**-0.5),
    "mean-field": (D**-0.5, 1.0, 1.0, 1 / N),
    "mup": (D**-0.5, 1 / N, 1.0, 1.0),
}
LOSSES: dict[str, Callable[..., torch.Tensor]] = {
    "mse": torch.nn.MSELoss(),
    "half-mse": lambda f, y: 0.5 * torch.nn.functional.mse_loss(f, y),
    "logistic": torch.nn.SoftMarginLoss(),
    "huber": torch.nn.HuberLoss(),
    "hinge": lambda f, y: torch.clamp(1 - y * f, min=0).mean(),
}


class Scaled(torch.nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.factor * x


def network(
    parametrization: str, base: float = 1.0
) -> tuple[torch.nn.Sequential, torch.nn.Linear, torch.nn.Linear]:
    """A real network, its first and last layer, and the standard deviation of the last one."""
    first_scale, last_scale, inner, outer = NETWORKS[parametrization]
    torch.manual_seed(3)
    first = torch.nn.Linear(D, N, bias=False, dtype=torch.float64)
    last = torch.nn.Linear(N, 1, bias=False, dtype=torch.float64)
    if first_scale is not None:
        torch.nn.init.normal_(first.weight, std=first_scale)
        torch.nn.init.normal_(last.weight, std=last_scale * math.sqrt(base))
    model = torch.nn.Sequential(first, Scaled(inner), torch.nn.Tanh(), last, Scaled(outer))
    return model, first, last


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(4)
    X = torch.randn(SAMPLES, D, dtype=torch.float64)
    return X, torch.sign(X[:, :1] + 0.3 * torch.randn(SAMPLES, 1, dtype=torch.float64))


def update(
    model: torch.nn.Module, layer: torch.nn.Linear, optimizer: torch.optim.Optimizer, loss: str
) -> torch.Tensor:
    """What one step of the optimiser adds to the weights of a layer, as (d, N)."""
    X, y = batch()
    before = layer.weight.detach().clone()
    optimizer.zero_grad()
    LOSSES[loss](model(X), y).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return (layer.weight.detach() - before).T


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("parametrization", NETWORKS)
def test_a_step_of_sgd_is_the_step_of_the_library(parametrization: str, loss: str) -> None:
    model, first, last = network(parametrization)
    lr = 0.03
    rate = gs.rate_of_learning_rate(lr, neurons=N, d=D, parametrization=parametrization, loss=loss)
    q, inner = rate.preactivation, NETWORKS[parametrization][2]
    s = {"pytorch": (3 * N) ** -0.5}.get(parametrization, NETWORKS[parametrization][1])
    X, y = batch()
    W = inner / q * first.weight.detach().T  # pre-activations of variance one
    a = last.weight.detach().T / s / math.sqrt(N)  # A/√N
    residual = Step(samples=1, rate=1, loss=rate.loss).residual(model(X).detach(), y)
    slope = q * (1 - torch.tanh(q * X @ W) ** 2)  # of σ(qz)
    expected = rate.eta * X.T @ ((residual @ a.T) * slope) / SAMPLES
    applied = lr * N if parametrization == "mup" else lr
    found = update(model, first, torch.optim.SGD(first.parameters(), applied), loss)
    torch.testing.assert_close(inner / q * found, expected, rtol=1e-10, atol=1e-14)
    assert rate.step(samples=SAMPLES / D).learning_rate(N) == pytest.approx(rate.eta)


@pytest.mark.parametrize("parametrization", NETWORKS)
def test_the_first_step_of_adam_is_a_sign_step(parametrization: str) -> None:
    model, first, _ = network(parametrization)
    rate = gs.rate_of_learning_rate(
        0.01, neurons=N, d=D, parametrization=parametrization, optimizer="adam"
    )
    inner = NETWORKS[parametrization][2]
    adam = torch.optim.Adam(first.parameters(), 0.01, eps=1e-30)
    moved = inner / rate.preactivation * update(model, first, adam, "mse")
    assert rate.rule == "sign"
    expected = rate.movement / math.sqrt(D)
    torch.testing.assert_close(moved.abs(), torch.full_like(moved, expected), rtol=1e-6, atol=0)
    assert float(torch.linalg.norm(moved)) == pytest.approx(rate.eta, rel=1e-6)


def test_weights_and_outputs_have_the_sizes_of_the_table() -> None:
    for name, (_, _, inner, _) in NETWORKS.items():
        rate = gs.rate_of_learning_rate(1e-3, neurons=N, d=D, parametrization=name)
        _, first, last = network(name)
        spread = inner * float(first.weight.detach().std()) * math.sqrt(D)
        assert spread == pytest.approx(rate.preactivation, rel=0.05)
        size = NETWORKS[name][3] * float(last.weight.detach().std()) * math.sqrt(N)
        assert size == pytest.approx(rate.output, rel=0.2)
        assert rate.init_output == ("scaled" if name in ("mean-field", "mup") else "unscaled")


def test_a_base_width_of_mup() -> None:
    """The same lr moves the same at every width, and the base width is the standard network."""
    at_base = gs.rate_of_learning_rate(0.1, neurons=64, d=D, parametrization="mup", base_width=64)
    standard = gs.rate_of_learning_rate(0.1, neurons=64, d=D, parametrization="standard")
    assert at_base.eta == pytest.approx(standard.eta)
    assert at_base.output == pytest.approx(standard.output)
    wide = gs.rate_of_learning_rate(0.1, neurons=4096, d=D, parametrization="mup", base_width=64)
    assert wide.movement == pytest.approx(at_base.movement)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("parametrization", NETWORKS)
def test_there_and_back(parametrization: str, optimizer: str) -> None:
    options: dict[str, Any] = {
        "neurons": N,
        "d": D,
        "parametrization": parametrization,
        "optimizer": optimizer,
    }
    found = gs.rate_of_learning_rate(0.02, **options)
    back = gs.learning_rate_of_rate(found.rate, found.exponent, **options)
    assert back == pytest.approx(0.02, rel=1e-12)


def test_weight_decay_shrinks_as_in_pytorch() -> None:
    model, first, _ = network("standard")
    rate = gs.rate_of_learning_rate(
        0.1, neurons=N, d=D, parametrization="standard", weight_decay=0.5
    )
    before = first.weight.detach().clone()
    plain = update(model, first, torch.optim.SGD(first.parameters(), 0.1), "mse")
    model, first, _ = network("standard")
    sgd = torch.optim.SGD(first.parameters(), 0.1, weight_decay=0.5)
    decayed = update(model, first, sgd, "mse")
    torch.testing.assert_close(decayed - plain, -rate.decay * before.T)


@pytest.mark.parametrize(
    ("changes", "needle"),
    [
        ({"lr": -1.0}, "lr = -1.0"),
        ({"lr": "fast"}, "lr = 'fast'"),
        ({"neurons": 2.5}, "neurons = 2.5"),
        ({"d": 0}, "d = 0"),
        ({"parametrization": "muP"}, '"mup"'),
        ({"optimizer": "adamw"}, '"adam"'),
        ({"loss": "cross-entropy"}, '"logistic"'),
        ({"exponent": 0.7}, "exponent = 0.7"),
        ({"base_width": 64}, 'only "mup" has one'),
        ({"weight_decay": 1e3}, "learning rate times weight decay must be below one"),
    ],
)
def test_mistakes(changes: dict[str, Any], needle: str) -> None:
    given: dict[str, Any] = {"lr": 0.1, "neurons": N, "d": D} | changes
    with pytest.raises(gs.InvalidProblem, match="must be") as caught:
        gs.rate_of_learning_rate(given.pop("lr"), **given)
    assert needle in str(caught.value)
