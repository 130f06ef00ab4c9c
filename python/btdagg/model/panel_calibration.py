"""Fitting a panel: one label from the votes of several judges."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from btdagg import _core
from btdagg._core import InputError
from btdagg._util.display import Displayed
from btdagg._util.readable import readable
from btdagg._util.validation import (
    CountsItself,
    as_groups,
    as_integer,
    as_labels,
    as_number,
    as_weights,
    names_of_judges,
    same_length,
)
from btdagg.evaluation.dealing import deal, places
from btdagg.model.bounds import Bounds, box_of
from btdagg.model.calibration_set import calibration_set
from btdagg.model.panel import (
    PanelModel,
    as_panel_counts,
    panel_features,
    probabilities,
)
from btdagg.model.warnings import CalibrationWarning
from btdagg.votes.provenance import Provenance

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

# Standard deviations of judges' parameters around a centre; at 0 they are held there.
_SPREADS = (0.0, 0.1, 0.25, 0.5, 1.0, 3.0)

# Rate of the DRPS beside a prior, as in the core's posterior of one judge.
_RATE = 3.0

_N_FOLDS = 5
_STARTS = ((1.3, 1.5, 0.8), (2.0, 4.0, 2.0))


@readable
@dataclass(frozen=True)
class PanelCalibration(Displayed):
    """A fitted panel and how the fit went.

    Attributes
    ----------
    model : PanelModel
    drps : float
        Its weighted mean DRPS on the calibration set.
    cross_validated : dict of str to float
        Mean DRPS on folds that were left out, with the weights of the judges held equal
        (``"equal weights"``) and with each judge alone, by name.
    shares : dict of str to float
        How much of the model comes from fits that are shrunk towards each of these; they sum to 1.
    converged : bool
        Whether every fit is an optimum: no component of the gradient that could be followed without
        leaving the bounds is larger than 1e-7.
    n_labels : int
        Labelled items with a weight above 0.
    max_votes : int
        Most votes of a judge on an item.
    warnings : tuple of str
        What was warned of, as text.
    """

    model: PanelModel
    drps: float
    cross_validated: dict[str, float]
    shares: dict[str, float]
    converged: bool
    n_labels: int
    max_votes: int
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        lines = [
            f"panel of {len(self.model.judges)} judges from {self.n_labels} labels; "
            f"DRPS {self.drps:.4f}, nu {np.exp(self.model.eta0):.4g}"
        ]
        rows = zip(self.model.judges, self.model.beta, self.model.gamma, strict=True)
        lines += [f"{name}: beta {beta:.4g}, gamma {gamma:.4g}" for name, beta, gamma in rows]
        return "\n".join([*lines, *(f"warning: {text}" for text in self.warnings)])


def calibrate_panel(
    counts: ArrayLike,
    labels: ArrayLike,
    *,
    judges: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    alpha: float = 1.0,
    kappa: float = 1.0,
    provenance: Provenance | None = None,
    seed: int = 0,
) -> PanelCalibration:
    """Fit one model to the votes of several judges on the same labelled items.

    Each judge has a beta and a gamma of its own, and all share one eta0. These are fitted by
    minimum DRPS and shrunk towards equal weights and towards each judge alone. Five-fold
    cross-validation says how far, and towards which.

    Parameters
    ----------
    counts : (n, judges, 3) array of non-negative integers
        Votes per item and judge in label order: minus, tie, plus. A judge without votes on an item
        is absent, which says nothing; see `btdagg.PanelModel`. Or votes with a column `judge`, as
        `btdagg.read_votes` returns them.
    labels : (n,) array of -1, 0, 1
        Gold labels. With votes, labels as `btdagg.read_labels` returns them: the fit is to the
        items that have both, and their groups are known.
    judges : sequence of str, optional
        Names of the judges; unless given their numbers from 1, or of votes those in the column.
    weights : (n,) array of non-negative numbers, optional
        Weight of each item, 1 unless given. They are scaled to sum to the effective number of
        labels, ``weights.sum()**2 / (weights**2).sum()``.
    groups : (n,) array, optional
        What items share, such as their prompt. Those of a group are in one fold.
    alpha, kappa : float
        Smoothing constants of the margin and the tie feature.
    provenance : Provenance, optional
        Where the votes are from; of votes it is known.
    seed : int
        Of the folds.

    Returns
    -------
    PanelCalibration

    Raises
    ------
    InputError
        If shapes disagree, a value is out of range (the message names judge and row), there are
        fewer than two labelled items or groups, or no judge has votes.

    Warns
    -----
    CalibrationWarning
        If a judge has no votes on the labelled items (it is left out of every decision), all labels
        are the same, or a fit did not converge.

    Notes
    -----
    A fit minimises the mean DRPS plus ``(|beta'|**2 + |gamma'|**2) / (6 n sigma**2)``, where beta'
    and gamma' are the parts of beta and gamma that differ from equal weights, or belong to other
    judges than the one. There are fits for six sigma from 0 to 3. The model has the mean of their
    parameters, weighed by exp(-3 × the summed DRPS of cross-validation): where the data cannot
    choose, no single choice decides. With one judge it is `btdagg.calibrate`'s fit.

    References
    ----------
    Davidson (1970); Gneiting and Raftery (2007). Dalalyan and Tsybakov (2008) for exponential
    weights.

    Examples
    --------
    >>> from btdagg.datasets import simulate
    >>> first = simulate("rb2-math", 60, 8, seed=1)
    >>> noise = np.random.default_rng(2).multinomial(8, [1 / 3] * 3, size=60)
    >>> found = calibrate_panel(np.stack([first.counts, noise], axis=1), first.labels)
    >>> found.model.beta[0] > found.model.beta[1]
    True
    """
    if not isinstance(provenance, Provenance | None):
        raise InputError(f"provenance is {provenance!r}, expected btdagg.votes.Provenance(...)")
    if isinstance(counts, CountsItself):
        from btdagg.votes.panel import labelled_panel

        provenance = Provenance.of(counts) if provenance is None else provenance
        panel = labelled_panel(counts, labels, judges=judges)
        counts, labels, judges = panel.counts, panel.labels, panel.judges
        groups = panel.groups if groups is None else groups
    array = as_panel_counts(counts)
    names = names_of_judges(judges, array.shape[1])
    gold = as_labels(labels)
    same_length("labels", len(gold), "counts", len(array))
    alpha, kappa = as_number(alpha, "alpha"), as_number(kappa, "kappa")
    weight = np.ones(len(gold)) if weights is None else as_weights(weights, soft=False)
    same_length("weights", len(weight), "counts", len(array))
    group = np.arange(len(gold)) if groups is None else as_groups(groups, "counts", len(gold))
    seed = as_integer(seed, "seed", 0)
    used = weight > 0
    rows = np.flatnonzero(used)
    array, gold, weight = array[rows], gold[rows], weight[rows]
    group = np.unique(group[rows], return_inverse=True)[1]
    if len(gold) < 2 or group.max() < 1:
        what = "labelled item" if len(gold) < 2 else "group"
        raise InputError(f"there is at most one {what}, expected two or more to cross-validate")
    heard = (array.sum(axis=2) > 0).any(axis=0)
    if not heard.any():
        raise InputError("counts has no votes, expected those of at least one judge")
    # In the order of what they hold, so that no sum depends on the order of the rows.
    content: list[NDArray[Any]] = [array[:, heard], gold, weight[:, None]]
    order = np.argsort(places(np.arange(len(gold)), content, seed))
    array, gold, weight, group = array[order], gold[order], weight[order], group[order]
    listened = [name for name, on in zip(names, heard, strict=True) if on]

    weight = weight * (weight.sum() / (weight**2).sum())
    known = array[:, heard]
    s, t = panel_features(known, alpha, kappa)
    items = _LabelledFeatures(s, t, gold, weight)
    shapes: list[tuple[NDArray[np.float64], float]] = []
    fits: list[_Fit] = []
    starts = _starts(items, known, gold, alpha, kappa)
    for centre, several in zip(_centres(len(listened)), starts, strict=True):
        # With one judge there is nothing to shrink.
        for spread in _SPREADS if len(listened) > 1 else _SPREADS[:1]:
            shapes.append((centre, spread))
            fits.append(_fit(items, centre, spread, [fits[-1].x] if spread else several))
    losses = np.zeros(len(fits))
    for left, rest in _folds(group, [known, gold, weight[:, None]], seed):
        for place, (shape, fit) in enumerate(zip(shapes, fits, strict=True)):
            again = _fit(items[rest], *shape, [fit.x])
            losses[place] += items[left].loss(again.x)
    share = np.exp(-_RATE * (losses - losses.min()))
    share /= share.sum()
    x = share @ np.array([fit.x for fit in fits])

    n_judges = len(listened)
    beta, gamma = np.zeros(len(names)), np.zeros(len(names))
    beta[heard], gamma[heard] = x[:n_judges], x[n_judges + 1 :]
    unheard = tuple(name for name, on in zip(names, heard, strict=True) if not on)
    most = int(array.sum(axis=2).max())
    provenance = provenance or Provenance()
    n_votes = most if provenance.n_votes is None else provenance.n_votes
    model = PanelModel(
        names,
        tuple(beta.tolist()),
        float(x[n_judges]),
        tuple(gamma.tolist()),
        alpha,
        kappa,
        unheard,
        replace(provenance, n_votes=n_votes, n_labels=len(gold)),
    )
    centres = ["equal weights", *listened] if n_judges > 1 else listened
    by_centre = share.reshape(len(centres), -1).sum(axis=1)
    at_centre = losses.reshape(len(centres), -1)[:, 0] / weight.sum()
    converged = all(fit.converged for fit in fits)
    doubts = [
        f"judge {name!r} has no votes on the labelled items and is ignored" for name in unheard
    ]
    if (gold == gold[0]).all():
        doubts.append(f"every label is {gold[0]}: the parameters cannot be identified")
    if not converged:
        doubts.append("a fit did not converge")
    for text in doubts:
        warnings.warn(text, CalibrationWarning, stacklevel=2)
    return PanelCalibration(
        model,
        float(items.loss(x) / weight.sum()),
        dict(zip(centres, at_centre.tolist(), strict=True)),
        dict(zip(centres, by_centre.tolist(), strict=True)),
        converged,
        len(gold),
        most,
        tuple(doubts),
    )


@dataclass(frozen=True, eq=False)
class _LabelledFeatures:
    """Features of labelled items, (n, judges), with their labels and weights."""

    s: NDArray[np.float64]
    t: NDArray[np.float64]
    labels: NDArray[np.int8]
    weights: NDArray[np.float64]

    def __getitem__(self, rows: NDArray[np.bool_]) -> _LabelledFeatures:
        return _LabelledFeatures(self.s[rows], self.t[rows], self.labels[rows], self.weights[rows])

    def loss(self, x: NDArray[np.float64]) -> float:
        """Weighted sum of the DRPS at the parameters: betas, eta0, gammas."""
        n = self.s.shape[1]
        chances = probabilities(self.s @ x[:n], x[n] + self.t @ x[n + 1 :])
        off = chances[:, ::2] - (self.labels[:, None] == (-1, 1))
        by_item = off[:, 0] ** 2 + off[:, 1] ** 2
        return float(self.weights @ by_item)


@dataclass(frozen=True, eq=False)
class _Fit:
    """Parameters of least penalised loss: betas, eta0, gammas."""

    x: NDArray[np.float64]
    converged: bool


def _fit(
    items: _LabelledFeatures,
    centre: NDArray[np.float64],
    spread: float,
    starts: Sequence[NDArray[np.float64]],
) -> _Fit:
    """Fit with judges that deviate from a centre by a spread; the best end of several starts."""
    n = len(centre)
    ends = box_of(Bounds())
    if spread == 0:
        # Along the centre there are three parameters, as of one judge.
        along = np.zeros((3, 2 * n + 1))
        along[0, :n], along[1, n], along[2, n + 1 :] = centre, 1.0, centre
        s, t = (values @ centre[:, None] for values in (items.s, items.t))
        one = _core.PanelItems(s, t, items.labels, items.weights)
        inside = [np.array([x[:n].sum(), x[n], x[n + 1 :].sum()]) for x in starts]
        x, converged = _least(one, inside, np.zeros((3, 3)), *ends)
        return _Fit(x @ along, converged)
    away = np.eye(n) - np.outer(centre, centre) / (centre @ centre)
    away /= _RATE * items.weights.sum() * spread**2
    penalty = np.zeros((2 * n + 1, 2 * n + 1))
    penalty[:n, :n] = penalty[n + 1 :, n + 1 :] = away
    lower, upper = (np.repeat(end, (n, 1, n)) for end in ends)
    lower[:n] = 0.0
    several = _core.PanelItems(items.s, items.t, items.labels, items.weights)
    return _Fit(*_least(several, starts, penalty, lower, upper))


def _least(
    items: _core.PanelItems,
    starts: Sequence[NDArray[np.float64]],
    penalty: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
) -> tuple[NDArray[np.float64], bool]:
    """Return the lowest of the optima that several starts lead to."""
    ends = lower.tolist(), upper.tolist()
    found = [items.fit(start.tolist(), penalty, *ends) for start in starts]
    x, _, converged = min(found, key=lambda end: end[1])
    return np.array(x), converged


def _starts(
    items: _LabelledFeatures,
    counts: NDArray[np.uint64],
    labels: NDArray[np.int8],
    alpha: float,
    kappa: float,
) -> list[list[NDArray[np.float64]]]:
    """Starts along every centre: the fits to each judge alone, which no local minimum holds up."""
    lower, upper = (ends.tolist() for ends in box_of(Bounds()))
    alone = []
    for votes in counts.swapaxes(0, 1):
        present = votes.sum(axis=1) > 0
        one = calibration_set(
            votes[present], labels[present], items.weights[present], alpha=alpha, kappa=kappa
        )
        alone.append(one.fit(lower, upper, 1).parameters)
    found = []
    for centre, fitted in zip(
        _centres(counts.shape[1]), [np.mean(alone, axis=0), *alone], strict=False
    ):
        several = (fitted, *_STARTS)
        found.append([np.concatenate([b * centre, [e], g * centre]) for b, e, g in several])
    return found


def _centres(n_judges: int) -> list[NDArray[np.float64]]:
    """Equal weights, and each judge alone."""
    equal = np.full(n_judges, 1 / n_judges)
    return [equal, *np.eye(n_judges)] if n_judges > 1 else [equal]


def _folds(
    group: NDArray[np.intp], content: Sequence[ArrayLike], seed: int
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Deal groups into folds; of each the items that are left out, and the rest."""
    n_folds = min(_N_FOLDS, int(group.max()) + 1)
    fold = deal(group, content, n_folds, seed)
    for number in range(n_folds):
        left = fold == number
        yield left, ~left
