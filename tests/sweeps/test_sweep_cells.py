"""Cells: addresses say what determines a result, and jobs cover what is missing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

import giantsteps as gs
from giantsteps.campaign._cells import problem_hashes
from giantsteps.campaign._jobs import Job, blocks, plan
from giantsteps.questions import QUESTIONS

TOML = """
d = [12, 20]
seeds = 3
[problem]
activation = "tanh"
teacher = "sin"
width = 1.5
steps = [{samples = 2.0, rate = 1.0}]
readout = {samples = 2.0, penalty = 0.1}
[vary]
"readout.samples" = [1.0, 2.0]
"""


def test_hashes_are_those_of_the_problems(problem: gs.Problem) -> None:
    grid = gs.Grid(
        problem,
        {
            "steps.0.rate": [0.5, 1],
            "activation": ["tanh", "erf(2*x)"],
            "readout": [gs.Ridge(samples=1.0, penalty=0.1), gs.Ridge(samples=2.0, penalty=0.2)],
            "init.second_layer": ["gaussian", gs.Constant(2.0)],
        },
    )
    hashes = problem_hashes(grid, {})
    unseen = problem_hashes(grid, {"steps": (), "readout": None})
    for index, cell in np.ndenumerate(grid.problems()):
        assert hashes[index] == cell.content_hash
        assert unseen[index] == cell.replace({"steps": (), "readout": None}).content_hash


def test_hashes_where_one_field_moves_another(problem: gs.Problem) -> None:
    steps = [gs.Step(samples=2.0, rate=1.0), gs.Step(samples=2.0, rate=1.0, batch="previous")]
    grid = gs.Grid(problem.replace({"steps": steps}), {"steps.0.samples": [1.0, 3.0]})
    hashes = problem_hashes(grid, {})
    cell = grid[1]
    assert isinstance(cell, gs.Problem)
    assert cell.steps[1].samples == 3.0
    assert list(hashes) == [cell.content_hash for cell in grid]


def test_a_comment_changes_no_cell() -> None:
    before = gs.Sweep.from_toml(TOML, store="a.sqlite")
    after = gs.Sweep.from_toml("# said again\n" + TOML.replace("1.5", "1.50  # N/d"), store="b")
    assert before.addresses == after.addresses
    assert len(before.addresses) == 2 * 2 + 2 * 2 * 2 * 3  # theory; simulation before and after


@pytest.mark.parametrize(
    ("old", "new", "added"),
    [
        ("[1.0, 2.0]", "[1.0, 2.0, 3.0]", 2 + 2 * 2 * 3),
        ("seeds = 3", "seeds = [0, 1, 2, 7]", 2 * 2 * 2),
        ("[12, 20]", "[12, 20, 30]", 2 + 2 * 2 * 3),
    ],
)
def test_an_added_value_adds_only_its_cells(old: str, new: str, added: int) -> None:
    before = gs.Sweep.from_toml(TOML, store="a.sqlite").addresses
    after = gs.Sweep.from_toml(TOML.replace(old, new), store="a.sqlite").addresses
    assert before < after
    assert len(after - before) == added


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype": "float32"},
        {"options": {"test_samples": 51}},
        {"options": {"test_samples": 50, "inputs": "rademacher"}},
        {"questions": {"risk": {"degrees": 2}}},
    ],
)
def test_whatever_changes_a_result_changes_addresses(
    make: Callable[..., gs.Sweep], changes: dict[str, Any]
) -> None:
    simulated = make(sources=["simulation"]).addresses
    assert not simulated & make(sources=["simulation"], **changes).addresses


def test_where_it_is_computed_changes_no_address(make: Callable[..., gs.Sweep]) -> None:
    here = make()
    there = make(options={"test_samples": 50, "device": "torch", "memory": "2GB"}, share=False)
    assert here.addresses == there.addresses


def test_the_version_of_a_question_is_in_its_addresses(
    make: Callable[..., gs.Sweep], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {source: make(sources=[source]).addresses for source in ("limit", "simulation")}
    raised = dict(QUESTIONS) | {"risk": replace(QUESTIONS["risk"], simulation_version=999)}
    monkeypatch.setattr("giantsteps.sweeps._cells.QUESTIONS", raised)
    assert make(sources=["limit"]).addresses == before["limit"]
    assert not make(sources=["simulation"]).addresses & before["simulation"]


def test_problems_that_a_question_does_not_tell_apart_are_one_cell(
    make: Callable[..., gs.Sweep],
) -> None:
    vary = {"readout.samples": [1.0, 2.0], "readout.penalty": [0.1, 1.0], "steps.0.rate": [1, 2]}
    one = {"vary": vary, "seeds": 1, "sources": ["simulation"], "initial": False}
    counts = {q: len(make(questions=q, **one).addresses) for q in ("weights", "kernel", "risk")}
    assert counts == {"weights": 2, "kernel": 4, "risk": 8}
    assert len(make(questions="risk", **one | {"initial": True}).addresses) == 8 + 4


# Jobs -----------------------------------------------------------------------------------------


@given(
    st_numpy.arrays(bool, st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=6)),
    st.integers(1, 20),
)
def test_blocks_cover_every_entry_once(mask: np.ndarray, limit: int) -> None:
    covered = np.zeros(mask.shape, dtype=int)
    for place in blocks(mask, limit):
        block = list(itertools.product(*place))
        assert 1 <= len(block) <= limit
        for index in block:
            covered[index] += 1
    np.testing.assert_array_equal(covered, mask.astype(int))


def test_blocks_of_a_product_is_the_product() -> None:
    mask = np.zeros((6, 5), dtype=bool)
    mask[np.ix_([0, 2, 5], [1, 4])] = True
    assert list(blocks(mask, 100)) == [((0, 2, 5), (1, 4))]


def test_a_plan_has_every_cell_once_and_knows_what_is_done(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(questions=["risk", "weights", "gradient"], d=[12, 20])
    planned = [address for job in plan(sweep.cells, ()) for address in job.addresses]
    assert len(planned) == len(set(planned))
    assert set(planned) == sweep.addresses
    known = set(planned[::3])
    rest = [address for job in plan(sweep.cells, known) for address in job.addresses]
    assert sorted(rest) == sorted(sweep.addresses - known)


def test_rows_of_a_job_belong_to_its_problems(make: Callable[..., gs.Sweep]) -> None:
    sweep = make(questions=["risk", "weights"])
    for job in plan(sweep.cells, ()):
        rows = job.rows()
        assert tuple(row.address for row in rows) == job.addresses
        assert len(rows) == job.task(1).size
        expected = []
        for part in job.parts:
            target = part.target(job.place)
            problems = [target] if isinstance(target, gs.Problem) else list(target)
            expected += [(seed, p.content_hash) for seed in job.seeds for p in problems]
        assert [(row.seed, row.problem) for row in rows] == expected
        for row in rows:
            assert gs.Problem.from_json(row.content).content_hash == row.problem


def test_halves_of_a_job_have_its_cells(make: Callable[..., gs.Sweep]) -> None:
    def leaves(job: Job) -> list[Job]:
        halves = job.halves()
        return [leaf for half in halves for leaf in leaves(half)] if halves else [job]

    vary = {"steps.0.rate": [0.5, 1.0], "readout.samples": [1.0, 2.0, 3.0]}
    for job in plan(make(vary=vary, seeds=5).cells, ()):
        found = leaves(job)
        assert all(len(leaf.addresses) == 1 for leaf in found)
        assert sorted(leaf.addresses[0] for leaf in found) == sorted(job.addresses)


def test_readouts_and_seeds_are_together_only_if_asked(make: Callable[..., gs.Sweep]) -> None:
    vary = {"steps.0.rate": [0.5, 1.0], "readout.samples": [1.0, 2.0], "readout.penalty": [0.1, 1]}
    only = {"vary": vary, "sources": ["simulation"], "initial": False, "seeds": 20}
    sizes = [len(job.seeds) for job in plan(make(**only).cells, ())]
    assert sorted(sizes) == [4, 4, 16, 16]  # small networks: at most so many at once
    assert {len(job.addresses) // len(job.seeds) for job in plan(make(**only).cells, ())} == {4}
    assert {len(job.addresses) for job in plan(make(**only, share=False).cells, ())} == {1}
    large = [len(job.seeds) for job in plan(make(**only, d=700).cells, ())]
    assert set(large) == {1}


def test_what_is_together_depends_on_no_earlier_run(make: Callable[..., gs.Sweep]) -> None:
    """A chunk that was done is left out as a whole, so the others have the same members."""
    cells = make(sources=["simulation"], initial=False, seeds=40).cells
    jobs = plan(cells, ())
    done = {address for job in jobs[::2] for address in job.addresses}
    assert [job.addresses for job in plan(cells, done)] == [job.addresses for job in jobs[1::2]]


def test_networks_before_their_steps_come_with_those_after(make: Callable[..., gs.Sweep]) -> None:
    cells = make(sources=["simulation"], seeds=2).cells
    jobs = plan(cells, ())
    assert [job.initial for job in jobs] == [True, False]  # two rates start alike
    before, after = cells
    assert set(jobs[0].addresses) & set(jobs[1].addresses) == set()
    assert before.distinct < set(jobs[0].addresses)
    assert [job.cells for job in plan(cells, after.distinct)] == [before]
    assert not any(job.initial for job in plan(make(share=False).cells, ()))


def test_a_sweep_of_one_problem(problem: gs.Problem, tmp_path: Path) -> None:
    sweep = gs.Sweep(grid=problem, d=12, seeds=2, store=tmp_path / "one.sqlite")
    assert [len(job.addresses) for job in plan(sweep.cells, ())] == [1, 4]
    assert "5 cells (d: 1, seeds: 2)" in repr(sweep)
