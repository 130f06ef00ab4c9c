"""Files that commands write: what they replace, and what they leave alone, forced or killed."""

import errno
import hashlib
import json
import os
import re
import shutil
import signal
import sqlite3
from contextlib import nullcontext, suppress
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from btdagg import DavidsonModel
from btdagg._util.files import replace_file, replacing, write_table
from btdagg._util.outputs import MANIFEST, OutputFolder
from commands import QUICK, Fork, one_line
from judging import pairs_of

pytestmark = pytest.mark.usefixtures("quick_commands")

MODEL = DavidsonModel(beta=1.2, eta0=0.3, gamma=0.8)


def digests(folder="."):
    """Digest of every file of a folder, by its path from there."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(Path(folder).rglob("*"))
        if file.is_file()
    }


def write_inputs():
    """What commands read, under names that no command writes."""
    rng = np.random.default_rng(0)
    pairs_of(40).frame.write_ndjson("pairs.jsonl")
    items = [f"q{k}" for k in range(40)]
    labels = rng.integers(-1, 2, 40)
    votes = np.where(rng.random((4, 40)) < 0.6, labels, rng.integers(-1, 2, (4, 40)))
    table = {"item": items * 4, "vote": votes.ravel(), "sample": np.repeat([0, 0, 1, 1], 40),
             "order": ["AB"] * 40 + ["BA"] * 40 + ["AB"] * 40 + ["BA"] * 40}  # fmt: skip
    pl.DataFrame(table).write_csv("votes.csv")
    pl.DataFrame(table).write_parquet("votes.parquet")
    pl.DataFrame({"item": items, "label": labels}).write_csv("labels.csv")
    raters = {"item": items * 3, "vote": np.tile(labels, 3), "rater": np.repeat(list("xyz"), 40)}
    pl.DataFrame(raters).write_csv("ratings.csv")
    MODEL.save("fitted.json")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder full of a user's own files, under the names that outputs could have."""
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    write_inputs()
    Path("model.json").write_text('{"weights": [1, 2, 3]}\n')
    Path("rule.json").write_text('{"format": "rules.of.mine", "btdagg.stopping-rule": 1}\n')
    Path("evaluation.json").write_text("[]\n")
    pl.read_csv("labels.csv").write_csv("decided.csv")
    pl.read_csv("votes.csv").write_parquet("judged_votes.parquet")
    Path("report/tables").mkdir(parents=True)
    Path("report/index.html").write_text("my page\n")
    Path("report/tables/scores.csv").write_text("mine\n")
    Path(".btdagg-notes").write_text("mine\n")
    with sqlite3.connect("mine.db") as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    return tmp_path / "mine"


RUN = "run pairs.jsonl --labels labels.csv -o linked --model m"
REPORT = "votes votes.csv --report"

# Each with the files of the user's that it replaces; None if it is refused.
COMMANDS = [
    ("calibrate votes.csv labels.csv", None),
    ("calibrate votes.csv labels.csv -o decided.csv", ["decided.csv"]),
    ("calibrate votes.csv labels.csv -o ./report/../labels.csv", None),
    ("calibrate votes.csv labels.csv -o report", None),
    ("plan fitted.json votes.csv labels.csv -n 4 -o model.json", ["model.json"]),
    ("plan fitted.json votes.csv labels.csv -n 4 -o fitted.json", None),
    ("decide fitted.json votes.csv -o decided.csv", ["decided.csv"]),
    ("decide fitted.json votes.parquet -o votes.parquet", None),
    ("import votes.csv -o votes.parquet", ["votes.parquet"]),
    ("import votes.csv -o votes.csv", None),
    ("choose votes.csv --items 5 -o labels.csv", None),
    ("votes store.db --export judged_votes.parquet", ["judged_votes.parquet"]),
    (f"{REPORT} report", None),
    (f"{REPORT} .", None),
    (f"{REPORT} votes.csv", None),
    ("demo --items 60 --output .", []),
    ("run pairs.jsonl --labels labels.csv -o .", None),
    ("run pairs.jsonl --labels labels.csv -o new --store mine.db", None),
    ("run pairs.jsonl --labels labels.csv -o new --store votes.csv", None),
    ("judge pairs.jsonl --store mine.db", None),
    ("judge pairs.jsonl --store votes.parquet", None),
]


def arguments_of(line, server):
    """Arguments of a command, with the endpoint for those that ask one."""
    arguments = line.split()
    if arguments[0] in ("run", "judge"):
        arguments += ["--model", "m", "--set", f"judge.base_url={server.url}", "-n", "2"]
    return arguments


@pytest.mark.parametrize(("line", "replaced"), COMMANDS)
def test_which_files_of_a_user_are_replaced(cli, folder, judge_server, line, replaced):
    server = judge_server() if line.startswith(("run", "judge")) else None
    if "store.db" in line:
        simulated = ["--model", "simulated", "-n", 2, "-s", "store.db"]
        assert cli("judge", "pairs.jsonl", *simulated)[0] == 0
    before = digests()
    status, out, err = cli(*arguments_of(line, server))
    after = digests()
    if replaced is None:
        one_line(status, out, err)
        assert after.keys() == before.keys()
        assert server is None or server.log() == []
    else:
        assert status == 0, err
    assert [name for name in before if after.get(name) != before[name]] == (replaced or [])


