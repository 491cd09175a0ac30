"""Text ↔ tree: a whitelist parser over Python's syntax tree, and the canonical text of a tree.

The language: numbers, ``x``, ``pi``, ``e``, ``+ - * / **``, parentheses, and calls to the named
functions, ``max``, ``min``, ``clip`` and ``centered``.  Nothing is ever evaluated as Python: the
text is limited in characters, length and nesting before ``ast.parse`` sees it, and every node that
is not listed here is refused.
"""

from __future__ import annotations

import ast
import difflib
import math
import re
import warnings
from functools import cache

import numpy as np

from ..errors import InvalidProblem
from ._named import ALIASES, ATOMS, CONSTANTS, names
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
    postorder,
)

MAX_LENGTH = 1000
MAX_DEPTH = 64
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_+\-*/()., \t\r\n]")
_COORDINATE = re.compile(r"x\d*")
_LANGUAGE = (
    "an expression in x with numbers, pi, e, + - * / **, parentheses "
    "and the named functions (such as 'tanh(2*x) + 0.3*x**2')"
)
_HINTS = {
    "^": " (a power is written x**2)",
    "²": " (a power is written x**2)",
    "√": " (write sqrt(x))",
    "π": " (write pi)",
    "·": " (a product is written 2*x)",
    "×": " (a product is written 2*x)",
    ":": " (a function of your own is written module:attr)",
    "<": " (use step, max, min or clip)",
    ">": " (use step, max, min or clip)",
}
_BINARY: dict[type[ast.operator], Atom] = {
    ast.Add: ADD,
    ast.Sub: SUB,
    ast.Mult: MUL,
    ast.Div: DIV,
    ast.Pow: POW,
}


def parse(text: str, field: str = "expression") -> Node:
    """The tree of an expression, or of the name of a function.

    Raises
    ------
    InvalidProblem
        When the text is not in the language; it names the first offence.
    """
    stripped = text.strip()
    if _is_function_name(stripped):
        return _named_tree(stripped)
    return _Parser(text, field, ("x",)).tree()


@cache
def parse_atom(text: str, variables: tuple[str, ...]) -> Node:
    """The tree of a formula of the registry, in the variables of its atom."""
    return _Parser(text, "formula", variables).tree()


def resolve(name: str) -> str:
    """The one name behind an alias."""
    return ALIASES.get(name, name)


def _is_function_name(name: str) -> bool:
    name = resolve(name)
    return name == "identity" or (
        name in ATOMS and ATOMS[name].arity == 1 and ATOMS[name] != CENTERED
    )


def _named_tree(name: str) -> Node:
    name = resolve(name)
    return X if name == "identity" else Call(ATOMS[name], (X,))


