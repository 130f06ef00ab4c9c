"""Remarks are part of a result: whatever shows the result shows them."""

import json
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from test_release_gate import run

import btdagg
from btdagg.estimates import not_worse


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


def shown(text):
    """Text without the line breaks and backslashes of a terminal, a page or Markdown."""
    return " ".join(text.replace("\\", "").split())


def test_a_gate_on_chosen_labels_says_so_wherever_it_is_read(chosen):
    (chosen / "test_gate.py").write_text(
        "import btdagg\n"
        "def test_gate(release_gate):\n"
        "    release_gate(btdagg.read_votes('votes.csv'), btdagg.read_labels('labels.csv'))\n"
    )
    status, printed = run(
        chosen, "--junit-xml", "gate.xml", "--btdagg-summary", "gate.md", "test_gate.py"
    )
    assert status == 0
    result = not_worse(btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv"))
    assert any("not like the others" in remark for remark in result.remarks)
    assert any("without votes" in remark for remark in result.remarks)
    properties = {
        one.get("name"): one.get("value")
        for one in ElementTree.parse(chosen / "gate.xml").iter("property")
    }
    assert properties["remarks"] == "; ".join(result.remarks)
    for remark in result.remarks:
        assert remark in str(result)
        assert remark in properties["message"]
        assert remark in printed
        assert shown(remark) in shown((chosen / "gate.md").read_text())


@pytest.mark.parametrize("command", ["estimate", "evaluate"])
def test_json_and_reports_have_the_remarks_of_the_terminal(cli, chosen, command, figures_not_drawn):
    status, out, err = cli(command, "votes.csv", "labels.csv", "--json", "--report", "report")
    assert status == 0
    found = json.loads(out)
    remarks = list(found["remarks"])
    of_estimates = found["estimates"]["remarks"] if command == "evaluate" else []
    said = [line for line in err.splitlines() if line]
    if command == "estimate":
        assert any("not like the others" in one for one in remarks)
        assert any("without votes" in one for one in remarks)
        assert any("does not say how its items were drawn" in one for one in remarks)
        assert any("pooling 2 values of judge" in one for one in remarks)
        assert [line for line in said if line in remarks] == remarks
    else:
        assert any("not like the others" in one for one in of_estimates)
    page = json.loads((chosen / "report" / "report.json").read_text())
    written = [*page["remarks"], *(one for part in page["sections"] for one in part["remarks"])]
    assert set(remarks) | set(of_estimates) <= set(written)
