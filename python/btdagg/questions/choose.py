"""Which items to label: random samples with known probabilities, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

import numpy as np

from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_groups,
    as_id_array,
    as_integer,
    require_rows,
    same_index,
    same_length,
)
from btdagg.methods.majority import majority_vote
from btdagg.questions.decisions import decisions
from btdagg.votes.by_id import as_items
from btdagg.votes.items import Items
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.schema import LABELS, Column, Spec, fractions, names, parse, whole_numbers
from btdagg.votes.table import Table, refuse_duplicates, require
from btdagg.votes.verdicts import verdicts_on
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


Design = Literal["simple", "stratified"]
DESIGNS: tuple[Design, ...] = get_args(Design)

WHOLE = "all"
"""Name of the one stratum of a simple sample."""

_NO_VOTES = "no votes"
_STRATA = tuple(f"{label} {lead}" for label in ("B", "tie", "A") for lead in ("divided", "clear"))

COLUMNS = (
    *("item", "task", "group", "unit", "stratum", "probability", "least_probability"),
    *("design", "seed", "round", "label"),
)
"""Columns of the table, `task` and `group` where there are any. Labels are filled in by people."""

REQUIRED = ("item", "stratum", "probability", "design", "seed", "round")
"""Those without which a sample cannot be topped up; older files have no others."""

_ROUNDING = 1e-9  # of probabilities that went through other programs
_MOST = 2**53 - 1  # whole numbers that a table can hold

_DRAWN = Spec(
    {
        **LABELS.columns,
        "stratum": Column(names),
        "probability": Column(fractions),
        "design": Column(names),
        "seed": Column(whole_numbers),
        "round": Column(whole_numbers),
    }
)


@dataclass(frozen=True, eq=False)
class ChosenItems(Readable):
    """A random sample of items.

    Attributes
    ----------
    rows : (m,) array of int64
        Numbers of the chosen items, in the order in which they were drawn: those of the first k
        units are the sample of k units.
    probabilities : (N,) array
        Probability of every item of being drawn.
    strata : (N,) array of str
        Stratum of every item.
    units : (N,) array of int64
        Number of what is drawn as a whole: of the item, or of its group.
    design : str
    seed : int
    n : int
        Number of units drawn.
    """

    rows: NDArray[np.int64]
    probabilities: NDArray[np.float64]
    strata: NDArray[np.object_]
    units: NDArray[np.int64]
    design: Design
    seed: int
    n: int

    @property
    def n_units(self) -> int:
        """Number of units that there are."""
        return int(self.units.max()) + 1


def choose(
    counts: ArrayLike,
    n: int,
    *,
    ids: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    design: Design = "simple",
    seed: int = 0,
    scale: Scale | None = None,
    model: Any = None,
    covariates: Any = None,
) -> ChosenItems:
    """Choose items to label by chance, with probabilities that `btdagg.estimate` takes.

    A larger sample of the same items, design and seed contains the smaller one: top up a sample by
    choosing again with a larger `n`.

    Parameters
    ----------
    counts : (N, 3) array of non-negative numbers
        As `btdagg.estimate` takes them; those of a panel are pooled. Or votes.
    n : int
        How many items to choose; with `groups`, how many groups.
    ids : (N,) array of integers or str, optional
        Names of the items, each once; by default those of the votes, or row numbers. An item is
        chosen by its name, wherever it stands.
    groups : (N,) array of integers or str, optional
        Draw whole groups, such as all items of a prompt.
    design : "simple" or "stratified"
        Any n items are as likely as any others; or each stratum of items with like votes has its
        share of the sample, and at least one item.
    seed : int
    scale : Scale, optional
        For votes that are grades, (N, J) numbers for each point. Tables of votes have their own.
    model : DavidsonModel, GradeModel or PanelModel, optional
        Fitted to other labels: strata are by the label that it expects. A top-up takes the same.
    covariates : optional
        The model's covariates, as in `btdagg.votes.Items.with_covariates`; items have their own.

    Raises
    ------
    InputError
        If shapes disagree, a count is invalid, an id comes twice, or `n` is more than there are, or
        fewer than there are strata; if a model is given of a simple sample, or covariates alone.

    Notes
    -----
    Each unit has a permanent random number, a hash of the seed and its name; the n smallest (of
    each stratum) are chosen, so the inclusion probability is exactly n / N. Strata are the label
    with the most votes, clear (three quarters of the votes) or divided; of grades fifths of the
    scale by the mean vote (halves, if it has two points); with a model fifths of the scale of
    labels by its expected label, of groups the mean of their items. Huntington and Hill's method
    shares the sample out in proportion: no stratum shrinks as the sample grows, and the variance is
    least if strata vary alike.

    References
    ----------
    Ohlsson, Coordination of samples using permanent random numbers (1995); Wright, The equivalence
    of Neyman optimum allocation for sampling and equal proportions for apportioning the U.S. House
    of Representatives (2012).

    Examples
    --------
    >>> counts = [[0, 2, 6], [1, 6, 1], [7, 1, 0], [1, 1, 6], [2, 1, 5], [6, 2, 0], [0, 1, 7]]
    >>> chosen = choose(counts, 3)
    >>> len(chosen.rows), round(float(chosen.probabilities[0]), 3)
    (3, 0.429)
    >>> set(chosen.rows) < set(choose(counts, 5).rows)
    True
    """
    same_index(counts=counts, ids=ids, groups=groups)
    items, is_table = as_items(counts, scale=scale), not isinstance(counts, Items)
    groups = items.matched("groups", groups, is_table=is_table)
    if covariates is not None:
        expect(model is not None, "model", model, "one that was fitted with the covariates")
        items = items.with_covariates(covariates, model=model, is_table=is_table)
    if model is not None:
        expect(
            design == "stratified", "design", design, "stratified, since the model makes the strata"
        )
    expected = None if model is None else ExpectedLabels.of(items, model)
    return _chosen(items, n, ids, groups, design, seed, expected)


class ExpectedLabels(NamedTuple):
    """Means of a model's probabilities, (N,), NaN of an item without votes, on their scale."""

    means: NDArray[np.float64]
    scale: Scale

    @classmethod
    def of(cls, items: Votes | Items, model: Any) -> ExpectedLabels:
        """Expect the labels of items as `btdagg.decisions` decides them."""
        names = [f"p_{name}" for name in model.label_names]
        chances = decisions(items, model).select(names).cast(pl.Float64).to_numpy()
        return cls(chances @ model.label_scale.floats, model.label_scale)

    def strata(self, units: NDArray[np.int64]) -> NDArray[np.object_]:
        """Name the stratum of each unit, by the mean of its items."""
        seen = ~np.isnan(self.means)
        n_seen = np.bincount(units[seen], minlength=units.max() + 1)
        totals = np.bincount(units[seen], self.means[seen], units.max() + 1)
        strata = _parts(totals / np.maximum(n_seen, 1), self.scale, 5, "expected")
        return np.where(n_seen == 0, _NO_VOTES, strata)


