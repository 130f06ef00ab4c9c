"""The example: pairs of sums whose labels are what the sums say."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from btdagg import read_labels
from btdagg.judge.pairs import read_pairs

SCRIPT = Path(__file__).parents[1] / "examples" / "make_sums.py"


def n_wrong(text):
    sums = [line.replace(" = ", " + ").split(" + ") for line in text.splitlines()[1:]]
    return sum(int(left) + int(right) != int(total) for left, right, total in sums)


def test_labels_say_which_response_has_fewer_wrong_sums(tmp_path):
    subprocess.run([sys.executable, SCRIPT, tmp_path, "--items", "60", "--seed", "3"], check=True)
    pairs = read_pairs(tmp_path / "pairs.jsonl")
    labels = read_labels(tmp_path / "labels.csv")
    assert len(pairs) == len(labels.labels) == 60
    assert pairs.n_identical == 0
    for pair, item, label in zip(pairs, labels.ids, labels.labels, strict=True):
        more, less = n_wrong(pair.b), n_wrong(pair.a)
        assert (pair.item, (more > less) - (more < less)) == (item, label)
    assert set(labels.labels.tolist()) == {-1, 0, 1}
    first = (tmp_path / "pairs.jsonl").read_text()
    subprocess.run([sys.executable, SCRIPT, tmp_path, "--items", "60", "--seed", "3"], check=True)
    assert (tmp_path / "pairs.jsonl").read_text() == first


@pytest.mark.integration
def test_what_the_docs_say_to_type(tmp_path):
    page = (SCRIPT.parents[1] / "docs" / "judge.md").read_text()
    (typed,) = (part for part in page.split("```") if "examples/judge_server" in part)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    typed = typed.removeprefix("console").replace("8080", str(port))
    typed = typed.replace("examples/", f"{SCRIPT.parent}/").replace("-n 12", "-n 2 --splits 3")
    folder = Path(sys.executable).parent
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-ec", f"trap 'kill $!' EXIT\n{typed}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "400 new votes, 0 there before: 400 ok" in done.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "btdagg-manifest.json",
        "decided.csv",
        "evaluation.json",
        "judged_votes.parquet",
        "model.json",
        "report",
        "votes.db",
    }
    assert len(read_labels(tmp_path / "out" / "decided.csv").labels) == 200
