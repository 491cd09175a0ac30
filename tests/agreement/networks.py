"""Plain networks for `networks.json`: the settings there, trained with torch and nothing else.

The library takes no part: what is compared with it should not share its mistakes. To draw the
networks of all settings again (minutes on a GPU), or of those whose name starts with a word::

    python tests/agreement/networks.py again.json [word]

A setting is what `test_networks.problem` turns into a Problem. Every network has d inputs, N =
width·d neurons and a ridge readout on fresh samples; measured are its test and training error, how
often the sign is wrong, the squared overlap of the first singular vector with the teacher (all of
its directions), and the first singular value: mean and standard error over the networks.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MEASURED = ("test", "train", "classification", "overlap", "singular_value")
TEST = 10_000
_MEAN_RELU, _MEAN_SQUARE = 1 / math.sqrt(2 * math.pi), 0.39429449  # E relu, E tanh²

Function = Callable[[torch.Tensor], torch.Tensor]


def _centered(function: Function) -> Function:
    """function − E function(z)."""
    z = torch.linspace(-12, 12, 200_001, dtype=torch.float64)
    weight = torch.exp(-z * z / 2)
    mean = float((function(z) * weight).sum() / weight.sum())
    return lambda x: function(x) - mean


def _bent(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) + 0.4 * (torch.tanh(x) ** 2 - _MEAN_SQUARE)


ACTIVATIONS: dict[str, Function] = {
    "tanh": torch.tanh,
    "erf": torch.erf,
    "sin": torch.sin,
    "relu": torch.relu,
    "crelu": lambda x: torch.relu(x) - _MEAN_RELU,
    "tt": _bent,
    "csoftplus": _centered(torch.nn.functional.softplus),
    "cgelu": _centered(torch.nn.functional.gelu),
    "softplus": torch.nn.functional.softplus,
    "sigmoid": torch.sigmoid,
    "elu": torch.nn.functional.elu,
    "silu": torch.nn.functional.silu,
    "leaky": lambda x: torch.nn.functional.leaky_relu(x, 0.1),
    "tanhplus": lambda x: torch.tanh(x) + 0.5,
}
TEACHERS: dict[str, Function] = {
    "sin": torch.sin,
    "tanh": torch.tanh,
    "sign": torch.sign,
    "erf2": lambda u: torch.erf(2 * u),
    "q": lambda u: u + 0.5 * (u * u - 1),
    "he2": lambda u: (u * u - 1) / math.sqrt(2),
    "cub": lambda u: u + (u**3 - 3 * u) / 6,
    "clip": lambda u: torch.clamp(u, -1, 1),
    "crelu": lambda u: torch.relu(u) - _MEAN_RELU,
    "relu": torch.relu,
    "softplus": torch.nn.functional.softplus,
    "exp3": lambda u: torch.exp(u / 3),
    "gelu": torch.nn.functional.gelu,
    "step": lambda u: (u > 0).double(),
    "abs": torch.abs,
    "onesin": lambda u: 1 + torch.sin(u),
    "sigmoid4": lambda u: torch.sigmoid(4 * u),
}


def _of_directions(expression: str) -> Function:
    """A function of the columns x0, x1, … of its argument."""
    code = compile(expression, "teacher", "eval")
    known = {"tanh": torch.tanh, "sin": torch.sin, "relu": torch.relu}
    return lambda u: eval(code, known | {f"x{i}": u[:, i] for i in range(u.shape[1])})


def _slope(function: Function, x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        (slope,) = torch.autograd.grad(function(x).sum(), x)
    return slope


def _residual(loss: str, output: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """−ℓ'(output; y)."""
    if loss == "logistic":
        return y / (1 + torch.exp(y * output))
    if loss == "hinge":
        return torch.where(y * output < 1, y, torch.zeros_like(y))
    return torch.clamp(y - output, -1, 1) if loss == "huber" else y - output


def _inputs(given: dict[str, Any] | None, d: int) -> tuple[torch.Tensor, list[tuple[int, float]]]:
    """Variances of the inputs, with mean one, and blocks (size, share of the teacher's square)."""
    if given is None:
        return torch.ones(d), [(d, 1.0)]
    if "power_law" in given:
        values = torch.arange(1, d + 1).double() ** -given["power_law"]
        return values / values.mean(), [(1, 1 / d)] * d
    if "spike" in given:
        values = torch.ones(d)
        values[-1] += given["spike"]
        return values / values.mean(), [(d - 1, 1 - given["alignment"]), (1, given["alignment"])]
    sizes = [round(share * d) for share in given["shares"]]
    values = torch.cat([torch.full((n,), e) for n, e in zip(sizes, given["eigenvalues"])])
    return values / values.mean(), list(zip(sizes, given["teacher"]))


