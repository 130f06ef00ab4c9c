"""The error of bad input, which words itself."""

from __future__ import annotations

import shlex
from contextlib import contextmanager
from copy import copy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from typing import TypeVar

    Value = TypeVar("Value")

_MOST = 60  # characters of a value that a message shows
_ABSENT = object()
_ADVICE = "{advice}"


class InputError(ValueError):
    """Bad input; the message names the argument or source, the row, the value and what is expected.

    The fields are worded unless a message is given, as here for an argument and for a file:

    >>> print(InputError(argument="labels", row=3, got="Y", expected="-1, 0 or 1"))
    labels[3] is 'Y', expected -1, 0 or 1
    >>> print(InputError(source="a.csv", row=3, column="vote", got="Y", expected="A, tie or B"))
    a.csv, row 3, column vote: got 'Y', expected A, tie or B

    A message says ``{advice}`` where it names arguments to pass, whose values are in `advice`; what
    has no value is only named.

    >>> print(InputError("no item; {advice} names it", advice={"columns": {"item": "id"}}))
    no item; columns={'item': 'id'} names it

    `row` is from 0 in an argument, from 1 in a source; `got` is the value, None if not given.
    """

    __module__ = "btdagg"

    def __init__(
        self,
        message: str | None = None,
        *,
        argument: str | None = None,
        got: object = _ABSENT,
        expected: str | None = None,
        row: int | tuple[int, ...] | None = None,
        column: str | None = None,
        source: str | None = None,
        advice: Mapping[str, object] | None = None,
    ) -> None:
        self.advice = dict(advice or {})
        self.argument = argument or next(iter(self.advice), None)
        self.row, self.column, self.source = row, column, source
        self.got, self.expected = None if got is _ABSENT else got, expected
        if message is None:
            value = None if got is _ABSENT else shown(got)
            message = self._in_source(value) if source is not None else self._in_argument(value)
        self._message, self._where = message, ""
        passed = (k if v is None else f"{k}={v!r}" for k, v in self.advice.items())
        super().__init__(message.replace(_ADVICE, ", ".join(passed)))

    def in_options(self, option_of: Callable[[str], str | None]) -> str:
        """Return the message as a command words it: ``columns={'item': 'id'}`` is an option."""
        passed = (_typed(option_of(name) or name, value) for name, value in self.advice.items())
        message = self._message.replace(_ADVICE, " ".join(passed))
        rest = message.removeprefix(self.argument or "")
        if rest is message or rest[:1].isidentifier():
            return self._where + message
        option = (option_of(self.argument or "") or self.argument or "").rstrip("=. ")
        return f"{self._where}{option}{rest}"

    def within(self, where: str) -> InputError:
        error = copy(self)
        error.args, error._where = (f"{where}{self}",), where + self._where
        return error

    def _in_source(self, value: str | None) -> str:
        row = None if self.row is None else f"row {self.row}"
        column = None if self.column is None else f"column {self.column}"
        where = ", ".join(part for part in (self.source, row, column) if part is not None)
        got = "" if value is None else f"got {value}, "
        return f"{where}: {got}expected {self.expected}"

    def _in_argument(self, value: str | None) -> str:
        row = self.row if isinstance(self.row, tuple) or self.row is None else (self.row,)
        place = "" if row is None else f"[{', '.join(map(str, row))}]"
        got = ":" if value is None else f" is {value},"
        return f"{self.argument}{place}{got} expected {self.expected}"


def expect(good: object, argument: str, got: object, expected: str, row: int | None = None) -> None:
    if not good:
        raise InputError(argument=argument, got=got, expected=expected, row=row)


def forbid(
    bad: object,
    message: str,
    argument: str | None = None,
    *,
    advice: Mapping[str, object] | None = None,
) -> None:
    """Raise an `InputError` with a message of its own if something is bad."""
    if bad:
        raise InputError(message, argument=argument, advice=advice)


def given(value: Value | None, argument: str, expected: str) -> Value:
    """Return the value of an argument, which may not be None."""
    if value is None:
        raise InputError(argument=argument, got=None, expected=expected)
    return value


def of_kind(value: object, kind: type[Value], argument: str, expected: str) -> Value:
    """Return the value of an argument, which has to be of a class."""
    if not isinstance(value, kind):
        raise InputError(argument=argument, got=value, expected=expected)
    return value


def one_of(value: object, choices: Collection[Value], argument: str) -> Value:
    """Return the value of an argument, which has to be among some choices."""
    if value not in choices:
        expected = f"one of {', '.join(map(str, choices)) or 'none'}"
        raise InputError(argument=argument, got=value, expected=expected)
    return value  # type: ignore[return-value]  # equal to one of them


@contextmanager
def within(where: str) -> Iterator[None]:
    """Say what an `InputError` of the ``with`` statement is about."""
    try:
        yield
    except InputError as error:
        raise error.within(where) from None


@contextmanager
def reworded(
    errors: type[BaseException] | tuple[type[BaseException], ...],
    message: str,
    argument: str | None = None,
) -> Iterator[None]:
    """Make errors of others an `InputError`, whose message has their first line for {error}."""
    try:
        yield
    except errors as error:
        why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise InputError(message.replace("{error}", why), argument=argument) from None


def shown(value: object) -> str:
    """Write a value for an error message, on one line and cut to length; null is "nothing"."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a scalar of NumPy
        value = value.item()
    line = "nothing" if value is None else repr(value)
    return line if len(line) <= _MOST else line[: _MOST - 3] + "..."


def _typed(option: str, value: object) -> str:
    # An option that ends in a key is repeated for each of a mapping.
    if value is None:
        return option.rstrip("=. ")
    begin = option if option.endswith(("=", ".", " ")) else f"{option} "
    if not isinstance(value, dict):
        return f"{begin}{shlex.quote(str(value))}"
    written = quoted if begin.startswith("--set ") else str
    pairs = (f"{written(name)}={written(part)}" for name, part in value.items())
    return " ".join(begin + shlex.quote(pair) for pair in pairs)


def quoted(value: object) -> str:
    """Write a name or a value as --set takes it: in double quotes if it would end elsewhere."""
    text = "+".join(value) if isinstance(value, list) else str(value)
    is_plain = text == text.strip() != "" and not {*text} & {*',="'}
    return text if is_plain else '"' + text.replace('"', '""') + '"'
