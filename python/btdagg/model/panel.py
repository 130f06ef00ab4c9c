"""A panel: one label from the votes of several judges of the same items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from btdagg import _core, remarks
from btdagg._util.errors import expect
from btdagg._util.files import FileFormat
from btdagg._util.folds import deal, places
from btdagg._util.readable import Readable
from btdagg._util.validation import (
    CountsItself,
    as_groups,
    as_integer,
    as_number,
    as_panel_counts,
    counts_alone,
    effective_weights,
    names_of_judges,
    same_length,
)
from btdagg.model.calibration_set import (
    Bounds,
    Calibration,
    calibration_set,
    label_weights,
    warning,
)
from btdagg.model.covariates import (
    Covariate,
    Design,
    KnownOfItems,
    offsets_of,
    weights_in_words,
)
from btdagg.model.davidson import DavidsonModel, FittedModel
from btdagg.model.labelled import FittedItems, fitted_items
from btdagg.model.tables import fitted_to, parameters_table
from btdagg.result import ResultTable
from btdagg.votes.by_id import as_tables
from btdagg.votes.items import Items
from btdagg.votes.join import join, with_task
from btdagg.votes.provenance import Provenance, warn_of
from btdagg.votes.scale import PAIRS, Scale, scales_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

PANEL_FILE = FileFormat("btdagg.panel", "panel")

# Standard deviations of judges' parameters around a centre; at 0 they are held there.
_SPREADS = (0.0, 0.1, 0.25, 0.5, 1.0, 3.0)

# Rate of the DRPS beside a prior, as in the core's posterior of one judge.
_RATE = 3.0

_N_FOLDS = 5
_STARTS = ((1.3, 1.5, 0.8), (2.0, 4.0, 2.0))


@dataclass(frozen=True)
class PanelModel(FittedModel, Readable):
    """Davidson model of the votes of several judges.

    A frozen value, as `DavidsonModel` is. `btdagg.calibrate_panel` fits it.

    Parameters
    ----------
    judges : tuple of str
        Their names, in the order of the columns of counts.
    beta, gamma : tuple of float
        Margin sensitivity, at least 0, and tie-count sensitivity of each judge.
    eta0 : float
        Tie baseline of all.
    alpha, kappa : float
        Smoothing constants of the features, above 0.
    unheard : tuple of str
        Judges that are ignored, since they had no vote on a labelled item.
    provenance : Provenance, optional
        Origin of the fitted data.
    covariates : sequence of Covariate
        Covariates of items, with their weights, as in `DavidsonModel`.

    Notes
    -----
    As `DavidsonModel`, with ``u = sum(beta * s)`` (plus covariates times their weights) and
    ``eta = eta0 + sum(gamma * t)`` over the features s and t of each judge's votes. A judge without
    votes on an item gets the mean features of those present, and so pulls neither to a side nor to
    a tie. Without any votes an item is a tie, both sides being as likely.

    Counts are (n, judges, 3) arrays in label order, items of a panel, or votes with a column
    `judge`, as `btdagg.read_votes` returns them, in the order of `Votes.items` with a panel.

    Examples
    --------
    >>> model = PanelModel(("a", "b"), beta=(1.0, 0.4), eta0=1.0, gamma=(0.5, 0.2))
    >>> model.decide([[[0, 1, 7], [1, 3, 4]], [[4, 0, 4], [0, 0, 0]]]).tolist()
    [1, 0]
    """

    FILE: ClassVar[FileFormat] = PANEL_FILE
    SAVED = (
        *("judges", "beta", "eta0", "gamma", "alpha", "kappa", "unheard"),
        *("scale", "label_scale"),
    )

    judges: tuple[str, ...] = field()
    beta: tuple[float, ...]
    eta0: float
    gamma: tuple[float, ...]
    alpha: float = 1.0
    kappa: float = 1.0
    unheard: tuple[str, ...] = ()
    provenance: Provenance | None = field(default=None, compare=False, repr=False)
    scale: Scale = field(default=PAIRS, repr=False)
    label_scale: Scale = field(default=None, repr=False)  # type: ignore[assignment]
    covariates: tuple[Covariate, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "judges", names_of_judges(self.judges))
        for name in ("beta", "gamma"):
            values = getattr(self, name)
            same_length(name, len(values), "judges", len(self.judges))
            object.__setattr__(self, name, tuple(as_number(value, name) for value in values))
        for name in ("eta0", "alpha", "kappa"):
            object.__setattr__(self, name, as_number(getattr(self, name), name))
        object.__setattr__(self, "unheard", tuple(self.unheard))
        _ = self._kernel  # which checks the numbers

    def sentence(self) -> str:
        """Return the numbers, of all and of each judge."""
        rows = zip(self.judges, self.beta, self.gamma, strict=True)
        of_judges = (f"{name}: beta {beta:.4g}, gamma {gamma:.4g}" for name, beta, gamma in rows)
        first = f"nu {np.exp(self.eta0):.4g} of {len(self.judges)} judges"
        return f"{first}{weights_in_words(self.covariates)} ({'; '.join(of_judges)})"

    def parameters(self, note: str = "", _: Any = None) -> ResultTable:
        """Return the numbers of each judge as a table."""
        models = {
            judge: DavidsonModel(beta, self.eta0, gamma, self.alpha, self.kappa)
            for judge, beta, gamma in zip(self.judges, self.beta, self.gamma, strict=True)
        }
        if self.unheard:
            listed = ", ".join(self.unheard)
            note += f" Ignored, since they have no vote on the labelled items: {listed}."
        return parameters_table(models, label="judge", note=fitted_to(self, note))

    @property
    def heard(self) -> NDArray[np.bool_]:
        """Whether each judge's votes count, (judges,)."""
        return np.array([name not in self.unheard for name in self.judges])

    def decide(self, counts: ArrayLike, *, covariates: Any = None) -> NDArray[np.int8]:
        """Label of least expected absolute error, (n,); see `DavidsonModel.decide`."""
        labels: NDArray[Any] = self._labels(
            self._kernel.decide(*self._of_items(counts, covariates))
        )
        return labels

    def predict_proba(self, counts: ArrayLike, *, covariates: Any = None) -> Floats:
        """Probabilities of -1, 0 and +1 for each item, (n, 3); raises what `decide` does."""
        return self._kernel.predict_proba(*self._of_items(counts, covariates))

    def risks(self, counts: ArrayLike, *, covariates: Any = None) -> Floats:
        """Expected absolute error of answering -1, 0 and +1, (n, 3); raises what `decide` does."""
        minus, tie, plus = self.predict_proba(counts, covariates=covariates).T
        risks = np.column_stack([tie + 2 * plus, minus + plus, 2 * minus + tie])
        return np.asarray(self._errors(risks))

    def _of_items(
        self, counts: ArrayLike, covariates: Any
    ) -> tuple[NDArray[Any], int, Floats | None]:
        rows = self._checked(counts)
        return rows, 1, offsets_of(self, covariates, len(rows) // len(self.judges))

    def _checked(self, counts: ArrayLike) -> NDArray[Any]:
        rows = as_panel_counts(counts_alone(counts), self.judges).reshape(-1, 3)
        if self.provenance is not None:
            warn_of(self.provenance.differences(rows, fewer=False))
        return rows

    @cached_property
    def _kernel(self) -> _core.Panel:
        judges = zip(self.beta, self.gamma, self.heard.tolist(), strict=True)
        return _core.Panel(list(judges), self.eta0, self.alpha, self.kappa)

    def to_sql(
        self,
        dialect: str,
        *,
        columns: Mapping[str, tuple[str, str, str]] | None = None,
        covariates: Mapping[str, str | Sequence[str]] | None = None,
        probabilities: bool = False,
    ) -> str:
        """Return the decision as one SQL expression over three columns of counts per judge.

        Its value is -1, 0 or 1, or NULL if a count is negative or one of a judge's three is NULL;
        if all three are, the judge is absent. `columns` are minus, tie and plus of each judge, by
        default ``"minus <judge>"`` and so on. The others are as in `DavidsonModel.to_sql`.
        """
        from btdagg.model.sql.decisions import to_sql

        return to_sql(
            self, dialect, columns=columns, covariates=covariates, probabilities=probabilities
        )


def panel_features(counts: NDArray[Any], alpha: float, kappa: float) -> tuple[Floats, Floats]:
    """Return margin and tie features of each judge, (n, judges); of an absent one, the mean's."""
    n, n_judges, _ = counts.shape
    features = DavidsonModel(0.0, 0.0, 0.0, alpha, kappa).features(counts.reshape(-1, 3))
    absent = counts.sum(axis=2) == 0
    n_present = np.maximum(n_judges - absent.sum(axis=1, keepdims=True), 1)

    def with_means(values: Floats) -> Floats:
        of_judges = values.reshape(n, n_judges)  # 0 where a judge is absent
        means = of_judges.sum(axis=1, keepdims=True) / n_present
        return np.asarray(of_judges + absent * means)

    return with_means(features.s), with_means(features.t)


def _probabilities(u: Floats, eta: Floats) -> Floats:
    logits = np.column_stack([-u, eta, u])
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    # Both sides first, so that mirrored items have mirrored sums.
    return np.asarray(odds / ((odds[:, :1] + odds[:, 2:]) + odds[:, 1:2]))


@warning
def calibrate_panel(
    counts: Any,
    labels: Any = None,
    *,
    judges: Sequence[str] | None = None,
    weights: Any = None,
    groups: Any = None,
    alpha: float = 1.0,
    kappa: float = 1.0,
    scale: Scale | None = None,
    label_scale: Scale | None = None,
    provenance: Provenance | None = None,
    covariates: Any = None,
    seed: int = 0,
) -> Calibration:
    """Fit one model to the votes of several judges on the same labelled items.

    Each judge has a beta and a gamma of its own, and all share one eta0. They are fitted by minimum
    DRPS and shrunk, by five-fold cross-validation, towards equal weights and each judge alone.

    Parameters
    ----------
    counts : (n, judges, 3) array of non-negative numbers
        Votes per item and judge in label order: minus, tie, plus; a judge without votes on an item
        is absent, see `btdagg.PanelModel`. Or votes with a column `judge`, or items of a panel.
    labels : (n,) array of -1, 0, 1
        As for `btdagg.calibrate`.
    judges : sequence of str, optional
        Names of the judges; by default numbers from 1, or of votes those in the column.
    weights : (n,) array of non-negative numbers, optional
        Weight of each item, scaled as for `btdagg.calibrate` with a prior.
    groups : (n,) array, optional
        Group of each item, such as its prompt. Those of a group are in one fold.
    alpha, kappa, scale, label_scale, provenance
        As for `btdagg.calibrate`.
    covariates : optional
        As for `btdagg.calibrate`.
    seed : int
        Seed of the folds.

    Warns
    -----
    CalibrationWarning
        If a judge has no votes on the labelled items (it is left out of every decision), all labels
        are the same, or a fit did not converge.

    Notes
    -----
    A fit minimises the mean DRPS plus ``(|beta'|**2 + |gamma'|**2) / (6 n sigma**2)``, where beta'
    and gamma' are the deviations from equal weights or, in a fit shrunk towards one judge, the beta
    and gamma of the others.
    Fits for six sigma from 0 to 3 are averaged with weights exp(-3 × the summed DRPS of
    cross-validation). With one judge it is the paper's fit, `btdagg.calibrate` with ``prior=None``.
    With covariates there are two fits: the first, without them, weighs the judges' features by its
    betas; beside these the covariates get their weights, which are then fixed in the second fit.

    References
    ----------
    Davidson (1970); Gneiting and Raftery (2007). Dalalyan and Tsybakov (2008) for exponential
    weights.

    Examples
    --------
    >>> from btdagg.datasets import simulate
    >>> first = simulate("rb2-math", 60, 8, seed=1)
    >>> noise = np.random.default_rng(2).multinomial(8, [1 / 3] * 3, size=60)
    >>> model = calibrate_panel(np.stack([first.counts, noise], axis=1), first.labels).model
    >>> model.beta[0] > model.beta[1]
    True
    """
    counts, labels = as_tables(counts, labels, scale, label_scale)
    scales_of(counts, labels, scale, label_scale)[0].require_sides("a panel")
    if isinstance(counts, CountsItself):
        table: Any = counts
        votes = with_task(table, labels)
        expected = "None with votes; for weights pass the arrays of votes.items(panel=...)"
        expect(weights is None, "weights", weights, expected)
        counts, labels = join(votes, labels, votes.items(panel="judge", judges=judges)), None
        scale = label_scale = None
    elif not isinstance(counts, Items):
        counts = as_panel_counts(counts)
    rows = fitted_items(
        counts,
        labels,
        covariates=covariates,
        weights=weights,
        groups=groups,
        scale=scale,
        label_scale=label_scale,
    )
    provenance = rows.items.provenance if provenance is None else provenance
    names = judges or rows.items.judges or None
    return calibrated_panel(rows, names, alpha=alpha, kappa=kappa, seed=seed, provenance=provenance)


def calibrated_panel(
    rows: FittedItems,
    judges: Sequence[str] | None,
    *,
    alpha: float,
    kappa: float,
    provenance: Provenance,
    seed: int = 0,
) -> Calibration:
    """Fit a panel as `calibrate_panel` does, without its warnings."""
    items, scales = rows.items, (rows.items.scale, rows.items.label_scale)
    expect(rows.labels is not None, "labels", None, "labels, or items that have them")
    array, gold = as_panel_counts(items.counts), scales[1].sides(rows.labels)
    names = names_of_judges(judges, array.shape[1])
    alpha, kappa = as_number(alpha, "alpha"), as_number(kappa, "kappa")
    weight = effective_weights(rows.weights, len(gold))
    group = np.arange(len(gold))
    if items.group is not None:
        group = as_groups(items.group, "counts", len(gold))
    seed = as_integer(seed, "seed", 0)
    has_weight = weight > 0
    gold, weight = gold[has_weight], weight[has_weight]
    array, group = array[has_weight], np.unique(group[has_weight], return_inverse=True)[1]
    what = "labelled item" if len(gold) < 2 else "group"
    expected = f"at least two {what}s to cross-validate"
    expect(len(gold) >= 2 and group.max() >= 1, "labels", rows.labels, expected)
    heard = (array.sum(axis=2) > 0).any(axis=0)
    expect(heard.any(), "counts", items.counts, "votes of at least one judge")
    most_votes = round(array.sum(axis=2).max())
    array = array[:, heard]
    known = rows.known or KnownOfItems((), np.empty((len(has_weight), 0)), ())
    known = known._replace(columns=known.columns[has_weight])
    # In the order of what they hold, so that no sum depends on the order of the rows.
    content: list[NDArray[Any]] = [array, gold, weight[:, None], *known.columns.T]
    order = np.argsort(places(np.arange(len(gold)), content, seed))
    array, gold, weight, group = array[order], gold[order], weight[order], group[order]
    known = known._replace(columns=known.columns[order])

    labelled = _LabelledFeatures(*panel_features(array, alpha, kappa), gold, weight)
    folds = list(_folds(group, [value[order] for value in content], seed))
    fitted = _averaged(labelled, folds, array, alpha, kappa)
    design: Design | None = None
    weighed: tuple[Covariate, ...] = ()
    n_judges = array.shape[1]
    if known.covariates:
        beta = fitted.x[:n_judges]
        share = beta / beta.sum() if beta.any() else np.full(n_judges, 1 / n_judges)
        of_labels = label_weights(gold, weight)
        features = labelled.s @ share, labelled.t @ share
        design = Design.of_pairs(*features, of_labels, known.columns, group)
        delta = design.fit().weights
        weighed = known.weighted(delta)
        labelled = labelled._replace(offsets=known.offsets(delta))
        fitted = _averaged(labelled, folds, array, alpha, kappa)

    x, losses, share = fitted.x, fitted.losses, fitted.shares
    beta, gamma = np.zeros(len(names)), np.zeros(len(names))
    beta[heard], gamma[heard] = x[:n_judges], x[n_judges + 1 :]
    listened = [name for name, is_heard in zip(names, heard, strict=True) if is_heard]
    unheard = tuple(name for name in names if name not in listened)
    model = PanelModel(
        names,
        tuple(beta.tolist()),
        float(x[n_judges]),
        tuple(gamma.tolist()),
        alpha,
        kappa,
        unheard,
        provenance.of_fit(most_votes, len(gold)),
        *scales,
        weighed,
    )
    centres = ["equal weights", *listened] if n_judges > 1 else listened
    by_centre = share.reshape(len(centres), -1).sum(axis=1)
    at_centre = losses.reshape(len(centres), -1)[:, 0] / weight.sum()
    doubts = [remarks.silent_judge(name) for name in unheard]
    if (gold == gold[0]).all():
        doubts.append(remarks.one_label(int(gold[0]), "the parameters"))
    if not fitted.converged:
        doubts.append(remarks.no_convergence("a fit"))
    return Calibration(
        model,
        len(gold),
        most_votes,
        fitted.converged,
        (*doubts, *known.remarks),
        float(labelled.loss(x) / weight.sum()),
        shares=dict(zip(centres, by_centre.tolist(), strict=True)),
        cross_validated=dict(zip(centres, at_centre.tolist(), strict=True)),
        _design=design,
    )


class _Averaged(NamedTuple):
    x: Floats
    losses: Floats
    shares: Floats
    converged: bool


def _averaged(
    items: _LabelledFeatures,
    folds: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]],
    counts: NDArray[Any],
    alpha: float,
    kappa: float,
) -> _Averaged:
    n_judges = counts.shape[1]
    shapes: list[tuple[Floats, float]] = []
    fits: list[_Fit] = []
    starts = _starts(items, counts, alpha, kappa)
    for centre, of_centre in zip(_centres(n_judges), starts, strict=True):
        # With one judge there is nothing to shrink.
        for spread in _SPREADS if n_judges > 1 else _SPREADS[:1]:
            shapes.append((centre, spread))
            fits.append(_fit(items, centre, spread, [fits[-1].x] if spread else of_centre))
    losses = np.zeros(len(fits))
    for left, rest in folds:
        for place, (shape, fit) in enumerate(zip(shapes, fits, strict=True)):
            losses[place] += items.of(left).loss(_fit(items.of(rest), *shape, [fit.x]).x)
    shares = np.exp(-_RATE * (losses - losses.min()))
    shares /= shares.sum()
    x = shares @ np.array([fit.x for fit in fits])
    return _Averaged(x, losses, shares, all(fit.converged for fit in fits))


