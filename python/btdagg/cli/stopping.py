"""Files of stopping rules on the command line, and what a rule has saved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import btdagg
from btdagg.cli.common import out
from btdagg.cli.provenance import differences_said
from btdagg.files import read_whole
from btdagg.model import MODEL_FILE

if TYPE_CHECKING:
    from btdagg.judge.stopping import StoppedRun
    from btdagg.online import StoppingRule

_STEP = 2  # votes come in pairs of both orders


def load_rule(path: Path, n: int | None, order: str) -> StoppingRule:
    """Read a rule, and see that it is for the votes that are asked for.

    Raises
    ------
    InputError
        If it is for another number, or for odd ones where they come in both orders; or the file is
        none of a rule.
    """
    from btdagg.online import StoppingRule

    with differences_said():
        rule = StoppingRule.load(path)
    if n not in (None, rule.n):
        raise btdagg.InputError(f"-n is {n}, and the rule of {path} is for {rule.n} votes")
    if order == "both" and rule.step % _STEP:
        raise btdagg.InputError(
            f"the rule of {path} has step {rule.step}, and votes come in both orders: make "
            f"it by btdagg plan --step {_STEP}"
        )
    return rule


def load_if_rule(path: Path) -> StoppingRule | None:
    """Read a rule, if a file is one and no model.

    Raises
    ------
    InputError
        If it cannot be read, is a damaged rule, or one of a later version.
    """
    content = read_whole(path)
    head = content[:200]
    if f'"{MODEL_FILE.name}"'.encode() in head:  # the usual case, which wants no rules imported
        return None
    from btdagg.online.rule import RULE_FILE, StoppingRule

    if f'"{RULE_FILE.name}"'.encode() not in head:
        return None
    with differences_said():
        return StoppingRule.from_json(content, source=str(path))


def say_saved(stopped: StoppedRun) -> None:
    """Print how many votes a rule has saved."""
    if not stopped.n_items:
        return
    per_pair = stopped.n_samples / stopped.n_items
    full = stopped.n_full / stopped.n_items
    # What is not done has saved nothing yet.
    fewer = "" if stopped.run.stopped else f", {1 - per_pair / full:.0%} fewer"
    out.print(
        f"stopped: {stopped.n_settled} of {stopped.n_items} pairs settled, {per_pair:.2f} of "
        f"{full:g} votes a pair{fewer}"
    )


def saved_as_dict(stopped: StoppedRun) -> dict[str, int]:
    """What `say_saved` prints, as plain values."""
    return {
        "n_items": stopped.n_items,
        "n_settled": stopped.n_settled,
        "n_samples": stopped.n_samples,
        "n_full": stopped.n_full,
    }
