"""How a problem shows itself: as constructor code that states the scalings."""

from __future__ import annotations

import html as _html
from typing import TYPE_CHECKING, Any

from giantsteps.functions import Function, SingleIndex
from giantsteps.functions import latex as latex_of
from giantsteps.problem._part import Law

if TYPE_CHECKING:
    from giantsteps.problem._grid import Grid
    from giantsteps.problem._parts import Init, Ridge
    from giantsteps.problem._problem import Problem
    from giantsteps.problem._step import Step

#: Notebooks align cells to the right unless told otherwise.
_LEFT = "style='text-align:left'"


def text(problem: Problem) -> str:
    """Return code that builds ``problem`` again, with its scalings in the comments."""
    lines = []
    for name, items in _rows(problem):
        if name == "steps" and items:
            lines += [("    steps=[", "")]
            lines += [(f"        {code},", note) for code, note in items]
            lines += [("    ],", "")]
        else:
            code, note = items[0] if items else ("[]", "random features")
            lines += [(f"    {name}={code},", note)]
    column = min(72, max(len(code) for code, note in lines if note))
    body = "\n".join(f"{code:<{column}}  # {note}" if note else code for code, note in lines)
    return f"Problem(\n{body}\n)"


def html(problem: Problem) -> str:
    """Return a table of the fields and their scalings, for notebooks."""
    rows = "".join(
        f"<tr><th {_LEFT}>{name}</th><td {_LEFT}><code>{_html.escape(code)}</code></td>"
        f"<td {_LEFT}>{_html.escape(note)}</td></tr>"
        for name, items in _rows(problem)
        for code, note in items or [("[]", "random features")]
    )
    return f"<table><caption>Problem</caption>{rows}</table>"


def grid_html(grid: Grid) -> str:
    """Return the problem of a grid and the values along its axes, for notebooks."""
    rows = "".join(
        f"<tr><th {_LEFT}>{_html.escape(path)}</th><td {_LEFT}>{len(values)} values</td>"
        f"<td {_LEFT}>{_html.escape(', '.join(map(str, values[:4])))}"
        f"{', …' * (len(values) > 4)}</td></tr>"
        for path, values in grid.coords.items()
    )
    return f"{html(grid.problem)}<table><caption>varied</caption>{rows}</table>"


def latex(problem: Problem) -> str:
    """Return the setting as formulas: teacher, network, steps and readout."""
    scaled = problem.init.output == "scaled"
    lines = [
        r"y &= \sigma^*(\langle x, \beta^* \rangle) + \varepsilon, &"
        rf"\sigma^*(x) &= {_latex_function(problem.teacher)}, "
        rf"\ \mathrm{{Var}}\,\varepsilon = {problem.noise_variance:g}",
        r"f(x) &= " + r"N^{-1/2} " * scaled + r"a^\top \sigma(W^\top x), &"
        rf"\sigma(x) &= {_latex_function(problem.activation)}, \ N/d = {problem.width:g}",
    ]
    for number, step in enumerate(problem.steps, start=1):
        rate = rf"{step.rate:g}" + (rf"\,N^{{{step.exponent:g}}}" if step.exponent else "")
        lines.append(
            rf"W_{number} &= {_latex_update(step, number - 1)}, &\eta &= {rate}, "
            rf"\ n_0/d = {step.samples:g}"
            + (r"\ \text{(same batch)}" if step.batch == "previous" else "")
        )
    if not problem.inputs.isotropic:
        lines.insert(0, rf"x &\sim N(0, \Sigma), &\Sigma &: {_latex_function(problem.inputs)}")
    if problem.readout is not None:
        lines.append(
            r"\hat a &= \arg\min n^{-1}\|\tilde y - \Phi a\|^2 + (\lambda/N)\|a\|^2, &"
            rf"n/d &= {problem.readout.samples:g}, \ \lambda = {problem.readout.penalty:g}"
        )
    newline = r" \\ "
    return rf"$$\begin{{aligned}} {newline.join(lines)} \end{{aligned}}$$"


def _latex_update(step: Step, before: int) -> str:
    """The right-hand side of a step."""
    power = {0.0: "", 0.5: r"\Sigma^{-1/2} ", 1.0: r"\Sigma^{-1} "}[step.precondition]
    kept = f"{1 - step.decay:g} " if step.decay else ""
    if step.rule == "gradient":
        return rf"{kept}W_{before} + \eta \sqrt N {power}G"
    return rf"{kept}W_{before} + \eta\, \mathrm{{{step.rule}}}({power}G)"


def _latex_function(value: Any) -> str:
    """A function as a formula, a teacher of several directions as code."""
    function = value.link if isinstance(value, SingleIndex) else value
    if isinstance(function, Function):
        return latex_of(function._tree)
    text = label(value)
    for sign in "_#%&$":
        text = text.replace(sign, chr(92) + sign)
    return rf"\texttt{{{text.replace('^', '**')}}}"


def _rows(problem: Problem) -> list[tuple[str, list[tuple[str, str]]]]:
    """The fields, each with its code and what the code says; one pair for each step."""
    network = "f(x) = a . activation(W'x)" + " / sqrt(N)" * (problem.init.output == "scaled")
    rows = [
        ("activation", [(_code(problem.activation), network)]),
        ("teacher", [(_code(problem.teacher), "y = teacher(<x, beta*>) + noise")]),
        ("width", [(repr(problem.width), f"N/d = {problem.width:g}")]),
        (
            "noise_variance",
            [(repr(problem.noise_variance), f"Var noise = {problem.noise_variance:g}")],
        ),
        ("steps", [(repr(step), _step(step)) for step in problem.steps]),
        ("readout", [(repr(problem.readout), _readout(problem.readout))]),
        ("init", [(repr(problem.init), _init(problem.init))]),
    ]
    if "inputs" in problem.stated():
        rows.append(("inputs", [(repr(problem.inputs), "x ~ N(0, Sigma), tr Sigma / d = 1")]))
    return rows


def _step(step: Step) -> str:
    again = ", the same once more" if step.batch == "previous" else ""
    return f"n0/d = {step.samples:g}{again}, eta = {step.rate:g} * N**{step.exponent:g}"


def _readout(readout: Ridge | None) -> str:
    if readout is None:
        return "none"
    scaling = "in |y - Phi a|^2 / n + lambda |a|^2 / N"
    again = ", the batch of the last step" if readout.batch == "previous" else ""
    return f"n/d = {readout.samples:g}{again}, lambda = {readout.penalty:g} {scaling}"


def _init(init: Init) -> str:
    weights = "columns on the unit sphere" if init.weights == "sphere" else "entries N(0, 1/d)"
    return f"W: {weights}; a = A / sqrt(N), A {init.second_layer.law}"


def label(value: Any) -> str:
    """The shortest text that tells a value from others: a name, an expression, else its repr."""
    function = value.link if isinstance(value, SingleIndex) else value
    if isinstance(function, Function) and function.name is not None:
        return function.name
    data = value.to_data() if isinstance(value, Law) else value
    return data if isinstance(data, str) else repr(value)


def _code(value: Any) -> str:
    """The shortest code for a function: its name or expression in quotes, else its repr."""
    text = label(value)
    return repr(text) if text != repr(value) else text
