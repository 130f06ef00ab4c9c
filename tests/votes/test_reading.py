"""Reading votes, counts, labels and ratings: every source, every message."""

import csv
import json
import random
import sys
from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from btdagg import InputError, Labels, align, read_labels, read_votes
from btdagg.judge import read_pairs

ROWS = {
    "item": ["x", "x", "y", "x"],
    "judge": ["g", "h", "g", "h"],
    "vote": [1, -1, None, 0],
    "confidence": [0.5, None, 1.0, 0.25],
}


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def as_csv(path, separator=","):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(ROWS)
        writer.writerows(zip(*ROWS.values(), strict=True))
    return path


def as_jsonl(path):
    rows = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    return write(path, "\n".join(json.dumps(row) for row in rows) + "\n")


def as_parquet(path):
    pl.DataFrame(ROWS).write_parquet(path)
    return path


def pandas_categories():
    frame = pd.DataFrame(ROWS, index=[7, 7, 8, 9])
    return frame.astype({"item": "category", "judge": "category"})


def arrow_dictionary():
    table = pa.table(ROWS)
    return table.set_column(0, "item", table["item"].dictionary_encode())


SOURCES = {
    "csv": lambda directory: as_csv(directory / "votes.csv"),
    "tsv": lambda directory: as_csv(directory / "votes.tsv", "\t"),
    "jsonl": lambda directory: as_jsonl(directory / "votes.jsonl"),
    "parquet": lambda directory: as_parquet(directory / "votes.parquet"),
    "pandas": lambda _: pd.DataFrame(ROWS),
    "pandas categories": lambda _: pandas_categories(),
    "pandas pyarrow": lambda _: pd.DataFrame(ROWS).convert_dtypes(dtype_backend="pyarrow"),
    "pandas nullable": lambda _: pd.DataFrame(ROWS).convert_dtypes(),
    "polars": lambda _: pl.DataFrame(ROWS),
    "polars NaN": lambda _: pl.DataFrame(ROWS).cast({"vote": pl.Float32}).fill_null(np.nan),
    "pyarrow": lambda _: pa.table(ROWS),
    "pyarrow dictionary": lambda _: arrow_dictionary(),
    "lists": lambda _: ROWS,
    "arrays": lambda _: {name: pd.Series(values).to_numpy() for name, values in ROWS.items()},
    "NumPy values": lambda _: ROWS | {"vote": [np.int8(1), np.int64(-1), None, np.float32(0)]},
    "series": lambda _: ROWS | {"item": pd.Series(ROWS["item"]), "vote": pl.Series(ROWS["vote"])},
    "names": lambda _: {f" {name.title()} ": values for name, values in ROWS.items()},
    "words": lambda _: ROWS | {"vote": [" a ", "B", " ", "SAME"]},
    "mixed": lambda _: ROWS | {"vote": [1, "b", None, 0.0]},
    "mixed in pandas": lambda _: pd.DataFrame(ROWS | {"vote": [1, "b", None, 0.0]}, dtype=object),
}


