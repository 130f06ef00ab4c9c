"""One frame of annotations for every tool that keeps traces: votes and labels out, decisions in.

An annotation is what somebody said of a trace or a span. `mlflow`, `phoenix` and `langfuse` beside
this file read and write the frame, `opentelemetry` emits it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from btdagg._util.errors import expect
from btdagg._util.extras import needs
from btdagg._util.lazy import pl
from btdagg.questions.decisions import decisions
from btdagg.votes import schema
from btdagg.votes.labels import Labels, read_labels
from btdagg.votes.scale import PAIRS, PAIRWISE, POINTWISE, Scale
from btdagg.votes.schema import Kind, Parser, parse
from btdagg.votes.source import read_table
from btdagg.votes.standings import FACTS
from btdagg.votes.table import (
    NUMBER,
    Table,
    as_text,
    listing,
    refuse,
    refuse_duplicates,
    require,
    without_repeats,
)
from btdagg.votes.verdicts import meanings_of, verdicts_on
from btdagg.votes.votes import Votes, read_votes
from btdagg.votes.words import UNPARSABLE

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel
    from btdagg.model.grades import GradeModel
    from btdagg.votes.source import Source

COLUMNS = (
    *("trace_id", "span_id", "name", "label", "score", "explanation", "annotator_kind"),
    *("annotator", "identifier", "metadata", "created"),
)
KINDS = ("LLM", "HUMAN", "CODE")
# No two annotations agree in these.
IDENTITY = ("trace_id", "span_id", "name", "annotator_kind", "annotator", "identifier")
_CONTENT = ("label", "score", "explanation", "metadata")
# In the metadata of a server: what it has no field for. In those of the frame: why there is no
# label, where the annotator failed.
OWN, ERROR = "btdagg.annotation", "btdagg.error"

_OF_VOTES = ("order", "sample", "template", "temperature", "task", "confidence", *FACTS)
_OF_LABELS = ("group", "task")
# Which says what an annotation is, the first that there is.
_SAYS = {PAIRWISE: ("label", "score"), POINTWISE: ("score", "label")}
_WORD, _VOTE = "\0word", "\0vote"  # no column of a source is called that


def read_annotations(annotations: Source) -> Table:
    """Check a frame of annotations (or a mapping or a file), and add the columns that it lacks.

    Required are `name`, `annotator_kind` (LLM, HUMAN or CODE), and `trace_id` or `span_id`.
    `identifier` tells annotations of one target, name and annotator apart, `metadata` is a JSON
    object as text, and `created` is in UTC without a zone. Other columns are kept.
    """
    name = None if isinstance(annotations, (str, os.PathLike)) else "annotations"
    table = read_table(annotations, ["name", "annotator_kind"], name=name)
    absent = [column for column in COLUMNS if column not in table.columns]
    table = table.with_columns(pl.lit(None, pl.String).alias(column) for column in absent)
    kinds: dict[str, Kind] = {
        **dict.fromkeys(COLUMNS, schema.names),
        "label": schema.texts,
        "explanation": schema.texts,
        "score": schema.finite_numbers,
        "annotator_kind": _kinds,
        "created": _times,
    }
    table = parse(table, kinds)
    refuse(table, pl.col("name").is_null(), "name", "a name")
    untargeted = pl.col("trace_id").is_null() & pl.col("span_id").is_null()
    refuse(table, untargeted, "trace_id", "a trace, or a span in span_id")
    is_object = table.frame["metadata"].map_elements(_is_object, pl.Boolean)
    refuse(table, ~is_object.fill_null(True), "metadata", "a JSON object")
    return table


def votes_of(
    annotations: Source,
    *,
    name: str | None = None,
    kind: str = "LLM",
    item: str = "trace_id",
    words: Mapping[str, object] | None = None,
    scale: Scale = PAIRS,
) -> Votes:
    """Make votes of judges' annotations.

    Parameters
    ----------
    annotations
        As `read_annotations` takes them.
    name : str, optional
        Name of the annotations that are votes; needed if those of this kind have several.
    kind : str
        Kind of annotator: LLM, HUMAN or CODE.
    item : str
        Column with the item that an annotation is of.
    words : mapping of str to -1, 0, 1 or A, tie, B; optional
        Meaning of other words (with a scale: numbers), such as ``{"first": "A", "second": "B"}``.
    scale : Scale
        For grades: a score or, without one, a label such as 4, pass or false. A number that is not
        on the scale is a missing vote.

    Returns
    -------
    Votes
        One vote per annotation: its label, else its score. Every annotation counts, unless metadata
        have a key `sample`. `status` is ``ok`` or says why a vote is missing (`missing_by_status`).
        `judge` is the annotator; `order`, `sample`, `template`, `temperature`, `task`,
        `confidence`, `system` and `chars` (of pairs `system_a` and so on) of metadata are columns.

    Examples
    --------
    >>> votes = votes_of({"trace_id": ["x", "x", "x"], "name": ["better"] * 3,
    ...                   "annotator_kind": ["LLM"] * 3, "label": ["A", "tie", "unsure"]})
    >>> votes.tally().row(0), missing_by_status(votes)
    (('x', 0, 1, 1), {'unparsed': 1})
    """
    table = _chosen(annotations, name, kind, item, words, _OF_VOTES, scale)
    failed = pl.Series([ERROR in json.loads(text or "{}") for text in table.frame["metadata"]])
    status = (
        pl.when(failed)
        .then(pl.lit("failed"))
        .when(pl.col(_VOTE).is_not_null())
        .then(pl.lit("ok"))
        .when(pl.col(_WORD).is_null())
        .then(pl.lit("empty"))
        .otherwise(pl.lit("unparsed"))
    )
    vote = pl.when(~failed).then(pl.col(_VOTE))
    table = _without_words(table.with_columns([status.alias("status"), vote.alias("vote")]))
    if table.frame["annotator"].null_count() < table.height:
        table = table.with_columns([pl.col("annotator").alias("judge")])
    # Where votes of a scale are looked for.
    return read_votes(table.with_data(table.data.drop("score")), scale=scale)


def missing_by_status(votes: Votes) -> dict[str, int]:
    """Count the missing votes by why they are missing, the most frequent first.

    Votes of annotations are ``unparsed`` where the label is no vote, ``empty`` where there is
    neither label nor score, ``failed`` where the annotator recorded an error instead.
    """
    missing = votes.frame["status"].filter(votes.frame["vote"].is_null())
    return dict(Counter(missing.to_list()).most_common())


def labels_of(
    annotations: Source,
    *,
    name: str | None = None,
    kind: str = "HUMAN",
    item: str = "trace_id",
    words: Mapping[str, object] | None = None,
    scale: Scale = PAIRS,
) -> Labels:
    """Make gold labels of people's annotations.

    Parameters are as in `votes_of`. Annotations of an item that differ are an error. The keys
    `group` and `task` of metadata are columns.
    """
    table = _chosen(annotations, name, kind, item, words, _OF_LABELS, scale)
    expected = listing([*(words or {}), scale.choices])
    unknown = pl.col(_VOTE).is_null() & pl.col(_WORD).is_not_null()
    for column in _SAYS[scale.mode]:
        refuse(table, unknown & pl.col(column).is_not_null(), column, expected)
    table = _without_words(table.with_columns([pl.col(_VOTE).alias("label")]))
    labels = without_repeats(table, schema.LABELS.key_of(table), "label")
    return read_labels(labels, scale=scale)


def annotations_of(
    votes: Source,
    model: DavidsonModel | GradeModel,
    *,
    name: str = "calibrated",
    item: str = "trace_id",
    annotator: str = "btdagg",
) -> pl.DataFrame:
    """Decide items, and return the decisions as annotations.

    Parameters
    ----------
    votes : Votes, or what `btdagg.read_votes` reads
    model : DavidsonModel or GradeModel
    name, annotator : str
        Names of the new annotations and of their annotator.
    item : str
        Column of the items: `trace_id` or `span_id`.

    Returns
    -------
    polars.DataFrame
        One annotation per item, of kind CODE: label A, tie or B, score 1, 0 or -1, counts and
        probabilities in words and, under minus, tie, plus, p_minus, p_tie and p_plus, as metadata.
        A grade is a score (0 and 1: true or false), with metadata 1, p_1 and so on; items without a
        vote have no annotation.

    Raises
    ------
    InputError
        If votes lack the covariates of the model: join columns of these numbers, or of systems and
        characters, to the frame of annotations.
    """
    expect(item in ("trace_id", "span_id"), "item", item, "trace_id or span_id")
    scale, labels = model.scale, model.label_scale
    votes = votes if isinstance(votes, Votes) else read_votes(votes, scale=scale)
    in_words, named = scale.names, labels.names
    words: dict[Any, str] = dict(zip(labels.points, named, strict=True))
    if not scale.mirrored:
        in_words, named = tuple(f"of {vote}" for vote in scale.columns), model.label_names
        words = {0: "false", 1: "true"} if labels.points == (0, 1) else {}
    rows, chances = [], [f"p_{name}" for name in model.label_names]
    for row in decisions(votes, model).drop_nulls("label").iter_rows(named=True):
        n, p = [row[name] for name in scale.columns], [row[name] for name in chances]
        counted = ", ".join(f"{count} {word}" for count, word in zip(n, in_words, strict=True))
        shares = ", ".join(f"{word} {share:.3f}" for word, share in zip(named, p, strict=True))
        rows.append(
            {
                item: str(row["item"]),
                "name": name,
                "label": words.get(row["label"]),
                "score": float(row["label"]),
                "explanation": f"votes: {counted}; probabilities: {shares}",
                "annotator_kind": "CODE",
                "annotator": annotator,
                "metadata": {name: row[name] for name in (*scale.columns, *chances)},
            }
        )
    return frame_of(rows)


# For the files that read and write a server


def frame_of(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """Make a frame of annotations, whose metadata are mappings; what a row lacks is null."""
    with needs("tables", "annotations"):
        import polars as pl

    kinds: dict[str, Any] = dict.fromkeys(COLUMNS, pl.String)
    kinds |= {"score": pl.Float64, "created": pl.Datetime("ms", "UTC")}

    def as_json(values: Mapping[str, Any] | None) -> str | None:
        return json.dumps(values, ensure_ascii=False, sort_keys=True) if values else None

    cells = [{**row, "metadata": as_json(row.get("metadata"))} for row in rows]
    return pl.DataFrame(cells, schema=kinds)


def truth_of(row: Mapping[str, Any]) -> bool | None:
    """Return a boolean annotation's value (true with score 1, false with 0), or None for others."""
    truth = {("true", 1): True, ("false", 0): False}
    return truth.get((row["label"], row["score"]))


