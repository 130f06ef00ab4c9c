"""What comes in from files: names of columns, kinds of files, repeats, blanks, limits.

Through public functions and the command line alone.
"""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import btdagg
from btdagg import InputError, read_labels, read_votes
from btdagg.datasets import simulate
from btdagg.judge import read_pairs
from btdagg.methods import by_name
from btdagg.paper import read_ratings
from btdagg.votes import read_table
from refusals import refused

pytestmark = pytest.mark.usefixtures("quick_commands")

LONG = simulate("rb2-math", 80, 8, seed=2).vote_columns()


def write(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def counted(votes):
    ids, counts = votes.counts()
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


# Repeated samples


ONCE = {
    "item": ["x", "x", "y", "y", "z"],
    "vote": [1, 0, -1, None, None],
    "order": ["AB", "BA", "AB", "AB", "AB"],
    "sample": [0, 0, 0, 1, 0],
}
COUNTED = {"x": [0, 1, 1], "y": [1, 0, 0], "z": [0, 0, 0]}


def repeated(rows, columns=ONCE):
    return {name: [values[row] for row in rows] for name, values in columns.items()}


def test_equal_repeats_of_a_sample_count_once(tmp_path):
    for rows in ([0, 1, 2, 3, 4, 0, 2, 3, 4], [0, 0, 1, 1, 1, 2, 3, 3, 4]):
        columns = repeated(rows)
        pl.DataFrame(columns).write_csv(tmp_path / "v.csv")
        pl.DataFrame(columns).write_parquet(tmp_path / "v.parquet")
        pl.DataFrame(columns).write_ndjson(tmp_path / "v.jsonl")
        for source in (columns, pd.DataFrame(columns), *tmp_path.iterdir()):
            votes = read_votes(source)
            assert counted(votes) == COUNTED
            assert (votes.frame.height, votes.n_missing) == (5, 2)
            assert votes.counts(1)[1].tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]


def test_a_missing_vote_beside_a_vote_of_the_sample_does_not_count():
    """As in a stream, into which no missing vote comes."""
    columns = {"item": list("xyx"), "vote": [None, 1, 0], "sample": [0, 0, 0], "note": list("pqr")}
    for rows, first in (([0, 1, 2], ["x", "y"]), ([2, 1, 0], ["x", "y"])):
        votes = read_votes(repeated(rows, columns))
        assert votes.n_missing == 0
        assert votes.counts()[0].tolist() == first
        assert counted(votes) == {"x": [0, 1, 0], "y": [0, 0, 1]}
        assert votes.filter({"item": "x"}).frame["note"].to_list() == ["r"]


# Names of columns


READERS = {
    "votes": (read_votes, {"item": [1, 2], "vote": [1, 0]}),
    "counts": (read_votes, {"item": [1, 2], "minus": [1, 0], "tie": [1, 0], "plus": [2, 3]}),
    "labels": (read_labels, {"item": [1, 2], "label": [1, 0]}),
    "ratings": (read_ratings, {"item": [1, 2], "rater": ["r", "s"], "vote": [1, 0]}),
    "pairs": (read_pairs, {"item": [1, 2], "a": ["p", "q"], "b": ["r", "s"]}),
}


@pytest.mark.parametrize("kind", READERS)
def test_items_go_by_id_and_item_id_too(kind):
    reader, columns = READERS[kind]
    rest = {name: values for name, values in columns.items() if name != "item"}
    for name in ("item", "id", "item_id", "ID", " Item_Id "):
        read = reader({name: [1, 2], **rest})
        assert read.frame["item"].to_list() == [1, 2]
    both = reader({"id": [8, 9], "item_id": [7, 7], **columns})
    assert both.frame["item"].to_list() == [1, 2]
    assert {"id", "item_id"} <= set(both.columns)
    with pytest.raises(InputError) as error:
        reader({"id": [1, 2], "item_id": [3, 4], **rest})
    assert str(error.value) == (
        "data frame: columns 'id' and 'item_id' could both be the item; choose one, as "
        "in columns={'item': 'id'}"
    )
    chosen = reader({"id": [1, 2], "item_id": [3, 4], **rest}, columns={"item": "item_id"})
    assert chosen.frame["item"].to_list() == [3, 4]


@pytest.mark.parametrize("kind", READERS)
def test_columns_are_mapped(kind):
    reader, columns = READERS[kind]
    others = {f" Q_{name} ": values for name, values in columns.items()}
    mapping = {name.upper(): f"q_{name}" for name in columns}
    read = reader(others, columns=mapping)
    assert read.columns == list(columns)
    assert read.frame.equals(reader(columns).frame)
    # What has the name already gives way.
    read = reader({**columns, "qid": [8, 9]}, columns={"item": "qid"})
    assert read.frame["item"].to_list() == [8, 9]
    with pytest.raises(InputError, match=r"^data frame: no column 'qid'; found item, "):
        reader(columns, columns={"item": "qid"})
    # A column may have two names.
    read = reader({**columns, "qid": [8, 9]}, columns={"item": "qid", "number": "QID"})
    assert read.frame.select("item", "number").rows() == [(8, 8), (9, 9)]


