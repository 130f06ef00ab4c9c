"""What `btdagg paper votes` tabulates: tie rates, and errors by the order of showing."""

import random

import polars as pl
import pytest

from btdagg import InputError, Protocol, read_labels, read_votes
from btdagg.evaluation import RandomSplits, share_interval
from btdagg.methods import by_name
from btdagg.paper import compare_orders, tie_rates
from draws import comparison_of


def table(rows):
    return read_votes(pl.DataFrame(rows, infer_schema_length=None))


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
    orders = {cell.value: cell for cell in found.cells}
    assert (found.by, found.skipped, found.n_left_out) == (("judge",), (), {("j",): 1})
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
        protocol = Protocol(RandomSplits(size=10, n_splits=3))
        slow = comparison_of(
            counts, [gold[i] for i in items], by_name(["davidson", "majority"]), protocol=protocol
        )
        for one, two in zip(orders[name].methods, slow.methods, strict=True):
            assert (one.mae == two.mae).all()


# Tie rates


def tie_rows(ties, total=672, n_items=336, **more):
    """So many ties among all votes, with as many votes of each item."""
    return [
        {"item": f"i{place % n_items}", "vote": 0 if place < ties else 1, **more}
        for place in range(total)
    ]


def percent(interval):
    return round(100 * interval.mean, 1), round(50 * (interval.high - interval.low), 1)


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
    assert [[percent(found.rate(i, j)) for j in range(3)] for i in range(3)] == [
        [(19.3, 4.2), (24.4, 4.6), (21.6, 4.4)],
        [(12.4, 3.5), (21.3, 4.4), (37.6, 5.2)],
        [(28.9, 4.8), (29.6, 4.9), (32.6, 5.0)],
    ]
    assert [percent(found.rate(i)) for i in range(3)] == [(21.8, 2.5), (23.8, 2.6), (30.4, 2.8)]
    assert [percent(found.rate(column=j)) for j in range(3)] == [
        (20.2, 2.5), (25.1, 2.7), (30.6, 2.8)
    ]  # fmt: skip
    assert percent(found.rate()) == (25.3, 1.5)
    assert (found.n_items == 336).all()


def test_ties_are_counted_over_votes_and_missing_ones_are_not():
    draw = random.Random(5)
    rows = [
        {"item": i, "judge": j, "template": t, "vote": draw.choice([-1, 0, 1, None])}
        for i in range(30)
        for j, t in (("x", "p"), ("x", "q"), ("y", "q"))
        for _ in range(3)
    ]
    found = tie_rates(table(rows))
    assert (found.row_names, found.column_names) == (("x", "y"), ("p", "q"))
    assert found.rate(1, 0) is None
    assert found.totals[1, 0] == 0
    for j, t in (("x", "p"), ("x", "q"), ("y", "q")):
        place = ("xy".index(j), "pq".index(t))
        cell = [row for row in rows if (row["judge"], row["template"]) == (j, t)]
        votes = [row["vote"] for row in cell if row["vote"] is not None]
        n_items = len({row["item"] for row in cell if row["vote"] is not None})
        assert found.ties[place] == votes.count(0)
        assert found.totals[place] == len(votes)
        assert found.n_missing[place] == 90 - len(votes)
        assert found.n_items[place] == n_items
        rate = share_interval(votes.count(0) / len(votes), n_items)
        assert found.rate(*place) == rate
    pooled = found.ties.sum() / found.totals.sum()
    assert found.rate() == share_interval(pooled, int(found.n_items.sum()))


def test_tie_rates_among_gold_ties_and_what_is_wrong():
    votes = read_votes({"item": [1, 2], "judge": ["x"] * 2, "template": ["p"] * 2, "vote": [0, 1]})
    labels = read_labels({"item": [1, 2], "label": [1, 0]})
    assert tie_rates(votes, gold_ties=labels).rate(0, 0) == share_interval(0, 1)
    with pytest.raises(
        InputError, match=r"^rows and columns are both 'judge', expected two columns$"
    ):
        tie_rates(votes, "judge", "judge")
    with pytest.raises(InputError, match=r"no column 'order'"):
        tie_rates(votes, "order")
    missing = read_votes({"item": [1], "judge": ["x"], "template": ["p"], "vote": [None]})
    with pytest.raises(InputError, match=r": all votes are missing$"):
        tie_rates(missing)
