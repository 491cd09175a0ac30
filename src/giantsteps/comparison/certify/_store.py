"""Simulations that outlast a certificate that was stopped."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from giantsteps.comparison.certify._design import Setting
from giantsteps.comparison.certify._finding import Array, Finding, Plan
from giantsteps.errors import StoreError

__all__ = ["Store"]


class Store:
    """Simulations in a file, one JSON line for each setting.

    Parameters
    ----------
    file : path, optional
        Read if it is there, then appended to. None: nothing is kept.
    """

    def __init__(self, file: str | Path | None) -> None:
        self.file = None if file is None else Path(file)
        self._known: dict[str, Array] = {}
        text = self.file.read_text(encoding="utf-8") if self.file and self.file.exists() else ""
        for line in text.splitlines():
            try:
                key, values = json.loads(line)
                self._known[key] = np.array(values, dtype=float)
            except ValueError:  # the line at which it was stopped
                continue
        if text and not self._known:
            raise StoreError(f"{self.file} is no store of simulations")
        self._start = "\n" if text and not text.endswith("\n") else ""

    def of(self, number: int) -> dict[str, Array]:
        """What is known of the settings with this number, by key."""
        start = f"{number} "
        return {key: value for key, value in self._known.items() if key.startswith(start)}

    def add(self, finding: Finding) -> None:
        """Keep its simulations, unless the theory is in them."""
        key = key_of(finding.setting, finding.plan)
        skip = finding.failure or finding.setting.kind.asked.paired or key in self._known
        if self.file is None or skip:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(self._start + json.dumps([key, finding.simulated.tolist()]) + "\n")
        self._start = ""


def key_of(setting: Setting, plan: Plan) -> str:
    """What the simulations of a setting depend on."""
    size = "-".join(map(str, (*plan.sizes, plan.blocks, plan.small)))
    return f"{setting.number} {setting.seed} {setting.family} {size} {setting.problem.content_hash}"
