"""Configuration of the documentation site (``make docs``)."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from numpydoc.xref import DEFAULT_LINKS  # noqa: E402
from public_names import public_names  # noqa: E402

project = "giantsteps"
author = "The giantsteps developers"
copyright = "2026, The giantsteps developers"
release = metadata.version("giantsteps")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "mathml",
    "bibliography",
    "generated",
    "markdown_page",
    "plain_maths",
    "docstring_references",
    "public_names",
    "source_links",
    "explorer_page",  # before the links are checked
    "check_links",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates", "**.ipynb"]
language = "en"
nitpicky = False
default_role = "py:obj"  # `name` in a docstring is a link where there is such a name

# Mathematics: converted to MathML at build time (see _ext/mathml.py).
html_math_renderer = "mathml"
mathml_macros = {
    r"\E": r"\mathbb{E}",
    r"\Var": r"\operatorname{Var}",
    r"\tr": r"\operatorname{tr}",
    r"\dots": r"\ldots",
    r"\Im": r"\operatorname{Im}",
    r"\iff": r"\Longleftrightarrow",
}

# A font made for mathematics, STIX Two Math, which comes with the package ziamath. Without it a
# browser takes what the reader has.
math_fonts = [
    f"{place}/fonts"
    for spec in [find_spec("ziamath")]
    if spec is not None
    for place in spec.submodule_search_locations or []
]

# The API pages list whatever a package exports in __all__.
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# Types of parameters and results are links where they are names of the library.
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
DEFAULT_LINKS.clear()  # they lead to other sites
numpydoc_xref_aliases = {name: f"{package}.{name}" for package, name in public_names()}

# Each script in examples/ becomes a page of the gallery.
sphinx_gallery_conf = {
    "examples_dirs": [str(HERE.parent / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": "/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 3600,
    "within_subsection_order": "gallery_order.GalleryOrder",
    "image_srcset": ["2x"],
    "capture_repr": (),  # figures and what is printed, not the last value
}

# `make note`: the theory as one PDF. XeLaTeX knows the signs that the pages use.
latex_engine = "xelatex"
latex_documents = [
    (
        "theory/index",
        "giantsteps-theory.tex",
        "The first gradient steps of two-layer networks: theory and numerical evidence",
        author,
        "howto",
        True,
    )
]
latex_elements = {
    "papersize": "a4paper",
    # Titles carry the numbers of the sections.
    "preamble": r"\usepackage{amssymb}\setcounter{secnumdepth}{-1}"
    + "".join(rf"\providecommand{{{name}}}{{{text}}}" for name, text in mathml_macros.items())
    + r"\renewcommand{\E}{\mathbb{E}}",
}

html_theme = "pydata_sphinx_theme"
html_title = "giantsteps"
html_static_path = ["_static", *math_fonts]
html_css_files = ["giantsteps.css"]
html_favicon = "_static/favicon.svg"
# Pages of one level have no sidebar.
html_sidebars = {page.stem: [] for page in HERE.glob("*.rst")}
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
}
