"""Inspect: logs into votes, epochs to labels, intervals, early stopping, and labels into logs."""

# ruff: noqa: E402  # without inspect-ai nothing of this is run

import math
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import btdagg
from btdagg import Covariate, DavidsonModel, GradeModel, InputError, Scale
from btdagg.formats import read_grades
from btdagg.online import StoppingRule, fit_votes
from refusals import refused

pytestmark = pytest.mark.integration
pytest.importorskip("inspect_ai")  # a page of the docs fails in CI where it is not there

from inspect_ai import Epochs, Task, eval, eval_retry
from inspect_ai.dataset import Sample
from inspect_ai.log import ProvenanceData, invalidate_samples, read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate

from btdagg.integrations.inspect import (
    StopByRule,
    calibrated,
    graded,
    judge_win_rate,
    missing_by_status,
    pairwise,
    read_inspect_labels,
    read_inspect_votes,
    tallied,
    win_rate,
    write_inspect_labels,
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
for kind, names in {"score_reducer": ["calibrated", "tallied"], "scorer": ["pairwise", "graded"],
                    "metric": ["win_rate", "judge_win_rate"]}.items():
    for name in names:
        assert registry_lookup(kind, f"btdagg/{name}") is not None, name
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)


def test_by_its_name_the_reducer_uses_the_model_of_the_environment(folder, tmp_path, monkeypatch):
    with refused("model", got=None, expected="the environment variable BTDAGG_MODEL"):
        calibrated()
    monkeypatch.setenv("BTDAGG_MODEL", str(folder / "model.json"))
    found = run(tmp_path, told(VOTES), "btdagg/calibrated", dataset=samples(8))
    assert [score.value for score in reduced(found)] == MODEL.decide(COUNTS[:8]).tolist()


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
    with pytest.raises(InputError, match=r"^score: .*, expected "):
        calibrated(MODEL)([Score(value=value)])


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


def test_without_two_labels_or_votes_there_is_no_interval(tmp_path, caplog):
    gold = samples(6, gold=[1, *[None] * 5])
    metrics = [win_rate("gold"), judge_win_rate()]
    one, means = (
        run(tmp_path, told(VOTES), reducer, dataset=gold, metrics=metrics).results.scores[0].metrics
        for reducer in (tallied(), None)
    )
    assert one["labels"].value == means["labels"].value == 1
    assert math.isnan(one["low"].value)
    assert not math.isnan(one["low2"].value)
    assert math.isnan(means["low2"].value)
    assert "use Epochs(n, calibrated(model)) or tallied()" in caplog.text


