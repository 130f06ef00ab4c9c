"""`btdagg rejudge`: ask a new judge about the labelled items, and carry the calibration over."""

from __future__ import annotations

import os
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import btdagg
from btdagg._util.errors import expect, forbid
from btdagg._util.outputs import require_file, require_no_link
from btdagg.cli.common import (
    Filters,
    Json,
    LabelsFile,
    Reading,
    VotesFile,
    keep_what_is_no_model,
    note,
    print_json,
    say,
    what_is_pooled,
)
from btdagg.cli.flags import FILE
from btdagg.cli.judge_output import run_asking, say_estimate, say_run, status_of
from btdagg.cli.judge_settings import JobFlags
from btdagg.model.calibration import quiet
from btdagg.votes.provenance import COLUMNS

if TYPE_CHECKING:
    import polars as pl

    from btdagg.judge.client import Setup
    from btdagg.judge.pairs import Pairs
    from btdagg.votes.votes import Votes


def rejudge(
    flags: JobFlags,
    votes: VotesFile = None,
    labels: LabelsFile = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="Pairs or responses to judge, as for btdagg judge.", show_default="of btdagg.toml"
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Write the model of the new judge to this JSON file."),
        FILE,
    ] = Path("rejudged.json"),
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            "-s",
            help="File of the new votes (SQLite), or postgresql://user@host/database.",
            show_default="rejudged.db",
        ),
    ] = None,
    n_items: Annotated[
        int | None,
        typer.Option(
            "--items", min=1, help="Number of labelled items to ask about.", show_default="all"
        ),
    ] = None,
    filters: Filters = None,
    json: Json = False,
) -> int:
    """Ask a new judge about the labelled items, and calibrate it with the old one as neighbour.

    VOTES are those of the old judge. Labels stay valid when the judge changes; only the votes on
    labelled items are needed again. Items are judged in random order, so a later run with more
    --items continues this one. The command writes the model to --output, and says whether the new
    judge is better, whether the old model still fits, and how many items it would take to tell.

    Example: btdagg rejudge votes.csv labels.csv --pairs pairs.jsonl --model gpt-5.4-mini --items 50
    """
    from btdagg.judge.jobs import judge_pairs
    from btdagg.judge.pairs import read_pairs
    from btdagg.judge.store.store import VoteStore, votes_frame
    from btdagg.votes.source import read_table

    keep_what_is_no_model(output, flags.typed)
    settings = flags.settings()
    place = store or "rejudged.db"
    if not store:
        require_no_link(place)
    require_file("output", output, reads=[place])
    judging = settings.judging
    reading = Reading(typed=flags.typed, keys=flags.keys, filters=filters)
    data = reading.data(votes, labels)
    old = data.votes
    place_of_votes = str(flags.project.place("votes", votes))
    expected = "a store other than that of the old votes"
    expect(os.path.realpath(place) != os.path.realpath(place_of_votes), "store", place, expected)
    note(*what_is_pooled(old, "takes"))
    if reading.covariates or reading.panel:
        note("the new model uses votes only; covariates and panel of the project file are ignored")
    forbid(
        judging.scale.points != old.scale.points,
        f"template {judging.setup.template} asks for {judging.scale.in_words}, expected "
        f"{old.scale.in_words} as in {old.source}",
    )
    place_of_pairs = flags.project.place("pairs", pairs)
    (raw,) = flags.tables(settings.columns, ("pairs", place_of_pairs))
    if "criterion" in raw.columns:
        (raw,) = reading.filtered(raw)
    everything = read_pairs(raw, criteria=settings.criteria)
    ids = old.items(data.gold).labelled().ids
    chosen = _drawn(everything, ids, n_items)
    judging.prompt.check(chosen)
    same = _same_judge(old, judging.setup)
    if same:
        note(f"warning: {same}")
    if flags.dry_run:
        say_estimate(judging, lambda _: chosen, settings.base_url, place, json)
        return 0
    with VoteStore(place, keep_exchanges=not settings.drop_exchanges) as opened:
        ask = partial(judge_pairs, chosen, judging)
        run = run_asking(ask, opened, judging.n * len(chosen), settings)
        new = votes_frame(opened, setup=judging.setup)
    status = status_of(run, settings.allow_missing)
    if not json:
        say_run(run, settings, place)
    rows = _with_all_votes(new, chosen, judging.n)
    forbid(
        rows.is_empty(), f"{place}: no item has its {judging.n} votes yet; run the command again"
    )
    origin = old.provenance
    how = origin.how_to_read(read_table(rows, [])) | {"scale": old.scale}
    judges = origin.judge
    names = (judges[0] if len(judges) == 1 else "the old judge", judging.setup.judge)
    names = names if names[0] != names[1] else (names[0], f"{names[1]} again")
    found = quiet(btdagg.recalibrate)(old, btdagg.read_votes(rows, **how), data.gold, names=names)
    costs = [_cost(table) for table in (rows, old.frame)]
    if json:
        cost = dict(zip(("cost_per_vote", "old_cost_per_vote"), costs, strict=True))
        found.model.save(output)
        print_json({**found.as_dict(), **cost, "model": str(output), "run": run.as_dict()})
        return status
    say(found.sentence())
    if costs[0] is not None:
        old_cost = "" if costs[1] is None else f", {costs[1]:.3g} with the old judge"
        say(f"a vote costs {costs[0]:.3g}{old_cost}")
    note(*found.remarks)
    found.model.save(output)
    say(f"wrote {output}")
    return status


def _drawn(pairs: Pairs, ids: Any, n_items: int | None) -> Pairs:
    """The pairs of labelled items in an order by chance, which more labels do not change."""
    import polars as pl

    names = pl.Series("item", [str(item) for item in ids])
    frame = pairs.frame.filter(pl.col("item").cast(pl.String).is_in(names.implode()))
    forbid(
        frame.is_empty(),
        f"{pairs.source}: none of its items has both a label and votes of the old judge",
    )
    drawn = frame["item"].cast(pl.String).unique().to_list()
    order = sorted(drawn, key=lambda item: sha256(item.encode()).digest())[:n_items]
    place = pl.DataFrame({"item": order}).with_row_index("place")
    frame = frame.with_columns(pl.col("item").cast(pl.String))
    return pairs.with_data(frame.join(place, on="item").sort("place").drop("place"))


def _with_all_votes(new: pl.DataFrame, pairs: Pairs, n: int) -> pl.DataFrame:
    import polars as pl

    rows = new.filter(pl.col("item").is_in(pairs.frame["item"].implode()))
    return rows.filter(pl.len().over("item") >= n)


def _same_judge(old: Votes, setup: Setup) -> str:
    provenance, values = old.provenance, {name: getattr(setup, name) for name in COLUMNS[:3]}
    if values["temperature"] is None:
        values["temperature"] = "default"
    if not provenance.judge or provenance.other_values(values):
        return ""
    return (
        f"votes of {old.source} are by {setup.judge} too, with the same template and temperature; "
        "unless the provider has changed that model, there is nothing to carry over"
    )


def _cost(votes: pl.DataFrame) -> float | None:
    mean: Any = votes["cost"].cast(float).mean() if "cost" in votes.columns else None
    return None if mean is None else float(mean)
