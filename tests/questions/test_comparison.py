"""Which of two ways of deciding the same items is better."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

import btdagg
from btdagg import InputError, Protocol, compare, evaluate, read_labels, read_votes, tally
from btdagg.datasets import simulate
from btdagg.evaluation import CrossFit, GroupTest, RandomSplits
from btdagg.methods import Calibrated, Decided, MajorityVote
from btdagg.votes import as_items
from refusals import refused

N = 60
SAMPLE, OTHER = (
    replace(simulate(name, N, 8, seed=3), items=np.arange(N)) for name in ("rb2-math", "rb2-focus")
)
LABELS = SAMPLE.labels
RNG = np.random.default_rng(5)
MARGINS = SAMPLE.votes * RNG.integers(1, 9, SAMPLE.votes.shape)
ITEMS = np.repeat(np.arange(N), 8)
STRENGTH = tally(ITEMS, MARGINS.ravel(), full_margin=9)[1]
GROUPS = np.array([f"g{row % 17}" for row in range(N)])
FEW = Protocol(CrossFit(n_folds=4, n_repeats=2, n_refits=8, seed=1), GroupTest())


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_the_difference_is_of_models_that_did_not_see_an_item_s_group(groups):
    first, second = SAMPLE.first(2), STRENGTH
    found = compare(first, second, LABELS, groups=groups, level=0.9, protocol=FEW)
    number = np.arange(N) if groups is None else np.unique(groups, return_inverse=True)[1]
    content, errors = [np.stack([first, second], axis=1), LABELS], np.zeros(2)
    for known, left in FEW.splitter.draw(N, number, content):
        for way, counts in enumerate((first, second)):
            model = btdagg.calibrate(counts[known], LABELS[known], prior="weak").model
            errors[way] += np.abs(model.decide(counts[left]) - LABELS[left]).sum() / 2 / N
    assert [own.mean for own in found.mae] == pytest.approx(errors)
    assert found.difference.mean == pytest.approx(errors[0] - errors[1])
    assert (found.n_items, found.n_groups) == (N, N if groups is None else 17)
    assert found.n_calibration == pytest.approx(0.75 * N, abs=0.5)


@pytest.mark.parametrize("groups", [None, GROUPS])
def test_swapping_the_ways_or_the_sides_mirrors_the_difference(groups):
    first, second = SAMPLE.first(2), STRENGTH
    found = compare(first, second, LABELS, groups=groups, protocol=FEW)
    mean, low, high = found.difference
    swapped = compare(second, first, LABELS, groups=groups, protocol=FEW)
    assert swapped.difference == pytest.approx((-mean, -high, -low), abs=1e-12)
    assert swapped.pvalue == pytest.approx(found.pvalue, rel=1e-9)
    assert np.ravel(swapped.mae[::-1]) == pytest.approx(np.ravel(found.mae))
    other = compare(first[:, ::-1], second[:, ::-1], -LABELS, groups=groups, protocol=FEW)
    assert other.difference == pytest.approx(found.difference, abs=1e-12)


def test_two_methods_on_the_same_votes_have_the_numbers_of_an_evaluation():
    methods = Calibrated(), MajorityVote()
    found = compare(SAMPLE.counts, SAMPLE.counts, LABELS, methods=methods)
    row = found.as_dict()
    assert found.to_frame().to_dicts() == [row | {"remarks": "; ".join(row["remarks"])}]
    scores = evaluate(SAMPLE.counts, LABELS, aggregators=methods).cells[0]
    assert found.mae == tuple(method.interval() for method in scores.methods)
    assert found.difference == scores.lines[0]["mae_less_majority"]
    assert found.pvalue == scores.rankings["mae"].pvalues[0, 1]


def test_ways_that_decide_alike_do_not_differ():
    found = compare(SAMPLE.counts, SAMPLE.counts.copy(), LABELS, protocol=FEW)
    assert (found.difference.mean, found.pvalue, found.better) == (0, 1, None)
    # On other items they may: of none of so many groups, by Wilson's interval.
    square = t.ppf(0.975, found.n_groups - 1) ** 2
    most = 2 * square / (found.n_groups + square)
    assert found.difference[1:] == pytest.approx((-most, most))
    mae = f"{found.mae[0].mean:.3f}"
    assert str(found) == (
        f"no significant difference: MAE {mae} (first), {mae} (second), difference 0.000, "
        f"95% interval {-most:.3f} to {most:.3f}; second may be worse by up to {most:.3f}"
    )


def test_what_is_not_told_apart_may_still_differ():
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 2, 60)
    ways = (
        3 * np.eye(3, dtype=int)[np.clip(labels + rng.integers(-1, 2, 60), -1, 1) + 1] for _ in "ab"
    )
    found = compare(*ways, labels, protocol=FEW)
    assert found.better is None
    worst = max(-found.difference.low if found.difference.mean <= 0 else found.difference.high, 0)
    assert found.sentence().endswith(f" may be worse by up to {worst:.3f}")
    about = [remark.code for remark in found.remarks]
    assert about == (["items-to-tell"] if found.items_wanted else [])
    half = found.difference.mean - found.difference.low
    if found.items_wanted:
        assert found.items_wanted == pytest.approx(
            60 * (half / found.difference.mean) ** 2, rel=0.3
        )


@pytest.mark.parametrize("names", [("a",), ("a", "b", "c"), "ab"])
def test_two_ways_have_two_names(names):
    with refused("names", got=names):
        compare(SAMPLE.counts, STRENGTH, LABELS, names=names)


def test_the_sentence_names_what_is_better():
    right = np.eye(3, dtype=int)[LABELS + 1] * 8
    found = compare(right, SAMPLE.first(1), LABELS, names=("eight", "one"), protocol=FEW)
    mean, low, high = found.difference
    assert found.better == "eight"
    assert str(found) == (
        f"better: eight, MAE 0.000 against {-mean:.3f}, difference {-mean:.3f}, 95% interval "
        f"{-high:.3f} to {-low:.3f}"
    )
    swapped = compare(SAMPLE.first(1), right, LABELS, names=("one", "eight"), protocol=FEW)
    assert str(swapped) == str(found)


# Tables


def table(sample, items, **more):
    columns = {**sample.vote_columns(), **{name: [value] * N * 8 for name, value in more.items()}}
    votes = read_votes(columns)
    return votes.filter({"item": [str(item) for item in items]})


def test_tables_are_joined_by_item_and_what_one_lacks_is_left_out():
    first, second = table(SAMPLE, range(50)), table(OTHER, range(20, N))
    labels = {"item": np.arange(10, N)[::-1], "label": LABELS[10:][::-1]}
    found = compare(first, second, read_labels(labels), n_votes=(3, None), protocol=FEW)
    assert (found.n_items, found.n_only_first, found.n_only_second) == (30, 10, 10)
    assert found.n_unlabelled == 10
    rows = slice(20, 50)
    expected = compare(SAMPLE.first(3)[rows], OTHER.counts[rows], LABELS[rows], protocol=FEW)
    assert found.difference == pytest.approx(expected.difference, abs=1e-12)
    grouped = read_labels({**labels, "group": GROUPS[10:][::-1]})
    found = compare(first, second, grouped, protocol=FEW)
    expected = compare(
        SAMPLE.counts[rows], OTHER.counts[rows], LABELS[rows], groups=GROUPS[rows], protocol=FEW
    )
    assert found.n_groups == 17
    assert found.difference == pytest.approx(expected.difference, abs=1e-12)


def test_groups_may_be_a_column_of_the_votes_of_either_way():
    plain = [table(sample, range(N)) for sample in (SAMPLE, OTHER)]
    grouped = [
        read_votes({**sample.vote_columns(), "group": np.repeat(GROUPS, 8)})
        for sample in (SAMPLE, OTHER)
    ]
    labels = {"item": np.arange(N), "label": LABELS}
    in_labels = read_labels({**labels, "group": GROUPS})
    expected = compare(*plain, in_labels, protocol=FEW)
    for first in (plain, grouped):
        for second in (plain, grouped):
            gold = in_labels if first is second is plain else read_labels(labels)
            assert str(compare(first[0], second[1], gold, protocol=FEW)) == str(expected)
    alone = compare(*plain, read_labels(labels), protocol=FEW)
    assert (expected.n_groups, alone.n_groups) == (17, N)
    scores = [evaluate(*way).cells[0].methods[0].interval() for way in (
        (plain[0], in_labels), (grouped[0], read_labels(labels)), (plain[0], read_labels(labels))
    )]  # fmt: skip
    assert scores[0] == scores[1] != scores[2]
    # Groups that labels name win, and the two ways have to agree.
    other = read_votes({**OTHER.vote_columns(), "group": np.repeat(GROUPS[::-1], 8)})
    assert str(compare(plain[0], other, in_labels, protocol=FEW)) == str(expected)
    with pytest.raises(InputError, match="item 0 is of group 'g0' in first and 'g8' in second"):
        compare(grouped[0], other, read_labels(labels), protocol=FEW)
    none = read_votes({**SAMPLE.vote_columns(), "group": [""] * 8 * N})
    assert none.labelled(read_labels(labels)).group is None
    for ways in ((none, grouped[1]), (grouped[0], none)):
        assert compare(*ways, read_labels(labels), n_votes=(3, 8), protocol=FEW).n_groups == 17
    # Votes that contradict each other matter only where labels name no group.
    torn = {**SAMPLE.vote_columns(), "group": ["g1", "g2"] * 4 * N}
    assert read_votes(torn).labelled(in_labels).group.tolist() == GROUPS.tolist()
    with pytest.raises(InputError, match="column group: item 0 has 'g1' and 'g2'"):
        read_votes(torn).labelled(read_labels(labels))
    unread = read_votes({"item": [0], "vote": [None], "group": ["g1"]}, scale=btdagg.Scale((1, 2)))
    with pytest.raises(InputError, match="no item has both votes and a label"):
        unread.labelled(read_labels({"item": [0], "label": [2]}, scale=btdagg.Scale((1, 2))))
    # An item whose votes have no group either is a group of its own.
    some = read_votes(
        {**SAMPLE.vote_columns(), "group": np.repeat([*GROUPS[:40], *[None] * 20], 8)}
    )
    assert some.labelled(read_labels(labels)).group.tolist() == [
        *GROUPS[:40], *(f" {item}" for item in range(40, N))
    ]  # fmt: skip


def test_a_panel_is_compared_with_one_of_its_judges():
    counts = np.stack([SAMPLE.counts, OTHER.counts], axis=1)
    few = Protocol(CrossFit(n_folds=3, n_repeats=1, n_refits=3), GroupTest())
    found = compare(counts, SAMPLE.counts, LABELS, protocol=few)
    items = as_items(counts, LABELS)
    methods = [Calibrated(judges=("1", "2"))]
    panel = evaluate(items, LABELS, aggregators=methods, protocol=few)
    mean = panel.cells[0].methods[0].interval().mean
    assert found.mae[0].mean == pytest.approx(mean, abs=0.1)  # by other folds
    names = {**SAMPLE.vote_columns(), "judge": ["a"] * N * 8}
    both = {
        name: np.concatenate([column, {**OTHER.vote_columns(), "judge": ["b"] * N * 8}[name]])
        for name, column in names.items()
    }
    votes, labels = read_votes(both), read_labels(SAMPLE.label_columns())
    of_tables = compare(
        votes.items(panel="judge"), votes.filter({"judge": ["a"]}), labels, protocol=few
    )
    assert of_tables.difference == pytest.approx(found.difference, abs=1e-12)


def test_items_without_a_decision_are_left_out():
    decided = np.where(np.arange(N) < 7, np.nan, LABELS)
    few_shot = as_items(SAMPLE.counts, decisions={"few_shot": decided})
    methods = Decided("few_shot", "few-shot", some=True), Calibrated()
    found = compare(few_shot, SAMPLE.counts, LABELS, methods=methods, protocol=FEW)
    assert (found.n_items, found.n_only_first, found.n_only_second) == (N - 7, 0, 7)
    assert found.mae[0].mean == 0


# Bad input


VOTES, GOLD = read_votes(SAMPLE.vote_columns()), read_labels(SAMPLE.label_columns())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((VOTES, VOTES, GOLD), "first and second are the same votes, decided in the same way"),
        (
            (VOTES, STRENGTH, GOLD),
            "labels are a table but counts is an array",
        ),
        ((VOTES, VOTES, LABELS), "first and second are the same"),
        (
            (VOTES, VOTES.filter({"item": ["3"]}), LABELS),
            "expected labels with ids of items",
        ),
        (
            (VOTES.filter({"item": ["1", "2"]}), VOTES.filter({"item": ["3", "4"]}), GOLD),
            "0 labelled items have votes of both first and second, expected at least 2; first "
            "begins with item 1, second with item 3",
        ),
        (
            (SAMPLE.counts, STRENGTH, np.ones(N)),
            "all 60 labels are 1, expected at least two",
        ),
        ((SAMPLE.counts, -STRENGTH, LABELS), r"counts\[0, \d\] is -.*, expected a finite number"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        compare(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": (Calibrated(),)}, "methods is .*, expected one for both, or two"),
        ({"n_votes": 3}, "n_votes needs tables of votes"),
        ({"protocol": Protocol(RandomSplits(n_splits=2))}, "protocol has random splits, expected"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        compare(SAMPLE.counts, STRENGTH, LABELS, **options)


# The strength of votes


def write_margins(margins, n=N):
    """Three votes of each of some items, which are its label, with its margin."""
    rows = {"item": np.repeat(np.arange(n), 3), "vote": np.repeat(LABELS[:n], 3)}
    pl.DataFrame({**rows, "margin": np.repeat(margins[:n], 3)}).write_csv("votes.csv")
    rows = {"item": np.arange(n), "label": LABELS[:n], "group": GROUPS[:n]}
    pl.DataFrame(rows).write_csv("labels.csv")


def test_commands_say_where_strength_is_worse_and_there_are_labels_to_tell(
    cli, folder, quick_commands
):
    margins = RNG.choice([0.01, 9], N)
    warning = "warning: vote strength is worse than whole votes: MAE 0."
    told = "votes.csv", "labels.csv", "--set", "full_margin=9"
    write_margins(margins)
    for command in ("calibrate", "evaluate"):
        said = " ".join("".join(cli(command, *told)[1:]).split())
        assert warning in said
        assert "; leave strength out" in said
    write_margins(margins, 19)
    assert "whole votes" not in "".join(cli("calibrate", *told)[1:])


def test_an_evaluation_says_whether_strength_is_better_than_signs(cli, folder, quick_commands):
    """Votes are right where their margin is 9, and wrong where it is 1."""
    rows = {"item": ITEMS, "vote": SAMPLE.votes.ravel()}
    sure = np.where(SAMPLE.votes == LABELS[:, None], 9, 1).ravel()
    pl.DataFrame({**rows, "margin": sure}).write_csv("votes.csv")
    pl.DataFrame({"item": np.arange(N), "label": LABELS}).write_csv("labels.csv")
    told = "votes.csv", "labels.csv", "--set", "full_margin=9"
    assert "better: strength, MAE 0." in " ".join("".join(cli("evaluate", *told)[1:]).split())
    assert "whole votes" not in "".join(cli("calibrate", *told)[1:])
