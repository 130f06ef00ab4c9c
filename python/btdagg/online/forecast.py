"""What votes and labels will give on a new task, forecast from its neighbours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Drawn
from btdagg._util.readable import readable
from btdagg._util.validation import as_integer, as_number
from btdagg.model.calibration import calibrate
from btdagg.model.calibration_set import CalibrationWarning
from btdagg.model.prior import Neighbour, Prior
from btdagg.online.planner import numbers
from btdagg.online.rule import StoppingRule

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Items of a neighbour that are looked at: more would change nothing that can be seen.
_MOST_ITEMS = 1000

_SIZES = (0, 10, 50, 200)


@readable
@dataclass(frozen=True)
class ForecastRow:
    """Forecast for one number of votes and of labels.

    Attributes
    ----------
    n : int
        Votes per item at most.
    n_labels : int
        Labels calibrated on.
    mae, low, high : float
        Mean absolute error on the items without a label, on average over the neighbours, and the
        least and the most of a neighbour.
    votes : float
        Votes of an item under the lossless rule, whose labels are those of all `n`.
    calls : float
        Votes of the job under that rule, and `n` for each labelled item.
    price : float
        Price of these calls.
    """

    n: int
    n_labels: int
    mae: float
    low: float
    high: float
    votes: float
    calls: float
    price: float


@readable
@dataclass(frozen=True)
class Forecast(Drawn):
    """Forecast of a job on a new task.

    Attributes
    ----------
    rows : tuple of ForecastRow
        By number of votes, then of labels.
    neighbours : tuple of str
        The tasks that it was seen on; those with too few votes or items for a row are left out of
        that row.
    """

    rows: tuple[ForecastRow, ...]
    neighbours: tuple[str, ...]

    def __str__(self) -> str:
        priced = any(row.price for row in self.rows)
        lines = [
            "  n  labels     MAE  of a task          votes       calls" + "       price" * priced
        ]
        for row in self.rows:
            lines.append(
                f"{row.n:3}  {row.n_labels:6}  {row.mae:.4f}  {row.low:.3f} to {row.high:.3f}"
                f"  {row.votes:8.2f}  {row.calls:10,.0f}" + f"  {row.price:10,.2f}" * priced
            )
        return "\n".join(lines)


def forecast(
    prior: Prior,
    *,
    n_items: int,
    n_votes: Sequence[int] | None = None,
    n_labels: Sequence[int] | None = None,
    price: float = 1.0,
    step: int = 1,
    n_draws: int = 4,
    seed: int = 0,
) -> Forecast:
    """Forecast a job before its first label, from tasks that are labelled already.

    Each neighbour in turn plays the new task. A model is calibrated to a few of its labels with the
    other neighbours as prior, and decides its other items. So what is forecast is an error on items
    that the model has not seen, for the number of labels and not for unlimited ones.

    Parameters
    ----------
    prior : Prior
        Of the neighbours; see `btdagg.fit_prior`.
    n_items : int
        Items of the job, without the labelled ones.
    n_votes : sequence of int, optional
        Numbers of votes to compare, each from 1 to what the neighbours have: their half and all of
        them unless given.
    n_labels : sequence of int, optional
        Numbers of labels to compare, 0 or more; those of 0, 10, 50 and 200 that are at most half
        of the labels of a neighbour unless given.
    price : float
        Of one vote, in any currency.
    step : int
        Votes that come together, as of both orders; numbers of votes are multiples of it.
    n_draws : int
        How often labels are drawn from each neighbour.
    seed : int

    Returns
    -------
    Forecast

    Raises
    ------
    InputError
        If a number is out of range, or no neighbour has so many votes and labels.

    Notes
    -----
    The mean is right if the new task is to its neighbours as they are to one another; the range
    says how far tasks lie apart. With one neighbour the weak prior takes the place of the others.

    Examples
    --------
    >>> from btdagg.datasets import simulate
    >>> names = ("rb2-math", "rb2-focus", "rb2-factuality")
    >>> several = {name: simulate(name, 200, 8, seed=1) for name in names}
    >>> from btdagg import fit_prior
    >>> prior = fit_prior({k: (v.counts, v.labels) for k, v in several.items()})
    >>> found = forecast(prior, n_items=1000, n_votes=[4, 8], n_labels=[10])
    >>> [row.n for row in found.rows]
    [4, 8]
    """
    if not isinstance(prior, Prior):
        raise InputError(f"prior is {prior!r}, expected a btdagg.Prior")
    n_items, seed = as_integer(n_items, "n_items", 1), as_integer(seed, "seed", 0)
    n_draws, step = as_integer(n_draws, "n_draws", 1), as_integer(step, "step", 1)
    per_vote = as_number(price, "price")
    if per_vote < 0:
        raise InputError(f"price is {price!r}, expected a number of at least 0")
    most = prior.n_votes
    if n_votes is None:
        n_votes = sorted({max(1, most // part // step) * step for part in (2, 1)})
    if n_labels is None:
        labelled = max(one.n_labels for one in prior.neighbours.values())
        n_labels = [size for size in _SIZES if size <= labelled / 2]
    budgets = numbers(n_votes, "n_votes", 1, most)
    sizes = numbers(n_labels, "n_labels", 0)
    rows = []
    for n in budgets:
        for size in sizes:
            seen = []
            for place, (name, one) in enumerate(sorted(prior.neighbours.items())):
                rest: Prior | Literal["weak"] = "weak"
                if len(prior.neighbours) > 1:
                    rest = prior.without(name)
                rng = np.random.default_rng([seed, n, size, place])
                drawn = [_seen_on(one, rest, n, step, size, prior, rng) for _ in range(n_draws)]
                several = [pair for pair in drawn if pair is not None]
                if several:
                    seen.append(np.mean(several, axis=0))
            if not seen:
                raise InputError(
                    f"no neighbour has an item with {n} votes beyond {size} labelled ones"
                )
            mae, votes = np.mean(seen, axis=0)
            errors = [float(error) for error, _ in seen]
            calls = n_items * votes + size * n
            row = (float(mae), min(errors), max(errors), float(votes), float(calls))
            rows.append(ForecastRow(n, size, *row, float(calls * per_vote)))
    return Forecast(tuple(rows), prior.names)


def _seen_on(
    one: Neighbour,
    rest: Prior | Literal["weak"],
    n: int,
    step: int,
    size: int,
    prior: Prior,
    rng: np.random.Generator,
) -> tuple[float, float] | None:
    """Error and votes on the items of a neighbour that is calibrated to some of its labels."""
    votes, labels = _drawn(one, n, rng)
    if len(labels) <= size:
        return None
    counts = np.stack([(votes == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=1)
    known = (counts[:size], labels[:size]) if size else (counts, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = calibrate(*known, prior=rest, alpha=prior.alpha, kappa=prior.kappa).model
    followed = StoppingRule.lossless(model, n, step=step).follow(votes[size:])
    error = np.abs(followed.labels - labels[size:]).mean()
    return float(error), float(followed.n_votes.mean())


def _drawn(
    one: Neighbour, n: int, rng: np.random.Generator
) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """Items of a neighbour in random order: `n` of their votes, (m, n), and their labels."""
    rows, columns = np.nonzero((one.counts.sum(axis=1) >= n)[:, None] & (one.labels > 0))
    items = np.repeat(np.arange(len(rows)), one.labels[rows, columns])
    items = rng.permutation(items)[:_MOST_ITEMS]
    counts = one.counts[rows[items]]
    # Votes of an item in a row and then in random order, of which the first are taken.
    ends = counts.cumsum(axis=1)
    places = np.arange(int(ends[:, 2].max(initial=0)))
    votes = np.stack([(places >= ends[:, [side]]) for side in (0, 1)]).sum(axis=0) - 1
    keys = np.where(places < ends[:, [2]], rng.random(votes.shape), np.inf)
    order = keys.argsort(axis=1)[:, :n]
    labels = (columns[items] - 1).astype(np.int8)
    return np.take_along_axis(votes, order, axis=1).astype(np.int8), labels
