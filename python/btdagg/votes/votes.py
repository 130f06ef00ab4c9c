"""Votes, one row a vote or one row an item, from a source to counts."""
# A vote is -1, 0 or +1 from A's point of view, or B, tie, A in words. An empty vote is missing,
# never a tie: it is counted and shown but not tallied.

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from btdagg import _core
from btdagg._util.errors import InputError, expect, forbid, of_kind
from btdagg._util.lazy import pl
from btdagg._util.validation import (
    COUNT_COLUMNS,
    CountsItself,
    as_id_array,
    as_integer,
    names_of_judges,
    same_index,
    same_length,
)
from btdagg.votes import schema
from btdagg.votes.facts import Confidences, Facts, facts_of
from btdagg.votes.grades import scale_in, with_criteria
from btdagg.votes.items import Items, Origin
from btdagg.votes.join import join, on_sides, with_labels, with_task
from btdagg.votes.orders import about_orders
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS, Scale, column_text
from btdagg.votes.schema import COUNTS, VOTE_COLUMNS, VOTES, checked, parse
from btdagg.votes.sides import Sides, require_one_pair, sides_of
from btdagg.votes.source import read_table, said
from btdagg.votes.strength import (
    STRENGTH_COLUMNS,
    Strength,
    are_counts,
    as_strengths,
    kind_in,
    kinds_of,
    strength_of,
    with_votes,
)
from btdagg.votes.table import (
    NUMBER,
    PLACE,
    Table,
    counts_of,
    ids_of,
    listing,
    refuse_duplicates,
    require,
    without_repeats,
)
from btdagg.votes.verdicts import about_words, are_guessed, verdicts_on, with_orders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.labels import Labels
    from btdagg.votes.source import Columns, Source
    from btdagg.votes.strength import FullMargin, StrengthKind

_CONFIDENCE = "\0confidence"  # no column of a source is called that
_SEEN, N_ROWS, _TURN = "\0samples", "\0rows", "\0turn"
_N_BITS = 63  # of an Int64, without its sign
_SUMS = ("total", "least", "log_product")  # of `Confidences`
_WITHOUT_VOTES = ("greedy", "few_shot")  # decided by calls of their own, not on the votes


