"""Reprs of one line, whatever the size of the data."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from reprlib import Repr
from typing import Any, TypeVar

AnyClass = TypeVar("AnyClass", bound=type)

_FEW = 6  # entries of an array that are written out
_COLUMNS = 8
_LONGEST = 400  # letters


class _Brief(Repr):
    """Writes a value in a line whose length does not grow with the data, and computes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 4
        self.maxdict = 5
        self.maxstring = self.maxother = 80

    def repr_float(self, value: float, level: int) -> str:
        return f"{value:.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"

    def repr_float64(self, value: Any, level: int) -> str:  # of NumPy
        return self.repr_float(value, level)

    def repr_mappingproxy(self, value: Any, level: int) -> str:
        return self.repr_dict(value, level)

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
        name, names = type(value).__name__, _names_of(type(value))
        if names and level > 0:
            # A field that is not there is still being made.
            shown = (field for field in names if hasattr(value, field))
            parts = (f"{field}={self.repr1(getattr(value, field), level - 1)}" for field in shown)
            return f"{name}({', '.join(parts)})"
        if names or (hasattr(type(value), "__len__") and not isinstance(value, str | bytes)):
            return f"<{name}>"  # its own repr may write out all that it holds
        return super().repr_instance(value, level)


_BRIEF = _Brief()


def _in_a_line(value: Any) -> str:
    line = _BRIEF.repr_instance(value, _BRIEF.maxlevel)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..."


def readable(cls: AnyClass) -> AnyClass:
    """Give a named tuple the repr that a `Readable` dataclass has."""
    made: Any = cls
    made.__repr__ = _in_a_line
    return cls


class Readable:
    """A dataclass with a repr of one line, whatever its fields hold; nothing is computed."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__repr__ = _in_a_line  # type: ignore[method-assign]


def _names_of(cls: type) -> tuple[str, ...]:
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls) if field.repr)
    return getattr(cls, "_fields", ()) if issubclass(cls, tuple) else ()
