"""`btdagg import` on logs that Inspect has written."""

# ruff: noqa: E402  # without inspect-ai nothing of this is run

import pytest

from btdagg import read_labels, read_votes
from commands import one_line

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("folder")]
pytest.importorskip("inspect_ai")  # a page of the docs fails in CI where it is not there

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import write_eval_log
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, mean, scorer

VOTES = {("p", 1): "A", ("p", 2): "tie", ("q", 1): "B", ("q", 2): "N"}


@scorer(metrics=[mean()])
def judged(values):
    async def score(state, target):
        return Score(value=values[state.sample_id, state.epoch])

    return score


def logged(values=VOTES, **metadata):
    """A log in the folder `logs`: two samples, two epochs."""
    dataset = [
        Sample(input="x", id=name, target=target, metadata={"prompt": f"of {name}"})
        for name, target in (("p", "A"), ("q", "tie"))
    ]
    task = Task(dataset=dataset, solver=[], scorer=judged(values), epochs=Epochs(2, "mode"))
    (log,) = eval(task, model=get_model("mockllm/model"), log_dir="logs", display="none")
    assert log.status == "success"
    return log


def test_logs_are_votes_by_epoch(cli):
    log = logged()
    write_eval_log(log, "log.json")
    for file in ("logs", log.location, "log.json"):
        status, out, err = cli("import", file, "-o", "votes.csv", "--set", "group=prompt")
        assert (status, out) == (
            0, "inspect: 3 votes of 2 items by 1 judge; wrote votes.csv\n"
        )  # fmt: skip
        assert err == "could not be read, and count as missing votes, not ties: 1 no answer\n"
        votes = read_votes("votes.csv").frame.sort("item", "sample")
        assert votes.select("item", "sample", "vote", "judge", "group").rows() == [
            ("p", 1, 1, "mockllm/model", "of p"), ("p", 2, 0, "mockllm/model", "of p"),
            ("q", 1, -1, "mockllm/model", "of q"), ("q", 2, None, "mockllm/model", "of q"),
        ]  # fmt: skip


def test_of_two_scorers_one_is_named(cli):
    dataset = [Sample(input="x", id=name, target="A") for name in "pq"]
    values = [{(name, 1): value for name in "pq"} for value in "AB"]
    first, second = (
        scorer(metrics=[mean()], name=name)(lambda own=own: judged.__wrapped__(own))()
        for name, own in zip("fs", values, strict=True)
    )
    task = Task(dataset=dataset, solver=[], scorer=[first, second])
    eval(task, model=get_model("mockllm/model"), log_dir="logs", display="none")
    message = one_line(*cli("import", "logs", "-o", "votes.csv"))
    assert "samples have scores of f, s; name one as the scorer, such as btdagg import" in message
    assert cli("import", "logs", "-o", "votes.csv", "--set", "scorer=s")[0] == 0
    assert read_votes("votes.csv").frame["vote"].to_list() == [-1, -1]
    assert "scorer is 'x', expected one of f, s" in one_line(
        *cli("import", "logs", "-o", "votes.csv", "--set", "scorer=x")
    )


def test_labels_are_the_target(cli):
    logged()
    assert cli("import", "logs", "--set", "label=target,group=prompt", "-o", "gold.csv")[0] == 0
    labels = read_labels("gold.csv")
    assert dict(zip(labels.ids, labels.labels, strict=True)) == {"p": 1, "q": 0}
    assert labels.groups.tolist() == ["of p", "of q"]


def test_scores_that_are_no_votes_want_words(cli):
    logged(dict.fromkeys(VOTES, "C"))
    said = one_line(*cli("import", "logs", "-o", "votes.csv"))
    assert "'C', expected -1, 0, 1 or A, tie, B" in said
    assert cli("import", "logs", "-o", "votes.csv", "--set", "words.C=A")[0] == 0
    assert set(read_votes("votes.csv").frame["vote"]) == {1}
