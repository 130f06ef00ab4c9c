"""Leave one rater out, against a plain loop over rows; simulated and real raters."""

import statistics
from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest

from btdagg import PAIRS, InputError, Protocol, read_votes
from btdagg.evaluation import RandomSplits
from btdagg.methods import Calibrated, MajorityVote
from btdagg.paper import leave_one_rater_out, read_ratings
from draws import random_splits

pytestmark = pytest.mark.filterwarnings("ignore::btdagg.model.CalibrationWarning")


def most(votes):
    """The most frequent vote; where several are, a tie."""
    ranking = Counter(votes).most_common()
    unique = len(ranking) == 1 or ranking[0][1] > ranking[1][1]
    return ranking[0][0] if unique else 0


def by_hand(rows):
    """Accuracy, MAE and items of each rater, from (item, rater, vote) rows, by dictionaries."""
    of_item = defaultdict(dict)
    for item, rater, vote in rows:
        if vote is not None:
            of_item[item][rater] = vote
    errors = defaultdict(list)
    for ratings in of_item.values():
        for rater, vote in ratings.items():
            others = [v for other, v in ratings.items() if other != rater]
            gold = most(others) if others else None
            if gold is not None:
                errors[rater].append(abs(vote - gold))
    return {
        rater: (statistics.mean(e == 0 for e in found), statistics.mean(found), len(found))
        for rater, found in errors.items()
    }


def table(rows, **more):
    items, raters, votes = zip(*rows, strict=True)
    return {"item": list(items), "rater": list(raters), "vote": list(votes), **more}


