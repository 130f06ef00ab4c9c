"""Aggregators by their names on the command line, and the default ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from types import MappingProxyType

from btdagg._core import InputError
from btdagg.methods.base import Aggregator
from btdagg.methods.davidson import Davidson, DavidsonMAE
from btdagg.methods.grades import CalibratedGrades, methods_of_grades
from btdagg.methods.majority import (
    ConfidenceWeightedVote,
    Decided,
    MajorityVote,
    RoundedMedian,
    SoftSelfConsistency,
)
from btdagg.methods.mean_vote import Isotonic, Threshold
from btdagg.votes.scale import PAIRS, Scale

AGGREGATORS: Mapping[str, Callable[[], Aggregator]] = MappingProxyType(
    {
        "neighbours": partial(Davidson, prior="neighbours"),
        "weak": partial(Davidson, prior="weak"),
        "davidson": partial(Davidson, prior=None),
        "majority": MajorityVote,
        "soft-sc-mean": partial(SoftSelfConsistency, "mean"),
        "soft-sc-min": partial(SoftSelfConsistency, "min"),
        "soft-sc-product": partial(SoftSelfConsistency, "product"),
        "ci-sc": ConfidenceWeightedVote,
        "median": RoundedMedian,
        "threshold": Threshold,
        "davidson-mae": DavidsonMAE,
        "isotonic": Isotonic,
        "greedy": partial(Decided, "greedy", "greedy decoding"),
        "few-shot": partial(Decided, "few_shot", "few-shot", some=True),
        "gsa": partial(Decided, "gsa"),
        "usc": partial(Decided, "usc"),
    }
)
"""Constructors of the aggregators, by name."""


PAPERS = ("davidson", "majority")
"""Names of what the paper compares: its fit, and majority vote."""


def aggregators_or_usual(
    aggregators: Sequence[Aggregator] | None, scale: Scale = PAIRS, label_scale: Scale = PAIRS
) -> tuple[Aggregator, ...]:
    """Return the given aggregators, else the usual: calibrated, and majority vote."""
    usual: tuple[Aggregator, ...] = (Davidson(), MajorityVote())
    if not scale.mirrored:
        usual = methods_of_grades(scale, label_scale)
    chosen = usual if aggregators is None else tuple(aggregators)
    if not chosen:
        raise InputError("aggregators is empty, expected at least one")
    return chosen


def names_of_methods(
    scale: Scale = PAIRS, label_scale: Scale | None = None
) -> Mapping[str, Callable[[], Aggregator]]:
    """Return constructors by name: `AGGREGATORS`, or those of grades."""
    if scale.mirrored:
        return AGGREGATORS
    label_scale = label_scale or scale
    methods = methods_of_grades(scale, label_scale)
    own = {method.name.replace(" ", "-"): method for method in methods}
    neighbours = CalibratedGrades(scale, label_scale, prior="neighbours")
    return {
        name: partial(copy, method) for name, method in {"neighbours": neighbours, **own}.items()
    }


def by_name(
    names: Sequence[str], scale: Scale = PAIRS, label_scale: Scale | None = None
) -> tuple[Aggregator, ...]:
    """Return new aggregators by their names, in any case; see `names_of_methods`."""
    if isinstance(names, str):
        raise InputError(f"names is {names!r}, expected a sequence of names")
    makers = names_of_methods(scale, label_scale)
    keys = [name.strip().lower() for name in names]
    for place, key in enumerate(keys):
        if key not in makers:
            raise InputError(f"no method {key!r}, expected one of {', '.join(makers)}")
        if key in keys[:place]:
            raise InputError(f"method {key!r} is named twice")
    return tuple(makers[key]() for key in keys)
