"""SQL over columns of counts decides as the package does, in real databases."""

import math
import re
import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from btdagg import (
    PASS_FAIL,
    Covariate,
    DavidsonModel,
    GradeModel,
    InputError,
    PanelModel,
    Scale,
)
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


@pytest.mark.parametrize(
    "n_models", [5, pytest.param(200, marks=pytest.mark.soak)], ids="{} models".format
)
@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_all_counts_of_sixty_votes_are_decided_as_by_random_models(dialect, n_models):
    """Also with smoothing below 1 and a usual number of votes."""
    counts = np.array(list(triples(60)))
    connection = sqlite3.connect(":memory:")
    if dialect == "duckdb":
        connection = pytest.importorskip("duckdb").connect()
        frame = pl.DataFrame(counts, ["minus", "tie", "plus"], orient="row")
        connection.register("frame", frame)
        connection.execute("CREATE TABLE counts AS FROM frame")
    else:
        connection.execute("CREATE TABLE counts (minus INTEGER, tie INTEGER, plus INTEGER)")
        connection.executemany("INSERT INTO counts VALUES (?, ?, ?)", counts.tolist())
    rng = np.random.default_rng(1)
    for number in range(n_models):
        fitted = rng.uniform(1e-3, 5), rng.uniform(-9, 7), rng.uniform(-10, 10)
        smoothing = np.exp(rng.uniform(-3, 2, 2)) if number % 2 else (1, 1)
        usual = float(rng.integers(2, 20)) if number % 3 else None
        model = DavidsonModel(*fitted, *smoothing, usual_votes=usual)
        rows = connection.execute(f"SELECT {model.to_sql(dialect)} FROM counts").fetchall()
        np.testing.assert_array_equal(np.array(rows)[:, 0], model.decide(counts), str(model))


def test_labels_are_the_same_where_functions_are_off_in_their_last_digits():
    """Functions of a database err by up to two units in the last place, each call anew."""
    rng = np.random.default_rng(4)
    connection = sqlite3.connect(":memory:")

    def with_errors(function):
        def value(x):
            exact = function(x)
            return exact + int(rng.integers(-2, 3)) * math.ulp(exact)

        return value

    for name, function in (
        ("sqrt", math.sqrt),
        ("asinh", math.asinh),
        ("sinh", math.sinh),
        ("ln", math.log),
        ("exp", math.exp),
    ):
        connection.create_function(name, 1, with_errors(function))
    connection.execute("CREATE TABLE counts (minus INTEGER, tie INTEGER, plus INTEGER)")
    connection.executemany("INSERT INTO counts VALUES (?, ?, ?)", TRIPLES.tolist())
    for model in MODELS:
        rows = connection.execute(f"SELECT {model.to_sql('sqlite')} FROM counts").fetchall()
        np.testing.assert_array_equal(np.array(rows)[:, 0], model.decide(TRIPLES), str(model))


def test_the_expression_is_short():
    """Of any fitted model: only extreme ones need a case for large margins."""
    for model in (MODEL, DavidsonModel(5, -9, 10), DavidsonModel(5, 7, -10)):
        assert len(model.to_sql("duckdb")) < 700
    assert len(DavidsonModel(50, 600, 20, 1e-9, 1e9).to_sql("duckdb")) < 1500


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
        ({"dialect": "snowflake"}, "expected one of duckdb, postgresql, sqlite, spark, clickhouse"),
        ({"plus": "minus"}, '"minus", "tie", "minus", expected three columns'),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(InputError, match=message):
        MODEL.to_sql(**{"dialect": "duckdb", **arguments})


def test_what_cannot_be_written_is_refused():
    with refused("gamma", got=1e101, expected="at most 1e+100 in size"):
        DavidsonModel(1, 1, 1e101).to_sql("duckdb")


@pytest.mark.parametrize("name", ["", [], None, "a\0b"])
def test_what_is_no_name_is_refused(name):
    message = re.escape(f"{name!r} is not a name of a column or table")
    with pytest.raises(InputError, match=message):
        MODEL.to_sql("sqlite", plus=name)


def columns_of(engine, table, kinds, model, counts, **columns):
    """Labels and probabilities of rows of counts, as a database computes them."""
    rows = [(place, *row) for place, row in enumerate(counts)]
    engine.table(table, {"place": "int"} | kinds, rows)
    written = model.to_sql(engine.dialect, probabilities=True, **columns)
    query = f"SELECT * FROM (SELECT place, {written} FROM {table}) q ORDER BY place"
    found = engine.rows(query)
    return [row[1] for row in found], [row[2:] for row in found]


