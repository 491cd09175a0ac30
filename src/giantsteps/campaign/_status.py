"""How cells stand: done, failed, at work and left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from giantsteps.campaign._cells import Cells
from giantsteps.campaign._leases import at_work
from giantsteps.campaign._store import Store
from giantsteps.errors import GiantstepsError


@dataclass(frozen=True, kw_only=True)
class Status:
    """How a sweep or another campaign stands.

    Attributes
    ----------
    total, done, failed, running : int
        Number of cells; ``running``: claimed by a runner.
    errors : mapping of str to int
        What went wrong, and how often; most frequent first.
    parts : mapping of (str, str) to Status
        The same by source and question; a cell that two of them share counts in the first.
    """

    total: int
    done: int
    failed: int
    running: int
    errors: Mapping[str, int]
    parts: Mapping[tuple[str, str], Status]

    @property
    def left(self) -> int:
        """Cells that wait to be run."""
        return self.total - self.done - self.failed - self.running

    @property
    def complete(self) -> bool:
        """Whether every cell has a result."""
        return self.done == self.total

    def check(self) -> None:
        """Raise `GiantstepsError` if a cell failed, with the most frequent reason."""
        if self.failed:
            reason, *_ = self.errors
            raise GiantstepsError(f"{self.failed} networks failed: {reason}")

    def to_columns(self) -> dict[str, list[object]]:
        """A table as columns: one row for each source and question, and one for all."""
        rows = {**self.parts, ("all", ""): self} if len(self.parts) > 1 else self.parts
        sources, questions = zip(*rows) if rows else ((), ())
        counts = ("total", "done", "failed", "running", "left")
        numbers = {name: [getattr(row, name) for row in rows.values()] for name in counts}
        return {"source": list(sources), "question": list(questions), **numbers}

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        errors = [f"{count} × {text}" for text, count in self.errors.items()]
        return html_table("Status", self.to_columns(), errors)


def html_table(
    caption: str, columns: Mapping[str, Sequence[object]], notes: Sequence[str] = ()
) -> str:
    """Columns as a table for notebooks, with notes below it."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    rows = ("".join(f"<td>{escape(str(v))}</td>" for v in row) for row in zip(*columns.values()))
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(f'<tr>{row}</tr>' for row in rows)}</tbody></table>"
        + "".join(f"<p>{escape(note)}</p>" for note in notes)
    )


def read_status(cells: Sequence[Cells], store: Store | None) -> Status:
    """Compare cells with those of a store."""
    known = store.status() if store else {}
    claimed = at_work(store) if store else set()
    messages = store.errors() if store else {}

    def count(addresses: set[str], parts: Mapping[tuple[str, str], Status]) -> Status:
        found = Counter(known.get(address) for address in addresses)
        errors = Counter(messages[address] for address in addresses if address in messages)
        return Status(
            total=len(addresses),
            done=found["done"],
            failed=found["failed"],
            running=sum(address in claimed and address not in known for address in addresses),
            errors=dict(errors.most_common()),
            parts=parts,
        )

    seen: set[str] = set()
    parts: dict[tuple[str, str], Status] = {}
    for part in cells:
        parts[part.source, part.name] = count(set(part.distinct - seen), {})
        seen |= part.distinct
    return count(seen, parts)
