"""Polynomial trees, exactly: coefficients as fractions, and multiple roots made simple.

A multiple root of u is lost in rounding (a triple one to 1e-5).  For a polynomial the quotient
u / gcd(u, u') has the same roots, each of them simple, and floats are fractions: no rounding.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.polynomial import Polynomial

from ._calculus import expand
from ._tree import ADD, DIV, MUL, NEG, POW, SUB, Call, Const, Node, postorder

MAX_DEGREE = 24
Coefficients = tuple[Fraction, ...]  # of 1, x, x**2, ..., the last one not zero


def with_simple_roots(root: Node, level: float) -> Polynomial | None:
    """The polynomial with the roots of ``tree - level``, each simple.

    None when the tree is not a polynomial of moderate degree, or has no multiple root (its own
    form, perhaps a product, is then the best one to evaluate).
    """
    polynomial = _coefficients(root)
    if polynomial is None or len(polynomial) < 3:
        return None
    polynomial = _trimmed((polynomial[0] - Fraction(level), *polynomial[1:]))
    common = polynomial
    remainder = _trimmed(tuple(k * c for k, c in enumerate(polynomial))[1:])
    while remainder:
        common, remainder = remainder, _divided(common, remainder)[1]
    if len(common) == 1:
        return None
    quotient = _divided(polynomial, common)[0]
    largest = max(abs(c) for c in quotient)
    return Polynomial(np.array([float(c / largest) for c in quotient]))


def _coefficients(root: Node) -> Coefficients | None:
    done: dict[Node, Coefficients] = {}
    for node in postorder(root):
        if isinstance(node, Const):
            done[node] = _trimmed((Fraction(node.value),))
        elif isinstance(node, Call):
            found = _combined(node, [done[arg] for arg in node.args])
            if found is None or len(found) > MAX_DEGREE + 1:
                return None
            done[node] = found
        else:
            done[node] = (Fraction(0), Fraction(1))
    return done[root]


def _combined(node: Call, args: list[Coefficients]) -> Coefficients | None:
    atom = node.atom
    if atom == ADD:
        return _sum(*args)
    if atom == SUB:
        return _sum(args[0], tuple(-c for c in args[1]))
    if atom == NEG:
        return tuple(-c for c in args[0])
    if atom == MUL:
        return _product(*args)
    if atom == DIV and len(args[1]) == 1:
        return tuple(c / args[1][0] for c in args[0])
    if atom == POW and isinstance(node.args[1], Const):
        exponent = node.args[1].value
        if exponent == int(exponent) and 0 <= exponent <= MAX_DEGREE:
            result: Coefficients = (Fraction(1),)
            for _ in range(int(exponent)):
                result = _product(result, args[0])
            return result
    if atom.definition is not None:
        return _coefficients(expand(node))
    return None


def _sum(a: Coefficients, b: Coefficients) -> Coefficients:
    size = max(len(a), len(b))
    zero = Fraction(0)
    padded = (p + (zero,) * (size - len(p)) for p in (a, b))
    return _trimmed(tuple(x + y for x, y in zip(*padded)))


def _product(a: Coefficients, b: Coefficients) -> Coefficients:
    result = [Fraction(0)] * (len(a) + len(b))
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            result[i + j] += x * y
    return _trimmed(tuple(result))


def _divided(a: Coefficients, b: Coefficients) -> tuple[Coefficients, Coefficients]:
    """Quotient and remainder."""
    rest, quotient = list(a), [Fraction(0)] * max(len(a) - len(b) + 1, 0)
    for shift in reversed(range(len(quotient))):
        quotient[shift] = rest[shift + len(b) - 1] / b[-1]
        for k, c in enumerate(b):
            rest[shift + k] -= quotient[shift] * c
    return _trimmed(tuple(quotient)), _trimmed(tuple(rest[: len(b) - 1]))


def _trimmed(coefficients: Coefficients) -> Coefficients:
    size = len(coefficients)
    while size and coefficients[size - 1] == 0:
        size -= 1
    return coefficients[:size]
