"""Importing this module loads and warms all that a worker needs.

Workers are forked from a process that has imported it, so that a new one answers at once: ending
the process of a request that nobody waits for any more then costs next to nothing.
"""

from __future__ import annotations

from giantsteps.explorer._compute import warm_up

warm_up()
