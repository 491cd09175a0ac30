"""Two-layer modules as problems: what is read off, what is fitted, what the theory then says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.practice import fit_teacher, two_layer

torch = pytest.importorskip("torch")
nn = torch.nn


def module(d: int = 40, neurons: int = 60, activation: Any = None, **options: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(d, neurons, **options), activation or nn.Tanh(), nn.Linear(neurons, 1)
        )


class OwnForward(nn.Module):  # type: ignore[misc,name-defined]
    """A forward pass that only running it reveals."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(30, 20), nn.Linear(20, 1, bias=False)

    def forward(self, x: Any) -> Any:
        return self.b(torch.nn.functional.softplus(self.a(x)))


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        (nn.Tanh(), "tanh"), (nn.ReLU(), "relu"), (nn.GELU(), "gelu"), (nn.SiLU(), "silu"),
        (nn.Sigmoid(), "sigmoid"), (nn.ELU(), "elu"), (nn.Softplus(), "softplus"),
        (nn.LeakyReLU(), "leaky_relu"), (nn.Identity(), "identity"),
    ],
)  # fmt: skip
def test_activations_are_recognised(activation: Any, name: str) -> None:
    network = two_layer(module(activation=activation))
    z = np.linspace(-3, 3, 11)
    expected = gs.functions.as_function(name)(network.scale * z)
    assert network.activation(z) == pytest.approx(expected, rel=1e-12)


def test_the_network_is_the_same_in_the_convention_of_the_theory() -> None:
    for given in (module(), OwnForward()):
        network = two_layer(given)
        x = np.random.default_rng(0).standard_normal((7, len(network.weights)))
        hidden = network.activation(x @ network.weights + network.biases)
        ours = hidden @ network.second_layer / network.weights.shape[1] + network.output_bias
        theirs = given(torch.tensor(x, dtype=torch.float32)).detach().numpy()[:, 0]
        assert ours == pytest.approx(theirs, abs=1e-5)


def test_an_activation_of_ones_own() -> None:
    class Own(nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any) -> Any:
            return torch.sin(x) + 0.1 * x**2

    given = module(activation=Own())
    with pytest.raises(gs.InvalidProblem, match="activation="):
        two_layer(given)
    network = two_layer(given, activation="sin(x) + 0.1*x**2")
    z = np.linspace(-1, 1, 5)
    expected = np.sin(network.scale * z) + 0.1 * (network.scale * z) ** 2
    assert network.activation(z) == pytest.approx(expected)
    called = two_layer(given, activation=lambda x: np.sin(x) + 0.1 * x**2)
    assert called.activation(z) == pytest.approx(expected)
    with pytest.raises(gs.InvalidProblem, match="activation"):
        two_layer(given, activation="tanh")


@pytest.mark.parametrize(
    "wrong",
    [
        nn.Linear(5, 1),
        nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2)),
        nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)),
        nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 1)),
    ],
)
def test_other_modules_are_refused(wrong: Any) -> None:
    with pytest.raises(gs.InvalidProblem, match="module"):
        two_layer(wrong)


def test_rates_are_those_of_the_theory() -> None:
    """One step of SGD moves the weights as one step of the theory at the rate that is stated."""
    given = module(d=20, neurons=30, bias=False)
    network = two_layer(given)
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((50, 20)), rng.standard_normal(50)
    out = given(torch.tensor(x, dtype=torch.float32))[:, 0]
    torch.nn.functional.mse_loss(out, torch.tensor(y, dtype=torch.float32)).backward()
    moved = -0.3 * given[0].weight.grad.double().numpy().T / network.scale
    f = network.activation(x @ network.weights) @ network.second_layer / 30 + network.output_bias
    slope = network.activation.derivative(x @ network.weights)
    unit = network.second_layer / network.output_scale  # A of mean square one
    gradient = x.T @ ((y - f)[:, None] * unit * slope) / (50 * 30)
    assert moved == pytest.approx(network.rate(0.3) * np.sqrt(30) * gradient, abs=1e-6)


# The teacher ----------------------------------------------------------------------------------


