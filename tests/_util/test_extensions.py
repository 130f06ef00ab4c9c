"""What installed packages add: looked up late, and refused by the name of the package."""

import importlib.metadata
import io
import json
import shlex
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.formats import FORMATS, read
from btdagg.judge.provider import JUDGES, ModelClient, client_of
from btdagg.methods import FunctionMethod, by_name
from btdagg.methods.registry import AGGREGATORS
from extension import Installed, install
from refusals import refused

PROJECT = """
[project]
name = "{name}"
version = "1.0"

[project.entry-points."{group}"]
{points}
"""


@pytest.fixture
def package(tmp_path):
    """Install a package with a module and entry points of a group."""
    installed = Installed(tmp_path / "site")

    def package(group, points, code, name="kit"):
        project = tmp_path / name
        (project / "src").mkdir(parents=True)
        written = "\n".join(f'{key} = "{value}"' for key, value in points.items())
        (project / "pyproject.toml").write_text(
            PROJECT.format(name=name, group=group, points=written)
        )
        (project / "src" / f"{name}.py").write_text(code)
        install(project, installed.target)

    yield package
    installed.close()


@pytest.fixture
def no_look_up(monkeypatch):
    """Packages must not be looked up."""

    def refuse(group):
        assert not group.startswith("btdagg."), "installed packages were looked up"
        return ()

    monkeypatch.setattr(importlib.metadata, "entry_points", refuse)


METHOD = "def method(counts, labels, new_counts, scale, label_scale):\n    return {}\n"


def test_a_built_in_name_looks_up_no_package(no_look_up, cli, folder):
    assert by_name(["majority"])[0].name == "majority vote"
    assert read({"item": ["x"], "vote": ["A"]}, "table").n_votes == 1
    assert type(client_of("simulated")).__name__ == "SimulatedClient"
    assert isinstance(client_of("openai:gpt-5.4"), ModelClient)
    assert cli("evaluate", "--help")[0] == 0


def test_a_package_is_imported_where_its_name_is_asked_for(package):
    package("btdagg.methods", {"late": "kit:method"}, "raise OSError('no disk')")
    assert list(AGGREGATORS)[-1] == "late"
    assert len(AGGREGATORS) == len(list(AGGREGATORS))
    with pytest.raises(btdagg.InputError, match=r"expected one of neighbours, .*, late$"):
        by_name(["other"])
    with pytest.raises(
        btdagg.InputError,
        match=r"^package kit: late = kit:method of btdagg.methods cannot be imported: OSError",
    ):
        by_name(["late"])


def test_a_name_that_is_taken_is_refused(package):
    package("btdagg.formats", {"table": "kit:read"}, "def read(content): ...")
    assert FORMATS["table"].name == "table"
    with pytest.raises(btdagg.InputError, match=r"^package kit: table = kit:read of "):
        list(FORMATS)


def test_names_are_found_in_any_case(package):
    package("btdagg.methods", {"Upper": "kit:method"}, METHOD.format("new_counts[:, 0] * 0"))
    assert list(AGGREGATORS)[-1] == "upper"
    assert [method.name for method in by_name(["UPPER", "Majority"])] == ["upper", "majority vote"]


def test_two_packages_of_one_name_are_refused(package):
    package("btdagg.judges", {"mine": "kit:ask"}, "def ask(request): ...")
    package("btdagg.judges", {"mine": "other:ask"}, "def ask(request): ...", name="other")
    with pytest.raises(btdagg.InputError, match=r"kit: mine .* and .* other: |other: .* kit: "):
        client_of("mine")


@pytest.mark.parametrize("code", ["method = 3", "def method(counts, labels): ..."])
def test_what_is_no_such_function_is_refused(package, code):
    package("btdagg.methods", {"odd": "kit:method"}, code)
    with pytest.raises(
        btdagg.InputError,
        match=r"^package kit: .* is not a function of counts, labels, new_counts, scale,",
    ):
        by_name(["odd"])


def test_an_error_of_a_package_names_it(package):
    package("btdagg.methods", {"odd": "kit:method"}, METHOD.format("1 / 0"))
    (method,) = by_name(["odd"])
    with pytest.raises(btdagg.InputError, match=r"^package kit: .*: ZeroDivisionError: division"):
        method.fit([[0, 1, 3]], [1]).decide([[0, 1, 3]])


# Methods


def answering(answer, **scales):
    method = FunctionMethod(lambda *_: answer, "m", **scales)
    return method.fit([[0, 1, 3]], [1])


def test_a_method_gets_items_with_votes_and_both_scales():
    seen = []
    function = lambda *arguments: seen.append(arguments) or np.zeros(len(arguments[2]))  # noqa: E731
    scale, label_scale = btdagg.Scale(range(1, 4)), btdagg.PASS_FAIL
    method = FunctionMethod(function, "m", scale=scale, label_scale=label_scale)
    method.fit([[1, 0, 1], [0, 0, 2]], [0, 1]).decide([[0, 4, 0]])
    counts, labels, new_counts, *scales = seen[0]
    assert counts.tolist() == [[1, 0, 1], [0, 0, 2]]
    assert labels.tolist() == [0, 1]
    assert new_counts.tolist() == [[0, 4, 0]]
    assert scales == [scale, label_scale]


