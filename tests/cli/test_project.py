"""The project file: each command with it does what it does with --set, and faults name the line."""

import io
import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest
import typer

import btdagg
from btdagg.cli.app import app
from families import family
from labelling import LabelClient, pairs_file
from refusals import refused

# What files of strangers are called, by our names.
VOTES = {"item": "case", "judge": "grader", "sample": "run", "group": "prompt"}
LABELS = {"item": "example", "label": "gold", "group": "prompt"}
COMMANDS = [
    "bias {files} --json",
    "calibrate {files} --json -o m.json",
    "certify {files} --agreement 0.6 --json",
    "compare {files} --first n=2 --second n=4 --json",
    "estimate {files} --json",
    "evaluate {files} --json",
    "gate {files} --candidate red --baseline blue --margin 0.5 --json",
    "choose {votes} --items 9",
    "votes {files} --json",
    "decide {model} {votes} --json",
    "plan {model} {files} -n {n} --json",
    "paper evaluate {files} --splits 2 --json",
    "paper votes {votes} --json",
]


def lines_of(*names):
    return [line for line in COMMANDS if line.split()[0] in names]


# What else a project says: scales, and a panel.
OF_GRADES = lines_of("calibrate", "estimate", "gate", "choose", "votes", "decide", "plan")
OF_PANELS = lines_of("calibrate", "certify", "estimate", "gate")


def project(folder, name):
    """Write the files of a family with columns of their own, and a project file; return keys."""
    made = family(name, folder)
    keys = [text for word in (*made.options, *made.panel) for text in [word] if "=" in text]
    said = []
    for kind, file, names in (("votes", made.votes, VOTES), ("labels", made.labels, LABELS)):
        frame = pl.read_csv(file)
        own = {ours: theirs for ours, theirs in names.items() if ours in frame.columns}
        renamed = frame.rename(own)
        if kind == "votes" and "system_a" in frame.columns:  # one pair of systems
            renamed = renamed.with_columns(system_a=pl.lit("red"), system_b=pl.lit("blue"))
        renamed.write_csv(file)
        said += [f"{kind}.file={file.name}", *(f"{kind}.{n}={c}" for n, c in own.items())]
    said += keys
    lines = []
    for table in ("", "votes.", "labels."):
        lines += [f"[{table[:-1]}]"] * bool(table)
        for text in said:
            key, _, value = text.partition("=")
            if key.startswith(table) and ("." in key) == bool(table):
                lines.append(f'{key.removeprefix(table)} = "{value}"')
    (folder / "btdagg.toml").write_text("\n".join(lines) + "\n")
    return said


# Tests below, and in judge/test_rejudge.py.
OTHERS = ["judge", "batch write", "run", "label", "paper raters", "rejudge"]
# Without a project, and why.
WITHOUT = {
    "demo": "its data are its own",
    "check": "writes the project; the files are its arguments",
    "import": "what other tools have written has its own columns",
    "difference": "its one table is the argument",
    "batch send": "a job is a folder of its own",
    "batch list": "a job is a folder of its own",
    "batch collect": "a job is a folder of its own",
    "batch cancel": "a job is a folder of its own",
    "serve": "reads a model alone",
    "sql": "reads a model alone",
}


def names_of(group, name=""):
    if not hasattr(group, "list_commands"):
        return [name.strip()]
    context = typer.Context(group)
    found = [(own, group.get_command(context, own)) for own in group.list_commands(context)]
    return [longer for own, command in found for longer in names_of(command, f"{name} {own}")]


def test_every_command_is_in_the_table_or_has_a_reason():
    tested = {line.partition(" {")[0] for line in COMMANDS}
    wanted = tested | {*OTHERS, *WITHOUT}
    assert {*names_of(typer.main.get_command(app))} == wanted