# Kinds of files


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_text_files_may_be_compressed(tmp_path, suffix):
    frame = pl.DataFrame(LONG)
    plain = tmp_path / f"votes{suffix}"
    if "json" in suffix:
        frame.write_ndjson(plain)
    else:
        frame.write_csv(plain)
    packed = write(tmp_path / f"votes{suffix.upper()}.GZ", gzip.compress(plain.read_bytes()))
    assert read_votes(packed).frame.equals(read_votes(plain).frame)
    assert read_votes(packed).source == str(packed)
    halves = plain.read_bytes()[:100], plain.read_bytes()[100:]
    write(packed, b"".join(map(gzip.compress, halves)))  # as cat of two files
    assert read_votes(packed).frame.equals(read_votes(plain).frame)
    with pytest.raises(InputError, match=r"GZ: the gzip file is damaged$"):
        read_votes(write(packed, gzip.compress(plain.read_bytes())[:-9]))
    with pytest.raises(InputError, match=r"GZ: empty file$"):
        read_votes(write(packed, gzip.compress(b" \n")))


@pytest.mark.parametrize("value", [b"a" * 1000, b'"' + 500 * b"a\n" + b'"'], ids=["line", "quoted"])
def test_a_compressed_table_does_not_unpack_to_a_value_beyond_all_memory(
    tmp_path, monkeypatch, value
):
    monkeypatch.setattr("btdagg.votes.source._LONGEST", 100_000)
    rows = b"item,vote,note\nx,1,z\ny,1,"
    long = value[:1] + value[1:-1] * 210 + value[-1:]
    path = write(tmp_path / "votes.csv.gz", gzip.compress(rows + long + b"\n", 1))
    with pytest.raises(
        InputError, match=r"votes\.csv\.gz, line \d+: a value is larger than 100 MB"
    ):
        read_votes(path)


def test_tables_of_any_length_are_unpacked(tmp_path, monkeypatch):
    """Longer than the longest value, with quotes of all kinds where a piece of the table ends."""
    monkeypatch.setattr("btdagg.votes.source._LONGEST", 50)
    notes = ['"said ""no"", and"', '"one\nline"', "plain", '""'] * 20
    for start in range(20):
        lines = [f"{'i' * start}{n},1,{note}\n" for n, note in enumerate(notes)]
        text = "item,vote,note\n" + "".join(lines)
        path = write(tmp_path / "votes.csv.gz", gzip.compress(text.encode()))
        assert read_table(path, []).height == len(notes)


