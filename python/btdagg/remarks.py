"""Remarks on data and results: every sentence, its code and its values.

Three are worded by what they are about: the prior, the strength of votes, a comparison of it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ParamSpec, Self

from btdagg._util.wording import counted, percent

_Arguments = ParamSpec("_Arguments")

# Arguments that a remark advises, and the options of commands that are the same.
_AS_OPTIONS = {
    'population="finite"': "--set population=finite",
    "n_votes=": "-n ",
    'words={"1": "A", "0": "tie"}': "--set words.1=A --set words.0=tie",
}


class Remark(str):
    """A sentence about data or a result; a str, which programs can tell by its code.

    Attributes
    ----------
    code : str
        What the remark is about, such as ``"unequal-groups"``.
    values : dict of str to object
        The names and numbers in the sentence.
    """

    code: str
    values: dict[str, Any]

    def __new__(cls, text: str, code: str = "", values: Mapping[str, Any] | None = None) -> Self:
        """Make a remark of its sentence, code and values."""
        made = super().__new__(cls, text)
        made.code, made.values = code, dict(values or {})
        return made

    def within(self, part: str) -> Remark:
        """Return the remark on a part, such as a task, that is named first; itself if unnamed."""
        return Remark(f"{part}: {self}", self.code, self.values) if part else self

    @property
    def in_options(self) -> str:
        """The sentence with options of commands in place of arguments."""
        text = str(self)
        for argument, option in _AS_OPTIONS.items():
            text = text.replace(argument, option)
        return text


def code_of(text: str) -> str:
    """Return the code of a remark; nothing of another text."""
    return text.code if isinstance(text, Remark) else ""


def as_remarks(texts: Iterable[str]) -> tuple[Remark, ...]:
    """Return texts as remarks; those that are not yet have no code."""
    return tuple(text if isinstance(text, Remark) else Remark(text) for text in texts)


def remark(sentence: Callable[_Arguments, str]) -> Callable[_Arguments, Remark]:
    """Make a function return its sentence as a remark, whose code is the function's name."""
    code, signature = sentence.__name__.replace("_", "-"), inspect.signature(sentence)

    @functools.wraps(sentence)
    def remarked(*args: _Arguments.args, **values: _Arguments.kwargs) -> Remark:
        given = signature.bind(*args, **values)
        given.apply_defaults()
        return Remark(sentence(*args, **values), code, given.arguments)

    return remarked


# Votes and labels


@remark
def guessed_numbers(what: str = "votes") -> str:
    return (
        f"{what} are 0 and 1 alone, read as tie and A; 0 may as well mean B, or a fail. "
        'words={"1": "A", "0": "tie"} states this reading'
    )


@remark
def one_sided() -> str:
    return (
        "no label, and no vote on the labelled items, is for B: if 0 and 1 mean fail and pass, "
        "state the scale pass/fail for votes and labels"
    )


_READING = (
    "words that mean A or B count alike in both orders, words that mean first or second are turned "
    "round in order BA; let the words mean the other two, or swap the orders"
)


@remark
def order_not_turned(agreement: Mapping[str, float]) -> str:
    """`agreement` with labels by order, of the good order first."""
    shares = " and ".join(f"{share:.0%} in order {order}" for order, share in agreement.items())
    return (
        f"votes pick the side of the label for {shares}: the votes of one order seem not to be "
        f"turned round; {_READING}"
    )


@remark
def orders_contradict(correlation: float, n_items: int) -> str:
    return (
        f"votes on an item contradict each other in orders AB and BA (correlation {correlation:.2f}"
        f" over {n_items} items): the votes of one order are not turned round, or the judge goes "
        f"by position; {_READING}"
    )


@remark
def people_on_another_scale(votes: str, labels: str) -> str:
    return (
        f"votes are {votes} and labels {labels}: agreement with people needs one scale; "
        "btdagg evaluate compares decisions on the scale of the labels"
    )


@remark
def raters_disagree(n_disputed: int, n_labelled: int, treatment: str) -> str:
    """`treatment` of the items: drop, mean, median or majority."""
    texts = {
        "drop": "they are left out, so results are about items on which people agree",
        "mean": "each counts as the mean of its raters",
        "median": "each gets the median of its raters (of two medians, the one nearer to the "
        "middle of the scale; if only the mean is known, the grade nearest to it)",
        "majority": "each gets the label of most of its raters, or a tie if several labels have "
        "the most votes (if only the mean is known, the label nearest to it)",
    }
    return f"raters disagree on {n_disputed} of {n_labelled} labelled items: {texts[treatment]}"


@remark
def unreadable_items(n_items: int) -> str:
    return f"{n_items} items without a readable vote are left out"


