"""Files with a header: what earlier versions wrote still loads, and what is none is one line."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

from btdagg import (
    PASS_FAIL,
    DavidsonModel,
    GradeModel,
    InputError,
    PanelModel,
    Scale,
    calibrate,
    certify,
)
from btdagg.estimates import Certificate
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
    tally = OnlineTally.load(SAVED / "tally.state", rule=rule)
    ids, counts = tally.counts()
    assert (ids.tolist(), counts.tolist()) == (["x", "y"], [[1, 0, 1], [0, 1, 0]])
    # To write it again gives the very file; a state of version 1 is converted.
    again = OnlineTally.load(SAVED / "tally_2.state", rule=rule)
    files = {"model.json": model, "rule.json": rule, "tally_2.state": tally}
    for name, value in {**files, "tally_2.state": again}.items():
        assert as_saved(value) == (SAVED / name).read_bytes()
    assert tally.to_bytes() == again.to_bytes()
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
        InputError, match=f'^{path}: not a btdagg {what}, expected an object with "format'
    ):
        load(path)
    path.write_bytes(with_header(SAVED / name, version=3))
    with pytest.raises(InputError) as refused:
        load(path)
    assert str(refused.value) == (
        f"{path}: {what} version 3, this btdagg reads version 1; a newer btdagg may read it"
    )
    path.write_bytes(with_header(SAVED / name, version=0))
    with pytest.raises(InputError, match=r"make it again from votes and labels$"):
        load(path)
    path.write_bytes(with_header(SAVED / name, version="1"))
    with pytest.raises(InputError, match=f"{what} version '1', this btdagg reads version 1$"):
        load(path)


@pytest.mark.parametrize("name", ["model.json", "rule.json", "monitor.json"])
def test_what_lacks_a_field_can_be_made_anew(tmp_path, name):
    saved = json.loads((SAVED / name).read_text())
    del saved[{"model.json": "beta", "rule.json": "model", "monitor.json": "level"}[name]]
    (tmp_path / name).write_text(json.dumps(saved))
    with pytest.raises(InputError, match=r"make it again from votes and labels$"):
        WHAT[name][1](tmp_path / name)


def test_true_is_no_number_of_a_model(tmp_path):
    path = tmp_path / "model.json"
    saved = json.loads((SAVED / "model.json").read_text())
    path.write_text(json.dumps({**saved, "gamma": True}))
    with pytest.raises(InputError, match="gamma is True, expected a finite number"):
        DavidsonModel.load(path)
    grades = json.loads(GradeModel(1, [2], Scale((1, 2, 3)), PASS_FAIL).to_json())
    path.write_text(json.dumps({**grades, "cuts": [True]}))
    with pytest.raises(InputError, match=r"cuts\[0\] is True, expected a finite number"):
        GradeModel.load(path)


def test_cuts_may_descend_as_those_of_grades_that_are_rare(tmp_path):
    people = np.array([1, 3] * 24 + [2])
    # A third of the items have any vote, the others that of the label.
    votes = np.where(np.arange(49) % 3, people, np.random.default_rng(0).integers(1, 4, 49))
    counts = np.eye(3, dtype=int)[votes - 1]
    model = calibrate(counts, people, scale=Scale((1, 2, 3)), prior=None).model
    assert model.cuts[0] > model.cuts[1]
    model.save(tmp_path / "model.json")
    assert GradeModel.load(tmp_path / "model.json") == model


def saved_values():
    """One of each kind that commands read."""
    rng = np.random.default_rng(0)
    counts = rng.multinomial(5, [0.3, 0.3, 0.4], 60)
    labels = np.sign(counts[:, 2] - counts[:, 0]).astype(float)
    labels[40:] = np.nan
    yield from (DavidsonModel.load(SAVED / "model.json"), StoppingRule.load(SAVED / "rule.json"))
    yield GradeModel(1, [2], Scale((1, 2, 3)), PASS_FAIL)
    yield PanelModel(("a", "b"), beta=(1.0, 0.4), eta0=1.0, gamma=(0.5, 0.2))
    yield certify(counts, labels)


@pytest.mark.parametrize("value", [*saved_values()], ids=lambda value: type(value).__name__)
def test_keys_may_come_in_any_order(tmp_path, value):
    # As jq -S and PostgreSQL's jsonb write them.
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(json.loads(value.to_json()), sort_keys=True, indent=2))
    assert type(value).load(path).to_json() == value.to_json()


def test_grades_of_an_older_version_are_to_be_made_anew(tmp_path):
    numbers = {
        "beta": 2.0,
        "cuts": [1.5, 2.5, 3.5, 4.5],
        "scale": {"votes": [1, 2, 3, 4, 5], "grades": [1, 2, 3, 4, 5]},
    }
    model = {"format": "btdagg.grades", "version": 1, **numbers}
    rule = json.loads((SAVED / "rule.json").read_text())
    rule |= {"kind": "lossless", "epsilon": None, "votes": None, "model": numbers}
    path = tmp_path / "old.json"
    for loads, fields in (
        (GradeModel, model),
        (StoppingRule, rule),
        (Certificate, {"format": "btdagg.certificate", "version": 1, "model": model}),
    ):
        path.write_text(json.dumps(fields))
        with pytest.raises(InputError, match=r"make it again from votes and labels$"):
            loads.load(path)


def test_a_certificate_has_the_scales_of_its_model():
    counts = np.random.default_rng(0).multinomial(6, [0.3, 0.2, 0.5], size=60)
    new = certify(counts, np.sign(counts[:, 2] - counts[:, 0]))
    old = {**json.loads(new.to_json()), "scale": None}
    assert Certificate.from_json(json.dumps(old)).as_dict() == new.as_dict()
