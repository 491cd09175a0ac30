"""Errors of a linear probe against the number of labelled samples."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from giantsteps.answers import _export
from giantsteps.answers._leaves import Leaf, Record, as_leaf
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.displays import Display

#: Two-sided 95 % of a normal law.
_TWO_SIDED_95 = 1.959963984540054

#: "theory": predicted from a pool of features; "measured": the mean over random splits of it.
ProbeSource: TypeAlias = Literal["theory", "measured"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ProbeCurve(_export.Table, Record):
    r"""Test and training error of a ridge probe, for one or many sizes of its training set.

    The probe minimises n⁻¹Σ(y − b − φᵀa)² + λ‖a‖² over n labelled rows of features φ.
    A field is a float for one training set, an array for several.

    Attributes
    ----------
    samples : float or ndarray
        n, labelled rows that the probe is trained on.
    penalty : float or ndarray
        λ; scikit-learn's ``Ridge(alpha)`` has alpha = nλ.
    test : float or ndarray
        Mean square error on new rows, label noise included, averaged over the outputs; NaN where
        it cannot be predicted or measured.
    train : float or ndarray
        Mean square error on the n rows themselves.
    standard_error : float or ndarray
        Of ``test``: for a prediction, the variation between pools of the same size and what the
        theory neglects; for a measured curve, that of the mean over the splits.
    by_output : ndarray
        ``test`` of each output, on the last axis.
    classification_error : float, ndarray or None
        Fraction of new rows on the wrong side of the threshold, or whose largest output is not
        that of their class; None if the labels are not classes.
    classification_standard_error : float, ndarray or None
        Of ``classification_error``.
    effective_penalty : float, ndarray or None
        κ of the prediction.
    degrees_of_freedom : float, ndarray or None
        Number of directions that the probe fits, including the intercept.
    probes : float, ndarray or None
        Number of probes trained: for a prediction, on subsets of the pool where the theory alone
        is not precise enough, and zero elsewhere; for a measured curve, one per split.
    rows, features : int
        Shape of the pool.
    intercept : bool
        Whether the probe has an intercept, which is not penalised.
    threshold : float or None
        Value that separates the two classes of a single output.
    source : {"theory", "measured"}
        Where the numbers come from.
    violated : tuple of str
        Assumptions of the prediction that these training sets do not satisfy.
    """

    samples: Leaf
    penalty: Leaf
    test: Leaf
    train: Leaf
    standard_error: Leaf
    by_output: FloatArray
    classification_error: Leaf | None = None
    classification_standard_error: Leaf | None = None
    effective_penalty: Leaf | None = None
    degrees_of_freedom: Leaf | None = None
    probes: Leaf | None = None
    rows: int
    features: int
    intercept: bool
    threshold: float | None = None
    source: ProbeSource
    violated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        shape = np.shape(self.samples)
        for name in _LEAVES:
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_leaf(value, shape, name))
        object.__setattr__(
            self, "by_output", as_leaf(self.by_output, shape, "by_output", ("output",))
        )
        object.__setattr__(self, "violated", tuple(self.violated))

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the fields, ``()`` for one training set."""
        return np.shape(self.samples)

    @property
    def band(self) -> tuple[Leaf, Leaf]:
        """Lower and upper limit of ``test`` at 95 %: ±1.96 standard errors on a log scale."""
        test, error = np.asarray(self.test), np.asarray(self.standard_error)
        relative = np.divide(error, test, out=np.zeros_like(test), where=np.isfinite(test))
        spread = np.exp(_TWO_SIDED_95 * relative)
        low, high = test / spread, test * spread
        return as_leaf(low, self.shape, "band"), as_leaf(high, self.shape, "band")

    def plot(
        self, measured: ProbeCurve | None = None, quantity: str = "test", **options: Any
    ) -> Display:
        """Draw a `ProbeCurveDisplay`; ``options`` are ``label``, ``color`` and ``ax``."""
        from giantsteps.displays import ProbeCurveDisplay

        return ProbeCurveDisplay(self, measured, quantity).plot(**options)

    def to_columns(self) -> dict[str, list[Any]]:
        """The table as columns, one row per training set."""
        columns: dict[str, list[Any]] = {}
        for name in _LEAVES:
            value = getattr(self, name)
            if value is not None:
                columns[name] = np.ravel(value).tolist()
        columns["samples"] = [round(n) for n in columns["samples"]]
        low, high = self.band
        columns["band.low"], columns["band.high"] = np.ravel(low).tolist(), np.ravel(high).tolist()
        if self.by_output.shape[-1] > 1:
            outputs = self.by_output.reshape(-1, self.by_output.shape[-1])
            for k in range(outputs.shape[1]):
                columns[f"by_output.{k}"] = outputs[:, k].tolist()
        columns["source"] = [self.source] * len(columns["samples"])
        return columns

    def __repr__(self) -> str:
        columns = self.to_columns()
        names = ("samples", "penalty", "test", "standard_error", "train", "classification_error")
        shown = [name for name in names if name in columns]
        cells = [[f"{value:.5g}" for value in columns[name]] for name in shown]
        widths = [max(map(len, [name, *column])) for name, column in zip(shown, cells)]
        lines = ["  ".join(name.rjust(width) for name, width in zip(shown, widths))]
        lines += ["  ".join(map(str.rjust, row, widths)) for row in zip(*cells)]
        head = f"ProbeCurve ({self.source}; pool of {self.rows} rows, {self.features} features)"
        notes = [f"not satisfied: {text}" for text in self.violated]
        return "\n  ".join([head, *lines, *notes])


_LEAVES = tuple(item.name for item in fields(ProbeCurve) if "Leaf" in str(item.type))
