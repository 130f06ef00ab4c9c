"""Public votes as cells: the counts, labels and groups of one judge and task, as plain arrays.

Nothing here calls btdagg, so that old and new versions of it are measured on the same input. The
votes lie in the folder `data` of BTDAGG_SHARED.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

PAIRS = (-1, 0, 1)
PANEL = ("claude-sonnet-4.6", "gpt-5.4", "gpt-5.4-mini")


@dataclass(frozen=True)
class Cell:
    """Items of one judge and task.

    `counts` are (n, J), of a panel (n, judges, J); `points` and `label_points` the values of the
    votes and of the labels. `ids` name items that several judges share. `systems` are one array for
    grades and two for pairs.
    """

    judge: str
    task: str
    counts: np.ndarray
    labels: np.ndarray
    groups: np.ndarray
    points: tuple[int, ...] = PAIRS
    label_points: tuple[int, ...] = PAIRS
    covariates: dict[str, np.ndarray] = field(default_factory=dict)
    ids: np.ndarray | None = None
    systems: tuple[np.ndarray, ...] = ()

    def rows(self, chosen):
        return replace(
            self,
            counts=self.counts[chosen],
            labels=self.labels[chosen],
            groups=self.groups[chosen],
            covariates={name: values[chosen] for name, values in self.covariates.items()},
            ids=None if self.ids is None else self.ids[chosen],
            systems=tuple(names[chosen] for names in self.systems),
        )


def data():
    """Folder of the public votes, or None where they are not."""
    folder = Path(os.environ.get("BTDAGG_SHARED", Path(__file__).parents[3] / "shared")) / "data"
    return folder if folder.is_dir() else None


def codes(names):
    return np.unique(np.asarray(names), return_inverse=True)[1]


def half_up(labels):
    return np.floor(np.asarray(labels) + 0.5).astype(np.int64)


def counted(votes, points):
    """Counts of (n, samples) votes at each point; NaN is no vote."""
    return np.stack([(votes == point).sum(axis=1) for point in points], axis=1)


def count_columns(column, points):
    return [(pl.col(column) == point).sum().cast(pl.Int64).alias(f"n{point}") for point in points]


# RewardBench 2: pairs of responses to a prompt, eight votes with margins each


@cache
def rb2_votes(template="base"):
    """Votes and margins, (n, 8), with the items of each judge and task, of one prompt template."""
    rows = pl.scan_parquet(data() / "rb2/votes.parquet")
    rows = rows.filter((pl.col("template") == template) & (pl.col("temperature") == "default"))
    rows = rows.with_columns(pl.col("item", "judge", "task").cast(pl.String)).collect()
    rows = rows.sort("sample").group_by("judge", "task", "item", maintain_order=True)
    rows = rows.agg("sample", "vote", "margin")
    labels = pl.read_csv(data() / "rb2/labels.csv").select("item", "group", "label")
    rows = rows.join(labels, on="item").sort("judge", "task", "item")
    found = {}
    for key, part in rows.partition_by("judge", "task", as_dict=True).items():
        votes, margins = np.full((2, part.height, 8), np.nan)
        at = np.repeat(np.arange(part.height), part["sample"].list.len())
        sample = part["sample"].explode().to_numpy()
        votes[at, sample] = part["vote"].explode().to_numpy()
        margins[at, sample] = part["margin"].explode().to_numpy()
        found[key] = votes, margins, part
    return found


def strong(votes, margins, full_margin):
    """Counts of votes with a strength w: w of a win and 1 - w of a tie."""
    strength = np.minimum(margins / full_margin, 1) * np.abs(votes)
    plus, minus = (np.nansum(strength * (votes == side), axis=1) for side in (1, -1))
    return np.stack([minus, (~np.isnan(votes)).sum(axis=1) - minus - plus, plus], axis=1)


@cache
def rb2(template="base", kind="signs"):
    """Cells of each judge and task, by signs or by strength; full strength is twice the mean."""
    votes_of = rb2_votes(template)
    margins_of = {}
    for (judge, _), (_, margins, _) in votes_of.items():
        margins_of.setdefault(judge, []).append(margins.ravel())
    full_margins = {judge: 2 * np.nanmean(np.concatenate(m)) for judge, m in margins_of.items()}
    cells = []
    for (judge, task), (votes, margins, part) in votes_of.items():
        if kind == "strength":
            counts = strong(votes, margins, full_margins[judge])
        else:
            counts = counted(votes, PAIRS)
        item, group = part["item"].to_numpy(), part["group"].to_numpy()
        sides = tuple(
            np.array([f"{g}/{i[at]}" for g, i in zip(group, item, strict=True)]) for at in (-2, -1)
        )
        labels = part["label"].to_numpy()
        cells.append(Cell(judge, task, counts, labels, codes(group), ids=item, systems=sides))
    return tuple(cells)


def rb2_other_prompts(kind="signs"):
    """A judge under six other prompt templates."""
    templates = ("cal-both", "cal-cross", "cal-high", "cal-low", "combined", "criteria")
    return tuple(
        replace(cell, judge=f"{cell.judge} {template}")
        for template in templates
        for cell in rb2(template, kind)
        if cell.judge == "gpt-5.4-mini"
    )


def rb2_panel(kind="signs"):
    """The three judges as one panel, of each task: the items that all of them voted on."""
    cells = {(cell.judge, cell.task): cell for cell in rb2(kind=kind)}
    panels = []
    for task in sorted({cell.task for cell in cells.values()}):
        own = [cells[judge, task] for judge in PANEL]
        common = sorted(set.intersection(*(set(cell.ids) for cell in own)))
        own = [cell.rows(np.searchsorted(cell.ids, common)) for cell in own]
        panels.append(replace(own[0], judge="three", counts=np.stack([c.counts for c in own], 1)))
    return tuple(panels)


def rb2_unequal(way):
    """The cells with fewer votes on some items: half thinned to 2, stopped early, or 3 to 8."""
    cells = []
    for place, ((judge, task), (votes, _, part)) in enumerate(rb2_votes().items()):
        rng = np.random.default_rng([61, place])
        n_votes = np.full(len(votes), 8)
        if way == "thinned":
            n_votes[rng.random(len(votes)) < 0.5] = 2
        elif way == "stopped":
            n_votes[votes[:, 0] == votes[:, 1]] = 2
        else:
            n_votes = rng.integers(3, 9, len(votes))
        kept = np.where(np.arange(8) < n_votes[:, None], votes, np.nan)
        has_votes = ~np.isnan(kept).all(axis=1)
        groups = codes(part["group"].to_numpy())
        cell = Cell(judge, task, counted(kept, PAIRS), part["label"].to_numpy(), groups)
        cells.append(cell.rows(has_votes))
    return tuple(cells)


# Answers of chat models to 80 questions, and translations by two systems


@cache
def vicuna80(judges=("bard", "claude", "gpt35", "gpt4", "vicuna-13b"), with_covariates=False):
    """Two votes an item, one in each order, of pairs of systems; the lengths of the answers."""
    votes = pl.read_csv(data() / "vicuna80/votes.csv")
    facts = pl.read_csv(data() / "vicuna80/items.csv").join(
        pl.read_csv(data() / "vicuna80/labels.csv").select("item", "label").drop_nulls(), on="item"
    )
    cells = []
    for judge in judges:
        own = votes.filter(pl.col("judge") == judge).group_by("item")
        frame = own.agg(count_columns("vote", PAIRS)).join(facts, on="item").sort("item")
        chars = [np.log1p(frame[f"chars_{side}"].to_numpy()) for side in "ab"]
        cells.append(
            Cell(
                judge,
                "vicuna80",
                frame.select("n-1", "n0", "n1").to_numpy(),
                frame["label"].to_numpy(),
                codes(frame["group"].to_numpy()),
                covariates={"length": chars[0] - chars[1]} if with_covariates else {},
                ids=frame["item"].to_numpy(),
                systems=tuple(frame[f"system_{side}"].to_numpy() for side in "ab"),
            )
        )
    return tuple(cells)


def vicuna80_panel():
    """The five judges as one panel, on the items that all of them voted on."""
    cells = vicuna80()
    common = sorted(set.intersection(*(set(cell.ids) for cell in cells)))
    own = [cell.rows(np.searchsorted(cell.ids, common)) for cell in cells]
    return (replace(own[0], judge="five", counts=np.stack([cell.counts for cell in own], 1)),)


@cache
def wmt23():
    """A rater as judge of one vote, and the sign of the other raters' mean as label."""
    cells = []
    for languages in ("zhen", "ende"):
        ratings = pl.read_csv(data() / f"wmt23/ratings_{languages}.csv")
        ratings = ratings.filter(pl.col("identical") == 0)
        for rater in sorted(ratings["rater"].unique()):
            own = ratings.filter(pl.col("rater") == rater)
            others = ratings.filter(pl.col("rater") != rater).group_by("item")
            gold = others.agg(label=pl.col("vote").mean().sign().cast(pl.Int64))
            own = own.with_columns(group=pl.concat_str("doc", pl.lit(" "), "segment"))
            by = "item", "group", "system_a", "system_b"
            frame = own.group_by(by).agg(count_columns("vote", PAIRS))
            frame = frame.join(gold, on="item").sort("item")
            if frame.height < 40:
                continue
            cells.append(
                Cell(
                    f"{languages} {rater}",
                    languages,
                    frame.select("n-1", "n0", "n1").to_numpy(),
                    frame["label"].to_numpy(),
                    codes(frame["group"].to_numpy()),
                    systems=tuple(frame[f"system_{side}"].to_numpy() for side in "ab"),
                )
            )
    return tuple(cells)


