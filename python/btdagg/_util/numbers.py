"""Checks of single numbers. They import no NumPy, so that commands that need none start sooner."""

from __future__ import annotations

import math
from numbers import Integral

from btdagg._util.errors import InputError


def as_number(
    value: object,
    name: str,
    *,
    least: float = -math.inf,
    above: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
    row: int | None = None,
) -> float:
    """Return a finite number within limits as a float; True, as JSON has it, is none."""
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever float() takes, but no text
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    is_bool = isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool"  # or NumPy's
    if is_bool or isinstance(value, str | bytes) or not math.isfinite(number):
        raise InputError(argument=name, row=row, got=value, expected="a finite number")
    if not (least <= number <= most and above < number < below):
        limits = {"of at least": least, "above": above, "below": below, "at most": most}
        named = [f"{word} {limit:g}" for word, limit in limits.items() if math.isfinite(limit)]
        expected = f"a number {' and '.join(named)}"
        raise InputError(argument=name, row=row, got=value, expected=expected)
    return number


def as_integer(value: object, name: str, least: int, most: int = 2**63 - 1) -> int:
    is_integer = isinstance(value, Integral) and not isinstance(value, bool)
    if is_integer and least <= value <= most:  # type: ignore[operator]
        return int(value)  # type: ignore[call-overload, no-any-return]
    too_large = is_integer and value > most  # type: ignore[operator]
    expected = f"an integer of {f'at most {most}' if too_large else f'at least {least}'}"
    raise InputError(argument=name, got=value, expected=expected)
