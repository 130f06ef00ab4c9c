"""Which labels can be used without a look: a threshold of confidence, certified on labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from scipy.special import betaincinv, expit, logit, ndtri, stdtrit

from btdagg import _core, remarks
from btdagg._util.display import Drawn
from btdagg._util.errors import InputError, expect, of_kind
from btdagg._util.files import FileFormat, SavedAsJson
from btdagg._util.folds import numbered
from btdagg._util.readable import readable
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_number,
    columns_of,
    counts_alone,
    distinct_rows,
    require_rows,
)
from btdagg._util.wording import fixed
from btdagg.inference.cross_fit import Predictor, calibrated, predicted_by
from btdagg.inference.intervals import effective_number, of_one_look
from btdagg.inference.label_means import labelled_mean
from btdagg.inference.likeness import VoteProfile
from btdagg.inference.population import PredictedItems, as_any_counts, items_of
from btdagg.inference.weighted_bound import weighted_bound
from btdagg.model.covariates import columns_for, known_of
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.model.intervals import as_level
from btdagg.model.model import Model
from btdagg.model.panel import PanelModel
from btdagg.remarks import Remark
from btdagg.result import Curve, CurveFigure, Entry, Panel, Result, ResultTable, Row
from btdagg.votes.items import Draw, Items
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS, Scale
from btdagg.votes.standings import known_by_itself

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.model.covariates import KnownOfItems

    Floats = NDArray[np.float64]

_FIRST = 0.2  # share of the items that the first bound is for
_LEAST_LABELS = 30  # that it rests on
_STEP = 0.01
_SHOWN = 0.05  # share of the items from one row of a table to the next
_MOST_RANKED = 20_000  # items without a label that the others are ranked among
_LEAST_GROUPS = 10
_ROUNDING = 1e-12
_FEWEST_VOTES = 0.05  # share of the items that may have fewer votes than a certificate is for
_LIKELY = 0.8  # chance that the forecast number of labels is enough
_CORRECTIONS = (1.0, 0.5)  # standard deviations of the level and slope of a model's log odds
_EIGHTHS = 8  # parts of a vote in which votes to come are tried, where votes have a strength

_MODELS: dict[str, type[Model]] = {
    kind.FILE.name: kind for kind in (DavidsonModel, PanelModel, GradeModel)
}


@readable
class CurvePoint(NamedTuple):
    """The surest items, a share `coverage` of all, and how often people agree on the labelled ones.

    `low` is a lower bound of the agreement of all, at the confidence of the certificate and for
    this point alone; `threshold` is the least confidence among them.
    """

    coverage: float
    agreement: float
    low: float
    n_labels: int
    threshold: float


_SHARES = ("coverage", "agreement", "low", "threshold")


@dataclass(frozen=True, eq=False)
class Certificate(SavedAsJson, Drawn, Result):
    """Which items can be trusted without a look, and what that rests on.

    With probability `confidence`, people agree with at least a share `agreement` of the labels of
    trusted items like these, of which there may be any number; of those without a label, if they
    are few, with at least `low_unlabelled`. This says nothing of a single item, or of an agreement
    chosen after the labels were read.

    Attributes
    ----------
    model : DavidsonModel, PanelModel, GradeModel or other with `predict_proba`
        Decides, and says how sure it is: by the probability of its label.
    threshold : float or None
        The confidence from which an item is trusted; None where nothing is certified.
    coverage : float
        Share of all items that are trusted.
    curve : tuple of CurvePoint
        Coverage against agreement; each bound holds by itself, not for a point that was picked.
    labels_wanted : int or None
        Where nothing is certified, about how many labels in all would certify something in four of
        five cases; None if none would, or if labels were drawn with unequal probabilities.
    is_exact : bool
        Whether items were decided by a model that did not see these labels; the bound is then
        Clopper and Pearson's, or with unequal probabilities Gaffke's, whose validity in general is
        a conjecture.
    n_votes : int or tuple of int
        The votes that all but a twentieth of the items have; of a panel, of each judge.
    profile : VoteProfile or None
        Means of all items' votes, for `likeness`; None of fewer than ten items or groups.
    low_unlabelled : float or None
        Lower bound, with `confidence`, of the agreement on the trusted items without a label. It is
        below `agreement` where these are few. None if nothing is certified, no trusted item is
        without a label, or labels were drawn with unequal probabilities.
    """

    FILE: ClassVar[FileFormat] = FileFormat("btdagg.certificate", "certificate", 2)

    model: Predictor
    threshold: float | None
    coverage: float
    agreement: float
    confidence: float
    n_items: int
    n_labels: int
    curve: tuple[CurvePoint, ...]
    labels_wanted: int | None
    is_exact: bool
    within: int = 0
    scale: Scale = PAIRS
    label_scale: Scale = PAIRS
    remarks: tuple[Remark, ...] = field(default=())
    n_votes: int | tuple[int, ...] | None = None
    profile: VoteProfile | None = None
    low_unlabelled: float | None = None

    def trusted(
        self,
        counts: ArrayLike,
        *,
        n_votes: int | Sequence[int] | None = None,
        covariates: Any = None,
    ) -> NDArray[np.bool_]:
        """Return whether each item's label can be used without a look, (n,).

        An item with fewer votes than `n_votes` (by default the certificate's; of a panel one number
        or one for each judge) is trusted only if no votes to come could take it below the threshold
        or change its label; of a panel never. With 0 every item is taken to have all votes.
        `covariates` are those of the model, as its `decide` takes them.
        """
        counts = counts_alone(counts)
        array = as_any_counts(counts, self.scale, may_be_empty=True)
        threshold = np.inf if self.threshold is None else self.threshold
        trusted = self._sure(array, covariates)[1] >= threshold
        n_votes = (self.n_votes or 0) if n_votes is None else n_votes
        expected = "one number, or one for each judge of a panel"
        expect(np.shape(n_votes) in ((), array.shape[1:-1]), "n_votes", n_votes, expected)
        for number in np.ravel(n_votes).tolist():
            as_integer(number, "n_votes", 0)
        left = np.asarray(n_votes) - _whole_votes(array)
        if array.ndim == 3:
            return np.asarray(trusted & (left <= _ROUNDING).all(axis=1))
        early = np.flatnonzero(trusted & (left > _ROUNDING))
        first, of = distinct_rows(*array[early].T)
        if covariates is not None:  # with which items of equal counts differ
            first = of = np.arange(len(early))
            covariates = columns_of(covariates, len(array), self._names)
        distinct = early[first]
        known = None if covariates is None else {k: v[distinct] for k, v in covariates.items()}
        trusted[early] = self._settled(array[distinct], left[distinct], threshold, known)[of]
        return trusted

    @property
    def _names(self) -> list[str]:
        return [covariate.name for covariate in getattr(self.model, "covariates", ())]

    def likeness(self, counts: ArrayLike, *, groups: ArrayLike | None = None) -> float | None:
        """Test whether votes are like those of the certified items; return the p-value.

        If it is small, they differ: it is below .01 for about 1% of similar batches. None if fewer
        than ten items, or groups, can be compared. A judge who errs in other ways may pass.
        """
        counts = counts_alone(counts)
        array = as_any_counts(counts, self.scale, may_be_empty=True)
        numbers = None if groups is None else as_groups(groups, "counts", len(array))
        if self.profile is None:
            return None
        other = VoteProfile.of(array, self.scale, numbers, len(self.profile.means))
        return None if other is None else self.profile.pvalue(other)

    def _sure(self, counts: ArrayLike, covariates: Any = None) -> tuple[NDArray[np.intp], Floats]:
        return sure(predicted_by(self.model, counts, covariates), self.within)

    def _settled(
        self,
        counts: NDArray[Any],
        left: Floats,
        threshold: float,
        known: Mapping[str, Floats] | None = None,
    ) -> NDArray[np.bool_]:
        """Return whether no votes to come could change a label, or take it below the threshold."""
        settled, place = np.zeros(len(counts), dtype=np.bool_), self._sure(counts, known)[0]
        parts = _EIGHTHS if counts.dtype.kind == "f" else 1
        numbers = np.ceil(left - _ROUNDING).astype(int) * parts
        for n in np.unique(numbers):
            rows = np.flatnonzero(numbers == n)
            for way in _ways(n, counts.shape[1], self.scale):
                columns = None if known is None else {k: v[rows] for k, v in known.items()}
                label, confidence = self._sure(counts[rows] + way / n * left[rows, None], columns)
                rows = rows[(label == place[rows]) & (confidence >= threshold)]
            settled[rows] = True
        return settled

    def to_sql(self, dialect: str, **columns: Any) -> str:
        """Return whether an item is trusted as one SQL expression: 1, 0, or NULL without a label.

        Columns and dialects are those of `to_sql` of the model, such as ``minus="b"`` of pairs and
        ``mean="mean"`` of grades.
        """
        from btdagg.model.sql.decisions import trusted_grades_to_sql, trusted_to_sql

        threshold = np.inf if self.threshold is None else self.threshold
        if isinstance(self.model, GradeModel):
            self.model.require_votes_alone("SQL of trusted grades")
            spans = _spans(self.model, threshold, self.within)
            return trusted_grades_to_sql(self.model, dialect, spans, **columns)
        # No probability is 2: infinity has no literal.
        return trusted_to_sql(self.model, dialect, min(threshold, 2.0), **columns)

    def sentence(self) -> str:
        """Return which share of the items is trusted, at what agreement."""
        promise = f"agree with people in at least {100 * self.agreement:.4g}% of cases"
        if self.within:
            promise = promise.replace("agree", f"are within {self.within} of the grade", 1)
            promise = promise.replace(" with people", " of people")
        if self.threshold is not None:
            few = ""
            if self.low_unlabelled is not None and self.low_unlabelled < self.agreement:
                least = math.floor(1000 * self.low_unlabelled) / 10
                few = f"; those without a label, which are few, in at least {least:g}%"
            return (
                f"{100 * self.coverage:.3g}% of {self.n_items:,} items are trusted without review: "
                f"their labels {promise}, with {100 * self.confidence:.4g}% confidence "
                f"({self.n_labels:,} labels){few}"
            )
        labels = "1 label" if self.n_labels == 1 else f"{self.n_labels:,} labels"
        takes = "these labels cannot show how many it would take"
        if self.labels_wanted is not None:
            takes = f"it would take about {self.labels_wanted:,} labels"
            takes += f"; {of_one_look(self.confidence)}"
        return f"with {labels} no items can be certified to {promise}; {takes}"

    @property
    def heading(self) -> str:
        """Heading of the section in a report."""
        return "Which labels are trusted without review"

    def table(self) -> ResultTable:
        """Return how often the surest items agree with people, and which of them are certified."""
        rows = [
            Row(
                (f"{100 * point.coverage:.3g}%",),
                {
                    "agreement": Entry(fixed(point.agreement), point.coverage <= self.coverage),
                    "lower bound": fixed(point.low),
                    "labels": f"{point.n_labels:,}",
                    "least confidence": fixed(point.threshold),
                },
                [point._asdict()],
            )
            for point in self._shown
        ]
        note = (
            f"Each bound ({100 * self.confidence:.4g}%) is valid for a row chosen in advance, not "
            "for one picked from this table."
        )
        title = "Agreement with people of the most certain items"
        return ResultTable.of_rows("certificate", title, note, ("surest",), rows)

    @property
    def _shown(self) -> list[CurvePoint]:
        """Points of the curve in steps of 5%, and the one that is certified."""
        last, shown = -1.0, []
        for point in self.curve:
            step = math.floor(point.coverage / _SHOWN + _ROUNDING)
            if step > last or point.coverage == self.coverage:
                shown.append(point)
            last = step
        return shown

    def figure(self) -> CurveFigure | None:
        """Return the agreement with people of the surest items against their share of all."""
        if not self.curve:
            return None
        coverage, agreement, low, *_ = np.array(self.curve).T * 100
        panel = Panel(
            {"labelled items": Curve(coverage, agreement, low)},
            "share of items in percent, most certain first",
            "agreement in percent",
            x_line=100 * self.coverage or None,
            y_line=100 * self.agreement,
        )
        note = (
            "Agreement with people of the most certain labels, by their share of all items, shaded "
            f"down to {100 * self.confidence:.4g}% lower bounds. The bounds are pointwise: each is "
            "valid for a point chosen in advance, not for one picked from this figure."
        )
        return CurveFigure("certificate", "Agreement by coverage", note, (panel,))

    def values(self) -> dict[str, Any]:
        """Return the certificate and its model."""
        saved = of_kind(self.model, Model, "model", "a model of btdagg, which can be saved")
        values = super().values()
        # The model comes last: a file is told by its first format.
        for name in ("model", "scale", "label_scale"):
            values.pop(name, None)
        values["curve"] = [[*point] for point in self.curve]
        values["profile"] = None if self.profile is None else [*self.profile]
        values["remarks"] = self.remarks
        return values | {"model": saved.FILE.with_header(saved.as_dict())}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Certificate:
        """Return the certificate from the fields of `as_dict`."""
        kind = _MODELS[fields["model"]["format"]]
        model = kind.from_dict(kind.FILE.fields(fields["model"]))
        made: dict[str, Any] = {
            "model": model,
            "scale": model.scale,
            "label_scale": model.label_scale,
            "curve": tuple(CurvePoint(*point) for point in fields["curve"]),
            "n_votes": tuple(most) if isinstance(most := fields["n_votes"], list) else most,
            "profile": None if (raw := fields["profile"]) is None else VoteProfile.from_list(raw),
            "remarks": tuple(map(Remark, fields["remarks"])),
        }
        read = {name: value for name, value in fields.items() if name != "sentence"}
        certificate = cls(**{**read, **made})
        certificate._require_possible()
        return certificate

    def _require_possible(self) -> None:
        """Check numbers that a file may have, and no certificate."""
        shares = {name: getattr(self, name) for name in ("coverage", "agreement", "confidence")}
        shares |= {} if self.threshold is None else {"threshold": self.threshold}
        for row, point in enumerate(self.curve):
            shares |= {f"curve[{row}].{name}": getattr(point, name) for name in _SHARES}
            as_integer(point.n_labels, f"curve[{row}].n_labels", 0)
        for name, share in shares.items():
            as_number(share, name, least=0, most=1)
        counts = {"n_items": self.n_items, "n_labels": self.n_labels, "within": self.within}
        counts |= {} if self.labels_wanted is None else {"labels_wanted": self.labels_wanted}
        most = self.n_votes if isinstance(self.n_votes, tuple) else (self.n_votes,)
        counts |= {f"n_votes[{row}]": n for row, n in enumerate(most) if n is not None}
        for name, count in counts.items():
            as_integer(count, name, 0)
        if self.profile is not None:
            self.profile.require_possible()


def certify(
    counts: Any,
    labels: Any = None,
    *,
    agreement: float = 0.8,
    confidence: float = 0.9,
    groups: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
    least_probability: float | None = None,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    within: int = 0,
    model: Predictor | None = None,
    prior: Any = "weak",
    covariates: Any = None,
    provenance: Provenance | None = None,
) -> Certificate:
    """Say which labels can be used without a look, from a random sample of labelled items.

    Parameters
    ----------
    counts, labels, groups, scale, label_scale, model, prior
        As `btdagg.estimate` takes them: votes of all items, and labels of some that were drawn by
        chance, NaN where there is none.
    probabilities : (N,) array of numbers above 0 and at most 1, optional
        Probability of each item, labelled or not, of being drawn for labelling.
        Without them, or where all are equal, labels are a simple sample.
    least_probability : float, optional
        The least probability of any item; with it those of items without a label may be NaN.
    agreement, confidence : float
        How often people are to agree with trusted labels, on the mean over items (of several raters
        the share who agree counts), and with what probability.
    within : int
        How many grades apart still count as agreement.
    covariates : optional
        As in `btdagg.votes.Items.with_covariates`, but for standings, which new items would change.
    provenance : Provenance, optional
        Where the votes are from, for a model that is calibrated here; known of tables.

    Returns
    -------
    Certificate
        Nothing certified is an answer too: it says about how many labels are needed.

    Notes
    -----
    Items are ordered by the probability of their label. Candidates are the surest 20% (more, if
    these have fewer than 30 labels), 21% and so on. Beginning with the share whose lower bound of
    agreement the model expects to be highest, they are tested until a bound is below `agreement`.
    Each bound has the full confidence, since the order of tests is fixed before a label is read.

    Bounds are Clopper and Pearson's: exact for a `model` that has not seen these labels, with one
    rater an item and no groups. Otherwise items are decided and ranked by models that did not see
    their group, which is approximate. With groups, bounds are at the effective number of labels
    n / deff (deff at least 1), corrected by Student's t; fewer than ten groups certify nothing.

    With unequal probabilities the bound is Gaffke's, which equals Clopper and Pearson's where all
    are equal and is conjectured to be valid otherwise: labels weigh one over their probability,
    plus one wrong label of the greatest weight. Where the probabilities of all items are known,
    weights are capped at what no label exceeds with probability 1 - `confidence`; the weight of
    items above the cap counts as wrong.

    References
    ----------
    Angelopoulos, Bates, Candès, Jordan and Lei, Learn then Test (2021); Jung, Brahman and Choi,
    Trust or Escalate (2024); Clopper and Pearson (1934); Korn and Graubard (1998) for groups;
    Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of a
    nonnegative variable (2005); Learned-Miller and Thomas, A new confidence interval for the mean
    of a bounded random variable (2019).

    Examples
    --------
    >>> counts = [[0, 1, 7], [1, 6, 1], [7, 1, 0], [3, 2, 3]] * 60
    >>> labels = [1, 0, -1, 1, None, None, None, None] * 30
    >>> certificate = certify(counts, labels, agreement=0.9)
    >>> certificate.trusted(counts[:4]).tolist()
    [True, True, True, False]
    """
    agreement, confidence = as_level(agreement, "agreement"), as_level(confidence, "confidence")
    how: Any = {"scale": scale, "label_scale": label_scale, "model": model, "groups": groups}
    how |= {"probabilities": probabilities, "least_probability": least_probability}
    items = items_of(counts, labels, **how)
    items = known_by_itself(items, covariates, model, is_table=not isinstance(counts, Items))
    if provenance is None and items.origin.source:
        provenance = items.provenance
    widest = 0 if items.scale.mirrored else len(items.label_scale.points) - 2
    within = as_integer(within, "within", 0, widest)
    array, is_labelled = as_any_counts(items.by_judge, items.scale), items.is_labelled
    sampling = items.sampling
    probabilities, weights = _weights(
        sampling.probabilities, is_labelled, sampling.least_probability
    )
    n_items = len(items)
    # Strata are for a finite population, and a simple sample has no probabilities to go with them.
    ranked = replace(items, sampling=Draw(probabilities))
    n_votes = _whole_votes(array)
    usual = np.quantile(n_votes, _FEWEST_VOTES, axis=0, method="lower")
    numbers = None if items.group is None else as_groups(items.group, "counts", n_items)
    profile = VoteProfile.of(array, items.scale, numbers)
    if n_items > _MOST_RANKED and probabilities is None:
        # The others only say how sure items are in general, for which these are plenty.
        unlabelled = np.flatnonzero(~is_labelled)
        number = min(_MOST_RANKED, len(unlabelled))
        some = np.random.default_rng(0).choice(unlabelled, number, replace=False)
        ranked = ranked[np.sort(np.append(some, np.flatnonzero(is_labelled)))]
    population = PredictedItems.of(ranked, model=model, prior=prior)
    is_simple, n = (
        population.groups is None and population.weights is None,
        len(population.labelled),
    )
    entered, agrees, expected = ranked_by(
        population,
        lambda table: sure(table, within),
        lambda shares, place: _around(shares, place, within),
    )
    if model is None:
        known = known_of(ranked.covariates, np.arange(len(ranked)), items.scale)
        fitted: Any = of_all_labels(population, prior, known)
        named: dict[str, Any] = {"judges": items.judges} if len(items.judges) > 1 else {}
        if provenance is not None:
            most = int(n_votes.max())
            named["provenance"] = replace(provenance, n_votes=most, n_labels=n)
        model = replace(fitted, **named)
    shares = predicted_by(model, population.rows, columns_for(model, ranked))
    of_rows = sure(shares, within)[1]
    of_place = np.bincount(population.place)
    steps = _steps(of_rows, of_place, n if weights is None else np.inf)
    if weights is None:
        # Of all items, so that it does not matter which were drawn.
        shares_of_steps, least = np.array(steps).T
        inside_of = (of_rows >= least[:, None]) * of_place
        m = n * shares_of_steps
        agreeing = inside_of @ of_rows / inside_of.sum(axis=1)
        expected_low = _lower_bound(m * agreeing, m, confidence)
        steps = steps[int(np.argmax(expected_low)) :]
        curve = _until_failed(
            steps,
            lambda *step: _point(population, entered, agrees, confidence, *step),
            agreement,
        )
    else:
        of_items = of_rows[population.place]
        inside = [weights[of_items >= threshold] for _, threshold in steps]
        curve, forecast = (
            [
                _point(population, entered, outcomes, confidence, *step, step_weights)
                for step, step_weights in zip(steps, inside, strict=True)
            ]
            for outcomes in (agrees, expected)
        )
        del curve[: int(np.argmax([point.low for point in forecast]))]
    is_like = not population.remarks_on_sizes
    can_tell = n >= _LEAST_LABELS and is_like
    passed = [*takewhile(lambda point: point.low >= agreement, curve)] * can_tell
    wanted = None
    # Other labels would be drawn with probabilities, not known which.
    if not passed and is_like and probabilities is None:
        promise = agreement, confidence
        wanted = _labels_wanted(of_rows, population, n_items, expected, agrees, *promise)
    is_of_one = bool((population.outcomes.max(axis=1) == 1).all())
    return Certificate(
        model,
        passed[-1].threshold if passed else None,
        passed[-1].coverage if passed else 0.0,
        agreement,
        confidence,
        n_items,
        n,
        tuple(curve),
        wanted,
        population.is_fixed and is_simple and is_of_one,
        within,
        items.scale,
        items.label_scale,
        (*items.origin.remarks, *_remarks(population)),
        tuple(map(int, usual)) if usual.ndim else int(usual),
        profile,
        _low_unlabelled(population, passed[-1], entered, agrees, confidence, n_items - n)
        if passed and weights is None
        else None,
    )


def _weights(
    array: Floats | None, is_labelled: NDArray[np.bool_], least: float | None
) -> tuple[Floats | None, Floats | None]:
    if array is None:
        expect(least is None, "least_probability", least, "None, since there are no probabilities")
        return None, None
    is_good, of_labelled = (array > 0) & (array <= 1), array[is_labelled]
    expected = "a number above 0 and at most 1, or NaN for an unlabelled item"
    require_rows(is_good | (np.isnan(array) & ~is_labelled), array, "probabilities", expected)
    if least is None or is_good.all():
        expected = (
            "a number above 0 and at most 1 for every item, labelled or not; or pass "
            "least_probability, the lowest probability of any item, as btdagg choose writes it"
        )
        require_rows(is_good, array, "probabilities", expected)
        of_all = array
    else:
        least = as_number(least, "least_probability")
        if not 0 < least * (1 - _ROUNDING) <= np.nanmin(array, initial=1):
            expected = "a number above 0 and at most that of any item"
            raise InputError(argument="least_probability", got=least, expected=expected)
        of_all = np.full(len(array), least)
    if np.ptp(np.append(of_all, of_labelled)) <= _ROUNDING * of_all[0]:
        return None, None
    return array, 1 / of_all


def _whole_votes(counts: NDArray[Any]) -> Floats:
    return np.asarray(np.ceil(counts.sum(axis=-1) - _ROUNDING))


def _ways(n: int, n_kinds: int, scale: Scale) -> NDArray[np.int64]:
    """The ways of n votes to come that can change a decision most, the extreme ones first."""
    # Of grades the mean decides, between all lowest and all highest votes. Of pairs, given the
    # ties, all others are for one side: every probability is extreme there.
    if not scale.mirrored:
        return n * np.eye(n_kinds, dtype=np.int64)[[0, -1]]
    ties = np.arange(n + 1).repeat(2)
    side = np.tile([1, 0], n + 1) * (n - ties)
    return np.stack([side, ties, n - ties - side], axis=1)


def _spans(model: GradeModel, threshold: float, within: int) -> list[tuple[float, float]]:
    """Return the spans of mean votes that are trusted, each without its end."""
    low, high = model.scale.points[0] - 1.0, model.scale.points[-1] + 1.0
    edges = np.clip([low, *model.least_means, high], low, high)
    means = np.unique(np.linspace(edges[:-1], edges[1:], 4097))

    def is_trusted(means: Floats) -> NDArray[np.bool_]:
        shares = _core.grade_probabilities(means, model.beta, model.intercepts, 1)
        place = np.searchsorted(model.least_means, means, side="right")
        return _around(shares, place, within) >= threshold

    inside = is_trusted(means)
    at = np.flatnonzero(inside[1:] != inside[:-1])
    below, above = means[at], means[at + 1]
    for _ in range(60):
        middle = (below + above) / 2
        is_below = is_trusted(middle) == inside[at]
        below, above = np.where(is_below, middle, below), np.where(is_below, above, middle)
    ends = [low] * int(inside[0]) + above.tolist() + [high] * int(inside[-1])
    return [*zip(ends[::2], ends[1::2], strict=True)]


def sure(table: Floats, within: int = 0) -> tuple[NDArray[np.intp], Floats]:
    """Places of decided labels (medians; of two the nearer to the middle) and their probability."""
    n_labels = table.shape[1]
    below = np.cumsum(table, axis=1)
    half = np.array(
        [0.5 + _ROUNDING * (1 if 2 * k <= n_labels - 1 else -1) for k in range(1, n_labels)]
    )
    place = (below[:, :-1] < half).sum(axis=1)
    return place, _around(table, place, within)


def _around(shares: Floats, place: NDArray[np.intp], within: int) -> Floats:
    if not within:
        return shares[np.arange(len(shares)), place]
    near = np.abs(np.arange(shares.shape[1]) - place[:, None]) <= within
    return np.asarray((shares * near).sum(axis=1))


def _effective_groups(population: PredictedItems) -> float:
    """Number of equal groups that would be worth as much as the groups of all items."""
    if population.groups is None:
        return np.inf
    sizes = np.bincount(population.groups).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes @ sizes)) + _ROUNDING


def of_all_labels(
    population: PredictedItems, prior: Any, known: KnownOfItems | None = None
) -> Predictor:
    """Calibrate on all labels; the model's covariates have the scales of all items."""
    labelled, groups = population.labelled, population.groups
    numbers = numbered(None if groups is None else groups[labelled], [], len(labelled))
    counts = population.rows[population.place[labelled]]
    columns = {} if known is None else {name: of[labelled] for name, of in known.named.items()}
    model: Any = calibrated(counts, population.outcomes, numbers, prior, population.scales, columns)
    if known is None or not columns:
        return model  # type: ignore[no-any-return]
    wide = {covariate.name: covariate for covariate in known.covariates}
    made = tuple(covariate.within(wide[covariate.name]) for covariate in model.covariates)
    return replace(model, covariates=made)  # type: ignore[no-any-return]


