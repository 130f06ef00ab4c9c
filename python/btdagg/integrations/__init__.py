"""Where other tools meet btdagg: one file per neighbour."""

from btdagg.lazy import loader

__all__ = [
    "LabelsTable",
    "VotesTable",
    "annotations",
    "arrow",
    "histogram_query",
    "langfuse",
    "mlflow",
    "opentelemetry",
    "phoenix",
    "sklearn",
]

__getattr__ = loader(
    __name__,
    {"histogram_sql": ["LabelsTable", "histogram_query"], "votes_sql": ["VotesTable"]},
    ("annotations", "arrow", "langfuse", "mlflow", "opentelemetry", "phoenix", "sklearn"),
)
