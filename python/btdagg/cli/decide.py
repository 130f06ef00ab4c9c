"""`btdagg decide`: label items by a model and their votes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import btdagg
from btdagg._util.errors import InputError, forbid
from btdagg._util.files import load_any, write_table
from btdagg.cli.common import (
    FirstVotes,
    Json,
    Reading,
    TableOutput,
    VotesFile,
    differences_said,
    note,
    print_json,
    say,
    what_is_pooled,
)
from btdagg.cli.console import write_data
from btdagg.votes.verdicts import about_words

if TYPE_CHECKING:
    import polars as pl

    from btdagg.estimates import Certificate
    from btdagg.online import StoppingRule
    from btdagg.result import Interval
    from btdagg.votes.labels import Labels
    from btdagg.votes.scale import Scale
    from btdagg.votes.table import Table
    from btdagg.votes.votes import Votes

# What a file may hold besides a model: imported if it does, since that takes long.
_OTHER_FORMATS = {
    "btdagg.stopping-rule": "btdagg.online:StoppingRule",
    "btdagg.certificate": "btdagg.estimates:Certificate",
}


def decide(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A model from btdagg calibrate, a stopping rule from btdagg plan, or a "
            "certificate from btdagg certify.",
        ),
    ],
    reading: Reading,
    votes: VotesFile = None,
    output: TableOutput = None,
    n_votes: FirstVotes = None,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            help="People's labels, which replace those of the model; may be repeated. Adds the "
            "column source, and prints the remaining error if some of the labels are of "
            "randomly drawn items.",
        ),
    ] = None,
    trust_unlike: Annotated[
        bool,
        typer.Option(
            "--trust-unlike",
            help="With a certificate: trust labels even if the votes look different from those "
            "that were certified.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Decide the label of every item and write it with its probabilities.

    The columns are item (or the columns of its key), label, the counts minus, tie, plus, and the
    probabilities p_minus, p_tie, p_plus. For grades there is a count of each vote, their mean, and
    p_1, p_2, ... --json prints the rows as JSON lines, or a summary if --output is given.

    If MODEL is a stopping rule, items may have fewer votes than its maximum. Instead of
    probabilities there are the columns settled (whether the rule stops at these votes) and, if the
    rule can tell, change_risk (for settled items, the probability that the maximum number of votes
    would give another label).

    If MODEL is a certificate, its model decides, and the column trusted says which labels need no
    human review. An item with fewer votes than the certified ones is trusted only if no further
    votes could change that. If a test at the 1% level finds that the votes as a whole differ from
    those that were certified, no label is trusted; --trust-unlike trusts them all the same.

    With --labels, the column source says whether a label comes from people or the model, and
    people's labels are trusted. The remaining error over all items is estimated from the labels of
    randomly drawn items, that is, without those that btdagg certify --people picked.

    A warning is printed if the votes differ from those that the model was fitted to: more votes on
    some item, fewer on every item, or another judge, template, temperature or task.

    Example: btdagg decide model.json votes.parquet -o decided.csv
    """
    with differences_said():
        kinds = (btdagg.DavidsonModel, btdagg.GradeModel, btdagg.PanelModel)
        decider: Any = load_any(model, *kinds, other_formats=_OTHER_FORMATS)
    kind = decider.FILE.what
    certificate: Certificate | None = decider if kind == "certificate" else None
    if trust_unlike and certificate is None:
        raise InputError(
            f"--trust-unlike needs a certificate (of btdagg certify), but {model} is a {kind}"
        )
    decider = decider if certificate is None else certificate.model
    rule: StoppingRule | None = decider if kind == "stopping rule" else None
    fitted: Any = decider if rule is None else rule.model
    scale: Scale = fitted.scale
    project = reading.project
    refresh = project.setting("standings", "model") == "votes"
    forbid(refresh and labels is not None, "--set standings=votes and --labels cannot be combined")
    people = (("labels", place) for place in labels or ())
    raw = project.read(("votes", project.place("votes", votes)), *people)
    raw_votes, *raw_labels = reading.filtered(*raw)
    table = reading.votes(raw_votes, fitted, is_decided=True)
    how = project.how_labelled | {"scale": fitted.label_scale}
    gold = None if labels is None else _labels_of_people(raw_labels, table, how)
    with differences_said():
        by = certificate or decider
        how_decided: Any = {"probabilities": rule is None, "refresh": refresh}
        how_decided["trust_unlike"] = trust_unlike
        frame = btdagg.decisions(table, by, n_votes=n_votes, **how_decided)
    if n_empty := frame["label"].null_count():
        note(f"items without a vote get no label: {n_empty}")
    pooled = what_is_pooled(table, "decides", ["judge"] if fitted.judges else [])
    note(*about_words(table), *pooled)
    error_left: Any = None
    if gold is not None:
        frame = _with_labels(frame, gold)
        if rule is None:
            exact = fitted if certificate is not None and certificate.is_exact else None
            error_left = _error_left(table, gold, fitted, n_votes, exact)
    left = []
    if error_left is not None:
        left = ["remaining mean absolute error: {:.3f} ({:.3f} to {:.3f})".format(*error_left)]
    parts = project.column("votes", "item") or []
    if len(parts) > 1:
        from btdagg.questions.decide import with_key

        frame = with_key(frame, raw_votes, {part.strip().lower(): part for part in parts})
    if output is None:
        write_data(frame.write_ndjson() if json else frame.write_csv())
        note(*left)
        return
    write_table(frame, output, output.suffix)
    every_label = fitted.label_scale.points
    by_label = {
        name: int((frame["label"] == label).sum())
        for name, label in zip(fitted.label_names, every_label, strict=True)
    }
    marked = {"trusted": int(frame["trusted"].sum())} if certificate is not None else {}
    if gold is not None:
        marked["by people"] = int((frame["source"] == "people").sum())
    if json:
        print_json(
            {
                "n_items": frame.height,
                "labels": by_label,
                "n_missing": table.n_missing,
                **{f"n_{name.replace(' ', '_')}": number for name, number in marked.items()},
                **({} if error_left is None else {"error_left": error_left._asdict()}),
                "output": str(output),
            }
        )
        return
    joint = " " if scale.mirrored else " as "
    of_side = {"minus": table.sides.b, "plus": table.sides.a} if table.own_sides else {}
    named = {f"for {of_side[n]}" if n in of_side else n: k for n, k in by_label.items()}
    shares = ", ".join(f"{count}{joint}{name}" for name, count in named.items())
    shares += "".join(f"; {number} {name}" for name, number in marked.items())
    say(f"decided {frame.height} items: {shares}; wrote {output}")
    for line in left:
        say(line)


