"""Activations, link functions and teachers: names, expressions and users' own callables."""

from ._function import Function
from ._latex import latex as latex
from ._multi_index import MultiIndex
from ._named import names as names
from ._specification import as_function, centered
from ._teacher import SingleIndex as SingleIndex
from ._teacher import Teacher as Teacher
from ._teacher import as_teacher as as_teacher

__all__ = ["Function", "MultiIndex", "as_function", "centered"]
