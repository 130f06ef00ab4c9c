"""Inspect: logs into votes, epochs to labels, intervals, early stopping, and labels into logs."""

# ruff: noqa: E402  # without inspect-ai nothing of this is run

import math
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import btdagg
from btdagg import DavidsonModel, InputError
from btdagg.online import StoppingRule, fit_votes

pytestmark = pytest.mark.integration
if os.environ.get("CI") != "true":
    pytest.importorskip("inspect_ai")

from inspect_ai import Epochs, Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate

from btdagg.integrations.inspect import (
    StopByRule,
    calibrated,
    judge_win_rate,
    tallied,
    win_rate,
)

MODEL = DavidsonModel(beta=1.2, eta0=0.5, gamma=0.8)
WORDS = {-1: "B", 0: "tie", 1: "A"}


def drawn(n_items=50, n_votes=8, seed=0):
    """Votes (items, votes) of a judge who leans towards the label of an item, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(-1, 2, n_items)
    seen = labels[:, None] + rng.normal(0, 0.7, (n_items, n_votes))
    return np.sign(np.where(np.abs(seen) < 0.4, 0, seen)).astype(int), labels


VOTES, LABELS = drawn()
COUNTS = np.stack([(side == VOTES).sum(axis=1) for side in (-1, 0, 1)], axis=1)


def said(text):
    """What the mock model says, with the tokens that it would count by a tokenizer from the net."""
    found = ModelOutput.from_content("mockllm/model", text)
    found.usage = ModelUsage()
    return found


def mock(answer):
    """Inspect's mock model: answers are a function of the messages."""

    def output(messages, tools, tool_choice, config):
        return said(answer(messages))

    return get_model("mockllm/model", custom_outputs=output)


@scorer(metrics=[mean()])
def told(values):
    """Scores from a table: an array of votes, or a function of sample and epoch."""

    async def score(state, target):
        if callable(values):
            found = values(state.sample_id, state.epoch)
            return found if isinstance(found, Score) else Score(value=found)
        return Score(value=int(values[state.metadata["row"], state.epoch - 1]))

    return score


def samples(n=50, **metadata):
    return [
        Sample(
            input=f"pair {row}",
            id=f"q{row}",
            metadata={"row": row, **{name: values[row] for name, values in metadata.items()}},
        )
        for row in range(n)
    ]


def run(folder, scorer, reducer=None, *, epochs=8, dataset=None, options=(), **task):
    """Run a task whose model says nothing of interest; return its log."""
    made = Task(
        dataset=samples() if dataset is None else dataset,
        solver=task.pop("solver", []),
        scorer=scorer,
        epochs=Epochs(epochs, reducer),
        **task,
    )
    model = dict(options).pop("model", None) or mock(lambda messages: "")
    more = {name: value for name, value in dict(options).items() if name != "model"}
    (log,) = eval(made, model=model, display="none", log_dir=str(folder), **more)
    return log


