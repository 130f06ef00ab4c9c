"""How files are read: what a user says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from btdagg._core import InputError
from btdagg.judge.answers import AnswerFormat


@dataclass(frozen=True)
class ImportOptions:
    """What a user says of files.

    Attributes
    ----------
    columns : mapping of str to str
        Columns of the file by the names of docs/data.md.
    words : mapping of str to -1, 0, 1 or None
        What words mean, in lower case.
    flip_where : tuple of str and list of str, or None
        Column, and its values in rows that call A what was shown second.
    constants : mapping of str to str
        Columns that have one value in all rows.
    name : str or None
        Which annotations or scorer, where there are several.
    kind : str or None
        What is wanted: votes, ratings or labels.
    custom_id : str or None
        How ids of requests are made, such as ``{item}-{order}-{sample}``.
    answer_pattern : str or None
        A regular expression with one group, the verdict of a text.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, int | None] = field(default_factory=dict)
    flip_where: tuple[str, Sequence[str]] | None = None
    constants: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    kind: str | None = None
    custom_id: str | None = None
    answer_pattern: str | None = None

    @property
    def given(self) -> list[str]:
        """Options that only some formats go by, as far as they are given."""
        several = {
            "--map": self.columns,
            "--words": self.words,
            "--flip-where": self.flip_where,
            "--name": self.name,
            "--custom-id": self.custom_id,
            "--answer-pattern": self.answer_pattern,
        }
        return [option for option, value in several.items() if value]

    @property
    def answer(self) -> AnswerFormat:
        """Words of verdicts in texts.

        Raises
        ------
        InputError
            If two words mean the same: a judge is asked for one.
        """
        found: dict[int, str] = {}
        for word, vote in self.words.items():
            if vote is None:
                continue
            if vote in found:
                raise InputError(
                    f"words {found[vote]!r} and {word!r} mean the same, expected one word each "
                    "for the "
                    "verdicts in texts"
                )
            found[vote] = word.upper()
        return AnswerFormat(
            first=found.get(1, "A"),
            second=found.get(-1, "B"),
            tie=found.get(0, "TIE"),
            pattern=self.answer_pattern,
        )