@remark
def tasks_without_labels(tasks: Sequence[str]) -> str:
    noun = "task" if len(tasks) == 1 else "tasks"
    return f"{noun} {', '.join(tasks)} left out: no item there has a label"


@remark
def reviewed_labels(n_labels: int, source: str) -> str:
    return (
        f"{n_labels} labels of {source} are left out: their items were not drawn at random "
        "(probability 0)"
    )


@remark
def repeated_ratings(n_rows: int, source: str) -> str:
    return f"{n_rows} rows of {source} repeat a rater's label of an item and are left out"


@remark
def labels_without_votes(n_labels: int, source: str) -> str:
    return f"{n_labels} labels of {source} belong to items without votes"


@remark
def similar_ids(n_items: int, difference: str, first: str, second: str) -> str:
    return f"ids of {n_items} items differ only in {difference}, such as {first!a} and {second!a}"


@remark
def items_without_group(n_items: int) -> str:
    return (
        f"{n_items} items have no group and count as groups of their own; to give them one, add "
        "them to the labels with a group and an empty label"
    )


@remark
def other_values(column: str, values: Sequence[str], texts: tuple[str, str]) -> str:
    """`texts` list the `values` of the votes and those that the model was fitted for."""
    return f"{column} is {texts[0]}, but the model was fitted for {texts[1]}"


@remark
def other_margin(margin: float, fitted: float) -> str:
    return f"a full win is a margin of {margin:.4g}, but the model was fitted with {fitted:.4g}"


@remark
def other_strength(kind: str, fitted: str) -> str:
    """`kind` is by what votes count, and `fitted` by what the model's did."""
    if fitted == "none":
        return f"votes have a {kind}, but the model was fitted without vote strength"
    strength = "without their strength" if kind == "none" else f"by their {kind}"
    return f"votes count {strength}, but the model was fitted to their {fitted}"


# Fits


@remark
def few_labels(n_labels: int, fewest: int) -> str:
    return f"{counted(n_labels, 'label')}: too few to calibrate on; {fewest} are the fewest"


@remark
def useless_judge(probability: float) -> str:
    return (
        "this judge is not shown to be better than a constant label: by these labels the "
        f"probability that its votes say nothing is {probability:.0%}"
    )


@remark
def always_ties(max_votes: int) -> str:
    return (
        f"the fitted model calls every item with up to {max_votes} votes a tie, whatever the "
        "votes: the judge is no better than a constant answer"
    )


@remark
def always_one_grade(grade: float) -> str:
    return (
        f"the fitted model says {grade} whatever the votes: the judge is no better than a constant "
        "answer"
    )


@remark
def no_convergence(fit: str = "the fit") -> str:
    return f"{fit} did not converge"


@remark
def at_bounds(bounds: Mapping[str, float]) -> str:
    return ", ".join(f"{name} is at its bound {value:.4g}" for name, value in bounds.items())


@remark
def one_label(label: float, numbers: str = "beta, nu and gamma") -> str:
    advice = "; label more items" if numbers.startswith("beta") else ""
    return f"every label is {label}: {numbers} cannot be identified{advice}"


@remark
def no_votes() -> str:
    return "no item has votes: beta and gamma cannot be identified and are left neutral"


@remark
def no_margins(beta: float) -> str:
    return (
        "every item has as many votes for A as for B: beta cannot be identified and stays at "
        f"{beta:g}"
    )


@remark
def one_share_of_ties(gamma: float | None) -> str:
    """`gamma` is None where it compensates for nu."""
    fate = "compensates for it" if gamma is None else f"stays at {gamma:g}"
    return f"all items have the same share of ties, so gamma cannot be separated from nu and {fate}"


@remark
def unused_grades(grades: str, is_only: bool, has_prior: bool) -> str:
    """`grades` that no label uses; with `is_only` the only one that labels use."""
    hint = "the thresholds of grades that no label uses rest on the prior"
    if not has_prior:
        hint = 'the thresholds of grades that no label uses cannot be fitted; pass prior="weak"'
    return f"{'every' if is_only else 'no'} label is {grades}: {hint}"


@remark
def one_mean_vote() -> str:
    return "all labelled items have the same mean vote, so beta cannot be identified"


@remark
def falling_grades() -> str:
    return "higher votes do not go with higher grades: beta is at its lower bound"


@remark
def separated_grades() -> str:
    return (
        'the votes separate the labels perfectly, so beta has no finite estimate; pass prior="weak"'
    )


@remark
def silent_judge(judge: str) -> str:
    return f"judge {judge!r} has no votes on the labelled items and is ignored"


