"""Ask theory everything about random problems, within 5 s and 2 GB for each call.

As a program: ``python tests/robustness/campaign.py --first 0 --count 100 --workers 2``, or with
``--replay FILE`` for the calls of a file of JSON lines with ``call``, ``d`` and ``problem``. Prints
one JSON line for each complaint, and a count by kind on standard error; exits 1 if there is any.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import calls  # type: ignore[import-not-found]
import generator  # type: ignore[import-not-found]

import giantsteps as gs

#: Of each call: seconds of processor time, and bytes.
SECONDS, BYTES = 5.0, 2 * 2**30
#: Seconds of wall time after which a call that hangs outside Python is killed.
KILLED = 60.0


class TooSlow(BaseException):
    """Raised by the timer."""


def ask(name: str, problem: gs.Problem, d: int) -> tuple[Any, list[tuple[str, str]]]:
    """The answer, or None, and what is wrong."""
    found: list[tuple[str, str]] = []
    answer = None
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            answer = calls.call(name, problem, d)
            found += calls.complaints(name, problem, answer)
        except gs.GiantstepsError as error:
            if len(str(error)) > 600:
                found.append(("MESSAGE", f"{len(str(error))} characters: {error}"[:300]))
        except MemoryError as error:
            found.append(("MEMORY", str(error)[:120]))
        except TooSlow:
            found.append((f"HANG>{SECONDS:g}s", f"{time.process_time() - start:.1f}"))
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{os.path.basename(last.filename)}:{last.lineno}"
            found.append(("CRASH", f"{type(error).__name__}: {str(error)[:200]} @ {place}"))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    for warning in caught[:1]:
        place = f"{os.path.basename(warning.filename)}:{warning.lineno}"
        found.append(("WARNING", f"{warning.category.__name__}: {warning.message} @ {place}"))
    return answer, found


def examine(problem: gs.Problem, d: int, names: list[str]) -> Iterator[dict[str, Any]]:
    """Complaints about some calls, and about the continuity of the risk."""
    answers = {}
    for name in names:
        yield {"asking": name}
        answers[name], found = ask(name, problem, d)
        for kind, detail in found:
            yield {"kind": kind, "call": name, "detail": detail}
    for name in ("risk", "risk@d"):
        before = answers.get(name)
        if before is None or not before.test > 0:
            continue
        for path, moved in calls.nudges(problem):
            if name == "risk@d" and moved.at(d) != problem.at(d):
                continue  # a sample or a neuron more is another problem
            yield {"asking": f"{name}~{path}"}
            after, found = ask(name, moved, d)
            for kind, detail in found:
                yield {"kind": kind, "call": f"{name}~{path}", "detail": detail}
            if after is not None:
                for kind, detail in calls.jumps(path, before, after):
                    yield {"kind": kind, "call": name, "detail": detail}
            elif not found:
                yield {"kind": "PERTURB-REFUSED", "call": name, "detail": path}


# Processes ------------------------------------------------------------------------------------


def _child(problem: gs.Problem, d: int, names: list[str], pipe: int) -> None:
    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))

    def stop(number: int, frame: Any) -> None:
        raise TooSlow

    signal.signal(signal.SIGPROF, stop)
    with os.fdopen(pipe, "w", buffering=1) as out:
        for line in examine(problem, d, names):
            out.write(json.dumps(line) + "\n")
        out.write(json.dumps({"asking": None}) + "\n")


def isolated(problem: gs.Problem, d: int, names: list[str]) -> list[dict[str, Any]]:
    """`examine` in a process of its own, which may die."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _child(problem, d, names, writing)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(writing)
    text, asking, found = b"", "start", []
    while True:
        ready, _, _ = select.select([reading], [], [], KILLED)
        chunk = os.read(reading, 65536) if ready else b""
        if not chunk:
            break
        text += chunk
        *lines, text = text.split(b"\n")
        for line in map(json.loads, lines):
            if "asking" in line:
                asking = line["asking"]
            else:
                found.append(line)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.close(reading)
    os.waitpid(child, 0)
    if asking is not None:
        kind = "DIED" if ready else f"HANG>{KILLED:g}s"
        found.append({"kind": kind, "call": asking, "detail": ""})
    facts = {"d": d, "problem": problem.to_data()}
    return [{**line, **facts} for line in found]


def of_line(text: str) -> list[dict[str, Any]]:
    """The one call of a line of a file, with all checks; jumps are looked for in a plain risk."""
    line = json.loads(text)
    problem = gs.Problem.from_data(line["problem"])
    name = line["call"].partition("~")[0].partition(".")[0]
    return isolated(problem, line["d"], [name])


def of_seed(seed: int, names: list[str]) -> list[dict[str, Any]]:
    """Some calls of the problem of a seed."""
    d = generator.SIZES[seed % len(generator.SIZES)]
    problem = generator.problem(seed)
    return [{"seed": seed, **line} for line in isolated(problem, d, names)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--replay", type=argparse.FileType())
    parser.add_argument("--limit", action="store_true", help="leave out what is asked at a size")
    parser.add_argument("--calls", help="names of calls, separated by commas; all unless given")
    options = parser.parse_args()
    import concurrent.futures
    import multiprocessing

    seeds = range(options.first, options.first + options.count)
    names = list(calls.CALLS) if options.calls is None else options.calls.split(",")
    if options.limit:
        names = [name for name in names if "@" not in name]
    work: tuple[Any, Any] = (functools.partial(of_seed, names=names), seeds)
    if options.replay is not None:
        work = (of_line, options.replay.read().splitlines())
    counts: collections.Counter[str] = collections.Counter()
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.workers, context) as pool:
        for lines in pool.map(*work):
            for line in lines:
                counts[line["kind"]] += 1
                print(json.dumps(line), flush=True)
    sys.stderr.write(f"{len(work[1])} problems: {dict(counts) or 'no complaint'}\n")
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
