"""`btdagg estimate`, and the win rate that other commands end with."""

import json

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
    assert "win rate of A, ties as half, over 300 items by 80 labels" in out
    assert "pooling 2 values of task" in err


def test_a_panel_and_one_of_its_judges(cli, folder):
    def net(*options):
        status, out, err = cli("estimate", "votes.csv", "labels.csv", "--json", *options)
        assert status == 0, err
        return json.loads(out)["estimates"]["net win rate"]

    panel, pooled = net("--panel", "judge"), net()
    assert panel["weight"] > 0
    assert panel["value"] != pooled["value"]
    counts = np.stack([arrays("x")[0], arrays("y")[0]], axis=1)
    _, labels, groups, _ = arrays()
    expected = btdagg.estimate(counts, labels, groups=groups).estimates["net win rate"]
    assert panel["value"] == pytest.approx(expected.value, abs=1e-9)


def test_groups_of_items_without_a_label_are_those_of_the_votes(cli, folder):
    labels, votes = pl.read_csv("labels.csv"), pl.read_csv("votes.csv")
    expected = json.loads(cli("estimate", "votes.csv", "labels.csv", "--json")[1])
    votes.join(labels.select("item", "group"), on="item").write_csv("grouped.csv")
    labels.drop_nulls("label").write_csv("known.csv")
    known = json.loads(cli("estimate", "grouped.csv", "known.csv", "--json")[1])
    assert known["estimates"] == expected["estimates"]
    _, out, err = cli("estimate", "votes.csv", "known.csv", "--json")
    assert json.loads(out)["estimates"] != expected["estimates"]
    assert "220 items have no group and are taken as one by themselves" in err


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
    assert "probabilities[0] is 0" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--by", "language"], "votes.csv: no column 'language'"),
        (["--by", "judge"], "column judge: item 'q0' has 'x' and 'y', expected a column that says"),
        (["--by", "vote"], "expected a column that says something of items"),
        (["--by", "item"], "column item is the name of items, expected a column that says"),
        (["--systems", "task"], "--systems is 'task', expected the two columns"),
        (["--systems", "task,task"], "--systems is 'task,task', expected the two columns"),
        (["--systems", "task,item", "--by", "task"], "--by is given with --systems"),
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


def test_evaluate_and_its_report_end_with_the_win_rate(cli, folder):
    options = ("votes.csv", "labels.csv", "-f", "judge=x")
    status, out, _ = cli("evaluate", *options, "--report", "out")
    assert status == 0
    counts, labels, groups, _ = arrays("x")
    rate = btdagg.estimate(counts, labels, groups=groups).estimates["win rate"]
    last = out.strip().splitlines()[-1]
    assert last.startswith("win rate of A")
    assert f"{rate.value:.3f} ({rate.low:.3f} to {rate.high:.3f})" in last
    assert "How often A wins" in (folder / "out/index.html").read_text()
    found = json.loads(cli("evaluate", *options, "--json")[1])
    assert found["estimates"]["estimates"]["win rate"]["low"] == pytest.approx(rate.low)


def test_an_evaluation_says_why_it_has_no_win_rate(cli, folder):
    labels = pl.read_csv("labels.csv").with_columns(probability=pl.lit("high"))
    labels.write_csv("labels.csv")
    options = ("votes.csv", "labels.csv")
    status, out, err = cli("evaluate", *options)
    assert status == 0
    assert "win rate of A" not in out
    assert "no win rate over all items: labels.csv, column probability" in err


def test_systems_are_ranked(cli, folder):
    names = ["m", "n", "o"]
    pairs = [(a, b) for a in names for b in names if a != b]
    votes = pl.read_csv("votes.csv").with_columns(
        number=pl.col("item").str.slice(1).cast(pl.Int64) % len(pairs)
    )
    votes = votes.with_columns(
        system_a=pl.col("number").replace_strict(range(len(pairs)), [a for a, _ in pairs]),
        system_b=pl.col("number").replace_strict(range(len(pairs)), [b for _, b in pairs]),
    )
    votes.write_csv("votes.csv")
    options = ("votes.csv", "labels.csv", "--systems", "system_a,system_b")
    counts, labels, groups, _ = arrays()
    each = votes.unique("item", maintain_order=True)
    expected = btdagg.estimate_systems(
        counts, labels, each["system_a"].to_numpy(), each["system_b"].to_numpy(), groups=groups
    )
    found = json.loads(cli("estimate", *options, "--json")[1])
    assert [one["system"] for one in found["systems"]] == list(expected.systems)
    first = next(iter(expected.systems.values()))
    assert found["systems"][0]["strength_low"] == pytest.approx(first.strength.low)
    status, out, _ = cli("estimate", *options, "--report", "out")
    assert status == 0
    assert "Systems by strength" in out
    assert "Which system is best" in (folder / "out/index.html").read_text()
    assert pl.read_csv("out/tables/systems.csv").height == 3


def test_votes_and_labels_may_be_in_columns_of_one_name(cli, folder):
    expected = cli("estimate", "votes.csv", "labels.csv", "--json")
    named = {"item": "qid", "vote": "verdict", "label": "verdict"}
    for file in ("votes.csv", "labels.csv"):
        frame = pl.read_csv(file, infer_schema=False)
        frame.rename({c: n for c, n in named.items() if c in frame}).write_csv(f"own_{file}")
    columns = [word for name, own in named.items() for word in ("--column", f"{name}={own}")]
    found = cli("estimate", "own_votes.csv", "own_labels.csv", "--json", *columns)
    assert found[0] == 0
    assert json.loads(found[1])["estimates"] == json.loads(expected[1])["estimates"]
