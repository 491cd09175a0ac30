"""Learning curves from features, against populations that are known and splits of real data."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import giantsteps as gs
from giantsteps import theory
from giantsteps.practice import measure_probe
from giantsteps.theory.probe.feature_pool import FeaturePool
from giantsteps.theory.probe.fluctuations import fluctuations
from giantsteps.theory.probe.leverages import Leverages
from giantsteps.theory.probe.transfer import Transfer

Array = NDArray[np.float64]


def population(kind: str, features: int, seed: int) -> Callable[[int], tuple[Array, Array]]:
    """Draws of (features, labels) from a law that is known."""
    rng = np.random.default_rng(seed)
    scale = 1 / np.sqrt(np.arange(1, features + 1))
    mixing = rng.standard_normal((12, features)) / np.sqrt(12)

    def draw(rows: int) -> tuple[Array, Array]:
        noise = 0.3 * rng.standard_normal(rows)
        if kind == "relu":
            x = rng.standard_normal((rows, 12))
            return np.maximum(x @ mixing, 0.0), np.sin(x[:, 0]) + noise
        x = rng.standard_normal((rows, features)) * scale
        if kind == "heavy":  # rows of very different norms
            x *= np.sqrt(4 / rng.chisquare(6, rows))[:, None]
        return x, x[:, 0] + x[:, 2] + noise

    return draw


def ridge(x: Array, y: Array, penalty: float) -> tuple[Array, float]:
    """A probe with a free intercept, written out."""
    z, t = x - x.mean(axis=0), y - y.mean()
    slope = np.linalg.solve(z.T @ z / len(z) + penalty * np.eye(z.shape[1]), z.T @ t / len(z))
    return slope, float(y.mean() - x.mean(axis=0) @ slope)


def population_errors(
    draw: Callable[[int], tuple[Array, Array]], samples: int, penalty: float, repeats: int
) -> tuple[float, float, float]:
    """Mean test error on a large test set, its standard error, and the mean training error."""
    x_test, y_test = draw(20_000)
    tests, trains = [], []
    for _ in range(repeats):
        x, y = draw(samples)
        slope, constant = ridge(x, y, penalty)
        tests.append(np.mean((y_test - x_test @ slope - constant) ** 2))
        trains.append(np.mean((y - x @ slope - constant) ** 2))
    return (
        float(np.mean(tests)),
        float(np.std(tests) / np.sqrt(repeats)),
        float(np.mean(trains)),
    )


@pytest.mark.parametrize("kind", ["gaussian", "relu", "heavy"])
@pytest.mark.parametrize("samples", [45, 120, 900])
def test_small_pools_predict_the_population(kind: str, samples: int) -> None:
    """30 pools of 4 rows per feature have the right error on average, also beyond their size."""
    draw = population(kind, 30, seed=4)
    truth, resolution, train = population_errors(draw, samples, 0.01, 120)
    curves = [theory.risk_of_features(*draw(120), samples=samples, penalty=0.01) for _ in range(30)]
    found = np.array([curve.test for curve in curves])
    assert abs(found.mean() - truth) < 3.5 * np.hypot(resolution, found.std() / np.sqrt(30))
    assert found.mean() == pytest.approx(truth, rel=0.12)
    assert np.mean([curve.train for curve in curves]) == pytest.approx(train, rel=0.12)


def test_the_band_covers_the_population() -> None:
    """Nominally 95 %; errors of 150 rows are skewed, which costs a few percent."""
    draw = population("relu", 30, seed=7)
    truth, _, _ = population_errors(draw, 90, 0.01, 200)
    bands = [theory.risk_of_features(*draw(150), samples=90, penalty=0.01).band for _ in range(150)]
    covered = np.mean([low <= truth <= high for low, high in bands])
    assert 0.84 <= covered <= 0.99


def test_a_large_pool_is_exact_for_gaussian_features() -> None:
    """Against the equations with the covariance of the population."""
    rng = np.random.default_rng(0)
    values = 1 / np.arange(1, 61)
    x = rng.standard_normal((20_000, 60)) * np.sqrt(values)
    y = x[:, 0] + x[:, 5] + 0.5 * rng.standard_normal(len(x))
    for samples, penalty in ((40, 0.02), (200, 0.005)):
        kappa = penalty
        for _ in range(2000):
            kappa = penalty / (1 - (np.sum(values / (values + kappa)) + 1) / samples)
        bias = sum(values[k] * (kappa / (values[k] + kappa)) ** 2 for k in (0, 5)) + 0.25
        freedom = np.sum((values / (values + kappa)) ** 2) + 1
        curve = theory.risk_of_features(x, y, samples=samples, penalty=penalty)
        assert curve.effective_penalty == pytest.approx(kappa, rel=0.01)
        # finite n moves the error by about 1/n
        assert curve.test == pytest.approx(bias / (1 - freedom / samples), rel=0.025 + 1 / samples)


def test_with_as_many_samples_as_rows_it_is_leave_one_out() -> None:
    draw = population("heavy", 10, seed=1)
    x, y = draw(60)
    errors = []
    for i in range(60):
        keep = np.arange(60) != i
        # leaving a row out keeps the sum penalty 60 λ
        slope, constant = ridge(x[keep], y[keep], 0.05 * 60 / 59)
        errors.append((y[i] - x[i] @ slope - constant) ** 2)
    curve = theory.risk_of_features(x, y, samples=60, penalty=0.05)
    assert curve.test == pytest.approx(np.mean(errors), rel=1e-9)


# Data sets ------------------------------------------------------------------------------------


def _random(x: Array, features: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal((x.shape[1], features)) * 1.5 / np.sqrt(x.shape[1])
    return np.tanh(x @ weights + 0.5 * rng.standard_normal(features))


def _deep(x: Array, features: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    for width in (80, 80, features):
        x = np.maximum(x @ rng.standard_normal((x.shape[1], width)) * np.sqrt(2 / x.shape[1]), 0.0)
    return x


def _trained(x: Array, y: Array, features: int, seed: int) -> Array:
    torch = pytest.importorskip("torch")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        hidden = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], features), torch.nn.ReLU(),
            torch.nn.Linear(features, features), torch.nn.ReLU(),
        )  # fmt: skip
        labels = torch.tensor(y.reshape(len(y), -1), dtype=torch.float32)
        network = torch.nn.Sequential(hidden, torch.nn.Linear(features, labels.shape[1]))
        inputs = torch.tensor(x, dtype=torch.float32)
        optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
        for _ in range(40):
            optimizer.zero_grad()
            ((network(inputs) - labels) ** 2).mean().backward()
            optimizer.step()
        return hidden(inputs).detach().numpy().astype(float)


@cache
def data_set(name: str) -> tuple[Array, Array]:
    sets = pytest.importorskip("sklearn.datasets")
    loaded = getattr(sets, f"load_{name}")()
    spread = loaded.data.std(axis=0)
    x = (loaded.data - loaded.data.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if name == "diabetes":
        return x, (loaded.target - loaded.target.mean()) / loaded.target.std()
    if name == "breast_cancer":
        return x, 2.0 * loaded.target - 1
    return x, np.eye(loaded.target.max() + 1)[loaded.target]


FEATURES: dict[str, Callable[[Array, Array], Array]] = {
    "inputs": lambda x, y: x,
    "random": lambda x, y: _random(x, max(8, len(x) // 5), 21),
    "deep": lambda x, y: _deep(x, max(8, len(x) // 6), 22),
    "trained": lambda x, y: _trained(x, y, max(8, len(x) // 6), 23),
}


@pytest.mark.parametrize("name", ["breast_cancer", "wine", "diabetes", "iris"])
@pytest.mark.parametrize("kind", list(FEATURES))
def test_probe_curves_of_data_sets(name: str, kind: str) -> None:
    """Within 3 % of 300 splits, whose own standard errors are added."""
    x, y = data_set(name)
    features = FEATURES[kind](x, y)
    sizes = [n for n in (40, 80, 160, 320) if n < 0.7 * len(x)]
    curve = theory.risk_of_features(features, y, samples=sizes, penalty=0.02)
    measured = measure_probe(features, y, curve, splits=300)
    gap = np.abs(curve.test - measured.test) - 2 * measured.standard_error
    assert np.all(gap < 0.03 * measured.test), (curve, measured)
    if measured.classification_error is not None:
        assert curve.classification_error is not None
        off = np.abs(curve.classification_error - measured.classification_error)
        assert np.all(off < 0.01 + 0.06 * measured.classification_error)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(FEATURES))
@pytest.mark.parametrize("penalty", [1e-3, 1e-2, 1e-1])
def test_probe_curves_of_digits(kind: str, penalty: float) -> None:
    x, y = data_set("digits")
    features = FEATURES[kind](x, y)
    curve = theory.risk_of_features(features, y, samples=[60, 120, 240, 480], penalty=penalty)
    measured = measure_probe(features, y, curve, splits=40)
    gap = np.abs(curve.test - measured.test) - 2 * measured.standard_error
    assert np.all(gap < 0.03 * measured.test), (curve, measured)


def test_fluctuations_between_training_sets() -> None:
    """Ten classes, four and six samples each: 4 to 7 % without the terms of order 1/n."""
    x, y = (part[:300] for part in data_set("digits"))
    x = x[:, x.std(axis=0) > 0.3]
    curve = theory.risk_of_features(x, y, samples=[40, 60], penalty=0.3)
    measured = measure_probe(x, y, curve, splits=300)
    pool = FeaturePool(x, y, True)
    for i, n in enumerate((40, 60)):
        truth, noise = np.asarray(measured.test)[i], np.asarray(measured.standard_error)[i]
        at = Leverages.of(pool, n, 0.3)
        leading, terms = at.errors().error.mean(), fluctuations(at).test
        predicted = leading * (1 + terms.total)
        assert leading < truth - 6 * noise
        assert abs(predicted - truth) < 3 * noise
        assert abs(predicted - truth) < (truth - leading) / 2
        assert abs(np.asarray(curve.test)[i] - truth) < 3 * np.hypot(noise, 0.005 * truth)


def test_the_training_error_fluctuates_too() -> None:
    """Near interpolation it is 10 % off without the terms of order 1/n."""
    rng = np.random.default_rng(3)
    x, y = population("relu", 30, seed=5)(400)
    at = Leverages.of(FeaturePool(x, y, True), 30, 1e-3)
    leading, terms = at.errors().train, fluctuations(at).train
    found = []
    for _ in range(3000):
        chosen = rng.permutation(400)[:30]
        slope, constant = ridge(x[chosen], y[chosen], 1e-3)
        found.append(np.mean((y[chosen] - x[chosen] @ slope - constant) ** 2))
    truth, noise = np.mean(found), np.std(found) / np.sqrt(3000)
    assert abs(leading - truth) > 6 * noise
    assert abs(leading * (1 + terms.total) - truth) < 3 * noise
    curve = theory.risk_of_features(x, y, samples=30, penalty=1e-3)
    assert curve.train == pytest.approx(truth, rel=0.06)


def test_training_sets_without_a_class() -> None:
    """Tight clusters: the error is that of the training sets in which one of them is missing."""
    rng = np.random.default_rng(0)
    classes = rng.integers(0, 10, 300)
    x = rng.standard_normal((10, 30))[classes] + 0.2 * rng.standard_normal((300, 30))
    y = np.eye(10)[classes]
    curve = theory.risk_of_features(x, y, samples=[25, 150], penalty=0.01)
    probes = np.asarray(curve.probes)
    assert probes[0] >= 40
    assert probes[1] == 0
    measured = measure_probe(x, y, curve, splits=300)
    gap = np.abs(curve.test - measured.test) - 2 * measured.standard_error
    assert np.all(gap < 0.03 * measured.test)
    leading = Leverages.of(FeaturePool(x, y, True), 25, 0.01).errors().error.mean()
    assert leading < 0.8 * np.asarray(measured.test)[0]
    assert curve.classification_error == pytest.approx(measured.classification_error, abs=0.02)


def test_errors_without_a_mean_are_refused() -> None:
    """A few rows decide the error of each training set, in theory and in training."""
    rng = np.random.default_rng(1)
    x = rng.standard_cauchy((200, 10))
    y = x[:, 0] + rng.standard_normal(200)
    curve = theory.risk_of_features(x, y, samples=[12, 2000], penalty=1e-6)
    assert np.isnan(curve.test).tolist() == [True, False]
    assert curve.violated == (
        "training sets that differ little from one another: no answer for n = 12",
    )
    with pytest.raises(gs.InvalidProblem, match=r"more rows, or a larger penalty"):
        theory.risk_of_features(x, y, samples=12, penalty=1e-6)


def test_each_correction_is_needed() -> None:
    """The pool's covariance taken as the population's, or even leverages, would both be seen."""
    x, y = data_set("breast_cancer")
    features = FEATURES["deep"](x, y)
    curve = theory.risk_of_features(features, y, samples=100, penalty=0.01)
    measured = measure_probe(features, y, curve, splits=200)
    centered, labels = features - features.mean(axis=0), y - y.mean()
    values, vectors = np.linalg.eigh(centered.T @ centered / len(x))
    cross = vectors.T @ centered.T @ labels / len(x)
    values = np.maximum(values, 0.0)
    kappa = 0.01
    for _ in range(5000):
        kappa = 0.01 + kappa * (np.sum(values / (values + kappa)) + 1) / 100
    residual = labels - centered @ vectors @ (cross / (values + kappa))
    plug_in = np.mean(residual**2) / (1 - (np.sum((values / (values + kappa)) ** 2) + 1) / 100)
    even = _without_leverages(features, y, 100, 0.01)
    resolution = 3 * measured.standard_error
    assert np.abs(curve.test - measured.test) < resolution
    assert measured.test - plug_in > 3 * resolution
    assert measured.test - even > 2 * resolution


def _without_leverages(features: Array, labels: Array, samples: int, penalty: float) -> float:
    pool = FeaturePool(features, labels, True)
    even = Transfer.to(pool, samples, penalty)
    return float(pool.leave_one_out(np.array([even.mu])).mean()) * even.price


def test_the_best_penalty_is_the_best_measured() -> None:
    x, y = data_set("diabetes")
    features = FEATURES["random"](x, y)
    best = theory.risk_of_features(features, y, samples=[60, 200], penalty="best")
    for i, n in enumerate((60, 200)):
        grid = np.asarray(best.penalty)[i] * 3.0 ** np.arange(-3, 4)
        around = theory.risk_of_features(features, y, samples=n, penalty=grid)
        measured = np.asarray(measure_probe(features, y, around, splits=60).test)
        assert measured[3] < 1.01 * measured.min()
        test = np.asarray(around.test)
        assert test[3] <= test.min() * (1 + 1e-3)


def test_no_penalty_on_both_sides_of_interpolation() -> None:
    draw = population("gaussian", 40, seed=9)
    x, y = draw(1000)
    curve = theory.risk_of_features(x, y, samples=[20, 120], penalty=0.0)
    measured = measure_probe(x, y, curve, splits=400)
    predicted, found = np.asarray(curve.test), np.asarray(measured.test)
    assert predicted[1] == pytest.approx(found[1], rel=0.05)
    assert predicted[0] == pytest.approx(found[0], rel=0.05)
    assert np.asarray(curve.train)[0] == pytest.approx(0.0, abs=1e-6)
    assert curve.violated == ()
    at_the_peak = theory.risk_of_features(x, y, samples=41, penalty=0.0)
    assert at_the_peak.test == np.inf
    assert "inf" in repr(at_the_peak)


def test_without_an_intercept() -> None:
    x, y = population("relu", 20, seed=3)(600)
    curve = theory.risk_of_features(x, y + 1, samples=80, penalty=0.1, intercept=False)
    measured = measure_probe(x, y + 1, curve, splits=300)
    assert curve.test == pytest.approx(measured.test, rel=0.03)
    assert curve.test > 1.02 * theory.risk_of_features(x, y + 1, samples=80, penalty=0.1).test


FEATURE_KINDS: dict[str, Callable[[np.random.Generator, int, int], Array]] = {
    "gaussian": lambda rng, m, p: rng.standard_normal((m, p)),
    "cauchy": lambda rng, m, p: rng.standard_cauchy((m, p)),
    "rare": lambda rng, m, p: (rng.random((m, p)) < 0.03).astype(float),
    "one-hot": lambda rng, m, p: np.eye(p)[rng.integers(0, p, m)],
    "columns twice": lambda rng, m, p: np.repeat(rng.standard_normal((m, p)), 2, axis=1)[:, :p],
    "rows twice": lambda rng, m, p: np.repeat(rng.standard_normal((m, p)), 2, axis=0)[:m],
    "scales": lambda rng, m, p: rng.standard_normal((m, p)) * 10.0 ** rng.uniform(-6, 6, p),
    "lognormal": lambda rng, m, p: np.exp(2 * rng.standard_normal((m, p))),
}


@pytest.mark.parametrize("kind", list(FEATURE_KINDS))
def test_every_pool_has_an_answer(kind: str) -> None:
    """Any rows, any penalty, any size, at interpolation and beside it: no failure, no nonsense."""
    rng = np.random.default_rng(12)
    for trial in range(16):
        p = int(rng.integers(2, 30))
        m = int(rng.integers(2 * p, 8 * p + 20))
        x = FEATURE_KINDS[kind](rng, m, p)
        y = [rng.standard_normal(m), rng.standard_cauchy(m), np.eye(3)[rng.integers(0, 3, m)]][
            trial % 3
        ]
        sizes = [3, max(3, p), p + 1, m, *rng.integers(3, 10 * m, 2).tolist()]
        penalty: Any = [0.0, 10 ** rng.uniform(-8, 2), "best"][trial % 3 if trial % 2 else 1]
        if not np.any(x.std(axis=0)):
            continue
        curve = theory.risk_of_features(x, y, samples=sizes, penalty=penalty)
        refused = np.isnan(curve.test)
        assert not np.any(refused & (np.array(sizes) >= m))
        assert bool(curve.violated) == bool(refused.any())
        assert np.all(refused | (curve.test > 0))
        assert np.all(refused | (curve.train >= 0))
        low, high = curve.band
        assert np.all(refused | ((low <= curve.test) & (curve.test <= high)))


# Reading --------------------------------------------------------------------------------------


def test_streams_give_the_same_answer(tmp_path: Path) -> None:
    """However the rows come; more of them than the sample that is kept."""
    draw = population("relu", 12, seed=2)
    x, y = draw(2600)
    kwargs: dict[str, Any] = {"samples": [40, 9000], "penalty": 0.01, "threshold": 0.0}
    whole = theory.risk_of_features(x, y, **kwargs)
    cuts = np.split(np.arange(2600), [7, 1200, 1201, 2000])
    np.save(tmp_path / "x.npy", x)
    streams: list[tuple[Any, Any]] = [
        ([x[i] for i in cuts], y),
        ((x[i] for i in cuts), y),
        (((x[i], y[i]) for i in cuts), None),
        (lambda: ((x[i], y[i]) for i in cuts), None),
        (np.load(tmp_path / "x.npy", mmap_mode="r"), y),
    ]
    for features, labels in streams:
        curve = theory.risk_of_features(features, labels, **kwargs)
        assert curve.test == pytest.approx(whole.test, rel=1e-9)
        assert curve.classification_error == pytest.approx(whole.classification_error, abs=1e-9)


def test_a_source_that_changes_is_refused() -> None:
    x, y = population("relu", 6, seed=2)(300)
    calls = iter(range(100))

    def unsteady() -> list[tuple[Array, Array]]:
        rows = 300 - next(calls)
        return [(x[:rows], y[:rows])]

    with pytest.raises(gs.InvalidProblem, match="read again"):
        theory.risk_of_features(unsteady, samples=40, penalty=0.1)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, y = population("relu", 6, seed=2)(300)
    expected = theory.risk_of_features(x, y, samples=40, penalty=0.1).test
    given = theory.risk_of_features(torch.tensor(x), torch.tensor(y), samples=40, penalty=0.1).test
    assert given == pytest.approx(expected, rel=1e-12)


def test_ridge_samples_are_multiples_of_the_features() -> None:
    x, y = population("relu", 20, seed=2)(300)
    one = theory.risk_of_features(x, y, gs.Ridge(samples=3, penalty=0.1))
    assert isinstance(one.test, float)
    assert one.samples == 60
    assert one.test == theory.risk_of_features(x, y, samples=60, penalty=0.1).test
    two = theory.risk_of_features(
        x, y, [gs.Ridge(samples=3, penalty=0.1), gs.Ridge(samples=4, penalty=1)], d=12
    )
    assert np.asarray(two.samples).tolist() == [36, 48]
    grid = theory.risk_of_features(x, y, samples=[[40], [80]], penalty=[0.1, 0.2, 0.3])
    assert np.shape(grid.test) == (2, 3)
    assert len(grid.to_frame()) == 6
    alone = theory.risk_of_features(x, y, samples=80, penalty=0.3)
    assert grid[1, 2].test == pytest.approx(alone.test, rel=1e-12)


def test_scale_of_features_and_labels() -> None:
    """Features times s, penalty times s²; labels in any unit."""
    x, y = population("heavy", 15, seed=2)(200)
    base = theory.risk_of_features(x, y, samples=50, penalty=0.1).test
    moved = theory.risk_of_features(1e4 * x + 3e5, 1e-3 * y + 40, samples=50, penalty=0.1e8).test
    assert moved == pytest.approx(1e-6 * base, rel=1e-5)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"features": np.ones((30, 20))}, "features"),
        ({"features": np.random.default_rng(0).standard_normal((39, 20))}, "features"),
        ({"features": np.full((100, 3), np.nan)}, "features"),
        ({"features": np.ones((100, 3))}, "features"),
        ({"features": np.ones(100)}, "features"),
        ({"features": iter([])}, "features"),
        ({"labels": np.zeros(100)}, "labels"),
        ({"labels": np.arange(99.0)}, "labels"),
        ({"labels": np.array(["cat", "dog"] * 50)}, "labels"),
        ({"labels": np.full(100, np.inf)}, "labels"),
        ({"samples": 2}, "samples"),
        ({"samples": 40.5}, "samples"),
        ({"samples": [np.nan]}, "samples"),
        ({"samples": None}, "samples"),
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": "good"}, "penalty"),
        ({"penalty": None}, "penalty"),
        ({"samples": [40, 50], "penalty": [1.0, 2.0, 3.0]}, "penalty"),
        ({"readout": gs.Ridge(samples=2, penalty=1)}, "readout"),
        ({"readout": 3, "samples": None, "penalty": None}, "readout"),
        ({"samples": None, "penalty": None}, "readout"),
        ({"d": 3}, "d"),
        ({"threshold": np.nan}, "threshold"),
        ({"intercept": "yes"}, "intercept"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(change: dict[str, Any], field: str) -> None:
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        "features": rng.standard_normal((100, 5)), "labels": rng.standard_normal(100),
        "samples": 40, "penalty": 0.1,
    }  # fmt: skip
    if "labels" not in change and isinstance(change.get("features"), np.ndarray):
        given["labels"] = rng.standard_normal(len(change["features"]))
    with pytest.raises(gs.InvalidProblem) as caught:
        theory.risk_of_features(**{**given, **change})
    assert caught.value.field.split(".")[0] == field


def test_a_pool_that_is_too_small_says_what_to_do() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(gs.InvalidProblem, match="collect 40 rows, or keep fewer features"):
        theory.risk_of_features(
            rng.standard_normal((39, 20)), rng.standard_normal(39), samples=30, penalty=0.1
        )
