"""Figures in notebooks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")


def test_a_notebook_shows_every_figure(tmp_path: Path) -> None:
    """A backend that switches on interactive mode when it is loaded, as that of notebooks does."""
    (tmp_path / "notebook_backend.py").write_text(
        "import matplotlib\n"
        "from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas\n"
        "matplotlib.interactive(True)\n"
    )
    code = (
        "import matplotlib\n"
        "from giantsteps.displays._style import panels, style\n"
        "with style():\n"
        "    panels()\n"
        "assert matplotlib.is_interactive()\n"
    )
    environment = {
        **os.environ,
        "MPLBACKEND": "module://notebook_backend",
        "PYTHONPATH": str(tmp_path),
    }
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
