"""What every model does: decide items by their counts, and tell its numbers and their origin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

from btdagg._util.display import Displayed
from btdagg._util.errors import InputError, expect
from btdagg._util.files import MADE_ANEW, SavedAsJson
from btdagg._util.validation import as_integer
from btdagg.model.covariates import Covariate, offsets_of
from btdagg.votes.provenance import Provenance
from btdagg.votes.scale import PAIRS, Scale, require_alike, scale_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from btdagg.result import ResultTable

    Floats = NDArray[np.float64]


class Kernel(Protocol):
    """The core of a model, which knows neither points of scales nor covariates by name."""

    def decide(self, counts: Any, n_threads: int, offsets: Any = None, /) -> NDArray[Any]:
        """Return the label of each item, (n,)."""

    def predict_proba(self, counts: Any, n_threads: int, offsets: Any = None, /) -> Floats:
        """Return the probabilities of the labels, (n, K)."""

    def risks(self, counts: Any, n_threads: int, offsets: Any = None, /) -> Floats:
        """Return the expected absolute errors of answering each label, (n, K)."""


class Model(SavedAsJson, Displayed):
    """A model of labels given counts: their logits are a design of the counts times its numbers.

    `DavidsonModel` is of one judge's pairs, `PanelModel` of several judges', `GradeModel` of
    grades. Each says what its numbers are and how it reads counts: (n, 3), (n, judges, 3) and
    (n, J), a column for each point of the scale of votes. What they do with them is here.
    """

    SAVED: ClassVar[tuple[str, ...]]
    OPTIONAL: ClassVar[tuple[str, ...]] = ()  # saved unless None
    COLUMNS: ClassVar[tuple[str, ...]]  # what SQL has the counts in
    scale: Scale
    label_scale: Scale
    provenance: Provenance | None
    judges: tuple[str, ...] = ()  # of a panel
    covariates: tuple[Covariate, ...] = ()
    # The points and their distance where they are not those that the core decides by.
    _points: ClassVar[NDArray[Any] | None] = None
    _unit: ClassVar[float] = 1.0

    if TYPE_CHECKING:

        @property
        def _kernel(self) -> Kernel:
            """The core of the model."""

        def _read(self, counts: ArrayLike) -> NDArray[Any]:
            """Return checked counts, a row for each item, and of a panel for each judge of one."""

        def sentence(self) -> str:
            """Return the fitted numbers in a line."""

        def parameters(self, note: str = "", intervals: Any = None) -> ResultTable:
            """Return the fitted numbers as a table."""

    def __post_init__(self) -> None:
        scale = scale_from(self.scale, "scale")
        label_scale = scale_from(self.label_scale or scale, "label_scale")
        require_alike(scale, label_scale)
        self.__dict__.update(scale=scale, label_scale=label_scale)
        listed: Any = self.covariates
        is_listed = isinstance(listed, list | tuple)
        expect(is_listed, "covariates", listed, "a list of Covariate")
        made = [Covariate(**known) if isinstance(known, dict) else known for known in listed]
        for row, known in enumerate(made):
            expect(isinstance(known, Covariate), "covariates", known, "a Covariate", row=row)
        self.__dict__.update(covariates=tuple(made))
        if label_scale.mirrored and label_scale != PAIRS:
            unit = label_scale.points[1] - label_scale.points[0]
            self.__dict__.update(_points=label_scale.labels, _unit=unit)
        if not isinstance(self.provenance, Provenance | None):
            object.__setattr__(self, "provenance", Provenance.from_dict(self.provenance))

    def decide(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> NDArray[Any]:
        """Label of least expected absolute error for each item, (n,): points of the label scale.

        Whole points are int64, or int8 where all are from -1 to 1. `covariates` are the model's,
        (n,) columns by name, a data frame, or an (n, d) array in its order. NaN is a missing value:
        it counts as 0, of grades as the mean.
        """
        of_items = self._of_items(counts, covariates, n_threads)
        labels: NDArray[Any] = self._labels(self._kernel.decide(*of_items))
        return labels

    def decide_one(self, *counts: Any, covariates: Mapping[str, float] | None = None) -> float:
        """Label of one item from its counts, of a panel three from each judge."""
        label: float = self.decide([counts], covariates=_of_one(covariates))[0].item()
        return label

    def predict_proba_one(
        self, *counts: Any, covariates: Mapping[str, float] | None = None
    ) -> tuple[float, ...]:
        """Probabilities of the labels of one item, in their order; arguments as of `decide_one`."""
        return tuple(self.predict_proba([counts], covariates=_of_one(covariates))[0].tolist())

    def predict_proba(
        self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1
    ) -> Floats:
        """Probabilities of the labels for each item, (n, K); covariates are as in `decide`."""
        return self._kernel.predict_proba(*self._of_items(counts, covariates, n_threads))

    def risks(self, counts: ArrayLike, *, covariates: Any = None, n_threads: int = 1) -> Floats:
        """Expected absolute error of answering each label for each item, (n, K)."""
        of_items = self._of_items(counts, covariates, n_threads)
        risks: Floats = self._errors(self._kernel.risks(*of_items))
        return risks

    def to_sql(
        self,
        dialect: str,
        *,
        covariates: Mapping[str, str | Sequence[str]] | None = None,
        probabilities: bool = False,
        **columns: Any,
    ) -> str:
        """Return the decision as one SQL expression over columns of counts.

        Its value is a point of the label scale, or NULL where counts are NULL, negative or, of
        grades, off the scale of votes.

        Parameters
        ----------
        dialect : str
            SQL dialect: duckdb, postgresql, sqlite, spark or clickhouse.
        covariates : mapping of str to str or sequence of str, optional
            Columns of covariates that are not called as in the model; NULL is a missing value. A
            standing is a column too, such as a difference of two joined by system.
        probabilities : bool
            Return instead the columns of a query, named `label` and as the labels: of pairs
            `p_minus`, `p_tie` and `p_plus`, of grades such as `p_0` and `p_1`.
        minus, tie, plus : str or sequence of str
            Of pairs: columns of the counts, of any integer type, quoted; several parts are a
            qualified name such as ``("v", "minus")``.
        mean : str or sequence of str
            Of grades: column of the mean vote, which a query has as ``AVG(score)``.
        columns : mapping of str to (str, str, str), optional
            Of a panel: minus, tie and plus of each judge, by default ``"minus <judge>"`` and so on.
            A judge whose three are all NULL is absent.

        Notes
        -----
        It compares as `decide` does, in 64-bit floats. Equal risks give a tie in any database, as
        its allowance for rounding covers functions that are off in their last digits. The two can
        differ only if risks that are not equal differ by a few rounding errors of a float.

        Examples
        --------
        >>> from btdagg import PASS_FAIL, DavidsonModel, GradeModel
        >>> model = DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8)
        >>> query = f"SELECT item, {model.to_sql('duckdb')} AS label FROM counts"
        >>> model = GradeModel(2, cuts=(5.5,), scale=Scale(range(1, 11)), label_scale=PASS_FAIL)
        >>> query = f"SELECT item, {model.to_sql('duckdb')} AS grade FROM means"
        """
        from btdagg.model.sql.decisions import to_sql

        for name, column in columns.items():
            expect(name in self.COLUMNS, name, column, f"none but {', '.join(self.COLUMNS)}")
        return to_sql(self, dialect, covariates=covariates, probabilities=probabilities, **columns)

    @property
    def foresees(self) -> bool:
        """Whether the chances of votes to come can be told: of pairs, by their votes alone."""
        return self.scale.mirrored and not self.covariates

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the columns of probabilities, after ``p_``."""
        return tuple(self.label_scale.columns)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the fitted numbers."""
        return (self.parameters(),)

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers and the provenance, if there is one, as plain values."""
        origin = {} if self.provenance is None else {"provenance": self.provenance.as_dict()}
        values = {name: getattr(self, name) for name in self.SAVED}
        plain = {k: v.as_dict() if isinstance(v, Scale) else v for k, v in values.items()}
        written = {k: v for k, v in plain.items() if v != PAIRS.as_dict()}  # what is usual goes
        optional = {name: getattr(self, name) for name in self.OPTIONAL}
        written |= {name: value for name, value in optional.items() if value is not None}
        if self.covariates:
            written["covariates"] = [covariate.as_dict() for covariate in self.covariates]
        return {**written, **origin}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Self:
        """Return the model from the fields of `as_dict`."""
        scales = {"scale": PAIRS, "label_scale": PAIRS} | fields
        if scales.keys() - {"provenance", "covariates", *cls.OPTIONAL} != set(cls.SAVED):
            expected = f"{sorted(cls.SAVED)}; {MADE_ANEW}"
            raise InputError(argument="fields", got=sorted(fields), expected=expected)
        return cls(**scales)

    def require_votes_alone(self, user: str) -> None:
        """Refuse a model that needs covariates for who has votes alone."""
        names = ", ".join(covariate.name for covariate in self.covariates)
        expected = f"a model without covariates for {user}; this one needs {names} of each item"
        expect(not self.covariates, "model", f"one with {names}", expected)

    def _of_items(
        self, counts: ArrayLike, covariates: Any, n_threads: int
    ) -> tuple[NDArray[Any], int, Floats | None]:
        rows = self._read(counts)
        n_threads = as_integer(n_threads, "n_threads", 1)
        return rows, n_threads, offsets_of(self, covariates, len(rows) // (len(self.judges) or 1))

    def _labels(self, decided: Any) -> Any:
        return decided if self._points is None else self._points[decided + 1]

    def _errors(self, errors: Any) -> Any:
        return errors if self._points is None else errors * self._unit


def _of_one(covariates: Mapping[str, float] | None) -> dict[str, list[float]] | None:
    return None if covariates is None else {name: [value] for name, value in covariates.items()}
