"""A sentence says what its number shows, and no more."""

import json
from collections import Counter

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.estimates import change
from btdagg.online import DriftMonitor
from btdagg.votes import Items
from refusals import refused


def pair_votes(rng, thought, ties, n_votes=4):
    """Counts of a judge that calls ties by so many logits more."""
    weights = np.exp(np.outer(1.5 * thought, [-1, 0, 1]) + np.array([0, ties, 0]))
    return rng.multinomial(n_votes, weights / weights.sum(axis=1, keepdims=True))


def two_periods(seed, *, shift=0.0, bias=0.0, ties=0.0, mix=(0.0, 0.0), n_again=0, n=400):
    """Two periods with 100 labels each; the judge is the same unless it has a bias in the second.

    `mix` is the share of a kind of items of which the judge thinks more than people do, and
    `n_again` items of the first period are judged again in the second.
    """
    rng, periods = np.random.default_rng(seed), []
    again = np.empty(0), np.empty(0, dtype=int)
    for number in (0, 1):
        liked = rng.normal(shift * number, 1, n)
        said = liked + rng.normal(0, 0.6, n)
        labels = np.where(np.abs(said) < 0.4, 0, np.sign(said))
        labels = np.where(rng.permutation(n) < 100, labels, np.nan)
        thought = np.append(liked + 1.0 * (rng.random(n) < mix[number]), again[0] * number)
        ids = np.append(np.arange(n) + n * number, again[1])
        labels = np.append(labels, np.full(len(ids) - n, np.nan))
        again = thought[:n_again], ids[:n_again]
        counts = pair_votes(rng, thought + bias * number, ties)
        periods.append(Items(counts=counts, labels=labels, ids=ids))
    return periods


SAME_JUDGE = {
    "many ties": {"shift": 1.0, "ties": 4.0},
    "another mix": {"mix": (0.0, 0.8)},
}


@pytest.mark.parametrize("settings", SAME_JUDGE.values(), ids=SAME_JUDGE)
def test_votes_that_move_away_from_people_do_not_name_the_judge(settings):
    found = change(*two_periods(0, **settings))
    assert found.apart.low > 0 or found.apart.high < 0
    assert found.who not in ("the judge", "both")
    assert "votes and people moved apart" in found.sentence()
    assert "the judge changed" not in found.sentence()
    assert "another mix of items" in found.sentence()


def test_items_judged_in_both_periods_name_the_judge_and_clear_it():
    same = change(*two_periods(0, shift=0.6, ties=3.0, n_again=100))
    other = change(*two_periods(0, bias=0.6, n_again=100))
    assert same.n_anchors == other.n_anchors == 100
    assert same.judge.low < 0 < same.judge.high
    assert same.who == "the systems"
    assert "no significant change of the judge" in same.sentence()
    assert other.judge.low > 0
    assert other.who in ("the judge", "both")
    assert "the judge changed: on 100 items judged in both periods" in other.sentence()


def test_items_judged_again_leave_the_means_of_the_second_period():
    before, after = two_periods(1, shift=0.6, n_again=40)
    with_anchors, without = change(before, after), change(before, after[: len(before)])
    assert with_anchors.people == without.people
    assert with_anchors.apart == without.apart
    assert with_anchors.n_items == (400, 400)
    assert any("40 items are in both periods" in remark for remark in with_anchors.remarks)


def test_the_judge_is_named_without_new_labels_if_items_were_judged_again():
    before, after = two_periods(2, bias=0.8, n_again=100)
    found = change(before, Items(counts=after.counts, ids=after.ids))
    assert (found.who, found.people) == ("the judge", None)
    few = change(*two_periods(2, bias=0.8, n_again=5))
    assert few.judge is None
    assert any("10 would show whether the judge changed" in remark for remark in few.remarks)


