"""Items that several raters label: estimates use the mean of raters, fits one merged label."""

import json

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import InputError, estimate, estimate_systems
from btdagg.estimates import not_worse
from refusals import refused

MODEL = btdagg.DavidsonModel(beta=1.2, eta0=0.5, gamma=0.8)
B = {"candidate": "B", "baseline": "A"}
NAMES = ("A", "tie", "B", "net win rate", "win rate")


def drawn(n_items, n_labels, n_raters, seed):
    """Counts of a judge, and labels of raters who read the same latent difference with noise."""
    rng = np.random.default_rng(seed)
    difference = rng.normal(0.2, 1, (n_items, 1))

    def read(noise, times, width):
        seen = difference + rng.normal(0, noise, (n_items, times))
        return np.sign(np.where(np.abs(seen) < width, 0, seen)).astype(int)

    votes, raters = read(0.9, 4, 0.4), read(0.6, n_raters, 0.7)
    counts = np.stack([(votes == value).sum(axis=1) for value in (-1, 0, 1)], axis=1)
    labelled = np.sort(rng.permutation(n_items)[:n_labels])
    return counts, raters, labelled


def shares_of(raters, labelled):
    shares = np.full((len(raters), 3), np.nan)
    each = [(raters[labelled] == value).mean(axis=1) for value in (-1, 0, 1)]
    shares[labelled] = np.stack(each, axis=1)
    return shares


def test_shares_of_one_rater_are_its_labels():
    counts, raters, labelled = drawn(300, 60, 1, seed=1)
    labels = np.full(300, np.nan)
    labels[labelled] = raters[labelled, 0]
    shares = shares_of(raters, labelled)
    assert str(estimate(counts, shares)) == str(estimate(counts, labels))
    assert not_worse(counts, shares, **B) == not_worse(counts, labels, **B)
    panel = np.stack([counts, counts], axis=1)
    assert str(estimate(panel, shares)) == str(estimate(panel, labels))


def test_shares_are_what_single_raters_are_as_rows_of_a_group():
    counts, raters, labelled = drawn(200, 80, 2, seed=2)
    items = np.arange(200)
    twice = np.full((200, 2), np.nan)
    twice[labelled] = raters[labelled]
    shares = shares_of(raters, labelled)
    options = {"groups": items, "model": MODEL}
    as_rows = {"groups": np.repeat(items, 2), "model": MODEL}
    one = estimate(counts, shares, **options).estimates
    rows = estimate(np.repeat(counts, 2, axis=0), twice.ravel(), **as_rows).estimates
    for name in NAMES:
        assert one[name].value == pytest.approx(rows[name].value, abs=1e-9)
        assert one[name].standard_error == pytest.approx(rows[name].standard_error, rel=1e-6)
    a, b = np.array(list("xyz"))[items % 3], np.array(list("yzx"))[items % 3]
    one = estimate_systems(counts, shares, a, b, **options)
    rows = estimate_systems(
        np.repeat(counts, 2, axis=0), twice.ravel(), np.repeat(a, 2), np.repeat(b, 2), **as_rows
    )
    assert list(one.systems) == list(rows.systems)
    np.testing.assert_allclose(one.covariance, rows.covariance, rtol=1e-5, atol=1e-12)
    for name, system in one.systems.items():
        assert system.strength.estimate == pytest.approx(
            rows.systems[name].strength.estimate, abs=1e-6
        )
        assert system.mean.value == pytest.approx(rows.systems[name].mean.value, abs=1e-9)


@pytest.mark.parametrize(
    ("row", "value"), [(1, [0.5, 0.6, 0.0]), (0, [-0.5, 1.5, 0.0]), (2, [np.nan, 0.5, 0.5])]
)
def test_bad_shares_are_named(row, value):
    shares = np.tile([0.5, 0.5, 0.0], (6, 1))
    shares[row] = value
    with refused("labels", row=row, got=value, expected="shares of B, tie and A that add up to 1"):
        estimate(np.ones((6, 3), dtype=int), shares)


# Tables


