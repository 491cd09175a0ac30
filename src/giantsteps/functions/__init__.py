"""Activations, link functions and teachers: names, expressions and users' own callables."""

from ._function import Function, as_function, centered
from ._multi_index import MultiIndex
from ._named import names
from ._teacher import SingleIndex, Teacher, as_teacher

__all__ = [
    "Function",
    "MultiIndex",
    "SingleIndex",
    "Teacher",
    "as_function",
    "as_teacher",
    "centered",
    "names",
]
