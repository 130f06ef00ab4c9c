"""The SQL of a model decides as the model does, in real databases, and holds nothing else."""

import json
import math
import sqlite3
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btdagg import DavidsonModel, InputError
from databases import postgres_programs

N = 30
TRIPLES = np.array(
    [
        (minus, tie, votes - minus - tie)
        for votes in range(N + 1)
        for minus in range(votes + 1)
        for tie in range(votes - minus + 1)
    ]
)
NULLS = [(None, 1, 2), (1, None, 2), (1, 2, None), (None, None, None)]
NEGATIVE = [(-1, 0, 5), (0, -1, 5), (5, 0, -1)]
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
        for _ in range(15)
    ),
]


class Sqlite:
    def __init__(self, folder, rows, names=("minus", "tie", "plus"), kind="INTEGER"):
        self.connection = sqlite3.connect(":memory:")
        columns = ", ".join("`" + name.replace("`", "``") + f"` {kind}" for name in names)
        self.connection.execute(f"CREATE TABLE counts (place INTEGER, {columns})")
        self.connection.executemany(
            "INSERT INTO counts VALUES (?, ?, ?, ?)",
            [(place, *row) for place, row in enumerate(rows)],
        )

    def decide(self, expression):
        query = f"SELECT {expression} FROM counts ORDER BY place"
        return [label for (label,) in self.connection.execute(query)]


class DuckDb:
    def __init__(self, folder, rows, names=("minus", "tie", "plus")):
        import duckdb

        self.connection = duckdb.connect()
        fits_a_byte = all(value is None or 0 <= value < 256 for row in rows for value in row)
        kind = "UTINYINT" if fits_a_byte else "BIGINT"  # in which sums of counts overflow
        columns = ", ".join('"' + name.replace('"', '""') + f'" {kind}' for name in names)
        self.connection.execute(f"CREATE TABLE counts (place INTEGER, {columns})")
        file = folder / "rows.csv"
        file.write_text(as_csv(rows))
        self.connection.execute(f"COPY counts FROM '{file}' (HEADER false)")

    def decide(self, expression):
        query = f"SELECT {expression} FROM counts ORDER BY place"
        return [label for (label,) in self.connection.execute(query).fetchall()]


