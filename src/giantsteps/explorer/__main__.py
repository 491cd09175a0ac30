"""``python -m giantsteps.explorer``: the explorer beside a Python session or a notebook.

It reads its settings as one line of JSON, says its URL as another, and ends when its standard
input is closed: with the process that started it, however that ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from giantsteps.errors import InvalidProblem, StoreError
from giantsteps.explorer._launch import serve


def main() -> None:
    """Serve until the other end has gone."""
    settings: dict[str, Any] = json.loads(sys.stdin.readline())
    store = settings.pop("store")

    def ready(url: str) -> None:
        _say({"url": url})
        threading.Thread(target=_end_with_parent, daemon=True).start()

    try:
        serve(**settings, store=None if store is None else Path(store), ready=ready)
    except InvalidProblem as error:
        _say({"field": error.field, "value": error.value, "allowed": error.allowed})
    except StoreError as error:
        _say({"store": str(error)})


def _say(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _end_with_parent() -> None:
    sys.stdin.read()  # returns when the other end is closed
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    main()
