"""Decisions on Arrow data: record batch to record batch, for engines that hand over batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from btdagg._util.errors import forbid
from btdagg._util.extras import needs
from btdagg.model.davidson import DavidsonModel
from btdagg.model.grades import GradeModel
from btdagg.online.rule import StoppingRule
from btdagg.questions.decisions import covariates_in, decided_columns, unknown_in
from btdagg.votes.provenance import warn_of

if TYPE_CHECKING:
    import pyarrow as pa

    Batch = TypeVar("Batch", pa.RecordBatch, pa.Table)


@dataclass(frozen=True)
class BatchDecider:
    """Adds labels, and how sure they are, to record batches or tables with columns of counts.

    It can be pickled, so that an engine can send it to its workers.

    Parameters
    ----------
    by : DavidsonModel, GradeModel or StoppingRule
        A model adds `label`; of grades columns of counts are named by the points. Its covariates
        need a column each, or those they are made of, such as `system_a` and `system_b`. A rule
        adds `label`, `settled` (bool) and, if it knows the risk, `change_risk` (float64), that all
        votes would give another label, null for items that are not settled.
    probabilities : bool
        Add `p_minus`, `p_tie` and `p_plus` (float64) of the model; of grades `p_1`, `p_2`, ... By a
        rule they are null for items that do not have all votes, for which its model is.

    Examples
    --------
    >>> import pyarrow as pa
    >>> decide = BatchDecider(DavidsonModel(beta=1.2, eta0=2.0, gamma=0.8))
    >>> batch = pa.record_batch({"minus": [0, 5], "tie": [1, 2], "plus": [9, 5]})
    >>> decide(batch)["label"].to_pylist()
    [1, 0]
    """

    by: DavidsonModel | GradeModel | StoppingRule
    probabilities: bool = False

    def __call__(self, batch: Batch) -> Batch:
        """Return a batch with its columns, and after them those that are added."""
        with needs("arrow", "deciding Arrow batches"):
            import pyarrow as pa
        model = self.by.model if isinstance(self.by, StoppingRule) else self.by
        counts = np.column_stack([np.asarray(batch.column(name)) for name in model.scale.columns])
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        known = covariates_in(columns, model, counts, "batch")
        warn_of(unknown_in(known))
        decided = decided_columns(
            self.by, counts, probabilities=self.probabilities, covariates=known
        )
        decided.pop("mean", None)  # which a batch has no column for
        added: dict[str, Any] = {
            name: pa.array(
                np.ascontiguousarray(column),
                mask=np.isnan(column) if column.dtype.kind == "f" else None,
            )
            for name, column in decided.items()
        }
        schema = batch.schema
        for name, column in added.items():
            forbid(
                name in schema.names,
                f"batch already has a column {name!r}, which decisions would add; rename it",
            )
            schema = schema.append(pa.field(name, column.type))
        return type(batch).from_arrays([*batch.columns, *added.values()], schema=schema)

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decide batches one after the other, as Spark's `mapInArrow` hands them over."""
        return map(self, batches)
