"""The option `--stop`: under which rule pairs get fewer votes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import btdagg
from btdagg.cli.common import out
from btdagg.cli.provenance import differences_said
from btdagg.files import read_whole

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import ArrayLike, NDArray

    from btdagg.judge.stopping import StoppedRun
    from btdagg.online import StoppingRule

_STEP = 2  # votes come in pairs of both orders
_KINDS = {"epsilon": "risk-bounded", "price": "cost-optimal", "budget": "cost-optimal"}


@dataclass(frozen=True)
class Stopping:
    """A kind of rule, to be made for each task: ``lossless``, or with one number."""

    name: str
    value: float | None = None

    @classmethod
    def parse(cls, text: str | None) -> Stopping | None:
        """Read what the option says; None where it is not given.

        Raises
        ------
        InputError
            If it is nothing known.
        """
        if text is None:
            return None
        name, equals, number = text.strip().lower().partition("=")
        if name == "lossless" and not equals:
            return cls(name)
        try:
            if name in _KINDS:
                return cls(name, float(number))
        except ValueError:
            pass
        raise btdagg.InputError(
            f"--stop is {text!r}, want lossless, epsilon=0.05, price=0.01 or budget=5"
        )

    def refuse_out_of_range(self, n: int) -> None:
        """See that the number makes a rule, before anything is asked for.

        Raises
        ------
        InputError
            If it is out of range.
        """
        self.rule_for(btdagg.DavidsonModel(1.0, 1.0, 1.0), n, [[0, 2, 0], [0, 0, 2]], [0, 1])

    def rule_for(
        self,
        model: btdagg.DavidsonModel,
        n: int,
        counts: ArrayLike,
        labels: ArrayLike,
    ) -> StoppingRule:
        """Make the rule of a task from the votes and labels that its model is fitted to.

        Raises
        ------
        InputError
            If the number is out of range.
        """
        from btdagg.online import StoppingRule, fit_votes

        votes = fit_votes(counts, labels)
        if self.value is None:
            return StoppingRule.lossless(model, n, votes, step=_STEP)
        if self.name == "epsilon":
            return StoppingRule.risk_bounded(model, n, votes, epsilon=self.value, step=_STEP)
        named = {self.name: self.value}
        return StoppingRule.cost_optimal(model, n, votes, step=_STEP, **named)


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
    from btdagg.online import StoppingRule

    content = read_whole(path)
    if b'"btdagg.stopping-rule"' not in content[:200]:
        return None
    with differences_said():
        return StoppingRule.from_json(content, source=str(path))


def how_sure(rule: StoppingRule, counts: NDArray[Any]) -> dict[str, pl.Series]:
    """Columns that say which items are settled and, where the rule has chances, at what risk.

    The risk is that all votes would decide otherwise. It is null where votes are missing to a stop:
    what the rule has there is the risk of the label that it would give after them.
    """
    import polars as pl

    settled = pl.Series("settled", rule.stops(counts))
    if rule.votes is None:
        return {"settled": settled}
    risk = pl.Series("change_risk", rule.change_risk(counts))
    return {"settled": settled, "change_risk": risk.set(~settled, None)}


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
