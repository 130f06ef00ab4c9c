"""A new judge with the old one as neighbour: the model, and what the items judged again say."""

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import Scale, calibrate, fit_prior, recalibrate
from btdagg.evaluation import CrossFit

FIVE = Scale((1, 2, 3, 4, 5))
QUICK = CrossFit(n_folds=4, n_repeats=1, n_refits=20)


def two_judges(n=80, seed=0, new=1.0):
    """Votes of two judges of the same items; `new` is how well the second one sees quality."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(0, 1, n)
    labels = np.where(abs(quality) < 0.4, 0, np.sign(quality)).astype(int)

    def votes(strength):
        seen = strength * quality + rng.normal(0, 0.5, n)
        odds = np.exp(np.stack([-2 * seen, np.zeros(n), 2 * seen], axis=1))
        return rng.multinomial(8, odds / odds.sum(axis=1, keepdims=True))

    return votes(1.0), votes(new), labels


def grades_of_two(n=80, seed=0):
    rng = np.random.default_rng(seed)
    quality = rng.normal(3, 1, n)
    labels = np.clip(np.rint(quality), 1, 5).astype(int)
    tables = []
    for shift in (0.0, 0.8):
        given = np.clip(np.rint(quality[:, None] + shift + rng.normal(0, 1, (n, 4))), 1, 5)
        tables.append(np.stack([(given == k).sum(axis=1) for k in range(1, 6)], axis=1))
    return *tables, labels


def only(counts, n):
    """The votes of the first items alone."""
    few = counts.copy()
    few[n:] = 0
    return few


def test_without_an_item_judged_again_it_is_the_old_model():
    old, new, labels = two_judges()
    found = recalibrate(old, only(new, 0), labels, protocol=QUICK)
    assert found.calibration.model == calibrate(old, labels).model
    assert (found.n_again, found.judges, found.old_model_holds) == (0, None, None)
    assert "This model is the old one" in str(found)


@pytest.mark.parametrize("n", [10, 40])
def test_the_rest_of_the_old_votes_is_the_neighbour(n):
    old, new, labels = two_judges()
    found = recalibrate(old, only(new, n), labels, protocol=QUICK)
    prior = fit_prior({"old": (old[n:], labels[n:])})
    wanted = calibrate(new[:n], labels[:n], prior=prior).model
    np.testing.assert_array_equal(found.model.decide(new), wanted.decide(new))
    assert found.model.beta == wanted.beta
    assert found.model.provenance.ancestry == ("the old judge, 80 labels",)


def test_with_all_judged_again_no_label_counts_twice():
    old, new, labels = two_judges()
    found = recalibrate(old, new, labels, protocol=QUICK)
    wanted = calibrate(new, labels).model
    assert (found.model.beta, found.model.nu) == (wanted.beta, wanted.nu)


@pytest.mark.filterwarnings("ignore")
def test_grades_have_the_old_model_as_neighbour():
    old, new, labels = grades_of_two()
    found = recalibrate(old, only(new, 30), labels, scale=FIVE, protocol=QUICK)
    neighbour = calibrate(old[30:], labels[30:], scale=FIVE).model
    wanted = calibrate(new[:30], labels[:30], scale=FIVE, prior=[neighbour]).model
    np.testing.assert_array_equal(found.model.decide(new), wanted.decide(new))
    assert found.judges.n_items == 30


def test_errors_are_of_models_that_have_not_seen_the_item():
    """Against a plain loop: folds of one item each."""
    old, new, labels = two_judges(24)
    new = only(new, 12)
    errors = np.zeros((3, 12))
    for item in range(12):
        rest = np.delete(np.arange(24), item)
        again = rest[rest < 12]
        of_old = calibrate(old[rest], labels[rest]).model
        prior = fit_prior({"old": (old[12:], labels[12:])})
        of_new = calibrate(new[again], labels[again], prior=prior).model
        decided = of_old.decide(old), of_old.decide(new), of_new.decide(new)
        errors[:, item] = [abs(own[item] - labels[item]) for own in decided]
    found = recalibrate(old, new, labels, protocol=CrossFit(n_folds=24, n_refits=5))
    of_judge, of_model, of_new = errors.mean(axis=1)
    assert [own.mean for own in found.judges.mae] == pytest.approx([of_judge, of_new])
    assert [own.mean for own in found.models.mae] == pytest.approx([of_model, of_new])


@pytest.mark.filterwarnings("ignore")
def test_a_judge_that_turns_its_votes_round_is_found_out():
    old, new, labels = two_judges(120, new=-1.0)
    found = recalibrate(old, new, labels, protocol=QUICK)
    assert found.old_model_holds is False
    assert "the old model does not fit the new judge" in found.sentence()
    assert found.sentence().endswith(". The items are enough to tell the models apart")
    assert found.items_wanted is None


@pytest.mark.filterwarnings("ignore")
def test_a_better_and_a_worse_judge_are_told():
    old, new, labels = two_judges(200, new=0.0)
    worse = recalibrate(old, new, labels, names=("a", "b"), protocol=QUICK)
    assert worse.sentence().startswith("b is worse than a on 200 items judged again, MAE ")
    better = recalibrate(new, old, labels, names=("b", "a"), protocol=QUICK)
    assert better.sentence().startswith("a is better than b on 200 items judged again, MAE ")


def test_rows_of_another_order_give_the_same_answer():
    old, new, labels = two_judges(40)
    new = only(new, 20)
    order = np.random.default_rng(1).permutation(40)
    first = recalibrate(old, new, labels, protocol=QUICK)
    second = recalibrate(old[order], new[order], labels[order], protocol=QUICK)
    assert first.sentence() == second.sentence()


def test_tables_are_joined_by_item():
    old, new, labels = two_judges(40)
    tables = []
    for name, counts, rows in (("x", old, range(40)), ("y", new, range(19, -1, -1))):
        frame = pl.DataFrame(
            [(f"q{row}", vote, name) for row in rows for vote, n in zip((-1, 0, 1), counts[row],
             strict=True) for _ in range(n)],
            ["item", "vote", "judge"], orient="row",
        )  # fmt: skip
        tables.append(btdagg.read_votes(frame))
    gold = {"item": [f"q{row}" for row in range(40)], "label": labels.tolist()}
    found = recalibrate(*tables, btdagg.read_labels(gold), protocol=QUICK)
    wanted = recalibrate(old, only(new, 20), labels, protocol=QUICK)
    assert (found.n_again, found.sentence()) == (20, wanted.sentence())
    assert found.model.provenance.judge == ("y",)


def test_rows_without_a_label_are_left_out_and_a_saved_model_keeps_its_ancestry(tmp_path):
    old, new, labels = two_judges(60)
    gold = np.where(np.arange(60) < 50, labels, np.nan)
    found = recalibrate(old, only(new, 30), gold, names=("first", "second"), protocol=QUICK)
    assert (found.n_labels, found.n_again) == (50, 30)
    found.model.save(tmp_path / "model.json")
    loaded = btdagg.DavidsonModel.load(tmp_path / "model.json")
    assert loaded.provenance.ancestry == ("first, 50 labels",)
    assert "carried over from first, 50 labels" in str(loaded.provenance)
    assert found.as_dict()["judges"]["better"] is None


@pytest.mark.filterwarnings("ignore")
def test_intervals_end_where_errors_do_and_equal_decisions_are_no_certainty():
    old, _, labels = two_judges(30)
    same = recalibrate(old, old, labels, protocol=QUICK)
    low, high = same.models.difference[1:]
    assert low < -0.1 < 0.1 < high
    few = recalibrate(old, only(old, 2), labels, protocol=QUICK)
    assert -2 <= few.models.difference.low <= few.models.difference.high <= 2
    assert "). Even 100 times as many items" in same.sentence()


def test_an_item_in_two_tasks_is_refused():
    frame = pl.DataFrame({"item": ["q", "q", "r"], "task": ["a", "b", "a"], "vote": [1, -1, 0]})
    gold = btdagg.read_labels(frame.rename({"vote": "label"}))
    votes = btdagg.read_votes(frame)
    with pytest.raises(btdagg.InputError, match="filter by task"):
        recalibrate(votes, btdagg.read_votes(frame.filter(task="a")), gold)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"new_counts": np.zeros((5, 3))}, "new_counts"),
        ({"names": ("one",)}, "names"),
        ({"names": ("one", "one")}, "names"),
        ({"new_counts": np.full((40, 3), -1)}, "counts"),
    ],
)
def test_bad_arguments_are_named(change, argument):
    old, new, labels = two_judges(40)
    given = {"old_counts": old, "new_counts": new, "labels": labels} | change
    with pytest.raises(btdagg.InputError) as caught:
        recalibrate(**given)
    assert caught.value.argument == argument


@pytest.mark.filterwarnings("ignore")
def test_real_judges(shared):
    """A change from a weak judge to a strong one: the carried model is as good as either."""
    votes = pl.read_parquet(shared / "data/rb2/votes.parquet").filter(
        pl.col("template").cast(str) == "base", pl.col("temperature").cast(str) == "default",
        pl.col("task").cast(str) == "factuality",
    )  # fmt: skip
    gold = btdagg.read_labels(
        pl.read_csv(shared / "data/rb2/labels.csv").filter(task="factuality").head(200)
    )
    of = [
        btdagg.read_votes(votes.filter(pl.col("judge").cast(str) == judge))
        for judge in ("gpt-5.4-mini", "gpt-5.4")
    ]
    found = recalibrate(*of, gold, protocol=QUICK)
    assert found.n_again > 150
    assert found.models.mae[1].mean < found.models.mae[0].mean + 0.05
