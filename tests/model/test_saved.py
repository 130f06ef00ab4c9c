"""Files with a header: what earlier versions wrote still loads, and what is none is one line."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from btdagg import DavidsonModel, InputError
from btdagg.online import DriftMonitor, OnlineTally, StoppingRule

SAVED = Path(__file__).parent / "saved"
WHAT = {
    "model.json": ("model", DavidsonModel.load),
    "rule.json": ("stopping rule", StoppingRule.load),
    "monitor.json": ("drift monitor", DriftMonitor.load),
    "tally.state": ("tally", OnlineTally.load),
}


def test_files_of_earlier_versions_load_with_every_value():
    model = DavidsonModel.load(SAVED / "model.json")
    assert list(model.numbers.values()) == [1.25, 2.5, -0.75, 1.0, 0.5]
    assert (model.provenance.judge, model.provenance.n_votes) == (("gpt-x",), 4)
    rule = StoppingRule.load(SAVED / "rule.json")
    assert (rule.model, rule.kind, rule.n, rule.epsilon) == (model, "risk-bounded", 4, 0.1)
    tally = OnlineTally.load(SAVED / "tally.state")
    ids, counts = tally.counts()
    assert (ids.tolist(), counts.tolist()) == (["x", "y"], [[1, 0, 1], [0, 1, 0]])
    # To write it again gives the very file.
    for name, value in {"model.json": model, "rule.json": rule, "tally.state": tally}.items():
        assert as_saved(value) == (SAVED / name).read_bytes()
    monitor = DriftMonitor.load(SAVED / "monitor.json")
    assert as_saved(monitor) == (SAVED / "monitor.json").read_bytes()


def as_saved(value):
    if isinstance(value, OnlineTally):
        return value.to_bytes()
    return (value.to_json() + "\n").encode()


def with_header(path, **changed):
    """The file with something else in its header."""
    if path.suffix == ".json":
        return json.dumps({**json.loads(path.read_text()), **changed}).encode()
    with np.load(path) as file:
        arrays = dict(file)
    header = {**json.loads(arrays["header"].tobytes()), **changed}
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(written := io.BytesIO(), **arrays)
    return written.getvalue()


@pytest.mark.parametrize("name", WHAT)
def test_other_formats_and_versions_are_refused_alike(tmp_path, name):
    what, load = WHAT[name]
    path = tmp_path / name
    path.write_bytes(with_header(SAVED / name, format="btdagg.other"))
    with pytest.raises(
        InputError, match=f'^{path}: no btdagg {what}, expected an object with "format'
    ):
        load(path)
    path.write_bytes(with_header(SAVED / name, version=3))
    with pytest.raises(InputError) as refused:
        load(path)
    assert str(refused.value) == (
        f"{path}: {what} version 3, this btdagg reads version 1; a newer btdagg may read it"
    )
    path.write_bytes(with_header(SAVED / name, version="1"))
    with pytest.raises(InputError, match=f"{what} version '1', this btdagg reads version 1$"):
        load(path)
