"""Positional bias: against slow loops, the paper's figures, and real votes."""

import math
import random
from collections import Counter, defaultdict

import polars as pl
import pytest

from btdagg import PASS_FAIL, InputError, read_labels, read_votes
from btdagg.evaluation import positional_bias
from refusals import refused


def table(rows):
    return read_votes(pl.DataFrame(rows, infer_schema_length=None))


def shown_votes(first, second, tie, **more):
    """As many votes for the first, the second and neither, half of them under either order."""
    rows = []
    for preferred, number in ((1, first), (-1, second), (0, tie)):
        for place in range(number):
            order = "AB" if place % 2 else "BA"
            vote = preferred if order == "AB" else -preferred
            rows.append({"order": order, "vote": vote, **more})
    return [{"item": f"i{place % 336}", **row} for place, row in enumerate(rows)]


def test_the_papers_figures_of_positional_bias():
    rows = [
        *shown_votes(385, 287, 0, judge="gemini", setting="forced"),
        *shown_votes(309, 363, 0, judge="qwen", setting="forced"),
        *shown_votes(220, 199, 253, judge="gemini", setting="ties"),
        *shown_votes(322, 318, 32, judge="qwen", setting="ties"),
    ]
    found = {b.key: b for b in positional_bias(table(rows), by=["judge", "setting"])}
    gemini = found["gemini", "forced"]
    assert (gemini.first, gemini.second, gemini.tie) == (385, 287, 0)
    assert gemini.n_items == 336
    assert [
        round(100 * found[judge, setting].bias, 2)
        for judge in ("gemini", "qwen")
        for setting in ("forced", "ties")
    ] == [14.58, 5.01, -8.04, 0.62]  # its table has 3.1 for 5.01: over ties too, 21 / 672


def slow_bias(votes):
    """First, second, tie, and the half width, by loops; votes are (item, order, vote)."""
    by_item = defaultdict(Counter)
    for item, order, vote in votes:
        by_item[item][vote if order == "AB" else -vote] += 1
    total = sum(by_item.values(), Counter())
    first, second = total[1], total[-1]
    bias = (first - second) / (first + second)
    m, square = 0, 0.0
    for counter in by_item.values():
        if counter[1] + counter[-1]:
            m += 1
            square += (counter[1] - counter[-1] - bias * (counter[1] + counter[-1])) ** 2
    half = 1.96 * math.sqrt(m / (m - 1) * square) / (first + second)
    return first, second, total[0], bias, half


def test_bias_is_that_of_a_loop_and_missing_votes_do_not_count():
    draw = random.Random(3)
    rows = [
        {
            "item": f"i{i}",
            "judge": j,
            "order": o,
            "sample": s,
            "vote": draw.choice([-1, 0, 1, 1, None]),
        }
        for i in range(40)
        for j in "xy"
        for o in ("AB", "BA")
        for s in range(3)
    ]
    for found in positional_bias(table(rows)):
        mine = [row for row in rows if (row["judge"],) == found.key]
        there = [(r["item"], r["order"], r["vote"]) for r in mine if r["vote"] is not None]
        first, second, tie, bias, half = slow_bias(there)
        assert (found.first, found.second, found.tie) == (first, second, tie)
        assert found.n_missing == len(mine) - len(there)
        assert found.n_ab == sum(order == "AB" for _, order, _ in there)
        assert found.n_ab + found.n_ba == len(there)
        assert found.bias == pytest.approx(bias)
        assert found.interval == pytest.approx((bias, bias - half, bias + half))
    # Turning sides keeps the place: A becomes B, AB becomes BA.
    turned = [
        {**r, "order": r["order"][::-1], "vote": None if r["vote"] is None else -r["vote"]}
        for r in rows
    ]
    for one, two in zip(positional_bias(table(rows)), positional_bias(table(turned)), strict=True):
        assert (one.first, one.second, one.tie, one.interval) == (
            two.first, two.second, two.tie, two.interval
        )  # fmt: skip


def test_bias_where_there_is_nothing_to_divide_by():
    rows = {"item": [1, 2], "order": ["AB", "BA"], "vote": [0, 0]}
    (found,) = positional_bias(read_votes(rows))
    assert (found.tie, found.bias, found.interval, found.key) == (2, None, None, ())
    (found,) = positional_bias(read_votes({**rows, "vote": [1, 0]}))
    assert (found.bias, found.interval) == (1.0, None)


def test_bias_among_gold_ties_and_what_is_wrong():
    rows = read_votes({"item": [1, 2, 3], "order": ["AB"] * 3, "vote": [1, -1, 1]})
    labels = read_labels({"item": ["1", "2", "3"], "label": [0, 0, 1]})
    (found,) = positional_bias(rows, gold_ties=labels)
    assert (found.first, found.second, found.n_items) == (1, 1, 2)
    with pytest.raises(InputError, match=r"no item with votes has a label that is a tie$"):
        positional_bias(rows, gold_ties=read_labels({"item": [1], "label": [1]}))
    with pytest.raises(InputError, match=r"no column 'order'"):
        positional_bias(read_votes({"item": [1], "vote": [1]}))
    scores = read_votes({"item": [1], "order": ["AB"], "vote": [0]}, scale=PASS_FAIL)
    with refused("scale", got="0,1 (fail, pass)", expected="for the bias of positions"):
        positional_bias(scores)
    with refused("by", got="judge"):
        positional_bias(rows, by="judge")
