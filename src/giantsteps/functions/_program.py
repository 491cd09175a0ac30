"""A tree as a straight-line program: each distinct part is computed once, and freed after use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ._calculus import expand
from ._expression import constant_value
from ._special import Standard
from ._tree import CENTERED, Call, Const, Node, postorder, sub

__all__ = ["Program", "primitive"]

# Large NumPy arrays go through in blocks, so that intermediate values stay in the cache.
BLOCK = 1 << 15


class Program:
    """``program(xp, x)`` is the value of a tree at the array x of the namespace xp.

    Parameters
    ----------
    root : Node
        The tree.
    mean : callable
        ``mean(tree)`` is E tree(z), z ~ N(0, 1), for the parts that are centred.
    """

    def __init__(self, root: Node, mean: Callable[[Node], float]) -> None:
        root = primitive(root, mean)
        place: dict[Node, int | float] = {}  # a register, or the value of a constant part
        steps: list[tuple[Callable[..., Any], list[int | float]]] = []
        for node in postorder(root):
            if isinstance(node, Const):
                place[node] = node.value
            elif isinstance(node, Call):
                args = [place[arg] for arg in node.args]
                constants = [arg for arg in args if isinstance(arg, float)]
                if len(constants) == len(args):
                    place[node] = constant_value(node, constants)
                    continue
                assert node.atom.value is not None
                steps.append((node.atom.value, args))
                place[node] = len(steps)
            else:
                place[node] = 0
        self.result = place[root]
        last = {arg: i for i, (_, args) in enumerate(steps) for arg in args if type(arg) is int}
        self.steps = [
            (value, args, [r for r, at in last.items() if at == i and r != self.result])
            for i, (value, args) in enumerate(steps)
        ]
        self.one_pass = len(steps) <= 1 and all(isinstance(value, Standard) for value, _ in steps)

    def __call__(self, xp: Any, x: Any) -> Any:
        large = isinstance(x, np.ndarray) and x.size > BLOCK and x.flags.c_contiguous
        if large and not self.one_pass:
            flat, result = x.reshape(-1), np.empty_like(x)
            for start in range(0, x.size, BLOCK):
                block = slice(start, start + BLOCK)
                result.reshape(-1)[block] = self._run(xp, flat[block])
            return result
        return self._run(xp, x)

    def _run(self, xp: Any, x: Any) -> Any:
        if isinstance(self.result, float):
            return xp.full_like(x, self.result)
        if self.result == 0:
            return x * 1.0  # a new array, as everywhere else
        registers: list[Any] = [x]
        for value, args, finished in self.steps:
            registers.append(
                value(xp, *[registers[arg] if type(arg) is int else arg for arg in args])
            )
            for register in finished:
                registers[register] = None
        return registers[self.result]


def primitive(root: Node, mean: Callable[[Node], float]) -> Node:
    """The tree with defined atoms written out and means filled in: common parts become equal."""
    done: dict[Node, Node] = {}
    for node in postorder(root):
        if not isinstance(node, Call):
            done[node] = node
        elif node.atom == CENTERED:
            done[node] = sub(done[node.args[0]], Const(mean(node.args[0])))
        else:
            call = Call(node.atom, tuple(done[arg] for arg in node.args))
            defined = call.atom.definition is not None
            done[node] = primitive(expand(call), mean) if defined else call
    return done[root]
