"""Anchors beside a stream: levels, coverage, who moved, states and bad input."""

import json
import math

import numpy as np
import pytest

import btdagg
from btdagg.online import DriftMonitor, VoteDistribution, plan_anchors
from refusals import refused


def votes(shares, rng, n_votes=8):
    return rng.multinomial(n_votes, shares)


def shares(n, rng):
    return rng.dirichlet([0.4, 0.3, 0.6], size=n)


def other_judge(own, rng):
    """Shares of a judge that sees every item otherwise, and no mean that moves."""
    return 0.5 * own + 0.5 * own[rng.permutation(len(own))]


@pytest.mark.soak
def test_intervals_of_what_moved_hold_at_all_times_as_often_as_promised():
    """Looked at after each batch, where nothing moved."""
    n_streams, level, missed = 60, 0.2, 0
    for seed in range(n_streams):
        rng = np.random.default_rng(seed)
        monitor, is_outside = DriftMonitor(votes(shares(400, rng), rng), level=level), False
        for _ in range(12):
            anchors = shares(10, rng)
            monitor.observe(votes(shares(50, rng), rng))
            report = monitor.judge_again(votes(anchors, rng), votes(anchors, rng))
            ends = [(*shift.systems,) for shift in report.shifts]
            is_outside |= any(low > 0 or high < 0 for low, high in ends)
        missed += is_outside
    assert missed / n_streams <= level


