"""Aggregators by their names on the command line, and the usual ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from btdagg._util.errors import InputError, expect, forbid
from btdagg._util.extensions import Registry, named_in_errors
from btdagg._util.validation import as_list
from btdagg.methods.base import Aggregator
from btdagg.methods.calibrated import Calibrated
from btdagg.methods.function import FunctionMethod
from btdagg.methods.majority import (
    Decided,
    MajorityVote,
    RoundedMean,
    RoundedMedian,
    SoftSelfConsistency,
)
from btdagg.methods.mean_vote import Constant, Isotonic, Threshold
from btdagg.votes.scale import PAIRS, PAIRWISE, POINTWISE, Scale


def _added(function: Callable[..., Any], name: str, where: str) -> Callable[..., Aggregator]:
    return partial(FunctionMethod, named_in_errors(function, where), name)


AGGREGATORS: Registry[Callable[..., Aggregator]] = Registry(
    "btdagg.methods",
    {
        "neighbours": partial(Calibrated, prior="neighbours"),
        "weak": Calibrated,
        "davidson": partial(Calibrated, prior=None),
        "majority": MajorityVote,
        "soft-sc-mean": partial(SoftSelfConsistency, "mean"),
        "soft-sc-min": partial(SoftSelfConsistency, "min"),
        "soft-sc-product": partial(SoftSelfConsistency, "product"),
        "ci-sc": partial(SoftSelfConsistency, "sum"),
        "median": RoundedMedian,
        "mean": RoundedMean,
        "threshold": Threshold,
        "isotonic": Isotonic,
        "constant": Constant,
        "greedy": partial(Decided, "greedy", "greedy decoding"),
        "few-shot": partial(Decided, "few_shot", "few-shot", some=True),
        "gsa": partial(Decided, "gsa"),
        "usc": partial(Decided, "usc"),
    },
    "counts, labels, new_counts, scale, label_scale",
    _added,
)
"""Constructors of the aggregators, by name, each of which takes a `scale` and a `label_scale`.

Installed packages add to them under the entry points ``btdagg.methods``.

One that makes no sense on a scale says why in an `InputError`.
"""

_USUAL = {
    PAIRWISE: ("weak", "majority"),
    POINTWISE: ("weak", "majority", "median", "mean", "isotonic", "constant"),
}


def aggregators_or_usual(
    aggregators: Sequence[Aggregator | str] | None,
    scale: Scale = PAIRS,
    label_scale: Scale | None = None,
) -> tuple[Aggregator, ...]:
    """Return the given aggregators, else the usual: calibrated, and plain ones beside it."""
    if aggregators is None:
        return by_name(_USUAL[scale.mode], scale, label_scale)
    given = as_list(aggregators, "aggregators", "a sequence of at least one")
    scales = scale, label_scale
    return tuple(as_aggregator(method, "aggregators", *scales) for method in given)


def as_aggregator(
    method: Any, argument: str, scale: Scale = PAIRS, label_scale: Scale | None = None
) -> Aggregator:
    """Return an aggregator, or make one by its name."""
    if isinstance(method, str):
        return by_name([method], scale, label_scale)[0]
    is_made = hasattr(method, "decide") and not isinstance(method, type)
    expect(is_made, argument, method, "an aggregator, as btdagg.methods has them, or its name")
    return method  # type: ignore[no-any-return]


def by_name(
    names: Sequence[str],
    scale: Scale = PAIRS,
    label_scale: Scale | None = None,
    own: Mapping[str, Callable[..., Aggregator]] = MappingProxyType({}),
) -> tuple[Aggregator, ...]:
    """Return new aggregators by their names, in any case: in `AGGREGATORS`, or a caller's `own`."""
    expect(not isinstance(names, str), "names", names, "a sequence of names")
    keys = [name.strip().lower() for name in names]
    for place, key in enumerate(keys):
        if key not in own and key not in AGGREGATORS:  # whose names look up packages
            listed = ", ".join((*AGGREGATORS, *own))
            raise InputError(f"no method {key!r}, expected one of {listed}")
        forbid(key in keys[:place], f"method {key!r} is named twice")
    made = (own[key] if key in own else AGGREGATORS[key] for key in keys)
    return tuple(make(scale=scale, label_scale=label_scale) for make in made)
