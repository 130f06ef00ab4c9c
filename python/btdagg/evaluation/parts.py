"""Labelled items on which a protocol runs, by task and judge, from tables of votes and labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.model.calibration import calibrate
from btdagg.model.calibration_set import quiet
from btdagg.model.grades import GradeModel
from btdagg.model.prior import Prior, fit_prior
from btdagg.votes import Labels, Table, Votes
from btdagg.votes.items import Items
from btdagg.votes.join import labels_of, with_task
from btdagg.votes.table import NUMBER, require
from btdagg.votes.votes import column_of_decisions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.evaluation.protocol import Splitter


Key: TypeAlias = tuple[str, ...]
"""Values of the columns that votes are grouped by."""

USUAL = ("task", "judge")
"""Columns that votes are grouped by by default, if they exist."""


@readable
@dataclass(frozen=True, eq=False)
class Part:
    """Votes that are evaluated together, such as those of one judge on one task.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by.
    votes : Votes
    labels : Labels
        Labels of these items; others may be among them.
    """

    key: Key
    votes: Votes
    labels: Labels
    _belongings: dict[int | None, tuple[Items, NDArray[np.object_]] | None] = field(
        default_factory=dict, init=False, repr=False
    )

    def belonging(self, n_votes: int | None = None) -> tuple[Items, NDArray[np.object_]] | None:
        """Return the labelled items and what each belongs to: its group, or itself.

        It is kept, since every other part asks for it. None if there are no labelled items.
        """
        if n_votes not in self._belongings:
            try:
                items = self.votes.labelled(self.labels, n_votes)
            except InputError:
                self._belongings[n_votes] = None
                return None
            groups = items.groups
            if groups is None:
                task = self.votes.values("task").first() if "task" in self.votes.columns else None
                ids = items.ids.tolist()
                names = [f"{task!r} {item!r}" for item in ids]
                if not items.scale.mirrored:  # criteria are of the same items
                    names = list(map(repr, ids))
                groups = np.array(names, dtype=np.object_)
            self._belongings[n_votes] = items, groups
        return self._belongings[n_votes]

    def require_comparable(self, items: Items) -> None:
        """Refuse labelled items that cannot be split or have one label; errors name the file."""
        n, source = len(items), self.labels.source
        if n < 2:
            raise InputError(f"{source}: {n} item with votes has a label, expected at least 2")
        try:
            items.require_two_labels()
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        if not items.pooled.any():
            raise InputError(f"{self.votes.source}: none of the {n} labelled items has a vote")


def parts_of(votes: Votes, labels: Labels, by: Sequence[str] | None) -> tuple[Key, list[Part]]:
    """Return the columns that votes are grouped by, and the parts that they make.

    If only the labels have a column `task`, each item gets its task from there. If some items have
    a task, items without one are left out.
    """
    votes = with_task(votes, labels)
    columns = grouping(votes, by)
    parts = [Part(key, part, labels) for key, part in votes.partition(columns)]
    if "task" in columns:
        place = columns.index("task")
        parts = [part for part in parts if part.key[place]] or parts
    return columns, parts


def grouping(
    votes: Table, by: Sequence[str] | None, usual: Sequence[str] = USUAL
) -> tuple[str, ...]:
    """Return the columns that votes are grouped by; by default the usual ones that they have."""
    if isinstance(by, str):
        raise InputError(f"by is {by!r}, expected a sequence of column names")
    columns = [column for column in usual if column in votes.columns] if by is None else by
    require(votes, columns)
    return tuple(dict.fromkeys(columns))


def labelled_tasks(
    votes: Votes, labels: Labels, *, by: Sequence[str] = ("task",), n_votes: int | None = None
) -> dict[str, Items]:
    """Join votes and labels for every task.

    Parameters
    ----------
    votes : Votes
        Votes of one judge, or of several with `judge` among `by`.
    labels : Labels
        Gold labels. If only they have a column `task`, each item gets its task from there.
    by : sequence of str
        Columns of the votes whose values make a task.
    n_votes : int, optional
        See `Votes.counts`.

    Returns
    -------
    dict of str to Items
        Keys are the values of those columns, joined by a space (in quotes if two keys would
        otherwise be equal), in order of first appearance.
    """
    if "judge" not in by:
        refuse_several_judges(votes)
    parts, refused = labelled_parts(votes, labels, by=by, n_votes=n_votes)
    for reason in refused.values():
        raise InputError(reason)
    return dict(zip(names_of(parts), parts.values(), strict=True))


def labelled_parts(
    votes: Votes,
    labels: Labels,
    *,
    by: Sequence[str] = ("task",),
    n_votes: int | None = None,
    confidence: str | None = None,
    decisions: Sequence[str] = (),
) -> tuple[dict[Key, Items], dict[Key, str]]:
    """Join votes and labels part by part: the parts by key, and the reasons why others have none.

    Unlike in `labelled_tasks`, votes of several judges are pooled if `by` does not separate them.
    Other arguments are those of `Votes.items`.
    """
    _, parts = parts_of(votes, labels, by)
    require_columns(votes, [n_votes], confidence, decisions)
    more: Any = {"confidence": confidence, "decisions": decisions}
    joined: dict[Key, Items] = {}
    refused: dict[Key, str] = {}
    for part in parts:
        try:
            joined[part.key] = part.votes.labelled(labels, n_votes, **more)
        except InputError as error:
            refused[part.key] = str(error)
    return joined, refused


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
    for _ in splitter.draw(len(items), items.groups, items.content):
        pass


def among_gold_ties(votes: Votes, labels: Labels) -> Votes:
    """Keep the votes on items whose label is a tie, of which there has to be one."""
    import polars as pl

    votes = with_task(votes, labels)
    ties = labels_of(labels, votes).frame.filter(pl.col("label") == 0)
    key = [c for c in ("item", "task") if c in votes.columns and c in ties.columns]
    names = [pl.col(column).cast(pl.String) for column in key]
    rows = votes.numbered()
    rows = rows.join(ties, left_on=names, right_on=names, how="semi", nulls_equal=True)
    if not rows.height:
        raise InputError(f"{labels.source}: no item with votes has a label that is a tie")
    return votes.with_data(rows.sort(NUMBER))


def names_of(keys: Iterable[Key]) -> list[str]:
    """Name each key by its values, joined by a space; in quotes if two names would be equal."""
    keys = list(keys)
    names = [" ".join(key) for key in keys]
    if len(set(names)) == len(names):
        return names
    return [" ".join(map(repr, key)) for key in keys]


def refuse_several_judges(votes: Votes) -> None:
    """Raise an `InputError` if votes of several judges would be added up."""
    if "judge" in votes.columns and votes.frame["judge"].n_unique() > 1:
        first, second = votes.frame["judge"].unique(maintain_order=True).head(2)
        raise InputError(
            f"{votes.source}: votes of judge {first!r} and of judge {second!r}; filter by judge "
            "first"
        )


class Neighbourhood:
    """What the other parts of an evaluation may tell of one, without what is held out.

    `own`, (n,), is what each item of the part belongs to: its group, or itself. The other parts
    come with what their items belong to.
    """

    def __init__(self, own: NDArray[Any], others: Mapping[str, tuple[Items, NDArray[Any]]]) -> None:
        self._own = own.astype(str)
        self._parts = {name: (items, names.astype(str)) for name, (items, names) in others.items()}
        # Parts that share nothing with this one are the same in every split.
        self._untouched = {
            name: _neighbour(items, np.ones(len(items), dtype=np.bool_))
            for name, (items, names) in self._parts.items()
            if not np.isin(names, self._own).any()
        }

    def prior(self, held_out: NDArray[np.intp]) -> Prior | list[GradeModel] | None:
        """Return the prior of the others without the items, or groups, that are held out.

        Of grades it is their models. None where nothing is left of them.
        """
        left_out = self._own[held_out]
        neighbours = {}
        for name, (items, names) in self._parts.items():
            if name in self._untouched:
                neighbours[name] = self._untouched[name]
            elif (kept := ~np.isin(names, left_out)).any():
                neighbours[name] = _neighbour(items, kept)
        of_grades = [model for model in neighbours.values() if isinstance(model, GradeModel)]
        return of_grades or (Prior(neighbours) if neighbours else None)


def neighbourhood(
    part: Part, parts: Iterable[Part], n_votes: int | None, kept: NDArray[np.bool_]
) -> Neighbourhood:
    """Return what the other parts may tell of the kept items of one.

    Parts without labels tell nothing.
    """
    others = {}
    for other in parts:
        if other.key != part.key and (belonging := other.belonging(n_votes)) is not None:
            others[" ".join(map(repr, other.key))] = belonging
    own = part.belonging(n_votes)
    return Neighbourhood(np.empty(0, dtype=object) if own is None else own[1][kept], others)


def _neighbour(items: Items, kept: NDArray[np.bool_]) -> Any:
    """Return what a prior takes of a neighbour: a `Neighbour`, or of grades a `GradeModel`."""
    counts, labels, scale = items.pooled[kept], items.labels[kept], items.scale
    if not scale.mirrored:
        scales: Any = {"scale": scale, "label_scale": items.label_scale}
        return quiet(calibrate)(counts, labels, **scales).model
    return next(iter(fit_prior([(counts, labels)]).neighbours.values()))