# Grades


@cache
def graded(name):
    """`rb2_scores`: ten points, accepted or not; `rubric`: four points for nine criteria."""
    points, label_points = {
        "rb2_scores": (tuple(range(1, 11)), (0, 1)),
        "rubric": ((1, 2, 3, 4), (1, 2, 3, 4)),
    }[name]
    votes = pl.read_parquet(data() / name / "votes.parquet").drop_nulls("score")
    votes = votes.with_columns(pl.col("item", "judge", "task").cast(pl.String))
    counts = votes.group_by("judge", "task", "item").agg(count_columns("score", points))
    labels = pl.read_csv(data() / name / "labels.csv").select("item", "group", "label")
    rows = counts.join(labels, on="item").sort("judge", "task", "item")
    return tuple(
        Cell(
            judge,
            task,
            part.select(f"n{point}" for point in points).to_numpy(),
            half_up(part["label"]),
            codes(part["group"].to_numpy()),
            points,
            label_points,
        )
        for (judge, task), part in rows.partition_by("judge", "task", as_dict=True).items()
    )


@cache
def topical(with_covariates=False):
    """Engagingness and groundedness of six sources' answers to 60 dialogues; means of three."""
    votes = pl.read_csv(data() / "topical/votes.csv")
    labels = pl.read_csv(data() / "topical/labels.csv")
    cells = []
    for criterion, points in (("engagingness", (1, 2, 3)), ("groundedness", (0, 1))):
        own = votes.filter(pl.col("criterion") == criterion).group_by("item")
        frame = own.agg(count_columns("score", points))
        frame = frame.join(labels.filter(pl.col("criterion") == criterion), on="item").sort("item")
        columns = [f"n{point}" for point in points]
        frame = frame.filter(pl.sum_horizontal(columns) > 0)
        length = np.log1p(frame["chars"].to_numpy())
        cells.append(
            Cell(
                "judge",
                criterion,
                frame.select(columns).to_numpy(),
                half_up(frame["mean_of_three"]),
                codes(frame["group"].to_numpy()),
                points,
                points,
                covariates={"length": length} if with_covariates else {},
                systems=(frame["system"].to_numpy(),),
            )
        )
    return tuple(cells)