def some_ratings(n_items=200, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(-1, 2, n_items)
    rows = []
    for item in range(n_items):
        for rater in rng.choice(6, rng.integers(1, 6), replace=False):
            vote = truth[item] if rng.random() < 0.6 else rng.integers(-1, 2)
            rows.append((f"i{item}", f"r{rater}", None if rng.random() < 0.05 else int(vote)))
    return rows, truth


def some_votes(truth, n_votes=6, seed=1):
    rng = np.random.default_rng(seed)
    return [
        (f"i{item}", int(gold) if rng.random() < 0.5 else int(rng.integers(-1, 2)))
        for item, gold in enumerate(truth)
        for _ in range(n_votes)
    ]


def votes_of(rows):
    return read_votes({"item": [item for item, _ in rows], "vote": [vote for _, vote in rows]})


def assert_equals(found, wanted):
    assert {scores.rater for scores in found.raters} == set(wanted)
    for scores in found.raters:
        accuracy, mae, n_items = wanted[scores.rater]
        assert scores.n_items == n_items
        assert scores.accuracy == pytest.approx(accuracy, abs=1e-12)
        assert scores.mae == pytest.approx(mae, abs=1e-12)
        assert scores.compared is None


def test_raters_against_one_another_equal_a_plain_loop():
    rows, _ = some_ratings()
    found = leave_one_rater_out(read_ratings(table(rows)))
    assert_equals(found, by_hand(rows))
    assert found.n_wins == found.n_wins_by_mae == 0


def test_what_is_left_out_is_counted():
    rows = [("a", 1, 1), ("a", 2, 1), ("a", 3, -1), ("b", 1, 0), ("c", 1, None), ("c", 2, 1)]
    found = leave_one_rater_out(read_ratings(table(rows)))
    first, second, third = found.raters
    # On "a" the others of rater 1 and of rater 2 vote for either side: a tie, which they miss by 1.
    assert (first.n_items, first.n_alone, first.n_shared) == (1, 1, 1)
    assert (first.accuracy, first.mae) == (0, 1)
    assert (second.n_items, second.n_alone, second.n_shared) == (1, 1, 1)
    assert (third.n_items, third.n_alone, third.n_shared, third.mae) == (1, 0, 0, 2)
    alone = leave_one_rater_out(read_ratings(table([*rows, ("d", 4, 1)])))
    reason = "data frame: no item of this rater has a label by other raters"
    assert alone.skipped == ((4, reason),)


@pytest.mark.parametrize(("method", "group"), [(Calibrated(), "half"), (MajorityVote(), None)])
def test_the_judge_equals_a_plain_loop(method, group):
    rows, truth = some_ratings()
    cast = [(item, vote) for item, vote in some_votes(truth) if item != "i7"]
    halves = [int(item[1:]) // 2 for item, *_ in rows]
    found = leave_one_rater_out(
        read_ratings(table(rows, half=halves)),
        votes_of(cast),
        method,
        group=group,
        protocol=Protocol(RandomSplits(share=0.2, n_splits=4, seed=5)),
    )
    of_item, tallies = defaultdict(dict), defaultdict(lambda: [0, 0, 0])
    for item, rater, vote in rows:
        if vote is not None:
            of_item[item][rater] = vote
    for item, vote in cast:
        tallies[item][vote + 1] += 1
    for scores in found.raters:
        labelled = []
        for item, counts in tallies.items():
            others = [v for other, v in of_item[item].items() if other != scores.rater]
            if scores.rater in of_item[item] and others:
                labelled.append((item, counts, most(others), of_item[item][scores.rater]))
        groups = None if group is None else [str(int(item[1:]) // 2) for item, *_ in labelled]
        splits = random_splits(len(labelled), share=0.2, n_splits=4, seed=5, groups=groups)
        for number, (chosen, left) in enumerate(splits):
            fitted = method.fit([labelled[i][1] for i in chosen], [labelled[i][2] for i in chosen])
            errors = [abs(fitted.decide([labelled[i][1]])[0] - labelled[i][2]) for i in left]
            own = [abs(labelled[i][3] - labelled[i][2]) for i in left]
            assert scores.compared.methods[0].mae[number] == pytest.approx(np.mean(errors))
            assert scores.compared.methods[0].accuracy[number] == pytest.approx(
                np.mean(np.equal(errors, 0))
            )
            assert scores.compared.methods[1].mae[number] == pytest.approx(np.mean(own))
            assert scores.compared.methods[1].accuracy[number] == pytest.approx(
                np.mean(np.equal(own, 0))
            )
        judge, human = scores.compared.methods
        assert scores.n_items == len(labelled)
        assert scores.n_without_votes == int(
            "i7" in of_item and scores.rater in of_item["i7"] and len(of_item["i7"]) > 1
        )
        assert scores.wins == (judge.accuracy.mean() > human.accuracy.mean())
        assert scores.wins_by_mae == (judge.mae.mean() < human.mae.mean())
    assert found.n_wins == sum(scores.wins for scores in found.raters)
    assert found.n_wins_by_mae == sum(scores.wins_by_mae for scores in found.raters)


def test_a_judge_who_says_what_the_rater_says_wins_nothing():
    rng = np.random.default_rng(2)
    rows = [(f"i{i}", r, int(rng.integers(-1, 2))) for i in range(60) for r in "abc"]
    of_a = [(item, vote) for item, rater, vote in rows if rater == "a"]
    found = leave_one_rater_out(
        read_ratings(table(rows)),
        votes_of(of_a),
        MajorityVote(),
        protocol=Protocol(RandomSplits(n_splits=10)),
    )
    scores = found.raters[0]
    assert scores.accuracy_gain == scores.mae_gain == (0, 0, 0)
    assert not scores.wins
    assert not scores.wins_by_mae


# Real raters


def test_real_raters_and_a_real_judge(shared):
    folder = shared / "data/vicuna80"
    long = (
        pl.read_csv(folder / "labels.csv")
        .unpivot(
            ["human1", "human2", "human3"], index="item", variable_name="rater", value_name="vote"
        )
        .drop_nulls()
        .with_columns(prompt=pl.col("item").str.slice(0, 11))
    )
    ratings = read_ratings(long)
    votes = read_votes(folder / "votes.csv").filter({"judge": "gpt4"})
    found = leave_one_rater_out(
        ratings, votes, group="prompt", protocol=Protocol(RandomSplits(n_splits=20))
    )
    wanted = by_hand(long.select("item", "rater", "vote").rows())
    for scores in found.raters:
        accuracy, mae, n_items = wanted[scores.rater]
        assert scores.n_items + scores.n_without_votes == n_items
        # The mean over splits of a rater who is not fitted is near that over all items.
        assert scores.compared.methods[1].accuracy.mean() == pytest.approx(accuracy, abs=0.02)
        assert scores.compared.methods[1].mae.mean() == pytest.approx(mae, abs=0.02)


def test_grades_are_no_ratings_of_pairs():
    rows = {"item": ["x", "x"], "rater": ["p", "q"], "score": [4, 5]}
    for read in (read_ratings, lambda rows: read_votes(rows, scale=PAIRS)):
        with pytest.raises(InputError, match="column score has grades, expected votes on pairs"):
            read(rows)
