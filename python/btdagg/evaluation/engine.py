"""The one loop over splits: fit on the calibration set, decide the evaluation set, count."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from btdagg._util.validation import as_groups, distinct_rows, require_rows, same_length
from btdagg.evaluation.cells import Cell, MethodScores
from btdagg.evaluation.metrics import krippendorff_alpha
from btdagg.evaluation.new_items import Losses, NewItems, disagreement
from btdagg.evaluation.protocol import CrossFit, RandomSplits, SplitTest, signed_error
from btdagg.methods import Aggregator
from btdagg.methods.base import Refittable, is_written, needs_of
from btdagg.methods.majority import Voted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from btdagg.evaluation.parts import Neighbourhood
    from btdagg.evaluation.protocol import Loss, Protocol, Score
    from btdagg.model.grades import GradeModel
    from btdagg.model.prior import Prior
    from btdagg.votes.items import Items

# Distinct counts up to which random splits, which may see few of many, are fitted at once.
_FEW = 300

Fitted = TypeVar("Fitted", bound=Aggregator)
_Refits: TypeAlias = "Callable[[Items], NDArray[np.int8]]"


def cross_scores(
    parts: Sequence[Items],
    methods: Sequence[Aggregator],
    protocol: Protocol,
    *,
    observe: Callable[[Sequence[Aggregator]], object] | None = None,
    progress: Callable[[], object] | None = None,
    neighbourhood: Neighbourhood | None = None,
    content: list[NDArray[Any]] | None = None,
) -> list[list[Cell]]:
    """Score aggregators that are fitted to each part, such as a task, on every part.

    Each split gives every part a calibration and an evaluation set of its own.

    Parameters
    ----------
    parts : sequence of Items
        Labelled items of each part.
    methods : sequence of Aggregator
        Copies of them are fitted.
    protocol : Protocol
    observe : callable, optional
        Called with the aggregators fitted to each part and split.
    progress : callable, optional
        Called after each split.
    neighbourhood : optional
        Other parts as a prior of a single part, as `btdagg.evaluate` has them.
    content : list of arrays, optional
        Contents of the items of a single part by which folds are dealt; by default `Items.content`.

    Returns
    -------
    list of lists of Cell
        By the part that is fitted to, and the part that is decided.
    """
    splitter = protocol.splitter
    decisions: list[list[list[_SplitDecisions]]] = [[[] for _ in parts] for _ in parts]
    by_name = not isinstance(splitter, RandomSplits)  # the paper's go by the rows
    contents = [part.content if content is None else content for part in parts]
    drawn = [
        splitter.draw(len(part), part.group_numbers if by_name else part.group, of_part)
        for part, of_part in zip(parts, contents, strict=True)
    ]
    known: list[NDArray[Any] | None] = [None] * len(methods)
    is_small = isinstance(splitter, CrossFit) or len(distinct_rows(*parts[0].pooled.T)[0]) <= _FEW
    if len(parts) == 1 and observe is None and is_small:
        of_part = [*drawn[0]]
        drawn = [iter(of_part)]
        known = _decided_at_once(methods, parts[0], [calibrated for calibrated, _ in of_part])
    for number, splits in enumerate(zip(*drawn, strict=True)):
        for source, (calibrated, held_out), row in zip(parts, splits, decisions, strict=True):
            ready: Sequence[Aggregator] = methods
            if neighbourhood is not None:
                ready = with_neighbours(methods, neighbourhood.prior(held_out))
            counts, labels = source.decided_by[calibrated], source.label[calibrated]
            fitted = [
                quiet_fit(method, counts, labels) if of_splits is None else method
                for method, of_splits in zip(ready, known, strict=True)
            ]
            if observe is not None:
                observe(fitted)
            for target, (_, left), decided in zip(parts, splits, row, strict=True):
                by_method = [
                    _labels_of(method, target, left)
                    if of_splits is None
                    else of_splits[number, left]
                    for method, of_splits in zip(fitted, known, strict=True)
                ]
                decided.append(_SplitDecisions(np.stack(by_method), left, len(calibrated)))
        if progress is not None:
            progress()
    refitted: Sequence[Aggregator] = methods
    if neighbourhood is not None and isinstance(splitter, CrossFit):
        # Each refit decides all items, of which its neighbours have seen none if there are others.
        # Else they have seen all: it is only how much the refits differ that counts.
        everything, nothing = np.arange(len(parts[0])), np.arange(0)
        around = neighbourhood.prior(everything) or neighbourhood.prior(nothing)
        refitted = with_neighbours(methods, around)
    cells = []
    for source, of_source, row in zip(parts, contents, decisions, strict=True):
        refits: list[_Refits] = []
        if isinstance(splitter, CrossFit):
            resampled = splitter.resampled(source.group_numbers, of_source)
            weights = np.concatenate([np.ones((1, len(source))), resampled])  # all items are first
            refits = [_refitted(method, source, weights) for method in refitted]
        cells.append(
            [
                _counted(part, methods, protocol, decided, refits)
                for part, decided in zip(parts, row, strict=True)
            ]
        )
    return cells


def with_neighbours(
    methods: Sequence[Aggregator], prior: Prior | list[GradeModel] | None
) -> list[Aggregator]:
    """Return the methods, of which those that need neighbours have them."""
    return [
        cast("Any", method).among(prior)
        if prior is not None and needs_of(method).neighbours
        else method
        for method in methods
    ]


def quiet_fit(aggregator: Fitted, counts: ArrayLike, labels: ArrayLike) -> Fitted:
    """Return a fitted copy, whose warnings stay in it: each of a hundred splits would warn."""
    unfitted = copy(aggregator)
    fitted: Fitted = getattr(unfitted, "fit_quietly", unfitted.fit)(counts, labels)
    return fitted


class _SplitDecisions(NamedTuple):
    labels: NDArray[np.int8]
    items: NDArray[np.intp]
    n_calibration: int


def _decided_at_once(
    methods: Sequence[Aggregator], part: Items, calibrated: Sequence[NDArray[np.intp]]
) -> list[NDArray[Any] | None]:
    # Labels of all items by fits to what each split has seen, of methods that fit them at once.
    seen = np.zeros((len(calibrated), len(part)))
    for in_split, items in zip(seen, calibrated, strict=True):
        in_split[items] = 1.0
    decides = [_at_once(method, part, seen) for method in methods]
    return [
        decide and np.stack([_checked(labels, method, part, len(part)) for labels in decide(part)])
        for method, decide in zip(methods, decides, strict=True)
    ]


def _labels_of(
    fitted: Aggregator, part: Items, items: NDArray[np.intp] | None = None
) -> NDArray[Any]:
    rows = part.decided_by if items is None else part.decided_by[items]
    return _checked(fitted.decide(rows), fitted, part, len(rows))


def _checked(decided: ArrayLike, method: Aggregator, part: Items, n: int) -> NDArray[Any]:
    labels = part.label_scale.points
    decided, name = np.ravel(decided), f"decisions of {method.name}"
    same_length(name, len(decided), "counts", n)
    require_rows(np.isin(decided, labels), decided, name, f"one of {', '.join(map(str, labels))}")
    return decided


def _counted(
    part: Items,
    methods: Sequence[Aggregator],
    protocol: Protocol,
    decided: Sequence[_SplitDecisions],
    refits: Sequence[_Refits],
) -> Cell:
    new_items = _new_items(part, refits, decided, protocol) if refits else None
    gold = [part.label[split.items] for split in decided]
    labels, k = part.label_scale.values, len(part.label_scale.points)
    matrices = np.empty((len(methods), len(decided), k, k), dtype=np.int64)
    for number, (split, true_labels) in enumerate(zip(decided, gold, strict=True)):
        codes = k * np.searchsorted(labels, true_labels) + np.searchsorted(labels, split.labels)
        for place, of_method in enumerate(codes):
            matrices[place, number] = np.bincount(of_method, minlength=k * k).reshape(k, k)
    pvalues = {}
    if new_items is not None and protocol.test is not None:
        pvalues = {score: new_items.pvalues(score)[None] for score in protocol.losses}
    elif isinstance(protocol.test, SplitTest):
        shared = None
        if part.group is not None:
            group = as_groups(part.group, "items", len(part))
            shared = [group[split.items] for split in decided]
        for score, loss in protocol.losses.items():
            losses = [
                loss(true_labels, split.labels)
                for split, true_labels in zip(decided, gold, strict=True)
            ]
            pvalues[score] = protocol.test.pvalues(losses, shared, protocol.splitter.seed)
    return Cell(
        tuple(
            MethodScores(
                method.name,
                matrices[place],
                None if new_items is None else new_items.intervals(place),
                None if new_items is None else len(part),
                protocol.loss,
                part.label_scale.points,
            )
            for place, method in enumerate(methods)
        ),
        n_items=len(part),
        n_calibration=float(np.mean([split.n_calibration for split in decided])),
        test=protocol.test,
        pvalues=pvalues,
        new_items=new_items,
        calibrated=next((k for k, method in enumerate(methods) if is_written(method)), None),
        baseline=next((k for k, method in enumerate(methods) if isinstance(method, Voted)), None),
        scale=part.scale,
        label_scale=part.label_scale,
        items=replace(part, facts=part.facts.detached()),  # a result keeps no table of votes
    )


def _new_items(
    part: Items,
    refits: Sequence[_Refits],
    decided: Sequence[_SplitDecisions],
    protocol: Protocol,
) -> NewItems:
    by_refits = np.stack([decide(part) for decide in refits])
    labels = part.label_scale.values
    losses: dict[Score, Losses] = {}

    def over_splits(loss: Loss, gold: NDArray[Any] = part.label) -> NDArray[np.float64]:
        total, n_decided = np.zeros((len(refits), len(part))), np.zeros(len(part))
        for split in decided:
            total[:, split.items] += loss(gold[split.items], split.labels)
            n_decided[split.items] += 1
        return total / n_decided

    def add(
        score: Score, of_items: NDArray[Any], of_refits: NDArray[Any], ends: NDArray[Any]
    ) -> None:
        # The written models are the first of the refits.
        written = of_refits[:, 0].astype(np.float64)
        of_refits = of_refits[:, 1:].mean(axis=2)
        losses[score] = Losses(of_items, of_refits, written, float(ends.max()), float(ends.min()))

    scored: dict[Score, Loss] = {**protocol.losses, "bias": signed_error}
    for score, loss in scored.items():
        ends = loss(labels[:, None], labels)
        add(score, over_splits(loss), loss(part.label, by_refits), ends)
    gold, refitted = part.label.astype(np.float64), by_refits.astype(np.float64)
    predicted = (
        over_splits(lambda _, decisions: decisions),
        over_splits(lambda _, decisions: decisions.astype(float) ** 2),
    )
    of_refits = disagreement(gold, refitted, refitted**2)
    add("kappa", disagreement(gold, *predicted), of_refits, np.array([0.0, 2.0]))
    if "ratings" not in part.facts:
        return NewItems(losses, part.group_numbers)
    ratings = part.facts["ratings"]
    number = ratings.sum(axis=1)
    several = number > 1
    units = np.unique(part.group_numbers[several], return_inverse=True)[1].reshape(-1)
    if units.max(initial=0) == 0:
        return NewItems(losses, part.group_numbers)
    away = protocol.loss(labels[:, None], labels)
    shares = ratings / np.maximum(number, 1)[:, None]
    of_raters = shares @ away  # the mean loss of each label beside an item's raters

    def beside_raters(rows: NDArray[Any], decisions: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(of_raters[rows, np.searchsorted(labels, decisions)])

    rows = np.arange(len(part))
    among = ((of_raters * shares).sum(axis=1) * number)[several] / (number[several] - 1)
    of_items = np.vstack([over_splits(beside_raters, rows)[:, several], among])
    by_refit = beside_raters(rows, by_refits[:, 1:])[..., several].mean(axis=2)
    by_refit = np.vstack([by_refit, np.full(by_refit.shape[1], among.mean())])
    of_people = Losses(of_items, by_refit, worst=float(away.max()))
    item, place = np.nonzero(ratings)
    times = ratings[item, place]
    given = np.repeat(item, times), np.repeat(labels[place], times)
    ordinal = part.label_scale.mode.measurement == "ordinal"
    alpha = krippendorff_alpha(*given, ordinal=ordinal)
    return NewItems(losses, part.group_numbers, NewItems({"mae": of_people}, units, alpha=alpha))


def _at_once(method: Aggregator, source: Items, weights: NDArray[np.float64]) -> _Refits | None:
    decide = None
    if isinstance(method, Refittable) and not needs_of(method).neighbours:
        decide = method.refitted(source.decided_by, source.label, weights)
    return None if decide is None else lambda part: decide(part.decided_by)


def _refitted(method: Aggregator, source: Items, weights: NDArray[np.float64]) -> _Refits:
    """Fit a method with each row of weights; return what labels items by all: (refits, items)."""
    if (decide := _at_once(method, source, weights)) is not None:
        return decide
    fitted = []
    for times in weights:
        drawn = np.repeat(np.arange(len(source)), times.astype(np.int64))
        fitted.append(quiet_fit(method, source.decided_by[drawn], source.label[drawn]))
    return lambda part: np.stack([_labels_of(refit, part) for refit in fitted])
