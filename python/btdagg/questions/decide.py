"""A user's own frame of votes, to a frame of labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import InputError, expect
from btdagg._util.lazy import pl
from btdagg.model.calibration import quiet, warn_of
from btdagg.model.fit import calibrate
from btdagg.project import Project
from btdagg.questions.certify import certify
from btdagg.questions.decisions import decisions
from btdagg.votes.grades import scales_in, stated_scale
from btdagg.votes.join import labels_of
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.source import parts_of_column, read_table, read_tables, said
from btdagg.votes.table import NUMBER, Table
from btdagg.votes.votes import Votes, read_votes
from btdagg.votes.words import SHOWN

if TYPE_CHECKING:
    from btdagg.votes.source import Source


def decide(
    votes: Source | Project,
    labels: Source | Labels | None = None,
    *,
    criterion: str | None = None,
    agreement: float | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    words: Mapping[str, object] | None = None,
    order: Mapping[str, str] | None = None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
) -> Any:
    """Label every item of a frame of votes, by labels of some.

    Parameters
    ----------
    votes : data frame, other source, or Project
        One row per vote, as `btdagg.read_votes` takes it. Of a lazy frame of polars nothing is read
        before the answer is collected. A project has votes and labels, and says how they are read.
    labels : str, data frame, or other source
        The column of the votes' frame that has labels, the same or nothing in all rows of an item;
        or another table, as `btdagg.read_labels` takes it.
    criterion : str, optional
        Which criterion of a project, where there are several.
    agreement : float, optional
        Also say which labels can be used without a look: how often they are to agree with people.
        The labels of people must then be of items drawn by chance.
    columns, words, order, scale, label_scale
        See `btdagg.read_votes`. Columns and words are those of both tables.

    Returns
    -------
    data frame
        Of the same kind as `votes`, else of polars: a row for each item, in the order of the votes,
        with the columns of its key under their own names; `label` (-1, 0, 1 or a grade); `source`,
        `people` or `model` (`btdagg.calibrate`, fitted to their labels); `probability`, by the
        model, that people would give this label; and with `agreement` `trusted`, always true for
        labels of people. An item without any grade has no label unless people gave one.

    Warns
    -----
    CalibrationWarning
        As `btdagg.calibrate` does; and if there are too few labels to trust any.

    Examples
    --------
    >>> import polars as pl
    >>> frame = pl.DataFrame({"q": [1, 1, 2, 2, 3, 3], "who": ["A", "A", "B", "tie", "A", "A"]})
    >>> people = pl.DataFrame({"q": [1, 2], "label": ["A", "B"]})
    >>> decide(frame, people, columns={"item": "q", "vote": "who"}).drop("probability").rows()
    [(1, 1, 'people'), (2, -1, 'people'), (3, 1, 'model')]
    """
    import narwhals as nw

    if isinstance(votes, Project):
        more = {"labels": labels, "columns": columns, "words": words, "order": order}
        for name, value in {**more, "scale": scale, "label_scale": label_scale}.items():
            expect(value is None, name, value, "none, since the project says it")
        decided, remarks = _decided_of(votes, criterion, agreement)
        warn_of(remarks)
        return decided
    expect(criterion is None, "criterion", criterion, "none, since only a project has criteria")
    if labels is None:
        raise InputError(argument="labels", got=None, expected="a table or a column")
    frame = nw.from_native(votes, pass_through=True)
    words, order, scale = said(columns, words=words, orders=order, scale=scale)
    how: dict[str, Any] = {
        "agreement": agreement,
        "columns": columns,
        "scale": scale,
        "label_scale": label_scale,
    }
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        how |= {"words": words, "order": order}
        return _decided_later(frame.to_native(), labels, how)
    names = _lower(columns)
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
        scale, label_scale = scales_in(table, gold, scale, label_scale, words)
        plain = {word: of for word, of in (words or {}).items() if str(of).lower() not in SHOWN}
        people = read_labels(gold, words=plain or None, scale=label_scale)
    counted: Any = read_votes(table, words=words, order=order, scale=scale)
    decided, remarks = decided_frame(counted, people, agreement)
    warn_of(remarks)
    titles = {name.strip().lower(): name for name in getattr(frame, "columns", ())}
    if len(parts := names.get("item", [])) > 1:
        decided = with_key(decided, table, {c: titles.get(c, c) for c in parts})
    else:
        decided = decided.rename({"item": _title_of(table, titles.values())})
    if not isinstance(frame, nw.DataFrame):
        return decided
    return nw.from_dict(decided.to_dict(as_series=False), backend=frame.implementation).to_native()


def _decided_of(
    project: Project, criterion: str | None, agreement: float | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    votes, labels = project.rows(criterion)
    decided, remarks = decided_frame(votes, labels, agreement)
    key = project.column("votes", "item", "item") or []
    if len(key) == 1:
        return decided.rename({"item": key[0]}), remarks
    return with_key(decided, votes, {part.strip().lower(): part for part in key}), remarks


def decided_frame(
    votes: Votes, people: Any, agreement: float | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the table of `decide`, with the column `item`, and what to warn of."""
    calibration = quiet(calibrate)(votes, people)
    remarks = [*people.remarks, *calibration.warnings]
    model: Any = replace(calibration.model, provenance=None)  # all votes are of one source
    certificate = None
    if agreement is not None:
        certificate = certify(votes, people, agreement=agreement)
        if certificate.threshold is None:
            remarks.append(certificate.sentence())
        else:  # what is made of raters was said of the labels
            remarks += [text for text in certificate.remarks if text.code != "raters-disagree"]
    decided = decisions(votes, model, certificate=certificate)
    grades = people.scale.values
    shares = decided.select(f"p_{name}" for name in model.label_names).to_numpy()
    decided = with_people(decided, labels_of(people, votes))
    place = np.searchsorted(grades, decided["label"].fill_null(grades[0]))
    probability = pl.Series(shares[np.arange(len(shares)), place], nan_to_null=True)
    decided = decided.with_columns(probability=probability)
    of_promise = ["trusted"] if agreement is not None else []
    shown = decided.select("item", "label", "source", "probability", *of_promise)
    return shown, tuple(dict.fromkeys(remarks))


