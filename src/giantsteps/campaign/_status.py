"""How cells stand: done, failed, at work and left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from giantsteps.campaign._cells import Cells
from giantsteps.campaign._leases import at_work
from giantsteps.campaign._store import Store

__all__ = ["QuestionStatus", "Status", "read_status"]

_COUNTS = ("total", "done", "failed", "running", "left")


@dataclass(frozen=True, kw_only=True)
class QuestionStatus:
    """Cells of one source and question.

    Attributes
    ----------
    source, question : str
        Who is asked, and what.
    total, done, failed, running : int
        Number of cells; ``running``: claimed by a runner.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from tempfile import TemporaryDirectory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> with TemporaryDirectory() as folder:
    ...     sweep = gs.Sweep(grid=problem, d=30, seeds=2, store=f"{folder}/store.sqlite")
    ...     parts = sweep.status().parts
    >>> isinstance(parts[0], QuestionStatus), [(part.source, part.left) for part in parts]
    (True, [('finite width', 1), ('simulation', 2)])
    """

    source: str
    question: str
    total: int
    done: int
    failed: int
    running: int

    @property
    def left(self) -> int:
        """Cells that wait to be run."""
        return self.total - self.done - self.failed - self.running


@dataclass(frozen=True, kw_only=True)
class Status:
    """How a sweep or another campaign stands.

    Attributes
    ----------
    parts : tuple of QuestionStatus
        By source and question; a cell that two of them share counts in the first.
    errors : mapping of str to int
        What went wrong, and how often; most frequent first.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from tempfile import TemporaryDirectory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> with TemporaryDirectory() as folder:
    ...     sweep = gs.Sweep(grid=problem, d=30, seeds=2, store=f"{folder}/store.sqlite")
    ...     before, after = sweep.status(), sweep.run(executor="serial")
    >>> isinstance(after, Status), before.left, after.done, after.complete
    (True, 3, 3, True)
    """

    parts: tuple[QuestionStatus, ...]
    errors: Mapping[str, int]

    @property
    def total(self) -> int:
        """All cells."""
        return sum(part.total for part in self.parts)

    @property
    def done(self) -> int:
        """Cells with a result."""
        return sum(part.done for part in self.parts)

    @property
    def failed(self) -> int:
        """Cells with an error."""
        return sum(part.failed for part in self.parts)

    @property
    def running(self) -> int:
        """Cells that a runner has claimed."""
        return sum(part.running for part in self.parts)

    @property
    def left(self) -> int:
        """Cells that wait to be run."""
        return sum(part.left for part in self.parts)

    @property
    def complete(self) -> bool:
        """Whether every cell has a result."""
        return self.done == self.total

    def to_columns(self) -> dict[str, list[object]]:
        """A table as columns: one row for each source and question."""
        names = ("source", "question", *_COUNTS)
        return {name: [getattr(part, name) for part in self.parts] for name in names}

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        columns = self.to_columns()
        head = "".join(f"<th>{name}</th>" for name in columns)
        rows = ("".join(f"<td>{cell}</td>" for cell in row) for row in zip(*columns.values()))
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        errors = "".join(f"<p>{count} × {escape(text)}</p>" for text, count in self.errors.items())
        return (
            f"<table><caption>Status</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{errors}"
        )


def read_status(cells: Sequence[Cells], store: Store | None) -> Status:
    """Compare cells with those of a store."""
    known = store.status() if store else {}
    claimed = at_work(store) if store else set()
    errors = store.errors() if store else {}
    seen: set[str] = set()
    parts = []
    for part in cells:
        own = part.distinct - seen
        seen |= own
        found = Counter(known.get(address) for address in own)
        parts.append(
            QuestionStatus(
                source=part.source,
                question=part.name,
                total=len(own),
                done=found["done"],
                failed=found["failed"],
                running=sum(address in claimed and address not in known for address in own),
            )
        )
    messages = Counter(errors[address] for address in seen if address in errors)
    return Status(parts=tuple(parts), errors=dict(messages.most_common()))
