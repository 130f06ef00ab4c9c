"""Where other tools meet btdagg: one file per neighbour."""

from btdagg.lazy import loader

_NEIGHBOURS = (
    "annotations",
    "arrow",
    "inspect",
    "langfuse",
    "mlflow",
    "notebook",
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
