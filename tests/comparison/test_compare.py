"""`compare` on synthetic theory and simulation: what is asked, paired, judged and reported."""

from __future__ import annotations

import csv
import dataclasses
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import giantsteps as gs
from giantsteps.answers import Risk, Spectrum, Spike

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    steps=[gs.Step(samples=2.0, rate=1.0)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)
GRID = gs.Grid(PROBLEM, {"readout.samples": [1.0, 2.0, 4.0], "steps.0.rate": [1.0, 2.0]})


def shape(problem: Any) -> tuple[int, ...]:
    return getattr(problem, "shape", ())


def true_risk(problem: Any) -> Any:
    """Synthetic truth: falls with the samples and the rate."""
    if not shape(problem):
        return 0.1
    samples, rates = problem.coords["readout.samples"], problem.coords["steps.0.rate"]
    return 0.2 / (1 + np.outer(samples, rates))


def theory(problem: Any, d: int | None = None) -> Risk:
    """The truth; before the step it is larger by half."""
    source = "limit" if d is None else "finite width"
    common: dict[str, Any] = {"problem": problem, "d": d, "source": source, "exact": True}
    test = true_risk(problem)
    initial = Risk(**common, test=1.5 * test, train=test)
    return Risk(**common, test=test, train=test / 2, initial=initial)


def simulation(
    problem: Any, *, d: int, seed: int, noise: float = 0.01, bias: float = 0.0, finite: float = 0.0
) -> Risk:
    """The truth with noise that test and initial.test share, a bias and a gap of order 1/d."""
    rng = np.random.default_rng([seed, d])
    common: dict[str, Any] = {"problem": problem, "d": d, "source": "simulation", "exact": True}
    shared = 1 + noise * rng.standard_normal(shape(problem))
    own = 1 + noise / 50 * rng.standard_normal(shape(problem))
    test = true_risk(problem)
    initial = Risk(**common, test=1.5 * test + test * (shared - 1), train=test * shared)
    return Risk(
        **common,
        test=test * (1 + bias + finite / d) + test * (shared - 1) + test * (own - 1),
        train=test / 2 * shared,
        initial=initial,
    )


def compare(problem: Any, d: int | list[int] = 100, **options: Any) -> gs.Comparison:
    return gs.compare(problem, d, theory=theory, simulation=simulation, **options)


def test_agreement_of_one_problem() -> None:
    comparison = compare(PROBLEM)
    assert comparison.verdict == "agree"
    assert comparison.passed
    assert comparison.quantities == ("test", "train", "initial.test", "gain")
    found = comparison["test"]
    runs = [float(simulation(PROBLEM, d=100, seed=seed).test) for seed in range(20)]
    assert found.largest.mean == pytest.approx(np.mean(runs))
    assert found.largest.standard_error == pytest.approx(np.std(runs, ddof=1) / np.sqrt(20))
    assert found.largest.theory == 0.1
    assert found.verdict == "agree"


def test_the_gain_is_paired_on_the_same_draws() -> None:
    comparison = compare(PROBLEM)
    single, paired = comparison["test"].largest, comparison["gain"].largest
    assert paired.standard_error < 0.1 * single.standard_error
    assert paired.mean == pytest.approx(0.05, rel=0.01)


@pytest.mark.parametrize("problem", [PROBLEM, GRID], ids=["problem", "grid"])
def test_a_bias_of_five_percent_is_found(problem: Any) -> None:
    comparison = compare(problem, bias=0.05)
    assert comparison.verdict == "disagree"
    assert not comparison.passed
    assert np.all(np.asarray(comparison["test"].verdict) == "disagree")
    assert np.all(np.asarray(comparison["train"].verdict) == "agree")


def test_a_bias_in_a_single_cell_is_found() -> None:
    def biased(problem: Any, **options: Any) -> Risk:
        risk = simulation(problem, **options)
        factor = np.ones(GRID.shape)
        factor[2, 1] = 1.05
        return Risk(
            problem=problem,
            source="simulation",
            exact=True,
            test=risk.test * factor,
            train=risk.train,
        )

    comparison = gs.compare(
        GRID, 100, theory=theory, simulation=biased, quantities=["test", "train"]
    )
    assert comparison.verdict == "disagree"
    assert_array_equal(np.argwhere(comparison["test"].verdict == "disagree"), [[2, 1]])


def test_over_a_grid_everything_has_its_shape() -> None:
    comparison = compare(GRID)
    assert comparison.verdict == "agree"
    assert comparison["test"].largest.t.shape == comparison["gain"].verdict.shape == (3, 2)
    table = comparison.to_columns()
    assert len(table["t"]) == 3 * 2 * 4
    assert table["steps.0.rate"][:5] == [1.0] * 4 + [2.0]


