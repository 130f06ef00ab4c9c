"""No two numbers of a report contradict: a quantity has one value wherever it stands."""

import json
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.report.folder import ReportFolder

PARTS = ("task", "judge")
OF = ("method", "n_votes", "n_items", "n_calibration", "n_labels", "quantity", "parameter")


@pytest.fixture
def exhibits(monkeypatch, quick_commands, tmp_path):
    """Tables and figures that a report is given, with what they were made of."""
    monkeypatch.chdir(tmp_path)
    given, collect = [], ReportFolder._collect

    def keep(self, exhibit, *more):
        given.append(exhibit)
        return collect(self, exhibit, *more)

    monkeypatch.setattr(ReportFolder, "_collect", keep)
    return given


class Facts:
    """Values of quantities, by what they are of, from everywhere in a report."""

    def __init__(self, most):
        self.most = most
        self.values = defaultdict(dict)

    def add(self, source, part, of, **numbers):
        if "method" in of:
            of = {**of, "n_votes": of.get("n_votes") or self.most}
        key = part, *((name, of[name]) for name in OF if of.get(name) is not None)
        for name, value in numbers.items():
            self.values[name, *key][source] = value

    def add_records(self, source, records):
        for record in records:
            part = tuple(record[name] for name in PARTS if name in record)
            numbers = {
                name: value
                for name, value in record.items()
                if isinstance(value, float | int) and name not in (*OF, *PARTS)
            }
            self.add(source, part, record, **numbers)

    def add_method(self, source, part, method, of):
        counts = method.counts
        scores = {"mae": (counts * method.losses).sum(), "accuracy": np.trace(counts)}
        for name, total in scores.items():
            mean, low, high = method.interval(name)
            ends = {name: mean, f"{name}_low": low, f"{name}_high": high}
            self.add(source, part, {**of, "method": method.name}, **ends)
            again = {name: total / counts.sum()}
            self.add(f"{source}, counts", part, {**of, "method": method.name}, **again)
        self.add_shares(source, part, method.name, counts.sum(axis=0) / counts.sum())
        self.add_shares(source, part, "gold", counts.sum(axis=1) / counts.sum())

    def add_shares(self, source, part, name, shares):
        for label, share in enumerate(shares):
            self.add(source, part, {"quantity": f"labels by {name}"}, **{f"share {label}": share})

    def add_exhibit(self, exhibit, parts):
        if exhibit.kind == "table":
            self.add_records(exhibit.name, exhibit.records)
            return
        source, (made_of, *_) = f"figure {exhibit.name}", exhibit.draw.args
        part = next((part for part in parts if exhibit.title.endswith(": " + " ".join(part))), ())
        if exhibit.name == "estimates":
            for row, of in made_of.items():
                for series, prefix in (("with the judge", ""), ("labels alone", "labels_only_")):
                    if of[series] is not None:
                        names = (f"{prefix}{end}" for end in ("value", "low", "high"))
                        numbers = dict(zip(names, of[series], strict=True))
                        self.add(source, (), {"quantity": row}, **numbers)
        elif exhibit.title.startswith("Error against"):
            for cell in (cell for cells in made_of.values() for cell in cells):
                of = {name: getattr(cell, name) for name in ("n_items", "n_calibration")}
                own = {"n_labels": cell.n_labels} if cell.n_labels else {"n_votes": cell.n_votes}
                for method in cell.methods:
                    for name in ("mae", "accuracy"):
                        mean, low, high = method.interval(name)
                        ends = {name: mean, f"{name}_low": low, f"{name}_high": high}
                        self.add(source, cell.key, {**of, **own, "method": method.name}, **ends)
        elif exhibit.title.startswith("Confusion"):
            for method in made_of:
                self.add_method(source, part, method, parts[part])
        elif exhibit.title.startswith("Label distributions"):
            for name, shares in made_of[""].items():
                self.add_shares(source, part, name, shares)

    def require_one_value(self):
        for key, by_source in self.values.items():
            first, *others = by_source.values()
            assert others == pytest.approx([first] * len(others)), (key, by_source)

    def sources(self):
        """Every set of sources that have a quantity in common."""
        return {frozenset(by_source) for by_source in self.values.values()}


def facts_of(exhibits, most, evaluation):
    """The facts of exhibits and of the JSON of an evaluation."""
    facts = Facts(most)
    facts.add_records("json", evaluation["lines"])
    if evaluation["estimates"]:
        means = evaluation["estimates"]["estimates"]
        facts.add_records("json", [{"quantity": name, **of} for name, of in means.items()])
    parts = {
        tuple(line[name] for name in PARTS if name in line): line for line in evaluation["lines"]
    }
    for exhibit in exhibits:
        facts.add_exhibit(exhibit, parts)
    facts.require_one_value()
    return facts


def test_a_run_has_one_value_of_everything(cli, exhibits):
    assert cli("demo", "--pairs", "sums")[0] == 0
    command = ("run", "sums/pairs.jsonl", "--labels", "sums/labels.csv", "--model", "simulated")
    status, out, err = cli(*command, "-n", "6", "-o", "out")
    assert status == 0, err
    evaluation = json.loads(Path("out/evaluation.json").read_text())
    sources = facts_of(exhibits, 6, evaluation).sources()
    for together in (
        {"json", "scores", "answers", "sweep-votes", "figure votes-simulated"},
        {"json", "scores", "figure confusion-simulated, counts"},
        {"json", "estimates", "figure estimates"},
        {"figure confusion-simulated", "figure labels-simulated"},
    ):
        assert any(together <= of for of in sources), (together, sources)
    # The sentence at the head, on the terminal too.
    report = json.loads(Path("out/report/report.json").read_text())
    assert [section["name"] for section in report["sections"][:2]] == ["estimates", "scores"]
    rate = evaluation["estimates"]["estimates"]["win rate"]
    percents = [f"{100 * rate[name]:.1f}" for name in ("value", "low", "high")]
    page = Path("out/report/index.html").read_text()
    for text in (out, page):
        assert re.search(
            r"A wins ([\d.]+)% \(95% interval ([\d.]+)% to ([\d.]+)%", text
        ).groups() == (*percents,)
    # The model that is written is the one that is shown.
    model = btdagg.DavidsonModel.load("out/model.json")
    (shown,) = (table for table in exhibits if table.name == "parameters")
    for record in shown.records:
        assert record["value"] == pytest.approx(getattr(model, record["parameter"]))
    (preset,) = report["models"].values()
    assert preset["beta"] == pytest.approx(model.beta)
    assert [name.partition(":")[0] for name in report["models"]] == ["calibrated"]
    assert "Davidson" not in re.sub(r"<script>.*</script>", "", page, flags=re.S)


def test_grades_have_one_value_of_everything(cli, exhibits):
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
    said = ("--set", "votes.scale=1-5", "--set", "labels.scale=1-5")
    status, out, err = cli(
        "evaluate", "votes.csv", "labels.csv", *said, "--report", "out", "--json"
    )
    assert status == 0, err
    sources = facts_of(exhibits, 5, json.loads(out)).sources()
    for together in (
        {"json", "scores", "answers", "sweep-votes", "figure votes-j"},
        {"json", "estimates", "figure estimates"},
        {"figure confusion-j", "figure labels-j"},
    ):
        assert any(together <= of for of in sources), (together, sources)
