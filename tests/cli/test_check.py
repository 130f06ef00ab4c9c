"""`btdagg check`: what is in a file, and a next command that runs."""

import json
import math
import random
import shlex
import tomllib

import polars as pl
import pytest

import btdagg
from btdagg import read_labels, read_votes
from btdagg.check import check
from btdagg.estimates import not_worse
from commands import one_line
from strangers import STRANGERS, topical
from tool_exports import EXPORTS

VOTES = "item,judge,order,vote\n" + "".join(
    f"q{n},{judge},{order},{vote}\n"
    for n in range(40)
    for judge in "xy"
    for order, vote in (("AB", "A" if n % 3 else "B"), ("BA", "tie" if n % 5 else ""))
)
LABELS = "item,rater,label\n" + "".join(
    f"q{n},{rater},{label}\n" for n in range(20) for rater, label in ((1, n % 3 - 1), (2, n % 2))
)
SCORES = "id,judge,score\n" + "".join(f"q{n},{j},{1 + n % 5}\n" for n in range(30) for j in "xy")
GRADES = "item,label\n" + "".join(f"q{n},{1 + (n + 1) % 5}\n" for n in range(30))
OURS = {"votes.csv": VOTES, "labels.csv": LABELS, "scores.csv": SCORES, "grades.csv": GRADES}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in OURS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_is_in_votes(folder):
    (own,) = check(["votes.csv"]).files
    assert (own.kind, own.format, own.problems) == ("votes", "btdagg", [])
    assert own.facts["items"] == 40
    assert own.facts["votes"] == 160 - 16
    assert own.facts["votes an item"] == [2, 4]
    assert own.facts["missing"] == 16
    assert own.facts["order"] == {"AB": 80, "BA": 80}
    assert own.facts["ties"] == pytest.approx(64 / 144)
    assert "votes; 40 items; 144 votes; 2 to 4 votes an item; 16 missing; judge: x 80" in str(own)


def test_what_is_in_labels(folder):
    (own,) = check(["labels.csv"]).files
    assert own.kind == "labels"
    assert own.facts["labels"] == 20
    assert (own.facts["raters"], own.facts["labels an item"]) == (2, [2])
    disagree = sum(n % 3 - 1 != n % 2 for n in range(20))
    assert own.facts["items on which raters disagree"] == disagree
    assert "of each, by a majority of raters" in own.facts


def test_what_labels_support(folder):
    checked = check(["votes.csv", "labels.csv"])
    assert checked.supports[0] == "20 items of 40 have votes and a label."
    values = (read_labels("labels.csv").labels + 1) / 2
    half = 1.96 * values.std(ddof=1) / math.sqrt(20)
    assert f"± {half:.2f}" in checked.supports[1]
    assert checked.command == "btdagg evaluate votes.csv labels.csv"


def test_labels_vary_by_groups_that_the_votes_of_one_task_tell(folder):
    rows = [(f"q{n}", "st"[n % 2], f"g{n // 10}" * (n % 2)) for n in range(40)]
    votes = "".join(f"{','.join(row)},A\n{','.join(row)},B\n" for row in rows)
    gold = "".join(f"q{n},{'A' if n < 20 else 'B'}\n" for n in range(40))
    (folder / "gold.csv").write_text("item,label\n" + gold)
    said = []
    for column in ("group", "topic"):
        (folder / "some.csv").write_text(f"item,task,{column},vote\n" + votes)
        said.append(check(["some.csv", "gold.csv"]).supports[1])
    assert said[0].startswith("40 labels alone give the win rate to within ± 0.2")
    assert said[1].startswith("40 labels alone give the win rate to within ± 0.16")


