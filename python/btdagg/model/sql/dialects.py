"""Functions, names and numbers as each database writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from btdagg._util.errors import InputError, one_of

Name = str | Sequence[str]

# ½ ln((p + a) / (m + a)), written so that it keeps its relative accuracy for any counts.
_MARGIN = "ASINH(({p} - {m}) / 2 / SQRT({p} + {a}) / SQRT({m} + {a}))"


@dataclass(frozen=True)
class Dialect:
    """Functions and types as a database names them."""

    # `quote` is around names, doubled within unless a backslash escapes; `literal` is around the
    # digits of a float, whose type is `real`. `is_number` and `is_signed` tell whether a column
    # holds a number of at least 0, or any, where its type does not say.

    quote: str
    real: str
    greatest: str = "GREATEST"
    literal: str = "{}"
    sinh: str = "SINH({})"
    margin: str = _MARGIN
    is_number: str = ""
    is_signed: str = ""
    backslash_escapes: bool = False

    def name(self, name: Name) -> str:
        """Quote a name, or the parts of a qualified one, so that it is a name and nothing else."""
        parts = [name] if isinstance(name, str) or not isinstance(name, Sequence) else name
        if not parts or not all(isinstance(p, str) and p and "\0" not in p for p in parts):
            raise InputError(f"{name!r} is not a name of a column or table")
        return ".".join(_enclosed(part, self.quote, self.backslash_escapes) for part in parts)

    def number(self, value: float) -> str:
        """Write a float."""
        text = repr(float(value))
        literal = self.literal.format(text if "e" in text else f"{text}e0")
        return f"({literal})" if value < 0 else literal


DIALECTS = {
    "duckdb": Dialect('"', "DOUBLE"),
    "postgresql": Dialect('"', "DOUBLE PRECISION", literal="CAST({} AS DOUBLE PRECISION)"),
    # Of a name in double quotes that no column has, SQLite makes a text. Its columns hold values of
    # any type, a table made of a CSV file texts alone, and a cast makes 0 of what is no number.
    "sqlite": Dialect(
        "`",
        "REAL",
        greatest="MAX",
        is_number="(TYPEOF({0}) IN ('integer', 'real') OR {0} GLOB '[0-9]*' "
        "AND {0} NOT GLOB '*[^0-9.]*' AND {0} NOT GLOB '*.*.*') AND ",
        is_signed="(TYPEOF({0}) IN ('integer', 'real') OR LTRIM({0}, '-') GLOB '[0-9]*' "
        "AND LTRIM({0}, '-') NOT GLOB '*[^0-9.]*' AND {0} NOT GLOB '*.*.*') AND ",
    ),
    # ASINH of Spark 3 is a logarithm, which is inaccurate near 0.
    "spark": Dialect(
        "`",
        "DOUBLE",
        literal="{}D",
        margin="SIGN({p} - {m}) * LOG1P(ABS({p} - {m}) / (LEAST({p}, {m}) + {a})) / 2",
    ),
    # Its types hold no NULL unless they say so, and these two functions have one spelling.
    "clickhouse": Dialect(
        "`",
        "Nullable(Float64)",
        sinh="sinh({})",
        margin=_MARGIN.replace("ASINH", "asinh"),
        backslash_escapes=True,
    ),
}


def dialect_named(dialect: str) -> Dialect:
    """Return a dialect; InputError if there is none of this name."""
    return DIALECTS[one_of(dialect, DIALECTS, "dialect")]


def _enclosed(text: str, mark: str, escapes: bool) -> str:
    if escapes:
        return f"{mark}{text.replace(chr(92), 2 * chr(92)).replace(mark, chr(92) + mark)}{mark}"
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
