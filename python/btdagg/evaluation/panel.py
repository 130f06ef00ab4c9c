"""A panel beside each of its judges and their pooled votes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.evaluation.comparison import Options, Point, Start, evaluate_at, numbers_of_votes
from btdagg.evaluation.parts import USUAL, LabelledItems, Part
from btdagg.evaluation.protocol import CrossFit, GroupTest, Protocol
from btdagg.methods import Aggregator, Davidson, MajorityVote, Panel
from btdagg.methods.panel import OneJudge
from btdagg.votes import Labels, Votes
from btdagg.votes.evidence import Evidence
from btdagg.votes.join import LabelledCounts, join, require_labels
from btdagg.votes.panel import panel_counts
from btdagg.votes.table import require

if TYPE_CHECKING:
    from btdagg.evaluation.scores import Scores


_FEW_REFITS = Protocol(CrossFit(n_refits=25), GroupTest())


@readable
class PanelScores(NamedTuple):
    """Scores of a panel, of each of its judges, and of their pooled votes.

    Attributes
    ----------
    scores : Scores
        Methods are ``panel``, the judges, ``pooled votes`` and ``majority of pooled votes``.
    votes_per_item : dict of str to float
        What a label of each method costs: votes of a labelled item, on average over all parts, at
        the largest number of votes.
    """

    scores: Scores
    votes_per_item: dict[str, float]


def evaluate_panel(
    votes: Votes,
    labels: Labels,
    *,
    panel: str = "judge",
    by: Sequence[str] | None = None,
    n_votes: Sequence[int] | None = None,
    prior: Literal["weak"] | None = None,
    protocol: Protocol = _FEW_REFITS,
    progress: Start | None = None,
    partial: Callable[[Scores], object] | None = None,
) -> PanelScores:
    """Compare a panel with each of its judges and with their pooled votes, on the same splits.

    Items are those on which any judge has voted. A judge alone calls the items that it has not seen
    a tie.

    Parameters
    ----------
    votes : Votes
        Votes with a column of judges.
    labels : Labels
        Gold labels. Items of one `group` are split together.
    panel : str
        Column whose values are the judges.
    by : sequence of str, optional
        Columns that votes are grouped by, without that of the judges; by default task, if any.
    n_votes : sequence of int, optional
        Numbers of votes of each judge to compare at. By default all votes.
    prior : "weak", optional
        What each judge and the pooled votes are calibrated with; the paper's fit by default.
    protocol : Protocol
        Cross-fitting by default, with 25 refits: a panel is slow to fit.
    progress, partial
        See `evaluate`.
    """
    if not isinstance(votes, Votes):
        raise InputError(f"votes is a {type(votes).__name__}, expected what read_votes returns")
    require_labels(labels)
    require(votes, [panel])
    columns = [name for name in USUAL if name in (*votes.columns, *labels.columns)]
    by = [name for name in columns if name not in (panel, "judge")] if by is None else list(by)
    if panel in by:
        raise InputError(f"by has {panel!r}, whose values are the judges of the panel")
    judges = tuple(votes.values(panel).unique().drop_nulls().sort().to_list())
    if len(judges) < 2:
        raise InputError(f"{votes.source}: column {panel!r} has one judge, expected at least two")
    judges = tuple(map(str, judges))
    own = ("panel", "pooled votes", "majority of pooled votes")
    names = {judge: f"judge {judge}" if judge in own else judge for judge in judges}
    methods: list[Aggregator] = [
        Panel(judges),
        *(OneJudge(judge, names[judge], prior) for judge in judges),
        Davidson("pooled votes", prior=prior),
        MajorityVote("majority of pooled votes"),
    ]
    made: list[_PanelPart] = []

    def of_panel(parts: Iterable[Part]) -> list[_PanelPart]:
        made.extend(_PanelPart(part.key, part.votes, part.labels, judges, panel) for part in parts)
        return made

    points = [Point(number, None, protocol) for number in numbers_of_votes(n_votes)]
    options = Options(by=by, aggregators=methods, progress=progress)
    scores = evaluate_at(points, votes, labels, options, partial, of_panel)
    most = max((number for number in numbers_of_votes(n_votes) if number is not None), default=None)
    done = {cell.key for cell in scores.cells}
    cost = _mean_votes([part for part in made if part.key in done], judges, most)
    together = sum(cost.values())
    return PanelScores(
        scores,
        dict.fromkeys(own[:1], together)
        | {names[judge]: spent for judge, spent in cost.items()}
        | dict.fromkeys(own[1:], together),
    )


@dataclass(frozen=True, eq=False)
class _PanelPart(Part):
    """A part whose evidence has the votes of each judge."""

    judges: tuple[str, ...]
    column: str

    def labelled(
        self,
        n_votes: int | None = None,
        confidence: str | None = None,
        decisions: Iterable[str] = (),
    ) -> tuple[LabelledItems, LabelledCounts]:
        """Join the votes of every judge with the labels of their items; see `Part.labelled`."""
        ids, counts, _ = panel_counts(
            self.votes, judges=self.judges, column=self.column, n_votes=n_votes
        )
        by_judge = dict(zip(self.judges, np.swapaxes(counts, 0, 1), strict=True))
        evidence = Evidence(counts.sum(axis=1), ids=ids, by_judge=by_judge)
        items = join(self.votes, self.labels, (ids, evidence)).labelled()
        return LabelledItems(items.counts, items.labels, items.groups), items


def _mean_votes(
    parts: Sequence[_PanelPart], judges: Sequence[str], n_votes: int | None
) -> dict[str, float]:
    """Votes of a labelled item by judge, on average."""
    of_parts = [part.labelled(n_votes)[0].evidence for part in parts]
    n_items = sum(map(len, of_parts))
    return {
        judge: sum(float(evidence.by_judge[judge].sum()) for evidence in of_parts) / n_items
        for judge in judges
    }