Scored = Callable[["Floats"], "tuple[NDArray[np.intp], Floats]"]


def ranked_by(
    population: PredictedItems,
    scored: Scored,
    outcome: Callable[[Floats, NDArray[np.intp]], Floats],
) -> tuple[Floats, Floats, Floats]:
    """Rank labelled items by models that did not see them: shares as high, outcomes, scores."""
    number = np.bincount(population.place)
    row = population.place[population.labelled]
    entered, outcomes, scores = (np.empty(len(row)) for _ in range(3))
    for fold, table in enumerate(population.tables):
        in_fold = population.fold == fold
        place, score = scored(table)
        scores[in_fold] = score[row[in_fold]]
        outcomes[in_fold] = outcome(population.outcomes[in_fold], place[row[in_fold]])
        values, of = np.unique(scores[in_fold], return_inverse=True)
        passes = np.searchsorted(values, score, side="right")
        items = np.bincount(passes, number, len(values) + 1)[1:]
        entered[in_fold] = (items[::-1].cumsum()[::-1] / len(population.place))[of]
    return entered, outcomes, scores


def _steps(
    confidence: Floats, number: NDArray[np.int64], n_labels: float
) -> list[tuple[float, float]]:
    values, of = np.unique(-confidence, return_inverse=True)
    items = np.bincount(of, number)
    shares = items.cumsum() / number.sum()
    first = min(max(_FIRST, _LEAST_LABELS / n_labels), 1.0)
    targets = np.append(np.arange(first, 1, _STEP), 1.0)
    last = np.unique(np.searchsorted(shares, targets - _ROUNDING))
    least = np.append(-(values[:-1] + values[1:]) / 2, 0.0)
    return [*zip(shares[last].tolist(), least[last].tolist(), strict=True)]