@pytest.mark.parametrize("lead", [3, 5])
def test_a_gate_is_said_as_the_gate_has_it(folder, lead):
    """It passes where the difference is large, whatever there are of labels."""
    rows = (f"q{n},{'A' if n % 6 < lead else 'B'}\n" for n in range(30))
    (folder / "gold.csv").write_text("item,label\n" + "".join(rows))
    text = check(["votes.csv", "gold.csv"]).supports[-1]
    votes, labels = read_votes("votes.csv"), read_labels("gold.csv")
    first = not_worse(votes, labels, candidate="A", baseline="B", margin=0.03)
    second = not_worse(votes, labels, candidate="B", baseline="A", margin=0.03)
    assert first.passed == (lead > 3)
    passing = [own.candidate for own in (first, second) if own.passed]
    assert f"{' and '.join(passing) or 'neither A nor B'} would pass" in text
    assert f"above {first.estimate - first.lower - 0.03:+.2f}. " in text
    assert f"That of A is {first.estimate:+.2f}: " in text


def test_labels_alone_say_what_they_tell_and_ask_for_votes(folder):
    alone, ask = check(["labels.csv"]).supports
    half = 1.96 * read_labels("labels.csv").labels.std(ddof=1) / 2 / math.sqrt(20)
    assert f"20 labels alone give the win rate to within ± {half:.2f}" in alone
    assert ask == "Next, get a judge's votes on these items, and name their file too."


def test_grades_are_read_on_one_scale(folder):
    checked = check(["scores.csv", "grades.csv"])
    assert checked.files[0].facts["mean grade"] == pytest.approx(3)
    assert (
        checked.command
        == "btdagg evaluate scores.csv grades.csv --set votes.scale=1-5 --set labels.scale=1-5"
    )
    assert checked.supports[-2:] == (
        (
            "scores.csv does not say its scale and has 1 to 5, so 1-5 is assumed; for another "
            "scale use --set votes.scale=..."
        ),
        (
            "grades.csv does not say its scale and has 1 to 5, so 1-5 is assumed; for another "
            "scale use --set labels.scale=..."
        ),
    )
    assert "the mean grade to within ±" in checked.supports[1]
    (alone,) = check(["grades.csv"]).files
    assert alone.facts["of each"] == dict.fromkeys("12345", 6)


def test_counts_are_read_as_votes(folder, cli, quick_commands):
    """Of grades their columns are the scale, and each judge has as many votes as are counted."""
    columns = {"judge": ["one", "two", "two"] * 20, "1": [2, 3, 1] * 20, "2": [2, 1, 3] * 20}
    counts = pl.DataFrame({"item": [*range(60)], **columns})
    labels = pl.DataFrame({"item": [*range(60)], "label": [1, 1, 2] * 20})
    counts.write_csv(folder / "counts.csv")
    labels.write_csv(folder / "gold.csv")
    checked = check(["counts.csv", "gold.csv"])
    assert checked.files[0].facts["votes"] == 240
    assert checked.files[0].facts["judge"] == {"two": 160, "one": 80}
    assert "counts.csv does not say its scale and has columns 1 to 2" in str(checked)
    status, _, err = cli(*shlex.split(checked.command)[1:])
    assert status == 0, err
    assert not any("evaluate" in command for command in checked.questions.values())
    status, out, _ = cli("votes", "counts.csv", "--set", "votes.scale=1-2", "--json")
    assert [row["n_votes"] for row in json.loads(out)["votes"]] == [80, 160]
    # Grades by raters are no counts, nor are columns of one number or of years.
    for first, second, name in (
        (range(60), [1] * 60, "2"),
        ([0.5] * 60, [1] * 60, "2"),
        ([0, 1] * 30, [1] * 60, "2"),
        ([2] * 60, [2] * 60, "1.0"),
    ):
        other = pl.DataFrame({"item": [*range(60)], "1": first, name: second})
        other.write_csv(folder / "raters.csv")
        assert check(["raters.csv"]).files[0].kind == "unknown"
    refused = one_line(*cli("estimate", "counts.csv", "gold.csv"))
    assert "if columns 1, 2 count the votes for grades" in refused
    assert "--set votes.scale=1,2" in refused


