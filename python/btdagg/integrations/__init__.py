"""Where other tools meet btdagg: one file per neighbour."""

from typing import TYPE_CHECKING

from btdagg.lazy import loader

if TYPE_CHECKING:
    from btdagg.integrations import (  # noqa: F401
        annotations,
        arrow,
        inspect,
        langfuse,
        mlflow,
        opentelemetry,
        phoenix,
        pytest,
        sklearn,
    )
    from btdagg.integrations.histogram_sql import LabelsTable, histogram_query
    from btdagg.integrations.votes_sql import VotesTable

_NEIGHBOURS = (
    "annotations",
    "arrow",
    "inspect",
    "langfuse",
    "mlflow",
    "opentelemetry",
    "phoenix",
    "pytest",
    "sklearn",
)

__all__ = ["LabelsTable", "VotesTable", "histogram_query", *_NEIGHBOURS]

__getattr__ = loader(
    __name__,
    {"histogram_sql": ["LabelsTable", "histogram_query"], "votes_sql": ["VotesTable"]},
    _NEIGHBOURS,
)
