"""One mechanism reads all tables: few passes, the first bad row of any column, one word list."""

import ast
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg import InputError, read_labels, read_votes
from btdagg.votes import Table, words

PACKAGE = Path(btdagg.__file__).parent


def error_of(read, *args, **how):
    with pytest.raises(InputError) as error:
        read(*args, **how)
    return error.value


# The first bad row


@pytest.mark.parametrize(
    ("changed", "row", "column"),
    [
        ({}, 1, "vote"),
        ({"item": ["", "a", "a", "b"]}, 1, "item"),
        ({"vote": ["A", "B", "x", "A"]}, 2, "sample"),
        ({"vote": ["A", "B", "x", "A"], "sample": [0, 1, 2, -1]}, 3, "vote"),
        (
            {"vote": ["A", "B", "x", "A"], "sample": [0, 1, 2, 3], "order": ["AB"] * 3 + ["?"]},
            3,
            "vote",
        ),
    ],
)
def test_the_first_bad_row_of_any_column_is_named(changed, row, column):
    rows = {"item": ["a", "a", "b", "b"], "vote": ["x", "A", "B", "y"], "sample": [0, -1, 0, 1]}
    error = error_of(read_votes, rows | changed)
    assert (error.row, error.column) == (row, column)


def test_a_bad_value_is_shown_as_it_is_with_its_file_and_row(tmp_path):
    path = tmp_path / "v.csv"
    path.write_text('item,vote\na,A\nb,\nc," Maybe "\n')
    error = error_of(read_votes, path)
    assert (error.source, error.row, error.column, error.got) == (str(path), 3, "vote", " Maybe ")


def test_of_several_files_the_one_with_the_bad_row_is_named(tmp_path):
    for name, vote in (("a", [1, 0]), ("b", [1, 5])):
        frame = pl.DataFrame({"item": [f"{name}0", f"{name}1"], "vote": vote})
        frame.write_parquet(tmp_path / f"{name}.parquet")
    error = error_of(read_votes, tmp_path)
    assert error.source.endswith("b.parquet")
    assert error.row == 2


# Passes over the rows


@pytest.fixture
def passes(monkeypatch):
    """A list that grows with each query over the rows of a table."""
    queries = []
    collect = Table.collect

    def counted(table, rows):
        queries.append(table.source)
        return collect(table, rows)

    monkeypatch.setattr(Table, "collect", counted)
    return queries


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("sample", [False, True])
def test_votes_are_read_in_three_passes_and_counted_in_no_other(passes, tmp_path, suffix, sample):
    frame = pl.DataFrame({"item": ["a", "a", "b"], "vote": [1, 0, -1]})
    frame = frame.with_columns(sample=pl.Series([0, 1, 0])) if sample else frame
    path = tmp_path / f"v{suffix}"
    frame.write_csv(path) if suffix == ".csv" else frame.write_parquet(path)
    votes = read_votes(path)
    n_size = suffix == ".parquet"  # whose rows are counted before they are read
    assert len(passes) <= 3 + n_size
    before = len(passes)
    assert votes.counts()[1].tolist() == [[0, 1, 1], [1, 0, 0]]
    assert len(passes) == before


def test_labels_are_read_in_two_passes(passes):
    labels = read_labels({"item": ["a", "b"], "label": ["A", "tie"]})
    assert labels.labels.tolist() == [1, 0]
    assert len(passes) <= 2


# Words


TYPES = {
    "text": lambda votes: [str(vote) for vote in votes],
    "decimal text": lambda votes: [f"{vote}.0" for vote in votes],
    "signed text": lambda votes: [f"{vote:+d}" for vote in votes],
    "blank text": lambda votes: [f" {vote} " for vote in votes],
    "words": lambda votes: [{1: "A", 0: "Same", -1: "b"}[vote] for vote in votes],
    "int8": lambda votes: pl.Series(votes, dtype=pl.Int8),
    "int64": lambda votes: pl.Series(votes, dtype=pl.Int64),
    "float": lambda votes: pl.Series(votes, dtype=pl.Float64),
    "float32": lambda votes: pl.Series(votes, dtype=pl.Float32),
    "category": lambda votes: pl.Series([str(vote) for vote in votes], dtype=pl.Categorical),
}


@pytest.mark.parametrize("name", TYPES)
def test_votes_are_the_same_in_every_type(name):
    drawn = np.random.default_rng(0).integers(-1, 2, 60).tolist()
    items = [f"q{n % 7}" for n in range(60)]
    votes = read_votes(pl.DataFrame({"item": items, "vote": TYPES[name](drawn)}))
    assert votes.frame["vote"].to_list() == drawn
    assert votes.frame["vote"].dtype == pl.Int8


@pytest.mark.parametrize("name", [name for name in TYPES if name != "words"])
def test_grades_are_the_same_in_every_type(name):
    drawn = np.random.default_rng(0).integers(0, 6, 60).tolist()
    items = [f"q{n % 7}" for n in range(60)]
    rows = pl.DataFrame({"item": items, "score": TYPES[name](drawn)})
    votes = read_votes(rows, scale=btdagg.Scale(range(6)))
    assert votes.frame["vote"].to_list() == drawn


def test_a_missing_vote_is_missing_in_every_type():
    for vote in (["A", ""], ["A", " "], ["A", None], [1, None], [1.0, float("nan")]):
        votes = read_votes({"item": ["x", "x"], "vote": vote})
        assert (votes.n_missing, votes.frame["vote"].to_list()) == (1, [1, None])


@pytest.mark.parametrize("text", ["1_0", "１", "1e", "--1", "+-1", "nan", "inf", "true", "2"])
def test_what_is_no_vote_is_refused_and_not_read_as_another(text):
    assert error_of(read_votes, {"item": ["x", "x"], "vote": ["1", text]}).row == 2


def test_a_name_of_another_rows_system_is_blamed_where_it_names_none():
    rows = {
        "item": ["q", "q", "r", "r"],
        "vote": ["new", "old", "new", "new"],
        "system_a": ["new", "new", "old", "old"],
        "system_b": ["old", "old", "mid", "mid"],
    }
    error = error_of(read_votes, rows)
    assert (error.row, error.got) == (3, "new")
    assert "'new' in 2 rows" in str(error)


def test_words_beside_counts_are_refused():
    rows = {"item": ["x"], "minus": [1], "tie": [0], "plus": [2]}
    assert "no column 'vote'" in str(error_of(read_votes, rows, words={"draw": "tie"}))


def test_words_of_votes_are_written_down_in_one_file():
    # A list of what other tools call a tie or a side belongs to the one table, whatever reads it.
    telling = {"draw", "bothbad", "model_b", "answer_b", "unparsed"}
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Dict):
                keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
                if len(keys & telling) > 1:
                    found[path.name] = keys & telling
    assert not found
    assert telling <= {*words.USUAL_WORDS}
