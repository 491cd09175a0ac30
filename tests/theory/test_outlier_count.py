"""How many outliers two steps bring: the table, its boundary lines, and the growth of strengths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import giantsteps as gs
from giantsteps import theory

from .two_step_model import field_of

BENT = gs.centered("tanh(x) + 0.5*tanh(x)**2")


def problem(
    first: float,
    second: float,
    *,
    activation: gs.Function | str = BENT,
    batch: str = "fresh",
    law: gs.Vocabulary | str = "gaussian",
) -> gs.Problem:
    return gs.Problem(
        activation=activation,
        teacher="sin",
        width=1.0,
        steps=[
            gs.Step(samples=4.0, rate=1.0, exponent=first),
            gs.Step(samples=4.0, rate=1.0, exponent=second, batch=batch),
        ],
        init=gs.Init(second_layer=law),
    )


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [(0.0, 0.3, 1), (0.1, 0.45, 2), (0.3, 0.3, 2), (0.35, 0.4, 3), (0.4, 0.45, 5), (0.45, 0.5, 11)],
)
def test_count_follows_the_exponents(first: float, second: float, count: int) -> None:
    answer = theory.outlier_count(problem(first, second))
    assert int(answer) == answer.count == count == 1 + int(1e-9 + second / (0.5 - first))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_boundary_lines_are_exact(k: int) -> None:
    """On e₂ = k(1/2 − e₁) the term k is marginal, on either side it is there or not."""
    first = 0.41
    line = k * (0.5 - first)
    on = theory.outlier_count(problem(first, line))
    assert (on.count, on.marginal) == (k + 1, 1)
    assert on.sizes[f"A^{k + 1}"] == 0.0
    for shift, expected in ((1e-8, k + 1), (-1e-8, k)):
        beside = theory.outlier_count(problem(first, line + shift))
        assert (beside.count, beside.marginal) == (expected, 0)


def test_terms_need_their_hermite_coefficient() -> None:
    assert theory.outlier_count(problem(0.4, 0.45, activation="tanh")).count == 3  # A, A³, A⁵
    assert list(theory.outlier_count(problem(0.4, 0.45, activation="relu")).sizes) == [
        "A",
        "A^2",
        "A^4",
    ]
    polynomial = theory.outlier_count(problem(0.5, 0.5, activation="x + he3(x)/6"))
    assert list(polynomial.sizes) == ["A", "A^3"]


def test_a_reused_batch_needs_less() -> None:
    """softplus has c₃ = c₅ = 0, but E[σ'''σ'] ≠ 0: the labels enter its slope."""
    fresh = theory.outlier_count(problem(0.4, 0.45, activation="softplus"))
    reused = theory.outlier_count(problem(0.4, 0.45, activation="softplus", batch="previous"))
    assert (fresh.count, reused.count) == (3, 5)


@pytest.mark.parametrize(
    ("law", "count"),
    [
        ("constant", 1),
        (gs.Vocabulary([-1, 1], [0.5, 0.5]), 2),
        (gs.Vocabulary([-1, 0, 2], [0.3, 0.3, 0.4]), 2),
        (gs.Vocabulary([-1, 0.5, 2], [0.3, 0.3, 0.4]), 3),
        ("gaussian", math.inf),
    ],
)
def test_no_more_outliers_than_values_of_the_second_layer(
    law: gs.Vocabulary | str, count: int
) -> None:
    assert theory.outlier_count(problem(0.5, 0.5, law=law)).count == count


def test_fewer_steps_and_none() -> None:
    two = problem(0.3, 0.3)
    assert theory.outlier_count(two.untrained()).count == 0
    assert theory.outlier_count(two.replace({"steps": two.steps[:1]})).count == 1
    assert theory.outlier_count(two.replace({"steps.1.rate": 0.0})).count == 1
    assert theory.outlier_count(problem(0.0, 0.0)).marginal == 1
    with pytest.raises(gs.NotCovered, match="at most two steps"):
        theory.outlier_count(two.replace({"steps": two.steps * 2}))
    with pytest.raises(gs.NotCovered, match=r"up to 0\.495"):
        theory.outlier_count(problem(0.499, 0.5))
    with pytest.raises(gs.InvalidProblem):
        theory.outlier_count("tanh")  # type: ignore[arg-type]


def test_a_grid() -> None:
    exponents = np.array([0.2, 0.35, 0.45])
    grid = gs.Grid(
        problem(0.2, 0.2), {"steps.0.exponent": exponents, "steps.1.exponent": exponents}
    )
    answer = theory.outlier_count(grid)
    expected = 1 + np.floor(exponents / (0.5 - exponents[:, None]) + 1e-9)
    assert_array_equal(answer.count, expected)
    assert np.isnan(np.asarray(answer.sizes["A^2"])[0, 0])


@pytest.mark.parametrize("batch", ["fresh", "previous"])
def test_strengths_grow_as_the_sizes_say(batch: str) -> None:
    """θ_j² = N ℓ_j of the field itself grows as N^(2 size), and no other does."""
    law = gs.Vocabulary([-1.5, -0.5, 0.7, 2.0], [0.2, 0.3, 0.3, 0.2])
    asked = problem(0.33, 0.45, batch=batch, law=law)
    sizes = list(theory.outlier_count(asked).sizes.values())
    assert len(sizes) == 3
    near, far = (10.0**power * field_of(asked, 10**power).modes.strength for power in (9, 11))
    slopes = np.log10(far / near[: len(far)]) / 2
    assert_allclose(slopes[:3], 2 * np.array(sizes), atol=0.03)
    assert np.all(slopes[3:] < 0)
