"""The result of an evaluation: cells, remarks on them, and lines of a table with their averages."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.display import Displayed, Picture, picture
from btdagg._util.readable import readable
from btdagg.evaluation.cells import Sweep
from btdagg.evaluation.metrics import Interval, mean_interval
from btdagg.evaluation.protocol import Score

if TYPE_CHECKING:
    from btdagg.evaluation.cells import Cell, MethodScores
    from btdagg.evaluation.parts import Key

_SCORES: tuple[Score, ...] = ("mae", "accuracy")
_OF_GRADES: tuple[Score, ...] = ("kappa", "bias")


@readable
@dataclass(frozen=True, eq=False)
class Scores(Displayed):
    """The result of an evaluation of votes and labels.

    Attributes
    ----------
    by : tuple of str
        Columns that votes are grouped by.
    cells : tuple of Cell
        One per key, value of `column`, number of votes and number of labels.
    skipped : tuple of (key, reason)
        What could not be evaluated. In an ablation the key may end in a value of `column`.
    n_unlabelled, n_without_votes : int
        Items that have votes of some judge but no label, and labels of the same tasks whose item
        has no votes.
    n_sharing : int
        Items that share a prompt with another, where nothing says that they belong together.
    column : str
        In an ablation, the column that is varied.
    n_left_out : dict of key to int
        In an ablation, the number of items left out because they lack votes under one value.
    about_data : tuple of str
        Remarks on the votes and labels that were read.
    """

    by: Key
    cells: tuple[Cell, ...]
    skipped: tuple[tuple[Key, str], ...] = ()
    n_unlabelled: int = 0
    n_without_votes: int = 0
    n_sharing: int = 0
    column: str = ""
    n_left_out: Mapping[Key, int] = field(default_factory=dict)
    about_data: tuple[str, ...] = ()

    @cached_property
    def remarks(self) -> tuple[str, ...]:
        """What a reader has to know before using the numbers."""
        return _remarks_of(self)

    def plot(self, choice: str | None = None) -> Picture:
        """Draw errors against numbers of votes or labels; of one number, the labels that are given.

        Parameters
        ----------
        choice : str, optional
            Of several figures, as of several judges, the one to draw; an unknown name is an
            `InputError` that lists them.
        """
        return picture(self, choice)

    def by_key(self) -> dict[Key, tuple[Cell, ...]]:
        """Cells by key."""
        cells: dict[Key, tuple[Cell, ...]] = {}
        for cell in self.cells:
            cells[cell.key] = (*cells.get(cell.key, ()), cell)
        return cells

    def at_most_votes(self) -> dict[Key, Cell]:
        """For each key the cell with the most votes."""
        return {
            key: max(cells, key=lambda cell: cell.n_votes or 0)
            for key, cells in self.by_key().items()
        }

    @property
    def n_calibration(self) -> str:
        """Labels that models are calibrated on: one number, or from the least to the most."""
        numbers = [round(cell.comparison.n_calibration) for cell in self.cells]
        low, high = min(numbers), max(numbers)
        return str(low) if low == high else f"{low} to {high}"

    @property
    def sweeps(self) -> tuple[Sweep, ...]:
        """Cells of each key as curves over the number of votes, or of labels."""
        return tuple(Sweep(key, cells) for key, cells in self.by_key().items())


def _remarks_of(scores: Scores) -> tuple[str, ...]:
    """Say what a reader has to know before using the numbers."""
    cells = scores.at_most_votes().values()
    n_missing = sum(cell.n_missing for cell in cells)
    remarks = [*scores.about_data]
    for single, plural, count in (
        ("item has votes but no label", "items have votes but no label", scores.n_unlabelled),
        ("label has no votes", "labels have no votes", scores.n_without_votes),
        ("vote is missing", "votes are missing", n_missing),
    ):
        if count:
            which = f"{count} {plural} and are" if count > 1 else f"1 {single} and is"
            remarks.append(f"{which} left out")
    for cell in cells:
        remarks += _about_votes(cell)
    remarks += [f"{' '.join(key)}: not evaluated: {reason}" for key, reason in scores.skipped]
    if scores.n_sharing:
        remarks.append(
            f"{scores.n_sharing} items share a prompt with another, and the labels have no "
            "column group: intervals and tests take them for independent and may be too "
            "narrow; a column group with the prompt's id keeps them together"
        )
    for cell in cells:
        remarks += _constant(cell)
        if cell.comparison.new_items is not None:
            remarks += [*_against(cell), *_beaten(cell), *_beside_raters(cell)]
    return tuple(remarks)


def _about_votes(cell: Cell) -> Iterator[str]:
    """Say which items of a cell have fewer votes or decisions than were asked for."""
    where = _where(cell)
    if cell.n_empty:
        is_graded = not cell.comparison.scale.mirrored
        yield (
            f"{where}{cell.n_empty} items have only missing votes, and are left out"
            if is_graded
            else f"{where}{cell.n_empty} of {cell.comparison.n_items} items have only "
            "missing votes, and are decided without votes"
        )
    if cell.n_undecided:
        items = "item has" if cell.n_undecided == 1 else "items have"
        yield (
            f"{where}{cell.n_undecided} {items} no decision of some method (its prompt shows "
            "them as examples, or an answer is missing) and count for none"
        )
    if cell.n_asked != cell.n_votes and cell.n_votes is not None:
        yield f"{where}no item has {cell.n_asked} votes; all {cell.n_votes} were used"


def _where(cell: Cell) -> str:
    return f"{' '.join(cell.key)}: " if cell.key else ""


def _against(cell: Cell) -> Iterator[str]:
    """Say so where majority vote picks the wrong side more often than the right one."""
    compared = cell.comparison
    if compared.baseline is None or not compared.scale.mirrored:
        return
    matrices = compared.methods[compared.baseline].matrices.sum(axis=0)
    times = matrices.sum() / compared.n_items  # how often an item was decided
    right = (matrices[0, 0] + matrices[-1, -1]) / times
    wrong = (matrices[0, -1] + matrices[-1, 0]) / times
    if wrong - right > 2 * np.sqrt(right + wrong):  # two standard errors of a fair coin
        yield (
            f"{_where(cell)}majority vote picks the other side than the label for {wrong:.0f} "
            f"items and the same for {right:.0f}: the votes are against the labels. Check first "
            "that A and B are the same responses in votes and labels"
        )


def _beaten(cell: Cell) -> Iterator[str]:
    """Name the methods that do not beat majority vote, or the best constant, on held-out items."""
    compared, where = cell.comparison, _where(cell)
    methods = [
        method for place, method in enumerate(compared.methods) if place != compared.baseline
    ]
    if compared.calibrated is not None:  # others are there to be compared with
        methods = [compared.methods[compared.calibrated]]
    constant, error = compared.best_constant
    if compared.baseline is not None:
        majority = compared.methods[compared.baseline]
        name = "majority vote" if compared.scale.mirrored else majority.name
        behind = [
            method for method in methods if method.mae_interval.mean >= majority.mae_interval.mean
        ]
        if behind:
            yield (
                f"{where}{_not_beating(behind)} {name} (MAE "
                f"{majority.mae_interval.mean:.3f}) on held-out items: with "
                f"{compared.n_calibration:.0f} labels to learn from, label more items or use {name}"
            )
        if compared.scale.mirrored or compared.calibrated is None:
            methods.append(majority)
    if compared.label_names[constant] == "tie" and _always_ties(cell) and cell.fitted is not None:
        methods = [method for method in methods if method.name != cell.fitted.name]  # said above
    behind = [method for method in methods if method.mae_interval.mean >= error]
    if behind:
        yield (
            f"{where}{_not_beating(behind)} always answering "
            f"{compared.label_names[constant]} (MAE {error:.3f}) on held-out items: these votes "
            "say too little; try more votes an item, another prompt or another judge"
        )


def _beside_raters(cell: Cell) -> Iterator[str]:
    """Say whether the written model is as close to a rater as another rater is."""
    compared = cell.comparison
    raters = None if compared.new_items is None else compared.new_items.raters
    if raters is None:
        return
    place = compared.calibrated or 0
    name = compared.methods[place].name
    own, people = raters.interval(place), raters.interval(len(compared.methods))
    less = raters.difference(place, len(compared.methods))
    verdict = "about as close to a rater as another rater is"
    if less.high < 0 or less.low > 0:
        verdict = f"{'closer' if less.high < 0 else 'less close'} to a rater than another rater is"
    yield (
        f"{_where(cell)}on {len(raters.groups)} items of several raters {name} is {verdict}: it is "
        f"off by {own.mean:.3f} on average, another rater by {people.mean:.3f}; difference "
        f"{less.mean:z.3f}, 95% interval {less.low:z.3f} to {less.high:z.3f}; Krippendorff's "
        f"alpha of the raters is {raters.alpha:.2f}"
    )


def _not_beating(methods: Sequence[MethodScores]) -> str:
    names = ", ".join(f"{method.name} (MAE {method.mae_interval.mean:.3f})" for method in methods)
    return f"{names} {'does' if len(methods) == 1 else 'do'} not beat"


def _always_ties(cell: Cell) -> bool:
    """Whether the model that is fitted to all labels calls every item a tie."""
    if cell.fitted is None or not cell.comparison.scale.mirrored:
        return False
    fitted: Any = cell.fitted.calibration
    return (
        fitted is not None and bool(fitted.max_votes) and fitted.model.always_ties(fitted.max_votes)
    )


def _constant(cell: Cell) -> Iterator[str]:
    """Say so where the model that is fitted to all labels calls everything a tie."""
    calibration: Any = None if cell.fitted is None else cell.fitted.calibration
    if cell.fitted is None or calibration is None:
        return
    where, compared = _where(cell), cell.comparison
    scores = next(method for method in compared.methods if method.name == cell.fitted.name)
    if _always_ties(cell):
        yield (
            f"{where}fitted to all {calibration.n_labels} labels, the model calls every item with "
            f"up to {calibration.max_votes} votes a tie, whatever the votes: here this judge adds "
            "nothing to a constant answer. Always answering tie has MAE "
            f"{1 - compared.gold_tie_share:.3f}; the scored models, each calibrated on "
            f"{compared.n_calibration:.0f} labels, have {scores.mae_interval.mean:.3f}"
        )


@readable
@dataclass(frozen=True)
class Line:
    """Scores of one method in one cell, or averaged over several.

    Attributes
    ----------
    key : tuple of str
        Values of the columns that votes are grouped by.
    n_votes : int or None
        Votes per item; None for all.
    method : str
    mae, accuracy : Interval
        Means over splits with 95% intervals.
    n_splits : int
    cell : Cell or None
        Where the scores are from; None in an average.
    rank, accuracy_rank : int or None
        Cluster of the method, 1 the best; None where nothing was tested, as in an average.
    tied : bool or None
        Whether its MAE cannot be told from the best one; None where nothing was tested.
    mae_less_majority : Interval or None
        Its MAE less that of majority vote (of grades, of their mode), with a 95% interval for new
        items; None of majority vote itself, and where nothing was cross-fitted.
    kappa, bias : Interval or None
        Of grades, the quadratic-weighted kappa, and the mean of predicted less gold grades.
    """

    key: tuple[str, ...]
    n_votes: int | None
    method: str
    mae: Interval
    accuracy: Interval
    n_splits: int
    cell: Cell | None = None
    rank: int | None = None
    accuracy_rank: int | None = None
    tied: bool | None = None
    mae_less_majority: Interval | None = None
    kappa: Interval | None = None
    bias: Interval | None = None

    @property
    def n_items(self) -> int | None:
        """Labelled items; None in an average."""
        return None if self.cell is None else self.cell.comparison.n_items

    def as_dict(self, by: Sequence[str]) -> dict[str, Any]:
        """Plain values by name, with the columns that votes are grouped by first."""
        names = ["n_votes", "method", "mae", "accuracy"]
        names[1:1] = [] if self.cell is None else ["n_items"]
        names += [] if self.rank is None else ["rank", "accuracy_rank", "tied"]
        if self.cell is not None and self.cell.comparison.new_items is not None:
            names += ["n_calibration"]
        more = ("mae_less_majority", "kappa", "bias")
        names += [name for name in more if getattr(self, name) is not None]
        return record(dict(zip(by, self.key, strict=False)), self.fields(*names))

    def fields(self, *names: str) -> dict[str, Any]:
        """Return some of the values by name; a score is a mean and the ends of its interval."""
        sources = (self,) if self.cell is None else (self, self.cell, self.cell.comparison)
        fields: dict[str, Any] = {}
        for name in names:
            value = next(getattr(source, name) for source in sources if hasattr(source, name))
            fields |= spread(name, value) if isinstance(value, Interval) else {name: value}
        return fields


def spread(name: str, interval: Interval | None) -> dict[str, object]:
    """Fields of a record for a mean and its interval."""
    mean, low, high = (None, None, None) if interval is None else interval
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def record(where: Mapping[str, str | None], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the columns that votes are grouped by, and then a result's own."""
    for column in where.keys() & fields:
        raise InputError(f"column {column!r} has the name of a field of the results; rename it")
    return {**where, **fields}


