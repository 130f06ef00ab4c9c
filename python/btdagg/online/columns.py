"""What a stopping rule says of items, as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from btdagg.online.rule import StoppingRule


def settled_columns(rule: StoppingRule, counts: NDArray[Any]) -> dict[str, pl.Series]:
    """Columns that say which items are settled and, where the rule has chances, at what risk.

    The risk is that all votes would decide otherwise. It is null where votes are missing to a stop:
    what the rule has there is the risk of the label that it would give after them.
    """
    import polars as pl

    settled = pl.Series("settled", rule.stops(counts))
    if rule.votes is None:
        return {"settled": settled}
    risk = pl.Series("change_risk", rule.change_risk(counts))
    return {"settled": settled, "change_risk": risk.set(~settled, None)}
