"""Pairs to try a judge on: `python examples/make_sums.py FOLDER --items 200`.

Each item asks for a few sums, and two responses get some of them wrong. The one with fewer wrong
sums is better, and as many make a tie: that is the label. Writes pairs.jsonl and labels.csv.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from random import Random

_OPENINGS = ("Here you are:", "Sure!", "The sums are:", "Let's see.", "Happy to help.")
_ERRORS = (0, 0, 0, 1, 1, 2)  # wrong sums of a response, as often as they stand here


def made(number: int, random: Random, n_sums: int) -> tuple[dict[str, str], int]:
    """A pair and its label."""
    asked = [(random.randint(11, 99), random.randint(11, 99)) for _ in range(n_sums)]
    wrong = [random.choice(_ERRORS) for _ in range(2)]
    responses = []
    openings = random.sample(_OPENINGS, 2)
    for opening, n_wrong in zip(openings, wrong, strict=True):
        places = set(random.sample(range(n_sums), n_wrong))
        errors = [random.choice((-10, -1, 1, 10)) * (place in places) for place in range(n_sums)]
        lines = [
            f"{left} + {right} = {left + right + error}"
            for (left, right), error in zip(asked, errors, strict=True)
        ]
        responses.append("\n".join((opening, *lines)))
    prompt = "Add up: " + ", ".join(f"{left} + {right}" for left, right in asked)
    pair = {"item": f"sum-{number}", "prompt": prompt, "a": responses[0], "b": responses[1]}
    return pair, (wrong[1] > wrong[0]) - (wrong[1] < wrong[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random = Random(given.seed)
    several = [made(number, random, n_sums=5) for number in range(given.items)]
    given.folder.mkdir(parents=True, exist_ok=True)
    with (given.folder / "pairs.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(pair) + "\n" for pair, _ in several)
    with (given.folder / "labels.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("item", "label"))
        writer.writerows((pair["item"], label) for pair, label in several)


if __name__ == "__main__":
    main()
