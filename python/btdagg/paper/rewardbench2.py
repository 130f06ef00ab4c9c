"""RewardBench 2: pairs of responses with labels that follow from which were accepted."""
# Of every two responses to a prompt an accepted one wins against a rejected one; others tie.

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from btdagg import InputError, Labels
from btdagg._util.errors import forbid, reworded
from btdagg._util.extras import needs
from btdagg._util.files import replace_file
from btdagg._util.lazy import pl
from btdagg.votes import Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HUB_ID = "allenai/reward-bench-2"
_LINES = (".jsonl", ".ndjson")


@dataclass(frozen=True, eq=False)
class LabelledPairs(Table):
    """Pairs of responses to a prompt, labelled: one row per pair.

    Attributes
    ----------
    frame : polars.DataFrame
        Columns `item`, `task`, `group` (the prompt; what is split together), `prompt`,
        `response_a`, `response_b` (text) and `label` (Int8: +1 A is better, 0 tie, -1).
    source : str
        Where they come from.
    """

    def labels(self) -> Labels:
        """Give the labels with task and group, as `btdagg.align` and evaluations take them."""
        frame = self.frame.select("item", "task", "group", "label")
        return Labels(frame, self.source, unlabelled=frame.clear())

    def write_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write what a judge is to see: `item`, `prompt`, `response_a`, `response_b`, no label."""
        shown = self.frame.select("item", "prompt", "response_a", "response_b")
        replace_file(path, shown.write_ndjson())


def load_rewardbench2(
    source: str | os.PathLike[str] | None = None,
    *,
    split: str = "test",
    n_per_task: int | None = 1000,
    seed: int = 0,
    tasks: Sequence[str] | None = None,
) -> LabelledPairs:
    """Load a sample of pairs of responses of RewardBench 2.

    Parameters
    ----------
    source : path, optional
        A .parquet or .jsonl file with the columns `id`, `subset`, `prompt`, `chosen` and
        `rejected`, or a folder of them. By default allenai/reward-bench-2 is downloaded from the
        Hugging Face hub (the extra ``btdagg[datasets]``) and cached.
    split : str
        Files ``<split>.*`` or ``<split>-*`` of a folder, its folder ``data``, or the hub.
    n_per_task : int, optional
        Pairs of each task to draw without replacement; all where there are fewer, or with None.
    seed : int
        Which pairs are drawn, and which response is A: at random, and in each task half of the wins
        are A's, give or take one. Reproducible with one version of NumPy, whatever other tasks.
    tasks : sequence of str, optional
        Names of subsets, such as ``Precise IF`` or ``precise-if``; by default all.

    Returns
    -------
    LabelledPairs
        In the order of the source. Items are named by task, prompt and the places of the responses,
        accepted ones first: ``precise-if-17-0-3``.

    References
    ----------
    Malik et al. (2025), *RewardBench 2*; the paper's section on data sets.
    """
    prompts = _read_prompts(_download(split) if source is None else Path(source), split)
    if tasks is not None:
        prompts = prompts.filter({"task": _task_names(pl.Series("task", tasks)).to_list()})
    return LabelledPairs(_sampled(prompts.frame, n_per_task, seed), prompts.source)


def _download(split: str) -> Path:
    with needs("datasets", "load_rewardbench2 without a source, which downloads,"):
        from huggingface_hub import snapshot_download
    # What the library raises for lack of a network or of access.
    with reworded(OSError, f"{_HUB_ID}: cannot be downloaded: {{error}}"):
        folder = snapshot_download(
            _HUB_ID, repo_type="dataset", allow_patterns=[f"data/{split}-*", f"data/{split}.*"]
        )
    return Path(folder)


def _read_prompts(source: Path, split: str) -> Table:
    files = [source]
    if source.is_dir():
        places = (source, source / "data")
        files = [file for place in places for file in sorted(place.glob(f"{split}[.-]*"))]
        files = [file for file in files if file.suffix in (".parquet", *_LINES)]
    forbid(not files, f"{source}: no .parquet or .jsonl file of split {split!r}")
    responses = pl.List(pl.String)
    message = f"{source} does not have the form of {_HUB_ID}: {{error}}"
    with reworded(pl.exceptions.PolarsError, message):
        frames = [
            (pl.read_ndjson if file.suffix in _LINES else pl.read_parquet)(file).select(
                pl.col("subset"),
                pl.col("id").cast(pl.String),
                pl.col("prompt"),
                pl.col("chosen").cast(responses),
                pl.col("rejected").cast(responses),
            )
            for file in files
        ]
    frame = pl.concat(frames)
    prompts = Table(frame.with_columns(task=_task_names(frame["subset"])), str(source))
    rows = prompts.frame.with_row_index("row", offset=1)
    rows = rows.group_by("task", "id", maintain_order=True).agg("row")
    for task, prompt, numbers in rows.filter(pl.col("row").list.len() > 1).head(1).iter_rows():
        where = prompts.where(*numbers[:2])
        raise InputError(f"{where}: both have task {task!r}, id {prompt!r}")
    return prompts


def _task_names(subsets: pl.Series) -> pl.Series:
    return subsets.str.strip_chars().str.to_lowercase().str.replace_all(" ", "-", literal=True)


# Pairing


def _sampled(prompts: pl.DataFrame, n_per_task: int | None, seed: int) -> pl.DataFrame:
    rows = []
    for task in prompts.partition_by("task", maintain_order=True):
        # A stream for each task, so that it does not matter which others there are.
        rng = np.random.default_rng([seed, zlib.crc32(task["task"][0].encode())])
        rows += _sample_of_task(task, n_per_task, rng)
    text_columns = ("item", "task", "group", "prompt", "response_a", "response_b")
    schema = {**dict.fromkeys(text_columns, pl.String), "label": pl.Int8}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _sample_of_task(
    task: pl.DataFrame, n: int | None, rng: np.random.Generator
) -> list[tuple[str, str, str, str, str, str, int]]:
    name = task["task"][0]
    groups = [f"{name}-{number}" for number in task["id"]]
    questions = task["prompt"].to_list()
    # Accepted responses come first.
    n_accepted = task["chosen"].list.len().to_list()
    responses = task.select(pl.concat_list("chosen", "rejected")).to_series().to_list()

    pairs = [
        (prompt, first, second)
        for prompt, prompt_responses in enumerate(responses)
        for first, second in combinations(range(len(prompt_responses)), 2)
    ]
    if n is not None and n < len(pairs):
        pairs = [pairs[k] for k in np.sort(rng.choice(len(pairs), n, replace=False))]
    won = np.array([i < n_accepted[prompt] <= j for prompt, i, j in pairs], dtype=np.bool_)
    swapped = np.empty_like(won)
    for kind in (True, False):
        swapped[won == kind] = _half(int((won == kind).sum()), rng)

    rows = []
    for (prompt, i, j), win, swap in zip(pairs, won, swapped, strict=True):
        a, b = (j, i) if swap else (i, j)
        shown = responses[prompt][a], responses[prompt][b]
        label = (-1 if swap else 1) if win else 0
        item = f"{groups[prompt]}-{i}-{j}"
        rows.append((item, name, groups[prompt], questions[prompt], *shown, label))
    return rows


def _half(n: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    return rng.permutation((np.arange(n) + rng.integers(2)) % 2 == 0)