def test_criteria_are_looked_at_one_by_one(folder):
    rows = [(f"q{n}", name, 1 + (n + k) % 5) for n in range(20) for k, name in enumerate("xyz")]
    votes = "item,criterion,score\n" + "".join(f"{i},{name},{g}\n" for i, name, g in rows)
    labels = "item,criterion,label\n" + "".join(
        f"{i},{name},{g}\n" for i, name, g in rows if name != "z"
    )
    (folder / "criteria.csv").write_text(votes)
    (folder / "gold.csv").write_text(labels)
    checked = check(["criteria.csv", "gold.csv"])
    assert checked.files[0].facts["items"] == 20
    assert checked.files[0].facts["votes an item"] == [1]
    assert checked.supports[:2] == (
        "20 items of 20 have votes and a label.",
        "No item of z has a label.",
    )


def test_votes_of_pass_and_fail_are_grades(folder):
    text = "".join(f"q{n},{'pass' if n % 3 else 'Fail'}\n" for n in range(30))
    (folder / "verdicts.csv").write_text("item,vote\n" + text)
    (folder / "passing.csv").write_text("item,label\n" + text)
    checked = check(["verdicts.csv", "passing.csv"])
    assert (
        checked.command
        == "btdagg evaluate verdicts.csv passing.csv --set votes.scale=0,1 --set labels.scale=0,1"
    )
    assert not [line for line in checked.supports if "scale" in line]
    assert "the pass rate to within ±" in checked.supports[1]


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        (("meh", "A", "B"), "meh"),
        (("gpt-4", "claude", "both"), "gpt-4, claude, both"),
        (("0", "1", "1"), "0, 1"),
    ],
)
def test_unknown_words_are_never_guessed(folder, words, unknown):
    """Nor is it said of 0 and 1, without -1, which response they are."""
    (folder / "file.csv").write_text(f"qid,winner\nc1,{words[0]}\nc2,{words[1]}\nc3,{words[2]}\n")
    checked = check(["file.csv"])
    assert checked.command == ""
    assert f"unknown words {unknown} in winner" in str(checked)
    to_fill = ",".join(f"votes.words.{word}=..." for word in unknown.split(", "))
    assert str(checked).splitlines()[-1] == (
        "Next, fill in each ... (words: A, B, tie or missing): "
        f"btdagg check file.csv --set {to_fill}"
    )


# Exports of other tools


def next_of(cli, *files):
    """Run a check, then the command that it prints; return what the two print."""
    status, out, _ = cli("check", *files)
    assert status == 0
    (command,) = (line for line in out.splitlines() if line.startswith("Next: "))
    status, printed, err = cli(*shlex.split(command)[2:])
    assert (status, "Error" in err) == (0, False), err
    return out, command, printed


# Tables whose columns and words are known, which every command reads without an import.
READ_AS_THEY_ARE = {"prolific", "weave", "langfuse", "mlflow", "vertex"}


@pytest.mark.parametrize("name", EXPORTS)
def test_exports_of_other_tools(folder, cli, quick_commands, name):
    """The command that is printed runs, and so does the project file that is saved."""
    file, text, kind, part = EXPORTS[name]
    (folder / file).write_text(text)
    if kind == "labels" and check([file]).files[0].options and not check([file]).command:
        out, command = cli("check", file)[1], ""  # read as they are, and no votes to go on with
    else:
        out, command, _ = next_of(cli, file)
    assert out.startswith(f"{file}: {kind} in the format ")
    assert part in out
    assert "wrong" not in out
    is_read = name in READ_AS_THEY_ARE
    assert command.startswith(f"Next: btdagg import {file}") != is_read
    written = file if is_read else command.split()[-1]
    assert cli("check", file, "--save")[0] == 0
    if kind == "votes":
        status, _, err = cli("votes")
        assert status == 0 or ": fill in the ..." in err, err
        project = btdagg.Project.load() if is_read else None
        assert check([written], project).command.startswith(f"btdagg choose {written}")
    else:
        project = btdagg.Project.load()
        assert project.read(("labels", project.place("labels")))[0].height
        (again,) = check([written], project if is_read else None).files
        facts = str(again).split(": ", 1)[1].split("; ", 1)[1]
        assert facts.removesuffix(".") in out  # what was left out stands there too


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("vicuna80", ""),
        ("rb2_scores", " --set votes.scale=1-10 --set labels.scale=0,1"),
        ("rubric", " --set votes.scale=1-4 --set labels.scale=1-4"),
    ],
)
def test_real_votes_and_labels(shared, name, options):
    place = shared / "data" / name
    (votes,) = place.glob("votes.*")
    checked = check([votes, place / "labels.csv"])
    n_labels = pl.read_csv(place / "labels.csv").height
    assert checked.files[1].facts["labels"] == n_labels
    assert checked.supports[1].startswith(f"{n_labels:,} labels alone give the ")
    assert checked.command == f"btdagg evaluate {votes} {place / 'labels.csv'}{options}"


