"""What a specification means: a name, an expression, "module:attr", plain data or a callable."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import InvalidProblem
from ._expression import parse
from ._function import MODULE, Function
from ._multi_index import MultiIndex
from ._named import names
from ._tree import CENTERED, Call, X

Spec = str | Mapping[str, Any] | Function | Callable[[Any], Any]


def as_function(spec: Spec, field: str = "activation") -> Function:
    """Return the function that a specification stands for.

    Parameters
    ----------
    spec : str, mapping, Function or callable
        A name (``"relu"``), an expression in x (``"max(x, x**2-1)"``), ``"module:attr"`` for a
        function of your own (**this imports the module, and so runs its code**), the data of
        `Function.to_data`, or a callable.
    field : str
        The field that errors name.

    Raises
    ------
    InvalidProblem
        When the specification stands for no function.

    Examples
    --------
    >>> as_function("tanh(2*x) + 0.3*x**2").derivative.canonical
    '2*(1 - tanh(2*x)**2) + 0.3*(2*x)'
    >>> as_function({"name": "relu", "centered": True}).canonical
    'centered(relu)'
    >>> as_function("tanhh")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    giantsteps.errors.InvalidProblem: activation = 'tanhh': must be ...
    """
    if isinstance(spec, Function):
        return spec
    if isinstance(spec, str):
        return _from_text(spec, field)
    if isinstance(spec, Mapping):
        return _from_mapping(spec, field)
    if isinstance(spec, np.ufunc) and spec.__name__ in names():
        return _from_text(spec.__name__, field)
    if callable(spec):
        return _own(spec, None, field)
    raise InvalidProblem(field, spec, "a name, an expression in x, a Function or a callable")


def centered(spec: Spec) -> Function:
    """σ − E σ(z), z ~ N(0, 1); centring twice changes nothing.

    Parameters
    ----------
    spec : str, mapping, Function or callable
        What `as_function` reads.

    References
    ----------
    theory §0.

    Examples
    --------
    >>> relu = centered("relu")
    >>> relu.canonical, round(float(relu(0.0)), 6)  # −1/√(2π)
    ('centered(relu)', -0.398942)
    >>> centered(relu) == relu
    True
    """
    function = as_function(spec)
    if isinstance(function._tree, Call) and function._tree.atom == CENTERED:
        return function
    return Function._from_tree(Call(CENTERED, (function._tree,)))


def _from_text(text: str, field: str) -> Function:
    stripped = text.strip()
    if len(stripped) < 1000 and ":" in stripped:
        inner = stripped.removeprefix("centered(").removesuffix(")")
        if MODULE.fullmatch(stripped):
            return _imported(stripped, field)
        if MODULE.fullmatch(inner) and stripped == f"centered({inner})":
            return centered(_imported(inner, field))
    return Function._from_tree(parse(text, field))


def _from_mapping(data: Mapping[str, Any], field: str) -> Function:
    allowed = {"name", "expression", "centered"}
    keys = set(data)
    text = data.get("name", data.get("expression"))
    center = data.get("centered", False)
    if not keys <= allowed or len(keys & {"name", "expression"}) != 1 or not isinstance(text, str):
        raise InvalidProblem(
            field, dict(data), 'a table with "name" or "expression" (a string), and "centered"'
        )
    if not isinstance(center, bool):
        raise InvalidProblem(f"{field}.centered", center, "true or false")
    function = _from_text(text, field)
    return centered(function) if center else function


def _imported(path: str, field: str) -> Function:
    """The function behind "module:attr"."""
    module_name, attribute = path.split(":")
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:
        raise InvalidProblem(
            field, path, f"an importable function 'module:attr' ({type(error).__name__}: {error})"
        ) from error
    if isinstance(found, Function):
        return _renamed(found, path)
    if not callable(found):
        raise InvalidProblem(field, path, "a function, not " + type(found).__name__)
    return _own(found, path, field)


def _own(callable: Callable[[Any], Any], name: str | None, field: str) -> Function:
    """A callable that was given in place of a function."""
    if isinstance(callable, MultiIndex):
        raise InvalidProblem(field, callable, "a function of one variable: MultiIndex is a teacher")
    try:
        return Function(callable, name=name)
    except InvalidProblem as error:
        reason = error.allowed
        if "torch" in f"{type(callable).__module__} {getattr(callable, '__module__', '')} {error}":
            reason = (
                "a function of arrays of every library, which those of PyTorch are not: name it, "
                'such as "relu", "gelu" or "tanh", or write an expression in x'
            )
        raise InvalidProblem(field, name or callable, reason) from error


def _renamed(function: Function, path: str) -> Function:
    """A Function found at module:attr, known by that path if it is a single callable."""
    tree = function._tree
    if isinstance(tree, Call) and tree.atom.user and tree.args == (X,):
        return Function._from_tree(Call(replace(tree.atom, name=path), tree.args))
    return function
