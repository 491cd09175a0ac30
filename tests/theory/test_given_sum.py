"""Samples that are given together with a sum of theirs: forms of vectors, and words (theory §7)."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from giantsteps.theory.solver.bulk import Batch, Bulk, Stage
from giantsteps.theory.solver.dyson import Dyson
from giantsteps.theory.solver.special import Forms
from giantsteps.theory.steps.several.reused_forms import Vectors

NODES, ALPHA, WIDTH = 5, 2.0, 0.8
RNG = np.random.default_rng(5)
LABEL, MEANS = RNG.normal(size=NODES), 0.6 * RNG.normal(size=(2, NODES))
LINEAR, FACTOR = RNG.normal(size=NODES) ** 2, 0.6 * RNG.normal(size=NODES)
WEIGHTS = np.array([0.1, 0.3, 0.2, 0.15, 0.25])
SUMS = np.concatenate([RNG.normal(size=(3, NODES)), np.zeros((1, NODES))])
SUMS -= np.outer(SUMS @ (WEIGHTS * LABEL) / (WEIGHTS @ LABEL**2), LABEL)
CARRY = np.array([[0.3, 0.2], [0.0, 0.5], [0.2, 0.1], [1.0, 0.0]])
SECOND = (MEANS[:, None] * MEANS + WIDTH * np.eye(2)[:, :, None]) * WEIGHTS
BATCH = Batch(
    samples=np.array(ALPHA), weights=WEIGHTS, first=MEANS * WEIGHTS, second=SECOND,
    linear=LINEAR[None], factors=FACTOR[None], given=LABEL,
)  # fmt: skip
X, STRENGTHS = np.full((1, 1, 1), 1.3), np.array([0.4, 0.5, 0.7]).reshape(1, 3, 1, 1)


def bulk() -> Bulk:
    """X + P₀ + P₁K + P₂M², with vectors of which the third is multiplied by M."""
    names = ("weights", "first", "second", "linear", "factors", "given")
    arrays = {name: getattr(BATCH, name)[None] for name in names}
    one = np.ones((1, 1))
    return Bulk(
        shares=one, inverse=one, scales=one, diagonal=one[None], coefficients=np.ones((1, 1, 3)),
        batches=(replace(BATCH, samples=np.array([ALPHA]), **arrays),),
        stages=(Stage(frame=np.eye(2)[None], carry=CARRY[None], sums=SUMS[None],
                      place=(0, 0, 1, 0)),),
        external=np.eye(2)[None, :, None], special=np.eye(4)[None],
    )  # fmt: skip


def forms(x: np.ndarray, strengths: np.ndarray) -> Forms:
    bare = Dyson(bulk(), x, strengths, np.zeros((1, 0, 0)))
    found = replace(bare, active=bare.alone())
    for _ in range(200):
        found = replace(found, active=(found.image + found.active) / 2)
    return Forms(found)


def batches(d: int, count: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Samples whose sum is given beside the first two directions, their nodes, and the vectors."""
    found, n = [], round(ALPHA * d)
    node = np.repeat(np.arange(NODES), np.round(WEIGHTS * n).astype(int))
    for _ in range(count):
        x = RNG.normal(size=(n, d))
        x[:, :2] = MEANS[:, node].T + np.sqrt(WIDTH) * x[:, :2]
        y = LABEL[node]
        x[:, 2:] -= np.outer(y, y @ x[:, 2:]) / (y @ y)
        found.append((x, node, CARRY @ np.eye(d)[:2] + SUMS[:, node] @ x / n))
    return found


def summed(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.asarray((x * values[:, None]).T @ x / len(x))


def test_forms_are_those_of_matrices() -> None:
    seen = []
    for x, node, vectors in batches(400, 24):
        product = summed(x, FACTOR[node])
        _, p0, p1, p2 = 0.0, *STRENGTHS[0, :, 0, 0]
        inverse = (1.3 + p0) * np.eye(x.shape[1]) + p1 * summed(x, LINEAR[node])
        inverse += p2 * product @ product
        vectors[2] = product @ vectors[2]
        seen.append(vectors @ np.linalg.solve(inverse, vectors.T))
    found = forms(X, STRENGTHS).values[0, :, 0, :, 0]
    error = np.std(seen, axis=0) / np.sqrt(len(seen))
    assert (np.abs(np.mean(seen, axis=0) - found) <= 4 * error + 0.002).all()


def test_slopes_are_derivatives_of_the_forms() -> None:
    force, step = np.array([[0.7, -0.4, 1.1, 0.3]]), 1e-5

    def value(x: np.ndarray, strengths: np.ndarray) -> float:
        return float(force[0] @ forms(x, strengths).values[0, :, 0, :, 0] @ force[0])

    units = np.eye(3).reshape(3, 1, 3, 1, 1)
    wanted = [value(X - step, STRENGTHS) - value(X + step, STRENGTHS)]
    for unit in units:
        moved = step * unit
        wanted.append(value(X, STRENGTHS - moved) - value(X, STRENGTHS + moved))
    found = forms(X, STRENGTHS).slopes(force)[0, :, 0, 0]
    assert_allclose(found, np.array(wanted) / (2 * step), rtol=1e-6)


def test_words_are_products_of_matrices() -> None:
    letters = np.stack([LINEAR, FACTOR])
    seen = []
    for x, node, vectors in batches(400, 24):
        one, other = (summed(x, letter[node]) for letter in letters)
        seen.append(vectors @ other @ one @ one @ other @ vectors.T)
    along = Vectors(BATCH, CARRY + SUMS @ BATCH.first.T, SUMS)
    word = along.applied(letters[:1], along.applied(letters[1:]))
    found = along.inner(word, word)[0]
    error = np.std(seen, axis=0) / np.sqrt(len(seen))
    assert (np.abs(np.mean(seen, axis=0) - found) <= 4 * error + 0.01 * np.abs(found).max()).all()
    apart = along.applied(letters[1:])
    assert along.inner(apart, word) == pytest.approx(along.inner(word, apart).swapaxes(1, 2))