def test_real_labels_that_are_not_there_and_people_alone(shared):
    files = [shared / "data/mtbench_order" / name for name in ("votes.csv", "labels.csv")]
    checked = check(files)
    assert checked.files[1].problems == [f"{files[1]}: every label is missing"]
    (own,) = check([shared / "data/wmt23/ratings_ende.csv"]).files
    assert (own.facts["raters"], own.facts["labels an item"]) == (10, [3])
    assert own.facts["items on which raters disagree"] == 318


def test_columns_of_ones_own_beside_labels(folder, cli, quick_commands):
    (folder / "mine.csv").write_text(
        VOTES.replace("item,judge,order,vote", "qid,grader,order,winner")
    )
    _, command, _ = next_of(cli, "mine.csv", "labels.csv")
    columns = "--set votes.item=qid,votes.vote=winner,votes.judge=grader"
    assert command == f"Next: btdagg evaluate mine.csv labels.csv {columns}"


def test_nothing_is_overwritten(folder):
    (folder / "to_label.csv").write_text(LABELS)
    assert " -o new_to_label.csv" in check(["votes.csv"]).command
    (folder / "pair.jsonl").write_text(EXPORTS["mt-bench-pairs"][1])
    (folder / "votes.parquet").touch()
    assert check(["pair.jsonl"]).command == "btdagg import pair.jsonl -o new_votes.parquet"


# What is wrong