def name_of_average(names: Container[str]) -> str:
    """What an average is called beside parts of these names."""
    name = "average"
    while name in names:
        name += " of all"
    return name


def lines(scores: Scores) -> list[Line]:
    """One line per cell and method."""
    return [line for cell in scores.cells for line in lines_of(cell)]


def lines_of(cell: Cell) -> list[Line]:
    """One line per method of a cell."""
    compared = cell.comparison
    more: list[dict[str, Any]] = [{} for _ in compared.methods]
    if compared.tested is not None:
        by_mae, by_accuracy = compared.mae_ranking, compared.accuracy_ranking
        for number, of_method in enumerate(more):
            of_method["rank"] = int(by_mae.ranks[number])
            of_method["accuracy_rank"] = int(by_accuracy.ranks[number])
            of_method["tied"] = bool(by_mae.tied[number])
    if not compared.scale.mirrored:
        for method, of_method in zip(compared.methods, more, strict=True):
            of_method |= {score: method.interval(score) for score in _OF_GRADES}
    if compared.new_items is not None and (baseline := compared.baseline) is not None:
        for number, of_method in enumerate(more):
            if number != baseline:
                less = compared.new_items.difference(number, baseline)
                of_method["mae_less_majority"] = less
    return [
        Line(
            cell.key,
            cell.n_votes,
            method.name,
            method.mae_interval,
            method.accuracy_interval,
            compared.n_splits,
            cell,
            **of_method,
        )
        for method, of_method in zip(compared.methods, more, strict=True)
    ]


