"""The drift monitor: false alarms, power, what moved, states and bad input."""

import json
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import btdagg
from btdagg import InputError
from btdagg.online import DriftMonitor, VoteDistribution

ITEMS = VoteDistribution([(0.7, (0.3, 0.4, 3.0)), (0.3, (2.0, 1.0, 2.0))])
TIED = VoteDistribution([(0.7, (0.3, 1.15, 3.0)), (0.3, (2.0, 1.9, 2.0))])


def counts_of(votes):
    return np.stack([(votes == vote).sum(axis=-1) for vote in (-1, 0, 1)], axis=-1)


def items(votes, n, n_votes=8, seed=0):
    return counts_of(votes.draw(n, n_votes, seed=seed))


def prompts(n, rng, more_ties=1.0, n_pairs=6):
    """Counts of the pairs of n prompts, which agree on how tied and how one-sided they are."""
    alpha = np.array([1.0, 0.6 * more_ties, 2.0])
    shares = rng.dirichlet(alpha, size=n).repeat(n_pairs, axis=0)
    return rng.multinomial(8, shares), np.arange(n).repeat(n_pairs)


def test_groups_in_batches_of_any_size_and_saved_between():
    votes, group = prompts(60, np.random.default_rng(0))
    later, more = prompts(120, np.random.default_rng(1), more_ties=6)
    names = [f"prompt {k}" for k in more]
    whole = DriftMonitor(votes, groups=group)
    report = whole.observe(later, groups=names)
    assert "tie rate" in report.moved
    assert report.facets[0].moved_at % 6 == 0
    parted = DriftMonitor(votes, groups=group)
    for first in range(0, len(later), 5):
        parted.observe(later[first : first + 5], groups=names[first : first + 5])
        parted = DriftMonitor.from_json(parted.to_json())
    for facet, expected in zip(parted.report().facets, report.facets, strict=True):
        assert facet.moved_at == expected.moved_at
        assert facet[1:5] == pytest.approx(expected[1:5])
    # What is open is tested when another group comes: an alarm is a group late, and no more.
    first = next(n for n in range(6, 600) if whole_report(votes, group, later[:n], names[:n]).moved)
    assert first == report.facets[0].moved_at + 1


def whole_report(votes, group, later, names):
    return DriftMonitor(votes, groups=group).observe(later, groups=names)


def test_groups_of_one_item_find_what_items_find():
    rng = np.random.default_rng(3)
    before, after = items(ITEMS, 300), items(TIED, 400, seed=5)
    plain = DriftMonitor(before).observe(after)
    one_each = DriftMonitor(before, groups=np.arange(300)).observe(after, groups=np.arange(400))
    assert plain.moved == one_each.moved == ("tie rate",)
    assert one_each.facets[0].stream == plain.facets[0].stream
    assert one_each.facets[0].moved_at == plain.facets[0].moved_at
    order = rng.permutation(300)
    shuffled = DriftMonitor(before[order], groups=order)
    assert shuffled.observe(after, groups=np.arange(400)) == one_each


def test_a_doubled_tie_rate_is_found_within_a_few_hundred_items():
    ratio = items(TIED, 50_000)[:, 1].mean() / items(ITEMS, 50_000)[:, 1].mean()
    assert 1.9 < ratio < 2.1
    for before in (0, 2000):
        needed = []
        for seed in range(6):
            reference = items(ITEMS, 300, seed=3 * seed)
            monitor = DriftMonitor(reference, level=0.01, seed=seed)
            if before:
                assert not monitor.observe(items(ITEMS, before, seed=3 * seed + 1)).stale
            report = monitor.observe(items(TIED, 600, seed=3 * seed + 2))
            assert "tie rate" in report.moved
            needed.append(report.facets[0].moved_at - before)
        assert np.median(needed) < 200
        assert max(needed) < 500


def test_what_moved_is_named():
    rng = np.random.default_rng(0)

    def by_order(n, bias):
        lean = rng.beta(2, 2, n)[:, None]
        chances = [
            np.stack([1 - lean + b - 0.1, 0 * lean + 0.2, lean - b - 0.1], axis=-1)
            for b in (-bias, bias)
        ]
        chances = np.clip(np.concatenate(chances, axis=1), 0.01, None)
        chances /= chances.sum(axis=-1, keepdims=True)
        return rng.multinomial(4, chances)

    monitor = DriftMonitor(by_order(400, 0.0))
    assert monitor.observe(by_order(500, 0.0)).moved == ()
    report = monitor.observe(by_order(400, 0.15))
    assert "side bias" in report.moved
    facet = report.facets[2]
    assert facet.stream > facet.reference + 0.05
    assert str(report).startswith("calibration is stale: ")
    sharp = VoteDistribution([(1.0, (0.1, 0.4, 4.0))])
    monitor = DriftMonitor(items(VoteDistribution([(1, (2.0, 0.5, 2.4))]), 400))
    assert "no drift found in 0 items against 400" in str(monitor.report())
    assert "decisiveness" in monitor.observe(items(sharp, 300, seed=4)).moved


