"""The pytest plugin: gates that pass, fail and cannot tell, in JUnit, terminal and Markdown."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from btdagg import read_labels, read_votes
from btdagg.estimates import not_worse
from draws import drawn
from pages import ROOT, blocks

GATES = """
import btdagg
import pytest

def files(name):
    return btdagg.read_votes(f"votes-{name}.csv"), btdagg.read_labels(f"labels-{name}.csv")

B = {"candidate": "B", "baseline": "A"}

def test_better(release_gate):
    found = release_gate(*files("better"), **B, margin=0.05)
    assert found.passed and found.margin == 0.05

def test_worse(release_gate):
    release_gate(*files("worse"), **B)

def test_few(release_gate):
    release_gate(*files("few"), **B, name="a | few <labels>", level=0.9)

def test_none(release_gate):
    release_gate(*files("one"), **B)

def test_grades(release_gate):
    scale = btdagg.Scale(range(1, 6))
    votes = btdagg.read_votes("scores.csv", scale=scale)
    labels = btdagg.read_labels("grades.csv", scale=scale)
    options = {"candidate": "v2", "baseline": "v1", "quantity": "share >= 4"}
    found = release_gate(votes, labels, margin=0.03, **options)
    assert found.n_labels == 160

def test_no_gate(request):
    request.node.user_properties.append(("estimate", 7))

def test_both(release_gate, request):
    request.node.user_properties.append(("gate", "mine"))
    release_gate(*files("better"), **B, name="first")
    votes, labels = files("better")
    release_gate(votes.items(labels), **B, name="second", margin=0.1)

def test_option(release_gate):
    release_gate(*files("better"), **B, marginn=0.05)

def test_no_direction(release_gate):
    release_gate(*files("better"), margin=0.05)

@pytest.fixture
def passed(release_gate):
    return release_gate(*files("worse"), **B, name="in a fixture")

def test_fixture(passed):
    pass
"""
DATA = {"better": (300, -0.4), "worse": (300, 0.4), "few": (20, 0.0), "one": (1, 0.0)}


def write_tables(folder, name, n_labels, lead):
    counts, labels = drawn(500, n_labels, lead)
    items = [f"q{number}" for number in range(500)]
    votes = np.concatenate([np.repeat([-1, 0, 1], row) for row in counts])
    pl.DataFrame({"item": np.repeat(items, 8), "vote": votes}).write_csv(
        folder / f"votes-{name}.csv"
    )
    pl.DataFrame({"item": items[:n_labels], "label": labels[:n_labels].astype(int)}).write_csv(
        folder / f"labels-{name}.csv"
    )


def write_scores(folder):
    """Scores of two systems on 200 prompts, the second better, and grades of 80 of them."""
    rng = np.random.default_rng(0)
    system, prompt = np.indices((2, 200)).reshape(2, -1)
    quality = rng.normal(3.2, 0.8, 200)[prompt] + 0.5 * system
    grade = np.clip(np.round(quality), 1, 5).astype(int)
    score = np.clip(np.round(grade[:, None] + rng.normal(0, 0.7, (400, 3))), 1, 5).astype(int)
    table = pl.DataFrame(
        {
            "item": [f"r{row}" for row in range(400)],
            "system": [f"v{number + 1}" for number in system],
            "group": [f"p{number}" for number in prompt],
            "label": grade,
        }
    )
    table.filter(pl.col("group").is_in([f"p{n}" for n in range(80)])).select(
        "item", "label"
    ).write_csv(folder / "grades.csv")
    votes = table.drop("label").with_columns(score=pl.Series(score.tolist())).explode("score")
    votes.write_csv(folder / "scores.csv")


def run(folder, *arguments):
    """Run pytest as a user does; the plugin is loaded by itself."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gates")
    for name, (n_labels, lead) in DATA.items():
        write_tables(folder, name, n_labels, lead)
    write_scores(folder)
    (folder / "test_gates.py").write_text(GATES)
    return folder


@pytest.fixture(scope="module")
def ran(folder):
    options = ("--junit-xml", "junit.xml", "--btdagg-summary", "gates.md", "test_gates.py")
    return run(folder, *options)


def rows_of(file):
    return [line for line in file.read_text().splitlines() if "**" in line]


def expected(folder, name, **options):
    tables = read_votes(folder / f"votes-{name}.csv"), read_labels(folder / f"labels-{name}.csv")
    return not_worse(*tables, candidate="B", baseline="A", **options)


def test_a_gate_passes_or_fails_with_its_reason(folder, ran):
    status, printed = ran
    assert status == 1
    assert "5 failed, 4 passed, 1 error" in printed
    for name, options in (("better", {"margin": 0.05}), ("worse", {}), ("few", {"level": 0.9})):
        assert str(expected(folder, name, **options)).replace("\n", "; ") in printed
    assert "1 label" in printed
    assert 'release_gate(*files("few")' not in printed  # the reason is enough


