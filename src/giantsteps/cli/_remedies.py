"""What an error advises in Python, said as flags of the command line."""

from __future__ import annotations

import re

_STEP_FIELDS = "rule|loss|batch|decay|precondition|samples|rate|exponent"

#: A field that is missing → how it is given.
_MISSING = {
    r"^(activation|teacher|width) = None: must be given: it has no default":
        r"\1 is missing: give --\1, or \1 = ... in the file",
    r"^(steps\.\d+\.(?:samples|rate)) = None: must be given: it has no default":
        r"\1 is missing: a step is --step samples=2,rate=3",
    r"^readout\.(samples|penalty) = None: must be given: it has no default":
        r"readout.\1 is missing: give --\1",
    r"^([\w.]+) = None: must be given: it has no default":
        r"\1 is missing: give --set \1=..., or \1 = ... in the file",
    r"^bounds\['(.*)'\] = None: must be given: (.*)": r"give --bounds \1=a:b: \2",
}  # fmt: skip
#: What concerns a file alone.
_IN_FILES = {
    r"^([\w.]+) = None: must be given: it has no default":
        r"\1 is missing: give \1 = ... in the file",
    r"an? \w+\(\.\.\.\) or a table of its fields": "a table of its fields",
    r"(?:readout=)?Ridge\([^)]*\)": "readout = {samples = 2.0, penalty = 0.1}",
    r"pass d to the question": "give d = [100, 200] before the tables",
    r"compare a Grid, or several sizes d": "leave one of the sweep's without --at",
    r"^at = None: must be given for ([\w.]+)[^:]*": r"--at \1=VALUE must be given",
}  # fmt: skip
#: Pattern of advice in Python → the same on the command line, in the order of application.
_FLAGS = {
    r', in TOML \{name = "\.\.\.", centered = true\}': "",
    r"gs\.centered\((activation|teacher)\)": r'--\1 "centered(NAME)"',
    r"an? Step\(\.\.\.\) or a table of its fields": "a table such as {samples = 2, rate = 3}",
    r"an? Ridge\(\.\.\.\) or a table of its fields": "a table such as {samples = 2, penalty = 0.1}",
    r"an? Init\(\.\.\.\) or a table of its fields": 'a table such as {weights = "sphere"}',
    r", or gs\.MultiIndex\([^)]*\)": "",
    r", fewer samples or dtype=\"float32\"": " or fewer samples",
    r", or an array namespace": "",
    r"an nn\.Module, a state dict, an array, a list or dict of arrays, or a file": "a file",
    r'a list with the samples of a step, such as "steps.0.samples",': "--over step-samples",
    r"or None for the limit": "or left out for the limit",
    r"(positive number of seconds), or None": r"\1",
    r", or a list of distinct integers >= \d$": " (several must be distinct)",
    r", or a list of as many distinct ones": "",
    r"a name, an expression in x, a Function or a callable$": "a name or an expression in x",
    r"an nn\.Module, or with activation= if": "--activation, if",
    r"\bTry (?:theory|simulation)\.(\w+)": r"Try --question \1",
    r"(?:a |set readout=)?(?:gs\.)?Ridge\([^)]*\)": "--samples and --penalty",
    r"\bsecond_layer=\"?(\w+)\"?": r"--second-layer \1",
    r"(?:\bset )?\b(init\.output|readout\.batch|steps\.\d+\.batch)=\"(\w+)\"": r"--set \1=\2",
    r"\binputs=gs\.Isotropic\(\)": "--set inputs=isotropic",
    r"\bsteps=\(\)": "no --step",
    rf"(?<![\w.,])({_STEP_FIELDS})=\"?([\w.]+)\"?": r"--set steps.N.\1=\2",
    r"\b(?:pass|give) d\b": "give -d",
    r"\bwith d given\b": "with -d given",
    r"\[(?:gs\.)?Step\([^)]*\)\]": "--step samples=2,rate=3",
    r'^"teacher": without a step.*': "the direction of a step: give --step samples=2,rate=3",
}  # fmt: skip


def as_fields(message: str) -> str:
    """The message with its remedies as lines of a sweep's file.

    Examples
    --------
    >>> as_fields("width = None: must be given: it has no default")
    'width is missing: give width = ... in the file'
    """
    for python, line in _IN_FILES.items():
        message = re.sub(python, line, message)
    return message


def as_flags(message: str) -> str:
    """The message with its remedies as flags.

    Examples
    --------
    >>> as_flags('Try gs.centered(activation), or second_layer="gaussian".')
    'Try --activation "centered(NAME)", or --second-layer gaussian.'
    """
    for missing, flags in _MISSING.items():
        found, count = re.subn(missing, flags, message)
        if count:
            return found
    given, must, advice = message.rpartition(": must be ")  # what the user wrote stays as it is
    given = re.sub(r" = <Function (.*)>$", r" = '\1'", given)
    for python, flags in _FLAGS.items():
        advice = re.sub(python, flags, advice)
    return given + must + advice
