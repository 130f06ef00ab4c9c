"""Tables of strangers are read right, or refused with the row; nothing is lost or guessed silently.

Through `read_votes`, `btdagg check` and the commands that follow it.
"""

import json
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

from btdagg import DavidsonModel, InputError, read_labels, read_votes
from refusals import refused

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


# Names, words and scales


@pytest.mark.parametrize(
    ("head", "rows", "kind"),
    [
        ("item,label", [("q0", "A"), ("q1", "tie")], "label"),
        (
            "item,answer,order",
            [("q0", "So it is [[A]]", "AB"), ("q0", "It is [[B]]", "BA")],
            "vote",
        ),
        ("item,score_a,score_b", [("q0", 1, 2), ("q1", 2, 2)], "vote"),
        ("item,margin", [("q0", 1), ("q1", -2)], "vote"),
        ("item,rater,label", [("q0", "ann", "A"), ("q0", "bob", "B")], "vote"),
    ],
)
def test_import_knows_the_columns_of_documented_names(folder, cli, head, rows, kind):
    (folder / "in.csv").write_text(rows_of(head.split(","), rows))
    status, _, err = cli("import", "in.csv", "-o", "out.csv")
    assert status == 0, err
    frame = pl.read_csv("out.csv")
    assert frame.height == 2
    assert kind in frame.columns


def test_a_missing_column_is_advised_and_no_other(folder, cli):
    text = rows_of(("left", "right", "winner"), [("pie", "fig", "left"), ("fig", "pie", "right")])
    (folder / "food.csv").write_text(text)
    keys = "system_a=left,system_b=right,vote=winner,words.left=A,words.right=B"
    status, _, err = cli("import", "food.csv", "--set", keys, "-o", "out.csv")
    assert status == 2
    assert "--set group=" in err
    assert "vote=" not in err
    numbered = rows_of(("group", "left", "right", "winner"), [(0, "pie", "fig", "left")])
    (folder / "food.csv").write_text(numbered)
    assert cli("import", "food.csv", "--set", keys, "-o", "out.csv")[0] == 0


@pytest.mark.parametrize("stray", ["40", "2", "-3.5"])
@pytest.mark.parametrize("column", ["vote", "label"])
def test_a_stray_number_among_words_is_the_value_that_is_named(folder, cli, column, stray):
    rows = [(f"i{n}", vote) for n, (_, vote) in enumerate(VOTES)]
    (folder / "v.csv").write_text(rows_of(("item", column), [*rows, ("total", stray)]))
    with pytest.raises(InputError) as caught:
        (read_votes if column == "vote" else read_labels)("v.csv")
    assert (caught.value.row, caught.value.got) == (49, stray)
    status, text = checked(cli, "v.csv")
    assert (status, "row 49" in text) == (2, True)


@pytest.mark.parametrize("step", [0.5, 0.25, 0.1])
def test_the_scale_that_is_advised_for_grades_with_fractions_is_accepted(folder, cli, step):
    grades = [1 + round(k * step, 2) for k in range(round(4 / step) + 1)]
    rows = [(f"q{n}", grade) for n in range(3) for grade in grades]
    (folder / "v.csv").write_text(rows_of(("item", "score"), rows))
    with pytest.raises(InputError) as caught:
        read_votes("v.csv")
    scale = caught.value.advice["scale"]
    assert (scale.points[0], scale.points[-1], len(scale.points)) == (1, 5, len(grades))
    assert read_votes("v.csv", scale=scale).counts()[1].sum() == len(rows)
    status, text = checked(cli, "v.csv")
    assert (status, "wrong" in text) == (0, False)


@pytest.mark.parametrize(
    "word", ["A is better", "left side", "yes, a=b", "x,y=z", 'say "A"', "1.0b"]
)
def test_any_word_can_be_given_a_meaning(folder, cli, word):
    frame = pl.DataFrame({"id": [*range(4)], "winner": [word, "B", word, "other one"]})
    frame.write_csv("v.csv")
    typed = f'"{word}"' if {*',="'} & {*word} else word
    keys = f"item=id,vote=winner,words.{typed}=A,words.other one=tie"
    status, _, err = cli("import", "v.csv", "--set", keys, "-o", "out.csv")
    assert status == 0, err
    assert pl.read_csv("out.csv")["vote"].to_list() == [1, -1, 1, 0]


def test_a_value_may_have_commas_and_signs(folder, cli):
    pl.DataFrame({"id, old": [1, 2], "winner=x": ["A", "B"]}).write_csv("v.csv")
    keys = 'item=id, old,vote="winner=x",constants.judge="a,b=c"'
    status, _, err = cli("import", "v.csv", "--set", keys, "-o", "out.csv")
    assert status == 0, err
    assert pl.read_csv("out.csv")["judge"].to_list() == ["a,b=c"] * 2


