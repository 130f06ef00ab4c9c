"""The evaluation protocol: splits, comparison, cells, summary; simulated and real votes."""

import re
import statistics
import warnings
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btdagg import (
    InputError,
    Protocol,
    calibrate,
    evaluate,
    majority_vote,
    read_labels,
    read_votes,
)
from btdagg.datasets import simulate
from btdagg.evaluation import CrossFit, GroupTest, RandomSplits
from btdagg.methods import Decided, MajorityVote
from btdagg.model import CalibrationWarning
from btdagg.votes import Items
from draws import comparison_of, random_splits

# Splits


@pytest.mark.parametrize(
    ("n_items", "wanted", "size"),
    [
        (1000, {}, 50),
        (1835, {}, 92),
        (2, {}, 1),
        (10, {}, 1),
        (100, {"share": 0.994}, 99),
        (100, {"share": 1e-9}, 1),
        (100, {"size": 99}, 99),
    ],
)
def test_splits_have_the_size_asked_for_and_hold_every_item_once(n_items, wanted, size):
    for calibration, evaluation in random_splits(n_items, n_splits=20, **wanted):
        assert len(calibration) == size
        assert sorted([*calibration, *evaluation]) == list(range(n_items))
        assert (np.diff(calibration) > 0).all()
        assert (np.diff(evaluation) > 0).all()


def chosen(n_items=60, **arguments):
    return [tuple(split.calibration) for split in random_splits(n_items, **arguments)]


def test_splits_depend_on_seed_and_number_alone():
    groups = np.arange(60) // 3
    for given_groups in (None, groups):
        few = chosen(n_splits=5, seed=3, size=10, groups=given_groups)
        assert chosen(n_splits=5, seed=3, size=10, groups=given_groups) == few
        assert chosen(n_splits=40, seed=3, size=10, groups=given_groups)[:5] == few
        assert len(set(chosen(n_splits=40, seed=3, size=10, groups=given_groups))) == 40
        other = chosen(n_splits=40, seed=4, size=10, groups=given_groups)
        assert not set(other) & set(chosen(n_splits=40, seed=3, size=10, groups=given_groups))


@pytest.mark.parametrize("groups", [None, np.arange(20) // 2])
def test_every_item_is_as_likely_to_be_calibrated_on(groups):
    n_splits = 2000
    seen = Counter(
        i for split in chosen(20, n_splits=n_splits, size=6, groups=groups) for i in split
    )
    # Five standard deviations of a binomial count.
    allowed = 5 * (n_splits * 0.3 * 0.7) ** 0.5
    assert all(abs(seen[item] - 0.3 * n_splits) < allowed for item in range(20))


@given(st.lists(st.integers(0, 6), min_size=2, max_size=40), st.data())
@settings(deadline=None)
def test_groups_are_never_split_and_no_more_are_drawn_than_needed(groups, data):
    sizes = Counter(groups)
    size = data.draw(st.integers(1, len(groups)))
    splits = []
    try:
        splits += random_splits(len(groups), size=size, n_splits=5, groups=groups)
    except InputError:
        # Unless the others are enough without it, the largest group can be the last that is drawn.
        assert size > len(groups) - max(sizes.values())
    for calibration, evaluation in splits:
        drawn = Counter(groups[item] for item in calibration)
        assert all(sizes[group] == count for group, count in drawn.items())
        assert len(evaluation) > 0
        assert len(calibration) >= size
        assert len(calibration) - size < max(drawn.values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 0.0}, "share is 0.0, expected a number above 0 and below 1"),
        ({"share": 0.5, "size": 5}, "share and size are both given, expected one of them"),
        ({"size": 10}, "calibrating on 10 of 10 items leaves none to evaluate; calibrate on fewer"),
        ({"groups": [7] * 10}, "all 10 items are in one group, which cannot be split"),
    ],
)
def test_splits_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        list(random_splits(**{"n_items": 10, **arguments}))


# Comparison


def sampled(regime="rb2-factuality", n_items=200, seed=0, n_votes=8):
    return simulate(regime, n_items, n_votes, seed=seed)