@pytest.fixture
def files(tmp_path, monkeypatch):
    """240 items of one judge; two raters for each of 80 of them, of which one left some empty."""
    monkeypatch.chdir(tmp_path)
    counts, raters, labelled = drawn(240, 80, 2, seed=3)
    items = [f"q{number}" for number in range(240)]
    votes = np.concatenate([np.repeat([-1, 0, 1], row) for row in counts])
    pl.DataFrame({"item": np.repeat(items, 4), "vote": votes}).write_csv("votes.csv")
    rows = [
        (items[row], rater, None if rater == "second" and row % 7 == 0 else int(raters[row, place]))
        for row in labelled
        for place, rater in enumerate(("first", "second"))
    ]
    rows.append(("q500", "first", None))
    table = pl.DataFrame(rows, schema=["item", "rater", "label"], orient="row")
    table.write_csv("labels.csv")
    return table


def means_by_hand(table):
    """Each item's shares by polars alone, and how many are disputed."""
    by_item = (
        table.drop_nulls()
        .group_by("item")
        .agg(*((pl.col("label") == value).mean().alias(str(value)) for value in (-1, 0, 1)))
    )
    disputed = by_item.filter(pl.max_horizontal("-1", "0", "1") < 1).height
    return by_item, disputed


def test_labels_have_the_shares_of_their_raters(files):
    by_item, _ = means_by_hand(files)
    labels = btdagg.read_labels("labels.csv")
    found = dict(zip(labels.ids.tolist(), labels.shares.tolist(), strict=True))
    assert found == {item: pytest.approx(list(shares)) for item, *shares in by_item.iter_rows()}
    # One label is merged of them: that of most raters, a tie where they share the most.
    merged = np.sign(labels.shares[:, 2] - labels.shares[:, 0])
    alone = (labels.shares == 0.5).sum(axis=1) == 2
    np.testing.assert_array_equal(labels.labels[~alone], merged[~alone])
    assert not labels.labels[alone].any()
    assert labels.filter({"item": labels.ids[0]}).shares.tolist() == labels.shares[:1].tolist()
    single = btdagg.read_labels({"item": ["a", "b"], "label": [1, 0]})
    assert single.shares.tolist() == [[0, 0, 1], [0, 1, 0]]
    assert single.remarks == ()


def test_estimates_of_tables_use_the_mean_of_raters(files):
    by_item, disputed = means_by_hand(files)
    votes, labels = btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv")
    ids, counts = votes.counts()
    shares = np.full((240, 3), np.nan)
    place = {item: row for row, item in enumerate(ids.tolist())}
    for item, *each in by_item.iter_rows():
        shares[place[item]] = each
    found, expected = estimate(votes, labels), estimate(counts, shares)
    assert found.estimates == expected.estimates
    alone = found.estimates["tie"].labels_only
    assert alone.value == pytest.approx(by_item["0"].mean())
    assert any(f"raters disagree on {disputed} of 80" in one for one in found.remarks)
    assert any("mean of its raters" in one for one in not_worse(votes, labels, **B).remarks)


# The rule


# Of q1 the raters disagree by A, A, B, of q2 by A and tie, of q3 by B and nobody else.
DISPUTED = {
    "item": ["q1", "q1", "q1", "q2", "q2", "q3", "q4", "q4", "q5"],
    "rater": ["x", "y", "z", "x", "y", "x", "x", "y", "x"],
    "label": ["A", "A", "B", "A", "tie", "B", "A", "A", None],
}
BY_RULE = {
    "mean": {"q1": [1 / 3, 0, 2 / 3], "q2": [0, 0.5, 0.5], "q3": [1, 0, 0], "q4": [0, 0, 1]},
    "majority": {"q1": [0, 0, 1], "q2": [0, 1, 0], "q3": [1, 0, 0], "q4": [0, 0, 1]},
    "drop": {"q3": [1, 0, 0], "q4": [0, 0, 1]},
}
SAYS = {
    "mean": "each counts as the mean of its raters",
    "majority": "each gets the label of most of its raters, or a tie if several labels "
    "have the most votes (if only the mean is known, the label nearest to it)",
    "drop": "they are left out, so results are about items on which people agree",
}


