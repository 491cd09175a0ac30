"""Answers as values: shapes, cells, equality, pickling, what they say about themselves."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import giantsteps as gs
from giantsteps.answers import (
    Answer,
    Bounds,
    Gradient,
    LearnedFunction,
    Risk,
    Solution,
    Spectrum,
    Spike,
    bibliography,
    bibtex,
)

PROBLEM = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.5,
    noise_variance=0.25,
    steps=[gs.Step(samples=2.0, rate=1.0)],
    readout=gs.Ridge(samples=2.0, penalty=0.1),
)
GRID = gs.Grid(PROBLEM, {"noise_variance": [0.0, 0.5], "readout.samples": [1.0, 2.0, 3.0]})
RNG = np.random.default_rng(0)
TEST, TRAIN, START = RNG.uniform(size=(3, 2, 3))
DEGREES = RNG.uniform(size=(2, 3, 4))
LIMIT: dict[str, Any] = {"source": "limit", "exact": True}


def risk_over_grid(**changes: Any) -> Risk:
    values: dict[str, Any] = {
        "problem": GRID,
        **LIMIT,
        "test": TEST,
        "train": TRAIN,
        "by_degree": DEGREES,
        "initial": Risk(problem=GRID, **LIMIT, test=START, train=TRAIN),
        "assumptions": ("proportional limit",),
        "references": ("ba2022", "mei2019"),
        "solution": Solution(status="converged", residual=TEST * 1e-12, iterations=7),
    }
    return Risk(**values | changes)


def spectrum_over_grid() -> Spectrum:
    value = np.array([[2.0, 2.1, np.nan], [2.2, 2.3, np.nan]])
    return Spectrum(
        problem=GRID,
        **LIMIT,
        bulk=np.full(GRID.shape, "law", dtype=object),
        spikes=(
            Spike(value=value, overlaps={"teacher": value / 10, "gradient": value / 5}),
            Spike(value=np.where(TEST > 0.5, 1.9, np.nan), overlaps={"teacher": TEST}, degree=2),
        ),
    )


ANSWERS: list[Answer] = [
    risk_over_grid(),
    spectrum_over_grid(),
    Risk(problem=PROBLEM, **LIMIT, test=0.1, train=np.nan),
    Spectrum(problem=PROBLEM, **LIMIT, bulk=None, spikes=(Spike(value=np.inf),)),
    Bounds(problem=GRID, **LIMIT, floors={"linear": TEST}, ceilings={"spike": TRAIN}),
    Gradient(
        problem=PROBLEM,
        **LIMIT,
        spike_norm=2.0,
        residual_operator_norm=0.1,
        residual_frobenius_norm=1.5,
        overlaps={"teacher": 0.5},
    ),
    LearnedFunction(
        problem=GRID,
        **LIMIT,
        x=np.linspace(-1, 1, 4),
        mean=DEGREES,
        band=DEGREES / 10,
        along="spike",
    ),
]
OVER_GRIDS = [answer for answer in ANSWERS if answer.shape]


def test_one_problem_has_python_floats() -> None:
    risk = Risk(problem=PROBLEM, **LIMIT, test=np.float64(0.1), train=np.array(0.05))
    assert type(risk.test) is float
    assert type(risk.train) is float
    assert (risk.shape, risk.dims, risk.coords) == ((), (), {})
    assert risk.test_noisy == pytest.approx(0.35)


def test_a_grid_has_arrays_of_its_shape_that_cannot_be_written() -> None:
    risk = risk_over_grid()
    assert isinstance(risk.test, np.ndarray)
    assert risk.test.shape == risk.shape == (2, 3)
    assert risk.dims == ("noise_variance", "readout.samples")
    assert_array_equal(risk.coords["readout.samples"], [1, 2, 3])
    with pytest.raises(ValueError, match="read-only"):
        risk.test[0, 0] = 1.0
    with pytest.raises(AttributeError):
        risk.test = TEST  # type: ignore[misc]


def test_an_answer_does_not_follow_the_array_it_was_made_from() -> None:
    values = TEST.copy()
    risk = risk_over_grid(test=values)
    values[:] = -1
    assert_array_equal(risk.test, TEST)


def test_noise_is_added_cell_by_cell() -> None:
    assert_array_equal(risk_over_grid().test_noisy, TEST + np.array([[0.0], [0.5]]))
    other = gs.Grid(PROBLEM, {"readout.samples": [1.0, 2.0, 3.0]})
    assert_array_equal(
        Risk(problem=other, **LIMIT, test=TEST[0], train=TEST[0]).test_noisy, TEST[0] + 0.25
    )


def test_gain_is_the_error_before_minus_after() -> None:
    assert_array_equal(risk_over_grid().gain, START - TEST)
    assert Risk(problem=PROBLEM, **LIMIT, test=0.1, train=0.1).gain is None


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"test": 0.1}, "test"),
        ({"train": TRAIN.T}, "train"),
        ({"by_degree": TEST}, "by_degree"),
        ({"standard_error": TEST[0]}, "standard_error"),
        ({"initial": Risk(problem=PROBLEM, **LIMIT, test=1.0, train=1.0)}, "initial"),
        ({"solution": Solution(status="converged", residual=np.zeros(3))}, "solution"),
        ({"source": "guess"}, "source"),
        ({"references": ("nobody1999",)}, "nobody1999"),
    ],
)
def test_wrong_shapes_and_words_are_refused(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        risk_over_grid(**changes)


def test_wrong_shapes_in_other_answers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"spikes\[0\]"):
        Spectrum(problem=GRID, **LIMIT, bulk=None, spikes=(Spike(value=2.0),))
    with pytest.raises(ValueError, match="bulk"):
        Spectrum(problem=GRID, **LIMIT, bulk=np.empty(3, dtype=object))
    lists: Any = {"mean": [0.0], "band": [0.0]}
    with pytest.raises(ValueError, match="points"):
        LearnedFunction(problem=PROBLEM, **LIMIT, **lists | {"x": [0.0, 1.0]}, along="spike")
    with pytest.raises(ValueError, match="along"):
        LearnedFunction(problem=PROBLEM, **LIMIT, **lists | {"x": [0.0], "along": "up"})
    with pytest.raises(ValueError, match="linear"):
        Bounds(problem=PROBLEM, **LIMIT, floors={"linear": 1.0}, ceilings={"linear": 2.0})


def test_a_cell_is_the_answer_of_its_problem() -> None:
    cell = risk_over_grid()[1, 2]
    assert cell.problem == PROBLEM.replace({"noise_variance": 0.5, "readout.samples": 3.0})
    assert cell.initial is not None
    assert cell.solution is not None
    assert cell.by_degree is not None
    assert (cell.test, cell.train, cell.initial.test) == (TEST[1, 2], TRAIN[1, 2], START[1, 2])
    assert_array_equal(cell.by_degree, DEGREES[1, 2])
    assert cell.solution.residual == TEST[1, 2] * 1e-12
    assert cell.references == ("ba2022", "mei2019")


@pytest.mark.parametrize("index", [0, (slice(None), 1), (..., 2), slice(1, 2)])
def test_a_part_of_a_grid_is_an_answer_over_a_smaller_grid(index: Any) -> None:
    part = risk_over_grid()[index]
    assert_array_equal(part.test, TEST[index])
    assert isinstance(part.problem, gs.Grid)
    assert part.by_degree is not None
    assert part.shape == part.problem.shape == TEST[index].shape
    assert part.by_degree.shape == (*part.shape, 4)


def test_indices_that_no_grid_has_are_refused() -> None:
    with pytest.raises(IndexError):
        risk_over_grid()[0, 0, 0]
    with pytest.raises(IndexError):
        risk_over_grid()[0, 0][0]


@pytest.mark.parametrize("answer", OVER_GRIDS, ids=lambda a: type(a).__name__)
def test_stacking_the_cells_gives_the_answer_back(answer: Answer) -> None:
    cells = [answer[index] for index in np.ndindex(answer.shape)]
    assert type(answer).stack(GRID, cells) == answer


def test_stacking_joins_what_cells_claim() -> None:
    cells = [
        Risk(
            problem=p, source="limit", exact=i != 4, test=i, train=i, violated=("odd σ",) * (i == 4)
        )
        for i, p in enumerate(GRID)
    ]
    whole = Risk.stack(GRID, cells)
    assert not whole.exact
    assert whole.violated == ("odd σ",)
    assert_array_equal(whole.test, [[0, 1, 2], [3, 4, 5]])
    with pytest.raises(ValueError, match="5 cells"):
        Risk.stack(GRID, cells[:5])


def test_stacking_fills_absent_spikes() -> None:
    cells = [
        Spectrum(problem=p, **LIMIT, bulk=None, spikes=(Spike(value=3.0),) * (i % 2))
        for i, p in enumerate(GRID)
    ]
    whole = Spectrum.stack(GRID, cells)
    assert_array_equal(whole.count, [[0, 1, 0], [1, 0, 1]])
    assert_array_equal(np.asarray(whole.spikes[0].value)[0], [np.nan, 3.0, np.nan])


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda a: type(a).__name__)
def test_pickling_and_equality(answer: Answer) -> None:
    copy = pickle.loads(pickle.dumps(answer))
    assert copy == answer
    assert copy is not answer
    with pytest.raises(TypeError, match="unhashable"):
        hash(answer)


def test_unpickled_arrays_stay_read_only() -> None:
    copy = pickle.loads(pickle.dumps(risk_over_grid()))
    assert not copy.test.flags.writeable
    assert not copy.initial.test.flags.writeable


def test_answers_that_differ_in_one_bit_are_not_equal() -> None:
    bumped = TEST.copy()
    bumped[1, 1] = np.nextafter(bumped[1, 1], 2)
    assert risk_over_grid() != risk_over_grid(test=bumped)
    assert risk_over_grid() != risk_over_grid(exact=False)
    assert risk_over_grid() != "risk"
    assert spectrum_over_grid() == spectrum_over_grid()


def test_overlap_is_the_first_of_overlaps() -> None:
    assert Spike(value=2.0, overlaps={"gradient": 0.9, "teacher": 0.4}).overlap == 0.9
    assert np.isnan(Spike(value=2.0).overlap)
    assert np.isnan(Spike(value=np.ones(3)).overlap).all()
    spike = Spike(value=np.array([2.0, 3.0]), overlaps={"teacher": 0.5})
    assert_array_equal(spike.overlap, [0.5, 0.5])
    with pytest.raises(TypeError):
        spike.overlaps["teacher"] = 1.0  # type: ignore[index]


def test_spikes_are_counted_in_each_cell() -> None:
    spectrum = spectrum_over_grid()
    first = np.array([[1, 1, 0], [1, 1, 0]])
    assert_array_equal(spectrum.count, first + (TEST > 0.5))
    assert spectrum[0, 2].spikes[0].value != spectrum[0, 2].spikes[0].value
    assert Spectrum(problem=PROBLEM, **LIMIT, bulk=None).count == 0


def test_bounds_by_name_and_by_cell() -> None:
    bounds = Bounds(problem=GRID, **LIMIT, floors={"linear": TEST}, ceilings={"spike": TRAIN})
    assert_array_equal(bounds["spike"], TRAIN)
    assert bounds[1, 0]["linear"] == TEST[1, 0]
    with pytest.raises(KeyError):
        bounds["nothing"]


def test_ratio_of_the_gradient() -> None:
    gradient = ANSWERS[5]
    assert isinstance(gradient, Gradient)
    assert gradient.ratio == pytest.approx(0.05)


def test_citation_is_the_bibtex_of_the_references() -> None:
    text = risk_over_grid().citation
    assert text.index("@inproceedings{ba2022,") < text.index("@article{mei2019,")
    assert text.count("\n@") == 1
    assert Risk(problem=PROBLEM, **LIMIT, test=1.0, train=1.0).citation == ""


def test_the_bibliography_is_complete() -> None:
    papers = {
        "ba2022": "2205.01445",
        "moniri2023": "2310.07891",
        "cui2024": "2402.04980",
        "moniri2026": "2605.17767",
        "wang2024": "2402.10127",
        "dandi2024": "2410.18938",
        "mei2019": "1908.05355",
        "fan2020": "2005.11879",
        "benaych2012": "1103.2221",
    }
    for key, number in papers.items():
        entry = bibtex([key])
        assert f"eprint        = {{{number}}}" in entry
        assert all(f"  {field} " in entry for field in ("title", "author", "year"))
        assert entry.count("{") == entry.count("}")
    assert bibliography().keys() == papers.keys()


def test_repr_states_numbers_source_and_violations() -> None:
    risk = Risk(
        problem=PROBLEM,
        d=2000,
        source="finite width",
        exact=False,
        violated=("odd activation <or> E A = 0",),
        test=0.121787,
        train=0.1,
    )
    text, html = repr(risk), risk._repr_html_()
    for part in ("0.121787", "finite width, d = 2000", "exact     no", "odd activation"):
        assert part in text
    assert "&lt;or&gt;" in html
    assert "<or>" not in html
    assert "noise_variance: 2" in repr(risk_over_grid())
    assert "spikes    none" in repr(Spectrum(problem=PROBLEM, **LIMIT, bulk=None))