@pytest.mark.parametrize("items", [[1.0, 2.0], [True, False]])
def test_ids_of_any_type_are_read_from_parquet_as_from_memory(items, tmp_path):
    frame = pl.DataFrame({"item": items, "vote": [1, 0]})
    frame.write_parquet(tmp_path / "votes.parquet")
    found = read_votes(tmp_path / "votes.parquet")
    assert found.ids.tolist() == read_votes(frame).ids.tolist()
    assert found.counts()[1].tolist() == [[0, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_the_same_votes(kind, tmp_path):
    votes = read_votes(SOURCES[kind](tmp_path))
    assert votes.columns == list(ROWS)
    assert votes.frame["item"].to_list() == ROWS["item"]
    assert votes.frame["judge"].to_list() == ROWS["judge"]
    assert votes.frame["vote"].to_list() == ROWS["vote"]
    assert votes.frame["vote"].dtype == pl.Int8
    assert votes.frame["confidence"].to_list() == ROWS["confidence"]
    assert votes.n_missing == 1
    ids, counts = votes.counts()
    assert ids.dtype == object
    assert ids.tolist() == ["x", "y"]
    assert counts.dtype == np.int64
    assert counts.tolist() == [[1, 1, 1], [0, 0, 0]]


def test_text_of_files_is_kept(tmp_path):
    path = write(
        tmp_path / "v.csv",
        '\ufeffitem,vote,note\r\n007,1," a, ""b""\nc "\r\n8,0,\r\n\r\n',
    )
    frame = read_votes(path).frame
    assert frame["item"].to_list() == ["007", "8"]
    assert frame["note"].to_list() == [' a, "b"\nc ', None]
    line = '{"item": "x\u2028y", "vote": 1, "note": {"a": [1]}}'
    path = write(tmp_path / "v.jsonl", line + '\r\n{"item": 3, "vote": "B", "more": "\\ud800"}\n')
    frame = read_votes(path).frame
    assert frame["item"].to_list() == ["x\u2028y", "3"]
    assert frame["note"].to_list() == ['{"a": [1]}', None]
    assert frame["more"].to_list() == [None, "\\ud800"]


@pytest.mark.parametrize(
    ("items", "expected", "dtype"),
    [
        ([2**40, 3], [2**40, 3], np.int64),
        (np.array([5, 6], dtype=np.uint8), [5, 6], np.int64),
        ([5.0, 6.0], [5, 6], np.int64),
        ([5, "x"], ["5", "x"], object),
        ([2**64 - 1, -1], [str(2**64 - 1), "-1"], object),
        ([2**200, 1], [str(2**200), "1"], object),
        (pl.Series([2**64 - 1, 1], dtype=pl.UInt64), [str(2**64 - 1), "1"], object),
        (pd.Categorical([2, 1]), [2, 1], np.int64),
    ],
)
def test_items_are_integers_or_text(items, expected, dtype):
    ids, _ = read_votes({"item": items, "vote": [1, 0]}).counts()
    assert ids.dtype == dtype
    assert ids.tolist() == expected


# Messages


FILES = {
    "votes.xlsx": (
        "x",
        "cannot read this kind of file, expected .csv, .tsv, .jsonl, .ndjson, .parquet",
    ),
    "votes.csv": (" \n", "empty file"),
    "a.csv": ("item,vote\n", "no rows"),
    "c.csv": (
        ",".join(f"c{n}" for n in range(12)) + "\n" + "," * 11,
        "no column 'item'; found c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more",
    ),
    "d.csv": ("Vote,item,vote \n1,x,1\n", "two columns are called 'vote'"),
    "e.csv": ("item,vote\nx,1\nx\n", "row 2: number of values: got 1, expected 2"),
    "i.csv": ('item,vote\nx,"1\n', "row 1: a quote inside a value, or a quote that is not closed"),
    "j.csv": (b"item,vote\nx,1\n\xff,1\n", "line 3: not UTF-8 text"),
    "a.jsonl": ('{"item": 1}\n{"item": \n', "row 2: got '{\"item\":', expected a JSON object"),
    "c.jsonl": ("[" * 99999, f"row 1: got '{'[' * 56}..., expected a JSON object"),
    "f.ndjson": (b'{"item": "\xff"}', "line 1: not UTF-8 text"),
    "a.parquet": ("item,vote\nx,1\n", "not a Parquet file, or a damaged one"),
    "b.parquet": ("", "empty file"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(name, tmp_path, monkeypatch):
    content, message = FILES[name]
    write(tmp_path / name, content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        read_votes(name)
    separator = ", " if message.startswith(("row ", "line ")) else ": "
    assert str(error.value).partition("; columns=")[0] == f"{name}{separator}{message}"


def test_a_file_that_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"^votes\.csv: no such file$"):
        read_votes("votes.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match=r"^folder\.csv: cannot be read: \w"):
        read_votes("folder.csv")


VALUES = [
    ("item", [None, "x"], "row 1, column item: got nothing, expected an id"),
    ("item", [1.0, 1.5], "row 2, column item: got 1.5, expected text or a whole number"),
    ("vote", [1, 2], "row 2, column vote: got 2, expected -1, 0, 1 or A, tie, B"),
    ("vote", [True, False], "row 1, column vote: got True, expected -1, 0, 1 or A, tie, B"),
    ("order", ["AB", "first"], "row 2, column order: got 'first', expected AB or BA"),
    ("sample", [0, -1], "row 2, column sample: got -1, expected a whole number of at least 0"),
]


@pytest.mark.parametrize(("column", "values", "message"), VALUES)
def test_a_bad_value_is_refused_by_row_column_and_value(column, values, message):
    with pytest.raises(InputError) as error:
        read_votes({"item": ["x", "y"], "vote": [1, 0]} | {column: values})
    assert str(error.value).partition("; ")[0] == f"data frame, {message}"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (5, "source: got int, expected a path, a mapping of column name to values, a list of rows "
            "as mappings, or a data frame (pandas, polars, PyArrow, DuckDB, Hugging Face)"),
        (pd.DataFrame([[1, 2]], columns=["vote", "vote"]),
         "data frame: two columns have the same name"),
        ({"item": ["x"], "vote": []}, "data frame: columns differ in length: item 1, vote 0"),
        ({"item": "x", "vote": [1]}, "data frame, column item: got 'x', expected a list of values"),
        (pl.DataFrame(schema={"item": pl.String, "vote": pl.Int8}), "data frame: no rows"),
        (pl.DataFrame({"item": ["x"], "vote": [[1]]}),
         "data frame, column vote: got values of type List(Int64), expected text or numbers"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(source, message):
    with pytest.raises(InputError) as error:
        read_votes(source)
    assert str(error.value) == message


@pytest.mark.parametrize("library", ["polars", "narwhals"])
def test_without_the_extra_the_message_says_how_to_get_it(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError) as error:
        read_votes(ROWS)
    message = f"reading tables needs {library}: pip install 'btdagg[tables]'"
    assert str(error.value) == message


# Votes


def test_a_repeated_sample_is_refused_by_both_rows_and_the_key():
    votes = {"item": ["x", "y", "x"], "vote": [1, 1, 0], "order": ["ab", "AB", " AB"]}
    assert read_votes(votes).counts()[1].tolist() == [[0, 1, 1], [0, 0, 1]]
    with pytest.raises(InputError) as error:
        read_votes(votes | {"sample": [0, 0, 0]})
    assert str(error.value) == (
        "data frame, rows 1 and 3: both have item 'x', order 'AB', sample 0, with votes 1 and 0"
    )
    for column in ("judge", "template", "temperature", "task"):
        different = {"sample": ["0", "0", "0.0"], column: pd.Categorical(["p", None, None])}
        assert read_votes(votes | different).frame.height == 3
        with pytest.raises(InputError, match=rf"rows 1 and 3: both have .*{column} nothing"):
            read_votes(votes | different | {column: [None] * 3})
    with pytest.raises(InputError, match="rows 1 and 3"):
        read_votes(votes | {"sample": [0, 0, 0], "note": ["p", "q", "r"]})


def test_filter_compares_as_text():
    votes = read_votes(
        {
            "item": ["x", "y", "x", "z"],
            "vote": [1, 1, None, 0],
            "judge": ["g", "h", "g", None],
            "temperature": [0.0, 0.3, 0.3, 0.0],
            "flag": [True, False, True, True],
        }
    )
    assert votes.filter({"judge": "g"}).frame["vote"].to_list() == [1, None]
    assert votes.filter({"judge": "g"}).n_missing == 1
    assert votes.filter({"judge": ["g", "h"], "temperature": "0.3"}).frame.height == 2
    assert votes.filter({"temperature": 0.0}).frame["item"].to_list() == ["x", "z"]
    assert votes.filter({"temperature": {"0.0", 0.3}, "flag": True}).frame.height == 3
    assert votes.filter({"judge": ""}).frame["item"].to_list() == ["z"]
    assert votes.filter({"vote": -0}).source == "data frame"
    assert votes.filter({}).frame.height == 4
    text = read_votes({"item": ["x", "y"], "vote": [1, 1], "temperature": ["0.0", "default"]})
    assert text.filter({"temperature": 0.0}).frame["item"].to_list() == ["x"]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"jude": "g"}, "no column 'jude'; found item, vote, judge, sample"),
        ({"judge": "k"}, "no row has judge 'k'; found g, h, ''"),
        ({"sample": -1}, "no row has sample '-1'; found 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 1 more"),
        ({"judge": "g", "sample": 10}, "no row has judge 'g' and sample 10"),
    ],
)
def test_filter_says_what_there_is(where, message):
    columns = {"item": range(11), "vote": [0] * 11, "judge": ["g", "h"] + [None] * 9}
    votes = read_votes(columns | {"sample": range(11)})
    with pytest.raises(InputError) as error:
        votes.filter(where)
    assert str(error.value) == f"data frame: {message}"


def test_partition_keeps_the_order_in_which_keys_are_seen():
    votes = read_votes(
        {
            "item": ["x", "y", "x", "z"],
            "vote": [1, 1, 1, 0],
            "judge": ["h", "g", "h", None],
            "temperature": pl.Series([0.3, 0.0, 0.3, 0.0], dtype=pl.Float32),
        }
    )
    parts = votes.partition(["judge", "temperature"])
    assert [key for key, _ in parts] == [("h", "0.3"), ("g", "0.0"), ("", "0.0")]
    assert [part.frame["item"].to_list() for _, part in parts] == [["x", "x"], ["y"], ["z"]]
    assert [key for key, _ in votes.partition(("item",))] == [("x",), ("y",), ("z",)]
    assert votes.partition([]) == [((), votes)]
    with pytest.raises(InputError, match=r"^data frame: no column 'model'; found item, vote"):
        votes.partition(["model"])


def first_votes(rows, n_votes, with_sample, with_order):
    """Count the first votes one by one; rows of item, order, sample, vote."""
    queues = defaultdict(lambda: {"AB": [], "BA": []})
    rows = sorted(rows, key=lambda row: row[2]) if with_sample else rows
    for item, order, _, vote in rows:
        if vote is not None:
            queues[item][order if with_order else "AB"].append(vote)
    counts = {}
    for item in dict.fromkeys(row[0] for row in rows):
        taken, queue = [], queues[item]
        turn = "AB"
        while len(taken) < n_votes and (queue["AB"] or queue["BA"]):
            turn = turn if queue[turn] else {"AB": "BA", "BA": "AB"}[turn]
            taken.append(queue[turn].pop(0))
            turn = {"AB": "BA", "BA": "AB"}[turn]
        counts[item] = [taken.count(-1), taken.count(0), taken.count(1)]
    return counts


@pytest.mark.parametrize("with_sample", [True, False])
@pytest.mark.parametrize("with_order", [True, False])
@pytest.mark.parametrize("n_votes", [1, 3, 4, 12])
def test_the_first_votes_are_those_a_loop_would_take(n_votes, with_order, with_sample):
    generator = random.Random(n_votes)
    rows = [
        (f"i{generator.randrange(40)}", generator.choice(["AB", "AB", "BA"]), n, None)
        for n in generator.sample(range(400), 400)
    ]
    rows = [(*row[:3], generator.choice([-1, 0, 1, 1, None])) for row in rows]
    columns = dict(zip(["item", "order", "sample", "vote"], zip(*rows, strict=True), strict=True))
    if not with_order:
        del columns["order"]
    if not with_sample:
        del columns["sample"]
    ids, counts = read_votes(columns).counts(n_votes)
    assert ids.tolist() == list(dict.fromkeys(row[0] for row in rows))
    expected = first_votes(rows, n_votes, with_sample, with_order)
    assert dict(zip(ids, counts.tolist(), strict=True)) == expected


def test_items_of_two_tasks_are_not_added_up():
    votes = read_votes({"item": ["x", "y", "x"], "vote": [1, 0, 1], "task": ["p", "p", "q"]})
    with pytest.raises(InputError) as error:
        votes.counts()
    assert str(error.value) == (
        "data frame: item 'x' is in two tasks, 'p' and 'q'; filter or partition by task first"
    )
    assert votes.filter({"task": "p"}).counts()[1].tolist() == [[0, 0, 1], [0, 1, 0]]


# Counts


@pytest.mark.parametrize("names", [("minus", "tie", "plus"), ("B", "same", "A"), ("b", "tie", "a")])
def test_counts_are_read_in_label_order(names, tmp_path):
    columns = {"item": ["x", "y"], "note": ["p", "q"]}
    columns |= {name: [n, str(n + 3)] for n, name in reversed(list(enumerate(names)))}
    path = tmp_path / "counts.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    for source in (columns, path):
        counts = read_votes(source)
        assert counts.ids.tolist() == ["x", "y"]
        assert counts.counts()[1].dtype == np.int64
        assert counts.counts()[1].flags.c_contiguous
        assert counts.counts()[1].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert counts.frame["note"].to_list() == ["p", "q"]
        assert counts.filter({"item": "y"}).counts()[1].tolist() == [[3, 4, 5]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"item": ["x", "x"]}, ", rows 1 and 2: both have item 'x'"),
        ({"tie": [0, -1]}, ", row 2, column tie: got -1, expected a number of at least 0"),
        ({"tie": [0, 2**53 + 1]},
         f", row 2, column tie: got {2**53 + 1}, expected a number of at least 0 and below "
         "2**53"),
    ],
)  # fmt: skip
def test_bad_counts_are_refused(change, message):
    columns = {"item": ["x", "y"], "minus": [1, 2], "tie": [0, 0], "plus": [1, 1]}
    with pytest.raises(InputError) as error:
        read_votes(columns | change)
    assert str(error.value) == f"data frame{message}"


