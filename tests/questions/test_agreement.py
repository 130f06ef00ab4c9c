"""Agreement of judges with themselves and with people: against other libraries, and by hand."""

import itertools
import json

import krippendorff
import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn import metrics

import btdagg
from btdagg import agreement
from btdagg.votes import Items
from refusals import refused

FIVE = btdagg.Scale(range(1, 6))


def votes_of(counts, orders=("AB", "BA"), seed=0):
    """Single votes, half in each order."""
    rng = np.random.default_rng(seed)
    rows = []
    for item, row in enumerate(counts):
        votes = rng.permutation(np.repeat([-1, 0, 1], row)).tolist()
        rows += [(item, orders[k % len(orders)], vote) for k, vote in enumerate(votes)]
    return pl.DataFrame(rows, ["item", "order", "vote"], orient="row")


def drawn(n=80, n_votes=6, seed=0):
    rng = np.random.default_rng(seed)
    gold = rng.choice([-1, 0, 1], n, p=[0.3, 0.3, 0.4])
    chances = np.array([[0.6, 0.25, 0.15], [0.25, 0.5, 0.25], [0.1, 0.2, 0.7]])
    return rng.multinomial(n_votes, chances[gold + 1]), gold


def pairs_by_hand(rows):
    """Mean shares of equal pairs, and of pairs for different sides, within and across orders."""
    found = {"repeats": [], "orders": []}
    for _, part in rows.group_by("item", maintain_order=True):
        within, across = [], []
        for one, two in itertools.combinations(part.select("order", "vote").rows(), 2):
            (within if one[0] == two[0] else across).append((one[1] == two[1], one[1] * two[1] < 0))
        for name, pairs in (("repeats", within), ("orders", across)):
            if pairs:
                found[name].append(np.mean(pairs, axis=0))
    return {name: np.mean(shares, axis=0) for name, shares in found.items() if shares}


def test_two_votes_of_an_item_agree_as_often_as_counted_by_hand():
    counts, _ = drawn()
    rows = votes_of(counts)
    (judge,) = agreement(rows).judges
    for name, (equal, flipped) in pairs_by_hand(rows).items():
        assert judge.measures[f"{name}_agree"].value == pytest.approx(equal)
        assert judge.measures[f"{name}_flip"].value == pytest.approx(flipped)
    # Counts say no order: all pairs are repeats.
    (of_counts,) = agreement(counts).judges
    equal, _ = pairs_by_hand(rows.with_columns(order=pl.lit("AB")))["repeats"]
    assert of_counts.measures["repeats_agree"].value == pytest.approx(equal)
    assert "orders_agree" not in of_counts.measures


def test_the_correlation_is_that_of_an_analysis_of_variance():
    counts, _ = drawn(n_votes=5)
    counts[::3] = counts[::3] // 2 + 1  # items with other numbers of votes
    groups = [np.repeat([-1, 0, 1], row) for row in counts]
    f = stats.f_oneway(*groups).statistic
    sizes = np.array([*map(len, groups)])
    k = (sizes.sum() - (sizes**2).sum() / sizes.sum()) / (len(sizes) - 1)
    (judge,) = agreement(counts).judges
    icc, n = judge.measures["intraclass_correlation"].value, judge.n_votes
    assert icc == pytest.approx((f - 1) / (f - 1 + k))
    assert n == sizes.mean()
    assert judge.measures["reliability"].value == pytest.approx(n * icc / (1 + (n - 1) * icc))
    assert judge.measures["effective_votes"].value == pytest.approx(n / (1 + (n - 1) * icc))
    wanted = judge.measures["votes_for_reliability"].value
    reliabilities = [m * icc / (1 + (m - 1) * icc) for m in (wanted - 1, wanted)]
    assert reliabilities[0] < 0.8 <= reliabilities[1]


def test_agreement_with_people_is_that_of_scikit_learn():
    counts, gold = drawn()
    decided = btdagg.majority_vote(counts)
    (judge,) = agreement(counts, gold).judges
    of = judge.measures
    assert of["agreement"].value == pytest.approx(metrics.accuracy_score(gold, decided))
    assert of["kappa"].value == pytest.approx(metrics.cohen_kappa_score(gold, decided))
    sides = (decided != 0) & (gold != 0)
    assert of["agreement_without_ties"].value == (decided == gold)[sides].mean()
    assert of["agreement_without_ties"].n_items == sides.sum()
    own = counts[np.arange(len(gold)), gold + 1] / counts.sum(axis=1)
    assert of["vote_agreement"].value == pytest.approx(own.mean())