PAIRS = EXPORTS["mt-bench-pairs"][1]
BROKEN = {
    "empty.csv": ("", "empty file"),
    "header.csv": ("item,vote\n", "no rows"),
    "binary.csv": (b"\x89PNG\r\n\x1a\n\x00\xff" * 9, "not UTF-8 text"),
    "binary.parquet": (b"\x89PNG" * 9, "Parquet"),
    "cut.jsonl": (PAIRS[:-40], "row 30"),
    "cut.parquet": (None, "Parquet"),
    "columns.csv": ("item,item,vote\nq1,q1,A\n", "two columns are called 'item'"),
    "page.csv": ("<!doctype html>\n<title>Sign in</title>\n", "no commas between values in '<!doc"),
    "folder": (None, "no file to import in this folder"),
    "nulls.csv": ("item,vote\nq1,\nq2,\n", "every vote is missing"),
    "words.csv": ("item,vote\nq1,maybe\n", "row 1, column vote: got 'maybe'"),
    "huge.csv": (f"item,vote\nq1,{'x' * 10**6}\n", "row 1, column vote: got 'xxx"),
    "wide.csv": (f"foo,{'x' * 10**6}\n1,2\n", "no column is named like"),
    "judged.jsonl": (PAIRS.replace('"tie"', '"both"', 1), "g1_winner: got 'both'"),
    "short.csv": ("item,vote\na\nb,A\n", "number of values"),
    "counts.csv": ("item,minus,tie,plus\na,1,-2,0\n", "column tie"),
    "order.csv": ("item,vote,order\na,A,XY\n", "column order"),
    "twice.csv": ("item,label\na,1\na,-1\n", "both have item"),
    "points.jsonl": ('{"item": "a", "score": "x"}\n', "row 1, column score: got 'x'"),
    "prose.csv": ("qid,winner\n" + "".join(f"{k},w{k}\n" for k in range(20)), "20 different"),
    "nofile.csv": (None, "no such file"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_wrong_is_said_in_a_sentence(folder, cli, name):
    content, part = BROKEN[name]
    if name == "cut.parquet":
        pl.DataFrame({"item": ["q1"] * 50, "vote": ["A"] * 50}).write_parquet(folder / name)
        content = (folder / name).read_bytes()[:-9]
    if name == "folder":
        (folder / name).mkdir()
    elif content is not None:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    status, out, err = cli("check", name)
    assert status == 2 or (status == 0 and "  wrong: " in out), err
    assert part in out + err
    assert "Traceback" not in out + err
    assert len(out + err) < 1200
    assert "Next: " not in out
    checked = check(["votes.csv", name])
    assert part in checked.files[1].problems[0]
    assert checked.command == ""


def test_labels_of_no_item(folder):
    (folder / "other.csv").write_text(LABELS.replace("\nq", "\np"))
    checked = check(["votes.csv", "other.csv"])
    (problem,) = checked.files[1].problems
    assert problem.startswith("no item has both: the 20 labels are of 'p0', where votes have 'q0'")
    assert "--set votes.item=... or --set labels.item=..." in problem
    assert (checked.supports, checked.command) == ((), "")


def test_few_labels_support_nothing_yet(folder, cli):
    (folder / "few.csv").write_text(LABELS[: LABELS.index("q9")])
    out, command, _ = next_of(cli, "votes.csv", "few.csv")
    assert "9 labels: too few to calibrate on; 10 are the fewest." in out
    assert command.startswith("Next: btdagg choose votes.csv")


def test_check_prints_or_gives_json(folder, cli):
    status, out, _ = cli("check", "votes.csv", "labels.csv")
    assert status == 0
    assert out.splitlines()[-1] == "Next: btdagg evaluate votes.csv labels.csv"
    status, out, _ = cli("check", "votes.csv", "labels.csv", "--json")
    assert json.loads(out)["files"][0]["facts"]["items"] == 40


def test_people_and_orders_in_own_words(folder):
    (folder / "own.csv").write_text("id,judge,shown_first,verdict\nq1,m,new,a\nq1,m,old,b\n")
    (folder / "people.csv").write_text("id,reviewer,verdict\nq1,Ada,A\nq1,Ben,same\n")
    (folder / "gold_set.csv").write_text("id,preferred\nq1,new\n")
    order, people, gold = (check([f"{name}.csv"]) for name in ("own", "people", "gold_set"))
    assert "the words new, old in shown_first are not AB or BA" in str(order)
    assert order.files[0].command.endswith(" --set votes.orders.new=...,votes.orders.old=...")
    assert people.files[0].kind == "labels"
    assert people.files[0].options == [
        "--set labels.item=id,labels.label=verdict,labels.rater=reviewer"
    ]
    assert gold.files[0].keys["label"] == "preferred"
    assert gold.files[0].command == "btdagg check gold_set.csv --set labels.words.new=..."


# The project file


def scores(of_people):
    """Scores by conversation and bot for two criteria; people's are means of three."""
    rng, rows = random.Random(0), []
    for item in range(40):
        for bot in ("new", "old"):
            for aspect, top in (("facts", 1), ("tone", 3)):
                grades = [max(rng.randint(top == 3, top), int(top == 3)) for _ in range(3)]
                key = f"c{item},{bot},{aspect}"
                if of_people:
                    mean = "" if item > 29 else round(sum(grades) / 3, 4)
                    rows.append(f"{key},{mean}\n")
                else:
                    rows += [f"{key},g,{run},{grade}\n" for run, grade in enumerate(grades)]
    return "".join(rows)


@pytest.mark.usefixtures("quick_commands")
def test_a_key_of_two_columns_and_scales_of_criteria_are_saved(cli, folder):
    (folder / "s.csv").write_text("conversation,bot,aspect,model,run,rating\n" + scores(False))
    (folder / "human.csv").write_text("conversation,bot,aspect,avg\n" + scores(True))
    status, out, err = cli("check", "s.csv", "human.csv", "--save")
    assert (status, err) == (0, "wrote btdagg.toml\n")
    assert "means of raters" in out
    assert "There are fewer than 10 labels for" not in out
    commands = [line.strip() for line in out.splitlines() if line.startswith("    btdagg ")]
    keys = tomllib.loads((folder / "btdagg.toml").read_text())
    assert keys["votes"]["item"] == keys["labels"]["item"] == ["conversation", "bot"]
    assert keys["votes"]["scale"] == keys["labels"]["scale"] == {"facts": "0,1", "tone": "1-3"}
    assert (keys["labels"]["label"], keys["votes"]["system"]) == ("avg", "bot")
    assert keys["votes"]["judge"] == "model"
    assert [command.split()[1] for command in commands] == [
        *("estimate", "estimate", "gate", "compare", "certify", "calibrate", "evaluate")
    ]
    for command in commands:  # each runs as printed
        assert cli(*shlex.split(command)[1:])[0] in (0, " gate " in command), command
    assert out.endswith("    ... --filter criterion=tone\n")
    rows = pl.read_csv("s.csv")
    said = pytest.warns(btdagg.model.CalibrationWarning, match="raters disagree|approximate")
    with said as caught:
        tried = btdagg.decide(btdagg.Project.load(), criterion="facts", agreement=0.5)
    assert {warning.filename for warning in caught} == {__file__}
    assert rows.select("conversation", "bot").unique().height == tried.height == 80
    assert tried.columns == ["conversation", "bot", "label", "source", "probability", "trusted"]
    of_facts = [
        pl.read_csv(name).filter(aspect="facts").rename({value: value.upper()})
        for name, value in (("s.csv", "rating"), ("human.csv", "avg"))
    ]
    how = {
        "columns": {"item": ["conversation", "bot"], "score": "RATING", "label": "AVG"},
        "scale": btdagg.PASS_FAIL,
        "label_scale": btdagg.PASS_FAIL,
    }
    with pytest.warns(btdagg.model.CalibrationWarning, match="raters disagree"):
        later = btdagg.decide(of_facts[0].lazy(), of_facts[1], **how).collect()
    assert later.equals(tried.drop("trusted"))
    # A file of decisions has the user's key.
    out = cli("decide", "model.json", "-f", "criterion=facts")[1]
    assert pl.read_csv(out.encode()).columns[:2] == ["conversation", "bot"]
    for criterion, what in (("facts", "pass rate"), ("tone", "mean grade")):
        status, out, _ = cli("estimate", "-f", f"criterion={criterion}", "--json")
        assert (status, json.loads(out)["n_labels"]) == (0, 60)
        assert what in json.loads(out)["estimates"]
    # It is written again as it is edited; a comment is kept unless forced.
    assert cli("check", "s.csv", "human.csv", "--save")[0] == 0
    text = (folder / "btdagg.toml").read_text()
    (folder / "btdagg.toml").write_text(text.replace('tone = "1-3"', 'tone = "0-3"'))
    status, out, err = cli("check", "--save")
    assert (status, err) == (0, "project: btdagg.toml\nwrote btdagg.toml\n")
    assert (folder / "btdagg.toml").read_text() == text.replace('tone = "1-3"', 'tone = "0-3"')
    (folder / "btdagg.toml").write_text(text + "# mine\n")
    status, out, err = cli("check", "s.csv", "human.csv", "--save")
    assert (status, err.splitlines()[-1]) == (
        2,
        "btdagg: btdagg.toml exists and differs; --force replaces it",
    )
    assert "-# mine\n" in out
    assert cli("check", "s.csv", "human.csv", "--save", "--force")[0] == 0
    assert (folder / "btdagg.toml").read_text() == text


@pytest.mark.parametrize(
    ("votes", "question", "answer"),
    [
        (
            "id,score\n" + "".join(f"{k},{2 + k % 3}\n" for k in range(30)),
            'votes are from 2 to 4; what is their scale: "1-4" or "1-5"?',
            '"1-5"',
        ),
        (
            "id,score\n" + "".join(f"{k},{(0, 1, 4)[k % 3]}\n" for k in range(30)),
            'votes are from 0 to 4; what is their scale: "0-4" or "0-5"?',
            '"0,1,4"',
        ),
        (
            "q,model,score\n" + "".join(f"{k},{m},{1 + k % 5}\n" for k in range(30) for m in "xy"),
            (
                "the model may be the author of the response (--set "
                "votes.item=question_id+model), or the judge (--set "
                "votes.item=question_id,votes.judge=model)"
            ),
            '["question_id", "model"]',
        ),
        (
            "id,winner\n" + "".join(f"{k},{'meh' if k % 2 else 'A'}\n" for k in range(30)),
            "unknown words meh in winner: A, B, tie or missing",
            '"tie"',
        ),
    ],
    ids=["range", "gaps", "model", "word"],
)
def test_what_is_not_certain_is_left_open_and_said(cli, folder, votes, question, answer):
    (folder / "s.csv").write_text(votes.replace("q,", "question_id,", 1))
    status, out, _ = cli("check", "s.csv", "--save")
    assert status == (2 if "wrong" in out else 0)
    *_, head, last = out.splitlines()
    assert head == "Next, fill in each ... in btdagg.toml:"
    text = (folder / "btdagg.toml").read_text()
    key, _, what = last.strip().partition(": ")
    assert key.startswith("votes.")
    assert what == question
    assert "#" not in text.replace("#:schema", "")
    (line,) = (line for line in text.splitlines() if line.endswith(' = "..."'))
    assert line.startswith(key.rpartition(".")[2])
    status, _, err = cli("votes")
    assert status == 2
    assert err.splitlines()[-1].startswith("btdagg: btdagg.toml, line "), err
    assert ": fill in the ..." in err
    (folder / "btdagg.toml").write_text(text.replace('"..."', answer))
    status, _, err = cli("votes", *(["--set", "votes.scale=1-5"] if "author" in question else []))
    assert status == 0, err


def test_systems_with_few_labels_are_named(folder):
    (folder / "labels.csv").write_text(
        "item,system,label\n"
        + "".join(f"{k},{'new' if k < 4 else 'old'},{k % 3 - 1}\n" for k in range(40))
    )
    assert "There are fewer than 10 labels for new." in check(["labels.csv"]).supports


@pytest.mark.parametrize("name", STRANGERS)
def test_a_table_of_a_stranger_is_estimated_or_asked_about(cli, folder, name):
    for file, text in zip(("s.csv", "human.csv"), STRANGERS[name], strict=True):
        (folder / file).write_text(text, newline="")
    checked = cli("check", "s.csv", "human.csv", "--save")
    if name in ("empty headers", "bare carriage returns"):
        assert checked[0] == 2
        assert checked[1].count("wrong: s.csv") == 1
        return
    asks = '= "..."' in (folder / "btdagg.toml").read_text()
    where = ["-f", "criterion=tone"] if name == "wide" else []
    status, _, err = cli("estimate", *where)
    assert status == (2 if asks else 0), err
    assert (": fill in the ..." in err) == asks


def test_dialogues_of_a_stranger_are_found(cli, folder, shared):
    files = topical(shared / "data" / "topical", folder)
    status, out, _ = cli("check", *files, "--save")
    assert status == 0
    assert "engagingness: 328 items have 8 votes, 28 have 6 to 7, such as 'd" in out
    keys = tomllib.loads((folder / "btdagg.toml").read_text())["votes"]
    assert keys["item"] == ["conversation", "bot"]
    assert keys["scale"] == {"engagingness": "1-3", "groundedness": "0,1"}
    assert (keys["judge"], keys["system"]) == ("model", "bot")
    command = "estimate --systems auto --filter criterion=engagingness"
    assert f"\n    btdagg {command}\n" in out
    status, out, _ = cli(*command.split())
    assert (status, out[:20]) == (0, "New Human Generated ")
