"""Items: the one table of what is known of each, its votes, its label and where it is from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.folds import numbered
from btdagg._util.readable import Readable, readable
from btdagg._util.validation import (
    CountsItself,
    as_names,
    as_panel_counts,
    has_judges,
    names_of_judges,
    same_index,
    same_length,
    unmasked,
)
from btdagg.votes.labels import RATERS, Labels, OnRaters, n_disputed, rater_remarks, shares_in
from btdagg.votes.scale import PAIRS, Scale, scales_of
from btdagg.votes.sides import UNNAMED, Sides
from btdagg.votes.table import listing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

_SIDES = ("minus", "tie", "plus")
_ROUNDING = 1e-6
# What has a row for each item.
_ROWS = (
    "ids",
    "counts",
    "labels",
    "shares",
    "ratings",
    "groups",
    "signs",
    "confidences",
    "probabilities",
    "units",
    "strata",
    "by",
    "systems",
    "keys",
    "label_rows",
    "alone",
)


@readable
class Confidences(NamedTuple):
    """Confidences of the votes, summed up by item and label; columns in label order -1, 0, +1.

    A label without votes has total 0, least infinity and log product 0. If the confidence of a vote
    is missing, all three are NaN.

    Attributes
    ----------
    total, least, log_product : (n, 3) arrays of float64
        Their sum, the smallest, and the sum of their logarithms.
    """

    total: NDArray[np.float64]
    least: NDArray[np.float64]
    log_product: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Items(Readable):
    """Items with a row each: the counts of their votes, and what else is known of them.

    As an array it is its counts, those of all judges together.

    Attributes
    ----------
    counts : (n, J) or (n, judges, J) array of non-negative numbers
        Votes per item for each point of the scale: of pairs minus, tie, plus.
    labels : (n,) array, or None
        One label of each item, a point of its scale; NaN where there is none.
    shares : (n, K) array of float64, or None
        Shares of the raters of each item for each label; NaN where there is no label.
    ids : (n,) array
        Names of the items in messages; by default their row numbers.
    groups : (n,) array of str, or None
        Group of each item, such as its prompt.
    scale, label_scale : Scale
        Scales of the votes and of the labels.
    judges : tuple of str
        Judges of a panel, in the order of the columns of `counts`.
    signs : (n, 3) array, or None
        Votes per item without their strength, where `counts` have it.
    confidences : Confidences or None
        Confidences of the votes, if there are any.
    no_confidences : str
        Why a column of confidences is not usable; the error of an aggregator that needs them.
    covariates : mapping of str to (n,) array of float64
        Covariates that models may use, made by `with_covariates`; NaN where missing.
    decisions : mapping of str to (n,) array of float64
        Decisions made elsewhere, such as by a generative aggregator: -1, 0, 1 or NaN per item.
    ratings : (n, K) array of int, or None
        How many raters gave each label, where some item has several.
    probabilities : (n,) array of float, or None
        Probability of being drawn for labelling; NaN where it is not known.
    units : (n,) array of str, or None
        Whether the item or its group was drawn; None where it is not known.
    strata : (n,) array of str, or None
        Stratum from which each item's unit was drawn; None for items that were not drawn.
    by : (n,) array of str, or None
        Values of the column by which estimates are split.
    systems : (n, 2) array of str, or None
        The systems that wrote A and B; of grades (n, 1), of the response.
    keys : polars.DataFrame, or None
        The items as the votes name them, and their tasks if votes have them: `item` and `task`.
    label_rows : polars.DataFrame, or None
        The columns of the labels, such as `group`; null where the labels do not name the item.
    sides : Sides
        Names of A and B.
    least_probability : float, or None
        Lowest probability that any item had of being drawn.
    n_unlabelled, n_without_votes : int
        Numbers of items left out without a label, and of labels without votes.
    remarks : tuple of str
        Data left out, and assumptions.
    """

    counts: Any
    labels: Any = None
    shares: Any = None
    ids: Any = None
    groups: Any = None
    scale: Scale = PAIRS
    label_scale: Any = None
    judges: tuple[str, ...] = ()
    signs: Any = field(default=None, repr=False)
    confidences: Confidences | None = field(default=None, repr=False)
    no_confidences: str = field(default="", repr=False)
    decisions: Mapping[str, NDArray[np.float64]] = field(default_factory=dict, repr=False)
    covariates: Mapping[str, Any] = field(default_factory=dict, repr=False)
    ratings: Any = field(default=None, repr=False)
    probabilities: Any = field(default=None, repr=False)
    units: Any = field(default=None, repr=False)
    strata: Any = field(default=None, repr=False)
    by: Any = field(default=None, repr=False)
    systems: Any = field(default=None, repr=False)
    keys: Any = field(default=None, repr=False)
    label_rows: Any = field(default=None, repr=False)
    sides: Sides = field(default=UNNAMED, repr=False)
    least_probability: float | None = field(default=None, repr=False)
    # Of the systems that covariates are of, by covariate.
    standings: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)
    # The votes that are counted, and names of items that differ where an id is in several tasks.
    table: Any = field(default=None, repr=False)
    alone: Any = field(default=None, repr=False)
    n_unlabelled: int = field(default=0, repr=False)
    n_without_votes: int = field(default=0, repr=False)
    remarks: tuple[str, ...] = field(default=(), repr=False)
    # What is made of raters who disagree, and why no item has a label.
    raters: str = field(default="mean", repr=False)
    no_labels: str = field(default="no item has a label", repr=False)

    def __post_init__(self) -> None:
        judges = self.judges
        for name, kind in (("scale", Scale), ("label_scale", Scale | None)):
            said = getattr(self, name)
            expect(isinstance(said, kind), name, said, "a btdagg.Scale")
        if self.scale.mirrored and has_judges(self.counts):
            counts = as_panel_counts(self.counts, judges or None)
            judges = names_of_judges(judges or None, counts.shape[1])
        else:
            read = self.scale.read_counts if self.scale.mirrored else self.scale.counts
            counts = read(self.counts)
        n = len(counts)
        ids = np.arange(n) if self.ids is None else np.asarray(unmasked(self.ids, "ids"))
        decisions = {
            name: _sides_of(decided, f"decisions of {name}")
            for name, decided in self.decisions.items()
        }
        label_scale = self.label_scale or self.scale
        given = {name: getattr(self, name) for name in _ROWS}
        rows = {k: np.asarray(v) if type(v) in (list, tuple) else v for k, v in given.items()}
        if isinstance(self.labels, list | tuple):
            place = label_scale.places(self.labels, partial=True)
            rows["labels"] = np.where(place < 0, np.nan, label_scale.floats[place])
        if self.labels is not None and self.shares is None:
            rows["shares"] = label_scale.shares(self.labels)
        columns = {name: values for name, values in rows.items() if name != "confidences"}
        columns |= {"ids": ids}
        if self.confidences is not None:
            sums = self.confidences._asdict()
            columns |= {f"confidences.{name}": values for name, values in sums.items()}
        columns |= {f"decisions of {name}": decided for name, decided in decisions.items()}
        known = {k: np.asarray(v, dtype=np.float64) for k, v in self.covariates.items()}
        columns |= {f"covariates of {name}": values for name, values in known.items()}
        for name, column in columns.items():
            if column is not None:
                same_length(name, len(column), "counts", n)
        checked: dict[str, Any] = {"counts": counts, "ids": ids, "judges": judges}
        checked |= {"decisions": decisions, "covariates": known}
        self.__dict__.update(rows | checked, label_scale=label_scale)

    @classmethod
    def of(
        cls,
        counts: Any,
        labels: Any = None,
        groups: Any = None,
        *,
        scale: Scale | None = None,
        label_scale: Scale | None = None,
        **more: Any,
    ) -> Self:
        """Return items unchanged, or make them of tables or of arrays; all need a label, or none.

        Parameters
        ----------
        counts : Items, Votes, or (n, J) or (n, judges, J) array
        labels : Labels with `Votes`, or (n,) array of points of their scale, or None
        groups : (n,) array, optional
            Group of each item; tables have their own.
        scale, label_scale : Scale, optional
            Scales of arrays; by default pairs, and that of the votes.
        """
        if labels is None:
            if isinstance(counts, CountsItself):
                counted: Self = counts.items()
                return counted
            if not isinstance(counts, cls):
                return cls(counts=counts, scale=scale or PAIRS, **more)
            return replace(counts, **more) if more else counts
        scale, label_scale = scales_of(counts, labels, scale, label_scale)
        if isinstance(labels, Labels):
            items: Self = tables_only(counts).labelled(labels)
            return items if groups is None else replace(items, groups=as_names(groups, "groups"))
        unlabelled = cls.of(counts, scale=scale)
        unlabelled.scale.require_votes(unlabelled.scale.counts(unlabelled.pooled))
        gold = label_scale.labels[label_scale.places(labels)]
        forbid(not len(gold), "labels is empty, expected at least one item", "labels")
        same_length("labels", len(gold), "counts", len(unlabelled))
        same_index(counts=counts, labels=labels, groups=groups)
        group = unlabelled.groups if groups is None else as_names(groups, "groups")
        known: dict[str, Any] = {"shares": None, "groups": group, "label_scale": label_scale}
        return replace(unlabelled, labels=gold, **known, **more)

    def __len__(self) -> int:
        return len(self.counts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pooled, dtype=dtype, copy=copy)

    def __getitem__(self, rows: ArrayLike | slice) -> Self:
        chosen = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        chosen = chosen if chosen.size else chosen.astype(np.intp)
        kept = {name: _some(getattr(self, name), chosen) for name in _ROWS}
        for name in ("decisions", "covariates"):
            kept[name] = {k: values[chosen] for k, values in getattr(self, name).items()}
        part = object.__new__(type(self))
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        part.__dict__.update(plain | kept)
        return part

    @property
    def has_ids(self) -> bool:
        """Whether the items have names of their own, and not row numbers."""
        rows = np.arange(len(self))
        return self.table is not None or not np.array_equal(self.ids, rows)

    @property
    def is_labelled(self) -> NDArray[np.bool_]:
        """Which items have a label, (n,)."""
        return np.asarray(~np.isnan(self.shares[:, 0]))

    @property
    def has_all_groups(self) -> bool:
        """Whether all items have a group, or none has: else the sizes of groups are not known."""
        if self.groups is None or self.alone is None:
            return True
        is_alone = np.asarray(self.groups == self.alone)
        return bool(is_alone.all() or not is_alone.any())

    @cached_property
    def pooled(self) -> NDArray[Any]:
        """Counts of all judges together, (n, J)."""
        counts: NDArray[Any] = self.counts
        return counts.sum(axis=1) if counts.ndim == 3 else counts

    @property
    def votes(self) -> NDArray[Any]:
        """Votes per item without their strength, (n, J)."""
        return self.pooled if self.signs is None else np.asarray(self.signs)

    @cached_property
    def decided_by(self) -> NDArray[Any] | Self:
        """Input of aggregators, without labels: an array if there is nothing but counts."""
        is_plain = self.confidences is None and not self.no_confidences and self.signs is None
        if is_plain and not self.decisions and not self.judges and not self.covariates:
            return self.pooled
        nothing: dict[str, Any] = dict.fromkeys(
            ("labels", "shares", "ratings", "groups", "label_rows")
        )
        return replace(self, **nothing)

    def labelled(self) -> Self:
        """Return the items that have a label, of which there has to be one."""
        expected = "one label per item, as well as the shares of its raters"
        expect(self.labels is not None or self.shares is None, "labels", None, expected)
        rows = np.flatnonzero([] if self.labels is None else ~np.isnan(self.labels))
        forbid(not len(rows), self.no_labels)
        labelled, disputed = self[rows], 0
        if labelled.label_rows is not None:
            disputed = n_disputed(self.label_rows)
            if RATERS in labelled.label_rows.columns and self.raters != "drop":
                given = (
                    shares_in(labelled.label_rows) * labelled.label_rows[RATERS].to_numpy()[:, None]
                )
                whole = np.rint(given)
                # Whose mean is known alone, and lies between points: who said what is not.
                whole[np.abs(whole - given).max(axis=1) > _ROUNDING] = 0
                labelled.__dict__.update(ratings=whole.astype(np.int64))
        labels = self.label_scale.labels[self.label_scale.places(labelled.labels)]
        remarks = rater_remarks(self.label_scale, self.raters, disputed, len(rows))
        is_said = any(isinstance(remark, OnRaters) for remark in self.remarks)
        labelled.__dict__.update(
            labels=labels,
            n_unlabelled=self.n_unlabelled + len(self) - len(rows),
            remarks=self.remarks if is_said else (*self.remarks, *remarks),
        )
        return labelled

    def with_covariates(self, covariates: Any, *, model: Any = None) -> Self:
        """Return the items with what else is known of them, for models to use.

        Parameters
        ----------
        covariates : "auto", str, sequence of str, mapping, data frame or (n, d) array
            ``"auto"`` is all that items have of ``"standing"`` (columns `system_a` and `system_b`,
            of grades `system`), ``"group-standing"`` (grades) and ``"length"`` (columns `chars_a`
            and `chars_b`, or `response_a` and `response_b`; of grades without a side). Other names
            are columns of numbers. Or columns, as in `btdagg.calibrate`.
        model : optional
            Take the standings of systems that it was fitted with.
        """
        from btdagg.votes.standings import known_columns

        if isinstance(covariates, str | list | tuple) and not np.ndim(covariates) > 1:
            columns, standings = known_columns(self, covariates, model)
        else:
            from btdagg._util.validation import columns_of

            self._require_ids_of(covariates)
            columns, standings = columns_of(covariates, len(self)), {}
        return replace(self, covariates=columns, standings=standings)

    def _require_ids_of(self, covariates: Any) -> None:
        """Refuse covariates with an index of pandas that is not that of the items."""
        several = covariates.values() if isinstance(covariates, Mapping) else [covariates]
        indexes: list[Any] = [getattr(values, "index", None) for values in several]
        for index in indexes if self.has_ids else ():
            is_other = hasattr(index, "equals") and list(map(str, index)) != list(
                map(str, self.ids)
            )
            forbid(
                is_other,
                "covariates have an index other than the ids of the items, expected the same "
                "ids in the order of the items: covariates.loc[items.ids]",
                "covariates",
            )

    def require_votes_alone(self, user: str) -> Self:
        """Refuse items with covariates for who uses votes alone; return the items."""
        expected = f"items without covariates, since {user} does not use them"
        expect(not self.covariates, "counts", [*self.covariates], expected)
        return self

    def parts(self, column: str) -> dict[str, Self]:
        """Return the items of each task or criterion, by its name; see `Votes.items`."""
        name = "task" if column == "criterion" else column
        if self.keys is None or name not in self.keys.columns:
            found = "none" if self.keys is None else listing(self.keys.columns)
            raise InputError(argument="column", got=column, expected=f"one of {found}")
        of, parts = self.keys[name], {}
        for value in of.unique(maintain_order=True):
            part = self[(of == value).to_numpy()]
            table = None if part.table is None else part.table.filter({name: value})
            parts[value] = replace(part, table=table)
        return parts

    def with_decisions(self, names: Iterable[str]) -> NDArray[np.bool_]:
        """Return which items have all decisions of these names: (n,) array."""
        kept = np.ones(len(self), dtype=np.bool_)
        for name in names:
            kept &= ~np.isnan(self.decisions.get(name, np.zeros(len(self))))
        return kept

    # Of evaluations

    @cached_property
    def group_numbers(self) -> NDArray[np.int64]:
        """Group of each item as a number from 0, in the order of the groups' names or the ids."""
        id_numbers = np.unique(self.ids, return_inverse=True)[1].reshape(-1)
        return numbered(self.groups, (id_numbers,), len(self))

    @cached_property
    def content(self) -> list[NDArray[Any]]:
        """Contents of each item, as `btdagg._util.folds.deal` takes them."""
        counts = self.pooled
        if self.signs is not None:  # side by side, as `compare` has them
            counts = np.stack([counts, self.signs], axis=1)
        content: list[NDArray[Any]] = [counts, self.labels]
        content += list(self.confidences or ())[:2]
        content += [self.decisions[name] for name in sorted(self.decisions)]
        return content + [self.counts[:, self.judges.index(name)] for name in sorted(self.judges)]

    def require_two_labels(self) -> None:
        """Refuse labels that are all the same: they tell no methods apart."""
        forbid(
            (self.labels == self.labels[0]).all(),
            f"all {len(self)} labels are {self.labels[0]}, expected at least two different ones",
        )

    def require_votes(self, n_votes: int | None) -> None:
        """Refuse a number of votes that none of these items has, of a panel from no judge."""
        if n_votes is not None:
            most = round(float(self.counts.sum(axis=-1).max()))
            expected = f"at most {most}, the most votes of a labelled item"
            expect(n_votes <= most, "n_votes", n_votes, expected)

    def remarks_of(self, rows: NDArray[Any]) -> tuple[str, ...]:
        """Return the remarks with what is said of raters for some items alone."""
        if self.label_rows is None:
            return self.remarks
        some = self[rows]
        numbers = n_disputed(some.label_rows), int(some.is_labelled.sum())
        of_some = rater_remarks(self.label_scale, self.raters, *numbers, of_estimates=True)
        others = (text for text in self.remarks if not isinstance(text, OnRaters))
        is_said = any(isinstance(text, OnRaters) for text in self.remarks)
        return (*others, *of_some) if is_said else self.remarks

    # What only some aggregators need

    def require_confidences(self, method: str) -> Confidences:
        """Return the confidences, which every vote must have for a method."""
        needs = f"{method} needs a confidence of every vote"
        if self.confidences is None:
            forbid(self.no_confidences, f"{method}: {self.no_confidences}")
            raise InputError(
                f"{needs}, but there are none: name their column", argument="confidence"
            )
        absent = np.isnan(self.confidences.total)
        if absent.any():
            row, column = np.argwhere(absent)[0]
            item = self.ids[row : row + 1].tolist()[0]
            raise InputError(
                f"{needs}: item {item!r} has a vote ({_SIDES[column]}) without confidence"
            )
        return self.confidences

    def of_judges(self, names: Sequence[str]) -> NDArray[Any]:
        """Return the counts of a model's judges; those of an array, which has no names, as is."""
        if self.table is None and self.judges != tuple(names):
            return as_panel_counts(self.counts, names)
        return self.require_judges(names)

    def require_judges(self, names: Sequence[str]) -> NDArray[Any]:
        """Return the counts of some judges of a panel, (n, judges, 3)."""
        for name in names:
            found = ", ".join(self.judges) or "none"
            forbid(name not in self.judges, f"there are no counts of judge {name!r}; found {found}")
        counts: NDArray[Any] = self.counts[:, [self.judges.index(name) for name in names]]
        return counts

    def require_decisions(self, name: str) -> NDArray[np.int8]:
        """Return the decisions of that name, which every item must have: (n,) array of -1, 0, 1."""
        found = ", ".join(self.decisions) or "none"
        forbid(name not in self.decisions, f"there are no decisions of {name!r}; found {found}")
        decided = self.decisions[name]
        absent = np.isnan(decided)
        if absent.any():
            (item, *_) = self.ids[absent].tolist()
            raise InputError(
                f"{name!r} has no decision for {absent.sum()} of {len(self)} items, such as "
                f"{item!r}"
            )
        return decided.astype(np.int8)

    # Of estimates

    def than(self, before: Items, *names: Any) -> Items:
        """Return the items of two runs, with their names as `by`; items of one id share a group."""
        runs = self, before
        probabilities = [run.probabilities for run in runs if run.probabilities is not None]
        scales = [(run.scale, run.label_scale) for run in runs]
        what = "scale" if len(probabilities) != 1 else "column probability"
        text = f"the two runs differ in their {what}, expected the same"
        forbid(len(probabilities) == 1 or scales[0] != scales[1], text, "than")
        alone = [(run, run.ids if run.alone is None else run.alone) for run in runs]
        groups = [name if run.groups is None else run.groups for run, name in alone]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(run, name) for run in runs])
            for name in ("ids", "counts", "shares", "labels")
            if self.__dict__[name] is not None
        }
        # Items of one name are of one unit; and strata of two draws are no strata of one.
        drawn = [run.units if run.groups is not None else name for run, name in alone]
        units = [run_units for run_units in drawn if run_units is not None]
        return Items(
            **columns,
            groups=np.concatenate(groups),
            probabilities=np.concatenate(probabilities) if probabilities else None,
            units=np.concatenate(units) if len(units) == len(runs) else None,
            by=np.repeat(np.array(names, dtype=object), [len(run) for run in runs]),
            remarks=tuple(dict.fromkeys(self.remarks + before.remarks)),
            scale=self.scale,
            label_scale=self.label_scale,
            judges=self.judges,
            sides=self.sides,
            least_probability=self.least_probability,
        )

    def of_pair(self, *pair: str) -> Items:
        """Return the items that compare two systems, with the same one as A in all of them."""
        if self.systems is None or not self.scale.mirrored or self.sides != UNNAMED:
            return self
        rows = np.flatnonzero([{*systems} == {*pair} for systems in self.systems.tolist()])
        if not len(rows):
            expected = (
                f"two of {listing(sorted({*self.systems.ravel().tolist()}))} that are compared"
            )
            text = f"no item compares {pair[0]} with {pair[1]}, expected {expected}"
            raise InputError(text, argument="candidate")
        sides = Sides(*self.systems[rows[0]])
        is_turned, items = self.systems[rows, 0] != sides.a, self[rows]
        for values in (items.counts, items.shares, items.signs):  # which are copies
            if values is not None:
                values[is_turned] = values[is_turned, ..., ::-1]
        labels = items.labels
        if labels is not None:
            labels = np.where(is_turned, self.label_scale.turned(labels), labels)
        sign = np.where(is_turned, -1.0, 1.0)
        known = {name: sign * values for name, values in items.covariates.items()}
        remarks = self.remarks_of(rows)
        of_pair: Any = {"sides": sides, "labels": labels, "covariates": known, "remarks": remarks}
        return replace(items, systems=None, **of_pair)


def _sides_of(decided: ArrayLike, name: str) -> NDArray[np.float64]:
    place = PAIRS.places(decided, name, partial=True)
    return np.where(place < 0, np.nan, place - 1.0)


def _some(values: Any, rows: NDArray[Any]) -> Any:
    if values is None:
        return None
    if isinstance(values, Confidences):
        return Confidences(*(sums[rows] for sums in values))
    if not isinstance(values, np.ndarray) and rows.dtype == np.bool_:
        rows = np.flatnonzero(rows)
    return values[rows]


def tables_only(counts: Any, weights: Any = None) -> Any:
    """Return votes that are a table, as labels are."""
    if not isinstance(counts, CountsItself) or weights is not None:
        name = "counts" if weights is None else "weights"
        raise InputError(
            f"labels are a table but {name} is an array: pass the votes from read_votes, or the "
            "arrays of btdagg.align(ids, counts, labels)",
            argument=name,
        )
    return counts