@pytest.mark.usefixtures("quick_commands")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "lines"), [("pairs", COMMANDS), ("grades", OF_GRADES), ("panel", OF_PANELS)]
)
def test_a_command_with_a_project_file_does_what_it_does_with_set(cli, folder, name, lines):
    said = project(folder, name)
    keys = [word for text in said if ".file=" not in text for word in ("--set", text)]
    files = "votes.csv labels.csv"
    if name != "panel":
        assert cli("calibrate", *files.split(), *keys, "-o", "model.json")[0] == 0
    for line in lines:
        how = {"model": "model.json", "n": 5 if name == "grades" else 6}
        typed = line.format(files=files, votes="votes.csv", **how)
        short = line.format(files="", votes="", **how)
        Path("btdagg.toml").rename("other.toml")
        wanted = cli(*typed.split(), *keys)
        assert wanted[0] in (0, 1), (line, wanted)
        ways = []
        if line.startswith(("calibrate", "estimate")):
            ways.append(cli(*short.split(), "--project", "other.toml"))
        Path("other.toml").rename("btdagg.toml")
        for status, out, err in (*ways, cli(*short.split())):
            assert (status, out) == wanted[:2], line
            first, *others = err.splitlines()
            assert re.fullmatch(r"project: (btdagg|other)\.toml", first)
            assert others == wanted[2].splitlines(), line


@pytest.mark.usefixtures("quick_commands")
@pytest.mark.filterwarnings("ignore")
def test_commands_that_ask_find_the_pairs_of_a_project(cli, folder):
    rows = [
        {"case": f"q{n}", "prompt": "?", "left": "x" * (n + 1), "right": "y" * (41 - n)}
        for n in range(40)
    ]
    pl.DataFrame(rows).write_csv("pairs.csv")
    pl.DataFrame(
        {"case": [f"q{n}" for n in range(30)], "gold": [n % 3 - 1 for n in range(30)]}
    ).write_csv("gold.csv")
    said = ["pairs.item=case", "pairs.a=left", "pairs.b=right", "labels.item=case"]
    keys = [word for text in (*said, "labels.label=gold") for word in ("--set", text)]
    Path("other.toml").write_text(
        '[pairs]\nfile = "pairs.csv"\nitem = "case"\na = "left"\nb = "right"\n'
        '[labels]\nfile = "gold.csv"\nitem = "case"\nlabel = "gold"\n'
    )
    for line, more in (
        ("judge {pairs} --model simulated -n 2 --dry-run --json", ()),
        ("batch write {pairs} --model gpt-x -n 2 --dry-run --json", ()),
        ("run {pairs} --model simulated -n 2 -o out", ("--labels", "gold.csv")),
    ):
        short, typed = line.format(pairs="").split(), line.format(pairs="pairs.csv").split()
        outcomes = []
        for command in ([*typed, *more, *keys], [*short, *more, "--project", "other.toml"]):
            status, out, err = cli(*command)
            assert status == 0, err
            decided = Path("out/decided.csv")
            outcomes.append(decided.read_text() if decided.exists() else out)
            shutil.rmtree("out", ignore_errors=True)  # with the votes
        assert outcomes[0] == outcomes[1], line


def test_labels_of_a_page_find_the_pairs_of_a_project(cli, folder):
    pairs_file(folder)
    client = LabelClient(folder)
    client.label("ann", client.item("ann"), "first")
    pl.read_ndjson("pairs.jsonl").rename({"item": "case", "a": "left"}).write_csv("pairs.csv")
    keys = {"item": "case", "a": "left", "file": "pairs.csv"}
    lines = [f'{key} = "{value}"' for key, value in keys.items()]
    Path("other.toml").write_text("\n".join(["[pairs]", *lines]))
    typed = [word for key, own in keys.items() for word in ("--set", f"pairs.{key}={own}")]
    common = ("label", "--export", "-s", "human.db", "-o")
    assert cli(*common, "typed.csv", *typed)[0] == 0
    assert cli(*common, "read.csv", "--project", "other.toml")[0] == 0
    assert Path("typed.csv").read_text() == Path("read.csv").read_text()
    assert pl.read_csv("read.csv").height == 1


