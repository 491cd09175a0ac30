"""Functions of one variable as syntax trees over atoms: numbers, ``x``, and calls ``atom(u, ...)``.

Everything that giantsteps knows about a function (its value, derivative, kinks, text) is read off
one tree: a built-in name is the tree ``tanh(x)``, a user's callable is a tree with one atom of its
own, and an expression is any other tree.  Trees are immutable, hashable and compare by value.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar
from weakref import WeakValueDictionary

VARIABLES = ("x", "y", "z")


@dataclass(frozen=True)
class Atom:
    """An elementary function of one to three arguments, called x, y, z below."""

    name: str | None  # how the atom is written; None for a user's anonymous callable
    #: ``value(xp, x, ...)`` with xp the array namespace; None when ``definition`` gives it.
    value: Callable[..., Any] | None = None
    #: The partial derivatives almost everywhere, one per argument, as text or trees in x, y, z.
    partials: tuple[str | Node, ...] = ()
    #: The atom is continuous but not smooth (kinks), or not continuous (jumps, poles), where its
    #: edge crosses one of these values.
    kinks: tuple[float, ...] = ()
    jumps: tuple[float, ...] = ()
    edge: str = "x"  # what crosses them, as text; the argument itself by default
    #: Instead of all the above: the atom as an expression in other atoms.
    definition: str | None = None
    arity: int = 1  # the number of arguments
    #: Whether it is a user's callable; without ``partials`` its derivative is numerical.
    user: bool = False

    @property
    def variables(self) -> tuple[str, ...]:
        return VARIABLES[: self.arity]


@dataclass(frozen=True)
class Const:
    """A finite number."""

    value: float


@dataclass(frozen=True)
class Variable:
    """The argument of the function (or, inside an atom's own formulas, one of its arguments)."""

    name: str


class Call:
    """An atom applied to arguments.

    Equal calls are one object while they live, so that the many shared parts of a derivative are
    compared and hashed at no cost.
    """

    __slots__ = ("__weakref__", "_hash", "args", "atom")
    atom: Atom
    args: tuple[Node, ...]
    _hash: int
    _living: ClassVar[_Living] = WeakValueDictionary()

    def __new__(cls, atom: Atom, args: tuple[Node, ...]) -> Call:
        self = cls._living.get((atom, args))
        if self is None:
            self = super().__new__(cls)
            self.atom, self.args = atom, args
            self._hash = hash((atom, args))
            self = cls._living.setdefault((atom, args), self)
        return self

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Call):
            return NotImplemented
        return self._hash == other._hash and self.atom == other.atom and self.args == other.args

    def __reduce__(self) -> tuple[type, tuple[Atom, tuple[Node, ...]]]:
        return Call, (self.atom, self.args)

    def __repr__(self) -> str:
        return f"{self.atom.name}({', '.join(map(repr, self.args))})"


Node = Const | Variable | Call
_Living = WeakValueDictionary[tuple[Atom, tuple[Node, ...]], Call]


@dataclass(frozen=True)
class Operator:
    """An operator of Python as the value of an atom."""

    apply: Callable[..., Any]

    def __call__(self, xp: Any, *args: Any) -> Any:
        return self.apply(*args)


X = Variable("x")
ZERO, ONE = Const(0.0), Const(1.0)

ADD = Atom("+", Operator(operator.add), arity=2)
SUB = Atom("-", Operator(operator.sub), arity=2)
MUL = Atom("*", Operator(operator.mul), arity=2)
DIV = Atom("/", Operator(operator.truediv), arity=2)
NEG = Atom("neg", Operator(operator.neg))
# u - E u(z), z ~ N(0, 1): the constant is filled in when the tree becomes a program.
CENTERED = Atom("centered", Operator(operator.sub))


def integer_exponent(exponent: object) -> int | None:
    """The exponent as an int when it is a whole number small enough to multiply out."""
    if isinstance(exponent, float) and exponent == int(exponent) and 1 <= abs(exponent) <= 64:
        return int(exponent)
    return None


def _power(xp: Any, base: Any, exponent: Any) -> Any:
    """u^v; a whole exponent by repeated squaring (NumPy's own is a hundred times slower)."""
    n = integer_exponent(exponent)
    if n is None or isinstance(base, float):
        return base**exponent
    result, square, k = None, base, abs(n)
    while k:
        if k & 1:
            result = square if result is None else result * square
        k >>= 1
        if k:
            square = square * square
    assert result is not None
    return result if n > 0 else 1.0 / result


POW = Atom("**", _power, arity=2)


def add(a: Node, b: Node) -> Node:
    """a + b, simplified."""
    if isinstance(a, Const) and isinstance(b, Const):
        return _folded(ADD, a.value + b.value, a, b)
    if a == ZERO:
        return b
    return a if b == ZERO else Call(ADD, (a, b))


def sub(a: Node, b: Node) -> Node:
    if isinstance(a, Const) and isinstance(b, Const):
        return _folded(SUB, a.value - b.value, a, b)
    if b == ZERO:
        return a
    return neg(b) if a == ZERO else Call(SUB, (a, b))


def neg(a: Node) -> Node:
    """-a, simplified; a negative number is a number, not a negation."""
    if isinstance(a, Const):
        return Const(0.0 - a.value)
    if isinstance(a, Call) and a.atom == NEG:
        return a.args[0]
    return Call(NEG, (a,))


def mul(a: Node, b: Node) -> Node:
    if isinstance(a, Const) and isinstance(b, Const):
        return _folded(MUL, a.value * b.value, a, b)
    if ZERO in (a, b):
        return ZERO
    if a == ONE:
        return b
    if b == ONE:
        return a
    if isinstance(b, Const):
        a, b = b, a
    return neg(b) if a == Const(-1.0) else Call(MUL, (a, b))


def div(a: Node, b: Node) -> Node:
    if b == ONE:
        return a
    return ZERO if a == ZERO else Call(DIV, (a, b))


def power(a: Node, exponent: Node) -> Node:
    if exponent == ZERO:
        return ONE
    return a if exponent == ONE else Call(POW, (a, exponent))


def rebuilt(atom: Atom, args: tuple[Node, ...]) -> Node:
    """The call, simplified if it is arithmetic."""
    simplify: dict[Atom, Callable[..., Node]]
    simplify = {ADD: add, SUB: sub, MUL: mul, DIV: div, NEG: neg, POW: power}
    return simplify[atom](*args) if atom in simplify else Call(atom, args)


def _folded(atom: Atom, value: float, a: Node, b: Node) -> Node:
    return Const(value + 0.0) if math.isfinite(value) else Call(atom, (a, b))


def postorder(root: Node) -> Iterator[Node]:
    """Every distinct node of a tree, arguments before calls, without recursion."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if node in seen:
            continue
        if ready or not isinstance(node, Call):
            seen.add(node)
            yield node
        else:
            stack.append((node, True))
            stack.extend((arg, False) for arg in reversed(node.args))


def substitute(root: Node, values: dict[str, Node]) -> Node:
    """The tree with each variable replaced by a tree, simplified where that changes it."""
    done: dict[Node, Node] = {}
    for node in postorder(root):
        if isinstance(node, Call):
            args = tuple(done[arg] for arg in node.args)
            done[node] = node if args == node.args else rebuilt(node.atom, args)
        elif isinstance(node, Variable):
            done[node] = values[node.name]
        else:
            done[node] = node
    return done[root]