@remark
def unfit_neighbours(n_labels: int, share: float) -> str:
    return (
        f"the neighbours do not fit these {n_labels} labels: they have {share:.0%} of the weight, "
        "the weak prior the rest; are they from a similar task and judge?"
    )


@remark
def constant_covariate(name: str, has_values: bool) -> str:
    what = "is the same in every item" if has_values else "has no values"
    return f"covariate {name} {what} and is left out"


@remark
def missing_covariate(name: str, n_items: int, is_centred: bool) -> str:
    as_what = "the mean" if is_centred else "0"
    return f"covariate {name} is missing for {n_items} items and counts as {as_what}"


# Populations and samples


@remark
def assumed_draw(has_strata: bool) -> str:
    design = "independently of each other, each with its probability"
    if has_strata:
        design = "with a fixed number from each stratum"
    return f"units are assumed to be drawn {design}"


@remark
def other_sizes() -> str:
    return (
        "sizes of groups vary much: labelled items count by the share of all items that are of "
        "groups of like size"
    )


@remark
def unseen_sizes(share: float) -> str:
    return (
        f"{percent(share)} of all items are of groups of a size that no labelled group has: the "
        "interval allows for any labels of these"
    )


@remark
def unlike_sizes(mean: float, mean_of_all: float) -> str:
    return (
        f"labelled items come from groups of {mean:.3g} items on average, all items from groups of "
        f"{mean_of_all:.3g}. If you labelled one item per group, add a column probability: each "
        "item's probability of being drawn"
    )


@remark
def few_groups(fewest: int) -> str:
    return f"labels of fewer than {fewest} groups: intervals have not been tested with so few"


@remark
def unlike_votes(pvalue: float, means: Mapping[str, tuple[str, str]]) -> str:
    """`means` of labelled items and of the others, as text, by what they are of."""
    compared = ", ".join(f"{name} {mean} against {other}" for name, (mean, other) in means.items())
    return (
        f"labelled items differ from the others (p = {pvalue:.1g}): {compared}; intervals are "
        "valid for a random sample, or with the probabilities of a weighted one"
    )


@remark
def other_numbers_of_votes(mean: float, others: float) -> str:
    return (
        f"labelled items have {mean:.3g} votes on average and the others {others:.3g}, so the "
        "judge errs differently on them; use the same number of votes for all items"
    )


@remark
def no_variation(quantities: Sequence[str]) -> str:
    return (
        f"all labelled groups have the same mean of {', '.join(quantities)}, so the variation "
        "between groups is unknown; the interval counts each group as one label"
    )


@remark
def few_unlabelled(n_items: int) -> str:
    return f"{n_items or 'no'} items are without a label, too few for the votes to add anything"


@remark
def other_population(quantity: str, population: str, estimate: str) -> str:
    """`estimate` of a quantity, with its interval, as text."""
    return f"{quantity} of {population}: {estimate}"


@remark
def other_bounds(quantity: str, population: str, value: float, bounds: tuple[float, float]) -> str:
    low, high = bounds
    return (
        f"{quantity} on {population}: {value:+z.3f}, one-sided bounds {low:+z.3f} and {high:+z.3f}"
    )


@remark
def sum_of_parts(quantity: str, mean: float, parts: float) -> str:
    return (
        f"{quantity} is {mean:.3f} over all items but {parts:.3f} as the mean of the parts, since "
        "each part is estimated separately, from its own labels"
    )


# Questions


@remark
def undecided_labels(n_items: int, source: str) -> str:
    return (
        f"{n_items} items of {source} were drawn but not labelled; if people skipped hard items, "
        "the labels are no longer a random sample"
    )


@remark
def unknown_draw(source: str) -> str:
    return (
        f"{source} does not say how its items were drawn; they are assumed to be a simple random "
        "sample, such as btdagg choose draws"
    )


@remark
def weighted_estimate(quantity: str) -> str:
    return f"the {quantity} is weighted by the column probability of the labels"


@remark
def grades_read(points: str) -> str:
    return f"votes are grades: {points}"


@remark
def strength_read(text: str) -> str:
    """`text` says by what strength votes count."""
    return text


@remark
def pooled_values(column: str, values: Sequence[str], verb: str) -> str:
    """`verb` says what the command does to one value that is chosen."""
    more = ", ..." if len(values) > 5 else ""
    return (
        f"pooling {len(values)} values of {column} ({', '.join(values[:5])}{more}); "
        f"--filter {column}=... {verb} one"
    )


@remark
def missing_votes(n_votes: int) -> str:
    return f"{n_votes} votes are missing and not counted"


