"""Activations and link functions: what `Problem.activation` and a teacher's link are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace

from ..errors import InvalidProblem
from ._breakpoints import Edges
from ._calculus import differentiate
from ._expression import format_tree
from ._latex import latex
from ._named import ALIASES, ATOMS, CONSTANTS
from ._program import Program
from ._tree import CENTERED, Call, Node, X, postorder
from ._user import check_derivative, user_atom

# Breakpoints are looked for in the first of these [-r, r] that suffices.  Beyond 16 the normal
# distribution has probability 1e-57, and beyond 39 its density is below the smallest double.
REACHES = (16.0, 40.0)
# A gap that does not shrink between two of these distances from a point is a jump.
JUMP_DISTANCES = (1e-4, 1e-6, 1e-8, 1e-10)
MODULE = re.compile(r"(?!__)[A-Za-z_]\w*(\.(?!__)[A-Za-z_]\w*)*:(?!__)[A-Za-z_]\w*", re.ASCII)
_LABEL = re.compile(r"(?!__)[A-Za-z_]\w*", re.ASCII)


class Function:
    r"""A real function of one real variable, with its derivative, kinks and jumps.

    Built-in names and expressions come from `as_function`; this constructor is for users' own
    callables.  A Function is immutable; two are equal if they are the same expression of the
    same atoms, so equal functions have equal values (a user's callable is itself an atom: two
    different callables are never equal, whatever their names).

    Parameters
    ----------
    callable : callable
        Takes an array and returns an array of the same shape, elementwise.  It is called with
        arrays of whichever library evaluates it (NumPy in theory).
    name : str, optional
        ``"module:attr"`` if that is where the callable can be imported from, or else a label of
        your own.  Needed for saving and hashing; a label identifies the function by your promise,
        and a file that holds it can be read only by giving the function again.
    derivative : callable, Function or str, optional
        σ'; checked against a numerical derivative.  Without it the derivative is numerical: an
        eight-point difference (relative error about 1e-12) whose points never straddle a kink.
    kinks, jumps : iterable of float, optional
        Where the callable is continuous but not smooth, and where it jumps.  Points that are not
        given are found by a scan of [-16, 16], exactly if the callable is piecewise smooth.

    Examples
    --------
    >>> import numpy as np
    >>> f = Function(lambda x: np.maximum(x, 0.1 * x), name="my_relu", kinks=[0.0], jumps=[])
    >>> f(np.array([-1.0, 2.0]))
    array([-0.1,  2. ])
    >>> f.breakpoints(-1, 1)
    array([0.])
    """

    _tree: Node

    def __init__(
        self,
        callable: Callable[[Any], Any],
        *,
        name: str | None = None,
        derivative: Callable[[Any], Any] | Function | str | None = None,
        kinks: Iterable[float] | None = None,
        jumps: Iterable[float] | None = None,
    ) -> None:
        if name is not None:
            _check_name(name)
        slope: Any = derivative
        if isinstance(derivative, Function | str):
            from ._specification import as_function

            slope = as_function(derivative, "derivative")._tree
        atom = user_atom(callable, name=name, derivative=slope, kinks=kinks, jumps=jumps)
        object.__setattr__(self, "_tree", Call(atom, (X,)))
        if derivative is not None:
            slope = Function._from_tree(differentiate(self._tree))
            check_derivative(atom, slope, derivative)

    @classmethod
    def _from_tree(cls, tree: Node) -> Function:
        self = object.__new__(cls)
        object.__setattr__(self, "_tree", tree)
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a Function cannot be changed")

    def __eq__(self, other: object) -> bool:
        return self._tree == other._tree if isinstance(other, Function) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._tree)

    def __reduce__(self) -> tuple[Callable[..., Function], tuple[Any, ...]]:
        if any(isinstance(node, Call) and node.atom.user for node in postorder(self._tree)):
            return Function._from_tree, (self._tree,)
        from ._specification import as_function

        return as_function, (self.canonical,)

    def __repr__(self) -> str:
        return f"<Function {self.name or 'of an anonymous callable'}>"

    def _repr_latex_(self) -> str:
        """The function as a formula, for notebooks."""
        return rf"$x \mapsto {latex(self._tree)}$"

    @property
    def name(self) -> str | None:
        """The canonical text, or None for an anonymous callable."""
        return self.canonical if self.is_named else None

    @cached_property
    def is_named(self) -> bool:
        """Whether the function has a canonical text, and so can be saved and hashed."""
        return not any(
            isinstance(node, Call) and node.atom.name is None for node in postorder(self._tree)
        )

    @cached_property
    def canonical(self) -> str:
        """The one text of this function: ``"tanh"``, ``"tanh(2*x) + 0.3*x**2"``,
        ``"centered(relu)"``; equal functions have equal texts.

        Raises
        ------
        InvalidProblem
            For an anonymous callable.
        """
        return format_tree(self._tree)

    @cached_property
    def _program(self) -> Program:
        return Program([self._tree], _mean)

    @cached_property
    def _program_with_derivative(self) -> Program:
        return Program([self._tree, self.derivative._tree], _mean)

    def __call__(self, x: Any) -> Any:
        """f(x), elementwise.

        Parameters
        ----------
        x : array or float
            An array of any library of the array API standard (NumPy, PyTorch, ...), whose type,
            dtype and device are kept, or a Python number.

        Returns
        -------
        array or float
            NaN or ±inf, without a warning, where the function has no finite value.
        """
        with np.errstate(all="ignore"):
            if isinstance(x, int | float) and not isinstance(x, np.generic):
                return float(self._program(np, np.float64(x))[0])
            xp = array_namespace(x)
            if not xp.isdtype(x.dtype, "real floating"):
                kinds = xp.__array_namespace_info__().default_dtypes()
                x = xp.astype(x, kinds["real floating"])
            return self._program(xp, x)[0]

    def with_derivative(self, x: Any) -> tuple[Any, Any]:
        """f(x) and f'(x), elementwise, with the parts that they share computed once.

        Parameters
        ----------
        x : array
            Real floating-point numbers, of any library of the array API standard.
        """
        with np.errstate(all="ignore"):
            value, slope = self._program_with_derivative(array_namespace(x), x)
        return value, slope

    @cached_property
    def derivative(self) -> Function:
        """f', exact for names and expressions; at a kink the mean of the one-sided values.

        Raises
        ------
        InvalidProblem
            When the function has a jump, which f' cannot represent.
        """
        if self.has_jumps:
            nearest = sorted(self._jumps.tolist(), key=abs)[:3]
            where = ", ".join(f"{point:.6g}" for point in nearest)
            raise InvalidProblem(
                "function",
                self.name or self,
                f"without jumps where a derivative is needed (it jumps at x = {where}); try a "
                "smooth function close to it, such as 'tanh(10*x)' for 'sign'",
            )
        return Function._from_tree(differentiate(self._tree))

    @cached_property
    def has_jumps(self) -> bool:
        """Whether f is discontinuous (or unbounded) somewhere in [-16, 16]."""
        return self._jumps.size > 0

    @cached_property
    def _edges(self) -> dict[float, Edges]:
        return {}

    def _edges_within(self, reach: float) -> Edges:
        """The breakpoints in [-reach, reach], found once."""
        if reach not in self._edges:
            self._edges[reach] = Edges(self._tree, -reach, reach, Function._from_tree)
        return self._edges[reach]

    @cached_property
    def _jumps(self) -> np.ndarray:
        """The suspected points where the two sides stay apart, or grow, as they come closer."""
        points = self._edges_within(REACHES[0]).suspects
        scale = np.maximum(1.0, np.abs(points))
        sides = [(self(points - h * scale), self(points + h * scale)) for h in JUMP_DISTANCES]
        gaps = np.array([np.abs(right - left) for left, right in sides])
        size = np.max(np.abs(sides), axis=1)
        stays = (gaps[1:] > 0.5 * gaps[:-1]) & (gaps[1:] > 1e-11 * size.max(axis=0))
        grows = size[1:] > 1.2 * size[:-1]
        bad = stays.any(axis=0) | grows.all(axis=0) | ~np.isfinite(gaps).all(axis=0)
        return points[bad]

    def breakpoints(self, lower: float, upper: float) -> np.ndarray:
        """Where f, f' or f'' is not smooth: sorted, in [lower, upper].

        A point that turns out to be smooth may be listed (``abs(x**2)`` lists 0).
        """
        if not (lower <= upper and math.isfinite(lower) and math.isfinite(upper)):
            raise InvalidProblem("interval", (lower, upper), "two finite numbers, lower <= upper")
        reach = REACHES[0] if -REACHES[0] <= lower and upper <= REACHES[0] else REACHES[1]
        while reach < max(-lower, upper):
            reach *= 2
        points = self._edges_within(reach).breakpoints
        return points[(lower <= points) & (points <= upper)]

    def to_data(self) -> str | dict[str, Any]:
        """The function as TOML or JSON data; `as_function` reads it back.

        Returns
        -------
        str or dict
            ``"tanh"``, ``"tanh(2*x)"``, ``"module:attr"`` or ``{"name": "relu", "centered": True}``
            (``"expression"`` in place of ``"name"`` for an expression).
        """
        if isinstance(self._tree, Call) and self._tree.atom == CENTERED:
            inner = self._tree.args[0]
            plain = inner == X or (isinstance(inner, Call) and inner.args == (X,))
            text = Function._from_tree(inner).canonical
            return {"name" if plain else "expression": text, "centered": True}
        return self.canonical


def _mean(tree: Node) -> float:
    from ..gaussian import moments

    return float(moments(Function._from_tree(tree)).mean)


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not (MODULE.fullmatch(name) or _is_label(name)):
        raise InvalidProblem(
            "name", name, "'module:attr' or an identifier that is not a built-in name"
        )


def _is_label(name: str) -> bool:
    taken = name in ATOMS or name in ALIASES or name in CONSTANTS or name in ("x", "identity")
    return bool(_LABEL.fullmatch(name)) and not taken