def _chosen(
    items: Items,
    n: int,
    ids: ArrayLike | None,
    groups: ArrayLike | None,
    design: Design,
    seed: int,
    expected: ExpectedLabels | None,
) -> ChosenItems:
    expect(design in DESIGNS, "design", design, " or ".join(DESIGNS))
    seed, n = as_integer(seed, "seed", 0), as_integer(n, "n", 1)
    array = items.scale.counts(items.pooled)
    forbid(not len(array), "counts is empty, expected at least one item", "counts")
    own_names = _names_of(items.ids if ids is None else ids, len(array))
    what = "items"
    units, keys = np.arange(len(array)), own_names
    if groups is not None:
        what, units = "groups", as_groups(groups, "counts", len(array))
        keys = np.empty(int(units.max()) + 1, dtype=object)
        keys[units] = np.asarray(groups)
        array = np.stack([np.bincount(units, column) for column in array.T], axis=1)
    strata = np.full(len(array), WHOLE, object)
    if design == "stratified":
        strata = _strata_of(array, items.scale) if expected is None else expected.strata(units)
    expect(n <= len(array), "n", n, f"at most {len(array)}, as many as there are {what}")
    order, stratum, sizes = _drawn(keys, strata, seed)
    expect(n >= len(sizes), "n", n, f"at least {len(sizes)}, one of the {what} in each stratum")
    drawn = order[:n]
    share = np.bincount(stratum[drawn], minlength=len(sizes)) / sizes
    place = np.full(len(array), len(array))
    place[drawn] = np.arange(n)
    by_name = np.argsort(own_names, kind="stable")
    in_order = by_name[np.argsort(place[units[by_name]], kind="stable")]
    rows = in_order[: np.count_nonzero(place[units] < n)]
    return ChosenItems(rows, share[stratum][units], strata[units], units, design, seed, n)