def test_the_command_names_the_judge_by_items_in_both_files_alone(cli, folder):
    before, after = two_periods(3, bias=0.8, n_again=100)
    gold = []
    for name, items in (("old", before), ("new", after)):
        rows = [
            (f"q{item}", vote)
            for item, counts in zip(items.ids, items.pooled.astype(int), strict=True)
            for vote, n in zip((-1, 0, 1), counts, strict=True)
            for _ in range(n)
        ]
        pl.DataFrame(rows, ["item", "vote"], orient="row").write_csv(f"{name}.csv")
        labels = zip(items.ids, items.label, strict=True)
        gold += [(f"q{item}", int(label)) for item, label in labels if label == label]
    pl.DataFrame(gold, ["item", "label"], orient="row").write_csv("labels.csv")
    alone = pl.read_csv("new.csv").join(pl.read_csv("old.csv"), on="item", how="anti")
    alone.write_csv("alone.csv")
    told = {}
    for name in ("new", "alone"):
        command = ("estimate", f"{name}.csv", "labels.csv", "--before", "old.csv", "--json")
        status, out, err = cli(*command)
        assert status == 0, err
        told[name] = json.loads(out)
    assert told["new"]["who"] in ("the judge", "both")
    assert told["new"]["judge"]["low"] > 0
    assert told["alone"]["judge"] is None
    assert told["alone"]["who"] in ("cannot tell", "the systems")
    assert told["alone"]["apart"]["low"] > 0


@pytest.mark.soak
@pytest.mark.parametrize("n_again", [0, 40])
@pytest.mark.parametrize("settings", SAME_JUDGE.values(), ids=SAME_JUDGE)
def test_a_judge_that_is_the_same_is_named_in_at_most_five_percent(settings, n_again):
    n, names = 300, Counter()
    for seed in range(n):
        names[change(*two_periods(seed, **settings, n_again=n_again)).who] += 1
    limit = 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)
    assert (names["the judge"] + names["both"]) / n <= limit


