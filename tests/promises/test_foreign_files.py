"""Files of other tools are read as what they are, and what they leave open is said."""

import json
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import btdagg
from btdagg.formats import read, read_grades
from btdagg.integrations import annotations
from refusals import refused

pytestmark = pytest.mark.usefixtures("folder")


def document(value, name="document.json"):
    Path(name).write_text(json.dumps(value), encoding="utf-8")
    return name


def lines(rows, name="rows.jsonl"):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


# Items


def test_labels_of_an_item_that_two_tasks_have_are_both_read(cli):
    ratings = {"id": ["0", "0"], "subset": ["facts", "focus"], "num_correct": [1, 2],
               "scores": [[7, 3], [2, 9]]}  # fmt: skip
    found = read(document(ratings), kind="labels").frame
    assert found.select("item", "task", "label").rows() == [
        ("0-0", "facts", 1), ("0-1", "facts", 0), ("0-0", "focus", 1), ("0-1", "focus", 1),
    ]  # fmt: skip
    gold = pl.DataFrame({"item": ["x", "x"], "task": ["a", "b"], "gold": ["A", "B"]})
    gold.write_csv("gold.csv")
    assert cli("import", "gold.csv", "--set", "label=gold", "-o", "labels.csv")[0] == 0
    assert btdagg.read_labels("labels.csv").labels.tolist() == [1, -1]
    people = gold.with_columns(rater=pl.lit("ann"))
    assert read(people, columns={"label": "gold"}).frame["vote"].to_list() == [1, -1]


def test_raters_of_two_tasks_are_not_compared_as_if_they_were_of_one():
    ratings = {"item": ["x", "x"], "rater": ["ann", "ann"], "vote": [1, 1]}
    assert btdagg.paper.read_ratings(ratings).counts().tolist() == [[0, 0, 1]]
    for name in ("task", "criterion"):
        with refused(None, row=1, column=name, source="data frame", expected=name):
            btdagg.paper.read_ratings({**ratings, name: ["a", "b"]})


# Raters


def test_a_label_that_a_rater_repeats_counts_once_and_is_said(cli):
    rows = {"item": ["x", "x", "x", "y", "z"], "rater": ["ann", "ann", "bob", "ann", "bob"],
            "label": ["A", "A", "B", "tie", "A"]}  # fmt: skip
    labels = btdagg.read_labels(rows)
    assert labels.n_repeats == 1
    assert labels.shares.tolist() == [[0.5, 0, 0.5], [0, 1, 0], [0, 0, 1]]
    pl.DataFrame(rows).write_csv("labels.csv")
    pl.DataFrame({"item": list("xyz") * 2, "vote": list("ABtABA")}).with_columns(
        vote=pl.col("vote").replace("t", "tie")
    ).write_csv("votes.csv")
    assert "1 rows of labels.csv repeat a rater's label" in cli(
        "estimate", "votes.csv", "labels.csv"
    )[2].replace("\n", " ")
    found = read("labels.csv", columns={"label": "label", "rater": "rater"})
    assert (found.n_votes, found.remarks) == (
        4, ("1 rows repeat a rater's vote and are left out",),
    )  # fmt: skip
    with pytest.raises(btdagg.InputError, match="rater 'ann', with labels 1 and -1"):
        btdagg.read_labels({**rows, "label": ["A", "B", "B", "tie", "A"]})
    means = {"item": ["x", "x"], "rater": ["ann", "ann"], "label": [1.6, 1.8]}
    with pytest.raises(btdagg.InputError, match=r"mean labels 1\.6 and 1\.8"):
        btdagg.read_labels(means, scale=btdagg.Scale((1, 2, 3)))