def _labels_of_people(tables: list[Table], votes: Votes, how: dict[str, Any]) -> Labels:
    import polars as pl

    from btdagg.votes.join import labels_of
    from btdagg.votes.labels import read_labels
    from btdagg.votes.table import Table, refuse_duplicates

    files = tuple((table.source, table.frame.height) for table in tables)
    frame = pl.concat([table.frame for table in tables], how="diagonal_relaxed")
    source = ", ".join(name for name, _ in files)
    gold = labels_of(read_labels(Table(frame, source, files=files), **how), votes)
    refuse_duplicates(gold, ["item"])
    return gold


def _with_labels(frame: pl.DataFrame, gold: Labels) -> pl.DataFrame:
    from btdagg.questions.decide import with_people

    frame = with_people(frame, gold)
    n_others = len(gold.frame) - int((frame["source"] == "people").sum())
    forbid(
        n_others == len(gold.frame),
        f"{gold.source}: no label belongs to an item of the votes",
        "labels",
    )
    if n_others:
        note(f"labels of items without votes, not used: {n_others}")
    return frame


def _error_left(
    votes: Votes, gold: Labels, decider: Any, n_votes: int | None, exact: Any
) -> Interval | None:
    """Estimate the error over all items, of which those that people labelled have none."""
    import polars as pl

    from btdagg.estimates import worth_a_look

    try:
        items = votes.items(gold, judges=decider.judges, n_votes=n_votes)
        names, labelled = (frame["item"].cast(pl.String) for frame in (items.id_frame, gold.frame))
        rows = names.is_in(labelled.implode()).arg_true().to_numpy()
        looks = worth_a_look(items, rows=rows, model=exact)
    except InputError as error:
        note(f"the remaining error is not known: {error}")
        return None
    note(*looks.remarks)
    return looks.after
