"""Where other tools meet btdagg: one file per neighbour."""

from btdagg.lazy import loader

__all__ = [
    "LabelsTable",
    "VotesTable",
    "annotations",
    "arrow",
    "histogram_query",
    "inspect",
    "langfuse",
    "mlflow",
    "notebook",
    "opentelemetry",
    "phoenix",
    "pytest",
    "sklearn",
]

__getattr__ = loader(
    __name__,
    {"histogram_sql": ["LabelsTable", "histogram_query"], "votes_sql": ["VotesTable"]},
    (
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
    ),
)
