"""Labels: one row per item; an empty label is counted, reported and left out."""
# Several raters give an item shares of their labels and one merged label.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from btdagg._util.errors import expect, forbid
from btdagg._util.lazy import pl
from btdagg.remarks import Remark, raters_disagree
from btdagg.votes.grades import scale_in, with_criteria
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.schema import LABEL_COLUMNS, LABELS, ids, parse
from btdagg.votes.source import read_table, said
from btdagg.votes.table import (
    Table,
    as_text,
    ids_of,
    listing,
    refuse_duplicates,
    require,
    without_repeats,
)
from btdagg.votes.verdicts import number_of, verdicts_on
from btdagg.votes.words import word_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg.votes.source import Columns, Source


# Columns of the shares of an item's raters that gave each label, lists in label order, and of how
# many raters these are.
_SHARES, RATERS = "label_shares", "label_raters"
_MEAN = "\0mean"  # of raters, where it is between two points

UNKNOWN_UNIT = (
    "labels have no column unit, expected one that says in each row whether an item or a group "
    "was drawn"
)

# What is made of an item on which raters disagree.
RaterRule = Literal["mean", "majority", "drop"]


@dataclass(frozen=True, eq=False)
class Labels(Table):
    """Labelled items: one row per item.

    Attributes
    ----------
    frame : polars.DataFrame
        The items that have a label. Columns `item` (text or Int64) and `label` (Int8); where the
        source has them `group` and `task` (text); and every other column as it came.
    unlabelled : polars.DataFrame
        The same columns of the items that have none.
    scale : Scale
        Scale of the labels: `label` has points of it.
    raters : str
        Treatment of an item on which raters disagree: mean, majority or drop.
    n_repeats : int
        Rows that repeat a rater's label of an item, and are left out.
    ratings : polars.DataFrame or None
        The labels of each rater, if the source names raters: their key, `rater` and `label`.
    """

    unlabelled: pl.DataFrame = field(kw_only=True)
    scale: Scale = field(default=PAIRS, repr=False, kw_only=True)
    raters: RaterRule = field(default="mean", repr=False, kw_only=True)
    n_repeats: int = field(default=0, repr=False, kw_only=True)
    ratings: pl.DataFrame | None = field(default=None, repr=False, kw_only=True)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Shares of labels that estimates use, (n, labels), of raters or of the one label."""
        if _SHARES in self.columns and self.raters != "majority":
            return shares_in(self.frame).reshape(-1, len(self.scale.points))
        return self.scale.shares(self.frame["label"].to_list())

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """On how many items raters disagree, and what their one label is."""
        return rater_remarks(self.scale, self.raters, self.n_disputed, len(self.frame))

    @property
    def n_disputed(self) -> int:
        """Number of items on which raters disagree."""
        return n_disputed(self.frame) + n_disputed(self.unlabelled)

    @property
    def n_missing(self) -> int:
        """Number of items of the source that nobody labelled."""
        return self.unlabelled.height - n_disputed(self.unlabelled)

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The labelled items: (n,) array of int64, or of object holding str."""
        return ids_of(self.frame["item"])

    @cached_property
    def labels(self) -> NDArray[Any]:
        """Their labels -1, 0, 1, or grades: (n,) array."""
        return self.frame["label"].to_numpy()

    @cached_property
    def groups(self) -> NDArray[np.object_] | None:
        """Group of each item, such as its prompt: (n,) array of str, or None."""
        if "group" not in self.columns:
            return None
        return np.array(self.frame["group"].to_list(), dtype=object)

    def filter(self, where: Mapping[str, object]) -> Labels:
        """Keep the items that have the given values, as :meth:`btdagg.votes.Table.filter` does."""
        everything = Table(self.frame.vstack(self.unlabelled), self.source)
        kept = _split(everything.filter(where), self.scale, self.raters)
        ratings = self.ratings
        if ratings is not None:
            key = [name for name in ("item", "task") if name in ratings.columns]
            of_kept = kept.frame.vstack(kept.unlabelled)
            ratings = ratings.join(of_kept, on=key, how="semi", nulls_equal=True)
        return replace(kept, ratings=ratings)


