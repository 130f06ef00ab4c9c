"""A query whose few hundred rows are all that a calibration needs of a database."""

from __future__ import annotations

from dataclasses import dataclass

from btdagg._core import InputError
from btdagg.model.sql.dialects import Name, dialect_named, quoted
from btdagg.model.sql.votes import (
    SIDES,
    UNREADABLE,
    VotesTable,
    counted_votes,
    names,
    query,
    reading,
    select,
)


@dataclass(frozen=True)
class LabelsTable:
    """A table of gold labels in a database, one row per item, and the names of its columns.

    Parameters
    ----------
    name : str or sequence of str
        The table; several parts are a qualified name.
    item, label : str
        Columns of the items and of their labels, which are written as votes are.
    task : str, optional
        Column of the tasks, if items are told apart by their task; the table of votes then has one.
    numbers : bool
        Whether all labels are numbers.
    """

    name: Name
    item: str = "item"
    label: str = "label"
    task: str | None = None
    numbers: bool = False


def histogram_query(dialect: str, votes: VotesTable | Name, labels: LabelsTable | Name) -> str:
    """Return one SQL query that counts the items of each triple of counts and label.

    Its columns are `minus`, `tie`, `plus`, `label` and `number`, after `task` and `judge` where the
    table of votes has those to group by. Items without a label have the label NULL. What it gives
    is for `btdagg.votes.read_histogram` and `btdagg calibrate`.

    Parameters
    ----------
    dialect : str
        As of `DavidsonModel.to_sql`.
    votes : VotesTable, str or sequence of str
        The table of votes; see `DavidsonModel.to_sql_query`.
    labels : LabelsTable, str or sequence of str
        The table of labels, or its name if the columns are `item` and `label`.

    Raises
    ------
    InputError
        If a name is none, or only the labels have tasks.

    Notes
    -----
    A query cannot refuse a row, so what is wrong gets a value that a reader of the result refuses:
    counts of NULL if a vote of an item is none, a label of 2 if a label is none or the item has
    several.
    """
    words = dialect_named(dialect)
    table = votes if isinstance(votes, VotesTable) else VotesTable(votes)
    gold = labels if isinstance(labels, LabelsTable) else LabelsTable(labels)
    if gold.task is not None and table.task is None:
        raise InputError(
            "labels have a task and votes have none, expected the task of both or neither"
        )
    shared = {"item": gold.item} | ({} if gold.task is None else {"task": gold.task})

    def name(of: str) -> str:
        return quoted(of, "column", words)

    def of_label(column: str) -> str:
        return f"l.{quoted(column, 'column', words)}"

    label = reading(of_label(gold.label), words, numbers=gold.numbers)
    rows = [f"{of_label(column)} AS {name(key)}" for key, column in shared.items()]
    source = f"{quoted(gold.name, 'labels', words, 'table')} AS l"
    once = f"CASE WHEN COUNT(*) = 1 THEN MAX({name('label')}) ELSE {UNREADABLE} END"
    known = [*names(shared, words), f"{once} AS {name('label')}"]
    kept = [*table.keys, *SIDES]
    matched = " AND ".join(f"c.{name(key)} = g.{name(key)}" for key in shared)
    joined = [
        *(f"c.{name(key)} AS {name(key)}" for key in kept),
        f"g.{name('label')} AS {name('label')}",
    ]
    counted = names([*kept, "label"], words)
    steps = [
        *counted_votes(table, words),
        ("btdagg_labels", select([*rows, f"{label} AS {name('label')}"], source)),
        (
            "btdagg_gold",
            f"{select(known, 'btdagg_labels')} GROUP BY {', '.join(names(shared, words))}",
        ),
        (
            "btdagg_joined",
            f"{select(joined, 'btdagg_counts AS c')} LEFT JOIN btdagg_gold AS g ON {matched}",
        ),
    ]
    found = [*counted, f"COUNT(*) AS {name('number')}"]
    return f"{query(steps, found, 'btdagg_joined')} GROUP BY {', '.join(counted)}"