def test_raters_of_a_project_are_its_labels_and_their_judge_its_votes(cli, folder):
    rows = [(f"q{n}", rater, (n * k) % 3 - 1) for n in range(40) for k, rater in enumerate("abc")]
    ratings = pl.DataFrame(rows, ["case", "who", "gold"], orient="row")
    ratings.write_csv("ratings.csv")
    ratings.select("case", vote="gold").write_csv("judge.csv")
    names = {"labels.item": "case", "labels.rater": "who", "labels.vote": "gold"}
    keys = [f"{key}={own}" for key, own in (names | {"votes.item": "case"}).items()]
    typed = [word for key in keys for word in ("--set", key)]
    tables = {"labels": "ratings.csv", "votes": "judge.csv"}
    lines = []
    for table, file in tables.items():
        own = [key.partition(".")[2] for key in keys if key.startswith(table)]
        lines += [f"[{table}]", f'file = "{file}"', *(f'{k}"'.replace("=", ' = "') for k in own)]
    Path("other.toml").write_text("\n".join(lines))
    wanted = cli("paper", "raters", *tables.values(), *typed, "--json")
    assert wanted[0] == 0, wanted
    found = cli("paper", "raters", "--json", "--project", "other.toml")
    assert found[:2] == wanted[:2], found
    assert json.loads(found[1])


def test_a_file_of_the_command_line_replaces_that_of_its_kind(cli, folder):
    project(folder, "pairs")
    pl.read_csv("votes.csv").filter(pl.col("run") < 3).write_csv("fewer.csv")
    status, out, _ = cli("estimate", "fewer.csv", "--json")
    assert status == 0
    Path("votes.csv").unlink()
    assert cli("estimate", "--set", "votes.file=fewer.csv", "--json")[1] == out
    status, _, err = cli("estimate")
    assert status == 2
    assert err.endswith("btdagg.toml, line 2: votes.file: votes.csv: no such file\n")


def test_the_project_of_another_folder_names_files_beside_it(cli, folder):
    project(folder / "there", "pairs")
    Path("here").mkdir()
    status, out, _ = cli("estimate", "--project", "there/btdagg.toml", "--json")
    assert (status, json.loads(out)["n_labels"]) == (0, 80)
    assert cli("--project=there/btdagg.toml", "estimate", "--json")[1] == out
    # Nothing is looked for in folders above, and nothing that is read is written over.
    assert cli("estimate")[2].startswith("btdagg: VOTES is missing: name a file")
    taken = cli("certify", "--project", "there/btdagg.toml", "-o", "there/btdagg.toml")
    assert taken[0] == 2
    assert "there/btdagg.toml" in taken[2]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("itm = 'case'", "line 3: votes.itm: no such key, expected item"),
        ("scale = 5", 'line 3: votes.scale is 5, expected a text, such as "1-5"'),
        ("scale = '5-1'", "line 3: votes.scale is '5-1', expected 1-5"),
        ("words = 'draw'", "line 3: votes.words is 'draw', expected a table"),
        ("item = 'cas'", "line 3: votes.item: votes.csv has no column 'cas'; found case"),
        ("item = ['case', 'bot']", "line 3: votes.item: votes.csv has no column 'bot'"),
        ("# one way or another: case or id?\nitm = 1", "line 4: votes.itm: no such key"),
        ("# case or run?\nitem = '...'", "line 4: votes.item: fill in the ..."),
        ("[vote]", "line 3: vote.item"),
        ("raters = 'all'", "line 3: votes.raters: no such key here; it stands above the tables"),
        ("item = ", "btdagg.toml: Invalid value (at line 3"),
    ],
)
def test_a_fault_names_the_line_and_what_was_expected(cli, folder, line, message):
    project(folder, "pairs")
    lines = Path("btdagg.toml").read_text().splitlines()
    lines[2] = line
    Path("btdagg.toml").write_text("\n".join(lines) + "\n")
    if "[vote]" in line:
        message = "line 3: vote is {'judge': 'grader', 'sample': 'run'"
    status, out, err = cli("estimate")
    assert (status, out) == (2, "")
    assert message in err.replace("{'item': 'case', ", "{")
    if "no column" in message:
        assert "--set votes.item" in cli("estimate", "--set", "votes.item=nowhere")[2]