@given(st.integers(0, 300), st.integers(1, 6), st.integers(0, 5))
@settings(deadline=None, max_examples=30)
def test_batches_and_states_do_not_matter(cut, n_votes, seed):
    reference, stream = items(ITEMS, 50, n_votes, seed), items(TIED, 300, n_votes, seed + 9)
    whole = DriftMonitor(reference, seed=seed)
    report = whole.observe(stream)
    parts = DriftMonitor(reference, seed=seed)
    parts.observe(stream[:cut])
    parts = DriftMonitor.from_json(parts.to_json())
    parts = pickle.loads(pickle.dumps(parts))
    for item in stream[cut : cut + 3]:
        parts.observe(item)
    parts.observe(stream[cut + 3 :])
    found = parts.report()
    assert found.moved == report.moved
    assert found.n_items == report.n_items == 300
    for one, other in zip(found.facets, report.facets, strict=True):
        assert (one.name, one.log_evidence, one.pvalue, one.moved_at) == (
            other.name,
            other.log_evidence,
            other.pvalue,
            other.moved_at,
        )
        assert one.stream == pytest.approx(other.stream, nan_ok=True)


def test_votes_with_a_strength():
    def strong(n, full_margin, seed):
        """Counts of eight votes, of items that lean one way or the other."""
        rng = np.random.default_rng(seed)
        margins = rng.normal(rng.normal(size=(n, 1)), 0.7, size=(n, 8)) / full_margin
        return btdagg.tally(np.arange(n).repeat(8), margins.clip(-1, 1).ravel())[1]

    found = []
    for seed in range(8):
        monitor = DriftMonitor(strong(300, 1.5, 3 * seed), seed=seed)
        monitor = DriftMonitor.from_json(monitor.to_json())
        monitor.observe(strong(300, 1.5, 3 * seed + 1))
        found.append("tie rate" in monitor.observe(strong(400, 2.3, 3 * seed + 2)).moved)
    assert all(found)
    assert monitor.observe(np.array([[4, 0, 4], [8, 0, 0]])).n_items == 702


def test_alarms_latch_and_say_when():
    monitor = DriftMonitor(items(ITEMS, 300))
    first = monitor.observe(items(TIED, 400, seed=1)).facets[0].moved_at
    report = monitor.observe(items(ITEMS, 400, seed=2))
    assert report.stale
    assert report.facets[0].moved_at == first
    again = DriftMonitor(items(ITEMS, 300))
    again.observe(items(TIED, 400, seed=1)[: first - 1])
    assert "tie rate" not in again.report().moved
    again.observe(items(TIED, 400, seed=1)[first - 1])
    assert "tie rate" in again.report().moved


def test_states(tmp_path):
    path = tmp_path / "drift.json"
    monitor = DriftMonitor(items(ITEMS, 20))
    monitor.save(path)
    assert DriftMonitor.load(path).to_json() == monitor.to_json()
    state = json.loads(path.read_text())
    pool, *rest = state["tests"][0]
    crowded = [[2**63, *pool[1:]], *rest]
    with pytest.raises(InputError, match=r"^s: state contradicts itself, expected as many items"):
        DriftMonitor.from_json(
            json.dumps({**state, "tests": [crowded, *state["tests"][1:]]}), source="s"
        )
    with pytest.raises(InputError, match=r"^s: not a btdagg drift monitor, or a damaged one"):
        DriftMonitor.from_json(json.dumps({**state, "moved_at": state["moved_at"][1:]}), source="s")
    del state["sums"]
    with pytest.raises(InputError, match=r"^s: not a btdagg drift monitor, or a damaged one"):
        DriftMonitor.from_json(json.dumps(state), source="s")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: DriftMonitor([[1, 2]]), r"reference has shape \(1, 2\), expected \(n, 3\) or"),
        (lambda _: DriftMonitor([[0, 0, 0]]), r"votes of reference\[0\] is 0, expected an int"),
        (lambda m: m.observe([[1, 2, 3], [1, 2, 5]]), r"counts\[1\] has 8 votes, expected 6 as in"),
        (lambda m: m.observe([[-1, 2, 5]]), r"counts\[0\] is \[-1, 2, 5\], expected numbers from"),
    ],
)
def test_messages(make, message):
    monitor = DriftMonitor([[1, 2, 3]])
    before = monitor.to_json()
    with pytest.raises(InputError, match=message):
        make(monitor)
    assert monitor.to_json() == before
