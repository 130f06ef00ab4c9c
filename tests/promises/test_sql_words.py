"""A query decides as `btdagg decide` does, whatever the words and columns of the project file."""

import random
import sqlite3
from pathlib import Path

import polars as pl
import pytest

import btdagg
from btdagg.model.sql.queries import LabelsTable, VotesTable, histogram_query
from refusals import refused

MODEL = btdagg.DavidsonModel(1.2, 0.5, 0.8)
ENGINES = ("sqlite", "duckdb")

PAIRS = """
[votes]
file = "votes.csv"
item = ["case", "language"]
vote = "winner"
order = "swapped"
words = {"left" = "first", "RIGHT" = "second", "Égal" = "tie", "broken" = "missing", "2" = "B"}
orders = {yes = "BA", no = "AB"}
"""
GRADES = """
words = {poor = "1", good = "3", broken = "missing", "5" = "1", "1" = "5"}
[votes]
file = "votes.csv"
item = "case"
score = "rating"
scale = "1-5"
"""


@pytest.fixture
def rows():
    draw = random.Random(5)
    words = ["left", "Left ", "right", "égal", "Égal", "ÉGAL", "broken", "", "A", "tie", "2", "-1"]
    return [
        {
            "case": f"q{n % 40}",
            "language": "de" if n % 40 < 20 else "fr",
            "winner": draw.choice(words + ["A"] * (9 if n % 40 < 9 else 0)),
            "swapped": draw.choice(["yes", "no", "NO"]),
            "rating": draw.choice(["poor", "good", "Good", "broken", "5", "1", "2", ""]),
        }
        for n in range(400)
    ]


def queried(engine, query, **tables):
    """The rows of a query in which all columns of the tables are texts."""
    if engine == "duckdb":
        import duckdb

        database = duckdb.connect()
        for name, frame in tables.items():
            frame.write_csv(f"{name}.loaded.csv")
            file = f"'{name}.loaded.csv', all_varchar = true"
            database.execute(f"CREATE TABLE {name} AS FROM read_csv({file})")
        return database.sql(query).pl()
    database = sqlite3.connect(":memory:")
    for name, frame in tables.items():
        columns = ", ".join(f"`{column}` TEXT" for column in frame.columns)
        database.execute(f"CREATE TABLE {name} ({columns})")
        marks = ", ".join("?" * frame.width)
        database.executemany(f"INSERT INTO {name} VALUES ({marks})", frame.rows())
    done = database.execute(query)
    names = [name for name, *_ in done.description]
    return pl.DataFrame(done.fetchall(), names, orient="row", infer_schema_length=None)


def decided_both_ways(cli, engine, key, *options):
    """Labels of `btdagg decide`, and those of the query of `btdagg sql`, by item."""
    status, _, err = cli("decide", "model.json", "-o", "decided.csv", *options)
    assert status == 0, err
    status, query, err = cli("sql", "model.json", "--votes", "votes", "-d", engine, *options)
    assert status == 0, err
    frame = pl.read_csv("votes.csv", infer_schema=False)
    by_query = queried(engine, query, votes=frame)
    both = pl.read_csv("decided.csv"), by_query
    return tuple({tuple(row[:-1]): row[-1] for row in f.select(*key, "label").rows()} for f in both)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_reads_words_and_orders_of_the_project(cli, folder, rows, engine):
    pl.DataFrame(rows).write_csv("votes.csv")
    MODEL.save("model.json")
    Path("btdagg.toml").write_text(PAIRS)
    wanted, found = decided_both_ways(cli, engine, ["case", "language"])
    assert found == wanted
    assert len(wanted) == 40
    assert {*wanted.values()} == {-1, 0, 1}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_reads_words_that_are_typed(cli, folder, rows, engine):
    pl.DataFrame(rows).write_csv("votes.csv")
    MODEL.save("model.json")
    keys = ["item=case", "vote=winner", "order=swapped", "orders.yes=BA", "orders.no=AB"]
    words = ["left=first", "right=second", "Égal=tie", "broken=missing", "2=B"]
    typed = [
        word for key in [*keys, *(f"words.{word}" for word in words)] for word in ("--set", key)
    ]
    status, _, err = cli("decide", "model.json", "votes.csv", "-o", "decided.csv", *typed)
    assert status == 0, err
    status, query, err = cli("sql", "model.json", "--votes", "votes", "-d", engine, *typed)
    assert status == 0, err
    found = queried(engine, query, votes=pl.DataFrame(rows)).sort("item")
    assert found["label"].to_list() == pl.read_csv("decided.csv").sort("item")["label"].to_list()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_reads_words_of_grades(cli, folder, rows, engine):
    pl.DataFrame(rows).write_csv("votes.csv")
    scale = btdagg.Scale(range(1, 6))
    model = btdagg.GradeModel(beta=2, cuts=(2.5,), scale=scale, label_scale=btdagg.PASS_FAIL)
    model.save("model.json")
    Path("btdagg.toml").write_text(GRADES)
    wanted, found = decided_both_ways(cli, engine, ["item"])
    assert found == wanted
    assert {*wanted.values()} == {0, 1}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_histogram_reads_words_of_votes_and_labels(cli, folder, rows, engine):
    frame = pl.DataFrame(rows)
    frame.write_csv("votes.csv")
    people = ["ours", "theirs", "Egal", "1", "broken"]
    gold = pl.DataFrame({"case": [f"q{n}" for n in range(40)], "gold": people * 8})
    gold.write_csv("labels.csv")
    labels = (
        '[labels]\nfile = "labels.csv"\nitem = "case"\nlabel = "gold"\n'
        'words = {ours = "A", theirs = "B", egal = "tie", broken = "missing"}\n'
    )
    keys = PAIRS.replace('["case", "language"]', '"case"')
    Path("btdagg.toml").write_text(keys + labels)
    status, query, err = cli("sql", "--votes", "votes", "--labels", "labels", "-d", engine)
    assert status == 0, err
    queried(engine, query, votes=frame, labels=gold).write_csv("histogram.csv")
    assert cli("calibrate", "-o", "wanted.json")[0] == 0
    Path("btdagg.toml").unlink()
    assert cli("calibrate", "histogram.csv", "-o", "found.json")[0] == 0
    wanted, found = map(btdagg.DavidsonModel.load, ("wanted.json", "found.json"))
    assert (found.beta, found.eta0, found.gamma) == (wanted.beta, wanted.eta0, wanted.gamma)