def network(setting: dict[str, Any], d: int, generator: torch.Generator) -> list[float]:
    """Train one network and measure it."""

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, device=DEVICE)

    sigma, rank = ACTIVATIONS[setting["activation"]], setting.get("rank", 1)
    link = TEACHERS[setting["teacher"]] if rank == 1 else _of_directions(setting["teacher"])
    noise, neurons = math.sqrt(setting.get("noise", 0.0)), round(setting["width"] * d)
    variances, blocks = _inputs(setting.get("inputs"), d)
    root = variances.to(DEVICE).sqrt()
    parts = [normal(size) for size, _ in blocks]
    shares = [share for _, share in blocks]
    beta = torch.cat([part / part.norm() * math.sqrt(t) for part, t in zip(parts, shares)])
    beta = beta / (beta * root).norm()
    if rank > 1:  # orthonormal, on isotropic inputs
        beta = torch.linalg.qr(normal(d, rank))[0]

    def draw(n: int) -> tuple[torch.Tensor, torch.Tensor]:
        x = normal(n, d) * root
        return x, link(x @ beta)

    weights = normal(d, neurons)
    sphere = setting.get("weights", "gaussian") == "sphere"
    weights = weights / (weights.norm(dim=0) if sphere else math.sqrt(d))
    layer = setting.get("layer", "gaussian")
    if layer == "gaussian":
        second = normal(neurons)
    elif layer == "constant":
        second = torch.ones(neurons, device=DEVICE)
    else:
        values, probabilities = (torch.tensor(part, device=DEVICE) for part in layer)
        second = values[torch.multinomial(probabilities, neurons, True, generator=generator)]
    second = second / math.sqrt(neurons)
    scale = 1.0 if setting.get("output") == "unscaled" else 1 / math.sqrt(neurons)

    x, y = draw(0)
    for step in setting["steps"]:
        if step.get("batch", "fresh") == "fresh":
            x, y = draw(round(step["samples"] * d))
            y = y + noise * normal(len(y))
        hidden = x @ weights
        r = _residual(step.get("loss", "squared"), scale * (sigma(hidden) @ second), y)
        gradient = x.T @ (_slope(sigma, hidden) * r[:, None]) * second / len(x)
        gradient = gradient * (root ** (-2 * step.get("precondition", 0.0)))[:, None]
        weights = (1 - step.get("decay", 0.0)) * weights + _moved(gradient, step)

    n = round(setting["samples"] * d)
    if setting.get("readout", "fresh") == "fresh":
        x, y = draw(n)
        y = y + noise * normal(n)
    features = sigma(x @ weights) / math.sqrt(neurons)
    gram = features.T @ features / n
    gram.diagonal().add_(setting["penalty"] / neurons)
    readout = torch.linalg.solve(gram, features.T @ y / n)
    train = ((y - features @ readout) ** 2).mean()
    new, wanted = draw(TEST)
    found = sigma(new @ weights) / math.sqrt(neurons) @ readout
    wrong = (torch.sign(found) != torch.sign(wanted)).double().mean()
    left, values, _ = torch.svd_lowrank(weights, q=6, niter=12)
    overlap = ((left[:, 0] @ beta) ** 2).sum() / (beta.norm() ** 2 / rank)
    return [float(v) for v in (((found - wanted) ** 2).mean(), train, wrong, overlap, values[0])]


def _moved(gradient: torch.Tensor, step: dict[str, Any]) -> torch.Tensor:
    """What a step adds to the weights; the gradient is √N times that of the loss."""
    d, neurons = gradient.shape
    rate = step["rate"] * neurons ** step["exponent"]
    rule = step.get("rule", "gradient")
    if rule == "normalized":
        return rate * gradient / gradient.norm()
    if rule == "sign":
        return rate / math.sqrt(neurons * d) * torch.sign(gradient)
    if rule == "muon":
        u, _, v = torch.linalg.svd(gradient, full_matrices=False)
        return rate / math.sqrt(min(d, neurons)) * (u @ v)
    return rate * gradient


def main(target: str, word: str = "") -> None:
    torch.set_default_dtype(torch.float64)
    found = []
    for row in json.loads((HERE / "networks.json").read_text(encoding="utf-8")):
        if not row["name"].startswith(word):
            continue
        drawn = []
        for number in range(row["networks"]):
            generator = torch.Generator(device=DEVICE)
            name = zlib.crc32(row["name"].encode()) % 1000
            generator.manual_seed(1_000_003 * name + 17 * row["d"] + number)
            drawn.append(network(row["setting"], row["d"], generator))
        values = torch.tensor(drawn)
        error = values.std(dim=0) / math.sqrt(len(drawn))
        row["mean"] = dict(zip(MEASURED, values.mean(dim=0).tolist()))
        row["error"] = dict(zip(MEASURED, error.tolist()))
        found.append(row)
        text = ",\n".join(json.dumps(one) for one in found)
        Path(target).write_text(f"[\n{text}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
