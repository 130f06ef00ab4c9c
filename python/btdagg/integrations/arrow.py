"""Decisions on Arrow data: record batch to record batch, for engines that hand over batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg.model.davidson import DavidsonModel
from btdagg.online.rule import StoppingRule

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)

_SIDES = ("minus", "tie", "plus")


@dataclass(frozen=True)
class BatchDecider:
    """Adds labels, and how sure they are, to record batches or tables with three columns of counts.

    It can be pickled, so that an engine can send it to its workers.

    Parameters
    ----------
    by : DavidsonModel or StoppingRule
        What decides. A model adds `label` (int8); a rule adds `label` and `settled` (bool), whether
        it stops there, and if it knows the risk `change_risk` (float64), the probability that all
        votes would give another label, which is null for items that are not settled.
    probabilities : bool
        Add `p_minus`, `p_tie` and `p_plus` (float64) of the model, or of the rule's model.
    columns : sequence of str
        The columns of counts, in label order.

    Raises
    ------
    InputError
        If an argument is of another type, or `columns` are not three.

    Examples
    --------
    >>> import pyarrow as pa
    >>> decide = BatchDecider(DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8))
    >>> batch = pa.record_batch({"minus": [0, 5], "tie": [1, 2], "plus": [9, 5]})
    >>> decide(batch)["label"].to_pylist()
    [1, 0]
    """

    by: DavidsonModel | StoppingRule
    probabilities: bool = False
    columns: tuple[str, str, str] = _SIDES

    def __post_init__(self) -> None:
        if not isinstance(self.by, DavidsonModel | StoppingRule):
            raise InputError(f"by is {self.by!r}, expected a DavidsonModel or a StoppingRule")
        if isinstance(self.columns, str) or len(set(self.columns)) != len(_SIDES):
            raise InputError(f"columns is {self.columns!r}, expected three names")
        object.__setattr__(self, "columns", tuple(self.columns))

    def __call__(self, batch: Batch) -> Batch:
        """Return a batch with its columns, and those that are added after them.

        Parameters
        ----------
        batch : pyarrow.RecordBatch or pyarrow.Table
            Counts are of any integer type, or floats where integral.

        Raises
        ------
        InputError
            If a column of counts is not there, one that is added is there already, or a count is
            null, negative or not whole; the message names the column and the row of the batch.
        MissingExtraError
            If pyarrow is not installed.
        """
        schema = self.schema(batch.schema)
        with needs("arrow", "deciding Arrow batches"):
            import pyarrow as pa
        counts = self._counts(batch)
        added: list[Any] = [pa.array(self.by.decide(counts))]
        model = self.by.model if isinstance(self.by, StoppingRule) else self.by
        if isinstance(self.by, StoppingRule):
            settled = self.by.stops(counts)
            added.append(pa.array(settled))
            if self.by.votes is not None:
                added.append(pa.array(self.by.change_risk(counts), mask=~settled))
        if self.probabilities:
            added += map(pa.array, np.ascontiguousarray(model.predict_proba(counts).T))
        return type(batch).from_arrays([*batch.columns, *added], schema=schema)

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide batches one after the other, as Spark's `mapInArrow` hands them over."""
        return map(self, batches)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of what is decided.

        Raises
        ------
        InputError
            If a column of counts is not there, or one that is added is there already.
        """
        with needs("arrow", "deciding Arrow batches"):
            import pyarrow as pa
        for name in self.columns:
            if schema.names.count(name) != 1:
                found = ", ".join(schema.names)
                raise InputError(f"batch has no column {name!r} or several; found {found}")
        added = [pa.field("label", pa.int8())]
        if isinstance(self.by, StoppingRule):
            added.append(pa.field("settled", pa.bool_()))
            if self.by.votes is not None:
                added.append(pa.field("change_risk", pa.float64()))
        if self.probabilities:
            added += [pa.field(f"p_{side}", pa.float64()) for side in _SIDES]
        for field in added:
            if field.name in schema.names:
                raise InputError(f"batch has a column {field.name!r} already, which is added")
            schema = schema.append(field)
        return schema

    def _counts(self, batch: pa.RecordBatch | pa.Table) -> NDArray[Any]:
        several = []
        for name in self.columns:
            column = batch.column(name)
            if column.null_count:
                row = column.is_null().to_pylist().index(True)
                raise InputError(f"batch, row {row}, column {name}: null, expected a count")
            values = column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(False)
            if values.dtype.kind not in "iuf":
                raise InputError(
                    f"batch, column {name}: type {column.type}, expected whole numbers"
                )
            several.append(values)
        if len({values.dtype.kind for values in several}) > 1:
            # NumPy would make floats of them, which do not hold every count.
            several = [_unsigned(name, v) for name, v in zip(self.columns, several, strict=True)]
        return np.column_stack(several)


def _unsigned(name: str, values: NDArray[Any]) -> NDArray[np.uint64]:
    """Return counts of any type as integers of one type."""
    good = (values >= 0) & (values < 2.0**64) & (values == np.floor(values))
    if not good.all():
        row = int(np.argmin(good))
        raise InputError(f"batch, row {row}, column {name}: {values[row]}, expected a count")
    return values.astype(np.uint64)
