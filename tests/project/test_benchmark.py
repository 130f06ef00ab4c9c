"""The benchmark: entrants of one function, a page that is made of the results, a run of a set."""

import functools
import hashlib
import http.server
import importlib.util
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy import stats

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
    own = module_of(FOLDER / "page.py")
    page = own.page(pl.read_parquet(results), versions)
    assert (ROOT / "docs/benchmark.md").read_text() == page
    assert (FOLDER / "labels.csv").read_text() == own.every_label(pl.read_parquet(results))
    assert {"btdagg", "python", "splits", "minutes"} <= versions.keys()


PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]


def test_numbers_of_other_pages_come_from_the_results():
    own, results = module_of(FOLDER / "page.py"), pl.read_parquet(FOLDER / "results.parquet")
    n_numbers = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert own.quoted(text, results) == text, page.name
        n_numbers += len(own.QUOTE.findall(text))
        assert text.count("<!-- benchmark:") == len(own.QUOTE.findall(text)), page.name
        # What stands beside a link to the page has to be marked.
        for paragraph in re.split(r"\n\n|\n(?=- )", text):
            if "benchmark.md)" in paragraph:
                assert not re.search(r"\d\.\d", own.QUOTE.sub("", paragraph)), paragraph
    assert n_numbers >= 4


