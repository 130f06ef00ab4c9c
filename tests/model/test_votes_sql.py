"""A query tallies and decides a table of votes as the package does, in real databases."""

import csv

import numpy as np
import pytest

from btdagg import DavidsonModel, InputError, PanelModel, read_votes
from btdagg.model import VotesTable
from btdagg.online import OnlineTally
from btdagg.votes import panel_counts
from draws import triples

N = 30
MODEL = DavidsonModel(1.2, 0.5, 0.8)
EQUAL_RISKS = DavidsonModel(2, 0, 1)


def votes_of_triples():
    """Votes of every triple but the empty one, which has a missing vote."""
    for number, counts in enumerate(triples(N)):
        sides = np.repeat([-1, 0, 1], counts).tolist() or [None]
        yield from ((f"t{number}", sample, vote) for sample, vote in enumerate(sides))


def random_votes(n_votes, seed=0):
    """Votes of 5,000 items, in which samples are repeated, now and then with another vote."""
    random = np.random.default_rng(seed)
    items = random.integers(0, 5000, n_votes)
    # Of few values, so that samples come again.
    samples, votes = random.integers(0, 40, n_votes), random.integers(-1, 2, n_votes)
    same = (items + samples) % 3 == 0  # whatever comes of these comes with the same vote
    votes[same] = (items[same] * 7 + samples[same]) % 3 - 1
    missing = random.random(n_votes) < 0.05
    return [
        (f"r{item}", int(sample), None if absent else int(vote))
        for item, sample, vote, absent in zip(items, samples, votes, missing, strict=True)
    ]


def by_item(rows):
    """Rows of a query by their first column, which no two of them share."""
    found = {row[0]: row[1:] for row in rows}
    assert len(found) == len(rows)
    return found


def decided(model, counts):
    """What a query says of items that have these counts, by item."""
    labels = model.decide(list(counts.values()))
    return {
        item: (*map(int, triple), int(label))
        for (item, triple), label in zip(counts.items(), labels, strict=True)
    }


KINDS = {"item": "text", "sample": "int", "vote": "int"}


def test_every_triple_and_random_votes_are_decided_as_the_package_does(engine):
    random = random_votes(100_000)
    engine.table("votes", KINDS, [*votes_of_triples(), *random])
    counts = {f"t{number}": counts for number, counts in enumerate(triples(N))}
    tally = OnlineTally()
    said = [row for row in random if row[2] is not None]
    tally.add([row[0] for row in said], [row[2] for row in said], [row[1] for row in said])
    differing = {conflict.item for conflict in tally.conflicts()}
    assert len(differing) > 1000
    ids, tallied = tally.counts()
    counts |= dict(zip(ids, tallied.tolist(), strict=True))
    for item in {row[0] for row in random} - counts.keys():
        counts[item] = (0, 0, 0)
    unreadable = dict.fromkeys(differing, (None,) * 4)
    for model in (MODEL, EQUAL_RISKS):
        for options in ({}, {"numbers": True}):
            table = VotesTable("votes", sample="sample", **options)
            found = engine.rows(model.to_sql_query(engine.dialect, table))
            assert by_item(found) == decided(model, counts) | unreadable


