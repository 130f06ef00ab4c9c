"""`btdagg estimate`, and the win rate that other commands end with."""

import json
import math

import numpy as np
import polars as pl
import pytest

import btdagg
from commands import one_line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """300 items in two tasks with eight votes each, and the labels of 80 of them."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    gold = rng.choice([-1, 0, 1], size=300, p=[0.2, 0.3, 0.5])
    seen = gold[:, None] + rng.normal(0, 0.9, (300, 8))
    votes = np.sign(np.where(np.abs(seen) < 0.5, 0, seen)).astype(int)
    items = [f"q{number}" for number in range(300)]
    tasks = ["math" if number < 150 else "code" for number in range(300)]
    prompts = [f"p{number // 3}" for number in range(300)]
    pl.DataFrame(
        {
            "item": np.repeat(items, 8),
            "task": np.repeat(tasks, 8),
            "judge": np.tile(["x"] * 4 + ["y"] * 4, 300),
            "sample": np.tile([0, 1, 2, 3], 600),
            "vote": votes.ravel(),
        }
    ).write_csv("votes.csv")
    labels = pl.DataFrame({"item": items, "task": tasks, "group": prompts, "label": gold})
    labels.write_csv("all.csv")
    chosen = set(rng.permutation(300)[:80].tolist())
    known = [label if row in chosen else None for row, label in enumerate(gold.tolist())]
    labels.with_columns(label=pl.Series(known)).write_csv("labels.csv")
    return tmp_path


def arrays(judge=None):
    """What the files say, put together by polars alone."""
    votes = pl.read_csv("votes.csv")
    if judge is not None:
        votes = votes.filter(pl.col("judge") == judge)
    counted = votes.group_by("item", maintain_order=True).agg(
        *((pl.col("vote") == value).sum().alias(str(value)) for value in (-1, 0, 1))
    )
    rows = counted.join(pl.read_csv("labels.csv"), on="item", how="left", maintain_order="left")
    counts = rows.select("-1", "0", "1").to_numpy()
    labels = rows["label"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return counts, labels, rows["group"].to_numpy(), rows["task"].to_numpy()


def test_files_give_what_their_arrays_give(cli, folder):
    status, out, _ = cli("estimate", "votes.csv", "labels.csv", "--by", "task", "--json")
    assert status == 0
    found = json.loads(out)
    counts, labels, groups, tasks = arrays()
    expected = btdagg.estimate(counts, labels, groups=groups, by=tasks)
    assert (found["n_items"], found["n_labels"]) == (300, 80)
    assert found["n_groups"] == expected.n_groups < 80
    for name, one in expected.estimates.items():
        assert found["estimates"][name]["low"] == pytest.approx(one.low, abs=1e-12)
        assert found["by"]["code"][name]["value"] == pytest.approx(
            expected.by["code"][name].value, abs=1e-12
        )
    ((first, second),) = expected.differences
    difference = next(d for d in found["differences"] if d["quantity"] == "tie")
    sign = 1 if (difference["first"], difference["second"]) == (first, second) else -1
    assert sign * difference["value"] == pytest.approx(
        expected.differences[first, second]["tie"].value, abs=1e-12
    )
    by_tables = btdagg.estimate(
        btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv"), by="task"
    )
    assert by_tables.estimates == expected.estimates


def test_the_terminal_shows_the_numbers_and_ends_with_the_win_rate(cli, folder):
    status, out, err = cli(
        "estimate", "votes.csv", "labels.csv", "-f", "judge=x", "--width", "0.25"
    )
    assert status == 0
    counts, labels, groups, _ = arrays("x")
    found = btdagg.estimate(counts, labels, groups=groups)
    net = found.estimates["net win rate"]
    (row,) = (line for line in out.splitlines() if line.startswith("net win rate  "))
    assert f"{net.value:.3f}" in row
    assert f"{net.low:.3f} to {net.high:.3f}" in row
    assert f"{net.effective_labels:.0f}" in row.split()
    assert f"about {found.labels_for(0.25)} labels" in out
    narrow = cli("estimate", "votes.csv", "labels.csv", "-f", "judge=x", "--width", "0.01")[1]
    least = found.width_with(300)
    wanted = math.ceil(300 * (least / 0.01) ** 2)
    assert f"about {wanted:,} labels, {wanted - 80:,} more; labels on all 300 items give" in narrow
    assert (
        "ties counted as half, of new items like these, by 80 labels and the votes of 300 items"
        in out
    )
    assert "pooling 2 values of task" in err


def test_groups_of_items_without_a_label_are_those_of_the_votes(cli, folder):
    labels, votes = pl.read_csv("labels.csv"), pl.read_csv("votes.csv")
    expected = json.loads(cli("estimate", "votes.csv", "labels.csv", "--json")[1])
    votes.join(labels.select("item", "group"), on="item").write_csv("grouped.csv")
    labels.drop_nulls("label").write_csv("known.csv")
    known = json.loads(cli("estimate", "grouped.csv", "known.csv", "--json")[1])
    assert known["estimates"] == expected["estimates"]
    _, out, err = cli("estimate", "votes.csv", "known.csv", "--json")
    assert json.loads(out)["estimates"] != expected["estimates"]
    assert "220 items have no group and count as groups" in err


def test_a_model_from_elsewhere(cli, folder):
    model = btdagg.DavidsonModel(beta=1.0, eta0=0.3, gamma=0.5)
    model.save("model.json")
    counts, labels, groups, _ = arrays()
    out = cli("estimate", "votes.csv", "labels.csv", "--model", "model.json", "--json")[1]
    expected = btdagg.estimate(counts, labels, groups=groups, model=model)
    value = json.loads(out)["estimates"]["tie"]["value"]
    assert value == pytest.approx(expected.estimates["tie"].value, abs=1e-12)


def test_probabilities_are_a_column_of_the_labels(cli, folder):
    chance = np.where(np.arange(300) % 2, 0.2, 0.3)
    labels = pl.read_csv("labels.csv").with_columns(probability=pl.Series(chance))
    labels.write_csv("labels.csv")
    out = cli("estimate", "votes.csv", "labels.csv", "--json")[1]
    counts, gold, groups, _ = arrays()
    expected = btdagg.estimate(counts, gold, groups=groups, probabilities=chance)
    value = json.loads(out)["estimates"]["A"]["value"]
    assert value == pytest.approx(expected.estimates["A"].value, abs=1e-12)
    labels.with_columns(probability=pl.lit("high")).write_csv("labels.csv")
    said = one_line(*cli("estimate", "votes.csv", "labels.csv"))
    assert "labels.csv, column probability: got 'high', expected a number above 0" in said
    labels.with_columns(probability=pl.lit(0.0)).write_csv("labels.csv")
    said = one_line(*cli("estimate", "votes.csv", "labels.csv"))
    assert "labels.csv, column probability: got 0, expected a number above 0 for" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--by", "language"], "votes.csv: no column 'language'"),
        (["--by", "judge"], "column judge: item 'q0' has 'x' and 'y', expected a column "),
        (["--by", "vote"], "expected a column of items"),
        (["--by", "item"], "column item has the ids of items, expected a column that describes"),
        (["--systems", "task"], "--systems is 'task', expected the two columns"),
        (["--systems", "task,item", "--by", "task"], "--by and --systems"),
        (["--width", "0"], "width is 0.0, expected a number above 0 and below 2"),
    ],
)
def test_bad_options_are_one_line(cli, folder, options, said):
    assert said in one_line(*cli("estimate", "votes.csv", "labels.csv", *options))


def test_a_report_has_a_figure_and_tables(cli, folder):
    status, _, _ = cli("estimate", "votes.csv", "labels.csv", "--by", "task", "--report", "out")
    assert status == 0
    assert (folder / "out/figures/estimates.png").stat().st_size > 5000
    rows = pl.read_csv("out/tables/estimates.csv")
    assert set(rows["task"]) == {"all items", "math", "code"}
    assert "labels_only_low" in rows.columns
    assert pl.read_csv("out/tables/differences.csv").height == 1
    assert "How often A wins" in (folder / "out/index.html").read_text()


@pytest.mark.usefixtures("quick_commands")
def test_an_evaluation_says_why_it_has_no_win_rate(cli, folder):
    labels = pl.read_csv("labels.csv").with_columns(probability=pl.lit("high"))
    labels.write_csv("labels.csv")
    options = ("votes.csv", "labels.csv")
    status, out, err = cli("evaluate", *options)
    assert status == 0
    assert "A wins" not in out
    assert "win rate over all items not estimated: labels.csv, column probability" in err


SAID = ("--set", "votes.scale=1-5", "--set", "labels.scale=1-5")


@pytest.fixture
def scores(tmp_path, monkeypatch):
    """Scores 1-5 of 200 responses of two systems by two criteria, and grades of 40 items."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows, labels = [], []
    for criterion, shift in (("helpful", 0.0), ("safe", 0.6)):
        grade = np.clip(np.round(rng.normal(3.2 + shift, 1, 200)), 1, 5).astype(int)
        score = np.clip(np.round(grade[:, None] + rng.normal(0.5, 0.8, (200, 4))), 1, 5)
        keys = [(f"r{row}", criterion, f"v{row % 2 + 1}") for row in range(200)]
        rows += [(*keys[row], int(own)) for row in range(200) for own in score[row]]
        labels += [(f"r{row}", criterion, int(grade[row])) for row in range(40)]
    names = ["item", "criterion", "system", "score"]
    pl.DataFrame(rows, schema=names, orient="row").write_csv("scores.csv")
    pl.DataFrame(labels, schema=["item", "criterion", "label"], orient="row").write_csv(
        "grades.csv"
    )
    return tmp_path


