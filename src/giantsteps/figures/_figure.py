"""A published figure: a name, settings for three sizes, a caption and a function that draws it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import tomli_w

from giantsteps.answers import bibtex, require, to_csv, written
from giantsteps.campaign import Progress
from giantsteps.displays import save, style
from giantsteps.errors import InvalidProblem
from giantsteps.figures._draft import Draft
from giantsteps.problem import Grid, suggest

#: How large: for tests, for a look, and as published.
Size: TypeAlias = Literal["smoke", "quick", "paper"]
FORMATS = ("pdf", "svg", "png")


class _Figures(dict[str, "Figure"]):
    def __missing__(self, name: str) -> Figure:
        raise InvalidProblem("figure", name, suggest(name, self))


#: Every figure by name, in the order of the papers; `InvalidProblem` with similar names for one
#: that there is not.
FIGURES = _Figures()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a paper, or one of ours."""

    name: str  # such as ``"cui2024-2"``
    title: str  # one line
    caption: str  # what is shown; ``{d}`` and other settings are filled in
    chosen: str = ""  # what the paper does not state and was chosen here
    references: tuple[str, ...]  # keys of the bibliography; those of the answers are added
    settings: Mapping[Size, Mapping[str, Any]]  # keywords of ``draw`` for each `Size`
    draw: Callable[..., None]  # ``draw(draft, **settings)`` draws on the axes of the draft

    def make(
        self,
        size: Size = "quick",
        folder: str | Path = ".",
        *,
        device: str | None = None,
        workers: int | None = 1,
        time_limit: float | None = None,
        progress: Progress | bool | None = None,
        formats: Sequence[str] = FORMATS,
        **changes: Any,
    ) -> Made:
        """Compute, draw and save the figure.

        Writes ``NAME.pdf``, ``.svg``, ``.png``, every plotted point as ``NAME.csv``, and caption,
        citation and settings as ``NAME.toml``. In paper form the simulations are kept in
        ``NAME.sqlite``, and an interrupted run can be resumed.

        * ``size``: "smoke", "quick", "paper".
        * ``folder``: made if it is not there.
        * ``device``: where the simulations run, as in `simulation.run`.
        * ``workers``, ``time_limit``, ``progress``: as in `giantsteps.compare`; ``workers=None``
          takes one process per processor or GPU.
        * ``formats``: suffixes of the drawing.
        * ``changes``: other settings than those of the size, such as ``d=500``.
        """
        if size not in self.settings:
            raise InvalidProblem("size", size, suggest(size, self.settings))
        settings = dict(self.settings[size])
        for key in changes:
            if key not in settings:
                raise InvalidProblem(key, changes[key], suggest(key, settings))
        settings |= changes
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as scratch, style():
            place = folder if size == "paper" else Path(scratch)
            draft = Draft(
                store=place / f"{self.name}.sqlite",
                device=device,
                workers=workers,
                time_limit=time_limit,
                progress=progress,
            )
            self.draw(draft, **settings)
            made = Made(figure=self, size=size, settings=settings, draft=draft, folder=folder)
            made.save(formats)
        require("matplotlib.pyplot", "a figure", "plot").close(draft.drawing)
        return made


@dataclass(frozen=True, kw_only=True)
class Made:
    """A figure that was made: what stands in it and where it was written."""

    figure: Figure  # what was drawn
    size: Size  # how large
    settings: Mapping[str, Any]  # keywords of its drawing
    draft: Draft  # the answers and points that stand in it
    folder: Path  # where it was written
    files: list[Path] = field(default_factory=list)  # what was written

    @property
    def caption(self) -> str:
        """What is shown, what was chosen, and which assumptions of the theory are left."""
        figure = self.figure
        parts = [f"{figure.title}. {figure.caption.format(**self.settings)}"]
        if any(row["standard_error"] == row["standard_error"] for row in self.draft.rows):
            parts.append("Lines: theory; points: simulation with three standard errors.")
        if figure.chosen:
            parts.append(
                f"Not stated in the paper and chosen here: {figure.chosen.format(**self.settings)}"
            )
        if self.violated:
            parts.append(
                f"The theory is approximate here, because it assumes: {'; '.join(self.violated)}."
            )
        return " ".join(parts)

    @property
    def violated(self) -> tuple[str, ...]:
        """Assumptions of the theory that the problems of the figure leave."""
        return tuple(self.draft.violated)

    @property
    def references(self) -> tuple[str, ...]:
        """Keys of the papers: the figure's own first."""
        return tuple(dict.fromkeys([*self.figure.references, *self.draft.references]))

    def save(self, formats: Sequence[str] = FORMATS) -> None:
        name = self.figure.name
        for suffix in formats:
            save(self.draft.drawing, self._file(f"{name}.{suffix}"))
        rows = self.draft.rows
        to_csv({key: [row[key] for row in rows] for key in rows[0]}, self._file(f"{name}.csv"))
        text = tomli_w.dumps(self.to_data(), multiline_strings=True)
        with written(self._file(f"{name}.toml")) as draft:
            draft.write_text(text, encoding="utf-8")

    def _file(self, name: str) -> Path:
        self.files.append(self.folder / name)
        return self.files[-1]

    def to_data(self) -> dict[str, Any]:
        """Caption, settings, problems and citation as plain data; the problems are those that were
        simulated, or those of theory where there are none."""
        from giantsteps import __version__

        return {
            "figure": self.figure.name,
            "caption": self.caption,
            "violated": list(self.violated),
            "size": self.size,
            "giantsteps": __version__,
            "settings": {key: _plain(value) for key, value in self.settings.items()},
            "panels": {k: {"x": x, "y": y} for k, (x, y) in self.draft.panels.items()},
            "problems": [
                target.to_data() if isinstance(target, Grid) else {"problem": target.to_data()}
                for target in (self.draft.problems or self.draft.theory).values()
            ],
            "citation": bibtex(self.references),
        }


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def figure(
    name: str,
    title: str,
    *,
    smoke: Mapping[str, Any],
    quick: Mapping[str, Any],
    paper: Mapping[str, Any],
    **fields: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register the decorated function as the figure ``name``; ``fields`` are those of `Figure`.

    ``smoke`` names every setting; ``quick`` and ``paper`` those that differ from it, and from those
    before them.
    """

    def register(draw: Callable[..., None]) -> Callable[..., None]:
        settings: dict[Size, Mapping[str, Any]] = {
            "smoke": smoke,
            "quick": {**smoke, **quick},
            "paper": {**smoke, **quick, **paper},
        }
        FIGURES[name] = Figure(name=name, title=title, settings=settings, draw=draw, **fields)
        return draw

    return register
