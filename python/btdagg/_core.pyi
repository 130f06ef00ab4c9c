"""Types of the compiled module."""

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from btdagg._util.errors import InputError as InputError

__all__ = [
    "CalibrationSet",
    "ConformalTest",
    "Fit",
    "InputError",
    "Model",
    "Panel",
    "PermutationTest",
    "Predictive",
    "Prior",
    "Refits",
    "RunningTally",
    "StoppingRule",
    "__version__",
    "exceeds",
    "grade_decisions",
    "grade_means",
    "grade_probabilities",
    "grade_thresholds",
    "grades_design",
    "pack_texts",
    "pairs_design",
    "tally_integers",
    "tally_strings",
]

__version__: str

@final
class Model:
    def __new__(
        cls,
        beta: float,
        eta0: float,
        gamma: float,
        alpha: float,
        kappa: float,
        usual_votes: float | None = None,
    ) -> Model: ...
    def at(self, /, n_votes: float) -> tuple[float, float, float]: ...
    def decide(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.int8]: ...
    def decide_one(self, /, minus: int, tie: int, plus: int) -> int: ...
    def predict_proba_one(
        self, /, minus: int, tie: int, plus: int
    ) -> tuple[float, float, float]: ...
    def always_ties(self, /, n_votes: int) -> bool: ...
    def predict_proba(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]: ...
    def risks(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]: ...
    def features(self, /, counts: NDArray[Any], n_threads: int) -> NDArray[np.float64]: ...

@final
class CalibrationSet:
    def __new__(
        cls,
        counts: NDArray[Any],
        labels: NDArray[np.int8],
        weights: NDArray[np.float64] | None,
        alpha: float,
        kappa: float,
        usual_votes: float | None = None,
    ) -> CalibrationSet: ...
    @staticmethod
    def soft(
        counts: NDArray[Any],
        weights: NDArray[np.float64],
        alpha: float,
        kappa: float,
        usual_votes: float | None = None,
    ) -> CalibrationSet: ...
    @staticmethod
    def with_offsets(
        counts: NDArray[Any],
        weights: NDArray[np.float64],
        offsets: NDArray[np.float64],
        alpha: float,
        kappa: float,
        usual_votes: float | None = None,
    ) -> CalibrationSet: ...
    def loss(
        self, /, theta: NDArray[np.float64], n_threads: int
    ) -> tuple[float, NDArray[np.float64]]: ...
    def fit(self, /, lower: Sequence[float], upper: Sequence[float], n_threads: int) -> Fit: ...
    @property
    def n_items(self, /) -> int: ...
    @property
    def max_votes(self, /) -> int: ...
    @property
    def has_margins(self, /) -> bool: ...
    @property
    def has_tie_contrast(self, /) -> bool: ...
    @property
    def label_weights(self, /) -> tuple[float, float, float]: ...

@final
class Fit:
    @property
    def parameters(self, /) -> tuple[float, float, float]: ...
    @property
    def drps(self, /) -> float: ...
    @property
    def converged(self, /) -> bool: ...
    @property
    def at_bounds(self, /) -> tuple[bool, bool, bool]: ...
    @property
    def neutral(self, /) -> tuple[bool, bool, bool]: ...
    @property
    def n_starts(self, /) -> int: ...

@final
class Prior:
    def __new__(
        cls,
        shares: NDArray[np.float64],
        means: NDArray[np.float64],
        covariances: NDArray[np.float64],
        least: Sequence[float],
    ) -> Prior: ...
    @staticmethod
    def of_pairs(usual_votes: Sequence[float]) -> Prior: ...
    @staticmethod
    def of_grades(n_grades: int, centre: float, spread: float) -> Prior: ...
    def with_neighbours(
        self, /, parameters: NDArray[np.float64], covariances: NDArray[np.float64], share: float
    ) -> Prior: ...
    def with_covariates(self, /, n_covariates: int, after: int) -> Prior: ...
    def posteriors(
        self,
        /,
        design: NDArray[np.float64],
        weights: NDArray[np.float64],
        n_threads: int,
        occurring: NDArray[np.float64] | None = None,
        times: NDArray[np.float64] | None = None,
    ) -> tuple[
        NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]
    ]: ...
    @property
    def parts(self, /) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
    @property
    def least(self, /) -> list[float]: ...

@final
class Panel:
    def __new__(
        cls,
        judges: Sequence[tuple[float, float, bool, float | None]],
        eta0: float,
        alpha: float,
        kappa: float,
    ) -> Panel: ...
    def decide(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.int8]: ...
    def predict_proba(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]: ...
    def risks(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]: ...

@final
class Refits:
    def __new__(
        cls,
        counts: NDArray[np.float64],
        labels: NDArray[np.int8],
        alpha: float,
        kappa: float,
        lower: Sequence[float],
        upper: Sequence[float],
        usual_votes: float | None = None,
    ) -> Refits: ...
    def fit(
        self, /, weights: NDArray[np.float64], n_threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]: ...

@final
class PermutationTest:
    def __new__(
        cls, alternative: str, method: str, n_resamples: int, seed: int, stream: int
    ) -> PermutationTest: ...
    def paired(
        self,
        /,
        a: NDArray[np.float64],
        b: NDArray[np.float64],
        groups: NDArray[np.int64] | None,
        n_threads: int,
    ) -> tuple[float, float, bool]: ...
    def pairwise(
        self,
        /,
        losses: NDArray[np.float64],
        groups: NDArray[np.int64] | None,
        n_threads: int,
    ) -> NDArray[np.float64]: ...
    def max_t(
        self,
        /,
        losses: NDArray[np.float64],
        groups: NDArray[np.int64] | None,
        n_threads: int,
    ) -> NDArray[np.float64]: ...

