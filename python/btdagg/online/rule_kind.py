"""Kinds of stopping rules, each with its one number, before there are votes to learn one from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from btdagg._core import InputError
from btdagg.model.davidson import DavidsonModel
from btdagg.online.predictive import fit_votes
from btdagg.online.rule import StoppingRule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

KINDS = ("lossless", "epsilon", "price", "budget")
WANTED = "lossless, epsilon=0.05, price=0.01 or budget=5"


@dataclass(frozen=True)
class RuleKind:
    """A rule to be learned from labelled items: ``lossless``, or one with a number.

    Attributes
    ----------
    name : ``lossless``, ``epsilon``, ``price`` or ``budget``
    value : float or None
        None for lossless.
    """

    name: str
    value: float | None = None

    @classmethod
    def parse(cls, text: str) -> RuleKind:
        """Read ``lossless`` or ``NAME=NUMBER``.

        Raises
        ------
        InputError
            If it is neither.
        """
        name, equals, number = text.strip().lower().partition("=")
        if name == "lossless" and not equals:
            return cls(name)
        try:
            if name in KINDS[1:]:
                return cls(name, float(number))
        except ValueError:
            pass
        raise InputError(f"stop is {text!r}, expected {WANTED}")

    def refuse_out_of_range(self, n: int, step: int) -> None:
        """See that the number makes a rule, before anything is asked for.

        Raises
        ------
        InputError
            If it is out of range.
        """
        self.learn(DavidsonModel(1.0, 1.0, 1.0), n, [[0, 2, 0], [0, 0, 2]], [0, 1], step=step)

    def learn(
        self,
        model: DavidsonModel,
        n: int,
        counts: ArrayLike,
        labels: ArrayLike,
        *,
        step: int,
    ) -> StoppingRule:
        """Make the rule from the votes and labels that a model is fitted to.

        Raises
        ------
        InputError
            If the number is out of range.
        """
        votes = fit_votes(counts, labels)
        if self.value is None:
            return StoppingRule.lossless(model, n, votes, step=step)
        if self.name == "epsilon":
            return StoppingRule.risk_bounded(model, n, votes, epsilon=self.value, step=step)
        return StoppingRule.cost_optimal(model, n, votes, step=step, **{self.name: self.value})
