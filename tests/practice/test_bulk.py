"""Bulk and spikes: false alarms at the stated rate, planted spikes where they are predicted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from giantsteps.practice import Layer, inspect
from giantsteps.practice._bulk import spike_strength, top_vectors
from giantsteps.practice._tracy_widom import edge_scale, tail, tail_quantile

Array = NDArray[np.float64]


def one(matrix: Array, **options: float) -> Layer:
    (layer,) = inspect(matrix, **options).layers  # type: ignore[arg-type]
    return layer


def random_matrix(rng: np.random.Generator, smallest: int, largest: int) -> Array:
    """Any aspect, any scale; Gaussian or uniform entries."""
    rows, columns = np.exp(rng.uniform(np.log(smallest), np.log(largest), 2)).astype(int)
    entries = (
        rng.standard_normal((rows, columns))
        if rng.random() < 0.5
        else rng.uniform(-1, 1, (rows, columns))
    )
    return entries * 10 ** rng.uniform(-6, 6)


@pytest.mark.parametrize(("probability", "place"), [(0.1, 0.4501), (0.05, 0.9793), (0.01, 2.0234)])
def test_tracy_widom_quantiles(probability: float, place: float) -> None:
    """Published quantiles of the law for β = 1."""
    assert tail_quantile(probability) == pytest.approx(place, abs=1e-4)
    assert tail(place) == pytest.approx(probability, rel=1e-3)


def test_tracy_widom_tail_keeps_its_digits() -> None:
    """1 − F₁(s) → exp(−2s^{3/2}/3)/(4√π s^{3/4}) far out."""
    for place in (20.0, 40.0, 60.0):
        leading = np.exp(-2 / 3 * place**1.5) / (4 * np.sqrt(np.pi) * place**0.75)
        assert tail(place) == pytest.approx(leading, rel=0.01)
    assert tail(-8.0) == pytest.approx(1.0, abs=1e-9)
    assert tail(200.0) == 0.0


def test_false_alarms_of_a_thousand_matrices() -> None:
    """At most 2 % of them, where at most 1 % is stated: 20 against 10 ± 3."""
    rng = np.random.default_rng(0)
    layers = [one(random_matrix(rng, 8, 120)) for _ in range(1000)]
    alarms = sum(bool(layer.spikes or layer.large_entries) for layer in layers)
    assert alarms <= 20
    assert sum(layer.verdict == "not random" for layer in layers) <= 30  # stated: 1 %


def test_false_alarms_of_sparse_matrices() -> None:
    """A tenth of the entries, all of one size: the edge lies 8 % higher, which is no spike.

    Of Gaussian size, some are large; that is what the spikes are called then.
    """
    rng = np.random.default_rng(2)
    alarms = others = 0
    for _ in range(150):
        mask = rng.random((100, 100)) < 0.1
        signs = one(mask * rng.choice([-1.0, 1.0], mask.shape))
        alarms += bool(signs.spikes or signs.large_entries)
        sizes = one(mask * rng.standard_normal(mask.shape))
        others += any(spike.kind != "entries" for spike in sizes.spikes)
    assert alarms <= 6  # stated: 1 %; without the shift 25
    assert others <= 6


@pytest.mark.slow
def test_false_alarms_of_large_matrices_are_at_the_stated_rate() -> None:
    """Gaussian entries, both sides from 80 on: 5 % asked for, 1,000 matrices."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(1000):
        rows, columns = rng.integers(80, 300, 2)
        alarms += bool(one(rng.standard_normal((rows, columns)), false_alarms=0.05).spikes)
    assert 25 <= alarms <= 70


