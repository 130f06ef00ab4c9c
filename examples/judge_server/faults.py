"""What can go wrong, and how often."""

from __future__ import annotations

from random import Random

FAULTS = (
    "429",  # too many requests, with Retry-After
    "500",
    "reset",  # the connection, in the middle of the body
    "hang",  # no answer at all
    "malformed",  # JSON that breaks off
    "content-type",  # a page instead of JSON
    "empty",  # an answer without a word
    "truncated",  # an answer cut short, finish_reason length
    "refusal",
    "unparsed",  # an answer without a verdict
)


def parse_faults(given: str) -> dict[str, float]:
    """Probabilities of "429=0.02,reset=0.01"; "all=0.1" spreads 0.1 evenly over all kinds."""
    chances: dict[str, float] = {}
    for part in filter(None, given.split(",")):
        name, _, value = part.partition("=")
        try:
            chance = float(value)
        except ValueError:
            raise SystemExit(f"--faults has {part!r}, expected NAME=PROBABILITY") from None
        names = FAULTS if name == "all" else (name,)
        if names == (name,) and name not in FAULTS:
            raise SystemExit(f"--faults has {name!r}, expected one of {', '.join(FAULTS)}, all")
        for each in names:
            chances[each] = chances.get(each, 0.0) + chance / len(names)
    if sum(chances.values()) > 1 or min(chances.values(), default=0) < 0:
        raise SystemExit("--faults: the probabilities must be at least 0 and add up to at most 1")
    return chances


def draw(chances: dict[str, float], random: Random) -> str | None:
    """Return the fault that this request meets, if any."""
    left = random.random()
    for name, chance in chances.items():
        left -= chance
        if left < 0:
            return name
    return None
