"""Warnings of commands that use a model on votes it was not fitted for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from btdagg.cli.common import note
from btdagg.votes.provenance import Provenance, ProvenanceWarning

if TYPE_CHECKING:
    from btdagg.votes import Histogram, Votes


def provenance_of(votes: Votes | Histogram, n_votes: int | None) -> Provenance:
    """Return the provenance of votes, with the number used per item."""
    return replace(Provenance.of(votes), n_votes=n_votes)


def say_differences(differences: Iterable[str]) -> None:
    """Print each difference on standard error, once."""
    for text in dict.fromkeys(differences):
        note(f"warning: {text}")


@contextmanager
def differences_said() -> Iterator[None]:
    """Print provenance warnings of the library; pass other warnings on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ProvenanceWarning)
        yield
    say_differences(str(w.message) for w in caught if w.category is ProvenanceWarning)
    for other in caught:
        if other.category is not ProvenanceWarning:
            warnings.warn_explicit(other.message, other.category, other.filename, other.lineno)