@pytest.mark.parametrize("sample", [[], ["judge", "order", "sample"], ["sample"]])
def test_an_export_is_decided_as_the_command_decides_it(engine, tmp_path, cli, sample):
    """By default and by the whole key; by a part of it no item gets another label."""
    random = np.random.default_rng(3)
    collected, store, export = (tmp_path / n for n in ("collected.csv", "votes.db", "votes.csv"))
    lines = [
        f"q{item},{judge},{order},{sample},{random.choice(['A', 'tie', 'B', 'B', 'missing'])}"
        for item in range(60)
        for judge in ("one", "two")
        for order in ("AB", "BA")
        for sample in range(3)
    ]
    collected.write_text("\n".join(["item,judge,order,sample,vote", *lines]) + "\n")
    imported = ["--words", "missing=missing", "--store", store]
    assert cli("import", collected, *imported)[0] == 0
    assert cli("votes", store, "--export", export)[0] == 0
    MODEL.save(tmp_path / "model.json")
    labels = tmp_path / "labels.csv"
    assert cli("decide", tmp_path / "model.json", export, "-o", labels)[0] == 0
    expected = {row["item"]: int(row["label"]) for row in rows_of(labels)}
    kinds = {"item": "text", "judge": "text", "order": "text", "sample": "int", "vote": "int"}
    rows = [tuple(row[name] or None for name in kinds) for row in rows_of(export)]
    rows += rows[:100] if len(sample) == 3 else []  # delivered twice
    engine.table("votes", kinds, rows)
    options = [word for column in sample for word in ("--sample", column)]
    line = ["--votes", "votes", *options, "--dialect", engine.dialect]
    status, query, _ = cli("sql", tmp_path / "model.json", *line)
    assert status == 0
    found = {item: row[-1] for item, row in by_item(engine.rows(query)).items()}
    if sample == ["sample"]:
        assert list(found.values()).count(None) > len(expected) / 3
        expected = {item: None if found[item] is None else y for item, y in expected.items()}
    assert found == expected


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_without_samples_every_row_is_a_vote(engine):
    rows = random_votes(20_000, seed=1)
    engine.table("votes", KINDS, rows)
    ids, counts = read_votes({"item": [r[0] for r in rows], "vote": [r[2] for r in rows]}).counts()
    wanted = decided(MODEL, dict(zip(ids, counts, strict=True)))
    assert by_item(engine.rows(MODEL.to_sql_query(engine.dialect, "votes"))) == wanted


def test_words_are_votes_and_others_take_the_label(engine):
    words = [" A", "a", "1", "1.0", "B ", "b", "-1", "Tie", "same", "0", "", None]
    rows = [("read", number, word) for number, word in enumerate(words)]
    rows += [(f"not {word}", number, word) for number, word in enumerate(["2", "C", "0.5"])]
    rows += [(f"not {word}", 9, "A") for word in ["2", "C", "0.5"]]
    rows += [("only missing", 0, None), ("only missing", 1, "")]
    rows += [("differing", 0, "A"), ("differing", 0, "B"), ("differing", 1, "A")]
    rows += [("equal", 0, "A"), ("equal", 0, "1"), ("equal", 0, None)]
    engine.table("votes", KINDS | {"vote": "text"}, rows)
    table = VotesTable("votes", sample=["sample"])
    query = MODEL.to_sql_query(engine.dialect, table, probabilities=True)
    found = by_item(engine.rows(query))
    counts = {"read": (3, 3, 4), "only missing": (0, 0, 0)}
    counts["equal"] = (0, 0, 1)
    wanted = decided(MODEL, counts)
    assert {item: row[:4] for item, row in found.items() if item in counts} == wanted
    for item in ("not 2", "not C", "not 0.5", "differing"):
        assert found[item] == (None,) * 7


@pytest.mark.parametrize(
    "model", [MODEL, DavidsonModel(50, 600, 20, 1e-9, 1e9), DavidsonModel(0.3, -700, -3)]
)
def test_probabilities_are_those_of_the_model(engine, model):
    engine.table("votes", KINDS, list(votes_of_triples()))
    query = model.to_sql_query(engine.dialect, "votes", probabilities=True)
    found = by_item(engine.rows(query))
    items = [f"t{number}" for number, _ in enumerate(triples(N))]
    counts = np.array(list(triples(N)))
    assert [found[item][3] for item in items] == model.decide(counts).tolist()
    shares = np.array([found[item][4:] for item in items], dtype=float)
    np.testing.assert_allclose(shares, model.predict_proba(counts), rtol=0, atol=1e-12)