class _Parser:
    """One text on its way to a tree."""

    def __init__(self, text: str, field: str, variables: tuple[str, ...]) -> None:
        self.text, self.field, self.variables = text, field, variables

    def refuse(self, reason: str) -> InvalidProblem:
        return InvalidProblem(self.field, self.text, f"{_LANGUAGE}; {reason}")

    def tree(self) -> Node:
        tree = self.node(self.syntax(), 0)
        _check_constants(tree, self)
        return tree

    def syntax(self) -> ast.expr:
        """Python's syntax tree, after the checks that keep its parser quick and safe."""
        if len(self.text) > MAX_LENGTH:
            raise self.refuse(f"at most {MAX_LENGTH} characters, not {len(self.text)}")
        if not self.text.strip():
            raise self.refuse("not empty")
        bad = _FORBIDDEN.search(self.text)
        if bad:
            hint = _HINTS.get(bad[0], "")
            raise self.refuse(f"the character {bad[0]!r} is not part of it{hint}")
        depth = 0
        for character in self.text:
            depth += (character == "(") - (character == ")")
            if depth > MAX_DEPTH:
                raise self.refuse(f"at most {MAX_DEPTH} nested parentheses")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(" ".join(self.text.split()), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError) as error:
            reason = error.msg if isinstance(error, SyntaxError) else "it cannot be read"
            if re.search(r"\d\s*[(x]", self.text):
                reason += " (a product is written 2*x)"
            raise self.refuse(f"it has a syntax error: {reason}") from error

    def node(self, syntax: ast.expr, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.refuse(f"at most {MAX_DEPTH} levels of operations")
        match syntax:
            case ast.Constant(value=value):
                return self.number(value)
            case ast.Name(id=name):
                return self.variable(name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.node(operand, depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                inner = self.node(operand, depth + 1)
                if isinstance(inner, Const):
                    return Const(0.0 - inner.value)
                return Call(NEG, (inner,))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                args = (self.node(left, depth + 1), self.node(right, depth + 1))
                return Call(_BINARY[type(op)], args)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self.call(name, args, depth + 1)
            case ast.Call(func=ast.Attribute(attr=name)) | ast.Attribute(attr=name):
                raise self.refuse(f"functions are written by their name alone: {name}(x)")
        hint = _HINTS["·"] if isinstance(syntax, ast.Call) else ""
        raise self.refuse(f"'{ast.unparse(syntax)}' is not part of it{hint}")

    def number(self, value: object) -> Const:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.refuse(f"{value!r} is not a real number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.refuse("every number must be finite")
        return Const(number)

    def variable(self, name: str) -> Node:
        if name in self.variables:
            return Variable(name)
        if name in CONSTANTS:
            return Const(CONSTANTS[name])
        if _is_function_name(name):
            raise self.refuse(f"the function {name} needs its argument: {name}(x)")
        raise self.unknown(name)

    def call(self, name: str, args: list[ast.expr], depth: int) -> Node:
        if name in self.variables:
            raise self.refuse(f"{name} is no function{_HINTS['·']}")
        name = resolve(name)
        if name == "identity":
            self.count(name, args, 1)
            return self.node(args[0], depth)
        if name not in ATOMS:
            raise self.unknown(name)
        atom = ATOMS[name]
        if atom == CENTERED:
            self.count(name, args, 1)
            match args[0]:
                case ast.Name(id=function) if _is_function_name(function):
                    inner = _named_tree(function)
                case _:
                    inner = self.node(args[0], depth)
            already = isinstance(inner, Call) and inner.atom == CENTERED
            return inner if already else Call(CENTERED, (inner,))
        if name in ("max", "min") and len(args) > 2:
            first = self.node(args[0], depth)
            for arg in args[1:]:
                first = Call(atom, (first, self.node(arg, depth + len(args))))
            return first
        self.count(name, args, atom.arity)
        return Call(atom, tuple(self.node(arg, depth) for arg in args))

    def count(self, name: str, args: list[ast.expr], arity: int) -> None:
        if len(args) != arity:
            raise self.refuse(f"{name} takes {arity} argument{'s' * (arity > 1)}, not {len(args)}")

    def unknown(self, name: str) -> InvalidProblem:
        if _COORDINATE.fullmatch(name):
            return self.refuse(self.coordinates(name))
        known = ["x", *names(), "max", "min", "clip", "centered", *ALIASES]
        close = difflib.get_close_matches(name.lower(), known, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(names())}"
        return self.refuse(f"{name} is neither x nor a known function; {hint}")

    def coordinates(self, name: str) -> str:
        """What to do about a coordinate that is not among the variables."""
        if self.variables == ("x",):
            return (
                f"{name} is a coordinate of a teacher of several directions, which is written "
                '{expression = "x0*x1", rank = 2}, or gs.MultiIndex("x0*x1", rank=2)'
            )
        known = f"{', '.join(self.variables[:-1])} and {self.variables[-1]}"
        if name == "x":
            return f"its variables are {known}, not x"
        return f"its variables are {known}, so {name} needs a larger rank"


def constant_value(node: Call, args: list[float]) -> float:
    """The value of a call whose arguments are numbers; not finite where it has none."""
    if node.atom.definition is not None:
        inner = parse_atom(node.atom.definition, node.atom.variables)
        return _evaluate_constant(inner, dict(zip(node.atom.variables, args)))
    assert node.atom.value is not None
    with np.errstate(all="ignore"):
        return float(node.atom.value(np, *[np.float64(arg) for arg in args]))


def _evaluate_constant(root: Node, values: dict[str, float]) -> float:
    done: dict[Node, float] = {}
    for node in postorder(root):
        if isinstance(node, Const):
            done[node] = node.value
        elif isinstance(node, Variable):
            done[node] = values[node.name]
        else:
            done[node] = constant_value(node, [done[arg] for arg in node.args])
    return done[root]


def _check_constants(root: Node, parser: _Parser) -> None:
    """Refuse a part without x that has no finite value, such as 1/0 or 9**9**9**9."""
    done: dict[Node, float | None] = {}
    for node in postorder(root):
        if isinstance(node, Const):
            done[node] = node.value
        elif isinstance(node, Variable):
            done[node] = None
        else:
            args = [done[arg] for arg in node.args]
            known = [arg for arg in args if arg is not None]
            if node.atom == CENTERED and known:
                raise parser.refuse("centered needs a function of x")
            done[node] = constant_value(node, known) if len(known) == len(args) else None
            value = done[node]
            if value is not None and not math.isfinite(value):
                raise parser.refuse("every constant part of it must be finite")


_PRECEDENCE = {ADD: 1, SUB: 1, MUL: 2, DIV: 2, NEG: 3, POW: 4}
_INFIX = {ADD: " + ", SUB: " - ", MUL: "*", DIV: "/", POW: "**"}


def format_tree(root: Node) -> str:
    """The canonical text of a tree: ``parse(format_tree(t)) == t``."""
    if root == X:
        return "identity"
    if isinstance(root, Call) and root.args == (X,):
        name = root.atom.name
        if name is not None and (root.atom.user or _is_function_name(name)):
            return name
    texts: dict[Node, tuple[str, int]] = {}
    for node in postorder(root):
        texts[node] = _format_node(node, texts)
    return texts[root][0]


def _format_node(node: Node, texts: dict[Node, tuple[str, int]]) -> tuple[str, int]:
    if isinstance(node, Const):
        return _format_number(node.value), 3 if node.value < 0 else 5
    if isinstance(node, Variable):
        return node.name, 5
    level = _PRECEDENCE.get(node.atom, 5)

    def wrapped(arg: Node, above: int) -> str:
        text, inner = texts[arg]
        return text if inner >= above else f"({text})"

    if node.atom == NEG:
        return f"-{wrapped(node.args[0], level)}", level
    if node.atom == POW:
        return f"{wrapped(node.args[0], level + 1)}**{wrapped(node.args[1], 3)}", level
    if node.atom in _INFIX:
        left, right = node.args
        return f"{wrapped(left, level)}{_INFIX[node.atom]}{wrapped(right, level + 1)}", level
    if node.atom.name is None:
        raise InvalidProblem(
            "function",
            "an anonymous callable",
            "named before it can be written down: an expression in x, a 'module:attr', "
            "or Function(callable, name=...)",
        )
    if node.atom == CENTERED:
        return f"centered({format_tree(node.args[0])})", level
    return f"{node.atom.name}({', '.join(texts[arg][0] for arg in node.args)})", level


def _format_number(value: float) -> str:
    for name, constant in CONSTANTS.items():
        if abs(value) == constant:
            return name if value > 0 else f"-{name}"
    if value == int(value) and abs(value) < 1e16:
        return str(int(value))
    return repr(value)
