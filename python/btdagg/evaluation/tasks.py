"""Labelled items of one task: what a protocol is run on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.evaluation.conditions import Key
from btdagg.evaluation.evaluating import evidence_of, labels_of, parts_of, with_task
from btdagg.evaluation.items import LabelledItems
from btdagg.labels import Labels, align
from btdagg.votes import VoteCounts, Votes

if TYPE_CHECKING:
    pass


def labelled_tasks(
    votes: Votes | VoteCounts,
    labels: Labels,
    *,
    by: Sequence[str] = ("task",),
    n_votes: int | None = None,
    confidence: str | None = None,
    decisions: Sequence[str] = (),
) -> dict[str, LabelledItems]:
    """Bring together votes and labels, as they were read, for every task.

    Parameters
    ----------
    votes : Votes or VoteCounts
        Of one judge; or with `judge` among `by`.
    labels : Labels
        Gold labels. Where only they say the task of an item, it is taken from there.
    by : sequence of str
        Columns of the votes whose values make a task.
    n_votes, confidence, decisions
        See `Votes.evidence`.

    Returns
    -------
    dict of str to LabelledItems
        By the values of those columns, joined by a blank (and in quotes where two would then be
        the same), in the order in which they are first seen. Items whose task is not known are
        left out where others are.

    Raises
    ------
    InputError
        If a column is not there, votes of several judges would be added up, a task has no item
        with both votes and a label, or `n_votes` or `confidence` is given for counts.
    """
    if "judge" not in by:
        refuse_several_judges(votes)
    found, refused = labelled_parts(
        votes, labels, by=by, n_votes=n_votes, confidence=confidence, decisions=decisions
    )
    for reason in refused.values():
        raise InputError(reason)
    return dict(zip(names_of(found), found.values(), strict=True))


def labelled_parts(
    votes: Votes | VoteCounts,
    labels: Labels,
    *,
    by: Sequence[str] = ("task",),
    n_votes: int | None = None,
    confidence: str | None = None,
    decisions: Sequence[str] = (),
) -> tuple[dict[Key, LabelledItems], dict[Key, str]]:
    """Bring together votes and labels part by part, so that one bad part leaves the others.

    Parameters
    ----------
    votes, labels, by, n_votes, confidence, decisions
        See `labelled_tasks`; but votes of several judges are thrown together where `by` does not
        tell them apart, as `evaluate` does.

    Returns
    -------
    tuple of (dict of key to LabelledItems, dict of key to str)
        What there is by the values of those columns, and for the rest the reason why not.

    Raises
    ------
    InputError
        If a column is not there, or `n_votes` or `confidence` is given for counts.
    """
    if isinstance(votes, VoteCounts) and (n_votes is not None or confidence is not None):
        raise InputError(
            f"{votes.source}: n_votes and confidence want single votes, and these are counts"
        )
    found: dict[Key, LabelledItems] = {}
    refused: dict[Key, str] = {}
    for key, part in parts_of(with_task(votes, labels), by, None)[1]:
        try:
            ids, evidence = evidence_of(part, n_votes, confidence, decisions)
            items = align(ids, evidence.counts, labels_of(labels, part))
            found[key] = LabelledItems(evidence[items.rows], items.labels, items.groups)
        except InputError as error:
            refused[key] = str(error)
    return found, refused


def names_of(keys: Iterable[Key]) -> list[str]:
    """Name each key by its values, joined by a blank; in quotes where two would be the same."""
    known = list(keys)
    names = [" ".join(key) for key in known]
    if len(set(names)) == len(names):
        return names
    return [" ".join(map(repr, key)) for key in known]


def refuse_several_judges(votes: Votes | VoteCounts) -> None:
    """Raise an `InputError` where votes of several judges would be added up."""
    if "judge" in votes.columns and votes.frame["judge"].n_unique() > 1:
        first, second = votes.frame["judge"].unique(maintain_order=True).head(2)
        raise InputError(
            f"{votes.source}: votes of judge {first!r} and of judge {second!r}; filter by judge "
            "first"
        )
