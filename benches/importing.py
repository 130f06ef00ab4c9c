"""Importing a million votes: from a table, from judgments, from the outputs of a batch.

Prints a Markdown table of wall times, the best of two, and of the rate. The peer of a table is
polars by hand: read the file, replace the words, turn the rows, write the votes. `--smoke` does
little.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from btdagg.formats import read

WORDS = {"model_a": "first", "model_b": "second"}
NUMBERS = {"model_a": 1, "tie": 0, "model_b": -1}


def table(n: int) -> pl.DataFrame:
    """Votes in words, eight an item, every other one with B first."""
    rng = np.random.default_rng(0)
    number = np.arange(n)
    return pl.DataFrame(
        {
            "id": pl.Series(number // 8).cast(pl.String),
            "winner": rng.choice([*NUMBERS], n),
            "order": np.where(number % 2, "BA", "AB"),
            "judge": "gpt-5.4",
        }
    )


def arena(n: int) -> pl.DataFrame:
    """Votes of people on pairs of fifty models."""
    rng = np.random.default_rng(1)
    names = np.array([f"model-{k:02d}" for k in range(50)])
    first = rng.integers(0, 50, n)
    second = (first + rng.integers(1, 50, n)) % 50
    return pl.DataFrame(
        {
            "question_id": pl.Series(np.arange(n)).cast(pl.String),
            "model_a": names[first],
            "model_b": names[second],
            "winner": rng.choice([*NUMBERS, "tie (bothbad)"], n),
            "judge": [f"arena_user_{k}" for k in rng.integers(0, 9999, n)],
        }
    )


def scores(n: int) -> pl.DataFrame:
    """Scores of four systems on each prompt: six pairs of each."""
    number = np.arange(n)
    values = np.random.default_rng(2).integers(1, 11, n)
    systems = pl.Series(number % 4).cast(pl.String)
    return pl.DataFrame({"prompt": number // 4, "model": "m" + systems, "rating": values})


def games(n: int) -> Iterator[dict[str, Any]]:
    """FastChat's judgments, of two votes each."""
    winners = np.random.default_rng(3).choice(["model_1", "model_2", "tie"], (n // 2, 2)).tolist()
    for number, (first, second) in enumerate(winners):
        yield {
            "question_id": number, "model_1": "x", "model_2": "y", "g1_winner": first,
            "g2_winner": second, "judge": ["gpt-4", "pair-v2"], "g1_judgment": "a text " * 40,
            "g2_judgment": "a text " * 40, "turn": 1, "tstamp": 1.0,
        }  # fmt: skip


def batch(n: int) -> Iterator[dict[str, Any]]:
    """Outputs of a batch, with thoughts before the verdict."""
    said = np.random.default_rng(4).choice(["A", "B", "TIE"], n).tolist()
    for number, word in enumerate(said):
        text = f"Response A is short. Response B is number {number}.\n\n[[{word}]]"
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": text}}
        body = {"model": "gpt-5.4", "choices": [choice], "usage": {"total_tokens": 9}}
        order = "BA" if number % 2 else "AB"
        yield {
            "id": "b", "custom_id": f"item-{number // 8}-{order}-{number // 2 % 4}", "error": None,
            "response": {"status_code": 200, "request_id": "r", "body": body},
        }  # fmt: skip


def by_hand(path: Path) -> pl.DataFrame:
    """What one would write with polars for the table."""
    vote = pl.col("winner").replace_strict(NUMBERS, return_dtype=pl.Int8)
    turned = pl.when(pl.col("order") == "BA").then(-vote).otherwise(vote)
    frame = (
        pl.read_csv(path, infer_schema=False) if path.suffix == ".csv" else pl.read_parquet(path)
    )
    return frame.select(pl.col("id").alias("item"), turned.alias("vote"), "judge", "order")


def best_of_two(run: Callable[[], Any]) -> tuple[float, int]:
    """Seconds, and the rows that came out."""
    taken, height = [], 0
    for _ in range(2):
        start = time.perf_counter()
        height = run().height
        taken.append(time.perf_counter() - start)
    return min(taken), height


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=1_000_000)
    parser.add_argument("--smoke", action="store_true", help="little data, to show that it runs")
    options = parser.parse_args()
    n = 2_000 if options.smoke else options.votes
    mapped: dict[str, Any] = {
        "columns": {"item": "id", "vote": "winner"},
        "words": WORDS,
    }
    scored = {"columns": {"group": "prompt", "system": "model", "score": "rating"}}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        table(n).write_csv(folder / "table.csv")
        table(n).write_parquet(folder / "table.parquet")
        arena(n).write_parquet(folder / "arena.parquet")
        scores(n).write_parquet(folder / "scores.parquet")
        for name, rows in (("games", games(n)), ("batch", batch(n))):
            with open(folder / f"{name}.jsonl", "w") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
        print(f"| {n:,} rows | votes | s | µs a vote |\n|---|---:|---:|---:|")
        tasks: dict[str, Callable[[], pl.DataFrame]] = {
            "table.csv by a map": lambda: read(folder / "table.csv", **mapped).frame,
            "table.csv, polars by hand": lambda: by_hand(folder / "table.csv"),
            "table.parquet by a map": lambda: read(folder / "table.parquet", **mapped).frame,
            "table.parquet, polars by hand": lambda: by_hand(folder / "table.parquet"),
            "arena.parquet": lambda: read(folder / "arena.parquet").frame,
            "scores.parquet": lambda: read(folder / "scores.parquet", **scored).frame,
            "games.jsonl (FastChat)": lambda: read(folder / "games.jsonl").frame,
            "batch.jsonl (OpenAI)": lambda: read(folder / "batch.jsonl").frame,
        }
        for name, task in tasks.items():
            seconds, height = best_of_two(task)
            print(f"| {name} | {height:,} | {seconds:.2f} | {1e6 * seconds / height:.2f} |")


if __name__ == "__main__":
    main()
