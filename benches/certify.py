"""Certificates on public votes: how often their promise fails, and what share of items they cover.

Each draw labels some items, by item or by whole prompts, and certifies all: a violation is a set of
trusted items whose labels agree with all gold labels less often than was promised. Then designs
that label some items more often than others, and judges that are noise, always wrong or always
sure; what is left of the error after people looked at the items that a look helps most; and time.
BTDAGG_SHARED names the folder of the public votes.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from covariates import topical, vicuna80
from grades import PUBLIC, public_cells
from strength import cells_of

import btdagg
from btdagg.inference.likeness import VoteProfile

AGREEMENTS = (0.7, 0.8, 0.9)
SIZES = (100, 300)
CONFIDENCE = 0.9


def panels_of(cells, kind):
    """Labels, groups and counts (n, judges, 3) of the items that all judges voted on, by task."""
    judges = sorted({judge for judge, _ in cells})
    panels = {}
    for task in sorted({task for _, task in cells}):
        own = [cells[judge, task] for judge in judges]
        rows = [{item: row for row, item in enumerate(cell[3])} for cell in own]
        common = sorted(set.intersection(*map(set, rows)))
        places = [[of[item] for item in common] for of in rows]
        counts = [cell[2][kind][place] for cell, place in zip(own, places, strict=True)]
        panels[task] = own[0][0][places[0]], own[0][1][places[0]], np.stack(counts, axis=1)
    return panels


def drawn(rng, groups, size, by_prompt):
    """Rows of items drawn by chance, singly or by whole prompts."""
    if not by_prompt:
        return rng.permutation(len(groups))[:size]
    order = rng.permutation(groups.max() + 1)[groups]
    rows = np.argsort(order, kind="stable")
    last = order[rows[size - 1]]
    return rows[order[rows] <= last]


def certified(curve, agreement):
    """The last point before the first bound that fails: what `certify` of it certifies."""
    passed = None
    for point in curve:
        if point.low < agreement:
            return passed
        passed = point
    return passed


def show_draws(name, cells, n_draws, by_prompt, *, grouped=None, scales=(None, None), model=None):
    """Violations, draws with nothing certified, and coverage, by number of labels."""
    for size in SIZES:
        rows = {agreement: [] for agreement in AGREEMENTS}
        for draw in range(n_draws):
            labels, groups, counts = list(cells.values())[draw % len(cells)]
            rng = np.random.default_rng([29, draw])
            known = drawn(rng, groups, size, by_prompt)
            partial = np.full(len(labels), np.nan)
            partial[known] = labels[known]
            certificate = btdagg.certify(
                counts,
                partial,
                confidence=CONFIDENCE,
                groups=groups if by_prompt or grouped else None,
                scale=scales[0],
                label_scale=scales[1],
                model=model,
            )
            fitted = certificate.model
            agrees = fitted.decide(counts) == labels
            sure = btdagg.questions.certify.sure(fitted.predict_proba(counts))[1]
            for agreement, sets in rows.items():
                point = certified(certificate.curve, agreement)
                trusted = np.zeros(len(labels), bool) if point is None else sure >= point.threshold
                sets.append((trusted.mean(), agrees[trusted].mean() if trusted.any() else np.nan))
        for agreement, sets in rows.items():
            coverage, actual = np.array(sets).T
            wrong, nothing = (actual < agreement).mean(), np.isnan(actual).mean()
            least = "–" if nothing == 1 else f"{np.nanmin(actual):.3f}"
            print(
                f"| {name} | {'prompts' if by_prompt else 'items'} | {size} | {agreement:.0%} | "
                f"{wrong:.3f} | {nothing:.2f} | {coverage.mean():.3f} | {least} |",
                flush=True,
            )


def show_people(cells, n_draws, by_prompt):
    """What error is left after people looked at some items, and how often its interval has it."""
    for judge in sorted({judge for judge, _ in cells}):
        rows = {}
        own = [cell for (name, _), cell in cells.items() if name == judge]
        for draw in range(n_draws):
            for labels, groups, both, _ in own:
                rng = np.random.default_rng([30, draw])
                known = drawn(rng, groups, 100, by_prompt)
                partial = np.full(len(labels), np.nan)
                partial[known] = labels[known]
                model = btdagg.calibrate(both[1][known], labels[known], prior="weak").model
                errors = np.abs(labels - model.decide(both[1]))
                errors[known] = 0
                columns = {"groups": groups if by_prompt else None}
                for share in (0.1, 0.2, 0.3):
                    looks = btdagg.estimates.worth_a_look(both[1], partial, share, **columns)
                    # People labelled none, all, or half of them.
                    half = rng.permutation(looks.rows)[: len(looks.rows) // 2]
                    of_half = btdagg.estimates.worth_a_look(
                        both[1], partial, rows=half, **columns
                    ).after
                    sets = {
                        share: (looks.rows, looks.after),
                        f"half of {share:.0%}": (half, of_half),
                    }
                    if share == 0.1:
                        sets[0.0] = looks.rows[:0], looks.before
                    for name, (seen, interval) in sets.items():
                        left = errors.copy()
                        left[seen] = 0
                        held = interval.low <= left.mean() <= interval.high
                        fields = left.sum() / (len(labels) - len(known)), held, *interval
                        rows.setdefault(name, []).append((*fields, left.mean()))
        for name, sets in sorted(rows.items(), key=str):
            error, held, mean, low, high, actual = np.mean(sets, axis=0)
            looked = name if isinstance(name, str) else f"{name:.0%}"
            print(
                f"| {judge} | {'prompts' if by_prompt else 'items'} | {looked} | {error:.3f} | "
                f"{held:.3f} | {high - low:.3f} | {mean - actual:+.4f} |",
                flush=True,
            )


def simulated(kind, n=2000, n_prompts=None):
    """A judge that is noise, always wrong or always sure, and what people say."""
    rng = np.random.default_rng(7)
    labels = rng.choice([-1, 0, 1], size=n, p=[0.3, 0.4, 0.3])
    groups = np.arange(n)
    if kind == "one prompt":  # has half of the items, on which the judge is wrong
        groups[: n // 2] = 0
        groups[n // 2 :] -= n // 2 - 1
    leaning = {
        "noise": rng.choice([-1, 0, 1], size=n),
        "wrong": -labels,
        "sure": rng.integers(0, 2, n) * 2 - 1,
    }
    side = leaning.get(kind, labels)
    if kind == "one prompt":
        side = np.where(groups == 0, labels % 3 - 1, labels)
    noise = 0.0 if kind == "sure" else 0.2
    shares = np.full((n, 3), noise / 2)
    shares[np.arange(n), side + 1] = 1 - noise
    if kind == "noise":
        shares[:] = 1 / 3
    counts = np.array([rng.multinomial(8, share) for share in shares])
    return {kind: (labels, groups, counts)}


PARTS = ["judges", "panel", "scores", "designs", "forecasts", "unlike", "simulated"]
PARTS += ["people", "covariates", "time"]
PUBLIC_PARTS = {"judges", "panel", "people", "forecasts", "unlike"}
DESIGNS = ("disagreement", "lognormal", "hard 1/3", "hard 1/10", "capped")


def designed(rng, design, size, n=2000):
    """Votes, labels and the probabilities of a design, by which harder items are labelled less."""
    hard = rng.random(n) < 0.15  # where people say anything, whatever the votes
    quality, rarity = rng.normal(size=n), rng.normal(size=n)
    votes = np.clip(np.round(quality[:, None] + 0.8 * rng.normal(size=(n, 8))), -1, 1)
    counts = np.stack([(votes == value).sum(axis=1) for value in (-1, 0, 1)], axis=1)
    noise = 0.3
    if design in ("lognormal", "capped"):
        hard, noise = hard & False, 0.3 * np.exp(rarity)
    gold = np.clip(np.round(1.5 * quality + noise * rng.normal(size=n)), -1, 1)
    gold = np.where(hard, rng.integers(-1, 2, n), gold)
    share = {
        "disagreement": 1 / 16 + 15 / 16 * (1 - counts.max(axis=1) / 8) * 1.6,
        "lognormal": np.exp(-rarity),
        "hard 1/3": np.where(hard, 1 / 3, 1),
        "hard 1/10": np.where(hard, 1 / 10, 1),
        "capped": np.exp(-2 * rarity),
    }[design]
    chances = size * share / share.sum()
    while (chances > 1).any():
        rest = chances < 1
        chances = np.where(rest, (size - (~rest).sum()) * share / share[rest].sum(), 1)
    order = rng.permutation(n)
    passed = np.floor(chances[order].cumsum() + rng.random())
    return counts, gold, chances, order[np.diff(passed, prepend=0) > 0]


def show_designs(n_draws, kind, model=None):
    """Violations and coverage of designs; the worst of 31 agreements, and the mean of three."""
    for design in DESIGNS:
        for size in (40, *SIZES):
            wrong, covered = [], []
            for draw in range(n_draws):
                rng = np.random.default_rng([31, draw, size])
                counts, gold, chances, known = designed(rng, design, size)
                partial = np.full(len(gold), np.nan)
                partial[known] = gold[known]
                told = {"probabilities": chances}
                if kind == "the least":
                    told = {
                        "probabilities": np.where(np.isnan(partial), np.nan, chances),
                        "least_probability": chances.min(),
                    }
                certificate = btdagg.certify(counts, partial, model=model, **told)
                fitted = certificate.model
                agrees = fitted.decide(counts) == gold
                sure = btdagg.questions.certify.sure(fitted.predict_proba(counts))[1]
                actual, coverage = [], []
                for agreement in np.linspace(0.65, 0.95, 31):
                    point = certified(certificate.curve, agreement)
                    trusted = sure >= (np.inf if point is None else point.threshold)
                    actual.append(trusted.any() and agrees[trusted].mean() < agreement)
                    coverage.append(trusted.mean())
                wrong.append(actual)
                covered.append(coverage)
            violations, coverage = np.mean(wrong, axis=0), np.mean(covered, axis=0)
            print(
                f"| {design} | {kind} | {'fitted' if model is None else 'of before'} | {size} | "
                f"{100 * violations.max():.1f} | "
                + " | ".join(f"{coverage[place]:.3f}" for place in (5, 15, 25))
                + " |",
                flush=True,
            )


def show_forecasts(cells, n_draws):
    """Of draws that certify nothing: how many forecast a number, and how often it is enough."""
    for agreement in (0.7, 0.8):
        for size in (50, 100):
            numbers, enough = [], []
            for draw in range(n_draws):
                for place, (labels, _, both, _) in enumerate(cells.values()):
                    rng = np.random.default_rng([6, place, size, draw])
                    wanted = size
                    for last in (False, True):
                        known = rng.permutation(len(labels))[:wanted]
                        partial = np.full(len(labels), np.nan)
                        partial[known] = labels[known]
                        certificate = btdagg.certify(both[1], partial, agreement=agreement)
                        if last:
                            enough.append(certificate.threshold is not None)
                        elif certificate.threshold is None:
                            wanted = certificate.labels_wanted
                            numbers.append(wanted)
                        if last or certificate.threshold is not None or wanted is None:
                            break
            print(
                f"{size} labels, {agreement:.0%}: nothing in {len(numbers)} draws, a number in "
                f"{len(enough)}, enough in {sum(enough)}",
                flush=True,
            )


def show_unlike(cells, n_draws):
    """How often votes of prompts drawn anew, of noise or always for A look unlike, at 1%."""
    sources = {
        "a judge": [(groups, both[0]) for _, groups, both, _ in cells.values()],
        "with strength": [(groups, both[1]) for _, groups, both, _ in cells.values()],
        "panel": [(groups, counts) for _, groups, counts in panels_of(cells, 0).values()],
    }
    for name, own in sources.items():
        for n_prompts in (12, 25, 100):
            rows = []
            for draw in range(n_draws):
                rng = np.random.default_rng([5, draw, n_prompts])
                groups, counts = own[draw % len(own)]
                sets = []
                for number in (120, n_prompts):
                    prompts = rng.integers(0, groups.max() + 1, number)
                    items = [np.flatnonzero(groups == prompt) for prompt in prompts]
                    names = np.repeat(np.arange(number), [len(rows) for rows in items])
                    sets.append((counts[np.concatenate(items)], names))
                (old, of_old), (new, of_new) = sets
                kind, profile = btdagg.PAIRS, VoteProfile.of
                number = np.rint(new.sum(axis=-1)).astype(int)
                noise, always = rng.multinomial(number, np.full(3, 1 / 3)), np.zeros_like(new)
                always[..., 2] = number
                grouped, single = profile(old, kind, of_old), profile(old, kind)
                n = len(grouped.means)
                tried = [(grouped, profile(new, kind, of_new, n))]
                tried += [(single, profile(other, kind, None, n)) for other in (new, noise, always)]
                rows.append([b is not None and a.pvalue(b) < 0.01 for a, b in tried])
            shares = " | ".join(f"{share:.1%}" for share in np.mean(rows, axis=0))
            print(f"| {name} | {n_prompts} | {shares} |", flush=True)


def of_world(rng, kind, follows, by_prompt, n=1500, n_new=5000):
    """Two votes an item, labels, a covariate and prompts of five items; new items come last.

    What people follow is the covariate in two thirds of a standard deviation and what only the item
    has; where that is "opposite", they follow it the other way round in half of the prompts.
    """
    prompts = np.arange(n + n_new) // 5

    def drawn():
        of_items, of_prompts = rng.normal(size=(2, n + n_new))
        return np.sqrt(0.5) * (of_items + of_prompts[prompts]) if by_prompt else of_items

    x, own = drawn(), drawn()
    weights = {"followed": 1.2, "opposite": np.where(prompts % 2, 1.2, -1.2)}
    quality = weights[follows] * x + 0.7 * own

    def shares(log_odds, width):
        if kind == "pairs":
            odds = np.exp(np.column_stack([-log_odds, np.full(len(x), -0.5), log_odds]))
            return odds / odds.sum(axis=1, keepdims=True)
        above = 1 / (1 + np.exp(np.array([-width, width]) - log_odds[:, None]))
        columns = [1 - above[:, 0], above[:, 0] - above[:, 1], above[:, 1]]
        return np.column_stack(columns)

    below = shares(2 * quality, 1.5).cumsum(axis=1)[:, :2]
    labels = (rng.random(n + n_new)[:, None] > below).sum(axis=1) + (-1 if kind == "pairs" else 1)
    counts = rng.multinomial(2, shares(0.5 * quality, 1.5))
    return counts, labels.astype(float), x, prompts, np.arange(n + n_new) < n


def of_public(cell):
    """The same of a cell of public votes, whose covariate is the length: no item is new."""
    groups = np.unique(cell.groups, return_inverse=True)[1]
    length = cell.known(cell.counts, 0)["length"]
    return cell.counts, cell.labels.astype(float), length, groups, np.ones(len(length), bool)


def show_covariates(data, n_draws, sizes=(50, 100, 300)):
    """Violations without and with a covariate: of all items, and of new or unlabelled ones."""
    scales, sources = {"pairs": btdagg.PAIRS, "grades": btdagg.Scale((1, 2, 3))}, {}
    for kind, scale in scales.items():
        sources[f"simulated {kind}"] = [(scale, (kind, "followed"))]
    for family in (vicuna80, topical) if data.is_dir() else ():
        sources[family.__name__] = [(cell.scale, of_public(cell)) for cell in family(data)]
    for kind, scale in scales.items():
        sources[f"simulated {kind}, opposite"] = [(scale, (kind, "opposite"))]
    for (name, cells), by_prompt, size in product(sources.items(), (False, True), sizes):
        if not name.startswith("simulated") and 2 * size > len(cells[0][1][0]):
            continue
        rows = {agreement: [] for agreement in AGREEMENTS}
        for draw in range(n_draws):
            rng = np.random.default_rng([37, draw, size])
            scale, cell = cells[draw % len(cells)]
            is_simulated = isinstance(cell[0], str)
            made = of_world(rng, *cell, by_prompt) if is_simulated else cell
            counts, labels, x, groups, table = made
            known = drawn(rng, groups[table], size, by_prompt)
            partial = np.full(table.sum(), np.nan)
            partial[known] = labels[known]
            others = ~table if is_simulated else np.isnan(partial)
            told = {"scale": scale, "groups": groups[table] if by_prompt else None}
            ways = []
            for columns in (None, {"x": x}):
                own = None if columns is None else {"x": x[table]}
                certificate = btdagg.certify(counts[table], partial, covariates=own, **told)
                model = certificate.model
                more = {} if columns is None or not model.covariates else {"covariates": columns}
                agrees = model.decide(counts, **more) == labels
                shares = model.predict_proba(counts, **more)
                sure = btdagg.questions.certify.sure(shares)[1]
                ways.append((certificate.curve, agrees, sure))
            for agreement, sets in rows.items():
                found = []
                for curve, agrees, sure in ways:
                    point = certified(curve, agreement)
                    trusted = sure >= (np.inf if point is None else point.threshold)
                    wrong = (
                        (trusted & part).any() and agrees[trusted & part].mean() < agreement
                        for part in (table, others)
                    )
                    found.append((*wrong, trusted[table].mean()))
                sets.append(np.ravel(found))
        for agreement, sets in rows.items():
            of_all, of_others, coverage = np.mean(sets, axis=0).reshape(2, 3).T
            texts = (f"{a:.3f} {b:.3f}" for a, b in (of_all, of_others, coverage))
            unit = "prompts" if by_prompt else "items"
            line = " | ".join([name, unit, str(size), f"{agreement:.0%}", *texts])
            print(f"| {line} |", flush=True)


def show_times(n):
    rng = np.random.default_rng(5)
    quality = rng.normal(0, 0.7, (n, 1))
    votes = np.clip(np.round(rng.normal(quality, 0.6, (n, 8))), -1, 1)
    counts = np.stack([(votes == value).sum(axis=1) for value in (-1, 0, 1)], axis=1)
    labels = np.full(n, np.nan)
    labels[:300] = np.clip(np.round(1.2 * quality[:300, 0]), -1, 1)
    strengths = np.round(rng.random((n, 3)) * 1024) / 1024
    for name, own in (("counts", counts), ("with strength", strengths)):
        started = time.perf_counter()
        certificate = btdagg.certify(own, labels)
        took = time.perf_counter() - started
        started = time.perf_counter()
        certificate.trusted(own)
        trusting = time.perf_counter() - started
        print(f"{n:,} items, {name}: certify {took:.2f} s, trusted {trusting:.2f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="one draw of few cells")
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--only", default=",".join(PARTS))
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    only, n_draws = args.only.split(","), 1 if args.smoke else args.draws
    data = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[2] / "shared")) / "data"
    print("| votes | drawn by | labels | agreement | violations | nothing | coverage | least |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    cells = cells_of(data, None) if data.is_dir() and PUBLIC_PARTS & {*only} else {}
    few = 1 if args.smoke else None
    cells = dict([*cells.items()][:few])
    for by_prompt in (False, True):
        if "judges" in only and cells:
            judges = {
                key: (labels, groups, both[1]) for key, (labels, groups, both, _) in cells.items()
            }
            show_draws("rb2, a judge", judges, n_draws, by_prompt)
        if "panel" in only and cells:
            show_draws("rb2, panel", panels_of(cells, 1), n_draws, by_prompt)
    if "people" in only and cells:
        print("\n| judge | drawn by | looked at | error left | in the interval | width | bias |")
        print("|---|---|---|---:|---:|---:|---:|")
        for by_prompt in (False, True):
            show_people(cells, max(n_draws // 10, 1), by_prompt)
    if "scores" in only and data.is_dir():
        of_scores = [*public_cells(data, "rb2_scores").items()][:few]
        scores = {key: (labels, groups, counts) for key, (counts, labels, groups) in of_scores}
        show_draws("rb2_scores", scores, n_draws, False, scales=PUBLIC["rb2_scores"])
    if "designs" in only:
        print("\n| design | probabilities | model | labels | violations | 70% | 80% | 90% |")
        print("|---|---|---|---:|---:|---:|---:|---:|")
        before = btdagg.DavidsonModel(beta=1.5, eta0=0.5, gamma=0.8)
        show_designs(2 * n_draws, "of all", before)
        show_designs(n_draws, "the least", before)
        show_designs(n_draws, "of all")
    if "forecasts" in only and cells:
        show_forecasts(cells, max(n_draws // 100, 1))
    if "unlike" in only and cells:
        print("\n| votes | prompts | with groups | without | noise | always A |")
        print("|---|---:|---:|---:|---:|---:|")
        show_unlike(cells, n_draws)
    if "simulated" in only:
        overconfident = btdagg.DavidsonModel(beta=3, eta0=0.5, gamma=1)
        for kind in ("noise", "wrong", "sure", "one prompt"):
            own, by_prompt = simulated(kind), kind == "one prompt"
            show_draws(kind, own, n_draws, by_prompt)
            if not by_prompt:
                show_draws(f"{kind}, a model of before", own, n_draws, False, model=overconfident)
    if "covariates" in only:
        print("\n| votes | drawn by | labels | agreement | of all | of others | coverage |")
        print("|---|---|---:|---:|---|---|---|")
        show_covariates(data, max(2 * n_draws // 5, 1), *[(50,)] * args.smoke)
    if "time" in only:
        show_times(10_000 if args.smoke else 1_000_000)
