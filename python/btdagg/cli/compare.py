"""`btdagg compare`: which of two ways of deciding the same items is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, cast

import typer

import btdagg
from btdagg import remarks
from btdagg._util.errors import InputError, expect, forbid
from btdagg.cli.common import (
    Data,
    Json,
    LabelsFile,
    Reading,
    ReadingWithCovariates,
    VotesFile,
    criteria_of,
    note,
    parse_filters,
    print_json,
    say,
    what_is_pooled,
)
from btdagg.votes.join import remarks_on_raters
from btdagg.votes.verdicts import about_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from btdagg.methods import Aggregator
    from btdagg.questions.compare import Comparison
    from btdagg.votes.items import Items
    from btdagg.votes.strength import StrengthKind
    from btdagg.votes.votes import Votes

Settings: TypeAlias = "dict[str, list[str]]"

_WAY = (
    "by settings such as n=3 (the first three votes of each item), strength=none "
    "(or margin, strength, probabilities, confidence), method=NAME of btdagg evaluate (or panel, "
    "which has parameters for each judge), covariates=NAMES or none, and any column of the votes, "
    "such as judge=gpt-5.4. Repeat for more."
)


def compare(
    reading: ReadingWithCovariates,
    votes: VotesFile = None,
    labels: LabelsFile = None,
    first: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help=f"Decide {_WAY}",
            show_default="votes without their strength; or the first of two judges or templates",
        ),
    ] = None,
    second: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="The other way, in the same form.",
            show_default="votes with their strength; or the second judge or template",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say which of two ways of deciding the same items is better.

    Compare two judges or templates, votes with and without strength, three votes or six, or two
    methods.
    Both use ten-fold cross-validation with the same folds, so that no item is decided by a model
    calibrated on its own group. Models have the weak prior unless a method is named. With
    --covariates alone, the comparison is of votes with and without them; --first n=1 --first
    covariates=auto --second n=8 shows how many votes covariates replace. The interval of the
    difference is for new items, or with --set population=finite for these items.

    Example: btdagg compare votes.parquet labels.csv --first n=3 --second n=6
    """
    data = reading.data(votes, labels)
    both = parse_filters(first, "first"), parse_filters(second, "second")
    known: Any = reading.covariates
    names: list[str] | None = None
    if not any(both) and known is not None:
        known, names = (None, known), ["votes alone", "with covariates"]
    elif not any(both):
        both = _usual(data.votes, reading.project.setting("strength"))
    elif both[0] == both[1]:
        raise InputError("--first and --second are the same, expected two different settings")
    names = names or [_name(*pair, data.votes) for pair in (both, both[::-1])]
    covariates = [way.pop("covariates", None) for way in both]
    if any(covariates):
        of_ways = (known if columns is None else ",".join(columns) for columns in covariates)
        known = tuple(None if text == "none" else text for text in of_ways)
    is_said = any("task" in settings for settings in both)
    tasks = ([] if is_said else criteria_of(data.votes)) or [""]
    results, skipped, notes, remarks_by_task = {}, {}, [], {}
    for task in tasks:
        ways = [way | ({"task": [task]} if task else {}) for way in both]
        where = f"{task}: " if task else ""
        try:
            results[task], remarks = _compared(ways, names, data, reading, known)
            remarks_by_task[task] = remarks
            notes += [f"{where}{remark}" if where else remark for remark in remarks]
        except InputError as error:
            if not task:
                raise
            skipped[task] = f"{task}: not compared: {error}"
    if not results:
        raise InputError(f"nothing to compare: {skipped[tasks[0]]}")
    notes += skipped.values()
    # The criteria on which the better way errs most are first.
    order = sorted(results, key=lambda task: -min(interval.mean for interval in results[task].mae))
    if json:
        shown = {
            task: {**results[task].as_dict(), "remarks": remarks_by_task[task]} for task in order
        }
        print_json({**(shown.get("") or {"tasks": shown}), "remarks": notes})
        return
    for task in order:
        result = results[task]
        grouped = "" if result.n_groups == result.n_items else f" in {result.n_groups} groups"
        say(f"{task}: {result.sentence()}".removeprefix(": "))
        say(
            f"{result.n_items} labelled items{grouped}, each decided by models calibrated on "
            f"{result.n_calibration:.0f} others; p = {result.pvalue:.2g}"
        )
    note(*notes)