def read_labels(
    source: Source,
    *,
    columns: Columns | None = None,
    where: Mapping[str, object] | None = None,
    words: Mapping[str, object] | None = None,
    scale: Scale | None = None,
    raters: RaterRule = "mean",
) -> Labels:
    """Read labels, one row per item.

    Parameters
    ----------
    source : path, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `item` (or `id`, `item_id`) and `label`:
        -1, 0 or 1 (+1: A is better), or A, tie or same, B in any case; an empty label leaves the
        item unlabelled. Optional are `task`, `group` (its items are split together) and `n_raters`.
        A label between two points is a mean of raters: 1.667 counts as a third of 1 and two thirds
        of 2. With a column `rater` items may have a row per rater (labels may be called `vote`):
        the label is the majority, a tie if labels share the most; other columns are those of the
        first row. A rater's label that is repeated counts once.
    columns : mapping of str to str, or to several; optional
        Names of columns in the source by the names above, such as ``{"label": "gold"}``; several
        columns make one key.
    where : mapping, optional
        Read only some rows, before their values are checked; see :meth:`btdagg.votes.Table.filter`.
    words : mapping of str to A, tie, B, a grade or "missing"; optional
        Meaning of labels in words.
    scale : Scale, optional
        For labels that are grades, in a column `label`, `grade` or `score`; optional where certain,
        as of votes. Several raters give the median, of two the one nearer to the middle. A column
        `criterion` is the `task`.
    raters : {"mean", "majority", "drop"}
        If raters disagree: with "mean", estimates use the share of raters for each label (A and B
        do not cancel to a tie); with "majority", one label. Models use one label in both cases.
        "drop" leaves the item out.

    Raises
    ------
    InputError
        If the source cannot be read, a label is invalid, a group is empty, or an item occurs twice
        (in the same task, if there are tasks); with raters, if one gives an item two labels.
    """
    expect(raters in get_args(RaterRule), "raters", raters, '"mean", "majority" or "drop"')
    words, scale = said(columns, words=words, scale=scale)
    table = with_criteria(read_table(source, ["item"], columns=columns).filter(where or {}))
    scale = scale or scale_in(table, LABEL_COLUMNS, words=words)
    if not scale.mirrored:
        column = next((name for name in LABEL_COLUMNS if name in table.columns), "label")
        if column != "label":
            table = read_table(table, [], columns={"label": column})
    if "label" not in table.columns and "vote" in table.columns:
        forbid(
            "rater" not in table.columns,
            f"{table.source}: no column 'label', and no column of raters for its votes; name "
            f"that column by {{advice}}; found {listing(table.columns)}",
            advice={"columns": {"rater": "NAME"}},
        )
        table = read_table(table, [], columns={"label": "vote"})
    require(table, ["label"], "columns")
    table = _with_means(table, scale, words)
    rows = parse(table, {**LABELS.kinds, "label": verdicts_on(scale, words)})
    n_repeats, ratings = 0, None
    if "rater" in rows.columns:
        unique = _of_raters(rows)
        n_repeats = rows.height - unique.height
        ratings = unique.frame.select(*LABELS.key_of(rows), "rater", "label").drop_nulls("label")
        rows = _merged(_with_shares(unique, scale), scale)
    else:
        rows = _with_shares(rows, scale)
    remedy = (
        "; if several people labelled it, name the column of their names by {advice}; found "
        + listing(rows.columns)
    )
    refuse_duplicates(rows, LABELS.key_of(rows), remedy, advice={"columns": {"rater": "NAME"}})
    return replace(_split(rows, scale, raters), n_repeats=n_repeats, ratings=ratings)


def labels_of_shares(ids: NDArray[Any], shares: NDArray[np.float64], scale: Scale) -> Labels:
    """Return labels of (n,) items as shares of their raters, (n, K)."""
    columns = {"item": ids, "label": scale.label_of(shares), _SHARES: shares.tolist()}
    frame = pl.DataFrame(columns)
    return Labels(frame, "labels", unlabelled=frame.clear(), scale=scale)


def _with_means(table: Table, scale: Scale, words: Mapping[str, object] | None) -> Table:
    """Return labels of which those between two points are the nearest one, beside `_MEAN`."""
    low, *_, high = scale.points
    said, means = {*map(word_of, words or ())}, {}
    for value, text in table.texts("label").select("value", "text").drop_nulls().iter_rows():
        number = number_of(text)
        if low < number < high and number not in scale.points and word_of(text) not in said:
            means[value] = number
    if not means:
        return table
    nearest = {mean: str(_nearest(mean, scale)) for mean in means.values()}
    mean = pl.col("label").replace_strict(means, default=None, return_dtype=pl.Float64)
    point = mean.replace_strict(nearest, default=None, return_dtype=pl.String)
    label = pl.coalesce(point, as_text(table, "label"))
    return table.with_columns([label.alias("label"), mean.alias(_MEAN)])


def _nearest(mean: float, scale: Scale) -> float:
    """Return the nearest point; half way between two the one nearer to the middle, or the lower."""
    return min(scale.points, key=lambda point: (abs(point - mean), abs(point - scale.middle)))


