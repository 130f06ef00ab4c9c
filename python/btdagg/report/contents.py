"""What a report holds, apart from how it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from btdagg.model.davidson import DavidsonModel

# Rows of a table from which it is folded up.
_ROWS_OPEN = 80


class Status(StrEnum):
    """How far a report is."""

    INTERRUPTED = "interrupted"
    COMPLETE = "complete"


@dataclass(frozen=True)
class Exhibit:
    """A table or a figure as the page shows it.

    Attributes
    ----------
    kind : "table" or "figure"
    stem : str
        Unique among the exhibits of its kind.
    title, note : str
        Plain text.
    body : str
        HTML.
    files : tuple of str
        Where it lies beside the page: paths from there, with forward slashes.
    family, choice : str
        Exhibits of one family in a section are shown one at a time, by a selector of choices.
    folded : bool
        Whether it is folded up however short it is.
    """

    kind: str
    stem: str
    title: str
    note: str
    body: str
    files: tuple[str, ...]
    family: str = ""
    choice: str = ""
    folded: bool = False

    @property
    def folds(self) -> bool:
        """Whether it is folded up, as a long table is."""
        return self.folded or self.body.count("<tr") > _ROWS_OPEN


@dataclass
class Section:
    """A part of the page: plain text, remarks, tables and figures; folded up or not."""

    name: str
    title: str
    text: str = ""
    folded: bool = False
    remarks: list[str] = field(default_factory=list)
    exhibits: list[Exhibit] = field(default_factory=list)

    @property
    def paragraphs(self) -> list[str]:
        """The text, parted at empty lines."""
        parts = (part.strip() for part in re.split(r"\n\s*\n", self.text))
        return [part for part in parts if part]

    @property
    def families(self) -> list[list[Exhibit]]:
        """The exhibits, with those of one family together."""
        found: dict[object, list[Exhibit]] = {}
        for number, exhibit in enumerate(self.exhibits):
            family = (exhibit.kind, exhibit.family) if exhibit.family else number
            found.setdefault(family, []).append(exhibit)
        return list(found.values())


@dataclass
class Contents:
    """All that the page says.

    Attributes
    ----------
    settings : mapping of str to object
        How the results were made, by name; values are shown as text.
    remarks : list of str
        Those that belong to no section.
    skipped : list of (str, str)
        What is not there, and why.
    models : mapping of str to DavidsonModel
        Presets of the decision map.
    n_votes : int
        Votes per item that the decision map starts with.
    reason : str
        Why the report was interrupted.
    """

    title: str
    subtitle: str = ""
    settings: Mapping[str, object] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    models: Mapping[str, DavidsonModel] = field(default_factory=dict)
    n_votes: int = 20
    status: Status = Status.COMPLETE
    reason: str = ""

    @property
    def files(self) -> list[str]:
        """Files of all tables and figures."""
        return [
            file
            for section in self.sections
            for exhibit in section.exhibits
            for file in exhibit.files
        ]