def test_a_rater_who_gave_an_item_no_label_has_no_share_in_it():
    rows = {"item": list("xxxyyyzzz"), "rater": ["ann", "bob", "cy"] * 3,
            "label": ["A", None, "A", "A", "B", None, None, "tie", None]}  # fmt: skip
    labels = btdagg.read_labels(rows)
    assert labels.shares.tolist() == [[0, 0, 1], [0.5, 0, 0.5], [0, 1, 0]]
    assert (labels.n_disputed, labels.labels.tolist()) == (1, [1, 0, 0])
    agreed = btdagg.read_labels(rows, raters="drop")
    assert dict(zip(agreed.frame["item"], agreed.labels.tolist(), strict=True)) == {"x": 1, "z": 0}
    scale = btdagg.Scale((1, 2, 3))
    grades = btdagg.read_labels(
        {**rows, "label": [3, None, 3, 3, 1, None, None, 2, None]}, scale=scale
    )
    assert grades.shares.tolist() == [[0, 0, 1], [0.5, 0, 0.5], [0, 1, 0]]
    # Of all items: what people said of each, and the means of that.
    rows = {"item": np.arange(60).repeat(2), "rater": ["ann", "bob"] * 60}
    gold = np.array([[1, 1], [-1, 0], [0, 0]])[np.arange(60) % 3].astype(object)
    gold[::5, 1] = None
    rows["label"] = gold.ravel().tolist()
    pl.DataFrame(rows, strict=False).write_csv("labels.csv")
    votes = {"item": np.arange(60).repeat(4), "vote": np.tile([1, 1, 0, -1], 60)}
    pl.DataFrame(votes).write_csv("votes.csv")
    shares = np.array([[sum(g == side for g in row) for side in (-1, 0, 1)] for row in gold])
    shares = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
    found = btdagg.estimate(btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv"))
    for name, share in zip(("B", "tie", "A"), shares, strict=True):
        assert found.estimates[name].value == pytest.approx(share)


def test_raters_of_few_items_are_compared_without_a_warning():
    ratings = {"item": list("xxyy"), "rater": list("abab"), "vote": [1, -1, 1, 1]}
    votes = {"item": ["x", "y"], "vote": [1, 1]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        btdagg.paper.leave_one_rater_out(
            btdagg.paper.read_ratings(ratings), btdagg.read_votes(votes)
        )


# Samples


APART = {
    "judge": ["x", "y"],
    "order": ["AB", "BA"],
    "sample": [0, 1],
    "template": ["short", "long"],
    "temperature": [0.0, 1.0],
}


@pytest.mark.parametrize("column", APART)
def test_a_sample_is_one_vote_unless_a_column_says_that_it_is_another(column):
    same = {name: values[0] for name, values in APART.items()}
    for vote, count in ((1, [0, 0, 2]), (-1, [1, 0, 1])):
        rows = pl.DataFrame([{"item": "q", **same, "vote": 1}, {"item": "q", **same, "vote": vote}])
        apart = rows.with_columns(pl.Series(column, APART[column]))
        apart.write_csv("votes.csv")
        for table in (apart, "votes.csv"):
            assert btdagg.read_votes(table).counts()[1].tolist() == [count]
        if vote == 1:
            assert btdagg.read_votes(rows).counts()[1].tolist() == [[0, 0, 1]]
        else:
            with pytest.raises(btdagg.InputError, match="1 and -1"):
                btdagg.read_votes(rows)


# Scores


def test_scores_that_are_equal_but_for_rounding_tie():
    near = [0.1 + 0.2, 0.8 - 1e-16, 1e9 * (1 + 1e-15), 0.3]
    exact = [0.3, 0.8, 1e9, 0.2]
    pairs = {"item": list("abcd"), "left": near, "right": exact}
    found = read(pairs, columns={"score_a": "left", "score_b": "right"}).frame
    assert found["vote"].to_list() == [0, 0, 0, 1]
    assert found["margin"].to_list() == [0, 0, 0, pytest.approx(0.1)]
    scores = {"group": ["p", "p"], "system": ["x", "y"], "score": [0.1 + 0.2, 0.3]}
    assert read(scores).frame["vote"].to_list() == [0]
    margins = {"item": list("ab"), "margin": [0.1 + 0.2 - 0.3, -0.1]}
    assert read(margins).frame["vote"].to_list() == [0, -1]
    assert btdagg.read_votes(margins).frame["vote"].to_list() == [0, -1]
    chances = {"item": ["a"], "p_minus": [0.3], "p_tie": [0.1], "p_plus": [0.1 + 0.2]}
    assert read(chances).frame["vote"].to_list() == [0]
    signed = {"item": list("ab"), "vote": [1, -1], "margin": [0.3 - (0.1 + 0.2), -0.5]}
    assert read(signed).n_votes == 2  # rounding has no sign


# Ids of several things


def case(name, asked, score=0.5):
    metric = {"name": "Tone", "score": score, "success": True, "evaluationModel": "j"}
    return {"name": name, "input": asked, "metricsData": [metric]}


def output_item(number, asked, model="m", **more):
    return {"datasource_item_id": number, "datasource_item": asked, "sample": {"model": model},
            "results": [{"name": "tone", "passed": True, "score": 1.0}], **more}  # fmt: skip


def results_of(asked, scores=(0.2, 0.7), reason="fine", **more):
    """Two results of promptfoo on a test, by a rubric."""
    return [
        {
            "promptIdx": place, "testIdx": 0, "vars": {"q": asked}, "provider": {"id": name},
            "testCase": {"assert": [{"type": "llm-rubric"}]}, "success": True,
            "gradingResult": {"componentResults": [
                {"pass": score > 0, "score": score, "reason": reason, **more,
                 "assertion": {"type": "llm-rubric"}}
            ]},
        }
        for place, (name, score) in enumerate(zip(("one", "two"), scores, strict=True))
    ]  # fmt: skip


def promptfoo(*results, name="run.json"):
    return document({"results": {"results": [row for pair in results for row in pair]}}, name)


@pytest.mark.parametrize(
    ("files", "items"),
    [
        (
            lambda: [document({"testCases": [case("t", asked) for asked in ("1", "2", "1")]})],
            ["t", "t #2", "t"],
        ),
        (
            lambda: [
                document({"testCases": [case("t", "1+1")]}, "a.json"),
                document({"testCases": [case("t", "2+2"), case("t", "1+1")]}, "b.json"),
            ],
            ["t", "t #2", "t"],
        ),
        (
            lambda: [lines([output_item(0, {"q": 1}), output_item(0, {"q": 2})])],
            ["0", "0 #2"],
        ),
        (
            lambda: [lines([output_item(0, {"q": 1}), output_item(0, {"q": 1}, "other")])],
            ["0", "0 #2"],
        ),
        (
            lambda: [promptfoo(results_of("a")), promptfoo(results_of("b"), name="other.json")],
            ["test-0|one", "test-0|two", "test-0 #2|one", "test-0 #2|two"],
        ),
        (
            lambda: [
                lines([{"id": 7, "fields": {"prompt": asked}, "metadata": {},
                        "responses": {"rating": [{"user_id": "u", "value": 3}]}}], name)
                for asked, name in (("a", "a.jsonl"), ("b", "b.jsonl"))
            ],
            ["7", "7 #2"],
        ),
        (
            lambda: [
                lines([{"id": 7, "data": {"text": asked}, "annotations": [
                        {"completed_by": 1, "result": [{"type": "rating", "from_name": "tone",
                         "value": {"rating": 3}}]}]}], name)
                for asked, name in (("a", "a.jsonl"), ("b", "b.jsonl"))
            ],
            ["7", "7 #2"],
        ),
    ],
    ids=["deepeval", "two runs", "openai-evals", "two models", "promptfoo", "argilla",
         "label-studio"],
)  # fmt: skip
def test_one_id_with_several_inputs_is_several_items_and_is_said(files, items):
    found = read_grades(files())
    assert found.frame["item"].to_list() == items
    assert any("#2" in remark for remark in found.remarks)


def test_ids_that_are_there_twice_in_a_subset_are_said():
    ratings = {"id": ["0", "0", "0"], "subset": ["facts", "facts", "focus"],
               "num_correct": [1, 1, 1], "scores": [[7, 3], [2, 9], [1, 2]]}  # fmt: skip
    found = read_grades(document(ratings))
    assert len(found.remarks) == 1
    assert "'0' is in several rows" in found.remarks[0]
    known = read_grades(document(ratings | {"prompt": ["a", "b", "a"]}))
    assert known.frame["item"].n_unique() == 4
    assert "#2" in known.remarks[0]
    once = {name: values[1:] for name, values in ratings.items()}
    assert read_grades(document(once)).remarks == ()


def test_logs_of_inspect_in_which_an_id_has_another_input_are_remarked(cli):
    inspect = pytest.importorskip("inspect_ai")
    from inspect_ai.scorer import Score, mean, scorer

    @scorer(metrics=[mean()], name="judged")
    def judged():
        async def score(state, target):
            return Score(value="A")

        return score

    for asked in ("x", "x", "y"):
        task = inspect.Task(dataset=[inspect.dataset.Sample(input=asked, id=1)], scorer=judged())
        inspect.eval(task, model="mockllm/model", log_dir=f"logs-{asked}", display="none")
    assert "several inputs" not in cli("import", "logs-x", "-o", "votes.csv")[2]
    error = cli("import", "logs-x", "logs-y", "-o", "both.csv")[2]
    assert "samples with one id and several inputs are read as one item: 1" in error
    assert "Warning" not in error


# Graders that failed


FAILURES = (
    "Could not extract JSON from llm-rubric response", "No output", "Error: 429 Too Many Requests",
    "llm-rubric produced malformed response: {", "API error: 503", "Request timed out after 9 s",
    "Model grader produced a malformed response:\nMaybe", "Invalid category value: Q",
)  # fmt: skip
REASONS = (
    "", "The answer is rude.", "No output format was followed.", "The error: it says 5.",
    "500 words were asked for.", "Relevance 0.00 is less than threshold 0.5", "Timeouts matter",
)  # fmt: skip


def test_a_grader_that_failed_gives_no_grade():
    for reason in FAILURES:
        found = read_grades(promptfoo(results_of("a", (0, 0.7), reason)))
        assert found.frame.select("score", "status").rows() == [(None, "failed"), (0.7, "ok")]
        assert read(promptfoo(results_of("a", (0, 0.7), reason))).unread == {"failed": 1}
    for reason in REASONS:
        assert read_grades(promptfoo(results_of("a", (0, 0.7), reason))).unread == {}
    failed = [
        output_item(0, {}, status="error"),
        output_item(1, {}, sample={"model": "m", "error": {"code": "x", "message": "y"}}),
        output_item(2, {}, sample={"model": "m", "error": {"code": "", "message": ""}}),
        output_item(3, {}, results=[{"name": "tone", "passed": False, "score": 0.0,
                                     "errors": {"model_grader_parse_error": True}}]),
    ]  # fmt: skip
    assert read_grades(lines(failed)).frame["score"].to_list() == [None, None, 1.0, None]


def test_an_answer_that_phoenix_could_not_read_gives_no_grade():
    scale = btdagg.Scale((0, 1))
    cells = {"trace_id": ["x", "y"], "name": ["good", "good"], "annotator_kind": ["LLM", "LLM"],
             "label": ["NOT_PARSABLE", "correct"], "score": [0.0, 1.0]}  # fmt: skip
    votes = annotations.votes_of(cells, scale=scale)
    assert votes.frame.select("vote", "status").rows() == [(None, "unparsed"), (1, "ok")]
    exported = {"id": ["x", "y"], "label": cells["label"], "score": cells["score"]}
    found = read_grades(exported, columns={"score": "score"}).frame
    assert found.select("score", "status").rows() == [(None, "unparsed"), (1, "ok")]


def test_a_grade_that_inspect_did_not_find_is_not_incorrect():
    scorer = pytest.importorskip("inspect_ai.scorer")
    from btdagg.integrations.inspect import tallied

    why = "Grade not found in model output: well"
    scores = [scorer.Score(value=0, explanation=why), scorer.Score(value="A", explanation="A wins")]
    counts = tallied()(scores).metadata
    assert (sum(counts["counts"].values()), counts["missing"]) == (1, 1)


# Pages, and what is left out


@pytest.mark.parametrize(
    "page",
    [
        {"has_more": True}, {"next_page": 2}, {"next": "https://x/2"}, {"cursor": "abc"},
        {"next_cursor": "abc"}, {"nextPageToken": "abc"}, {"truncated": True}, {"total": 300},
        {"meta": {"page": 1, "totalItems": 300}}, {"links": {"next": "https://x/2"}},
        {"num_rows_total": 300}, {"pagination": {"hasNext": True}},
    ],
)  # fmt: skip
def test_a_page_is_not_taken_for_all(page, cli):
    rows = [output_item(number, {}) for number in range(3)]
    document({"data": rows, **page}, "first.json")
    found = read_grades("first.json")
    assert len(found.remarks) == 1
    assert found.remarks[0].startswith("first.json is one page")
    assert "one page of several" in cli("check", "first.json")[1]
    last = {name: None if isinstance(value, int | str) else {} for name, value in page.items()}
    document({"data": rows, **last}, "last.json")
    assert read_grades("last.json").remarks == ()
    document({"data": rows, "total": 3, "has_more": False}, "all.json")
    assert read_grades("all.json").remarks == ()


def test_all_pages_together_are_not_one_page():
    for number, more in enumerate((True, True, False)):
        rows = [output_item(3 * number + k, {}) for k in range(3)]
        document({"data": rows, "has_more": more}, f"{number}.json")
    assert read_grades(["0.json", "1.json", "2.json"]).remarks == ()
    assert len(read_grades(["0.json", "1.json"]).remarks) == 2


def test_criteria_that_are_not_read_are_named(cli):
    result = [
        {"type": "rating", "from_name": "tone", "value": {"rating": 3}},
        {"type": "textarea", "from_name": "comment", "value": {"text": ["so"]}},
        {"type": "relation", "from_id": "p", "to_id": "q"},
    ]
    tasks = [{"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": result}]}]
    assert read_grades(document(tasks)).left_out == ("comment",)
    assert "left out: comment" in cli("import", "document.json", "-o", "out.csv")[2]
    assert "left out: comment" in cli("check", "document.json")[1]
    records = [
        {"id": k, "fields": {}, "metadata": {},
         "responses": {"rating": [{"user_id": "u", "value": 3}],
                       "note": [{"user_id": "u", "value": f"since {k}"}]}}
        for k in range(9)
    ]  # fmt: skip
    assert read_grades(lines(records)).left_out == ("note",)
    rated = results_of("a")
    for row in rated:
        row["testCase"]["assert"].append({"type": "contains-json", "metric": "valid"})
    assert read_grades(promptfoo(rated)).left_out == ("valid",)
    spans = [
        {"id": "b", "span_id": "s", "root_span_id": "s", "scores": {"tone": 1}},
        {"id": "c", "span_id": "t", "root_span_id": "s", "scores": {"tone": 0, "facts": 1}},
    ]
    assert read_grades(lines(spans)).left_out == ("facts",)