def test_an_interval_for_new_items_is_by_groups_that_judges_and_tasks_share(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    own, rng = module_of(FOLDER / "run.py"), np.random.default_rng(0)
    keys, names = {"set": "s", "votes": 8, "labels": 50}, np.array(["x", "y", "z", "w"])
    influences = rng.normal(size=(2, 2, 4))  # of two entrants, judges, and four groups
    splits = rng.normal(size=(2, 3))
    parts, rows = [], []
    for k, entrant in enumerate(("btdagg", "majority vote")):
        for judge in range(2):
            part = {"group": names, "influence": influences[k, judge], "share": 0.25, **keys}
            parts.append(pl.DataFrame({**part, "entrant": entrant, "metric": "MAE"}))
        for split, value in enumerate(splits[k].tolist()):
            rows.append({"task": "labels", "entrant": entrant, "split": split, "metric": "MAE",
                         "value": value, "cells": 2, **keys})  # fmt: skip
    found = own.for_new_items(pl.DataFrame(rows), pl.concat(parts))
    apart = (influences[1] - influences[0]).mean(axis=0)
    of_splits = (splits[1] - splits[0]).var(ddof=1)
    variance = 4 / 3 * (apart**2).sum() + of_splits * (0.25 + 1 / 3)
    half = stats.t.ppf(0.975, 3) * np.sqrt(variance)
    assert found.filter(entrant="majority vote")["value"].item() == pytest.approx(half, rel=1e-6)
    assert found.filter(entrant="btdagg")["value"].item() == 0
    assert found["split"].null_count() == 2


def test_a_number_that_is_changed_by_hand_is_found():
    own, results = module_of(FOLDER / "page.py"), pl.read_parquet(FOLDER / "results.parquet")
    mark = "<!-- benchmark: rb2, panel, 8 votes, 100 labels, btdagg, panel -->"
    assert own.quoted(f"from 0.1 to 0.999{mark}.", results) == f"from 0.1 to 0.310{mark}."
    with pytest.raises(TypeError):  # there is none
        own.quoted("0.999<!-- benchmark: rb2, 8 votes, 21 labels, btdagg -->", results)


def made_up(source, n):
    """A file of a source, of the kind that is number n."""
    scores = {"id": "7", "subset": "Precise IF", "full_scores": [[9, None], [1, 2], [3, 3], [4, 9]]}
    row = {
        "source": "s",
        "system_id": "x",
        "system_output": " ab ",
        "all_responses": ["2", "Hm 1", "9"],
    }
    row["scores"] = {"engagingness": 2.5, "groundedness": 1.0}
    people = "text_id\tannotator_id\t" + "\t".join(f"Q{n}" for n in range(9))
    probabilities = "text_id\tcriterion\tanswer1_prob\tanswer2_prob\tanswer3_prob\tanswer4_prob"
    return {
        "composo-ai": [json.dumps(scores | {"mini_scores": scores["full_scores"]}),
                       json.dumps(scores)],
        "d223302": [json.dumps([row])] * 2,
        "microsoft": [f"{probabilities}\nt\tQ0\t0\t0\t1\t0\nt\tQ1\t1\t0\t0\t0\n",
                      f"{people}\nt\t22\t3\t0{7 * f'{chr(9)}1'}\n"],
    }[source][n]  # fmt: skip


@pytest.fixture
def source(tmp_path, monkeypatch):
    """`download.py`, whose sources are a server on this machine with made-up files."""
    pytest.importorskip("pooch")
    own, root = module_of(FOLDER / "download.py"), tmp_path / "root"
    seen = {}
    for path in own.FILES:
        name = path.partition("/")[0]
        content = made_up(name, seen.setdefault(name, 0))
        seen[name] += 1
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
        own.FILES[path] = hashlib.sha256(content.encode()).hexdigest()[:16]

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    handler = functools.partial(Handler, directory=root)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    own.HOST = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr("btdagg.paper.wmt23._URL", own.HOST)
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache")
    own.root = root
    yield own
    server.shutdown()
    server.server_close()


def test_sets_are_made_of_their_sources(source, tmp_path, capsys):
    source.download(tmp_path)
    printed = capsys.readouterr().out
    assert printed.startswith("wmt23 cannot be had: http://127.0.0.1:")
    assert "\nvicuna80 cannot be had: its labels are spread over" in printed
    assert printed.count("cannot be had") == 2
    labels = pl.read_csv(tmp_path / "rb2_scores/labels.csv").sort("item")
    assert labels["item"].to_list() == [f"precise-if-7-{n}" for n in range(4)]
    assert sorted(labels["label"]) == [0, 0, 0, 1]
    accepted = labels.filter(label=1)["item"].item()
    scores = pl.read_parquet(tmp_path / "rb2_scores/votes.parquet")
    assert scores.filter(item=accepted)["score"].to_list() == [9] * 3
    votes = pl.read_parquet(tmp_path / "rb2/votes.parquet")
    assert votes.height == 3 * (6 + 3)  # of the second sample the accepted one has no score
    assert {*votes["judge"]} == {"gpt-5.4", "gpt-5.4-mini", "claude-sonnet-4.6"}
    first = votes.join(pl.read_csv(tmp_path / "rb2/labels.csv"), on="item").filter(sample=0)
    assert (
        (first.filter(pl.col("label") != 0).select(pl.col("vote") == pl.col("label")))
        .to_series()
        .all()
    )
    assert first["label"].abs().sum() == 3 * 3
    topical = pl.read_csv(tmp_path / "topical/votes.csv")
    assert topical.select("criterion", "sample", "score").rows() == [
        ("engagingness", 0, 2), ("engagingness", 1, 1), ("groundedness", 1, 1)
    ]  # fmt: skip
    assert pl.read_csv(tmp_path / "topical/labels.csv")["chars"].to_list() == [2, 2]
    rubric = pl.read_parquet(tmp_path / "rubric/votes.parquet")
    assert rubric.select("item", "score").unique().rows() == [("Q0-t", 3)]  # Q1 was not answered
    assert rubric.height == 12


def test_sets_that_cannot_be_had_are_named_and_the_others_made(source, tmp_path, capsys):
    first, *_, last = sorted(source.root.rglob("*.tsv")) + sorted(source.root.rglob("*.jsonl"))
    first.write_text("other content")
    last.unlink()
    source.download(tmp_path)
    printed = capsys.readouterr().out
    for name, why in {
        "rubric": "other content",
        "rb2": "HTTP Error 404",
        "rb2_scores": "HTTP",
    }.items():
        assert f"{name} cannot be had: " in printed
        assert why in printed
        assert not (tmp_path / name).exists()
    assert (tmp_path / "topical/votes.csv").exists()


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
