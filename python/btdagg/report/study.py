"""Data of the report of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

import numpy as np

from btdagg._util.errors import InputError
from btdagg._util.readable import Readable
from btdagg.evaluation.protocol import CROSS_FITTED, Protocol
from btdagg.evaluation.wording import key_of
from btdagg.methods import Aggregator
from btdagg.methods.base import needs_of
from btdagg.methods.registry import aggregators_or_usual
from btdagg.votes.scale import PAIRWISE, POINTWISE
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    from btdagg.evaluation.scores import Scores
    from btdagg.report.folder import ReportFolder
    from btdagg.votes.labels import Labels

Result = TypeVar("Result")
Step: TypeAlias = Callable[[], object]
Start: TypeAlias = Callable[[int], Step]
Progress: TypeAlias = Callable[[str], AbstractContextManager[Start]]
"""Takes what is going on; what its context gives is called with the number of steps to come."""


class Effort(NamedTuple):
    """Sweeps of a report: `n_steps` numbers of votes, `sizes` of calibration sets, `n_refits`."""

    n_steps: int
    sizes: tuple[int, ...]
    n_refits: int
    has_neighbours: bool


_EFFORTS = {
    PAIRWISE: Effort(10, tuple(range(20, 201, 20)), 100, has_neighbours=True),  # the paper's sizes
    # A fit of grades takes longer, and its neighbours are fitted anew in each split.
    POINTWISE: Effort(4, (20, 50, 100, 200), 25, has_neighbours=False),
}


@contextmanager
def silent(what: str) -> Iterator[Start]:
    """Show no progress."""
    yield lambda total: lambda: None


@dataclass(frozen=True, eq=False)
class Study(Readable):
    """The scores of an evaluation, and its (filtered) votes, labels and settings."""

    # `varied` has for each column of an ablation the votes without the filters on it; the rest is
    # as of `btdagg.evaluate`.

    scores: Scores
    votes: Votes
    labels: Labels
    varied: Mapping[str, Votes] = field(default_factory=dict)
    n_votes: Sequence[int] | None = None
    aggregators: Sequence[Aggregator] | None = None
    confidence: str | None = None
    protocol: Protocol = CROSS_FITTED
    neighbours: Votes | None = None
    covariates: str | None = None
    progress: Progress = silent

    @property
    def methods(self) -> tuple[Aggregator, ...]:
        """The aggregators, the usual two unless given."""
        return aggregators_or_usual(self.aggregators, self.votes.scale, self.labels.scale)

    @property
    def effort(self) -> Effort:
        """The quantity that sweeps go over."""
        return _EFFORTS[self.votes.scale.mode]

    @property
    def own_methods(self) -> tuple[Aggregator, ...]:
        """Methods that decide by votes: decisions of others may be there for some numbers only."""
        return tuple(method for method in self.methods if needs_of(method).decisions is None)

    def run(
        self,
        what: str,
        evaluate: Callable[..., Result],
        votes: object,
        /,
        *more: object,
        **options: object,
    ) -> Result:
        """Run a function of `btdagg.evaluation` on some votes and the labels, showing progress."""
        needs = ((method, needs_of(method)) for method in self.own_methods)
        around = self.effort.has_neighbours
        quick = tuple(m for m, of in needs if not of.time and (around or not of.neighbours))
        usual = {
            "by": self.scores.by,
            "aggregators": quick or self.own_methods,
            "confidence": self.confidence,
            "protocol": self.protocol,
            "neighbours": self.neighbours,
        }
        with self.progress(what) as progress:
            return evaluate(votes, self.labels, *more, **{**usual, **options}, progress=progress)

    def skip_left_out(self, report: ReportFolder, scores: Scores, what: Sequence[str] = ()) -> None:
        """Record parts that `scores` lack, but for those of which nothing could be made at all."""
        for key, reason in scores.skipped:
            if not any(key[: len(part)] == part for part, _ in self.scores.skipped):
                with report.skipping(", ".join((*what, key_of(key)))):
                    raise InputError(reason)

    @property
    def most_votes(self) -> int | None:
        """The largest number of votes that was asked for; None for all."""
        return None if self.n_votes is None else max(self.n_votes)

    def budgets(self) -> list[int]:
        """Numbers of votes for a sweep, even ones where votes have an order."""
        if self.votes.are_counts:
            return []
        most = max(int(items.pooled.sum(axis=1).max()) for items in self.scores.items.values())
        step = 2 if "order" in self.votes.columns else 1
        points, n_steps = np.arange(step, most + 1, step), self.effort.n_steps
        if len(points) > n_steps:  # each as many times the one before
            points = points[
                np.unique(np.geomspace(1, len(points), n_steps).round().astype(int)) - 1
            ]
        return [int(point) for point in points]

    def calibration_sizes(self) -> list[int]:
        """Numbers of labels for a sweep, up to half the items of the smallest part with two."""
        halves, sizes = [len(items) / 2 for items in self.scores.items.values()], self.effort.sizes
        fewest = min((half for half in halves if half >= sizes[1]), default=0)
        return [size for size in sizes if size <= fewest]
