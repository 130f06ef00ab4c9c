"""The table of decisions, by a model, a stopping rule or a certificate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg._core import InputError
from btdagg._util.errors import expect
from btdagg._util.lazy import pl
from btdagg._util.validation import columns_of
from btdagg.model.covariates import columns_for
from btdagg.votes.by_id import as_items, as_tables
from btdagg.votes.facts import Facts, facts_of
from btdagg.votes.items import Items
from btdagg.votes.provenance import warn_of
from btdagg.votes.standings import sources_of
from btdagg.votes.table import PLACE, counts_of
from btdagg.votes.votes import Votes, read_votes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from btdagg.questions.certify import Certificate
    from btdagg.votes.provenance import Provenance
    from btdagg.votes.scale import Scale

_UNLIKE = 0.01  # p-value below which votes are unlike those of a certificate


def decisions(
    items: Votes | Items | pl.DataFrame | ArrayLike,
    model: Any,
    *,
    certificate: Certificate | None = None,
    n_votes: int | None = None,
    probabilities: bool = True,
    refresh: bool = False,
    trust_unlike: bool = False,
) -> pl.DataFrame:
    """Decide the label of every item, and say how sure it is.

    Parameters
    ----------
    items : Votes, Items, data frame or array
        Tables of votes, counted the way the model's votes were; a table with `item` and columns of
        counts; or an (n, J) or (n, judges, J) array of counts.
    model : model, StoppingRule or Certificate
    certificate : Certificate, optional
        With a model or rule: its label is trusted where the certificate trusts the item and the
        certificate's model gives the same label.
    n_votes : int, optional
        For tables of votes: decide by the first `n_votes` votes of each item.
    probabilities : bool
        Whether to add the probabilities of the labels.
    refresh : bool
        Whether to take standings from these votes and not from the model; a warning says so.
    trust_unlike : bool
        Whether to trust labels even if the votes as a whole differ from those that were certified.

    Returns
    -------
    polars.DataFrame
        A row for each item: `item`, `label`, its counts, of grades their `mean`, and the label
        probabilities. A rule adds `settled`, whether it stops at these votes, and gives
        probabilities only for items with all votes; if it has a distribution of votes, it also adds
        `change_risk`, the probability that all votes would give another label. A certificate adds
        `trusted`. For grades, an item without a vote has no label.

    Warns
    -----
    ProvenanceWarning
        If the votes differ from those that the model was fitted to; or, by `Certificate.likeness`
        at the 1% level, from those certified (not tested for counts with a rule).

    Examples
    --------
    >>> from btdagg import DavidsonModel
    >>> model = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
    >>> decisions([[0, 1, 9], [5, 2, 5]], model).select("item", "label", "minus").rows()
    [(0, 1, 0), (1, 0, 5)]
    """
    # Asked by what they can do: importing rules and certificates takes as long as the decisions.
    if hasattr(model, "trusted"):
        certificate, model = model, model.model
    expected = "False without a certificate"
    expect(not trust_unlike or certificate is not None, "trust_unlike", trust_unlike, expected)
    rule = model if hasattr(model, "stops") else None
    fitted = model if rule is None else rule.model
    if not _has_counts(items, fitted.scale):
        items = as_tables(items, None, fitted.scale)[0]
    if isinstance(items, Votes) and fitted.provenance is not None:
        items = _as_fitted(items, fitted.provenance)
    every, counts, known = _counted(items, fitted, n_votes, refresh)
    every = every.with_row_index(PLACE)
    rows, has_label = every, fitted.scale.decidable(counts)
    if not has_label.all():
        without = counts[~has_label], _some(known, ~has_label)
        rows, counts, known = every.filter(has_label), counts[has_label], _some(known, has_label)
    if fitted.provenance is not None:
        # How strong votes are was said where they were read.
        origin = replace(fitted.provenance, strength="")
        of_votes = items if isinstance(items, Votes) else None
        by_judge = counts.reshape(-1, counts.shape[-1])
        options: Any = {"fewer": rule is None, "scale": fitted.scale}
        differences = origin.differences(by_judge, of_votes, **options)
        warn_of(differences)
        fitted = replace(fitted, provenance=None)
    if rule is not None and (beyond := counts.sum(axis=1) > rule.n).any():
        item = repr(rows["item"][int(beyond.argmax())])
        raise InputError(f"item {item} has more votes than the {rule.n} of the rule")
    by = fitted if rule is None else rule
    columns = decided_columns(by, counts, probabilities=probabilities, covariates=known)
    if certificate is not None:  # whose model may decide otherwise by labels of looks
        decider: Any = certificate.model
        decider = replace(decider, provenance=None)
        needed = [covariate.name for covariate in getattr(decider, "covariates", ())]
        how: Any = {"covariates": {n: (known or {})[n] for n in needed}} if needed else {}
        trusted = replace(certificate, model=decider).trusted(counts, **how)
        columns["trusted"] = trusted & (columns["label"] == decider.decide(counts, **how))
        if rule is None or isinstance(items, Votes):
            compared, which = _comparable(certificate, items, counts, has_label)
            groups = _groups_of(items, rows, has_label)
            groups = None if groups is None else groups[which]
            pvalue = certificate.likeness(compared[which], groups=groups)
            if pvalue is not None and pvalue < _UNLIKE:
                found = f"(p = {pvalue:.1g}, below {_UNLIKE})"
                answer = (
                    "labels are trusted all the same"
                    if trust_unlike
                    else "no label is trusted; to certify these votes, label some of their items"
                )
                warn_of([f"the votes differ from those that were certified {found}: {answer}"])
                columns["trusted"] &= trust_unlike
    decided = rows.with_columns(
        pl.Series(name, column, nan_to_null=rule is not None) for name, column in columns.items()
    )
    if rows.height < every.height:
        added = decided.select(PLACE, pl.exclude(every.columns))
        decided = every.join(added, on=PLACE, how="left", maintain_order="left")
        if rule is not None:  # which may stop before the first vote
            settled = rule.stops(without[0], covariates=without[1])
            label = rule.decide(without[0][settled], covariates=_some(without[1], settled))
            labels = pl.Series("label", label, dtype=decided["label"].dtype)
            rest = every.filter(~has_label).select(PLACE).filter(pl.Series(settled))
            decided = decided.update(rest.with_columns(labels, settled=True), on=PLACE)
    first = [name for name in ("item", "task", "label") if name in decided.columns]
    return decided.select(*first, pl.exclude(PLACE, *first))


def _as_fitted(votes: Votes, origin: Provenance) -> Votes:
    """Return votes with the strength of those that a model was fitted to; warn where it differs."""
    stated, is_fixed = votes.provenance, votes.are_counts or votes.is_chosen
    is_alike = (stated.strength, stated.full_margins) == (origin.strength, origin.full_margins)
    if origin.strength == "none" and not is_fixed:
        votes = votes.signs()
    elif origin.strength and not is_alike and not is_fixed:
        votes = read_votes(votes, **origin.how_to_read(votes))
        stated = votes.provenance
    warn_of(origin.other_strength(stated.strength, stated.full_margins))
    return votes


def _has_counts(items: Any, scale: Scale) -> bool:
    return isinstance(items, pl.DataFrame) and {"item", *scale.columns} <= {*items.columns}


def _comparable(
    certificate: Certificate, items: Any, counts: NDArray[Any], has_label: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    # Counts of as many votes of each item, of each judge, as all but a twentieth have, and which
    # items these are: items that were stopped early have votes that agree.
    number = np.rint(counts.sum(axis=-1)).astype(int).reshape(len(counts), -1).min(axis=1)
    every = np.ones(len(counts), dtype=np.bool_)
    if not isinstance(items, Votes) or items.are_counts or not len(counts):
        return counts, every
    fewest = max(int(np.quantile(number, 0.05, method="lower")), 2)
    if counts.sum(axis=-1).max() <= fewest:
        return counts, every
    some = items.items(n_votes=fewest, judges=getattr(certificate.model, "judges", ()))
    return np.asarray(some.by_judge[has_label]), number >= fewest


def _groups_of(items: Any, rows: pl.DataFrame, has_label: NDArray[np.bool_]) -> Any:
    if isinstance(items, Items):
        return None if items.group is None else items.group[has_label]
    if not isinstance(items, Votes) or "group" not in items.columns:
        return None
    group = pl.col("group").fill_null(pl.format(" {}", "item"))
    of_items = facts_of(items, rows.select("item"), ["group"])
    return of_items.select(group).to_series().to_numpy()


def _some(known: dict[str, Any] | None, rows: NDArray[np.bool_]) -> dict[str, Any] | None:
    return known and {name: values[rows] for name, values in known.items()}


def _counted(
    items: Any, fitted: Any, n_votes: int | None, refresh: bool
) -> tuple[pl.DataFrame, NDArray[Any], dict[str, Any] | None]:
    judges, names = fitted.judges, [*fitted.scale.columns]
    if _has_counts(items, fitted.scale):
        counts = counts_of(items, names)
        known = covariates_in(items.to_dict(), fitted, counts, "items")
        warn_of(unknown_in(known))
        return items, counts, known
    if isinstance(items, Votes | Items):
        fitted.scale.require_same(items.scale, "items")
    if isinstance(items, Votes):
        if not judges and not fitted.covariates:  # ids stay a column from file to file
            every = items.tally(n_votes)
            return every, counts_of(every, names), None
        items = items.items(judges=judges, n_votes=n_votes)
    counted = as_items(items, scale=fitted.scale)
    wanted = [covariate.name for covariate in fitted.covariates]
    if isinstance(items, Items) and not {*wanted} <= {*counted.covariates}:
        counted = counted.with_covariates(wanted, model=None if refresh else fitted)
        standings = [c.standings for c in fitted.covariates if c.name == "standing"]
        if refresh and standings:
            warn_of(['standings are computed from these votes, as standings="votes" says'])
        elif None in standings and counted.systems is not None:
            warn_of(["the model has no saved standings, so they are computed from these votes"])
    known = columns_for(fitted, counted)
    warn_of(unknown_in(known))
    counts = counted.of_judges(judges) if judges else counted.pooled
    keys = counted.id_frame
    columns = dict(zip(names, counted.pooled.T, strict=True))
    keys = keys.with_columns(pl.Series(name, column) for name, column in columns.items())
    return keys, counts, known


def covariates_in(
    columns: Mapping[str, Any], model: Any, counts: Any, source: str
) -> dict[str, NDArray[np.float64]] | None:
    """Return the covariates that a model needs (or None) from columns of rows decided alone."""
    # Each is the column of its name, or made of what `Items.with_covariates` makes it of.
    kept = {covariate.name: covariate.standings is not None for covariate in model.covariates}
    if not kept:
        return None
    known = columns_of({name: columns[name] for name in kept if name in columns}, len(counts))
    for name, is_kept in kept.items():
        sources = sources_of(name, model.scale, kept=is_kept)
        if not any({*needed} <= columns.keys() for needed in sources.values()):
            expected = f"{', or '.join(sources)}, a covariate of the model"
            raise InputError(f"{source}: expected {expected}", argument="covariates")
    table = None if known.keys() == kept.keys() else pl.DataFrame(dict(columns))
    items = Items(counts=counts, scale=model.scale, facts=Facts(label_rows=table)).known_by(known)
    return items.with_covariates([*kept], model=model).covariates


def unknown_in(known: Mapping[str, Any] | None) -> list[str]:
    """Say which covariates are missing, and of how many items."""
    missing = {name: int(np.isnan(values).sum()) for name, values in (known or {}).items()}
    said = "{} is missing for {} items and has no effect on them"
    return [said.format(name, n) for name, n in missing.items() if n]


def decided_columns(
    by: Any, counts: ArrayLike, *, probabilities: bool = True, covariates: Any = None
) -> dict[str, Any]:
    """Return columns of labels and of how sure they are, by a model or a rule: (n,) arrays."""
    # Of a rule probabilities are NaN without all votes, for which its model is, and the change risk
    # before a stop: there the rule knows only the risk after missing votes.
    how: Any = {} if covariates is None else {"covariates": covariates}
    columns: dict[str, Any] = {"label": by.decide(counts, **how)}
    is_rule = hasattr(by, "stops")
    model = by.model if is_rule else by
    if probabilities:
        if hasattr(model, "means"):
            columns["mean"] = model.means(counts)
        chances = model.predict_proba(counts, **how)
        if is_rule:
            chances[np.sum(counts, axis=1) < by.n] = np.nan
        names = (f"p_{name}" for name in model.label_names)
        columns |= dict(zip(names, chances.T, strict=True))
    if is_rule:
        columns["settled"] = by.stops(counts, **how)
        if by.votes is not None:
            risk = by.change_risk(counts)
            columns["change_risk"] = np.where(columns["settled"], risk, np.nan)
    return columns
