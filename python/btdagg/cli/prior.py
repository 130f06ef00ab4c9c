"""The prior that a command calibrates with: what `--prior` says, or what the files have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

import btdagg
from btdagg._util.errors import expect, forbid
from btdagg._util.wording import counted
from btdagg.remarks import Remark, used_prior
from btdagg.votes.scale import PAIRS, Scale

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from btdagg.cli.common import Data
    from btdagg.methods import Aggregator
    from btdagg.model.prior import Prior
    from btdagg.pipeline import Fitted
    from btdagg.votes.votes import Votes

PriorOption = Annotated[
    str | None,
    typer.Option(
        "--prior",
        metavar="weak|neighbours|none|FILE",
        help="Prior of the fit: the built-in one (weak), the other tasks and judges of the files "
        "(neighbours), a file of btdagg.Prior.save, or none, the paper's fit.",
        show_default="neighbours where there are any, else weak",
    ),
]

AnyPrior: TypeAlias = "Prior | Literal['weak'] | None"

# With fewer labels nothing in them protects from a prior that does not fit.
_FEW = 20


def chosen_prior(
    option: str | None,
    neighbours: Mapping[str, tuple[Any, Any]] | None,
    scale: Scale = PAIRS,
    label_scale: Scale = PAIRS,
) -> Any:
    """Return the prior of --prior, or of `neighbours` (of grades their models), or the weak one."""
    if option == "none":
        return None
    if option is None or (option == "neighbours" and neighbours):
        from btdagg.model.fit import prior_among

        return prior_among(neighbours or {}, scale, label_scale)
    if option == "weak":
        return "weak"
    forbid(
        option == "neighbours",
        "prior is neighbours, but the files have no other task or judge with labels; expected "
        "weak, none or a file",
        "prior",
    )
    expect(scale.mirrored, "prior", option, "weak, neighbours or none for grades")
    expect(Path(option).exists(), "prior", option, "weak, neighbours, none or a file")
    return btdagg.Prior.load(option)


def neighbours_of(data: Data, n_votes: int | None = None) -> dict[str, tuple[object, object]]:
    """Return counts and labels of the tasks and judges that are not among the votes used."""
    # Votes that differ in another column of origin, such as the template, are left out.
    from btdagg.evaluation.parts import labelled_parts

    by = [column for column in ("task", "judge") if column in data.votes.columns]
    if not by:
        return {}
    used_keys = {key for key, _ in data.votes.partition(by)}
    gold, everything = data.all_parts
    votes = votes_alike(everything, data.votes)
    parts = labelled_parts(votes, gold, by, n_votes)
    return {
        " ".join(key): (items.pooled, items.label)
        for key, items in parts.items()
        if key not in used_keys
    }


def votes_alike(everything: Votes, used: Votes) -> Votes:
    """Return the votes of all tasks and judges that agree with those used in other columns."""
    from btdagg.votes.provenance import COLUMNS

    used_values = {
        column: used.values(column).unique().drop_nulls().to_list()
        for column in COLUMNS
        if column in used.columns and column not in ("task", "judge")
    }
    values_of = {column: values for column, values in used_values.items() if values}
    return everything.filter(values_of) if values_of else everything


def methods_with_priors(
    methods: tuple[Aggregator, ...] | None,
    prior: str | None,
    n_parts: int,
    scale: Scale = PAIRS,
    label_scale: Scale = PAIRS,
    plain: str | None = None,
) -> tuple[Aggregator, ...]:
    """Put the model that the command writes, `calibrated`, and its variants before the methods."""
    # Named methods stay without a named prior; `plain` is the name of the paper's fit.
    from btdagg.methods import Calibrated, Threshold
    from btdagg.methods.registry import aggregators_or_usual

    written = prior or ("neighbours" if n_parts > 1 else "weak")
    names = {written: "calibrated"}
    if written not in ("weak", "none"):
        names["weak"] = "calibrated, weak prior"
    aggregators = aggregators_or_usual(methods, scale, label_scale)
    if methods is None and scale.mirrored:
        names.setdefault("none", plain or "calibrated, no prior")
        aggregators = (Threshold(scale=scale, label_scale=label_scale), *aggregators)

    def made(kind: str, name: str) -> Aggregator:
        model_prior = kind if kind == "neighbours" else chosen_prior(kind, None, scale)
        return Calibrated(name, model_prior, scale=scale, label_scale=label_scale)

    calibrated = {_kind(of): of for of in (made(*pair) for pair in names.items())}
    if methods is not None and prior in (None, "none"):
        return tuple(calibrated.get(_kind(of), of) for of in aggregators)
    used = {*calibrated, *names.values()}
    return (
        *calibrated.values(),
        *(of for of in aggregators if used.isdisjoint((_kind(of), of.name))),
    )


def _kind(method: Aggregator) -> tuple[Any, ...]:
    from btdagg.methods.base import needs_of

    prior = getattr(method, "prior", None)
    prior = prior if isinstance(prior, str) else prior and id(prior)
    return type(method), needs_of(method).time, prior


def words_of(*priors: AnyPrior | Literal["neighbours"], without: str = "is the paper's fit") -> str:
    """Say in a line what models are calibrated with, and what a fit without that is."""
    named: dict[object, str] = {
        "neighbours": "neighbours, which are the other tasks and judges",
        "weak": "weak, the built-in one",
    }
    whats = [
        f"{counted(len(prior.names), 'neighbour')} with {prior.n_labels} labels"
        if isinstance(prior, btdagg.Prior)
        else named[prior]
        for prior in priors
        if prior is not None
    ]
    if not whats:
        return "no prior: the paper's fit"
    return f"prior: {'; '.join(whats)}; --prior none {without}"


def priors_beside(methods: Sequence[Aggregator] | None) -> list[Remark]:
    """Say which priors the methods of an evaluation have, if any has one."""
    with_prior: list[Any] = [of for of in methods or () if getattr(of, "prior", None) is not None]
    if not with_prior:
        return []
    without = "is the paper's fit" if with_prior[0].scale.mirrored else "is flat"
    return [used_prior(words_of(*(of.prior for of in with_prior), without=without))]


def what_was_done(prior: Any, option: str | None, calibration: btdagg.Calibration) -> str:
    """Say what a model was calibrated with, and what a prior of few labels risks."""
    if isinstance(prior, list):
        share = calibration.shares["neighbours"]
        return (
            f"prior: {counted(len(prior), 'neighbour')}, with {share:.0%} of the weight given the "
            "labels; --prior none for a flat prior"
        )
    without = "is the paper's fit" if calibration.model.scale.mirrored else "is flat"
    text = words_of(prior, without=without)
    if not (isinstance(prior, btdagg.Prior) and calibration.n_labels):
        return text
    share = calibration.shares["neighbours"]
    text += f". Given the labels, the neighbours have {share:.0%} of the weight"
    if option not in (None, "neighbours") and calibration.n_labels < _FEW:
        text += (
            f". With fewer than {_FEW} labels, a prior from other tasks that does not fit can "
            "raise the mean absolute error by up to 0.08 unnoticed; --prior weak avoids this risk"
        )
    return text


def prior_of_tasks(option: str | None) -> Prior | Literal["weak", "neighbours"] | None:
    """Return the prior of a pipeline: the other tasks, unless told otherwise."""
    return "neighbours" if option in (None, "neighbours") else chosen_prior(option, None)


def priors_of(fitted: Mapping[str, Fitted], prior: Any) -> list[str]:
    """Say what the tasks' models were calibrated with, as `prior_of_tasks` returns it."""
    calibrations = (getattr(task.calibration, "shares", None) for task in fitted.values())
    shares = [of["neighbours"] for of in calibrations if of]
    if not shares:
        return []
    return [words_of("weak" if prior == "neighbours" and not any(shares) else prior)]