@pytest.mark.parametrize(
    ("line", "name", "target", "link"),
    [
        ("calibrate votes.csv labels.csv -o linked.json", "linked.json", "votes.csv", os.symlink),
        ("decide fitted.json votes.csv -o linked.csv", "linked.csv", "votes.csv", os.link),
        (RUN, "linked/decided.csv", "labels.csv", os.symlink),
        (RUN, "linked/report/index.html", "pairs.jsonl", os.link),
        (RUN, f"linked/{MANIFEST}", "labels.csv", os.symlink),
        (f"{REPORT} linked", "linked/index.html", "votes.csv", os.symlink),
    ],
)
def test_links_hide_no_file_that_is_read(cli, folder, link, line, name, target):
    Path("model.json").unlink()
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    link(folder / target, name)
    before = digests()
    said = one_line(*cli(*line.split()))
    assert digests() == before
    assert re.search("input file|no earlier report|not a manifest", said)


# Again and again


def in_place(server):
    """Commands with outputs, in a folder in which nothing of the user's is in the way."""
    for name in ("model.json", "rule.json", "evaluation.json", "decided.csv",
                 "judged_votes.parquet", "report/index.html",
                 "report/tables/scores.csv"):  # fmt: skip
        Path(name).unlink()
    Path("report/tables").rmdir()
    Path("report").rmdir()
    lines = {
        "calibrate": "calibrate votes.csv labels.csv",
        "plan": "plan fitted.json votes.csv labels.csv -n 4 -o rule.json",
        "decide": "decide fitted.json votes.csv -o decided.parquet",
        "votes": "votes store.db -o exported.csv",
        "demo": "demo --items 60 --output .",
        "report": f"{REPORT} report",
        "run": "run pairs.jsonl --labels labels.csv -o .",
    }
    return {name: arguments_of(line, server) for name, line in lines.items()}


KILLED = """
import os, signal

left, replace = {number}, os.replace

def killed(*arguments):
    global left
    left -= 1
    if left == 0 and {after}:
        replace(*arguments)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(*arguments)

os.replace = killed
"""

# How many files each has put in place when it is killed: manifests count, and a run writes a
# report of a hundred files.
MOMENTS = {
    "calibrate": [1],
    "plan": [1],
    "decide": [1],
    "votes": [1],
    "demo": [1, 2],
    "report": [1, 2, 4],
    "run": [1, 4, 8],
}


@pytest.mark.soak
@pytest.mark.parametrize("name", MOMENTS)
def test_a_killed_run_goes_on_and_spares_what_it_did_not_write(cli, folder, judge_server, name):
    server = judge_server()
    served = ["--model", "m", "--set", f"judge.base_url={server.url}"]
    assert cli("judge", "pairs.jsonl", *served, "-n", 2, "-s", "store.db")[0] == 0
    command = in_place(server)[name]
    mine = digests()
    if name == "run":  # its votes: the rest is what is of interest here
        assert cli("judge", "pairs.jsonl", *served, "-n", 2, "-s", "votes.db")[0] == 0
    for number in MOMENTS[name]:
        for after in (False, True):
            before = QUICK if name in ("report", "run") else ""
            before += KILLED.format(number=number, after=after)
            process = Fork(folder, *command, before=before)
            _, err = process.communicate()
            assert process.returncode == -signal.SIGKILL, err
            assert {file: digests().get(file) for file in mine} == mine
            for file in Path().rglob("*.json"):
                json.loads(file.read_text())  # whole
    status, _, err = cli(*command)
    assert status == 0, err
    whole = digests()
    assert {file: whole.get(file) for file in mine} == mine
    status, _, err = cli(*command)
    assert status == 0, err
    assert {file: digests().get(file) for file in mine} == mine
    assert digests().keys() == whole.keys()


def test_run_again_reads_the_gold_labels_and_not_its_own(cli, folder, judge_server):
    server = judge_server()
    Path("out").mkdir()
    os.rename("labels.csv", "out/labels.csv")
    line = "run pairs.jsonl --labels out/labels.csv -o out"
    gold = digests()["out/labels.csv"]
    found = [json.loads(cli(*arguments_of(line, server), "--json")[1]) for _ in range(2)]
    runs = [one.pop("run") for one in found]
    assert found[0] == found[1]
    assert (runs[0]["statuses"], runs[1]["stored"]) == ({"ok": 80}, {"ok": 80})
    assert digests()["out/labels.csv"] == gold
    assert found[0]["labels"] == "out/decided.csv"
    assert len(server.log()) == 80


def test_a_file_in_the_way_is_said_before_the_first_call(cli, folder, judge_server):
    server = judge_server()
    line = "run pairs.jsonl --labels labels.csv -o new --stop lossless"
    for name in ("rule.json", "model.json", "evaluation.json", "decided.csv"):
        Path("new").mkdir()
        Path("new", name).write_text("mine")
        assert one_line(*cli(*arguments_of(line, server))) == (
            f"new/{name} was not written by btdagg; choose another folder"
        )
        assert digests("new") == {name: hashlib.sha256(b"mine").hexdigest()}
        Path("new", name).unlink()
        Path("new").rmdir()
    assert server.log() == []