@dataclass(frozen=True, eq=False)
class Votes(Table, CountsItself):
    """Votes on items: one row per vote, or one row per item with counts of its votes.

    Whatever takes counts takes them as well.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item` (text or Int64) and `vote` (Int8; null where missing), or `item`, `minus`,
        `tie`, `plus` (Int64); where the source has them `judge`, `template`, `task`, `order`
        (``AB`` or ``BA``), `sample` (Int64), `confidence` (Float64 if all are in 0 to 1); and all
        others.
    strength : Strength or None
        Source of the votes' strength: `kind` is the column, `full_margins` the margins of a
        whole win.
    scale : Scale
        `vote` has points of this scale, and counts have a column for each.
    """

    strength: Strength | None = field(default=None, repr=False, kw_only=True)
    scale: Scale = field(default=PAIRS, repr=False, kw_only=True)
    # Whether someone said how strength is read; otherwise a model reads it as its own votes'.
    is_chosen: bool = field(default=False, repr=False, kw_only=True)
    # Whether votes are 0 and 1 alone, and nobody said what these numbers mean.
    is_guessed: bool = field(default=False, repr=False, kw_only=True)
    # What A and B are called where someone said it; otherwise columns may tell.
    own_sides: Sides | None = field(default=None, repr=False, kw_only=True)
    # Sums of the votes by item and whatever else is of their key, and the data they are sums of.
    summed: tuple[Any, pl.DataFrame] | None = field(default=None, repr=False, kw_only=True)

    @cached_property
    def sums(self) -> pl.DataFrame:
        """Counts of single votes by item and what else is of their key but the sample, in order.

        Columns are those of the key, `columns_of_counts`, `PLACE` (of the first row) and `N_ROWS`.
        """
        if self.summed is not None and self.summed[0] is self.data:
            return self.summed[1]
        return _sums(self).drop(_SEEN, strict=False)

    @property
    def columns_of_counts(self) -> Mapping[str, float]:
        """The votes by the names of the columns that count them."""
        return self.scale.columns

    @cached_property
    def sides(self) -> Sides:
        """Names of A and B: from `read_votes`, or the one value of their columns."""
        return self.own_sides or sides_of(self, scale=self.scale)

    def with_names(self, a: str | None, b: str | None) -> Self:
        """Return the same votes with names of A and B, which columns must not contradict."""
        if a is None and b is None:
            return self
        return replace(self, own_sides=sides_of(self, a, b, scale=self.scale))

    @property
    def are_counts(self) -> bool:
        """Whether there is one row per item, with counts."""
        return "vote" not in self.columns

    @cached_property
    def n_missing(self) -> int:
        """Number of votes that are missing; of counts it is not known, and 0."""
        if self.are_counts:
            return 0
        missing = pl.col("vote").null_count()
        return int(self.collect(self.data.lazy().select(missing)).item())

    @cached_property
    def ids(self) -> NDArray[Any]:
        """The items, in the order of `counts`: (n,) array of int64, or of object holding str."""
        return self.counts()[0]

    @property
    def height(self) -> int:
        """Number of rows."""
        return super().height if self.are_counts or self.in_memory else int(self.sums[N_ROWS].sum())

    def values(self, column: str) -> pl.Series:
        """Return the different values of a column as text; see `Table.values`."""
        if not self._are_in_sums([column]):
            return super().values(column)
        return Table(self.sums.drop(PLACE), self.source).values(column)

    def _are_in_sums(self, columns: Iterable[str]) -> bool:
        return not self.are_counts and {*columns} <= {*VOTES.key_of(self)} - {"sample"}

    def _rows_with(self, columns: Iterable[str]) -> pl.LazyFrame:
        return self.sums.lazy() if self._are_in_sums(columns) else super()._rows_with(columns)

    def _kept(self, keep: pl.Expr, columns: Sequence[str]) -> Self:
        part = super()._kept(keep, columns)
        if not self._are_in_sums(columns):
            return part
        return replace(part, summed=(part.data, self.sums.filter(keep)))

    def signs(self) -> Self:
        """Return the same votes without their strength."""
        if self.strength is None:
            return self
        return replace(self, strength=None, summed=None, is_chosen=True)

    @property
    def kind(self) -> StrengthKind:
        """Which columns say how strong the votes are."""
        return "none" if self.strength is None else self.strength.kind

    @cached_property
    def provenance(self) -> Provenance:
        """Where the votes are from, as their columns say."""
        return Provenance.of(self)

    def tally(self, n_votes: int | None = None) -> pl.DataFrame:
        """Count the votes of each item as `counts` does: `item` and a column for each vote."""
        self.refuse_beyond(n_votes)
        return self._tally(self.data.lazy(), n_votes).select("item", *self.columns_of_counts)

    def counts(self, n_votes: int | None = None) -> tuple[NDArray[Any], NDArray[Any]]:
        """Count the votes of each item.

        Parameters
        ----------
        n_votes : int, optional
            Count only the first so many votes of each item that are not missing. First means by
            `sample` if there is such a column, then by row. With a column `order` the votes are
            taken from AB, BA, AB, ... in turn, as long as both have votes left. Items with fewer
            keep theirs; a number that no item has is refused.

        Returns
        -------
        ids : (n,) array of int64, or of object holding str
            The items, in the order in which they are first seen, also those without a vote.
        counts : (n, 3) array, or (n, J) of grades
            Votes per item in label order: minus, tie, plus; or for each point of the scale. Of
            int64; of float64 if votes have a strength.
        """
        rows = self.tally(n_votes)
        return ids_of(rows["item"]), counts_of(rows, self.columns_of_counts)

    def items(
        self,
        labels: Labels | None = None,
        *,
        n_votes: int | None = None,
        panel: str | None = None,
        judges: Sequence[str] | None = None,
        by: str | None = None,
        systems: Sequence[str] | None = None,
        confidence: str | None = None,
        decisions: Sequence[str] = (),
        drawn: bool = True,
    ) -> Items:
        """Count the votes of each item, and find its label and what else is known of it.

        Parameters
        ----------
        labels : Labels, optional
            Items are then joined with them task by task, with groups and probabilities. Column
            `probability`: each item's probability of being drawn for labelling;
            `least_probability`: the lowest of any item, also read from rows without a label. Labels
            with probability 0, chosen for human review, are left out.
        n_votes : int, optional
            Count only the first so many votes of each item, or judge of a panel; see `counts`.
        panel, judges : str and sequence of str, optional
            Column of the judges of a panel, and their names in order; by default `judge`, and those
            of the column, sorted, if one of the two is given.
        by, systems : str and sequence of str, optional
            With labels, columns with one value for each item: what to estimate by, and the systems
            whose responses are A and B, or the one of each response, which is a `by`. Columns
            `system_a` and `system_b`, or `system`, are `Items.systems` without being named.
        confidence : str, optional
            Column of the confidences of votes, at least 0; by default `confidence`, from 0 to 1,
            whose bad values are an error only for methods that use it.
        decisions : sequence of str
            Columns of decisions made elsewhere: a vote or nothing, one per item. With `n_votes` the
            column ``gsa_4`` holds the decisions of ``gsa`` on four votes.
        drawn : bool
            Whether to estimate from the labels. For models to fit, labels with probability 0 stay,
            and no column says how items were drawn.

        Examples
        --------
        >>> from btdagg import read_labels
        >>> votes = read_votes({"item": ["x", "x", "y"], "vote": ["A", "tie", "B"]})
        >>> items = votes.items(read_labels({"item": ["y", "z"], "label": ["B", "A"]}))
        >>> items.labels.tolist(), items.pooled.tolist()
        ([[nan, nan, nan], [1.0, 0.0, 0.0]], [[0, 1, 1], [1, 0, 0]])
        >>> items.labelled().label.tolist()
        [-1]
        """
        panel = panel or ("judge" if judges else None)
        how: Any = {"n_votes": n_votes, "panel": panel, "judges": judges}
        how |= {"confidence": confidence, "decisions": decisions}
        if labels is None:
            for name, value in (("by", by), ("systems", systems)):
                expect(not value, name, value, "none without labels")
            self.refuse_beyond(n_votes, panel)
            return self.items_of_part(**how)
        if systems is not None and len(systems) == 1:  # of responses, which they group
            by, systems = systems[0] if by is None else by, None
        votes = with_task(self, labels)
        has_tasks = "task" in votes.columns
        by = "task" if by == "criterion" and has_tasks else by  # as it was read
        votes.refuse_beyond(n_votes, panel)
        columns = dict(zip(votes.scale.systems, systems or (), strict=False))
        columns |= {} if by is None else {"by": by}
        require(votes, columns.values())
        counted = votes.items_of_part(key=("task", "item") if has_tasks else ("item",), **how)
        about = *about_words(votes), *about_orders(votes, labels)
        items = with_labels(counted, labels, drawn=drawn, about=about).with_columns_of(columns)
        return replace(items, origin=replace(items.origin, by=by or ""))

    def items_of_part(
        self,
        *,
        n_votes: int | None = None,
        panel: str | None = None,
        judges: Sequence[str] | None = None,
        confidence: str | None = None,
        decisions: Sequence[str] = (),
        key: tuple[str, ...] = ("item",),
    ) -> Items:
        """Count the votes of each item as `items` does, of a part that may have fewer votes.

        With a `key` of task and item, items of one id are told apart by their tasks.
        """
        columns: dict[str, Any] = {}
        if panel is None:
            data, columns = self._confidences(confidence)
            rows = self._in_tasks(self._tally(data, n_votes, key))
            keys, counts, judges = rows.select(key), counts_of(rows, self.columns_of_counts), ()
            for name in decisions:
                column = column_of_decisions(name, n_votes)
                columns[f"decision {name}"] = self._decisions(column, keys)
            if "total tie" in rows.columns:
                sums = ([f"{kind} {name}" for name in self.columns_of_counts] for kind in _SUMS)
                columns["confidences"] = Confidences(
                    *(rows.select(names).to_numpy(order="c") for names in sums)
                )
            if not self.are_counts and counts.dtype.kind != "i":
                signs = self._in_tasks(self.signs()._tally(self.data.lazy(), n_votes, key))
                columns["signs"] = counts_of(signs, self.columns_of_counts)
        else:
            for name, value in {"confidence": confidence, "decisions": decisions}.items():
                expect(not value, name, value, "no votes of a panel")
            judges = self._judges(panel, judges)
            keys, counts = self._counts_by_judge(panel, judges, n_votes, key)
        if "task" in key:
            tasks = keys["task"].cast(pl.String).fill_null("")
            columns["task"] = np.array(tasks.to_list(), dtype=object)
        return Items(
            counts=counts,
            ids=ids_of(keys["item"]),
            scale=self.scale,
            facts=Facts(columns, self),
            origin=Origin(
                source=self.source,
                provenance=self.provenance,
                judges=tuple(judges),
                sides=self.sides,
            ),
        )

    def _judges(self, column: str, judges: Sequence[str] | None) -> tuple[str, ...]:
        """Return the names of a panel, by default all of its column, sorted."""
        expected = "no panel, since the votes are grades, and judges of grades are pooled"
        expect(self.scale.mirrored, "panel", column, expected)
        present = self.values(column).to_list()
        forbid(None in present or "" in present, f"{self.source}: a row has no {column}")
        names = names_of_judges(judges or tuple(sorted(present)))
        for name in present:
            forbid(
                name not in names,
                f"{self.source}: {column} {name!r} is not in the panel ({', '.join(names)})",
            )
        return names

    def _counts_by_judge(
        self, column: str, judges: Sequence[str], n_votes: int | None, key: tuple[str, ...]
    ) -> tuple[pl.DataFrame, NDArray[Any]]:
        """Return the items, and their votes by judge; an absent judge has zeros."""
        rows = self._tally(self.data.lazy(), n_votes, (*key, column))
        judge = rows[column].cast(pl.String).replace_strict(judges, range(len(judges)))
        rows = self._in_tasks(rows.with_columns(judge.alias(PLACE)), PLACE)
        keys = rows.select(key).unique(maintain_order=True)
        place = rows.select(key).join(
            keys.with_row_index(NUMBER), on=key, nulls_equal=True, how="left", maintain_order="left"
        )
        counts = counts_of(rows, self.columns_of_counts)
        stacked = np.zeros((len(keys), len(judges), 3), dtype=counts.dtype)
        stacked[place[NUMBER].to_numpy(), rows[PLACE].to_numpy()] = counts
        return keys, stacked

    def _in_tasks(self, rows: pl.DataFrame, *columns: str) -> pl.DataFrame:
        """Sort rows by their task, in order of first appearance, and by columns within it."""
        if "task" in rows.columns:
            tasks = rows.select("task").unique(maintain_order=True).with_row_index(_TURN)
            how: Any = {"how": "left", "maintain_order": "left", "nulls_equal": True}
            rows, columns = rows.join(tasks, on="task", **how), (_TURN, *columns)
        sorted_rows = rows.sort(columns, maintain_order=True) if columns else rows
        return sorted_rows.drop(_TURN, strict=False)

    def _confidences(self, column: str | None) -> tuple[pl.LazyFrame, dict[str, Any]]:
        """Return the rows with confidences, or the error of whoever needs these."""
        self.refuse_of_counts(confidence=column)
        data = self.data.lazy()
        if not self.scale.mirrored:
            expect(column is None, "confidence", column, "no confidences for grades")
        elif column is not None:
            values = checked(self, {column: schema.amounts})[0]
            return data.with_columns(values.alias(_CONFIDENCE)), {}
        elif "confidence" in self.columns and not self.are_counts:
            try:
                values = checked(self, {"confidence": schema.fractions})[0]
            except InputError as error:
                return data, {"confidences": str(error)}
            return data.with_columns(values.alias(_CONFIDENCE)), {}
        return data, {}

    def labelled(self, labels: Labels, n_votes: int | None = None, **more: Any) -> Items:
        """Return the items with a label, joined as by `items`, which has the other arguments."""
        items = join(self.items(n_votes=n_votes, **more), labels).labelled()
        items.require_votes(n_votes)
        about = *on_sides([items]), *about_words(self), *about_orders(self, labels)
        return items.with_remarks((*items.origin.remarks, *about))

    def refuse_beyond(self, n_votes: int | None, panel: str | None = None) -> None:
        """Refuse a number of votes that no item has, or no judge of a panel on an item."""
        self.refuse_of_counts(n_votes=n_votes)
        if n_votes is None:
            return
        key = [name for name in ("item", "task", panel) if name in self.columns]
        rows = self.data.lazy().group_by(key).agg(pl.col("vote").count())
        if self._are_in_sums(key):
            numbers = pl.sum_horizontal(*self.columns_of_counts).alias("vote")
            rows = self.sums.lazy().select(*key, numbers).group_by(key).sum()
        most = round(self.collect(rows.select(pl.col("vote").max())).item() or 0)
        n_votes = as_integer(n_votes, "n_votes", 1)
        expect(n_votes <= most, "n_votes", n_votes, f"at most {most}, the most votes of an item")

    def refuse_of_counts(self, **arguments: object) -> None:
        """Refuse arguments that need single votes: these are counts, and one is not None."""
        for name, value in arguments.items():
            text = f"{self.source}: {{advice}} needs single votes, but these are counts"
            forbid(value is not None and self.are_counts, text, advice={name: None})

    def _tally(
        self, data: pl.LazyFrame, n_votes: int | None, key: tuple[str, ...] = ("item",)
    ) -> pl.DataFrame:
        import polars.selectors as cs

        if "task" not in key:
            self._refuse_shared_items()
        if self.are_counts:
            counts = self.frame.select(*key, *self.columns_of_counts)
            if {*COUNTS.key_of(self)} == {*key}:  # whose rows are the items
                return counts
            return _whole(counts.group_by(key, maintain_order=True).sum(), self.columns_of_counts)
        with_confidences = _CONFIDENCE in data.collect_schema()
        if n_votes is not None or with_confidences or not self._are_in_sums(key):
            rows = data.with_row_index(PLACE)
            if n_votes is not None:
                strength_columns = [] if self.strength is None else self.strength.columns
                names = [*key, "vote", "sample", "order", PLACE, _CONFIDENCE, *strength_columns]
                needed = rows.select(cs.by_name(*names, require_all=False))
                rows = _first(needed, as_integer(n_votes, "n_votes", 1), key)
            more = self._sums_of_confidences() if with_confidences else ()
            rows = self._sums_of(rows, more, [name for name in key if name != "item"])
        elif {*VOTES.key_of(self)} - {"sample"} == {*key}:
            return _whole(self.sums, self.columns_of_counts)
        else:
            sums = pl.col(*self.columns_of_counts).sum()
            rows = self.sums.lazy().group_by(key).agg(sums, pl.col(PLACE).min())
        return _whole(self.collect(rows.sort(PLACE)), self.columns_of_counts)

    def weighed(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Add columns `minus` and `plus`: what each vote is worth for B and A, by strength."""
        if self.strength is None:
            return rows
        minus, plus = self.strength.sides(self.scale)
        return rows.with_columns(minus=minus, plus=plus)

    def _sums_of(
        self, rows: pl.LazyFrame, more: Iterable[pl.Expr] = (), by: Iterable[str] = ()
    ) -> pl.LazyFrame:
        vote, points = pl.col("vote"), self.columns_of_counts.items()
        sums = [(vote == point).sum().cast(pl.Int64).alias(name) for name, point in points]
        if self.strength is not None:
            sums = [pl.col("minus").sum(), vote.count().alias("tie"), pl.col("plus").sum()]
        counted = self.weighed(rows).group_by("item", *by).agg(*sums, pl.col(PLACE).min(), *more)
        # A tie is what the sides have not of all votes.
        tie = pl.col("tie") - pl.col("minus") - pl.col("plus")
        return counted if self.strength is None else counted.with_columns(tie=tie)

    def _sums_of_confidences(self) -> Iterator[pl.Expr]:
        for name, side in self.columns_of_counts.items():
            # In ascending order, so that the order of the votes does not change a bit of a sum;
            # running sums, since the engine leaves a sort out before a plain one.
            values = pl.col(_CONFIDENCE).filter(pl.col("vote") == side).sort()
            total, log_product = values.cum_sum().last(), values.log().cum_sum().last()
            least = values.min().fill_null(float("inf"))
            sums = total.fill_null(0.0), least, log_product.fill_null(0.0)
            for kind, value in zip(_SUMS, sums, strict=True):
                known = pl.when(values.is_null().any()).then(float("nan")).otherwise(value)
                yield known.alias(f"{kind} {name}")

    def _decisions(self, column: str, keys: pl.DataFrame) -> NDArray[np.float64]:
        decided = self.with_columns(checked(self, {column: verdicts_on(self.scale)}))
        values = facts_of(decided, keys, [column])[column].cast(pl.Float64)
        # As sides, whatever the points are called: -1, 0 and 1.
        return self.scale.leaning(values.fill_null(float("nan")).to_numpy())

    def _refuse_shared_items(self) -> None:
        if "task" not in self.columns or len(self.values("task")) < 2:
            return
        rows = (self.data if self.are_counts else self.sums).lazy()
        tasks = rows.select("item", "task").unique(maintain_order=True)
        shared = self.collect(tasks.filter(pl.len().over("item") > 1))
        if shared.height:
            item = shared["item"][0]
            first, second = shared.filter(pl.col("item") == item)["task"][:2]
            raise InputError(
                f"{self.source}: item {item!r} is in two tasks, {first!r} and {second!r}; filter "
                "or partition by task first"
            )


def read_votes(
    source: Source,
    *,
    columns: Columns | None = None,
    where: Mapping[str, object] | None = None,
    words: Mapping[str, object] | None = None,
    order: Mapping[str, str] | None = None,
    strength: StrengthKind | None = None,
    full_margin: float | Mapping[str, float] | tuple[FullMargin, ...] | None = None,
    scale: Scale | None = None,
    a: str | None = None,
    b: str | None = None,
) -> Votes:
    """Read votes, one row per vote, or counts of votes, one row per item.

    Parameters
    ----------
    source : path, list of paths, data frame, or mapping of column name to values
        See :func:`btdagg.votes.read_table`. Required are `item` (or `id`, `item_id`) and `vote`:
        -1, 0 or 1 from A's point of view (+1: A is better), or A, tie or same, B in any case; an
        empty vote is missing. Optional are `judge`, `order` (AB or BA), `sample` (a whole number),
        `confidence` (0 to 1 or empty), `template`, `temperature`, `task`; other columns are kept.
        Without `vote`, counts are read: `minus` (or `b`), `tie` (or `same`) and `plus` (or `a`),
        numbers below 2**53.
    columns : mapping of str to str, or to several; optional
        Names of columns in the source by the names above, such as ``{"item": "qid"}``; several
        columns make one key.
    where : mapping, optional
        Read only some rows, before their values are checked; see :meth:`btdagg.votes.Table.filter`.
    words : mapping of str to -1, 0, 1, A, tie, B, missing, first or second; optional
        Meaning of the words in `vote`. ``first`` and ``second`` are the responses that the column
        `order` says were shown first and second.
    order : mapping of str to AB or BA, optional
        Meaning of the words in `order`: AB where A was shown first.
    strength : {"margin", "strength", "probabilities", "confidence", "none"}, optional
        Which columns say how strong votes are: a `margin` on any scale, a `strength` from 0 to 1
        (both needed of every vote but ties; sizes beside a column `vote`, or signed), or
        probabilities `p_minus`, `p_tie`, `p_plus`. By default that of these three which is there.
    full_margin : float or mapping of judge to float, optional
        The margin of a whole win. By default twice the mean margin of the judge and template, ties
        included.
    scale : Scale, optional
        For grades, in a column `score` or `vote` (`words` say their numbers), or counts for each
        point. Optional where certain: pairs, pass and fail in words or as 0 and 1, and where a
        column `grades` says it, as in exports of a vote store. A column `criterion` is the `task`.
    a, b : str, optional
        Names of A and B, such as two models; by default the one value of the columns `system_a` and
        `system_b`.

    Returns
    -------
    Votes
        Votes of Parquet files have been checked, and stay in the files until they are tallied.

    Raises
    ------
    InputError
        If the source cannot be read, a value is not of its column's kind, one sample has two
        different votes, or counts have an item (of one task and judge) twice.

    Notes
    -----
    With a column `sample`, rows that agree in item, judge, order, sample, template, temperature and
    task (as far as they exist) are one sample, which counts once, missing only if all are. Without
    it every row is a vote.

    Examples
    --------
    >>> rows = {"qid": ["q1", "q1"], "winner": ["left", "left"], "left": ["ours", "theirs"]}
    >>> votes = read_votes(
    ...     rows,
    ...     columns={"item": "qid", "vote": "winner", "order": "left"},
    ...     words={"left": "first", "right": "second", "draw": "tie"},
    ...     order={"ours": "AB", "theirs": "BA"},
    ... )
    >>> votes.frame["vote"].to_list()
    [1, -1]
    """
    words, order, scale = said(columns, words=words, orders=order, scale=scale)
    table = with_criteria(read_table(source, ["item"], columns=columns).filter(where or {}))
    own_sides = getattr(table, "own_sides", None)

    own_scale = getattr(table, "scale", None)
    has_numbers = own_scale is None and not are_counts(table) and "vote" in table.columns
    raw, stated = table, [*(words or ())]

    def named(votes: Votes) -> Votes:
        if has_numbers and votes.scale == PAIRS:
            votes = replace(votes, is_guessed=are_guessed(raw, "vote", stated))
        votes = votes if own_sides is None else replace(votes, own_sides=own_sides)
        return votes.with_names(a, b)

    order_of_columns = VOTE_COLUMNS if own_scale or scale is None else reversed(VOTE_COLUMNS)
    scale = scale or own_scale or scale_in(table, words=words)
    if not scale.mirrored:
        for name, value in {"strength": strength, "full_margin": full_margin}.items():
            expect(value in (None, "none"), name, value, "no strength for grades")
        present = [name for name in order_of_columns if name in table.columns]
        column = None if are_counts(table) or not present else present[0]
        return named(_grades_of(table, column, scale, words))
    require_one_pair(table, [name for name in ("item", "task") if name in table.columns])
    table = with_orders(table, order)
    is_chosen = strength is not None or full_margin is not None
    if are_counts(table):
        require(table, ["vote"] if words else [], "columns")
        counts = _counts_of(table, scale)
        counts.refuse_of_counts(full_margin=full_margin)
        counts.refuse_of_counts(strength=None if strength == "none" else strength)
        return named(counts)
    kind = kind_in(table, strength)
    if full_margin is not None and kind is None:
        require(table, ["margin"])
        raise InputError("full_margin is given, but strength is none", argument="full_margin")
    if "vote" not in table.columns:
        signed = kind_in(table, None) if kind is None else kind
        if signed is not None and signed != "confidence":
            table = with_votes(table, signed, scale)
    text = f"{table.source}: column score has grades, expected votes on pairs"
    forbid("score" in table.columns and "vote" not in table.columns, text)
    require(table, ["vote"], "columns")
    votes = _votes_of(table, scale, kind, full_margin, words)
    # A model is used on votes without its strength, with a warning.
    is_needed = is_chosen and not isinstance(full_margin, tuple)
    if kind is not None and votes.strength is None and is_needed:
        expected = f"a {STRENGTH_COLUMNS[kind][0]} for at least one vote"
        raise InputError(source=table.source, expected=expected, argument="strength")
    return named(replace(votes, is_chosen=is_chosen))


def _grades_of(
    table: Table, column: str | None, scale: Scale, words: Mapping[str, object] | None
) -> Votes:
    if column is None:
        names = {column_text(name): name for name in table.columns}
        if not {*scale.columns} <= {*names}:
            expected = f"a column score or vote, or counts in {listing(scale.columns)}"
            found = listing(names.values())
            raise InputError(source=table.source, expected=f"{expected}; found {found}")
        return _counts_of(table, scale, {names[name]: name for name in scale.columns})
    return _votes_of(read_table(table, [], columns={"vote": column}), scale, words=words)


def _votes_of(
    table: Table,
    scale: Scale,
    kind: StrengthKind | None = None,
    full_margin: Any = None,
    words: Mapping[str, object] | None = None,
) -> Votes:
    kinds = {**VOTES.kinds, **kinds_of(kind), "vote": verdicts_on(scale, words)}

    def with_strength(votes: Votes) -> Votes:
        strength = None if kind is None else strength_of(votes, kind, full_margin, scale)
        return replace(votes, strength=strength, scale=scale)

    parsed = parse(table, kinds)
    votes = with_strength(
        Votes(parsed.data, parsed.source, files=parsed.files, titles=parsed.titles)
    )
    summed = _sums(votes)
    votes = replace(votes, summed=(votes.data, summed))
    if "confidence" in votes.columns:
        with suppress(InputError):  # it is refused by whoever uses it
            typed = parse(votes, {"confidence": schema.fractions})
            votes = replace(typed, summed=(typed.data, summed))
    if "sample" not in votes.columns:
        return votes
    without = _without_repeats(votes)
    # A sample that was there twice counts once, also for the mean margin.
    return without if without.data is votes.data else with_strength(without)


def _sums(votes: Votes) -> pl.DataFrame:
    """Return `Votes.sums`, of samples with the number of different ones in `_SEEN`."""
    # Most of the time goes into grouping rows by text: constant columns are not grouped by, and
    # different samples are counted by the bits of one word, which those from 63 on share.
    key = [column for column in VOTES.key_of(votes) if column not in ("item", "sample")]
    same = votes.constants(key)
    more = [pl.len().cast(pl.Int64).alias(N_ROWS)]
    rows = votes.data.lazy().with_row_index(PLACE)
    if "sample" in votes.columns:
        bit = pl.lit(2, pl.Int64).pow(pl.col("sample") % _N_BITS).alias(_SEEN)
        rows = rows.with_columns(bit)
        more.append(pl.col(_SEEN).bitwise_or().bitwise_count_ones())
    by = [column for column in key if column not in same]
    summed = votes.collect(votes._sums_of(rows, more, by).sort(PLACE))
    return summed.with_columns(same.values()) if same else summed


def _counts_of(table: Table, scale: Scale, sides: Mapping[str, str] | None = None) -> Votes:
    sides = sides or {
        other if other in table.columns and side not in table.columns else side: side
        for side, other in COUNT_COLUMNS.items()
    }
    require(table, sides)
    parsed = parse(table, COUNTS.kinds | dict.fromkeys(sides, schema.amounts_of_votes))
    # One row an item: in memory, as whatever is computed of them is.
    rows = parsed.collect(parsed.rows).with_columns(pl.col(NUMBER))
    whole = _whole(rows.rename(sides), sides.values())
    counts = Votes(whole, table.source, files=table.files, titles=table.titles, scale=scale)
    refuse_duplicates(counts, COUNTS.key_of(counts))
    return counts


def _without_repeats(votes: Votes) -> Votes:
    # Where as many samples are different as there are, no two are alike.
    repeated = votes.sums.filter(pl.col(_SEEN) != pl.col(N_ROWS))
    without_bits = replace(votes, summed=(votes.data, votes.sums.drop(_SEEN)))
    if not repeated.height:
        return without_bits
    whole_key = VOTES.key_of(votes)
    key = [column for column in whole_key if column != "sample"]
    columns = ["vote", *STRENGTH_COLUMNS.get(votes.kind, ())]
    suspects = votes.rows.select(*whole_key, *columns, NUMBER)
    suspects = suspects.join(repeated.lazy().select(key), on=key, how="semi", nulls_equal=True)
    close = votes.with_data(votes.collect(suspects).sort(NUMBER))
    kept = without_repeats(close, whole_key, *columns).numbered()
    if kept.height == close.height:
        return without_bits
    left_out = close.numbered().join(kept, on=NUMBER, how="anti")
    if left_out["vote"].null_count():  # the place of a missing vote is that of the one beside it
        return without_repeats(votes, whole_key, "vote")
    numbers = left_out[NUMBER].implode()
    return votes.with_data(votes.rows.filter(~pl.col(NUMBER).is_in(numbers)))


def require_single(votes: object) -> None:
    """Raise an :class:`InputError` unless these are votes, and one row is one vote."""
    expected = "single votes (read_votes)"
    are_counts = of_kind(votes, Votes, "votes", expected).are_counts
    expect(not are_counts, "votes", "a table of counts", expected)


# Sums by item


def _whole(rows: pl.DataFrame, columns: Iterable[str]) -> pl.DataFrame:
    sums = pl.col(*columns)
    is_whole = rows.select((sums.floor() == sums).all()).row(0)
    return rows.with_columns(sums.cast(pl.Int64)) if all(is_whole) else rows


def _first(rows: pl.LazyFrame, n_votes: int, key: tuple[str, ...]) -> pl.LazyFrame:
    vote, names = pl.col("vote"), rows.collect_schema().names()
    votes = rows.sort(*(column for column in ("sample", PLACE) if column in names))
    if "order" in names:
        place = vote.is_not_null().cum_sum().over(*key, "order")
        turn = 2 * place + (pl.col("order") == "BA")
        # A column, since the engine makes one sort of both.
        votes = votes.with_columns(turn.alias(_TURN)).sort(_TURN, maintain_order=True)
    number = vote.is_not_null().cum_sum().over(*key)
    return votes.with_columns(pl.when(number <= n_votes).then(vote).alias("vote"))


def column_of_decisions(name: str, n_votes: int | None) -> str:
    """Name of the column that holds the decisions of that name, on so many votes or on all."""
    return name if n_votes is None or name in _WITHOUT_VOTES else f"{name}_{n_votes}"


def tally(
    items: ArrayLike, votes: ArrayLike, full_margin: float | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gather long votes into counts by item.

    Parameters
    ----------
    items : (m,) array of integers or strings
        Item of each vote.
    votes : (m,) array of numbers
        Votes from A's point of view: -1, 0 or 1, how strongly in between, or margins. Leave out
        missing votes: they are no ties. Every entry is a vote; `read_votes` and
        `btdagg.online.OnlineTally` drop repeated samples.
    full_margin : float, optional
        The margin of a whole win; by default 1, and votes beyond are refused.

    Returns
    -------
    ids : (n,) array
        Items in the order in which they are first seen, of the type that came; strings as objects.
    counts : (n, 3) array
        Votes per item in label order: minus, tie, plus. Of int64; of float64 if votes are not all
        -1, 0 or 1 of the full margin.

    Notes
    -----
    A vote of strength w, its margin over the full margin and at most 1, is w of a win and 1 - w of
    a tie. Strengths are rounded to multiples of 1/1024: sums are exact in any order.

    Examples
    --------
    >>> ids, counts = tally(["x", "y", "x"], [1, 0, -1])
    >>> ids.tolist(), counts.tolist()
    (['x', 'y'], [[1, 0, 1], [0, 1, 0]])
    >>> tally(["x", "y", "x"], [4, 0, -1], full_margin=4)[1].tolist()
    [[0.25, 0.75, 1.0], [0.0, 1.0, 0.0]]
    """
    of_votes, cast = as_id_array(items), as_strengths(votes, full_margin)
    same_length("votes", len(cast), "items", len(of_votes))
    same_index(items=items, votes=votes)
    if of_votes.dtype.kind in "iu":
        # Of 64 bits either way: unsigned ids keep their bits on the way in and out.
        signed = np.ascontiguousarray(of_votes.astype(f"{of_votes.dtype.kind}8", copy=False))
        ids, counts = _core.tally_integers(signed.view(np.int64), cast)
        return ids.view(signed.dtype).astype(of_votes.dtype, copy=False), counts
    names, counts = _core.tally_strings(of_votes.tolist(), cast)
    return np.array(names, dtype=of_votes.dtype if of_votes.dtype.kind == "U" else object), counts
