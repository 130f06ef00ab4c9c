"""SQL decides as the package does, in real databases: a model's expression, and the whole query."""

import csv
import math
import re
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

from btdagg import (
    PASS_FAIL,
    Covariate,
    DavidsonModel,
    GradeModel,
    InputError,
    PanelModel,
    Scale,
    read_votes,
)
from btdagg.model import VotesTable
from btdagg.model.sql.queries import LabelsTable, histogram_query
from btdagg.online import OnlineTally
from btdagg.votes import Provenance
from draws import triples
from refusals import refused

N = 30
TRIPLES = np.array(list(triples(N)))
NO_COUNTS = [
    *[(None, 1, 2), (1, None, 2), (1, 2, None), (None, None, None)],
    *[(-1, 0, 5), (0, -1, 5), (5, 0, -1)],
]
LARGE = [(10**9, 0, 2 * 10**9), (10**18, 10**17, 10**18), (0, 10**6, 10**6)]

_rng = np.random.default_rng(0)
MODELS = [
    # Equal risks for whole families of triples, and a rounding error to either side of them.
    DavidsonModel(2, 0, 1),
    DavidsonModel(2, 1e-13, 1),
    DavidsonModel(2, -1e-13, 1),
    DavidsonModel(4, 0, 2),
    DavidsonModel(2, 0, -1),
    DavidsonModel(2, math.log(1.5), 0),
    DavidsonModel(2, math.log(1.5), 1, 0.5, 0.5),
    DavidsonModel(4, math.log(3.75), 3, 2, 3),
    # Bounds, extremes and neutral values.
    DavidsonModel(5, math.log(1e3), -10),
    DavidsonModel(1e-3, math.log(1e-4), 10),
    DavidsonModel(0, 1, 1),
    DavidsonModel(-1.5, 0.5, 0.5),
    DavidsonModel(5, -700, 3),
    DavidsonModel(50, 600, 20, 1e-9, 1e9),
    DavidsonModel(1e-300, -690, 0),
    *(
        DavidsonModel(_rng.uniform(1e-3, 5), _rng.uniform(-9, 7), _rng.uniform(-10, 10))
        for _ in range(10)
    ),
]
MODEL = DavidsonModel(1.2, 0.5, 0.8)
PANEL = PanelModel(("o'1", "j 2", "j3"), (1.0, 0.4, 0.7), 0.3, (0.5, 0.2, -0.1), unheard=("j3",))
COUNTS = dict.fromkeys(("place", "minus", "tie", "plus"), "int")
VOTES = {"item": "text", "sample": "int", "vote": "int"}


# A decision as an expression


def test_every_triple_is_decided_as_the_model_does(engine):
    rows = [*TRIPLES.tolist(), *NO_COUNTS]
    engine.table("counts", COUNTS, [(place, *row) for place, row in enumerate(rows)])
    for first in range(0, len(MODELS), 5):  # a query of five takes Spark little longer than of one
        some = MODELS[first : first + 5]
        labels = [f"{model.to_sql(engine.dialect)} AS l{k}" for k, model in enumerate(some)]
        rows = engine.rows(f"SELECT {', '.join(labels)} FROM counts ORDER BY place")
        for model, column in zip(some, zip(*rows, strict=True), strict=True):
            of_triples = column[: len(TRIPLES)]
            np.testing.assert_array_equal(of_triples, model.decide(TRIPLES), str(model))
            assert column[len(TRIPLES) :] == (None,) * 7


def test_large_counts_are_decided(engine):
    rows = [*LARGE, (20, 5, 20), (0, 31, 0)]
    engine.table("counts", COUNTS, [(place, *row) for place, row in enumerate(rows)])
    labels = MODEL.decide(rows).tolist()
    label = MODEL.to_sql(engine.dialect)
    decided = engine.rows(f"SELECT {label} AS label FROM counts ORDER BY place")
    assert [label for (label,) in decided] == labels


