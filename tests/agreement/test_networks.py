"""Theory at d against hundreds of independent networks for each setting (`networks.py`).

Errors agree within half a per cent and three standard errors after one or two steps, and one per
cent and three standard errors after more, or after several on inputs with a covariance. Where one
direction has a share of the variance of the inputs an answer states its distance. What is outside
is listed below with its size; what a wrong equation would change is seen by the same data.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.steps import build
from giantsteps.theory.steps.several import history_view, opening, reused

pytestmark = pytest.mark.agreement

ROWS = json.loads((Path(__file__).parent / "networks.json").read_text(encoding="utf-8"))
BY_NAME = {(row["name"], row["d"]): row for row in ROWS}

ACTIVATIONS: dict[str, Any] = {
    "crelu": gs.centered("relu"),
    "tt": "tanh(x) + 0.4*(tanh(x)**2 - 0.39429449)",
    "csoftplus": gs.centered("softplus"),
    "cgelu": gs.centered("gelu"),
    "leaky": "max(x, 0.1*x)",
    "tanhplus": "tanh(x) + 0.5",
}
TEACHERS: dict[str, Any] = {
    "erf2": "erf(2*x)",
    "q": "x + 0.5*(x**2 - 1)",
    "he2": "(x**2 - 1)/sqrt(2)",
    "cub": "x + (x**3 - 3*x)/6",
    "clip": "clip(x, -1, 1)",
    "exp3": "exp(x/3)",
    "onesin": "1 + sin(x)",
    "sigmoid4": "sigmoid(4*x)",
    "crelu": gs.centered("relu"),
}

#: Further from the networks than stated: measured gap in per cent of (test, train), and why.
OUTSIDE = {
    ("s1 relu V", 1000): (0.41, 1.26, "an excess of five standard errors in one of 170 numbers"),
    ("drawn 8: g1 crelu/q/const", 500): (2.21, -2.28, "n near N, small penalty: falls as 1/d"),
    ("drawn 30: g2 previous erf/tanh/const", 500): (0.93, 0.38, "falls as 1/d"),
}  # fmt: skip
#: What theory does not answer.
REFUSED = {"muon gauss", "prev readout e.5", "prev readout e0"}


def inputs(given: dict[str, Any], d: int) -> Any:
    if "power_law" in given:
        return gs.PowerLaw(given["power_law"])
    if "spike" in given:
        # These networks have inputs of trace d: `SpikedCovariance` has the trace d + strength.
        aligned = given["alignment"]
        values, shares = (1.0, 1.0 + given["spike"]), (1 - 1 / d, 1 / d)
        return gs.Covariance(values, shares, teacher=(1 - aligned, aligned))
    return gs.Covariance(given["eigenvalues"], given["shares"], teacher=given["teacher"])


def problem(name: str, d: int, **changes: Any) -> gs.Problem:
    """The problem of a setting."""
    setting = BY_NAME[name, d]["setting"]
    layer = setting.get("layer", "gaussian")
    given = {"inputs": inputs(setting["inputs"], d)} if "inputs" in setting else {}
    teacher = TEACHERS.get(setting["teacher"], setting["teacher"])
    stated = gs.Problem(
        activation=ACTIVATIONS.get(setting["activation"], setting["activation"]),
        teacher=gs.MultiIndex(teacher, setting["rank"]) if "rank" in setting else teacher,
        noise_variance=setting.get("noise", 0.0),
        width=setting["width"],
        steps=[gs.Step(**step) for step in setting["steps"]],
        readout=gs.Ridge(
            samples=setting["samples"],
            penalty=setting["penalty"],
            batch=setting.get("readout", "fresh"),
        ),
        init=gs.Init(
            weights=setting.get("weights", "gaussian"),
            second_layer=layer if isinstance(layer, str) else gs.Vocabulary(*layer),
            output=setting.get("output", "scaled"),
        ),
        **given,
    )
    return stated.replace(changes) if changes else stated


def stated(answer: Any, quantity: str) -> float:
    """The distance that an answer states where one direction has a share of the variance."""
    sizes = [re.search(r"within ([\d.]+)% and .* within ([\d.]+)%", v) for v in answer.violated]
    place = 2 if quantity == "train" else 1
    return max((float(found[place]) / 100 for found in sizes if found), default=0.0)


def excess(answer: Any, name: str, d: int, quantity: str) -> float:
    """By how much of the stated distance an answer is away from the networks: one is the border."""
    row = BY_NAME[name, d]
    wanted, error = row["mean"][quantity], row["error"][quantity]
    if stated(answer, quantity):
        allowed = stated(answer, quantity) * wanted + 3 * error
        return float((getattr(answer, quantity) - wanted) / allowed)
    steps = len(row["setting"]["steps"])
    close = steps == 1 or (steps == 2 and "inputs" not in row["setting"])
    allowed = (0.005 if close else 0.01) * wanted + 3 * error
    return float((getattr(answer, quantity) - wanted) / allowed)


ASKED = [key for key in BY_NAME if key[0] not in REFUSED]


#: Power laws and heavy spikes by the dozen are for the long run; preconditioned steps are not.
LONG = [
    pytest.param(*key, marks=pytest.mark.slow)
    if key[0].startswith("inputs ") and "ipre" not in key[0]
    else key
    for key in ASKED
]


@pytest.mark.parametrize(("name", "d"), LONG)
def test_networks_have_the_errors_of_the_theory(name: str, d: int) -> None:
    answer = theory.risk(problem(name, d), d=d)
    if (name, d) not in OUTSIDE:
        assert abs(excess(answer, name, d, "test")) <= 1
        assert abs(excess(answer, name, d, "train")) <= 1
        return
    mean = BY_NAME[name, d]["mean"]
    gaps = [100 * (answer.test / mean["test"] - 1), 100 * (answer.train / mean["train"] - 1)]
    assert gaps == pytest.approx(OUTSIDE[name, d][:2], abs=0.05)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_theory_does_not_answer_it_refuses(name: str) -> None:
    with pytest.raises(gs.NotCovered):
        theory.risk(problem(name, 1000), d=1000)


def test_the_first_step_of_adam_is_by_the_sign() -> None:
    """Networks of one sign step are those of one step of Adam; two steps are not covered."""
    adam = problem("sign relu const", 1000).replace({"steps.0.rule": "adam"})
    assert abs(excess(theory.risk(adam, d=1000), "sign relu const", 1000, "test")) <= 1
    with pytest.raises(gs.NotCovered):
        theory.risk(adam.replace(steps=[*adam.steps] * 2), d=1000)


def test_gaps_have_no_side() -> None:
    """After one plain step the mean gap of the test error is below 0.15 %."""
    plain = [key for key in ASKED if key[0].startswith(("s1", "decay", "norm", "loss "))]
    gaps = [theory.risk(problem(*key), d=key[1]).test / BY_NAME[key]["mean"]["test"] - 1
            for key in plain]  # fmt: skip
    assert len(gaps) >= 18
    assert abs(sum(gaps) / len(gaps)) < 1.5e-3


@pytest.mark.parametrize("name", ["s1 tanh sign const", "loss logistic const", "loss hinge const"])
def test_signs_are_wrong_as_often_as_in_theory(name: str) -> None:
    row = BY_NAME[name, 1000]
    found = theory.risk(problem(name, 1000), d=1000).classification_error
    wanted, error = row["mean"]["classification"], row["error"]["classification"]
    assert abs(found - wanted) <= 0.005 * wanted + 3 * error


# -- what a wrong equation would do -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "simplify"),
    [
        ("s1 relu const", "equal norms"),
        ("s1 relu const sphere", "equal norms"),
        ("s1 gelu const", "equal norms"),
        ("t2 erf cub const fresh", "equal norms"),
        ("random 35: h2 previous cgelu/q/V", "equal norms"),
        ("t3 tanh const", "equal norms"),
        ("t5 tanh const", "equal norms"),
        ("s1 relu const", "isotropic bulk"),
        ("t3 tanh const", "isotropic bulk"),
        ("t3 relu const", "isotropic bulk"),
        ("several mix crelu V t3", "isotropic bulk"),
    ],
)
def test_a_simpler_model_is_refuted(name: str, simplify: str) -> None:
    model = theory.equivalent(problem(name, 1000), 1000, simplify=simplify).risk()
    seen = max(abs(excess(model, name, 1000, quantity)) for quantity in ("test", "train"))
    assert seen > 1


def test_without_weak_directions_theory_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "random 49: h2 previous tt/q/gauss"
    monkeypatch.setattr(reused, "WEAK", 0)
    assert excess(theory.risk(problem(name, 1000), d=1000), name, 1000, "test") < -1


def test_without_products_of_batches_theory_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "even t4 crelu he2 V"
    monkeypatch.setattr(opening, "multiplies", lambda problem: False)
    assert excess(theory.risk(problem(name, 1000), d=1000), name, 1000, "test") < -2


@pytest.mark.parametrize("number", [12, 33, 49])
def test_without_explicit_directions_theory_is_refuted(number: int) -> None:
    """Power laws, an even part with a continuous layer among them: within 1 % and three errors."""
    (name, d), row = next(
        (key, row) for key, row in BY_NAME.items() if key[0].startswith(f"inputs {number}:")
    )
    asked, mean, error = problem(name, d), row["mean"]["test"], row["error"]["test"]
    plain, found = (
        build.model(asked, None, d, explicit=explicit).risk(asked.readout).test
        for explicit in (False, True)
    )
    assert abs(found - mean) <= 0.01 * mean + 3 * error < abs(plain - mean)


@pytest.mark.parametrize("layer", ["gauss", "const"])
def test_without_memory_of_the_samples_theory_is_refuted(
    layer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, known = f"t3 tanh {layer} previous", history_view.Course.memory
    assert abs(excess(theory.risk(problem(name, 1000), d=1000), name, 1000, "test")) < 1
    monkeypatch.setattr(
        history_view.Course,
        "memory",
        lambda course, uses: replace(known(course, uses), samples=1e9),
    )
    assert abs(excess(theory.risk(problem(name, 1000), d=1000), name, 1000, "test")) > 2


@pytest.mark.parametrize(("name", "d"), [("s1 tanh e0 gauss", 500), ("unscaled e0 gauss", 1000)])
def test_without_the_pull_of_the_initial_output_theory_is_refuted(name: str, d: int) -> None:
    model = theory.equivalent(problem(name, d), d)
    still = replace(model.at_level(2), pull=None, finer=None)
    assert abs(excess(still.risk(model.readout_of(None)), name, d, "test")) > 1


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("sign gauss", {"steps.0.rule": "gradient"}),
        ("sign relu const", {"steps.0.rate": 1.05}),
        ("norm gauss", {"steps.0.rule": "gradient"}),
        ("decay const", {"steps.0.decay": 0.0}),
        ("decay relu const", {"steps.0.decay": 0.0}),
        ("loss logistic sin gauss", {"steps.0.loss": "squared"}),
        ("loss2 huber", {"steps.0.loss": "squared"}),
        ("loss2 logistic", {"steps.1.loss": "squared"}),
        ("unscaled e0 gauss", {"init.output": "scaled"}),
        ("cov two e.5", {"inputs": gs.Isotropic()}),
        ("cov aligned e.5", {"inputs": gs.Covariance([0.3, 1.7], [0.5, 0.5])}),
        ("cov two pre1", {"steps.0.precondition": 0.5}),
        ("t2 tanh const previous", {"steps.1.batch": "fresh"}),
        ("t2 tanh gauss fresh", {"steps.1.batch": "previous"}),
        ("s1 relu const", {"init.weights": "sphere"}),
    ],
)
def test_another_problem_is_refuted(name: str, changes: dict[str, Any]) -> None:
    """Each field is felt: with another value theory is away from these networks."""
    if "steps.0.rate" in changes:
        rate = problem(name, 1000).steps[0].rate
        changes = {"steps.0.rate": changes["steps.0.rate"] * rate}
    answer = theory.risk(problem(name, 1000, **changes), d=1000)
    seen = max(abs(excess(answer, name, 1000, quantity)) for quantity in ("test", "train"))
    assert seen > 1


#: Giant steps: a power method of 30 rounds does not find a spike close to the bulk. Spectra have no
#: explicit directions: at the exponent 0.9 the singular value is 1.2 % below that of networks, and
#: 2 % above where a spike has 4 % of the variance of the inputs.
LEANING = [
    name
    for (name, d), row in BY_NAME.items()
    if "inputs" in row["setting"] and d == 1000 and (name, d) not in OUTSIDE
    if row["setting"]["inputs"].get("power_law", 0.0) < 0.75
    if not name.startswith("inputs ")
    if len(row["setting"]["steps"]) == 1 and row["setting"]["steps"][0]["exponent"] > 0
]


@pytest.mark.parametrize("name", LEANING)
def test_singular_values_of_weights_on_a_covariance(name: str) -> None:
    row = BY_NAME[name, 1000]
    spike = theory.weights(problem(name, 1000), d=1000).spikes[0]
    for quantity, seen, share in (
        ("singular_value", spike.value, 0.003),
        ("overlap", spike.overlaps["teacher"], 0.005),
    ):
        wanted, error = row["mean"][quantity], row["error"][quantity]
        assert abs(seen - wanted) <= share * wanted + 3 * error
