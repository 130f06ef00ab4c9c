"""The benchmark: entrants of one function, a page that is made of the results, a run of a set."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benches" / "benchmark"
ENTRANTS = sorted(FOLDER.glob("entrants/*/*.py"))
FUNCTION = {
    "labels": "decide",
    "estimates": "interval",
    "trust": "trusted",
    "calls": "followed",
}


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize("path", ENTRANTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_entrant_is_a_file_of_at_most_forty_lines_with_one_function(path):
    text = path.read_text()
    assert len(text.splitlines()) <= 40
    assert f"def {FUNCTION[path.parent.name]}(" in text
    assert "NAME" in text


def test_the_page_is_made_of_the_results():
    results = FOLDER / "results.parquet"
    versions = json.loads(pl.read_parquet_metadata(results)["benchmark"])
    page = module_of(FOLDER / "page.py").page(pl.read_parquet(results), versions)
    assert (ROOT / "docs/benchmark.md").read_text() == page
    assert {"btdagg", "python", "splits", "minutes"} <= versions.keys()


@pytest.mark.integration
def test_a_run_measures_each_task(tmp_path, shared):
    pytest.importorskip("crowdkit")
    output = tmp_path / "results.parquet"
    command = [sys.executable, FOLDER / "run.py", "--smoke", "--output", output, "--sets"]
    told = {**os.environ, "BTDAGG_SHARED": str(shared), "N_PROCESSES": "1"}
    subprocess.run([*command, "simulated", "topical"], check=True, capture_output=True, env=told)
    found = pl.read_parquet(output)
    assert {*found["task"].unique()} == {*FUNCTION}
    ours = found.filter(entrant="btdagg", metric="MAE", task="labels", labels=100)
    votes = found.filter(entrant="majority vote", metric="MAE", task="labels", labels=100)
    assert ours["value"].mean() < votes["value"].mean()
    known = found.filter(entrant="btdagg, covariates", task="labels", labels=100)
    assert {*known["set"]} == {"topical"}
    assert found["value"].is_finite().all()
