"""The mark of what dotted paths may walk into."""

from __future__ import annotations

__all__ = ["Part"]


class Part:
    """A frozen dataclass whose fields are named by dotted paths, such as ``steps.0.rate``."""