class _LabelledFeatures(NamedTuple):
    s: Floats
    t: Floats
    labels: NDArray[np.int8]
    weights: Floats
    offsets: Floats | None = None

    def of(self, rows: NDArray[np.bool_]) -> _LabelledFeatures:
        return _LabelledFeatures._make(None if column is None else column[rows] for column in self)

    def loss(self, x: Floats) -> float:
        n = self.s.shape[1]
        u = self.s @ x[:n] if self.offsets is None else self.s @ x[:n] + self.offsets
        chances = _probabilities(u, x[n] + self.t @ x[n + 1 :])
        off = chances[:, ::2] - (self.labels[:, None] == (-1, 1))
        by_item = off[:, 0] ** 2 + off[:, 1] ** 2
        return float(self.weights @ by_item)


class _Fit(NamedTuple):
    x: Floats
    converged: bool


def _fit(items: _LabelledFeatures, centre: Floats, spread: float, starts: Sequence[Floats]) -> _Fit:
    n, (lower, upper) = len(centre), Bounds().box()
    s, t, penalty, starts = items.s, items.t, np.zeros((3, 3)), list(starts)
    if spread == 0:
        # Along the centre there are three parameters, as of one judge.
        s, t = s @ centre[:, None], t @ centre[:, None]
        starts = [np.array([x[:n].sum(), x[n], x[n + 1 :].sum()]) for x in starts]
    else:
        away = np.eye(n) - np.outer(centre, centre) / (centre @ centre)
        away /= _RATE * items.weights.sum() * spread**2
        penalty = np.zeros((2 * n + 1, 2 * n + 1))
        penalty[:n, :n] = penalty[n + 1 :, n + 1 :] = away
        lower, upper = (np.repeat(end, (n, 1, n)) for end in (lower, upper))
        lower[:n] = 0.0
    kernel = _core.PanelItems(s, t, items.labels, items.weights, items.offsets)
    ends = [kernel.fit(x.tolist(), penalty, lower.tolist(), upper.tolist()) for x in starts]
    best, _, converged = min(ends, key=lambda end: end[1])
    x = np.array(best)
    if spread == 0:
        along = np.zeros((3, 2 * n + 1))
        along[0, :n], along[1, n], along[2, n + 1 :] = centre, 1.0, centre
        x = x @ along
    return _Fit(x, converged)