def judged_alike(seed, n, *, people_tie=1.6, judge_tie=0.15, follows=0.8, systems=False):
    """Counts, labels and covariate of people and a judge that think the same of each pair.

    With `systems` the covariate is the strength of A less that of B, and the names come too.
    """
    rng = np.random.default_rng(seed)
    names = None
    x = rng.normal(size=n)
    if systems:
        strengths = np.array([-1.2, -0.4, 0.4, 1.2])
        pairs = np.array([rng.permutation(4)[:2] for _ in range(n)])
        x = strengths[pairs[:, 0]] - strengths[pairs[:, 1]]
        names = np.array(list("abcd"))[pairs]
    thought = follows * x + rng.normal(size=n) * 0.6

    def said(noise, tie):
        heard = thought[:, None] + rng.normal(size=(n, noise)) * 0.6
        return np.where(np.abs(heard) < tie, 0, np.sign(heard)).astype(int)

    votes = said(8, judge_tie)
    counts = np.stack([(votes == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=1)
    return counts, said(1, people_tie)[:, 0], x, names


@pytest.mark.parametrize("sign", [1, -1])
def test_a_more_decisive_judge_is_not_called_partial(sign):
    """Its mirror was excused already: a less decisive judge follows less strongly."""
    counts, labels, x, _ = judged_alike(0, 200)
    found = btdagg.bias(counts, labels, covariates={"x": sign * x})
    assert found.covariates[0].finding == "more strongly"
    assert "x sways the judge more than people, by" in found.sentence()
    counts, labels, x, _ = judged_alike(0, 200, people_tie=0.15, judge_tie=1.6)
    less = btdagg.bias(counts, labels, covariates={"x": sign * x})
    assert less.covariates[0].finding == "less strongly"


def test_a_more_decisive_judge_does_not_prefer_the_best_system():
    counts, labels, _, names = judged_alike(1, 400, systems=True)
    found = btdagg.bias(counts, labels, covariates=None, system_a=names[:, 0], system_b=names[:, 1])
    by = {bias.of: bias.finding for bias in found.systems}
    assert by["a"] == by["d"] == "more strongly"
    assert "further from the middle than people give" in found.sentence()


def test_a_judge_of_grades_that_uses_more_of_the_scale_is_not_called_partial():
    rng = np.random.default_rng(2)
    x = rng.normal(size=200)
    thought = 0.8 * x + rng.normal(size=200) * 0.5
    grades = np.clip(np.rint(3 + 0.5 * thought + rng.normal(size=200) * 0.3), 1, 5).astype(int)
    votes = np.clip(np.rint(3 + 1.2 * thought[:, None] + rng.normal(size=(200, 4)) * 0.3), 1, 5)
    counts = np.stack([(votes == point).sum(axis=1) for point in range(1, 6)], axis=1)
    scale = btdagg.Scale((1, 2, 3, 4, 5))
    found = btdagg.bias(counts, grades, covariates={"x": x}, scale=scale)
    assert found.covariates[0].finding == "more strongly"


@pytest.mark.soak
@pytest.mark.parametrize("n_labels", [50, 200])
def test_a_more_decisive_judge_is_called_partial_in_at_most_five_percent(n_labels):
    partial = 0
    for seed in range(300):
        counts, labels, x, _ = judged_alike([seed, n_labels], n_labels)
        finding = btdagg.bias(counts, labels, covariates={"x": x}).covariates[0].finding
        partial += finding == "favours"
    assert partial / 300 <= 0.05


def prompts_of(rng, sizes):
    """Counts of items of prompts of these sizes, and their prompts."""
    shares = rng.dirichlet([0.5, 0.3, 1.0], size=int(np.sum(sizes)))
    return rng.multinomial(8, shares), np.arange(len(sizes)).repeat(sizes)


def has_alarm(seed, before, after, level=0.05):
    """Whether drift is found between prompts of other sizes, of one and the same judge."""
    rng = np.random.default_rng([15, seed])
    old, new = (prompts_of(rng, np.full(300, size)) for size in (before, after))
    monitor = DriftMonitor(old[0], groups=old[1], level=level, seed=seed)
    return monitor.observe(new[0], groups=new[1]).stale


@pytest.mark.parametrize(("before", "after"), [(1, 3), (1, 5), (5, 1), (2, 8)])
def test_groups_of_other_sizes_are_no_drift(before, after):
    assert not any(has_alarm(seed, before, after) for seed in range(5))


def test_drift_is_found_in_groups_of_other_sizes():
    rng = np.random.default_rng(0)
    old, prompts = prompts_of(rng, np.full(200, 1))
    new, more = prompts_of(rng, rng.integers(1, 6, 300))
    moved = np.minimum(new[:, 0], 3)
    new[:, 0] -= moved
    new[:, 1] += moved
    monitor = DriftMonitor(old, groups=prompts)
    assert "tie rate" in monitor.observe(new, groups=more).moved


def test_a_group_in_parts_and_saved_between_draws_the_same_item():
    rng = np.random.default_rng(1)
    old, prompts = prompts_of(rng, rng.integers(1, 4, 100))
    new, more = prompts_of(rng, rng.integers(1, 6, 100))
    whole = DriftMonitor(old, groups=prompts).observe(new, groups=more)
    parted = DriftMonitor(old, groups=prompts)
    for row in range(len(new)):
        parted.observe(new[row], groups=more[row : row + 1])
        if row % 20 == 0:
            parted = DriftMonitor.from_json(parted.to_json())
    for facet, expected in zip(parted.report().facets, whole.facets, strict=True):
        assert facet.log_evidence == pytest.approx(expected.log_evidence)
        assert facet.pvalue == pytest.approx(expected.pvalue)


def test_a_monitor_of_group_means_that_was_saved_is_refused():
    old, prompts = prompts_of(np.random.default_rng(2), np.full(20, 2))
    fields = DriftMonitor(old, groups=prompts).as_dict()
    del fields["seed"]
    with refused("monitor", expected="a new monitor"):
        DriftMonitor.from_dict(fields)


@pytest.mark.soak
@pytest.mark.parametrize(("before", "after"), [(1, 1), (1, 3), (1, 5), (5, 1)])
def test_false_alarms_do_not_depend_on_the_sizes_of_groups(before, after):
    assert np.mean([has_alarm(seed, before, after) for seed in range(1000)]) <= 0.05


@pytest.mark.soak
def test_with_anchors_three_tests_share_one_level():
    level, n, alarms = 0.2, 500, 0
    for seed in range(n):
        rng = np.random.default_rng([16, seed])
        monitor = DriftMonitor(prompts_of(rng, np.ones(50, int))[0], level=level, seed=seed)
        shares = rng.dirichlet([0.5, 0.3, 1.0], size=60)
        old, new = rng.multinomial(8, shares), rng.multinomial(8, shares)
        for part in range(6):
            rows = slice(10 * part, 10 * part + 10)
            monitor.judge_again(old[rows], new[rows])
            alarms_now = monitor.observe(prompts_of(rng, np.ones(50, int))[0]).stale
            if alarms_now:
                alarms += 1
                break
    assert alarms / n <= level


def test_with_anchors_each_part_is_tested_at_a_third_of_the_level():
    rng = np.random.default_rng(3)
    shares = rng.dirichlet([0.5, 0.3, 1.0], size=400)
    old, again = rng.multinomial(8, shares), rng.multinomial(8, 0.85 * shares + [0, 0.15, 0])
    monitor = DriftMonitor(rng.multinomial(8, shares), level=0.05)
    for row in range(400):
        report = monitor.judge_again(old[row], again[row])
        assert (report.who == "the judge") == (report.judge_pvalue <= 0.05 / 3)
    assert report.who == "the judge"


def test_intervals_of_systems_stand_by_themselves_and_pairs_that_tie_are_named(cli, folder):
    """Rank numbers alone would order systems that do not differ significantly."""
    rng = np.random.default_rng(4)
    names = np.array(list("abcd"))
    pairs = np.array([rng.permutation(4)[:2] for _ in range(200)])
    lead = np.array([0.0, 0.1, 0.5, 1.5])[pairs] @ [1, -1]
    labels = np.sign(np.round(lead + rng.normal(size=200))).astype(int)
    votes = np.sign(np.round(lead[:, None] + rng.normal(size=(200, 2)))).astype(int)
    columns = {"item": np.arange(200), "system_a": names[pairs[:, 0]]}
    columns |= {"system_b": names[pairs[:, 1]]}
    table = pl.DataFrame(columns)
    both = [table.with_columns(vote=pl.Series(votes[:, number])) for number in (0, 1)]
    pl.concat(both).write_csv("votes.csv")
    pl.DataFrame({"item": np.arange(80), "label": labels[:80]}).write_csv("labels.csv")
    command = ("estimate", "votes.csv", "labels.csv", "--systems", "system_a,system_b")
    status, out, err = cli(*command)
    assert status == 0, err
    assert "each by itself" in out
    assert "log odds of a win against a loss" in out
    found = json.loads(cli(*command, "--json")[1])
    order = [own["system"] for own in found["systems"]]
    expected = [
        [order[a], order[b]]
        for a in range(4)
        for b in range(a + 1, 4)
        if found["pvalues"][a][b] >= 1 - found["level"]
    ]
    assert found["not_told_apart"] == expected != []


def test_a_certificate_of_unequal_probabilities_is_not_called_exact():
    rng = np.random.default_rng(5)
    labels = rng.integers(-1, 2, 400)
    counts = np.array(
        [rng.multinomial(6, np.eye(3)[label + 1] * 0.8 + 0.2 / 3) for label in labels]
    )
    chances = np.where(np.arange(400) % 2, 0.6, 0.3)
    gold = np.where(rng.random(400) < chances, labels, np.nan)
    found = btdagg.certify(counts, gold, agreement=0.7, probabilities=chances)
    assert "trusted without review" in found.sentence()
    assert not any("exact" in text for text in (found.sentence(), *found.remarks))


def test_labelled_grades_that_are_less_extreme_than_the_others_are_said():
    """By the mean vote, which is the same here, and by the share of votes for the top grade."""
    counts = np.array([[0, 8, 0]] * 60 + [[4, 0, 4], [3, 1, 4], [4, 1, 3]] * 60)
    counts[:3] = [[1, 6, 1], [0, 7, 1], [1, 7, 0]]
    labels = np.where(np.arange(240) < 60, np.arange(240) % 3 + 1, np.nan)
    remarks = btdagg.estimate(counts, labels, scale=btdagg.Scale((1, 2, 3))).remarks
    (remark,) = [text for text in remarks if "differ from the others" in text]
    top = [part[:, 2].sum() / part.sum() for part in (counts[:60], counts[60:])]
    assert "mean vote 2.00 against 2.00" in remark
    assert f"share of votes of 3 {top[0]:.2f} against {top[1]:.2f}" in remark