def as_standard_input(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def contents():
    frame = pl.DataFrame(LONG)
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    text = frame.write_csv().encode()
    return {
        "csv": text,
        "tsv": frame.write_csv(separator="\t").encode(),
        "jsonl": frame.write_ndjson().encode(),
        "parquet": parquet.getvalue(),
        "csv.gz": gzip.compress(text),
    }


@pytest.mark.parametrize("kind", contents())
def test_standard_input_is_read_by_what_it_begins_with(kind, monkeypatch):
    as_standard_input(monkeypatch, contents()[kind])
    votes = read_votes("-")
    assert votes.source == "standard input"
    assert counted(votes) == counted(read_votes(LONG))


# Blanks


@pytest.mark.parametrize("kind", READERS)
def test_blanks_around_ids_do_not_count(kind):
    reader, columns = READERS[kind]
    spaced = {**columns, "item": [" x", "y\t"], "judge": [" g ", "g"], "task": ["m ", "\u3000m"]}
    if kind == "ratings":
        spaced["rater"] = [" r", "s "]
    read = reader(spaced)
    assert read.frame["item"].to_list() == ["x", "y"]
    if kind == "ratings":
        assert read.raters.tolist() == ["r", "s"]
    if kind in ("votes", "counts"):
        assert read.frame["judge"].to_list() == ["g", "g"]
    if kind in ("votes", "counts", "labels"):
        assert read.frame["task"].to_list() == ["m", "m"]


def test_votes_and_labels_meet_whatever_blanks_are_around_their_ids():
    votes = read_votes({"item": [" x", "x ", "y"], "vote": [1, 1, 0]})
    assert counted(votes) == {"x": [0, 0, 2], "y": [0, 1, 0]}
    labels = read_labels({"item": ["x  ", " y"], "label": [1, 0], "group": [" p", "p "]})
    assert btdagg.align(*votes.counts(), labels).label.tolist() == [1, 0]
    assert labels.groups.tolist() == ["p", "p"]
    # Arrays keep theirs, and meet all the same.
    ids, counts = btdagg.tally([" x", " x", "y "], [1, 1, 0])
    assert ids.tolist() == [" x", "y "]
    assert btdagg.align(ids, counts, labels).label.tolist() == [1, 0]
    with pytest.raises(InputError, match="ids has an item twice"):
        btdagg.align(["x", " x"], counts, labels)
    with pytest.raises(InputError, match="rows 1 and 2: both have item 'x'"):
        read_labels({"item": ["x", "x "], "label": [1, 1]})
    with refused(row=2, column="item", source="data frame", got="  ", expected="an id"):
        read_votes({"item": ["x", "  "], "vote": [1, 1]})


BLANK = '\n  \nitem,vote,note\nx,1,p\n\n   \r\ny,0,"q\n\nr"\n\nz,{},\n  \n\n'


def test_blank_lines_of_a_csv_are_skipped_and_rows_counted_as_they_stand(tmp_path):
    votes = read_votes(write(tmp_path / "v.csv", BLANK.format("B")))
    assert counted(votes) == {"x": [0, 0, 1], "y": [0, 1, 0], "z": [1, 0, 0]}
    assert votes.frame["note"].to_list() == ["p", "q\n\nr", None]
    assert votes.n_missing == 0
    tabbed = "item\tvote\nx\t1\n\n \ny\t{}\n"
    assert counted(read_votes(write(tmp_path / "v.tsv", tabbed.format("0")))) == {
        "x": [0, 0, 1], "y": [0, 1, 0]
    }  # fmt: skip
    for name, text, row in (("v.csv", BLANK, 6), ("v.tsv", tabbed, 4)):
        with refused("words", source=name, row=row, column="vote", got="C"):
            read_votes(write(tmp_path / name, text.format("C")))
    labels = write(tmp_path / "l.csv", "item,label\n\nx,1\n\n\ny,7\n")
    with refused(row=5, column="label", source="l.csv", got="7"):
        read_labels(labels)


@pytest.mark.parametrize("separator", [",", "\t"])
def test_files_with_blank_lines_are_those_without(tmp_path, separator):
    """Wherever the blank lines are, and whatever is quoted."""
    rng = np.random.default_rng(5)
    name = "v.csv" if separator == "," else "v.tsv"
    for trial in range(40):
        lines = ["item vote note".replace(" ", separator)]
        for row in range(rng.integers(1, 12)):
            note = rng.choice(["", "plain", '"quoted"', '"two\n\nlines"', '"a,\tb"'])
            lines.append(separator.join([f"q{row % 5}", str(rng.integers(-1, 2)), note]))
        plain = read_votes(write(tmp_path / name, "\n".join(lines)))
        spread = []
        for line in lines:
            spread += rng.choice(["", " ", "   "], size=rng.integers(0, 3)).tolist()
            spread.append(line)
        end = ["\n", "\r\n"][trial % 2]
        read = read_votes(write(tmp_path / name, end.join(spread)))
        if end == "\n":
            assert read.frame.equals(plain.frame)
        assert counted(read) == counted(plain)


# Confidences that nobody uses


def test_confidences_are_kept_as_they_came_and_looked_at_when_asked_for():
    columns = {"item": ["x", "y"], "vote": [1, 0], "confidence": [0.5, 101.0]}
    votes = read_votes(columns)
    assert votes.frame["confidence"].to_list() == [0.5, 101.0]
    items = votes.items()
    with pytest.raises(InputError, match="expected a number from 0 to 1"):
        items.facts["confidences"]
    assert items.pooled.tolist() == [[0, 0, 1], [0, 1, 0]]
    (method,) = by_name(["soft-sc-mean"])
    with pytest.raises(InputError, match="row 2, column confidence: got"):
        method.decide(votes)
    good = votes.filter({"item": "x"}).items()
    assert good.facts["confidences"].total.tolist() == [[0, 0, 0.5]]
    words = read_votes({**columns, "confidence": ["high", "low"]})
    assert words.frame["confidence"].to_list() == ["high", "low"]


# Numbers


@pytest.mark.parametrize("number", ["１", "0_1", "one", "0x1"])
def test_votes_labels_and_counts_are_refused_in_other_digits_alike(number):
    for reader, columns in (
        (read_votes, {"item": ["x"], "vote": [number]}),
        (read_labels, {"item": ["x"], "label": [number]}),
        (read_votes, {"item": ["x"], "vote": [1], "sample": [number]}),
        (read_votes, {"item": ["x"], "minus": [0], "tie": [0], "plus": [number]}),
    ):
        with pytest.raises(InputError) as error:
            reader(columns)
        assert (error.value.row, error.value.got) == (1, number)


def test_votes_labels_and_counts_take_the_same_numbers():
    for one in ("1", " 1 ", "+1", "1.0", "1e0", 1, 1.0, np.float32(1)):
        assert counted(read_votes({"item": ["x"], "vote": [one]})) == {"x": [0, 0, 1]}
        assert read_labels({"item": ["x"], "label": [one]}).labels.tolist() == [1]
        found = read_votes({"item": ["x"], "minus": [0], "tie": [0], "plus": [one]})
        assert found.counts()[1].tolist() == [[0, 0, 1]]