@pytest.mark.parametrize(
    "model", [MODEL, DavidsonModel(50, 600, 20, 1e-9, 1e9), DavidsonModel(-0.3, -700, -3)]
)
def test_probabilities_are_those_of_the_model(engine, model):
    rows = [*TRIPLES.tolist(), *NO_COUNTS]
    kinds = dict.fromkeys(("minus", "tie", "plus"), "int")
    labels, shares = columns_of(engine, "counts", kinds, model, rows)
    n = len(TRIPLES)
    assert labels[:n] == model.decide(TRIPLES).tolist()
    assert labels[n:] == [None] * 7
    assert shares[n:] == [(None,) * 3] * 7
    of_triples = np.array(shares[:n], dtype=float)
    np.testing.assert_allclose(of_triples, model.predict_proba(TRIPLES), rtol=0, atol=1e-12)


def test_a_panel_is_decided_as_the_package_does(engine):
    random = np.random.default_rng(3)
    counts = random.integers(0, 5, (600, 3, 3))
    counts[random.random((600, 3)) < 0.3] = 0
    names = [f"c{number}" for number in range(9)]
    columns = {judge: names[3 * k : 3 * k + 3] for k, judge in enumerate(PANEL.judges)}
    rows = counts.reshape(600, 9).tolist()
    rows[1][:3] = [None] * 3  # absent
    counts[1, 0] = 0
    rows += [[1, None, 1, *[1] * 6], [1, -1, 1, *[1] * 6]]
    kinds = dict.fromkeys(names, "int")
    labels, shares = columns_of(engine, "counts", kinds, PANEL, rows, columns=columns)
    assert labels == [*PANEL.decide(counts).tolist(), None, None]
    assert shares[600:] == [(None,) * 3] * 2
    found = np.array(shares[:600], dtype=float)
    np.testing.assert_allclose(found, PANEL.predict_proba(counts), rtol=0, atol=1e-12)


KNOWN = (Covariate("standing", 0.6, 0.5), Covariate("price", -0.3, 2.0, 1.5))
KNOWING = [
    replace(MODEL, covariates=KNOWN),
    GradeModel(2, (1.5, 2.5, 3.5, 4.5), Scale(range(1, 6)), covariates=KNOWN),
]


@pytest.mark.parametrize("model", KNOWING, ids=["pairs", "grades"])
def test_the_expression_takes_covariates(engine, model):
    rng, n = np.random.default_rng(2), 500
    counts = rng.multinomial(4, np.full(len(model.scale.points), 1 / len(model.scale.points)), n)
    known = {"standing": rng.normal(size=n), "price": 3 * rng.normal(size=n)}
    known["price"][:50] = np.nan
    columns = [[None if np.isnan(v) else v for v in own.tolist()] for own in known.values()]
    facts = list(zip(*columns, strict=True))
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
    labels = model.decide(counts, covariates=known)
    np.testing.assert_array_equal([own for (own,) in found], labels)
    assert (labels != model.decide(counts, covariates={k: 0 * v for k, v in known.items()})).any()
    names = ", ".join(f"p_{name}" for name in model.label_names)
    written = model.to_sql(engine.dialect, probabilities=True)
    found = engine.rows(
        f"SELECT {names} FROM (SELECT place, {written} FROM counts) q ORDER BY place"
    )
    shares = model.predict_proba(counts, covariates=known)
    np.testing.assert_allclose(np.array(found, float), shares, rtol=1e-9, atol=1e-12)


def test_columns_of_other_covariates_are_refused_and_text_is_no_number(tmp_path, cli):
    model = KNOWING[0]
    for own, told, expected in (
        (model, {"length": "l"}, "one of standing, price"),
        (MODEL, {"length": "l"}, "none, as the model has none"),
    ):
        with refused("covariates", got="length", expected=expected):
            own.to_sql("duckdb", covariates=told)
    base = sqlite3.connect(":memory:")
    base.execute("CREATE TABLE counts (minus, tie, plus, standing, price)")
    told = [("-0.5", 1.5), ("much", 1.5), (None, 1.5), (-0.5, 1.5)]
    base.executemany("INSERT INTO counts VALUES (0, 1, 3, ?, ?)", told)
    rows = base.execute(f"SELECT {model.to_sql('sqlite')} FROM counts").fetchall()
    assert [label for (label,) in rows] == [0, None, 1, 0]
    model.save(tmp_path / "model.json")
    words = (str(tmp_path / "model.json"), "--set", "price=cost")
    assert cli("sql", *words)[1] == model.to_sql("duckdb", covariates={"price": "cost"}) + "\n"