# What a file leaves open is asked


def asked(cli, *files):
    """Words and columns that the command of a check leaves open, after it says what is wrong."""
    status, text = checked(cli, *files)
    assert status == 2, text
    assert "  wrong: " in text
    return text


@pytest.mark.parametrize(
    "numbers", [(-2, -1, 0, 1, 2), (-1, 0, 1, 2), (1, 2), (0, 1), (0, 1, 2), (1,)]
)
@pytest.mark.parametrize("form", ["csv", "parquet", "label-studio"])
def test_numbers_are_never_sides_for_certain(folder, cli, form, numbers):
    rows = [(f"x{n}", numbers[n % len(numbers)]) for n in range(24)]
    if form == "label-studio":
        results = [
            {"value": {"choices": [str(v)]}, "type": "choices", "from_name": "p"} for _, v in rows
        ]
        tasks = [
            {"id": n, "data": {}, "annotations": [{"completed_by": 1, "result": [result]}]}
            for n, result in enumerate(results)
        ]
        (folder / "v.json").write_text(json.dumps(tasks))
        text = checked(cli, "v.json")[1]
    else:
        frame = pl.DataFrame(rows, schema=["id", "preference"], orient="row")
        frame.write_csv("v.csv") if form == "csv" else frame.write_parquet("v.parquet")
        text = asked(cli, f"v.{form}")
    for number in (-2, -1, 0, 1, 2):
        for meaning in ("A", "B", "tie"):
            assert f"words.{number}={meaning}" not in text


@pytest.mark.parametrize("column", ["vote", "label"])
def test_only_0_and_1_are_not_taken_for_a_tie_and_a(folder, cli, column):
    rows = [(f"x{n}", n % 2) for n in range(24)]
    (folder / "v.csv").write_text(rows_of(("item", column), rows))
    text = asked(cli, "v.csv")
    assert f"--set {column}s.words.0=...,{column}s.words.1=..." in text
    assert f"{column}s.scale=pass/fail" in text
    (folder / "v.csv").write_text(rows_of(("item", column), [*rows, ("x24", -1)]))
    assert checked(cli, "v.csv")[0] == 0


ARENA = [
    ("q0", "ant", "bee", "ant", 1),
    ("q1", "bee", "ant", "bee", 1),
    ("q2", "ant", "bee", "tie", 0),
    ("q3", "bee", "ant", "Ant ", -1),
]


@pytest.mark.parametrize("names", [("system_a", "system_b"), ("left model", "opponent")])
@pytest.mark.parametrize("verdict", ["winner", "vote", "label"])
def test_a_winner_that_is_named_by_its_system_is_compared_with_the_sides(
    folder, cli, names, verdict
):
    rows = [(f"{row[0]}-{n}", *row[1:4]) for n in range(6) for row in ARENA]
    (folder / "v.csv").write_text(rows_of(("id", *names, verdict), rows))
    if names[0] == "system_a":
        status, text = checked(cli, "v.csv")
        assert (status, "wrong" in text, "words." in text) == (0, False, False)
    else:  # columns of other names are not guessed
        assert "also name system_a and system_b" in asked(cli, "v.csv")
    columns = {"item": "id", "vote": verdict, "system_a": names[0], "system_b": names[1]}
    frame = read_votes("v.csv", columns=columns).frame
    assert frame["vote"].to_list() == [row[4] for row in ARENA] * 6
    keys = ",".join(f"{name}={column}" for name, column in columns.items())
    assert cli("import", "v.csv", "--set", keys, "-o", "w.csv")[0] == 0
    assert pl.read_csv("w.csv")["vote"].to_list() == [row[4] for row in ARENA] * 6


def test_an_arena_whose_winners_are_named_is_read(folder, cli):
    rows = [row[:4] for row in ARENA]
    (folder / "v.csv").write_text(rows_of(("id", "model_a", "model_b", "winner"), rows))
    status, text = checked(cli, "v.csv")
    assert (status, "words." in text) == (0, False)
    assert cli("import", "v.csv", "-o", "w.csv")[0] == 0
    assert pl.read_csv("w.csv")["vote"].to_list() == [1, -1, 0, 1]  # of ant, the first by name