def _with_shares(rows: Table, scale: Scale) -> Table:
    if {_MEAN, "n_raters"}.isdisjoint(rows.columns):
        return rows
    value, points = pl.col("label").cast(pl.Float64), scale.points
    value = pl.coalesce(_MEAN, value) if _MEAN in rows.columns else value
    slopes: list[list[pl.Expr]] = [[] for _ in points]
    for place, (low, high) in enumerate(pairwise(points)):
        share = (value - low) / (high - low)
        slopes[place].append(1 - share)
        slopes[place + 1].append(share)
    shares = [pl.min_horizontal(point_slopes).clip(0, 1) for point_slopes in slopes]
    added = [pl.concat_list(shares).alias(_SHARES)]
    if "n_raters" in rows.columns:
        added.append(pl.col("n_raters").fill_null(1).cast(pl.Int64).alias(RATERS))
    table = rows.with_columns(added)
    return table.with_data(table.data.drop(_MEAN, strict=False))


def _of_raters(rows: Table) -> Table:
    rows = parse(rows, {"rater": ids})
    means = []
    if _MEAN in rows.columns:
        means = [_MEAN]
        value = pl.coalesce(_MEAN, pl.col("label").cast(pl.Float64))
        rows = replace(rows.with_columns([value.alias(_MEAN)]), titles={_MEAN: "mean label"})
    return without_repeats(rows, [*LABELS.key_of(rows), "rater"], "label", *means)


def _merged(rows: Table, scale: Scale) -> Table:
    key = LABELS.key_of(rows)
    frame, label = rows.numbered(), pl.col("label")
    if frame.select(pl.struct(key).is_unique().all()).item():
        return rows
    sums = [(label == value).sum() for value in scale.points]
    if scale.mirrored:
        (of_b, of_tie, of_a), (minus, tie, plus) = scale.points, sums
        leads = [plus > pl.max_horizontal(tie, minus), minus > pl.max_horizontal(tie, plus)]
        decided = pl.when(leads[0]).then(of_a).when(leads[1]).then(of_b).otherwise(of_tie)
        merged = pl.when(label.count() > 0).then(decided).cast(rows.schema["label"])
    else:
        ordered = label.drop_nulls().sort()
        low = ordered.get((label.count() - 1) // 2, null_on_oob=True)
        high = ordered.get(label.count() // 2, null_on_oob=True)
        merged = pl.lit(scale.middle_point).clip(low, high).cast(rows.schema["label"])
        merged = pl.when(label.count() > 0).then(merged)
    mean = [side / label.count() for side in sums]
    if _SHARES in frame.columns:
        shares = (pl.col(_SHARES).list.get(place) for place in range(len(sums)))
        mean = [share.filter(label.is_not_null()).mean() for share in shares]
    columns = [n for n in frame.columns if n not in ("rater", _SHARES, RATERS, *key)]
    first = [merged.alias(name) if name == "label" else pl.col(name).first() for name in columns]
    first.append(pl.concat_list(mean).alias(_SHARES))
    first.append(label.count().cast(pl.Int64).alias(RATERS))
    return rows.with_data(frame.group_by(key, maintain_order=True).agg(first))


def shares_in(rows: pl.DataFrame) -> NDArray[np.float64]:
    """Return the shares of an item's raters that gave each label."""
    return np.array(rows[_SHARES].to_list(), dtype=np.float64)


def n_disputed(rows: pl.DataFrame) -> int:
    """Return on how many items raters disagree."""
    return int((rows[_SHARES].list.max() < 1).sum()) if _SHARES in rows.columns else 0


def rater_remarks(
    scale: Scale, raters: str, n_disputed: int, n_labelled: int, *, of_estimates: bool = False
) -> tuple[Remark, ...]:
    """Say on how many of the items with a label raters disagree, and what is made of these."""
    if not n_disputed:
        return ()
    treatment = "majority" if scale.mirrored else "median"
    if raters == "drop":
        n_labelled += n_disputed
        treatment = "drop"
    elif raters == "mean" and of_estimates:
        treatment = "mean"
    return (raters_disagree(n_disputed, n_labelled, treatment),)


def _split(rows: Table, scale: Scale, raters: RaterRule) -> Labels:
    frame = rows.frame
    if raters == "drop" and _SHARES in frame.columns:
        agreed = pl.when(~(pl.col(_SHARES).list.max() < 1)).then("label")
        frame = frame.with_columns(agreed.alias("label"))
    has_label = frame["label"].is_not_null()
    labelled, unlabelled = frame.filter(has_label), frame.filter(~has_label)
    return Labels(labelled, rows.source, unlabelled=unlabelled, scale=scale, raters=raters)
