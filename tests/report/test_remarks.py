"""Remarks are part of a result: terminal, JSON and report show them."""

import json

import numpy as np
import polars as pl
import pytest


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """Labels of the items on which B leads most, and one of an item without votes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    gold = rng.choice([-1, 0, 1], size=400, p=[0.4, 0.3, 0.3])
    votes = np.clip(np.rint(gold[:, None] + rng.normal(0, 0.8, (400, 6))), -1, 1).astype(int)
    best = np.argsort(votes.sum(axis=1), kind="stable")[:80]
    items = np.array([f"q{number}" for number in range(400)])
    judges = np.tile(["x", "x", "x", "y", "y", "y"], 400)
    pl.DataFrame({"item": np.repeat(items, 6), "judge": judges, "vote": votes.ravel()}).write_csv(
        "votes.csv"
    )
    pl.DataFrame({"item": [*items[best], "unknown"], "label": [*gold[best].tolist(), 1]}).write_csv(
        "labels.csv"
    )
    return tmp_path


@pytest.mark.parametrize("command", ["estimate", "evaluate"])
def test_json_and_reports_have_the_remarks_of_the_terminal(cli, chosen, command, quick_commands):
    status, out, err = cli(command, "votes.csv", "labels.csv", "--json", "--report", "report")
    assert status == 0
    described = json.loads(out)
    of_estimates = described["estimates"]["remarks"] if command == "evaluate" else []
    remarks = [*described["remarks"], *of_estimates]
    assert any("differ from the others" in remark for remark in remarks)
    assert any("pooling 2 values of judge" in remark for remark in remarks)
    if command == "estimate":
        assert [line for line in err.splitlines() if line in remarks] == remarks
    sections = json.loads((chosen / "report" / "report.json").read_text())["sections"]
    assert set(remarks) <= {remark for section in sections for remark in section["remarks"]}
