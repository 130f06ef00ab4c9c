"""No two numbers of a report contradict: a quantity has one value in whatever file it stands."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg

PARTS = ("task", "judge")
OF = ("method", "n_votes", "n_items", "n_calibration", "n_labels", "quantity", "parameter")

pytestmark = pytest.mark.usefixtures("quick_commands")


def facts_of(report, evaluation, n_votes):
    """Values of each quantity, by what it is of and by the file that says it."""
    sources = {path.stem: pl.read_csv(path).rows(named=True) for path in report.glob("tables/*")
               if path.suffix == ".csv"}  # fmt: skip
    means = evaluation["estimates"]["estimates"]
    sources["json"] = [
        *evaluation["lines"],
        *({"quantity": name, **own} for name, own in means.items()),
    ]
    values = defaultdict(dict)
    for source, records in sources.items():
        for record in records:
            if "method" in record:  # tables of one number of votes do not say it
                record = {**record, "n_votes": record.get("n_votes") or n_votes}
            told = [(name, record[name]) for name in OF if record.get(name) is not None]
            part = tuple(record[name] for name in PARTS if record.get(name) is not None)
            for name, value in record.items():
                if isinstance(value, float | int) and name not in (*OF, *PARTS):
                    values[name, part, *told][source] = value
    return values


def require_one_value(values, together):
    """Wherever a quantity stands it is the same; some stand in these files together."""
    for key, by_source in values.items():
        first, *others = by_source.values()
        assert others == pytest.approx([first] * len(others)), (key, by_source)
    found = [{*by_source} for by_source in values.values()]
    for names in together:
        assert any(names <= of for of in found), names


def test_a_run_has_one_value_of_everything(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("demo", "--pairs", "sums")[0] == 0
    command = ("run", "sums/pairs.jsonl", "--labels", "sums/labels.csv", "--model", "simulated")
    status, out, err = cli(*command, "-n", "6", "-o", "out")
    assert status == 0, err
    evaluation = json.loads(Path("out/evaluation.json").read_text())
    values = facts_of(Path("out/report"), evaluation, 6)
    require_one_value(values, [{"json", "scores", "answers", "sweep-votes"}, {"json", "estimates"}])
    # The sentence at the head, on the terminal too.
    report = json.loads(Path("out/report/report.json").read_text())
    assert [section["name"] for section in report["sections"][:2]] == ["estimates", "scores"]
    rate = evaluation["estimates"]["estimates"]["win rate"]
    percents = tuple(f"{100 * rate[name]:.1f}" for name in ("value", "low", "high"))
    page = Path("out/report/index.html").read_text()
    sentence = r"A wins ([\d.]+)% \(95% interval ([\d.]+)% to ([\d.]+)%"
    assert re.search(sentence, out).groups() == re.search(sentence, page).groups() == percents
    # The model that is written is the one that is shown.
    model = btdagg.DavidsonModel.load("out/model.json")
    for row in pl.read_csv("out/report/tables/parameters.csv").iter_rows(named=True):
        assert row["value"] == pytest.approx(getattr(model, row["parameter"]))
    (preset,) = report["models"].values()
    assert preset["beta"] == pytest.approx(model.beta)
    assert [name.partition(":")[0] for name in report["models"]] == ["calibrated"]
    assert "Davidson" not in re.sub(r"<script>.*</script>", "", page, flags=re.S)


def test_grades_have_one_value_of_everything(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores, people = [], []
    for item, quality in enumerate(rng.normal(3, 1, 60)):
        noisy = np.clip(np.rint(quality + rng.normal(0, 1, 5)), 1, 5).astype(int)
        scores += [(f"r{item}", "j", sample, score) for sample, score in enumerate(noisy)]
        if item < 40:
            people.append((f"r{item}", int(np.clip(round(quality), 1, 5))))
    columns = ["item", "judge", "sample", "score"]
    pl.DataFrame(scores, columns, orient="row").write_csv("votes.csv")
    pl.DataFrame(people, ["item", "grade"], orient="row").write_csv("labels.csv")
    said = ("--set", "votes.scale=1-5", "--set", "labels.scale=1-5", "--report", "out", "--json")
    status, out, err = cli("evaluate", "votes.csv", "labels.csv", *said)
    assert status == 0, err
    values = facts_of(Path("out"), json.loads(out), 5)
    require_one_value(values, [{"json", "scores", "answers", "sweep-votes"}, {"json", "estimates"}])
