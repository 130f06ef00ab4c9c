"""A tally of a stream: corrections, withdrawals, forgetting, late votes, snapshots and replays."""

import pickle
import threading

import numpy as np
import pytest

from btdagg import DavidsonModel, Scale
from btdagg.online import OnlineTally, StoppingRule
from refusals import refused

MODEL = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
RULE = StoppingRule.lossless(MODEL, 6)


class Reference:
    """A dictionary of what each sample came with, and the items that were reported."""

    def __init__(self, *, corrects):
        self.corrects, self.seen, self.reported, self.n_late = corrects, {}, set(), 0

    def add(self, item, vote, sample, judge):
        votes = self.seen.setdefault(item, {}).get((judge, sample), ())
        is_withdrawn = "withdrawn" in votes and not self.corrects
        if item in self.reported and vote not in votes and not is_withdrawn:
            self.n_late += 1
        elif self.corrects:
            self.seen[item][judge, sample] = (vote,)
        else:
            self.seen[item][judge, sample] = tuple({*votes, vote})

    def withdraw(self, item, sample, judge):
        votes = self.seen.setdefault(item, {}).get((judge, sample), ())
        kept = () if self.corrects else votes
        self.seen[item][judge, sample] = (*kept, "withdrawn")

    def forget(self, items):
        for item in items:
            self.seen.pop(item, None)
        self.reported -= {*items}

    def counts(self):
        found = {}
        for item, samples in sorted(self.seen.items()):
            row = found[item] = [0, 0, 0]
            for votes in samples.values():
                if len(votes) == 1 and votes[0] != "withdrawn":
                    row[votes[0] + 1] += 1
        return found

    def settle(self):
        counts = self.counts()
        rows = np.array([*counts.values()]).reshape(-1, 3)
        over = rows.sum(axis=1) > RULE.n
        stops = over.copy()
        stops[~over] = RULE.stops(rows[~over])
        new = {item for item, stop in zip(counts, stops, strict=True) if stop} - self.reported
        self.reported |= new
        return sorted(new)


def checked(tally, reference):
    ids, counts = tally.counts()
    assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == reference.counts()
    assert tally.n_late == reference.n_late