def test_criteria_have_scales_of_their_own(cli, folder):
    rows = {"item": [], "criterion": [], "score": []}
    gold = {"item": [], "criterion": [], "label": []}
    for item in range(40):
        for criterion, top in (("facts", 1), ("tone", 3)):
            right = item % (top + 1) if top == 1 else 1 + item % 3
            for shift in (0, 0, item % 2):
                rows["item"].append(item)
                rows["criterion"].append(criterion)
                rows["score"].append(max(right - shift, int(top == 3)))
            gold["item"].append(item)
            gold["criterion"].append(criterion)
            gold["label"].append(right)
    pl.DataFrame(rows).write_csv("votes.csv")
    pl.DataFrame(gold).write_csv("labels.csv")
    Path("btdagg.toml").write_text(
        '[votes]\nfile = "votes.csv"\nscale = {facts = "pass/fail", tone = "1-3"}\n'
        '[labels]\nfile = "labels.csv"\n[labels.scale]\nfacts = "pass/fail"\ntone = "1-3"\n'
    )
    status, out, _ = cli("estimate", "-f", "criterion=facts", "--json")
    assert (status, [*json.loads(out)["estimates"]]) == (0, ["mean grade", "pass rate"])
    status, out, _ = cli("estimate", "-f", "criterion=tone", "--json")
    assert (status, json.loads(out)["n_labels"]) == (0, 40)
    status, _, err = cli("estimate")
    assert status == 2
    assert "criteria have different scales" in err
    assert err.endswith("--filter criterion=facts\n")
    status, _, err = cli("calibrate", "-f", "criterion=tone", "-o", "tone.json")
    assert (status, err) == (0, "project: btdagg.toml\nvotes are grades: 1, 2 or 3\n")
    loaded = btdagg.Project.load()
    assert loaded.items("tone").scale.points == (1, 2, 3)
    with pytest.raises(btdagg.InputError, match="different scales"):
        _ = loaded.votes


def test_a_report_has_the_title_of_the_project(cli, folder):
    project(folder, "pairs")
    for keys, title in (
        ((), "Estimates of votes.csv"),
        (("--set", "title=Q3 <bots>"), "Q3 &lt;bots&gt;"),
    ):
        assert cli("estimate", *keys, "--report", "page")[0] == 0
        assert f"<h1>{title}</h1>" in Path("page/index.html").read_text()


def test_items_of_a_project_know_their_systems(cli, folder):
    project(folder, "pairs")
    items = btdagg.Project.load().items()
    assert {*items.systems.ravel().tolist()} == {"red", "blue"}
    gate = btdagg.estimates.not_worse(items, candidate="red", baseline="blue", margin=0.5)
    _, out, _ = cli("gate", "--candidate", "red", "--baseline", "blue", "--margin", "0.5")
    assert out.startswith(f"{gate.sentence()}\n")
    rows = [(f"{n}", system, 1 + (n + k) % 4) for n in range(30) for k, system in enumerate("xy")]
    graded = pl.DataFrame(rows, schema=["case", "bot", "rating"], orient="row")
    graded.write_csv("scores.csv")
    graded.rename({"rating": "gold"}).write_csv("gold.csv")
    Path("btdagg.toml").write_text(
        '[votes]\nfile = "scores.csv"\nitem = ["case", "bot"]\nsystem = "bot"\nscore = "rating"\n'
        'scale = "1-4"\n[labels]\nfile = "gold.csv"\nitem = ["case", "bot"]\nlabel = "gold"\n'
        'scale = "1-4"\n'
    )
    items = btdagg.Project.load().items()
    assert sorted({*items.systems[:, 0].tolist()}) == ["x", "y"]
    assert btdagg.estimates.not_worse(items, candidate="x", baseline="y", margin=2).passed


def test_filters_know_columns_by_the_names_in_the_files(cli, folder):
    project(folder, "pairs")
    ours, theirs = (
        cli("estimate", "--filter", f"{name}=0", "--json") for name in ("sample", "run")
    )
    assert ours == theirs
    assert ours[0] == 0
    status, _, err = cli("estimate", "--filter", "runs=0")
    assert status == 2
    assert "no column 'runs'" in err


def test_votes_of_standard_input_are_read_once(cli, folder, monkeypatch):
    project(folder, "pairs")
    assert cli("calibrate", "-o", "file.json")[0] == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path("votes.csv").read_bytes())))
    status, _, err = cli("calibrate", "-", "-o", "piped.json")
    assert status == 0, err
    assert json.loads(Path("piped.json").read_text()) == json.loads(Path("file.json").read_text())


