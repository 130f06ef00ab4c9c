"""Stopping rules, running tallies and the drift monitor: speed against peers, and what they do.

Peers: a plain NumPy dynamic program, state by state, and one layer at a time; copying the counts;
polars' group_by of the same rows. Prints Markdown tables. `--smoke` runs everything on little data;
`--only speed,regimes,rb2,covariates,drift` runs a part. Tables of real votes need the
public votes, in the folder that the environment variable BTDAGG_SHARED names.
"""

from __future__ import annotations

import argparse
import itertools
import os
import platform
import statistics
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import gammaln

import btdagg
from btdagg import DavidsonModel, calibrate
from btdagg.datasets import REGIMES, simulate
from btdagg.evaluation import RandomSplits
from btdagg.model import CalibrationWarning
from btdagg.online import DriftMonitor, OnlineTally, StoppingRule, VoteDistribution, fit_votes

MODEL = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
VOTES = VoteDistribution([(0.5, (0.3, 0.5, 4.0)), (0.5, (2.0, 3.0, 2.0))])
EPSILON = 0.05


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="little data, one repetition")
    parser.add_argument("--only", default="speed,regimes,rb2,covariates,drift")
    arguments = parser.parse_args()
    parts = {
        "speed": speed,
        "regimes": regimes,
        "rb2": real_votes,
        "covariates": known_of_items,
        "drift": drift,
    }
    print(
        f"btdagg {btdagg.__version__}, NumPy {np.__version__}, polars {pl.__version__}, "
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores"
    )
    warnings.simplefilter("ignore", CalibrationWarning)
    for name in arguments.only.split(","):
        print(f"\n## {name}\n")
        parts[name](arguments.smoke)


# Speed


def speed(smoke: bool) -> None:
    repeats = 1 if smoke else 5
    print("| what | btdagg | peer | peer / btdagg |")
    print("|---|---:|---:|---:|")

    def compare(what: str, ours: Callable[[], object], peer: Callable[[], object], n: int) -> None:
        ours(), peer()  # neither pays for what happens once
        pairs = [(timed(ours), timed(peer)) for _ in range(repeats)]
        mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(other / one for one, other in pairs)
        print(f"| {what} | {shown(mine / n)} | {shown(theirs / n)} | {ratio:.2f}× |", flush=True)

    n = 8 if smoke else 32
    for what, ours, kind in (
        ("lossless", lambda: StoppingRule.lossless(MODEL, n), "lossless"),
        ("risk-bounded", lambda: StoppingRule.risk_bounded(MODEL, n, VOTES), "risk-bounded"),
    ):
        counts = states(n)
        for peer, program in (("state by state", by_state), ("layer by layer", by_layer)):
            assert (program(n, kind)[tuple(counts.T)] == ours().stops(counts)).all()
            compare(
                f"build a {what} rule, n = {n}; NumPy {peer}",
                ours,
                lambda program=program, kind=kind: program(n, kind),
                1,
            )

    size = 10_000 if smoke else 1_000_000
    rng = np.random.default_rng(0)
    rule = StoppingRule.risk_bounded(MODEL, 12, VOTES)
    counts = rng.multinomial(12, [0.3, 0.2, 0.5], size=size)
    narrow = counts.astype(np.uint8)
    compare(
        "ask 1,000,000 states; copying int64 counts", lambda: rule.stops(counts), counts.copy, 1
    )
    compare("their labels; the same", lambda: rule.decide(counts), counts.copy, 1)
    compare("votes left; the same", lambda: rule.votes_left(counts), counts.copy, 1)
    compare("ask uint8 counts; copying them", lambda: rule.stops(narrow), narrow.copy, 1)
    loops = range(100 if smoke else 10_000)
    compare(
        "ask one state; model.decide_one",
        lambda: [rule.stops_one(1, 2, 5) for _ in loops],
        lambda: [MODEL.decide_one(1, 2, 5) for _ in loops],
        len(loops),
    )

    n_rows = 1_000 if smoke else 100_000
    rows = [
        rng.integers(low, high, n_rows).tolist() for low, high in ((0, 20_000), (-1, 2), (0, 8))
    ]
    for kind, ids in (("integers", rows[0]), ("texts", [f"item-{item}" for item in rows[0]])):
        compare(
            f"add one vote, {kind}; a checked dict with a lock",
            lambda ids=ids: one_by_one(OnlineTally().add_one, ids, *rows[1:]),
            lambda ids=ids: one_by_one(LockedDict().add, ids, *rows[1:]),
            n_rows,
        )
    chosen = np.array([unmixed(number << 32) for number in range(n_rows)])
    compare(
        f"{n_rows:,} ids that fall together without a secret; {n_rows:,} others",
        lambda: OnlineTally().add(chosen, np.ones(n_rows, np.int8)),
        lambda: OnlineTally().add(np.arange(n_rows), np.ones(n_rows, np.int8)),
        1,
    )

    n_rows, n_items = (10_000, 1_000) if smoke else (10_000_000, 1_000_000)
    items = rng.integers(0, n_items, size=n_rows)
    votes = rng.integers(-1, 2, size=n_rows).astype(np.int8)
    samples = rng.integers(0, 32, size=n_rows)
    names = pl.select(pl.format("item-{}", pl.Series(items)).alias("item"))["item"]
    for what, ids in (("integer ids", items), ("polars strings", names)):
        frame = pl.DataFrame({"item": ids, "vote": votes})
        for kind, numbers in (("", None), (", deduplicated", samples)):
            for threads in (1, 2):

                def ours(
                    ids: object = ids, numbers: object = numbers, threads: int = threads
                ) -> OnlineTally:
                    tally = OnlineTally(deduplicate=numbers is not None)
                    tally.add(ids, votes, numbers, n_threads=threads)
                    return tally

                compare(
                    f"tally {n_rows:,} votes, {what}{kind}, {threads} threads; polars group_by, "
                    f"{pl.thread_pool_size()} threads",
                    ours,
                    lambda frame=frame: grouped(frame),
                    1,
                )
        wanted = grouped(frame).sort("item")
        found, counted = ours_without_samples(ids, votes).counts()
        assert wanted["item"].to_list() == found.tolist()
        assert (wanted.select("-1", "0", "1").to_numpy() == counted).all()