def counted(criteria):
    """What `btdagg.estimate` takes of the files, put together by polars alone."""
    votes = pl.read_csv("scores.csv").filter(pl.col("criterion").is_in(criteria))
    sums = [(pl.col("score") == point).sum().alias(str(point)) for point in range(1, 6)]
    rows = votes.group_by("criterion", "item", "system", maintain_order=True).agg(sums)
    key = ["item", "criterion"]
    rows = rows.join(pl.read_csv("grades.csv"), on=key, how="left", maintain_order="left")
    labels = rows["label"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    scale = btdagg.Scale(range(1, 6))
    return rows, {"counts": rows.select("1", "2", "3", "4", "5"), "labels": labels, "scale": scale}


def test_grades_by_criterion_are_what_their_arrays_give(cli, scores):
    status, out, err = cli("estimate", "scores.csv", "grades.csv", *SAID, "--json")
    assert status == 0
    assert "votes are grades: 1, 2, 3, 4 or 5" in err
    assert "pooling" not in err
    rows, arrays = counted(["helpful", "safe"])
    expected = btdagg.estimate(**arrays, by=rows["criterion"].to_list(), groups=rows["item"])
    found = json.loads(out)
    assert (found["n_labels"], found["n_groups"]) == (80, 40)  # an item is one group
    assert list(found["by"]) == ["helpful", "safe"]
    for name, one in expected.by["safe"].items():
        assert found["by"]["safe"][name]["low"] == pytest.approx(one.low, abs=1e-9)
    named = cli("estimate", "scores.csv", "grades.csv", *SAID, "--json", "--by", "criterion")
    assert json.loads(named[1]) == found
    five = arrays["scale"]
    read = btdagg.read_votes("scores.csv", scale=five), btdagg.read_labels("grades.csv", scale=five)
    assert btdagg.estimate(*read, by="criterion").by["safe"]["mean grade"].value == pytest.approx(
        expected.by["safe"]["mean grade"].value, abs=1e-9
    )


@pytest.mark.parametrize(
    ("labels", "options", "text"),
    [
        ({"criterion": "x"}, (), "no row has task 'helpful'; found x"),
        ({"criterion": None}, (), "no column criterion or task, expected one"),
        ({"label": "A"}, (), "got 'A', expected 1, 2, 3, 4 or 5"),
        (
            {},
            ("--set", "votes.scale=5-1"),
            "--set votes.scale is '5-1', expected 1-5, 0,0.5,1 or pass/fail",
        ),
        ({}, ("--systems", "a,b"), "--systems is 'a,b', expected the column that names the system"),
        ({}, ("--systems", "prompt"), "scores.csv: no column 'prompt'"),
        ({}, ("--set", "panel=system"), "--set panel is 'system', expected no panel, since"),
    ],
)
def test_grades_that_cannot_be_estimated(cli, scores, labels, options, text):
    table = (
        pl.read_csv("grades.csv")
        .unique("item")
        .with_columns(
            pl.lit(value).alias(column) for column, value in labels.items() if value is not None
        )
    )
    table.drop(column for column, value in labels.items() if value is None).write_csv("g.csv")
    status, _, err = cli("estimate", "scores.csv", "g.csv", *SAID, *options)
    assert status == 2
    assert text in err


def test_a_criterion_without_labels_is_left_out_and_a_response_of_two_systems_refused(cli, scores):
    pl.read_csv("grades.csv").filter(criterion="safe").write_csv("safe.csv")
    _, out, err = cli("estimate", "scores.csv", "safe.csv", *SAID, "--json")
    assert "task helpful left out: no item there has a label" in err
    assert json.loads(out)["n_items"] == 200
    both = pl.concat([pl.read_csv("scores.csv").with_columns(system=pl.lit(s)) for s in "ab"])
    both.write_csv("scores.csv")
    assert cli("estimate", "scores.csv", "grades.csv", *SAID)[0] == 0
    status, _, err = cli("estimate", "scores.csv", "grades.csv", *SAID, "--systems", "system")
    assert status == 2
    assert "column system: item 'r0' has 'a' and 'b'" in err


def test_systems_are_ranked_by_their_grades(cli, scores):
    options = ("scores.csv", "grades.csv", "--systems", "system", *SAID)
    rows, arrays = counted(["helpful", "safe"])
    expected = btdagg.estimate_systems(**arrays, system_a=rows["system"], groups=rows["item"])
    found = json.loads(cli("estimate", *options, "--json")[1])
    assert [row["system"] for row in found["systems"]] == list(expected.systems)
    for row, system in zip(found["systems"], expected.systems.values(), strict=True):
        numbers = system.mean.value, system.mean.low, system.mean.high
        names = ("value", "low", "high")
        assert [row[f"mean_grade_{name}"] for name in names] == pytest.approx(numbers, abs=1e-9)
        assert (row["rank"], row["n_labels"]) == (system.rank, system.n_labels)
    assert found["pvalues"] == pytest.approx(expected.pvalues, abs=1e-9)
    assert "tie_parameter" not in found
    by = json.loads(cli("estimate", *options[:2], *SAID, "--by", "system", "--json")[1])
    assert by["by"]["v1"]["mean grade"]["low"] in [
        pytest.approx(row["mean_grade_low"], abs=1e-9) for row in found["systems"]
    ]
    status, out, err = cli("estimate", *options, "--report", "out")
    assert status == 0
    assert "Systems by mean grade" in out
    assert "pooling" in err  # two criteria
    assert "Which system is best" in (scores / "out/index.html").read_text()
    assert pl.read_csv("out/tables/systems.csv")["system"].to_list() == list(expected.systems)


def test_votes_and_labels_may_be_in_columns_of_one_name(cli, folder):
    expected = cli("estimate", "votes.csv", "labels.csv", "--json")
    named = {"item": "qid", "vote": "verdict", "label": "verdict"}
    for file in ("votes.csv", "labels.csv"):
        frame = pl.read_csv(file, infer_schema=False)
        frame.rename({c: n for c, n in named.items() if c in frame}).write_csv(f"own_{file}")
    columns = [word for name, own in named.items() for word in ("--set", f"{name}={own}")]
    found = cli("estimate", "own_votes.csv", "own_labels.csv", "--json", *columns)
    assert found[0] == 0
    assert json.loads(found[1])["estimates"] == json.loads(expected[1])["estimates"]
