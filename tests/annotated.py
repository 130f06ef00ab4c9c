"""Annotations as tests of the tools that keep them write and compare them."""

import datetime as dt

from btdagg import PASS_FAIL, GradeModel, Scale

# A vote of 1 passes, and is the second of three grades.
PASS = GradeModel(beta=2, cuts=(0.5,), scale=PASS_FAIL)
GRADES = GradeModel(beta=4, cuts=(0, 1.5), scale=PASS_FAIL, label_scale=Scale((1, 2, 3)))
NOON = dt.datetime(2026, 1, 31, 12, 0, 0, 123000, tzinfo=dt.UTC)
_ORDER = ("trace_id", "span_id", "name", "annotator_kind", "annotator", "identifier", "label")


def annotation(trace="t1", label="A", **other):
    """A row of a frame of annotations."""
    common = {"name": "better", "annotator_kind": "LLM", "annotator": "gpt-5.4"}
    return {"trace_id": trace, **common, "label": label, **other}


def ordered(frame):
    return frame.sort(_ORDER)


def said(frame):
    """All but the times, which a server may set."""
    return ordered(frame).drop("created").to_dicts()
