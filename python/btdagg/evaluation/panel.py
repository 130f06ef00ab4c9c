"""A panel beside each of its judges and their pooled votes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from btdagg._core import InputError
from btdagg._util.readable import readable
from btdagg.evaluation.evaluation import Options, Point, evaluate_at, numbers_of_votes
from btdagg.evaluation.parts import USUAL, LabelledItems, Part
from btdagg.evaluation.protocol import CrossFit, GroupTest, Protocol
from btdagg.methods import Aggregator, Davidson, MajorityVote, Panel
from btdagg.methods.panel import OneJudge
from btdagg.votes import Labels, Votes
from btdagg.votes.evidence import Evidence
from btdagg.votes.panel import panel_counts
from btdagg.votes.table import require

if TYPE_CHECKING:
    from btdagg.evaluation.scores import Scores


_FEW_REFITS = Protocol(CrossFit(n_refits=25), GroupTest())


def evaluate_panel(
    votes: Votes,
    labels: Labels,
    *,
    panel: str = "judge",
    by: Sequence[str] | None = None,
    n_votes: Sequence[int] | None = None,
    protocol: Protocol = _FEW_REFITS,
) -> Scores:
    """Compare a panel with each of its judges and with their pooled votes, on the same splits.

    Items are those on which any judge has voted. A judge alone calls the items that it has not seen
    a tie. Methods are ``panel``, the judges, ``pooled votes`` and ``majority of pooled votes``.

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
    protocol : Protocol
        Cross-fitting by default, with 25 refits: a panel is slow to fit.
    """
    require(votes, [panel])
    columns = [name for name in USUAL if name in (*votes.columns, *labels.columns)]
    by = [name for name in columns if name not in (panel, "judge")] if by is None else list(by)
    if panel in by:
        raise InputError(f"by has {panel!r}, whose values are the judges of the panel")
    judges = tuple(map(str, votes.values(panel).unique().drop_nulls().sort()))
    if len(judges) < 2:
        raise InputError(f"{votes.source}: column {panel!r} has one judge, expected at least two")
    pooled = Davidson("pooled votes"), MajorityVote("majority of pooled votes")
    alone = [OneJudge(judge, judge) for judge in judges]
    methods: list[Aggregator] = [Panel(judges), *alone, *pooled]

    def of_panel(parts: Iterable[Part]) -> list[_PanelPart]:
        return [_PanelPart(part.key, part.votes, part.labels, judges, panel) for part in parts]

    points = [Point(number, None, protocol) for number in numbers_of_votes(n_votes)]
    return evaluate_at(
        points, votes, labels, Options(by=by, aggregators=methods), regrouped=of_panel
    )


@readable
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
    ) -> LabelledItems:
        """Join the votes of every judge with the labels of their items; see `Part.labelled`."""
        ids, counts, _ = panel_counts(
            self.votes, judges=self.judges, column=self.column, n_votes=n_votes
        )
        by_judge = dict(zip(self.judges, np.swapaxes(counts, 0, 1), strict=True))
        evidence = Evidence(counts.sum(axis=1), ids=ids, by_judge=by_judge)
        return self._with_labels((ids, evidence))