def grade_means(
    counts: NDArray[Any], votes: NDArray[np.float64], n_threads: int
) -> NDArray[np.float64]: ...
def grade_probabilities(
    means: NDArray[np.float64],
    beta: float,
    intercepts: NDArray[np.float64],
    n_threads: int,
    offsets: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]: ...
def grade_thresholds(beta: float, intercepts: NDArray[np.float64]) -> NDArray[np.float64]: ...
def grade_decisions(
    counts: NDArray[Any],
    votes: NDArray[np.float64],
    thresholds: NDArray[np.float64],
    n_threads: int,
    grades: NDArray[Any] | None = None,
    shifts: NDArray[np.float64] | None = None,
) -> NDArray[Any]: ...
def grades_design(columns: NDArray[np.float64], n_grades: int) -> NDArray[np.float64]: ...
def pairs_design(sides: NDArray[np.float64], ties: NDArray[np.float64]) -> NDArray[np.float64]: ...
def exceeds(counts: NDArray[Any], n_votes: int) -> bool: ...
def tally_integers(
    items: NDArray[np.int64], votes: NDArray[np.int8] | NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[Any]]: ...
def tally_strings(
    items: list[str], votes: NDArray[np.int8] | NDArray[np.float64]
) -> tuple[list[str], NDArray[Any]]: ...

_Components = Sequence[tuple[float, Sequence[float]]]

@final
class Predictive:
    def __new__(cls, components: _Components) -> Predictive: ...
    def next(self, /, minus: int, tie: int, plus: int) -> tuple[float, float, float]: ...

@final
class StoppingRule:
    def __new__(
        cls,
        model: Model,
        n: int,
        step: int,
        kind: str,
        value: float,
        predictive: Predictive | None,
        has_strength: bool = False,
    ) -> StoppingRule: ...
    @staticmethod
    def price_within(
        model: Model, n: int, step: int, votes: float, predictive: Predictive
    ) -> float: ...
    def stops(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.bool_]: ...
    def decide(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.int8]: ...
    def forecasts(self, /, counts: NDArray[Any], n_threads: int) -> NDArray[np.float64]: ...
    def stops_one(self, /, minus: float, tie: float, plus: float) -> bool: ...
    def decide_one(self, /, minus: float, tie: float, plus: float) -> int: ...
    def votes_to_ask(
        self, /, counts: NDArray[Any], n_threads: int, offsets: NDArray[np.float64] | None = None
    ) -> NDArray[np.uint8]: ...
    def votes_to_ask_one(self, /, minus: float, tie: float, plus: float) -> int: ...
    @property
    def start(self, /) -> tuple[float, float, float] | None: ...

@final
class ConformalTest:
    def __new__(cls, reference: Sequence[int], seed: int) -> ConformalTest: ...
    def observe(self, /, levels: NDArray[np.int64]) -> NDArray[np.float64]: ...
    def log_capital(self, /) -> tuple[float, float]: ...
    def state(self, /) -> tuple[list[int], int, int, list[float], float, float]: ...
    @staticmethod
    def from_state(
        parts: tuple[Sequence[int], int, int, Sequence[float], float, float],
    ) -> ConformalTest: ...

_Items = NDArray[np.int64] | tuple[NDArray[np.uint8], int, NDArray[np.int64]]
_Ids = NDArray[np.int64] | list[str]

@final
class RunningTally:
    def __new__(
        cls, deduplicates: bool, corrects: bool, has_texts: bool, max_items: int | None
    ) -> RunningTally: ...
    def __len__(self, /) -> int: ...
    @property
    def has_texts(self) -> bool: ...
    @property
    def channels(self) -> list[tuple[str, str]]: ...
    def channel(self, /, judge: str, order: str) -> int: ...
    def add(
        self,
        /,
        items: _Items,
        votes: NDArray[np.int8],
        samples: NDArray[np.uint32] | None,
        channels: NDArray[np.uint32] | None,
        refuses_late: bool,
        n_threads: int,
    ) -> list[int]: ...
    def add_one(self, /, item: int | str, vote: int, sample: int, channel: int) -> bool: ...
    def withdraw(self, /, item: int | str, sample: int, channel: int) -> bool: ...
    def forget(self, /, items: _Items) -> int: ...
    def evict(self, /) -> int: ...
    def merge(self, /, other: RunningTally) -> _Ids: ...
    def copy(self, /) -> RunningTally: ...
    def counts_of(self, /, items: _Items) -> NDArray[np.int64]: ...
    def counts(self, /) -> tuple[_Ids, NDArray[np.int64]]: ...
    def conflicts(self, /) -> list[tuple[int | str, int, int, tuple[bool, bool, bool]]]: ...
    def settle(self, /, rule: StoppingRule) -> tuple[_Ids, NDArray[np.int8], NDArray[np.int64]]: ...
    def report(self, /, settled: NDArray[np.bool_]) -> NDArray[np.bool_]: ...
    def reopen(self, /) -> None: ...
    def to_bytes(self, /, about: str) -> bytes: ...
    @staticmethod
    def from_bytes(data: bytes) -> tuple[RunningTally, str]: ...
    def absorb(
        self,
        /,
        items: _Items,
        reported: NDArray[np.bool_],
        planes: NDArray[np.uint64],
        lanes: Sequence[tuple[int, int]],
    ) -> None: ...

def pack_texts(items: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]: ...
