"""What A and B are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.lazy import pl
from btdagg._util.readable import readable
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.table import NUMBER, Table, as_text, refuse

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Whose responses A and B are; where they are the same in all rows, these are the names.
_COLUMNS = {"a": "system_a", "b": "system_b"}


@readable
class Sides(NamedTuple):
    """Names of A and B; by default A and B.

    Examples
    --------
    >>> sides = Sides("chat-new", "chat-old")
    >>> sides.named("A"), sides.named("tie")
    ('chat-new', 'tie')
    """

    a: str = "A"
    b: str = "B"

    def named(self, side: str) -> str:
        """Return the name of A or B, and other words as they are."""
        return {"A": self.a, "B": self.b}.get(side, side)


UNNAMED = Sides()


def turned(values: NDArray[Any], is_turned: NDArray[np.bool_]) -> NDArray[Any]:
    """Return rows of values in label order, (n, ..., K), with A and B swapped in some of them."""
    which = is_turned.reshape(-1, *[1] * (values.ndim - 1))
    return np.where(which, values[..., ::-1], values)


def require_one_pair(table: Table, key: list[str]) -> None:
    """Refuse the first row that names other systems than its item's first: several pairs."""
    columns = [*_COLUMNS.values()]
    if not {*columns, *key} <= {*table.columns}:
        return
    names = [as_text(table, column).str.strip_chars() for column in columns]
    numbers = [pl.when(name.is_not_null()).then(name.hash()) for name in names]
    several = pl.any_horizontal(number.min() != number.max() for number in numbers)
    rows = table.data.lazy().group_by(key).agg(several.alias("\0several"))
    keys = table.collect(rows.filter("\0several").select(key))
    if not keys.height:
        return
    suspects = table.rows.join(keys.lazy(), on=key, how="semi", nulls_equal=True)
    ordered = table.collect(suspects.select(*key, *names, NUMBER)).sort(NUMBER)
    first = ordered.select(pl.col(columns).drop_nulls().first().over(key))
    differs = ordered.select(pl.col(column) != first[column] for column in columns)
    row = differs.select(pl.any_horizontal(columns).arg_true().first()).item()
    column = next(column for column in columns if differs[column][row])
    raise table.error(
        ordered[NUMBER][row],
        column,
        f"{first[column][row]!r} as in another row of {key[0]} {ordered[key[0]][row]!r}, which is "
        "one pair with the same A in all rows; several pairs need an item of their own: {advice}",
        {"columns": {"item": [key[0], *columns]}},
    )


def sides_of(
    table: Table, a: str | None = None, b: str | None = None, *, scale: Scale = PAIRS
) -> Sides:
    """Return the names of A and B, or those that columns of a table have in all rows."""
    # `system_a` and `system_b` must not contradict a name. A scale without sides has none.
    names = {side: name for side, name in {"a": a, "b": b}.items() if name is not None}
    if not scale.mirrored:
        for side, name in names.items():
            expected = "no names, since votes are grades of single responses"
            raise InputError(argument=side, got=name, expected=expected)
        return UNNAMED
    for side, name in names.items():
        expect(isinstance(name, str) and name.strip(), side, name, "a name")
        column, names[side] = _COLUMNS[side], name.strip()
        if column in table.columns:
            is_other = as_text(table, column).str.strip_chars().ne_missing(name.strip())
            refuse(table, is_other, column, f"{name.strip()!r}, the name of {side.upper()}")
    if names:
        sides = UNNAMED._replace(**names)
        expect(sides.a != sides.b, "b", sides.b, "a name other than that of A")
        return sides
    if not {*_COLUMNS.values()} <= {*table.columns}:
        return UNNAMED
    values = [table.values(column).to_list() for column in _COLUMNS.values()]
    is_same = all(len(texts) == 1 and texts[0] for texts in values) and values[0] != values[1]
    return Sides(*(texts[0].strip() for texts in values)) if is_same else UNNAMED