@pytest.mark.parametrize("shape", [(60, 60), (40, 200), (200, 50), (64, 256)])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e7])
def test_planted_spikes_are_found_at_the_predicted_threshold(
    shape: tuple[int, int], scale: float
) -> None:
    """In half of the cases at the stated strength, nearly always above, hardly ever below."""
    rng = np.random.default_rng(hash(shape) % 1000)
    rows, columns = shape
    noise = [rng.standard_normal(shape) for _ in range(40)]
    at_margin = one(noise[0]).detectable_spike / one(noise[0]).scale
    threshold = float(rows * columns) ** 0.25
    assert threshold < at_margin < 2.2 * threshold
    found = {}
    for factor in (0.6, 1.0, 1.35):
        hits = 0
        for matrix in noise:
            u, v = rng.standard_normal(rows), rng.standard_normal(columns)
            planted = factor * at_margin * np.outer(u / np.linalg.norm(u), v / np.linalg.norm(v))
            hits += len(one(scale * (matrix + planted)).spikes) == 1
        found[factor] = hits / len(noise)
    assert found[0.6] <= 0.1
    assert 0.2 <= found[1.0] <= 0.8
    assert found[1.35] >= 0.9


def test_strength_and_overlaps_of_a_spike() -> None:
    """Against planted ones: θ from s, and the squared cosines of both vectors."""
    rng = np.random.default_rng(3)
    rows, columns, theta = 150, 400, 35.0
    strengths, lefts, rights, predicted = [], [], [], []
    for _ in range(30):
        u, v = rng.standard_normal(rows), rng.standard_normal(columns)
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        matrix = rng.standard_normal((rows, columns)) + theta * np.outer(u, v)
        (spike,) = one(matrix).spikes
        left, _, right = top_vectors(matrix, 1)
        strengths.append(spike.strength)
        predicted.append((spike.left_overlap, spike.right_overlap))
        lefts.append(float(left[:, 0] @ u) ** 2)
        rights.append(float(right[:, 0] @ v) ** 2)
    assert np.mean(strengths) == pytest.approx(theta, rel=0.01)
    assert np.mean(predicted, axis=0) == pytest.approx([np.mean(lefts), np.mean(rights)], rel=0.03)
    assert abs(np.mean(lefts) - np.mean(rights)) > 0.1  # the two sides cannot be mixed up
    assert spike_strength(10.0, 1.0, rows, columns) == (0.0, 0.0, 0.0)


def test_many_spikes_do_not_hide_each_other() -> None:
    rng = np.random.default_rng(4)
    noise = rng.standard_normal((100, 140))
    u, _ = np.linalg.qr(rng.standard_normal((100, 12)))
    v, _ = np.linalg.qr(rng.standard_normal((140, 12)))
    layer = one(noise + (u * np.linspace(25, 120, 12)) @ v.T)
    assert len(layer.spikes) == 12
    assert layer.large_entries == 0
    assert layer.scale == pytest.approx(1.0, rel=0.02)
    assert layer.verdict == "random with spikes"


def _heavy(kind: str, rng: np.random.Generator, rows: int, columns: int) -> Array:
    normal = rng.standard_normal((rows, columns))
    if kind == "t2":
        return rng.standard_t(2, (rows, columns))
    if kind == "cauchy":
        return rng.standard_cauchy((rows, columns))
    if kind == "lognormal":
        return np.exp(1.5 * np.abs(normal)) * np.sign(normal)
    if kind == "rows":
        return normal * np.exp(rng.standard_normal(rows))[:, None]
    if kind == "sparse":
        return normal * (rng.random((rows, columns)) < 0.1)
    normal[3, 5] = 80.0
    return normal


@pytest.mark.parametrize("kind", ["t2", "cauchy", "lognormal", "rows", "one entry", "sparse"])
def test_heavy_tails_are_not_called_directions(kind: str) -> None:
    rng = np.random.default_rng(5)
    layers = [one(_heavy(kind, rng, *rng.integers(40, 160, 2))) for _ in range(40)]
    kinds = [{spike.kind for spike in layer.spikes} for layer in layers]
    assert sum("direction" in found for found in kinds) <= 4
    if kind != "rows":
        assert sum(bool(found) for found in kinds) <= 6
    assert sum(layer.verdict == "random" for layer in layers) <= 2


