"""Which directions of the neurons' leans are kept as spikes after a step (theory §7, §10)."""

from __future__ import annotations

import numpy as np

from giantsteps.types import FloatArray

#: Directions kept as spikes, and as weak ones, with their size relative to the largest.
DIRECTIONS, WEAK, _NOTHING = 2, 4, 3e-3
#: Leans along a direction, beside the first of the strongest, that are weak ones.
_FAINT = 0.05


def kept_directions(
    lean: FloatArray,
    probabilities: FloatArray,
    teacher: FloatArray,
    weak: int = 0,
    strong: int | None = None,
) -> tuple[FloatArray, FloatArray, int]:
    """Directions that are kept as spikes, two or fewer and then so many weak ones: (space, r + J),
    as combinations of neurons, (T, r + J), and r.

    Beside the strongest it is what the others' leans make of the teacher (R, space), of several
    directions that of which they make most. A second one of no size is worth terms of order 1/d²:
    as much as the model knows nothing about. Weak ones are the strongest of what the two leave.
    With ``strong`` they are at most so many of the strongest, whatever they make of the teacher,
    and weak ones are those of a size next to neurons of norm one.
    """
    root = np.sqrt(probabilities)[:, None]
    left, size, right = np.linalg.svd(root * lean, full_matrices=False)
    some = size > 1e-12 * size.max(initial=0.0)
    left, size, right = left[:, some], size[some], right[some]
    count = max(int((size[: strong or 1] > _FAINT).sum()), 1)
    mixing = [*np.eye(min(count, len(size)), len(size))]
    if len(size) > 1 and strong is None:
        seen = size[:, None] ** 2 * (right @ teacher.T)
        seen[0] = 0.0
        most, length, _ = np.linalg.svd(seen, full_matrices=False)
        # Where nothing of the teacher is left, the second strongest.
        plain = np.eye(2, len(size))[1]
        mixing.append(most[:, 0] if length[0] > 1e-9 * size[0] ** 2 else plain)
    mixed = np.array(mixing)
    beside = np.eye(len(size)) - mixed.T @ mixed
    values, vectors = np.linalg.eigh((beside * size**2) @ beside)
    least = size.max(initial=0.0) if strong is None else min(size.max(initial=0.0), 1.0)
    some, rank = values[::-1] > (_NOTHING * least) ** 2, len(mixed)
    mixed = np.concatenate([mixed, vectors.T[::-1][some][:weak]])
    along = mixed @ (right @ teacher.T)
    largest = along[np.arange(len(along)), np.abs(along).argmax(axis=1)]
    mixed = mixed * np.where(largest < 0, -1.0, 1.0)[:, None]
    return (mixed @ right).T, root * left @ (mixed / size).T, rank