def reduced(log, number=0):
    """Scores after the reducer, by row."""
    found = log.reductions[number].samples
    return sorted(found, key=lambda score: int(str(score.sample_id)[1:]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("inspect")
    MODEL.save(made / "model.json")
    StoppingRule.lossless(MODEL, 8).save(made / "rule.json")
    return made


@pytest.fixture(scope="module")
def log(folder):
    """50 samples, 8 epochs; the judge is the mock model."""
    said = {f"pair {row}": iter(votes) for row, votes in enumerate(VOTES)}

    def answer(messages):
        return WORDS[next(said[messages[-1].text])]

    @scorer(metrics=[mean(), judge_win_rate(), win_rate("gold", groups="prompt")])
    def verdict():
        async def score(state, target):
            return Score(value=state.output.completion)

        return score

    gold = [int(label) if row < 20 else None for row, label in enumerate(LABELS)]
    dataset = samples(gold=gold, prompt=[f"p{row // 2}" for row in range(50)])
    return run(
        folder / "logs",
        verdict(),
        [calibrated(str(folder / "model.json")), tallied()],
        dataset=dataset,
        solver=generate(),
        options={"model": mock(answer)},
    )


# Reducers


def test_labels_and_probabilities_are_those_of_the_model_on_the_counts(log):
    assert log.status == "success"
    found = reduced(log)
    assert [score.value for score in found] == MODEL.decide(COUNTS).tolist()
    assert [score.answer for score in found] == [WORDS[k] for k in MODEL.decide(COUNTS)]
    assert [list(score.metadata["counts"].values()) for score in found] == COUNTS.tolist()
    shares = [list(score.metadata["probabilities"].values()) for score in found]
    np.testing.assert_array_equal(shares, MODEL.predict_proba(COUNTS))
    majority = [score.value for score in reduced(log, 1)]
    assert majority == btdagg.majority_vote(COUNTS).tolist()
    assert majority != [score.value for score in found]
    (by_model, _) = log.results.scores
    assert by_model.reducer == "btdagg/calibrated"
    assert by_model.metrics["mean"].value == pytest.approx(MODEL.decide(COUNTS).mean())


def test_inspect_finds_what_is_registered_by_its_entry_point(folder):
    code = """
from inspect_ai._util.registry import registry_lookup
for kind, names in {"score_reducer": ["calibrated", "tallied"],
                    "metric": ["win_rate", "judge_win_rate"]}.items():
    for name in names:
        assert registry_lookup(kind, f"btdagg/{name}") is not None, name
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)


def test_by_its_name_the_reducer_uses_the_model_of_the_environment(folder, tmp_path, monkeypatch):
    with pytest.raises(
        InputError, match=r"want calibrated\('model.json'\), or its .* BTDAGG_MODEL"
    ):
        calibrated()
    monkeypatch.setenv("BTDAGG_MODEL", str(folder / "model.json"))
    found = run(tmp_path, told(VOTES), "btdagg/calibrated")
    assert [score.value for score in reduced(found)] == MODEL.decide(COUNTS).tolist()


def test_an_unreadable_score_is_missing_and_never_a_tie():
    reduce = calibrated(MODEL)
    some = [
        Score(value="A"),
        Score.unscored(reason="refusal"),
        Score(value="N"),
        Score(value=" b "),
    ]
    found = reduce(some)
    assert found.metadata["counts"] == {"minus": 1, "tie": 0, "plus": 1}
    assert found.metadata["missing"] == 2
    none = reduce(some[1:3])
    assert math.isnan(none.value)
    assert none.reason == "scoring_failed"
    assert none.metadata["missing"] == 2
    by_order = reduce([Score(value={"AB": 1, "BA": math.nan}), Score(value={"BA": -1})])
    assert list(by_order.metadata["counts"].values()) == [1, 0, 1]
    assert by_order.metadata["missing"] == 1


@pytest.mark.parametrize("value", ["C", 0.5, 2, True, "a tie", {"x": 1}, {}, [1, 0]])
def test_a_score_that_is_no_vote_is_refused(value):
    with pytest.raises(InputError, match=r"^score: .*, want "):
        calibrated(MODEL)([Score(value=value)])


def test_words_say_what_other_values_mean():
    words = {"C": 1, "i": -1, "P": 0, "A": None}
    found = tallied(words=words)([Score(value=one) for one in ("C", "C", "I", "P", "A", "-1")])
    assert list(found.metadata["counts"].values()) == [2, 1, 2]
    assert found.metadata["missing"] == 1
    with pytest.raises(InputError, match=r"words\['c'\] is 2, want -1, 0, 1, or None"):
        tallied(words={"C": 2})


def test_what_holds_no_model_is_refused(folder):
    (folder / "other.json").write_text("{}")
    for bad in (folder / "other.json", folder / "absent.json", 3):
        with pytest.raises(InputError):
            calibrated(bad)


# Metrics


def test_intervals_are_those_of_estimate(log):
    metrics = log.results.scores[0].metrics
    groups = [f"p{row // 2}" for row in range(50)]
    gold = np.where(np.arange(50) < 20, LABELS, np.nan)
    wanted = btdagg.estimate(COUNTS, gold, groups=groups).estimates["net win rate"]
    by_people = [metrics[name].value for name in ("net win rate2", "low2", "high2", "labels")]
    assert by_people == [wanted.value, wanted.low, wanted.high, 20]
    of_judge = btdagg.estimate(COUNTS, MODEL.decide(COUNTS)).estimates["net win rate"]
    told = [metrics[name].value for name in ("net win rate", "low", "high")]
    assert told == [of_judge.value, of_judge.low, of_judge.high]
    assert (metrics["low"].group, metrics["low2"].group) == ("judge_win_rate", "win_rate")


def test_labels_may_be_a_table_and_need_no_model(folder, tmp_path):
    table = btdagg.read_labels({"item": [f"q{row}" for row in range(30)], "label": LABELS[:30]})
    found = run(tmp_path, told(VOTES), tallied(), metrics=[win_rate(table, quantity="A")])
    gold = np.where(np.arange(50) < 30, LABELS, np.nan)
    wanted = btdagg.estimate(COUNTS, gold).estimates["A"]
    values = {name: one.value for name, one in found.results.scores[0].metrics.items()}
    assert values == {"A": wanted.value, "low": wanted.low, "high": wanted.high, "labels": 30}


def test_without_two_labels_or_votes_there_is_no_interval(tmp_path, caplog):
    gold = samples(gold=[1, *[None] * 49])
    metrics = [win_rate("gold"), judge_win_rate()]
    one, means = (
        run(tmp_path, told(VOTES), reducer, dataset=gold, metrics=metrics).results.scores[0].metrics
        for reducer in (tallied(), None)
    )
    assert one["labels"].value == means["labels"].value == 1
    assert math.isnan(one["low"].value)
    assert not math.isnan(one["low2"].value)
    assert math.isnan(means["low2"].value)
    assert "want Epochs(n, calibrated(model)) or tallied()" in caplog.text


def test_faults_of_metrics_are_named(tmp_path):
    with pytest.raises(InputError, match="quantity is 'wins', want one of A, tie, B"):
        win_rate("gold", quantity="wins")
    with pytest.raises(InputError, match="level"):
        judge_win_rate(level=2)
    gold = samples(gold=["better"] * 50)
    for metric, message in {
        win_rate("gold"): r"sample 'q\d+', gold: 'better', want -1, 0, 1 or A, tie, B",
        judge_win_rate(groups="prompt"): r"sample 'q\d+': metadata has no 'prompt', want its group",
    }.items():
        found = run(tmp_path, told(VOTES), tallied(), dataset=gold, metrics=[metric])
        assert found.status == "error"
        assert re.search(message, found.error.message)


# Early stopping


FULL = fit_votes(COUNTS, MODEL.decide(COUNTS))
RULES = {
    "lossless": StoppingRule.lossless(MODEL, 8),
    "risk-bounded": StoppingRule.risk_bounded(MODEL, 8, FULL, epsilon=0.1),
    "in pairs": StoppingRule.lossless(MODEL, 8, step=2),
}


@pytest.mark.parametrize("name", RULES)
def test_epochs_in_series_cost_what_the_rule_says(tmp_path, name):
    rule = RULES[name]
    wanted = rule.follow(VOTES)
    found = run(
        tmp_path,
        told(VOTES),
        calibrated(rule),
        early_stopping=StopByRule(rule),
        options={"max_samples": 1},
    )
    assert found.status == "success"
    spent = np.zeros(50, dtype=int)
    np.add.at(spent, [sample.metadata["row"] for sample in found.samples], 1)
    np.testing.assert_array_equal(spent, wanted.n_votes)
    assert 50 < spent.sum() < 400
    scores = reduced(found)
    assert [score.value for score in scores] == wanted.labels.tolist()
    assert all(score.metadata["settled"] for score in scores)
    assert ("change_risk" in scores[0].metadata) == (rule.votes is not None)
    summary = found.results.early_stopping
    assert summary.manager == f"btdagg {rule.kind}"
    assert len(summary.early_stops) == 400 - spent.sum()
    assert summary.metadata["votes"] == spent.sum()
    assert summary.metadata["epochs_left_out"] == 400 - spent.sum()
    assert summary.early_stops[0].reason.startswith("settled after ")


def test_missing_votes_settle_nothing(folder, tmp_path):
    found = run(
        tmp_path,
        told(lambda sample, epoch: "A" if epoch > 2 else "N"),
        calibrated(folder / "rule.json"),
        dataset=samples(2),
        early_stopping=StopByRule(folder / "rule.json"),
        options={"max_samples": 1},
    )
    needed = int(RULES["lossless"].follow([[1] * 8]).n_votes[0])
    assert len(found.samples) == 2 * (2 + needed)
    assert found.results.early_stopping.metadata["votes_missing"] == 4


def test_from_n_votes_on_the_model_decides(folder):
    both = [Score(value={"AB": 1, "BA": 0})] * 5
    found = calibrated(RULES["risk-bounded"])(both)
    assert found.value == MODEL.decide_one(0, 5, 5)
    assert found.metadata["settled"]


def test_a_stopper_is_of_one_task_and_one_scorer(folder, tmp_path):
    with pytest.raises(InputError, match=r"rule is .*, a model, want a stopping rule"):
        StopByRule(folder / "model.json")

    @scorer(metrics=[])
    def second():
        async def score(state, target):
            return Score(value=1)

        return score

    def ends(stopper, scorer):
        return run(tmp_path, scorer, tallied(), dataset=samples(1), early_stopping=stopper)

    two = [told(VOTES), second()]
    failed = ends(StopByRule(RULES["lossless"]), two)
    assert "scorer is None, want one of the task's: told, second" in failed.error.message
    assert ends(StopByRule(RULES["lossless"], scorer="told"), two).status == "success"
    shared = StopByRule(RULES["lossless"])
    tasks = [
        Task(name=name, dataset=samples(3), scorer=told(VOTES), solver=[], early_stopping=shared)
        for name in ("one", "two")
    ]
    logs = eval(tasks, model=mock(lambda _: ""), display="none", log_dir=str(tmp_path), max_tasks=2)
    failed = [found for found in logs if found.status == "error"]
    assert len(failed) == 1
    assert "another task of this run uses this StopByRule" in failed[0].error.message