@pytest.mark.parametrize("kind", ["row", "column", "direction"])
def test_what_a_spike_is(kind: str) -> None:
    """One large row, one large column, or a direction along no coordinate, beside each other."""
    rng = np.random.default_rng(11)
    fitting = 0
    for _ in range(10):
        matrix = rng.standard_normal((90, 130))
        u, v = rng.standard_normal(90) / 90**0.5, rng.standard_normal(130) / 130**0.5
        if kind == "row":
            u = np.eye(90)[17]
        elif kind == "column":
            v = np.eye(130)[40]
        matrix[3] = 0.0  # numbers count rows of zeros too
        layer = one(matrix + 30 * np.outer(u * (np.arange(90) != 3), v))
        (spike,) = layer.spikes
        assert spike.kind == kind
        assert spike.place == {"row": 17, "column": 40, "direction": None}[kind]
        fitting += layer.verdict == "random with spikes"
    assert fitting >= 8


def test_a_direction_is_found_under_heavy_tails() -> None:
    rng = np.random.default_rng(6)
    matrix = rng.standard_t(4, (120, 160)) / np.sqrt(2) + 60 * np.outer(
        rng.choice([-1, 1], 120) / np.sqrt(120), rng.choice([-1, 1], 160) / np.sqrt(160)
    )
    layer = one(matrix)
    assert [spike.kind for spike in layer.spikes] == ["direction"]
    assert layer.spikes[0].strength == pytest.approx(60, rel=0.05)


def test_low_rank_zero_and_small_matrices() -> None:
    rng = np.random.default_rng(7)
    thin = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 90))
    layer = one(thin)
    assert (layer.verdict, layer.rank, layer.spikes) == ("low rank", 4, ())
    stored = one(thin.astype(np.float32))
    assert (stored.verdict, stored.rank) == ("low rank", 4)
    assert "rounding" in stored.note
    assert one(np.zeros((20, 30))).verdict == "zero"
    assert one(np.ones((40, 50))).rank == 1
    assert one(rng.standard_normal((3, 400))).verdict == "too small"
    assert one(np.where(rng.random((20, 20)) < 0.01, np.nan, 1.0)).verdict == "not finite"
    nearly = rng.standard_normal((80, 60))
    nearly[:, 0] = nearly[:, 1]  # two equal columns: rank 59, and a bulk all the same
    found = one(nearly)
    assert (found.rank, found.verdict) == (59, "random")
    assert "rank 59 of at most 60" in found.note
    dead = rng.standard_normal((80, 60))
    dead[10:15], dead[:, 3] = 0.0, 0.0
    found = one(dead)
    assert (found.verdict, found.rows, found.columns) == ("random", 75, 59)
    assert "zero: 5 rows and 1 column" in found.note
    assert found.scale == pytest.approx(1.0, rel=0.03)


def test_tiny_and_huge_entries_do_not_overflow() -> None:
    rng = np.random.default_rng(8)
    matrix = rng.standard_normal((40, 50))
    for size in (1e-250, 1e-40, 1e200):
        layer = one(size * matrix)
        assert layer.verdict == "random"
        assert layer.scale == pytest.approx(size * one(matrix).scale, rel=1e-9)


def test_large_matrices_take_the_gram_route(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    matrix = rng.standard_normal((220, 300)) + 60 * np.outer(
        rng.standard_normal(220) / 15, rng.standard_normal(300) / 17
    )
    expected = one(matrix)
    monkeypatch.setattr("giantsteps.practice._bulk._LARGE", 50)
    found = one(matrix)
    assert found.values == pytest.approx(expected.values, rel=1e-6)
    assert [s.strength for s in found.spikes] == pytest.approx(
        [s.strength for s in expected.spikes]
    )
    assert [s.kind for s in found.spikes] == [s.kind for s in expected.spikes] == ["direction"]


def test_edge_of_small_matrices() -> None:
    """Centre and scale of the largest eigenvalue, against drawn 20 × 30 matrices."""
    rng = np.random.default_rng(10)
    top = [np.linalg.norm(rng.standard_normal((20, 30)), 2) ** 2 for _ in range(4000)]
    centre, unit = edge_scale(20, 30)
    exceed = np.mean((np.array(top) - centre) / unit > tail_quantile(0.05))
    assert exceed == pytest.approx(0.05, abs=0.012)