# Labels


def test_labels_without_a_label_are_counted_and_dropped():
    labels = read_labels(
        {"item": [3, 4, 5], "label": ["A", "", "tie"], "group": [1, 1, 2], "note": list("pqr")}
    )
    assert labels.ids.tolist() == [3, 5]
    assert labels.ids.dtype == np.int64
    assert labels.labels.dtype == np.int8
    assert labels.labels.tolist() == [1, 0]
    assert labels.groups is not None
    assert labels.groups.tolist() == ["1", "2"]
    assert labels.n_missing == 1
    assert labels.frame["note"].to_list() == ["p", "r"]
    assert labels.unlabelled["note"].to_list() == ["q"]
    part = labels.filter({"group": 1})
    assert (part.ids.tolist(), part.n_missing) == ([3], 1)
    assert read_labels({"item": ["x"], "label": [None]}).ids.tolist() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group": ["p", ""]}, ", row 2, column group: got '', expected a group name"),
        ({"item": ["x", "x"]}, ", rows 1 and 2: both have item 'x'"),
    ],
)
def test_bad_labels_are_refused(change, message):
    with pytest.raises(InputError) as error:
        read_labels({"item": ["x", "y"], "label": [1, 0]} | change)
    assert str(error.value).startswith(f"data frame{message}")


