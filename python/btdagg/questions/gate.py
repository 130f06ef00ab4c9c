"""Whether a candidate is not worse than a baseline by more than a margin: pairs, or grades."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btdagg import remarks
from btdagg._util.errors import expect, forbid
from btdagg._util.lazy import pl
from btdagg._util.validation import as_number
from btdagg._util.wording import fixed
from btdagg.inference.intervals import number_to_tell, of_every_look
from btdagg.inference.population import items_of
from btdagg.inference.quantities import NET, said_of
from btdagg.questions.estimate import estimate
from btdagg.questions.looks import look, require_two_of
from btdagg.remarks import Remark
from btdagg.result import Entry, Result, ResultTable, Row
from btdagg.votes.by_id import as_tables
from btdagg.votes.items import Items
from btdagg.votes.join import require_labels
from btdagg.votes.scale import scales_of
from btdagg.votes.votes import Votes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike

    from btdagg.inference.sample import Population
    from btdagg.votes.labels import Labels

Outcome = Literal["not worse", "worse", "inconclusive"]

_SEQUENTIAL = "a sequential gate (btdagg gate --sequential FILE)"
_OF_ITEMS = ("groups", "probabilities", "units", "strata", "scale", "label_scale")


@dataclass(frozen=True)
class NonInferiority(Result):
    """Whether a candidate is not worse than a baseline by more than a margin, and why.

    Attributes
    ----------
    candidate, baseline : object
        Names of the two.
    quantity : str
        The compared quantity.
    estimate : float
        Net win rate of the candidate against the baseline: the share of labels for it less that
        for the other. For grades, the quantity of the candidate less that of the baseline.
    lower, upper : float
        One-sided bounds: each holds by itself at `level`.
    margin : float
        `lower` has to be above its negative.
    level : float
    n_items, n_labels : int
        All items of the two, and those with a label.
    labels_wanted : int or None
        About how many labels in all would give an answer if the estimate stays; None if there is
        one, or if labelling all items would not be enough.
    items_wanted : int or None
        About how many labelled items would, where labels of all present items would not.
    remarks : tuple of Remark
    population : "new" or "finite"
        Whether bounds are for new items, or of these.
    n_looks : int or None
        Number of looks so far, at all of which together the bounds hold; None if they are for one.
    """

    candidate: Any
    baseline: Any
    quantity: str
    estimate: float
    lower: float
    upper: float
    margin: float
    level: float
    n_items: int
    n_labels: int
    labels_wanted: int | None
    remarks: tuple[Remark, ...]
    population: Population = "new"
    items_wanted: int | None = None
    n_looks: int | None = None

    @property
    def outcome(self) -> Outcome:
        """``not worse`` (than by the margin), ``worse`` or ``inconclusive``."""
        if self.lower > -self.margin:
            return "not worse"
        return "worse" if self.upper < -self.margin else "inconclusive"

    @property
    def passed(self) -> bool:
        """Whether the candidate is not worse: what is inconclusive has not passed."""
        return self.outcome == "not worse"

    def values(self) -> dict[str, Any]:
        """Return the outcome and the numbers, without those that there are not."""
        values = super().values() | {"outcome": self.outcome}
        said = [self.sentence(), *(f"remark: {text}" for text in self.remarks)]
        values["message"] = "; ".join(said)
        return {name: value for name, value in values.items() if value is not None}

    def sentence(self) -> str:
        """Return the outcome, its numbers and what more labels would tell."""
        lower, upper = f"{self.lower:+z.3f}", f"{self.upper:+z.3f}"
        both = f"bounds {lower} and {upper}"
        verdict, bound = {
            "not worse": (f"{self.candidate} is not worse", f"lower bound {lower}"),
            "worse": (f"{self.candidate} is worse", f"upper bound {upper}"),
        }.get(self.outcome, (f"cannot tell whether {self.candidate} is worse", both))
        baseline = "" if self.quantity == NET else f" minus that of {self.baseline}"
        where = said_of(self.population, self.n_items)
        every = "" if self.n_looks is None else " at every look"
        sentence = (
            f"{verdict} than {self.baseline} by more than {self.margin:g}: "
            f"{self.quantity} of {self.candidate}{baseline} on {where} {self.estimate:+z.3f}, "
            f"one-sided {100 * self.level:.4g}% {bound}{every} "
            f"({self.n_labels:,} of {self.n_items:,} items labelled)"
        )
        if self.labels_wanted is not None:
            more = self.labels_wanted - self.n_labels
            needed = "label is" if more == 1 else "labels are"
            sentence += f"; about {more:,} more {needed} needed, {self.labels_wanted:,} in all"
            sentence += "" if self.n_looks else f"; {of_every_look(self.level, _SEQUENTIAL)}"
        elif self.n_looks is not None and self.items_wanted is None:
            pass  # too early to say, or nothing speaks against the margin yet
        elif self.outcome == "inconclusive":
            sentence += "; labels on all items would not be enough; add items"
            if self.items_wanted is not None:
                sentence += f": it would take about {self.items_wanted:,} labelled items in all"
        return sentence

    def table(self) -> ResultTable:
        """Return the gate as a row."""
        name = f"{self.candidate} against {self.baseline}"
        return gates_table([{"gate": name, **self.as_dict()}])

    def to_frame(self) -> pl.DataFrame:
        """Return the outcome, the message and the numbers as one row."""
        return self.as_row()


def not_worse(
    counts: Any,
    labels: Any = None,
    *,
    candidate: Any,
    baseline: Any,
    margin: float = 0.02,
    level: float = 0.95,
    quantity: str | None = None,
    by: Any = None,
    panel: str | None = None,
    than: tuple[Votes, Labels] | None = None,
    covariates: Any = None,
    n_votes: int | None = None,
    sequential: str | PathLike[str] | None = None,
    **options: Any,
) -> NonInferiority:
    """Test whether a candidate is not worse than a baseline by more than a margin.

    It is not worse if the lower bound of its net win rate is above ``-margin``. At a level of 0.95,
    at most one in twenty of the candidates that are worse by the margin or more passes, whatever
    the judge is worth.

    Parameters
    ----------
    counts, labels, **options
        As `btdagg.estimate` takes them, `population` among them.
    candidate, baseline : object
        For tables of pairs the names of A and B (``"A"`` and ``"B"`` without names), or, with
        columns `system_a` and `system_b`, two systems, on either side. Of arrays of pairs ``"A"``
        and ``"B"``. Of grades values of `by`.
    margin : float
        The most by which the share of labels for the baseline may exceed the candidate's share (for
        grades, the baseline's quantity the candidate's); at least 0. At 0 it has to be better.
    level : float
        Confidence level of each bound alone; above 0.5 and below 1.
    quantity : str, optional
        For grades, one that `btdagg.estimate` has, such as ``"share >= 4"``; by default the
        ``"mean grade"``, of two grades the ``"pass rate"``.
    by : (N,) array or str, optional
        For grades, the system or run of each item; of tables a column, ``"system"`` unless given.
        Items that share a group pair the two.
    panel : str, optional
        Of tables of pairs, the column of the judges of a panel.
    than : tuple of Votes and Labels, optional
        The baseline's votes and labels; `counts` and `labels` are then the candidate's tables.
        Items with the same name or group are compared as pairs.
    covariates : optional
        As `btdagg.estimate` takes them; standings are of all items, not of the two systems' alone.
    n_votes : int, optional
        Of tables, use only the first so many votes of each item.
    sequential : path, optional
        File with what was counted in earlier looks, which is made at the first one. Bounds then
        hold at all looks together, however many there are, and labels may be added until there is
        an answer; see `btdagg.questions.looks.look`.

    Notes
    -----
    The bounds are the ends of the two-sided interval at ``2 * level - 1``, of grades that of
    `Estimates.difference`. `labels_wanted` is `Estimates.labels_to_tell` of the margin.

    References
    ----------
    Non-inferiority by one-sided intervals: Piaggio et al. (2012), the CONSORT statement.

    Examples
    --------
    >>> counts = [[0, 2, 6], [1, 6, 1], [7, 1, 0], [6, 1, 1], [5, 1, 2], [6, 2, 0], [7, 1, 0]] * 9
    >>> labels = [1, 0, -1, -1, None, None, None] * 9
    >>> not_worse(counts, labels, candidate="B", baseline="A", margin=0.1).outcome
    'not worse'
    """
    margin, level = as_number(margin, "margin"), as_number(level, "level", above=0.5, below=1)
    options["level"], pair = 2 * level - 1, (candidate, baseline)
    item_options = {name: options.pop(name, None) for name in _OF_ITEMS}
    item_options |= {"model": options.get("model"), "n_votes": n_votes}
    items = _items_of(counts, labels, by, than, pair, panel, covariates, **item_options)
    if "by" in items.facts:  # remarks are on the items of the two
        items = items.with_remarks(items.remarks_of(np.isin(items.facts["by"], pair)))
    if sequential is not None:
        seen = look(items, sequential, pair, margin, level, quantity, options)
        population = options.get("population", "new")
        return NonInferiority(
            *pair, margin=margin, level=level, population=population, **seen._asdict()
        )
    estimates = estimate(items, **options)
    require_two_of(pair, [*estimates.comparable])
    quantity = estimates.main if quantity is None else quantity
    difference = estimates.compared(quantity, pair)
    most = difference.ends[1]
    expect(0 <= margin < most, "margin", margin, f"a number from 0 to below {most:g}")
    n_items, n_labels = difference.n_items, difference.n_labels
    value, low, high = difference.interval(estimates.level)
    wanted = None
    items_wanted = None
    if low <= -margin <= high:
        wanted = estimates.labels_to_tell(-margin, quantity, pair)
        if wanted is None:
            half = estimates.width_with(n_items, quantity, pair) / 2
            items_wanted = number_to_tell(n_items, half, abs(value + margin))
    if wanted is not None:  # a forecast: those that there are do not tell
        wanted = min(max(wanted, n_labels + 1), n_items)
    about = estimates.remarks_on_differences
    if (other_estimates := estimates.other_population) is not None:
        other = other_estimates.compared(quantity, pair).interval(estimates.level)
        where = said_of(other_estimates.population, n_items)
        about += (remarks.other_bounds(quantity, where, other.mean, (other.low, other.high)),)
    numbers: Any = margin, level, n_items, n_labels, wanted, about
    numbers = *numbers, estimates.population, items_wanted
    return NonInferiority(*pair, quantity, value, low, high, *numbers)


def _items_of(
    counts: Any,
    labels: Any,
    by: Any,
    than: Any,
    pair: tuple[Any, Any],
    panel: Any,
    covariates: Any,
    **how: Any,
) -> Items:
    if not isinstance(counts, Items):
        counts, labels = as_tables(counts, labels, how["scale"], how["label_scale"])
    scale, _ = scales_of(counts, labels, how["scale"], how["label_scale"])
    if than is not None:
        expect(by is None, "by", by, "None with argument 'than'")
        for _, gold in (runs := ((counts, labels), than)):
            require_labels(gold)
        forbid(
            scale.mirrored,
            "argument 'than': votes are on pairs, expected grades of single responses",
            "than",
        )
        run, before = (items_of(*tables, **how) for tables in runs)
        expected = "none with argument 'than': two runs have two judges' covariates"
        expect(covariates is None, "covariates", covariates, expected)
        return run.than(before, *pair)
    if not scale.mirrored:
        by = "system" if by is None and isinstance(counts, Votes) else by
    else:
        expect(by is None, "by", by, "None, since the sides of pairs have names")
    if panel is not None and isinstance(counts, Votes):
        n_votes = how["n_votes"]
        items = counts.items(labels, panel=panel, by=by, n_votes=n_votes)
    else:
        items = items_of(counts, labels, by=by, **how)
    if not scale.mirrored and "by" not in items.facts and items.systems is not None:
        items = items.with_columns_of({"by": "system"})
    if covariates is not None:
        is_table = not isinstance(counts, Items)
        items = items.with_covariates(covariates, model=how["model"], is_table=is_table)
    return items.of_pair(*pair)


def gate_properties(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a gate found as properties of JUnit: none empty, and the message for all text."""
    flat = {name: "; ".join(of) if isinstance(of, list) else of for name, of in gate.items()}
    return {name: of for name, of in flat.items() if of != "" and name != "sentence"}


def gates_table(gates: Sequence[Mapping[str, Any]]) -> ResultTable:
    """Tabulate release gates: what `NonInferiority.as_dict` returns of each, and its name."""

    def rows() -> Iterator[Row]:
        for gate in gates:
            cells: dict[str, str | Entry] = {"outcome": Entry(gate["outcome"], True)}
            if "estimate" in gate:
                numbers = ("estimate", "lower", "upper")
                cells |= {name: fixed(gate[name], signed=True) for name in numbers}
                cells |= {"margin": f"{gate['margin']:g}", "labels": f"{gate['n_labels']:,}"}
            yield Row((gate["gate"],), cells, [gate])

    quantities = {gate["quantity"] for gate in gates if "quantity" in gate}
    of = " or ".join(
        f"the {quantity} minus that of the baseline" for quantity in sorted(quantities)
    )
    if NET in quantities or not quantities:
        of = f"the {NET} of the candidate (wins minus losses)"
    note = (
        f"Estimate: {of}. Lower and upper are one-sided bounds. A gate passes if lower is above "
        "minus the margin."
    )
    columns = ("outcome", "estimate", "lower", "upper", "margin", "labels")
    return ResultTable.of_rows("gates", "Release gates", note, ("gate",), rows(), columns)