def test_items_are_decided_by_task_and_judge_of_the_rows_that_are_wanted(engine):
    random = np.random.default_rng(2)
    rows = [
        (int(q), ("x", "y's \\")[t], ("j1", "j2", "j3")[j], ("A", "B", "tie")[v])
        for q, t, j, v in zip(*(random.integers(0, n, 3000) for n in (30, 2, 3, 3)), strict=True)
    ]
    kinds = {"Question": "int", "Task": "text", "Who": "text", "said": "text"}
    engine.table("answers", kinds, rows)
    table = VotesTable(
        "answers", item="Question", vote="said", task="Task", judge="Who",
        where={"Who": ["j1", "j3"], "Task": "y's \\"},
    )  # fmt: skip
    found = engine.rows(MODEL.to_sql_query(engine.dialect, table))
    votes = read_votes(
        {
            name: [row[place] for row in rows]
            for place, name in enumerate(["item", "task", "judge", "vote"])
        }
    )
    wanted = {}
    for judge in ("j1", "j3"):
        ids, counts = votes.filter({"judge": judge, "task": "y's \\"}).counts()
        of_judge = decided(MODEL, dict(zip(ids.tolist(), counts, strict=True)))
        wanted |= {("y's \\", judge, item): row for item, row in of_judge.items()}
    assert {row[:3]: row[3:] for row in found} == wanted


def test_a_panel_is_decided_as_the_package_does(engine):
    model = PanelModel(
        ("o'1", "j 2", "j3"), (1.0, 0.4, 0.7), 0.3, (0.5, 0.2, -0.1), unheard=("j3",)
    )
    random = np.random.default_rng(3)
    items, judges = random.integers(0, 400, 6000), random.integers(0, 3, 6000)
    judges[items % 5 == 0] = 1  # who is alone there
    votes = random.integers(-1, 2, 6000)
    rows = [
        (f"q{item}", model.judges[judge], n, int(vote))
        for n, (item, judge, vote) in enumerate(zip(items, judges, votes, strict=True))
    ]
    names = ("item", "judge", "sample", "vote")
    read = read_votes({name: [row[k] for row in rows] for k, name in enumerate(names)})
    counts = panel_counts(read, judges=model.judges)
    rows += [*(("q1x", "j3", n, 1) for n in range(3)), ("q2x", "o'1", 0, 1), ("q2x", "who", 1, 1)]
    kinds = {"item": "text", "judge": "text", "sample": "int", "vote": "int"}
    engine.table("votes", kinds, [*rows, *rows[:50]])  # some of them twice
    table = VotesTable("votes", sample="sample", judge="judge")
    found = by_item(engine.rows(model.to_sql_query(engine.dialect, table, probabilities=True)))
    assert found.pop("q2x") == (None,) * 7  # of nobody the panel has
    assert found.pop("q1x")[:4] == (0, 0, 3, 0)  # the votes of j3 are not heard
    labels, shares = model.decide(counts.counts), model.predict_proba(counts.counts)
    totals = counts.counts.sum(axis=1)
    wanted = {
        item: (*map(int, total), int(label))
        for item, total, label in zip(counts.ids, totals, labels, strict=True)
    }
    assert {item: row[:4] for item, row in found.items()} == wanted
    got = np.array([found[item][4:] for item in counts.ids], dtype=float)
    np.testing.assert_allclose(got, shares, rtol=0, atol=1e-12)
    plain = by_item(engine.rows(model.to_sql_query(engine.dialect, table)))
    assert {item: plain[item] for item in wanted} == wanted


def test_without_mathematical_functions_decisions_are_looked_up(engine):
    engine.table("votes", KINDS, [*votes_of_triples(), *(("many", n, 0) for n in range(40))])
    found = by_item(engine.rows(MODEL.to_sql_query(engine.dialect, "votes", max_votes=N)))
    assert found.pop("many") == (0, 40, 0, None)
    counts = {f"t{number}": counts for number, counts in enumerate(triples(N))}
    assert found == decided(MODEL, counts)