def _starts(
    items: _LabelledFeatures, counts: NDArray[Any], alpha: float, kappa: float
) -> list[list[Floats]]:
    """Starts along every centre: the fits to each judge alone, which no local minimum holds up."""
    lower, upper = (ends.tolist() for ends in Bounds().box())
    alone = []
    for votes in counts.swapaxes(0, 1):
        present = votes.sum(axis=1) > 0
        voted, how = items.of(present), {"alpha": alpha, "kappa": kappa}
        judge = calibration_set(
            votes[present], voted.labels, voted.weights, **how, offsets=voted.offsets
        )
        alone.append(judge.fit(lower, upper, 1).parameters)
    fitted = zip(_centres(counts.shape[1]), [np.mean(alone, axis=0), *alone], strict=False)
    return [
        [np.concatenate([b * centre, [e], g * centre]) for b, e, g in (near, *_STARTS)]
        for centre, near in fitted
    ]


def _centres(n_judges: int) -> list[Floats]:
    equal = np.full(n_judges, 1 / n_judges)
    return [equal, *np.eye(n_judges)] if n_judges > 1 else [equal]


def _folds(
    group: NDArray[np.intp], content: Sequence[ArrayLike], seed: int
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    n_folds = min(_N_FOLDS, int(group.max()) + 1)
    fold = deal(group, content, n_folds, seed)
    for number in range(n_folds):
        left = fold == number
        yield left, ~left