def test_names_are_names_where_a_backslash_escapes():
    assert "`a\\`b\\\\`" in MODEL.to_sql("clickhouse", plus="a`b\\")


# Grades


GRADED = [
    GradeModel(1.5, (2, 3, 4.5), Scale(range(1, 11)), Scale(range(1, 5))),
    GradeModel(40, (0.1,), Scale((0, 0.1, 0.2)), PASS_FAIL),
    GradeModel(1e-3, (-2.5, -3.5, 3), Scale((-5, -2.5, 30)), Scale((-1, 0.5, 2, 1e6))),
]


@pytest.mark.parametrize("model", GRADED)
@pytest.mark.parametrize("kind", ["real", "text"])
def test_grades_are_decided_as_the_model_does(engine, model, kind):
    random = np.random.default_rng(7)
    counts = random.multinomial(
        4, np.full(len(model.scale.points), 1 / len(model.scale.points)), 800
    )
    means = model.means(counts).tolist()
    points = model.scale.points
    off = [points[0] - 0.5, points[-1] + 0.5, None]
    written = [
        None if mean is None else str(mean) if kind == "text" else mean for mean in means + off
    ]
    if kind == "text" and engine.dialect == "sqlite":
        written = [
            text if text and "e" not in text and text[0] != "-" else None for text in written
        ]
    labels, shares = columns_of(
        engine, "means", {"m": kind}, model, [(v,) for v in written], mean="m"
    )
    assert labels[800:] == [None] * 3
    kept = [place for place in range(800) if written[place] is not None]
    assert len(kept) > 200
    assert [labels[place] for place in kept] == model.decide(counts[kept]).tolist()
    found = np.array([shares[place] for place in kept], dtype=float)
    np.testing.assert_allclose(found, model.predict_proba(counts[kept]), rtol=0, atol=1e-12)
    assert shares[800:] == [(None,) * len(model.label_scale.points)] * 3


# The command


def test_the_command_prints_the_expression(tmp_path, cli):
    model, panel, grades = (str(tmp_path / f"{name}.json") for name in "mpg")
    MODEL.save(model)
    PANEL.save(panel)
    GRADED[0].save(grades)
    for arguments, printed in (
        ([model, "-d", "sqlite", "--set", "plus=a"], MODEL.to_sql("sqlite", plus="a")),
        ([model, "--probabilities"], MODEL.to_sql("duckdb", probabilities=True)),
        ([panel], PANEL.to_sql("duckdb")),
        ([grades, "-d", "spark"], GRADED[0].to_sql("spark")),
        (
            [grades, "--set", "mean=m", "--probabilities"],
            GRADED[0].to_sql("duckdb", mean="m", probabilities=True),
        ),
    ):
        assert cli("sql", *arguments) == (0, printed + "\n", "")
    status, _, error = cli("sql", grades, "--set", "plus=a")
    assert status == 2
    assert "expected one of each of mean" in " ".join(error.split())


@pytest.mark.integration
def test_the_page_translates_for_other_databases():
    """What sqlglot writes for a database that is not here decides as the model does in DuckDB."""
    import duckdb
    import sqlglot

    database = duckdb.connect()
    database.execute(
        "CREATE TABLE counts (place INTEGER, minus INTEGER, tie INTEGER, plus INTEGER)"
    )
    database.executemany(
        "INSERT INTO counts VALUES (?, ?, ?, ?)",
        [(k, *row) for k, row in enumerate(TRIPLES.tolist())],
    )
    for dialect in ("bigquery", "snowflake", "trino"):
        (written,) = sqlglot.transpile(MODEL.to_sql("duckdb"), read="duckdb", write=dialect)
        (back,) = sqlglot.transpile(written, read=dialect, write="duckdb")
        rows = database.execute(f"SELECT {back} FROM counts ORDER BY place").fetchall()
        assert [label for (label,) in rows] == MODEL.decide(TRIPLES).tolist()
