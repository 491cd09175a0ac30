"""What a newcomer types: help, a note, or one line that says what to do instead."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import giantsteps as gs

Run = Callable[..., tuple[Any, str, str]]

FLAGS = ["--activation", "tanh", "--teacher", "sin", "--width", "1.5", "--samples", "2",
         "--penalty", "0.1"]  # fmt: skip
PREDICT = ["predict", *FLAGS]
STEP = ["--step", "samples=2,rate=3"]
TOML = """activation = "tanh"
teacher = "sin"
width = 1.5
readout = {samples = 2.0, penalty = 0.1}
"""
RANGE = "{from = 1, to = 2, count = %d}"
SWEEP = f"""d = 20
seeds = 2
[problem]
{TOML}[vary]
"readout.samples" = [1.0, 2.0]
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text("import giantsteps\n")
    (tmp_path / "false.sqlite").write_text("hello\n")
    (tmp_path / "empty.toml").write_text("")
    (tmp_path / "problem.yaml").write_text("activation: tanh\nteacher: sin\n")
    (tmp_path / "deep.toml").write_text("x = " + "[" * 9999)
    (tmp_path / "problem.toml").write_text(TOML)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    (tmp_path / "half.toml").write_text(SWEEP.replace("[1.0, 2.0]", "{from = 1, to = 2}"))
    (tmp_path / "no_d.toml").write_text(SWEEP.replace("d = 20\n", ""))
    (tmp_path / "endless.toml").write_text(SWEEP.replace("[1.0, 2.0]", RANGE % 99_999_999))
    (tmp_path / "linspace.toml").write_text(SWEEP.replace("[1.0, 2.0]", "{start = 1, num = 3}"))
    (tmp_path / "device.toml").write_text('device = "cuda"\n' + SWEEP)
    (tmp_path / "no_tests.toml").write_text("options = {test_samples = -3}\n" + SWEEP)
    (tmp_path / "d_varies.toml").write_text(SWEEP.replace('"readout.samples"', '"d"'))
    (tmp_path / "unread.toml").write_text(SWEEP.replace("readout =", "# readout ="))
    (tmp_path / "utf16.toml").write_bytes(TOML.encode("utf-16"))
    (tmp_path / "table.toml").write_text(TOML + "[steps]\nsamples = 2\nrate = 1\n")
    (tmp_path / "header.toml").write_text("[problem]\n" + TOML)
    (tmp_path / "folder").mkdir()
    (tmp_path / "known.csv").write_text("x\n")
    np.save(tmp_path / "weights.npy", np.ones((20, 20)))
    np.savez(tmp_path / "data.npz", X=np.ones((5, 20)), y=np.ones(5))