class Postgres:
    def __init__(self, server, folder, rows, names=("minus", "tie", "plus")):
        self.url = server.database(f"sql_{folder.name.lower()}_{len(list(folder.iterdir()))}")
        columns = ", ".join('"' + name.replace('"', '""') + '" bigint' for name in names)
        file = folder / "postgres.csv"
        file.write_text(as_csv(rows))
        self.run(f"CREATE TABLE counts (place integer, {columns})")
        self.run(f"\\copy counts FROM '{file}' CSV")

    def run(self, command):
        psql = postgres_programs() / "psql"
        done = subprocess.run(
            [psql, self.url, "-v", "ON_ERROR_STOP=1", "-XAt"],
            input=command,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def decide(self, expression):
        query = f"SELECT json_agg(label ORDER BY place) FROM (SELECT place, {expression} AS label"
        return json.loads(self.run(f"{query} FROM counts) AS decided;"))


def as_csv(rows):
    lines = (
        ",".join("" if value is None else str(value) for value in (place, *row))
        for place, row in enumerate(rows)
    )
    return "\n".join(lines) + "\n"


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.integration) for name in ("duckdb", "postgresql")]
    + ["sqlite"]
)
def database(request, tmp_path):
    """A dialect and what opens a database of it on rows of counts."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        return request.param, lambda *args: Postgres(server, tmp_path, *args)
    kind = DuckDb if request.param == "duckdb" else Sqlite
    return request.param, lambda *args: kind(tmp_path, *args)


@pytest.mark.parametrize("max_votes", [None, N])
def test_every_triple_is_decided_as_the_model_does(database, max_votes):
    dialect, connect = database
    opened = connect(TRIPLES.tolist())
    for model in MODELS:
        decided = opened.decide(model.to_sql(dialect, max_votes=max_votes))
        np.testing.assert_array_equal(decided, model.decide(TRIPLES), err_msg=str(model))


@pytest.mark.parametrize("max_votes", [None, N])
def test_no_counts_give_no_label(database, max_votes):
    dialect, connect = database
    opened = connect(NULLS + NEGATIVE)
    for model in (DavidsonModel(1.2, 2.0, 0.8), DavidsonModel(0, 1, 1)):
        assert opened.decide(model.to_sql(dialect, max_votes=max_votes)) == [None] * 7


@pytest.mark.parametrize("max_votes", [None, N])
@pytest.mark.parametrize("kind", ["TEXT", "", "REAL", "BLOB"])
def test_sqlite_columns_of_any_type_are_compared_as_numbers(tmp_path, kind, max_votes):
    """A table made of a CSV file holds texts, and '10' is less than '2' among them."""
    as_text = kind in ("TEXT", "")
    rows = [[str(value) if as_text else value for value in row] for row in TRIPLES.tolist()]
    opened = Sqlite(tmp_path, rows, kind=kind)
    for model in MODELS[::3]:
        decided = opened.decide(model.to_sql("sqlite", max_votes=max_votes))
        np.testing.assert_array_equal(decided, model.decide(TRIPLES), err_msg=str(model))


@pytest.mark.parametrize("max_votes", [None, N])
@pytest.mark.parametrize("kind", ["TEXT", "", "INTEGER"])
def test_a_text_that_is_no_count_has_no_label_in_sqlite(tmp_path, kind, max_votes):
    rows = [("0", "1", "11"), (0, 1, 11)]
    for text in ("", "a", "-1", "1a", "1 2", "+", "é", "0.5", "nan", b"", b"a"):
        rows += [(text, 1, 2), (1, text, 2), (1, 2, text)]
    opened = Sqlite(tmp_path, rows, kind=kind)
    for model in (DavidsonModel(1.2, 2.0, 0.8), DavidsonModel(0, 1, 1)):
        label = model.decide([[0, 1, 11]]).item()
        decided = opened.decide(model.to_sql("sqlite", max_votes=max_votes))
        assert decided == [label] * 2 + [None] * (len(rows) - 2)


@pytest.mark.parametrize("max_votes", [None, N])
def test_what_is_no_whole_number_has_no_label(database, max_votes):
    dialect, connect = database
    opened = connect([(0, 1, 11)])
    real = {"duckdb": "DOUBLE", "postgresql": "DOUBLE PRECISION", "sqlite": "REAL"}[dialect]
    infinite = "1e999" if dialect == "sqlite" else "'inf'"
    wrong = ["0.5", "1e-300", infinite] + (["'nan'"] if dialect != "sqlite" else [])
    expression = DavidsonModel(1.2, 2.0, 0.8).to_sql(dialect, max_votes=max_votes)
    for place in range(3):
        for value, label in (*((value, None) for value in wrong), ("12", "any")):
            values = ["3"] * 3
            values[place] = value
            counts = ", ".join(
                f"CAST({value} AS {real}) AS {name}"
                for value, name in zip(values, ("minus", "tie", "plus"), strict=True)
            )
            query = f"(SELECT {expression} FROM (SELECT {counts}) AS c)"
            (found,) = opened.decide(query)
            assert (found in (-1, 0, 1)) if label else found is None, (values, found)


@pytest.mark.parametrize("max_votes", [None, N])
def test_texts_of_numbers_are_counts(database, max_votes):
    dialect, connect = database
    opened = connect([(0, 1, 11)])
    model = DavidsonModel(2, -5, 0)  # no ties: who has more votes has it
    expression = model.to_sql(dialect, max_votes=max_votes)
    for minus, plus in ((2, 10), (10, 2), (9, 10), (0, 0)):
        query = f"SELECT '{minus}' AS minus, '0' AS tie, '{plus}' AS plus"
        assert opened.decide(f"(SELECT {expression} FROM ({query}) AS c)") == [
            model.decide([[minus, 0, plus]]).item()
        ]


def test_large_counts_are_decided_in_closed_form_and_left_out_of_a_look_up(database):
    dialect, connect = database
    opened = connect([*LARGE, (20, 5, 20), (0, 31, 0)])
    model = DavidsonModel(1.2, 0.5, 0.8)
    wanted = model.decide([*LARGE, (20, 5, 20), (0, 31, 0)]).tolist()
    assert opened.decide(model.to_sql(dialect)) == wanted
    assert opened.decide(model.to_sql(dialect, max_votes=N)) == [None] * 5
    assert opened.decide(model.to_sql(dialect, max_votes=45))[3:] == wanted[3:]


NAMES = [
    ('a"; DROP TABLE counts; --', "b`; DROP TABLE counts; --", "c'; DROP TABLE counts; --"),
    ("select", "no spaces? some", "Größe 🙂"),
    ('"', "`", "''"),
    ("a\\", "b\n", "{c}"),
]


@pytest.mark.parametrize("names", NAMES)
def test_whatever_a_name_holds_is_a_name(database, names):
    dialect, connect = database
    rows = [(0, 1, 11), (5, 2, 5), (12, 0, 0)]
    opened = connect(rows, names)
    model = DavidsonModel(1.2, 2.0, 0.8)
    columns = dict(zip(("minus", "tie", "plus"), names, strict=True))
    for max_votes in (None, 12):
        expression = model.to_sql(dialect, **columns, max_votes=max_votes)
        assert opened.decide(expression) == [1, 0, -1]
    assert opened.decide("1") == [1, 1, 1]  # the table is still there


@pytest.mark.parametrize("name", ["b`; DROP TABLE x", "`", "a``b"])
def test_spark_names_are_quoted(name):
    expression = DavidsonModel(1, 1, 1).to_sql("spark", minus=name)
    quoted = "`" + name.replace("`", "``") + "`"
    assert quoted in expression
    assert expression.replace(quoted, "").count("`") % 2 == 0


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1).filter(lambda name: "\0" not in name))
def test_any_text_is_a_name_in_sqlite(name):
    try:
        name.encode()
    except UnicodeEncodeError:  # a lone surrogate, which no database stores
        return
    connection = sqlite3.connect(":memory:")
    expression = DavidsonModel(1.2, 2.0, 0.8).to_sql("sqlite", minus=name, tie="t_", plus="p_")
    # SQLite takes these two for its own in whatever quotes.
    if name.lower() in ("t_", "p_", "true", "false"):
        return
    quoted = "`" + name.replace("`", "``") + "`"
    query = f"SELECT {expression} FROM (SELECT 0 AS {quoted}, 1 AS t_, 11 AS p_)"
    assert connection.execute(query).fetchall() == [(1,)]
    connection.close()


def test_a_missing_column_is_an_error_and_no_text(database):
    dialect, connect = database
    opened = connect([(0, 1, 11)])
    with pytest.raises(Exception, match="nope"):
        opened.decide(DavidsonModel(1, 1, 1).to_sql(dialect, plus="nope"))


def test_columns_can_be_qualified(database):
    dialect, connect = database
    opened = connect([(0, 1, 11)])
    columns = {name: ("counts", name) for name in ("minus", "tie", "plus")}
    assert opened.decide(DavidsonModel(1.2, 2.0, 0.8).to_sql(dialect, **columns)) == [1]


@pytest.mark.integration
def test_spark_decides_as_the_model_does(spark):
    rows = [(place, *map(int, row)) for place, row in enumerate(TRIPLES)]
    rows += [(len(rows) + i, *row) for i, row in enumerate(NULLS)]
    frame = spark.createDataFrame(rows, "place int, minus int, tie int, plus int").cache()
    models = MODELS[::5]
    expressions = [
        f"{model.to_sql('spark', max_votes=votes)} AS m{number}_{votes}"
        for number, model in enumerate(models)
        for votes in (None, N)
    ]
    found = np.array(frame.orderBy("place").selectExpr(*expressions).collect())
    wanted = np.repeat([model.decide(TRIPLES) for model in models], 2, axis=0).T
    np.testing.assert_array_equal(found[: len(TRIPLES)].astype(int), wanted)
    assert (found[len(TRIPLES) :] == None).all()  # noqa: E711  # an array's, item by item


@pytest.mark.parametrize("max_votes", [None, N])
def test_every_dialect_decides_every_triple_as_the_model_does(engine, max_votes):
    rows = [*TRIPLES.tolist(), *NULLS, *NEGATIVE]
    kinds = dict.fromkeys(("place", "minus", "tie", "plus"), "int")
    engine.table("counts", kinds, [(place, *row) for place, row in enumerate(rows)])
    several = engine.dialect not in ("spark", "postgresql", "sqlite", "duckdb")  # tested above
    for model in MODELS if several else MODELS[:1]:
        label = model.to_sql(engine.dialect, max_votes=max_votes)
        found = engine.rows(f"SELECT {label} AS label FROM counts ORDER BY place")
        labels = [label for (label,) in found]
        np.testing.assert_array_equal(labels[: len(TRIPLES)], model.decide(TRIPLES), str(model))
        assert labels[len(TRIPLES) :] == [None] * 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dialect": "oracle"}, "dialect is 'oracle', expected one of duckdb, postgresql, sqlite"),
        ({"minus": ""}, "minus is '', expected the name of a column"),
        ({"tie": "a\0b"}, r"tie is 'a\\x00b', expected the name of a column"),
        ({"tie": "a\ud800"}, r"tie is 'a\\ud800', expected the name of a column"),
        ({"plus": None}, "plus is None, expected the name of a column"),
        ({"plus": b"ab"}, "plus is b'ab', expected the name of a column"),
        ({"plus": ()}, r"plus is \(\), expected the name of a column"),
        ({"plus": ("a", 3)}, r"plus is \('a', 3\), expected the name of a column"),
        (
            {"plus": "minus"},
            'minus, tie and plus are "minus", "tie", "minus", expected three columns',
        ),
        ({"max_votes": 0}, "max_votes is 0, expected an integer of at least 1"),
        ({"max_votes": 201}, "max_votes is 201, expected an integer of at most 200"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        DavidsonModel(1, 1, 1).to_sql(**{"dialect": "duckdb", **arguments})


def test_parameters_that_overflow_are_refused():
    with pytest.raises(
        InputError, match=r"gamma is 1e\+101, expected at most 1e\+100 in size for SQL"
    ):
        DavidsonModel(1, 1, 1e101).to_sql("duckdb")


def test_the_command_prints_the_expression(tmp_path, capsys):
    from btdagg.cli import run

    model, file = DavidsonModel(1.2, 2.0, 0.8), str(tmp_path / "model.json")
    model.save(file)
    assert run(["sql", file, "--dialect", "sqlite", "--plus", "a"]) == 0
    assert capsys.readouterr().out == model.to_sql("sqlite", plus="a") + "\n"
    assert run(["sql", file, "--max-votes", "12"]) == 0
    assert capsys.readouterr().out == model.to_sql("duckdb", max_votes=12) + "\n"
    assert run(["sql", file, "--dialect", "oracle"]) == 2
    assert "dialect is 'oracle', expected one of duckdb" in capsys.readouterr().err
