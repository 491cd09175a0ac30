r"""A function as a formula: ``tanh(2*x)/3 + 0.3*x**2`` is \frac{\tanh(2 x)}{3} + 0.3 x^{2}."""

from __future__ import annotations

from ._tree import ADD, DIV, MUL, NEG, POW, SUB, Const, Node, Variable, postorder

#: Functions that LaTeX has a command for.
_COMMANDS = {"arctan", "cos", "cosh", "exp", "log", "max", "min", "sin", "sinh", "tanh"}
#: How tightly a text holds together: a sum, a product, a power or a call.
_SUM, _PRODUCT, _TIGHT = 1, 2, 3


def latex(tree: Node) -> str:
    """The tree as LaTeX, without dollars."""
    texts: dict[Node, tuple[str, int]] = {}
    for node in postorder(tree):
        texts[node] = _written(node, texts)
    return texts[tree][0]


def _written(node: Node, texts: dict[Node, tuple[str, int]]) -> tuple[str, int]:
    if isinstance(node, Const):
        return f"{node.value:.12g}", _TIGHT if node.value >= 0 else _SUM
    if isinstance(node, Variable):
        return node.name, _TIGHT
    plain = [texts[argument][0] for argument in node.args]

    def held(place: int, least: int) -> str:
        text, tightness = texts[node.args[place]]
        return text if tightness >= least else rf"\left({text}\right)"

    if node.atom in (ADD, SUB):
        least = _SUM if node.atom == ADD and not plain[1].startswith("-") else _PRODUCT
        return f"{plain[0]} {node.atom.name} {held(1, least)}", _SUM
    if node.atom == NEG:
        return f"-{held(0, _PRODUCT)}", _SUM
    if node.atom == MUL:
        sign = r" \cdot " if held(1, _PRODUCT)[0].isdigit() else r" \, "
        return held(0, _PRODUCT) + sign + held(1, _PRODUCT), _PRODUCT
    if node.atom == DIV:
        return rf"\frac{{{plain[0]}}}{{{plain[1]}}}", _TIGHT
    if node.atom == POW:
        return rf"{{{held(0, _TIGHT)}}}^{{{plain[1]}}}", _PRODUCT
    return _call(node.atom.name, plain), _TIGHT


def _call(name: str | None, arguments: list[str]) -> str:
    inside = ", ".join(arguments)
    if name == "abs":
        return rf"\left|{inside}\right|"
    if name == "sqrt":
        return rf"\sqrt{{{inside}}}"
    if name is None:
        head = r"\varphi"
    elif name in _COMMANDS:
        head = f"\\{name}"
    elif name.startswith("he") and name[2:].isdigit():
        head = rf"\mathrm{{He}}_{{{name[2:]}}}"
    else:
        head = rf"\mathrm{{{name.replace('_', chr(92) + '_')}}}"
    return rf"{head}\left({inside}\right)"
