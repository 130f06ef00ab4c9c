"""Items that a request asks about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from btdagg.readable import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.tables import Votes


@readable
@dataclass(frozen=True)
class Items:
    """What a body asks to be decided.

    Attributes
    ----------
    counts : (n, 3) array
        Votes of each item in label order.
    ids : sequence, optional
        Names of the items.
    n_missing : int, optional
        Votes that are missing, where votes came and no counts.
    votes : Votes, optional
        Those votes.
    """

    counts: NDArray[Any]
    ids: Any = None
    n_missing: int | None = None
    votes: Votes | None = None
