"""How the simulated judge votes: it reads the two responses and compares their quality, noisily."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from random import Random

_RESPONSE = r"<((?:response|translation|answer)_{0})>\n?(.*?)\n?</\1>"
_FIRST = re.compile(_RESPONSE.format("a"), re.DOTALL)
_SECOND = re.compile(_RESPONSE.format("b"), re.DOTALL)
_SAMPLE = re.compile(r"<sample_(\d+)>\n?(.*?)\n?</sample_\1>", re.DOTALL)
_SUM = re.compile(r"(?<!\d)(\d{1,9}) \+ (\d{1,9}) = (\d{1,9})(?!\d)")
# What is the user's in a prompt: the marks of the templates, and what stands between them.
_PAIR = re.compile(
    r"<(instruction|source_text|(?:response|translation|answer)_[ab])>.*?</\1>", re.DOTALL
)


@dataclass(frozen=True)
class Habits:
    """What kind of judge it is.

    Attributes
    ----------
    sensitivity
        What a unit of quality counts for.
    tie_width
        Differences that seem smaller than this are ties.
    positional_bias
        Added to the first response.
    noise
        Of a vote at temperature 0.5; it grows with the temperature.
    item_noise
        Of an item: what this judge gets wrong about it in every vote.
    """

    sensitivity: float = 1.5
    tie_width: float = 0.25
    positional_bias: float = 0.2
    noise: float = 0.8
    item_noise: float = 0.4


@dataclass(frozen=True)
class Seen:
    """What a prompt shows: two responses, or several answers to choose from, or neither."""

    first: str = ""
    second: str = ""
    samples: tuple[tuple[str, str], ...] = ()


def read(prompt: str) -> Seen:
    """Find the responses between <response_a> and </response_a>, the answers in <sample_1>."""
    first, second = _FIRST.search(prompt), _SECOND.search(prompt)
    samples = tuple((found[1], found[2]) for found in _SAMPLE.finditer(_PAIR.sub("", prompt)))
    if first is None or second is None:
        return Seen(samples=samples)
    return Seen(first[2], second[2], samples)


def instructions(prompt: str) -> str:
    """Return the prompt without the pair, and without answers to choose from."""
    return _SAMPLE.sub("", _PAIR.sub("", prompt))


def digest(*parts: object) -> bytes:
    """Hash of some values, to seed random numbers with."""
    return blake2b("\0".join(map(str, parts)).encode(errors="replace"), digest_size=16).digest()


@lru_cache(maxsize=65536)
def quality(text: str, seed: int) -> float:
    """Quality of a text: by its wrong sums where it has sums, else drawn from its hash."""
    sums = _SUM.findall(text)
    if sums:
        return -0.7 * sum(int(left) + int(right) != int(total) for left, right, total in sums)
    return Random(digest(seed, text)).gauss(0, 1)


@lru_cache(maxsize=65536)
def _misjudgement(first: str, second: str, seed: int) -> float:
    if first == second:
        return 0.0
    if first > second:
        return -_misjudgement(second, first, seed)
    return Random(digest(seed, "item", first, second)).gauss(0, 1)


def vote(seen: Seen, habits: Habits, temperature: float, random: Random, seed: int) -> int:
    """Return 1 where the first response seems better, -1 the second, 0 a tie."""
    gap = quality(seen.first, seed) - quality(seen.second, seed)
    gap += habits.item_noise * _misjudgement(seen.first, seen.second, seed)
    seems = habits.sensitivity * gap + habits.positional_bias
    # At temperature 0 a judge errs no less, but always in the same way.
    warmth = math.sqrt((0.3 + max(temperature, 0.0)) / 0.8)
    seems += habits.noise * warmth * random.gauss(0, 1)
    return 0 if abs(seems) < habits.tie_width else 1 if seems > 0 else -1


def decisive(first_seems_better: int, random: Random) -> int:
    """Break a tie where the prompt allows none."""
    return first_seems_better or random.choice((-1, 1))
