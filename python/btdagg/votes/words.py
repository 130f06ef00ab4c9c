"""Words of votes and labels, and what other tools call the columns: the one table of both."""

from __future__ import annotations

import re

PAIR_WORDS = {"a": 1, "tie": 0, "same": 0, "b": -1}
"""Words that a vote on a pair may be, beside the numbers."""

PASS_WORDS = {
    **dict.fromkeys(("pass", "passed", "true", "yes"), 1),
    **dict.fromkeys(("fail", "failed", "false", "no"), 0),
}
"""Words that a check may say, beside 0 and 1."""

MISSING = "missing"
"""What a user calls a word that says there is no vote."""

SHOWN = {"first": 1, "second": -1}
"""What a user calls a word that names a response by its place: the vote where A is shown first."""

TIE_WORDS = ("tie", "tied", "same", "equal", "draw")
"""Words of a tie in what a judge writes."""

# Of arenas and side by side views. Nobody's file is read by them unasked: formats name the words
# they have, and `btdagg check` writes them down for the user to see.
USUAL_WORDS = {
    **dict.fromkeys(("a", "model_a", "model_1", "response_a", "answer_a", "left"), "A"),
    **dict.fromkeys(("b", "model_b", "model_2", "response_b", "answer_b", "right"), "B"),
    **dict.fromkeys(TIE_WORDS, "tie"),
    **dict.fromkeys(("tie (bothbad)", "both_bad", "bothbad", "tie (inconsistent)"), "tie"),
    **dict.fromkeys(("error", "n/a", "na", "none", "null", "skipped", "unparsed"), MISSING),
    **{"candidate": "A", "baseline": "B"},
}
"""What words of other tools surely mean: A, B, tie or missing."""

UNPARSABLE = "NOT_PARSABLE"
"""What Phoenix labels an answer that it could not read, beside a score of 0."""

WHOLE = r"^\+?(-?[0-9]+)(?:\.0*)?$"
"""What is a whole number: 1.0 and +1 are the word 1."""


def word_of(value: object) -> str:
    """Return a word as words are compared: in lower case, whole numbers as they are counted."""
    return re.sub(WHOLE, r"\1", str(value).strip().lower())