def test_faults_of_metrics_are_named(tmp_path):
    with refused("quantity", got="wins", expected="one of A, tie, B"):
        win_rate("gold", quantity="wins")
    with refused("level", got=2):
        judge_win_rate(level=2)
    gold = samples(3, gold=["better"] * 3)
    for metric, message in {
        win_rate("gold"): r"sample 'q\d+', gold: 'better', expected -1, 0, 1 or A, tie, B",
        judge_win_rate(
            groups="prompt"
        ): r"sample 'q\d+': metadata has no 'prompt', expected the sample's group",
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
    wanted = rule.follow(VOTES[:16])
    found = run(
        tmp_path,
        told(VOTES),
        calibrated(rule),
        dataset=samples(16),
        early_stopping=StopByRule(rule),
        options={"max_samples": 1},
    )
    assert found.status == "success"
    spent = np.zeros(16, dtype=int)
    np.add.at(spent, [sample.metadata["row"] for sample in found.samples], 1)
    np.testing.assert_array_equal(spent, wanted.n_votes)
    assert 16 < spent.sum() < 128
    scores = reduced(found)
    assert [score.value for score in scores] == wanted.labels.tolist()
    assert all(score.metadata["settled"] for score in scores)
    assert ("change_risk" in scores[0].metadata) == (rule.votes is not None)
    summary = found.results.early_stopping
    assert summary.manager == f"btdagg {rule.kind}"
    assert len(summary.early_stops) == 128 - spent.sum()
    assert summary.metadata["votes"] == spent.sum()
    assert summary.early_stops[0].reason.startswith("settled after ")


def test_a_stopper_is_of_one_task_and_one_scorer(folder, tmp_path):
    with pytest.raises(InputError, match=r"rule is .*, expected a stopping rule, not a model"):
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
    assert "expected one of the task's: told, second" in failed.error.message
    assert ends(StopByRule(RULES["lossless"], scorer="told"), two).status == "success"
    shared = StopByRule(RULES["lossless"])
    tasks = [
        Task(name=name, dataset=samples(3), scorer=told(VOTES), solver=[], early_stopping=shared)
        for name in ("one", "two")
    ]
    logs = eval(tasks, model=mock(lambda _: ""), display="none", log_dir=str(tmp_path), max_tasks=2)
    failed = [found for found in logs if found.status == "error"]
    assert len(failed) == 1
    said = failed[0].error.message
    assert "this StopByRule already belongs to another task; give each task its own" in said


# The pairwise scorer


PAIR = {"a": "good", "b": "bad", "label": 1}


def by_response(messages):
    """Prefers the good response wherever it is shown, and will not say so of an odd pair."""
    text = messages[-1].text
    first, second = (re.search(rf"<response_{side}>\s*(\S+)", text)[1] for side in "ab")
    if "odd" in text and first == "good":
        return "It is not for me to say."
    return f"So be it.\n[[{'A' if first == 'good' else 'B' if second == 'good' else 'TIE'}]]"


def judged(folder, *pairs, reducer=None, epochs=1, judge=by_response, **options):
    dataset = [
        Sample(input=text, id=f"q{row}", target="bad", metadata=metadata)
        for row, (text, metadata) in enumerate(pairs)
    ]
    return run(
        folder,
        pairwise("a", "b", **options),
        reducer,
        epochs=epochs,
        dataset=dataset,
        options={"model": mock(judge)},
    )


def test_both_orders_are_asked_and_flipped(tmp_path):
    pairs = [("even", PAIR), ("even", {"a": "bad", "b": "good"}), ("even", {"a": "x", "b": "y"})]
    found = judged(tmp_path, *pairs, ("odd", PAIR), reducer=calibrated(MODEL), epochs=2)
    scores = [sample.scores["pairwise"] for sample in found.samples if sample.epoch == 1]
    assert [score.value for score in scores[:3]] == [
        {"AB": side, "BA": side} for side in (1, -1, 0)
    ]
    assert math.isnan(scores[3].value["AB"])
    assert scores[3].value["BA"] == 1
    assert scores[3].answer == "AB: -, BA: A"
    assert "It is not for me to say." in scores[3].explanation
    counts = [list(score.metadata["counts"].values()) for score in reduced(found)]
    assert counts == [[0, 0, 4], [4, 0, 0], [0, 4, 0], [0, 0, 2]]
    assert found.results.scores[0].metrics["net win rate"].group == "judge_win_rate"
    votes = read_inspect_votes(found)
    assert votes.tally().select("minus", "tie", "plus").rows() == [tuple(one) for one in counts]
    assert missing_by_status(votes) == {"unparsed": 2}
    assert votes.values("order").to_list() == ["AB", "BA"]
    assert votes.values("judge").to_list() == ["mockllm/model"]


def test_orders_may_alternate_by_epoch(tmp_path):
    found = judged(tmp_path, ("odd", PAIR), reducer=tallied(), epochs=3, orders="alternate")
    scores = [sample.scores["pairwise"] for sample in found.samples]
    assert [score.reason for score in scores] == ["grader_failed", None, "grader_failed"]
    assert scores[1].value == 1
    frame = read_inspect_votes(found).frame
    assert frame.select("sample", "order", "vote", "status").rows() == [
        (1, "AB", None, "unparsed"),
        (2, "BA", 1, "ok"),
        (3, "AB", None, "unparsed"),
    ]


def test_a_judge_sees_the_responses_and_no_label(tmp_path):
    seen = []

    def answer(messages):
        seen.append("\n".join(message.text for message in messages))
        return "[[TIE]]"

    dataset = [Sample(input="Say hi", target="Hello", metadata={"label": "SECRET", "x": "Hi"})]
    model = get_model("mockllm/model", custom_outputs=[said("Good day")])
    judges = {"grader": mock(answer)}
    options = {"model": model, "model_roles": judges}
    found = run(tmp_path, pairwise(), epochs=1, dataset=dataset, solver=generate(), options=options)
    assert found.samples[0].scores["pairwise"].value == {"AB": 0, "BA": 0}
    assert all("Say hi" in text and "SECRET" not in text for text in seen)
    places = [(text.index("Good day"), text.index("Hello")) for text in seen]
    assert sorted(first < second for first, second in places) == [False, True]


# Logs into votes


def test_votes_of_a_log_are_its_scores(log):
    for source in (log, log.location, [Path(log.location)]):
        votes = read_inspect_votes(source, columns={"group": "prompt"})
        assert votes.columns == ["item", "vote", "sample", "judge", "task", "status", "group"]
        ids, counts = votes.counts()
        order = np.argsort([int(item[1:]) for item in ids])
        np.testing.assert_array_equal(counts[order], COUNTS)
        assert set(votes.frame["sample"]) == set(range(1, 9))
        assert set(votes.frame["status"]) == {"ok"}
        assert missing_by_status(votes) == {}
    labels = read_inspect_labels(log, "gold", columns={"group": "prompt"})
    assert (len(labels.ids), labels.n_missing) == (20, 30)
    known = dict(zip(labels.ids, labels.labels, strict=True))
    assert known == {f"q{row}": LABELS[row] for row in range(20)}
    found = btdagg.estimate(votes, labels).estimates["net win rate"]
    values = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert found.value == pytest.approx(values["net win rate2"], abs=0.1)


def test_why_votes_are_missing_is_counted(tmp_path):
    def value(sample, epoch):
        if sample == "q0" and epoch == 1:
            raise ValueError("the judge is ill")
        return {1: "N", 2: Score.unscored(reason="refusal")}.get(epoch, 1) if sample == "q1" else 1

    found = run(tmp_path, told(value), epochs=3, dataset=samples(4), fail_on_error=False)
    third = next(one for one in found.samples if (one.id, one.epoch) == ("q2", 3))
    found = invalidate_samples(found, [third.uuid], ProvenanceData(author="me"))
    votes = read_inspect_votes(found)
    why = {"error": 1, "invalidated": 1, "no answer": 1, "refusal": 1}
    assert missing_by_status(votes) == why
    assert votes.tally().rows_by_key("item")["q0"] == [(0, 0, 2)]
    assert votes.tally()["tie"].sum() == 0


def test_an_error_lacks_a_vote_of_each_order(tmp_path):
    @scorer(metrics=[])
    def ill():
        ask = pairwise("a", "b")

        async def score(state, target):
            if state.sample_id == "q0":
                raise ValueError("the judge is ill")
            return await ask(state, target)

        return score

    dataset = [Sample(input="p", id=f"q{row}", metadata=PAIR) for row in range(2)]
    options = {"model": get_model("mockllm/x"), "model_roles": {"grader": mock(by_response)}}
    found = run(tmp_path, ill(), epochs=2, dataset=dataset, fail_on_error=False, options=options)
    votes = read_inspect_votes(found)
    assert missing_by_status(votes) == {"error": 4}
    assert votes.frame.filter(item="q0")["order"].to_list() == ["AB", "BA"] * 2
    assert set(votes.frame["judge"]) == {"mockllm/model"}


def test_runs_without_samples_are_left_out(tmp_path):
    run(tmp_path, told(VOTES), epochs=2, dataset=samples(2))
    stopper = StopByRule(RULES["lossless"], scorer="other")
    empty = run(tmp_path, told(VOTES), dataset=samples(2), early_stopping=stopper)
    assert not empty.samples
    with pytest.warns(UserWarning, match=r"without samples, left out: .*\.eval") as said:
        assert read_inspect_votes(tmp_path).height == 4
    assert said[0].filename == __file__
    for alone in (empty, empty.location):
        with pytest.raises(InputError, match=r"\.eval: no log has samples"):
            read_inspect_votes(alone)


def test_runs_that_evaluate_several_models_are_refused_unless_they_are_the_judges(tmp_path):
    dataset = [Sample(input="p", id="q0", metadata=PAIR)]
    graded, alone = (
        [
            run(
                tmp_path,
                scorer,
                epochs=1,
                dataset=dataset,
                options={"model": get_model(f"mockllm/{name}"), "model_roles": roles},
            )
            for name in "xy"
        ]
        for scorer, roles in (
            (pairwise("a", "b"), {"grader": mock(by_response)}),
            (told(lambda *_: 1), None),
        )
    )
    said = r"runs of the task 'task' evaluate several models \(mockllm/x, mockllm/y\); give"
    with pytest.raises(InputError, match=said):
        read_inspect_votes(graded)
    assert read_inspect_votes([graded[0], graded[0].location]).height == 2
    assert set(read_inspect_votes(alone).frame["judge"]) == {"mockllm/x", "mockllm/y"}
    graded[0].eval.model = "mockllm/model"  # which was the judge: of the other run too
    with pytest.raises(InputError, match="evaluate several models \\(mockllm/model, mockllm/y"):
        read_inspect_votes(graded)


def test_runs_add_up_and_what_a_log_repeats_counts_once(tmp_path):
    first = run(tmp_path, told(VOTES), epochs=2, dataset=samples(10))
    time.sleep(1.1)  # the name of a log tells its order by seconds
    second = run(tmp_path, told(VOTES[:, 2:]), epochs=3, dataset=samples(10))
    votes = read_inspect_votes(tmp_path)
    assert votes.height == 50
    assert sorted(set(votes.frame["sample"])) == [1, 2, 3, 4, 5]
    ids, counts = votes.counts(4)
    rows = [int(item[1:]) for item in ids]
    wanted = np.stack([(VOTES[:, :4] == side).sum(axis=1) for side in (-1, 0, 1)], axis=1)
    np.testing.assert_array_equal(counts, wanted[rows])
    assert read_inspect_votes([first, second, first.location]).height == 50


RETRIED = """
import os
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, mean, scorer
from btdagg.integrations.inspect import StopByRule, calibrated

@scorer(metrics=[mean()])
def judge():
    async def score(state, target):
        if "ILL" in os.environ and (state.sample_id, state.epoch) == ("b", 3):
            raise ValueError("the judge is ill")
        return Score(value=1)
    return score

@task
def retried():
    dataset = [Sample(input="x", id=name) for name in "ab"]
    epochs = Epochs(8, calibrated("rule.json"))
    stopper = StopByRule("rule.json")
    return Task(dataset, solver=[], scorer=judge(), epochs=epochs, early_stopping=stopper)
"""


def test_a_retried_run_is_one_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("retried.py").write_text(RETRIED)
    RULES["lossless"].save("rule.json")
    monkeypatch.setenv("BTDAGG_MODEL", "rule.json")
    monkeypatch.setenv("ILL", "1")
    options = {"display": "none", "log_dir": "logs", "max_samples": 1}
    (failed,) = eval("retried.py", model="mockllm/model", **options)
    assert failed.status == "error"
    monkeypatch.delenv("ILL")
    (done,) = eval_retry(failed, **options)
    needed = int(RULES["lossless"].follow([[1] * 8]).n_votes[0])
    assert done.status == "success", done.error
    assert done.results.early_stopping.metadata["votes"] == 2 * needed
    for source in ("logs", [done, failed]):
        votes = read_inspect_votes(source)
        assert missing_by_status(votes) == {}
        assert votes.counts()[1].tolist() == [[0, 0, needed]] * 2
    assert missing_by_status(read_inspect_votes(failed))["error"] > 0


def test_faults_of_logs_are_named(log, tmp_path):
    (tmp_path / "bad.eval").write_text("no log")
    (tmp_path / "empty").mkdir()
    for source, message in {
        tmp_path / "absent.eval": r"absent\.eval: not a log of Inspect: ",
        tmp_path / "bad.eval": r"bad\.eval: not a log of Inspect: ",
        tmp_path / "empty": "empty: no logs of Inspect in this folder",
    }.items():
        with pytest.raises(InputError, match=message):
            read_inspect_votes(source)
    with pytest.raises(InputError, match="scorer is 'grade', expected one of verdict"):
        read_inspect_votes(log, scorer="grade")
    with pytest.raises(
        InputError, match=r"columns\['group'\] is 'g', which is in no sample's metadata"
    ):
        read_inspect_votes(log, columns={"group": "g"})
    two = log.model_copy(deep=True)
    two.samples[0].scores["other"] = Score(value=1)
    with pytest.raises(InputError, match="scores of verdict, other; name one as the scorer"):
        read_inspect_votes(two)
    two.samples[0].metadata["gold"] = "A" if two.samples[0].metadata["gold"] != 1 else "B"
    with pytest.raises(InputError, match="in another epoch or log"):
        read_inspect_labels(two, "gold")


# Labels into logs


@pytest.fixture(scope="module")
def written(log, folder):
    output = folder / "written" / "calibrated.eval"
    output.parent.mkdir()
    write_inspect_labels(log.location, folder / "model.json", output)
    return output


def test_labels_are_written_beside_the_votes(log, written):
    found = read_eval_log(str(written))
    before = read_eval_log(log.location)
    rows = [sample.metadata["row"] for sample in found.samples]
    labels = MODEL.decide(COUNTS)
    scores = [sample.scores["calibrated"] for sample in found.samples]
    assert [score.value for score in scores] == labels[rows].tolist()
    assert list(scores[0].metadata["counts"].values()) == COUNTS[rows[0]].tolist()
    (edit,) = scores[0].history
    assert edit.provenance.author == f"btdagg {btdagg.__version__}"
    assert edit.provenance.reason == "label by the votes of the scorer verdict"
    assert [one.scores["verdict"] for one in found.samples] == [
        one.scores["verdict"] for one in before.samples
    ]
    assert found.results.scores == before.results.scores
    np.testing.assert_array_equal(
        read_inspect_votes(found, scorer="verdict").counts()[1],
        read_inspect_votes(before).counts()[1],
    )


def test_no_file_is_replaced(log, written, tmp_path):
    original = Path(log.location).read_bytes()
    for output in (Path(log.location), written):
        with refused("output", got=str(output)):
            write_inspect_labels(log, MODEL, output)
    with refused("name", got="verdict"):
        write_inspect_labels(log, MODEL, tmp_path / "x.eval", name="verdict")
    assert list(tmp_path.iterdir()) == []
    in_memory = log.model_dump_json()
    write_inspect_labels(log, MODEL, tmp_path / "log.json")
    assert log.model_dump_json() == in_memory
    assert Path(log.location).read_bytes() == original
    assert len(read_eval_log(str(tmp_path / "log.json")).samples) == 400


# Grades

GRADES = GradeModel(beta=2, cuts=(2.5, 3, 4, 4.8), scale=Scale(range(1, 6)))
GIVEN = np.random.default_rng(1).integers(1, 6, (8, 4))
OF_GRADES = np.stack([(grade == GIVEN).sum(axis=1) for grade in range(1, 6)], axis=1)


def test_epochs_of_grades_are_reduced_to_the_calibrated_grade(tmp_path):
    GRADES.save(tmp_path / "grades.json")
    scored = run(
        tmp_path, told(GIVEN), calibrated(tmp_path / "grades.json"), epochs=4, dataset=samples(8)
    )
    scores = reduced(scored)
    assert [score.value for score in scores] == GRADES.decide(OF_GRADES).tolist()
    assert [score.value for score in scores] != np.round(GIVEN.mean(axis=1)).tolist()
    assert [list(score.metadata["counts"].values()) for score in scores] == OF_GRADES.tolist()
    assert list(scores[0].metadata["probabilities"]) == ["1", "2", "3", "4", "5"]
    votes = read_inspect_votes(scored, scale=GRADES.scale)
    np.testing.assert_array_equal(votes.counts()[1], OF_GRADES)
    written = write_inspect_labels(scored, GRADES, tmp_path / "labelled.eval")
    by_item = {sample.id: sample.scores["calibrated"].value for sample in written.samples}
    assert list(by_item.values()) == GRADES.decide(OF_GRADES).tolist()


@pytest.mark.parametrize(
    ("points", "values", "counts"),
    [
        ((0, 1), ["C", "I", True, "fail", "N"], [2, 2]),
        ((0, 0.5, 1), ["C", "P", "I", 0.5, float("nan")], [1, 2, 1]),
        ((1, 2, 3), [3, "2", 1.0, "good", ""], [1, 1, 2]),
    ],
)
def test_what_scores_mean_as_grades(points, values, counts):
    scale = Scale(points)
    model = GradeModel(beta=1, cuts=points[1:], scale=scale)
    scores = [Score(value=value) for value in values]
    score = calibrated(model, words={"good": points[-1]})(scores)
    assert list(score.metadata["counts"].values()) == counts
    assert score.metadata["missing"] == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("P", "'P', expected 0 or 1"),
        (0.5, "0.5, expected 0 or 1"),
        ("X", "'X', expected 0 or 1"),
        ({"accuracy": 1, "tone": 0}, "grades by accuracy, tone, expected one grade"),
    ],
)
def test_a_score_that_is_no_grade_is_refused(value, message):
    model = GradeModel(beta=1, cuts=(0.5,), scale=Scale((0, 1)))
    with pytest.raises(InputError, match=re.escape(message)):
        calibrated(model)([Score(value=value)])


