"""How people, votes and the judge changed between two periods: by hand, simulated, by command."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.estimates import change
from btdagg.votes import Items

FIVE = btdagg.Scale((1, 2, 3, 4, 5))


def period(seed, n=400, *, shift=0.0, bias=0.0, n_labels=100, scale=FIVE, start=0):
    """Items whose quality moves by `shift`, judged with votes that are off by `bias`."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(shift, 1, n)
    if scale.mirrored:
        labels = np.sign(np.round(quality + rng.normal(0, 0.5, n)))
        given = np.sign(np.round(quality[:, None] + bias + rng.normal(0, 0.7, (n, 4))))
    else:
        labels = np.clip(np.round(3 + quality + rng.normal(0, 0.5, n)), 1, 5)
        given = np.clip(np.round(3 + quality[:, None] + bias + rng.normal(0, 0.7, (n, 4))), 1, 5)
    counts = np.stack([(given == point).sum(axis=1) for point in scale.points], axis=1)
    gold = np.where(rng.permutation(n) < n_labels, labels, np.nan)
    return Items(counts=counts, labels=gold, ids=np.arange(start, start + n), scale=scale)


def test_a_judge_that_says_the_same_of_all_leaves_the_means_of_labels():
    before, after = (period(seed, start=400 * seed) for seed in (0, 1))
    same = np.tile([0, 0, 4, 0, 0], (400, 1))
    before, after = replace(before, counts=same), replace(after, counts=same)
    found = change(before, after)
    wanted = np.nanmean(after.label) - np.nanmean(before.label)
    assert found.people.value == pytest.approx(wanted)
    assert found.apart.value == pytest.approx(-wanted)
    assert found.votes == 0
    # Means of 100 labels each, of which no vote says anything.
    error = np.sqrt(sum(np.nanvar(own.label, ddof=1) / 100 for own in (before, after)))
    assert found.people.standard_error == pytest.approx(error, rel=0.02)


def test_labels_of_both_periods_cancel():
    """The same items judged again: their labels did not change, and that is known."""
    before = period(3, n=300, n_labels=150)
    before = replace(before, ids=np.arange(1000, 1300))
    after = replace(period(3, n=300, n_labels=150, bias=0.8), labels=before.labels, ids=before.ids)
    found = change(before, after)
    apart = change(before, replace(after, ids=np.arange(300, 600)))
    assert found.people.standard_error < 0.5 * apart.people.standard_error
    assert found.who == "the judge"
    assert abs(found.people.value) < 0.1


def test_rows_without_names_are_other_items():
    before, after = period(1), period(2, start=400)
    bare = [replace(own, ids=None) for own in (before, after)]
    assert change(*bare).people == change(before, after).people
    assert not any("both periods" in text for text in change(*bare).remarks)
    again = replace(period(1, bias=0.5), ids=np.arange(400) + 7)
    named = change(replace(before, ids=np.arange(400) + 7), again)
    assert "400 items are in both periods; their labels count in both" in named.remarks


def test_without_labels_of_the_second_period_it_is_not_told():
    before, after = period(1), period(2, shift=0.5, start=400, n_labels=0)
    found = change(before, after)
    assert (found.who, found.people, found.apart, found.bounds) == ("cannot tell", None, None, None)
    assert found.sentence().startswith("cannot tell how mean grade changed from before to after")
    bound = change(before, after, most_of_judge=0.1)
    low, high = bound.bounds
    assert low < found.votes - 0.1 < found.votes + 0.1 < high
    assert (
        f"if votes and people moved apart by at most 0.1, it changed by {low:+.3f} to {high:+.3f}"
        in bound.sentence()
    )
    # A wider one by exactly what the judge may have moved.
    wider = change(before, after, most_of_judge=0.3).bounds
    assert wider == pytest.approx((low - 0.2, high + 0.2))
    means = [own.pooled @ FIVE.floats / 4 for own in (before, after)]
    error = np.sqrt(sum(of.var(ddof=1) / len(of) for of in means))
    assert (high - low) / 2 - 0.1 == pytest.approx(1.96 * error, rel=0.01)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda a, b: change(a, b, names=("x", "x")), "names"),
        (lambda a, b: change(a.counts, b), "before"),
        (lambda a, b: change(replace(a, labels=None), b), "before"),
        (lambda a, b: change(a, period(2, n_labels=6, start=400)), "after"),
        (lambda a, b: change(a, b, most_of_judge=0.1), "most_of_judge"),
        (lambda a, b: change(a, period(2, n_labels=0), most_of_judge=-1), "most_of_judge"),
        (lambda a, b: change(a, period(2, scale=btdagg.PAIRS)), "than"),
        (lambda a, b: change(a, b[:0]), "after"),
        (
            lambda a, b: change(
                replace(a, sampling=a.sampling._replace(probabilities=np.full(400, 0.25))), b
            ),
            "probabilities",
        ),
        (lambda a, b: change(a, b, level=2), "level"),
    ],
)
def test_bad_arguments_are_named(make, argument):
    with pytest.raises(btdagg.InputError) as caught:
        make(period(1), period(2, start=400))
    assert caught.value.argument == argument


def test_by_command(cli, folder):
    """What the command says is in tests/promises; here what it refuses."""
    for name in ("old", "new"):
        pl.DataFrame({"item": [name, "x"], "score": [3, 4]}).write_csv(f"{name}.csv")
    pl.DataFrame({"item": ["x"], "label": [3]}).write_csv("labels.csv")
    scales = ("--set", "votes.scale=1-5", "--set", "labels.scale=1-5")
    command = ("estimate", "new.csv", "labels.csv", "--before", "old.csv", *scales)
    status, _, err = cli(*command, "--by", "task")
    assert status == 2
    assert "--by is 'task', expected none with --before" in err
