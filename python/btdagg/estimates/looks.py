"""Which items a look by people would help most, and what error is left after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg._util.validation import as_number
from btdagg.estimates.certificate import of_all_labels, ranked_by, sure
from btdagg.estimates.kinds import Predictor, kind_of
from btdagg.estimates.mean import Ends, effective_number, labelled_mean, limits_of
from btdagg.estimates.prediction_powered import population_of
from btdagg.evaluation.metrics import Interval
from btdagg.evaluation.significance import t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.votes.scale import Scale

_LEVEL = 0.95


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
        What a reader has to know before using the errors.
    """

    rows: NDArray[np.int64]
    falls: NDArray[np.float64]
    before: Interval
    after: Interval
    remarks: tuple[str, ...]

    def __str__(self) -> str:
        error, left = (f"{of.mean:.3f} ({of.low:.3f} to {of.high:.3f})" for of in self[2:4])
        return f"a look at {len(self.rows):,} items takes the error from {error} to {left}"


def worth_a_look(
    counts: ArrayLike,
    labels: ArrayLike,
    share: float = 0.1,
    *,
    rows: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    scale: Scale | None = None,
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
        Numbers of the items that people looked at, in place of a share; those of labels are left
        out. The errors hold if their votes alone chose them, and not who was easy to label.

    Examples
    --------
    >>> counts = [[0, 1, 7], [1, 6, 1], [7, 1, 0], [3, 2, 3]] * 30
    >>> labels = [1, 0, -1, 1, None, None, None, None] * 15
    >>> worth_a_look(counts, labels, 0.05).rows.tolist()
    [7, 15, 23, 31, 39, 47]
    """
    share = as_number(share, "share")
    if not 0 < share < 1:
        raise InputError(argument="share", came=share, expected="a number above 0 and below 1")
    kind = kind_of(scale)
    population = population_of(counts, labels, groups, probabilities, model, prior, 0, kind=kind)
    values = np.array([-1.0, 0, 1] if scale is None else scale.grades)
    distances = np.abs(values[:, None] - values)

    def risk(table: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        place, _ = sure(table)
        return place, np.einsum("nk,nk->n", table, distances[place])

    def error(shares: NDArray[np.float64], place: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray(np.einsum("nk,nk->n", shares, distances[place]))

    def negated(table: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        place, own = risk(table)
        return place, -own

    entered, errors, _ = ranked_by(population, risk, error)
    above = 1 - ranked_by(population, negated, error)[0]
    fitted = of_all_labels(population, prior) if model is None else model
    falls = risk(np.asarray(fitted.predict_proba(population.rows)))[1][population.place]
    others = np.setdiff1d(np.arange(len(falls)), population.labelled)
    if not len(others):
        raise InputError("every item has a label: there is nothing to look at", argument="labels")
    order = others[np.argsort(-falls[others], kind="stable")]
    looked = np.arange(len(order)) < round(share * len(falls))
    if rows is not None:
        looked = np.isin(order, rows)
    unlabelled = len(others) / len(falls)
    # Of items with the same votes, which all have one risk, a share may be looked at.
    ranks = np.linspace(0, 1, len(order) + 1)
    before, until = (np.interp(at, ranks, np.append(0, looked.cumsum())) for at in (above, entered))
    left = 1 - (until - before) / (entered - above) / len(order)
    rows = order[looked]
    sample, ends = population.sample(), Ends(0, float(distances.max()))
    intervals: list[Interval] = []
    for own in (errors, errors * left):
        mean = labelled_mean(own, sample)
        worth = (
            effective_number(mean.value, mean.variance, ends) if mean.variance else sample.n_groups
        )
        quantile = t_quantile(_LEVEL, sample.degrees_of_freedom)
        # The items without a label vary too.
        low, high = limits_of(mean.value, np.array([worth * unlabelled]), quantile, ends)
        intervals.append(Interval(*(unlabelled * end for end in (mean.value, low[0], high[0]))))
    remarks = population.remarks(sample)
    if not population.is_fixed:
        remarks.append(
            "errors are those of a model calibrated on these labels, each item decided without its "
            "group"
        )
    before_looks, after_looks = intervals
    return Looks(rows, falls[rows], before_looks, after_looks, tuple(remarks))
