"""Options that state a problem: a TOML file, flags for its fields, ``--set`` and ``--vary``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from giantsteps.errors import InvalidProblem
from giantsteps.questions import QUESTIONS, Side, names

from ._output import PATH, Command, options
from ._texts import assignment, axis_of, once, put, step_of, value_of

if TYPE_CHECKING:
    from giantsteps.problem import Grid, Problem

#: Flag → (path in the data of a problem, metavar, help).
FIELDS = {
    "activation": (
        "activation",
        "FUNCTION",
        'Activation σ: a name, or an expression such as "tanh(2*x)".',
    ),
    "teacher": ("teacher", "FUNCTION", "Teacher σ*: a name or an expression."),
    "width": ("width", "N/d", "Neurons per input dimension."),
    "noise_variance": ("noise_variance", "VAR", "Variance of the label noise."),
    "samples": ("readout.samples", "n/d", "Samples of the readout per input dimension."),
    "penalty": ("readout.penalty", "λ", "Ridge penalty of the readout."),
    "weights": ("init.weights", "LAW", "First layer: gaussian or sphere."),
    "second_layer": ("init.second_layer", "LAW", "Second layer: gaussian or constant."),
}
#: Short name → path; "N" stands for the only step.
SHORT = {
    "penalty": "readout.penalty",
    "samples": "readout.samples",
    "rate": "steps.N.rate",
    "exponent": "steps.N.exponent",
    "step-samples": "steps.N.samples",
}


def _check_device(ctx: click.Context, option: click.Parameter, device: str | None) -> str | None:
    if device is not None:
        from giantsteps.simulation import resolve

        resolve(device)
    return device


device_option = click.option(
    "--device",
    callback=_check_device,
    help="Device to simulate on: cpu, or one of PyTorch such as cuda.",
)


class _Dimension(click.types.IntParamType):
    """An integer; several are pointed to the command that takes them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, str) and "," in value:
            self.fail(f"'{value}' is several: only 'compare' takes them", param, ctx)
        found: int = super().convert(value, param, ctx)
        return found


def _one(ctx: click.Context, option: click.Parameter, sizes: tuple[int, ...]) -> int | None:
    if len(sizes) > 1:
        raise click.UsageError("-d is given twice: only 'compare' takes several, as -d 250,500")
    return sizes[0] if sizes else None


def dimension_option(**settings: Any) -> Callable[[Command], Command]:
    """``-d``, one whole number."""
    names = ("-d", "--dimension", "d")
    return click.option(*names, type=_Dimension(), multiple=True, callback=_one, **settings)


limit_option = dimension_option(help="Input dimension; without it, the limit d → ∞.")
store_option = click.option(
    "--store",
    type=PATH,
    metavar="FILE",
    help="Cache networks in FILE (SQLite) so that an interrupted run can resume.",
)

campaign_options = options(
    click.option(
        "--workers",
        type=click.IntRange(1),
        metavar="N",
        help="Number of processes; default: one per processor or GPU, one for short runs.",
    ),
    click.option(
        "--time-limit",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Stop a network after this many seconds.",
    ),
)


def question_option(*sides: Side) -> Callable[[Command], Command]:
    """``--question``, with the names of those that all the sides answer."""
    return click.option(
        "--question",
        metavar="NAME",
        default="risk",
        show_default=True,
        callback=partial(_check_question, sides),
        help=f"Quantity to compute: {', '.join(names(*sides))}.",
    )


def _check_question(
    sides: tuple[Side, ...], ctx: click.Context, option: click.Parameter, name: str
) -> str:
    known = names(*sides)
    if name not in QUESTIONS:
        from giantsteps.problem import suggest

        raise InvalidProblem("question", name, suggest(name, known))
    for side in sides:
        QUESTIONS[name].function(side)
    return name


def _repeatable(names: tuple[str, str], metavar: str, text: str) -> Callable[[Command], Command]:
    return click.option(*names, multiple=True, metavar=metavar, help=text)


#: The options that state one problem; a command receives them as keywords for `build`.
one_problem_options = options(
    click.argument("file", required=False, type=PATH),
    *(
        click.option("--" + name.replace("_", "-"), metavar=metavar, help=text)
        for name, (_, metavar, text) in FIELDS.items()
    ),
    _repeatable(
        ("--step", "steps"),
        "KEY=VALUE,...",
        "One gradient step, such as samples=2,rate=3,exponent=0.5; repeat for several.",
    ),
    _repeatable(
        ("--set", "assignments"), "PATH=VALUE", "Set any field, such as steps.0.rate=2; repeatable."
    ),
)
#: Those that state a problem or a grid.
problem_options = options(
    one_problem_options,
    _repeatable(
        ("--vary", "axes"),
        "PATH=VALUES",
        "An axis of a grid: a:b:n (linear), a:b:n:log, or a list 1,5,20; PATH is a dotted path, or "
        "penalty, samples, rate, exponent or step-samples; repeatable.",
    ),
)