def test_scores_by_criterion_are_tasks(tmp_path):
    values = [{"accuracy": 4, "tone": 5}, {"accuracy": 2, "tone": "N"}]
    scored = run(
        tmp_path, told(lambda sample, epoch: values[int(sample[1:])]), epochs=1,
        dataset=samples(2, gold=[3, None]),
    )  # fmt: skip
    votes = read_inspect_votes(scored, scale=GRADES.scale)
    assert votes.frame.select("item", "task", "vote", "status").rows() == [
        ("q0", "accuracy", 4, "ok"), ("q0", "tone", 5, "ok"),
        ("q1", "accuracy", 2, "ok"), ("q1", "tone", None, "no answer"),
    ]  # fmt: skip
    labels = read_inspect_labels(scored, "gold", scale=GRADES.scale)
    assert (labels.labels.tolist(), labels.n_missing) == ([3], 1)
    imported = read_grades(scored.location, scale=GRADES.scale)
    assert imported.frame.columns[:2] == ["item", "score"]


# What else is known of samples

KNOWN = (
    Covariate("standing", 0.9, 0.5, standings={"ant": 0.5, "bee": -0.5}),
    Covariate("length", 0.8, 1.0),
)
KNOWING = DavidsonModel(0.4, 0.5, 0.3, covariates=KNOWN)


