"""Labels made by people: a page that shows pairs, and a store that keeps what raters say."""

from btdagg._util.extras import needs

with needs("label", "labelling"):
    from btdagg.labelling.assignment import Assignment
    from btdagg.labelling.outcome import Outcome
    from btdagg.labelling.server import serve_labels
    from btdagg.labelling.session import Session
    from btdagg.labelling.store import LabelStore

__all__ = [
    "Assignment",
    "LabelStore",
    "Outcome",
    "Session",
    "serve_labels",
]
