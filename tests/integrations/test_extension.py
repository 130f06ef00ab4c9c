"""The example extension, installed and used from the command line."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest

from pages import ROOT

EXAMPLE = ROOT / "examples" / "extension"
DUELS = {
    "duelbench": 2,
    "arbiter": "gpt-5.4",
    "duels": [
        {"question": "q1", "left": "ada", "right": "ben", "rounds": ["left", "draw", "left"]},
        {"question": "q2", "left": "ada", "right": "ben", "rounds": ["right", "right", None]},
    ],
}


@pytest.fixture
def btdagg_with(tmp_path):
    """Run a command in a process that has the extension; it has to succeed, and what it says."""
    if os.environ.get("CI") != "true" and not (find_spec("uv") and find_spec("setuptools")):
        pytest.skip("uv or setuptools is not installed")
    target = tmp_path / "site"
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"]
    command += ["--python", sys.executable, "--no-build-isolation", "--target", target, project]
    subprocess.run(command, check=True)
    paths = [str(target), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    def btdagg(*words):
        command = [sys.executable, "-m", "btdagg", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return btdagg


@pytest.mark.integration
def test_method_format_and_judge_are_used_from_the_command_line(btdagg_with, tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(DUELS))
    assert "votes in the format duelbench; 2 items; 5 votes" in btdagg_with("check", "results.json")
    btdagg_with("import", "results.json", "-o", "votes.csv")
    rows = (tmp_path / "votes.csv").read_text().splitlines()
    assert rows[1:3] == [
        "q1|ada|ben,1,gpt-5.4,0,q1,ada,ben,ok,duelbench",
        "q1|ada|ben,0,gpt-5.4,1,q1,ada,ben,ok,duelbench",
    ]
    assert len(rows) == 7
    btdagg_with("demo", "--pairs", "sums")
    said = btdagg_with("judge", "sums/pairs.jsonl", "--model", "longer", "-n", "4")
    assert "1200 new votes" in said
    methods = "weak,trimmed-mean,majority"
    scores = btdagg_with("evaluate", "votes.db", "sums/labels.csv", "--methods", methods)
    assert re.search(r"^  trimmed-mean  +0\.\d+ ±", scores, re.MULTILINE)
    way = ("--first", "method=trimmed-mean", "--second", "method=majority")
    assert "trimmed-mean" in btdagg_with("compare", "votes.db", "sums/labels.csv", *way)
    # A file of the tool is read in place of votes, too.
    (tmp_path / "labels.csv").write_text("item,label\nq1|ada|ben,1\nq2|ada|ben,-1\n")
    data = ("results.json", "labels.csv", "--set", "votes.format=duelbench")
    assert "ada wins" in btdagg_with("estimate", *data)
