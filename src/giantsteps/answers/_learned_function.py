"""The function that the network learned along one direction."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from giantsteps.answers._answer import Answer
from giantsteps.answers._leaves import as_leaf, over
from giantsteps.errors import InvalidProblem
from giantsteps.types import FloatArray

if TYPE_CHECKING:
    from giantsteps.displays import Display


def direction_of(along: str, rank: int) -> int | None:
    """The number of the teacher's direction, of ``rank``, that is asked for; None for the spike."""
    names = [f"x{number}" for number in range(rank)]
    if along == "spike":
        return None
    if along == "teacher":
        return 0
    if along not in names:
        allowed = ["spike", "teacher", *(names if rank > 1 else ())]
        raise InvalidProblem("along", along, " or ".join(f'"{name}"' for name in allowed))
    return names.index(along)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LearnedFunction(Answer):
    r"""The learned function seen along one direction u of the input.

    .. math:: m(x) = E[\hat f \mid \langle u, \cdot\rangle = x], \qquad
              b(x)^2 = Var[\hat f \mid \langle u, \cdot\rangle = x]

    ======  ==================  ================================================================
    symbol  attribute           meaning
    ======  ==================  ================================================================
    u       ``along``           "spike", the first of the weights; "teacher", β*; or "x0", "x1", …,
                                one of a teacher's several directions
    x       ``x``               points along it, common to all cells of a grid
    m, b    ``mean``, ``band``  mean and spread of the prediction there: the points on the last axis
    f̂                           the trained network
    ======  ==================  ================================================================

    Attributes
    ----------
    target : ndarray or None
        The teacher along the same direction, E[f* | x], of the shape of ``mean``.
    standard_error : ndarray or None
        Simulation: of ``mean``.

    References
    ----------
    theory §5c; cui2024.
    """

    x: FloatArray
    mean: FloatArray = field(metadata=over("x"))
    band: FloatArray = field(metadata=over("x"))
    along: str
    target: FloatArray | None = field(default=None, metadata=over("x"))
    standard_error: FloatArray | None = field(default=None, metadata=over("x"))

    _row_dims: ClassVar[tuple[str, ...]] = ("x",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "x", as_leaf(self.x, (), "x", ("points",)))
        if self.along not in ("spike", "teacher") and not re.fullmatch(r"x\d", self.along):
            raise ValueError(f"along = {self.along!r}: must be 'spike', 'teacher', 'x0', 'x1', …")
        for name in self._leaves:
            value = getattr(self, name)
            if value is not None and value.shape[-1] != self.x.size:
                raise ValueError(f"{name} has {value.shape[-1]} points, x has {self.x.size}")

    def _axes(self) -> dict[str, FloatArray]:
        return {"x": self.x}

    @classmethod
    def _stack_fields(cls, shape: tuple[int, ...], cells: list[Any]) -> dict[str, Any]:
        first = cells[0]
        if any(c.along != first.along or not np.array_equal(c.x, first.x) for c in cells):
            raise ValueError("cells of a grid need one direction and the same points x")
        return super()._stack_fields(shape, cells) | {"x": first.x, "along": first.along}

    @classmethod
    def _from_variables(cls, variables: Mapping[str, Any]) -> dict[str, Any]:
        points = np.asarray(variables["x"])
        return super()._from_variables(variables) | {"x": points.reshape(-1, points.shape[-1])[0]}

    def plot(self, x: str | None = None, quantity: str | None = None, **options: Any) -> Display:
        """Draw mean, band and target along the direction, or over a grid the mean."""
        from giantsteps.displays import LearnedFunctionDisplay

        if self.shape or quantity is not None or self.source == "simulation":
            return super().plot("x" if x is None else x, quantity, **options)
        return LearnedFunctionDisplay.from_answers(self, **options)
