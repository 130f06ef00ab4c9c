"""Davidson strengths of systems and a tie parameter, from sufficient statistics of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components

from btdagg._core import InputError
from btdagg._util.readable import readable

if TYPE_CHECKING:
    from numpy.typing import NDArray


@readable
@dataclass(frozen=True, eq=False)
class SystemPairs:
    """Pairs of systems that are compared.

    Attributes
    ----------
    first, second : (P,) arrays of int
        Systems of each pair, as numbers from 0; the first is the lower.
    names : sequence
        Names of all systems, (S,).
    """

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    names: Sequence[Any]

    @cached_property
    def design(self) -> Any:
        """Half the difference of strengths of each pair, as a sparse (P, S) matrix."""
        n, rows = len(self.first), np.arange(len(self.first))
        values = np.repeat([0.5, -0.5], n)
        places = np.concatenate([rows, rows]), np.concatenate([self.first, self.second])
        return csr_array((values, places), shape=(n, len(self.names)))

    def expected(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Expected margin (wins of the first less wins of the second) and ties, (P, 2).

        Parameters, (S + 1,), are strengths and the logarithm of the tie parameter: minus infinity
        where ties cannot be.
        """
        half = self.design @ parameters[:-1]
        total = _log_total(half, parameters[-1])
        first, second = np.exp(half - total), np.exp(-half - total)
        return np.stack([first - second, np.exp(parameters[-1] - total)], axis=1)


@readable
@dataclass(frozen=True, eq=False)
class PairStatistics:
    """Sufficient statistics of the Davidson model.

    Attributes
    ----------
    pairs : SystemPairs
    n : (P,) array
        Comparisons of each pair, or their share; not negative.
    sums : (P, 2) array
        Sum of margins (win of the first +1, of the second -1), and of ties.
    source : str
        What they are of, for errors.
    """

    pairs: SystemPairs
    n: NDArray[np.float64]
    sums: NDArray[np.float64]
    source: str = "labels"

    def loss(self, parameters: NDArray[np.float64]) -> float:
        """Negative log-likelihood; see `SystemPairs.expected` for the parameters."""
        half, eta = self.pairs.design @ parameters[:-1], parameters[-1]
        of_ties = 0.0 if np.isneginf(eta) else eta * self.sums[:, 1].sum()
        return float(self.n @ _log_total(half, eta) - self.sums[:, 0] @ half - of_ties)

    def gradient(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Gradient of the loss, (S + 1,)."""
        away = self.n[:, None] * self.pairs.expected(parameters) - self.sums
        return np.append(away[:, 0] @ self.pairs.design, away[:, 1].sum())

    def hessian(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Hessian of the loss, (S + 1, S + 1)."""
        design = self.pairs.design
        margin, tie = self.pairs.expected(parameters).T
        n_systems = len(parameters) - 1
        found = np.empty((n_systems + 1, n_systems + 1))
        of_margins = diags_array(self.n * (1 - tie - margin**2))
        found[:-1, :-1] = (design.T @ of_margins @ design).toarray()
        found[-1, :-1] = found[:-1, -1] = -(self.n * margin * tie) @ design
        found[-1, -1] = self.n @ (tie * (1 - tie))
        return found

    def inverse_hessian(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inverse of the Hessian where strengths sum to 0, and ties may be impossible."""
        n_systems = len(parameters) - 1
        free = n_systems + int(np.isfinite(parameters[-1]))
        found = np.zeros((n_systems + 1, n_systems + 1))
        found[:free, :free] = np.linalg.inv(
            _anchored(self.hessian(parameters)[:free, :free], n_systems)
        )
        found[:n_systems, :n_systems] -= 1.0
        return found

    def fit(self) -> NDArray[np.float64]:
        """Return the parameters of maximum likelihood, with strengths that sum to 0.

        Where there are no ties this is the model of Bradley and Terry, and the logarithm of the tie
        parameter is minus infinity. Systems that are not connected by comparisons, that won or lost
        all comparisons with the others, or that only tied, are an `InputError`.
        """
        self._check_connected()
        n_systems = len(self.pairs.names)
        ties, total = float(self.sums[:, 1].sum()), float(self.n.sum())
        rounding = 1e-12 * total
        if ties > total - rounding:
            raise InputError(
                f"by the {self.source}, all comparisons are ties, expected wins and losses to tell "
                "systems by"
            )
        free = n_systems + int(ties > rounding)

        def whole(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return x if free > n_systems else np.append(x, -np.inf)

        def hessian(x: NDArray[np.float64]) -> NDArray[np.float64]:
            return _anchored(self.hessian(whole(x))[:free, :free] / total, n_systems)

        def gradient(x: NDArray[np.float64]) -> NDArray[np.float64]:
            found = self.gradient(whole(x))[:free] / total
            found[:n_systems] += x[:n_systems].mean() / n_systems
            return found

        def loss(x: NDArray[np.float64]) -> float:
            return self.loss(whole(x)) / total + float(x[:n_systems].mean()) ** 2 / 2

        found = optimize.minimize(
            loss, np.zeros(free), jac=gradient, hess=hessian, method="trust-exact",
            options={"gtol": 1e-7},
        ).x  # fmt: skip
        x, step = found, np.inf
        for _ in range(_N_POLISHES):
            try:
                moved = np.linalg.solve(hessian(x), gradient(x))
            except np.linalg.LinAlgError:
                break
            x, step = x - moved, float(np.abs(moved).max())
            if not step < _FAR:
                break
        # Towards a minimum steps become shorter; towards infinity they do not.
        if not step < _LONGEST_STEP:
            raise InputError(self._separation(found[:n_systems]))
        x[:n_systems] -= x[:n_systems].mean()
        return whole(x)

    def _check_connected(self) -> None:
        compared = self.n > 0
        n = len(self.pairs.names)
        places = self.pairs.first[compared], self.pairs.second[compared]
        number, part = connected_components(
            csr_array((np.ones(int(compared.sum())), places), shape=(n, n)), directed=False
        )
        if number > 1:
            smallest = int(np.argmin(np.bincount(part)))
            raise InputError(
                f"by the {self.source}, {self._named(part == smallest)} compared with none of the "
                "other systems, and strengths have no common scale"
            )

    def _separation(self, strengths: NDArray[np.float64]) -> str:
        """Say which systems won or lost everything: a gap without end is above or below them."""
        order = np.argsort(strengths)
        gap = int(np.argmax(np.diff(strengths[order]))) + 1
        is_top = 2 * gap >= len(order)
        extreme = np.zeros(len(order), dtype=np.bool_)
        extreme[order[gap:] if is_top else order[:gap]] = True
        return (
            f"by the {self.source}, {self._named(extreme)} without a "
            f"{'loss' if is_top else 'win'} or tie against the other systems, and strengths have "
            "no finite estimate: label more of these items"
        )

    def _named(self, which: NDArray[np.bool_]) -> str:
        names = [repr(self.pairs.names[place]) for place in np.flatnonzero(which).tolist()]
        shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        return f"system {shown} is" if len(names) == 1 else f"systems {shown} are"


_N_POLISHES = 6
_LONGEST_STEP, _FAR = 1e-6, 10.0


def _log_total(half: NDArray[np.float64], eta: float) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.logaddexp(np.logaddexp(half, -half), eta)
    return found


def _anchored(hessian: NDArray[np.float64], n_systems: int) -> NDArray[np.float64]:
    """Add the Hessian of half the square of the mean strength, which makes it positive definite."""
    found = hessian.copy()
    found[:n_systems, :n_systems] += 1 / n_systems**2
    return found