def test_lengths_and_systems_of_pairs_are_known(tmp_path):
    texts = [{"a": "good " * 9, "b": "bad"}, {"a": "bad", "b": "good"}, {"a": "x", "b": "y " * 30}]
    own = {"system_a": "ant", "system_b": "bee"}
    scored = judged(
        tmp_path, *(("even", pair | own) for pair in texts), reducer=calibrated(KNOWING), epochs=2
    )
    lengths = [np.log1p(len(pair["a"])) - np.log1p(len(pair["b"])) for pair in texts]
    known = {"standing": [1.0] * 3, "length": lengths}
    counts = [[0, 0, 4], [4, 0, 0], [0, 4, 0]]
    labels = KNOWING.decide(counts, covariates=known).tolist()
    assert labels != replace(KNOWING, covariates=()).decide(counts).tolist()
    assert [score.value for score in reduced(scored)] == labels
    shares = KNOWING.predict_proba(counts, covariates=known)[0].tolist()
    assert [*reduced(scored)[0].metadata["probabilities"].values()] == shares
    votes = read_inspect_votes(scored)
    assert {*own, "chars_a", "chars_b"} <= {*votes.columns}
    assert btdagg.decisions(votes, KNOWING)["label"].to_list() == labels
    written = write_inspect_labels(scored, KNOWING, tmp_path / "labelled.eval")
    of_samples = {sample.id: sample.scores["calibrated"].value for sample in written.samples}
    assert list(of_samples.values()) == labels


