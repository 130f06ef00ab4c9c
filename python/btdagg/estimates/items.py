"""All items of a table of votes as arrays, with the labels that some of them have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.model.panel import PanelModel
from btdagg.votes.join import join, labels_of, with_task
from btdagg.votes.labels import Labels, n_disputed, rater_remarks
from btdagg.votes.panel import panel_counts
from btdagg.votes.scale import Scale
from btdagg.votes.sides import UNNAMED, Sides
from btdagg.votes.table import listing, require
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


_TOLD = ("group", "probability", "unit", "stratum")  # columns of labels
_COLUMNS = ("groups", "probabilities", "scale", "label_scale")

Remarked = TypeVar("Remarked", bound=Any)


@readable
class AllItems(NamedTuple):
    """Items with a row each, in the order of the votes, task by task.

    Attributes
    ----------
    ids : (N,) array of str
    counts : (N, 3) or (N, judges, 3) array of int64, or (N, J) of grades
    outcomes : (N, 3) array of float, or (N, K) of grades
        Shares of the raters of each item for B, tie and A: of one rater 0 and 1; NaN where there is
        no label.
    groups : (N,) array of str, or None
        An item of which no group is known is one by itself; of grades with all its criteria.
    probabilities : (N,) array of float, or None
        NaN where there is none.
    units : (N,) array of str, or None
        What was drawn as a whole: items or groups, as the labels say in their column `unit`; None
        where they do not. Grades of an item by several criteria are of one unit.
    strata : (N,) array of str, or None
        Of which so many units were drawn, as `btdagg choose` writes it; None for items that were
        not drawn.
    by : (N,) array of str, or None
    systems : (N, 2) array of str, or None
        Whose responses are A and B.
    remarks : tuple of str
        What was left out, and what was assumed.
    scale, label_scale : Scale
        Of the votes and of the labels.
    keys : polars.DataFrame
        The items as the votes name them, and their tasks if votes have them: `item` and `task`.
    sides : Sides
        What A and B are called.
    judges : tuple of str
        Of a panel, in the order of the columns of `counts`.
    least_probability : float, or None
        Of the design by which items were drawn.
    """

    ids: NDArray[np.object_]
    counts: NDArray[np.int64]
    outcomes: NDArray[np.float64]
    groups: NDArray[np.object_] | None
    probabilities: NDArray[np.float64] | None
    units: NDArray[np.object_] | None
    strata: NDArray[np.object_] | None
    by: NDArray[np.object_] | None
    systems: NDArray[np.object_] | None
    remarks: tuple[str, ...]
    scale: Scale
    label_scale: Scale
    keys: pl.DataFrame
    sides: Sides = UNNAMED
    judges: tuple[str, ...] = ()
    least_probability: float | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """Return what `btdagg.certify` and the like take besides counts and labels."""
        return {name: getattr(self, name) for name in _COLUMNS}

    @property
    def drawn(self) -> dict[str, Any]:
        """Return what `btdagg.estimate` takes of the way in which items were drawn."""
        return {"units": self.units, "strata": self.strata}

    def than(self, before: AllItems, *names: Any) -> AllItems:
        """Return the items of two runs, with their names as `by`; items of one id share a group."""
        import polars as pl

        runs = self, before
        own = [run.probabilities for run in runs if run.probabilities is not None]
        if len(own) == 1 or before.label_scale != self.label_scale:
            what = "scale" if len(own) != 1 else "column probability"
            raise InputError(f"than has another {what}, expected that of the run", argument="than")
        grouped = [
            run._replace(groups=run.ids if run.groups is None else run.groups) for run in runs
        ]
        names_of = ("ids", "counts", "outcomes", "groups")
        columns: Any = {n: np.concatenate([getattr(run, n) for run in grouped]) for n in names_of}
        # Items of one name are of one unit; and strata of two draws are no strata of one.
        drawn = [run.units if run.groups is not None else run.ids for run in runs]
        units = [own for own in drawn if own is not None]
        return self._replace(
            **columns,
            probabilities=np.concatenate(own) if own else None,
            units=np.concatenate(units) if len(units) == len(runs) else None,
            strata=None,
            by=np.repeat(np.array(names, dtype=object), [len(run.ids) for run in runs]),
            remarks=tuple(dict.fromkeys(self.remarks + before.remarks)),
            keys=pl.concat([run.keys for run in runs], how="diagonal_relaxed"),
        )

    def of_pair(self, *pair: str) -> AllItems:
        """Return the items that compare two systems, with the same one as A in all of them."""
        if self.systems is None:
            return self
        rows = np.flatnonzero([{*own} == {*pair} for own in self.systems.tolist()])
        if not len(rows):
            expected = f"two of {listing(sorted({*self.systems.ravel().tolist()}))} that meet"
            text = f"no item compares {pair[0]} with {pair[1]}, expected {expected}"
            raise InputError(text, argument="candidate")
        sides = Sides(*self.systems[rows[0]])
        is_turned = self.systems[rows, 0] != sides.a
        arrays = {n: v for n, v in self._asdict().items() if isinstance(v, np.ndarray)}
        kept: dict[str, Any] = {name: array[rows] for name, array in arrays.items()}
        for values in (kept["counts"], kept["outcomes"]):
            values[is_turned] = values[is_turned, ..., ::-1]
        return self._replace(**kept | {"systems": None, "keys": self.keys[rows], "sides": sides})


def with_remarks(estimates: Remarked, remarks: Iterable[str]) -> Remarked:
    """Return a result with more remarks, which are about its data, before its own."""
    return replace(estimates, remarks=(*remarks, *estimates.remarks))


def all_items(
    votes: Votes,
    labels: Labels,
    *,
    by: str | None = None,
    panel: str | None = None,
    model: Any = None,
    systems: tuple[str, str] | None = None,
    n_votes: int | None = None,
) -> AllItems:
    """Gather the items of votes, task by task, with their labels, groups and probabilities.

    Rows without a label tell the groups and probabilities of their items; a column `probability` of
    the labels has the probability that an item was chosen to be labelled, and a column
    `least_probability` the least of any item. Labels of items with probability 0, which were chosen
    because people's looks help there, are left out.

    Parameters
    ----------
    votes : Votes
    labels : Labels
    by : str, optional
        Column of the votes, of which each item has one value.
    panel, model : str and model, optional
        Column that tells the judges of a panel apart. With a `PanelModel` it is `judge` unless
        given, and its judges are the panel's.
    systems : tuple of str, optional
        Columns of the votes that name the systems whose responses are A and B.
    n_votes : int, optional
        Count only the first so many votes of each item.
    """
    import polars as pl

    labels, n_looks = _drawn_by_chance(labels)
    votes = with_task(votes, labels)
    if by == "criterion" and "task" in votes.columns:  # as it was read
        by = "task"
    columns = [*([] if by is None else [by]), *(systems or ())]
    require(votes, columns)
    judges: tuple[str, ...] = ()
    if isinstance(model, PanelModel):
        panel, judges = panel or "judge", model.judges
    elif panel is not None:
        require(votes, [panel])
        judges = tuple(votes.values(panel).drop_nulls().unique().sort())
    if not votes.scale.mirrored and panel is not None:
        raise InputError(argument="panel", came=panel, expected="nothing where votes are grades")
    # A judge's grades of one item are of one response, which a system gave.
    beside = ["group"] if votes.scale.mirrored else ["group", "system"]
    of_votes = [*(name for name in beside if name in votes.columns), *columns]
    tables, counts, shares = [], [], []
    remarks: list[str] = []
    bare: list[str] = []
    n_apart = 0
    for key, part in votes.partition(["task"] if "task" in votes.columns else []):
        counted = (
            part.counts(n_votes)
            if panel is None
            else panel_counts(part, judges=judges, column=panel, n_votes=n_votes)[:2]
        )
        items = join(part, labels, counted)
        if not items.scale.mirrored and np.isnan(items.shares).all():
            bare += key
            continue
        remarks += items.remarks
        n_apart += n_disputed(items.told)
        facts = facts_of(part, items.ids, of_votes, required=columns)
        facts = facts.rename({name: f"{name} of votes" for name in facts.columns[1:]})
        told = [name for name in _TOLD if name in items.told.columns]
        task = pl.lit("".join(key)).alias("task")
        tables.append(facts.hstack(items.told.select(told)).with_columns(task))
        counts.append(items.counts)
        shares.append(items.shares)
    outcomes = np.concatenate(shares) if shares else np.full((1, 1), np.nan)
    n_labelled = int((~np.isnan(outcomes[:, 0])).sum())
    if n_labelled == 0:  # says what the items of either begin with
        items.labelled() if bare else votes.labelled(labels, n_votes)
    rows = pl.concat(tables)
    if bare:
        tasks = "task" if len(bare) == 1 else "tasks"
        remarks.append(f"{tasks} {', '.join(bare)} left out: no item there has a label")
    if n_looks:
        remarks.append(
            f"{n_looks} labels of {labels.source} are left out: their items were not drawn by "
            "chance, and have probability 0"
        )
    groups = [name for name in ("group", "group of votes") if name in rows.columns]
    rows = rows.with_columns(group=pl.coalesce(*groups, pl.lit(None, pl.String)))
    n_without_group = rows["group"].null_count()
    alone = pl.format(" {} {}", "task", "item")  # no group begins with a blank
    is_shared = not items.scale.mirrored and rows["item"].is_duplicated().any()
    if is_shared and "task" not in labels.columns:
        raise InputError(
            f"{labels.source}: no column criterion or task, expected one, since "
            f"{votes.source} has grades of one item by several"
        )
    if not items.scale.mirrored:
        alone = pl.format(" {}", "item")
    remarks += rater_remarks(labels, n_apart, n_labelled, of_estimates=True)
    n_without_votes = max(len(labels_of(labels, votes).ids) - n_labelled, 0)
    if n_without_votes:
        remarks.append(f"{n_without_votes} labels of {labels.source} are of items without votes")
    if 0 < n_without_group < len(rows):
        remarks.append(
            f"{n_without_group} items have no group and are taken as one by themselves; rows of "
            "the labels with a group and an empty label tell it"
        )
    ids = _objects(rows.select(alone))[:, 0]
    in_groups = _objects(rows.select(pl.coalesce("group", alone)))[:, 0]
    drawn = set(rows["unit"].drop_nulls()) if "unit" in rows.columns else set()
    if n_without_group == len(rows):
        drawn = {"item"}
    is_designed = {"stratum", "probability", "design", "seed"} <= {*labels.columns}
    return AllItems(
        ids,
        np.concatenate(counts),
        outcomes,
        in_groups if n_without_group < len(rows) or is_shared else None,
        _numbers(rows["probability"], labels.source) if "probability" in rows.columns else None,
        ids if drawn == {"item"} else in_groups if drawn == {"group"} else None,
        _objects(rows.select(pl.col("stratum").cast(pl.String)))[:, 0] if is_designed else None,
        None if by is None else _objects(rows.select(f"{by} of votes"))[:, 0],
        None if systems is None else _objects(rows.select(f"{name} of votes" for name in systems)),
        tuple(remarks),
        items.scale,
        items.label_scale,
        rows.select("item", *(["task"] if "task" in votes.columns else [])),
        votes.sides,
        judges,
        _least_probability(labels),
    )


def _least_probability(labels: Labels) -> float | None:
    """Return the least probability of any item, if a column has it."""
    if "least_probability" not in labels.columns:
        return None
    least = np.nanmin(_numbers(labels.frame["least_probability"], labels.source), initial=np.inf)
    return float(least) if np.isfinite(least) else None


def _drawn_by_chance(labels: Labels) -> tuple[Labels, int]:
    """Return labels without those of items that were chosen for a look, and how many these are."""
    import polars as pl

    if "probability" not in labels.columns:
        return labels, 0
    probability = labels.frame["probability"].cast(pl.Float64, strict=False)
    is_look = (probability == 0).fill_null(value=False)
    if not is_look.any():
        return labels, 0
    if is_look.all():
        raise InputError(
            source=labels.source,
            column="probability",
            came=0,
            expected="a number above 0 where an item was drawn by chance, as none was here",
        )
    drawn, others = labels.frame.filter(~is_look), labels.unlabelled
    if drawn["probability"].is_null().all():  # the column is of the looks alone
        drawn, others = drawn.drop("probability"), others.drop("probability")
    return replace(labels, data=drawn, unlabelled=others), int(is_look.sum())


def facts_of(
    votes: Votes, ids: NDArray[Any], columns: Sequence[str], required: Sequence[str] = ()
) -> pl.DataFrame:
    """Return what columns of the votes, one value for each item, say of items: text or null."""
    import polars as pl

    rows = pl.DataFrame({"item": ids.tolist()})
    for name in dict.fromkeys(columns):
        if name == "item":
            raise InputError(
                f"{votes.source}: column item is the name of items, expected a column that says "
                "something of items"
            )
        value = pl.col(name).cast(pl.String)
        values = votes.collect(votes.data.lazy().select("item", value).unique(maintain_order=True))
        values = values.drop_nulls()
        twice = values.filter(values["item"].is_duplicated())
        if twice.height:
            item = twice["item"][0]
            first, second = twice.filter(pl.col("item") == item)[name].sort()[:2]
            raise InputError(
                f"{votes.source}, column {name}: item {item!r} has {first!r} and {second!r}, "
                "expected a column that says something of items and not of their votes"
            )
        rows = rows.join(values, on="item", how="left", maintain_order="left")
        if name in required and rows[name].null_count():
            item = rows["item"][int(rows[name].is_null().arg_true()[0])]
            raise InputError(
                f"{votes.source}: item {item!r} has no {name}, expected one of every item, those "
                "without a label too"
            )
    return rows


def _numbers(values: pl.Series, source: str) -> NDArray[np.float64]:
    """Return probabilities, NaN where there is none."""
    import polars as pl

    numbers = values.cast(pl.Float64, strict=False)
    bad = values.filter(numbers.is_null() & values.is_not_null())
    if len(bad):
        expected = "a number above 0 and at most 1"
        raise InputError(source=source, column=values.name, came=bad[0], expected=expected)
    return numbers.fill_null(float("nan")).to_numpy()


def _objects(rows: pl.DataFrame) -> NDArray[np.object_]:
    """Return columns of text as an array of str."""
    return np.stack([np.array(column.to_list(), dtype=object) for column in rows], axis=1)
