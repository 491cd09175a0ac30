"""Polynomial trees, exactly: coefficients as fractions, and multiple roots made simple.

A multiple root of u is lost in rounding (a triple one to 1e-5).  For a polynomial the quotient
u / gcd(u, u') has the same roots, each of them simple, and floats are fractions: no rounding.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyadd, polyder, polydiv, polymul, polypow, polysub
from numpy.typing import NDArray

from ._calculus import expand
from ._tree import ADD, DIV, MUL, NEG, POW, SUB, Call, Const, Node, postorder

MAX_DEGREE = 24

Coefficients = NDArray[np.object_]  # fractions, of 1, x, x**2, ..., the last one not zero


def with_simple_roots(root: Node, level: float) -> Polynomial | None:
    """The polynomial with the roots of ``tree - level``, each simple.

    None when the tree is not a polynomial of moderate degree, or has no multiple root (its own
    form, perhaps a product, is then the best one to evaluate).
    """
    polynomial = _coefficients(root)
    if polynomial is None or len(polynomial) < 3:
        return None
    polynomial = polysub(polynomial, _fractions(level))
    common, remainder = polynomial, polyder(polynomial)
    while remainder.any():
        common, remainder = remainder, polydiv(common, remainder)[1]
    if len(common) == 1:
        return None
    quotient = polydiv(polynomial, common)[0]
    largest = max(abs(c) for c in quotient)
    return Polynomial(np.array([float(c / largest) for c in quotient]))


def _fractions(*values: float) -> Coefficients:
    return np.array([Fraction(value) for value in values], dtype=object)


def _coefficients(root: Node) -> Coefficients | None:
    done: dict[Node, Coefficients] = {}
    for node in postorder(root):
        if isinstance(node, Const):
            done[node] = _fractions(node.value)
        elif isinstance(node, Call):
            found = _combined(node, [done[arg] for arg in node.args])
            if found is None or len(found) > MAX_DEGREE + 1:
                return None
            done[node] = found
        else:
            done[node] = _fractions(0.0, 1.0)
    return done[root]


def _combined(node: Call, args: list[Coefficients]) -> Coefficients | None:
    atom = node.atom
    if atom == ADD:
        return polyadd(*args)
    if atom == SUB:
        return polysub(*args)
    if atom == NEG:
        return -args[0]
    if atom == MUL:
        return polymul(*args)
    if atom == DIV and len(args[1]) == 1 and args[1][0]:
        return args[0] / args[1][0]
    if atom == POW and isinstance(node.args[1], Const):
        exponent = node.args[1].value
        if exponent == int(exponent) and 0 <= exponent <= MAX_DEGREE:
            return polypow(args[0], int(exponent))
    if atom.definition is not None:
        return _coefficients(expand(node))
    return None
