"""Items: the one table of what is known of each, its votes, its label and where it is from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.folds import numbered
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    as_panel_counts,
    columns_of,
    has_index,
    has_judges,
    is_series,
    names_of_judges,
    same_length,
    unmasked,
)
from btdagg.remarks import as_remarks, code_of
from btdagg.votes.facts import Confidences, Facts, are_no_labels, no_labels, rows_of
from btdagg.votes.ids import index_has_ids
from btdagg.votes.labels import rater_remarks
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.sides import UNNAMED, Sides, turned
from btdagg.votes.table import listing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.remarks import Remark

    Floats = NDArray[np.float64]

_SIDES = ("minus", "tie", "plus")
_DRAWN = ("probabilities", "units", "strata")


class Draw(NamedTuple):
    """How the labelled items were drawn.

    Attributes
    ----------
    probabilities : (n,) array of float, or None
        Probability of being drawn for labelling; NaN where it is not known.
    units : (n,) array of str, or None
        The unit that was drawn, the item or its group; None where it is not known.
    strata : (n,) array, or None
        Stratum from which each item's unit was drawn; None for items that were not drawn.
    least_probability : float, or None
        Lowest probability that any item had of being drawn.
    """

    probabilities: Any = None
    units: Any = None
    strata: Any = None
    least_probability: float | None = None

    def rows(self, rows: NDArray[Any]) -> Draw:
        """Return how some of the items were drawn."""
        arrays = {name: rows_of(getattr(self, name), rows) for name in _DRAWN}
        return self._replace(**arrays)


SIMPLE = Draw()
"""A simple random sample."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Origin(Readable):
    """Where items are from, and what was left out on the way.

    Attributes
    ----------
    source : str
        Name of the table of votes, such as its path; empty if items are rows of arrays.
    provenance : Provenance
        Where the votes are from, as their table says.
    judges : tuple of str
        Judges of a panel, in the order of the columns of the counts; empty if votes of all judges
        are counted together.
    sides : Sides
        Names of A and B.
    raters : str
        Treatment of items on which raters disagree: mean, majority or drop.
    standings : mapping of str to mapping of str to float
        By covariate, the standings of the systems.
    by : str
        Name of the column that the fact `by` is of.
    n_unlabelled, n_without_votes : int
        Numbers of items left out without a label, and of labels without votes.
    no_labels : str
        Why no item has a label.
    remarks : tuple of Remark
        Data left out, and assumptions.
    """

    source: str = ""
    provenance: Provenance = field(default_factory=Provenance)
    judges: tuple[str, ...] = ()
    sides: Sides = UNNAMED
    raters: str = "mean"
    standings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    by: str = ""
    n_unlabelled: int = 0
    n_without_votes: int = 0
    no_labels: str = "no item has a label"
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Items(Readable):
    """Items with a row each: the counts of their votes, and what else is known of them.

    As an array it is its counts, those of all judges together.

    Attributes
    ----------
    counts : (n, judges, J) array of non-negative numbers
        Votes of each judge for each point of the scale: of pairs minus, tie, plus. One judge, or
        all of them together, are a panel of one; a judge without votes on an item has zeros.
        Counts without an axis of judges, (n, J), are taken as such.
    labels : (n, K) array of float64
        Share of an item's raters for each label; NaN where the item has no label. Points of the
        label scale, (n,), are taken as shares of one rater.
    ids : (n,) array
        Names of the items in messages; by default their row numbers.
    group : (n,) array of str, or None
        Group of each item, such as its prompt; None where each item stands alone.
    scale, label_scale : Scale
        Scales of the votes and of the labels.
    facts : Facts
        Whatever else is known of each item, by name.
    sampling : Draw
        How the labelled items were drawn; a simple random sample unless it is said.
    origin : Origin
        Where the items are from: names of judges and sides, and what was left out.
    """

    counts: Any
    labels: Any = None
    ids: Any = None
    group: Any = None
    scale: Scale = PAIRS
    label_scale: Any = None
    facts: Facts = field(default_factory=Facts, repr=False)
    sampling: Draw = field(default=SIMPLE, repr=False)
    origin: Origin = field(default_factory=Origin, repr=False)

    def __post_init__(self) -> None:
        for name, kind in (("scale", Scale), ("label_scale", Scale | None)):
            said = getattr(self, name)
            expect(isinstance(said, kind), name, said, "a btdagg.Scale")
        judges, origin = self.origin.judges, self.origin
        if has_judges(self.counts):
            counts = as_panel_counts(self.counts, judges or None)
            origin = replace(origin, judges=names_of_judges(judges or None, counts.shape[1]))
        else:
            read = self.scale.read_counts if self.scale.mirrored else self.scale.counts
            counts = read(self.counts)[:, None]
        n = len(counts)
        ids = np.arange(n) if self.ids is None else np.asarray(unmasked(self.ids, "ids"))
        label_scale = self.label_scale or self.scale
        labels = self.labels
        if labels is None:
            labels = no_labels(n, len(label_scale.points))
        elif not are_no_labels(labels):
            labels = label_scale.shares(labels)
        columns: dict[str, Any] = {"ids": ids, "labels": labels, "groups": self.group}
        columns |= self.sampling._asdict() | {"least_probability": None} | self.facts.columns
        for name, values in columns.items():
            column = values.total if isinstance(values, Confidences) else values
            if column is not None and not isinstance(column, str):
                same_length(name, len(column), "counts", n)
        known = {"counts": counts, "labels": labels, "ids": ids, "label_scale": label_scale}
        group = None if self.group is None else np.asarray(self.group)
        for name, value in {**known, "group": group, "origin": origin}.items():
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.counts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pooled, dtype=dtype, copy=copy)

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        chosen = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        expect(chosen.ndim == 1, "rows", rows, "several rows: a slice, numbers or a mask")
        chosen = chosen if chosen.size else chosen.astype(np.intp)
        counts, labels, ids, group = (
            rows_of(values, chosen) for values in (self.counts, self.labels, self.ids, self.group)
        )
        return self._with(
            counts=counts,
            labels=labels,
            ids=ids,
            group=group,
            facts=self.facts.rows(chosen),
            sampling=self.sampling.rows(chosen),
        )

    def _with(self, **fields: Any) -> Self:
        """Return the items with other fields, made of checked ones and not checked again."""
        made = object.__new__(type(self))
        for name in self.__dataclass_fields__:
            object.__setattr__(made, name, fields.get(name, getattr(self, name)))
        return made

    # What the fields say

    @property
    def has_ids(self) -> bool:
        """Whether the items have names of their own, and not row numbers."""
        return bool(self.origin.source) or not np.array_equal(self.ids, np.arange(len(self)))

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Which items have a label, (n,)."""
        return np.asarray(~np.isnan(self.labels[:, 0]))

    @cached_property
    def label(self) -> NDArray[Any]:
        """One label of each item, (n,): the median of its raters' labels; NaN without one.

        Of pairs it is the label of most raters, a tie if several labels have the most.
        """
        scale: Scale = self.label_scale
        return scale.label_of(self.labels)

    @property
    def judges(self) -> tuple[str, ...]:
        """Judges of a panel, in the order of the columns of the counts."""
        return self.origin.judges

    @property
    def provenance(self) -> Provenance:
        """Where the votes are from, as their table says."""
        return self.origin.provenance

    @cached_property
    def pooled(self) -> NDArray[Any]:
        """Counts of all judges together, (n, J)."""
        counts: NDArray[Any] = self.counts
        return counts.sum(axis=1) if counts.shape[1] != 1 else counts[:, 0]

    @property
    def by_judge(self) -> NDArray[Any]:
        """Counts of the judges of a panel, (n, judges, J); of a panel of one (n, J)."""
        counts: NDArray[Any] = self.counts
        return counts if counts.shape[1] != 1 else self.pooled

    @property
    def votes(self) -> NDArray[Any]:
        """Votes per item without their strength, (n, J)."""
        return np.asarray(self.facts["signs"]) if "signs" in self.facts else self.pooled

    @property
    def covariates(self) -> dict[str, Floats]:
        """Covariates that models may use, by name, made by `with_covariates`; NaN where missing."""
        return self.facts.named("covariate")

    @cached_property
    def systems(self) -> NDArray[Any] | None:
        """The systems that wrote A and B, (n, 2), of grades that of the response, (n, 1).

        None unless all items have them; an `InputError` if votes of an item name several.
        """
        columns = [self.column(name) for name in self.scale.systems]
        known = [c.to_list() for c in columns if c is not None and not c.null_count()]
        return np.array(known, dtype=object).T if len(known) == len(columns) else None

    @property
    def names(self) -> NDArray[Any]:
        """Ids, with their tasks where votes have tasks; no group of a table has such a name."""
        if not self.origin.source:
            return np.asarray(self.ids)
        return _named(*([self.facts["task"]] if "task" in self.facts else []), self.ids)

    @property
    def unit_names(self) -> NDArray[Any]:
        """Names of items that stand alone, (n,): several criteria of one response are one unit."""
        is_told_apart = "task" in self.facts and "task" in self.scale.mode.key
        return _named(*([self.facts["task"]] if is_told_apart else []), self.ids)

    @property
    def id_frame(self) -> pl.DataFrame:
        """Ids in a column `item`, and tasks in `task` where votes have tasks."""
        columns = {"item": self.ids.tolist()}
        if "task" in self.facts:
            columns["task"] = self.facts["task"].tolist()
        return pl.DataFrame(columns)

    @property
    def has_all_groups(self) -> bool:
        """Whether all items have a group, or none has: else the sizes of groups are not known."""
        if self.group is None:
            return True
        is_alone = np.asarray(self.group == self.unit_names)
        return bool(is_alone.all() or not is_alone.any())

    def column(self, name: str) -> pl.Series | None:
        """Read a fact by its name: made for the items, or a column of the votes or the labels."""
        return self.facts.read(name, self.id_frame)

    # Selections, and items with more facts

    @cached_property
    def decided_by(self) -> NDArray[Any] | Self:
        """Input of aggregators, without labels: an array if there is nothing but counts."""
        needed = ("signs", "confidences", "covariate ", "decision ")
        if not self.judges and not any(name.startswith(needed) for name in self.facts):
            return self.pooled
        labels, facts = no_labels(*self.labels.shape), self.facts.detached(labels_alone=True)
        return self.by_row()._with(labels=labels, group=None, facts=facts)

    def by_row(self) -> Self:
        """Return the items as rows of arrays: further arrays are matched with them by position."""
        return self._with(origin=replace(self.origin, source=""))

    def labelled(self) -> Self:
        """Return the items that have a label, of which there has to be one."""
        rows = np.flatnonzero(self.is_labelled)
        forbid(not len(rows), self.origin.no_labels)
        some = self if len(rows) == len(self) else self[rows]
        origin, facts, disputed = self.origin, some.facts, self.facts.n_disputed or 0
        if origin.raters != "drop" and (ratings := facts.ratings) is not None:
            facts = facts.with_columns({"ratings": ratings})
        remarks = origin.remarks
        if not any(code_of(remark) == "raters-disagree" for remark in remarks):
            remarks += rater_remarks(self.label_scale, origin.raters, disputed, len(rows))
        n_unlabelled = origin.n_unlabelled + len(self) - len(rows)
        origin = replace(origin, n_unlabelled=n_unlabelled, remarks=remarks)
        return some._with(facts=facts, origin=origin)

    def with_facts(self, columns: Mapping[str, Any]) -> Self:
        """Return the items with more facts, each with a row for every item; see `Facts`."""
        arrays = {
            name: values if isinstance(values, str | Confidences) else np.asarray(values)
            for name, values in columns.items()
        }
        return replace(self, facts=self.facts.with_columns(arrays))

    def with_columns_of(self, columns: Mapping[str, str]) -> Self:
        """Return the items with columns of their tables as facts, by the facts' names.

        All items need a value there, whether they have a label or not.
        """
        made: dict[str, Any] = {}
        for fact, name in columns.items():
            values = self.column(name)
            if values is None:
                raise InputError(argument=fact, got=name, expected="a column of the votes")
            if name == "task":  # which is an empty text where it is missing
                values = values.replace("", None)
            if values.null_count():
                item = self.ids[values.is_null().to_numpy()].tolist()[0]
                raise InputError(
                    f"{self.origin.source}: item {item!r} has no {name}, expected one for every "
                    "item, labelled or not"
                )
            made[fact] = np.array(values.to_list(), dtype=object)
        return self.with_facts(made) if made else self

    def without_strength(self) -> Self:
        """Return the items with their votes counted whole, whatever their strength."""
        return replace(self, counts=self.votes, facts=self.facts.with_columns({}, without="signs"))

    def with_remarks(self, remarks: Iterable[str]) -> Self:
        """Return the items with these remarks alone."""
        return self._with(origin=replace(self.origin, remarks=as_remarks(remarks)))

    def with_covariates(
        self, covariates: Any, *, model: Any = None, is_table: bool = False
    ) -> Self:
        """Return the items with what else is known of them, for models to use.

        Parameters
        ----------
        covariates : "auto", str, sequence of str, mapping, data frame or (n, d) array
            ``"auto"`` is all that items have of ``"standing"`` (columns `system_a` and `system_b`,
            of grades `system`), ``"group-standing"`` (grades) and ``"length"`` (columns `chars_a`
            and `chars_b`, or `response_a` and `response_b`; of grades without a side). Other names
            are columns of numbers. Or columns, as in `btdagg.calibrate`: see `matched`.
        model : optional
            Take the standings of systems that it was fitted with.
        is_table : bool
            See `matched`.
        """
        from btdagg.votes.standings import known_columns

        if isinstance(covariates, str | list | tuple) and not np.ndim(covariates) > 1:
            columns, standings = known_columns(self, covariates, model)
        else:
            if isinstance(covariates, Mapping):
                covariates = {
                    name: self.matched("covariates", values, is_table=is_table)
                    for name, values in covariates.items()
                }
            else:
                covariates = self.matched("covariates", covariates, is_table=is_table)
            columns, standings = columns_of(covariates, len(self)), {}
        return self.known_by(columns, standings)

    def known_by(
        self, covariates: Mapping[str, Any], standings: Mapping[str, Any] | None = None
    ) -> Self:
        """Return the items with these covariates, (n,) each, in place of those they have."""
        columns = {
            f"covariate {name}": np.asarray(values, dtype=np.float64)
            for name, values in covariates.items()
        }
        facts = self.facts.with_columns(columns, without="covariate")
        return replace(self, facts=facts, origin=replace(self.origin, standings=standings or {}))

    def matched(self, name: str, values: Any, *, is_table: bool = False) -> Any:
        """Return values with a row for each item, those of a series of pandas by its index.

        Parameters
        ----------
        name : str
            The argument in errors.
        values : array, series or data frame
            Arrays are in the order of `ids`.
        is_table : bool
            Whether the items were counted for the caller, who cannot know their order: arrays are
            refused.
        """
        if values is None or not self.has_ids:
            return values
        index: Any = getattr(values, "index", None)
        if has_index(values) and index_has_ids(index):
            row_of = {str(item): row for row, item in enumerate(index)}
            ids = [*map(str, self.ids.tolist())]
            if len(row_of) == len(index) and len({*ids}) == len(ids) and {*ids} <= {*row_of}:
                return values.iloc[[row_of[item] for item in ids]]
        elif not has_index(values) and not is_series(values) and not is_table:
            return values
        expected = (
            "a series with the ids of the items in its index, such as "
            'frame.set_index("item")["weight"], or a column of the votes or labels, since the '
            "votes have ids; an index of numbers has to be called item, or it may be that of rows; "
            "arrays in the order of items.ids go with "
            "items = btdagg.read_votes(frame).items(labels)"
        )
        raise InputError(argument=name, got=type(values).__name__, expected=expected)

    def require_votes_alone(self, user: str) -> Self:
        """Refuse items with covariates for who uses votes alone; return the items."""
        expected = f"items without covariates, since {user} does not use them"
        expect(not self.covariates, "counts", [*self.covariates], expected)
        return self

    def parts(self, column: str) -> dict[str, Self]:
        """Return the items of each task or criterion, by its name; see `Votes.items`."""
        tasks = self.facts.get("task")
        if column not in ("task", "criterion") or tasks is None:
            found = "none" if tasks is None else "task or criterion"
            raise InputError(argument="column", got=column, expected=found)
        parts = {}
        for value in dict.fromkeys(tasks.tolist()):
            part = self[tasks == value]
            facts = part.facts.of_task(value)
            parts[value] = part._with(
                facts=facts, origin=replace(self.origin, provenance=facts.provenance)
            )
        return parts

    def with_decisions(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which items have all decisions of these names: (n,) array."""
        kept = np.ones(len(self), dtype=np.bool_)
        for name in names:
            kept &= ~np.isnan(self.facts.get(f"decision {name}", np.zeros(len(self))))
        return kept

    # Of evaluations

    @cached_property
    def group_numbers(self) -> NDArray[np.int64]:
        """Group of each item as a number from 0, in the order of the groups' names or the ids."""
        id_numbers = np.unique(self.ids, return_inverse=True)[1].reshape(-1)
        return numbered(self.group, (id_numbers,), len(self))

    @cached_property
    def content(self) -> list[NDArray[Any]]:
        """Contents of each item, as `btdagg._util.folds.deal` takes them."""
        counts = self.pooled
        if "signs" in self.facts:  # side by side, as `compare` has them
            counts = np.stack([counts, self.facts["signs"]], axis=1)
        content: list[NDArray[Any]] = [counts, self.label]
        confidences = self.facts.columns.get("confidences")
        content += [] if isinstance(confidences, str | None) else list(confidences)[:2]
        decisions = self.facts.named("decision")
        content += [decisions[name] for name in sorted(decisions)]
        return content + [self.counts[:, self.judges.index(name)] for name in sorted(self.judges)]

    def require_two_labels(self) -> None:
        """Refuse labels that are all the same: they tell no methods apart."""
        forbid(
            (self.label == self.label[0]).all(),
            f"all {len(self)} labels are {self.label[0]}, expected at least two different ones",
        )

    def require_votes(self, n_votes: int | None) -> None:
        """Refuse a number of votes that none of these items has, of a panel from no judge."""
        if n_votes is not None:
            most = round(float(self.counts.sum(axis=-1).max()))
            expected = f"at most {most}, the most votes of a labelled item"
            expect(n_votes <= most, "n_votes", n_votes, expected)

    def remarks_of(self, rows: NDArray[Any]) -> tuple[Remark, ...]:
        """Return the remarks with what is said of raters for some items alone."""
        remarks, some = self.origin.remarks, self[rows]
        if some.facts.n_disputed is None:
            return remarks
        numbers = some.facts.n_disputed, int(some.is_labelled.sum())
        of_some = rater_remarks(self.label_scale, self.origin.raters, *numbers, of_estimates=True)
        others = [remark for remark in remarks if code_of(remark) != "raters-disagree"]
        is_said = len(others) < len(remarks)
        return (*others, *of_some) if is_said else remarks

    # What only some aggregators need

    def require_confidences(self, method: str) -> Confidences:
        """Return the confidences, which every vote must have for a method."""
        needs = f"{method} needs a confidence of every vote"
        stored = self.facts.columns.get("confidences")
        if isinstance(stored, str):
            raise InputError(f"{method}: {stored}")
        if stored is None:
            raise InputError(
                f"{needs}, but there are none: name their column", argument="confidence"
            )
        confidences: Confidences = stored
        absent = np.isnan(confidences.total)
        if absent.any():
            row, column = np.argwhere(absent)[0]
            item = self.ids[row : row + 1].tolist()[0]
            raise InputError(
                f"{needs}: item {item!r} has a vote ({_SIDES[column]}) without confidence"
            )
        return confidences

    def of_judges(self, names: Sequence[str]) -> NDArray[Any]:
        """Return the counts of a model's judges; those of an array, which has no names, as is."""
        if not self.origin.source and self.judges != tuple(names):
            return as_panel_counts(self.counts, names)
        return self.require_judges(names)

    def require_judges(self, names: Sequence[str]) -> NDArray[Any]:
        """Return the counts of some judges of a panel, (n, judges, 3)."""
        for name in names:
            found = ", ".join(self.judges) or "none"
            forbid(name not in self.judges, f"there are no counts of judge {name!r}; found {found}")
        counts: NDArray[Any] = self.counts[:, [self.judges.index(name) for name in names]]
        return counts

    def with_judges(self, names: Sequence[str], *, by_name: bool = False) -> Self:
        """Return the items with the counts of a model's judges alone; see `of_judges`.

        With `by_name` judges of an array have names as well: their numbers, unless it says others.
        """
        counts = self.require_judges(names) if by_name else self.of_judges(names)
        return replace(self, counts=counts, origin=replace(self.origin, judges=tuple(names)))

    def require_decisions(self, name: str) -> NDArray[np.int8]:
        """Return the decisions of that name, which every item must have: (n,) array of -1, 0, 1."""
        decisions = self.facts.named("decision")
        found = ", ".join(decisions) or "none"
        forbid(name not in decisions, f"there are no decisions of {name!r}; found {found}")
        decided = decisions[name]
        absent = np.isnan(decided)
        if absent.any():
            (item, *_) = self.ids[absent].tolist()
            raise InputError(
                f"{name!r} has no decision for {absent.sum()} of {len(self)} items, such as "
                f"{item!r}"
            )
        return np.asarray(decided.astype(np.int8))

    # Of estimates

    def than(self, before: Items, *names: Any) -> Items:
        """Return the items of two runs, with their names as `by`; items of one id share a group."""
        runs = self, before
        drawn = [run.sampling.probabilities for run in runs]
        probabilities = [values for values in drawn if values is not None]
        scales = [(run.scale, run.label_scale) for run in runs]
        what = "scale" if len(probabilities) != 1 else "column probability"
        text = f"the two runs differ in their {what}, expected the same"
        forbid(len(probabilities) == 1 or scales[0] != scales[1], text, "than")
        groups = [run.names if run.group is None else run.group for run in runs]
        # Items of one name are of one unit; and strata of two draws are no strata of one.
        units = [run.names if run.group is None else run.sampling.units for run in runs]
        sampling = Draw(
            probabilities=np.concatenate(probabilities) if probabilities else None,
            units=None if any(of is None for of in units) else np.concatenate(units),
            least_probability=self.sampling.least_probability,
        )
        facts = {"by": np.repeat(np.array(names, dtype=object), [len(run) for run in runs])}
        if all("task" in run.facts for run in runs):  # which are of the names of items without one
            facts["task"] = np.concatenate([run.facts["task"] for run in runs])
        remarks = tuple(dict.fromkeys(self.origin.remarks + before.origin.remarks))
        origin = replace(Origin(), judges=self.judges, sides=self.origin.sides, remarks=remarks)
        counts, labels, ids = (
            np.concatenate([getattr(run, name) for run in runs])
            for name in ("counts", "labels", "ids")
        )
        return Items(
            counts=counts,
            labels=labels,
            ids=ids,
            group=np.concatenate(groups),
            scale=self.scale,
            label_scale=self.label_scale,
            facts=Facts(facts),
            sampling=sampling,
            origin=origin,
        )

    def of_pair(self, *pair: str) -> Items:
        """Return the items that compare two systems, with the same one as A in all of them."""
        systems = self.systems
        if systems is None or not self.scale.mirrored or self.origin.sides != UNNAMED:
            return self
        rows = np.flatnonzero([{*of_item} == {*pair} for of_item in systems.tolist()])
        if not len(rows):
            expected = f"two of {listing(sorted({*systems.ravel().tolist()}))} that are compared"
            text = f"no item compares {pair[0]} with {pair[1]}, expected {expected}"
            raise InputError(text, argument="candidate")
        sides = Sides(*systems[rows[0]])
        is_turned, items = systems[rows, 0] != sides.a, self[rows]
        columns = dict(items.facts.columns)
        for name, values in columns.items():
            if name.startswith("covariate "):
                columns[name] = np.where(is_turned, -1.0, 1.0) * values
            elif name == "signs":
                columns[name] = turned(values, is_turned)
        for name, side in zip(self.scale.systems, sides, strict=True):
            columns[name] = np.full(len(rows), side, dtype=object)
        remarks = self.remarks_of(rows)
        return replace(
            items,
            counts=turned(items.counts, is_turned),
            labels=turned(items.labels, is_turned),
            facts=items.facts.with_columns(columns),
            origin=replace(items.origin, sides=sides, remarks=remarks),
        )


def _named(*columns: Iterable[Any]) -> NDArray[Any]:
    names = pl.DataFrame(
        {str(place): np.asarray(column).tolist() for place, column in enumerate(columns)}
    )
    text = names.select(pl.format(" {}" * names.width, *names.columns)).to_series()
    return np.array(text.to_list(), dtype=object)
