"""Aggregators by their names on the command line, and the default ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from btdagg._core import InputError
from btdagg.methods.base import Aggregator
from btdagg.methods.davidson import Davidson, DavidsonMAE, Neighbours
from btdagg.methods.grades import methods_of_grades
from btdagg.methods.majority import (
    ConfidenceWeightedVote,
    Decided,
    MajorityVote,
    RoundedMedian,
    SoftSelfConsistency,
)
from btdagg.methods.mean_vote import Isotonic, Threshold
from btdagg.votes.scale import Scale

AGGREGATORS: Mapping[str, Callable[[], Aggregator]] = MappingProxyType(
    {
        "neighbours": Neighbours,
        "weak": partial(Davidson, prior="weak"),
        "davidson": Davidson,
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


def aggregators_or_usual(
    aggregators: Sequence[Aggregator] | None, scale: Scale | None = None
) -> tuple[Aggregator, ...]:
    """Return the given aggregators, else Davidson and majority vote; of grades their own."""
    usual = (Davidson(), MajorityVote()) if scale is None else methods_of_grades(scale)
    chosen = usual if aggregators is None else tuple(aggregators)
    if not chosen:
        raise InputError("aggregators is empty, expected at least one")
    return chosen


def by_name(names: Sequence[str]) -> tuple[Aggregator, ...]:
    """Return new aggregators by their names: keys of `AGGREGATORS`, in any case."""
    if isinstance(names, str):
        raise InputError(f"names is {names!r}, expected a sequence of names")
    keys = [name.strip().lower() for name in names]
    for place, key in enumerate(keys):
        if key not in AGGREGATORS:
            raise InputError(f"no method {key!r}, expected one of {', '.join(AGGREGATORS)}")
        if key in keys[:place]:
            raise InputError(f"method {key!r} is named twice")
    return tuple(AGGREGATORS[key]() for key in keys)