def _names_of(ids: ArrayLike, n_items: int) -> NDArray[Any]:
    names = as_id_array(ids, name="ids")
    same_length("ids", len(names), "counts", n_items)
    _, first = np.unique(names.astype(str), return_index=True)
    require_rows(np.isin(np.arange(len(names)), first), names, "ids", "each once")
    return names


def _strata_of(counts: NDArray[Any], scale: Scale) -> NDArray[np.object_]:
    n_votes = counts.sum(axis=1)
    if scale.mirrored:
        is_clear = 4 * counts.max(axis=1) >= 3 * n_votes
        strata = np.array(_STRATA, dtype=object)[2 * (majority_vote(counts) + 1) + is_clear]
    else:
        means = counts @ scale.floats / np.maximum(n_votes, 1)
        strata = _parts(means, scale, min(len(scale.points), 5), "mean")
    return np.where(n_votes == 0, _NO_VOTES, strata)


def _parts(means: NDArray[np.float64], scale: Scale, n: int, what: str) -> NDArray[np.object_]:
    edges = np.linspace(scale.floats[0], scale.floats[-1], n + 1)
    names = [f"{what} {low:.4g} to {high:.4g}" for low, high in pairwise(edges.tolist())]
    place = np.searchsorted(edges[1:-1], means, side="right")
    return np.array(names, dtype=object)[place]