def test_grades_have_weighted_kappa_and_verdicts_rates():
    rng = np.random.default_rng(3)
    gold = rng.integers(1, 6, 120)
    seen = np.clip(gold + rng.integers(-1, 2, 120), 1, 5)
    (judge,) = agreement(np.eye(5, dtype=int)[seen - 1], gold, scale=FIVE).judges
    expected = metrics.cohen_kappa_score(gold, seen, weights="quadratic")
    assert judge.measures["kappa"].value == pytest.approx(expected)
    assert "repeats_agree" not in judge.measures
    (twice,) = agreement(3 * np.eye(5, dtype=int)[seen - 1], gold, scale=FIVE).judges
    assert twice.measures["repeats_agree"].value == 1
    assert "repeats_flip" not in twice.measures  # grades have no sides
    verdict, called = (gold > 2).astype(int), (seen > 2).astype(int)
    counts = np.eye(2, dtype=int)[called]
    (judge,) = agreement(counts, verdict, scale=btdagg.PASS_FAIL).judges
    for name, label in (("true_positive_rate", 1), ("true_negative_rate", 0)):
        recall = metrics.recall_score(verdict, called, pos_label=label)
        assert judge.measures[name].value == pytest.approx(recall)
    assert judge.measures["kappa"].value == pytest.approx(
        metrics.cohen_kappa_score(verdict, called)
    )


@pytest.mark.parametrize("scale", [btdagg.PAIRS, FIVE])
def test_people_are_compared_with_each_other(scale):
    rng = np.random.default_rng(4)
    points = np.array(scale.points)
    truth = rng.integers(0, len(points), 60)
    seen = np.clip(truth[:, None] + rng.integers(-1, 2, (60, 4)), 0, len(points) - 1)
    ratings = np.where(rng.random((60, 4)) < 0.3, np.nan, points[seen])
    item, rater = np.nonzero(~np.isnan(ratings))
    labels = btdagg.read_labels(
        {"item": item, "rater": rater.astype(str), "label": ratings[item, rater].astype(int)},
        scale=scale,
    )
    votes = {"item": np.arange(60), "vote": points[truth]}
    found = agreement(btdagg.read_votes(votes, scale=scale), labels)
    level = "ordinal" if scale == btdagg.PAIRS else "interval"
    alpha = krippendorff.alpha(ratings.T, level_of_measurement=level)
    assert found.people[0].measures["alpha"].value == pytest.approx(alpha)
    equal = [
        np.mean([a == b for a, b in itertools.combinations(row[~np.isnan(row)], 2)])
        for row in ratings
        if (~np.isnan(row)).sum() > 1
    ]
    assert found.people[0].measures["people_agree"].value == pytest.approx(np.mean(equal))
    away = {}
    for k in range(4):
        others = np.delete(ratings, k, axis=1)
        both = ~np.isnan(ratings[:, k]) & (~np.isnan(others)).any(axis=1)
        of_items = np.nanmean(np.abs(others[both] - ratings[both, k : k + 1]), axis=1)
        away[str(k)] = of_items.mean()
    assert [name for name, _ in found.people[0].raters] == sorted(away, key=away.get, reverse=True)
    assert {n: of.value for n, of in found.people[0].raters} == pytest.approx(away)


def test_several_raters_count_by_their_shares():
    labels = btdagg.read_labels(
        {"item": [0, 0, 0, 1, 1], "rater": list("abcab"), "label": ["A", "A", "B", "B", "B"]}
    )
    (judge,) = agreement({"item": [0, 1], "vote": ["A", "A"]}, labels).judges
    assert judge.measures["agreement"].value == pytest.approx((2 / 3 + 0) / 2)


def test_judges_and_criteria_stand_apart_and_groups_widen_intervals():
    counts, gold = drawn(60)
    rows = votes_of(counts)
    both = pl.concat([rows.with_columns(judge=pl.lit(name)) for name in ("x", "y")])
    found = agreement(both, {"item": np.arange(60), "label": gold})
    assert [judge.key for judge in found.judges] == [("x",), ("y",)]
    assert "(x)" in found.sentence()
    grouped = agreement(
        pl.concat([both.with_columns(item=pl.col("item") + 60 * k) for k in range(3)]),
        {"item": np.arange(180), "label": np.tile(gold, 3), "group": np.arange(180) % 60},
    )
    for name, measure in found.judges[0].measures.items():
        own = grouped.judges[0].measures[name]
        assert own.value == pytest.approx(measure.value, rel=0.05), name
        widths = own.high - own.low, measure.high - measure.low
        assert widths[0] == pytest.approx(widths[1], rel=0.1, nan_ok=True), name