def test_the_evaluated_model_is_the_system_of_its_output(tmp_path):
    model = replace(GRADES, covariates=(replace(KNOWN[0], standings={"mockllm/model": 3.0}),))
    dataset = [Sample(input="Say hi", id="q0")]
    outputs = get_model("mockllm/model", custom_outputs=[said("Good day")])
    options = {"model": outputs, "model_roles": {"grader": mock(lambda messages: "[[3]]")}}
    scored = run(
        tmp_path, graded(), calibrated(model), epochs=1, dataset=dataset, solver=generate(),
        options=options,
    )  # fmt: skip
    known = {"standing": [3.0]}
    assert [score.value for score in reduced(scored)] == model.decide(
        [[0, 0, 1, 0, 0]], covariates=known
    ).tolist()
    frame = read_inspect_votes(scored, scale=GRADES.scale).frame
    assert frame.select("system", "chars").rows() == [("mockllm/model", 8)]


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([{}], "metadata of the scores: expected standing, or system_a and system_b, a covariate"),
        ([{"standing": 0.1}], "metadata of the scores: expected length, or chars_a and chars_b"),
        ([{"standing": "x", "length": 1}], r"covariates['standing']"),
        (
            [{"standing": 0.1, "length": 1}, {"length": 2}],
            "length is '1 and 2, which differ between epochs of a sample', expected one value, as ",
        ),
    ],
)
def test_scores_that_do_not_say_what_a_model_knows_are_refused(metadata, message):
    scores = [Score(value=1, metadata=own) for own in metadata]
    with pytest.raises(InputError, match=re.escape(message)):
        calibrated(KNOWING)(scores)
    known = {"standing": 0.1, "length": 1}
    score = calibrated(KNOWING)([Score(value=1, metadata=known), Score(value=0)])
    assert score.value == KNOWING.decide_one(0, 1, 1, covariates=known)


def test_a_judge_that_grades_one_response(tmp_path):
    words = iter(["[[4]]", "[[4]]", "Hard to say.", "[[5]]"])
    asked = []

    def answer(messages):
        asked.append(messages[-1].text)
        return next(words)

    model = mock(answer)
    scored = run(
        tmp_path, graded("said"), calibrated(GRADES), epochs=2,
        dataset=samples(2, said=["Hello!", "Go away."]), options={"model": model, "max_samples": 1},
    )  # fmt: skip
    assert "<response>\nHello!\n</response>" in asked[0]
    votes = read_inspect_votes(scored, scale=GRADES.scale)
    assert sorted(votes.frame.select("vote", "status").rows(), key=str) == [
        (4, "ok"), (4, "ok"), (5, "ok"), (None, "grader_failed"),
    ]  # fmt: skip
    with refused("template", got="response"):
        graded(template="response")