def test_too_few_seeds_are_unresolved() -> None:
    comparison = compare(PROBLEM, seeds=4, noise=0.1)
    assert comparison["test"].verdict == "unresolved"
    assert comparison.verdict == "unresolved"
    assert not comparison.passed
    (note,) = comparison.notes
    seeds = int(note.split()[1])
    more = compare(PROBLEM, seeds=2 * seeds, noise=0.1)
    assert more.verdict == "agree", more
    assert max(float(more[q].largest.resolution) for q in more.quantities) < 0.02


def test_one_size_alone_is_told_to_take_more() -> None:
    alone, both = compare(PROBLEM, bias=0.05), compare(PROBLEM, d=[100, 200], bias=0.05)
    assert any("d = 100, 200, 400" in note for note in alone.notes)
    assert both.notes == []


def test_two_sizes_tell_a_finite_size_from_a_bias() -> None:
    options: dict[str, Any] = {"seeds": 20, "noise": 0.004, "quantities": ["test"]}
    alone = compare(PROBLEM, d=1000, finite=30.0, **options)
    both = compare(PROBLEM, d=[1000, 250], finite=30.0, **options)
    biased = compare(PROBLEM, d=[250, 1000], bias=0.03, **options)
    assert (alone.verdict, both.verdict, biased.verdict) == ("disagree", "finite size", "disagree")
    assert both.passed
    assert both.sizes == (250, 1000)
    assert both["test"].extrapolated.mean == pytest.approx(0.1, rel=0.01)
    assert both["test"].slope_t > 2
    assert set(both.to_columns()["d"]) == {250, 1000}


@pytest.mark.parametrize(
    ("theory_d", "received"), [("finite", [50, 100]), (None, [None, None]), (7, [7, 7])]
)
def test_the_d_that_theory_is_given(theory_d: Any, received: list[int | None]) -> None:
    seen: list[int | None] = []

    def recording(problem: Any, d: Any = None) -> Risk:
        seen.append(d)
        return theory(problem, d)

    gs.compare(
        PROBLEM, [100, 50], seeds=2, theory=recording, simulation=simulation, theory_d=theory_d
    )
    assert seen == received


def test_seeds_sizes_options_and_progress_reach_the_simulation() -> None:
    calls: list[tuple[int, int, str]] = []
    progress: list[tuple[int, ...]] = []

    def recording(problem: Any, *, d: Any, seed: int, device: str) -> Risk:
        calls.append((d, seed, device))
        return simulation(problem, d=d, seed=seed)

    comparison = gs.compare(
        PROBLEM,
        [20, 10],
        seeds=[5, 3],
        theory=theory,
        simulation=recording,
        progress=lambda *counts: progress.append(counts),
        device="here",
    )
    assert calls == [(10, 5, "here"), (10, 3, "here"), (20, 5, "here"), (20, 3, "here")]
    assert progress == [(1, 0, 4), (2, 0, 4), (3, 0, 4), (4, 0, 4)]
    assert comparison.seeds == (5, 3)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seeds": 1}, "seeds"),
        ({"seeds": 2.5}, "seeds"),
        ({"seeds": [1, 1]}, "seeds"),
        ({"seeds": [0, -1]}, "seeds"),
        ({"seeds": "ab"}, "seeds"),
        ({"d": 0}, "d"),
        ({"d": []}, "d"),
        ({"d": [10, 10]}, "d"),
        ({"d": 10.5}, "d"),
        ({"quantities": ["tset"]}, "quantities"),
        ({"quantities": ["initial"]}, "quantities"),
        ({"quantities": ["initial.by_degree"]}, "quantities"),
        ({"quantities": ["spikes.0.value"]}, "quantities"),
        ({"question": "everything", "theory": None}, "question"),
    ],
)
def test_bad_input_names_the_field(changes: dict[str, Any], field: str) -> None:
    arguments: dict[str, Any] = {
        "d": 10,
        "seeds": 2,
        "theory": theory,
        "simulation": simulation,
    } | changes
    with pytest.raises(gs.InvalidProblem) as caught:
        gs.compare(PROBLEM, arguments.pop("d"), **arguments)
    assert caught.value.field == field


def spectrum_theory(problem: Any, d: int | None = None) -> Spectrum:
    spike = Spike(value=2.0, overlaps={"teacher": 0.4})
    return Spectrum(problem=problem, d=d, source="limit", exact=True, bulk=None, spikes=(spike,))