def sqlite_labels(rows, kind, model):
    """What SQLite decides of rows of counts in columns of a type."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE counts (minus {kind}, tie {kind}, plus {kind})")
    connection.executemany("INSERT INTO counts VALUES (?, ?, ?)", rows)
    query = f"SELECT {model.to_sql('sqlite')} FROM counts ORDER BY rowid"
    return [label for (label,) in connection.execute(query)]


@pytest.mark.parametrize("kind", ["TEXT", "", "REAL"])
def test_sqlite_columns_of_any_type_are_compared_as_numbers(kind):
    """A table made of a CSV file holds texts, and '10' is less than '2' among them."""
    as_text = kind in ("TEXT", "")
    rows = [[str(value) if as_text else value for value in row] for row in TRIPLES.tolist()]
    for model in MODELS[::6]:
        labels = sqlite_labels(rows, kind, model)
        np.testing.assert_array_equal(labels, model.decide(TRIPLES), err_msg=str(model))


@pytest.mark.parametrize("kind", ["TEXT", "", "INTEGER"])
def test_a_text_that_is_no_count_has_no_label_in_sqlite(kind):
    rows = [("0", "1", "11"), ("0.0", "1", "11.0")]
    for text in ("", "a", "-1", "1a", "1 2", "+", "é", "nan", "1.2.3", b"", b"a"):
        rows += [(text, 1, 2), (1, text, 2), (1, 2, text)]
    labels = sqlite_labels(rows, kind, MODEL)
    assert labels == [MODEL.decide_one(0, 1, 11)] * 2 + [None] * (len(rows) - 2)


def test_counts_need_not_be_whole_and_what_is_no_count_has_no_label(engine):
    rng = np.random.default_rng(5)
    fractions = np.floor(rng.random((40, 3)) * 4096) / 1024
    wrong = [-0.5, *([math.inf] if engine.dialect == "sqlite" else [])]
    rows = [tuple(v if k == place else 3 for k in range(3)) for v in wrong for place in range(3)]
    rows += fractions.tolist()
    kinds = dict.fromkeys(("minus", "tie", "plus"), "real")
    engine.table("counts", {"place": "int"} | kinds, [(k, *row) for k, row in enumerate(rows)])
    label = MODEL.to_sql(engine.dialect)
    labels = [y for (y,) in engine.rows(f"SELECT {label} AS label FROM counts ORDER BY place")]
    assert labels == [None] * (len(rows) - 40) + MODEL.decide(fractions).tolist()


def test_texts_of_numbers_are_counts(engine):
    kinds = {"place": "int"} | dict.fromkeys(("minus", "tie", "plus"), "text")
    rows = [(2, 0, 10), (10, 0, 2), (9, 0, 10), (0, 0, 0)]
    engine.table("counts", kinds, [(k, *map(str, row)) for k, row in enumerate(rows)])
    model = DavidsonModel(2, -5, 0)  # no ties: who has more votes has it
    label = model.to_sql(engine.dialect)
    labels = [y for (y,) in engine.rows(f"SELECT {label} AS label FROM counts ORDER BY place")]
    assert labels == model.decide(rows).tolist()


NAMES = [
    ('a"; DROP TABLE counts; --', "b`; DROP TABLE counts; --", "c'; DROP TABLE counts; --"),
    ("select", "no spaces? some", "Größe 🙂"),
    ('"', "`", "''"),
    ("a\\", "b\n", "{c}"),
]


@pytest.mark.parametrize("names", NAMES)
def test_whatever_a_name_holds_is_a_name(engine, names):
    if engine.dialect not in ("sqlite", "duckdb", "postgresql"):
        pytest.skip("its tables are made with plain names here")
    mark = "`" if engine.dialect == "sqlite" else '"'
    quoted = [name.replace(mark, 2 * mark) for name in names]
    engine.table("counts", dict.fromkeys(quoted, "int"), [(0, 1, 11)])
    columns = dict(zip(("minus", "tie", "plus"), names, strict=True))
    label = MODEL.to_sql(engine.dialect, **columns)
    assert engine.rows(f"SELECT {label} AS label FROM counts") == [(1,)]


def test_a_missing_column_is_an_error_and_no_text(engine):
    engine.table("counts", COUNTS, [(0, 0, 1, 11)])
    label = MODEL.to_sql(engine.dialect, plus="nope")
    with pytest.raises(Exception, match="nope"):
        engine.rows(f"SELECT {label} AS label FROM counts")
    qualified = {name: ("counts", name) for name in ("minus", "tie", "plus")}
    label = MODEL.to_sql(engine.dialect, **qualified)
    assert engine.rows(f"SELECT {label} AS label FROM counts") == [(1,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dialect": "oracle"}, "dialect is 'oracle', expected one of duckdb, postgresql, sqlite"),
        ({"plus": "minus"}, '"minus", "tie", "minus", expected three columns'),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        MODEL.to_sql(**{"dialect": "duckdb", **arguments})


def test_what_cannot_be_written_is_refused():
    with refused("gamma", got=1e101, expected="at most 1e+100 in size"):
        DavidsonModel(1, 1, 1e101).to_sql("duckdb")
    with refused("judge", got=None, expected="the column of the judges' names"):
        PANEL.to_sql_query("duckdb", VotesTable("votes"))


@pytest.mark.parametrize("name", ["", [], None, "a\0b"])
def test_what_is_no_name_is_refused(name):
    message = re.escape(f"{name!r} is not a name of a column or table")
    with pytest.raises(InputError, match=message):
        MODEL.to_sql("sqlite", plus=name)
    with pytest.raises(InputError, match=message):
        MODEL.to_sql_query("duckdb", VotesTable(name))


# Votes to labels as a query


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
    values = {row[0]: row[1:] for row in rows}
    assert len(values) == len(rows)
    return values


def decided(model, counts):
    """What a query says of items that have these counts, by item."""
    labels = model.decide(list(counts.values()))
    return {
        item: (*map(int, triple), int(label))
        for (item, triple), label in zip(counts.items(), labels, strict=True)
    }


def test_every_triple_and_random_votes_are_decided_as_the_package_does(engine):
    random = random_votes(50_000)
    engine.table("votes", VOTES, [*votes_of_triples(), *random])
    counts = {f"t{number}": counts for number, counts in enumerate(triples(N))}
    tally = OnlineTally()
    votes = [row for row in random if row[2] is not None]
    tally.add([row[0] for row in votes], [row[2] for row in votes], [row[1] for row in votes])
    differing = {conflict.item for conflict in tally.conflicts()}
    assert len(differing) > 1000
    ids, tallied = tally.counts()
    counts |= dict(zip(ids, tallied.tolist(), strict=True))
    for item in {row[0] for row in random} - counts.keys():
        counts[item] = (0, 0, 0)
    unreadable = dict.fromkeys(differing, (None,) * 4)
    for model in (MODEL, DavidsonModel(2, 0, 1)):  # the latter with equal risks
        for options in ({}, {"numbers": True}):
            table = VotesTable("votes", sample="sample", **options)
            rows = engine.rows(model.to_sql_query(engine.dialect, table))
            assert by_item(rows) == decided(model, counts) | unreadable


@pytest.mark.parametrize("sample", [[], ["judge", "order", "sample"], ["sample"]])
def test_an_export_is_decided_as_the_command_decides_it(engine, tmp_path, cli, sample):
    """By default and by the whole key; by a part of it no item gets another label."""
    random = np.random.default_rng(3)
    collected, export = tmp_path / "collected.csv", tmp_path / "votes.csv"
    lines = [
        f"q{item},{judge},{order},{sample},{random.choice(['A', 'tie', 'B', 'B', 'missing'])}"
        for item in range(60)
        for judge in ("one", "two")
        for order in ("AB", "BA")
        for sample in range(3)
    ]
    collected.write_text("\n".join(["item,judge,order,sample,vote", *lines]) + "\n")
    assert cli("import", collected, "--set", "words.missing=missing", "-o", export)[0] == 0
    MODEL.save(tmp_path / "model.json")
    labels = tmp_path / "labels.csv"
    assert cli("decide", tmp_path / "model.json", export, "-o", labels)[0] == 0
    expected = {row["item"]: int(row["label"]) for row in csv_rows(labels)}
    kinds = {"item": "text", "judge": "text", "order": "text", "sample": "int", "vote": "int"}
    rows = [tuple(row[name] or None for name in kinds) for row in csv_rows(export)]
    rows += rows[:100] if len(sample) == 3 else []  # delivered twice
    engine.table("votes", kinds, rows)
    options = [word for column in sample for word in ("--set", f"sample={column}")]
    line = ["--votes", "votes", *options, "--dialect", engine.dialect]
    status, query, _ = cli("sql", tmp_path / "model.json", *line)
    assert status == 0
    labelled = {item: row[-1] for item, row in by_item(engine.rows(query)).items()}
    if sample == ["sample"]:
        assert list(labelled.values()).count(None) > len(expected) / 3
        expected = {item: None if labelled[item] is None else y for item, y in expected.items()}
    assert labelled == expected


def csv_rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_words_are_votes_and_others_take_the_label(engine):
    words = [" A", "a", "1", "1.0", "B ", "b", "-1", "Tie", "same", "0", "", None]
    rows = [("read", number, word) for number, word in enumerate(words)]
    rows += [(f"not {word}", number, word) for number, word in enumerate(["2", "C", "0.5"])]
    rows += [(f"not {word}", 9, "A") for word in ["2", "C", "0.5"]]
    rows += [("only missing", 0, None), ("only missing", 1, "")]
    rows += [("differing", 0, "A"), ("differing", 0, "B"), ("differing", 1, "A")]
    rows += [("equal", 0, "A"), ("equal", 0, "1"), ("equal", 0, None)]
    engine.table("votes", VOTES | {"vote": "text"}, rows)
    table = VotesTable("votes", sample=["sample"])
    query = MODEL.to_sql_query(engine.dialect, table, probabilities=True)
    by_name = by_item(engine.rows(query))
    counts = {"read": (3, 3, 4), "only missing": (0, 0, 0), "equal": (0, 0, 1)}
    readable = {item: row[:4] for item, row in by_name.items() if item in counts}
    assert readable == decided(MODEL, counts)
    for item in ("not 2", "not C", "not 0.5", "differing"):
        assert by_name[item] == (None,) * 7


@pytest.mark.parametrize(
    "model", [MODEL, DavidsonModel(50, 600, 20, 1e-9, 1e9), DavidsonModel(-0.3, -700, -3)]
)
def test_probabilities_are_those_of_the_model(engine, model):
    engine.table("votes", VOTES, list(votes_of_triples()))
    query = model.to_sql_query(engine.dialect, "votes", probabilities=True)
    by_name = by_item(engine.rows(query))
    items = [f"t{number}" for number, _ in enumerate(triples(N))]
    counts = np.array(list(triples(N)))
    assert [by_name[item][3] for item in items] == model.decide(counts).tolist()
    shares = np.array([by_name[item][4:] for item in items], dtype=float)
    np.testing.assert_allclose(shares, model.predict_proba(counts), rtol=0, atol=1e-12)


def test_items_are_decided_by_task_and_judge_of_the_chosen_rows(engine):
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
    by_row = engine.rows(MODEL.to_sql_query(engine.dialect, table))
    names = ("item", "task", "judge", "vote")
    votes = read_votes({name: [row[k] for row in rows] for k, name in enumerate(names)})
    expected = {}
    for judge in ("j1", "j3"):
        ids, counts = votes.filter({"judge": judge, "task": "y's \\"}).counts()
        of_judge = decided(MODEL, dict(zip(ids.tolist(), counts, strict=True)))
        expected |= {("y's \\", judge, item): row for item, row in of_judge.items()}
    assert {row[:3]: row[3:] for row in by_row} == expected


def test_a_panel_is_decided_as_the_package_does(engine):
    random = np.random.default_rng(3)
    items, judges = random.integers(0, 400, 6000), random.integers(0, 3, 6000)
    judges[items % 5 == 0] = 1  # who is alone there
    votes = random.integers(-1, 2, 6000)
    rows = [
        (f"q{item}", PANEL.judges[judge], n, int(vote))
        for n, (item, judge, vote) in enumerate(zip(items, judges, votes, strict=True))
    ]
    names = ("item", "judge", "sample", "vote")
    read = read_votes({name: [row[k] for row in rows] for k, name in enumerate(names)})
    counts = read.items(panel="judge", judges=PANEL.judges)
    rows += [*(("q1x", "j3", n, 1) for n in range(3)), ("q2x", "o'1", 0, 1), ("q2x", "who", 1, 1)]
    kinds = {"item": "text", "judge": "text", "sample": "int", "vote": "int"}
    engine.table("votes", kinds, [*rows, *rows[:50]])  # some of them twice
    table = VotesTable("votes", sample="sample", judge="judge")
    query = PANEL.to_sql_query(engine.dialect, table, probabilities=True)
    by_name = by_item(engine.rows(query))
    assert by_name.pop("q2x") == (None,) * 7  # of nobody the panel has
    assert by_name.pop("q1x")[:4] == (0, 0, 3, 0)  # the votes of j3 are not heard
    totals = dict(zip(counts.ids, counts.counts.sum(axis=1), strict=True))
    labels = PANEL.decide(counts.counts).tolist()
    expected = {
        item: (*map(int, total), label)
        for (item, total), label in zip(totals.items(), labels, strict=True)
    }
    assert {item: row[:4] for item, row in by_name.items()} == expected
    shares = np.array([by_name[item][4:] for item in counts.ids], dtype=float)
    np.testing.assert_allclose(shares, PANEL.predict_proba(counts.counts), rtol=0, atol=1e-12)


STRONG = {"item": "text", "judge": "text", "template": "text", "vote": "text", "margin": "real"}


def votes_with_margins(n_votes, seed=0):
    """Votes of 400 items by two judges and templates, on scales of their own; some without."""
    random = np.random.default_rng(seed)
    judges, templates = random.integers(0, 2, (2, n_votes))
    margins = random.random(n_votes) * np.array([[1, 30], [8, 9]])[judges, templates]
    margins[judges == 1] = np.floor(margins[judges == 1])
    votes = random.integers(-1, 2, n_votes)
    margins[random.random(n_votes) < 0.02] *= 1e90
    absent = random.random(n_votes) < 0.03
    no_margin = (votes == 0) & (random.random(n_votes) < 0.5) | absent
    return [
        (f"q{item}", f"j{judge}", f"t{template}", None if away else words[vote], margin)
        for words in [["tie", "A", "B"]]
        for item, judge, template, vote, margin, away in zip(
            random.integers(0, 400, n_votes).tolist(), judges, templates, votes,
            np.where(no_margin, None, margins).tolist(), absent, strict=True,
        )
    ]  # fmt: skip


def strong_columns(rows):
    return {name: [row[place] for row in rows] for place, name in enumerate(STRONG)}


def test_votes_with_margins_are_counted_and_decided_bit_by_bit(engine):
    rows = votes_with_margins(6000)
    engine.table("votes", STRONG, rows)
    for judges in (["j0"], ["j0", "j1"]):
        votes = read_votes(strong_columns([row for row in rows if row[1] in judges]))
        ids, counts = votes.counts()
        model = replace(DavidsonModel(2, 0.4, 0.5), provenance=Provenance.of(votes))
        table = VotesTable("votes", where={"judge": judges})
        by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, table)))
        assert len(by_name) == len(ids)
        assert (
            np.array([by_name[item][:3] for item in ids], dtype=float).tolist() == counts.tolist()
        )
        assert [by_name[item][3] for item in ids] == model.decide(votes).tolist()
        # By signs where that is said.
        table = replace(table, strength="none")
        by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, table)))
        signs = votes.signs().counts()[1]
        assert [list(by_name[item][:3]) for item in ids] == signs.tolist()


def test_a_panel_with_margins_is_decided_as_the_package_does(engine):
    rows = votes_with_margins(4000, seed=1)
    rows = [(*row[:4], None if row[1] == "j1" else row[4]) for row in rows]  # j1 has signs alone
    engine.table("votes", STRONG, rows)
    votes = read_votes(strong_columns(rows))
    panel = PanelModel(("j0", "j1"), (1.0, 0.4), 0.3, (0.5, 0.2), provenance=Provenance.of(votes))
    by_name = by_item(
        engine.rows(panel.to_sql_query(engine.dialect, VotesTable("votes", judge="judge")))
    )
    counts = votes.items(panel="judge", judges=panel.judges)
    totals = counts.counts.sum(axis=1).tolist()
    assert [list(map(float, by_name[item][:3])) for item in counts.ids] == totals
    assert [by_name[item][3] for item in counts.ids] == panel.decide(counts.counts).tolist()


@pytest.mark.parametrize("judges", [("a", "a"), (None, None), (None, "a"), ("a", None)])
def test_templates_and_judges_without_margins_count_whole(engine, judges):
    own = (("t", 3.0), ("u", None))
    rows = [
        (f"q{item}", judge, template, ("A", "B")[item % 2], margin and margin * (item % 3))
        for item in range(4)
        for judge, (template, margin) in zip(judges, own, strict=True)
    ]
    rows += [("q2", judges[0], "t", "B", 2.5)]
    votes = read_votes(strong_columns(rows))
    engine.table("votes", STRONG, [*rows, ("other", judges[0], "v", "A", 2.0)])
    model = replace(MODEL, provenance=Provenance.of(votes))
    by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, "votes")))
    ids, counts = votes.counts()
    assert [[*map(float, by_name[item][:3])] for item in ids] == counts.tolist()
    assert by_name["other"] == (None,) * 4  # of a template that the model does not know


@pytest.mark.parametrize("margins", [(None, None), (1.0, 8.0)])
def test_full_margins_of_votes_of_nobody_are_their_own(engine, margins):
    rows = [("x", None, "t", "A", 2.0), ("y", "a", "t", "B", margins[0])]
    rows += [("y", "a", "t", "A", margins[1])]
    votes = read_votes(strong_columns(rows))
    engine.table("votes", STRONG, rows)
    for of in (votes, votes.filter({"judge": "a"})):
        model = replace(MODEL, provenance=Provenance.of(of))
        by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, "votes")))
        assert by_name["y"][:3] == tuple(votes.counts()[1][1].tolist())


def test_a_vote_without_its_margin_takes_the_label(engine):
    margins = [0.0, 0.5, 3.0, 7, None, -1.0, 1e101]
    rows = [(f"{vote} {m}", "j", "t", vote, m) for vote in ("A", "B", "tie") for m in margins]
    rows += [(row[0], "j", "t", "A", 4.0) for row in rows]
    engine.table("votes", STRONG, rows)
    votes = read_votes(strong_columns(rows[:4]), full_margin=4)
    model = replace(MODEL, provenance=Provenance.of(votes))
    by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, "votes")))
    of_a = [by_name[f"A {margin}"][:3] for margin in margins]
    assert of_a == [(0, 1, 1), (0, 0.875, 1.125), (0, 0.25, 1.75), (0, 0, 2), *[(None,) * 3] * 3]
    # Beside a vote for B a margin may have its sign.
    assert by_name["B -1.0"][:3] == (0.25, 0.75, 1)
    assert [by_name[f"B {margin}"][0] for margin in (None, 1e101)] == [None, None]
    assert {by_name[f"tie {margin}"][:3] for margin in margins} == {(0, 1, 1)}


def test_strengths_and_confidences_are_strengths_and_probabilities_have_no_query(engine):
    kinds = {"item": "text", "vote": "int", "strength": "real", "sure": "real"}
    rows = [("x", 1, 0.25, 1.0), ("x", -1, 0.5, 0.75), ("y", 1, 1.0, 0.0), ("z", 1, 1.5, -0.5)]
    engine.table("votes", kinds, rows)
    model = replace(MODEL, provenance=Provenance(strength="strength"))
    by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, "votes")))
    assert [by_name[item][:3] for item in "xyz"] == [(0.5, 1.25, 0.25), (0, 0, 1), (None,) * 3]
    model = replace(MODEL, provenance=Provenance(strength="confidence"))
    table = VotesTable("votes", margin="sure")
    by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, table)))
    assert [by_name[item][:3] for item in "xyz"] == [(0.75, 0.25, 1), (0, 1, 0), (None,) * 3]
    model = replace(MODEL, provenance=Provenance(strength="probabilities"))
    with pytest.raises(InputError, match="strength none counts whole votes"):
        model.to_sql_query(engine.dialect, "votes")


KNOWN = (Covariate("standing", 0.6, 0.5), Covariate("price", -0.3, 2.0, 1.5))
KNOWING = [
    replace(MODEL, covariates=KNOWN),
    GradeModel(2, (1.5, 2.5, 3.5, 4.5), Scale(range(1, 6)), covariates=KNOWN),
]


@pytest.mark.parametrize("model", KNOWING, ids=["pairs", "grades"])
def test_covariates_are_columns(engine, model):
    rng, n = np.random.default_rng(1), 2000
    counts = rng.multinomial(4, np.full(len(model.scale.points), 1 / len(model.scale.points)), n)
    standing, price = rng.normal(size=n).round(3), (3 * rng.normal(size=n)).round(3)
    price[:50] = np.nan
    known = {"standing": standing, "price": price}
    own = [
        (float(a), None if np.isnan(b) else float(b)) for a, b in zip(*known.values(), strict=True)
    ]
    vote = "vote" if model.scale.mirrored else "score"
    votes = [
        (f"i{item}", point, *own[item])
        for item, row in enumerate(counts)
        for point, number in zip(model.scale.points, row.tolist(), strict=True)
        for _ in range(number)
    ]
    votes += [("two", 1, 0.5, 1.0), ("two", 1, 0.5, 2.0)]  # an item has one price
    kinds = {"item": "text", vote: "int", "standing": "real", "cost": "real"}
    engine.table("votes", kinds, votes)
    table = VotesTable("votes", covariates={"price": "cost"})
    query = model.to_sql_query(engine.dialect, table, probabilities=True)
    by_name = by_item(engine.rows(query))
    n_labels = len(model.label_scale.points)
    place = -1 - n_labels
    found = [by_name[f"i{item}"] for item in range(n)]
    labels = model.decide(counts, covariates=known)
    assert len(set(labels.tolist())) == n_labels
    np.testing.assert_array_equal([row[place] for row in found], labels)
    shares = model.predict_proba(counts, covariates=known)
    np.testing.assert_allclose([row[-n_labels:] for row in found], shares, rtol=1e-9, atol=1e-12)
    assert by_name["two"][place] is None
    assert (labels != model.decide(counts, covariates={k: 0 * v for k, v in known.items()})).any()


@pytest.mark.parametrize("model", KNOWING, ids=["pairs", "grades"])
def test_the_expression_takes_covariates(engine, model):
    rng, n = np.random.default_rng(2), 500
    counts = rng.multinomial(4, np.full(len(model.scale.points), 1 / len(model.scale.points)), n)
    known = {"standing": rng.normal(size=n), "price": 3 * rng.normal(size=n)}
    facts = list(zip(*(values.tolist() for values in known.values()), strict=True))
    if model.scale.mirrored:
        kinds = dict.fromkeys(("place", "minus", "tie", "plus"), "int")
        rows = [(place, *row, *facts[place]) for place, row in enumerate(counts.tolist())]
    else:
        kinds = {"place": "int", "mean": "real"}
        means = model.means(counts).tolist()
        rows = [(place, mean, *facts[place]) for place, mean in enumerate(means)]
    engine.table("counts", kinds | {"standing": "real", "price": "real"}, rows)
    label = model.to_sql(engine.dialect, covariates={"price": ("counts", "price")})
    found = engine.rows(f"SELECT {label} AS label FROM counts ORDER BY place")
    np.testing.assert_array_equal([own for (own,) in found], model.decide(counts, covariates=known))


def test_columns_of_other_covariates_are_refused_and_text_is_no_number(tmp_path, cli):
    model = KNOWING[0]
    for own, told, expected in (
        (model, {"length": "l"}, "one of standing, price"),
        (MODEL, {"length": "l"}, "none, as the model has none"),
    ):
        with refused("covariates", got="length", expected=expected):
            own.to_sql("duckdb", covariates=told)
    with refused("covariates", got="length"):
        model.to_sql_query("duckdb", VotesTable("votes", covariates={"length": "l"}))
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE counts (minus, tie, plus, standing, price)")
    told = [("-0.5", 1.5), ("much", 1.5), (None, 1.5), (-0.5, 1.5)]
    base.executemany("INSERT INTO counts VALUES (0, 1, 3, ?, ?)", told)
    rows = base.execute(f"SELECT {model.to_sql('sqlite')} FROM counts").fetchall()
    assert [label for (label,) in rows] == [0, None, 1, 0]
    model.save(tmp_path / "model.json")
    words = (str(tmp_path / "model.json"), "--set", "price=cost")
    assert cli("sql", *words)[1] == model.to_sql("duckdb", covariates={"price": "cost"}) + "\n"
    table = VotesTable("votes", covariates={"price": "cost"})
    assert cli("sql", *words, "--votes", "votes")[1] == model.to_sql_query("duckdb", table) + "\n"


@pytest.mark.parametrize("dialect", ["bigquery", "clickhouse"])
def test_names_are_names_where_a_backslash_escapes(dialect):
    query = MODEL.to_sql_query(dialect, VotesTable("v", item="a`b\\", where={"c": "d'e\\"}))
    assert "v.`a\\`b\\\\`" in query
    assert "IN ('d\\'e\\\\')" in query


# The command


def test_the_command_prints_the_expression_or_the_query(tmp_path, cli):
    model, panel = str(tmp_path / "model.json"), str(tmp_path / "panel.json")
    MODEL.save(model)
    PANEL.save(panel)
    columns = ["item=Q", "vote=V", "sample=S", "sample=order", "task=T", "judge=J"]
    named = [word for column in columns for word in ("--set", column)]
    options = ["--votes", "main.votes", *named, "--filter", "Judge=a", "--filter", "Judge=b"]
    table = VotesTable(
        ["main", "votes"], item="Q", vote="V", sample=["S", "order"], task="T", judge="J",
        where={"Judge": ["a", "b"]},
    )  # fmt: skip
    for arguments, printed in (
        ([model, "-d", "sqlite", "--set", "plus=a"], MODEL.to_sql("sqlite", plus="a")),
        (
            [model, *options, "-d", "spark", "--probabilities"],
            MODEL.to_sql_query("spark", table, probabilities=True),
        ),
        ([panel, *options], PANEL.to_sql_query("duckdb", table)),
        ([panel], PANEL.to_sql("duckdb")),
        ([model, "--votes", "votes.parquet"], MODEL.to_sql_query("duckdb", "votes.parquet")),
    ):
        assert cli("sql", *arguments) == (0, printed + "\n", "")


# Grades


GRADED = [
    GradeModel(1.5, (2, 3, 4.5), Scale(range(1, 11)), Scale(range(1, 5))),
    GradeModel(40, (0.1,), Scale((0, 0.1, 0.2)), PASS_FAIL),
    GradeModel(1e-3, (-2.5, -3.5, 3), Scale((-5, -2.5, 30)), Scale((-1, 0.5, 2, 1e6))),
]


@pytest.mark.parametrize("model", GRADED)
@pytest.mark.parametrize("kind", ["real", "text"])
def test_grades_are_decided_as_the_model_does(engine, model, kind):
    random, points = np.random.default_rng(7), model.scale.points
    items, votes = random.integers(0, 400, 2500), random.integers(0, len(points), 2500)
    rows = [
        (f"q{item}", None if n % 50 == 0 else points[vote])
        for n, (item, vote) in enumerate(zip(items.tolist(), votes.tolist(), strict=True))
    ]
    rows += [("missing", None), ("bad", points[0]), ("bad", 3.25)]
    counts = {item: [0] * len(points) for item, _ in rows}
    for item, vote in rows:
        if item != "bad" and vote is not None:
            counts[item][points.index(vote)] += 1
    if kind == "text":
        rows = [(item, None if vote is None else str(vote)) for item, vote in rows]
        rows += [("missing", "")]
    engine.table("votes", {"item": "text", "score": kind}, rows)
    by_name = by_item(engine.rows(model.to_sql_query(engine.dialect, "votes", probabilities=True)))
    n, grades = len(points), len(model.label_scale.points)
    assert by_name.pop("bad") == (None,) * (n + 2 + grades)
    assert by_name.pop("missing") == (*(0,) * n, *(None,) * (2 + grades))
    counts = {item: own for item, own in counts.items() if item in by_name}
    tallied = np.array([counts[item] for item in by_name])
    assert [row[:n] for row in by_name.values()] == [tuple(own) for own in tallied.tolist()]
    assert [row[n] for row in by_name.values()] == model.means(tallied).tolist()
    assert [row[n + 1] for row in by_name.values()] == model.decide(tallied).tolist()
    shares = np.array([row[n + 2 :] for row in by_name.values()], dtype=float)
    np.testing.assert_allclose(shares, model.predict_proba(tallied), rtol=0, atol=1e-12)
    numbers = model.to_sql_query(engine.dialect, VotesTable("votes", vote="score", numbers=True))
    if kind == "real":
        assert {row[0]: row[-1] for row in engine.rows(numbers) if row[0] in by_name} == {
            item: row[n + 1] for item, row in by_name.items()
        }


def test_repeated_grades_of_a_sample_count_once(engine):
    rows = [("x", 0, 4), ("x", 0, 4), ("x", 1, 2), ("y", 0, 4), ("y", 0, 2), ("z", 0, None)]
    engine.table("votes", {"item": "text", "sample": "int", "vote": "int"}, rows)
    model = GradeModel(2, (2.5,), Scale((2, 4)), PASS_FAIL)
    query = model.to_sql_query(engine.dialect, VotesTable("votes", vote="vote", sample="sample"))
    expected = {"x": (1, 1, 3.0, 1), "y": (None,) * 4, "z": (0, 0, None, None)}
    assert by_item(engine.rows(query)) == expected


def test_pass_and_fail_are_votes(engine):
    rows = [("x", "Pass"), ("x", " fail"), ("x", "TRUE"), ("y", "no"), ("z", "yes"), ("z", "maybe")]
    engine.table("votes", {"item": "text", "score": "text"}, rows)
    model = GradeModel(9, (0.5,), PASS_FAIL)
    expected = {"x": (1, 2, 2 / 3, 1), "y": (1, 0, 0.0, 0), "z": (None,) * 4}
    assert by_item(engine.rows(model.to_sql_query(engine.dialect, "votes"))) == expected


def test_the_command_writes_grades_as_sql(tmp_path, cli):
    model, path = GRADED[0], tmp_path / "grades.json"
    model.save(path)
    scores = VotesTable("t")
    for arguments, printed in (
        ([], model.to_sql("duckdb")),
        (["--set", "mean=m"], model.to_sql("duckdb", mean="m")),
        (["--votes", "t", "-d", "sqlite"], model.to_sql_query("sqlite", scores)),
        (
            ["--votes", "t", "--set", "vote=vote", "--probabilities"],
            model.to_sql_query("duckdb", VotesTable("t", vote="vote"), probabilities=True),
        ),
    ):
        assert cli("sql", path, *arguments) == (0, printed + "\n", "")
    votes, labels = VotesTable("v", item=("talk", "bot")), LabelsTable("l", item=("talk", "who"))
    database = sqlite3.connect(":memory:")
    database.executescript(
        "CREATE TABLE v AS SELECT 'x' AS talk, 'old' AS bot, 1 AS vote UNION SELECT 'x', 'new', 0;"
        "CREATE TABLE l AS SELECT 'x' AS talk, 'new' AS who, -1 AS label"
    )
    query = histogram_query("sqlite", votes, labels)
    rows = database.execute(query).fetchall()
    assert sorted(rows, key=str) == [(0, 0, 1, None, 1), (0, 1, 0, -1, 1)]
    with refused("item", got="item", expected="as many columns as votes have: talk, bot"):
        histogram_query("sqlite", votes, "l")
    status, _, error = cli("sql", path, "--votes", "v", "--set", "item=vote+bot")
    assert status == 2
    assert "a view in which vote is called otherwise" in error
    status, _, error = cli("sql", path, "--set", "plus=a")
    assert status == 2
    assert "expected one of each of mean" in " ".join(error.split())
