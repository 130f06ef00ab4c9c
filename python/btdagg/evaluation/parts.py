"""Labelled items on which a protocol runs, by task and judge, from tables of votes and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from btdagg._util.errors import InputError, expect, forbid, within
from btdagg._util.lazy import pl
from btdagg.model.fit import neighbour_of, prior_of
from btdagg.votes import Table
from btdagg.votes.items import Items
from btdagg.votes.join import join, labels_of, with_task
from btdagg.votes.labels import Labels
from btdagg.votes.table import NUMBER, require
from btdagg.votes.votes import Votes, column_of_decisions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation.protocol import Splitter
    from btdagg.model.grades import GradeModel
    from btdagg.model.prior import Prior


Key: TypeAlias = tuple[str, ...]
"""Values of the columns that votes are grouped by."""

USUAL = ("task", "judge")
"""Columns that votes are grouped by by default, if they exist."""


def parts_of(
    votes: Votes, labels: Labels, by: Sequence[str] | None
) -> tuple[Key, dict[Key, Votes]]:
    """Return the columns that votes are grouped by, and the votes of each part."""
    # Tasks may come from the labels; if some items have a task, those without one are left out.
    votes = with_task(votes, labels)
    columns = grouping(votes, by)
    parts = dict(votes.partition(columns))
    if "task" in columns:
        place = columns.index("task")
        parts = {key: part for key, part in parts.items() if key[place]} or parts
    return columns, parts


def grouping(
    votes: Table, by: Sequence[str] | None, usual: Sequence[str] = USUAL
) -> tuple[str, ...]:
    """Return the columns that votes are grouped by; by default the usual ones that they have."""
    expect(not isinstance(by, str), "by", by, "a sequence of column names")
    columns = [column for column in usual if column in votes.columns] if by is None else by
    require(votes, columns)
    return tuple(dict.fromkeys(columns))


def labelled_parts(
    votes: Votes, labels: Labels, by: Sequence[str] | None, n_votes: int | None = None
) -> dict[Key, Items]:
    """Join votes and labels part by part, without the parts that have no label."""
    # Votes of several judges are pooled if `by` does not separate them.
    _, parts = parts_of(votes, labels, by)
    votes.refuse_of_counts(n_votes=n_votes)
    joined: dict[Key, Items] = {}
    for key, part in parts.items():
        with suppress(InputError):
            joined[key] = join(part.items_of_part(n_votes=n_votes), labels).labelled()
    return joined


def require_columns(
    votes: Votes,
    n_votes: Sequence[int | None],
    confidence: str | None,
    decisions: Iterable[str],
) -> None:
    """Check once, and not part by part, that votes have the columns that are needed."""
    votes.refuse_of_counts(n_votes=n_votes[0], confidence=confidence)
    require(votes, [] if confidence is None else [confidence])
    require(votes, [column_of_decisions(name, n) for n in n_votes for name in decisions])


def require_splits(items: Items, splitter: Splitter) -> None:
    """Refuse items that cannot be split."""
    for _ in splitter.draw(len(items), items.group, items.content):
        pass


def require_comparable(items: Items, source: str) -> None:
    """Refuse labelled items that cannot be split or have one label; errors name the file."""
    n = len(items)
    forbid(n < 2, f"{source}: only {n} item with votes has a label, expected at least 2")
    with within(f"{source}: "):
        items.require_two_labels()
    forbid(
        not items.pooled.any(),
        f"{items.origin.source}: none of the {n} labelled items has a vote",
    )


def among_gold_ties(votes: Votes, labels: Labels) -> Votes:
    """Keep the votes on items whose label is a tie, of which there has to be one."""
    votes = with_task(votes, labels)
    labels = labels_of(labels, votes)
    ties = labels.frame.filter(pl.col("label") == labels.scale.middle_point)
    key = [c for c in ("item", "task") if c in votes.columns and c in ties.columns]
    names = [pl.col(column).cast(pl.String) for column in key]
    rows = votes.numbered()
    rows = rows.join(ties, left_on=names, right_on=names, how="semi", nulls_equal=True)
    forbid(not rows.height, f"{labels.source}: no item with votes has a label that is a tie")
    return votes.with_data(rows.sort(NUMBER))


def names_of(keys: Iterable[Key]) -> list[str]:
    """Name each key by its values, joined by a space; in quotes if two names would be equal."""
    keys = list(keys)
    names = [" ".join(key) for key in keys]
    if len(set(names)) == len(names):
        return names
    return [" ".join(map(repr, key)) for key in keys]


class Neighbourhood:
    """Other parts as neighbours, without what belongs together with items that are held out."""

    def __init__(
        self, groups: NDArray[Any], parts: Mapping[str, tuple[Items, NDArray[Any]]]
    ) -> None:
        self._groups = groups.astype(str)
        self._parts = {name: (items, names.astype(str)) for name, (items, names) in parts.items()}
        # Parts that share nothing with this one are the same in every split.
        self._untouched = {
            name: neighbour_of(items.pooled, items.label, items.scale, items.label_scale)
            for name, (items, names) in self._parts.items()
            if not np.isin(names, self._groups).any()
        }

    def prior(self, held_out: NDArray[np.intp]) -> Prior | list[GradeModel] | None:
        """Return the prior of the other parts (of grades: their models), without held-out items."""
        left_out = self._groups[held_out]
        neighbours = {}
        for name, (items, names) in self._parts.items():
            if name in self._untouched:
                neighbours[name] = self._untouched[name]
            elif (kept := ~np.isin(names, left_out).reshape(len(items), -1).any(axis=1)).any():
                part = items[kept]
                neighbours[name] = neighbour_of(
                    part.pooled, part.label, part.scale, part.label_scale
                )
        return prior_of(neighbours) if neighbours else None


def belonging(items: Items) -> NDArray[np.object_]:
    """Return what each item belongs to, in all parts: itself, and its group; (n, 1 or 2)."""
    task = items.column("task") if "task" in items.scale.mode.key else None
    whole = [] if task is None else [repr(task.first())]
    names = [[" ".join([*whole, repr(n)]) for n in items.ids.tolist()]]
    names += [] if items.group is None else [[f"group {name}" for name in items.group]]
    return np.array(names, dtype=np.object_).T