def spectrum_simulation(problem: Any, *, d: int, seed: int) -> Spectrum:
    rng = np.random.default_rng(seed)
    noisy = [1 + 0.04 * rng.standard_normal() for _ in range(2)]
    spikes = (
        Spike(value=2 * (1 + (noisy[0] - 1) / 10), overlaps={"teacher": 0.4 * noisy[1]}),
        Spike(value=1.9),
    )
    return Spectrum(problem=problem, d=d, source="simulation", exact=True, bulk=None, spikes=spikes)


def test_predicted_spikes_are_compared_and_overlaps_have_their_own_resolution() -> None:
    comparison = gs.compare(
        PROBLEM,
        100,
        question="weights",
        theory=spectrum_theory,
        simulation=spectrum_simulation,
    )
    assert comparison.quantities == ("spikes.0.value", "spikes.0.overlap")
    overlap = comparison["spikes.0.overlap"]
    assert 0.02 < overlap.largest.resolution <= overlap.limit == 0.05
    assert comparison.verdict == "agree"


def test_without_a_predicted_spike_there_is_nothing_to_compare() -> None:
    def nothing(problem: Any, d: int | None = None) -> Spectrum:
        return Spectrum(problem=problem, d=d, source="limit", exact=True, bulk=None)

    with pytest.raises(gs.NotCovered, match="spikes"):
        gs.compare(PROBLEM, 100, question="weights", theory=nothing, simulation=spectrum_simulation)


def test_tables(tmp_path: Path) -> None:
    comparison = compare(GRID, quantities=["test"])
    frame = comparison.to_frame()
    assert list(frame.columns) == [
        "readout.samples",
        "steps.0.rate",
        "quantity",
        "d",
        "theory",
        "simulation",
        "standard_error",
        "t",
        "p_value",
        "resolution",
        "seeds",
        "verdict",
    ]
    assert_allclose(frame["theory"], true_risk(GRID).ravel())
    comparison.to_csv(tmp_path / "table.csv")
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["t"]) for row in rows] == list(frame["t"])


def test_a_comparison_is_a_value() -> None:
    comparison = compare(GRID, seeds=3)
    assert comparison == compare(GRID, seeds=3)
    assert comparison != compare(GRID, seeds=4)
    assert pickle.loads(pickle.dumps(comparison)) == comparison


def test_it_reports_itself() -> None:
    text = repr(compare(PROBLEM))
    assert text.startswith("Comparison of risk, d = 100, 20 seeds: agree\n")
    assert "initial.test" in text
    assert "±" in text
    grid = compare(GRID, bias=0.05)
    line = next(line for line in repr(grid).splitlines() if line.strip().startswith("test"))
    assert line.split()[1] == line.split()[-1] == "6"
    assert "<td>test</td>" in grid._repr_html_()


def test_what_no_number_of_seeds_resolves_is_no_advice() -> None:
    comparison = compare(PROBLEM, seeds=4, noise=3.0, quantities=["test", "train"])
    assert comparison.verdict == "unresolved"
    assert comparison.notes[-1] == "more than 10,000 seeds would resolve: test, train"
    assert not any("or a larger d" in note for note in comparison.notes)


def _overlap(gap: float, close: float = 0.0) -> Any:
    """A weights' spectrum whose first overlap is off by so much; ``close``: a second outlier."""

    def answer(problem: Any, d: int | None = None, seed: int | None = None, **_: Any) -> Any:
        found = gs.theory.weights(problem, d=d)
        first = found.spikes[0]
        noise = 0.0 if seed is None else gap + 1e-5 * np.random.default_rng(seed).standard_normal()
        spike = dataclasses.replace(first, overlaps={"teacher": first.overlap + noise})
        more = (dataclasses.replace(first, value=close * first.value),) if close else ()
        return dataclasses.replace(found, spikes=(spike, *more))

    return answer


@pytest.mark.parametrize(
    ("gap", "close", "verdict"),
    [(0.004, 0.0, "finite size"), (0.2, 0.0, "disagree"), (0.2, 0.95, "finite size")],
)
def test_overlaps_are_known_up_to_terms_of_order_one_over_d(
    gap: float, close: float, verdict: str
) -> None:
    problem = PROBLEM.replace({"steps.0.rate": 3.0, "steps.0.exponent": 0.5})
    ask = _overlap(-gap, close)
    found = gs.compare(
        problem, 400, seeds=5, question="weights", quantities="spikes.0.overlap",
        theory=ask, simulation=ask,
    )  # fmt: skip
    assert found["spikes.0.overlap"].verdict == verdict
    assert found.passed == (verdict == "finite size")