def _point(
    population: PredictedItems,
    entered: Floats,
    agrees: Floats,
    confidence: float,
    share: float,
    threshold: float,
    weights: Floats | None = None,
) -> CurvePoint:
    rows = np.flatnonzero(entered <= share + _ROUNDING)
    if not len(rows):
        return CurvePoint(share, np.nan, 0.0, 0, threshold)
    agreeing, n = agrees[rows], _effective_labels(population, agrees, rows, confidence)
    if population.weights is None:
        agreement = float(agreeing.mean())
        low = float(_lower_bound(agreement * n, n, confidence)) if n else 0.0
        return CurvePoint(share, agreement, low, len(rows), threshold)
    sample = population.sample(rows)
    agreement, low = min(float(sample.weights @ agreeing), 1.0), 0.0
    if n and weights is not None:
        low = weighted_bound(agreeing, population.weights[rows], sample.groups, weights, confidence)
    elif n:
        low = float(_lower_bound(agreement * n, n, confidence))
    return CurvePoint(share, agreement, low, len(rows), threshold)


def _until_failed(
    steps: Sequence[tuple[float, float]],
    point_of: Callable[[float, float], CurvePoint],
    agreement: float,
) -> list[CurvePoint]:
    """Return points of all steps until a bound fails, and some in steps of 5% after that."""
    curve, is_failed, last = [], False, -1
    for coverage, threshold in steps:
        place = math.floor(coverage / _SHOWN + _ROUNDING)
        if not is_failed or place > last:
            curve.append(point_of(coverage, threshold))
            is_failed |= not curve[-1].low >= agreement
        last = place
    return curve


