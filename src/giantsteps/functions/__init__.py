"""Activations, link functions and teachers: names, expressions and users' own callables."""

from ._function import Function
from ._latex import latex
from ._multi_index import MultiIndex
from ._named import names
from ._specification import as_function, centered
from ._teacher import SingleIndex, Teacher, as_teacher

__all__ = ["Function", "MultiIndex", "as_function", "centered"]
