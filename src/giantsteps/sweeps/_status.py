"""How a sweep stands: cells done, failed, at work and left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from giantsteps.sweeps._leases import at_work
from giantsteps.sweeps._store import Store

if TYPE_CHECKING:
    from giantsteps.sweeps._sweep import Sweep

__all__ = ["LayerStatus", "Status", "read_status"]


@dataclass(frozen=True, kw_only=True)
class LayerStatus:
    """Cells of one source and question.

    Attributes
    ----------
    source, question : str
        Who is asked, and what.
    total, done, failed, running : int
        Cells; ``running``: claimed by a runner.

    Examples
    --------
    >>> import giantsteps as gs
    >>> from tempfile import TemporaryDirectory
    >>> problem = gs.Problem(activation="tanh", teacher="sin", width=1.0,
    ...                      readout=gs.Ridge(samples=2.0, penalty=0.1))
    >>> with TemporaryDirectory() as folder:
    ...     sweep = gs.Sweep(grid=problem, d=30, seeds=2, store=f"{folder}/store.sqlite")
    ...     layers = sweep.status().layers
    >>> isinstance(layers[0], LayerStatus), [(layer.source, layer.left) for layer in layers]
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
    """How a sweep stands.

    Attributes
    ----------
    layers : tuple of LayerStatus
        A cell that two layers share counts in the first.
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

    layers: tuple[LayerStatus, ...]
    errors: Mapping[str, int]

    @property
    def total(self) -> int:
        """All cells of the sweep."""
        return sum(layer.total for layer in self.layers)

    @property
    def done(self) -> int:
        """Cells with a result."""
        return sum(layer.done for layer in self.layers)

    @property
    def failed(self) -> int:
        """Cells with an error."""
        return sum(layer.failed for layer in self.layers)

    @property
    def running(self) -> int:
        """Cells that a runner has claimed."""
        return sum(layer.running for layer in self.layers)

    @property
    def left(self) -> int:
        """Cells that wait to be run."""
        return sum(layer.left for layer in self.layers)

    @property
    def complete(self) -> bool:
        """Whether every cell has a result."""
        return self.done == self.total

    def _repr_html_(self) -> str:
        """One row a layer, for notebooks."""
        names = ("source", "question", "total", "done", "failed", "running", "left")
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{getattr(layer, name)}</td>' for name in names)}</tr>"
            for layer in self.layers
        )
        errors = "".join(f"<p>{count} × {escape(text)}</p>" for text, count in self.errors.items())
        return (
            f"<table><caption>Status</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{errors}"
        )


def read_status(sweep: Sweep, store: Store | None) -> Status:
    """Compare the cells of a sweep with those of a store."""
    known = store.status() if store else {}
    claimed = at_work(store) if store else set()
    errors = store.errors() if store else {}
    seen: set[str] = set()
    layers = []
    for layer in sweep.layers:
        own = layer.distinct - seen
        seen |= own
        found = Counter(known.get(address) for address in own)
        layers.append(
            LayerStatus(
                source=layer.source,
                question=layer.name,
                total=len(own),
                done=found["done"],
                failed=found["failed"],
                running=sum(address in claimed and address not in known for address in own),
            )
        )
    messages = Counter(errors[address] for address in seen if address in errors)
    return Status(layers=tuple(layers), errors=dict(messages.most_common()))
