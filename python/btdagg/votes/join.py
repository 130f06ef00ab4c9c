"""Votes and labels by item: whoever needs both, from tables, gets them here."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import remarks
from btdagg._util.errors import InputError, forbid, of_kind
from btdagg._util.lazy import pl
from btdagg._util.validation import (
    as_counts,
    same_index,
    same_length,
    shaped,
    unmasked,
)
from btdagg.remarks import Remark
from btdagg.votes.ids import like_ids
from btdagg.votes.items import Confidences, Draw, Facts, Items, Origin
from btdagg.votes.labels import Labels, n_disputed, rater_remarks
from btdagg.votes.orders import about_orders
from btdagg.votes.own_words import about_words
from btdagg.votes.scale import PAIRS, require_alike
from btdagg.votes.standings import systems_in
from btdagg.votes.table import AnyTable, Table, as_text, facts_of, ids_of, listing, require, text

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


_TOLD = ("group", "probability", "unit", "stratum")  # columns of labels
_FEWEST = 10  # labels by which nobody is for B


def on_sides(parts: Sequence[Items]) -> tuple[Remark, ...]:
    """Say where pairs may be single responses: no label, and no vote on them, is for B."""
    items = [part.labelled() for part in parts if part.is_labelled.any()]
    labels = {label for part in items for label in part.label.tolist()}
    are_pairs = all(part.scale == part.label_scale == PAIRS for part in items)
    is_one_sided = labels == {0, 1} and not any(part.pooled[:, 0].any() for part in items)
    if not are_pairs or not is_one_sided or sum(map(len, items)) < _FEWEST:
        return ()
    return (remarks.one_sided(),)


def join(votes: Table | None, labels: Labels, counted: Items) -> Items:
    """Join items that have votes with their labels, in each task if votes have tasks."""
    require_alike(counted.scale, labels.scale)
    about = counted.origin.remarks
    has_votes = counted.scale.decidable(counted.pooled)
    if not has_votes.all():
        counted, n_empty = counted[has_votes], int((~has_votes).sum())
        about = (*about, remarks.unreadable_items(n_empty))
    ids = counted.ids
    of_tasks = labels if votes is None else labels_of(labels, votes)
    n_labels = len(of_tasks.frame)
    everything = pl.concat([of_tasks.frame, of_tasks.unlabelled])
    is_integer = ids.dtype.kind in "iu"
    as_text = is_integer != everything["item"].dtype.is_integer()
    items = pl.Series(ids) if is_integer else pl.Series(list(map(str, ids)), dtype=pl.String)
    voted, named = _keys(items, as_text), _keys(everything["item"], as_text)
    forbid(
        voted["key"].is_duplicated().any(), "ids has an item twice, expected every item once", "ids"
    )
    twice = named[:n_labels].filter(named["key"][:n_labels].is_duplicated())
    if twice.height:
        raise InputError(
            f"{labels.source}: item {twice['key'][0]!r} has labels in several tasks; filter by "
            "task first"
        )
    named = named.unique("key", keep="first")
    row = voted.join(named, on="key", how="left", maintain_order="left")["row_right"]
    shares = np.full((len(everything) + 1, len(labels.scale.points)), np.nan)
    shares[:n_labels] = of_tasks.shares
    shares = shares[row.fill_null(len(everything)).to_numpy()]
    n_without_votes = n_labels - int((row < n_labels).sum())
    label_rows = everything.select(pl.all().gather(row))
    label_rows = _with_groups(label_rows, votes, ids)
    group = counted.group
    if "group" in label_rows.columns and label_rows["group"].count():
        names = zip(label_rows["group"].to_list(), ids.tolist(), strict=True)
        alone = [f" {item}" if name is None else name for name, item in names]
        group = np.array(alone, dtype=object)
    is_matched = n_without_votes < n_labels
    origin = replace(
        counted.origin,
        n_without_votes=n_without_votes,
        remarks=about,
        raters=labels.raters,
        no_labels=counted.origin.no_labels if is_matched else _why_no_label(votes, labels, ids),
    )
    return replace(
        counted,
        labels=shares,
        group=group,
        sampling=Draw(units=_units(label_rows, counted.ids, group)),
        label_scale=labels.scale,
        facts=Facts(counted.facts.columns, counted.facts.votes, label_rows),
        origin=origin,
    )


def _with_groups(label_rows: pl.DataFrame, votes: Table | None, ids: NDArray[Any]) -> pl.DataFrame:
    # Those that the labels do not name are the votes'.
    if votes is None or "group" not in votes.columns:
        return label_rows
    named = label_rows["group"].to_list() if "group" in label_rows.columns else [None] * len(ids)
    group = pl.Series(named, dtype=pl.String)
    if group.null_count():
        of_votes = facts_of(votes, ids, ["group"])["group"].str.strip_chars()
        group = group.fill_null(of_votes.replace("", None))
    return label_rows.with_columns(group=group)


def align(ids: ArrayLike, counts: ArrayLike, labels: Labels) -> Items:
    """Join counts and labels by item.

    Parameters
    ----------
    ids : (n,) array of integers or str
        Items that have votes. Ids that are integers here and text in the labels, or the reverse,
        are compared as text, without spaces around it.
    counts : (n, 3) array of integers
        Their votes in label order: minus, tie, plus; in a data frame, columns with these names.
    labels : Labels

    Returns
    -------
    Items
        Items that also have a label, in the order of `ids`.
    """
    same_index(ids=ids, counts=counts)
    ids, counts = np.asarray(unmasked(ids, "ids")), as_counts(counts)
    shaped(ids, "ids", (), "one dimension")
    same_length("counts", len(counts), "ids", len(ids))
    return join(None, labels, Items(counts=counts, ids=ids)).labelled()


def require_labels(labels: object) -> None:
    """Check that labels are a table."""
    of_kind(labels, Labels, "labels", "labels from read_labels")


def labels_of(labels: Labels, votes: Table) -> Labels:
    """Return the labels of the tasks of some votes, if both have tasks; else all labels."""
    if "task" not in labels.columns or "task" not in votes.columns:
        return labels
    is_of_task = pl.col("task").is_in(votes.values("task").drop_nulls().to_list())
    parts = labels.frame.filter(is_of_task), labels.unlabelled.filter(is_of_task)
    return replace(labels, data=parts[0], unlabelled=parts[1])


def remarks_on_raters(labels: Labels, votes: Table) -> tuple[Remark, ...]:
    """Return the remarks on the raters of the items that have votes."""
    key = [c for c in ("item", "task") if c in labels.columns and c in votes.columns]
    voted = pl.DataFrame([text(votes, column).str.strip_chars() for column in key]).unique()
    names = [pl.col(column).cast(pl.String).str.strip_chars() for column in key]
    how: Any = {"left_on": names, "right_on": key, "how": "semi"}
    parts = labels.frame.join(voted, **how), labels.unlabelled.join(voted, **how)
    return replace(labels, data=parts[0], unlabelled=parts[1]).remarks


def with_task(votes: AnyTable, labels: Labels) -> AnyTable:
    """Return votes with a column `task` from the labels, if only the labels have one."""
    require_labels(labels)
    if "task" in votes.columns or "task" not in labels.columns:
        return votes
    items, tasks = text(labels, "item"), text(labels, "task")
    if items.is_duplicated().any():
        item = items.filter(items.is_duplicated())[0]
        raise InputError(
            f"{labels.source}: item {item!r} has labels in several tasks, and the votes do not say "
            "which task they belong to"
        )
    task = as_text(votes, "item").replace_strict(items, tasks, default=None).alias("task")
    return votes.with_columns([task])


def _keys(items: pl.Series, as_text: bool) -> pl.DataFrame:
    keys = items.cast(pl.String) if as_text else items
    keys = keys.str.strip_chars() if keys.dtype == pl.String else keys.cast(pl.Int128)
    return keys.alias("key").to_frame().with_row_index("row")


def _why_no_label(votes: Table | None, labels: Labels, ids: NDArray[Any]) -> str:
    if not len(labels.frame):
        agreed = " on which its raters agree" if labels.n_disputed else ""
        return f"{labels.source}: no item has a label{agreed}"
    if votes is not None and not len(labels_of(labels, votes).frame):
        task, tasks = votes.values("task").drop_nulls()[:1].to_list(), labels.values("task")
        return f"{labels.source}: no row has task {''.join(task)!r}; found {listing(tasks)}"
    voted = f"item {ids[:1].tolist()[0]!r}" if len(ids) else "no item"
    text = (
        f"no item has both votes and a label: the first item of the votes is {voted}, that of "
        f"{labels.source} is item {labels.frame['item'][0]!r}"
    )
    alike = like_ids(ids.tolist(), labels.frame["item"].to_list())
    return text if alike is None else f"{text}; {alike}"


def all_items(
    votes: Any,
    labels: Labels,
    *,
    by: str | None = None,
    panel: str | None = None,
    judges: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    keep_chosen: bool = False,
    n_votes: int | None = None,
    **more: Any,
) -> Items:
    """Gather the items of votes, task by task, with what labels tell of them; see `Votes.items`."""
    labels, n_looks = (_without_probability(labels), 0) if keep_chosen else _drawn_by_chance(labels)
    votes = with_task(votes, labels)
    if by == "criterion" and "task" in votes.columns:  # as it was read
        by = "task"
    if systems is not None and len(systems) == 1:  # of responses, which they group
        by, systems = systems[0] if by is None else by, None
    columns = [*([] if by is None else [by]), *(systems or ())]
    require(votes, columns)
    if panel is not None and not judges:
        require(votes, [panel])
        judges = tuple(votes.values(panel).drop_nulls().unique().sort())
    # A judge's grades of one item are of one response, which a system gave.
    has_systems = "system" in votes.columns and not votes.scale.mirrored
    of_votes = [*(["system"] if has_systems else []), *columns]
    tables, parts = [], []
    about: list[Remark] = []
    bare: list[str] = []
    n_apart = 0
    for key, part in votes.partition(["task"] if "task" in votes.columns else []):
        counted = part.items_of_part(n_votes=n_votes, panel=panel, judges=judges, **more)
        items = join(part, labels, counted)
        if not items.scale.mirrored and not items.is_labelled.any():
            bare += key
            continue
        label_rows = items.facts.frame
        about += items.origin.remarks
        n_apart += n_disputed(label_rows)
        facts = facts_of(part, items.ids, of_votes, required=columns)
        facts = facts.rename({name: f"{name} of votes" for name in facts.columns[1:]})
        label_columns = [name for name in _TOLD if name in label_rows.columns]
        task = pl.lit("".join(key)).alias("task")
        tables.append(facts.hstack(label_rows.select(label_columns)).with_columns(task))
        parts.append(items)
    n_labelled = sum(int(task_items.is_labelled.sum()) for task_items in parts)
    if n_labelled == 0:  # says what the items of either begin with
        items.labelled() if bare else votes.labelled(labels, n_votes)
    rows = pl.concat(tables)
    if bare:
        about.append(remarks.tasks_without_labels(bare))
    if n_looks:
        about.append(remarks.reviewed_labels(n_looks, labels.source))
    if "group" not in rows.columns:
        rows = rows.with_columns(group=pl.lit(None, pl.String))
    n_without_group = rows["group"].null_count()
    key = items.scale.mode.key
    alone = pl.format(" {}" * len(key), *key)  # no group begins with a blank
    is_shared = rows.select(key).is_duplicated().any()
    forbid(
        is_shared and "task" not in labels.columns,
        f"{labels.source} has no column criterion or task, expected one, since {votes.source} "
        "has several for an item",
    )
    about += rater_remarks(
        labels.scale, labels.raters, n_apart, n_labelled, of_estimates=not keep_chosen
    )
    about += [*on_sides(parts), *about_words(votes), *about_orders(votes, labels)]
    if labels.n_repeats:
        about.append(remarks.repeated_ratings(labels.n_repeats, labels.source))
    n_without_votes = max(len(labels_of(labels, votes).ids) - n_labelled, 0)
    if n_without_votes:
        about.append(remarks.labels_without_votes(n_without_votes, labels.source))
        rest = rows.filter(pl.Series(np.concatenate([~part.is_labelled for part in parts])))["item"]
        of_tasks = labels_of(labels, votes).frame["item"].cast(pl.String)
        absent = of_tasks.filter(~of_tasks.is_in(rows["item"].cast(pl.String).implode()))
        if (alike := like_ids(rest.to_list(), absent.to_list())) is not None:
            about.append(alike)
    if 0 < n_without_group < len(rows):
        about.append(remarks.items_without_group(n_without_group))
    names = _objects(rows.select(alone))[:, 0]
    in_groups = _objects(rows.select(pl.coalesce("group", alone)))[:, 0]
    is_designed = {"stratum", "probability", "design", "seed"} <= {*labels.columns}
    probabilities = None
    if "probability" in rows.columns:
        probabilities = _numbers(rows["probability"], labels.source)
    # Counts of strength are fractions in some parts, which then have signs.
    made: dict[str, Any] = {}
    if any("signs" in part.facts for part in parts):
        made["signs"] = np.concatenate([part.votes for part in parts])
    stored = [part.facts.columns.get("confidences") for part in parts]
    unusable = [error for error in stored if isinstance(error, str)]
    if unusable:
        made["confidences"] = unusable[0]
    elif all(confidences is not None for confidences in stored):
        made["confidences"] = Confidences(*map(np.concatenate, zip(*stored, strict=True)))
    made |= {
        name: np.concatenate([part.facts[name] for part in parts])
        for name in items.facts
        if name.startswith("decision ")
    }
    if "task" in votes.columns:
        made["task"] = _objects(rows.select("task"))[:, 0]
    if by is not None:
        made["by"] = _objects(rows.select(f"{by} of votes"))[:, 0]
    for name, column in zip(items.scale.systems, systems or (), strict=False):
        made[name] = _objects(rows.select(f"{column} of votes"))[:, 0]
    label_rows = pl.concat([part.facts.frame for part in parts], how="diagonal_relaxed")
    sampling = Draw(
        probabilities=probabilities,
        units=_units(rows, names, in_groups if n_without_group < len(rows) else None),
        strata=_objects(rows.select(pl.col("stratum").cast(pl.String)))[:, 0]
        if is_designed
        else None,
        least_probability=_least_probability(labels),
    )
    origin = Origin(
        judges=items.judges,
        sides=votes.sides,
        raters=labels.raters,
        by=by or "",
        n_without_votes=n_without_votes,
        remarks=tuple(about),
    )
    gathered = Items.joined(
        parts,
        facts=Facts(made, votes, label_rows),
        ids=ids_of(rows["item"]),
        group=in_groups if n_without_group < len(rows) or is_shared else None,
        sampling=sampling,
        origin=origin,
    )
    if systems is not None:
        return gathered
    with suppress(InputError):  # of an item whose votes name several
        if (found := systems_in(gathered)) is not None:
            named = dict(zip(items.scale.systems, found.T, strict=True))
            return gathered.with_facts(named)
    return gathered


def _units(rows: pl.DataFrame, names: Any, groups: Any) -> Any:
    units = {*rows["unit"].drop_nulls()} if "unit" in rows.columns else set()
    if groups is None or units == {"item"}:
        return names
    return groups if units == {"group"} else None


def _least_probability(labels: Labels) -> float | None:
    if "least_probability" not in labels.columns:
        return None
    least = np.nanmin(_numbers(labels.frame["least_probability"], labels.source), initial=np.inf)
    return float(least) if np.isfinite(least) else None


def _drawn_by_chance(labels: Labels) -> tuple[Labels, int]:
    """Return labels without those of items that were chosen for a look, and how many these are."""
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
            got=0,
            expected="a number above 0 for at least one item, since no labelled item was drawn at "
            "random",
        )
    drawn = replace(labels, data=labels.frame.filter(~is_look))
    if drawn.frame["probability"].is_null().all():  # the column is of the looks alone
        drawn = _without_probability(drawn)
    return drawn, int(is_look.sum())


def _without_probability(labels: Labels) -> Labels:
    data, unlabelled = (
        frame.drop("probability", strict=False) for frame in (labels.frame, labels.unlabelled)
    )
    return replace(labels, data=data, unlabelled=unlabelled)


def _numbers(values: pl.Series, source: str) -> NDArray[np.float64]:
    numbers = values.cast(pl.Float64, strict=False)
    bad = values.filter(numbers.is_null() & values.is_not_null())
    if len(bad):
        expected = "a number above 0 and at most 1"
        raise InputError(source=source, column=values.name, got=bad[0], expected=expected)
    return numbers.fill_null(float("nan")).to_numpy()


def _objects(rows: pl.DataFrame) -> NDArray[np.object_]:
    return np.stack([np.array(column.to_list(), dtype=object) for column in rows], axis=1)
