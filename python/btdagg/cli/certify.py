"""`btdagg certify`: which labels can be used without a look, and which items to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import btdagg
from btdagg._util.errors import InputError
from btdagg._util.files import write_table
from btdagg.cli.common import (
    FirstVotes,
    Json,
    LabelsFile,
    OwnModel,
    Reading,
    VotesFile,
    differences_said,
    model_or_panel,
    note,
    print_json,
    say,
    what_is_pooled,
)
from btdagg.cli.flags import FILE, TABLE
from btdagg.cli.reporting import ReportOption, say_where
from btdagg.questions.review import worth_a_look


def certify(
    reading: Reading,
    reporting: ReportOption,
    votes: VotesFile = None,
    labels: LabelsFile = None,
    agreement: Annotated[
        float, typer.Option(help="Share of trusted labels that must agree with people.")
    ] = 0.8,
    confidence: Annotated[float, typer.Option(help="Probability with which that must hold.")] = 0.9,
    within: Annotated[
        int,
        typer.Option(
            help="For grades: two labels agree if they are at most this many grades apart."
        ),
    ] = 0,
    model: OwnModel = None,
    n_votes: FirstVotes = None,
    people: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Also pick this share of the items for human review, such as 10%: those where "
            "review lowers the error most. Needs --to-label.",
        ),
    ] = None,
    to_label: Annotated[
        Path | None,
        typer.Option(help="Write the items for review to this table, for btdagg label --drawn."),
        TABLE,
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the certificate to this JSON file.",
        ),
        FILE,
    ] = None,
    json: Json = False,
) -> None:
    """Certify which labels agree with people as often as asked, from the labels of some items.

    The labelled items must be a random sample, such as btdagg choose draws. The certificate is
    about the trusted items as a whole: with probability --confidence their labels agree with people
    at least as often as --agreement says. If no labels can be certified, the command says about how
    many labels it would take.

    btdagg decide reads the certificate and adds the column trusted. Items picked by --people have
    probability 0, so their labels never count for a certificate.

    Example: btdagg certify votes.csv labels.csv --agreement 0.8 -o certificate.json
    """
    if (people is None) != (to_label is None):
        raise InputError("people and to_label must be given together", argument="people")
    share = None if people is None else _share(people)
    fitted = None if model is None else model_or_panel(model)
    data = reading.data(votes, labels, fitted)
    folder = reporting.open(reading.project, f"Trusted labels of {Path(data.votes.source).name}")
    panel, judges = reading.panel, () if fitted is None else fitted.judges
    items = data.votes.items(data.gold, panel=panel, judges=judges, n_votes=n_votes)
    looks, origin = None, data.votes.provenance
    how: Any = {"agreement": agreement, "confidence": confidence, "within": within}
    with differences_said():
        known = reading.covariates_for(fitted)
        context: Any = {"model": fitted, "provenance": origin, "covariates": known}
        certificate = btdagg.certify(items, **how, **context)
        if share is not None:
            looks = worth_a_look(items, share=share, model=fitted)
    pooled = what_is_pooled(data.votes, "takes", [panel or "judge" * bool(items.judges)])
    note(*pooled, *certificate.remarks)
    import polars as pl

    if looks is not None and to_label is not None:
        frame = items.id_frame[looks.rows].with_columns(  # which no sample by chance has
            probability=0.0, design=pl.lit("people"), fall=looks.falls, label=None
        )
        write_table(frame, to_label, to_label.suffix)
    if output is not None:
        certificate.save(output)
    if json:
        shown = {name: value for name, value in certificate.as_dict().items() if name != "model"}
        if looks is not None:
            shown |= {"looks": len(looks.rows), "error_left": looks.after._asdict()}
        print_json(shown)
    else:
        say(certificate.sentence() + (f"; wrote {output}" if output is not None else ""))
        if looks is not None:
            say(f"{looks}; wrote {to_label}")
    if folder is not None:
        from btdagg.report.sections import write_result

        with folder:
            write_result(folder, certificate)
        say_where(folder)


def _share(text: str) -> float:
    try:
        return float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        expected = "a share of the items, such as 10%"
        raise InputError(argument="people", got=text, expected=expected) from None
