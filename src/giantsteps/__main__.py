"""``python -m giantsteps`` is the command line."""

from __future__ import annotations

from giantsteps.cli import main

if __name__ == "__main__":
    main()