@pytest.mark.parametrize("rule", BY_RULE)
def test_the_rule_for_raters_who_disagree_is_chosen(rule):
    labels = btdagg.read_labels(DISPUTED, raters=rule)
    for table in (labels, labels.filter({"item": ["q1", "q2", "q3", "q4"]})):
        shares = dict(zip(table.ids.tolist(), table.shares.tolist(), strict=True))
        assert shares == {item: pytest.approx(row) for item, row in BY_RULE[rule].items()}
        assert (table.raters, table.n_disputed) == (rule, 2)
    assert labels.n_missing == 1  # q5, which nobody labelled
    votes = btdagg.read_votes({"item": [f"q{n}" for n in range(1, 6)] * 2, "vote": ["A"] * 10})
    items = votes.items(labels)
    expected = [BY_RULE[rule].get(f"q{n}", [np.nan] * 3) for n in range(1, 6)]
    np.testing.assert_allclose(items.labels, expected)
    assert items.origin.remarks[0] == f"raters disagree on 2 of 4 labelled items: {SAYS[rule]}"
    fitted = votes.labelled(labels)
    merged = {"q1": 1, "q2": 0, "q3": -1, "q4": 1}
    assert dict(zip(fitted.ids, fitted.label, strict=True)) == {i: merged[i] for i in BY_RULE[rule]}
    assert fitted.origin.remarks[0].endswith(SAYS["drop" if rule == "drop" else "majority"])
    if rule != "drop":
        assert fitted.facts["ratings"].tolist() == [[1, 0, 2], [0, 1, 1], [1, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize(
    ("rule", "shares"),
    [
        ("mean", [[0, 0, 0.5, 0, 0.5], [1 / 3, 0, 0, 1 / 3, 1 / 3]]),
        ("majority", [[0, 0, 1, 0, 0], [0, 0, 0, 1, 0]]),
        ("drop", []),
    ],
)
def test_the_rule_is_of_grades_too(rule, shares):
    scale = btdagg.Scale(range(1, 6))
    rows = {"item": ["a", "a", "b", "b", "b", "c"], "rater": list("xyxyzx")}
    rows["grade"] = [3, 5, 1, 4, 5, 2]
    labels = btdagg.read_labels(rows, scale=scale, raters=rule)
    np.testing.assert_allclose(labels.shares, [*shares, [0, 1, 0, 0, 0]])
    assert labels.labels.tolist() == [*([3, 4] if shares else []), 2]


def test_rules_that_leave_nothing_or_are_none():
    votes = btdagg.read_votes({"item": ["q1", "q2"], "vote": ["A", "B"]})
    labels = btdagg.read_labels(DISPUTED, raters="drop").filter({"item": ["q1", "q2"]})
    with pytest.raises(InputError, match="no item has a label on which its raters agree"):
        votes.labelled(labels)
    with refused("raters", got="median"):
        btdagg.read_labels(DISPUTED, raters="median")


@pytest.mark.parametrize(
    "command",
    [
        ["calibrate", "-o", "model.json"],
        ["estimate"],
    ],
    ids=lambda command: command[0],
)
def test_commands_say_the_rule_and_do_as_the_labels_that_it_leaves(files, cli, command):
    name, *options = command
    _, disputed = means_by_hand(files)
    labels = btdagg.read_labels("labels.csv", raters="drop")
    labels.frame.select("item", "label").write_csv("agreed.csv")
    of = ["votes.csv", "labels.csv", *options, "--json"]
    status, dropped, err = cli(name, *of, "--set", "raters=drop")
    assert status == 0
    assert f"on {disputed} of 80 labelled items: they are left out" in dropped + err
    agreed = cli(name, "votes.csv", "agreed.csv", *options, "--json")[1]
    first, second = (json.loads(text) for text in (dropped, agreed))
    for told in (first, second):
        for key in ("remarks", "provenance", "n_unlabelled"):
            told.pop(key, None)
        for part in ("estimates", "settings"):
            for key in ("remarks", "n_unlabelled"):
                (told.get(part) or {}).pop(key, None)
    assert first == second
    assert f"on {disputed} of 80 labelled items: each " in "".join(map(str, cli(name, *of)))