def _compared(
    both: Sequence[Settings],
    names: Sequence[str],
    data: Data,
    reading: Reading,
    covariates: Any,
) -> tuple[Comparison, list[str]]:
    ways = [_way(settings, data, reading) for settings in both]
    result = btdagg.compare(
        ways[0][0],
        ways[1][0],
        data.gold,
        methods=(ways[0][1], ways[1][1]),
        n_votes=(ways[0][2], ways[1][2]),
        names=(names[0], names[1]),
        population=reading.population,
        covariates=covariates,
    )
    about = [*remarks_on_raters(data.gold, ways[0][3]), *about_words(data.votes)]
    for way, *_, table in ways:
        apart = () if way is table else ("judge",)  # a panel
        about += what_is_pooled(table, "takes", apart)
    for number, what in (
        (result.n_only_first, f"labelled items have no votes of {result.names[1]}"),
        (result.n_only_second, f"labelled items have no votes of {result.names[0]}"),
        (result.n_unlabelled, "items have votes but no label"),
        (result.n_fewer, f"labelled items lack votes of {' or '.join(result.names)}"),
    ):
        about += [remarks.left_out_items(number, what)] if number else []
    if (other := result.other_difference) is not None:
        where = "of these items" if reading.population == "new" else "of new items like these"
        about.append(remarks.other_difference(where, *other))
    texts = [*about, *(remark.replace("n_votes=", "n=") for remark in result.remarks)]
    return result, list(dict.fromkeys(texts))


def _usual(votes: Votes, strength: str | None) -> tuple[Settings, Settings]:
    if votes.kind != "none":
        return {"strength": ["none"]}, {}
    for column in ("judge", "template"):
        values = [*votes.values(column).drop_nulls().sort()] if column in votes.columns else []
        if len(values) == 2:
            return {column: values[:1]}, {column: values[1:]}
    has = "whole votes by --set strength=none" if strength == "none" else "no vote strength"
    raise InputError(
        f"{votes.source} has {has} and not exactly two judges or templates; say what to compare, "
        "such as --first n=3 --second n=6 or --first judge=NAME --second judge=NAME"
    )


def _way(
    settings: Settings, data: Data, reading: Reading
) -> tuple[Votes | Items, Aggregator | None, int | None, Votes]:
    from btdagg.methods import by_name

    settings_left = dict(settings)
    for name in ("n", "method", "strength"):
        forbid(
            len(settings_left.get(name, ())) > 1,
            f"{name} has several values in one of the two ways, expected one",
        )
    (kind,), (method,), (n_votes,) = (
        settings_left.pop(k, [None]) for k in ("strength", "method", "n")
    )
    table = data.votes
    if kind == "none":
        table = table.signs()
    elif kind is not None:
        table = btdagg.read_votes(
            table,
            strength=cast("StrengthKind", kind),
            full_margin=reading.project.setting("full_margin"),
        )
    table = table.filter(settings_left) if settings_left else table
    number = None
    if n_votes is not None:
        expect(n_votes.isdecimal() and int(n_votes) != 0, "n", n_votes, "a whole number above 0")
        number = int(n_votes)
    scales = table.scale, data.gold.scale
    if method == "panel" and table.scale.mirrored:
        items = table.items(panel="judge", n_votes=number)
        if number is not None:
            items = items[(items.counts.sum(axis=2) >= number).all(axis=1)]
        return items, None, None, table
    return table, None if method is None else by_name([method], *scales)[0], number, table


def _name(settings: Settings, other: Settings, votes: Votes) -> str:
    signs = {"strength": ["none"]}
    if not settings:
        return "strength" if other == signs and votes.kind != "none" else "all votes"
    if settings == signs:
        return "whole votes"
    return " ".join(f"{key}={','.join(values)}" for key, values in settings.items())
