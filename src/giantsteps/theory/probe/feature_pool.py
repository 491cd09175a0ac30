"""A pool of features and labels, read in chunks: its moments and leave-one-out errors (§8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from tempfile import TemporaryFile
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

#: Numbers of a block that is worked on at once.
_BLOCK = 1 << 22
#: Rows that are kept in memory for the law of the leverages: at least so many, and so many per
#: feature.
_SAMPLE, _PER_FEATURE = 2048, 3
_CHUNKS = "an array (rows, features), a list of such arrays, or a function that returns them"
_NUMBERS = "an array of real numbers"
_CODED = "numbers; encode two classes as −1 and 1, more as np.eye(k)[classes]"


class FeaturePool:
    """Features and labels of m rows, which are read twice or more and never held together.

    * ``features``: rows of features; chunks come in the order of the labels.
    * ``labels``: labels of all rows; None if each chunk is a pair (features, labels).
    * ``intercept``: whether means are removed, which is what a free intercept does.
    """

    def __init__(self, features: Any, labels: Any, intercept: bool) -> None:
        self.intercept = intercept
        self._given = None if labels is None else _as_labels(labels)
        self._spool: IO[bytes] | None = None
        try:
            self._source = self._reader(features)
            self._read_moments()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._spool is not None:
            self._spool.close()

    # Reading ----------------------------------------------------------------------------------

    def _reader(self, features: Any) -> Callable[[], Iterable[Any]]:
        """A function that starts again from the first row each time."""
        if callable(features) and not hasattr(features, "__array__"):
            return lambda: features()
        if hasattr(features, "__next__"):
            return self._spooled(features)
        if isinstance(features, list | tuple) and features and _is_chunk(features[0]):
            return lambda: features
        if not hasattr(features, "shape"):
            features = np.asarray(features)
        if len(features.shape) != 2 or 0 in features.shape:
            raise InvalidProblem("features", tuple(features.shape), _CHUNKS)
        step = max(1, _BLOCK // features.shape[1])
        return lambda: (features[i : i + step] for i in range(0, features.shape[0], step))

    def _spooled(self, once: Iterator[Any]) -> Callable[[], Iterable[Any]]:
        """An iterator can be read once: its chunks go to a temporary file as they come."""
        spool = self._spool = TemporaryFile()  # noqa: SIM115 (closed by __exit__)
        count = 0
        for chunk in once:
            parts = chunk if self._given is None else (chunk,)
            if self._given is None and not _is_pair(chunk):
                raise InvalidProblem("labels", None, "given, or each chunk (features, labels)")
            for part in parts:
                np.save(spool, _host(part), allow_pickle=False)
            count += 1
        pairs = self._given is None

        def again() -> Iterator[Any]:
            spool.seek(0)
            for _ in range(count):
                first = np.load(spool, allow_pickle=False)
                yield (first, np.load(spool, allow_pickle=False)) if pairs else first

        return again

    def _chunks(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Features and labels, checked, in blocks of moderate size."""
        done = 0
        width: int | None = None
        for chunk in self._source():
            if self._given is None:
                if not _is_pair(chunk):
                    raise InvalidProblem("labels", None, "given, or each chunk (features, labels)")
                x, y = _host(chunk[0]), _as_labels(chunk[1])
            else:
                x = _host(chunk)
                y = self._given[done : done + len(x)] if x.ndim else self._given
            if x.ndim != 2 or x.shape[1] == 0 or (width not in (None, x.shape[1])):
                raise InvalidProblem("features", x.shape, f"{_CHUNKS}, all of the same width")
            width = x.shape[1]
            if len(y) != len(x):
                raise InvalidProblem("labels", len(y), f"one per row of features ({len(x)} rows)")
            step = max(1, _BLOCK // width)
            for i in range(0, len(x), step):
                block = np.asarray(x[i : i + step], dtype=np.float64)
                if not np.all(np.isfinite(block)):
                    row = done + i + int(np.argmax(~np.isfinite(block).all(axis=1)))
                    raise InvalidProblem("features", f"NaN or infinite in row {row}", "finite")
                yield block, y[i : i + step]
            done += len(x)
        if done == 0:
            raise InvalidProblem("features", "no rows", _CHUNKS)
        if self._given is not None and done != len(self._given):
            raise InvalidProblem("labels", len(self._given), f"one per row of features ({done})")

    def _read_moments(self) -> None:
        """Means, eigenvalues and vectors of the covariance, cross moments, a sample of rows."""
        rng = np.random.default_rng(0)
        rows = 0
        kept: tuple[FloatArray, FloatArray] | None = None
        labels: list[FloatArray] = []
        for x, y in self._chunks():
            if rows == 0:
                p, k = x.shape[1], y.shape[1]
                shift = x.mean(axis=0) if self.intercept else np.zeros(p)
                offset = y.mean(axis=0) if self.intercept else np.zeros(k)
                total, gram, cross = np.zeros(p), np.zeros((p, p)), np.zeros((p, k))
                size = max(_SAMPLE, _PER_FEATURE * p)
                kept = np.empty((size, p)), np.empty((size, k))
            z = x - shift
            total += z.sum(axis=0)
            gram += z.T @ z
            cross += z.T @ (y - offset)
            labels.append(y)
            assert kept is not None
            _reservoir(kept, x, y, rows, rng)
            rows += len(x)
        assert kept is not None  # a pool without rows is refused
        self.rows, self.features, self.outputs = rows, p, k
        self.labels = np.concatenate(labels)
        if not np.any(self.labels != self.labels[0]):
            raise InvalidProblem("labels", "the same in all rows", "labels that vary")
        drift = total / rows if self.intercept else np.zeros(p)
        self.mean = shift + drift
        self.label_mean = self.labels.mean(axis=0) if self.intercept else np.zeros(k)
        gram = gram / rows - np.outer(drift, drift)
        cross = cross / rows - np.outer(drift, self.label_mean - offset)
        values, vectors = np.linalg.eigh(gram)
        alive = values > 10 * p * np.finfo(float).eps * max(values[-1], 0.0)
        if not alive.any():
            raise InvalidProblem("features", "the same in all rows", "features that vary")
        self.values, self.vectors = values[alive][::-1], vectors[:, alive][:, ::-1]
        self.cross = self.vectors.T @ cross
        count = min(rows, len(kept[0]))
        self._kept = kept[0][:count], kept[1][:count]
        self.sample = (kept[0][:count] - self.mean) @ self.vectors
        self.sample_labels = kept[1][:count] - self.label_mean

    # Answers of the pool ----------------------------------------------------------------------

    def _blocks(self, width: int) -> Iterator[tuple[FloatArray, slice]]:
        """Rows in the eigenbasis, with their place in the pool."""
        done = 0
        for x, _ in self._chunks():
            step = max(1, _BLOCK // width)
            for i in range(0, len(x), step):
                z = (x[i : i + step] - self.mean) @ self.vectors
                yield z, slice(done + i, done + i + len(z))
            done += len(x)
        if done != self.rows:
            raise InvalidProblem(
                "features", f"{done} rows when read again", f"the same {self.rows} rows each time"
            )

    def leave_one_out(self, penalties: FloatArray) -> FloatArray:
        """Mean squared errors (penalties, outputs) of the pool's own probes without each row."""
        count, m = len(penalties), self.rows
        shrunk = 1.0 / (self.values[:, None] + penalties)
        fits = self.cross[:, None, :] * shrunk[:, :, None]
        loss = np.zeros((count, self.outputs))
        for z, place in self._blocks(count * self.outputs + 2 * self.features):
            left = 1.0 - (self.intercept + (z * z) @ shrunk) / m
            y = self.labels[place] - self.label_mean
            residual = y[:, None, :] - (z @ fits.reshape(len(fits), -1)).reshape(
                len(z), count, self.outputs
            )
            loss += ((residual / left[:, :, None]) ** 2).sum(axis=0)
        return loss / m

    def thinned(self, rows: int | None = None) -> FeaturePool:
        """A pool of the rows that are kept in memory, or of some of them; itself if it has all."""
        kept = len(self.sample)
        count = kept if rows is None else min(kept, max(rows, 4 * self.features))
        if count == self.rows:
            return self
        chosen = np.linspace(0, kept - 1, count).round().astype(int)
        return FeaturePool(self._kept[0][chosen], self._kept[1][chosen], self.intercept)


def _reservoir(
    kept: tuple[FloatArray, FloatArray],
    x: FloatArray,
    y: FloatArray,
    start: int,
    rng: np.random.Generator,
) -> None:
    """Add rows to a uniform sample (algorithm R), the same however the rows are cut in chunks."""
    size = len(kept[0])
    fill = min(max(size - start, 0), len(x))
    kept[0][start : start + fill], kept[1][start : start + fill] = x[:fill], y[:fill]
    if fill < len(x):
        place = rng.integers(0, np.arange(start + fill, start + len(x)) + 1)
        for row in np.flatnonzero(place < size):
            kept[0][place[row]], kept[1][place[row]] = x[fill + row], y[fill + row]


def _is_pair(chunk: Any) -> bool:
    return isinstance(chunk, list | tuple) and len(chunk) == 2


def _is_chunk(item: Any) -> bool:
    """A chunk of rows rather than a row of numbers."""
    return len(getattr(item, "shape", ())) == 2 or (
        _is_pair(item) and len(getattr(item[0], "shape", ())) == 2
    )


def _host(array: Any, what: str = "features", allowed: str = _NUMBERS) -> NDArray[Any]:
    """A NumPy array of numbers, from NumPy, PyTorch, SciPy's sparse arrays or nested lists."""
    if hasattr(array, "detach"):
        array = array.detach().cpu()
        if "bfloat16" in str(array.dtype):
            array = array.float()
    values = np.asarray(array.toarray() if hasattr(array, "toarray") else array)
    if values.dtype.kind not in "fiub":
        raise InvalidProblem(what, f"of type {values.dtype}", allowed)
    return values


def _as_labels(labels: Any) -> FloatArray:
    """Labels of shape (rows, outputs)."""
    values = _host(labels, "labels", _CODED)
    if values.ndim not in (1, 2) or values.size == 0:
        raise InvalidProblem("labels", values.shape, "of shape (rows,) or (rows, outputs)")
    if values.dtype.kind in "iu" and values.size == len(values):
        kinds = len(np.unique(values))
        if kinds > 2:
            raise InvalidProblem(
                "labels",
                f"integers of {kinds} values",
                f"np.eye({kinds})[labels] if they are classes 0 to {kinds - 1}, "
                "labels.astype(float) if they are numbers",
            )
    values = values.astype(np.float64).reshape(len(values), -1)
    if not np.all(np.isfinite(values)):
        raise InvalidProblem("labels", "NaN or infinite", "finite")
    return values
