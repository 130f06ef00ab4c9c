"""`btdagg calibrate`: fit a model to votes and labels."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import btdagg
from btdagg._util.errors import expect
from btdagg.cli.common import (
    FirstVotes,
    Json,
    Reading,
    ReadingWithCovariates,
    VotesFile,
    keep_what_is_no_model,
    note,
    print_json,
    say,
    what_is_pooled,
)
from btdagg.cli.flags import FILE, CommandLine
from btdagg.cli.prior import (
    PriorOption,
    chosen_prior,
    neighbours_of,
    what_was_done,
)
from btdagg.model.calibration import quiet
from btdagg.model.covariates import used_in_words
from btdagg.votes.provenance import Provenance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from btdagg.votes.items import Items
    from btdagg.votes.votes import Votes


def calibrate(
    typed: CommandLine,
    reading: ReadingWithCovariates,
    votes: VotesFile = None,
    labels: Annotated[
        Path | None,
        typer.Argument(
            metavar="LABELS",
            help="Gold labels (columns item, label; optional group, task).",
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Write the model to this JSON file."),
        FILE,
    ] = Path("model.json"),
    n_votes: FirstVotes = None,
    prior: PriorOption = None,
    json: Json = False,
) -> None:
    """Fit the model to the votes of labelled items and write it as JSON.

    Ten labelled items are enough if the files also hold other tasks or judges; otherwise label a
    few dozen. All votes that pass the filters are pooled, so filter for one judge and one task. The
    other tasks, judges and criteria then serve as neighbours, which inform the prior.

    Example: btdagg calibrate votes.csv labels.csv --filter judge=gpt-5.4 -o model.json
    """
    keep_what_is_no_model(output, typed)
    panel = reading.panel
    expect(panel is None or prior in (None, "weak"), "prior", prior, "weak or unset with a panel")
    is_alone = panel is not None or prior not in (None, "neighbours")
    table, items, neighbours, about = _read(votes, labels, reading, n_votes, is_alone)
    fitted_prior = chosen_prior(prior, neighbours, items.scale, items.label_scale)
    how: Any = {
        "prior": fitted_prior,
        "provenance": replace(Provenance.of(table), n_votes=n_votes),
    }
    fit: Any = quiet(btdagg.calibrate)  # warnings come below
    calibration, items = fit(items, **how), items.labelled()
    done = "" if panel else what_was_done(fitted_prior, prior, calibration)
    calibration.model.save(output)
    remarks = [*what_is_pooled(table, "fits", [panel or ""]), *items.origin.remarks, *about]
    note(
        *remarks,
        *(f"warning: {text.in_options}" for text in calibration.warnings),
    )
    if json:
        print_json(
            {
                **_as_json(calibration),
                **({"prior": done} if fitted_prior and done else {}),
                "n_unlabelled": items.origin.n_unlabelled,
                "n_without_votes": items.origin.n_without_votes,
                "n_missing": table.n_missing,
                "remarks": remarks,
                "output": str(output),
            }
        )
        return
    say(*str(replace(calibration, warnings=())).split("\n"))
    if calibration.model.covariates:
        say(used_in_words(calibration.model, calibration.weights()))
    if done and prior != "none":
        say(done)
    if items.origin.n_unlabelled or items.origin.n_without_votes:
        say(
            f"left out: {items.origin.n_unlabelled} items without a label, "
            f"{items.origin.n_without_votes} labels without votes"
        )
    say(f"wrote {output}")


def _read(
    votes: str | None,
    labels: Path | None,
    reading: Reading,
    n_votes: int | None,
    is_alone: bool,
) -> tuple[Votes, Items, Mapping[str, Any], Sequence[str]]:
    from btdagg.questions.compare import about_strength

    panel, covariates = reading.panel, reading.covariates
    data = reading.data(votes, labels)
    if covariates is None and panel is None:
        items = data.votes.labelled(data.gold, n_votes)
    else:
        items = data.votes.items(data.gold, n_votes=n_votes, panel=panel, drawn=False)
    if covariates is not None:
        items = items.with_covariates(covariates)
    neighbours = {} if is_alone else neighbours_of(data, n_votes)
    if data.votes.kind == "none" or covariates is not None or panel is not None:
        return data.votes, items, neighbours, []
    return data.votes, items, neighbours, about_strength(items, warn=True)


def _as_json(calibration: btdagg.Calibration) -> dict[str, Any]:
    fields = asdict(replace(calibration, _alone=None))
    fields.pop("_alone")
    if not fields["model"].get("covariates"):
        fields["model"].pop("covariates", None)
    elif weights := calibration.weights():
        fields["weights"] = {name: weight._asdict() for name, weight in weights.items()}
    if intervals := calibration.intervals():
        fields["intervals"] = {name: interval._asdict() for name, interval in intervals.items()}
    fields["nu"] = getattr(calibration.model, "nu", None)
    return {k: v for k, v in fields.items() if v not in (None, {}) and v == v}  # not NaN either
