"""Mathematics as MathML, converted when the site is built.

Current browsers draw MathML themselves, so the pages need neither a server, nor the internet, nor
JavaScript. The converter is the one in docutils. This extension adds macros without arguments
(``mathml_macros`` in conf.py), signs and accents written in Unicode, aligned lines, delimiters
that grow only after ``\\left`` and ``\\right``, equation numbers, and a warning, which fails the
build, for anything that cannot be converted.
"""

from __future__ import annotations

import re
import unicodedata

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

#: Signs of Unicode, as docstrings write them, and their names in LaTeX.
# fmt: off
_SIGNS = {
    "−": "-", "±": r"\pm", "×": r"\times", "·": r"\cdot", "∘": r"\circ", "⊙": r"\odot",
    "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx", "≪": r"\ll", "≫": r"\gg",
    "≍": r"\asymp", "∼": r"\sim", "←": r"\leftarrow", "→": r"\to",
    "∈": r"\in", "∞": r"\infty", "∂": r"\partial", "∫": r"\int",
    "⊤": r"\top", "ᵀ": r"^\top", "⊥": r"\perp", "…": r"\ldots", "′": r"\prime", "⟨": r"\langle",
    "⟩": r"\rangle", "‖": r"\|", "⁻¹": "^{-1}", "¹": "^1", "²": "^2", "³": "^3", "⁴": "^4",
    r"\Big/": "/", "₀": "_0", "₁": "_1", "₂": "_2", "₃": "_3", "₄": "_4",
}
# fmt: on
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar"}

_DELIMITER = re.compile(
    r"(\\(?:left|right|[bB]igg?[lr]?)\s*)?(?:\\[lr](?:angle|floor|ceil)(?![A-Za-z])|\\?\|)"
)
_DRAWN_DELIMITER = re.compile(r"<mo([^>]*)>([⟨⟩⌊⌋⌈⌉‖|])</mo>")
_ACCENTED = re.compile(
    r"(\\(?:tilde|hat|bar|check|dot)\s*(?:\{[^{}]*\}|\\[A-Za-z]+|\w))(?=\s*[_^])"
)
_BARE_FRACTION = re.compile(r"(\\[td]?frac)\s*(\d)\s*(\w)")
_ALIGNED = '<mtable class="ams-align"'


def to_mathml(tex: str, *, block: bool = False, macros: dict[str, str] | None = None) -> str:
    """Convert LaTeX to MathML; in a block, lines that end in two backslashes align at ``&``."""
    for sign, name in _SIGNS.items():
        tex = tex.replace(sign, f"{name} ")
    tex = unicodedata.normalize("NFD", tex)
    for accent, name in _ACCENTS.items():
        tex = re.sub(rf"(\w){accent}", rf"\\{name}{{\1}}", tex)
    for name, meaning in (macros or {}).items():
        tex = re.sub(re.escape(name) + r"(?![A-Za-z])", lambda _, m=meaning: m, tex)
    tex = _BARE_FRACTION.sub(r"\1{\2}{\3}", tex.replace("'", r"\prime "))
    tex = _ACCENTED.sub(r"{\1{}}", tex)  # a group of two, or an index goes below the letter
    if block and "\\\\" in tex and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    grows = iter([match[1] is not None for match in _DELIMITER.finditer(tex)])
    mathml = _DRAWN_DELIMITER.sub(
        lambda match: match[0] if next(grows) else _fixed(match[2]),
        str(tex2mathml(tex, as_block=block)),
    )
    return mathml.replace(
        _ALIGNED, _ALIGNED + ' displaystyle="true" columnalign="right left right left"'
    )


def _fixed(sign: str) -> str:
    space = ' lspace="0" rspace="0"' if sign in "|‖" else ""
    return f'<mo stretchy="false"{space}>{sign}</mo>'


def _render(self: HTML5Translator, node: nodes.Element, block: bool) -> str:
    try:
        return to_mathml(node.astext(), block=block, macros=self.config.mathml_macros)
    except MathError as error:
        logger.warning("cannot convert to MathML: %s in %r", error, node.astext(), location=node)
        return f"<code>{self.encode(node.astext())}</code>"


def visit_math(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_render(self, node, block=False))
    raise nodes.SkipNode


def visit_displaymath(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(_render(self, node, block=True))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, object]:
    app.add_config_value("mathml_macros", {}, "html", dict)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
