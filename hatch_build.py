"""The README of a distribution: a package index does not show the picture of the repository."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

#: The picture and what stands below it, up to the next section.
_PICTURE = re.compile(r"^!\[[^]]*\]\(docs/.*?(?=^## )", re.MULTILINE | re.DOTALL)


class ReadmeHook(MetadataHookInterface):
    """README.md without its picture, whose relative address leads nowhere on an index."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        text, pictures = _PICTURE.subn("", Path(self.root, "README.md").read_text(encoding="utf-8"))
        if pictures != 1:
            raise ValueError(f"README.md has {pictures} pictures before its sections, not one")
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
