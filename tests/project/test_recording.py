"""What a fixed set of jobs gives by command, Python, frame, SQL and service: recording.json.

The numbers were written once, by `python tests/project/test_recording.py`, and a change of the
code's shape leaves them alone. One that mends a number writes them again and says so.
"""

import json
import math
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient

import btdagg
from btdagg.cli import run
from btdagg.serve import create_app
from families import N_LABELS, NAMES, family

RECORDING = Path(__file__).with_name("recording.json")
RECORDED = NAMES[:4]
TEXTS = {"remarks", "message", "provenance", "version", "format", "scale", "label_scale"}


def numbers(value):
    """A result without its sentences and what it says of files."""
    if isinstance(value, dict):
        return {str(k): numbers(v) for k, v in value.items() if k not in TEXTS}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [numbers(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and math.isnan(value) else value


def by_command(of, folder):
    """Files and JSON of commands; a panel has no model of its own there."""
    files, told = [of.votes, of.labels], [*of.options]
    model, decided = folder / "model.json", folder / "decided.csv"
    printed = folder / "printed.json"

    def asked(*arguments):
        with printed.open("w") as out, pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdout", out)
            status = run([str(argument) for argument in arguments])
        assert status in (0, 1), arguments
        text = printed.read_text()
        return numbers(json.loads(text)) if text.startswith("{") else None

    system = ["--by", "system"] if of.name == "grades" else ["--systems", "system_a,system_b"]
    sides = ["--candidate", "red", "--baseline", "blue", "--margin", "0.3", "--json"]
    jobs = {
        "estimate": asked("estimate", *files, *told, *of.panel, *system, "--json"),
        "certify": asked("certify", *files, *told, *of.panel, "--agreement", "0.7", "--json"),
        "gate": asked("gate", *files, *told, *sides),
        "choose": asked("choose", of.votes, "--items", "20", "-o", folder / "drawn.csv", *told[:2]),
    }
    jobs["choose"] = pl.read_csv(folder / "drawn.csv")["item"].to_list()
    if not of.panel:
        asked("calibrate", *files, *told, "-o", model)
        asked("decide", model, of.votes, *told, "-o", decided)
        rows = pl.read_csv(decided)
        jobs |= {
            "calibrate": numbers(json.loads(model.read_text())),
            "decide": [list(row) for row in rows.rows()],
            "compare": asked("compare", *files, *told, "--first", "n=2", "--json"),
        }
    methods = ["--methods", "davidson,majority"] if of.name != "grades" else []
    jobs["evaluate"] = asked("evaluate", *files, *told, *methods, "--json")
    return jobs


def by_python(of):
    """Results of functions on tables and arrays."""
    votes, labels = tables(of)
    if of.panel:
        fitted = btdagg.calibrate_panel(votes, labels)
        counts = votes
    else:
        counts = votes.counts()[1]
        gold = np.array([*labels.frame["label"].to_list(), *[None] * (len(counts) - N_LABELS)])
        calibrate = btdagg.calibrate
        scales = {"scale": votes.scale, "label_scale": labels.scale}
        options = scales if of.name == "grades" else {}
        fitted = calibrate(counts[:N_LABELS], gold[:N_LABELS].astype(float), **options)
    jobs = {
        "model": numbers(fitted.model.as_dict()),
        "labels": numbers(fitted.model.decide(counts)),
        "probabilities": numbers(fitted.model.predict_proba(counts)),
    }
    if not of.panel:
        estimates = btdagg.estimate(votes, labels)
        certificate = btdagg.certify(votes, labels, agreement=0.7)
        jobs |= {
            "estimate": {k: [v.value, v.low, v.high] for k, v in estimates.estimates.items()},
            "certify": numbers([certificate.threshold, certificate.coverage, certificate.curve]),
            "trusted": numbers(certificate.trusted(counts)),
        }
    return jobs, fitted.model, counts


def tables(of):
    """Votes and labels of a family."""
    graded = of.name == "grades"
    scales = (btdagg.Scale(range(1, 6)), btdagg.Scale(range(1, 4))) if graded else (None, None)
    return (
        btdagg.read_votes(of.votes, scale=scales[0]),
        btdagg.read_labels(of.labels, scale=scales[1]),
    )


def by_frame(of):
    """A frame of the user's, and labels beside it."""
    votes, labels = pl.read_csv(of.votes), pl.read_csv(of.labels)
    scales = dict(zip(("scale", "label_scale"), (table.scale for table in tables(of)), strict=True))
    decided = btdagg.decide(votes, labels, agreement=0.7, **scales)
    return [list(row) for row in decided.rows()]


def by_sql(model, counts, scale):
    """Labels of a database."""
    columns = {"minus": counts[:, 0], "tie": counts[:, 1], "plus": counts[:, -1]}
    if not scale.mirrored:
        columns = {"mean": counts @ scale.values / counts.sum(axis=1)}
    connection = sqlite3.connect(":memory:")
    connection.execute(f"create table votes ({', '.join(columns)})")
    rows = np.stack([*columns.values()], axis=1).tolist()
    connection.executemany(f"insert into votes values ({', '.join('?' * len(columns))})", rows)
    decided = connection.execute(f"select {model.to_sql('sqlite')} from votes order by rowid")
    return [label for (label,) in decided]


def by_service(model, counts):
    """Labels and probabilities over HTTP."""
    client = TestClient(create_app(model))
    body = {"counts": counts.tolist()}
    answer = client.post("/v1/decide?probabilities=true", json=body).json()
    return {name: answer[name] for name in ("labels", "probabilities")}


def jobs_of(name, folder):
    """What every door gives of one family."""
    of = family(name, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jobs = {"command": by_command(of, folder)}
        jobs["python"], model, counts = by_python(of)
        if not of.panel:
            jobs["frame"] = by_frame(of)
            jobs["sql"] = by_sql(model, counts, tables(of)[0].scale)
            jobs["service"] = by_service(model, counts)
    return json.loads(json.dumps(jobs))


def assert_alike(got, wanted, place=()):
    """Equal, but for the last digits of numbers."""
    if isinstance(wanted, dict):
        assert got.keys() == wanted.keys(), place
        for key, value in wanted.items():
            assert_alike(got[key], value, (*place, key))
    elif isinstance(wanted, list):
        assert len(got) == len(wanted), place
        for row, (one, other) in enumerate(zip(got, wanted, strict=True)):
            assert_alike(one, other, (*place, row))
    elif isinstance(wanted, float):
        assert got == pytest.approx(wanted, rel=1e-12, abs=1e-12), place
    else:
        assert got == wanted, place


@pytest.mark.parametrize("name", RECORDED)
def test_jobs_give_what_was_recorded(name, tmp_path):
    recorded = json.loads(RECORDING.read_text())[name]
    jobs = jobs_of(name, tmp_path)
    assert_alike(jobs, recorded, (name,))
    if name != "panel":
        labels = jobs["python"]["labels"]
        assert jobs["sql"] == jobs["service"]["labels"] == labels


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        everything = {name: jobs_of(name, Path(place) / name) for name in RECORDED}
    RECORDING.write_text(json.dumps(everything) + "\n")
