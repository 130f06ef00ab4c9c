"""A user's own frame of votes, to a frame of labels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg.estimates.certificate import certify, sure
from btdagg.model.calibration_set import CalibrationWarning
from btdagg.votes.grades import scale_of
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.scale import Scale
from btdagg.votes.source import read_table, read_tables
from btdagg.votes.table import NUMBER, counts_of
from btdagg.votes.votes import read_votes
from btdagg.votes.words import SHOWN

if TYPE_CHECKING:
    from btdagg.votes.source import Source


def decide(
    votes: Source,
    labels: Source | Labels,
    *,
    agreement: float | None = None,
    columns: Mapping[str, str] | None = None,
    words: Mapping[str, object] | None = None,
    order: Mapping[str, str] | None = None,
    scale: Scale | None = None,
) -> Any:
    """Label every item of a frame of votes, by labels of some.

    Parameters
    ----------
    votes : data frame, or other source
        One row per vote, as `btdagg.read_votes` takes it.
    labels : str, data frame, or other source
        The column of the votes' frame that has labels, the same or nothing in all rows of an item;
        or another table, as `btdagg.read_labels` takes it. They are of items drawn by chance.
    agreement : float, optional
        Also say which labels can be used without a look: how often they are to agree with people.
    columns, words, order, scale
        See `btdagg.read_votes`. Columns and words are those of both tables.

    Returns
    -------
    data frame
        Of the kind of `votes`, and of polars for what is no frame: a row for each item, in the
        order of the votes, with the column of items as it is called there; `label` (-1, 0, 1 or a
        grade), as a model that is calibrated on the labels decides; `probability`, that people
        would give this label; and with `agreement` `trusted`. An item whose grades are all missing
        has no label.

    Warns
    -----
    CalibrationWarning
        If there are too few labels to trust any.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"q": [1, 1, 2, 2, 3, 3], "who": ["A", "A", "B", "tie", "A", "A"]})
    >>> people = pl.DataFrame({"q": [1, 2], "label": ["A", "B"]})
    >>> decide(frame, people, columns={"item": "q", "vote": "who"}).select("q", "label").rows()
    [(1, 1), (2, -1), (3, 1)]
    """
    import narwhals as nw

    names = {new.strip().lower(): old.strip().lower() for new, old in (columns or {}).items()}
    raw, other = read_table(votes, []), labels
    column = labels.strip().lower() if isinstance(labels, str) else ""
    if column in raw.columns:
        names["label"], other = column, raw
    table, gold = read_tables(names, raw, other)
    table, gold = read_table(table, ["item"]), read_table(gold, ["item"])
    if other is raw:
        rows = gold.rows.select(NUMBER, "item", "label").drop_nulls("label")
        rows = rows.unique(["item", "label"], keep="first", maintain_order=True)
        gold = gold.with_data(gold.collect(rows))
    people: Any = labels
    if not isinstance(labels, Labels):
        scale = scale_of(table, gold) if scale is None else scale
        plain = {word: of for word, of in (words or {}).items() if str(of).lower() not in SHOWN}
        people = read_labels(gold, words=plain or None, scale=scale)
    counted: Any = read_votes(table, words=words, order=order, scale=scale)
    certificate = certify(counted, people, agreement=0.8 if agreement is None else agreement)
    items = every = counted.tally()
    if counted.scale is not None:  # without a vote there is no mean
        items = every.filter(sum(every[[*counted.columns_of_counts]]) > 0)
    counts = counts_of(items, counted.columns_of_counts)
    place, probability = sure(certificate.model.predict_proba(counts))
    grades = np.array((-1, 0, 1) if people.scale is None else people.scale.grades)
    decided = items.select("item").with_columns(label=grades[place], probability=probability)
    if agreement is not None:
        trusted = certificate.trusted(counts)
        decided = decided.with_columns(trusted=trusted)
        if certificate.threshold is None:
            warnings.warn(str(certificate).partition("\n")[0], CalibrationWarning, stacklevel=2)
    decided = every.select("item").join(decided, on="item", how="left", maintain_order="left")
    own, title = nw.from_native(votes, pass_through=True), table.title("item")
    titles = {name.strip().lower(): name for name in getattr(own, "columns", ())}
    decided = decided.rename({"item": titles.get(title, title)})
    if not isinstance(own, nw.DataFrame):
        return decided
    return nw.from_dict(decided.to_dict(as_series=False), backend=own.implementation).to_native()