def test_coefficients_of_known_teachers() -> None:
    """Mean over drawn data sets, within its own error: the shrinking cosine is divided out."""
    rng = np.random.default_rng(2)
    found, noises, angles = [], [], []
    for _ in range(30):
        x = rng.standard_normal((1500, 60))
        z = x[:, 5]
        y = 0.8 * z + 0.4 * (z**2 - 1) + 0.1 * (z**3 - 3 * z) + 0.5 * rng.standard_normal(1500) + 3
        fit = fit_teacher(x, y)
        found.append(fit.coefficients)
        noises.append(fit.noise_variance)
        angles.append((fit.cosine, abs(fit.direction[5])))
    mean, error = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(30)
    assert np.all(np.abs(mean - [0.8, 0.4, 0.1, 0.0, 0.0]) < 4 * error + 0.01)
    assert np.mean(noises) == pytest.approx(0.25, abs=0.02)
    assert np.mean([a for a, _ in angles]) == pytest.approx(
        np.mean([b for _, b in angles]), abs=0.01
    )
    assert fit.label_mean == pytest.approx(3.0, abs=0.15)


def test_a_teacher_without_noise_is_found_exactly() -> None:
    x = np.random.default_rng(3).standard_normal((1500, 60))
    z = x @ np.full(60, 60**-0.5)
    fit = fit_teacher(x, z + 0.2 * (z**2 - 1))
    assert fit.coefficients == pytest.approx((1.0, 0.2, 0.0, 0.0, 0.0), abs=1e-9)
    assert fit.noise_variance == pytest.approx(0.0, abs=1e-9)
    assert fit.cosine == pytest.approx(1.0, abs=1e-9)
    assert abs(fit.direction.sum()) == pytest.approx(60**0.5)


def test_a_teacher_without_a_linear_part() -> None:
    x = np.random.default_rng(3).standard_normal((4000, 40))
    fit = fit_teacher(x, x[:, 1] ** 2)
    assert abs(fit.direction[1]) > 0.95
    assert fit.coefficients[1] == pytest.approx(1.0, abs=0.1)
    assert fit.coefficients[0] == 0.0


def test_data_that_do_not_fit_are_refused() -> None:
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1000, 30))
    with pytest.raises(gs.NotCovered, match="no direction"):
        fit_teacher(x, rng.standard_normal(1000))
    for wrong in (2 * x, x + 1, x * np.linspace(0.2, 2, 30), x[:60]):
        with pytest.raises(gs.InvalidProblem, match="inputs"):
            fit_teacher(wrong, wrong[:, 0])
    with pytest.raises(gs.InvalidProblem, match="one output"):
        fit_teacher(x, x[:, :2])


# The problem ----------------------------------------------------------------------------------


@pytest.mark.agreement
@pytest.mark.parametrize("activation", [nn.Tanh(), nn.ReLU()])
def test_the_theory_predicts_the_readout_of_a_module(activation: Any) -> None:
    """Ridge on the module's own random features, against the fitted problem: within 3 %."""
    given = module(d=150, neurons=200, activation=activation, bias=False)
    network = two_layer(given)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((6000, 150))
    y = np.tanh(2 * x[:, 0]) + 0.3 * rng.standard_normal(6000)
    readout = gs.Ridge(samples=3, penalty=0.1)
    problem = gs.Problem.from_module(given, (x, y), readout=readout)
    predicted = theory.risk(problem, d=150).test
    errors = []
    for seed in range(6):
        fresh = np.random.default_rng([5, seed])
        z = fresh.standard_normal((450 + 4000, 150))
        clean = np.tanh(2 * z[:, 0])
        features = network.activation(z @ network.weights) / np.sqrt(200)
        train, test = features[:450], features[450:]
        labels = clean[:450] + 0.3 * fresh.standard_normal(450)
        gram = train.T @ train / 450 + 0.1 / 200 * np.eye(200)
        slope = np.linalg.solve(gram, train.T @ labels / 450)
        errors.append(np.mean((clean[450:] - test @ slope) ** 2))
    # What the fitted polynomial leaves of the teacher counts as noise in the problem.
    beyond = problem.noise_variance - 0.09
    assert predicted + beyond == pytest.approx(np.mean(errors), rel=0.03)