def changes(
    rows: Iterable[dict[str, Any]], stored: Iterable[dict[str, Any]]
) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Yield the rows that are new or differ from the stored row of the same identity, with it."""
    by_identity = {identity_of(row): row for row in stored}
    for row in rows:
        old = by_identity.get(identity_of(row))
        if old is None or any(row[key] != old[key] for key in _CONTENT):
            yield row, old


def identity_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what tells an annotation from all others."""
    return tuple(row[column] for column in IDENTITY)


def rows_of(annotations: Source, needed: str | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place of each annotation, for errors, and its values; metadata are mappings.

    No two agree in `IDENTITY`, and all have a value in the column `needed`.
    """
    table = read_annotations(annotations)
    refuse_duplicates(table, IDENTITY)
    if needed is not None:
        refuse(table, pl.col(needed).is_null(), needed, f"a {needed.removesuffix('_id')}")
    for row in table.numbered().select(NUMBER, *COLUMNS).iter_rows(named=True):
        place, metadata = table.where(row.pop(NUMBER)), json.loads(row["metadata"] or "{}")
        yield place, row | {"metadata": metadata}


def _chosen(
    annotations: Source,
    name: str | None,
    kind: str,
    item: str,
    words: Mapping[str, object] | None,
    keys: Iterable[str],
    scale: Scale,
) -> Table:
    """Annotations of one kind and name, with `item`, columns of metadata, text and vote or null."""
    table = read_annotations(annotations)
    require(table, [item])
    table = table.filter({"annotator_kind": kind} | ({} if name is None else {"name": name}))
    names = table.values("name").to_list()
    expect(len(names) <= 1, "name", name, f"one of {listing(names)}")
    refuse(table, pl.col(item).is_null(), item, "an item")
    metadata = [json.loads(text or "{}") for text in table.frame["metadata"]]
    added: list[Any] = [pl.col(item).alias("item")]
    for key in keys:
        if key not in table.columns and any(key in values for values in metadata):
            cells = [values.get(key) for values in metadata]
            texts = [c if c is None or isinstance(c, str) else json.dumps(c) for c in cells]
            added.append(pl.Series(key, texts, dtype=pl.String))
    score = pl.col("score")
    whole = score.cast(pl.Int64, strict=False).cast(pl.String)
    number = pl.when(score == score.floor()).then(whole).otherwise(score.cast(pl.String))
    label = pl.col("label").str.strip_chars()
    columns = {"label": pl.when(label != "").then(label), "score": number}
    word = pl.coalesce(columns[column] for column in _SAYS[scale.mode])
    word = pl.when(label.str.to_uppercase() == UNPARSABLE).then(label).otherwise(word)
    said = meanings_of(words, scale).items()
    meant = word.str.to_lowercase().replace({of: "" if v is None else str(v) for of, v in said})
    table = table.with_columns([*added, word.alias(_WORD), meant.alias(_VOTE)])
    return table.with_columns([verdicts_on(scale, strict=False)(table, _VOTE).value.alias(_VOTE)])


def _without_words(table: Table) -> Table:
    return table.with_data(table.data.drop(_WORD, _VOTE))


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _kinds(table: Table, column: str) -> Parser:
    value = as_text(table, column).str.strip_chars().str.to_uppercase()
    is_kind = value.is_in(KINDS).fill_null(False)
    return Parser(value, is_kind, pl.when(is_kind).then(value), [(~is_kind, ", ".join(KINDS))])


def _times(table: Table, column: str) -> Parser:
    kind = table.schema[column]
    if isinstance(kind, pl.Datetime):
        value = pl.col(column).dt.replace_time_zone(kind.time_zone or "UTC")
        value = value.dt.convert_time_zone("UTC").dt.cast_time_unit("ms")
        return Parser(value, pl.lit(True), value)
    words = as_text(table, column)
    value = words.str.to_datetime(time_unit="ms", time_zone="UTC", strict=False)
    bad = value.is_null() & (words != "").fill_null(False)
    return Parser(value, ~bad, value, [(bad, "a time such as 2026-01-31T12:00:00Z")])