@remark
def same_labels() -> str:
    return (
        "the model was calibrated on the same labels that certify it (cross-fitted by group), so "
        "the confidence is approximate, which a model from other labels avoids"
    )


@remark
def unequal_groups(n_groups: float, fewest: int) -> str:
    return (
        f"groups of unequal size count as only {n_groups:.3g} groups, and a certificate needs "
        f"{fewest}: label items of more groups"
    )


@remark
def cross_fitted_errors() -> str:
    return "errors are cross-fitted: each item is decided by a model calibrated without its group"


@remark
def shared_items(n_items: int, count_in_both: bool) -> str:
    fate = "they count in the first, and show whether the judge changed"
    return (
        f"{n_items:,} items are in both periods; "
        f"{'their labels count in both' if count_in_both else fate}"
    )


@remark
def few_shared_groups(n_groups: int, fewest: int) -> str:
    return (
        f"items judged in both periods are of {n_groups} groups; {fewest} would show whether the "
        "judge changed"
    )


@remark
def unlabelled_systems(systems: str) -> str:
    return (
        f"fewer than 2 labels for {systems}: the strength depends on the judge, whose bias was "
        "measured on other systems only"
    )


@remark
def no_interval(systems: str) -> str:
    return f"no interval for the win rate of {systems}: it needs labels of two groups"


@remark
def no_ties() -> str:
    return "there are no ties: strengths are those of the Bradley-Terry model"


@remark
def votes_add_nothing() -> str:
    return "too few items are without a label for the votes to add anything"


@remark
def unknown_covariate(n_items: int, names: Sequence[str]) -> str:
    return f"{n_items:,} labelled items without {', '.join(names)} are left out"


@remark
def rare_covariate(name: str) -> str:
    return f"few labelled items differ in {name}; its interval has not been tested with so few"


@remark
def one_group_of_system(system: str) -> str:
    return f"{system} has labels of fewer than two groups, and is left out"


# Evaluations


@remark
def unmatched(number: int, single: str, plural: str) -> str:
    """`single` and `plural` name what is left out, with its verb."""
    which = f"{number} {plural} and are" if number > 1 else f"1 {single} and is"
    return f"{which} left out"


@remark
def not_evaluated(part: str, reason: str) -> str:
    return f"{part}: not evaluated: {reason}"


@remark
def shared_prompts(n_items: int) -> str:
    return (
        f"{n_items} items share a prompt with another item, but neither votes nor labels have a "
        "column group. Intervals treat them as independent and may be too narrow; add a column "
        "group with the prompt's id"
    )


@remark
def mixed_average(column: str, numbers: Sequence[int], n_common: int) -> str:
    listed = ", ".join(f"{number:,}" for number in numbers)
    return (
        f"values of {column} have different labelled items ({listed}; {n_common:,} in common), so "
        "the average mixes differences between them with differences between items"
    )


@remark
def items_without_votes(n_empty: int, n_items: int, are_decided: bool) -> str:
    if are_decided:
        return (
            f"{n_empty} of {n_items} items have only missing votes, and are decided without votes"
        )
    return f"{n_empty} items have only missing votes, and are left out"


@remark
def undecided_items(n_items: int) -> str:
    items = "item has" if n_items == 1 else "items have"
    return (
        f"{n_items} {items} no decision by some method (its prompt shows them as examples, or an "
        "answer is missing) and are left out for all methods"
    )


@remark
def few_items(n_items: int, fewest: int) -> str:
    return f"{counted(n_items, 'labelled item')}: too few to evaluate with; {fewest} are the fewest"


@remark
def always_tying_fit(
    n_labels: int, max_votes: int, constant: float, n_scored: float, mae: float
) -> str:
    """`constant` is the MAE of always answering tie, `mae` that of the scored models."""
    return (
        f"fitted to all {n_labels} labels, the model calls every item with up to {max_votes} votes "
        "a tie, whatever the votes: here this judge is no better than a constant answer. Always "
        f"answering tie has MAE {constant:.3f}; the scored models, each calibrated on "
        f"{n_scored:.0f} labels, have {mae:.3f}"
    )


@remark
def sides_disagree(n_opposite: float, n_same: float) -> str:
    return (
        f"majority vote picks the opposite side of the label for {n_opposite:.0f} items and the "
        f"same side for {n_same:.0f}: votes and labels disagree. Check first that A and B are the "
        "same responses in votes and labels"
    )


def _not_beating(errors: Mapping[str, float]) -> str:
    names = ", ".join(f"{name} (MAE {mae:.3f})" for name, mae in errors.items())
    return f"{names} {'does' if len(errors) == 1 else 'do'} not beat"