def fitted_model(counts, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        return calibrate(counts, labels).model


def with_protocol(arguments):
    """Arguments with those of the splits in a protocol."""
    names = ("share", "size", "n_splits", "seed")
    splits = {name: value for name, value in arguments.items() if name in names}
    rest = {name: value for name, value in arguments.items() if name not in names}
    return {**rest, "protocol": Protocol(RandomSplits(**splits))}


@pytest.mark.parametrize("groups", [None, np.sqrt(np.arange(200)).astype(int)])
def test_scores_are_those_of_a_direct_loop(groups):
    sample = sampled()
    gold = sample.labels.astype(int).tolist()
    arguments = {"size": 25, "n_splits": 12, "seed": 5, "groups": groups}
    found = comparison_of(sample.counts, sample.labels, **with_protocol(arguments))
    assert [method.name for method in found.methods] == ["calibrated", "majority vote"]
    sizes = []
    for number, (fit, rest) in enumerate(random_splits(200, **arguments)):
        sizes.append(len(fit))
        model = fitted_model(sample.counts[fit], sample.labels[fit])
        decided = (
            [model.decide_one(*map(int, sample.counts[item])) for item in rest],
            [int(majority_vote(sample.counts[[item]])[0]) for item in rest],
        )
        for method, labels in zip(found.methods, decided, strict=True):
            errors = [abs(label - gold[item]) for label, item in zip(labels, rest, strict=True)]
            n = len(rest)
            assert method.mae[number] == pytest.approx(sum(errors) / n, rel=1e-12)
            assert method.accuracy[number] == pytest.approx(errors.count(0) / n, rel=1e-12)
            assert method.matrices[number, :, 1].sum() == labels.count(0)
    assert found.n_items == 200
    assert found.n_calibration == pytest.approx(statistics.fmean(sizes))
    for method in found.methods:
        assert method.mae.shape == (12,)
        for values, interval in (
            (method.mae, method.interval()),
            (method.accuracy, method.interval("accuracy")),
        ):
            ends = stats.norm.interval(0.95, values.mean(), stats.sem(values))
            assert interval == pytest.approx((values.mean(), *ends), abs=1e-4)


@dataclass(frozen=True)
class Recorder:
    """Remembers which items it has seen; the first count of an item is its number."""

    name: str = "recorder"
    fits: list = field(default_factory=list)
    decisions: list = field(default_factory=list)

    def fit(self, counts, labels):
        self.fits.append((counts[:, 0].tolist(), labels.tolist()))
        return self

    def decide(self, counts):
        self.decisions.append(counts[:, 0].tolist())
        return np.ones(len(counts), dtype=np.int8)


def test_an_aggregator_learns_from_the_calibration_set_alone():
    counts = np.zeros((40, 3), dtype=np.int64)
    counts[:, 0] = np.arange(40)
    labels = np.resize([-1, 0, 1, 1], 40)
    recorder = Recorder()
    found = comparison_of(
        counts, labels, [recorder], protocol=Protocol(RandomSplits(share=0.25, n_splits=6, seed=2))
    )
    splits = list(random_splits(40, share=0.25, n_splits=6, seed=2))
    assert recorder.fits == [
        (calibration.tolist(), labels[calibration].tolist()) for calibration, _ in splits
    ]
    assert recorder.decisions == [evaluation.tolist() for _, evaluation in splits]
    (method,) = found.methods
    assert method.name == "recorder"
    assert method.mae.tolist() == pytest.approx(
        [np.mean(1 - labels[evaluation]) for _, evaluation in splits]
    )


@pytest.mark.parametrize(
    ("decided", "message"),
    [
        ([0, 0.5] * 4, r"decisions of mine\[1\] is 0.5, expected one of -1, 0, 1"),
        ([0, 1], "decisions of mine has 2 rows, expected 8 as in counts"),
    ],
)
def test_what_an_aggregator_decides_has_to_be_labels(decided, message):
    class Mine(Recorder):
        def decide(self, counts):
            return np.array(decided)

    with pytest.raises(InputError, match=message):
        comparison_of(
            [[1, 0, 0]] * 10, [0, 1] * 5, [Mine("mine")], protocol=Protocol(RandomSplits(size=2))
        )


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(RandomSplits(n_splits=3), loss=lambda gold, decided: (decided - gold) ** 2),
        Protocol(CrossFit(3, 1, 2), GroupTest(), loss=lambda gold, decided: (decided - gold) ** 2),
    ],
)
def test_a_protocol_may_have_another_loss(protocol):
    sample = sampled(n_items=60)
    compared = comparison_of(sample.counts, sample.labels, protocol=protocol)
    majority = compared.methods[1]
    squares = (majority_vote(sample.counts) - sample.labels.astype(int)) ** 2
    if isinstance(protocol.splitter, CrossFit):
        assert majority.interval().mean == pytest.approx(squares.mean())
    assert majority.losses.tolist() == [[0, 1, 4], [1, 0, 1], [4, 1, 0]]
    gold = compared.gold
    expected = min(gold @ row for row in np.array([[0, 1, 4], [1, 0, 1], [4, 1, 0]]))
    assert compared.best_constant[1] == pytest.approx(expected)