def test_align_keeps_the_order_of_the_votes():
    labels = read_labels(
        {"item": list("abcde"), "label": [1, 0, -1, 1, None], "group": list("pqrst")}
    )
    ids, counts = ["z", "d", "e", "a", "b"], np.arange(15).reshape(5, 3)
    aligned = align(ids, counts, labels)
    assert aligned.ids.tolist() == ["d", "a", "b"]
    assert aligned.pooled.tolist() == [[3, 4, 5], [9, 10, 11], [12, 13, 14]]
    assert aligned.label.tolist() == [1, 1, 0]
    assert aligned.label.dtype == np.int8
    assert aligned.group is not None
    assert aligned.group.tolist() == ["s", "p", "q"]
    assert (aligned.origin.n_unlabelled, aligned.origin.n_without_votes) == (2, 1)


@pytest.mark.parametrize("of_votes", [[1, 2], ["1", "2"], np.array(["1", "2"], dtype=object)])
@pytest.mark.parametrize("of_labels", [[2, 3], ["2", "3"]])
def test_align_compares_integers_with_text_as_text(of_votes, of_labels):
    labels = read_labels({"item": of_labels, "label": [1, 0]})
    aligned = align(of_votes, [[1, 0, 0], [0, 0, 4]], labels)
    assert aligned.ids.tolist() == [of_votes[1]]
    assert aligned.pooled.tolist() == [[0, 0, 4]]
    assert aligned.label.tolist() == [1]
    assert aligned.group is None