def test_feedback_of_langsmith_in_words_is_read():
    rows = [{"run_id": "r", "key": "good", "score": None, "value": "pass"}]
    assert read_grades(lines(rows)).frame["score"].to_list() == [1]


# Files that were refused


def test_tasks_that_nobody_answered_are_said_to_be_that():
    task = {"id": 1, "data": {}, "annotations": [], "predictions": [{"result": []}]}
    with pytest.raises(btdagg.InputError, match="no person has answered"):
        read(document([task]))


@pytest.mark.parametrize("weighted", [True, False])
def test_annotations_of_alpacaeval(weighted, cli):
    preferences = [1.0, 1.25, 1.5, 2.0, None, 0] if weighted else [1, 2, 1.5, 2, None, 0]
    rows = [
        {"instruction": f"Do {k}.", "output_1": "x", "generator_1": "zeta", "output_2": "y",
         "generator_2": "beta", "annotator": "gpt", "preference": preference}
        for k, preference in enumerate(preferences)
    ]  # fmt: skip
    found = read(document(rows))
    assert (found.formats, found.unread) == (("alpaca-eval",), {"empty": 1})
    # A is the first of the two in the alphabet.
    votes = [-1, -1 if weighted else 1, 0, 1, None, 0]
    assert found.frame["vote"].to_list() == votes
    assert set(found.frame["judge"]) == {"gpt"}
    if weighted:
        chances = found.frame.select("p_minus", "p_tie", "p_plus").rows()
        assert chances[:2] == [(1, 0, 0), (0.75, 0, 0.25)]
    else:
        assert "p_plus" not in found.frame
    assert "votes in the format alpaca-eval" in cli("check", "document.json")[1]
    with refused(None, row=1, column="preference", source="document.json", got=2.5):
        read(document([{**rows[0], "preference": 2.5}]))


