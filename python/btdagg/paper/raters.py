"""Leave one rater out: score each human rater, and the judge, against the other raters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import (
    InputError,
    Labels,
    majority_vote,
    mean_absolute_error,
    pairwise_accuracy,
)
from btdagg._util.errors import expect, forbid
from btdagg._util.lazy import pl
from btdagg._util.readable import Readable
from btdagg.evaluation import CROSS_FITTED, cross_scores
from btdagg.methods import Calibrated, Decided, Needs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from btdagg import Protocol, Votes
    from btdagg.evaluation import Cell, Interval
    from btdagg.methods import Aggregator
    from btdagg.paper.ratings import Ratings

_OWN = "\0own"  # decisions of the rater; no column of a source is called that

# Means of the same scores in another order differ by no more than this.
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class RaterScores(Readable):
    """One rater against the majority vote of the others.

    Attributes
    ----------
    rater : str or int
    n_items : int
        Items rated by this rater and another, with votes of the judge if there is one.
    n_alone, n_without_votes : int
        Items left out because no other rater rated them, or the judge has no votes on them.
    n_shared : int
        Items on which two labels share the most votes of the others.
    accuracy, mae : float
        Accuracy and error of the rater on all scored items.
    compared : Cell or None
        Judge and rater on the evaluation sets of the splits of those items; None without a judge.
    """

    rater: Any
    n_items: int
    n_alone: int
    n_shared: int
    n_without_votes: int
    accuracy: float
    mae: float
    compared: Cell | None

    @property
    def accuracy_gain(self) -> Interval | None:
        """Judge's accuracy minus the rater's, with a 95% interval for new items or over splits."""
        return None if self.compared is None else self.compared.difference(0, 1, "accuracy")

    @property
    def mae_gain(self) -> Interval | None:
        """Rater's MAE minus the judge's, with a 95% interval as of `accuracy_gain`."""
        return None if self.compared is None else self.compared.difference(1, 0)

    @property
    def wins(self) -> bool:
        """Whether the judge has the higher mean accuracy; equal ones are no win."""
        return self.accuracy_gain is not None and self.accuracy_gain.mean > _ROUNDING

    @property
    def wins_by_mae(self) -> bool:
        """Whether the judge has the lower mean MAE; equal ones are no win."""
        return self.mae_gain is not None and self.mae_gain.mean > _ROUNDING


@dataclass(frozen=True, eq=False)
class LeaveOneOut(Readable):
    """Scores of all raters, in the order in which they are first seen.

    Attributes
    ----------
    raters : tuple of RaterScores
    skipped : tuple of (rater, reason)
        Raters that could not be scored.
    """

    raters: tuple[RaterScores, ...]
    skipped: tuple[tuple[Any, str], ...]

    @property
    def n_wins(self) -> int:
        """Raters whom the judge surpasses in mean accuracy; 0 without a judge."""
        return sum(scores.wins for scores in self.raters)

    @property
    def n_wins_by_mae(self) -> int:
        """Raters whom the judge surpasses in mean MAE; 0 without a judge."""
        return sum(scores.wins_by_mae for scores in self.raters)


def leave_one_rater_out(
    ratings: Ratings,
    votes: Votes | None = None,
    aggregator: Aggregator | None = None,
    *,
    n_votes: int | None = None,
    confidence: str | None = None,
    group: str | None = None,
    protocol: Protocol = CROSS_FITTED,
    progress: Callable[[], object] | None = None,
) -> LeaveOneOut:
    """Score every rater, and a judge on the same items, against the other raters' majority vote.

    The gold label of an item is the majority vote of its other raters, a tie where two labels share
    the most votes; items without others are left out. On each split the judge is calibrated on a
    part of the items, and judge and rater are scored on the rest.

    Parameters
    ----------
    ratings : Ratings
        Votes of the raters. A missing vote means that the rater has not rated the item.
    votes : Votes, optional
        Votes of one judge. Without them only the raters are compared.
    aggregator : Aggregator, optional
        From the judge's votes to labels; by default the paper's fit. See `evaluate` for `Decided`.
    n_votes : int, optional
        Use the judge's first `n_votes` on each item; by default all. Raters and splits do not
        change.
    confidence : str, optional
        See `Votes.items`.
    group : str, optional
        Column of the ratings, such as the source text, by which items are split together.
    protocol : Protocol
        At least two splits of each rater's items, by default cross-fitting; unused without a judge.
    progress : callable, optional
        Called after each rater.

    The paper's leave-one-out protocol and its table by rater. The paper does not define the
    majority of raters who disagree, nor mention items without another rater.
    """
    # Checked here, so that a bad argument is not reported as a fault of the data.
    protocol.require_intervals()
    method: Aggregator = Calibrated(prior=None) if aggregator is None else aggregator
    decided_by = getattr(method, "needs", Needs()).decisions
    needed: dict[str, Any] = {"n_votes": n_votes, "confidence": confidence}
    needed["decisions"] = () if decided_by is None else (decided_by,)
    if votes is not None:
        _require_judge(votes, **needed)
    groups = None if group is None else _groups(ratings, group)
    raters, skipped = [], []
    for place, rater in enumerate(ratings.raters.tolist()):
        try:
            sheet, rater_votes, n_alone, n_shared = _sheet(ratings, place, groups)
            gold, compared, n_without_votes = sheet.labels, None, 0
            if votes is not None:
                own_of = dict(zip(map(str, sheet.ids.tolist()), rater_votes.tolist(), strict=True))
                both = votes.labelled(sheet, **needed)
                gold, n_without_votes = both.label, both.origin.n_without_votes
                rater_votes = np.array([own_of[str(item)] for item in both.ids.tolist()])
                items = both.with_facts({f"decision {_OWN}": rater_votes.astype(float)})
                judged = [method, Decided(_OWN)]
                ((compared,),) = cross_scores([items], judged, protocol.untested)
            scores = pairwise_accuracy(gold, rater_votes), mean_absolute_error(gold, rater_votes)
            left_out = n_alone, n_shared, n_without_votes
            raters.append(RaterScores(rater, len(rater_votes), *left_out, *scores, compared))
        except InputError as error:
            skipped.append((rater, str(error)))
        if progress is not None:
            progress()
    if not raters:
        rater, reason = skipped[0]
        raise InputError(f"no rater could be scored; {rater}: {reason}")
    return LeaveOneOut(tuple(raters), tuple(skipped))


def _sheet(
    ratings: Ratings, place: int, groups: dict[Any, str] | None
) -> tuple[Labels, NDArray[np.int8], int, int]:
    """Labels of a rater's items by the others, own votes, items of no other, and equal votes."""
    mine = ratings.present[:, place]
    rater_votes = ratings.votes[:, place]
    other_counts = ratings.counts()
    other_counts[np.flatnonzero(mine), rater_votes[mine] + 1] -= 1
    rated = mine & (other_counts.sum(axis=1) > 0)
    undecided = rated & ((other_counts == other_counts.max(axis=1, keepdims=True)).sum(axis=1) > 1)
    forbid(not rated.any(), f"{ratings.source}: no item of this rater has a label by other raters")
    items = ratings.items[rated].tolist()
    columns = {"item": items, "label": majority_vote(other_counts)[rated]}
    if groups is not None:
        columns["group"] = [groups[item] for item in items]
    frame = pl.DataFrame(columns)
    labels = Labels(frame, ratings.source, unlabelled=frame.clear())
    return labels, rater_votes[rated], int((mine & ~rated).sum()), int(undecided.sum())


def _require_judge(votes: Votes, **needed: Any) -> None:
    """Check once, and not rater by rater, that these are votes of one judge with what is needed."""
    judges = [*votes.values("judge")] if "judge" in votes.columns else []
    several = " and ".join(map(repr, judges[:2]))
    expected = "votes of one judge; filter by judge"
    expect(len(judges) < 2, "votes", f"those of several judges, {several}", expected)
    items = votes.items(**needed)
    forbid(not items.counts.any(), f"{votes.source}: none of the {len(items)} items has a vote")


def _groups(ratings: Ratings, column: str) -> dict[Any, str]:
    groups: dict[Any, str] = {}
    for (group,), part in ratings.partition([column]):
        for item in part.items.tolist():
            if not group or groups.setdefault(item, group) != group:
                text = f"item {item!r} has several groups or none, expected one group"
                raise InputError(text, source=ratings.source, column=column)
    return groups