@pytest.mark.parametrize("kind", ["vote", "score"])
def test_all_methods_are_those_of_packages_too(package, cli, folder, quick_commands, kind):
    package("btdagg.methods", {"middle": "kit:method"}, METHOD.format("[2.0] * len(new_counts)"))
    rows = {"item": [n // 2 for n in range(60)], kind: [n % 3 + 1 for n in range(60)]}
    labels = {"item": range(30), "label": [n % 3 + 1 for n in range(30)]}
    options = ["--set", "votes.scale=1-3", "--set", "labels.scale=1-3"]
    if kind == "vote":
        rows[kind] = [value - 2 for value in rows[kind]]
        labels["label"], options = [value - 2 for value in labels["label"]], []
    pl.DataFrame(rows).write_csv("votes.csv")
    pl.DataFrame(labels).write_csv("labels.csv")
    status, out, err = cli("evaluate", "votes.csv", "labels.csv", "--methods", "all", *options)
    assert status == 0, err
    assert "middle" in out
    assert "majority vote" in out


def test_expected_labels_become_the_nearest_ones():
    labels = answering([0.4, -0.6, 0.5]).decide([[0, 1, 3]] * 3)
    assert labels.tolist() == [0, -1, 0]
    assert labels.dtype == np.int8
    items = answering([0.9]).decide([[0, 0, 0], [0, 1, 3]])  # without votes, in the middle
    assert items.tolist() == [0, 1]


def test_probabilities_become_their_median():
    probabilities = [[0.2, 0.2, 0.6], [0.5, 0.2, 0.3], [0.4, 0.3, 0.3], [1, 0, 0]]
    labels = answering(probabilities).decide([[0, 1, 3]] * 4)
    assert labels.tolist() == [1, 0, 0, -1]  # half is as near to a tie
    model = btdagg.DavidsonModel(beta=0.8, eta0=0.3, gamma=0.2)
    counts = np.random.default_rng(0).integers(0, 6, (500, 3))
    counts = counts[counts.any(axis=1)]
    assert (answering(model.predict_proba(counts)).decide(counts) == model.decide(counts)).all()


@pytest.mark.parametrize("answer", [[1.0, 2.0], [[0.5, 0.5]], [np.nan], 1.0])
def test_an_answer_of_another_shape_is_refused(answer):
    with refused("what m returns") as error:
        answering(answer).decide([[0, 1, 3]])
    assert error.value.expected.startswith("(1,) expected")


def test_a_method_needs_a_fit():
    with pytest.raises(btdagg.InputError, match=r"m is not fitted"):
        FunctionMethod(lambda *_: [], "m").decide([[0, 1, 3]])


def test_values_are_rescaled_from_end_to_end():
    values = np.array([1, 5.5, 10])
    assert btdagg.Scale(range(1, 11)).rescaled(values, btdagg.PAIRS).tolist() == [-1, 0, 1]


# Formats


ROWS = """
def rows(content):
    document = content.document or {}
    return document.get("runs")
"""


def test_rows_of_a_format_are_read_as_a_table(package, tmp_path):
    package("btdagg.formats", {"kit": "kit:rows"}, ROWS)
    file = tmp_path / "run.json"
    file.write_text('{"runs": [{"item": "x", "vote": "A"}, {"item": "y", "vote": "meh"}]}')
    with refused("words", row=2, column="vote", source="run.json in the format kit", got="meh"):
        read(file)
    imported = read(file, words={"meh": "tie"})
    assert imported.formats == ("kit",)
    assert imported.frame["vote"].to_list() == [1, 0]
    file.write_text('{"runs": [{"item": "x", "score": 3}, {"item": "y", "score": "n/a"}]}')
    assert read(file, "kit").frame["score"].to_list() == [3, None]


def test_a_format_of_a_package_comes_before_any_table(package):
    package("btdagg.formats", {"kit": "kit:rows"}, "def rows(content):\n    return []\n")
    pairs = pl.DataFrame({"item": ["x"], "vote": ["A"]})
    with pytest.raises(btdagg.InputError, match=r"no rows"):
        read(pairs)
    assert read(pairs, "table").n_votes == 1


LOG = """
import json
from pathlib import Path

def log(file):
    if "run" not in file.columns:
        return None
    with Path("calls.txt").open("a") as calls:
        calls.write("x")
    return [
        {"item": row["run"]["case"], "vote": row["run"]["winner"]}
        for row in file.objects() if "run" in row
    ]
"""


@pytest.fixture
def log(package, folder):
    """Write a file of JSON lines, whose tool a package reads, with labels beside it."""
    package("btdagg.formats", {"log": "kit:log"}, LOG)
    labels = "".join(f"q{n},{'AB'[n % 2]}\n" for n in range(12))
    Path("labels.csv").write_text(f"item,label\n{labels}")

    def log(*winners, first='{"tool": "log"}\n', last=""):
        runs = [{"run": {"case": f"q{n}", "winner": word}} for n, word in enumerate(winners)]
        text = first + "".join(json.dumps(run) + "\n" for run in runs) + last
        Path("log.jsonl").write_text(text)
        return text

    return log


ALL = "AAABABBTABBA".replace("T", "B")


def test_a_header_line_does_not_hide_the_columns(log):
    log(*ALL)
    assert read("log.jsonl").formats == ("log",)


@pytest.mark.parametrize("words", ["check log.jsonl", "import log.jsonl -o votes.csv"])
def test_a_format_reads_a_file_once(log, cli, words):
    log(*ALL)
    status, out, err = cli(*words.split())
    assert status == 0, err
    assert "log" in out
    assert Path("calls.txt").read_text() == "x"


def test_a_format_is_read_from_standard_input(log, cli, monkeypatch):
    text = log(*ALL)
    commands = ["check -", "import - -o votes.csv"]
    commands += ["evaluate - labels.csv --methods majority --set votes.format=log"]
    for command in commands:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        status, out, err = cli(*command.split())
        assert status == 0, err
        assert "12" in out


def test_a_command_names_the_key_that_reads_a_format(log, cli):
    log(*ALL)
    votes = "evaluate log.jsonl labels.csv --methods majority"
    status, _, err = cli(*votes.split())
    assert status == 2
    assert "log.jsonl: a file in the format log; --set votes.format=log reads it" in err
    # Of files that do not have it a format says nothing, unless none has it.
    for key in ("votes.format=log", "format=log"):
        assert cli(*votes.split(), "--set", key)[0] == 0
    Path("votes.csv").write_text(Path("labels.csv").read_text().replace("label", "vote"))
    status, _, err = cli("evaluate", "votes.csv", "labels.csv", "--set", "format=log")
    assert (status, err) == (2, "btdagg: votes.csv: not in the format log; it has item, vote\n")
    Path("model.json").write_text("{}")
    status, _, err = cli("decide", "log.jsonl", "model.json")
    assert "log.jsonl: not JSON" in err
    assert err.endswith("expected a model, not a table such as votes\n")


def test_check_says_how_to_import_unknown_words(log, cli):
    log(*ALL, "lft")
    status, out, _ = cli("check", "log.jsonl")
    assert status == 2
    assert "log.jsonl in the format log, row 13, column vote: got 'lft'" in out
    assert "unknown: 'lft' in 1 row; say what they mean in --set words.lft=...:" in out
    command = out.rpartition("Next, fill in each ... ")[2].partition(": btdagg ")[2]
    assert cli(*shlex.split(command.replace("...", "A")))[0] == 0
    cli("check", "log.jsonl", "--save")
    project = Path("btdagg.toml").read_text().replace('lft = "..."', 'lft = "A"')
    Path("btdagg.toml").write_text(project)
    status, _, err = cli("calibrate", "log.jsonl", "labels.csv", "-o", "model.json")
    assert status == 0, err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"run": {"case": "q"}}',
            r"^log.jsonl, row 3: package kit: log = kit:log .*: KeyError: 'w",
        ),
        ('{"run": {"ca', r"^log.jsonl, row 3: got '.*, expected a JSON object$"),
        ('{"run": null}', r"^log.jsonl, row 3: package kit: .*: TypeError: "),
    ],
)
def test_an_error_in_a_file_names_its_row(log, text, message):
    log("A", last=text)
    with pytest.raises(btdagg.InputError, match=message):
        read("log.jsonl", "log")


def test_an_error_that_a_format_raises_passes_as_it_is(package, folder):
    code = "from btdagg import InputError\ndef rows(content):\n    raise InputError('x.json: why')"
    package("btdagg.formats", {"kit": "kit:rows"}, code)
    Path("x.json").write_text("{}")
    with pytest.raises(btdagg.InputError, match=r"^x\.json: why$"):
        read("x.json")


def test_a_key_of_another_name_is_said_with_the_format(package, tmp_path):
    package("btdagg.formats", {"kit": "kit:rows"}, ROWS)
    file = tmp_path / "run.json"
    file.write_text('{"runs": [{"itme": "x", "vote": "A"}]}')
    with pytest.raises(btdagg.InputError, match=r"run.json in the format kit: .* among itme, vote"):
        read(file)


# Judges


def test_a_judge_is_a_function_by_name_or_before_a_colon(package):
    package("btdagg.judges", {"kit": "kit:ask"}, "def ask(request):\n    return '[[A]]'\n")
    assert "kit" in JUDGES
    for model in ("kit", "kit:fair"):
        assert type(client_of(model)).__name__ == "FunctionClient"
    assert isinstance(client_of("kit", "http://localhost:8000/v1"), ModelClient)