def test_words_and_data_of_items(folder):
    Path("votes.csv").write_text("q,won\n1,left\n1,left\n2,draw\n3,right\n")
    Path("labels.csv").write_text("item,label\n1,first\n2,even\n")
    Path("items.csv").write_text("item,group\n1,x\n2,x\n3,y\n")
    Path("btdagg.toml").write_text(
        'a = "new"\nb = "old"\n'
        '[votes]\nfile = "votes.csv"\nitem = "q"\nvote = "won"\n'
        'words = {left = "A", right = "B", draw = "tie"}\n'
        '[labels]\nfile = "labels.csv"\n[labels.words]\nfirst = "A"\neven = "tie"\n'
        '[items]\nfile = "items.csv"\n'
    )
    project = btdagg.Project.load()
    assert project.votes.frame["vote"].to_list() == [1, 1, 0, -1]
    assert project.votes.sides == ("new", "old")
    assert project.labels.labels.tolist() == [1, 0]
    assert project.labels.groups.tolist() == ["x", "x"]
    items = project.items()
    assert items.pooled.tolist() == [[0, 0, 2], [0, 1, 0], [1, 0, 0]]


@pytest.fixture
def with_items(folder):
    """Votes and labels of items that a file describes, and a function that writes it."""
    Path("votes.csv").write_text("item,vote,length\n1,A,10\n1,A,10\n2,tie,20\n3,B,30\n")
    Path("labels.csv").write_text("item,label\n1,A\n2,tie\n3,B\n")
    tables = {"votes": "votes.csv", "labels": "labels.csv", "items": "items.csv"}
    lines = "".join(f'[{table}]\nfile = "{file}"\n' for table, file in tables.items())
    Path("btdagg.toml").write_text(lines)
    return Path("items.csv").write_text


def test_a_column_that_votes_and_items_have_is_that_of_the_votes(with_items):
    with_items("item,length,group,level\n1,7,x,5\n2,7,x,6\n3,7,y,8\n4,7,z,9\n")
    project = btdagg.Project.load()
    votes, labels = project.rows()
    assert votes.frame["length"].to_list() == ["10", "10", "20", "30"]
    assert votes.frame["level"].to_list() == ["5", "5", "6", "8"]
    assert labels.frame["length"].to_list() == ["7", "7", "7"]
    items = project.items()
    assert items.group.tolist() == ["x", "x", "y"]
    assert items.with_covariates("level").facts["covariate level"].tolist() == [5, 6, 8]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "item,level\na-1,5\na-2,6\n",
            "line 6: items.file: no item is in both: items.csv has 'a-1', votes.csv has '1'",
        ),
        ("item,level\n1,5\n2,6\n1,7\n", "line 6: items.file: items.csv has item '1' twice"),
        ("case,level\n1,5\n", "line 6: items.file: items.csv: no column 'item'; found case"),
        ("", "line 6: items.file: items.csv: empty file"),
        (None, "line 6: items.file: items.csv: no such file"),
    ],
)
def test_data_of_items_that_cannot_be_joined_are_refused(with_items, text, message):
    if text is not None:
        with_items(text)
    with pytest.raises(btdagg.InputError) as caught:
        _ = btdagg.Project.load().votes
    assert str(caught.value).startswith(f"btdagg.toml, {message}")


def test_items_of_one_table_alone_and_of_other_types_are_joined(with_items):
    Path("labels.csv").write_text("item,label\n7,A\n8,tie\n")
    with_items("item,level\n7,5\n9,6\n")
    assert btdagg.Project.load().labels.frame["level"].to_list() == ["5", None]
    pl.DataFrame({"item": [1, 7], "level": [5, 6]}).write_parquet("items.parquet")
    project = btdagg.Project.load().with_keys(["items.file=items.parquet"])
    assert project.votes.frame["level"].to_list() == [5, 5, None, None]


def test_a_typed_column_need_not_be_in_the_data_of_items(with_items):
    with_items("item,level\n1,5\n2,6\n")
    votes = btdagg.Project.load().with_keys(["judge=length"]).votes
    assert votes.frame["judge"].to_list() == ["10", "10", "20", "30"]
    with pytest.raises(btdagg.InputError, match=r"--set judge: .*items.csv has no column 'nobody'"):
        _ = btdagg.Project.load().with_keys(["judge=nobody"]).votes