def build(
    file: Path | None,
    steps: tuple[str, ...],
    assignments: tuple[str, ...],
    axes: tuple[str, ...] = (),
    **fields: str | None,
) -> Problem | Grid:
    """The problem that a file, flags and ``--set`` describe; a grid with ``--vary``.

    Later sources win: file, flags, ``--set``.
    """
    from giantsteps.problem import Grid

    data = _problem_data(file) if file else {}
    for name, text in fields.items():
        if text is not None:
            put(data, FIELDS[name][0], value_of(text))
    if steps:
        data["steps"] = [step_of(text) for text in steps]
    changes = once(map(assignment, assignments), "--set")
    if not data and not changes:
        given = f"'{file}' is empty" if file else "no problem given"
        raise click.UsageError(f"{given}: a TOML file, or flags such as --activation tanh")
    problem = _changed(data, changes)
    _note_ratios(problem)
    return Grid(problem, _axes(axes, problem)) if axes else problem


def _problem_data(file: Path) -> dict[str, Any]:
    """The problem of a file; that of a sweep is asked about by 'sweep'."""
    data = read_toml(file)
    if not isinstance(data.get("problem"), dict):
        return data
    if len(data) > 1:
        raise click.UsageError(f"'{file}' is a sweep: giantsteps sweep run {file}")
    return dict(data["problem"])


def full_path(name: str, problem: Problem, option: str) -> str:
    """The path of a field that may be given by its short name, as in ``--over rate``."""
    path = SHORT.get(name, name)
    if "N" not in path.split("."):
        return path
    if len(problem.steps) != 1:
        paths = ", ".join(path.replace("N", str(i)) for i in range(len(problem.steps)))
        which = f"one of {paths}" if problem.steps else "left out: the problem has no step (--step)"
        raise InvalidProblem(option, name, which)
    return path.replace("N", "0")


def _axes(texts: tuple[str, ...], problem: Problem) -> dict[str, list[Any]]:
    axes = once(
        ((full_path(name, problem, "--vary"), values) for name, values in map(axis_of, texts)),
        "--vary",
    )
    if "d" in axes:
        raise click.UsageError(
            "d is not a field of the problem: run once for each -d; 'compare' takes several, "
            "such as -d 250,500"
        )
    return axes


#: Ratios from here on are probably numbers of neurons or samples.
_LARGE = 100.0


def _note_ratios(problem: Problem) -> None:
    """Say what a large ratio means: widths and samples are per input dimension."""
    ratios = {"width": (problem.width, "neurons")}
    for index, step in enumerate(problem.steps):
        ratios[f"steps.{index}.samples"] = (step.samples, "samples")
    if problem.readout is not None:
        ratios["readout.samples"] = (problem.readout.samples, "samples")
    for path, (ratio, what) in ratios.items():
        if ratio >= _LARGE:
            click.echo(f"note: {path} = {ratio:g} means {ratio:g}*d {what}", err=True)


def _changed(data: dict[str, Any], changes: dict[str, Any]) -> Problem:
    """The problem that ``data`` states, with other values at some paths.

    Paths that it has are replaced in it, so that what depends on them follows; the others, and all
    of them while the problem is not complete, are written into the data.
    """
    from giantsteps.problem import Problem

    try:
        known = Problem.from_data(data).paths() if changes else ()
    except InvalidProblem:
        known = ()
    later = {}
    for path, value in changes.items():
        if path in known and not any(other.startswith(f"{path}.") for other in changes):
            later[path] = value
        else:
            put(data, path, value)
    problem = Problem.from_data(data)
    return problem.replace(later) if later else problem


def read_toml(file: Path) -> dict[str, Any]:
    """The content of a file, or one line that says what is wrong with it."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        hint = "; values of one --step are joined by commas, without spaces"
        raise click.UsageError(f"no file '{file}'{hint if '=' in str(file) else ''}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        other = file.suffix.lower() in (".json", ".yaml", ".yml")
        hint = ' (write it as TOML, such as activation = "tanh")' if other else ""
        hint = " (save it as UTF-8)" if isinstance(error, UnicodeDecodeError) else hint
        raise click.UsageError(f"{file} is not valid TOML: {error}{hint}") from None
    except OSError as error:
        raise click.UsageError(f"cannot read '{file}': {error.strerror}") from None
