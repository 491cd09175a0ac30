"""A tree as a straight-line program: each distinct part is computed once, and freed after use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._calculus import expand
from ._expression import constant_value
from ._special import Standard
from ._tree import CENTERED, Call, Const, Node, Variable, postorder, sub

# Large NumPy arrays go through in blocks, so that intermediate values stay in the cache.
BLOCK = 1 << 15


class Program:
    """``program(xp, x)`` are the values of some trees at the array x of the namespace xp.

    * ``roots``: the trees; parts that they share are computed once.
    * ``mean``: ``mean(tree)`` is E tree(z), z ~ N(0, 1), for the parts that are centred.
    * ``variables``: what the trees are functions of; the program takes an array for each.
    """

    def __init__(
        self,
        roots: Sequence[Node],
        mean: Callable[[Node], float],
        variables: Sequence[str] = ("x",),
    ) -> None:
        self.arguments = len(variables)
        written = [primitive(root, mean) for root in roots]
        place: dict[Node, int | float] = {}  # a register, or the value of a constant part
        steps: list[tuple[Callable[..., Any], list[int | float]]] = []
        for node in (node for root in written for node in postorder(root)):
            if node in place:
                continue
            if isinstance(node, Const):
                place[node] = node.value
            elif isinstance(node, Call):
                args = [place[arg] for arg in node.args]
                constants = [arg for arg in args if isinstance(arg, float)]
                if len(constants) == len(args):
                    place[node] = constant_value(node, constants)
                    continue
                assert node.atom.value is not None
                place[node] = self.arguments + len(steps)
                steps.append((node.atom.value, args))
            else:
                place[node] = variables.index(node.name)
        for root in written:  # a new array, as everywhere else
            if isinstance(root, Variable):
                steps.append((_copied, [place[root]]))
                place[root] = self.arguments + len(steps) - 1
        self.results = [place[root] for root in written]
        last = {arg: i for i, (_, args) in enumerate(steps) for arg in args if type(arg) is int}
        self.steps = [
            (value, args, [r for r, at in last.items() if at == i and r not in self.results])
            for i, (value, args) in enumerate(steps)
        ]
        self.one_pass = len(steps) <= 1 and all(isinstance(value, Standard) for value, _ in steps)

    def __call__(self, xp: Any, x: Any, *others: Any) -> tuple[Any, ...]:
        large = isinstance(x, np.ndarray) and x.size > BLOCK and x.flags.c_contiguous
        if large and not self.one_pass and not others:
            flat, found = x.reshape(-1), tuple(np.empty_like(x) for _ in self.results)
            for start in range(0, x.size, BLOCK):
                block = slice(start, start + BLOCK)
                for whole, part in zip(found, self._run(xp, flat[block])):
                    whole.reshape(-1)[block] = part
            return found
        return self._run(xp, x, *others)

    def _run(self, xp: Any, *arguments: Any) -> tuple[Any, ...]:
        registers = list(arguments)
        for value, args, finished in self.steps:
            registers.append(
                value(xp, *[registers[arg] if type(arg) is int else arg for arg in args])
            )
            for register in finished:
                registers[register] = None
        return tuple(
            xp.full_like(arguments[0], place) if isinstance(place, float) else registers[place]
            for place in self.results
        )


def _copied(xp: Any, x: Any) -> Any:
    return x * 1.0


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
