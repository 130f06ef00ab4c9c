"""Tables of strangers are read right, or refused with the row; nothing is lost or guessed silently.

Through `read_votes`, `btdagg check` and the commands that follow it.
"""

import json
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from btdagg import InputError, read_labels, read_votes

VOTES = [(f"q{n // 4}", ("A", "tie", "B", "A")[n % 4]) for n in range(48)]


def rows_of(head, rows, separator=","):
    lines = [separator.join(map(str, row)) for row in rows]
    return "\n".join([separator.join(head), *lines]) + "\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(cli, *files):
    status, out, err = cli("check", *files)
    return status, out + err


def next_of(out):
    return next(line for line in out.splitlines() if line.startswith("Next"))


# Values are read as they are


@pytest.mark.parametrize("value", [Decimal("0.5"), Decimal("-0.50"), date(1970, 1, 2)])
def test_votes_of_a_typed_column_that_are_no_whole_votes_are_refused(folder, value):
    pl.DataFrame({"item": ["x", "y"], "vote": [value, value]}).write_parquet("typed.parquet")
    with pytest.raises(InputError) as caught:
        read_votes("typed.parquet")
    assert (caught.value.row, caught.value.column) == (1, "vote")


def test_labels_of_a_decimal_column_are_means_as_floats_are(folder):
    values = [Decimal("0.5"), Decimal(-1), Decimal(1)]
    pl.DataFrame({"item": [*"xyz"], "label": values}).write_parquet("typed.parquet")
    floats = {"item": [*"xyz"], "label": [float(value) for value in values]}
    assert read_labels("typed.parquet").shares.tolist() == read_labels(floats).shares.tolist()


def test_whole_votes_of_a_decimal_column_are_votes(folder):
    values = [Decimal("1.00"), Decimal("0"), Decimal("-1.0"), None]
    pl.DataFrame({"item": [*"wxyz"], "vote": values}).write_parquet("typed.parquet")
    assert read_votes("typed.parquet").frame["vote"].to_list() == [1, 0, -1, None]


# Quotes


def quoted(separator, opening=5, closing=20):
    rows = [(item, "plain", vote) for item, vote in VOTES]
    rows[opening] = (VOTES[opening][0], '"Hello there', VOTES[opening][1])
    rows[closing] = (VOTES[closing][0], 'so she said"', VOTES[closing][1])
    return rows_of(("item", "text", "vote"), rows, separator)


def test_a_tsv_without_quoting_keeps_the_rows_between_two_quotes(folder, cli):
    (folder / "v.tsv").write_text(quoted("\t"))
    votes = read_votes("v.tsv")
    assert votes.frame["vote"].len() == 48
    assert votes.frame["text"][5] == '"Hello there'
    assert "48 votes" in checked(cli, "v.tsv")[1]


@pytest.mark.parametrize("closing", [6, 20])
@pytest.mark.parametrize("has_quoted_rows", [False, True])
def test_a_csv_whose_quotes_swallow_rows_is_refused_with_the_row(folder, closing, has_quoted_rows):
    text = quoted(",", closing=closing)
    (folder / "v.csv").write_text(text.replace("plain", '"not, plain"', 3 * has_quoted_rows))
    with pytest.raises(InputError) as caught:
        read_votes("v.csv")
    assert (caught.value.source, caught.value.row) == ("v.csv", 6)


def test_a_quote_that_is_not_closed_is_refused_with_the_row(folder):
    (folder / "v.csv").write_text(quoted(",").replace('so she said"', "plain"))
    with pytest.raises(InputError) as caught:
        read_votes("v.csv")
    assert caught.value.row == 6


def test_quotes_inside_values_are_text(folder):
    rows = [(item, '5" screen', vote) for item, vote in VOTES]
    (folder / "v.csv").write_text(rows_of(("item", "text", "vote"), rows))
    assert read_votes("v.csv").frame["text"].to_list() == ['5" screen'] * 48


def test_texts_of_several_lines_are_values(folder):
    """Even with as many commas as a row has, where the lines are no rows."""
    rows = [(item, f'"one, two\n{n}\nthree, four"', vote) for n, (item, vote) in enumerate(VOTES)]
    rows[0] = ("q0", '"first, line\nsecond, line"', "A")
    (folder / "v.csv").write_text(rows_of(("item", "text", "vote"), rows))
    frame = read_votes("v.csv").frame
    assert frame.height == 48
    assert frame["text"][0] == "first, line\nsecond, line"


# Separators and blank lines


@pytest.mark.parametrize(("separator", "name"), [(";", "semicolons"), ("|", "vertical bars")])
@pytest.mark.parametrize("command", ["estimate", "evaluate", "calibrate", "check", "import"])
def test_every_command_names_another_separator(folder, cli, command, separator, name):
    scored = [(item, "0,5", vote) for item, vote in VOTES]
    (folder / "v.csv").write_text(rows_of(("item", "margin", "vote"), scored, separator))
    (folder / "l.csv").write_text(
        rows_of(("item", "label"), {f"q{n}": "A" for n in range(12)}.items())
    )
    files = {"import": ["v.csv", "-o", "w.csv"], "check": ["v.csv"]}.get(
        command, ["v.csv", "l.csv"]
    )
    status, _, err = cli(command, *files)
    assert status == 2
    assert err.startswith(f"btdagg: v.csv: values are separated by {name}")


def test_blank_lines_between_json_lines_are_no_rows_and_are_counted(folder, cli):
    rows = [json.dumps({"item": item, "vote": vote}) for item, vote in VOTES]
    (folder / "votes.jsonl").write_text("\n\n".join(rows) + "\n")
    assert "48 votes" in checked(cli, "votes.jsonl")[1]
    (folder / "bad.jsonl").write_text("\n\n".join([*rows, '{"item": "q1", "vote": "C"}']))
    with pytest.raises(InputError) as caught:
        read_votes("bad.jsonl")
    assert (caught.value.row, caught.value.got) == (97, "C")