def _drawn(
    keys: NDArray[Any], strata: NDArray[np.object_], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    stratum = as_groups(strata, "counts", len(keys))
    sizes = np.bincount(stratum)
    numbers = np.fromiter(_random_numbers(keys.tolist(), seed), np.uint64, len(keys))
    by_key = np.argsort(keys, kind="stable")  # should two numbers ever be the same
    mixed = by_key[np.argsort(numbers[by_key], kind="stable")]
    mixed = mixed[np.argsort(stratum[mixed], kind="stable")]
    rank = np.arange(len(keys)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    of = stratum[mixed]
    # The first unit of every stratum comes before the second of any.
    with np.errstate(divide="ignore"):
        priority = sizes[of] / np.sqrt(rank * (rank + 1.0))
    return mixed[np.lexsort((of, -sizes[of], -priority))], stratum, sizes


def _random_numbers(keys: Iterable[object], seed: int) -> Iterable[int]:
    for key in keys:
        digest = blake2b(f"{seed} {key}".encode(errors="surrogatepass"), digest_size=8).digest()
        yield int.from_bytes(digest, "big")


class Drawing:
    """Items of votes, ready to be drawn: by group, if named; in strata of a model's labels."""

    def __init__(self, votes: Votes, group: str | None = None, model: Any = None) -> None:
        self.source, self.scale, self._group = votes.source, votes.scale, group
        require(votes, [] if group is None else [group])
        key = ("task", "item") if "task" in votes.columns else ("item",)
        counted = votes.items_of_part(key=key)
        self.items: pl.DataFrame = counted.id_frame
        if "task" in key:
            self.items = self.items.with_columns(task=pl.col("task").replace("", None))
        if group is not None:
            names = counted.with_columns_of({"group": group}).facts["group"]
            self.items = self.items.with_columns(group=pl.Series(names.tolist(), dtype=pl.String))
        self.counts: NDArray[np.int64] = counted.pooled
        self._expected = None
        if model is not None:
            tasks = votes.partition([*key[:-1]])
            means = np.concatenate([ExpectedLabels.of(part, model).means for _, part in tasks])
            self._expected = ExpectedLabels(means, model.label_scale)
        key_columns = [name for name in self.scale.mode.key if name in self.items.columns]
        of_criteria = self.items.select(key_columns).is_duplicated().any()
        # What is graded by several criteria is labelled by all of them.
        unit = "group" if group is not None else "item" if of_criteria else None
        self._units = None if unit is None else self.items[unit].to_list()

    def first(self, n: int, design: Design, seed: int) -> tuple[ChosenItems, pl.DataFrame]:
        """Draw a sample, and return it with its table."""
        chosen = self._chosen(n, design, as_integer(seed, "seed", 0, _MOST))
        return chosen, self._table(chosen, round_=1)

    def more(
        self, n: int, after: Table, design: Design | None = None
    ) -> tuple[ChosenItems, pl.DataFrame]:
        """Top up a sample to n units: rows of `after` come first, with new probabilities."""
        before = parse_drawn(after, self.scale)
        require(before, [name for name in ("task", "group") if name in self.items.columns])
        drawn_by = cast("Design", _single(before, "design", design))
        drawn_with = int(_single(before, "seed"))
        place = self._places(before)
        n_before = len(np.unique(self._chosen(1, "simple", drawn_with).units[place]))
        what = "items" if self._group is None else "groups"
        expect(n > n_before, "n", n, f"more than the {n_before} {what} that {before.source} has")
        self._refuse_another_draw(before, place, self._chosen(n_before, drawn_by, drawn_with))
        chosen = self._chosen(n, drawn_by, drawn_with)
        new = chosen.rows[~np.isin(chosen.rows, place)]
        rounds = before.frame["round"]
        kept = self._table(replace(chosen, rows=place), rounds)
        extra = [name for name in after.columns if name not in COLUMNS[:-1]]
        kept = kept.drop(extra, strict=False).hstack(after.frame.select(extra))
        added = self._table(replace(chosen, rows=new), int(cast("int", rounds.max())) + 1)
        added = added.drop("label") if "label" in extra else added
        return chosen, pl.concat([kept, added], how="diagonal")

    def _chosen(self, n: int, design: Design, seed: int) -> ChosenItems:
        ids = self.items["item"].to_list()
        if self.items["item"].is_duplicated().any():  # in several tasks
            tasks = self.items["task"].fill_null("").to_list()
            ids = [f"{task}\0{item}" for task, item in zip(tasks, ids, strict=True)]
        items = as_items(self.counts, scale=self.scale)
        return _chosen(items, n, ids, self._units, design, seed, self._expected)

    def _table(self, chosen: ChosenItems, round_: int | pl.Series) -> pl.DataFrame:
        return self.items[chosen.rows].with_columns(
            unit=pl.lit("item" if self._group is None else "group"),
            stratum=pl.Series(chosen.strata[chosen.rows].tolist(), dtype=pl.String),
            probability=pl.Series(chosen.probabilities[chosen.rows]),
            least_probability=pl.lit(float(chosen.probabilities.min())),
            design=pl.lit(chosen.design),
            seed=pl.lit(chosen.seed, pl.Int64),
            round=pl.lit(round_, pl.Int64) if isinstance(round_, int) else round_,
            label=pl.lit(None, pl.Int8),
        )

    def _places(self, before: Table) -> NDArray[np.int64]:
        key = [name for name in ("task", "item") if name in self.items.columns]
        rows = self.items.select(*_keys(self.items, key)).rows()
        place = {row: number for number, row in enumerate(rows)}
        drawn = before.frame.select(*_keys(before.frame, key)).rows()
        for *_, item in filter(lambda row: row not in place, drawn):
            raise InputError(
                f"{before.source}: item {item!r} has no votes in {self.source}, expected the "
                "votes that the sample was drawn from"
            )
        return np.array([place[row] for row in drawn], dtype=np.int64)

    def _refuse_another_draw(
        self, before: Table, place: NDArray[np.int64], again: ChosenItems
    ) -> None:
        away = before.frame["probability"].to_numpy() - again.probabilities[place]
        differs = ~np.isin(place, again.rows) | ~(np.abs(away) <= _ROUNDING)
        differs |= before.frame["stratum"].to_numpy() != again.strata[place]
        rows = place[differs] if differs.any() else np.setdiff1d(again.rows, place)
        if len(rows):
            raise InputError(
                f"{before.source}: item {self.items['item'][int(rows[0])]!r} does not match a "
                f"sample from {self.source}, expected all rows of the sample unchanged "
                "(unlabelled ones with an empty label), and the same votes and model"
            )


def parse_drawn(table: Table, scale: Scale = PAIRS) -> Table:
    """Check a table of items that were drawn; `read_labels` checks labels that are grades."""
    require(table, REQUIRED)
    kinds = _DRAWN.kinds | ({"label": verdicts_on(scale)} if scale.mirrored else {})
    rows = parse(table, kinds)
    refuse_duplicates(rows, _DRAWN.key_of(rows))
    forbid(not rows.frame.height, f"{table.source} has no rows, expected items that were drawn")
    return rows


def _single(before: Table, column: str, option: object = None) -> Any:
    value, *other_values = before.frame[column].unique(maintain_order=True).to_list()
    if other_values or value is None:
        got = [value, *other_values]
        raise InputError(source=before.source, column=column, got=got, expected="one value")
    expect(option is None or option == value, column, option, f"{value!r} as in {before.source}")
    return value


def _keys(frame: pl.DataFrame, key: Sequence[str]) -> list[pl.Expr]:
    return [pl.col(name).cast(pl.String).str.strip_chars() for name in key]