def test_a_result_shows_itself():
    counts, gold = drawn()
    found = agreement(votes_of(counts), {"item": np.arange(80), "label": gold})
    values = json.loads(json.dumps(found.as_dict()))
    assert values["judges"][0]["kappa"]["n_items"] == 80
    assert values["sentence"] == found.sentence()
    assert str(found).startswith("two votes of a judge in one order agree in ")
    assert len(found.table().rows) == len(found.judges[0].measures)
    assert {*found.figure().points} < {entry[1].text for entry in found.table().rows}
    one = agreement({"item": [1, 2], "vote": ["A", "B"]})
    assert one.judges[0].measures == {}
    assert one.figure() is None
    assert one.sentence().startswith("No item has two votes")


def test_disagreements_come_worst_first():
    counts = [[0, 0, 4], [3, 1, 0], [4, 0, 0], [0, 4, 0], [1, 3, 0]]
    labels = {"item": list("vwxyz"), "label": ["A", "A", "A", "B", None]}
    rows = {
        "item": list("vwxyz"),
        **dict(zip(("minus", "tie", "plus"), zip(*counts, strict=True), strict=True)),
    }
    found = agreement(rows, labels).disagreements
    assert found["item"].to_list() == ["x", "w", "y"]
    assert found["distance"].to_list() == [2, 2, 1]
    assert found.select("label", "majority", "minus").row(0) == (1, -1, 4)
    assert agreement(rows).disagreements.is_empty()


def test_labels_on_another_scale_are_said_and_left_out():
    rng = np.random.default_rng(5)
    votes = btdagg.read_votes({"item": range(20), "vote": rng.integers(1, 6, 20)}, scale=FIVE)
    labels = btdagg.read_labels({"item": range(20), "label": ["pass", "fail"] * 10})
    found = agreement(votes, labels)
    assert "agreement" not in found.judges[0].measures
    (remark,) = found.remarks
    assert remark.code == "people-on-another-scale"


def test_judges_that_always_agree_have_an_interval_that_ends_at_1():
    counts = 4 * np.eye(3, dtype=int)[np.arange(30) % 3]
    (judge,) = agreement(counts, np.arange(30) % 3 - 1).judges
    for name in ("repeats_agree", "agreement", "kappa", "intraclass_correlation"):
        value, low, high, _ = judge.measures[name]
        assert value == high == 1
        assert 0.7 < low < 1


def test_people_are_compared_by_criterion():
    rows = [
        (item, criterion, rater, said if criterion == "tone" or rater == "a" else 1 - said)
        for item, said in enumerate([0, 1, 1, 0, 1])
        for criterion in ("tone", "facts")
        for rater in "ab"
    ]
    labels = pl.DataFrame(rows, ["item", "criterion", "rater", "label"], orient="row")
    votes = labels.select("item", "criterion", vote="label")
    scale = btdagg.Scale([0, 1])
    found = agreement(votes, btdagg.read_labels(labels, scale=scale), scale=scale)
    agree = {of.key: of.measures["people_agree"].value for of in found.people}
    assert agree == {("tone",): 1.0, ("facts",): 0.0}
    assert {"tone people", "facts people"} < {row[0].text for row in found.table().rows}
    _, raters = found.tables()
    named = [(record["task"], record["rater"]) for record in raters.records]
    assert named == [(criterion, rater) for criterion in ("tone", "facts") for rater in "ab"]


def test_settings_stand_apart_and_one_of_each_does_not():
    rows = {"item": [1, 1, 2, 2], "template": ["x", "y", "x", "y"], "vote": ["A", "B", "A", "B"]}
    found = agreement(rows, {"item": [1, 2], "label": ["A", "A"]})
    shares = {judge.key: judge.measures["agreement"].value for judge in found.judges}
    assert shares == {("x",): 1.0, ("y",): 0.0}
    one = agreement({**rows, "template": ["x"] * 4}, {"item": [1, 2], "label": ["A", "A"]})
    assert [judge.key for judge in one.judges] == [()]
    pooled = agreement(rows, by=[])
    assert [judge.key for judge in pooled.judges] == [()]


