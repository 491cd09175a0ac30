"""How far each step moves the network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps import simulation, theory
from giantsteps.errors import NotCovered

NAMES = ("weights", "spectral", "preactivations", "features", "output")


def problem(count: int = 1, **changes: Any) -> gs.Problem:
    found = gs.Problem(
        activation="tanh",
        teacher="sin",
        noise_variance=0.1,
        width=1.0,
        steps=[gs.Step(samples=4, rate=1, exponent=0.5)] * count,
        init=gs.Init(second_layer="gaussian"),
    )
    return found.replace(changes)


NETWORKS = [
    {
        "activation": "tanh",
        "teacher": "sign",
        "noise": 0.0,
        "layer": "constant",
        "rule": "gradient",
        "exponent": 0.5,
        "rates": [0.8, 0.8, 0.8],
        "weights": [[0.473649, 0.320456, 0.247248], [0.00063, 0.000533, 0.000427]],
        "spectral": [[7.259101, 0.729835, 0.390227], [0.011386, 0.001852, 0.000861]],
        "preactivations": [[0.47418, 0.354788, 0.294336], [0.000636, 0.000607, 0.000503]],
        "features": [[0.486662, 0.337508, 0.264655], [0.000592, 0.000554, 0.000465]],
        "output": [[0.260551, 0.177464, 0.138726], [0.000338, 0.000335, 0.000295]],
    },
    {
        "activation": "relu",
        "teacher": "sign",
        "noise": 0.0,
        "layer": "gaussian",
        "rule": "gradient",
        "exponent": 0.5,
        "rates": [0.5, 0.5, 0.5],
        "weights": [[0.266879, 0.232096, 0.198107], [0.000815, 0.000552, 0.000309]],
        "spectral": [[3.74797, 0.879934, 0.459433], [0.012339, 0.001803, 0.000819]],
        "preactivations": [[0.267076, 0.240124, 0.216417], [0.000891, 0.000646, 0.000465]],
        "features": [[0.310497, 0.273207, 0.234309], [0.001002, 0.000673, 0.000416]],
        "output": [[0.118298, 0.1057, 0.094607], [0.000723, 0.000571, 0.00045]],
    },
    {
        "activation": "tanh",
        "teacher": "sign",
        "noise": 0.0,
        "layer": "gaussian",
        "rule": "sign",
        "exponent": 0.5,
        "rates": [1.5],
        "weights": [[1.500096], [0.000157]],
        "spectral": [[20.801492], [0.01909]],
        "preactivations": [[1.501179], [0.000876]],
        "features": [[1.129466], [0.00038]],
        "output": [[0.42355], [0.00126]],
    },
    {
        "activation": "relu",
        "teacher": "sin",
        "noise": 0.05,
        "layer": "constant",
        "rule": "gradient",
        "exponent": 0.5,
        "rates": [0.6, 0.6],
        "weights": [[0.234365, 0.197467], [0.00037, 0.000356]],
        "spectral": [[3.334789, 0.846166], [0.006035, 0.002204]],
        "preactivations": [[0.234144, 0.20256], [0.000401, 0.000403]],
        "features": [[0.276607, 0.234354], [0.000459, 0.00047]],
        "output": [[0.106078, 0.095271], [0.000208, 0.000248]],
    },
    {
        "activation": "tanh",
        "teacher": "sin",
        "noise": 0.1,
        "layer": "gaussian",
        "rule": "gradient",
        "exponent": 0.0,
        "rates": [2.0, 2.0],
        "weights": [[0.028018, 0.027282], [9.8e-05, 8.7e-05]],
        "spectral": [[0.430193, 0.418018], [0.001526, 0.001348]],
        "preactivations": [[0.028025, 0.02728], [0.000104, 8.9e-05]],
        "features": [[0.030414, 0.029575], [0.000113, 9.6e-05]],
        "output": [[0.016396, 0.015914], [0.000106, 9.4e-05]],
    },
]


@pytest.mark.parametrize("row", NETWORKS)
def test_against_networks(row: dict[str, Any]) -> None:
    """60 networks of d = 1000; the largest singular value has corrections of order d^{-2/3}."""
    asked = gs.Problem(
        activation=gs.centered("relu") if row["activation"] == "relu" else row["activation"],
        teacher=row["teacher"],
        noise_variance=row["noise"],
        width=1.0,
        steps=[
            gs.Step(samples=4, rate=r, exponent=row["exponent"], rule=row["rule"])
            for r in row["rates"]
        ],
        init=gs.Init(second_layer=row["layer"]),
    )
    found = theory.movement(asked, 1000)
    assert found.step.tolist() == list(range(1, len(row["rates"]) + 1))
    for name in NAMES:
        mean, error = np.array(row[name])
        assert np.all(np.abs(getattr(found, name) - mean) < 0.01 * mean + 3 * error), name


def test_sizes_that_the_rule_fixes() -> None:
    """Sign and normalised steps move the weights by η̃ = rate · N^(exponent − 1/2)."""
    for rule in ("sign", "normalized"):
        asked = problem().replace({"steps.0.rule": rule, "steps.0.rate": 0.7})
        for d in (300, 900):
            found = theory.movement(asked, d)
            assert found.weights[0] == pytest.approx(0.7, rel=1e-6)
            assert found.preactivations[0] == pytest.approx(0.7, rel=1e-6)


def test_decay_alone_shrinks_the_weights() -> None:
    """A tiny step with decay δ: ΔW = −δ W in every norm."""
    asked = problem().replace({"steps.0.rate": 1e-6, "steps.0.decay": 0.2})
    found = theory.movement(asked, 500)
    for name in ("weights", "spectral", "preactivations"):
        assert getattr(found, name)[0] == pytest.approx(0.2, rel=1e-4)


def test_small_steps_are_linear_in_the_rate() -> None:
    constant = gs.Init(second_layer="constant")
    asked = problem(2, init=constant, **{"steps.0.exponent": 0.0, "steps.1.exponent": 0.0})
    slow = asked.replace({"steps.0.rate": 1e-3, "steps.1.rate": 1e-3})
    half = asked.replace({"steps.0.rate": 5e-4, "steps.1.rate": 5e-4})
    whole, part = theory.movement(slow, 500), theory.movement(half, 500)
    for name in NAMES:
        ratio = getattr(whole, name) / getattr(part, name)
        assert ratio == pytest.approx(2.0, rel=1e-3)


def test_the_limit_is_that_of_large_sizes() -> None:
    asked = problem(2)
    limit, huge = theory.movement(asked), theory.movement(asked, 10**8)
    assert math.isinf(limit.spectral[0])
    for name in ("weights", "preactivations", "features", "output"):
        assert getattr(limit, name) == pytest.approx(getattr(huge, name), rel=1e-6)
    assert limit.spectral[1] == pytest.approx(huge.spectral[1], rel=1e-3)


def test_losses_and_decay_against_a_few_networks() -> None:
    steps = [gs.Step(samples=4, rate=1.5, exponent=0.5, loss="logistic", decay=0.1)]
    asked = problem(teacher="sign", noise_variance=0.0, steps=steps)
    found = theory.movement(asked, 150)
    drawn = [simulation.movement(asked, 150, seed, test_samples=2000) for seed in range(5)]
    for name in NAMES:
        values = np.array([getattr(one, name)[0] for one in drawn])
        error = values.std(ddof=1) / math.sqrt(len(values))
        allowed = 0.02 if name != "spectral" else 0.03
        assert abs(getattr(found, name)[0] - values.mean()) < allowed * values.mean() + 4 * error


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"init": gs.Init(output="unscaled")}, "output"),
        ({"steps.0.rule": "muon"}, "rule"),
        ({"steps": ()}, "step"),
    ],
)
def test_refusals_come_from_the_table(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(NotCovered, match=words):
        theory.movement(problem().replace(changes), 300)
    with pytest.raises(NotCovered, match="with d given"):
        theory.movement(problem().replace({"steps.0.exponent": 0.2}))


def on_batches(*steps: tuple[str, float], **changes: Any) -> gs.Problem:
    """Steps (batch, rate) of 3d samples."""
    given = [gs.Step(samples=3, rate=rate, exponent=0.5, batch=b) for b, rate in steps]
    return problem(steps=given, noise_variance=0.1, width=1.5, **changes)


def test_a_step_before_a_reused_batch_is_that_of_fresh_ones() -> None:
    used = theory.movement(on_batches(("fresh", 0.7), ("previous", 0.0), ("fresh", 0.5)), 400)
    fresh = theory.movement(on_batches(("fresh", 0.7), ("fresh", 0.5)), 400)
    for name in NAMES:
        assert getattr(used, name)[[0, 2]] == pytest.approx(getattr(fresh, name), rel=1e-4)
        assert getattr(used, name)[1] == 0


TWO = gs.Vocabulary([-1.0, 2.0], [0.5, 0.5])
#: Activation, second layer, batches of steps with a rate of 0.7, and means and standard errors of
#: 48 networks of d = 400.
ON_BATCHES: list[tuple[Any, Any, tuple[str, ...], dict[str, list[list[float]]]]] = [
    (
        "tanh",
        "gaussian",
        ("fresh", "previous", "previous"),
        {
            "weights": [[0.326632, 0.166255, 0.114613], [0.001844, 0.000414, 0.000337]],
            "spectral": [[3.4723, 0.489121, 0.229798], [0.018901, 0.003164, 0.001199]],
            "preactivations": [[0.326696, 0.175111, 0.124814], [0.001802, 0.000511, 0.000412]],
            "features": [[0.330247, 0.170437, 0.117118], [0.001605, 0.000486, 0.000373]],
            "output": [[0.175327, 0.077999, 0.049746], [0.001444, 0.000265, 0.000158]],
        },
    ),
    (
        gs.centered("relu"),
        TWO,
        ("fresh", "previous", "fresh"),
        {
            "weights": [[0.473043, 0.160539, 0.258558], [0.001836, 0.000491, 0.001519]],
            "spectral": [[4.557873, 0.294783, 0.515584], [0.020162, 0.001519, 0.00433]],
            "preactivations": [[0.473173, 0.177646, 0.298144], [0.001828, 0.000623, 0.00179]],
            "features": [[0.544663, 0.191031, 0.303436], [0.002029, 0.000603, 0.001817]],
            "output": [[0.336157, 0.101031, 0.205867], [0.001847, 0.000694, 0.001647]],
        },
    ),
]


@pytest.mark.parametrize(("activation", "layer", "batches", "networks"), ON_BATCHES)
def test_networks_that_use_batches_again(
    activation: Any, layer: Any, batches: tuple[str, ...], networks: dict[str, list[list[float]]]
) -> None:
    init = gs.Init(second_layer=layer)
    steps = [(batch, 0.7) for batch in batches]
    found = theory.movement(on_batches(*steps, activation=activation, init=init), 400)
    for name in NAMES:
        mean, error = np.array(networks[name])
        assert np.all(np.abs(getattr(found, name) - mean) < 0.01 * mean + 3 * error), name


def test_reused_batches_with_several_directions_and_many_uses_are_refused() -> None:
    again = ("fresh", 0.5), *[("previous", 0.5)] * 4
    with pytest.raises(NotCovered, match="four steps"):
        theory.movement(on_batches(*again), 300)
    with pytest.raises(NotCovered, match="several directions"):
        theory.movement(on_batches(*again[:2], teacher=gs.MultiIndex("x0 + x0*x1", rank=2)), 300)