def averages(scores: Scores) -> list[Line]:
    """Mean over cells by number of votes and method; none where there is one cell each."""
    budgets = list(dict.fromkeys(cell.n_votes for cell in scores.cells))
    if len(scores.cells) == len(budgets):
        return []
    name = name_of_average({value for cell in scores.cells for value in cell.key[:1]})
    key = (name, *("" for _ in scores.by[1:]))
    averaged = []
    for budget in budgets:
        cells = [cell for cell in scores.cells if cell.n_votes == budget]
        if len(cells) == len(scores.by_key()):  # a mean over fewer would look comparable
            averaged += average(cells, key)
    return averaged


def average(cells: Sequence[Cell], key: tuple[str, ...]) -> list[Line]:
    """Average each method over cells, split by split.

    Cells count alike, whatever their number of items.
    """
    averaged = []
    for place, of_cells in enumerate(zip(*map(lines_of, cells), strict=True)):
        first, methods = of_cells[0], [cell.comparison.methods[place] for cell in cells]
        less, scores = None, _SCORES if first.kappa is None else (*_SCORES, *_OF_GRADES)
        if methods[0].of_new_items:
            means = [_over_cells([getattr(line, score) for line in of_cells]) for score in scores]
            if first.mae_less_majority is not None:
                less = _over_cells([line.mae_less_majority for line in of_cells])
        else:
            means = [
                mean_interval(np.mean([getattr(method, score) for method in methods], axis=0))
                for score in scores
            ]
        of_scores: dict[str, Any] = dict(zip(scores, means, strict=True))
        line = Line(key, first.n_votes, first.method, n_splits=first.n_splits, **of_scores)
        averaged.append(replace(line, mae_less_majority=less))
    return averaged


def _over_cells(intervals: Sequence[Any]) -> Interval:
    """Average intervals. Cells may share items: no smaller one holds whatever they share."""
    return Interval(*np.mean(intervals, axis=0).tolist())
