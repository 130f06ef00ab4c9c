"""Which items a look by people would help most, and what error is left after it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg import remarks
from btdagg._util.errors import forbid
from btdagg._util.folds import resampled
from btdagg._util.readable import readable
from btdagg.inference.cross_fit import Predictor, predicted_by
from btdagg.inference.label_means import labelled_mean
from btdagg.inference.population import PredictedItems, items_of
from btdagg.model.fit import refitted
from btdagg.model.intervals import as_level
from btdagg.questions.certify import of_all_labels, ranked_by, sure
from btdagg.result import Interval

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.scale import Scale

_LEVEL = 0.95
_N_REFITS = 40


@readable
class Looks(NamedTuple):
    """Items for people to look at, and the error of the others.

    Attributes
    ----------
    rows, falls : (m,) arrays
        Numbers of the items, those that a look helps most first, and the expected fall in absolute
        error of each.
    before, after : Interval
        Mean absolute error over all items, without and with the looks, with 95% intervals. Items
        that people labelled are without error.
    remarks : tuple of str
    """

    rows: NDArray[np.int64]
    falls: NDArray[np.float64]
    before: Interval
    after: Interval
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        error, left = (f"{of.mean:.3f} ({of.low:.3f} to {of.high:.3f})" for of in self[2:4])
        return f"human review of {len(self.rows):,} items lowers the error from {error} to {left}"


def worth_a_look(
    counts: Any,
    labels: Any = None,
    share: float = 0.1,
    *,
    rows: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    model: Predictor | None = None,
    prior: Any = "weak",
) -> Looks:
    """Choose the share of all items that a look by people would help most.

    The largest expected absolute error comes first. These items are no random sample: their labels
    replace the model's, and are not for `btdagg.certify` or `btdagg.estimate`.

    Parameters
    ----------
    counts, labels, groups, probabilities, scale, model, prior
        As `btdagg.certify` takes them.
    share : float
        Above 0 and below 1; at most the items without a label.
    rows : (m,) array of int, optional
        Items that people looked at, in place of a share; labelled ones are left out. The errors
        hold if votes alone chose them, not who was easy to label.

    Notes
    -----
    Intervals are Wilson's. The variance is that of the labelled items (their groups), that of items
    without a label, and, of a model calibrated on these labels, that over refits to resampled
    groups, as in `btdagg.evaluation.new_items.NewItems`.

    Examples
    --------
    >>> counts = [[0, 1, 7], [1, 6, 1], [7, 1, 0], [3, 2, 3]] * 30
    >>> labels = [1, 0, -1, 1, None, None, None, None] * 15
    >>> worth_a_look(counts, labels, 0.05).rows.tolist()
    [7, 15, 23, 31, 39, 47]
    """
    share = as_level(share, "share")
    how: Any = {"groups": groups, "probabilities": probabilities, "model": model}
    items = items_of(counts, labels, scale=scale, label_scale=label_scale, **how)
    items.require_votes_alone("worth_a_look")
    population = PredictedItems.of(items, model=model, prior=prior)
    values = items.label_scale.floats
    distances = np.abs(values[:, None] - values)

    def risk(table: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        place, _ = sure(table)
        return place, np.einsum("nk,nk->n", table, distances[place])

    def error(shares: NDArray[np.float64], place: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("nk,nk->n", shares, distances[place]))

    def negated(table: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        place, risks = risk(table)
        return place, -risks

    fitted = of_all_labels(population, prior) if model is None else model
    falls = risk(np.asarray(fitted.predict_proba(population.rows)))[1][population.place]
    unlabelled_rows = np.setdiff1d(np.arange(len(falls)), population.labelled)
    forbid(
        not len(unlabelled_rows),
        "every item has a label already: there is nothing to review",
        "labels",
    )
    order = unlabelled_rows[np.argsort(-falls[unlabelled_rows], kind="stable")]
    looked = np.arange(len(order)) < round(share * len(falls))
    if rows is not None:
        looked = np.isin(order, rows)
    unlabelled = len(unlabelled_rows) / len(falls)
    ranks, seen = np.linspace(0, 1, len(order) + 1), np.append(0, looked.cumsum())

    def losses(tables: NDArray[np.float64], fold: NDArray[np.int64]) -> NDArray[np.float64]:
        by_models = replace(population, tables=tables, fold=fold)
        entered, errors, _ = ranked_by(by_models, risk, error)
        above = 1 - ranked_by(by_models, negated, error)[0]
        # Of items with the same votes, which all have one risk, a share may be looked at.
        before, until = (np.interp(at, ranks, seen) for at in (above, entered))
        return np.stack([errors, errors * (1 - (until - before) / (entered - above) / len(order))])

    rows = order[looked]
    sample, ends = population.sample(), (0.0, float(distances.max()))
    of_refits = np.zeros((2, 2))
    if model is None:
        no_fold = np.zeros(len(population.labelled), dtype=np.int64)
        refitted = (losses(table[None], no_fold) for table in _refits(population, prior))
        of_refits = np.transpose([loss @ sample.weights for loss in refitted])
    intervals: list[Interval] = []
    for loss, refits in zip(losses(population.tables, population.fold), of_refits, strict=True):
        mean = labelled_mean(loss, sample, ends)
        # The items without a label vary too.
        variance = mean.variance / unlabelled + float(refits.var(ddof=1))
        mean = replace(mean, variance=variance, n_alike=mean.n_alike * unlabelled)
        intervals.append(Interval(*(unlabelled * end for end in mean.interval(_LEVEL))))
    about = population.remarks
    if not population.is_fixed:
        about.append(remarks.cross_fitted_errors())
    before_looks, after_looks = intervals
    return Looks(rows, falls[rows], before_looks, after_looks, tuple(about))


def _refits(population: PredictedItems, prior: Any) -> Iterator[NDArray[np.float64]]:
    """Probabilities of all rows by models of resampled labelled groups."""
    rows, groups = population.labelled, population.groups
    number = np.unique(rows if groups is None else groups[rows], return_inverse=True)[1].reshape(-1)
    times = resampled(int(number.max()) + 1, _N_REFITS, np.random.default_rng(0))[:, number]
    counts = population.rows[population.place[rows]]
    drawn = population.outcomes * times[:, :, None]
    for refit in refitted(counts, drawn, population.scales, prior):
        yield predicted_by(refit, population.rows)