def _low_unlabelled(
    population: PredictedItems,
    point: CurvePoint,
    entered: Floats,
    agrees: Floats,
    confidence: float,
    n_unlabelled: int,
) -> float | None:
    """Return the bound for the unlabelled items of a point, whose own agreement varies too."""
    n_trusted = point.coverage * n_unlabelled
    if n_trusted < 1:
        return None
    rows = np.flatnonzero(entered <= point.coverage + _ROUNDING)
    n = _effective_labels(population, agrees, rows, confidence)
    # The difference of two means varies as the mean of so many.
    n = n * n_trusted / (n + n_trusted)
    return float(_lower_bound(point.agreement * n, n, confidence))


def _effective_labels(
    population: PredictedItems, agrees: Floats, rows: NDArray[np.int64], confidence: float
) -> float:
    n, sample = len(rows), population.sample(rows)
    if population.groups is None and population.weights is None:
        return n
    degrees = sample.degrees_of_freedom
    if degrees + 1 < _LEAST_GROUPS - _ROUNDING or _effective_groups(population) < _LEAST_GROUPS:
        return 0.0
    mean = labelled_mean(agrees[rows], sample, (0.0, 1.0))
    # Where all agree, how groups vary is not seen.
    worth = degrees + 1
    if mean.variance > 0:
        worth = float(effective_number(mean.value, mean.variance, mean.ends))
    few = stdtrit(n - 1, confidence) / stdtrit(degrees, confidence)
    return min(worth, n) * float(few) ** 2


