"""Recorders of training loops: what they keep, and what theory says of the first steps."""

from __future__ import annotations

import copy
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
from giantsteps.campaign import Store
from giantsteps.practice import Record, Recorder

torch = pytest.importorskip("torch")
nn = torch.nn


def train(make: Any, *, steps: int = 8, batch: int = 3000, **options: Any) -> Recorder:
    """A ReLU network without biases, of small output, on one direction; fresh batches."""
    with torch.random.fork_rng():
        torch.manual_seed(1)
        module = nn.Sequential(
            nn.Linear(80, 120, bias=False), nn.ReLU(), nn.Linear(120, 1, bias=False)
        )
        module[2].weight.data /= 5
        optimizer = make(module[0].parameters())
        recorder = Recorder(module, optimizer, layers=["0.weight"], **options)
        beta = torch.randn(80) / 80**0.5
        for _ in range(steps):
            x = torch.randn(batch, 80)
            optimizer.zero_grad()
            ((module(x)[:, 0] - x @ beta) ** 2).mean().backward()
            optimizer.step()
    return recorder


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.SGD(p, lr=6.0),
        lambda p: torch.optim.SGD(p, lr=2.0, momentum=0.9),
        lambda p: torch.optim.Adam(p, lr=0.006),
    ],
    ids=["sgd", "momentum", "adam"],
)
def test_theory_of_the_first_steps(make: Any) -> None:
    """The largest singular value within 10 % while the gradient stays what it was."""
    with train(make) as recorder:
        record = recorder.record
        steps, predicted = record.predicted_spike("0.weight")
        largest = np.array([values[0] for values in record.get("0.weight", "values")[1]])
        margin = record.get("0.weight", "margin")[1]
        shown = np.isfinite(predicted) & (predicted > 1.05 * margin[0])
        assert shown.sum() >= 3
        assert np.all(np.abs(largest[shown] / predicted[shown] - 1) < 0.1)
        hidden = (steps > 0) & ~np.isfinite(predicted) & (steps < steps[shown][0])
        assert np.all(largest[hidden] < margin[hidden])
        assert record.get("0.weight", "spikes")[1][-1] >= 1
        assert record.get("0.weight", "left_alignment")[1][-1] > 0.6


def test_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with train(lambda p: torch.optim.SGD(p, lr=3.0), steps=7, every=3, path=path) as recorder:
        assert recorder.record.steps("0.weight").tolist() == [0, 1, 3, 6]
    record = Record(path)
    assert "7" not in repr(record)
    assert record.about["learning_rate"] == 3.0
    frame = record.to_frame()
    assert frame["step"].tolist() == [0, 1, 3, 6]
    assert frame["movement"].iloc[0] == 0.0
    assert frame["movement"].is_monotonic_increasing
    assert frame["gradient_cosine"].iloc[1] == pytest.approx(1.0)
    assert frame["movement_cosine"].iloc[1] == pytest.approx(1.0, abs=1e-5)
    assert np.isnan(frame["gradient"].iloc[0])
    record.plot().save(tmp_path / "run.png")
    record.to_csv(tmp_path / "run.csv")
    with pytest.raises(gs.InvalidProblem, match="movement"):
        record.get("0.weight", "no such quantity")
    record.close()
    with pytest.raises(gs.InvalidProblem, match="has records of this run"):
        train(lambda p: torch.optim.SGD(p, lr=3.0), path=path)


def test_steps_by_hand_and_losses() -> None:
    module = nn.Linear(12, 15)
    with Recorder(module, every=2) as recorder:
        for step in range(4):
            module.weight.grad = torch.ones(15, 12)
            module.weight.data -= 0.1
            recorder.step(loss=1.0 / (step + 1))
        steps, losses = recorder.record.get("training", "loss")
        assert (steps.tolist(), losses.tolist()) == ([1, 2, 4], [1.0, 0.5, 0.25])
        with pytest.raises(gs.InvalidProblem, match="SGD"):
            recorder.record.predicted_spike("weight")
        assert recorder.record.plot().figure_ is not None


@pytest.mark.parametrize("name", [None, "run.sqlite"])
def test_the_record_is_read_after_the_loop(tmp_path: Path, name: str | None) -> None:
    module = nn.Sequential(nn.Linear(12, 15))
    with Recorder(module, path=None if name is None else tmp_path / name) as recorder:
        inside = recorder.record
        recorder.step()
    for record in (inside, recorder.record):
        assert record.steps("0.weight").tolist() == [0, 1]
        record.close()
    assert "after 1 steps" in repr(recorder)


def test_a_closed_recorder_lets_the_optimizer_go() -> None:
    module = nn.Linear(12, 15)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with Recorder(module, optimizer):
        pass
    module(torch.ones(3, 12)).sum().backward()
    optimizer.step()  # would write to a closed file


def test_records_survive_a_process_that_dies(tmp_path: Path) -> None:
    """Each step is on disk before the next begins."""
    path = tmp_path / "run.sqlite"
    recorder = train(lambda p: torch.optim.SGD(p, lr=3.0), steps=3, path=path)
    other = Record(path)
    assert other.steps("0.weight").tolist() == [0, 1, 2, 3]
    other.close()
    recorder.close()


