"""Keys that endpoints echo, whole or abbreviated, are not shown."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SHORTEST = 8  # shorter ones are placeholders, such as EMPTY
_SHORTEST_PART = 3  # of what is left of an abbreviated key before or after dots or stars
_KEY_SHAPED = re.compile(r"\b(?:sk|pk|rk|key)-[\w*.-]{6,}")
_ABBREVIATED = re.compile(r"([\w+/=~-]*)(?:\*{2,}|\.{2,}|…)([\w+/=~-]*)")
HIDDEN = "[key]"


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Return a text with a mark in place of each secret that it holds whole."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def without_echoes(text: str, secrets: Iterable[str]) -> str:
    """Return a message of an endpoint without secrets, their beginnings and their ends.

    A beginning or end is hidden beside dots or stars (``AIza...3456``), or if it has eight
    characters. Other words in the form of a key are hidden too.
    """
    secrets = [secret for secret in secrets if len(secret) >= _SHORTEST]
    text = without_secrets(text, secrets)

    def hide(found: re.Match[str]) -> str:
        head, tail = found[1], found[2]
        for secret in secrets:
            is_head = len(head) >= _SHORTEST_PART and secret.startswith(head)
            is_tail = len(tail) >= _SHORTEST_PART and secret.endswith(tail)
            if is_head or is_tail:
                return HIDDEN
        return found[0]

    text = _ABBREVIATED.sub(hide, text)
    for secret in secrets:
        for n in range(len(secret) - 1, _SHORTEST - 1, -1):
            text = text.replace(secret[:n], HIDDEN).replace(secret[-n:], HIDDEN)
    return _KEY_SHAPED.sub(HIDDEN, text)
