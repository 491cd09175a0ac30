"""The certificate: how long it takes, and where the time goes.

    python benchmarks/certificate.py --device cuda --out certificate        # the full one
    python benchmarks/certificate.py --settings 1 --device cuda             # an eighth of it

Writes the report, and ``profile.json``: the clock as networks were finished, and for each question
and size how many networks there were and how long the workers took for them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sqlite3
import time
from pathlib import Path

from giantsteps.comparison.certify import SCALES, _certify, certify
from giantsteps.comparison.certify._report import json_text


def profile(store: Path) -> list[list[object]]:
    """Question, steps, d, networks, seconds of the workers, milliseconds per network."""
    query = """
        SELECT question, json_array_length(problems.content, '$.steps'), d, count(*), sum(seconds),
               1000 * sum(seconds) / count(*)
        FROM cells LEFT JOIN problems ON problems.hash = cells.problem
        GROUP BY 1, 2, 3 ORDER BY 5 DESC
    """
    with sqlite3.connect(store) as connection:
        return [list(row) for row in connection.execute(query)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("certificate"))
    parser.add_argument("--device")
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--per-gpu", type=int, default=_certify._PER_GPU)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--settings", type=int, default=SCALES["full"].settings)
    parser.add_argument("--sizes", type=int, nargs=2, default=SCALES["full"].sizes)
    parser.add_argument("--error", type=float, default=SCALES["full"].error)
    parser.add_argument("--most", type=int, default=SCALES["full"].most)
    parser.add_argument("--families", nargs="+")
    parser.add_argument("--store", type=Path, help="default: networks.sqlite in the folder")
    parser.add_argument("--only-profile", action="store_true", help="of a store that was filled")
    given = parser.parse_args()
    _certify._PER_GPU = given.per_gpu
    changed = {name: getattr(given, name) for name in ("settings", "error", "most")}
    chosen = dataclasses.replace(SCALES["full"], sizes=tuple(given.sizes), **changed)
    scale = "full" if chosen == SCALES["full"] else chosen
    given.out.mkdir(parents=True, exist_ok=True)
    store = given.store or given.out / "networks.sqlite"
    started, clock = time.perf_counter(), []
    if given.only_profile:
        for row in profile(store):
            print(*row, sep="\t")
        return

    def note(done: int, failed: int, total: int) -> None:
        elapsed = time.perf_counter() - started
        if not clock or elapsed > clock[-1][0] + 2:
            clock.append([round(elapsed, 1), done, failed, total])
            print(*clock[-1], flush=True)

    found = certify(
        scale, seed=given.seed, store=store, workers=given.workers, device=given.device,
        families=given.families, progress=note,
    )  # fmt: skip
    seconds = time.perf_counter() - started
    (given.out / "certificate.json").write_text(json_text(found), encoding="utf-8")
    rows = profile(store)
    for row in rows:
        print(*row, sep="\t")
    summary = {"seconds": seconds, "networks": found.networks, "clock": clock, "workers": rows}
    (given.out / "profile.json").write_text(json.dumps(summary), encoding="utf-8")
    print(repr(found))
    found.save(given.out)
    print(f"{seconds:.1f} s for {found.networks} networks")


if __name__ == "__main__":
    main()