def test_a_name_that_is_a_side_too_is_refused_where_the_two_differ(folder):
    rows = {"item": [1, 2], "system_a": ["A", "B"], "system_b": ["B", "A"], "vote": ["A", "A"]}
    with pytest.raises(InputError) as caught:
        read_votes(rows)
    assert (caught.value.row, caught.value.got) == (2, "A")
    assert read_votes(rows, words={"A": "A", "B": "B"}).frame["vote"].to_list() == [1, 1]


@pytest.mark.parametrize("name", ["swapped", "flipped", "is_reversed", "was_switched", "AB swap"])
@pytest.mark.parametrize("verdict", ["winner", "vote"])
def test_a_column_that_may_say_the_order_is_asked_about(folder, cli, name, verdict):
    rows = [(item, vote, ("False", "True")[n % 2]) for n, (item, vote) in enumerate(VOTES)]
    (folder / "v.csv").write_text(rows_of(("item", verdict, name), rows))
    text = asked(cli, "v.csv")
    assert f"the words False, True in {name.lower()} are not AB or BA" in text
    assert "--set votes.orders.False=...,votes.orders.True=..." in text
    assert "words.a=first,words.b=second" in text


@pytest.mark.parametrize("number", ["0", "", "1.0"])
@pytest.mark.parametrize("word_column", ["stringValue", "label", "comment"])
def test_words_beside_a_number_that_never_varies_are_asked_about(folder, cli, number, word_column):
    rows = [(f"t{n}", "verdict", number, vote, "EVAL") for n, (_, vote) in enumerate(VOTES)]
    head = ("traceId", "name", "value", word_column, "source")
    (folder / "v.csv").write_text(rows_of(head, rows))
    assert f"--set vote={word_column.lower()}" in asked(cli, "v.csv")
    keys = f"item=traceid,vote={word_column}"
    assert cli("import", "v.csv", "--set", keys, "-o", "w.csv")[0] == 0
    assert pl.read_csv("w.csv")["vote"].to_list() == [1, 0, -1, 1] * 12
    unknown = [(*row[:3], ("good", "bad")[n % 2], "EVAL") for n, row in enumerate(rows)]
    (folder / "v.csv").write_text(rows_of(head, unknown))
    assert word_column.lower() in asked(cli, "v.csv")
    mixed = [*rows, *(("t9", "tone", n / 4, "", "EVAL") for n in range(3))]
    (folder / "v.csv").write_text(rows_of(head, mixed))
    assert word_column.lower() in asked(cli, "v.csv")


def test_words_beside_a_number_of_ours_or_of_each_criterion_are_asked_about(folder, cli):
    rows = [(f"t{n}", 0, vote) for n, (_, vote) in enumerate(VOTES)]
    (folder / "v.csv").write_text(rows_of(("item", "score", "verdict"), rows))
    assert "ties 25%" in checked(cli, "v.csv")[1]
    head = ("trace_id", "tone.score", "tone.label", "facts.score")
    (folder / "v.csv").write_text(rows_of(head, [(*row, n % 4) for n, row in enumerate(rows)]))
    assert "tone.label" in asked(cli, "v.csv")


def test_numbers_that_code_words_of_pairs_are_not_grades(folder, cli):
    codes = {"A": 0, "tie": 1, "B": 2}
    rows = [(f"t{n}", codes[vote], vote) for n, (_, vote) in enumerate(VOTES)]
    (folder / "v.csv").write_text(rows_of(("traceId", "value", "stringValue"), rows))
    assert "--set vote=stringvalue" in asked(cli, "v.csv")


def test_grades_beside_words_that_say_them_are_grades(folder, cli):
    rows = [(f"t{n}", 1 + n % 3, ("bad", "fair", "good")[n % 3], "x" * (n % 2)) for n in range(30)]
    (folder / "v.csv").write_text(rows_of(("trace_id", "score", "word", "arm"), rows))
    status, text = checked(cli, "v.csv")
    assert (status, "mean grade 2.00" in text) == (0, True)


@pytest.mark.parametrize("head", ["item,vote", "qid,winner", "item,label", "case,rating"])
def test_columns_that_are_not_used_are_named(folder, cli, head):
    rows = [(n, 1 + n % 3 if "rating" in head else "AB"[n % 2], n / 7, 3, "x") for n in range(24)]
    (folder / "v.csv").write_text(
        rows_of((*head.split(","), "latency", "context_quality", "note"), rows)
    )
    (line,) = (line for line in checked(cli, "v.csv")[1].splitlines() if "not used" in line)
    assert {"latency", "context_quality", "note"} <= {*line.replace(",", " ").split()}


