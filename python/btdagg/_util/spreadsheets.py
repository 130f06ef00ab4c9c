"""Text that a spreadsheet would run as a formula, in CSV files."""

from __future__ import annotations

import re

# What spreadsheets take for the start of a formula; some take the wide forms too. Apostrophes in
# front count as well, so that one more can be taken off again.
_FORMULA = re.compile("'*[=+@\t\r\n＝＋－＠-]")


def guarded(text: str) -> str:
    """Return text with an apostrophe in front if a spreadsheet would run it; numbers stay."""
    return f"'{text}" if _FORMULA.match(text) and not is_number(text) else text


def unguarded(text: str) -> str:
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