def test_the_terminal_ends_with_a_line_for_each_gate(ran):
    _, printed = ran
    lines = printed[printed.index("= release gates =") :].splitlines()[1:5]
    assert lines[0].startswith("test_better: B is not worse than A by more than 0.05")
    assert lines[1].startswith("test_worse: B is worse than A by more than 0.02")
    assert lines[2].startswith("a | few <labels>: cannot tell whether B is worse")
    assert lines[3].startswith("test_none: ")


def test_junit_has_the_numbers(folder, ran):
    tree = ElementTree.parse(folder / "junit.xml")
    cases = {case.get("name"): case for case in tree.iter("testcase")}
    properties = {
        name: {one.get("name"): one.get("value") for one in case.iter("property")}
        for name, case in cases.items()
    }
    found = expected(folder, "few", level=0.9)
    assert found.labels_wanted > 20
    assert properties["test_few"] == {
        "gate": "a | few <labels>",
        "candidate": "B",
        "baseline": "A",
        "quantity": "net win rate",
        "estimate": str(found.estimate),
        "lower": str(found.lower),
        "upper": str(found.upper),
        "margin": "0.02",
        "level": "0.9",
        "n_items": "500",
        "n_labels": "20",
        "population": "new",
        "labels_wanted": str(found.labels_wanted),
        "outcome": "inconclusive",
        "message": "; ".join([str(found), *found.remarks]),
    }
    assert properties["test_better"]["outcome"] == "not worse"
    assert properties["test_worse"]["outcome"] == "worse"
    assert properties["test_none"]["outcome"] == "no answer"
    assert properties["test_grades"]["quantity"] == "share >= 4"
    assert properties["test_grades"]["message"].startswith(
        "v2 is not worse than v1 by more than 0.03"
    )
    assert properties["test_no_gate"] == {"estimate": "7"}
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    assert failed == {"test_worse", "test_few", "test_none", "test_option", "test_no_direction"}
    assert "cannot tell" in cases["test_few"].find("failure").get("message")


def test_the_summary_is_a_table_with_sentences(folder, ran):
    text = (folder / "gates.md").read_text()
    assert text.startswith("### Release gates\n\n| gate | outcome | estimate |")
    rows = rows_of(folder / "gates.md")
    assert len(rows) == 20
    assert rows[0].startswith("| test\\_better | **not worse** | +0.")
    assert rows[3] == r"| test\_none | **no answer** | – | – | – | – | – |"
    assert rows[10].startswith("- **test\\_better**: B is not worse than A by more than 0.05")
    assert r"a \| few &lt;labels&gt;" in rows[12]
    assert "1 label" in rows[13]


@pytest.mark.integration  # three processes more
def test_processes_of_xdist_give_one_list(folder, ran):
    status, printed = run(
        folder, "-n", "2", "--btdagg-summary", "xdist.md", "test_gates.py", "--maxfail", "9"
    )
    assert status == 1
    rows = (folder / "xdist.md").read_text().splitlines()
    assert sorted(rows) == sorted((folder / "gates.md").read_text().splitlines())
    assert printed.count("= release gates =") == 1


def test_a_run_without_gates_says_so(folder):
    options = ("--btdagg-summary", "new/empty.md", "-k", "test_no_gate", "test_gates.py")
    status, printed = run(folder, *options)
    assert status == 0
    assert "release gates =" not in printed
    assert (
        folder / "new" / "empty.md"
    ).read_text() == "### Release gates\n\nNo release gate was run.\n"


def test_several_gates_of_a_test_those_that_raise_and_those_of_fixtures_are_there(folder, ran):
    _, printed = ran
    said = "TypeError: estimate() got an unexpected keyword argument 'marginn'"
    assert f"test_option: {said}" in printed
    assert "in a fixture: B is worse than A" in printed
    assert "test_no_direction: TypeError: not_worse() missing 2 required keyword-only" in printed
    names = re.findall(r"- \*\*(.*?)\*\*", (folder / "gates.md").read_text())
    both = [r"test\_option", r"test\_no\_direction"]
    assert names[-5:] == ["first", "second", *both, "in a fixture"]


def test_other_runs_of_pytest_load_nothing_for_it(tmp_path):
    (tmp_path / "test_plain.py").write_text(
        "import sys\n\n\ndef test_plain():\n"
        "    loaded = [m for m in sys.modules if m.startswith('btdagg')]\n"
        "    assert 'btdagg.integrations.pytest' in loaded\n"
        "    assert not {'numpy', 'scipy', 'polars'} & set(sys.modules)\n"
        "    assert 'btdagg.estimates' not in loaded\n"
    )
    status, printed = run(tmp_path, "-p", "no:hypothesispytest", "test_plain.py")
    assert status == 0, printed


# The workflow

EXAMPLE = ROOT / "examples" / "release_gate"