ANSWERS = {
    "anthropic-batch": [
        {"custom_id": "q-AB-0", "result": {"type": "succeeded", "message": {
            "model": "j", "stop_reason": "end_turn",
            "content": [{"type": "thinking", "thinking": "[[B]]"},
                        {"type": "text", "text": "So [[A]]"}]}}},
        {"custom_id": "q-BA-0", "result": {"type": "succeeded", "message": {
            "model": "j", "stop_reason": "max_tokens",
            "content": [{"type": "text", "text": "[[A]] or"}]}}},
        {"custom_id": "r-AB-0", "result": {"type": "expired"}},
    ],
    "gemini-batch": [
        {"key": "q-AB-0", "response": {"modelVersion": "j", "candidates": [
            {"finishReason": "STOP", "content": {"parts": [
                {"text": "[[B]]", "thought": True}, {"text": "So "}, {"text": "[[A]]"}]}}]}},
        {"key": "q-BA-0", "response": {"modelVersion": "j", "candidates": [
            {"finishReason": "MAX_TOKENS", "content": {"parts": [{"text": "[[A]] or"}]}}]}},
        {"key": "r-AB-0", "error": {"code": 429, "message": "too many"}},
    ],
    "bedrock-batch": [
        {"recordId": "q-AB-0", "modelInput": {}, "modelOutput": {
            "model": "j", "content": [{"type": "text", "text": "So [[A]]"}],
            "stop_reason": "end_turn"}},
        {"recordId": "q-BA-0", "modelInput": {}, "modelOutput": {
            "output": {"message": {"content": [{"text": "[[A]] or"}]}},
            "stopReason": "max_tokens"}},
        {"recordId": "r-AB-0", "modelInput": {}, "error": {"errorCode": 400}},
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_outputs_of_batches_of_other_providers(name):
    found = read(lines(ANSWERS[name]))
    assert found.formats == (name,)
    assert found.frame.select("item", "order", "vote", "status").rows() == [
        ("q", "AB", 1, "ok"), ("q", "BA", None, "truncated"), ("r", "AB", None, "failed"),
    ]  # fmt: skip
    assert found.frame["judge"].to_list()[0] == "j"
    assert read(
        pl.DataFrame({"id": ["x"], "key": ["k"], "response": ["y"], "vote": ["A"]})
    ).formats == ("table",)


def test_scores_of_one_system_name_the_option_that_reads_them(cli):
    rows = [
        {"question_id": k, "model": "one", "judge": ["j", "single-v1"], "judgment": "", "score": 5}
        for k in range(3)
    ]
    with pytest.raises(btdagg.InputError) as caught:
        read(lines(rows))
    assert "scale" in caught.value.advice
    assert "scale=1-10" in cli("import", "rows.jsonl", "-o", "out.csv")[2]
    assert "votes.scale=1-10" in "".join(cli("check", "rows.jsonl")[1:])
