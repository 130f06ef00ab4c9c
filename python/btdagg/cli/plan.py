"""`btdagg plan`: make a stopping rule, and forecast what it saves."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

import btdagg
from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.files import load_any
from btdagg._util.wording import counted
from btdagg.cli.common import (
    Json,
    Reading,
    differences_said,
    note,
    print_json,
    say,
    say_differences,
    what_is_pooled,
)
from btdagg.cli.flags import FILE
from btdagg.cli.prior import AnyPrior, PriorOption, chosen_prior, neighbours_of, words_of

_N_CURVE = 6  # numbers of votes in the curve


def plan(
    n_votes: Annotated[
        int,
        typer.Option(
            "-n",
            min=1,
            help="Maximum votes per item, for which the model is calibrated.",
        ),
    ],
    reading: Reading,
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL",
            help="A model from btdagg calibrate. Before the first label leave out MODEL, VOTES and "
            "LABELS, and give --prior a file.",
        ),
    ] = None,
    votes: Annotated[
        str | None,
        typer.Argument(
            metavar="VOTES", help="As for btdagg calibrate.", show_default="of btdagg.toml"
        ),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Argument(metavar="LABELS", help="As for btdagg calibrate.", show_default=False),
    ] = None,
    stop: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="lossless (the same labels as with all votes), epsilon=0.05 (stop once the "
            "probability that all votes would change the label is below 0.05), price=0.01 "
            "(stop once a further vote lowers the expected absolute error by less than 0.01) "
            "or budget=5 (at most 5 votes per item on average, where they help most).",
        ),
    ] = "lossless",
    step: Annotated[
        int,
        typer.Option(
            min=1,
            help="Number of votes asked for at a time: 2 if every pair is shown in both orders.",
        ),
    ] = 1,
    n_items: Annotated[
        int, typer.Option("--items", min=1, help="Number of items in the job.")
    ] = 1000,
    drift: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Also say how many anchor items to judge again to detect drift, that is, a judge "
            "that begins to cast this share of its votes for the tie, or for one side, "
            "whatever it reads.",
            show_default="not asked",
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
        ),
        FILE,
    ] = None,
    json: Json = False,
) -> None:
    """Make a stopping rule and forecast what it saves, before the first vote of a job.

    The command uses the votes on labelled items to forecast votes, calls and errors for each rule
    and number of votes, and how much further labels would help. The job
    consists of new items; with --set population=finite the labelled items are among its --items,
    need no more votes and have no error. Before the first label give --prior a saved prior, and no
    other file: the forecast is then made from the prior's tasks, each calibrated to a few of its
    labels with the other tasks as neighbours.

    Example: btdagg plan model.json votes.csv labels.csv --filter judge=gpt-5.4 -n 8
    --stop epsilon=0.05 -o rule.json
    """
    population = reading.population
    if model is None:
        forbid(
            output is not None or stop != "lossless" or drift is not None,
            "MODEL is missing: a stopping rule is made from MODEL, VOTES and LABELS",
        )
        forbid(
            population != "new",
            "--set population=finite needs a pilot: give MODEL, VOTES and LABELS",
        )
        _before_the_first_label(prior, n_votes, step=step, n_items=n_items, json=json)
        return
    fitted = load_any(model, btdagg.DavidsonModel, btdagg.GradeModel)
    if fitted.provenance is not None and fitted.provenance.n_votes not in (None, n_votes):
        n_fitted = fitted.provenance.n_votes
        raise InputError(
            f"-n is {n_votes}, but the model was calibrated at {n_fitted} votes an item; use -n "
            f"{n_fitted}, or a model calibrated at {n_votes}"
        )
    data = reading.data(votes, labels, fitted)
    known = reading.covariates_for(fitted)
    if known is None:
        items = data.votes.labelled(data.gold)
    else:
        items = data.votes.items(data.gold, drawn=False)
        items = items.with_covariates(known, model=fitted).labelled()
    fitted_prior: AnyPrior = None
    of_prior = "with the prior of grades"
    expect(
        items.scale == fitted.scale, "scale", str(items.scale), f"that of {model}, {fitted.scale}"
    )
    if items.scale.mirrored:
        neighbours = neighbours_of(data) if prior in (None, "neighbours") else None
        fitted_prior = chosen_prior(prior, neighbours)
        of_prior = words_of(fitted_prior)
    elif prior is not None:
        raise InputError(argument="prior", got=prior, expected="none for grades")
    # Imported here, so that the other commands begin without it.
    from btdagg import online
    from btdagg.online.plans import WITH_COVARIATES
    from btdagg.online.rule import RuleKind

    kind = RuleKind.parse(stop)
    if fitted.provenance is not None:
        say_differences(fitted.provenance.other_values(data.votes.provenance.as_dict()))
    with differences_said():
        rule = kind.learn(fitted, n_votes, items.by_judge, items.label, step=step)
    planned = online.plan(
        items,
        n_items=n_items,
        n_votes=_curve(n_votes, step),
        price=0.0,
        rule=rule,
        prior=fitted_prior,
        population=population,
    )
    rule_name = rule.kind + WITH_COVARIATES * bool(fitted.covariates)
    expected = next(row for row in planned.budgets if (row.n, row.rule) == (n_votes, rule_name))
    anchors = None
    if drift is not None:
        expect(items.scale.mirrored, "drift", drift, "none for grades")
        distribution = rule.votes or online.fit_votes(items.by_judge, items.label)
        anchors = online.plan_anchors(distribution, n_votes=n_votes, drift=drift, within=n_items)
    # Of the job alone, without its labelled items.
    n_calls = (n_items - len(items.label) * (population == "finite")) * expected.votes
    if output is not None:
        rule.save(output)
    remarks = [*what_is_pooled(data.votes, "plans for"), *items.origin.remarks]
    note(*remarks)
    if json:
        names = ("kind", "n", "step", "epsilon", "price")
        print_json(
            {
                "rule": {name: getattr(rule, name) for name in names},
                "expected": {**_as_json(expected), "calls": n_calls},
                "budgets": [_as_json(row) for row in planned.budgets],
                "labels": [
                    {"n_labels": size, "excess_mae": excess} for size, excess in planned.labels
                ],
                **({"saved": planned.saved} if planned.saved else {}),
                **({} if anchors is None else {"anchors": anchors._asdict()}),
                "n_labels": len(items.label),
                "remarks": remarks,
                "output": None if output is None else str(output),
            }
        )
        return
    bound = "" if rule.price is None else f", price {rule.price:.4g}"
    bound = f", epsilon {kind.value:g}" if kind.name == "epsilon" else bound
    say(f"{rule.kind} rule{bound}: at most {rule.n} votes per item")
    say(
        f"expected: {expected.votes:.2f} votes ({1 - expected.votes / rule.n:.0%} fewer); "
        f"{expected.change_rate:.1%} of labels differ from those with {rule.n} votes, MAE "
        f"{expected.mae:.4f} ({expected.low:.3f} to {expected.high:.3f})"
    )
    say(f"{n_items:,} items: {n_calls:,.0f} votes")
    if anchors is not None:
        say(f"anchors: {anchors}")
    if output is not None:
        say(f"wrote {output}")
    from btdagg.cli.reporting import print_result

    say(
        "",
        f"Forecast by number of votes and rule. At {rule.n} votes the given model decides, at "
        "fewer one fitted to these items; calls include those for a calibration set:",
    )
    print_result(planned)
    say(f"numbers of labels are those to calibrate on; {of_prior}")


def _as_json(row: Any) -> dict[str, object]:
    fields = asdict(row)
    del fields["price"]
    return fields


def _before_the_first_label(
    option: str | None, n_votes: int, *, step: int, n_items: int, json: bool
) -> None:
    from btdagg import online

    prior = None if option in (None, "neighbours") else chosen_prior(option, None)
    if not isinstance(prior, btdagg.Prior):
        raise InputError(
            f"--prior is {option or 'missing'}, expected the file of a saved prior, since there "
            "are no MODEL, VOTES and LABELS"
        )
    expected = f"at most {prior.n_votes}, the votes of each item of {option}"
    expect(n_votes <= prior.n_votes, "n_votes", n_votes, expected)
    expect(n_votes % step == 0, "n_votes", n_votes, f"a multiple of --step, {step}")
    forecast = online.forecast(
        prior, n_items=n_items, n_votes=_curve(n_votes, step), price=0.0, step=step
    )
    if json:
        rows = [_as_json(row) for row in forecast.rows]
        print_json({"forecast": rows, "neighbours": list(forecast.neighbours)})
        return
    say(*str(forecast).split("\n"))
    note(
        f"forecast from {counted(len(forecast.neighbours), 'task')}, each calibrated with the "
        "others as prior: the mean, lowest and highest error of these tasks; votes and calls are "
        "those with the lossless rule"
    )


def _curve(n: int, step: int) -> list[int]:
    return sorted(
        {max(1, round(n * part / _N_CURVE / step)) * step for part in range(1, _N_CURVE + 1)}
    )