def followed(n_events, *, kind, differing, seed, kills=0, n_items=400, batch=40, every=20):
    """Follow a stream with repeats, corrections, withdrawals and forgetting, and a reference.

    It is killed, and goes on from its last snapshot with what came after that; one is taken, and
    compared, `every` so many batches.
    """
    random = np.random.default_rng(seed)
    settings = {"late": "drop", "differing": differing}
    tally, reference = OnlineTally(rule=RULE, **settings), Reference(corrects=differing == "last")
    snapshot, at_snapshot, log = tally.to_bytes(), pickle.dumps(reference), []
    size = n_events // batch
    dies = {*random.choice(np.arange(1, size), kills, replace=False).tolist()}

    def apply(tally, what, *values):
        if what == "add":
            items, votes, samples, judges = values
            tally.add([*map(kind, items)], votes, samples, judges=judges)
        elif what == "one":
            item, vote, sample, judge = values
            tally.add_one(kind(item), vote, sample, judge)
        elif what == "withdraw":
            tally.withdraw(kind(values[0]), *values[1:])
        elif what == "forget":
            tally.forget([*map(kind, values)])
        elif what == "settle":
            return tally.settle().ids.tolist()
        elif what == "evict":
            tally.evict()
        return None

    for step in range(size):
        items = random.integers(0, n_items, batch)
        samples = random.integers(0, 3, batch) * random.choice([1, 64], batch)
        votes, judges = random.integers(-1, 2, batch), random.choice(["", "j", "k"], batch)
        events = [("add", items.tolist(), votes.tolist(), samples.tolist(), judges.tolist())]
        if step % 3 == 0:
            rows = zip(*events.pop()[1:], strict=True)
            events += [("one", *row) for row in rows]
        events.append(("withdraw", int(items[0]), int(samples[1]), str(judges[2])))
        if step % (every // 4) == 0:
            events.append(("settle",))
        if step % (every // 2 + 1) == 0:
            events.append(("forget", *random.integers(0, n_items, 5).tolist()))
        if step % (every - 3) == 0:
            events.append(("evict",))
        for event in events:
            log.append(event)
            found = apply(tally, *event)
            what, *values = event
            if what == "add":
                for row in zip(*values, strict=True):
                    reference.add(kind(row[0]), *row[1:])
            elif what == "one":
                reference.add(kind(values[0]), *values[1:])
            elif what == "withdraw":
                reference.withdraw(kind(values[0]), *values[1:])
            elif what == "forget":
                reference.forget([*map(kind, values)])
            elif what == "settle":
                assert found == reference.settle()
            else:
                reference.forget([*reference.reported])
        if step in dies:
            tally = OnlineTally.from_bytes(snapshot, rule=RULE)
            checked(tally, pickle.loads(at_snapshot))
            for event in log:
                apply(tally, *event)
        if step % every == 0:
            checked(tally, reference)
            snapshot, at_snapshot, log = tally.to_bytes(), pickle.dumps(reference), []
    checked(tally, reference)
    again = OnlineTally.from_bytes(tally.to_bytes(), rule=RULE)
    assert again.to_bytes() == tally.to_bytes()
    return tally


@pytest.mark.parametrize("differing", ["neither", "last"])
@pytest.mark.parametrize("kind", [int, "né {}".format])
def test_a_stream_is_what_a_dictionary_says_through_kills_and_replays(kind, differing):
    followed(8_000, kind=kind, differing=differing, seed=1, kills=3)


class ArrayReference:
    """The same as arrays: of each item and slot, a judge's sample, the bits of what came."""

    WITHDRAWN, COUNTED = 8, np.array([0, 1, 2, 0, 3, *[0] * 11])  # bits to 1 + the side they count

    def __init__(self, n_items, n_slots, *, corrects):
        self.corrects, self.n_late = corrects, 0
        self.bits = np.zeros((n_items, n_slots), dtype=np.uint8)
        self.is_there, self.is_reported = np.zeros((2, n_items), dtype=bool)

    def add(self, items, votes, slots):
        new, old = np.left_shift(1, votes + 1).astype(np.uint8), self.bits[items, slots]
        is_known = (old & new > 0) | ((old & self.WITHDRAWN > 0) & (not self.corrects))
        is_late = self.is_reported[items] & ~is_known
        self.n_late += int(is_late.sum())
        at = items[~is_late], slots[~is_late]
        if self.corrects:
            self.bits[at] = new[~is_late]  # of equal places the last
        else:
            np.bitwise_or.at(self.bits, at, new[~is_late])
        self.is_there[items] = True

    def withdraw(self, item, slot):
        self.bits[item, slot] = self.WITHDRAWN | (0 if self.corrects else self.bits[item, slot])
        self.is_there[item] = True

    def forget(self, items):
        self.bits[items], self.is_there[items], self.is_reported[items] = 0, False, False

    def evict(self):
        self.forget(self.is_reported.copy())

    def counts(self, items):
        sides = self.COUNTED[self.bits[items]]
        return np.stack([(sides == side).sum(axis=1) for side in (1, 2, 3)], axis=1)

    def settle(self):
        items = np.flatnonzero(self.is_there & ~self.is_reported)
        counts = self.counts(items)
        stops = counts.sum(axis=1) > RULE.n
        stops[~stops] = RULE.stops(counts[~stops])
        self.is_reported[items[stops]] = True
        return items[stops], counts[stops]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("differing", "name"), [("neither", "né {:06}"), ("last", None)], ids=["texts", "corrections"]
)
def test_ten_million_events_are_what_arrays_say_through_twelve_kills_and_replays(differing, name):
    n_items, n_batches, size = 100_000, 200, 50_000
    random = np.random.default_rng(2)
    samples, judges = np.array([0, 1, 5, 64, 700, 4095] * 2), np.repeat(["", "j"], 6)
    ids = np.arange(n_items)
    if name is not None:
        ids = np.array([name.format(number) for number in range(n_items)], dtype=object)
    settings = {"late": "drop", "differing": differing}
    tally = OnlineTally(rule=RULE, **settings)
    reference = ArrayReference(n_items, len(samples), corrects=differing == "last")
    snapshot, log, batch = tally.to_bytes(), [], np.zeros((3, 0), dtype=int)
    dies = {*random.choice(np.arange(1, n_batches), 12, replace=False).tolist()}
    replayed = 0

    def apply(tally, what, *values):
        if what == "add":
            items, votes, slots = values
            tally.add(ids[items], votes, samples[slots], judges=judges[slots], n_threads=2)
        elif what == "withdraw":
            item, slot = values
            tally.withdraw(ids[item], samples[slot], judges[slot].item())
        elif what == "forget":
            tally.forget(ids[values[0]])
        else:
            return getattr(tally, what)()
        return None

    def check():
        there = np.flatnonzero(reference.is_there)
        found, counts = tally.counts()
        assert np.array_equal(found, ids[there])
        assert np.array_equal(counts, reference.counts(there))
        assert tally.n_late == reference.n_late

    for step in range(n_batches):
        again = batch[:, random.integers(0, size, size // 5)] if step else batch
        new = size - again.shape[1]
        drawn = [random.integers(0, n, new) for n in (n_items, 3, len(samples))]
        batch = np.concatenate([again, np.stack(drawn) - np.array([[0], [1], [0]])], axis=1)
        batch = batch[:, random.permutation(size)]
        events = [("add", *batch)]
        events += [("withdraw", *batch[::2, row]) for row in range(20)]
        events.append(("forget", random.choice(n_items, 300, replace=False)))
        if step % 2:
            events.append(("settle",))
        if step % 25 == 24:
            events.append(("evict",))
        for what, *values in events:
            log.append((what, *values))
            found = apply(tally, what, *values)
            expected = getattr(reference, what)(*values)
            if what == "settle":
                items, counts = expected
                assert np.array_equal(found.ids, ids[items])
                assert np.array_equal(found.counts, counts)
                assert np.array_equal(found.labels, MODEL.decide(counts))
        if step in dies:
            tally = OnlineTally.from_bytes(snapshot, rule=RULE)
            for event in log:
                apply(tally, *event)
            replayed += sum(event[0] == "add" for event in log)
        if step % 10 == 9:
            check()
            snapshot, log = tally.to_bytes(), []
    check()
    assert replayed >= len(dies)
    assert reference.n_late > 100_000
    assert OnlineTally.from_bytes(tally.to_bytes(), rule=RULE).to_bytes() == tally.to_bytes()


def test_the_last_vote_of_a_sample_counts_if_asked_for():
    tally = OnlineTally(differing="last")
    tally.add(["x", "x", "y"], [1, -1, 0], [0, 0, 0])
    assert tally.counts_one("x") == (1, 0, 0)
    tally.add_one("x", 0, 0)
    assert tally.counts_one("x") == (0, 1, 0)
    assert tally.conflicts() == []
    later = OnlineTally(differing="last")
    later.add_one("y", 1, 0)
    tally.merge(later)
    assert tally.counts_one("y") == (0, 0, 1)
    back = OnlineTally.from_bytes(tally.to_bytes())
    assert back.differing == "last"
    with refused("differing of other", got="neither"):
        back.merge(OnlineTally())
    with refused("differing", got="first"):
        OnlineTally(differing="first")


def test_a_withdrawn_sample_counts_for_nothing_however_often_it_comes():
    tally = OnlineTally()
    tally.add(["x", "x"], [1, 0], [0, 1])
    tally.withdraw("x", 0)
    tally.add_one("x", 1, 0)  # the stream repeats it
    assert tally.counts_one("x") == (0, 1, 0)
    assert tally.conflicts() == []
    tally.withdraw("z", 3, judge="j", order="AB")  # before its vote
    tally.add_one("z", 1, 3, "j", "AB")
    assert tally.counts_one("z") == (0, 0, 0)
    other = OnlineTally()
    other.add_one("x", 1, 0)
    other.merge(tally)
    assert other.counts_one("x") == (0, 1, 0)
    corrected = OnlineTally(differing="last")
    corrected.add_one("x", 1, 0)
    corrected.withdraw("x", 0)
    assert corrected.counts_one("x") == (0, 0, 0)
    corrected.add_one("x", -1, 0)
    assert corrected.counts_one("x") == (1, 0, 0)
    plain = OnlineTally(deduplicate=False)
    with refused("samples", got=0, expected="by their samples"):
        plain.withdraw("x", 0)
    with refused("samples", row=0, got=-1):
        tally.withdraw("x", -1)


def test_forgotten_and_evicted_items_are_new_again_and_give_their_memory_back():
    tally = OnlineTally(rule=RULE, late="drop")
    for first in range(0, 50_000, 5_000):
        names = [f"item {number}" for number in range(first, first + 5_000)]
        tally.add(np.repeat(names, 6), [1] * 30_000, np.tile(np.arange(6), 5_000))
        tally.add(names, [1] * 5_000, [64] * 5_000, judges="j")
        settled = tally.settle()
        assert len(settled.ids) == 5_000
        assert tally.evict(settled if first % 10_000 else None) == 5_000
        assert len(tally) == 0
    assert len(tally.to_bytes()) < 2_000
    tally.add_one("item 7", -1, 0)
    assert tally.counts_one("item 7") == (1, 0, 0)
    assert tally.forget(["item 7", "nothing", "item 7"]) == 1
    assert tally.counts_one("item 7") == (0, 0, 0)
    assert tally.forget([]) == 0
    assert OnlineTally().forget(["x"]) == OnlineTally().evict() == 0
    tally.add_one("item 8", -1, 0)
    with refused("items"):
        tally.forget([7])


def test_late_votes_are_a_list_and_the_rest_of_their_batch_counts():
    scale = Scale((0, 0.5, 1), mirrored=True)
    model = DavidsonModel(1.2, 2.0, 0.8, scale=scale, label_scale=scale)
    rule = StoppingRule.lossless(model, 4)
    tally = OnlineTally(rule=rule, late="list")
    tally.add(["x"] * 4, [1] * 4, range(4), judges="j", orders="AB")
    assert tally.settle().ids.tolist() == ["x"]
    tally.add(["y", "x", "x"], [0.5, 0, 1], [0, 9, 2], judges=["j", "k", "j"], orders="AB")
    tally.add_one("x", 0.5, 7, "j")
    assert tally.n_late == 2
    assert tally.counts_one("y") == (0, 1, 0)
    back = OnlineTally.from_bytes(tally.to_bytes(), rule=rule)
    late = [("x", "k", "AB", 9, 0), ("x", "j", "", 7, 0.5)]
    assert tally.late_votes() == back.late_votes() == late
    assert tally.late_votes() == []
    by_number = OnlineTally(rule=RULE, late="list", deduplicate=False)
    by_number.add([5] * 6, [1] * 6)
    by_number.settle()
    by_number.add_one(5, -1)
    assert by_number.late_votes() == [(5, "", "", None, -1)]


def test_a_bound_of_items_refuses_a_batch_as_a_whole():
    tally = OnlineTally(rule=RULE, max_items=3)
    tally.add([1, 2, 2, 1], [1, 0, 0, 1], [0, 0, 1, 1])
    before = tally.to_bytes()
    larger = OnlineTally(rule=RULE)
    larger.add([8, 9], [1, 1], [0, 0])
    with refused("items", expected="evict"):
        tally.add([2, 3, 4], [1, 1, 1], [5, 0, 0])
    with refused("items", expected="evict"):
        tally.merge(larger)
    assert tally.to_bytes() == before
    tally.add([3, 3, 1], [1, 1, 1], [0, 1, 2])
    with refused("items", expected="evict"):
        tally.add_one(4, 1, 0)
    tally.forget([1])
    tally.add_one(4, 1, 0)
    assert tally.counts()[0].tolist() == [2, 3, 4]
    assert OnlineTally.from_bytes(tally.to_bytes(), rule=RULE).max_items == 3
    with refused("max_items", got=0):
        OnlineTally(max_items=0)


def test_a_state_grows_with_votes_and_not_with_items_times_raters():
    tally = OnlineTally()
    raters = [f"rater {number}" for number in range(4_000)]
    tally.add(np.arange(4_000), [1] * 4_000, [0] * 4_000, judges=raters)
    tally.add(np.zeros(4_000, int), [0] * 4_000, [1] * 4_000, judges=raters)
    assert len(tally.to_bytes()) < 1_000_000
    assert tally.counts_one(0) == (0, 4_000, 1)
    assert OnlineTally.from_bytes(tally.to_bytes()).counts_one(3) == (0, 0, 1)


def test_one_vote_at_a_time_is_a_batch_of_one():
    for scale_of_ids in (int, "né {}".format):
        one, many = OnlineTally(), OnlineTally()
        random = np.random.default_rng(3)
        rows = random.integers(0, 30, 2_000), random.integers(-1, 2, 2_000)
        samples = random.integers(0, 4096, 2_000)
        ids = [*map(scale_of_ids, rows[0].tolist())]
        many.add(ids, rows[1], samples)
        for item, vote, sample in zip(ids, rows[1].tolist(), samples.tolist(), strict=True):
            one.add_one(item, vote, sample)
        assert one.to_bytes() == many.to_bytes()
        for bad in ((1.5, 1, 0), (ids[0], 2, 0), (ids[0], 1, 4096), (ids[0], 1, -1), (None, 1, 0)):
            with pytest.raises(ValueError, match="expected"):
                one.add_one(*bad)
        assert one.to_bytes() == many.to_bytes()
    large = OnlineTally()
    large.add_one(2**63 - 1, 1, 0)
    with refused("items"):
        large.add_one(2**63, 1, 0)


def test_threads_that_add_and_merge_lose_nothing():
    shared, parts = OnlineTally(), [OnlineTally() for _ in range(4)]

    def work(number):
        for sample in range(300):
            shared.add_one("x", 1, sample % 4096, f"thread {number}")
            parts[number].add_one("x", 1, sample, f"part {number}")
            if sample % 100 == 99:
                shared.merge(parts[number])
                parts[number].merge(parts[(number + 1) % 4])

    threads = [threading.Thread(target=work, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.counts_one("x")[2] >= 2 * 4 * 300
    shared.merge(shared)
    for part in parts:
        shared.merge(part)
    assert shared.counts_one("x") == (0, 0, 2 * 4 * 300)


def test_an_emptied_tally_is_as_new_but_for_its_kind_of_votes():
    tally = OnlineTally()
    for judge in "ab":
        tally.add([1, 2], [1, 1], [0, 0], judges=judge)
    assert tally.forget([1, 2]) == 2
    tally.withdraw(3, 5, judge="b")
    for judge in "ab":
        tally.add_one(3, 1, 0, judge)
    tally.add([3] * 4, [1, -1, 1, 1], [0] * 4, judges=["d", "e", "b", "a"])
    assert tally.counts_one(3) == (1, 0, 3)
    assert tally.conflicts() == []
    tally.forget([3])
    texts = OnlineTally()
    texts.add_one("x", 1, 0, "c")
    tally.merge(texts)
    tally.forget(["x"])
    tally.add_one(7, 1, 0, "c")
    assert tally.to_bytes() == tally_of_one(7, "c").to_bytes()
    with refused("samples", expected="by their samples"):
        tally.add_one(7, 1)


def tally_of_one(item, judge):
    tally = OnlineTally()
    tally.add_one(item, 1, 0, judge)
    return tally


def test_a_merge_names_the_reported_items_that_it_changes_and_fails_whole():
    tallies = [OnlineTally(rule=RULE), OnlineTally(rule=RULE)]
    for tally, vote in zip(tallies, (1, -1), strict=True):
        tally.add(["q"] * 6, [vote] * 6, range(6), judges=str(vote))
        tally.add(["same"] * 6, [1] * 6, range(6))
        assert tally.settle().ids.tolist() == ["q", "same"]
    tallies[1].add_one("new", 1, 0)
    first, second = tallies
    assert first.merge(second).tolist() == ["q"]
    assert first.counts_one("q") == (6, 0, 6)
    assert first.merge(second).tolist() == ["q"]
    assert first.merge(first).tolist() == []
    assert second.withdraw("q", 0, "-1")
    assert not second.withdraw("new", 0)
    bounded, other = OnlineTally(max_items=1), OnlineTally()
    other.add([1, 2], [1, 1], [0, 0])
    with refused("items", expected="evict"):
        bounded.merge(other)
    bounded.add([1], [1])
    assert bounded.counts_one(1) == (0, 0, 1)


def test_a_vote_of_a_withdrawn_sample_is_never_late_and_withdrawals_are_bounded():
    tally = OnlineTally(rule=StoppingRule.lossless(MODEL, 4), max_items=2)
    tally.withdraw("q", 9)
    tally.add(["q"] * 4, [1] * 4, range(4))
    assert tally.settle().ids.tolist() == ["q"]
    tally.add_one("q", 1, 9)
    assert (tally.n_late, tally.counts_one("q")) == (0, (0, 0, 4))
    tally.withdraw("r", 0)
    with refused("items", expected="evict"):
        tally.withdraw("s", 0)
    assert len(tally) == 2


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: OnlineTally(rule=MODEL), "rule"),
        (lambda: OnlineTally(RULE), "model"),
        (lambda: OnlineTally().merge("x"), "other"),
        (lambda: OnlineTally().evict("x"), "settled"),
        (lambda: OnlineTally.from_bytes("abc"), "data"),
        (lambda: OnlineTally().add([1], [1], [0], judges=1), "judges"),
        (lambda: OnlineTally().add_one(1, 1, 0, order=None), "orders"),
        (lambda: OnlineTally().add_one("\ud800", 1, 0), None),
        (lambda: OnlineTally().add_one("x", 1, 0, "\ud800"), None),
        (lambda: OnlineTally().add(["x"], [1], [0], judges=["\ud800"]), None),
        (lambda: StoppingRule.lossless("model.json", 4), "model"),
    ],
)
def test_what_is_no_tally_rule_or_judge_is_named(make, argument):
    tally = OnlineTally()
    tally.add_one("x", 1, 0)
    with pytest.raises(ValueError, match=r"\w+") as error:
        make()
    if argument is not None:
        assert error.value.argument == argument