def yaml_of(file):
    if os.environ.get("CI") != "true":
        pytest.importorskip("yaml")
    import yaml

    return yaml.safe_load(file.read_text())


def test_the_page_shows_the_example():
    shown = next(
        block
        for block in blocks((ROOT / "docs" / "gate.md").read_text(encoding="utf-8"))
        if block.file == "test_release.py"
    )
    assert (EXAMPLE / "test_release.py").read_text().endswith(shown.text)


@pytest.mark.parametrize(("lead", "status"), [(0.4, 0), (-0.4, 1), (None, 2)])
def test_the_action_runs_the_gate_of_the_workflow(tmp_path, lead, status):
    """Its script, with what GitHub puts into its environment; names may be anything."""
    action = yaml_of(ROOT / "action.yml")
    steps = {step["id"]: step for step in action["runs"]["steps"] if "id" in step}
    assert not any("${{" in step.get("run", "") for step in action["runs"]["steps"])
    workflow = yaml_of(EXAMPLE / "release-gate.yml")
    (given,) = (
        step["with"]
        for step in workflow["jobs"]["gate"]["steps"]
        if "with" in step and "candidate" in step["with"]
    )
    assert given.keys() <= action["inputs"].keys()
    write_tables(tmp_path, "x", 300, lead or 0)
    name = "-$(touch x); `new` '"
    for kind in ("votes", "labels") if lead is not None else ():
        table = pl.read_csv(tmp_path / f"{kind}-x.csv")
        table.with_columns(system_a=pl.lit(name), system_b=pl.lit("chat-old")).write_csv(
            tmp_path / f"{kind}.csv"
        )
    own = {key.upper(): str(given[key]) for key in ("votes", "labels", "baseline", "margin")}
    own |= {"OPTIONS": f"{given['options']}\n\n--level=0.9\n", "CANDIDATE": name}
    own |= {key: f"{tmp_path}/{key}" for key in ("SUMMARY", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    own["BTDAGG"] = str(Path(sys.executable).parent / "btdagg")
    assert own.keys() - {"GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"} == steps["gate"]["env"].keys()
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps["gate"]["run"]]
    done = subprocess.run(shell, cwd=tmp_path, check=False, env={**os.environ, **own})
    assert done.returncode == status
    summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
    assert ("| **not worse** |" in summary) == (status == 0)
    assert ("No answer" in summary) == (status == 2)
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == f"status={status}\n"
    assert (tmp_path / "gate.xml").exists() == (status < 2)
    assert not (tmp_path / "x").exists()


# gh api, with comments in a file; --jq is jq's.
GH = """#!/usr/bin/env bash
arguments=("$@"); expression=.
for ((k = 0; k < $#; k++)); do
  case ${arguments[k]} in
    --jq) expression=${arguments[k + 1]} ;;
    body=@*) cp "${arguments[k]#body=@}" posted.md ;;
  esac
done
case $* in
  *graphql*) jq -r "$expression" <<< '{"data": {"viewer": {"login": "our-app[bot]"}}}' ;;
  *--paginate*) jq -r "$expression" comments.json ;;
  *) echo "$*" > sent ;;
esac
"""


@pytest.mark.parametrize("login", ["our-app[bot]", "our-app", "somebody"])
def test_the_action_updates_the_comment_of_its_own_token(tmp_path, login):
    """The comment is whoever the token is of; a copy of it that somebody else wrote stays."""
    if os.environ.get("CI") != "true" and shutil.which("jq") is None:
        pytest.skip("no jq")
    steps = yaml_of(ROOT / "action.yml")["runs"]["steps"]
    (script,) = (step["run"] for step in steps if "GATE" in step.get("env", {}))
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "summary.md").write_text("| @org/team-new | **not worse** |\n")
    own = {"GATE": "a b", "NUMBER": "3", "GITHUB_REPOSITORY": "o/r", "GH_TOKEN": "x"}
    own |= {"SUMMARY": "summary.md", "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def comment(comments):
        (tmp_path / "comments.json").write_text(json.dumps(comments))
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        subprocess.run(shell, cwd=tmp_path, check=True, env={**os.environ, **own})
        return (tmp_path / "posted.md").read_text(), (tmp_path / "sent").read_text()

    posted, sent = comment([])
    assert "--method POST repos/o/r/issues/3/comments" in sent
    assert "@&#8203;org/team-new" in posted
    _, sent = comment([{"id": 7, "user": {"login": login}, "body": posted}])
    is_ours = login != "somebody"
    assert ("--method PATCH repos/o/r/issues/comments/7" in sent) == is_ours
    (tmp_path / "summary.md").write_text("| @org/team-new |\n" * 5000)
    assert 60_000 <= len(comment([])[0]) <= 65_536  # GitHub takes no more


def test_the_action_installs_its_own_version():
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    requirement = yaml_of(ROOT / "action.yml")["inputs"]["requirement"]["default"]
    assert requirement == f"btdagg[cli]=={version}"
