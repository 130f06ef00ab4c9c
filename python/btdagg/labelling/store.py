"""Where labels are kept: a table of a vote store, SQLite or PostgreSQL."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import sqlalchemy as sa

from btdagg.judge.store.database import Database, labels


@dataclass(frozen=True, slots=True)
class Answer:
    """A rater's label of an item, by a criterion if there are any.

    Attributes
    ----------
    item, rater : str
    label : -1, 0, 1, a grade or None
        None where the rater skipped the item.
    seconds : float
        How long the item was shown, shared among its criteria.
    note : str
    sides : str
        ``AB`` if A was the first response on the page, else ``BA``.
    texts : str
        Digest of what was shown.
    criterion : str
    """

    item: str
    rater: str
    label: float | None
    seconds: float
    note: str
    sides: str
    texts: str
    criterion: str = ""


class LabelStore(Database):
    """Labels in SQLite or PostgreSQL. What `keep` has returned from is on the disk."""

    def keep(self, *answers: Answer) -> None:
        """Keep answers durably, each in place of an earlier one; `StoreError` undoes all."""
        statement = self.insert(labels)
        kept = ("label", "seconds", "note", "sides", "texts")
        statement = statement.on_conflict_do_update(
            index_elements=["item", "rater", "criterion"],
            set_={name: statement.excluded[name] for name in kept},
        )
        with self._engine.begin() as connection:
            connection.execute(statement, [asdict(answer) for answer in answers])

    def answers(self, rater: str | None = None, item: str | None = None) -> list[Answer]:
        """All answers by item and rater, or those of one rater, or to one item."""
        query = sa.select(*(labels.c[name.name] for name in fields(Answer)))
        query = query.order_by(labels.c.item, labels.c.rater, labels.c.criterion)
        for column, value in ((labels.c.rater, rater), (labels.c.item, item)):
            query = query if value is None else query.where(column == value)
        return [Answer(*row) for row in self._rows(query)]

    def brief(self, rater: str) -> list[tuple[str, str, float | None, float]]:
        """Item, criterion, label and seconds of everything that a rater answered."""
        names = ("item", "criterion", "label", "seconds")
        query = sa.select(*(labels.c[name] for name in names))
        return [tuple(row) for row in self._rows(query.where(labels.c.rater == rater))]

    def _rows(self, query: sa.Select[Any]) -> list[Any]:
        with self.reading() as connection:
            return list(connection.execute(query))
