"""Inspections of whole networks: tables, changes, gradients, probes, pages, the command line."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.answers import ProbeCurve
from giantsteps.cli import main
from giantsteps.practice import TABLES, Inspection, measure_probe
from giantsteps.practice._gradient import critical_rate

torch = pytest.importorskip("torch")


@cache
def digits() -> tuple[Any, Any]:
    loaded = pytest.importorskip("sklearn.datasets").load_digits()
    return (loaded.data / 16 - 0.3).astype(np.float32), loaded.target


@cache
def networks() -> tuple[Any, Any]:
    """An MLP before and after training on the first thousand digits."""
    x, y = digits()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Linear(64, 60), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(60, 10)
        )
        before = copy.deepcopy(module)
        optimizer = torch.optim.Adam(module.parameters(), lr=3e-3)
        for _ in range(80):
            optimizer.zero_grad()
            out = module(torch.tensor(x[:1000]))
            torch.nn.functional.cross_entropy(out, torch.tensor(y[:1000])).backward()
            optimizer.step()
    return before, module


@cache
def whole() -> Inspection:
    x, y = digits()
    before, after = networks()
    return gs.inspect(after, base=before, data=(x[1000:1600], y[1000:1600]))


def test_an_initialisation_is_random_and_training_adds_directions() -> None:
    before, _ = networks()
    assert {layer.verdict for layer in gs.inspect(before).layers} == {"random"}
    trained = whole()
    assert len(trained["0.weight"].spikes) >= 5
    assert "1.bias" not in trained.skipped
    assert trained.skipped["0.bias"] == "a vector or scalar"
    with pytest.raises(gs.InvalidProblem, match=r"one of 0\.weight"):
        trained["no such layer"]


def test_changes_against_the_base() -> None:
    change = whole().changes[0]
    before, after = networks()
    start = before[0].weight.detach().double().numpy()
    now = after[0].weight.detach().double().numpy()
    moved = now - start  # in single precision the difference would be rounded
    assert change.relative_norm == pytest.approx(np.linalg.norm(moved) / np.linalg.norm(start))
    left, right = change.cosines["change-weights"]
    u, _, v = np.linalg.svd(moved)
    a, _, b = np.linalg.svd(now)
    assert left[0, 0] == pytest.approx(abs(u[:, 0] @ a[:, 0]), abs=1e-9)
    assert right[1, 0] == pytest.approx(abs(v[1] @ b[0]), abs=1e-9)
    assert left.shape == right.shape == (3, 3)


def test_a_base_that_does_not_match() -> None:
    before, after = networks()
    state = dict(before.state_dict())
    state["3.weight"] = torch.zeros(4, 4)
    found = gs.inspect(after, base=state)
    assert len(found.changes) == 1
    assert "of shape (4, 4)" in found.skipped["base: 3.weight"]
    with pytest.raises(gs.InvalidProblem, match="base"):
        gs.inspect(after, base=np.zeros((3, 3)))
    same = gs.inspect(after, base=after).changes[0]
    assert (same.layer.verdict, same.relative_norm, same.cosines) == ("zero", 0.0, {})


def test_low_rank_changes_are_seen_through_rounding() -> None:
    """A rank-4 adapter merged into half-precision weights."""
    rng = np.random.default_rng(0)
    base = torch.tensor(rng.standard_normal((80, 120)) / 10, dtype=torch.float32)
    adapter = rng.standard_normal((80, 4)) @ rng.standard_normal((4, 120)) / 40
    for kind in (torch.float32, torch.bfloat16):
        tuned = (base.to(kind).double() + torch.tensor(adapter)).to(kind)
        (change,) = gs.inspect(tuned, base=base.to(kind)).changes
        assert (change.layer.verdict, change.layer.rank) == ("low rank", 4)
        assert "rounding" in change.layer.note


# Gradients ------------------------------------------------------------------------------------


def test_gradients_see_labels_that_can_be_seen() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((400, 30)).astype(np.float32)
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Linear(30, 50), torch.nn.Tanh(), torch.nn.Linear(50, 1))
    seen = gs.inspect(module, data=(x, x[:, 0] + x[:, 1]), probes=False).gradients
    assert all(gradient.sees_labels for gradient in seen)
    assert all(gradient.value > gradient.null_mean for gradient in seen)
    blind = 0
    for seed in range(10):
        y = np.random.default_rng(seed).standard_normal(400)
        found = gs.inspect(module, data=(x, y), probes=False, seed=seed).gradients
        blind += sum(gradient.sees_labels for gradient in found)
    assert blind <= 4  # of 20, at 5 %


def test_inputs_that_the_module_does_not_take_are_named() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.ReLU(), torch.nn.Linear(20, 1))
    x = np.ones((50, 10), np.float32)
    with pytest.raises(gs.InvalidProblem, match="inputs that the module takes"):
        gs.inspect(module, data=(x, x[:, 0]))


def test_pixels_are_whole_numbers_and_tokens_stay_them() -> None:
    pixels, labels = np.arange(200).reshape(20, 10) % 7, np.arange(20) % 2
    plain = torch.nn.Linear(10, 2)
    as_floats = gs.inspect(plain, data=(pixels * 1.0, labels), probes=False).gradients
    assert gs.inspect(plain, data=(pixels, labels), probes=False).gradients == as_floats
    tokens = torch.nn.Sequential(
        torch.nn.Embedding(7, 3), torch.nn.Flatten(), torch.nn.Linear(30, 2)
    )
    assert gs.inspect(tokens, data=(pixels, labels), probes=False).gradients


def test_gradients_are_those_of_pytorch_and_leave_the_module_alone() -> None:
    x, y = digits()
    before, _ = networks()
    module = copy.deepcopy(before).train()
    state = copy.deepcopy(module.state_dict())
    found = gs.inspect(module, data=(x[:200], y[:200]), probes=False, permutations=3)
    assert module.training
    assert module[2].training
    assert all(parameter.grad is None for parameter in module.parameters())
    assert all(torch.equal(value, state[name]) for name, value in module.state_dict().items())
    module.eval()
    loss = torch.nn.functional.cross_entropy(module(torch.tensor(x[:200])), torch.tensor(y[:200]))
    loss.backward()
    expected = module[0].weight.grad.double().numpy()
    assert found.gradients[0].value == pytest.approx(np.linalg.norm(expected, 2), rel=1e-5)
    assert found.gradients[0].norm == pytest.approx(np.linalg.norm(expected), rel=1e-5)


@pytest.mark.parametrize("rule", ["gradient", "sign"])
def test_spikes_appear_at_the_critical_rate(rule: str) -> None:
    """Steps below the rate leave the bulk closed, steps above it open it: ten networks."""
    rng = np.random.default_rng(2)
    below = above = 0
    columns: list[int | None] = []
    for seed in range(10):
        torch.manual_seed(seed)
        module = torch.nn.Sequential(
            torch.nn.Linear(100, 140, bias=False), torch.nn.ReLU(), torch.nn.Linear(140, 1)
        )
        x = rng.standard_normal((1500, 100)).astype(np.float32)
        y = x[:, 0] + 0.5 * x[:, 1] * x[:, 2]
        found = gs.inspect(module, data=(x, y), probes=False, permutations=2)
        rate = found.gradients[0].critical_rate
        out = module(torch.tensor(x)).squeeze()
        ((out - torch.tensor(y)) ** 2).mean().backward()
        update = module[0].weight.grad
        if rule == "sign":
            rate, update = found.gradients[0].critical_rate_sign, update.sign()
        weights = module[0].weight.detach()
        below += len(gs.inspect((weights - 0.9 * rate * update).numpy()).layers[0].spikes)
        layer = gs.inspect((weights - 1.1 * rate * update).numpy()).layers[0]
        above += bool(layer.spikes or layer.large_entries)
        columns += [spike.place for spike in layer.spikes if spike.kind == "column"]
    assert below <= 1
    assert above >= 9
    if rule == "gradient":
        assert columns.count(0) >= 5  # the teacher is the first input


def test_critical_rate_of_a_known_update() -> None:
    """An independent update: a little above σ(rc)^¼/θ, by what the margin is above the edge."""
    rng = np.random.default_rng(4)
    weights = 0.1 * rng.standard_normal((400, 600))
    layer = gs.inspect(weights).layers[0]
    u, v = rng.standard_normal(400) / 400**0.5, rng.standard_normal(600) / 600**0.5
    strength = np.linalg.norm(u) * np.linalg.norm(v)
    predicted = layer.detectable_spike / (5.0 * strength)
    assert critical_rate(5.0 * np.outer(u, v), weights, layer) == pytest.approx(predicted, rel=0.1)
    assert predicted > layer.smallest_spike / (5.0 * strength)
    noise = rng.standard_normal((400, 600))
    assert critical_rate(noise, weights, layer) == np.inf
    assert critical_rate(np.zeros((400, 600)), weights, layer) == np.inf
    planted = weights + 40 * np.outer(u, v)
    after = gs.inspect(planted).layers[0]
    rate = critical_rate(5.0 * np.outer(u[::-1], v), planted, after)
    assert rate == pytest.approx(after.smallest_spike / (5.0 * strength), rel=1e-6)
    nothing = gs.inspect(np.zeros((400, 600))).layers[0]
    assert np.isnan(critical_rate(noise, weights, nothing))


def test_convolutions_have_gradients_and_probes() -> None:
    x, y = digits()
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 20, 3), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(320, 10),
    )  # fmt: skip
    found = gs.inspect(module, data=(x[:400].reshape(-1, 1, 8, 8), y[:400]), permutations=5)
    assert [gradient.name for gradient in found.gradients] == ["0.weight", "2.weight", "5.weight"]
    assert found["2.weight"].shape == (20, 16, 3, 3)
    assert (found["2.weight"].rows, found["2.weight"].columns) == (20, 144)
    probed, refused = found.probes["2.weight"], found.probes["5.weight"]
    assert isinstance(probed, ProbeCurve)
    assert probed.features == 16  # channels, averaged over places
    assert isinstance(refused, str)
    assert "at least 2 rows per feature" in refused


# Probes ---------------------------------------------------------------------------------------


def test_probe_curves_of_the_hidden_layers() -> None:
    x, y = digits()
    _, after = networks()
    found = whole()
    hidden = after.eval()[:3](torch.tensor(x[1000:1600])).detach().double().numpy()
    curve = found.probes["3.weight"]
    assert isinstance(curve, ProbeCurve)
    measured = measure_probe(hidden, np.eye(10)[y[1000:1600]], curve[:2], splits=60)
    assert measured.classification_error is not None
    assert np.all(np.abs(np.asarray(curve.test)[:2] / measured.test - 1) < 0.05)
    wrong = np.asarray(curve.classification_error)[:2]
    assert np.all(np.abs(wrong - measured.classification_error) < 0.012)


# Tables, figures, pages -----------------------------------------------------------------------


def test_tables_figures_and_page(tmp_path: Path) -> None:
    found = whole()
    for table in TABLES:
        frame = found.to_frame(table)
        assert len(frame) > 0
        assert frame["tensor" if table == "skipped" else "layer"].notna().all()
    with pytest.raises(gs.InvalidProblem, match="table"):
        found.to_frame("no such table")
    found.to_csv(tmp_path / "layers.csv")
    assert (tmp_path / "layers.csv").read_text(encoding="utf-8").startswith("layer,shape,verdict")
    found.plot().save(tmp_path / "overview.png")
    found.plot_layer("0.weight").save(tmp_path / "layer.pdf")
    found.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml") == 3
    for words in ("How to read this", "Against the base", "critical", "linear probe", "Left out"):
        assert words in page
    assert "http" not in page.split("<body>")[1].replace("data:image", "")[:2000]
    text = repr(found)
    assert "First gradient" in text
    assert "wrong classes" in text


def test_a_page_has_no_critical_rate_where_there_is_none(tmp_path: Path) -> None:
    nn = pytest.importorskip("torch").nn
    rng = np.random.default_rng(0)
    x = rng.standard_normal((60, 10)).astype(np.float32)
    network = nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Linear(12, 1))  # the last: no law
    gs.inspect(network, data=(x, x[:, 0]), probes=False).to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("one step would create a spike") == 1
    assert "nan" not in page.split("<dl>")[1].split("</dl>")[0]


def test_names_in_a_file_cannot_inject_a_page(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).standard_normal((20, 20))
    gs.inspect({"<script>alert(1)</script>": matrix}).to_html(tmp_path / "a.html")
    assert "<script" not in (tmp_path / "a.html").read_text(encoding="utf-8")


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    printed = capsys.readouterr()
    return int(caught.value.code or 0), printed.out, printed.err


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = digits()
    before, after = networks()
    torch.save(after.state_dict(), tmp_path / "after.pt")
    torch.save(before.state_dict(), tmp_path / "before.pt")
    np.savez(tmp_path / "batch.npz", X=x[1000:1300], y=y[1000:1300])
    source = str(tmp_path / "after.pt")
    code, out, _ = run(["inspect", source, "--base", str(tmp_path / "before.pt")], capsys)
    assert code == 0
    assert "Against the base" in out
    assert "Spikes" in out
    data = ["--data", str(tmp_path / "batch.npz"), "--activation", "relu", "--permutations", "3"]
    page = ["--html", str(tmp_path / "r.html"), "--csv", str(tmp_path / "r.csv"), "--json"]
    code, out, _ = run(["inspect", source, *data, *page], capsys)
    assert code == 0
    assert (tmp_path / "r.html").exists()
    tables = json.loads(out)
    assert tables["layers"]["layer"] == ["0.weight", "3.weight"]
    direct = gs.inspect(after, data=(x[1000:1300], y[1000:1300]), permutations=3)
    rates = [gradient.critical_rate for gradient in direct.gradients]
    assert tables["gradients"]["critical_rate_sgd"] == pytest.approx(rates, rel=1e-4)
    code, _, err = run(["inspect", source, *data[:2]], capsys)
    assert code == 2
    assert "activation" in err
    code, _, err = run(["inspect", source, *data[:2], "--activation", "cosh"], capsys)
    assert code == 2
    assert "relu" in err


@pytest.mark.parametrize(
    "options",
    [
        {"false_alarms": 0.0}, {"false_alarms": 2}, {"permutations": 1}, {"permutations": 2.5},
        {"data": (np.zeros((4, 64), np.float32), np.array([0, 1, 2, 30]))},
        {"data": (np.zeros((4, 64), np.float32), np.zeros((4, 3)))},
    ],
)  # fmt: skip
def test_bad_options(options: dict[str, Any]) -> None:
    before, _ = networks()
    with pytest.raises(gs.InvalidProblem):
        gs.inspect(before, **options)


def test_weights_that_form_no_chain() -> None:
    rng = np.random.default_rng(0)
    state = {"a.weight": rng.standard_normal((9, 8)), "b.weight": rng.standard_normal((9, 8))}
    with pytest.raises(gs.InvalidProblem, match="chain"):
        gs.inspect(state, data=(rng.standard_normal((5, 8)), np.zeros(5)), activation="relu")
    with pytest.raises(gs.InvalidProblem, match="activation="):
        gs.inspect(state, data=(rng.standard_normal((5, 8)), np.zeros(5)))
