"""Reprs of one line, whatever the size of the data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from reprlib import Repr
from typing import Any, TypeVar

AnyClass = TypeVar("AnyClass", bound=type)

_FEW = 6  # entries of an array that are written out
_INNER = 30  # letters of an object within another
_COLUMNS = 8
_LEVELS = 3  # of collections and objects within one another


class _Brief(Repr):
    """Writes a value in a line whose length does not grow with the data, and computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 4
        self.maxdict = 5
        self.maxstring = self.maxother = 80

    def repr_float(self, value: float, level: int) -> str:
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"

    def repr_dict(self, value: Mapping[Any, Any], level: int) -> str:
        if level <= 0 and value:
            return "{...}"
        parts = [  # in its own order: sorting a large one would take long
            f"{self.repr1(key, level - 1)}: {self.repr1(item, level - 1)}"
            for key, item in islice(value.items(), self.maxdict)
        ]
        return f"{{{', '.join([*parts, *['...'] * (len(value) > self.maxdict)])}}}"

    def repr_ndarray(self, value: Any, level: int) -> str:
        if value.size > _FEW or value.ndim != 1:
            return f"<{value.dtype} {value.shape}>"
        return self.repr1(value.tolist(), level)

    def repr_DataFrame(self, value: Any, level: int) -> str:  # noqa: N802
        columns = [str(name) for name in value.columns[:_COLUMNS]]
        more = ["..."] * (len(value.columns) > _COLUMNS)
        return f"<{len(value)} rows of {', '.join([*columns, *more])}>"

    def repr_LazyFrame(self, value: Any, level: int) -> str:  # noqa: N802
        return "<rows that are not read yet>"

    def repr_instance(self, value: Any, level: int) -> str:
        if names := _names_of(type(value)):
            return self.of_fields(value, names, level, _INNER)
        if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a scalar of NumPy
            return self.repr1(value.item(), level)
        if isinstance(value, Mapping):
            return self.repr_dict(value, level)
        if hasattr(type(value), "__len__") and not isinstance(value, str | bytes):
            return f"<{type(value).__name__}>"  # its own repr may write out all that it holds
        return super().repr_instance(value, level)

    def of_fields(self, value: Any, names: tuple[str, ...], level: int, most: float) -> str:
        """Write the fields of an object; dots stand for those after so many letters."""
        parts: list[str] = []
        for name in names:
            if sum(map(len, parts)) > most or level <= 0:
                parts.append("...")
                break
            if hasattr(value, name):  # else it is being made
                parts.append(f"{name}={self.repr1(getattr(value, name), level - 1)}")
        return f"{type(value).__name__}({', '.join(parts)})"


_BRIEF = _Brief()


def readable(cls: AnyClass) -> AnyClass:
    """Give a dataclass or named tuple a repr of one line, whatever its fields hold.

    Arrays are written as type and shape, collections of Python up to the fourth entry, mappings up
    to the fifth, numbers with four digits, and other containers as their type. Nothing is computed,
    and nothing is read from a file. What is no container is written as its own repr, cut.
    """
    names = _names_of(cls)

    def in_a_line(self: Any) -> str:
        return _BRIEF.of_fields(self, names, _LEVELS, math.inf)

    made: Any = cls
    made.__repr__ = in_a_line
    return cls


def _names_of(cls: type) -> tuple[str, ...]:
    """Return the fields that a repr shows, of a dataclass or a named tuple."""
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls) if field.repr)
    return getattr(cls, "_fields", ()) if issubclass(cls, tuple) else ()
