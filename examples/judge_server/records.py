"""What the server remembers: a line for every request, and sums of them."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from hashlib import sha256
from typing import Any


class Records:
    """A log of JSON lines, written before the answer is sent, and the counts of `GET /stats`."""

    def __init__(self, path: str | None) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        self._file = None if path is None else os.open(path, flags, 0o644)
        self.outcomes: Counter[str] = Counter()
        self.decisions: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.n_requests = self.in_flight = self.most_in_flight = self.connections = 0

    def begin(self) -> None:
        self.n_requests += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def end(self) -> None:
        self.in_flight -= 1

    def write(self, **fields: Any) -> None:
        self.outcomes[fields["outcome"]] += 1
        if "kind" in fields:
            self.kinds[fields["kind"]] += 1
        self.decisions.update(fields.get("decisions", ()))
        if self._file is not None:
            line = json.dumps({"time": time.time(), "request": self.n_requests, **fields})
            os.write(self._file, line.encode() + b"\n")

    def stats(self) -> dict[str, Any]:
        return {
            "requests": self.n_requests,
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
            "connections": self.connections,
            "outcomes": self.outcomes,
            "decisions": self.decisions,
            "kinds": self.kinds,
            "tokens": self.tokens,
        }


def key_digest(authorization: str) -> str:
    """Return what tells keys apart without showing them; empty where there is none."""
    key = authorization.removeprefix("Bearer ")
    return sha256(key.encode()).hexdigest()[:12] if key else ""
