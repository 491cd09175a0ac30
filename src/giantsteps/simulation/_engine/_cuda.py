"""The numbers of `normals`, drawn on a GPU by a kernel that CUDA compiles when it is first used."""

from __future__ import annotations

from importlib.resources import files

#: The name of the kernel, and the threads of a block, each of which draws four variates.
KERNEL, THREADS = "fill_normal", 256


def source(precision: str) -> str:
    """The kernel for arrays of float64 or float32."""
    text = files(__package__).joinpath(f"{KERNEL}.cu").read_text(encoding="utf-8")
    return text.replace("REAL", "double" if precision == "float64" else "float")


def blocks(start: int, count: int) -> int:
    """Blocks of threads for so many words from ``start`` on."""
    counters = -(-(start % 4 + count) // 4)
    return -(-counters // THREADS)
