"""The explorer: a page in the browser with every field of a problem as a control.

``gs.explore(problem)`` and ``giantsteps explore`` start it. The package needs the extra
``explore`` (starlette and uvicorn), which only `serve` loads.
"""

from __future__ import annotations

from giantsteps.explorer._launch import Explorer, explore, serve

__all__ = ["explore"]