FIVE, TEN = tuple(range(1, 6)), tuple(range(1, 11))
SIMULATED_GRADES = {
    "right, one vote": (FIVE, FIVE, {"noise": 0.2, "n_votes": 1}),
    "shifted": (FIVE, FIVE, {"shift": 0.8}),
    "squeezed": (FIVE, FIVE, {"slope": 0.4, "noise": 0.3}),
    "noisy": (FIVE, FIVE, {"noise": 1.5}),
    "no signal": (FIVE, FIVE, {"slope": 0.0}),
    "1-10 to 1-5": (TEN, FIVE, {"shift": 0.4}),
    "1-5 to pass": (FIVE, (0, 1), {"shift": 0.4}),
}


def simulated_grades():
    """Three judges of each kind, whose grades come from a latent quality, not from a model."""
    cells = []
    for number, (name, (points, label_points, how)) in enumerate(SIMULATED_GRADES.items()):
        how = {"slope": 1.0, "shift": 0.0, "noise": 0.5, "n_votes": 6} | how
        for place, skew in enumerate((0.0, 0.6, -0.4)):
            rng = np.random.default_rng([28, number, place])
            quality = rng.normal(size=600)
            seen = how["slope"] * quality + how["shift"] + how["noise"] * rng.normal(size=600)
            votes = seen[:, None] + how["noise"] * rng.normal(size=(600, how["n_votes"]))
            ends = [
                np.linspace(-1.3, 1.3, 2 * len(values) - 1)[1:-1:2] - skew
                for values in (points, label_points)
            ]
            labels = np.searchsorted(ends[1], quality + 0.5 * rng.normal(size=600))
            counts = counted(np.searchsorted(ends[0], votes), range(len(points)))
            gold = np.array(label_points)[labels]
            own = Cell(str(place), name, counts, gold, np.arange(600), points, label_points)
            cells.append(own)
    return tuple(cells)


def with_noise(cells, n_columns):
    """The cells with columns of seeded noise, which say nothing of the labels."""
    made = []
    for place, cell in enumerate(cells):
        noise = np.random.default_rng([2024, place]).normal(size=(n_columns, len(cell.labels)))
        columns = {f"noise {number}": values for number, values in enumerate(noise)}
        made.append(replace(cell, covariates=cell.covariates | columns))
    return tuple(made)