def test_confusion_matrices_are_counted_and_a_label_that_no_item_has_has_no_percentages():
    rng = np.random.default_rng(6)
    gold = rng.choice([-1, 1], 120)
    counts = rng.multinomial(5, [0.3, 0.3, 0.4], 120)
    found = comparison_of(counts, gold, protocol=Protocol(RandomSplits(n_splits=3)))
    majority, decided = found.methods[1], majority_vote(counts)
    for matrix, (_, left) in zip(majority.matrices, random_splits(120, n_splits=3), strict=True):
        for label in (-1, 0, 1):
            of_label = decided[left][gold[left] == label]
            assert matrix[label + 1].tolist() == [(of_label == own).sum() for own in (-1, 0, 1)]
    share = majority.counts[2] / majority.counts[2].sum()
    np.testing.assert_allclose(majority.percentages[2], 100 * share)
    assert np.isnan(majority.percentages[1]).all()
    assert majority.gold[1] == 0
    np.testing.assert_allclose(majority.predicted, majority.counts.sum(0) / majority.counts.sum())


def test_without_a_test_there_are_scores_and_no_ranks():
    sample = sampled(n_items=60)
    untested = Protocol(RandomSplits(n_splits=3), test=None)
    found = comparison_of(sample.counts, sample.labels, protocol=untested)
    tested = comparison_of(
        sample.counts, sample.labels, protocol=Protocol(RandomSplits(n_splits=3))
    )
    for one, other in zip(found.methods, tested.methods, strict=True):
        assert one.matrices.tolist() == other.matrices.tolist()
    with pytest.raises(InputError, match="differences were not tested: the protocol has no test"):
        _ = found.rankings["mae"]


# Evaluation


def test_arrays_are_evaluated_as_one_part_and_say_what_only_tables_have():
    sample = sampled(n_items=60)
    totals, steps = [], []

    def start(total):
        totals.append(total)
        return lambda: steps.append(1)

    scores = evaluate(sample.counts, sample.labels, progress=start, **SETTINGS)
    (cell,) = scores.cells
    assert (cell.key, cell.n_votes, totals, len(steps)) == ((), None, [4], 4)
    assert cell.fitted.calibration.model == fitted_model(sample.counts, sample.labels)
    for name, value in {"n_votes": [4], "by": ["task"], "confidence": "c"}.items():
        expected = f"{name} is for tables of votes and labels, but labels is an array"
        with pytest.raises(InputError, match=expected):
            evaluate(sample.counts, sample.labels, **{name: value})
        with pytest.raises(InputError, match=f"{name} is for tables .*, but these are items"):
            evaluate(Items(counts=sample.counts, labels=sample.labels), **{name: value})
    votes, labels = read_votes(judged(sample, "g")), read_labels(sample.label_columns())
    with pytest.raises(
        InputError, match="groups is for arrays; in a table of labels, use a column"
    ):
        evaluate(votes, labels, groups=sample.labels)


