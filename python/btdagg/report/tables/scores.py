"""Scores of methods: what to use, and how they do by task, votes and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal, TypeAlias

from btdagg.evaluation.scores import (
    average,
    averages,
    lines,
    lines_of,
    name_of_average,
    record,
    spread,
)
from btdagg.report.table import Entry, ReportTable, Row
from btdagg.report.wording import (
    LABEL_NAMES,
    MISSING,
    basis_of_scores,
    fixed,
    not_evaluated,
    pvalue,
    swept_over,
    votes_of,
    with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation import Scores
    from btdagg.evaluation.cells import Cell
    from btdagg.evaluation.parts import Key
    from btdagg.evaluation.scores import Line

LOWER_IS_BETTER = "Mean absolute error, lower is better"


def where(by: Sequence[str], key: Sequence[str]) -> dict[str, str]:
    """Values of the columns that votes are grouped by, by their names."""
    return dict(zip(by, key, strict=True))


def best_lines(lines: Sequence[Line], score: Literal["mae", "accuracy"] = "mae") -> list[Line]:
    """Lines of the best mean; several where it is equal."""
    means = [getattr(line, score).mean for line in lines]
    best = min(means) if score == "mae" else max(means)
    return [line for line, mean in zip(lines, means, strict=True) if mean == best]


Score = Literal["mae", "accuracy"]


def score_tables(scores: Scores, *, ranked: bool = False) -> tuple[ReportTable, ReportTable]:
    """Tabulate MAE and pairwise accuracy: tasks in columns, methods in rows by judge and votes.

    Parameters
    ----------
    scores : Scores
        What goes in columns is the task, where votes are grouped by it, or else the first column
        that they are grouped by. Where there is more than one, their mean is the last column, split
        by split, all counting alike.
    ranked : bool
        Whether methods that the test ranks first are bold, instead of the best mean. In the last
        column it is always the best mean.

    Returns
    -------
    tuple of ReportTable
        ``mae`` and ``accuracy``.
    """
    return _score_table(scores, "mae", ranked), _score_table(scores, "accuracy", ranked)


def _score_table(scores: Scores, score: Score, ranked: bool) -> ReportTable:
    place = scores.by.index("task") if "task" in scores.by else 0

    def parted(key: Key) -> tuple[str, Key]:
        """Part a key into its column of the table and the rest."""
        return key[place] if key else "all items", (*key[:place], *key[place + 1 :])

    # Skipped keys have a column too, so that a reader sees what is missing.
    keys = [*(cell.key for cell in scores.cells), *(key for key, _ in scores.skipped)]
    columns = tuple(dict.fromkeys(parted(key)[0] for key in keys))
    means = (name_of_average(columns),) if len(columns) > 1 else ()
    blocks: dict[Key, dict[int | None, dict[str, Cell]]] = {}
    for cell in scores.cells:
        column, block = parted(cell.key)
        blocks.setdefault(block, {}).setdefault(cell.n_votes, {})[column] = cell
    name, others = parted(scores.by)

    def rows() -> Iterator[Row]:
        cells = ((b, n, of) for b, by_votes in blocks.items() for n, of in by_votes.items())
        for block, n_votes, of_block in cells:
            shown = {
                column: _shown(of_block[column], score, ranked)
                for column in columns
                if column in of_block
            }
            for mean in means:
                whole = len(of_block) == len(columns)
                shown[mean] = _averaged(list(of_block.values()), score, whole=whole)
            first = next(iter(of_block.values()))
            for number, method in enumerate(first.comparison.methods):
                own = {column: of_methods[number] for column, of_methods in shown.items()}
                records = [
                    record(
                        {**({name: column} if scores.by else {}), **where(others, block)},
                        {"n_votes": n_votes, "method": method.name, **fields},
                    )
                    for column, (_, fields) in own.items()
                ]
                cells_of_row = {column: entry for column, (entry, _) in own.items()}
                yield Row((*block, votes_of(n_votes), method.name), cells_of_row, records)

    better, best = ("lower", "lowest") if score == "mae" else ("higher", "highest")
    bold = f"the {best} mean"
    if ranked:
        beside = f" (in the column of averages, {bold})" if means else ""
        bold = (
            f"rank 1, which the test does not tell apart from the best, whatever the means{beside}"
        )
    over, error = basis_of_scores(scores)
    return ReportTable.of_rows(
        score,
        "Mean absolute error" if score == "mae" else "Pairwise accuracy",
        f"Means over {over}, {better} is better; {error}. Bold: {bold}."
        + not_evaluated(key for key, _ in scores.skipped),
        (*others, "votes", "method"),
        rows(),
        (*columns, *means),
    )


Shown: TypeAlias = tuple[Entry, dict[str, object]]
"""A mean with its interval, and what its record has besides the key."""


def _shown(cell: Cell, score: Score, ranked: bool) -> list[Shown]:
    """What is shown of each method of a cell."""
    lines, names = lines_of(cell), (score, "n_items", "n_calibration", "n_splits")
    if not ranked:
        best = best_lines(lines, score)
        return [_entry(line, score, best, names) for line in lines]
    ranks = [line.rank if score == "mae" else line.accuracy_rank for line in lines]
    best = [line for line, rank in zip(lines, ranks, strict=True) if rank == 1]
    shown = [_entry(line, score, best, names) for line in lines]
    return [(entry, {**of, "rank": rank}) for (entry, of), rank in zip(shown, ranks, strict=True)]


def _averaged(cells: Sequence[Cell], score: Score, *, whole: bool) -> list[Shown]:
    """What is shown of each method on average; nothing of a row that lacks some columns.

    Other rows have all columns, and a mean over fewer would look comparable with theirs.
    """
    lines = average(cells, ())
    if not whole:
        return [(Entry(MISSING), spread(score, None)) for _ in lines]
    best = best_lines(lines, score)
    return [_entry(line, score, best, (score,)) for line in lines]


def _entry(line: Line, score: Score, best: Sequence[Line], names: Sequence[str]) -> Shown:
    return Entry(with_error(getattr(line, score)), line in best), line.fields(*names)


def pvalue_table(scores: Scores) -> ReportTable:
    """Tabulate the p-values of every two methods in every cell, of MAE and of accuracy."""

    def rows() -> Iterator[Row]:
        for cell in scores.cells:
            compared, tau = cell.comparison, cell.comparison.test.tau
            names = [method.name for method in compared.methods]
            for pair in combinations(range(len(names)), 2):
                mae, accuracy = (
                    float(ranking.pvalues[pair])
                    for ranking in (compared.mae_ranking, compared.accuracy_ranking)
                )
                method, other = (names[place] for place in pair)
                fields = {
                    "n_votes": cell.n_votes,
                    "method": method,
                    "other": other,
                    "mae_pvalue": mae,
                    "accuracy_pvalue": accuracy,
                }
                yield Row(
                    (*cell.key, votes_of(cell.n_votes), method, other),
                    {
                        "p (MAE)": Entry(pvalue(mae), mae < tau),
                        "p (accuracy)": Entry(pvalue(accuracy), accuracy < tau),
                    },
                    [record(where(scores.by, cell.key), fields)],
                )

    return ReportTable.of_rows(
        "pvalues",
        "P-values of every two methods",
        f"{_sentence(scores.cells[0].comparison.test.words)} Bold: below that level.",
        (*scores.by, "votes", "method", "other"),
        rows(),
        ("p (MAE)", "p (accuracy)"),
    )


def sweep_table(scores: Scores) -> ReportTable:
    """Tabulate MAE by the number of votes, or of labels calibrated on; records have accuracy too.

    Parameters
    ----------
    scores : Scores
        From `evaluate` at several numbers of votes, or from `sweep_calibration`.
    """
    swept = swept_over(scores)
    names = (swept.field, "method", "mae", "accuracy", "n_items", "n_calibration", "n_evaluation")

    def rows() -> Iterator[Row]:
        for key, cells in scores.by_key().items():
            by_point = [lines_of(cell) for cell in cells]
            best = [best_lines(lines) if len(lines) > 1 else [] for lines in by_point]
            for of_method in zip(*by_point, strict=True):
                fields = [line.fields(*names, "n_splits") for line in of_method]
                entries = {
                    str(of[swept.field]): Entry(with_error(line.mae), line in lowest)
                    for of, line, lowest in zip(fields, of_method, best, strict=True)
                }
                records = [record(where(scores.by, key), of) for of in fields]
                yield Row((*key, of_method[0].method), entries, records)

    points = sorted({point for sweep in scores.sweeps for point in sweep.points})
    over, error = basis_of_scores(scores)
    return ReportTable.of_rows(
        f"sweep-{swept.name}",
        f"Error by the number of {swept.words}",
        f"{LOWER_IS_BETTER}: means over {over}; {error}.{swept.note} Bold: the lowest of the "
        "methods." + not_evaluated(key for key, _ in scores.skipped),
        (*scores.by, "method"),
        rows(),
        map(str, points),
    )


# A fall of the error that is worth twice the votes; and one that is not worth a word.
_WORTH, _NOTHING = 0.01, 0.003

# Half-width of an interval from which more labels are the first thing to get.
_WIDE = 0.05


def answers_table(scores: Scores) -> ReportTable:
    """Say in a row for each part what to use, how good it is, and what would improve it.

    A part is decided by the model that is written, the first that is calibrated, or by majority
    vote, whichever has the lower mean absolute error at the largest number of votes; by another
    method where that is significantly better; or by a constant answer where none is better.
    """

    def rows() -> Iterator[Row]:
        for key, cells in scores.by_key().items():
            cell = max(cells, key=lambda cell: cell.n_votes or 0)
            best = _best(cell)
            answer, error = cell.comparison.best_constant
            constant, beaten = LABEL_NAMES[answer], best.mae.mean >= error
            use = f"always {constant}" if beaten else best.method
            advice = _advice(cells, cell, best, beaten=beaten)
            less = None if beaten else best.mae_less_majority
            fields = {
                **best.fields("n_votes", "n_items", "n_calibration", "method", "mae", "accuracy"),
                "use": use,
                "constant": constant,
                "mae_of_constant": error,
                "advice": advice,
            }
            yield Row(
                key or ("all items",),
                {
                    "use": Entry(use, True),
                    "MAE": fixed(error) if beaten else with_error(best.mae),
                    "less majority": with_error(less, signed=True),
                    "labels": f"{cell.comparison.n_items:,}",
                    "votes": votes_of(cell.n_votes),
                    "what would improve it": advice,
                },
                [record(where(scores.by, key), fields)],
            )

    compared = scores.cells[0].comparison
    how = "on new items of a model calibrated on these labels"
    if compared.new_items is None:
        how = (
            f"of models calibrated on {scores.n_calibration} labels, over {compared.n_splits} "
            "random splits"
        )
    return ReportTable.of_rows(
        "answers",
        "What to use",
        f"Mean absolute error (MAE) {how}, at the largest number of votes. "
        f"{_sentence(basis_of_scores(scores).error)} Always A, tie or B: that constant answer is "
        "no worse. Less majority: the difference to the error of majority vote."
        + not_evaluated(key for key, _ in scores.skipped),
        scores.by or ("items",),
        rows(),
    )


def methods_table(scores: Scores) -> ReportTable:
    """Tabulate the error of each method by the number of votes, averaged over all parts."""
    shown = averages(scores) or lines(scores)
    parts = len(scores.by_key())

    def rows() -> Iterator[Row]:
        for method in dict.fromkeys(line.method for line in shown):
            own = [line for line in shown if line.method == method]
            cells = {}
            for line in own:
                rivals = [other.mae.mean for other in shown if other.n_votes == line.n_votes]
                is_lowest = line.mae.mean == min(rivals)
                cells[f"{votes_of(line.n_votes)} votes"] = Entry(with_error(line.mae), is_lowest)
            records = [line.fields("n_votes", "method", "mae", "accuracy") for line in own]
            yield Row((method,), cells, records)

    over = f", averaged over {parts} rows of the table above" if parts > 1 else ""
    return ReportTable.of_rows(
        "methods",
        "Error by method and number of votes",
        f"Mean absolute error{over}; lower is better. {_sentence(basis_of_scores(scores).error)} "
        "Bold: the lowest of the column.",
        ("method",),
        rows(),
    )


def _best(cell: Cell) -> Line:
    """The model that is written or majority vote; a peer only where it is surely better."""
    lines, compared = lines_of(cell), cell.comparison
    lowest = min(lines, key=lambda line: line.mae.mean)
    usable = [
        lines[place] for place in (compared.calibrated, compared.baseline) if place is not None
    ]
    if not usable:
        return lowest
    best = min(usable, key=lambda line: line.mae.mean)
    return best if best.tied is not False else lowest


def _advice(cells: Sequence[Cell], cell: Cell, best: Line, *, beaten: bool) -> str:
    """What would lower the error, or narrow its interval."""
    if beaten:
        return "another judge or prompt: these votes add nothing to a constant answer"
    advice = []
    fewer = [other for other in cells if (other.n_votes or 0) < (cell.n_votes or 0)]
    if fewer:
        before = max(fewer, key=lambda other: other.n_votes or 0)
        (same,) = (line for line in lines_of(before) if line.method == best.method)
        gain = same.mae.mean - best.mae.mean
        if gain >= _WORTH:
            advice.append(
                f"more votes: {cell.n_votes} instead of {before.n_votes} took {gain:.3f} off the "
                "error"
            )
        elif gain <= _NOTHING:
            advice.append(f"not more votes: {cell.n_votes} and {before.n_votes} err about alike")
    half = (best.mae.high - best.mae.low) / 2
    if cell.comparison.new_items is not None and half > _WIDE:
        advice.append(f"more labels: four times as many would halve the ±{half:.3f}")
    return "; ".join(advice) or MISSING


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
