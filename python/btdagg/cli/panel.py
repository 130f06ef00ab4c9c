"""`btdagg evaluate --panel`: a panel beside its judges, with what each costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from btdagg._core import InputError
from btdagg.cli.common import note, out, print_json, progress_bar
from btdagg.cli.score_table import evaluation_as_json, print_table
from btdagg.evaluation.panel import evaluate_panel
from btdagg.methods import Davidson

if TYPE_CHECKING:
    from btdagg.evaluation import Protocol
    from btdagg.votes import Labels, Votes


def refuse_beside_panel(given: Mapping[str, object]) -> None:
    """Refuse options that say something of other methods, or ask for their report.

    Raises
    ------
    InputError
        If one has a value.
    """
    for option, value in given.items():
        if value is not None:
            raise InputError(
                f"{option} is given with --panel, which compares the panel, its judges and their "
                "pooled votes and nothing else; want one of the two"
            )


def show_panel(
    votes: Votes,
    labels: Labels,
    *,
    panel: str,
    by: Sequence[str] | None,
    n_votes: Sequence[int] | None,
    prior: Literal["weak"] | None,
    protocol: Protocol,
    json: bool,
    settings: Mapping[str, Any],
) -> None:
    """Compare a panel with its judges and print the scores and the votes of a label."""
    with progress_bar("evaluating") as progress:
        scores, cost = evaluate_panel(
            votes,
            labels,
            panel=panel.strip().lower(),
            by=by,
            n_votes=n_votes,
            prior=prior,
            protocol=protocol,
            progress=progress,
        )
    n_unlabelled = labels.n_missing
    if json:
        found = evaluation_as_json(scores, **settings, panel=panel, n_unlabelled=n_unlabelled)
        print_json({**found, "votes_per_item": cost})
        return
    print_table(scores)
    costs = ", ".join(f"{name} {spent:.1f}" for name, spent in cost.items())
    alone = Davidson(prior=prior).name
    out.print(f"judges and pooled votes by themselves: {alone}", soft_wrap=True)
    out.print(f"cost, in votes of a label: {costs}", soft_wrap=True)
    if n_unlabelled:
        note(f"{n_unlabelled} rows of {labels.source} have no label and are left out")