def test_groups_are_told_by_labels_without_a_label_too():
    counts, gold = drawn(60)
    rows = votes_of(counts)
    some = [gold if item % 2 else None for item, gold in enumerate(gold.tolist())]
    group = np.arange(60) // 4
    told = agreement(rows, {"item": np.arange(60), "label": some, "group": group})
    of_votes = rows.with_columns(group=pl.col("item") // 4)
    known = agreement(of_votes, {"item": np.arange(60), "label": some})
    ends = [found.judges[0].measures["repeats_agree"] for found in (told, known)]
    assert ends[0] == ends[1]
    apart = agreement(rows, {"item": np.arange(60), "label": some})
    assert apart.judges[0].measures["repeats_agree"] != ends[0]


def test_arrays_and_items_are_as_their_tables():
    counts, gold = drawn()
    of_table = agreement(
        {"item": np.arange(80), **dict(zip(("minus", "tie", "plus"), counts.T, strict=True))},
        {"item": np.arange(80), "label": gold},
    )
    items = Items(counts=counts, labels=gold)
    for found in (agreement(counts, gold), agreement(items), agreement(items, gold)):
        assert found.judges[0].measures == of_table.judges[0].measures
        worst = found.disagreements.select("label", "majority", "distance")
        assert worst.equals(of_table.disagreements.select("label", "majority", "distance"))
    with pytest.raises(btdagg.InputError, match="labels has 79 rows, expected 80"):
        agreement(counts, gold[:-1])


def test_items_of_no_known_task_stand_alone():
    votes = {"item": [1, 1, 2, 2, 3, 3], "vote": ["A", "A", "A", "B", "B", "B"]}
    labels = {"item": [1, 2], "label": ["A", "B"], "task": ["x", "x"]}
    (judge,) = agreement(votes, labels).judges
    assert judge.measures["repeats_agree"].value == pytest.approx(2 / 3)
    assert judge.measures["agreement"].n_items == 2


def test_labels_of_other_items_are_refused():
    with pytest.raises(btdagg.InputError, match="label"):
        agreement({"item": [1, 2], "vote": ["A", "B"]}, {"item": [3, 4], "label": ["A", "B"]})


def test_labels_count_by_how_they_were_drawn():
    rng = np.random.default_rng(12)
    gold = rng.integers(1, 4, 40)
    seen = np.clip(gold + rng.integers(-1, 2, 40), 1, 3)
    rare = np.arange(40) < 10
    scale = btdagg.Scale(range(1, 4))
    votes = {"item": np.arange(40), "vote": seen}
    labels = {"item": np.arange(40), "label": gold, "probability": np.where(rare, 0.25, 1.0)}
    (judge,) = agreement(votes, btdagg.read_labels(labels, scale=scale), scale=scale).judges
    weights = np.where(rare, 4.0, 1.0)
    assert judge.measures["agreement"].value == pytest.approx(
        np.average(seen == gold, weights=weights)
    )
    kappa = metrics.cohen_kappa_score(gold, seen, weights="quadratic", sample_weight=weights)
    assert judge.measures["kappa"].value == pytest.approx(kappa)
    looks = {**labels, "probability": np.where(rare, 0.0, 1.0)}
    found = agreement(votes, btdagg.read_labels(looks, scale=scale), scale=scale)
    expected = (seen == gold)[~rare].mean()
    assert found.judges[0].measures["agreement"].value == pytest.approx(expected)
    assert "reviewed-labels" in {remark.code for remark in found.remarks}


def test_criteria_of_an_item_are_one_group():
    rng = np.random.default_rng(13)
    one = pl.DataFrame({"item": np.arange(30).repeat(2), "vote": rng.integers(0, 2, 60)})
    both = pl.concat([one.with_columns(criterion=pl.lit(name)) for name in ("tone", "facts")])
    scale = btdagg.Scale([0, 1])
    pooled = agreement(both, scale=scale, by=[]).judges[0].measures["repeats_agree"]
    alone = agreement(one, scale=scale).judges[0].measures["repeats_agree"]
    assert pooled[:3] == pytest.approx(alone[:3])
    few = {"item": [0, 1], "label": [1, 0]}
    with pytest.raises(btdagg.InputError, match="criterion or task"):
        agreement(both, btdagg.read_labels(few, scale=scale), scale=scale)


def test_tables_are_whole_whatever_is_pooled():
    rows = [(i, c, r, (i + len(c)) % 2) for i in range(4) for c in ("x", "yy") for r in "ab"]
    labels = pl.DataFrame(rows, ["item", "criterion", "rater", "label"], orient="row")
    scale = btdagg.Scale([0, 1])
    votes = labels.select("item", "criterion", vote="label", judge=pl.lit("j"))
    for by in ([], ["judge"], ["judge", "task"]):
        labelled = btdagg.read_labels(labels, scale=scale)
        _, raters = agreement(votes, labelled, scale=scale, by=by).tables()
        assert {(r["task"], r["rater"]) for r in raters.records} == {
            (c, r) for c in ("x", "yy") for r in "ab"
        }


def test_strengths_are_no_votes_that_could_agree():
    counts = np.array([[0.5, 0.5, 1], [0.2, 0.1, 0.7], [1.5, 0, 1.5]])
    (judge,) = agreement(counts, [1, 1, -1]).judges
    assert "agreement" in judge.measures
    assert not {"repeats_agree", "intraclass_correlation", "reliability"} & {*judge.measures}


def test_votes_that_are_all_the_same_have_no_correlation():
    scale = btdagg.Scale("0,0.1,0.7,1")
    for point in (1, 2):
        counts = np.zeros((9, 4), dtype=int)
        counts[:, point] = np.arange(3, 12)
        (judge,) = agreement(counts, scale=scale).judges
        assert "intraclass_correlation" not in judge.measures


def test_orders_are_named_where_votes_say_them():
    counts, _ = drawn()
    assert "in one order" in agreement(votes_of(counts)).sentence()
    without = agreement(counts)
    assert "in one order" not in str(without).split("Means over items")[0]


def test_people_are_compared_on_items_with_votes():
    labels = {"item": [0, 0, 1, 1, 2, 2], "rater": list("ababab"), "label": list("AAABBA")}
    found = agreement({"item": [0, 1], "vote": ["A", "A"]}, btdagg.read_labels(labels))
    assert found.people[0].measures["people_agree"][0::3] == (0.5, 2)


def test_nothing_is_refused_by_name():
    with refused(argument="votes"):
        agreement(np.zeros((0, 3), dtype=int))


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"level": 1.5}, {"argument": "level"}),
        (
            {"votes": {"item": [1], "vote": ["C"]}},
            {"argument": "words", "column": "vote", "row": 1},
        ),
        (
            {"labels": {"item": [1], "label": ["C"]}},
            {"argument": "words", "column": "label", "row": 1},
        ),
    ],
)
def test_bad_input_is_named(change, where):
    given = {"votes": {"item": [1], "vote": ["A"]}, "labels": {"item": [1], "label": ["A"]}}
    with refused(**where):
        agreement(**{**given, **change})


