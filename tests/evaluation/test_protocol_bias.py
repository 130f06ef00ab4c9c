"""Positional bias and tie rates: against slow loops, the paper's figures, and real votes."""

import csv
import math
import random
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest

from btdagg import InputError, majority_vote, read_labels, read_votes
from btdagg.evaluation import (
    Protocol,
    RandomSplits,
    compare,
    positional_bias,
    proportion_interval,
    share_interval,
)
from btdagg.methods import RoundedMedian
from btdagg.paper import compare_orders, tie_rates


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
    found = {(b.key, b.setting): b for b in positional_bias(table(rows), setting="setting")}
    gemini = found[("gemini",), "forced"]
    assert (gemini.first, gemini.second, gemini.tie) == (385, 287, 0)
    assert gemini.n_items == 336
    assert [
        round(100 * found[(judge,), setting].bias, 2)
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


@pytest.mark.soak
def test_the_interval_covers_as_it_says():
    random_state = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        # Items differ in how much better A is, and votes on an item share it.
        strength = random_state.normal(0, 1, 80)
        rows = {"item": [], "order": [], "vote": []}
        for item, value in enumerate(strength):
            for order, sign in (("AB", 1), ("BA", -1)):
                for _ in range(2):
                    first = random_state.random() < 1 / (1 + np.exp(-(sign * value + 0.5)))
                    rows["item"].append(item)
                    rows["order"].append(order)
                    rows["vote"].append(sign if first else -sign)
        (found,) = positional_bias(read_votes(rows))
        covered += found.interval.low <= 0.20741 <= found.interval.high
    assert 0.92 <= covered / 400 <= 0.98


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
    with pytest.raises(InputError, match=r"no column 'setting'"):
        positional_bias(rows, setting="setting")
    with pytest.raises(InputError, match=r"^by is 'judge', expected a sequence of column names$"):
        positional_bias(rows, by="judge")
    counts = read_votes({"item": [1], "minus": [1], "tie": [0], "plus": [0]})
    with pytest.raises(InputError, match=r"^votes is a table of counts, expected single votes"):
        positional_bias(counts)


# Errors by order


def ordered_rows(n_items=40, seed=2):
    draw = random.Random(seed)
    labels = {f"i{i}": draw.choice([-1, 0, 1]) for i in range(n_items)}
    rows = [
        {
            "item": i,
            "judge": "j",
            "order": o,
            "sample": s,
            "vote": draw.choice([y, y, 1 if o == "AB" else -1]),
        }
        for i, y in labels.items()
        for o in ("AB", "BA")
        for s in range(4)
    ]
    draw.shuffle(rows)
    return rows, labels


@pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")
def test_orders_are_compared_at_equal_numbers_of_votes():
    rows, gold = ordered_rows()
    for row in rows:
        if row["item"] == "i3" and row["order"] == "BA" and row["sample"] == 2:
            row["vote"] = None  # three left, fewer than four
    labels = read_labels({"item": list(gold), "label": list(gold.values())})
    found = compare_orders(
        table(rows), labels, 4, protocol=Protocol(RandomSplits(size=10, n_splits=3))
    )
    (orders,) = found.comparisons
    assert (found.by, found.skipped, orders.n_left_out) == (("judge",), (), 1)
    items = [i for i in dict.fromkeys(row["item"] for row in rows) if i != "i3"]
    for name, wanted in (
        ("first", {"AB": 4, "BA": 0}),
        ("second", {"AB": 0, "BA": 4}),
        ("balanced", {"AB": 2, "BA": 2}),
    ):
        counts = [
            [
                sum(
                    r["item"] == i and r["sample"] < wanted[r["order"]] and r["vote"] == label
                    for r in rows
                )
                for label in (-1, 0, 1)
            ]
            for i in items
        ]
        slow = compare(
            counts, [gold[i] for i in items], protocol=Protocol(RandomSplits(size=10, n_splits=3))
        )
        for one, two in zip(getattr(orders, name).methods, slow.methods, strict=True):
            assert (one.mae == two.mae).all()


def test_orders_say_what_is_wrong():
    rows, gold = ordered_rows()
    labels = read_labels({"item": list(gold), "label": list(gold.values())})
    with pytest.raises(
        InputError, match=r"^n_votes is 3, expected an even number: half in each order"
    ):
        compare_orders(table(rows), labels, 3)
    with pytest.raises(InputError, match=r"no item has 6 or more votes under each order: "):
        compare_orders(table(rows), labels, 6)
    with pytest.raises(InputError, match=r", j: all votes have order AB, expected both$"):
        compare_orders(table(rows).filter({"order": "AB"}), labels, 2)
    two = table([*rows, *({**row, "judge": "k"} for row in rows)])
    with pytest.raises(InputError, match=r"several values of judge are pooled; filter by judge"):
        compare_orders(two, labels, 2, by=[])


# Tie rates


def tie_rows(ties, total=672, n_items=336, **more):
    """So many ties among all votes, with as many votes of each item."""
    return [
        {"item": f"i{place % n_items}", "vote": 0 if place < ties else 1, **more}
        for place in range(total)
    ]


def percent(interval):
    return round(100 * interval.mean, 1), round(100 * (interval.mean - interval.low), 1)


def test_the_papers_table_of_tie_rates():
    # Ties of 672 votes that round to the paper's percentages.
    ties = {
        "gpt-oss": [130, 164, 145],
        "gemini": [83, 143, 253],
        "deepseek": [194, 199, 219],
    }
    rows = [
        row
        for judge, numbers in ties.items()
        for prompt, number in enumerate(numbers)
        for row in tie_rows(number, judge=judge, template=f"prompt_{prompt + 1}")
    ]
    found = tie_rates(table(rows))
    assert [[percent(cell) for cell in row] for row in found.cells] == [
        [(19.3, 4.2), (24.4, 4.6), (21.6, 4.4)],
        [(12.4, 3.5), (21.3, 4.4), (37.6, 5.2)],
        [(28.9, 4.8), (29.6, 4.9), (32.6, 5.0)],
    ]
    assert [percent(row) for row in found.row_averages] == [(21.8, 2.5), (23.8, 2.6), (30.4, 2.8)]
    assert [percent(column) for column in found.column_averages] == [
        (20.2, 2.5), (25.1, 2.7), (30.6, 2.8)
    ]  # fmt: skip
    assert percent(found.overall) == (25.3, 1.5)
    assert (found.n_items == 336).all()


def test_ties_are_counted_over_votes_or_items_and_missing_ones_are_not():
    draw = random.Random(5)
    rows = [
        {"item": i, "judge": j, "template": t, "vote": draw.choice([-1, 0, 1, None])}
        for i in range(30)
        for j, t in (("x", "p"), ("x", "q"), ("y", "q"))
        for _ in range(3)
    ]
    votes = table(rows)
    over_votes = tie_rates(votes)
    over_items, by_median = (
        tie_rates(votes, unit="items", aggregator=method) for method in (None, RoundedMedian())
    )
    assert over_votes.row_names == ("x", "y")
    assert over_votes.column_names == ("p", "q")
    assert over_votes.cells[1][0] is None
    assert over_votes.totals[1, 0] == 0
    for j, t in (("x", "p"), ("x", "q"), ("y", "q")):
        place = ("xy".index(j), "pq".index(t))
        by_item = defaultdict(list)
        for row in rows:
            if (row["judge"], row["template"]) == (j, t) and row["vote"] is not None:
                by_item[row["item"]].append(row["vote"])
        flat = [vote for several in by_item.values() for vote in several]
        assert over_votes.ties[place] == flat.count(0)
        assert over_votes.totals[place] == len(flat)
        assert over_votes.n_missing[place] == 90 - len(flat)
        for found in (over_votes, over_items):
            assert found.n_items[place] == len(by_item)
        counts = np.array([[v.count(k) for k in (-1, 0, 1)] for v in by_item.values()])
        assert over_items.totals[place] == len(by_item)
        assert over_items.ties[place] == (majority_vote(counts) == 0).sum()
        assert by_median.ties[place] == (RoundedMedian().decide(counts) == 0).sum()
        rate = flat.count(0) / len(flat)
        half = 1.96 * math.sqrt(rate * (1 - rate) / len(by_item))
        cell = over_votes.cells[place[0]][place[1]]
        assert cell == pytest.approx((rate, rate - half, rate + half))
    pooled = over_votes.ties.sum() / over_votes.totals.sum()
    assert over_votes.overall == pytest.approx(
        share_interval(pooled, int(over_votes.n_items.sum()))
    )


def test_tie_rates_among_gold_ties_and_what_is_wrong():
    votes = read_votes({"item": [1, 2], "judge": ["x"] * 2, "template": ["p"] * 2, "vote": [0, 1]})
    labels = read_labels({"item": [1, 2], "label": [1, 0]})
    assert tie_rates(votes, gold_ties=labels).cells[0][0] == proportion_interval(0, 1)
    with pytest.raises(
        InputError, match=r"^rows and columns are both 'judge', expected two columns$"
    ):
        tie_rates(votes, "judge", "judge")
    with pytest.raises(InputError, match=r"^unit is 'vote', expected 'votes' or 'items'$"):
        tie_rates(votes, unit="vote")
    with pytest.raises(InputError, match=r"^aggregator is given and unit is 'votes'"):
        tie_rates(votes, aggregator=RoundedMedian())
    with pytest.raises(InputError, match=r"no column 'order'"):
        tie_rates(votes, "order")
    missing = read_votes({"item": [1], "judge": ["x"], "template": ["p"], "vote": [None]})
    with pytest.raises(InputError, match=r": all votes are missing$"):
        tie_rates(missing)
    with pytest.raises(InputError, match=r"^share is 1.5, expected a number from 0 to 1$"):
        share_interval(1.5, 3)
    with pytest.raises(InputError, match=r"^n is 0, expected an integer of at least 1$"):
        share_interval(0.5, 0)


# Real votes


@pytest.mark.parametrize("name", ["mtbench_order", "vicuna80"])
def test_real_bias_and_tie_rates_are_those_of_a_loop(shared, name):
    path = shared / "data" / name / "votes.csv"
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["vote"]]
    votes = read_votes(path)
    found = positional_bias(votes)
    assert len(found) == len({row["judge"] for row in rows})
    for bias in found:
        mine = [
            (row["item"], row["order"], int(float(row["vote"])))
            for row in rows
            if (row["judge"],) == bias.key
        ]
        first, second, tie, value, half = slow_bias(mine)
        assert (bias.first, bias.second, bias.tie) == (first, second, tie)
        assert bias.interval == pytest.approx((value, value - half, value + half))
    table_ = tie_rates(votes, "judge", "order")
    for row, judge in enumerate(table_.row_names):
        for column, order in enumerate(table_.column_names):
            mine = [r for r in rows if (r["judge"], r["order"]) == (judge, order)]
            assert table_.ties[row, column] == sum(float(r["vote"]) == 0 for r in mine)
            assert table_.totals[row, column] == len(mine)


def test_gpt4_favours_the_first_answer_on_vicuna80(shared):
    votes = read_votes(shared / "data/vicuna80/votes.csv")
    labels = read_labels(shared / "data/vicuna80/labels.csv")
    for chosen in (None, labels):
        biases = {bias.key[0]: bias for bias in positional_bias(votes, gold_ties=chosen)}
        assert biases["gpt4"].interval.low > 0
        assert biases["bard"].interval.low > 0
        assert biases["claude"].interval.high < 0