MISTAKES = {
    "comma": ([*PREDICT, "--width", "1,5"], "width = '1,5'"),
    "a class of PyTorch": ([*PREDICT, "--activation", "ReLU"], "did you mean relu?"),
    "NumPy": ([*PREDICT, "--activation", "np.tanh(x)"], "by their name alone: tanh(x)"),
    "a caret": ([*PREDICT, "--teacher", "x^2"], "a power is written x**2"),
    "coordinates": ([*PREDICT, "--teacher", "x0*x1"], '{expression = "x0*x1", rank = 2}'),
    "a step without names": ([*PREDICT, "--step", "2,3"], "KEY=VALUE,KEY=VALUE"),
    "a step without rate": ([*PREDICT, "--step", "samples=2"], "steps.0.rate"),
    "lr": ([*PREDICT, "--step", "samples=2,lr=3"], 'did you mean "rate"?'),
    "sgd": ([*PREDICT, "--step", "samples=2,rate=3,rule=sgd"], 'did you mean "gradient"?'),
    "mse": ([*PREDICT, "--step", "samples=2,rate=3,loss=mse"], 'did you mean "squared"?'),
    "a step in two words": (
        [*PREDICT, "--step", "samples=2", "rate=3"],
        "values of one --step are joined by commas, without spaces",
    ),
    "two activations": ([*PREDICT, "--activation", "relu, x"], "'(relu, x)' is not part of it\n"),
    "a quotient of integers": ([*PREDICT, "--teacher", "x//2"], "'x // 2' is not part of it\n"),
    "an if of Python": ([*PREDICT, "--teacher", "x if x else 1"], "'x if x else 1' is not part"),
    "a product of brackets": ([*PREDICT, "--teacher", "(x)(x)"], "x is no function (a product is"),
    "a product with a number": (
        [*PREDICT, "--teacher", "2(x)"],
        "'2(x)' is not part of it (a prod",
    ),
    "a superscript": ([*PREDICT, "--teacher", "x²"], "a power is written x**2"),
    "a Greek letter": ([*PREDICT, "--teacher", "sin(π*x)"], "(write pi)"),
    "half a law": ([*PREDICT, "--set", "inputs=power_law"], "give --set inputs.exponent=..."),
    "a budget without steps": (["optimize", *FLAGS, *STEP, "--budget", "8"], "--over step-samples"),
    "half a readout": (["predict", *FLAGS[:-2]], "readout.penalty"),
    "nan": ([*PREDICT, "--penalty", "nan"], "readout.penalty = nan"),
    "a cut path": ([*PREDICT, "--vary", "readout.sample=1,2"], 'did you mean "readout.samples"?'),
    "no step to vary": ([*PREDICT, "--vary", "rate=1,2"], "the problem has no step (--step)"),
    "nothing but a name": (
        ["predict", "--activation", "tanh"],
        "is missing: give --teacher",
    ),
    "a colon": ([*PREDICT, "--step", "samples=2:rate=3"], "--step = 'samples=2:rate=3': must be"),
    "a place without files": ([*PREDICT, "--csv", "/proc/x.csv"], "cannot be written"),
    "a script as report": (["inspect", "script.py", "--html", "x.txt"], "must end in .html"),
    "a false store": (["sweep", "run", "false.sqlite"], "is not a store"),
    "a dash": ([*PREDICT, "--vary", "readout.samples=1-3"], "readout.samples = '1-3'"),
    "an axis twice": ([*PREDICT, "--vary", "width=1,2", "--vary", "width=3,4"], "given twice"),
    "an axis d": ([*PREDICT, "--vary", "d=100,200"], "run once for each -d"),
    "a float": ([*PREDICT, "-d", "1e3"], "not a valid integer"),
    "several sizes": ([*PREDICT, "-d", "100,200"], "only 'compare' takes them"),
    "a negative size": ([*PREDICT, "-d", "-5"], "or left out for the limit"),
    "a quantity as question": ([*PREDICT, "--question", "test"], '"risk"'),
    "the other side": ([*PREDICT, "--question", "tangent_risk"], "only simulation answers"),
    "a size for a limit": ([*PREDICT, "--question", "bounds", "-d", "100"], "leave out -d 100"),
    "weights": ([*PREDICT, "--weights", "orthogonal"], '"gaussian", "sphere"'),
    "ones": ([*PREDICT, "--second-layer", "ones"], 'did you mean "constant"?'),
    "a number as step": ([*PREDICT, "--set", "steps.0=1"], "{samples = 2, rate = 3}"),
    "a word as readout": ([*PREDICT, "--set", "readout=none"], "{samples = 2, penalty = 0.1}"),
    "no such part": ([*PREDICT, "--set", "a.b.c=1"], '"activation"'),
    "a script": (["predict", "script.py"], "is not valid TOML"),
    "a word as seed": (["simulate", *FLAGS, "-d", "50", "--seed", "x"], "--seed"),
    "gpu": (["simulate", *FLAGS, "-d", "50", "--device", "gpu"], '"cuda:0" (PyTorch on a GPU)'),
    "too large": (["simulate", *FLAGS, "-d", "10000000"], "a smaller d or width or fewer samples"),
    "too narrow": (["simulate", *FLAGS, "-d", "50", "--width", "0.001"], "larger at d = 50"),
    "sizes twice": (["compare", *FLAGS, "-d", "50,50", "--seeds", "3"], "distinct"),
    "a script as store": (["compare", *FLAGS, "-d", "50", "--store", "script.py"], "not a store"),
    "no spikes": (["compare", *FLAGS, "--question", "weights", "-d", "50"], "predicts none"),
    "no sweep": (["sweep", "run", "nothing.toml"], "cannot read 'nothing.toml'"),
    "a script as sweep": (["sweep", "run", "script.py"], "is not valid TOML"),
    "a paper as figure": (["figure", "ba2022"], '"ba2022-rate"'),
    "no weights": (["inspect", "nothing.pt"], "does not exist"),
    "a script as weights": (["inspect", "script.py"], "must be a file that ends in .safetensors"),
    "a script as certificate": (["certify", "--again", "script.py"], "it is no JSON"),
    "no networks": (["demo", "--seeds", "0"], "seeds = 0"),
    "no dimension": (["demo", "-d", "0"], "must be an integer >= 1 (several must be distinct)"),
    "one network": (["demo", "--seeds", "1"], "an integer >= 2: one has no error bar"),
    "a file in YAML": (["predict", "problem.yaml"], "write it as TOML, such as activation ="),
    "a file without end": (["predict", "deep.toml"], "deep.toml is not valid TOML"),
    "an empty file": (["predict", "empty.toml"], "'empty.toml' is empty"),
    "a sweep as problem": (["predict", "sweep.toml"], "giantsteps sweep run sweep.toml"),
    "a problem as sweep": (["sweep", "run", "problem.toml"], "in a table [problem]"),
    "a key twice": ([*PREDICT, "--step", "samples=2,rate=3,samples=4"], "each key once"),
    "a comma at the end": ([*PREDICT, "--step", "samples=2,rate=3,"], "'samples=2,rate=3,'"),
    "a step too far": ([*PREDICT, *STEP, "--set", "steps.3.rate=2"], "there is entry 0"),
    "an endless axis": ([*PREDICT, "--vary", "width=1:2:999999999"], "up to 10000"),
    "lr as an axis": ([*PREDICT, *STEP, "--vary", "lr=1,2"], 'did you mean "steps.0.rate"?'),
    "a number as function": ([*PREDICT, "--activation", "3"], "a name or an expression in x"),
    "two dashes": ([*PREDICT, "--d", "100"], "did you mean -d?"),
    "no staircase": ([*PREDICT, *STEP, "--question", "staircase_risk"], "Try --question risk"),
    "a search without bounds": (
        ["optimize", *FLAGS, *STEP, "--over", "steps.0.decay"],
        "give --bounds steps.0.decay=a:b: this field has no natural range",
    ),
    "no size": (["compare", *FLAGS, "-d", ""], "for -d: '' is not"),
    "endless seeds": (["compare", *FLAGS, "-d", "50", "--seeds", "999999999"], "at most 1000000"),
    "endless workers": (
        ["compare", *FLAGS, "-d", "50", "--seeds", "3", "--workers", "99999"],
        "from 1 to 1024",
    ),
    "a folder as store": (["compare", *FLAGS, "-d", "50", "--store", "folder"], "it is a folder"),
    "no GPU": (["certify", "--short", "--device", "cuda:99"], "device = 'cuda:99'"),
    "a negative design": (["certify", "--short", "--seed", "-1"], "seed = -1"),
    "seeds for theory": (["optimize", *FLAGS, "--seeds", "5"], "--seeds is for --one-batch"),
    "an axis as optimum": (["optimize", *FLAGS, "--vary", "penalty=1,2"], "the grid varies this"),
    "bounds of another": (
        ["optimize", *FLAGS, "--bounds", "samples=1:2"],
        "for a field that is searched: readout.penalty",
    ),
    "an axis without count": (["sweep", "run", "half.toml"], "count = n"),
    "a summary in NetCDF": (
        ["sweep", "export", "sweep.toml", "-o", "x.nc", "--summary"],
        "--summary is for tables",
    ),
    "spectra in CSV": (
        ["sweep", "export", "sweep.toml", "-o", "x.csv", "--spectra"],
        "--spectra is for .nc",
    ),
    "half a quantity": (["sweep", "plot", "sweep.toml", "--quantity", "test"], '"risk.test"'),
    "an option of PyTorch": ([*PREDICT, "--lr", "0.1"], "--lr here: rate is a field of a step"),
    "an option of others": ([*PREDICT, "--seeds", "3"], "there is one in compare"),
    "half an option": ([*PREDICT, "--noise", "0.1"], "did you mean --noise-variance?"),
    "an option of nobody": ([*PREDICT, "--foo"], "no option --foo here (see"),
    "an option of a file": (["sweep", "run", "sweep.toml", "--seeds", "3"], "seeds in its file"),
    "a word as a number": (
        ["compare", *FLAGS, "-d", "9", "--workers", "x"],
        "not a valid integer.",
    ),
    "a field twice": ([*PREDICT, "--set", "width=1", "--set", "width=2"], "width is given twice"),
    "bounds twice": (
        ["optimize", *FLAGS, "--bounds", "penalty=1:2", "--bounds", "readout.penalty=1:3"],
        "--bounds readout.penalty is given twice",
    ),
    "a table over its problem": (
        ["predict", "problem.toml", "--csv", "problem.toml", "--overwrite"],
        "'problem.toml' is given twice",
    ),
    "a table over its store": (
        ["compare", *FLAGS, "-d", "20", "--seeds", "2", "--store", "x", "--csv", "x"],
        "each file needs a name of its own",
    ),
    "a step table": (["predict", "table.toml"], "([[steps]] in TOML)"),
    "a file of Notepad": (["predict", "utf16.toml"], "save it as UTF-8"),
    "a batch of other size": (
        [*PREDICT, "--step", "samples=4,rate=1", "--set", "readout.batch=previous"],
        "must be 4.0, the samples of the last step, whose batch is used again "
        "(or --set readout.batch=fresh)",
    ),
    "a capital": ([*PREDICT, "--activation", "X"], "did you mean x?"),
    "one network without an error": (
        [
            "optimize",
            *FLAGS,
            *STEP,
            "--over",
            "step-samples",
            "--budget",
            "6",
            "--one-batch",
            "-d",
            "20",
            "--seeds",
            "1",
        ],
        "one has no error bar",
    ),
    "no networks to compare": (["compare", *FLAGS, "-d", "20", "--seeds", "0"], "integer >= 2"),
    "a sweep without d": (["sweep", "run", "no_d.toml"], "d is missing: give d = ... in the file"),
    "a sweep over d": (["sweep", "run", "d_varies.toml"], "give d = [100, 200] before the tables"),
    "a sweep without readout": (["sweep", "run", "unread.toml"], "readout = {samples = 2.0, "),
    "a sweep with a device": (["sweep", "run", "device.toml"], "options = {device = ...}"),
    "an endless sweep": (["sweep", "run", "endless.toml"], "count = 99999999: must be an integer"),
    "linspace": (["sweep", "run", "linspace.toml"], "{from = a, to = b, count = n}"),
    "a slice twice": (
        ["sweep", "plot", "sweep.toml", "--at", "width=1", "--at", "width=2"],
        "--at width is given twice",
    ),
    "no data": (["inspect", "weights.npy", "--activation", "relu"], "is used with --data"),
    "no activation": (
        ["inspect", "weights.npy", "--data", "data.npz"],
        "must be given with --activation",
    ),
    "d twice": ([*PREDICT, "-d", "50", "-d", "60"], "only 'compare' takes several"),
    "standard output as a file": ([*PREDICT, "--csv", "-"], "'-' is no file"),
    "a file without a command": (["problem.toml"], "a file stands after a command"),
    "a sweep without a command": (["sweep", "sweep.toml"], "after a command; commands: export"),
    "an option without a value": ([*PREDICT, "-d"], "(see 'giantsteps predict --help')"),
    "an axis of the explorer": (
        ["explore", *FLAGS, "--vary", "width=1,2"],
        "no option --vary here: there is",
    ),
    "an argument as an option": (["predict", "--file", "x"], "no option --file here (see"),
    "bounds upside down": (["optimize", *FLAGS, "--bounds", "penalty=2:1"], "numbers a < b"),
    "a level that is no number": (["optimize", *FLAGS, "--reach", "nan"], "a number, or 'floor'"),
    "a field twice in a list": (
        ["optimize", *FLAGS, "--over", "penalty,readout.penalty"],
        "--over readout.penalty is given twice",
    ),
    "what a step has learned, without a step": (
        [*PREDICT, "--question", "learned_function"],
        "the direction of a step: give --step samples=2,rate=3",
    ),
    "a law without its name": (
        [*PREDICT, "--set", "inputs.eigenvalues=[1, 2]"],
        "inputs.law is missing: give --set inputs.law=..., or inputs.law = ... in the file: one of",
    ),
    "a division by zero": ([*PREDICT, "--activation", "x/0"], "activation = 'x/0': must be"),
    "what a sweep did not ask": (
        ["sweep", "plot", "sweep.toml", "--quantity", "weights"],
        'must be "risk.NAME", as the sweep has no other question',
    ),
    "a sweep without test samples": (
        ["sweep", "run", "no_tests.toml", "--serial"],
        "options.test_samples = -3: must be an integer >= 2",
    ),
    "a negative seed": (["inspect", "weights.npy", "--seed", "-1"], "seed = -1: must be"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_get_one_line(run: Run, mistake: str) -> None:
    arguments, needle = MISTAKES[mistake]
    code, out, error = run(*arguments)
    assert (code, out) == (2, ""), error
    assert needle in error
    assert error.startswith("giantsteps: error: ")
    assert error.count("\n") == 1
    assert "gs." not in error


def test_a_file_of_windows(run: Run, tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_text("\ufeff" + TOML, encoding="utf-8")
    assert run("predict", "marked.toml") == run("predict", "problem.toml")
    assert gs.Problem.from_toml(tmp_path / "marked.toml").width == 1.5


def _typed(words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "giantsteps", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_a_terminal_without_greek() -> None:
    done = _typed(["predict", "--help"], env={**os.environ, "PYTHONIOENCODING": "cp1252"})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Ridge penalty of the readout." in done.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="closes a file of the process")
def test_without_standard_input() -> None:
    done = _typed(["predict", *FLAGS, "--csv", "known.csv"], preexec_fn=lambda: os.close(0))
    assert done.returncode == 2
    assert "add --overwrite" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help_is_a_command(run: Run) -> None:
    assert run("help") == run()
    assert run("help", "predict") == run("predict", "--help")
    assert run("sweep", "help", "run")[1].startswith("Usage: giantsteps sweep run")
    assert run("help", "predct")[2].startswith("giantsteps: error: no command 'predct'; did you")
    assert run("sweep", "help")[1].startswith("Usage: giantsteps sweep")


def test_what_is_meant_is_done(run: Run) -> None:
    small = ["compare", *FLAGS, "--seeds", "2", "--quantity", "test"]
    assert run(*small, "-d", "20", "-d", "30") == run(*small, "-d", "20,30")
    both = ["optimize", *FLAGS, *STEP, "--json"]
    assert run(*both, "--over", "rate,penalty") == run(*both, "--over", "rate", "--over", "penalty")
    usual = ["rate", "--lr", "0.1", "--width", "100", "-d", "100"]
    assert run(*usual, "--optimizer", "Adam") == run(*usual, "--optimizer", "adam")
    for grid in ([], ["--vary", "width=1,2"]):
        code, out, _ = run(*PREDICT, "--question", "weights", *grid)
        assert (code, "no spike: all values lie in the bulk" in out) == (0, True)


def test_networks_that_fail_are_no_bad_input(run: Run) -> None:
    code, _, error = run("compare", *FLAGS, "-d", "20", "--seeds", "2", "--time-limit", "1e-9")
    assert (code, error) == (
        1, "giantsteps: error: 2 networks failed: TimeLimit: not finished after 1e-09 s\n"
    )  # fmt: skip


def test_numbers_of_neurons_in_place_of_a_ratio_are_noted(run: Run) -> None:
    code, _, error = run(*PREDICT, "--width", "1500")
    assert code == 0
    assert error == "note: width = 1500 means 1500*d neurons\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_named_and_the_answer_shown(run: Run) -> None:
    for command in (["predict"], ["compare", "-d", "20", "--seeds", "2"], ["optimize"]):
        written = [*command, *FLAGS, "--csv", "/dev/full", "--overwrite"]
        code, out, error = run(*written)
        assert (code, error) == (1, "giantsteps: error: /dev/full: No space left on device\n")
        assert "test" in out


def test_files_are_written_though_nobody_reads_what_is_printed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "giantsteps", *PREDICT, "--csv", "x.csv"]
    reader, writer = os.pipe()
    os.close(reader)  # as "| head" leaves it
    subprocess.run(command, stdout=writer, check=False, cwd=tmp_path)
    os.close(writer)
    assert (tmp_path / "x.csv").read_text().startswith("d,source,test")


def test_a_problem_as_sweeps_and_braces_state_it(run: Run) -> None:
    assert run("predict", "header.toml") == run("predict", "problem.toml")
    braces = [*PREDICT, "--step", "{samples=2, rate=3}"]
    assert run(*braces) == run(*PREDICT, *STEP)
    code, out, _ = run(*PREDICT, "--vary", "activation=tanh,max(x, 0)")
    assert code == 0
    assert "max(x, 0)" in out


def test_fractions(run: Run) -> None:
    plain = run(*PREDICT, *STEP, "--width", "1.5", "--json")
    assert run(*PREDICT, *STEP, "--width", "3/2", "--json") == plain
    assert run(*PREDICT, "--width", "1/0")[0] == 2


def test_a_spectrum_without_spikes_says_so(run: Run) -> None:
    code, out, _ = run(*PREDICT, "--question", "weights")
    assert code == 0
    assert "no spike: all values lie in the bulk" in out


def test_lists_as_people_type_them(run: Run) -> None:
    plain = run(*PREDICT, "--vary", "samples=1,2")
    assert plain[0] == 0
    assert run(*PREDICT, "--vary", "samples=[1, 2]") == plain
    law = ["--set", "inputs=power_law", "--set", "inputs.exponent=0.3"]
    together = run(*PREDICT, "-d", "50", "--set", "inputs={law='power_law', exponent=0.3}")
    assert together[0] == 0
    assert run(*PREDICT, "-d", "50", *law) == together
    compare = ["compare", *FLAGS, "-d", "30", "--seeds", "2", "--quantity"]
    code, both, _ = run(*compare, "test,train")
    assert code == 0
    assert run(*compare, "test", "--quantity", "train")[1] == both


def test_what_an_answer_rests_on_is_shown(run: Run) -> None:
    _, out, _ = run(*PREDICT, *STEP)
    assert "evidence: theorem (ba2022, Theorem 5)\n" in out
    _, out, _ = run(*PREDICT, *STEP, "--json")
    assert json.loads(out)["evidence"] == "theorem (ba2022, Theorem 5)"


def test_short_names_are_axes(run: Run) -> None:
    _, long, _ = run(*PREDICT, *STEP, "--vary", "readout.samples=1,2", "--vary", "steps.0.rate=1,2")
    code, short, _ = run(*PREDICT, *STEP, "--vary", "samples=1,2", "--vary", "rate=1,2")
    assert code == 0
    assert short == long


@pytest.mark.parametrize("command", [["simulate"], ["compare", "--seeds", "3"]])
def test_networks_that_would_take_days_are_refused(run: Run, command: list[str]) -> None:
    code, out, error = run(*command, *FLAGS, "-d", "500", "--samples", "1e9")
    assert (code, out) == (2, "")
    needle = (
        "readout.samples = 1000000000.0: must be smaller: one network with d = 500, N = 750 and "
    )
    assert f"{needle}5e+11 samples would take about " in error
    assert "at most 12 hours are allowed" in error


def test_a_refused_certificate_leaves_no_folder(run: Run, tmp_path: Path) -> None:
    code, _, _ = run("certify", "--short", "--seed", "-1", "-o", str(tmp_path / "a" / "b"))
    assert code == 2
    assert not (tmp_path / "a").exists()