def test_an_unknown_column_is_named():
    with pytest.raises(btdagg.InputError, match="nothing"):
        agreement({"item": [1], "vote": ["A"]}, by=["nothing"])


# Real votes


def test_repeats_and_orders_of_real_judges(shared):
    rows = pl.read_csv(shared / "data/mtbench_order/votes.csv")
    found = agreement(rows)
    for judge in found.judges:
        own = rows.filter(pl.col("judge") == judge.key[0]).drop_nulls("vote")
        for name, (equal, flipped) in pairs_by_hand(own).items():
            assert judge.measures[f"{name}_agree"].value == pytest.approx(equal)
            assert judge.measures[f"{name}_flip"].value == pytest.approx(flipped)


def test_raters_of_translations(shared):
    ratings = pl.read_csv(shared / "data/wmt23/ratings_zhen.csv").filter(pl.col("identical") == 0)
    labels = ratings.select("item", "rater", label="vote")
    votes = ratings.unique("item").select("item", "vote")
    found = agreement(votes, btdagg.read_labels(labels))
    wide = ratings.pivot("rater", index="item", values="vote").drop("item").to_numpy().T
    alpha = krippendorff.alpha(wide.astype(float), level_of_measurement="ordinal")
    assert found.people[0].measures["alpha"].value == pytest.approx(alpha)
    assert len(found.people[0].raters) == 8
    distances = [of.value for _, of in found.people[0].raters]
    assert distances == sorted(distances, reverse=True)
