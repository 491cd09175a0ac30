"""Recorders of training loops: what they keep, and what theory says of the first steps."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs
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
    with pytest.raises(gs.InvalidProblem, match="records already"):
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
    for options in ({"every": 0}, {"every": 1.5}, {"layers": ["nothing"]}, {"layers": []}):
        with pytest.raises(gs.InvalidProblem):
            Recorder(module, **options)  # type: ignore[arg-type]
    with pytest.raises(gs.InvalidProblem, match="exists"):
        Record(tmp_path / "no such file")
    (tmp_path / "text").write_text("no database, but long enough to be taken for one" * 9)
    with pytest.raises(gs.StoreError, match="cannot be opened"):
        Record(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
        other.execute("""INSERT INTO about VALUES ('format', '"something else"')""")
    other.close()
    with pytest.raises(gs.StoreError, match="something else"):
        Record(tmp_path / "other.sqlite")


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
