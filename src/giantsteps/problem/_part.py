"""The mark of what dotted paths may walk into."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

__all__ = ["Part"]


class Part:
    """A frozen dataclass whose fields are named by dotted paths, such as ``steps.0.rate``."""

    def named(self) -> dict[str, Any]:
        """Return the fields by name, in the order of their definition."""
        return {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