@remark
def beaten_by_plain(
    errors: Mapping[str, float], plain: str, mae: float, n_labels: float, advice: str
) -> str:
    """`errors` of methods by name, and `mae` of the plain vote."""
    return (
        f"{_not_beating(errors)} {plain} (MAE {mae:.3f}) on held-out items, fitted to "
        f"{n_labels:.0f} labels: {advice}"
    )


@remark
def beaten_by_constant(errors: Mapping[str, float], constant: str, mae: float) -> str:
    """`errors` of methods by name, and `mae` of always giving one label."""
    return (
        f"{_not_beating(errors)} always answering {constant} (MAE {mae:.3f}) on held-out items: "
        "this judge is not shown to be better than a constant label; try more votes per item, "
        "another prompt or another judge"
    )


@remark
def not_shown_better(
    constant: str,
    constant_mae: float,
    method: str,
    mae: float,
    difference: tuple[float, float, float],
) -> str:
    """`difference` of the errors with the ends of its interval."""
    mean, low, high = difference
    return (
        f"this judge is not shown to be better than a constant label: always answering {constant} "
        f"has MAE {constant_mae:.3f}, {method} {mae:.3f} on held-out items, difference "
        f"{mean:z.3f}, 95% interval {low:z.3f} to {high:z.3f}; label more items to tell"
    )


@remark
def left_out_items(n_items: int, reason: str) -> str:
    return f"{n_items} {reason} and are left out"


@remark
def other_difference(population: str, mean: float, low: float, high: float) -> str:
    return f"difference {population}: {mean:+z.3f} ({low:+z.3f} to {high:+z.3f})"


@remark
def unlabelled_rows(n_rows: int, source: str) -> str:
    return f"{n_rows} rows of {source} have no label and are left out"


@remark
def strength_compared(text: str) -> str:
    """`text` compares whole votes with their strength."""
    return text


@remark
def larger_sets(n_labels: float, asked: int) -> str:
    return (
        f"groups stay together, so models are calibrated on {n_labels:.0f} labels on average, not "
        f"on {asked}"
    )


@remark
def used_prior(text: str) -> str:
    """`text` says which priors methods have."""
    return text


@remark
def beside_raters(
    n_items: int,
    method: str,
    mae: float,
    rater_mae: float,
    difference: tuple[float, float, float],
    alpha: float | None,
) -> str:
    """`difference` of the errors of a method and another rater, and Krippendorff's `alpha`."""
    mean, low, high = difference
    verdict = "about as close to a rater as raters are to each other"
    if high < 0 or low > 0:
        nearness = "closer" if high < 0 else "less close"
        verdict = f"{nearness} to a rater than raters are to each other"
    return (
        f"on {n_items} items with several raters {method} is {verdict}: it is off by {mae:.3f} on "
        f"average, another rater by {rater_mae:.3f}; difference {mean:z.3f}, 95% interval "
        f"{low:z.3f} to {high:z.3f}; Krippendorff's alpha of the raters is {alpha:.2f}"
    )


# Looks at a sequential gate


@remark
def waiting_labels(n_labels: int) -> str:
    return (
        f"{counted(n_labels, 'label')} not counted yet: other items of their groups have no label; "
        "a group counts when all its items have one"
    )


@remark
def late_labels(n_labels: int) -> str:
    return f"{counted(n_labels, 'label')} of groups that were counted before: left out"


@remark
def cut_groups(n_groups: int, largest: int) -> str:
    return (
        f"{counted(n_groups, 'group')} larger than any at the first look: {largest} of its items "
        "count, chosen by chance"
    )


@remark
def unpaired_items(n_items: int) -> str:
    return f"{counted(n_items, 'item')} of groups without a response of both: left out"


@remark
def votes_not_used() -> str:
    return (
        "at every look bounds for new items are of labels alone; those of these items "
        '(population="finite") use the votes too'
    )


# Differences


@remark
def alike_differences(mean: float) -> str:
    return (
        f"all differences are {mean:g}: that others would be so as well is not known; with the "
        "ends that values can have (in Python ends=) the interval allows for it"
    )


@remark
def few_differ(n_differ: int, n_units: int) -> str:
    return f"the two differ on {n_differ} of {n_units:,} items or groups: all rests on these"


@remark
def items_to_tell(n_items: int, every_look: str) -> str:
    return f"about {n_items:,} labelled items would show such a difference; {every_look}"


@remark
def incomplete_items(n_items: int) -> str:
    return f"left out: {counted(n_items, 'item')} without a value of each"


@remark
def averaged_rows(n_rows: int) -> str:
    return f"{counted(n_rows, 'row')} repeat an item of a system, whose value is their mean"
