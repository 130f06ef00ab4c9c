"""What a judge favours: slopes of labels and votes, and their intervals."""

import numpy as np
import polars as pl
import pytest

import btdagg

GRADES = btdagg.Scale((1, 2, 3, 4, 5))


def drawn(n=240, *, added=0.0, seed=0, n_votes=6, followed=0.8):
    """Counts of pairs whose judge adds something for x, labels, x, and groups of three."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    quality = followed * x + rng.normal(size=n) * 0.6

    def shares(u):
        odds = np.exp(np.column_stack([-u, np.full(n, -0.3), u]))
        return odds / odds.sum(axis=1, keepdims=True)

    labels = (rng.random(n)[:, None] > shares(quality).cumsum(axis=1)[:, :2]).sum(axis=1) - 1
    counts = rng.multinomial(n_votes, shares(quality + added * x))
    return counts, labels, x, np.arange(n) // 3


def test_slopes_of_pairs_are_of_wins_and_go_through_the_origin():
    counts, labels, x, _ = drawn()
    (own,) = btdagg.bias(counts, labels, covariates={"length": x}).covariates
    votes = counts @ [-1, 0, 1] / counts.sum(axis=1)
    for slope, outcome in (
        (own.people, labels),
        (own.judge, votes),
        (own.difference, votes - labels),
    ):
        by_unit = (x @ outcome) / (x @ x)
        assert slope.value == pytest.approx(np.log(2) / 2 * by_unit)
        # White's error, where no item is in a group.
        error = np.log(2) / 2 * np.sqrt((x**2 * (outcome - by_unit * x) ** 2).sum()) / (x @ x)
        assert (slope.high - slope.low) / error == pytest.approx(2 * 1.97, rel=0.05)
    assert own.step == "twice as long"
    assert own.difference.value == pytest.approx(own.judge.value - own.people.value)


def test_items_that_come_several_times_in_a_group_tell_no_more_of_a_slope():
    counts, labels, x, _ = drawn()
    rows = np.repeat(np.arange(len(x)), 3)
    (once,) = btdagg.bias(counts, labels, covariates={"x": x}).covariates
    (often,) = btdagg.bias(
        counts[rows], labels[rows], covariates={"x": x[rows]}, groups=rows
    ).covariates
    np.testing.assert_allclose(often.difference, once.difference, rtol=0.02)


def test_slopes_of_grades_have_an_intercept():
    rng = np.random.default_rng(1)
    x, grades = rng.normal(3, 2, 90), rng.integers(1, 6, 90)
    counts = rng.multinomial(4, [0.1, 0.2, 0.3, 0.2, 0.2], 90)
    found = btdagg.bias(counts, grades, covariates={"age": x}, scale=GRADES)
    slope = np.polyfit(x, grades, 1)[0]
    (own,) = found.covariates
    assert own.people.value == pytest.approx(slope * own.step_size)
    assert own.step_size == pytest.approx(x.std())
    assert found.unit == "point"
    line = own.lines["people"]
    np.testing.assert_allclose(line[:, 1], np.polyval(np.polyfit(x, grades, 1), line[:, 0]))


def test_swapping_the_sides_changes_nothing():
    counts, labels, x, groups = drawn()
    swapped = np.random.default_rng(2).random(len(x)) < 0.5
    turned = np.where(swapped[:, None], counts[:, ::-1], counts), np.where(swapped, -labels, labels)
    sign = np.where(swapped, -1, 1)
    first = btdagg.bias(counts, labels, covariates={"x": x}, groups=groups)
    second = btdagg.bias(*turned, covariates={"x": sign * x}, groups=groups)
    np.testing.assert_allclose(
        first.covariates[0].difference, second.covariates[0].difference, rtol=1e-9
    )


def test_a_probability_of_a_half_counts_twice():
    counts, labels, x, _ = drawn(60)
    probabilities = np.where(np.arange(60) < 20, 0.5, 1.0)
    (own,) = btdagg.bias(
        counts, labels, covariates={"x": x}, probabilities=probabilities
    ).covariates
    twice = np.r_[np.arange(20), np.arange(60)]
    (other,) = btdagg.bias(counts[twice], labels[twice], covariates={"x": x[twice]}).covariates
    per_unit = own.difference.value / own.step_size
    assert per_unit == pytest.approx(other.difference.value / other.step_size)


@pytest.mark.parametrize(
    ("followed", "added", "finding"),
    [
        (0.0, 0.8, "favours"),
        (0.0, -0.8, "disfavours"),
        (0.8, 1.5, "more strongly"),
        (-0.8, -1.5, "more strongly"),
        (0.8, -0.6, "less strongly"),
        (-0.8, 0.6, "less strongly"),
        (0.8, -1.6, "disfavours"),
        (-0.8, 1.6, "favours"),
        (0.0, 0.0, "not told"),
    ],
)
def test_findings(followed, added, finding):
    counts, labels, x, _ = drawn(600, added=added, followed=followed)
    found = btdagg.bias(counts, labels, covariates={"length": x})
    assert found.covariates[0].finding == finding
    assert found.sentence() == str(found).split("\n")[0]
    assert found.to_frame()["finding"].to_list() == [finding]
    assert ("the judge favours length by" in found.sentence()) == (finding == "favours")


def test_what_a_judge_gives_to_systems():
    rng = np.random.default_rng(3)
    systems = np.array([rng.permutation(["x", "y", "z"])[:2] for _ in range(400)])
    strength = {"x": 0.0, "y": 0.0, "z": 0.0}
    favoured = (systems == "z") @ [1.0, -1.0]  # 1 where A is z, -1 where B is
    counts, labels, *_ = drawn(400)
    counts[favoured == 1, 2] += 6
    counts[favoured == -1, 0] += 6
    found = btdagg.bias(
        counts, labels, covariates=None, system_a=systems[:, 0], system_b=systems[:, 1]
    )
    by = {bias.of: bias for bias in found.systems}
    assert by.keys() == strength.keys()
    assert by["z"].finding == "favours"
    assert by["x"].finding == by["y"].finding == "disfavours"
    mine = (systems == "z").any(axis=1)
    side = favoured[mine]
    votes = counts @ [-1, 0, 1] / counts.sum(axis=1)
    own = by["z"]  # with a label on every item there is nothing to predict
    assert own.difference.value == pytest.approx((side * (votes - labels)[mine]).mean() / 2)
    assert own.judge.value == pytest.approx((1 + (side * votes[mine]).mean()) / 2)
    assert "z" in found.sentence()


def test_unlabelled_items_narrow_the_difference_of_a_system():
    rng = np.random.default_rng(4)
    system, quality = np.array(["x", "y", "z"] * 300), rng.integers(1, 6, 900)
    votes = np.where(rng.random(900) < 0.4, quality, rng.choice([1, 5], 900))  # noisy, and loud
    counts, labels = 4 * np.eye(5, dtype=int)[votes - 1], np.r_[quality[:150], [np.nan] * 750]
    how = {"covariates": None, "scale": GRADES}
    alone = btdagg.bias(counts[:150], labels[:150], system_a=system[:150], **how)
    with_all = btdagg.bias(counts, labels, system_a=system, **how)
    for own, other in zip(with_all.systems, alone.systems, strict=True):
        assert np.ptp(own.difference[1:]) < 0.9 * np.ptp(other.difference[1:])


def test_arrays_items_and_tables_agree(tmp_path):
    counts, labels, x, groups = drawn(90)
    a, b = np.array(["x", "y", "z"] * 30), np.array(["y", "z", "x"] * 30)
    frame = pl.DataFrame(
        {
            "item": np.arange(90).astype(str),
            **dict(zip(("minus", "tie", "plus"), counts.T, strict=True)),
            "gap": x,
            "system_a": a,
            "system_b": b,
            "group": groups.astype(str),
        }
    )
    votes = btdagg.read_votes(frame)
    gold = btdagg.read_labels(frame.select("item", "group", label=labels))
    of_tables = btdagg.bias(votes, gold, covariates="gap")
    items = votes.items(gold, systems=("system_a", "system_b")).with_covariates("gap")
    of_items = btdagg.bias(items, covariates="gap")
    names = items.ids.astype(int)
    how = {"system_a": a[names], "system_b": b[names], "groups": groups[names]}
    of_arrays = btdagg.bias(counts[names], labels[names], covariates={"gap": x[names]}, **how)
    assert of_tables.as_dict() == of_items.as_dict()
    for own, other in zip(of_tables.systems, of_arrays.systems, strict=True):
        np.testing.assert_allclose(own.difference, other.difference)
    np.testing.assert_allclose(
        of_tables.covariates[0].difference, of_arrays.covariates[0].difference, rtol=1e-9
    )


def test_items_without_a_covariate_or_votes_are_left_out_and_said():
    counts, labels, x, _ = drawn(60)
    x[:5], counts[5] = np.nan, 0
    found = btdagg.bias(counts, labels, covariates={"x": x})
    assert (found.n_labels, found.covariates[0].n_labels) == (59, 54)
    assert "5 labelled items without x are left out" in found.remarks


def test_labels_that_equal_votes_have_no_interval():
    counts = np.eye(3, dtype=int)[[0, 2, 1, 2, 0, 1] * 5] * 4
    labels, x = counts.argmax(axis=1) - 1, np.linspace(-1, 1, 30) + 0.01
    (own,) = btdagg.bias(counts, labels, covariates={"x": x}).covariates
    assert own.finding == "not told"
    assert np.isnan(own.difference.low)
    assert own.as_dict()["difference_low"] is None


COUNTS, LABELS, X, _ = drawn(30)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({}, "covariates is 'nothing', expected a length, a column of numbers or the systems"),
        ({"covariates": {"x": np.ones(30)[:29]}}, "has 29 rows, expected 30"),
        ({"covariates": {"standing": X}}, "covariates is 'standing', expected covariates"),
        ({"covariates": {"x": X, "y": 2 * X}}, "covariates is 'y', expected a column that varies"),
        ({"covariates": {"x": np.zeros(30)}}, "covariates is 'x', expected a column that varies"),
        ({"covariates": {"x": X}, "groups": ["g"] * 30}, "labels of 1 group, expected at least 3"),
        (
            {"covariates": {"x": np.eye(30)[0]}},
            "covariates is 'x', expected a column that varies among labelled items of at",
        ),
    ],
)
def test_refusals(how, message):
    with pytest.raises(btdagg.InputError, match=message):
        btdagg.bias(COUNTS, LABELS, **how)


def test_a_difference_of_pass_rates_is_as_certain_as_its_items_say():
    """A judge that agrees on 19 of 20 items: its difference varies less than a share does."""
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 2, 400)
    votes = np.where(rng.random(400) < 0.05, 1 - labels, labels)
    counts, system = np.eye(2, dtype=int)[votes], rng.choice(["x", "y"], 400)
    found = btdagg.bias(counts, labels, system_a=system, scale=btdagg.Scale((0, 1)))
    for own in found.systems:
        mine = system == own.of
        apart = (votes - labels)[mine].std()
        width = own.difference.high - own.difference.low
        assert width == pytest.approx(2 * 2.24 * apart / np.sqrt(mine.sum()), rel=0.1)


def test_two_points_are_passes_whatever_they_are_called():
    rng = np.random.default_rng(0)
    counts, labels = rng.multinomial(4, [0.4, 0.6], size=120), rng.integers(0, 2, 120)
    known = {"covariates": {"x": rng.normal(size=120)}, "system_a": rng.choice([*"abc"], 120)}
    passes = btdagg.bias(counts, labels, scale=btdagg.PASS_FAIL, **known)
    points = btdagg.bias(counts, 1 + 4 * labels, scale=btdagg.Scale((1, 5)), **known)
    assert points.unit == "pass"
    for own, other in zip(points.systems, passes.systems, strict=True):
        assert own.as_dict() == pytest.approx(other.as_dict(), nan_ok=True)
