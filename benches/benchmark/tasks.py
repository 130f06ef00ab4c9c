"""The four tasks: what each asks of its entrants, and what is measured of their answers."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from sets import MOST

AGREEMENTS = (0.7, 0.8, 0.9)


@cache
def entrants(task):
    files = sorted((Path(__file__).parent / "entrants" / task).glob("*.py"))
    return [importlib.import_module(f"entrants.{task}.{file.stem}") for file in files]


def of(task, data):
    """The entrants that take these data."""
    for entrant in entrants(task):
        wanted = getattr(data, getattr(entrant, "WANTS", "counts"))
        if wanted is not None and len(wanted):
            yield entrant


def drawn(rng, groups, size):
    """Rows that get a label: items up to 20, whole groups from 50 on; and the rows of the test."""
    if size <= 20:
        rows = rng.permutation(len(groups))
        return rows[:size], np.sort(rows[size:])
    order = rng.permutation(groups.max() + 1)[groups]
    rows = np.argsort(order, kind="stable")
    last = order[rows[size - 1]]
    return rows[order[rows] <= last], np.flatnonzero(order > last)


def losses_of(decided, labels, scale):
    """Losses of items by metric, of labels or of probabilities, whose median is decided."""
    found, points = {}, scale.floats
    if decided.ndim == 2:
        place = scale.places(labels)
        p = decided[np.arange(len(place)), place]
        found["log loss"] = -np.log(np.clip(p, 1e-6, 1))
        decided = points[(decided.cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)]
    return found | {"MAE": np.abs(decided - labels), "accuracy": 1.0 * (decided == labels)}


def influences(losses, groups, n_groups):
    """How far each group moves the mean loss of a split's test."""
    return np.bincount(groups, losses - losses.mean(), n_groups) / len(losses)


def decided_by(entrant, data, seen, rest, once):
    """Labels or probabilities of the test; those that look at no label are asked once for all."""
    if entrant.LEAST or (len(seen) and getattr(entrant, "WANTS", "") == "near"):
        return entrant.decide(data[seen], data[rest])
    if entrant.__name__ not in once:
        once[entrant.__name__] = entrant.decide(data[rest[:0]], data)
    decided = once[entrant.__name__]
    return None if decided is None else decided[rest]


def labels_task(by_number, n_splits, sizes):
    for n, data in by_number.items():
        once = {}
        for size, split in product(sizes, range(n_splits)):
            if 2 * size > len(data.labels):
                continue
            seen, rest = drawn(np.random.default_rng(split), data.groups, size)
            for entrant in of("labels", data):
                if size < entrant.LEAST:
                    continue
                decided = decided_by(entrant, data, seen, rest, once)
                if decided is not None:
                    losses = losses_of(decided, data.labels[rest], data.label_scale)
                    for metric, values in losses.items():
                        by_group = influences(values, data.groups[rest], len(data.group_names))
                        yield entrant.NAME, n, size, split, metric, values.mean(), by_group


def estimates_task(by_number, n_splits, sizes):
    n, data = max(by_number.items())
    for size, split in product((size for size in sizes if size >= 50), range(n_splits)):
        if 2 * size > len(data.labels):
            continue
        rng = np.random.default_rng([split, size])
        items = data[rng.integers(len(data.labels), size=len(data.labels))]
        values = np.where(np.arange(len(items.labels)) < size, items.labels, np.nan)
        for entrant in of("estimates", items):
            low, high = entrant.interval(items, values)
            yield entrant.NAME, n, size, split, "covered", low <= data.labels.mean() <= high
            yield entrant.NAME, n, size, split, "width", high - low


def trust_task(by_number, n_splits, sizes):
    n, data = max(by_number.items())
    for size, split in product((size for size in sizes if size >= 50), range(n_splits)):
        if 2 * size > len(data.labels):
            continue
        seen = np.random.default_rng(split).permutation(len(data.labels))[:size]
        partial = np.full(len(data.labels), np.nan)
        partial[seen] = data.labels[seen]
        items = replace(data, labels=partial)
        for entrant, agreement in product(of("trust", items), AGREEMENTS):
            found = entrant.trusted(items, agreement)
            if found is None:
                continue
            decided, chosen = found
            right, name = (decided == data.labels)[chosen], f"at {agreement:.0%}"
            yield entrant.NAME, n, size, split, f"share {name}", chosen.mean()
            broken = len(right) and right.mean() < agreement
            yield entrant.NAME, n, size, split, f"violated {name}", broken


def calls_task(by_number, n_splits, sizes):
    data, n, size = by_number.get(MOST), MOST, 100
    if data is None or data.by_judge is not None or size not in sizes:
        return
    data = data[np.flatnonzero(data.counts.sum(axis=1) == n)]
    for split in range(n_splits * (2 * size <= len(data.labels))):
        rng = np.random.default_rng(split)
        seen, rest = drawn(rng, data.groups, size)
        rest = rng.permutation(rest)[:500]
        places = np.arange(len(data.scale.points))
        orders = [rng.permutation(np.repeat(places, row)) for row in data.counts[rest]]
        for entrant in of("calls", data):
            if len(places) != len(data.label_scale.points) and "btdagg" not in entrant.NAME:
                continue
            found = entrant.followed(data[seen], np.stack(orders))
            if found is None:
                continue
            used, decided, every = found
            error = np.abs(data.label_scale.floats[decided] - data.labels[rest]).mean()
            shown = {"votes": used.mean(), "changed": (decided != every).mean(), "MAE": error}
            for metric, value in shown.items():
                yield entrant.NAME, n, size, split, metric, value


TASKS = {
    "labels": labels_task,
    "estimates": estimates_task,
    "trust": trust_task,
    "calls": calls_task,
}
