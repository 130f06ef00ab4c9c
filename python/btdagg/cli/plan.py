"""`btdagg plan`: make a stopping rule, and forecast what it saves."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import btdagg
from btdagg._util.outputs import require_file
from btdagg.cli.common import (
    Columns,
    Filters,
    Json,
    at_least,
    differences_said,
    files_read,
    filtered,
    note,
    out,
    print_json,
    say_differences,
    tables_of,
    what_is_pooled,
)
from btdagg.cli.prior import AnyPrior, PriorOption, chosen_prior, neighbours_of
from btdagg.votes.join import with_task
from btdagg.votes.provenance import Provenance

if TYPE_CHECKING:
    from btdagg import online

_N_CURVE = 6  # numbers of votes in the curve


def plan(
    context: typer.Context,
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A model from btdagg calibrate; left out, with VOTES and LABELS, before the first "
            "label, when --prior is a file.",
            show_default=False,
        ),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Argument(
            metavar="[VOTES]", help="As btdagg calibrate takes them.", show_default=False
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Argument(
            metavar="[LABELS]", help="As btdagg calibrate takes them.", show_default=False
        ),
    ] = None,
    n_votes: Annotated[
        int | None,
        typer.Option(
            "-n",
            help="Votes per item at most: the number that the model is calibrated for.",
            show_default=False,
        ),
    ] = None,
    stop: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="lossless (the very labels of all votes), epsilon=0.05 (stop where the chance "
            "that all votes would change the label is below that), price=0.01 (stop when a "
            "further vote removes less than this much expected absolute error) or budget=5 "
            "(at most this many votes per item on average, where they help most).",
        ),
    ] = "lossless",
    step: Annotated[
        int,
        typer.Option(
            help="Number of votes that come together: 2 if every pair is shown in both orders."
        ),
    ] = 1,
    n_items: Annotated[int, typer.Option("--items", help="Number of items in the job.")] = 1000,
    vote_price: Annotated[
        float | None,
        typer.Option(
            "--vote-price",
            help="Price of one vote, in any currency: the plan then has prices.",
            show_default=False,
        ),
    ] = None,
    prior: PriorOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the rule to this JSON file.",
            show_default="not written",
            rich_help_panel="Output",
        ),
    ] = None,
    filters: Filters = None,
    columns: Columns = None,
    json: Json = False,
) -> None:
    """Make a stopping rule and forecast what it saves, before the first vote of a job.

    The labelled items show how votes are distributed. From that the command forecasts votes, calls
    and errors for each rule and number of votes, and how much more labels would help.

    Before the first label give --prior a saved prior, and no files: the command then forecasts
    errors and votes from the prior's tasks, each calibrated to a few of its labels with the others
    as neighbours.

    Example: btdagg plan model.json votes.csv labels.csv --filter judge=gpt-5.4 -n 8
    --stop epsilon=0.05 -o rule.json
    """
    if n_votes is None:
        raise btdagg.InputError("-n is missing, expected the votes per item at most")
    at_least(n_votes, "-n", 1)
    at_least(step, "--step", 1)
    at_least(n_items, "--items", 1)
    if vote_price is not None and not vote_price >= 0:
        raise btdagg.InputError(f"--vote-price is {vote_price}, expected at least 0")
    if model is None:
        if output is not None or stop != "lossless":
            raise btdagg.InputError("MODEL is missing: a rule is made from MODEL, VOTES and LABELS")
        _before_the_first_label(
            prior, n_votes, step=step, n_items=n_items, price=vote_price or 0.0, json=json
        )
        return
    if votes is None or labels is None:
        raise btdagg.InputError("MODEL is given, expected VOTES and LABELS too")
    if output is not None:
        require_file("--output", output, reads=files_read(context, "output"))
    fitted = btdagg.DavidsonModel.load(model)
    if fitted.provenance is not None and fitted.provenance.n_votes not in (None, n_votes):
        n_fitted = fitted.provenance.n_votes
        raise btdagg.InputError(
            f"-n is {n_votes}, and the model was calibrated at {n_fitted} votes an item; expected "
            f"-n {n_fitted}, or a model that is calibrated at {n_votes}"
        )
    raw_votes, raw_labels = tables_of(columns, votes, labels)
    gold = btdagg.read_labels(raw_labels)
    everything = with_task(btdagg.read_votes(raw_votes), gold)
    table = filtered(everything, filters)
    items = table.labelled(gold)
    others = neighbours_of(everything, table, gold) if prior in (None, "neighbours") else None
    known = chosen_prior(prior, others)
    # Imported here, so that the other commands begin without it.
    from btdagg import online
    from btdagg.online.rule import RuleKind

    try:
        kind = RuleKind.parse(stop)
    except btdagg.InputError as error:
        raise btdagg.InputError(f"--{error}") from None
    epsilon = kind.value if kind.name == "epsilon" else None
    if fitted.provenance is not None:
        say_differences(fitted.provenance.other_values(Provenance.of(table).as_dict()))
    with differences_said():
        rule = kind.learn(fitted, n_votes, items.counts, items.labels, step=step)
    planned = online.plan(
        items.counts,
        items.labels,
        n_items=n_items,
        n_votes=_curve(n_votes, step),
        price=vote_price or 0.0,
        rule=rule,
        prior=known,
    )
    row = next(row for row in planned.budgets if (row.n, row.rule) == (n_votes, rule.kind))
    calls = n_items * row.votes  # of the job alone, without its labelled items
    found = replace(row, calls=calls, price=calls * (vote_price or 0.0))
    if output is not None:
        rule.save(output)
    remarks = [*what_is_pooled(table, "plans for"), *items.remarks]
    for remark in remarks:
        note(remark)
    if json:
        print_json(
            {
                "rule": {
                    "kind": rule.kind,
                    "n": rule.n,
                    "step": rule.step,
                    "epsilon": rule.epsilon,
                    "price": rule.price,
                },
                "expected": _as_json(found, vote_price),
                "budgets": [_as_json(row, vote_price) for row in planned.budgets],
                "labels": [
                    {"n_labels": size, "excess_mae": excess} for size, excess in planned.labels
                ],
                "n_labels": len(items.labels),
                "remarks": remarks,
                "output": None if output is None else str(output),
            }
        )
        return
    bound = "" if rule.price is None else f", price {rule.price:.4g}"
    bound = bound if epsilon is None else f", epsilon {epsilon:g}"
    out.print(f"{rule.kind} rule{bound}: at most {rule.n} votes per item")
    out.print(
        f"expected: {found.votes:.2f} votes ({1 - found.votes / rule.n:.0%} fewer), "
        f"{found.change_rate:.1%} of labels differ from those of {rule.n} votes, MAE "
        f"{found.mae:.4f}"
    )
    paid = "" if vote_price is None else f", price {found.price:,.2f}"
    out.print(f"{n_items:,} items: {found.calls:,.0f} votes{paid}")
    if output is not None:
        out.print(f"wrote {output}", soft_wrap=True)
    out.print(
        f"\nBy number of votes and rule, of the model at {rule.n} votes and of models fitted to "
        "these items at fewer; calls include those for a calibration set:",
        soft_wrap=True,
    )
    out.print(str(planned), soft_wrap=True)
    out.print(f"labels are for calibrations {_words_of(known)}", soft_wrap=True)


def _as_json(row: online.PlannedBudget, vote_price: float | None) -> dict[str, object]:
    """Return a row as plain values, without a price where none was given."""
    return asdict(row) | ({"price": None} if vote_price is None else {})


def _words_of(prior: AnyPrior) -> str:
    """Say with which prior models are calibrated in the forecast."""
    if prior is None:
        return "by the paper's fit, without a prior"
    if not isinstance(prior, btdagg.Prior):
        return "with the weak prior; --prior none is the paper's fit"
    several = "neighbour" if len(prior.names) == 1 else "neighbours"
    return f"with {len(prior.names)} {several} as prior; --prior none is the paper's fit"


def _before_the_first_label(
    prior: str | None, n_votes: int, *, step: int, n_items: int, price: float, json: bool
) -> None:
    """Print what votes and labels will give on a task like those of a saved prior."""
    if prior in (None, "weak", "neighbours", "none"):
        raise btdagg.InputError(
            f"--prior is {prior or 'missing'}, and without MODEL, VOTES and LABELS the plan is "
            "from the tasks of a prior; expected the file of a saved prior"
        )
    from btdagg import online

    known = chosen_prior(prior, None)
    assert isinstance(known, btdagg.Prior)  # since a file is nothing else
    if n_votes > known.n_votes:
        raise btdagg.InputError(
            f"-n is {n_votes}, and the tasks of {prior} have {known.n_votes} an item; expected at "
            "most as many"
        )
    if n_votes % step:
        raise btdagg.InputError(f"-n is {n_votes}, expected a multiple of --step, {step}")
    found = online.forecast(
        known, n_items=n_items, n_votes=_curve(n_votes, step), price=price, step=step
    )
    if json:
        rows = [asdict(row) | ({} if price else {"price": None}) for row in found.rows]
        print_json({"forecast": rows, "neighbours": list(found.neighbours)})
        return
    out.print(str(found), soft_wrap=True)
    several = "task" if len(found.neighbours) == 1 else "tasks"
    note(
        f"seen on {len(found.neighbours)} {several}, each with the others as prior: the mean "
        "error, and the least and the most of a task; votes and calls are those of the lossless "
        "rule"
    )


def _curve(n: int, step: int) -> list[int]:
    """Return numbers of votes up to n, evenly and in steps."""
    return sorted(
        {max(1, round(n * part / _N_CURVE / step)) * step for part in range(1, _N_CURVE + 1)}
    )