class LockedDict:
    """What a tally is by hand: each sample counts once, and one with two votes for neither."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.counts: dict[object, list[int]] = {}
        self.seen: dict[tuple[object, int], int] = {}

    def add(self, item: int | str, vote: int, sample: int) -> None:
        is_sample = isinstance(sample, int) and 0 <= sample < 4096
        if not (isinstance(item, str | int) and vote in (-1, 0, 1) and is_sample):
            raise ValueError("no vote")
        with self.lock:
            before = self.seen.setdefault((item, sample), 2)
            if before == 2:
                self.seen[item, sample] = vote
                counts = self.counts.setdefault(item, [0, 0, 0])
                counts[vote + 1] += 1
            elif before not in (vote, 9):
                self.counts[item][before + 1] -= 1
                self.seen[item, sample] = 9


def one_by_one(add: Callable[..., None], *columns: list[object]) -> None:
    for row in zip(*columns, strict=True):
        add(*row)


def unmixed(word: int) -> int:
    """The integer that the mixer of splitmix64, without a secret, turns into a word."""
    mask = 2**64 - 1
    word = ((word ^ word >> 31 ^ word >> 62) * 0x319642B2D24D8EC3) & mask
    word = ((word ^ word >> 27 ^ word >> 54) * 0x96DE1B173F119089) & mask
    word = ((word ^ word >> 30 ^ word >> 60) - 0x9E3779B97F4A7C15) & mask
    return word - 2**64 if word >= 2**63 else word


def ours_without_samples(ids: object, votes: np.ndarray) -> OnlineTally:
    tally = OnlineTally(deduplicate=False)
    tally.add(ids, votes)
    return tally


def grouped(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.group_by("item").agg((pl.col("vote") == v).sum().alias(str(v)) for v in (-1, 0, 1))


def states(n: int) -> np.ndarray:
    grid = np.indices((n + 1,) * 3).reshape(3, -1).T
    return grid[grid.sum(axis=1) <= n]


def chances(counts: np.ndarray) -> np.ndarray:
    """Chance of a sequence of votes with these counts."""
    found = np.zeros(len(counts))
    for weight, alpha in VOTES.components:
        for a in (np.array(alpha), np.array(alpha)[::-1]):
            rising = (gammaln(a + counts) - gammaln(a)).sum(axis=1)
            total = gammaln(a.sum() + counts.sum(axis=1)) - gammaln(a.sum())
            found += weight / 2 * np.exp(rising - total)
    return found


def by_state(n: int, kind: str) -> np.ndarray:
    """Stops of a rule by a loop over the states."""
    joint = np.zeros((n + 1, n + 1, n + 1, 3))
    stops = np.zeros((n + 1,) * 3, dtype=bool)
    grid = states(n)
    full = grid[grid.sum(axis=1) == n]
    weight = chances(full) if kind == "risk-bounded" else np.ones(len(full))
    joint[(*full.T, MODEL.decide(full) + 1)] = weight
    stops[tuple(full.T)] = True
    for total in range(n - 1, -1, -1):
        for minus in range(total + 1):
            for plus in range(total + 1 - minus):
                tie = total - minus - plus
                after = (
                    joint[minus + 1, tie, plus]
                    + joint[minus, tie + 1, plus]
                    + joint[minus, tie, plus + 1]
                )
                joint[minus, tie, plus] = after
                stops[minus, tie, plus] = stop(after, kind)
    return stops


def by_layer(n: int, kind: str) -> np.ndarray:
    """The same with whole layers at a time."""
    joint = np.zeros((n + 1, n + 1, n + 1, 3))
    stops = np.zeros((n + 1,) * 3, dtype=bool)
    grid = states(n)
    totals = grid.sum(axis=1)
    full = grid[totals == n]
    weight = chances(full) if kind == "risk-bounded" else np.ones(len(full))
    joint[(*full.T, MODEL.decide(full) + 1)] = weight
    stops[tuple(full.T)] = True
    for total in range(n - 1, -1, -1):
        m, t, p = grid[totals == total].T
        after = joint[m + 1, t, p] + joint[m, t + 1, p] + joint[m, t, p + 1]
        joint[m, t, p] = after
        stops[m, t, p] = stop(after, kind)
    return stops


def stop(joint: np.ndarray, kind: str) -> np.ndarray:
    if kind == "lossless":
        return np.count_nonzero(joint, axis=-1) == 1
    ordered = np.sort(joint, axis=-1)
    return ordered[..., :2].sum(axis=-1) < EPSILON * joint.sum(axis=-1)


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def shown(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


# What the rules save


def regimes(smoke: bool) -> None:
    print("| regime | n | lossless | risk-bounded | changed | as forecast | MAE | of all votes |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for n in (12, 20):
        rows = []
        for name in REGIMES:
            judge = simulate(name, 1000 if smoke else 20_000, n, seed=0)
            found = []
            for split in RandomSplits(size=50, n_splits=2 if smoke else 20).draw(len(judge.labels)):
                found.append(savings(judge.votes, judge.labels, *split))
            rows.append(np.mean(found, axis=0))
            print(row_of(name, n, rows[-1]))
        print(row_of("**mean**", n, np.mean(rows, axis=0)))


def row_of(name: str, n: int, row: np.ndarray) -> str:
    lossless, risk, changed, forecast, mae, full = row
    saved = [f"{used:.2f} ({1 - used / n:.0%})" for used in (lossless, risk)]
    return (
        f"| {name} | {n} | {saved[0]} | {saved[1]} | {changed:.2%} | {forecast:.2%} | {mae:.4f} "
        f"| {full:.4f} |"
    )


def savings(
    votes: np.ndarray, labels: np.ndarray, known: np.ndarray, rest: np.ndarray
) -> list[float]:
    n = votes.shape[1]
    counts = np.stack([(votes == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=1)
    model = calibrate(counts[known], labels[known], prior=None).model
    distribution = fit_votes(counts[known], labels[known])
    of_all = model.decide(counts[rest])
    lossless = StoppingRule.lossless(model, n).follow(votes[rest])
    assert (lossless.labels == of_all).all()
    rule = StoppingRule.risk_bounded(model, n, distribution, epsilon=EPSILON)
    risk = rule.follow(votes[rest])
    return [
        lossless.n_votes.mean(),
        risk.n_votes.mean(),
        (risk.labels != of_all).mean(),
        rule.change_rate,
        np.abs(risk.labels - labels[rest]).mean(),
        np.abs(of_all - labels[rest]).mean(),
    ]


def real_votes(smoke: bool) -> None:
    shared = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared"))
    if not (shared / "data").is_dir():
        print("the public votes are not here: set BTDAGG_SHARED")
        return
    text = pl.col("item", "task", "judge", "template", "temperature").cast(pl.String)
    votes = pl.read_parquet(shared / "data/rb2/votes.parquet").with_columns(text)
    votes = votes.filter(template="base", temperature="default").drop_nulls("vote")
    labels = pl.read_csv(shared / "data/rb2/labels.csv").select("item", "label", "group")
    print("| judge and task | n | lossless | risk-bounded | changed | as forecast | MAE | of all |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    ordinary, every = [], []
    for (judge, task), rows in votes.group_by("judge", "task"):
        wide = rows.pivot(on="sample", index="item", values="vote").drop_nulls().sort("item")
        wide = wide.join(labels, on="item", maintain_order="left")
        samples = wide.select(str(k) for k in range(8)).to_numpy()
        gold, groups = wide["label"].to_numpy(), wide["group"].to_numpy()
        splits = RandomSplits(size=50, n_splits=2 if smoke else 100).draw(len(gold), groups)
        found = np.mean([savings(samples, gold, *split) for split in splits], axis=0)
        every.append((f"{judge} {task}", found))
        if task in ("safety", "factuality", "focus", "math"):
            ordinary.append(found)
    for name, found in sorted(every, key=lambda row: row[0]):
        print(row_of(name, 8, found))
    print(row_of("**mean of safety, factuality, focus, math**", 8, np.mean(ordinary, axis=0)))
    print(row_of("**mean of all**", 8, np.mean([found for _, found in every], axis=0)))


def known_of_items(smoke: bool) -> None:
    """Votes that the lossless rule asks for and errors, of votes alone and with covariates.

    Standings are of the labelled items' votes, frozen when the others begin.
    """
    if "BTDAGG_SHARED" not in os.environ:
        print("the public votes are not here: set BTDAGG_SHARED")
        return
    from covariates import cells_of

    print("| | n | labels | votes | with covariates | without a vote | MAE | with covariates |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for family, size in itertools.product(("vicuna80", "topical", "rb2"), (50, 100)):
        of_family = []
        for name, cell in list(cells_of(family).items())[: 2 if smoke else None]:
            n = int(cell.counts.sum(axis=1).max())
            full = np.flatnonzero(cell.counts.sum(axis=1) == n)
            found = [
                known_and_alone(cell, n, full, size, seed) for seed in range(2 if smoke else 20)
            ]
            of_family.append(np.mean(found, axis=0))
            if family != "rb2":
                print(row_of_known(name, n, size, of_family[-1]), flush=True)
        print(row_of_known(f"**{family}**", n, size, np.mean(of_family, axis=0)), flush=True)


def row_of_known(name: str, n: int, size: int, row: np.ndarray) -> str:
    alone, known, none, mae, known_mae = row
    votes = f"{alone:.2f} ({1 - alone / n:.0%}) | {known:.2f} ({1 - known / n:.0%})"
    return f"| {name} | {n} | {size} | {votes} | {none:.1%} | {mae:.4f} | {known_mae:.4f} |"


def known_and_alone(cell, n: int, full: np.ndarray, size: int, seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    labelled, rest = np.split(rng.permutation(full), [size])
    labels, frozen = np.full(len(cell.labels), np.nan), np.zeros_like(cell.counts)
    labels[labelled], frozen[labelled] = cell.labels[labelled], cell.counts[labelled]
    known = cell.known(frozen, 0)
    alone = calibrate(cell.counts[labelled], cell.labels[labelled], scale=cell.scale).model
    model = calibrate(cell.counts, labels, scale=cell.scale, covariates=known).model
    of_rest = {own.name: known[own.name][rest] for own in model.covariates} or None
    votes = cell.scale.floats[
        np.stack([np.arange(len(row)).repeat(row) for row in cell.counts[rest]])
    ]
    votes, gold = rng.permuted(votes, axis=1), cell.labels[rest]
    followed = StoppingRule.lossless(alone, n).follow(votes)
    with_known = StoppingRule.lossless(model, n).follow(votes, covariates=of_rest)
    assert (followed.labels == alone.decide(cell.counts[rest])).all()
    assert (with_known.labels == model.decide(cell.counts[rest], covariates=of_rest)).all()
    return [
        followed.n_votes.mean(),
        with_known.n_votes.mean(),
        (with_known.n_votes == 0).mean(),
        np.abs(followed.labels - gold).mean(),
        np.abs(with_known.labels - gold).mean(),
    ]


# Drift

LEVELS = (0.01, 0.05, 0.2)


def drift(smoke: bool) -> None:
    n_streams, length = (50, 100) if smoke else (10_000, 1_000)
    usual = VoteDistribution([(0.7, (0.3, 0.4, 3.0)), (0.3, (2.0, 1.0, 2.0))])
    tied = VoteDistribution([(0.7, (0.3, 1.15, 3.0)), (0.3, (2.0, 1.9, 2.0))])
    print("| level | reference items | streams | items each | false alarms |")
    print("|---:|---:|---:|---:|---:|")
    for n_reference in (50, 500):
        alarms = dict.fromkeys(LEVELS, 0)
        for number in range(n_streams):
            drawn = counts_of(usual.draw(n_reference + length, 8, seed=number))
            monitor = DriftMonitor(drawn[:n_reference], seed=number)
            report = monitor.observe(drawn[n_reference:])
            least = min(facet.pvalue for facet in report.facets)
            for level in alarms:
                alarms[level] += 3 * least <= level
        for level, count in alarms.items():
            share = count / n_streams
            print(f"| {level} | {n_reference} | {n_streams:,} | {length:,} | {share:.4f} |")
    before, after = (
        counts_of(kind.draw(200_000, 8, seed=1))[:, 1].mean() / 8 for kind in (usual, tied)
    )
    print(f"\nTie rate from {before:.3f} to {after:.3f}, level 0.01:\n")
    print("| reference items | items before | found | items needed: median | 90% |")
    print("|---:|---:|---:|---:|---:|")
    runs = 10 if smoke else 400
    for n_reference in (50, 100, 200, 500, 2000):
        for n_before in (0, 1000):
            needed = []
            for seed in range(runs):
                start = counts_of(usual.draw(n_reference + n_before, 8, seed=2 * seed))
                monitor = DriftMonitor(start[:n_reference], seed=seed)
                monitor.observe(start[n_reference:])
                report = monitor.observe(counts_of(tied.draw(1000, 8, seed=2 * seed + 1)))
                at = report.facets[0].moved_at
                needed.append(np.inf if at is None else at - n_before)
            found = np.isfinite(needed).mean()
            median, most = np.quantile(needed, [0.5, 0.9], method="higher")
            print(f"| {n_reference} | {n_before} | {found:.1%} | {median:.0f} | {most:.0f} |")
    drift_of_groups(40 if smoke else 2000)


def drift_of_groups(n_streams: int) -> None:
    """Six pairs of each prompt in a row, alike within a prompt; with groups and without."""
    print("\n| monitor | alarms at 0.01 | 0.05 | 0.2 | found | pairs needed: median | 90% |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, grouped in (("with groups", True), ("without", False)):
        peaks, needed = [], []
        for number in range(n_streams):
            rng = np.random.default_rng([11, number])
            before, group = prompts(100, rng)
            for more_ties in (1.0, 3.0):
                after, new = prompts(200, rng, more_ties)
                monitor = DriftMonitor(before, groups=group if grouped else None, seed=number)
                report = monitor.observe(after, groups=new if grouped else None)
                if more_ties == 1.0:
                    peaks.append(3 * min(facet.pvalue for facet in report.facets))
                else:
                    needed.append(report.facets[0].moved_at or np.inf)
        alarms = " | ".join(f"{np.mean(np.array(peaks) <= level):.4f}" for level in LEVELS)
        median, most = np.quantile(needed, [0.5, 0.9], method="higher")
        found = np.isfinite(needed).mean()
        print(f"| {name} | {alarms} | {found:.1%} | {median:.0f} | {most:.0f} |")


def prompts(n: int, rng: np.random.Generator, more_ties: float = 1.0):
    shares = rng.dirichlet([1.0, 0.6 * more_ties, 2.0], size=n).repeat(6, axis=0)
    return rng.multinomial(8, shares), np.arange(n).repeat(6)


def counts_of(votes: np.ndarray) -> np.ndarray:
    return np.stack([(votes == vote).sum(axis=1) for vote in (-1, 0, 1)], axis=1)


if __name__ == "__main__":
    main()
