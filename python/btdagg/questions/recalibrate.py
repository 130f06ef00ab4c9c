"""A calibration carried over to a new judge, from labelled items that it has judged, too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._util.errors import expect, forbid
from btdagg._util.validation import same_index, same_length
from btdagg.evaluation.new_items import Losses, NewItems
from btdagg.evaluation.protocol import CrossFit, absolute_error
from btdagg.inference.intervals import number_to_tell
from btdagg.model.calibration import Calibration, quiet, warning
from btdagg.model.fit import calibrate, prior_among
from btdagg.model.intervals import as_level
from btdagg.questions.compare import Comparison, comparisons_table
from btdagg.remarks import Remark
from btdagg.result import Result, ResultTable
from btdagg.votes.by_id import as_tables
from btdagg.votes.items import Items
from btdagg.votes.labels import Labels
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS, require_alike
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.scale import Scale


@dataclass(frozen=True)
class Recalibration(Result):
    """A model of a new judge, and what the items that it judged say of it.

    Attributes
    ----------
    calibration : Calibration
        Of the new judge, with the old one as neighbour; the old one's if no item was judged again.
    old : Calibration
        Of the old judge, on all labels.
    names : tuple of str
        Names of the judges.
    n_labels, n_again : int
        Items with a label, and those that the new judge has judged, too.
    judges : Comparison or None
        Errors of the old judge and of the new one, each with its model, on the same items; None of
        fewer than two groups of items.
    models : Comparison or None
        Errors of the old model and of the new one, both on votes of the new judge.
    items_wanted : int or None
        About how many items, judged again, would tell the models apart if their errors stay; None
        where they are told apart, or a hundred times as many would not do.
    remarks : tuple of Remark
    """

    calibration: Calibration
    old: Calibration
    names: tuple[str, str]
    n_labels: int
    n_again: int
    judges: Comparison | None
    models: Comparison | None
    items_wanted: int | None
    remarks: tuple[Remark, ...] = ()

    @property
    def model(self) -> Any:
        """The model of the new judge."""
        return self.calibration.model

    @property
    def old_model_holds(self) -> bool | None:
        """False where the new model is better beyond chance; None where that cannot be told."""
        verdicts = {"the old model": True, "the new model": False}
        return None if self.models is None else verdicts.get(self.models.better or "")

    @property
    def warnings(self) -> tuple[Remark, ...]:
        """The remarks, of which `recalibrate` warns."""
        return self.remarks

    def sentence(self) -> str:
        """Return which judge is better, whether the old model holds for it, and what next."""
        return f"{self._answer()}. {self._next_step()}"

    def _answer(self) -> str:
        old, new = self.names
        if self.judges is None or self.models is None:
            few = f"{new} has judged {self.n_again:,} of {self.n_labels:,} labelled items"
            return f"{few}, too few to compare it with {old}"
        verdict = {
            old: f"{new} is worse than {old}",
            new: f"{new} is better than {old}",
            None: f"{new} and {old} do not differ significantly",
        }[self.judges.better]
        most = self.models.difference.high
        holds = {
            True: f"the old model is better for {new} than the new one",
            False: f"the old model does not fit {new}",
            None: f"the old model may be worse for {new} than the new one by up to {most:z.3f}",
        }[self.old_model_holds]
        level, n = f"{100 * self.models.level:.4g}% interval ", self.models.n_items
        return (
            f"{verdict} on {n:,} items judged again, {_errors(self.judges, level)}; "
            f"{holds}, {_errors(self.models)}"
        )

    def _next_step(self) -> str:
        if self.models is None:
            more = "This model is the old one. " * (not self.n_again)
            return f"{more}Judge some 20 labelled items"
        if self.old_model_holds is not None:
            return "The items are enough to tell the models apart"
        if self.items_wanted is None:
            return "Even 100 times as many items would not tell the two models apart"
        labels = f" ({self.n_labels:,} have a label)" * (self.items_wanted > self.n_labels)
        return (
            f"It takes about {self.items_wanted:,} items judged again to tell the models "
            f"apart{labels}"
        )

    def table(self) -> ResultTable:
        """Return the comparison of the judges, and that of the models for the new one."""
        both = (self.judges, self.models)
        return comparisons_table([of for of in both if of is not None])

    def values(self) -> dict[str, Any]:
        """Return the numbers and both comparisons."""
        names = ("n_labels", "n_again", "old_model_holds", "items_wanted", "judges", "models")
        return {name: getattr(self, name) for name in names}


@warning
def recalibrate(
    old_counts: Any,
    new_counts: Any,
    labels: ArrayLike | Labels,
    *,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    groups: ArrayLike | None = None,
    names: tuple[str, str] = ("the old judge", "the new judge"),
    level: float = 0.95,
    protocol: CrossFit | None = None,
) -> Recalibration:
    """Calibrate a new judge on items that it has judged, with the old judge as neighbour.

    Labels stay true when the judge changes. Only a part of the labelled items is judged again; the
    others, with the old votes, are a neighbour: a prior of the new model.

    Parameters
    ----------
    old_counts, new_counts : (n, 3) or (n, J) array, or Votes
        Votes of both judges in the same rows, as `btdagg.calibrate` takes them; zeros or NaN for
        an item without new votes. Tables are joined by item.
    labels : (n,) array, or Labels with tables of votes
        NaN where there is none; such rows are left out.
    scale, label_scale : Scale, optional
        For arrays, as in `btdagg.calibrate`.
    groups : (n,) array, optional
        For arrays, the group of each item, such as its prompt.
    names : two str
        Names of the judges in the answer.
    level : float
    protocol : CrossFit, optional
        How errors are estimated: on items that neither model has seen.

    Notes
    -----
    Items judged again are not in the neighbour: no label counts twice. Errors are those of
    `compare`, with refits to resampled groups of all labelled items.

    Examples
    --------
    >>> old = [[0, 2, 6], [1, 6, 1], [7, 1, 0], [6, 1, 1]] * 9
    >>> new = [[0, 0, 8], [0, 5, 3], [8, 0, 0], [0, 0, 0]] * 9
    >>> found = recalibrate(old, new, [1, 0, -1, -1] * 9)
    >>> found.n_labels, found.n_again, found.model.decide_one(minus=0, tie=1, plus=7)
    (36, 27, 1)
    """
    level, protocol = as_level(level), protocol or CrossFit()
    expect(not isinstance(names, str) and len(set(names)) == 2, "names", names, "two names")
    old_name, new_name = map(str, names)
    both = (as_tables(votes, labels, scale, label_scale) for votes in (new_counts, old_counts))
    (new_counts, _), (old_counts, labels) = both
    expect(labels is not None or isinstance(old_counts, Items), "labels", None, "labels of items")
    items, new = _both(old_counts, new_counts, labels, groups, scale, label_scale)
    again = np.flatnonzero((new > 0).any(axis=1))
    old, fitted = _fits(items, new, np.arange(len(items)))
    warnings = fitted.warnings
    if isinstance(old_counts, Votes | Items):
        origin = old_counts.provenance
        known = origin.of_fit(old.max_votes, old.n_labels)
        old = replace(old, model=replace(old.model, provenance=known))
        provenance = new_counts.provenance
        warnings += origin.other_strength(provenance.strength, provenance.full_margins)
    if not len(again):
        fitted = old
    else:
        provenance = fitted.model.provenance or Provenance()
        if isinstance(new_counts, Votes | Items):
            provenance = replace(
                new_counts.provenance, n_votes=provenance.n_votes, n_labels=provenance.n_labels
            )
        provenance = replace(provenance, ancestry=(f"{old_name}, {old.n_labels} labels",))
        fitted = replace(fitted, model=replace(fitted.model, provenance=provenance))
    judges = models = wanted = None
    if len(np.unique(items.group_numbers[again])) > 1:
        errors = _errors_on(items, new, again, protocol)
        judges = _compared(*errors, 0, (old_name, new_name), level)
        models = _compared(*errors, 1, ("the old model", "the new model"), level)
        wanted = _wanted(models)
    return Recalibration(
        fitted,
        old,
        (old_name, new_name),
        len(items),
        len(again),
        judges,
        models,
        wanted,
        warnings,
    )


def _both(
    old: Any, new: Any, labels: Any, groups: Any, scale: Scale | None, label_scale: Scale | None
) -> tuple[Items, NDArray[Any]]:
    if isinstance(labels, Labels) or isinstance(old, Items):
        expected = "votes with ids as the others have, btdagg.read_votes(frame)"
        is_table = isinstance(new, Votes | Items)
        expect(is_table, "new_counts", type(new).__name__, expected)
        require_alike(old.scale, new.scale)
        items = (old if isinstance(old, Items) else old.items(labels)).labelled()
        new_items = new if isinstance(new, Items) else new.items()
        forbid(
            len({*map(str, items.ids.tolist())}) < len(items),
            "old_counts has items in several tasks, expected one: filter by task",
            "old_counts",
        )
        row_of = {str(item): row for row, item in enumerate(new_items.ids.tolist())}
        rows = [row_of.get(str(item), -1) for item in items.ids.tolist()]
        blank = np.zeros((1, new_items.pooled.shape[1]), dtype=new_items.pooled.dtype)
        return items, np.concatenate([new_items.pooled, blank])[rows]
    same_index(old_counts=old, new_counts=new, labels=labels, groups=groups)
    labels = labels if isinstance(labels, list | tuple) else np.asarray(labels)
    items = Items(
        counts=old, labels=labels, group=groups, scale=scale or PAIRS, label_scale=label_scale
    )
    array = np.asarray(items.scale.in_order(new, "new_counts"))
    array = np.where(np.isnan(array), 0, array) if array.dtype.kind == "f" else array
    counts = items.scale.counts(array)
    same_length("new_counts", len(counts), "old_counts", len(items))
    return items.labelled(), counts[items.is_labelled]


def _fits(
    items: Items, new: NDArray[Any], rows: NDArray[np.intp]
) -> tuple[Calibration, Calibration]:
    scales = items.scale, items.label_scale
    how: dict[str, Any] = dict(zip(("scale", "label_scale"), scales, strict=True))
    old_counts, labels = items.pooled[rows], items.label[rows]
    old = quiet(calibrate)(old_counts, labels, **how)
    again = (new[rows] > 0).any(axis=1)
    if not again.any():
        return old, old
    left = {} if again.all() else {"old": (old_counts[~again], labels[~again])}
    prior = prior_among(left, *scales)
    return old, quiet(calibrate)(new[rows][again], labels[again], prior=prior, **how)


def _errors_on(
    items: Items, new: NDArray[Any], again: NDArray[np.intp], protocol: CrossFit
) -> tuple[NewItems, float]:
    is_again = np.zeros(len(items), dtype=np.bool_)
    is_again[again] = True

    def losses(rows: NDArray[np.intp], of: NDArray[np.intp]) -> NDArray[np.float64]:
        # Whose votes they were fitted to is no news here.
        old, fitted = (
            replace(calibration.model, provenance=None) for calibration in _fits(items, new, rows)
        )
        decided = [old.decide(items.pooled[of]), old.decide(new[of]), fitted.decide(new[of])]
        return absolute_error(items.label[of], np.stack(decided)).astype(np.float64)

    total, times, sizes = np.zeros((3, len(items))), np.zeros(len(items)), []
    group, content = items.group_numbers, [*items.content, new]
    for rows, left in protocol.draw(len(items), group, content):
        if (of := left[is_again[left]]).size:
            total[:, of] += losses(rows, of)
            times[of] += 1
            sizes.append(len(rows))
    of_items = total[:, again] / times[again]
    drawn = [
        np.repeat(np.arange(len(items)), weights.astype(np.int64))
        for weights in protocol.resampled(group, content)
    ]
    of_refits = np.stack([losses(rows, again).mean(axis=1) for rows in drawn], axis=1)
    worst, written = float(np.ptp(items.label_scale.values)), losses(np.arange(len(items)), again)
    groups = np.unique(group[again], return_inverse=True)[1]
    mae = Losses(of_items, of_refits, written, worst)
    return NewItems({"mae": mae}, groups.reshape(-1)), float(np.mean(sizes))


def _compared(
    errors: NewItems, n_calibration: float, first: int, names: tuple[str, str], level: float
) -> Comparison:
    of_both = errors.interval(first, level=level), errors.interval(2, level=level)
    difference, pvalue = errors.difference(first, 2, level=level), errors.pvalues()[first, 2]
    numbers = level, len(errors.groups), errors.n_groups, n_calibration
    return Comparison(names, of_both, difference, float(pvalue), *numbers)


def _wanted(models: Comparison) -> int | None:
    mean, low, high = models.difference
    wanted = number_to_tell(models.n_items, (high - low) / 2, abs(mean))
    return None if models.better is not None or wanted is None else max(wanted, models.n_items + 1)


def _errors(compared: Comparison, level: str = "") -> str:
    first, second = (f"{interval.mean:.3f}" for interval in compared.mae)
    mean, low, high = (f"{-number:+z.3f}" for number in compared.difference)
    return f"MAE {second} against {first}, difference {mean} ({level}{high} to {low})"