def columns_of(*parts):
    """Several dicts of columns below each other."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def judged(sample, judge, **more):
    """Votes of a simulation with the name of a judge, and other columns of one value each."""
    n = sample.votes.size
    constant = {name: np.repeat(value, n) for name, value in {"judge": judge, **more}.items()}
    return {**sample.vote_columns(), **constant}


def tasked(sample, task):
    return {**sample.label_columns(), "task": np.repeat(task, len(sample.labels))}


MATH, TIES = sampled("rb2-math", 90), sampled("rb2-ties", 70)
# Another judge of the same items, who has more votes and other ones.
MATH_AGAIN = replace(MATH, votes=np.roll(MATH.votes, 20, axis=0))
SETTINGS = {"protocol": Protocol(RandomSplits(size=10, n_splits=4, seed=6))}


def assert_same_scores(cell, counts, labels, groups=None, **arguments):
    expected = comparison_of(counts, labels, groups=groups, **{**SETTINGS, **arguments})
    assert cell.n_items == expected.n_items == len(labels)
    for got, wanted in zip(cell.methods, expected.methods, strict=True):
        assert got.name == wanted.name
        assert got.matrices.tolist() == wanted.matrices.tolist()


def test_every_task_and_judge_is_evaluated_by_itself_at_every_budget():
    votes = read_votes(
        columns_of(
            judged(MATH, "g", task="math"),
            judged(TIES, "g", task="ties"),
            judged(MATH_AGAIN, "h", task="math"),
        )
    )
    labels = read_labels(columns_of(tasked(TIES, "ties"), tasked(MATH, "math")))
    found = evaluate(votes, labels, n_votes=(4, 8), **SETTINGS)
    assert found.by == ("task", "judge")
    assert found.skipped == ()
    samples = {("math", "g"): MATH, ("ties", "g"): TIES, ("math", "h"): MATH_AGAIN}
    assert [(cell.key, cell.n_votes) for cell in found.cells] == [
        (key, n_votes) for key in samples for n_votes in (4, 8)
    ]
    for cell in found.cells:
        sample = samples[cell.key]
        counts = sample.first(cell.n_votes)
        assert_same_scores(cell, counts, sample.labels)
        assert cell.fitted.calibration.model == fitted_model(counts, sample.labels)


def test_columns_can_be_chosen():
    votes = read_votes(
        columns_of(
            judged(MATH, "g", temperature=0.0, template="p"),
            judged(MATH_AGAIN, "g", temperature=0.7, template="p"),
        )
    )
    labels = read_labels(MATH.label_columns())
    found = evaluate(votes, labels, by=["temperature", "template"], **SETTINGS)
    assert found.by == ("temperature", "template")
    assert [cell.key for cell in found.cells] == [("0.0", "p"), ("0.7", "p")]
    assert_same_scores(found.cells[1], MATH_AGAIN.counts, MATH.labels)
    pooled = evaluate(votes, labels, by=(), **SETTINGS)
    assert pooled.by == ()
    (cell,) = pooled.cells
    assert cell.key == ()
    assert_same_scores(cell, MATH.counts + MATH_AGAIN.counts, MATH.labels)


def test_the_task_is_taken_from_the_labels_where_only_they_know_it():
    votes = read_votes(columns_of(judged(MATH, "g"), judged(TIES, "g")))
    labels = read_labels(columns_of(tasked(TIES, "ties"), tasked(MATH, "math")))
    found = evaluate(votes, labels, **SETTINGS)
    assert found.by == ("task", "judge")
    assert [cell.key for cell in found.cells] == [("math", "g"), ("ties", "g")]
    assert_same_scores(found.cells[0], MATH.counts, MATH.labels)
    assert_same_scores(found.cells[1], TIES.counts, TIES.labels)


def test_items_of_different_tasks_may_have_the_same_id():
    ids = np.arange(70)
    one, two = replace(TIES, items=ids), replace(sampled("rb2-math", 70), items=ids)
    votes = read_votes(columns_of(judged(one, "g", task="one"), judged(two, "g", task="two")))
    labels = read_labels(columns_of(tasked(two, "two"), tasked(one, "one")))
    found = evaluate(votes, labels, **SETTINGS)
    assert_same_scores(found.cells[0], one.counts, one.labels)
    assert_same_scores(found.cells[1], two.counts, two.labels)
    some = {name: column[5:] for name, column in tasked(two, "two").items()}
    found = evaluate(votes, read_labels(columns_of(some, tasked(one, "one"))), **SETTINGS)
    assert [cell.n_items for cell in found.cells] == [70, 65]
    assert "5 items have votes but no label and are left out" in found.remarks


def test_counts_are_evaluated_like_votes():
    columns = dict(zip(("minus", "tie", "plus"), MATH.counts.T, strict=True))
    counts = read_votes({"item": MATH.items, **columns})
    found = evaluate(counts, read_labels(MATH.label_columns()), **SETTINGS)
    assert found.by == ()
    (cell,) = found.cells
    assert (cell.key, cell.n_votes, cell.n_missing) == ((), None, 0)
    assert (cell.items.label.tolist(), cell.items.column("tie")) == (MATH.labels.tolist(), None)
    assert_same_scores(cell, MATH.counts, MATH.labels)
    with pytest.raises(InputError) as error:
        evaluate(counts, read_labels(MATH.label_columns()), n_votes=[4])
    assert str(error.value) == "data frame: n_votes needs single votes, but these are counts"


def two_judges(second=MATH_AGAIN):
    return read_votes(columns_of(judged(MATH, "g"), judged(second, "h")))


def test_what_cannot_be_evaluated_is_skipped_and_said():
    stranger = replace(MATH, items=np.char.add(MATH.items, "?"))
    found = evaluate(two_judges(stranger), read_labels(MATH.label_columns()), **SETTINGS)
    assert [cell.key for cell in found.cells] == [("g",)]
    reason = (
        "no item has both votes and a label: the first item of the votes is item "
        "'rb2-math-00?', that of data frame is item 'rb2-math-00'"
    )
    assert found.skipped == ((("h",), reason),)
    assert f"h: not evaluated: {reason}" in found.remarks
    only = two_judges(stranger).filter({"judge": "h"})
    with pytest.raises(InputError) as error:
        evaluate(only, read_labels(MATH.label_columns()), **SETTINGS)
    assert str(error.value) == reason


# Summary


@pytest.fixture(scope="module")
def evaluation():
    votes = read_votes(columns_of(judged(MATH, "g", task="math"), judged(TIES, "h", task="ties")))
    labels = read_labels(columns_of(tasked(MATH, "math"), tasked(TIES, "ties")))
    return evaluate(votes, labels, n_votes=(2, 8), **SETTINGS)


def test_averages_are_over_cells_split_by_split(evaluation):
    found = evaluation.averages
    assert [(line["n_votes"], line["method"]) for line in found] == [
        (2, "calibrated"), (2, "majority vote"), (8, "calibrated"), (8, "majority vote")
    ]  # fmt: skip
    for line in found:
        place = ["calibrated", "majority vote"].index(line["method"])
        cells = [cell for cell in evaluation.cells if cell.n_votes == line["n_votes"]]
        assert len(cells) == 2
        mae = sum(cell.methods[place].mae for cell in cells) / 2
        accuracy = sum(cell.methods[place].accuracy for cell in cells) / 2
        assert line["mae"].mean == pytest.approx(mae.mean(), rel=1e-12)
        assert line["accuracy"].mean == pytest.approx(accuracy.mean(), rel=1e-12)
        assert line["key"] == ("average", "")
        assert not {"n_items", "rank", "accuracy_rank", "tied"} & line.keys()


def test_a_frame_has_the_plain_values_of_the_lines(evaluation):
    frame = evaluation.to_frame()
    assert frame.to_dicts() == evaluation.as_dict()["lines"]
    assert frame.columns[:3] == ["task", "judge", "n_votes"]
    assert {"mae", "mae_low", "mae_high", "rank", "tied"} <= {*frame.columns}


# Remarks


def all_tied(n_items=120):
    """Votes that say nothing about labels most of which are ties."""
    rng = np.random.default_rng(8)
    votes = rng.choice([-1, 1], size=(n_items, 8))
    labels = rng.choice([-1, 0, 0, 0, 1], size=n_items)
    items = np.array([f"x{item}" for item in range(n_items)])
    columns = {
        "item": np.repeat(items, 8), "vote": votes.ravel(), "sample": np.tile(np.arange(8), n_items)
    }  # fmt: skip
    return columns, {"item": items, "label": labels}


def test_the_answer_names_the_methods_that_are_not_told_apart_and_what_calibration_is_worth():
    rng = np.random.default_rng(3)
    labels = rng.integers(-1, 2, 400)
    right = rng.random((400, 8)) < 0.75
    votes = np.where(right, labels[:, None], rng.integers(-1, 2, (400, 8)))
    counts = np.stack([(votes == side).sum(axis=1) for side in (-1, 0, 1)], axis=1)
    (cell,) = (scores := evaluate(counts, labels)).cells
    first = [line for line in sorted(cell.lines, key=lambda line: line["mae"].mean) if line["tied"]]
    for line in first:
        assert f"{line['method']} (MAE {line['mae'].mean:.3f})" in scores.sentence()
    worse = [line for line in cell.lines if not line["tied"]]
    assert not any(f"{line['method']} (MAE" in scores.sentence() for line in worse)
    (line,) = [line for line in cell.lines if line["method"] == "calibrated"]
    fall = -line["mae_less_majority"].mean
    assert f"MAE of majority vote minus that of calibrated: {fall:z.3f} (95%" in scores.sentence()
    assert str(scores).splitlines()[0] == scores.sentence()
    alone = evaluate(counts, labels, aggregators=[MajorityVote()])
    assert re.fullmatch(r"majority vote \(MAE 0\.\d{3}\)", alone.sentence())


def test_a_judge_that_adds_nothing_is_remarked_upon():
    columns, labels = all_tied()
    found = evaluate(read_votes(columns), read_labels(labels), **SETTINGS)
    (cell,) = found.cells
    assert cell.fitted.calibration.model.always_ties(8)
    mae = cell.methods[0].mae.mean()
    constant = cell.errors_of_constants[1]
    assert constant == pytest.approx(np.mean(labels["label"] != 0), abs=0.02)
    assert constant < 0.45
    assert list(found.remarks) == [
        "fitted to all 120 labels, the model calls every item with up to 8 votes a tie, whatever "
        "the votes: here this judge is no better than a constant answer. Always answering tie "
        f"has MAE {constant:.3f}; the scored models, each calibrated on "
        f"{cell.n_calibration:.0f} labels, have {mae:.3f}"
    ]
    # The two differ: what is scored is not the model that calls every item a tie.
    assert mae > constant


def test_items_whose_votes_are_all_missing_are_remarked_upon():
    columns = judged(MATH, "g")
    first = columns["item"][0]
    columns["vote"] = [
        None if item == first else vote
        for item, vote in zip(columns["item"], columns["vote"], strict=True)
    ]
    found = evaluate(read_votes(columns), read_labels(MATH.label_columns()), **SETTINGS)
    assert found.cells[0].n_empty == 1
    assert "g: 1 of 90 items have only missing votes, and are decided without votes" in (
        found.remarks
    )


def test_a_part_that_fails_at_one_number_of_votes_is_in_no_average():
    columns = [judged(MATH, judge) for judge in ("g", "h", "i")]
    columns = {name: [value for one in columns for value in one[name]] for name in columns[0]}
    columns["gsa_2"] = [0] * len(columns["item"])
    columns["gsa_4"] = [None if judge == "i" else 1 for judge in columns["judge"]]
    found = evaluate(
        read_votes(columns),
        read_labels(MATH.label_columns()),
        n_votes=[2, 4],
        aggregators=[Decided("gsa"), MajorityVote()],
        **SETTINGS,
    )
    assert [(cell.key[0], cell.n_votes) for cell in found.cells] == [
        ("g", 2), ("g", 4), ("h", 2), ("h", 4)
    ]  # fmt: skip
    assert found.skipped[0][1].startswith("at 4 votes: 'gsa' has no decision for 80 of 80 items")


def test_what_is_left_out_is_remarked_upon():
    votes = judged(MATH, "g")
    votes["vote"] = [None if row in (3, 700) else vote for row, vote in enumerate(votes["vote"])]
    kept = np.arange(90) >= 7
    labels = read_labels({
        "item": [*MATH.items[kept], "no votes", "none either"],
        "label": [*MATH.labels[kept], 1, 0],
    })  # fmt: skip
    found = evaluate(read_votes(votes), labels, n_votes=(4, 8), **SETTINGS)
    assert list(found.remarks[:3]) == [
        "7 items have votes but no label and are left out",
        "2 labels have no votes and are left out",
        "2 votes are missing and are left out",
    ]


# Real votes


def test_calibration_beats_majority_vote_for_every_real_judge_and_task(shared):
    votes = pl.read_parquet(shared / "data/rb2/votes.parquet")
    votes = read_votes(votes.filter(template="base", temperature="default"))
    labels = read_labels(shared / "data/rb2/labels.csv")
    protocol = Protocol(RandomSplits(n_splits=6))
    scores = evaluate(votes, labels, n_votes=[8], protocol=protocol)
    found = {(*line["key"], line["method"]): line for line in scores.lines}
    assert len(found) == 30
    for task, judge, method in found:
        if method == "calibrated":
            calibrated, majority = (
                found[task, judge, name] for name in ("calibrated", "majority vote")
            )
            assert calibrated["mae"].high < majority["mae"].low
            assert (calibrated["rank"], calibrated["tied"]) == (1, True)
            # With prompts as the units that change sign, the smallest task tells them apart less.
            if task != "precise-if":
                assert (majority["rank"], majority["tied"]) == (2, False), (task, judge)