def test_a_judge_that_changes_late_is_not_the_systems():
    """Anchors at one pace with the stream, most of them before the change."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        monitor = DriftMonitor(votes(shares(1000, rng), rng), level=0.2, seed=seed)
        for batch in range(30):
            own, anchors = shares(200, rng), shares(20, rng)
            stream, again = own, anchors
            if batch >= 20:  # more ties
                stream, again = (0.6 * part + [0, 0.4, 0] for part in (own, anchors))
            monitor.observe(votes(stream, rng))
            report = monitor.judge_again(votes(anchors, rng), votes(again, rng))
        assert report.who == "the judge"
        assert all(low < high for low, high in (shift.systems for shift in report.shifts))


@pytest.mark.parametrize(
    ("is_other", "mix", "who"),
    [
        (False, False, {"nothing"}),
        (True, False, {"the judge"}),
        (False, True, {"the systems"}),
        (True, True, {"the judge", "both"}),
    ],
)
def test_who_moved(is_other, mix, who):
    rng = np.random.default_rng(3)
    monitor = DriftMonitor(votes(shares(1000, rng), rng), level=0.05)
    for _ in range(15):
        items, anchors = shares(1000, rng), shares(20, rng)
        stream = items[items[:, 1] > 0.3] if mix else items
        stream = stream[:150]
        own = other_judge(stream, rng) if is_other else stream
        monitor.observe(votes(own, rng))
        again = other_judge(anchors, rng) if is_other else anchors
        report = monitor.judge_again(votes(anchors, rng), votes(again, rng))
    assert report.who in who
    assert f"300 anchors; who moved: {report.who}" in str(report)


def test_without_anchors_nobody_can_tell():
    rng = np.random.default_rng(0)
    own = shares(2000, rng)
    monitor = DriftMonitor(votes(own[:500], rng))
    assert monitor.report().who == "nothing"
    tied = own[500:][own[500:, 1] > 0.3]
    report = monitor.observe(votes(tied, rng))
    assert (report.stale, report.who, report.shifts) == (True, "cannot tell", ())


def test_a_saved_monitor_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    own = shares(900, rng)
    reference, stream = votes(own[:300], rng), votes(own[300:], rng)
    old, new = votes(own[:40], rng), votes(other_judge(own[:40], rng), rng)
    whole, first = (DriftMonitor(reference) for _ in range(2))
    for monitor in (whole, first):
        monitor.observe(stream[:100])
        monitor.judge_again(old[:15], new[:15])
    first.save(tmp_path / "monitor.json")
    second = DriftMonitor.load(tmp_path / "monitor.json")
    for monitor in (whole, second):
        monitor.observe(stream[100:])
        monitor.judge_again(old[15:], new[15:])
    wanted, found = whole.report(), second.report()
    assert found.who == wanted.who
    assert math.log(found.judge_pvalue) == pytest.approx(math.log(wanted.judge_pvalue), rel=1e-6)
    for one, other in zip(found.shifts, wanted.shifts, strict=True):
        assert one.systems == pytest.approx(other.systems)
    older = json.loads((tmp_path / "monitor.json").read_text())
    del older["anchors"]
    (tmp_path / "older.json").write_text(json.dumps(older))
    monitor = DriftMonitor.load(tmp_path / "older.json")
    assert monitor.observe(stream[:5]).who in ("nothing", "cannot tell")
    with refused("monitor", got="a monitor saved by an older btdagg", expected="a new monitor"):
        monitor.judge_again(old[:1], new[:1])
    damaged = json.loads((tmp_path / "monitor.json").read_text())
    damaged["anchors"]["bets"].pop()
    (tmp_path / "monitor.json").write_text(json.dumps(damaged))
    with pytest.raises(btdagg.InputError):
        DriftMonitor.load(tmp_path / "monitor.json")


def test_votes_in_both_orders_and_of_other_numbers():
    rng = np.random.default_rng(0)
    own = shares(100, rng)
    both = np.stack([votes(own, rng, 4), votes(own, rng, 4)], axis=1)
    monitor = DriftMonitor(both)
    assert monitor.judge_again(both[:20], both[20:40][:, ::-1]).n_anchors == 20
    with pytest.raises(btdagg.InputError, match=r"new\[0\] has 3 and 4 votes, expected 4 and 4"):
        monitor.judge_again(both[:1], [[[1, 1, 1], [4, 0, 0]]])
    with pytest.raises(btdagg.InputError, match="new"):
        monitor.judge_again(both[:3], both[:2])
    grouped = DriftMonitor(both, groups=np.arange(100) // 2)
    with refused("monitor", got="a monitor of groups"):
        grouped.judge_again(both[:3], both[:3])


def test_votes_with_a_strength_are_anchors_too():
    rng = np.random.default_rng(0)
    own = shares(60, rng)
    old, new = (0.5 * votes(own, rng) + 0.5 * votes(own, rng) for _ in range(2))
    report = DriftMonitor(old[:20]).judge_again(old[20:], new[20:])
    assert report.n_anchors == 40
    assert report.judge_pvalue > 0.05


@pytest.mark.soak
def test_as_many_anchors_as_were_planned_find_the_judge():
    """Of streams drawn anew, followed by a monitor with a stream of its own."""
    distribution = VoteDistribution([(0.3, (0.3, 0.9, 0.3)), (0.7, (0.1, 0.05, 0.6))])
    planned = plan_anchors(distribution, n_votes=4, drift=0.25, within=600, level=0.05)
    assert 50 < planned.anchors < 300

    def found(label, seed, n_after):
        rng = np.random.default_rng(seed)
        drawn = distribution.draw(400 + 50 + n_after, 8, seed=seed)
        old, new = drawn[:, :4], drawn[:, 4:]
        casts = rng.random(new.shape) < 0.25
        casts[:450] = False
        new[casts] = label
        old, new = (np.stack([(own == v).sum(axis=1) for v in (-1, 0, 1)], 1) for own in (old, new))
        monitor = DriftMonitor(old[:400], level=0.05)
        for at in range(400, len(old), 10):
            report = monitor.judge_again(old[at : at + 10], new[at : at + 10])
        return report.judge_pvalue <= 0.05

    rates = [np.mean([found(to, seed, planned.anchors) for seed in range(30)]) for to in (0, 1)]
    assert 0.75 <= min(rates) <= 1  # planned for .9, on the harder one of the two
    half = [np.mean([found(to, seed, planned.anchors // 2) for seed in range(30)]) for to in (0, 1)]
    assert min(half) < 0.6


def test_a_drift_that_is_too_small_has_no_plan():
    planned = plan_anchors(VoteDistribution([(1, (1, 1, 1))]), n_votes=1, drift=0.01)
    assert planned.anchors is None
    assert "2,000 items judged again are not enough" in str(planned)
    with refused("drift", got=0, expected="a number above 0"):
        plan_anchors(VoteDistribution([(1, (1, 1, 1))]), n_votes=1, drift=0)
    for component in (("x", (1, 1, 1)), (1, (1, "x", 1))):
        with refused("components", row=1, got="x"):
            VoteDistribution([(1, (1, 1, 1)), component])
    with refused("votes", got=[[1, 2, 3]]):
        plan_anchors([[1, 2, 3]], n_votes=1)
