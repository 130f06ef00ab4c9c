"""Errors for missing libraries, which name the extra to install."""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    import polars as pl

# What to install, where that is not the name that is imported, with hyphens.
_PACKAGES = {
    "google": "google-genai",
    "markdown_it": "markdown-it-py",
    "mlflow": "mlflow-skinny",
    "opentelemetry": "opentelemetry-sdk",
    "phoenix": "arize-phoenix-client",
    "pydantic_ai": "pydantic-ai-slim",
    "pydantic_core": "pydantic",
    "sklearn": "scikit-learn",
}


class MissingExtraError(ImportError):
    """A library is not installed. The message is one line and names the extra to install."""


@contextmanager
def needs(extra: str, what: str) -> Iterator[None]:
    """Import libraries in the body; a `MissingExtraError` names the `extra` of a missing one.

    >>> with needs("tables", "reading tables"):  # doctest: +SKIP
    ...     import polars
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module in ("", "btdagg"):
            raise
        package = _PACKAGES.get(module, module.replace("_", "-"))
        message = f"{what} needs {package}: pip install 'btdagg[{extra}]'"
        raise MissingExtraError(message, name=error.name) from error


def as_frame(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    with needs("tables", "a data frame"):
        import polars as pl
    return pl.DataFrame(rows, infer_schema_length=None)
