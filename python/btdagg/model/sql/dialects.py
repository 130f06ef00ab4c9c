"""Functions, names, texts and numbers as each database writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from btdagg._util.errors import InputError, one_of

Name = str | Sequence[str]

# ln(1 + y) / 2 with y = 2x / (1 - x), for databases without ATANH. Dividing by the rounded 1 + y
# less 1 undoes the rounding.
_ATANH = (
    "(CASE WHEN 1 + 2 * ({0}) / (1 - ({0})) = 1 THEN {0} ELSE ({0}) / (1 - ({0})) "
    "* LN(1 + 2 * ({0}) / (1 - ({0}))) / ((1 + 2 * ({0}) / (1 - ({0}))) - 1) END)"
)


@dataclass(frozen=True)
class Dialect:
    """Functions and types as a database names them."""

    # `quote` is around names, doubled within, `literal` around the digits of a float. `real`,
    # `integer` and `text` are types. `is_number` and `is_signed` tell whether a column holds a
    # number of at least 0, or any, where its type does not say. `escapes_...`: a backslash escapes.

    quote: str
    real: str
    integer: str = "INTEGER"
    text: str = "VARCHAR"
    greatest: str = "GREATEST"
    literal: str = "{}"
    sinh: str = "SINH({})"
    atanh: str = "ATANH({})"
    is_number: str = ""
    is_signed: str = ""
    escapes_names: bool = False
    escapes_texts: bool = False

    def name(self, name: Name) -> str:
        """Quote a name, or the parts of a qualified one, so that it is a name and nothing else."""
        parts = [name] if isinstance(name, str) or not isinstance(name, Sequence) else name
        if not parts or not all(isinstance(p, str) and p and "\0" not in p for p in parts):
            raise InputError(f"{name!r} is not a name of a column or table")
        return ".".join(_enclosed(part, self.quote, self.escapes_names) for part in parts)

    def texts(self, values: Iterable[str]) -> str:
        """Write texts, with commas between them."""
        return ", ".join(_enclosed(value, "'", self.escapes_texts) for value in values)

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
        text="TEXT",
        greatest="MAX",
        is_number="(TYPEOF({0}) IN ('integer', 'real') OR {0} GLOB '[0-9]*' "
        "AND {0} NOT GLOB '*[^0-9.]*' AND {0} NOT GLOB '*.*.*') AND ",
        is_signed="(TYPEOF({0}) IN ('integer', 'real') OR LTRIM({0}, '-') GLOB '[0-9]*' "
        "AND LTRIM({0}, '-') NOT GLOB '*[^0-9.]*' AND {0} NOT GLOB '*.*.*') AND ",
    ),
    "spark": Dialect("`", "DOUBLE", text="STRING", literal="{}D", escapes_texts=True),
    # Its types hold no NULL unless they say so, and these two functions have one spelling.
    "clickhouse": Dialect(
        "`",
        "Nullable(Float64)",
        integer="Nullable(Int32)",
        text="Nullable(String)",
        sinh="sinh({})",
        atanh="atanh({})",
        escapes_names=True,
        escapes_texts=True,
    ),
    "bigquery": Dialect(
        "`", "FLOAT64", integer="INT64", text="STRING", escapes_names=True, escapes_texts=True
    ),
    "snowflake": Dialect('"', "DOUBLE", escapes_texts=True),
    "trino": Dialect('"', "DOUBLE", atanh=_ATANH),
}


def dialect_named(dialect: str) -> Dialect:
    """Return a dialect; InputError if there is none of this name."""
    return DIALECTS[one_of(dialect, DIALECTS, "dialect")]


def _enclosed(text: str, mark: str, escapes: bool) -> str:
    if escapes:
        return f"{mark}{text.replace(chr(92), 2 * chr(92)).replace(mark, chr(92) + mark)}{mark}"
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