def _lower_bound(x: ArrayLike, n: ArrayLike, confidence: float) -> Floats:
    x, n = np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(betaincinv(x, n - x + 1, 1 - confidence)))


def _labels_wanted(
    of_rows: Floats,
    population: PredictedItems,
    n_items: int,
    expected: Floats,
    agrees: Floats,
    agreement: float,
    confidence: float,
) -> int | None:
    """Forecast how many labels would pass the first bound; the model's agreement is corrected."""
    n, number = len(agrees), np.bincount(population.place)
    worth = _effective_labels(population, agrees, np.arange(n), confidence) / n or 1.0
    weights = worth * n * population.sample().weights
    coefficients, covariance = _correction(expected, agrees, weights)
    odds = _log_odds(of_rows)
    order = np.argsort(-of_rows)
    corrected = expit(odds @ coefficients)
    slopes = odds * (corrected * (1 - corrected))[:, None]
    columns = np.column_stack([corrected, slopes])[order] * number[order, None]
    items = number[order].cumsum()
    labels = np.unique(
        np.geomspace(max(n + 1, _LEAST_LABELS), max(n_items, n + 1), 400).astype(int)
    )
    labels = labels[labels > n]  # a power may be rounded down
    shares = np.append(np.arange(_FIRST, 1, _SHOWN), 1.0)
    last = np.searchsorted(items / items[-1], shares - _ROUNDING)
    p, *gradient = (columns.cumsum(axis=0)[last] / items[last, None]).T
    variance = np.einsum("in,ij,jn->n", gradient, covariance, gradient)
    m = worth * labels[:, None] * shares
    # The sequence begins where the bound is expected to be highest.
    expected_low = _lower_bound(m * p, m, confidence) * (labels[:, None] * shares >= _LEAST_LABELS)
    first = expected_low.argmax(axis=1)
    p, variance, m = p[first], variance[first], m[np.arange(len(m)), first]
    least = m * p - ndtri(_LIKELY) * np.sqrt(m * p * (1 - p) + m**2 * variance)
    enough = (_lower_bound(np.maximum(least, 0), m, confidence) >= agreement) & (labels <= n_items)
    if not enough.any():
        return None
    wanted = int(labels[enough.argmax()])
    digit = 10 ** max(len(str(wanted)) - 2, 0)
    rounded: int = -(-wanted // digit) * digit
    return min(rounded, n_items)


def _log_odds(shares: Floats) -> Floats:
    return np.column_stack([np.ones(len(shares)), logit(np.clip(shares, 0.01, 0.99))])


def _correction(expected: Floats, agrees: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Regress agreement on expected log odds: Platt scaling with a normal prior, by Newton."""
    odds, prior = _log_odds(expected), np.array([0.0, 1.0])
    precision = np.diag(1 / np.array(_CORRECTIONS) ** 2)
    coefficients = prior
    for _ in range(30):
        p = expit(odds @ coefficients)
        gradient = odds.T @ (weights * (agrees - p)) - precision @ (coefficients - prior)
        curvature = (odds.T * (weights * p * (1 - p))) @ odds + precision
        coefficients = coefficients + np.clip(np.linalg.solve(curvature, gradient), -1, 1)
    return coefficients, np.linalg.inv(curvature)


def _remarks(population: PredictedItems) -> tuple[Remark, ...]:
    sample = population.sample()
    about = population.remarks
    if not population.is_fixed:
        about.append(remarks.same_labels())
    n_equal = min(sample.degrees_of_freedom + 1, _effective_groups(population))
    if population.groups is not None and n_equal < _LEAST_GROUPS - _ROUNDING:
        about.append(remarks.unequal_groups(n_equal, _LEAST_GROUPS))
    return tuple(about)
