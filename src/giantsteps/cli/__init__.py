"""The command line: ``giantsteps predict``, ``simulate``, ``compare``, ``sweep`` and others.

Only click is imported here; each command's module is loaded when it runs, so that ``--help``
answers at once.
"""

from __future__ import annotations

import io
import sys
from typing import NoReturn

__all__: list[str] = []  # ``giantsteps`` on the terminal; `main` is its entry point

#: Exit codes: everything fine; an internal or numerical failure; bad input; theory and simulation
#: disagree; interrupted.
OK, FAILED, BAD_INPUT, DISAGREEMENT, INTERRUPTED = 0, 1, 2, 3, 130


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code; an error is one line on standard error.

    Parameters
    ----------
    arguments : list of str, optional
        The words after ``giantsteps``; those of the process unless given.
    """
    try:
        import click

        from giantsteps.errors import GiantstepsError, MissingDependency, NotConverged

        from ._group import giantsteps, no_such_option
        from ._remedies import as_fields, as_flags
    except KeyboardInterrupt:
        fail("stopped", INTERRUPTED)

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal may not know Greek
            stream.reconfigure(errors="replace")
    try:
        code = giantsteps.main(arguments, prog_name="giantsteps", standalone_mode=False)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        words = sys.argv[1:] if arguments is None else arguments
        place = context.command_path if context else " ".join(["giantsteps", *words[:1]])
        message = error.format_message()
        if isinstance(error, click.NoSuchOption) and context:
            message = no_such_option(error, context)
        message = message.replace("integer range", "integer").replace("float range", "number")
        fail(f"{message}  (see '{place} --help')", BAD_INPUT)
    except (NotConverged, MissingDependency) as error:
        fail(str(error), FAILED)
    except GiantstepsError as error:
        words = sys.argv[1:] if arguments is None else arguments
        code = FAILED if type(error) is GiantstepsError else BAD_INPUT  # networks or a cluster
        fail((as_fields if "sweep" in words[:1] else as_flags)(str(error)), code)
    except (click.Abort, KeyboardInterrupt):
        fail("stopped", INTERRUPTED)
    except OSError as error:
        told = error.strerror or str(error)
        fail(told if error.filename is None else f"{error.filename}: {told}", FAILED)
    except (ImportError, MemoryError) as error:
        fail(str(error) or type(error).__name__, FAILED)
    sys.exit(code or OK)


def fail(message: str, code: int) -> NoReturn:
    """One line on standard error, then exit."""
    if sys.stderr is not None:  # it may be closed
        sys.stderr.write(f"giantsteps: error: {' '.join(message.split())}\n")
    sys.exit(code)