@pytest.mark.parametrize("dialect", ["bigquery", "clickhouse"])
def test_names_are_names_where_a_backslash_escapes(dialect):
    query = MODEL.to_sql_query(dialect, VotesTable("v", item="a`b\\", where={"c": "d'e\\"}))
    assert "v.`a\\`b\\\\`" in query
    assert "IN ('d\\'e\\\\')" in query


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"name": ""}, "votes is '', expected the name of a table"),
        ({"name": ("a", "")}, r"votes is \('a', ''\), expected the name of a table"),
        ({"item": ""}, "column is '', expected the name of a column"),
        ({"sample": ["a", 3]}, "column is 3, expected its name"),
        ({"judge": "a\0"}, r"column is 'a\\x00', expected the name of a column"),
        ({"where": "a=b"}, "where is 'a=b', expected a mapping of column to value"),
        ({"where": {"a": []}}, "where has no value of 'a', expected at least one"),
        ({"where": {"a": None}}, "where has 'a': None, expected a text or a number"),
        ({"where": {"a": "\0"}}, r"where has 'a': '\\x00', which no database takes"),
    ],
)
def test_bad_arguments_are_named(table, message):
    with pytest.raises(InputError, match=message):
        MODEL.to_sql_query("duckdb", VotesTable(**{"name": "votes", **table}))


def test_what_cannot_be_written_is_refused():
    with pytest.raises(InputError, match="probabilities need mathematical functions, and max_v"):
        MODEL.to_sql_query("duckdb", "votes", probabilities=True, max_votes=12)
    with pytest.raises(InputError, match="dialect is 'oracle', expected one of duckdb, postgresql"):
        MODEL.to_sql_query("oracle", "votes")
    panel = PanelModel(("a",), (1,), 1, (1,))
    with pytest.raises(InputError, match="judge is None, expected the column of the judges' names"):
        panel.to_sql_query("duckdb", VotesTable("votes"))


def test_the_command_prints_the_query(tmp_path, cli):
    MODEL.save(tmp_path / "model.json")
    panel = PanelModel(("a", "b"), (1, 2), 1, (1, 1))
    panel.save(tmp_path / "panel.json")
    line = "--votes main.votes --item Q --vote V --sample S --sample order --task T --judge J"
    options = [*line.split(), "--filter", "Judge=a", "--filter", "Judge=b", "--numbers"]
    table = VotesTable(
        ["main", "votes"], item="Q", vote="V", sample=["S", "order"], task="T", judge="J",
        where={"Judge": ["a", "b"]}, numbers=True,
    )  # fmt: skip
    assert cli("sql", tmp_path / "model.json", *options, "-d", "spark", "--probabilities") == (
        0, MODEL.to_sql_query("spark", table, probabilities=True) + "\n", "",
    )  # fmt: skip
    assert cli("sql", tmp_path / "panel.json", *options)[1] == (
        panel.to_sql_query("duckdb", table) + "\n"
    )
    assert cli("sql", tmp_path / "panel.json")[1] == panel.to_sql("duckdb") + "\n"
    written = cli("sql", tmp_path / "model.json", "--votes", "votes.parquet", "--max-votes", "9")[1]
    assert written == MODEL.to_sql_query("duckdb", "votes.parquet", max_votes=9) + "\n"


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("model", "--judge j", "--judge wants --votes TABLE"),
        ("model", "--probabilities", "--probabilities wants --votes TABLE"),
        ("model", "--votes v --plus a", "--plus is of a table of counts, and --votes names one"),
        ("panel", "--plus a", "--plus is of a single model, and MODEL is a panel"),
        ("panel", "--votes v --judge j --max-votes 9", "--max-votes is of a single model, and"),
        ("panel", "--votes v", "judge is None, expected the column of the judges' names"),
    ],
)
def test_options_of_the_command_that_do_not_go_together(tmp_path, cli, file, options, message):
    MODEL.save(tmp_path / "model.json")
    PanelModel(("a",), (1,), 1, (1,)).save(tmp_path / "panel.json")
    status, out, said = cli("sql", tmp_path / f"{file}.json", *options.split())
    assert (status, out) == (2, "")
    assert message in said