@pytest.mark.parametrize("name", ["tables/scores.csv", "figures/scores.svg", "tables"])
def test_a_file_in_the_way_of_a_report_stops_it_before_the_work(cli, folder, monkeypatch, name):
    assert cli(*REPORT.split(), "new")[0] == 0
    if name == "tables":
        shutil.rmtree("new/tables")
    Path("new", name).parent.mkdir(exist_ok=True)
    Path("new", name).write_text("mine")
    before = digests()
    monkeypatch.setattr(
        "btdagg.cli.evaluate.run_evaluation", lambda *_, **__: pytest.fail("it worked")
    )
    message = one_line(*cli("evaluate", "votes.csv", "labels.csv", "--report", "new"))
    assert re.match(f"new/{re.escape(name)} (was not written by btdagg|is a file)", message)
    assert digests() == before


def test_a_place_that_cannot_be_written_is_said_before_the_work(cli, folder):
    for place in ("votes.csv/report", "x" * 300):
        said = one_line(*cli("votes", "votes.csv", "--report", place))
        assert re.search("cannot be written: (Not a dir|File name)", said)
    said = one_line(*cli("calibrate", "votes.csv", "labels.csv", "-o", "no/model.json"))
    assert "cannot be written: No such file or directory" in said


# The mechanism


def test_a_device_or_a_pipe_is_written_to(cli, folder):
    assert cli("calibrate", "votes.csv", "labels.csv", "-o", "/dev/null")[0] == 0
    os.mkfifo("pipe.csv")
    reader = os.open("pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    assert cli("decide", "fitted.json", "votes.csv", "-o", "pipe.csv")[0] == 0
    assert os.read(reader, 11) == b"item,label,"
    os.close(reader)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("n_columns", [1, 300])  # of which polars says less
def test_a_table_on_a_full_disk_is_said_in_a_line(tmp_path, suffix, n_columns):
    path = tmp_path / f"full{suffix}"
    path.symlink_to("/dev/full")
    frame = pl.DataFrame({f"c{n}": ["same"] * 1000 for n in range(n_columns)})
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_table(frame, path, suffix)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(path))


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    path = tmp_path / "model.json"
    MODEL.save(path)
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    for name in ("model.json", "link"):
        MODEL.save(tmp_path / name)
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_is_on_the_disk_before_it_replaces_another(tmp_path, monkeypatch):
    done = []

    def note(name, what):
        usual = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *of: (done.append(what(*of)), usual(*of)))

    note("fsync", lambda number: ("synced", os.path.realpath(f"/proc/self/fd/{number}")))
    note("replace", lambda draft, path: ("replaced", draft, Path(draft).read_bytes()))
    MODEL.save(tmp_path / "model.json")
    draft = done[1][1]
    content = (tmp_path / "model.json").read_bytes()
    synced = [("synced", draft), ("synced", str(tmp_path.resolve()))]
    assert done == [synced[0], ("replaced", draft, content), synced[1]]


@pytest.mark.parametrize(
    ("call", "code", "is_saved"),
    [
        ("chmod", errno.EPERM, True),  # vfat, CIFS, a file of another user
        ("chmod", errno.ENOTSUP, True),
        ("fsync", errno.EINVAL, True),  # FUSE
        ("fsync", errno.ENOTSUP, True),
        ("fsync", errno.ENOSYS, True),
        ("fsync", errno.ENOSPC, False),
        ("fsync", errno.EIO, False),
        ("fsync", errno.EDQUOT, False),
    ],
)
def test_a_file_is_replaced_on_a_file_system_that_can_do_less(
    tmp_path, monkeypatch, call, code, is_saved
):
    path = tmp_path / "x"
    path.write_text("before")

    def refuse(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, call, refuse)
    with nullcontext() if is_saved else pytest.raises(OSError) as caught:
        replace_file(path, "after")
    assert path.read_text() == ("after" if is_saved else "before")
    assert is_saved or (caught.value.errno, caught.value.filename) == (code, str(path))
    assert os.listdir(tmp_path) == ["x"]


def test_an_error_leaves_the_file_as_it_was_and_no_draft(tmp_path):
    path = tmp_path / "x"
    path.write_text("before")
    with suppress(KeyboardInterrupt), replacing(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt
    assert digests(tmp_path) == {"x": hashlib.sha256(b"before").hexdigest()}
    missing = tmp_path / "no" / "x"
    with pytest.raises(FileNotFoundError) as caught, replacing(missing):
        pass
    assert caught.value.filename == str(missing)


def test_a_name_that_another_command_left_out_of_the_manifest_is_restored(tmp_path):
    folder = OutputFolder(tmp_path)
    manifest = tmp_path / MANIFEST
    folder.write("y", "")
    before = manifest.read_bytes()
    folder.write("x", "")
    manifest.write_bytes(before)  # which another one had read before
    folder.write("z", "")
    OutputFolder(tmp_path).claim(["x", "y", "z"])
