"""Annotations of Phoenix's spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from btdagg._core import InputError
from btdagg._util.extras import needs
from btdagg._util.lazy import pl
from btdagg.integrations.annotations import OWN, frame_of, rows_of
from btdagg.judge.client import batched

with needs("phoenix", "reading Phoenix's spans"):
    import httpx
    from phoenix.client import Client

if TYPE_CHECKING:
    from btdagg.votes.source import Source

_MOST_SPANS = 10**9  # Phoenix gives 100 unless told
_AT_ONCE = 100
_RESULT = ("label", "score", "explanation")


def read(
    client: Client | None = None,
    *,
    project: str = "default",
    spans: Iterable[Mapping[str, Any]] | None = None,
) -> pl.DataFrame:
    """Read the annotations of spans.

    Parameters
    ----------
    client : phoenix.client.Client, optional
        One of the server that Phoenix's environment variables name, unless given.
    project : str
    spans : iterable of spans, optional
        As `client.spans.get_spans` returns them: all of the project, unless given.

    Returns
    -------
    polars.DataFrame
        Annotations (see `btdagg.integrations.annotations`), without notes. `created` is when
        Phoenix got an annotation first. `annotator` is what btdagg wrote, or the user's id.
    """
    client = client or Client()
    if spans is None:
        spans = client.spans.get_spans(project_identifier=project, limit=_MOST_SPANS)
    traces = {span["context"]["span_id"]: span["context"]["trace_id"] for span in spans}
    if not traces:
        return frame_of([])
    annotations = client.spans.get_span_annotations(span_ids=traces, project_identifier=project)
    rows = [_row(annotation, traces) for annotation in annotations]
    return frame_of(sorted(rows, key=lambda row: row["created"]))


def write(annotations: Source, client: Client | None = None) -> None:
    """Log annotations on their spans.

    Phoenix replaces an annotation of the same span, name and identifier: writing twice changes
    nothing.

    Parameters
    ----------
    annotations
        As `btdagg.integrations.annotations.read_annotations` takes them; `identifier` is by default
        the annotator. Phoenix sets `created` by itself.
    client : phoenix.client.Client, optional
        As in `read`.

    Raises
    ------
    InputError
        If Phoenix does not have a span, which leaves other rows written, or two rows would be the
        same annotation.
    """
    client = client or Client()
    data = [_data(row) for _, row in rows_of(annotations, "span_id")]
    if len({(row["span_id"], row["name"], row["identifier"]) for row in data}) < len(data):
        expected = "distinct identifiers for annotations with the same span and name"
        raise InputError(f"annotations: expected {expected}", argument="annotations")
    for part in batched(data, _AT_ONCE):
        try:
            client.spans.log_span_annotations(span_annotations=part, sync=True)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != 404:
                raise
            message = f"annotations: Phoenix does not have all spans: {error.response.text}"
            raise InputError(message, argument="annotations") from None


def _row(annotation: Mapping[str, Any], traces: Mapping[str, str]) -> dict[str, Any]:
    metadata = dict(annotation.get("metadata") or {})
    own_fields = metadata.pop(OWN, {})
    result = annotation.get("result") or {}
    return {
        "trace_id": traces[annotation["span_id"]],
        "span_id": annotation["span_id"],
        "name": annotation["name"],
        **{key: result.get(key) for key in _RESULT},
        "annotator_kind": annotation["annotator_kind"],
        "annotator": own_fields.get("annotator", annotation.get("user_id")),
        "identifier": own_fields.get("identifier", annotation.get("identifier") or None),
        "metadata": metadata,
        "created": datetime.fromisoformat(annotation["created_at"]),
    }


def _data(row: Mapping[str, Any]) -> dict[str, Any]:
    identifier = row["identifier"] or row["annotator"] or ""
    own_fields = {} if row["annotator"] is None else {"annotator": row["annotator"]}
    if identifier != (row["identifier"] or ""):
        own_fields["identifier"] = row["identifier"]
    return {
        "name": row["name"],
        "annotator_kind": row["annotator_kind"],
        "span_id": row["span_id"],
        "result": {key: row[key] for key in _RESULT if row[key] is not None},
        "metadata": row["metadata"] | ({OWN: own_fields} if own_fields else {}),
        "identifier": identifier,
    }
