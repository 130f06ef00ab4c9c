"""Judges by themselves: against human raters, by the place of a response, and by their ties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from btdagg._core import InputError
from btdagg.evaluation.intervals import Interval, mean_interval
from btdagg.evaluation.raters import LeaveOneOut
from btdagg.evaluation.summary import name_of_average, record
from btdagg.report.table import Entry, ReportTable
from btdagg.report.tables.common import Record, plain, splits_of, spread, where
from btdagg.report.wording import (
    MISSING,
    SPLITS_NOTE,
    fixed,
    key_of,
    not_evaluated,
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
    records: list[Record] = []
    for n_votes, one in several.items():
        label = () if n_votes is None else (str(n_votes),)
        for scores in one.raters:
            cells = _against_judge(scores) if judged else _among_raters(scores)
            rows.append((*plain(*label, str(scores.rater), str(scores.n_items)), *cells))
            records.append(
                {**({} if n_votes is None else {"n_votes": n_votes}), **_rater_record(scores)}
            )
        if judged:
            total = len([scores for scores in one.raters if scores.judge is not None])
            wins = [Entry(f"{n}/{total}", bold=True) for n in (one.n_wins, one.n_wins_by_mae)]
            blank = plain(*[""] * 3)
            rows.append((*plain(*label, "wins", ""), *blank, wins[0], *blank, wins[1]))
    header: tuple[str, ...] = ("rater", "items", "accuracy", "MAE")
    rule = "it is a tie" if shared == "tie" else "the item is left out"
    note = f"Gold is the majority vote of the other raters; where labels share the most, {rule}."
    if judged:
        header = ("rater", "items", "accuracy", "judge", "gain", "wins", "MAE", "judge", "gain",
                  "wins")  # fmt: skip
        n_splits = [len(s.judge.mae) for o in several.values() for s in o.raters if s.judge]
        note += (
            f" Rater and judge are scored on the evaluation sets of {splits_of(n_splits)}, which "
            f"the judge is not calibrated on; {SPLITS_NOTE}. A gain above 0 is the judge's. Wins: "
            "the judge's mean is the better one."
        )
    skipped = not_evaluated((str(r),) for one in several.values() for r, _ in one.skipped)
    labels = () if None in several else ("votes",)
    return ReportTable(
        "raters",
        "Raters left out one by one",
        note + skipped,
        (*labels, *header),
        tuple(rows),
        tuple(records),
        n_label_columns=len(labels) + 1,
    )


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
    _same_keys(found, by)
    with_setting = any(one.setting is not None for one in found)
    columns = (*by, *([setting] if with_setting else []))
    rows: list[tuple[Entry, ...]] = []
    records: list[Record] = []
    for one in found:
        key = (*one.key, *([one.setting or MISSING] if with_setting else []))
        bias = percent_with_error(one.interval, signed=True)
        if one.interval is None and one.bias is not None:
            bias = fixed(100 * one.bias, 1, signed=True) + "%"
        clear = one.interval is not None and not one.interval.low <= 0 <= one.interval.high
        numbers = plain(*(f"{n:,}" for n in (one.first, one.second, one.tie, one.n_items)))
        rows.append((*plain(*(key or ("all",))), *numbers, Entry(bias, clear)))
        records.append(
            record(
                {**where(by, one.key), **({setting: one.setting} if with_setting else {})},
                {
                    "first": one.first,
                    "second": one.second,
                    "tie": one.tie,
                    "n_missing": one.n_missing,
                    "n_ab": one.n_ab,
                    "n_ba": one.n_ba,
                    "n_items": one.n_items,
                    "bias": one.bias,
                    "bias_low": None if one.interval is None else one.interval.low,
                    "bias_high": None if one.interval is None else one.interval.high,
                },
            )
        )
    return ReportTable(
        "positional-bias",
        "Positional bias",
        "Votes for the response shown first, for the one shown second, and ties. Bias: (first - "
        "second) / (first + second), above 0 where the first is favoured; ± is half of its 95% "
        "interval over items. Bold: the interval does not hold 0." + _lopsided(found, setting),
        (*(columns or ("votes",)), "first", "second", "tie", "items", "bias"),
        tuple(rows),
        tuple(records),
        n_label_columns=max(1, len(columns)),
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
    lines = [
        (name, (*cells, average))
        for name, cells, average in zip(
            found.row_names, found.cells, found.row_averages, strict=True
        )
    ]
    lines.append((name_of_average(found.row_names), (*found.column_averages, found.overall)))
    records = [
        record(
            {rows: row, columns: column},
            {
                "ties": int(found.ties[i, j]),
                "total": int(found.totals[i, j]),
                "n_items": int(found.n_items[i, j]),
                "n_missing": int(found.n_missing[i, j]),
                **spread("rate", found.cells[i][j]),
            },
        )
        for i, row in enumerate(found.row_names)
        for j, column in enumerate(found.column_names)
    ]
    names = (f"{columns} {name}".strip() for name in found.column_names)
    return ReportTable(
        "tie-rates",
        f"Tie rates by {rows} and {columns}",
        f"Share of {found.unit} that are ties; ± is half of the 95% interval, which goes by the "
        "number of items. Averages pool their cells.",
        (rows, *names, "average"),
        tuple((Entry(name), *(Entry(percent_with_error(cell)) for cell in cells))
              for name, cells in lines),
        tuple(records),
    )  # fmt: skip


def _among_raters(scores: RaterScores) -> tuple[Entry, ...]:
    return plain(fixed(scores.accuracy), fixed(scores.mae))


def _against_judge(scores: RaterScores) -> tuple[Entry, ...]:
    judge = scores.judge
    if judge is None:
        return plain(fixed(scores.accuracy), *[MISSING] * 3, fixed(scores.mae), *[MISSING] * 3)

    def side(human: Interval, own: Interval, gain: Interval, wins: bool) -> tuple[Entry, ...]:
        means = plain(fixed(human.mean), fixed(own.mean), with_error(gain, signed=True))
        return (*means, Entry("yes" if wins else "no", wins))

    return (
        *side(
            mean_interval(judge.human_accuracy),
            mean_interval(judge.accuracy),
            judge.accuracy_gain,
            judge.wins,
        ),
        *side(
            mean_interval(judge.human_mae),
            mean_interval(judge.mae),
            judge.mae_gain,
            judge.wins_by_mae,
        ),
    )


def _rater_record(scores: RaterScores) -> Record:
    record: Record = {
        "rater": scores.rater,
        "n_items": scores.n_items,
        "n_alone": scores.n_alone,
        "n_shared": scores.n_shared,
        "n_without_votes": scores.n_without_votes,
        "accuracy": scores.accuracy,
        "mae": scores.mae,
    }
    judge = scores.judge
    if judge is not None:
        record |= {
            "human_accuracy_evaluated": float(judge.human_accuracy.mean()),
            "human_mae_evaluated": float(judge.human_mae.mean()),
            **spread("judge_accuracy", mean_interval(judge.accuracy)),
            **spread("judge_mae", mean_interval(judge.mae)),
            **spread("accuracy_gain", judge.accuracy_gain),
            **spread("mae_gain", judge.mae_gain),
            "wins": judge.wins,
            "wins_by_mae": judge.wins_by_mae,
            "n_splits": len(judge.mae),
        }
    return record


def _same_keys(found: Sequence[PositionalBias], by: Sequence[str]) -> None:
    if not found:
        raise InputError("found is empty, want at least one")
    for one in found:
        if len(one.key) != len(by):
            raise InputError(f"by is {list(by)}, and there is a key of {len(one.key)}: {one.key}")
