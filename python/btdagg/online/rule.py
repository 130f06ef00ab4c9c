"""When to stop asking: a table of all counts that n votes can reach."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np

from btdagg import _core
from btdagg._util.errors import InputError, expect, given, of_kind
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_integer,
    as_number,
    as_numbers,
    counts_alone,
    require_rows,
    shaped,
)
from btdagg.model.covariates import offsets_of
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.model.model import Model
from btdagg.online.means import _MeanRule
from btdagg.online.predictive import VoteDistribution, fit_votes
from btdagg.online.strengths import shares_of
from btdagg.votes.provenance import warn_of
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray


Kind = Literal["lossless", "risk-bounded", "cost-optimal"]

RULE_FILE = FileFormat("btdagg.stopping-rule", "stopping rule")
_FIELDS = ("kind", "n", "step", "epsilon", "price", "votes", "model")
_MOST_VOTES = 128


@readable
class StoppedVotes(NamedTuple):
    """Where items stop if their votes come one at a time: `n_votes` used, and their `labels`."""

    n_votes: NDArray[np.int64]
    labels: NDArray[Any]


@dataclass(frozen=True)
class StoppingRule(SavedAsJson):
    """Whether an item may stop short of the `n` votes that its model is calibrated for.

    Made by `lossless`, `risk_bounded` or `cost_optimal`. A frozen value: equal if its parts are
    equal, picklable, saved as versioned JSON. Asking a rule is a look-up.

    Attributes
    ----------
    kind : {"lossless", "risk-bounded", "cost-optimal"}
    model : DavidsonModel or GradeModel
        Decides from all `n` votes. Rules for grades, for votes with strength and of a model with
        covariates are lossless and have no forecasts.
    n : int
        Most votes of an item, 1 to 128.
    step : int
        Items stop only after a multiple of `step` votes: 2 if each order gets half of the votes.
    votes : VoteDistribution or None
        Distribution of the remaining votes; see `fit_votes`.
    epsilon, price : float or None
        The bound of a risk-bounded rule; the price of a vote of a cost-optimal one, in units of
        absolute error.
    strengths : bool
        Whether votes may have a strength; by default as in the votes that the model was fitted to.

    Notes
    -----
    Methods over arrays take `counts`, `covariates` and `n_threads` as `DavidsonModel.decide` does.
    They raise `InputError` naming the first row with a bad count, with more than `n` votes, or with
    parts of votes if the rule is not for `strengths`.

    Making a rule warns (`ProvenanceWarning`) if the model was fitted for another number of votes.

    References
    ----------
    Backward induction: Bellman (1957); Ferguson, Optimal Stopping and Applications. The price as
    the Lagrange multiplier of a budget: Everett (1963).
    """

    FILE: ClassVar[FileFormat] = RULE_FILE

    kind: Kind
    model: DavidsonModel | GradeModel
    n: int
    step: int
    votes: VoteDistribution | None
    epsilon: float | None = None
    price: float | None = None
    strengths: bool | None = None

    @classmethod
    def lossless(
        cls,
        model: DavidsonModel | GradeModel,
        n: int,
        votes: VoteDistribution | None = None,
        *,
        step: int = 1,
        strengths: bool | None = None,
    ) -> Self:
        """Make the rule that stops once no further votes can change the label.

        The label is provably that of all `n` votes: of grades when the mean vote can no longer
        cross a threshold. Covariates are allowed for: an item stops where its label is the same
        given them. Freeze standings that change while votes come, as models do.

        Parameters
        ----------
        model : DavidsonModel or GradeModel
            Calibrated for `n` votes.
        n : int
            Votes of an item that is not stopped, 1 to 128.
        votes : VoteDistribution, optional
            For forecasts of what the rule saves, which need whole votes and a model without
            covariates; no stop depends on it.
        step : int
            Stop only after a multiple of `step` votes; `n` is one.
        strengths : bool, optional
            Whether votes may have a strength: then no further votes, however strong, change the
            label of an item that stops. By default as in the votes that the model was fitted to.
        """
        return cls("lossless", model, n, step, votes, strengths=strengths)

    @classmethod
    def risk_bounded(
        cls,
        model: DavidsonModel,
        n: int,
        votes: VoteDistribution,
        *,
        epsilon: float = 0.05,
        step: int = 1,
    ) -> Self:
        """Make the rule that stops once `n` votes change the label with chance below `epsilon`.

        An item gets the most likely label of all `n` votes, not the model's decision on the few so
        far, for which it is not calibrated. Models with covariates are refused, since the chances
        of further votes depend on them, and so are votes with strength. `epsilon` is above 0 and
        below 0.5, `votes` is from `fit_votes`; `model`, `n` and `step` are as for `lossless`.
        """
        return cls("risk-bounded", model, n, step, votes, epsilon=epsilon)

    @classmethod
    def cost_optimal(
        cls,
        model: DavidsonModel,
        n: int,
        votes: VoteDistribution,
        *,
        price: float | None = None,
        budget: float | None = None,
        step: int = 1,
    ) -> Self:
        """Make the rule that minimizes expected absolute error plus the price of the votes.

        The expected error uses the model's probabilities, averaged over the outcomes of all `n`
        votes. An item gets the label with the least. Other arguments are as for `risk_bounded`.

        Parameters
        ----------
        price : float, optional
            Price of a vote in units of absolute error: at 0.01, a hundred votes cost as much as an
            error of 1.
        budget : float, optional
            Average votes per item, instead of a price: the lowest price within it is used, so votes
            go where they lower the error most. A part can stay unspent (`expected_votes`).
        """
        expect((price is None) != (budget is None), "price", price, "a price or a budget")
        if budget is not None:
            _check(votes, "cost-optimal")
            n, step = as_integer(n, "n", 1, _MOST_VOTES), as_integer(step, "step", 1)
            budget = as_number(budget, "budget")
            price = model._errors(
                _core.StoppingRule.price_within(model._kernel, n, step, budget, votes._kernel)
            )
        return cls("cost-optimal", model, n, step, votes, price=price)

    def __post_init__(self) -> None:
        of_kind(self.model, Model, "model", "a DavidsonModel or GradeModel")
        if self.strengths is None:
            object.__setattr__(self, "strengths", _fitted_to_strength(self.model))
        expect(self.strengths in (True, False), "strengths", self.strengths, "True or False")
        if self.strengths:
            _require_whole_votes(self)
        if self.model.foresees:
            _check(self.votes, self.kind)
        else:
            _require_lossless(self)
        object.__setattr__(self, "n", as_integer(self.n, "n", 1, _MOST_VOTES))
        object.__setattr__(self, "step", as_integer(self.step, "step", 1))
        for name, kind in (("epsilon", "risk-bounded"), ("price", "cost-optimal")):
            value = getattr(self, name)
            if self.kind == kind:
                object.__setattr__(self, name, as_number(value, name))
            elif value is not None:
                expected = f"None for a {self.kind} rule"
                raise InputError(argument=name, got=value, expected=expected)
        _ = self._kernel  # which checks the rest
        if self.model.provenance is not None:
            warn_of(self.model.provenance.other_number(self.n))

    @cached_property
    def _kernel(self) -> _core.StoppingRule | _MeanRule:
        if isinstance(self.model, GradeModel):
            return _MeanRule(self.model, self.n, self.step)
        value = self.epsilon or (self.price or 0.0) / self.model._unit
        votes = None if self.votes is None else self.votes._kernel
        return _core.StoppingRule(
            self.model._kernel, self.n, self.step, self.kind, value, votes, bool(self.strengths)
        )

    def _columns(self, counts: ArrayLike) -> NDArray[Any]:
        return self.model.scale.read_counts(counts_alone(counts))

    def _of_items(self, counts: ArrayLike, covariates: Any, n_threads: int) -> tuple[Any, ...]:
        checked, threads = self._columns(counts), as_integer(n_threads, "n_threads", 1)
        offsets = offsets_of(self.model, covariates, len(checked))
        return (checked, threads) if offsets is None else (checked, threads, offsets)

    def stops(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> NDArray[np.bool_]:
        """Whether each item is settled, (n,)."""
        return self._kernel.stops(*self._of_items(counts, covariates, n_threads))

    def decide(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> NDArray[Any]:
        """Label of each item if it stops here, (n,): -1, 0 or +1, or a grade.

        For an item that is not settled this is a guess of the same kind; a lossless rule without
        `votes` uses the model's decision so far (of grades, some votes are needed), its features
        taken as those of items with all votes.
        """
        decided = self._kernel.decide(*self._of_items(counts, covariates, n_threads))
        labels: NDArray[Any] = self.model._labels(decided)
        return labels

    def stops_one(
        self, *counts: float, covariates: Mapping[str, float] | None = None, **by_name: float
    ) -> bool:
        """Whether an item is settled, by counts in order, or by name: minus, tie and plus."""
        if covariates is None and not self.model.covariates:
            return self._kernel.stops_one(*counts, **by_name)
        return bool(self.stops(**_alone(counts, by_name, covariates))[0])

    def decide_one(
        self, *counts: float, covariates: Mapping[str, float] | None = None, **by_name: float
    ) -> float:
        """Label of an item with these counts; see `decide` and `stops_one`."""
        if covariates is None and not self.model.covariates:
            label: float = self.model._labels(self._kernel.decide_one(*counts, **by_name))
            return label
        known: float = self.decide(**_alone(counts, by_name, covariates))[0].item()
        return known

    def votes_to_ask(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> NDArray[np.int64]:
        """How many votes to ask for at once, (n,): the fewest after which an item may be settled.

        0 where it is. Asking for them one by one would save none of them.
        """
        of_items = self._of_items(counts, covariates, n_threads)
        return self._kernel.votes_to_ask(*of_items).astype(np.int64)

    def votes_to_ask_one(
        self, *counts: float, covariates: Mapping[str, float] | None = None, **by_name: float
    ) -> int:
        """How many votes to ask for of an item with these counts; see `votes_to_ask`."""
        if covariates is None and not self.model.covariates:
            return self._kernel.votes_to_ask_one(*counts, **by_name)
        return int(self.votes_to_ask(**_alone(counts, by_name, covariates))[0])

    def votes_left(self, counts: ArrayLike, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Expected number of votes that each item still gets, (n,); 0 where it is settled."""
        return self._forecasts(counts, n_threads)[:, 0]

    def change_risk(self, counts: ArrayLike, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Probability that each item's label will differ from that of all `n` votes, (n,)."""
        return self._forecasts(counts, n_threads)[:, 1]

    def error(self, counts: ArrayLike, *, n_threads: int = 1) -> NDArray[np.float64]:
        """Expected absolute error of the label that each item will get, (n,)."""
        errors: NDArray[np.float64] = self.model._errors(self._forecasts(counts, n_threads)[:, 2])
        return errors

    def _forecasts(self, counts: ArrayLike, n_threads: int) -> NDArray[np.float64]:
        checked, threads = self._columns(counts), as_integer(n_threads, "n_threads", 1)
        return self._kernel.forecasts(checked, threads)

    @property
    def expected_votes(self) -> float:
        """Expected number of votes of an item."""
        return self._start()[0]

    @property
    def change_rate(self) -> float:
        """Expected share of items whose label differs from that of all `n` votes."""
        return self._start()[1]

    @property
    def expected_mae(self) -> float:
        """Expected mean absolute error according to the model's probabilities."""
        error: float = self.model._errors(self._start()[2])
        return error

    def _start(self) -> tuple[float, float, float]:
        return given(self._kernel.start, "votes", "the distribution of the votes for a forecast")

    def follow(self, votes: ArrayLike, *, covariates: Any = None) -> StoppedVotes:
        """Apply the rule to votes in their order, (n_items, n) numbers from -1 to 1, or grades."""
        numbers = as_numbers(votes, "votes").astype(np.float64)
        array = shaped(numbers, "votes", (self.n,), f"(n_items, {self.n})")
        if isinstance(self.model, GradeModel):
            points = np.eye(len(self.model.scale.points))
            places = self.model.scale.places(array.ravel(), "votes")
            return self._followed(points[places.reshape(array.shape)], covariates)
        scale = self.model.scale
        shares = scale.leaning(array)
        expected = f"a number from {scale.points[0]} to {scale.points[-1]}"
        require_rows(np.abs(shares) <= 1, array, "votes", expected)
        return self._followed(shares_of(shares), covariates)

    def _followed(self, shares: NDArray[Any], covariates: Any = None) -> StoppedVotes:
        n_items, _, width = shares.shape
        running = np.zeros((n_items, self.n + 1, width))
        np.cumsum(shares, axis=1, out=running[:, 1:])
        offsets = offsets_of(self.model, covariates, n_items)
        how = () if offsets is None else (np.repeat(offsets, self.n + 1),)
        stops = self._kernel.stops(running.reshape(-1, width), 1, *how)
        n_votes = stops.reshape(n_items, self.n + 1).argmax(axis=1)
        last = running[np.arange(n_items), n_votes]
        return StoppedVotes(n_votes, self.decide(last, covariates=covariates))

    def as_dict(self) -> dict[str, Any]:
        """Return the rule and its model as plain values."""
        fields = {name: getattr(self, name) for name in _FIELDS}
        if self.strengths != _fitted_to_strength(self.model):
            fields["strengths"] = self.strengths
        votes = getattr(self.votes, "components", self.votes)
        return {**fields, "votes": votes, "model": self.model.as_dict()}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> Self:
        """Return the rule from the fields of `as_dict`."""
        votes = saved["votes"]
        expected = "a list or nothing; make this rule anew, as lossless, for votes with strength"
        expect(not isinstance(votes, dict), "votes", "a distribution of strengths", expected)
        votes = None if votes is None else VoteDistribution(votes)
        model = GradeModel if "cuts" in saved["model"] else DavidsonModel
        return cls(**{**saved, "model": model.from_dict(saved["model"]), "votes": votes})


def _alone(
    counts: tuple[float, ...], by_name: dict[str, float], covariates: Mapping[str, float] | None
) -> dict[str, Any]:
    def row(minus: float, tie: float, plus: float) -> tuple[float, ...]:
        return minus, tie, plus

    columns = None if covariates is None else {k: [value] for k, value in covariates.items()}
    return {"counts": [row(*counts, **by_name) if by_name else counts], "covariates": columns}


def _fitted_to_strength(model: DavidsonModel | GradeModel) -> bool:
    return model.provenance is not None and model.provenance.strength not in ("", "none")


def _require_whole_votes(rule: StoppingRule) -> None:
    if rule.kind != "lossless":
        expected = (
            "lossless, the only rule for votes with strength: StoppingRule.lossless(model, n)"
        )
        raise InputError(argument="kind", got=rule.kind, expected=expected)
    expected = "None: a lossless rule for votes with strength has no forecasts"
    expect(rule.votes is None, "votes", rule.votes, expected)


def _require_lossless(rule: StoppingRule) -> None:
    if rule.kind != "lossless":
        lossless = "since only a lossless rule allows covariates"
        rule.model.require_votes_alone(f"a {rule.kind} rule, {lossless}")
    if rule.model.covariates:
        expected = "None, since forecasts of votes do not allow covariates"
        expect(rule.votes is None, "votes", rule.votes, expected)
    if rule.kind != "lossless" or rule.votes is not None:
        expected = "a lossless rule, which needs no distribution of votes"
        raise InputError(argument="kind", got=f"{rule.kind} for grades", expected=expected)


def _check(votes: object, kind: Kind) -> None:
    optional = votes is None and kind == "lossless"
    if not optional and not isinstance(votes, VoteDistribution):
        expected = "a VoteDistribution from fit_votes"
        raise InputError(argument="votes", got=votes, expected=expected)


KINDS = ("lossless", "epsilon", "price", "budget")
WANTED = "lossless, epsilon=0.05, price=0.01 or budget=5"


@dataclass(frozen=True)
class RuleKind:
    """A rule before there are votes to learn it from: lossless, or with one of three numbers."""

    name: str
    value: float | None = None

    @classmethod
    def parse(cls, text: str) -> RuleKind:
        """Read ``lossless`` or ``NAME=NUMBER``."""
        name, equals, number = text.strip().lower().partition("=")
        if name == "lossless" and not equals:
            return cls(name)
        try:
            if name in KINDS[1:]:
                return cls(name, float(number))
        except ValueError:
            pass
        raise InputError(argument="stop", got=text, expected=WANTED)

    def refuse_out_of_range(self, n: int, step: int, scale: Scale = PAIRS) -> None:
        """Check that the number makes a rule, before anything is paid for."""
        model: DavidsonModel | GradeModel = DavidsonModel(1.0, 1.0, 1.0)
        if not scale.mirrored:
            model = GradeModel(1.0, (scale.middle,) * (len(scale.points) - 1), scale)
        self.learn(model, n, [[0, 2, 0], [0, 0, 2]], model.label_scale.points[-2:], step=step)

    def learn(
        self,
        model: Any,
        n: int,
        counts: ArrayLike,
        labels: ArrayLike,
        *,
        step: int,
    ) -> StoppingRule:
        """Make the rule from the votes and labels that a model is fitted to."""
        strengths = _fitted_to_strength(model) or bool((np.asarray(counts) % 1).any())
        if strengths or not model.foresees:
            expected = "lossless for grades, for votes with strength and with covariates"
            expect(self.value is None, "stop", self.name, expected)
            return StoppingRule.lossless(model, n, step=step, strengths=strengths)
        votes = fit_votes(counts, labels, scale=model.scale, label_scale=model.label_scale)
        if self.value is None:
            return StoppingRule.lossless(model, n, votes, step=step)
        if self.name == "epsilon":
            return StoppingRule.risk_bounded(model, n, votes, epsilon=self.value, step=step)
        return StoppingRule.cost_optimal(model, n, votes, step=step, **{self.name: self.value})
