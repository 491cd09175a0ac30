"""The table of regimes: what is answered, what is refused, and how it says so (theory §0)."""

import math
from typing import Any

import pytest

import giantsteps as gs
from giantsteps import theory
from giantsteps.theory.scope import table
from giantsteps.theory.steps import kinds

BASE = gs.Problem(
    activation="tanh",
    teacher="sin",
    width=1.0,
    steps=[gs.Step(samples=2, rate=1)],
    readout=gs.Ridge(samples=2, penalty=0.1),
)


@pytest.mark.parametrize(
    ("exponent", "level", "boundary"),
    [
        (0.1, 1, False),
        (0.25, 2, True),
        (0.25 + 1e-10, 2, True),
        (0.2499, 1, False),
        (0.3, 2, False),
        (1 / 3, 3, True),
        (0.37, 3, False),
        (0.375, 4, True),
        (0.45, 10, True),
        (0.4501, 10, False),
    ],
)
def test_staircase_level(exponent: float, level: int, boundary: bool) -> None:
    assert kinds.staircase_level(exponent) == (level, boundary)


@pytest.mark.parametrize(
    ("change", "needle"),
    [
        ({"activation": "relu"}, "gs.centered(activation)"),
        ({"teacher": "relu", "activation": gs.centered("relu")}, "gs.centered(teacher)"),
        (
            {"activation": gs.centered("relu"), "init.second_layer": "constant"},
            "the activation must be odd, or the second layer must have mean zero",
        ),
    ],
)
def test_what_a_small_step_needs(change: dict[str, Any], needle: str) -> None:
    with pytest.raises(gs.NotCovered) as error:
        theory.risk(BASE.replace(change))
    assert needle in str(error.value)


def test_a_size_keeps_the_mean_as_a_feature() -> None:
    """What the refusal advises works: random features and one step with raw ReLU at a size."""
    raw = BASE.replace({"activation": "relu"})
    centered = BASE.replace({"activation": gs.centered("relu")})
    untrained = [theory.risk(p.untrained(), d=500).test for p in (raw, centered)]
    assert untrained[0] == pytest.approx(untrained[1], rel=1e-10)
    initial = theory.risk(raw, d=500).initial
    assert initial is not None
    assert initial.test == untrained[0]


def test_refusals_are_found_before_any_cell_is_solved() -> None:
    grid = gs.Grid(BASE, {"activation": ["tanh", "erf", "relu"]})
    with pytest.raises(gs.NotCovered):
        theory.risk(grid)


@pytest.mark.parametrize("d", [None, 200])
@pytest.mark.parametrize("exponent", [0.0, 0.3, 0.5, None])
def test_the_peak_without_penalty_is_refused(exponent: float | None, d: int | None) -> None:
    """At n = N the error is infinite, whatever the steps; at a size the whole numbers decide."""
    near = 1e-4 if d is not None else 0.0
    steps = [] if exponent is None else [{"samples": 2.0, "rate": 1.0, "exponent": exponent}]
    peak = BASE.replace({"steps": steps, "readout": {"samples": BASE.width + near, "penalty": 0.0}})
    with pytest.raises(gs.NotCovered, match=r"infinite at n = N.*readout\.penalty > 0"):
        theory.risk(peak, d=d)
    off = peak.replace({"readout.samples": BASE.width + 0.3})
    assert math.isfinite(theory.risk(off, d=d).test)


@pytest.mark.parametrize("d", [0, -3, 1.5, True, "100"])
def test_dimension(d: Any) -> None:
    with pytest.raises(gs.InvalidProblem, match=r"^d = "):
        theory.risk(BASE, d=d)


def test_a_risk_needs_a_readout() -> None:
    with pytest.raises(gs.InvalidProblem, match="readout"):
        theory.risk(BASE.replace({"readout": None}))


def test_every_kind_has_a_rule_for_every_question() -> None:
    for question, rules in table.RULES.items():
        for kind in kinds.Kind:
            for given in (False, True):
                assert (kind, given) in rules, (question, kind, given)