def test_each_file_of_a_project_is_read_once(with_items, monkeypatch):
    with_items("item,level\n1,5\n2,6\n")
    places, read_table = [], btdagg.votes.read_table

    def counted(source, *arguments, **options):
        places.extend([source] * isinstance(source, str))
        return read_table(source, *arguments, **options)

    monkeypatch.setattr("btdagg.project.read_table", counted)
    btdagg.Project.load().items()
    assert sorted(places) == ["items.csv", "labels.csv", "votes.csv"]


def test_a_criterion_without_a_scale_says_what_to_type(cli, folder):
    Path("votes.csv").write_text('item,criterion,score\n1,"facts, all",2\n')
    key = "votes.scale.tone=1-3"
    err = cli("votes", "votes.csv", "--set", key)[2]
    (option,) = re.findall(r"add --set '(.*)=\.\.\.'", err)
    assert option == 'votes.scale."facts, all"'
    assert cli("votes", "votes.csv", "--set", key, "--set", f"{option}=1-3")[0] == 0


def test_the_column_of_judges_may_be_typed_where_a_judge_is_asked(cli, folder):
    Path("pairs.csv").write_text("item,prompt,a,b\n1,p,x,y\n")
    command = ("judge", "pairs.csv", "--model", "simulated", "-n", "2", "--dry-run")
    assert cli(*command)[0] == 0
    status, _, err = cli(*command, "--set", "judge=x")
    assert (status, "pairs.csv has no column 'x'" in err) == (2, True)


def test_settings_of_a_judge_are_used_only_where_they_are_named(cli, folder):
    Path("pairs.csv").write_text("item,prompt,a,b\n1,p,x,y\n")
    Path("btdagg.toml").write_text(
        '[pairs]\nfile = "pairs.csv"\n[judge]\nmodel = "simulated"\nn = 2\nbase_url = "http://x"\n'
    )
    status, _, err = cli("judge", "--dry-run")
    assert status == 2
    assert (
        "[judge] of btdagg.toml is not used (base_url, model, n); to use it, name the "
        "file: --project"
    ) in err
    assert err.endswith("--model is missing, expected the name of a model\n")
    status, out, _ = cli("judge", "--dry-run", "--model", "simulated")
    assert (status, "12 calls" in out) == (0, True), out
    for named in ("--project", "--config"):
        status, out, err = cli("judge", "--dry-run", named, "btdagg.toml")
        assert (status, "2 calls" in out) == (0, True), (out, err)


@pytest.mark.filterwarnings("ignore:2 labels. too few:btdagg.model.CalibrationWarning")
def test_a_key_of_columns_comes_back_as_them():
    columns = btdagg.Columns(item=["Talk", "bot"], vote="won", words={"draw": "tie"})
    frame = pl.DataFrame(
        {"Talk": [1, 1, 2, 2, 3, 3], "bot": ["x"] * 6, "won": ["A", "A", "B", "draw", "A", "A"]}
    )
    people = pl.DataFrame({"talk": [1, 2], "bot": ["x", "x"], "label": ["A", "B"]})
    decided = btdagg.decide(frame, people, columns=columns)
    assert decided.columns[:4] == ["Talk", "bot", "label", "source"]
    assert decided.select("Talk", "bot", "label").rows() == [(1, "x", 1), (2, "x", -1), (3, "x", 1)]
    with refused("itm", got="q", expected="item"):
        btdagg.Columns(itm="q")


def test_a_gate_of_a_panel_and_the_names_of_sides(cli, folder):
    project(folder, "panel")
    gate = ["gate", "--candidate", "red", "--baseline", "blue", "--margin", "0.5", "--json"]
    panel = json.loads(cli(*gate)[1])[0]
    text = Path("btdagg.toml").read_text()
    Path("btdagg.toml").write_text(text.replace('panel = "judge"', ""))
    pooled = json.loads(cli(*gate)[1])[0]
    assert panel["estimate"] != pooled["estimate"]
    votes, labels = btdagg.Project.load().votes, btdagg.Project.load().labels
    wanted = btdagg.estimate(votes.items(labels, panel="judge"), level=0.9)
    assert panel["estimate"] == wanted.estimates["net win rate"].value
    cli("calibrate", "-f", "judge=one", "-o", "m.json")
    said = ["--set", "a=red,b=blue"]
    out = cli("decide", "m.json", "-f", "judge=one", "-o", "d.csv", *said)[1]
    assert re.search(r"\d+ for blue, \d+ tie, \d+ for red; wrote d.csv", out), out
