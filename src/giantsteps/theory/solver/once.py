"""Attributes that are computed when they are first asked for, and then kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property

    once = cached_property
else:

    class once:
        """`functools.cached_property` without its lock, which costs more than most of the solver's
        small arrays.
        """

        def __init__(self, function: Any) -> None:
            self.func, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value