@pytest.mark.parametrize("engine", ENGINES)
def test_python_writes_words_into_a_query(folder, rows, engine):
    words = {"left": "first", "right": "second", "égal": "tie", "broken": "missing", 2: "B"}
    orders = {"yes": "BA", "no": "AB"}
    names = {"item": "case", "vote": "winner", "order": "swapped"}
    votes = btdagg.read_votes(
        {name: [row[name] for row in rows] for name in rows[0]},
        columns=names,
        words=words,
        order=orders,
    )
    items = votes.items()
    wanted = dict(zip(items.ids, MODEL.decide(items), strict=True))
    table = VotesTable("votes", **names, words=words, orders=orders)
    found = queried(engine, MODEL.to_sql_query(engine, table), votes=pl.DataFrame(rows))
    assert dict(zip(found["item"], found["label"], strict=True)) == wanted


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_reads_sides_of_any_mirrored_scale(folder, engine):
    scale = btdagg.Scale((1, 2, 3), mirrored=True)
    model = btdagg.DavidsonModel(1.2, 0.5, 0.8, scale=scale, label_scale=scale)
    frame = pl.DataFrame({"item": ["x"] * 3 + ["y"] * 3, "vote": ["A", "3", "3", "B", "1", "tie"]})
    wanted = model.decide(btdagg.read_votes(frame, scale=scale).items())
    found = queried(engine, model.to_sql_query(engine, "votes"), votes=frame).sort("item")
    assert found["label"].to_list() == [*wanted] == [3, 1]


def test_a_query_takes_criteria_of_the_project_apart(cli, folder):
    rows = [
        {"item": f"q{n}", "aspect": aspect, "score": int(n % 2 == (aspect == "kind"))}
        for n in range(8)
        for aspect in ("kind", "true")
        for _ in range(3)
    ]
    scales = {"scale": btdagg.PASS_FAIL, "label_scale": btdagg.PASS_FAIL}
    btdagg.GradeModel(beta=2, cuts=(0.5,), **scales).save("model.json")
    Path("btdagg.toml").write_text('[votes]\ncriterion = "aspect"\n')
    frame = pl.DataFrame(rows).cast(pl.String)
    status, query, _ = cli("sql", "model.json", "--votes", "votes", "-d", "sqlite")
    assert status == 0
    found = queried("sqlite", query, votes=frame)
    labels = {(row["task"], row["item"]): row["label"] for row in found.iter_rows(named=True)}
    assert labels == {(row["aspect"], row["item"]): row["score"] for row in rows}
    status, query, _ = cli(
        "sql", "model.json", "--votes", "votes", "-d", "sqlite", "-f", "criterion=kind"
    )
    assert queried("sqlite", query, votes=frame).height == 8


@pytest.mark.parametrize(
    "key",
    ['[votes]\nscale = "1-3"', '[votes]\ncriteria = {kind = "k"}', '[votes]\nformat = "promptfoo"',
     'strength = "margin"', "full_margin = 2"],
)  # fmt: skip
def test_a_query_of_a_project_that_it_cannot_follow_is_refused(cli, folder, key):
    MODEL.save("model.json")
    Path("btdagg.toml").write_text(key)
    status, out, err = cli("sql", "model.json", "--votes", "votes")
    assert (status, out) == (2, "")
    assert key.partition("=")[0].split()[-1] in err


def test_labels_have_no_first_response(folder):
    gold = LabelsTable("labels", words={"left": "first"})
    with refused("words", got="left=first"):
        histogram_query("duckdb", "votes", gold)