def label(*items, **columns) -> Labels:
    return read_labels({"item": items, "label": [0] * len(items), **columns})


@pytest.mark.parametrize(
    ("ids", "shape", "labels", "message"),
    [
        (["x", "y"], (2, 3), label("p", "q"),
         ("no item has both votes and a label: the first item of the votes is item 'x', "
             "that of data frame is item 'p'")),
        ([7], (1, 3), read_labels({"item": ["p"], "label": [None]}),
         "data frame: no item has a label"),
        (["x"], (2, 3), label("x"),
         "counts has 2 rows, expected 1 as in ids"),
        ([["x", "y"]], (1, 3), label("x"), "ids has shape (1, 2), expected one dimension"),
        (["x"], (1, 3), label("x", "x", task=["p", "q"]),
         "data frame: item 'x' has labels in several tasks; filter by task first"),
    ],
)  # fmt: skip
def test_align_refuses(ids, shape, labels, message):
    with pytest.raises(InputError) as error:
        align(ids, np.zeros(shape, dtype=int), labels)
    assert str(error.value) == message


class Dataset:
    """As a data set of Hugging Face: no frame, but it turns into one."""

    def to_polars(self):
        return pl.DataFrame(ROWS)


class Stream:
    def __arrow_c_stream__(self, requested_schema=None):
        return pl.DataFrame(ROWS).__arrow_c_stream__(requested_schema)