def test_a_label_beside_votes_is_said_not_to_be_used(folder, cli):
    rows = [(n, "AB"[n % 2], "BA"[n % 2]) for n in range(24)]
    (folder / "v.csv").write_text(rows_of(("item", "vote", "label"), rows))
    assert "not used: label" in checked(cli, "v.csv")[1]


@pytest.mark.parametrize(
    ("column", "values", "criterion"),
    [
        ("context_precision", ("0.4999", "1.0"), "context_precision"),
        ("answer_similarity", ("0.3", "0.9"), "answer_similarity"),
        ("correctness/value", ("yes", "no"), "correctness"),
        ("tone/value", ("3", "5"), "tone"),
    ],
)
def test_columns_of_scores_of_other_tools_are_read(folder, cli, column, values, criterion):
    rows = [(f"r{n}", values[n % 2], values[n // 2 % 2]) for n in range(20)]
    (folder / "v.csv").write_text(rows_of(("trace_id", column, "faithfulness"), rows))
    text = checked(cli, "v.csv")[1]
    assert f"{criterion} 20" in text
    assert "faithfulness 20" in text


@pytest.mark.parametrize(
    "text",
    ["id,winner\na,A\nb,unsure\n", "id,winner,order\na,A,1\nb,B,2\n", "id,thing\na,0\nb,1\n"],
)
@pytest.mark.parametrize("options", [[], ["--save"], ["--json"]])
def test_check_ends_with_status_2_where_something_is_wrong(folder, cli, text, options):
    (folder / "v.csv").write_text(text)
    assert cli("check", "v.csv", *options)[0] == 2


# Ids


@pytest.mark.parametrize(
    ("of_votes", "of_labels", "difference"),
    [
        ("cafe\u0301-{}", "caf\u00e9-{}", "NFC"),
        ("Case-{}", "case-{}", "case"),
        ("a b-{}", "ab-{}", "blanks"),
        ("q\u200b-{}", "q-{}", "invisible"),
        ("007{}", "7{}", "leading zeros"),
        ("item-0{}", "item-{}", "leading zeros"),
    ],
)
@pytest.mark.parametrize("n_matching", [0, 6])
def test_ids_that_only_look_alike_are_named(
    folder, cli, of_votes, of_labels, difference, n_matching
):
    votes = [
        (of_labels.format(n) if n < n_matching else of_votes.format(n), vote)
        for n, vote in [(n, "AB"[n % 2]) for n in range(16) for _ in range(2)]
    ]
    labels = [(of_labels.format(n), "AB"[n % 2]) for n in range(16)]
    (folder / "v.csv").write_text(rows_of(("item", "vote"), votes), encoding="utf-8")
    (folder / "l.csv").write_text(rows_of(("item", "label"), labels), encoding="utf-8")
    status, out, err = cli("estimate", "v.csv", "l.csv")
    assert status == (2 if n_matching == 0 else 0)
    assert difference in out + err


@pytest.mark.parametrize("others", [("y", "x"), ("x", "z")], ids=["turned round", "another pair"])
def test_an_item_is_one_pair_with_the_same_a_in_all_rows(others):
    rows = {"item": ["q1", "q2", "q1"], "vote": ["A", "A", "B"]}
    rows |= {"system_a": ["x", "x", others[0]], "system_b": ["y", "y", others[1]]}
    column, got = ("system_a", "y") if others[0] == "y" else ("system_b", "z")
    with refused("columns", row=3, column=column, source="data frame", got=got):
        read_votes(rows)
    by_pair = read_votes(rows, columns={"item": ["item", "system_a", "system_b"]})
    assert len(by_pair.items()) == 3


@pytest.mark.usefixtures("quick_commands")
@pytest.mark.parametrize("command", ["evaluate", "votes", "estimate", "calibrate"])
def test_votes_of_0_and_1_alone_are_no_silent_guess(cli, folder, command):
    rows = [(f"q{n}", (n + k) % 2, n % 2) for n in range(24) for k in range(3)]
    frame = pl.DataFrame(rows, ["item", "vote", "label"], orient="row")
    frame.select("item", "vote").write_csv("v.csv")
    frame.select("item", "label").unique(maintain_order=True).write_csv("l.csv")
    files = ["v.csv"] if command == "votes" else ["v.csv", "l.csv"]
    said = "--set words.1=A --set words.0=tie"
    _, _, err = cli(command, *files)
    assert said in err
    _, _, err = cli(command, *files, *said.split())
    assert "0 and 1 alone" not in err


@pytest.mark.parametrize(
    ("votes", "words", "is_guess"),
    [
        ([0, 1], None, True),
        ([1, 1], None, True),
        (["0", "1.0"], None, True),
        ([0, 1], {"1": "A"}, True),
        ([0, 1], {"1": "A", "0": "tie"}, False),
        ([0, 1], {"1": "A", "0": "B"}, False),
        ([0, -1], None, False),
        (["A", "tie"], None, False),
    ],
)
def test_numbers_that_nobody_explained_are_remarked_in_python(votes, words, is_guess):
    read = read_votes({"item": ["x", "y"], "vote": votes}, words=words)
    labels = read_labels({"item": ["x", "y"], "label": [1, -1]})
    remarks = read.labelled(labels).origin.remarks
    assert any(remark.code == "guessed-numbers" for remark in remarks) == is_guess


STATED = "--set", "words.1=A", "--set", "words.0=tie"
BY_COMMAND = {
    "import": ("import", "v.csv", "-o", "i.csv"),
    "decide": ("decide", "model.json", "v.csv", "-o", "d.csv"),
    "compare": ("compare", "v.csv", "l.csv", "--first", "n=1", "--second", "n=2"),
    "certify": ("certify", "v.csv", "l.csv", "--agreement", "0.5"),
    "plan": ("plan", "model.json", "v.csv", "l.csv", "-n", "3"),
    "gate": ("gate", "v.csv", "l.csv", "--candidate", "ant", "--baseline", "bee", "--margin", ".9"),
}


@pytest.fixture
def of_0_and_1(folder):
    rows = [
        (f"q{n}", "ant", "bee", k, (n + k // 2) % 2, n % 3 - 1) for n in range(24) for k in range(3)
    ]
    columns = ["item", "system_a", "system_b", "sample", "vote", "label"]
    frame = pl.DataFrame(rows, columns, orient="row")
    frame.drop("label").write_csv("v.csv")
    frame.select("item", "label").unique(maintain_order=True).write_csv("l.csv")
    DavidsonModel(1.0, 0.0, 0.5).save("model.json")
    return frame


@pytest.mark.usefixtures("quick_commands")
@pytest.mark.parametrize("command", BY_COMMAND.values(), ids=BY_COMMAND)
def test_every_command_says_that_it_guessed(cli, of_0_and_1, command):
    _, _, err = cli(*command)
    assert err.count("0 and 1 alone") == 1, err
    _, out, err = cli(*command, *STATED)
    assert "0 and 1 alone" not in out + err
    of_0_and_1.with_columns(vote=1 - pl.col("vote")).vstack(
        of_0_and_1[:1].with_columns(item=pl.lit("q99"), vote=pl.lit(-1, pl.Int64))
    ).drop("label").write_csv("v.csv")
    _, out, err = cli(*command)
    assert "0 and 1 alone" not in out + err


def test_numbers_of_a_table_that_btdagg_wrote_are_its_own(cli, of_0_and_1):
    cli("import", "v.csv", "-o", "i.csv", *STATED)
    for command in (("votes", "i.csv"), ("check", "i.csv")):
        status, out, err = cli(*command)
        assert status == 0
        assert "0 and 1 alone" not in err
        assert "unknown words" not in out
    # Of another tool, a table is read anew by each command.
    assert "0 and 1 alone" in cli("votes", "v.csv", "--set", "votes.format=table")[2]


def test_labels_of_0_and_1_beside_votes_for_both_sides_are_read(cli, of_0_and_1):
    of_0_and_1.select("item", vote=pl.col("label")).write_csv("v.csv")
    of_0_and_1.select("item", label="vote").unique("item", maintain_order=True).write_csv("l.csv")
    status, _, err = cli("calibrate", "v.csv", "l.csv")
    assert status == 0
    assert "votes are 0 and 1 alone" not in err


@pytest.mark.parametrize("votes", [[1, 2], [0, 1, 2]])
def test_a_2_is_no_vote(cli, folder, votes):
    pl.DataFrame({"item": [f"q{v}" for v in votes], "vote": votes}).write_csv("v.csv")
    for command in (("votes", "v.csv"), ("import", "v.csv", "-o", "i.csv"), ("check", "v.csv")):
        assert cli(*command)[0] == 2


@pytest.mark.parametrize("content", ["", " \n\n"])
@pytest.mark.parametrize("name", ["votes.csv", "votes.jsonl", "votes.tsv"])
def test_a_file_without_a_row_is_refused_by_its_name(folder, cli, content, name):
    (folder / name).write_text(content)
    for read in (read_votes, read_labels):
        with pytest.raises(InputError, match=name):
            read(name)
    status, out, err = cli("votes", name)
    assert (status, out) == (2, "")
    assert name in err
    assert "bug" not in err
