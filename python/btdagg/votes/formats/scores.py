"""Scores of single responses as votes on pairs of them."""

from __future__ import annotations

import polars as pl

from btdagg.votes.table import Table, refuse_duplicates

_KEY = ("group", "turn", "task", "judge", "rater", "template", "temperature", "sample")


def votes_of_scores(table: Table) -> pl.DataFrame:
    """Compare every two systems by their scores for a prompt: the k-th sample of one with the k-th.

    Parameters
    ----------
    table : Table
        Columns `group` (the prompt), `system` and `score` (Float64, null where there is none);
        `status` says why a score is missing, and what makes a sample the same sample is as in
        votes.

    Returns
    -------
    polars.DataFrame
        Votes of pairs, as `btdagg.votes.formats.frames` has them; `margin` is the difference of the
        scores in size.

    Raises
    ------
    InputError
        If a sample of a system has two scores; the message names the rows.
    """
    scores = table.frame
    key = [name for name in _KEY if name in scores and name != "sample"]
    if "sample" not in scores:
        place = pl.int_range(pl.len()).over(*key, "system")
        scores = scores.with_columns(sample=place)
    else:
        refuse_duplicates(table, [*key, "system", "sample"])
    key.append("sample")
    if "status" not in scores:
        scores = scores.with_columns(status=pl.lit(None, pl.String))
    scores = scores.with_row_index("place")
    other = scores.select(*key, "place", "system", "score", "status")
    both = scores.join(other, on=key, how="inner", nulls_equal=True, suffix="_b")
    both = both.filter(pl.col("system") < pl.col("system_b")).sort("place", "place_b")
    difference = pl.col("score") - pl.col("score_b")
    votes = both.with_columns(
        vote=difference.sign().cast(pl.Int8),
        margin=difference.abs(),
        status=pl.coalesce(
            pl.when(pl.col("score").is_null()).then("status"),
            pl.when(pl.col("score_b").is_null()).then("status_b"),
        ),
        system_a="system",
    )
    return votes.drop("place", "place_b", "system", "score", "score_b", "status_b")