def relation():
    duckdb = pytest.importorskip("duckdb")
    return duckdb.from_arrow(pl.DataFrame(ROWS).to_arrow())


@pytest.mark.parametrize(
    "source",
    [lambda: pl.LazyFrame(ROWS), lambda: pl.DataFrame(ROWS).to_dicts(), Dataset, Stream, relation],
    ids=["lazy frame", "rows", "Hugging Face", "Arrow stream", "DuckDB"],
)
def test_votes_come_from_what_holds_tables(source):
    expected = read_votes(pl.DataFrame(ROWS))
    found = read_votes(source())
    assert found.frame.equals(expected.frame)
    assert found.counts()[1].tolist() == expected.counts()[1].tolist()
    pairs = [{"item": 1, "a": "x", "b": "y"}, {"item": 2, "a": "z", "b": "w", "prompt": "p"}]
    for frame in (pairs, pl.LazyFrame(pairs)):
        assert read_pairs(frame).frame["b"].to_list() == ["y", "w"]


def test_ratings_of_people_are_labels():
    people = {"item": ["x", "x", "y"], "rater": ["p", "q", "p"], "vote": ["A", "A", "tie"]}
    assert read_labels(people).frame.select("item", "label").rows() == [("x", 1), ("y", 0)]
    renamed = {("who" if name == "rater" else name): values for name, values in people.items()}
    with pytest.raises(InputError, match="no column of raters"):
        read_labels(renamed)
    assert read_labels(renamed, columns={"rater": "who"}).labels.tolist() == [1, 0]
    with pytest.raises(InputError, match="both have item 'x'; if several people"):
        read_labels(renamed, columns={"label": "vote"})


MINE = {"qid": [1, 2], "winner": ["left", "draw"], "shown": ["ours", "theirs"]}
NAMES, GOLD = {"item": "qid", "vote": "winner"}, {"item": "qid", "label": "gold"}


@pytest.mark.parametrize(
    ("reads", "frame", "columns", "argument", "text"),
    [
        (read_votes, MINE, NAMES, "words",
         "row 1, column winner: got 'left', .* words={'draw': '...', 'left': '...'}: A"),
        (read_votes, MINE, {"vote": "winner"}, "columns",
         "found qid, winner, shown; columns={'item': 'NAME'} reads"),
        (read_votes, MINE, {"item": "qid"}, "columns",
         "no column 'vote'; found qid, .* columns={'vote': 'NAME'}"),
        (read_votes, MINE | {"winner": ["A", "B"]}, {**NAMES, "order": "shown"}, "order",
         "column shown: got 'ours', .* order={'...': 'AB'"),
        (read_labels, MINE, GOLD | {"label": "winner"}, "words", "row 1, column winner: .*words={"),
        (read_labels, {"qid": [1, 2], "gold": ["4", "5"]}, GOLD, "scale",
         "golds are 4, 5, and their scale is not given; state it: scale="),
        (read_labels, {"qid": [1, 1], "gold": ["A", "B"]}, GOLD, "columns", "both have qid 1;"),
    ],
)  # fmt: skip
def test_errors_have_the_names_of_the_source_and_end_with_the_argument_that_helps(
    reads, frame, columns, argument, text
):
    with pytest.raises(InputError, match=text) as error:
        reads(frame, columns=columns)
    assert error.value.argument == argument
