"""``giantsteps optimize``: which rate, which penalty, how many samples, by theory."""

from __future__ import annotations

import itertools
import math
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from giantsteps.errors import InvalidProblem

from ._options import build, full_path, limit_option, problem_options
from ._output import (
    PATH,
    check_drawing,
    check_file,
    exclusive,
    output_options,
    table,
    write_json,
)
from ._texts import once

if TYPE_CHECKING:
    from giantsteps.problem import Grid, Problem

#: Points of the printed and of the drawn curve, and how far they go to either side of the optimum.
PRINTED, DRAWN, AROUND = 9, 65, 10.0


@click.command(
    "optimize",
    epilog="""
    \b
    Examples
      giantsteps optimize problem.toml                              # the best penalty
      giantsteps optimize problem.toml --over rate --over penalty -o best.png
      giantsteps optimize problem.toml --over step-samples --budget 8
      giantsteps optimize problem.toml --over step-samples --budget 8 -d 400 --one-batch
      giantsteps optimize problem.toml --over samples --reach 0.1   # how many samples for 0.1
    """,
)
@problem_options
@click.option(
    "--over",
    multiple=True,
    metavar="FIELD",
    help="Field to optimise: penalty (default), rate, samples, step-samples, exponent, or a path "
    "such as steps.1.rate; repeatable.",
)
@click.option(
    "--bounds",
    "intervals",
    multiple=True,
    metavar="FIELD=a:b",
    help="Interval to search for a field; repeatable.",
)
@click.option(
    "--budget",
    type=float,
    metavar="B",
    help="Samples in all, (n0 + n)/d, that the steps in --over share with the readout.",
)
@click.option(
    "--reach",
    metavar="ERROR",
    help="Find where the test error takes this value along --over, instead of its minimum; "
    "'floor' is the lower bound for any kernel method.",
)
@click.option(
    "--one-batch",
    is_flag=True,
    help="With --budget and -d: simulate how much one batch, used by step and readout, gains over "
    "the best split.",
)
@click.option(
    "--seeds",
    type=int,
    help="Number of networks of each kind that --one-batch simulates; default: 20.",
)
@limit_option
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="Draw the test error along each field: .png, .pdf or .svg.",
)
@output_options
def command(
    over: tuple[str, ...],
    intervals: tuple[str, ...],
    budget: float | None,
    reach: str | None,
    one_batch: bool,
    seeds: int | None,
    d: int | None,
    output: Path | None,
    as_json: bool,
    csv: Path | None,
    overwrite: bool,
    **stated: Any,
) -> None:
    """Minimise the test error over some fields, by theory; or find where it reaches a value.

    Prints the best values with the test error around them, one field at a time; --csv writes
    these curves and --output draws them. With --vary, one optimum for each problem.
    """
    exclusive(reach=reach, budget=budget)
    if one_batch and (budget is None or d is None):
        raise click.UsageError("--one-batch needs --budget, and -d for the networks")
    if seeds is not None and not one_batch:
        raise click.UsageError("--seeds is for --one-batch: theory alone simulates no network")
    if output is not None and stated["axes"]:
        raise click.UsageError("--output draws one optimum: leave out --vary")
    target = build(**stated)
    check_file(csv, overwrite)
    if output is not None:
        check_drawing(output, overwrite)
    from giantsteps.problem import Grid

    example = target.problem if isinstance(target, Grid) else target
    fields = ",".join(over or ("penalty",)).split(",")
    paths = list(once(((full_path(name, example, "--over"), None) for name in fields), "--over"))
    bounds = once((_interval(text, example) for text in intervals), "--bounds")
    if reach is not None:
        answer = _reached(target, paths, bounds, reach, d)
    else:
        from giantsteps import theory

        answer = theory.optimize(target, paths, bounds or None, budget, d)
    against = answer.simulate_one_batch(seeds=seeds or 20) if one_batch else None
    if isinstance(target, Grid):
        with ExitStack() as files:
            if csv is not None:
                files.callback(answer.to_csv, csv)
            _many(answer, target, paths, as_json)
        return
    where = "limit" if d is None else f"d = {d}"
    count = PRINTED if output is None else DRAWN
    curves = {path: _curve(answer, path, bounds.get(path), budget, count) for path in paths}
    with ExitStack() as files:
        if output is not None:
            files.callback(_draw, curves, answer, output, quiet=as_json)
        if csv is not None:
            from giantsteps.answers import to_csv

            files.callback(to_csv, _long(curves), csv)
        if as_json:
            found = {
                "problem": target.to_data(),
                "d": d,
                "values": answer.to_columns(),
                "curves": _long(curves),
            }
            if against is not None:
                found["one_batch"] = against.to_columns()
            write_json(found)
            return
        _print(answer, target, where, d)
        if against is not None:
            click.echo(against.statement)
        elif budget is not None and answer.note:
            click.echo("--one-batch with -d simulates by how much")
        for path, (points, errors) in curves.items():
            step = max(1, (len(points) - 1) // (PRINTED - 1))
            rows = {path: points[::step], "test": errors[::step]}
            rest = "its best value" if reach is None else "the given values"
            table(rows, f"test error along {path}, all else at {rest}")


# What is asked ----------------------------------------------------------------------------------


def _interval(text: str, problem: Problem) -> tuple[str, tuple[float, float]]:
    name, _, interval = text.partition("=")
    try:
        lower, upper = (float(part) for part in interval.split(":"))
        if not lower < upper:
            raise ValueError
    except ValueError:
        raise InvalidProblem("--bounds", text, "FIELD=a:b, with numbers a < b") from None
    return full_path(name.strip(), problem, "--bounds"), (lower, upper)


def _reached(
    target: Problem | Grid, paths: list[str], bounds: dict[str, Any], reach: str, d: int | None
) -> Any:
    from giantsteps import theory

    if len(paths) != 1:
        raise click.UsageError("--reach needs exactly one --over: the field to vary")
    try:
        level: float | str = reach if reach == "floor" else float(reach)
        if isinstance(level, float) and not math.isfinite(level):
            raise ValueError
    except ValueError:
        raise InvalidProblem("--reach", reach, "a number, or 'floor'") from None
    return theory.crossing(target, paths[0], level, bounds=bounds.get(paths[0]), d=d)


# What is shown ----------------------------------------------------------------------------------


def _print(answer: Any, problem: Problem, where: str, d: int | None) -> None:
    from giantsteps import theory
    from giantsteps.answers import Crossing
    from giantsteps.errors import GiantstepsError

    if isinstance(answer, Crossing):
        click.echo(f"{answer.statement} ({where})")
        return
    try:
        now: Any = theory.risk(problem, d=d).test
    except GiantstepsError:  # outside the theory's scope, while the optimum is inside
        now = None
    names = [*answer.arguments, "test error"]
    table(
        {
            "field": names,
            "best": [*map(float, answer.arguments.values()), answer.value.test],
            "given": [*map(problem.get, answer.arguments), now],
        },
        f"optimum ({where})",
    )
    for path, side in answer.sides.items():
        if side:
            end = "upper" if side > 0 else "lower"
            widen = "" if path.endswith("exponent") else f": widen it with --bounds {path}=a:b"
            click.echo(f"{path} is at its {end} bound{widen}")
    if answer.note:
        click.echo(answer.note)
    for text in answer.violated:
        click.echo(f"the theory is approximate here, because it assumes: {text}")


def _curve(
    answer: Any, path: str, bounds: tuple[float, float] | None, budget: float | None, count: int
) -> tuple[list[float], list[float]]:
    """Points and test errors, NaN where there is none, along a path through the optimum or between
    the given bounds.

    With a budget the readout takes what the step leaves.
    """
    import numpy as np

    from giantsteps import theory
    from giantsteps.answers import Crossing

    crossed = isinstance(answer, Crossing)
    centre = answer.problem if crossed else answer.best
    at = float(centre.get(path))
    rest = "readout.samples"
    if budget is not None and path.endswith("samples"):
        shared = at + centre.get(rest)
        points = [shared * part for part in np.linspace(0, 1, count + 2)[1:-1].tolist()]
        changes = [{path: point, rest: shared - point} for point in points]
    else:
        if crossed:
            bounds = answer.bounds
        elif bounds is None:
            linear = path.endswith("exponent")
            bounds = (0.0, 0.5) if linear else (at / AROUND, at * AROUND)
        logarithmic = bounds[0] > 0 and not path.endswith("exponent")
        (lower, upper), space = bounds, np.geomspace if logarithmic else np.linspace
        points = space(lower, upper, count).tolist()
        changes = [{path: point} for point in points]
    cells = [centre.replace(change) for change in changes]
    return points, theory.values_of("test", cells, answer.d).tolist()


def _long(curves: dict[str, tuple[list[float], list[float]]]) -> dict[str, list[Any]]:
    rows = [
        (path, point, error)
        for path, (points, errors) in curves.items()
        for point, error in zip(points, errors, strict=True)
    ]
    columns = zip(*rows, strict=True)
    return dict(zip(("field", "value", "test"), map(list, columns), strict=True))


def _many(
    answer: Any,
    grid: Grid,
    paths: list[str],
    as_json: bool,
) -> None:
    columns = answer.to_columns()
    if as_json:
        write_json({"problem": grid.to_data(), "d": answer.d, "values": columns})
        return
    if not any(columns.values()):
        click.echo(answer.statement)
        return
    wanted = [*grid.dims, "values", *answer.__dict__.get("arguments", ()), "test", "level"]
    named = {key: columns.get(key, columns.get(f"arguments.{key}")) for key in wanted}
    shown = {key: values for key, values in named.items() if values is not None}
    table(shown, f"optimum over {', '.join(paths)}")


def _draw(curves: dict[str, Any], answer: Any, output: Path, quiet: bool) -> None:
    """One panel for each field, the optimum marked."""
    from matplotlib import pyplot

    from giantsteps.answers import Crossing
    from giantsteps.displays import PALETTE, SINGLE, label, panels, save, style

    with style():
        axes = panels(len(curves), SINGLE * len(curves), sharey=True)
        for ax, (path, (points, errors)), colour in zip(
            axes, curves.items(), itertools.cycle(PALETTE), strict=False
        ):
            ax.plot(points, errors, color=colour)
            if isinstance(answer, Crossing):
                level: Any = answer.level
                ax.axhline(level, color="black", linestyle="--", linewidth=0.8)
                ax.plot(answer.values, [level] * len(answer.values), "o", color=colour)
            else:
                ax.plot(answer.arguments[path], answer.value.test, "o", color=colour)
            if points[0] > 0 and not path.endswith("exponent"):
                ax.set_xscale("log")
            ax.set_xlabel(label(path))
        axes[0].set_ylabel(label("test"))
        figure: Any = axes[0].get_figure(root=True)
        save(figure, output)
        pyplot.close(figure)
    if not quiet:
        click.echo(f"figure: {output.resolve()}")
