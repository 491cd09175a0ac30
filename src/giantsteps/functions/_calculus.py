"""Exact derivatives of trees: (f∘g)' = (f'∘g) g', atom by atom."""

from __future__ import annotations

from ._expression import parse_atom
from ._named import ATOMS
from ._numerical import numerical_derivative
from ._tree import (
    ADD,
    CENTERED,
    DIV,
    MUL,
    NEG,
    POW,
    SUB,
    Atom,
    Call,
    Const,
    Node,
    Variable,
    X,
    add,
    div,
    mul,
    neg,
    postorder,
    power,
    sub,
    substitute,
)

ZERO, ONE = Const(0.0), Const(1.0)


def differentiate(root: Node) -> Node:
    """The derivative of a tree in x, almost everywhere (a jump contributes nothing)."""
    return _differentiate(root, "x")


def expand(node: Call) -> Node:
    """A call of a defined atom as a tree in other atoms."""
    assert node.atom.definition is not None
    body = parse_atom(node.atom.definition, node.atom.variables)
    return substitute(body, dict(zip(node.atom.variables, node.args)))


def _differentiate(root: Node, variable: str) -> Node:
    done: dict[Node, Node] = {}
    for node in postorder(root):
        if isinstance(node, Const):
            done[node] = ZERO
        elif isinstance(node, Variable):
            done[node] = ONE if node.name == variable else ZERO
        else:
            done[node] = _chain_rule(node, [done[arg] for arg in node.args])
    return done[root]


def _chain_rule(node: Call, slopes: list[Node]) -> Node:
    atom, args = node.atom, node.args
    if all(slope == ZERO for slope in slopes):
        return ZERO
    if atom == ADD:
        return add(*slopes)
    if atom == SUB:
        return sub(*slopes)
    if atom == NEG:
        return neg(*slopes)
    if atom == CENTERED:
        return slopes[0]
    if atom == MUL:
        return add(mul(slopes[0], args[1]), mul(args[0], slopes[1]))
    if atom == DIV:
        (u, v), (du, dv) = args, slopes
        if dv == ZERO:
            return div(du, v)
        return div(sub(mul(du, v), mul(u, dv)), power(v, Const(2.0)))
    if atom == POW:
        return _power_rule(node, *args, *slopes)
    values = dict(zip(atom.variables, args))
    total: Node = ZERO
    for partial, slope in zip(_partials(atom), slopes):
        if slope != ZERO:
            total = add(total, mul(substitute(partial, values), slope))
    return total


def _power_rule(node: Call, u: Node, v: Node, du: Node, dv: Node) -> Node:
    """(u^v)' = v u^{v−1} u' + u^v log(u) v'."""
    total: Node = ZERO
    if du != ZERO:
        total = mul(mul(v, power(u, sub(v, ONE))), du)
    if dv != ZERO:
        total = add(total, mul(mul(node, Call(ATOMS["log"], (u,))), dv))
    return total


def _partials(atom: Atom) -> list[Node]:
    if atom.definition is not None:
        body = parse_atom(atom.definition, atom.variables)
        return [_differentiate(body, variable) for variable in atom.variables]
    if atom.user and not atom.partials:
        assert atom.value is not None
        breaks = tuple(sorted({*atom.kinks, *atom.jumps}))
        slope = Atom(None, numerical_derivative(atom.value, breaks), jumps=breaks, user=True)
        return [Call(slope, (X,))]
    return [parse_atom(p, atom.variables) if isinstance(p, str) else p for p in atom.partials]
