"""The error of bad input, which words itself."""

from __future__ import annotations

import ast
import re
import shlex

_MOST = 60  # characters of a value that a message shows
_ABSENT = object()
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_MAPPING = rf"\{{{_TEXT}: {_TEXT}(?:, {_TEXT}: {_TEXT})*\}}"


class InputError(ValueError):
    """Bad input; the message names the argument or source, the row, the value and what is expected.

    The fields are worded unless a message is given, as here for an argument and for a file:

    >>> print(InputError(argument="labels", row=3, came="Y", expected="-1, 0 or 1"))
    labels[3] is 'Y', expected -1, 0 or 1
    >>> print(InputError(source="a.csv", row=3, column="vote", came="Y", expected="A, tie or B"))
    a.csv, row 3, column vote: got 'Y', expected A, tie or B

    Attributes
    ----------
    argument, source, column, expected : str or None
    row : int, tuple of int or None
        From 0 in an argument, from 1 in a source.
    came : object
        The value, None if it was not given.
    """

    __module__ = "btdagg"

    def __init__(
        self,
        message: str | None = None,
        *,
        argument: str | None = None,
        came: object = _ABSENT,
        expected: str | None = None,
        row: int | tuple[int, ...] | None = None,
        column: str | None = None,
        source: str | None = None,
    ) -> None:
        self.argument, self.row, self.column, self.source = argument, row, column, source
        self.came, self.expected = None if came is _ABSENT else came, expected
        if message is None:
            value = None if came is _ABSENT else shown(came)
            message = self._in_source(value) if source is not None else self._in_argument(value)
        super().__init__(message)

    def calling_it(self, name: str) -> str:
        """Return the message with another name for the argument, such as a command's option.

        An argument given as ``columns={'item': 'id'}`` becomes ``--column item=id``.
        """
        if self.argument is None:
            return str(self)
        argument = rf"\b{re.escape(self.argument)}"
        typed, n_typed = re.subn(
            rf"{argument}=({_MAPPING})", lambda match: f"{name} {_typed(match[1])}", str(self)
        )
        return typed if n_typed else re.sub(rf"{argument}\b", lambda _: name, str(self), count=1)

    def _in_source(self, value: str | None) -> str:
        row = None if self.row is None else f"row {self.row}"
        column = None if self.column is None else f"column {self.column}"
        where = ", ".join(part for part in (self.source, row, column) if part is not None)
        came = "" if value is None else f"got {value}, "
        return f"{where}: {came}expected {self.expected}"

    def _in_argument(self, value: str | None) -> str:
        row = self.row if isinstance(self.row, tuple) or self.row is None else (self.row,)
        place = "" if row is None else f"[{', '.join(map(str, row))}]"
        came = ":" if value is None else f" is {value},"
        return f"{self.argument}{place}{came} expected {self.expected}"


def shown(value: object) -> str:
    """Write a value for an error message, on one line and cut to length; null is "nothing"."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a scalar of NumPy
        value = value.item()
    line = "nothing" if value is None else repr(value)
    return line if len(line) <= _MOST else line[: _MOST - 3] + "..."


def _typed(mapping: str) -> str:
    """Return a mapping of texts as an option takes it: NAME=VALUE,..."""
    return shlex.quote(",".join(f"{k}={v}" for k, v in ast.literal_eval(mapping).items()))
