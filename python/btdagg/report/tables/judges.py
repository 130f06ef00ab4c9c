"""Tables of judges: against human raters, by position, and by ties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from btdagg._core import InputError
from btdagg.evaluation.raters import LeaveOneOut
from btdagg.evaluation.summary import name_of_average, record, spread
from btdagg.report.table import Entry, PivotCell, ReportTable
from btdagg.report.tables.common import splits_of, where
from btdagg.report.wording import (
    MISSING,
    SPLITS_NOTE,
    fixed,
    key_of,
    not_evaluated,
    percent,
    percent_with_error,
    with_error,
)

if TYPE_CHECKING:
    from btdagg.evaluation import PositionalBias, RaterScores, TieRates

# Share of the votes of the other order below which a positional bias is worth a word of caution.
_EVEN = 0.5


def raters_table(
    found: LeaveOneOut | Mapping[int, LeaveOneOut], shared: Literal["tie", "drop"] = "tie"
) -> ReportTable:
    """Tabulate every rater against the others, and against a judge if there was one.

    Parameters
    ----------
    found : LeaveOneOut, or mapping of int to LeaveOneOut
        One, or one for each number of votes of the judge.
    shared : {"tie", "drop"}
        What was done with items on which labels share the most votes of the other raters.

    Raises
    ------
    InputError
        If the mapping is empty.

    References
    ----------
    The paper's table of the leave-one-out comparison by rater.
    """
    several = {None: found} if isinstance(found, LeaveOneOut) else dict(found.items())
    if not several:
        raise InputError("found is empty, want at least one")
    judged = any(scores.judge is not None for one in several.values() for scores in one.raters)
    rows: list[tuple[Entry, ...]] = []
    records: list[dict[str, object]] = []
    for n_votes, one in several.items():
        label = [] if n_votes is None else [str(n_votes)]
        for scores in one.raters:
            texts = map(Entry, (*label, str(scores.rater), str(scores.n_items)))
            rows.append((*texts, *_rater_entries(scores)))
            budget = {} if n_votes is None else {"n_votes": n_votes}
            records.append({**budget, **_rater_record(scores)})
        if judged:
            blank = (Entry(""),) * 3
            wins, by_mae = (
                Entry(f"{n}/{len(one.raters)}", bold=True) for n in (one.n_wins, one.n_wins_by_mae)
            )
            rows.append((*map(Entry, (*label, "wins", "")), *blank, wins, *blank, by_mae))
    header = ["rater", "items", "accuracy", "MAE"]
    rule = "it is a tie" if shared == "tie" else "the item is left out"
    note = f"Gold is the majority vote of the other raters; where labels share the most, {rule}."
    if judged:
        header[3:3] = beside = ["judge", "gain", "wins"]
        header += beside
        n_splits = [len(s.judge.mae) for o in several.values() for s in o.raters if s.judge]
        note += (
            f" Rater and judge are scored on the evaluation sets of {splits_of(n_splits)}, which "
            f"the judge is not calibrated on; {SPLITS_NOTE}. A gain above 0 is the judge's. Wins: "
            "the judge's mean is the better one."
        )
    labels = [] if None in several else ["votes"]
    return ReportTable(
        "raters",
        "Raters left out one by one",
        note + not_evaluated((str(r),) for one in several.values() for r, _ in one.skipped),
        (*labels, *header),
        tuple(rows),
        tuple(records),
        n_label_columns=len(labels) + 1,
    )


def _rater_entries(scores: RaterScores) -> tuple[Entry, ...]:
    judge = scores.judge
    if judge is None:
        return Entry(fixed(scores.accuracy)), Entry(fixed(scores.mae))
    entries: list[Entry] = []
    for human, own, gain, wins in (
        (judge.human_accuracy, judge.accuracy, judge.accuracy_gain, judge.wins),
        (judge.human_mae, judge.mae, judge.mae_gain, judge.wins_by_mae),
    ):
        means = fixed(float(human.mean())), fixed(float(own.mean()))
        entries += map(Entry, (*means, with_error(gain, signed=True)))
        entries.append(Entry("yes" if wins else "no", wins))
    return tuple(entries)


def _rater_record(scores: RaterScores) -> dict[str, object]:
    names = ("rater", "n_items", "n_alone", "n_shared", "n_without_votes", "accuracy", "mae")
    record: dict[str, object] = {name: getattr(scores, name) for name in names}
    judge = scores.judge
    if judge is not None:
        record |= {
            "human_accuracy_evaluated": float(judge.human_accuracy.mean()),
            "human_mae_evaluated": float(judge.human_mae.mean()),
            **spread("judge_accuracy", judge.judge.accuracy_interval),
            **spread("judge_mae", judge.judge.mae_interval),
            **spread("accuracy_gain", judge.accuracy_gain),
            **spread("mae_gain", judge.mae_gain),
            "wins": judge.wins,
            "wins_by_mae": judge.wins_by_mae,
            "n_splits": len(judge.mae),
        }
    return record


def positional_bias_table(
    found: Sequence[PositionalBias], by: Sequence[str] = ("judge",), setting: str = "setting"
) -> ReportTable:
    """Tabulate votes for the response that is shown first, for the second, and the bias.

    Parameters
    ----------
    found : sequence of PositionalBias
    by : sequence of str
        Names of the columns that were gone by.
    setting : str
        Name of the column that tells forced choice from ties allowed, if there was one.

    Raises
    ------
    InputError
        If there are none, or keys have another length than `by`.

    References
    ----------
    The paper's table of positional bias.
    """
    if not found:
        raise InputError("found is empty, want at least one")
    for one in found:
        if len(one.key) != len(by):
            raise InputError(f"by is {list(by)}, and a key has {len(one.key)}: {one.key}")
    with_setting = any(one.setting is not None for one in found)
    columns = (*by, *([setting] if with_setting else []))

    def cells() -> Iterator[PivotCell]:
        for place, one in enumerate(found):
            key = (*one.key, *([one.setting or MISSING] if with_setting else []))
            bias = percent_with_error(one.interval, signed=True)
            if one.interval is None and one.bias is not None:
                bias = percent(one.bias, signed=True)
            clear = one.interval is not None and not one.interval.low <= 0 <= one.interval.high
            names = ("first", "second", "tie", "n_missing", "n_ab", "n_ba", "n_items")
            fields = {name: getattr(one, name) for name in names}
            fields |= {**spread("bias", one.interval), "bias": one.bias}
            own = {setting: one.setting} if with_setting else {}
            for name in ("first", "second", "tie", "n_items"):
                column = "items" if name == "n_items" else name
                yield PivotCell(key or ("all",), column, f"{fields[name]:,}", place=place)
            whole = record({**where(by, one.key), **own}, fields)
            yield PivotCell(key or ("all",), "bias", bias, clear, whole, place)

    return ReportTable.pivot(
        "positional-bias",
        "Positional bias",
        "Votes for the response shown first, for the one shown second, and ties. Bias: (first - "
        "second) / (first + second), above 0 where the first is favoured; ± is half of its 95% "
        "interval over items. Bold: the interval does not hold 0." + _lopsided(found, setting),
        columns or ("votes",),
        cells(),
    )


def _lopsided(found: Sequence[PositionalBias], setting: str) -> str:
    """Say where the bias is mixed with how much better a response is, as the end of a note."""
    uneven = [one for one in found if min(one.n_ab, one.n_ba) < _EVEN * max(one.n_ab, one.n_ba)]
    if not uneven:
        return ""
    listed = "; ".join(
        f"{key_of((*one.key, *([] if one.setting is None else [f'{setting} {one.setting}'])))}: "
        f"{one.n_ab:,} with A first, {one.n_ba:,} with B first"
        for one in uneven
    )
    return (
        " Where most votes or all are of one order, the bias cannot be told from how much better "
        f"that response is ({listed})."
    )


def tie_rate_table(found: TieRates, rows: str = "judge", columns: str = "template") -> ReportTable:
    """Tabulate the share of ties by two columns, with averages.

    Parameters
    ----------
    found : TieRates
    rows, columns : str
        Names of the two columns.

    References
    ----------
    The paper's table of tie rates.
    """
    names = [f"{columns} {name}".strip() for name in found.column_names]
    average = name_of_average(found.row_names)

    def cells() -> Iterator[PivotCell]:
        for i, row in enumerate(found.row_names):
            for j, column in enumerate(found.column_names):
                rate = found.cells[i][j]
                counts = {
                    "ties": int(found.ties[i, j]),
                    "total": int(found.totals[i, j]),
                    "n_items": int(found.n_items[i, j]),
                    "n_missing": int(found.n_missing[i, j]),
                }
                whole = record({rows: row, columns: column}, {**counts, **spread("rate", rate)})
                yield PivotCell((row,), names[j], percent_with_error(rate), False, whole)
            yield PivotCell((row,), "average", percent_with_error(found.row_averages[i]))
        for name, rate in zip(names, found.column_averages, strict=True):
            yield PivotCell((average,), name, percent_with_error(rate))
        yield PivotCell((average,), "average", percent_with_error(found.overall))

    return ReportTable.pivot(
        "tie-rates",
        f"Tie rates by {rows} and {columns}",
        f"Share of {found.unit} that are ties; ± is half of the 95% interval, which goes by the "
        "number of items. Averages pool their cells.",
        (rows,),
        cells(),
    )