def with_key(decided: pl.DataFrame, table: Table, titles: Mapping[str, str]) -> pl.DataFrame:
    """Return the columns of a key of several, by their titles, in place of `item`."""
    columns = [pl.col(column).alias(f"\0{column}") for column in titles]
    keys = table.collect(table.rows.select("item", *columns).unique("item"))
    decided = decided.join(keys, on="item", how="left", maintain_order="left")
    key = [pl.col(f"\0{column}").alias(title) for column, title in titles.items()]
    return decided.select(*key, pl.exclude("item", "^\0.*$"))


def with_people(decided: pl.DataFrame, gold: Labels) -> pl.DataFrame:
    """Replace labels by those of people, which are trusted, and say in `source` whose each is."""
    label, item = gold.frame["label"], pl.col("item").cast(pl.String)
    of_people = dict(zip(gold.frame["item"].cast(pl.String), label, strict=True))
    people = item.replace_strict(of_people, default=None, return_dtype=label.dtype)
    of_people_or_model = pl.when(people.is_not_null()).then(pl.lit("people"))
    source = of_people_or_model.when(pl.col("label").is_not_null()).then(pl.lit("model"))
    trusted = [pl.col("trusted") | people.is_not_null()] if "trusted" in decided.columns else []
    return decided.with_columns(
        pl.coalesce(people, "label").alias("label"), *trusted, source=source
    )


def _decided_later(votes: Any, labels: Source | Labels, how: dict[str, Any]) -> Any:
    """Return a lazy frame that decides once it is collected: its columns are told by names."""
    schema, names = votes.collect_schema(), _lower(how["columns"])
    nothing = read_table(pl.DataFrame({name: [None] for name in schema}, schema), [])
    table = read_tables(
        {n: c for n, c in names.items() if len(c) == 1 and c[0] in nothing.columns}, nothing
    )[0]
    if len(parts := names.get("item", [])) > 1:
        titles = {name.strip().lower(): name for name in schema}
        kinds = {titles[part]: nothing.schema[part] for part in parts}
    else:
        table = read_table(table, ["item"])
        kinds = {_title_of(table, schema): table.schema["item"]}
    if not isinstance(labels, str | Labels) and how["label_scale"] is None:
        how["label_scale"] = stated_scale(read_table(labels, []))
    scale = labels.scale if isinstance(labels, Labels) else how["label_scale"] or PAIRS
    columns: Any = {
        **{name: pl.Int64 if k.is_numeric() else pl.String for name, k in kinds.items()},
        "label": pl.Int64 if scale.values.dtype.kind == "i" else pl.Float64,
        "source": pl.String,
        "probability": pl.Float64,
        **({} if how["agreement"] is None else {"trusted": pl.Boolean}),
    }

    def decided(rows: pl.DataFrame) -> pl.DataFrame:
        frame: pl.DataFrame = decide(rows, labels, **how)
        return frame.cast(columns)

    # All rows and columns come first: which labels there are depends on each of them.
    pushdowns: Any = dict.fromkeys(
        ("predicate_pushdown", "projection_pushdown", "slice_pushdown"), False
    )
    return votes.map_batches(decided, schema=columns, **pushdowns)


def _lower(columns: Mapping[str, str | Sequence[str]] | None) -> dict[str, Any]:
    return {new.strip().lower(): parts_of_column(old) for new, old in (columns or {}).items()}


def _title_of(table: Table, titles: Iterable[str]) -> str:
    title = table.title("item")
    return {name.strip().lower(): name for name in titles}.get(title, title)
