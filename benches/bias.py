"""Bias of a judge on simulated votes: level where it has none, coverage and power where it has.

Quality goes with the covariate. At the null the judge's single vote is as noisy as a person's
label, so that both slopes are one. Other judges are more or less decisive, or add a fixed amount to
the log odds for each doubling of the length. The true difference is the mean over 400,000 items.
"""

from __future__ import annotations

import argparse

import numpy as np

import btdagg

POINTS = {"pairs": (-1, 0, 1), "grades": (1, 2, 3, 4, 5), "pass": (0, 1)}


def shares(kind, quality):
    """Chances of each point: Davidson's for pairs, cumulative logits for grades."""
    if kind == "pairs":
        odds = np.exp(np.column_stack([-quality, np.full(len(quality), -0.3), quality]))
        return odds / odds.sum(axis=1, keepdims=True)
    n = len(POINTS[kind])
    above = 1 / (1 + np.exp(np.linspace(-1.5, 1.5, n - 1) * (n > 2) - quality[:, None]))
    cumulated = np.column_stack([np.ones(len(quality)), above, np.zeros(len(quality))])
    return -np.diff(cumulated, axis=1)


def covariate(rng, n, shape):
    if shape == "skewed":
        return rng.standard_t(3, n) / 2
    if shape == "rare":
        return rng.choice([-1.0, 0.0, 1.0], n, p=[0.05, 0.9, 0.05])
    return rng.normal(size=n) * 0.7


def judged(kind, quality, x, added, decisive):
    """Chances of a vote of a judge that adds something for x, and is so decisive."""
    return shares(kind, decisive * (quality + added * x / np.log(2)))


def draw(rng, setting, n):
    kind, n_votes, shape, size, added, decisive = setting
    of = np.repeat(np.arange(-(-n // size)), size)[:n]
    x = covariate(rng, n, shape)
    shared = rng.normal(size=of.max() + 1)[of] if size > 1 else 0.0
    quality = 0.8 * x + 0.5 * shared + rng.normal(size=n) * 0.7
    labels = np.array(POINTS[kind])[
        (rng.random(n)[:, None] > shares(kind, quality).cumsum(axis=1)[:, :-1]).sum(axis=1)
    ]
    counts = rng.multinomial(n_votes, judged(kind, quality, x, added, decisive))
    return counts, labels, x, of, quality


def truth(setting):
    """The difference of the slopes of the expected label and the expected vote."""
    kind, _, _, _, added, decisive = setting
    if added == 0 and decisive == 1:
        return 0.0
    rng = np.random.default_rng(7)
    *_, x, _, quality = draw(rng, setting, 400_000)
    votes = judged(kind, quality, x, added, decisive)
    gap = (votes - shares(kind, quality)) @ np.array(POINTS[kind], float)
    x = x - (0 if kind == "pairs" else x.mean())
    slope = x @ gap / (x @ x)
    return slope * (0.5 if kind == "pairs" else 1)


def rates(setting, n_labels, n_draws):
    """Share of draws whose interval misses the truth, and of each finding."""
    kind, _, _, size, _, _ = setting
    true, missed, found = truth(setting), 0, {}
    for seed in range(n_draws):
        rng = np.random.default_rng([seed, n_labels])
        counts, labels, x, of, _ = draw(rng, setting, n_labels)
        if np.count_nonzero(x) < 2:  # of the rare covariate, which is then refused
            continue
        (own,) = btdagg.bias(
            counts,
            labels,
            covariates={"x": x},
            scale=btdagg.PAIRS if kind == "pairs" else btdagg.Scale(POINTS[kind]),
            groups=of if size > 1 else None,
        ).covariates
        _, low, high = own.difference
        missed += low > true * own.step_size or high < true * own.step_size
        found[own.finding] = found.get(own.finding, 0) + 1
    return missed / n_draws, {name: n / n_draws for name, n in sorted(found.items())}


NULLS = [
    ("pairs", 4, "normal", 1, 0, 1),
    ("pairs", 8, "normal", 1, 0, 1),
    ("pairs", 4, "skewed", 1, 0, 1),
    ("pairs", 4, "rare", 1, 0, 1),
    ("pairs", 8, "normal", 4, 0, 1),
    ("grades", 4, "normal", 1, 0, 1),
    ("grades", 8, "normal", 1, 0, 1),
    ("grades", 4, "skewed", 4, 0, 1),
    ("pass", 4, "normal", 1, 0, 1),
    ("pass", 8, "rare", 1, 0, 1),
]
OTHERS = [
    ("pairs", 8, "normal", 1, 0, 0.5),
    ("pairs", 8, "normal", 1, 0, 2),
    ("grades", 8, "normal", 1, 0, 2),
    ("grades", 8, "normal", 1, 0, 0.5),
    ("pairs", 8, "normal", 1, 0.2, 1),
    ("pairs", 8, "normal", 1, 0.5, 1),
    ("grades", 8, "normal", 1, 0.5, 1),
    ("pass", 8, "normal", 1, 0.5, 1),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--smoke", action="store_true")
    options = parser.parse_args()
    n_draws = 20 if options.smoke else options.draws
    print("| votes, covariate, group, added, decisive | labels | missed | findings |")
    print("|---|---|---|---|")
    for setting in NULLS + OTHERS:
        for n_labels in (50,) if options.smoke else (50, 100, 300):
            missed, found = rates(setting, n_labels, n_draws)
            told = ", ".join(f"{name} {share:.1%}" for name, share in found.items())
            what = " ".join(map(str, setting))
            print(f"| {what} | {n_labels} | {missed:.1%} | {told} |", flush=True)


if __name__ == "__main__":
    main()
