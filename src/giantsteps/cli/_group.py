"""The group of commands, each loaded from its own module on first use."""

from __future__ import annotations

import difflib
import importlib

import click

from giantsteps.errors import suggest

#: Command → the line that ``giantsteps --help`` shows; ``predict`` lives in ``cli/_predict.py``.
COMMANDS = {
    "predict": "Answer by theory: risk, spectra, in the limit or at a given d.",
    "simulate": "Answer by simulating finite networks.",
    "compare": "Compare theory with simulation, with error bars and a verdict.",
    "sweep": "Run, resume, export and draw a grid of problems, sizes and seeds.",
    "optimize": "Find the best rate, penalty or split of samples by theory, with the curve.",
    "rate": "Translate a PyTorch learning rate into rate and exponent, and back.",
    "figure": "Draw a published figure by name, or list them.",
    "inspect": "Inspect the weights of a trained network: bulk, spikes, gradients, probes.",
    "explore": "Explore problems in the browser, with a control for every field.",
    "certify": "Compare theory with simulation over many settings and write a report.",
    "demo": "Draw learning curves before and after a giant step: theory and simulation.",
}


class HelpfulGroup(click.Group):
    """A group that prints its help when it is called without a command, or with ``help``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] in ([], ["help"]) and not ctx.resilient_parsing:
            args = [*args[1:], "--help"]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args and args[0] not in known:
            close = difflib.get_close_matches(args[0], known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"commands: {', '.join(known)}"
            if "." in args[0]:
                hint = "a file stands after a command; " + hint
            raise click.UsageError(f"no command '{args[0]}'; {hint}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(HelpfulGroup):
    """A group that knows its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        return _command(name) if name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


#: Fields that have no option of their own, and how they are given.
_FIELDS = ("rate", "exponent", "rule", "loss", "decay")
_STEP = "--step samples=2,rate=3"


def no_such_option(error: click.NoSuchOption, context: click.Context) -> str:
    """What was probably meant by an option that the command does not have."""
    name = error.option_name.lstrip("-")
    options = [part for part in context.command.params if isinstance(part, click.Option)]
    own = {option.lstrip("-"): option for part in options for option in part.opts}
    close = [name] if name in own else [word for word in own if word.startswith(name)]
    close = close or difflib.get_close_matches(name, own, 2, 0.7)
    usual = suggest(name, _FIELDS)
    meant = [field for field in _FIELDS if f'did you mean "{field}"' in usual]
    takers = [
        command
        for command in COMMANDS
        if any(error.option_name in part.opts for part in _command(command).params)
    ]
    hint = ""
    if close:
        hint = f": did you mean {' or '.join(own[word] for word in close)}?"
    elif " sweep " in context.command_path:
        hint = ": a sweep states its problem, d and seeds in its file"
    elif meant and "steps" in {part.name for part in context.command.params}:
        hint = f": {meant[0]} is a field of a step, {_STEP}"
    elif takers:
        hint = f": there is one in {', '.join(takers)}"
    return f"no option {error.option_name} here{hint}"


def _command(name: str) -> click.Command:
    command: click.Command = importlib.import_module(f"giantsteps.cli._{name}").command
    return command


@click.command(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""
    \b
    Example: the test error after one step, by theory, then against simulation
      giantsteps predict --activation tanh --teacher sin --width 1.5 \\
          --step samples=2,rate=3 --samples 2 --penalty 0.1
      giantsteps compare problem.toml -d 400 --seeds 10 \\
          --vary readout.samples=0.5:3:6 -o curve.png
    """,
)
@click.version_option(package_name="giantsteps")
def giantsteps() -> None:
    """What the first gradient steps do to a two-layer network, by theory and by simulation.

    A problem is a TOML file, or flags, or both; fields are named by dotted paths such as
    readout.samples or steps.0.rate.
    """