def test_trained_modules_and_large_outputs_are_refused() -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((2000, 40))
    data = (x, x[:, 0])
    trained = module()
    trained[0].weight.data[:20] *= 4
    with pytest.raises(gs.NotCovered, match="norms that vary"):
        gs.Problem.from_module(trained, data)
    step = [gs.Step(samples=4, rate=1)]
    with pytest.raises(gs.NotCovered, match='output="unscaled"'):
        gs.Problem.from_module(module(), data, steps=step)
    with pytest.raises(gs.InvalidProblem, match="output"):
        gs.Problem.from_module(module(), data, output="large")
    with pytest.raises(gs.InvalidProblem, match="output"):
        two_layer(module()).rate(0.1, output="large")
    small = module()
    small[2].weight.data /= 60**0.5
    small[2].bias.data.zero_()
    problem = gs.Problem.from_module(
        small, data, steps=step, readout=gs.Ridge(samples=2, penalty=0.1)
    )
    assert problem.width == 1.5
    assert problem.init.second_layer.second_moment == pytest.approx(1.0)
    with pytest.raises(gs.InvalidProblem, match="inputs of shape"):
        gs.Problem.from_module(module(), (x[:, :10], x[:, 0]))
    with pytest.raises(gs.InvalidProblem, match="module"):
        gs.Problem.from_module(nn.Linear(40, 1), data)


@pytest.mark.parametrize(("activation", "rate"), [(nn.Tanh(), 2.0), (nn.ReLU(), 1.5)])
def test_the_first_step_of_pytorchs_own_initialisation(activation: Any, rate: float) -> None:
    """``Problem.from_module`` before training, one step of SGD by autograd, ridge on the features:
    the error that was predicted, biases and all."""
    d, neurons, batch, samples, penalty = 150, 225, 600, 300, 0.1
    rng = np.random.default_rng(7)

    def draw(rows: int) -> tuple[np.ndarray, np.ndarray]:
        x = rng.standard_normal((rows, d))
        return x, x[:, 0] + 0.1 * (x[:, 0] ** 3 - 3 * x[:, 0])

    def torch_array(x: np.ndarray) -> Any:
        return torch.tensor(x, dtype=torch.float32)

    given = module(d, neurons, activation)
    size = two_layer(given).rate(rate, output="unscaled")
    problem = gs.Problem.from_module(
        given,
        draw(8000),
        steps=[gs.Step(samples=batch / d, rate=size)],
        readout=gs.Ridge(samples=samples / d, penalty=penalty),
        output="unscaled",
    )
    assert isinstance(problem, gs.Problem)
    assert problem.init.output == "unscaled"
    assert problem.width == 1.5
    predicted = theory.risk(problem, d=d).test
    assert predicted < 0.9 * theory.risk(problem.untrained(), d=d).test
    errors = []
    for seed in range(16):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = nn.Sequential(nn.Linear(d, neurons), activation, nn.Linear(neurons, 1))
        x, y = draw(batch)
        torch.nn.functional.mse_loss(network(torch_array(x))[:, 0], torch_array(y)).backward()
        network[0].weight.data -= rate * network[0].weight.grad
        (x, y), (test, wanted) = draw(samples), draw(4000)
        features, unseen = (
            network[:2](torch_array(z)).detach().double().numpy() for z in (x, test)
        )
        gram = features.T @ features / samples + penalty * np.eye(neurons)
        slope = np.linalg.solve(gram, features.T @ y / samples)
        errors.append(np.mean((wanted - unseen @ slope) ** 2))
    assert abs(predicted - np.mean(errors)) < 0.01 * predicted + 3 * np.std(errors) / 15**0.5


def test_a_constant_second_layer_keeps_its_mean() -> None:
    """Only a mean that a draw can have is taken for zero."""
    x = np.random.default_rng(9).standard_normal((2000, 40))
    given = module(bias=False)
    given[2].weight.data.fill_(0.1)
    problem = gs.Problem.from_module(given, (x, x[:, 0]), output="unscaled")
    assert problem.init.second_layer.mean == pytest.approx(0.1 * 60**0.5)
