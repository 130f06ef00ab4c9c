"""What tables and figures of a report have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from btdagg._util.readable import Readable
from btdagg._util.wording import stem
from btdagg.report.wording import key_of


@dataclass(frozen=True, eq=False)
class Exhibit(Readable):
    """A table or a figure: the stem of its files, a title, and the note that is its caption."""

    name: str
    title: str
    note: str

    def named_after(self, *key: str) -> Self:
        """Return it named after the part that it is of, such as a judge; unchanged without one."""
        if not key:
            return self
        return replace(self, name=stem(self.name, *key), title=f"{self.title}, {key_of(key)}")
