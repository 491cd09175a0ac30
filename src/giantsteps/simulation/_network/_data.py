"""Samples of one's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from giantsteps.errors import InvalidProblem

#: Fourth powers of errors are summed; of numbers up to here they do not overflow.
LARGEST = 1e30


@dataclass(frozen=True, eq=False, repr=False)
class Data:
    """Inputs and labels to simulate with, instead of drawn ones.

    The sizes n₀, n₁, … of the steps and n of the readout determine how the rows are used:

    =====================================  ==================================================
    what                                   rows
    =====================================  ==================================================
    a step with a fresh batch              the next ones, from the first row on: ``X[:n0]``, then
                                           ``X[n0 : n0 + n1]``, …
    a step with the previous batch         those of the step before it
    the readout                            backwards from the last row: ``X[::-1][:n]``
    the test error                         ``X_test``, all or the first ``test_samples``
    =====================================  ==================================================

    So the readout has the same samples for every number and size of steps, and smaller n have
    the first of them: the gain of a step and learning curves are paired. Rows should be in random
    order.

    Parameters
    ----------
    X : array (rows, d)
        Inputs, arrays or tensors; for the theory to apply, with mean 0 and the covariance of
        ``problem.inputs``.
    y : array (rows,)
        Labels, with their noise.
    X_test, y_test : array (points, d), array (points,), optional
        Points for the test error ``Risk.test``, which is the mean of (f̂ − y_test)²: give labels
        without noise for what the theory calls R. ``Risk.test_noisy`` adds the ``noise_variance``
        of the problem. Without points there is no test error.

    Notes
    -----
    Arrays are kept as they are given, not copied.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from giantsteps import simulation
    >>> rng = np.random.default_rng(0)
    >>> X, X_test = rng.standard_normal((300, 50)), rng.standard_normal((100, 50))
    >>> data = Data(X, np.tanh(X[:, 0]), X_test, np.tanh(X_test[:, 0]))
    >>> problem = gs.Problem(activation="relu", teacher="tanh", width=1.0,
    ...                      readout=gs.Ridge(samples=4.0, penalty=0.1))
    >>> run = simulation.run(problem, data=data)
    >>> run
    Run(d=50, neurons=50, step_samples=(), samples=200, seed=0)
    >>> bool(0 < run.risk().test < 1)
    True
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None

    def __post_init__(self) -> None:
        if (self.X_test is None) != (self.y_test is None):
            raise InvalidProblem("data", self, "given with both X_test and y_test, or neither")
        d = None
        for inputs, labels in (("X", "y"), ("X_test", "y_test")):
            if getattr(self, inputs) is None:
                continue
            x = _as_array(getattr(self, inputs), f"data.{inputs}", 2)
            if d is not None and x.shape[1] != d:
                raise InvalidProblem(f"data.{inputs}", x.shape, f"of {d} columns, as data.X")
            d = x.shape[1]
            y = _as_array(getattr(self, labels), f"data.{labels}", 1)
            if len(y) != len(x):
                allowed = f"of length {len(x)}, one per row of data.{inputs}"
                if len(y) == x.shape[1]:
                    allowed += f" (its columns are samples: give {inputs}.T)"
                raise InvalidProblem(f"data.{labels}", y.shape, allowed)
            object.__setattr__(self, inputs, x)
            object.__setattr__(self, labels, y)

    def __repr__(self) -> str:
        shapes = [
            f"{name}: {np.shape(getattr(self, name))}"
            for name in ("X", "y", "X_test", "y_test")
            if getattr(self, name) is not None
        ]
        return f"Data({', '.join(shapes)})"

    @property
    def d(self) -> int:
        """Dimension of the inputs."""
        return int(self.X.shape[1])

    @property
    def rows(self) -> int:
        """Number of training samples."""
        return int(self.X.shape[0])

    @property
    def test_rows(self) -> int:
        """Number of test points, 0 without any."""
        return 0 if self.X_test is None else int(self.X_test.shape[0])

    @property
    def binary(self) -> bool:
        """Whether all labels of the test points are ±1."""
        return self.y_test is not None and bool(np.all(np.abs(self.y_test) == 1))


def as_dimension(d: int | None, data: Data | None) -> int:
    """d, from the data if there are any."""
    if data is None:
        if d is None:
            raise InvalidProblem("d", d, "an integer >= 1 (the dimension of the inputs), or data")
        return d
    if not isinstance(data, Data):
        raise InvalidProblem("data", data, "a Data(X, y, X_test, y_test)")
    if d is not None and d != data.d:
        raise InvalidProblem("d", d, f"{data.d}, the number of columns of data.X, or left out")
    return data.d


def _as_array(given: Any, field: str, ndim: int) -> np.ndarray:
    """A read-only view of finite real numbers; float64 unless they are floats already."""
    if hasattr(given, "detach"):  # a tensor of PyTorch, which may be part of a graph or on a GPU
        given = given.detach().cpu()
    try:
        found = np.asarray(given)
    except (TypeError, ValueError):  # rows of different lengths, or an object of another kind
        raise InvalidProblem(field, given, "an array of real numbers") from None
    if found.dtype.kind not in "fiub":
        raise InvalidProblem(field, found.dtype, "an array of real numbers")
    if found.ndim != ndim or 0 in found.shape:
        shape = "(rows, d)" if ndim == 2 else "(rows,)"
        column = " (give y.ravel())" if ndim == 1 and found.shape == (found.size, 1) else ""
        raise InvalidProblem(field, found.shape, f"an array of shape {shape}{column}")
    if not np.isfinite(found).all():
        raise InvalidProblem(field, "NaN or infinity", "finite numbers")
    largest = float(np.max(np.abs(found)))
    if largest > LARGEST:
        raise InvalidProblem(
            field,
            f"up to {largest:.3g}",
            f"at most {LARGEST:g}, or the errors overflow: divide by its standard deviation first",
        )
    view = found.astype(float) if found.dtype.kind != "f" else found.view()
    view.flags.writeable = False
    return view