def test_bad_input(tmp_path: Path) -> None:
    module = nn.Linear(12, 15)
    options: dict[str, Any]
    for options in ({"every": 0}, {"every": 1.5}, {"layers": ["nothing"]}, {"layers": []}):
        with pytest.raises(gs.InvalidProblem):
            Recorder(module, **options)
    with pytest.raises(gs.InvalidProblem, match="exists"):
        Record(tmp_path / "no such file")
    (tmp_path / "text").write_text("no database, but long enough to be taken for one" * 9)
    with pytest.raises(gs.StoreError, match="file of another kind"):
        Record(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    other.close()
    with pytest.raises(gs.StoreError, match="not a store of giantsteps"):
        Record(tmp_path / "other.sqlite")
    path = tmp_path / "run.sqlite"
    for options in ({"resume": 3}, {"resume": -1, "path": path}, {"resume": 1.0, "path": path},
                    {"run": ""}, {"run": 3}):  # fmt: skip
        with pytest.raises(gs.InvalidProblem):
            Recorder(module, **options)
    assert not path.exists()
    with Recorder(module, path=path):
        pass
    for options in ({"run": "no such run"}, {"layers": ["nothing"]}):
        with pytest.raises(gs.InvalidProblem):
            Recorder(module, path=path, resume=0, **options)
    with pytest.raises(gs.InvalidProblem, match="shape"):
        Recorder(nn.Linear(12, 16), path=path, resume=0)


class Loop:
    """A loop that can be stopped, saved and loaded: fresh batches from a seed per step."""

    def __init__(self) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(2)
            self.module = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 1))
        self.optimizer = torch.optim.SGD(self.module.parameters(), lr=0.3, momentum=0.9)

    def run(self, first: int, last: int) -> None:
        for step in range(first, last):
            x = torch.from_numpy(np.random.default_rng(step).standard_normal((64, 20))).float()
            self.optimizer.zero_grad()
            ((self.module(x)[:, 0] - x[:, 0]) ** 2).mean().backward()
            self.optimizer.step()


def test_a_resumed_run_is_the_run(tmp_path: Path) -> None:
    """Stopped after 7 steps, resumed from the checkpoint of step 4: the record of 10 steps."""
    whole, parts = tmp_path / "whole.sqlite", tmp_path / "parts.sqlite"
    loop = Loop()
    with Recorder(loop.module, loop.optimizer, every=2, path=whole):
        loop.run(0, 10)
    loop = Loop()
    with Recorder(loop.module, loop.optimizer, every=2, path=parts):
        loop.run(0, 4)
        saved = copy.deepcopy((loop.module.state_dict(), loop.optimizer.state_dict()))
        loop.run(4, 7)
        loop.run(90, 92)  # what the resumed run never does
    again = Loop()
    again.module.load_state_dict(saved[0])
    again.optimizer.load_state_dict(saved[1])
    with Recorder(again.module, again.optimizer, every=2, path=parts, resume=4) as recorder:
        assert recorder.record.steps("0.weight").tolist() == [0, 1, 2, 4]
        again.run(4, 10)
    one, other = Record(whole), Record(parts)
    assert one.steps("0.weight").tolist() == [0, 1, 2, 4, 6, 8, 10]
    assert one.to_frame().equals(other.to_frame())
    assert np.array_equal(
        one.predicted_spike("0.weight")[1], other.predicted_spike("0.weight")[1], equal_nan=True
    )
    one.close()
    other.close()


def test_runs_share_a_store_with_sweeps(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    problem = gs.Problem(
        activation="tanh", teacher="sin", width=1.0, readout=gs.Ridge(samples=2.0, penalty=0.1)
    )
    sweep = gs.Sweep(grid=problem, d=20, seeds=2, store=path)
    sweep.run(executor="serial")
    before = sweep.status()
    for name, rate in (("slow", 0.1), ("fast", 1.0)):
        loop = Loop()
        loop.optimizer.param_groups[0]["lr"] = rate
        with Recorder(loop.module, loop.optimizer, path=path, run=name):
            loop.run(0, 2)
    assert Record.runs(path) == ("fast", "slow")
    with pytest.raises(gs.InvalidProblem, match="'fast', 'slow'"):
        Record(path)
    record = Record(path, "slow")
    assert record.about["learning_rate"] == 0.1
    record.close()
    assert repr(sweep.status()) == repr(before)
    with Store(path) as store:
        address = next(iter(store.find("training", next(iter(store.contents("training"))))))[0]
        assert "torch" in store.provenance(address)["packages"]


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning")  # of Lightning's own
def test_lightning() -> None:
    lightning = pytest.importorskip("lightning.pytorch")

    class Fit(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(12, 15)

        def training_step(self, batch: Any, _: int) -> Any:
            return (self.layer(batch[0]) ** 2).mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    module = Fit()
    rows = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(20, 12)), 5)
    with Recorder(module) as recorder:
        trainer = lightning.Trainer(
            max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False,
            callbacks=[recorder.lightning_callback()],
        )  # fmt: skip
        trainer.fit(module, rows)
        assert recorder.record.steps("layer.weight").tolist() == [0, 1, 2, 3, 4]
        assert recorder.record.get("layer.weight", "gradient_cosine")[1][0] == pytest.approx(1.0)
        assert len(recorder.record.get("training", "loss")[1]) == 4
        assert recorder.record.about["learning_rate"] == 0.1
        assert len(recorder.record.predicted_spike("layer.weight")[1]) == 5


def test_training_that_diverges_is_recorded_to_its_end() -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(12, 10), torch.nn.Tanh(), torch.nn.Linear(10, 1))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    with Recorder(network, optimizer) as recorder:
        for factor in (1.0, float("nan"), 1.0):
            optimizer.zero_grad()
            (factor * network(torch.randn(20, 12)).square().mean()).backward()
            optimizer.step()
    largest = [found[0] for found in recorder.record.get("0.weight", "values")[1]]
    assert np.isfinite(largest).tolist() == [True, True, False, False]
    assert len(recorder.record.to_columns()["step"]) == 8
    assert recorder.record.plot("0.weight").axes_
    with pytest.raises(gs.InvalidProblem, match="an optimizer of torch"):
        Recorder(network, torch.optim.lr_scheduler.StepLR(optimizer, 1))
