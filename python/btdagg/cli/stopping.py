"""Stopping rules on the command line: reading them, and printing what they save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import btdagg
from btdagg._util.files import read_whole
from btdagg.cli.common import out
from btdagg.cli.provenance import differences_said
from btdagg.model.davidson import MODEL_FILE

if TYPE_CHECKING:
    from btdagg.judge.stopping import StoppedRun
    from btdagg.online import StoppingRule

_STEP = 2  # votes come in pairs of both orders


def load_rule(path: Path, n: int | None, order: str) -> StoppingRule:
    """Read a rule, and check that it fits the votes of the job.

    Raises
    ------
    InputError
        If the file is not a rule, the rule is for another number of votes, or it may stop at an odd
        number although votes come in both orders.
    """
    from btdagg.online import StoppingRule

    with differences_said():
        rule = StoppingRule.load(path)
    if n not in (None, rule.n):
        raise btdagg.InputError(f"-n is {n}, and the rule of {path} is for {rule.n} votes")
    if order == "both" and rule.step % _STEP:
        raise btdagg.InputError(
            f"the rule of {path} has step {rule.step}, and votes come in both orders: make "
            f"the rule with btdagg plan --step {_STEP}"
        )
    return rule


def load_if_rule(path: Path) -> StoppingRule | None:
    """Read a rule; return None if the file is something else, such as a model.

    Raises
    ------
    InputError
        If the file cannot be read, or the rule is damaged or of a later version.
    """
    content = read_whole(path)
    head = content[:200]
    if f'"{MODEL_FILE.name}"'.encode() in head:  # the usual case, which need not import rules
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
    # A run that is not finished has saved nothing yet.
    fewer = "" if stopped.run.stopped else f", {1 - per_pair / full:.0%} fewer"
    out.print(
        f"stopped: {stopped.n_settled} of {stopped.n_items} pairs settled, {per_pair:.2f} of "
        f"{full:g} votes a pair{fewer}"
    )


def saved_as_dict(stopped: StoppedRun) -> dict[str, int]:
    """Return what `say_saved` prints as plain values."""
    return {
        "n_items": stopped.n_items,
        "n_settled": stopped.n_settled,
        "n_samples": stopped.n_samples,
        "n_full": stopped.n_full,
    }
