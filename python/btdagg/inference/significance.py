"""Whether methods differ by more than chance: permutation tests, corrections, rank clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from btdagg import _core
from btdagg._util.errors import expect, one_of
from btdagg._util.validation import (
    as_groups,
    as_integer,
    as_losses,
    as_probabilities,
    same_index,
    same_length,
)
from btdagg.model.intervals import as_level

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Alternative: TypeAlias = Literal["two-sided", "less", "greater"]
Method: TypeAlias = Literal["auto", "exact", "monte-carlo"]
Correction: TypeAlias = Literal["none", "holm", "benjamini-hochberg", "max-t"]


class PermutationTestResult(NamedTuple):
    """Result of `paired_permutation_test`.

    `statistic` is the mean of ``a - b``, below 0 where a has the lower losses; `pvalue` is never 0;
    `method` is ``"exact"`` or ``"monte carlo"``, with `n_resamples` sign patterns (0 if exact).
    """

    statistic: float
    pvalue: float
    method: str
    n_resamples: int


def paired_permutation_test(
    a: ArrayLike,
    b: ArrayLike,
    alternative: Alternative = "two-sided",
    method: Method = "auto",
    n_resamples: int = 10_000,
    seed: int = 0,
    groups: ArrayLike | None = None,
    *,
    n_threads: int = 1,
) -> PermutationTestResult:
    """Test whether the mean losses of two methods on the same items differ.

    The p-value is the share of all sign patterns of the differences ``a - b``, equally likely
    without a difference, whose mean is at least as extreme as the observed one.

    Parameters
    ----------
    a, b : (n,) arrays of finite numbers
        Losses per item, such as ``abs(predicted - label)``.
    alternative : {"two-sided", "less", "greater"}
        Extreme means far from 0, below it (a has the lower losses), or above it.
    method : {"auto", "exact", "monte-carlo"}
        ``"exact"`` computes the null distribution of integer losses that sum to at most 2**51;
        ``"auto"`` is exact if possible.
    n_resamples, seed : int
        Sign patterns that Monte Carlo draws; p-values do not depend on the number of threads.
    groups : (n,) array, optional
        Group of each item: its differences change sign together. Exact if their sums are integers.
    n_threads : int
        Threads of Monte Carlo.

    Notes
    -----
    Swapping a and b changes no bit. Exact p-values have 12 correct digits and are at least
    2.2e-308. Those of Monte Carlo are ``(hits + 1) / (n_resamples + 1)``; sums equal up to rounding
    are equal.

    References
    ----------
    Fisher (1935); Phipson and Smyth (2010) for adding one. The paper draws 100 sign patterns.

    Examples
    --------
    >>> paired_permutation_test([0, 0, 1, 0], [1, 2, 1, 1])
    PermutationTestResult(statistic=-1.0, pvalue=0.25, method='exact', n_resamples=0)
    """
    same_index(a=a, b=b, groups=groups)
    first, second = as_losses(a, "a", "(n,)"), as_losses(b, "b", "(n,)")
    same_length("b", len(second), "a", len(first))
    group = None if groups is None else as_groups(groups, "a", len(first))
    test = _test(alternative, method, n_resamples, seed)
    n_threads = as_integer(n_threads, "n_threads", 1)
    statistic, pvalue, is_exact = test.paired(first, second, group, n_threads)
    how = ("exact", 0) if is_exact else ("monte carlo", int(n_resamples))
    return PermutationTestResult(statistic, pvalue, *how)


def pairwise_pvalues(
    losses: ArrayLike,
    *,
    correction: Correction = "none",
    method: Method = "auto",
    n_resamples: int = 10_000,
    seed: int = 0,
    groups: ArrayLike | None = None,
    n_threads: int = 1,
) -> NDArray[np.float64]:
    """Test each pair of methods for a difference, two-sided.

    Parameters
    ----------
    losses : (methods, items) array of finite numbers
        Losses on the same items, one row per method; at least two methods.
    correction : {"none", "holm", "benjamini-hochberg", "max-t"}
        Correction for testing many pairs. ``"max-t"`` compares each pair with the largest statistic
        of all pairs under the same signs; the other two correct the p-values, see `holm` and
        `benjamini_hochberg`.
    method, n_resamples, seed, groups, n_threads
        See `paired_permutation_test`, which gives the same p-values one by one. With ``"max-t"``,
        ``"exact"`` takes all ``2**n`` sign patterns of n items or groups, of which there may be at
        most `n_resamples`; ``"auto"`` is exact if possible.

    Returns
    -------
    (methods, methods) array
        Symmetric, with ones on the diagonal.

    Notes
    -----
    Max-T is the free step-down procedure: the statistic of a pair is its absolute sum of
    differences over the root of their sum of squares, and no p-value is less than that of a pair
    with a greater statistic. The probability of any false alarm is at most tau, as with Holm's
    method, which finds less where pairs depend on each other. P-values are the share of hits if all
    sign patterns are taken, else ``(hits + 1) / (n_resamples + 1)``. Methods that are equal up to
    rounding have 1.

    References
    ----------
    Westfall and Young, Resampling-Based Multiple Testing (1993), algorithm 4.1.
    """
    one_of(correction, get_args(Correction), "correction")
    test = _test("two-sided", method, n_resamples, seed)
    rows, group = _losses(losses, groups)
    n_threads = as_integer(n_threads, "n_threads", 1)
    if correction == "max-t":
        return test.max_t(rows, group, n_threads)
    pvalues = test.pairwise(rows, group, n_threads)
    if correction == "holm":
        return holm(pvalues)
    return benjamini_hochberg(pvalues) if correction == "benjamini-hochberg" else pvalues


def split_pvalues(
    losses: Sequence[ArrayLike] | NDArray[np.generic],
    *,
    method: Method = "auto",
    n_resamples: int = 10_000,
    seed: int = 0,
    groups: Sequence[ArrayLike] | None = None,
) -> NDArray[np.float64]:
    """Test each pair of methods for a difference on each of many splits, two-sided."""
    # As `pairwise_pvalues` for each split, (splits, methods, methods), with other signs drawn.
    of_splits = [None] * len(losses) if groups is None else groups
    return np.stack(
        [
            _test("two-sided", method, n_resamples, seed, number).pairwise(
                *_losses(split, group), 1
            )
            for number, (split, group) in enumerate(zip(losses, of_splits, strict=True))
        ]
    )


def holm(pvalues: ArrayLike) -> NDArray[np.float64]:
    """Correct p-values for multiple testing by Holm's method.

    Comparing with tau gives a probability of any false alarm of at most tau, under any dependence.

    Parameters
    ----------
    pvalues : (m,) or symmetric (methods, methods) array of numbers from 0 to 1
        One p-value per test. In a matrix each pair of different methods is a test.

    References
    ----------
    Holm, A simple sequentially rejective multiple test procedure (1979).
    """
    return _corrected(pvalues, _holm)


def benjamini_hochberg(pvalues: ArrayLike) -> NDArray[np.float64]:
    """Correct p-values for multiple testing by Benjamini and Hochberg's method.

    Comparing with tau gives an expected share of false alarms among the alarms of at most tau, if
    tests are independent or depend positively on each other.

    Parameters
    ----------
    pvalues : (m,) or symmetric (methods, methods) array of numbers from 0 to 1
        One p-value per test. In a matrix each pair of different methods is a test.

    References
    ----------
    Benjamini and Hochberg, Controlling the false discovery rate (1995); Benjamini and Yekutieli,
    The control of the false discovery rate in multiple testing under dependency (2001).
    """
    return _corrected(pvalues, _benjamini_hochberg)


def _corrected(
    pvalues: ArrayLike, correct: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.float64]:
    # `correct` takes p-values in ascending order.
    array = as_probabilities(pvalues, "pvalues")
    if array.ndim == 1:
        order = np.argsort(array, kind="stable")
        corrected = np.empty_like(array)
        corrected[order] = np.minimum(correct(array[order]), 1.0)
        return corrected
    above = np.triu_indices(len(array), 1)
    corrected = np.ones_like(array)
    if len(array) > 1:
        corrected[above] = corrected.T[above] = _corrected(array[above], correct)
    return corrected


def _holm(ascending: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum.accumulate(ascending * np.arange(len(ascending), 0, -1))


def _benjamini_hochberg(ascending: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled = ascending * len(ascending) / np.arange(1, len(ascending) + 1)
    return np.minimum.accumulate(scaled[::-1])[::-1]


def rank_clusters(scores: ArrayLike, pvalues: ArrayLike, tau: float = 0.05) -> NDArray[np.int64]:
    """Rank methods in clusters whose members do not differ significantly; 1 is the best.

    From the best score to the worst, a method joins the current cluster unless it differs
    significantly (``p < tau``) from one of its members; then it starts the next cluster.

    Parameters
    ----------
    scores : (methods,) array of finite numbers
        Mean losses; lower is better. Methods with equal scores get equal ranks.
    pvalues : (methods, methods) array
        Symmetric p-values, such as those of `pairwise_pvalues`, with or without `holm`.
    tau : float
        Significance level, above 0 and below 1.

    References
    ----------
    Freitag et al., Results of WMT23 Metrics Shared Task (2023); the paper's top clusters, which
    have rank 1.

    Examples
    --------
    >>> pvalues = [[1, 0.4, 0.01], [0.4, 1, 0.2], [0.01, 0.2, 1]]
    >>> rank_clusters([0.30, 0.32, 0.35], pvalues).tolist()
    [1, 1, 2]
    """
    mean, significant = _significant(scores, pvalues, tau)
    ranks = np.zeros(len(mean), dtype=np.int64)
    rank = 1
    for score in np.unique(mean):
        joining, cluster = mean == score, ranks == rank
        if significant[np.ix_(joining, cluster)].any():
            rank += 1
        ranks[joining] = rank
    return ranks


def statistically_tied(
    scores: ArrayLike, pvalues: ArrayLike, tau: float = 0.05
) -> NDArray[np.bool_]:
    """Return which methods cannot be told from the best: the best, and all with ``p >= tau``."""
    # Each method is compared only with the best, or all that share the best score.
    mean, significant = _significant(scores, pvalues, tau)
    best = mean == mean.min()
    return np.asarray(best | ~significant[best].any(axis=0))


def _test(
    alternative: Alternative, method: Method, n_resamples: int, seed: int, stream: int = 0
) -> _core.PermutationTest:
    n_resamples = as_integer(n_resamples, "n_resamples", 1)
    seed = as_integer(seed, "seed", 0, 2**64 - 1)
    return _core.PermutationTest(str(alternative), str(method), n_resamples, seed, stream)


def _losses(
    losses: ArrayLike, groups: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
    rows = as_losses(losses, "losses", "(methods, items)")
    group = None if groups is None else as_groups(groups, "items", rows.shape[1])
    return rows, group


def _significant(
    scores: ArrayLike, pvalues: ArrayLike, tau: float
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    mean = as_losses(scores, "scores", "(methods,)")
    matrix = as_probabilities(pvalues, "pvalues")
    expected = f"a symmetric matrix of the {len(mean)} methods"
    expect(matrix.shape == (len(mean), len(mean)), "pvalues", matrix.shape, expected)
    return mean, matrix < as_level(tau, "tau")
