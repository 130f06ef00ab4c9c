"""Pairs of responses to try a judge on, with labels that nobody can doubt."""

from __future__ import annotations

from random import Random

_OPENINGS = ("Here you are:", "Sure!", "The sums are:", "Let's see.", "Happy to help.")
_ERRORS = (0, 0, 0, 1, 1, 2)  # wrong sums of a response, as often as they stand here
_SUMS = 5


def simulated_pairs(
    n_items: int, *, seed: int = 0
) -> tuple[dict[str, list[str]], dict[str, list[str] | list[int]]]:
    """Pairs of responses that add up, some of them wrongly.

    Each item asks for five sums. The response with fewer wrong sums is better, as many are a tie.
    Items are independent: the first few are a simple random sample.

    Parameters
    ----------
    n_items : int
    seed : int

    Returns
    -------
    pairs, labels : dict
        Columns `item`, `prompt`, `a`, `b`, and `item`, `label`.
    """
    random = Random(seed)
    pairs: dict[str, list[str]] = {"item": [], "prompt": [], "a": [], "b": []}
    labels = []
    for number in range(n_items):
        sums = [(random.randint(11, 99), random.randint(11, 99)) for _ in range(_SUMS)]
        wrong = [random.choice(_ERRORS) for _ in range(2)]
        openings = random.sample(_OPENINGS, 2)
        pairs["item"].append(f"sum-{number}")
        pairs["prompt"].append("Add up: " + ", ".join(f"{left} + {right}" for left, right in sums))
        for side, opening, n_wrong in zip("ab", openings, wrong, strict=True):
            pairs[side].append("\n".join((opening, *_added_up(sums, n_wrong, random))))
        labels.append((wrong[1] > wrong[0]) - (wrong[1] < wrong[0]))
    return pairs, {"item": pairs["item"], "label": labels}


def _added_up(sums: list[tuple[int, int]], n_wrong: int, random: Random) -> list[str]:
    places = set(random.sample(range(len(sums)), n_wrong))
    errors = [random.choice((-10, -1, 1, 10)) * (place in places) for place in range(len(sums))]
    return [
        f"{left} + {right} = {left + right + error}"
        for (left, right), error in zip(sums, errors, strict=True)
    ]
