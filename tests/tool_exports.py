"""Small files in the shapes in which other tools export votes, scores and labels."""

import csv
import io
import json

N = 30


def rows(**columns):
    """Rows of 30 items: text with the number of the item for {}, or what is made of the number."""
    return [
        {
            name: of(k) if callable(of) else of.format(k) if isinstance(of, str) else of
            for name, of in columns.items()
        }
        for k in range(N)
    ]


def won(*words):
    """The word for B, tie and A of an item: A wins three of five, one is a tie."""
    return lambda k: words[(2, 2, 1, 0, 2)[k % 5]]


def lines(made):
    return "".join(json.dumps(row) + "\n" for row in made)


def table(made, separator=","):
    out = io.StringIO()
    writer = csv.DictWriter(out, list(made[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(made)
    return out.getvalue()


def promptfoo(kind):
    def graded(k, place):
        is_best = won(1, 1, 0)(k) == place
        part = {"pass": is_best, "score": float(is_best), "reason": "", "assertion": {"type": kind}}
        return {
            "testIdx": k, "promptIdx": place, "vars": {"question": f"What is {k}?"},
            "testCase": {"vars": {"question": f"What is {k}?"}}, "promptId": f"p{place}",
            "prompt": {"raw": "{{question}}", "label": "Answer"}, "success": True, "score": 1,
            "provider": {"id": f"openai:gpt-{place}", "label": ""}, "response": {"output": "!"},
            "gradingResult": {"pass": True, "score": 1, "componentResults": [part]},
        }  # fmt: skip

    results = [graded(k, place) for k in range(N) for place in (0, 1)]
    return json.dumps({"evalId": "eval-1", "results": {"version": 3, "results": results}})


def deepeval():
    metric = {"name": "Answer Relevancy", "threshold": 0.5, "evaluationModel": "gpt-4.1"}
    cases = rows(
        name="case_{}",
        input="What is {}?",
        actualOutput="!",
        metricsData=lambda k: [{**metric, "success": k % 3 > 0, "score": k % 3 / 2, "error": None}],
    )
    return json.dumps({"testRunData": {"testCases": cases, "conversationalTestCases": []}})


def batch():
    def request(k, order):
        text = won("So: [[B]]", "So: [[TIE]]", "So: [[A]]")(k)
        choice = {"index": 0, "message": {"role": "assistant", "content": text},
                  "finish_reason": "stop"}  # fmt: skip
        body = {"model": "gpt-5.4", "choices": [choice]}
        response = {"status_code": 200, "body": body}
        return {"id": f"r{k}{order}", "custom_id": f"q{k}-{order}-0", "response": response}

    return lines(request(k, order) | {"error": None} for k in range(N) for order in ("AB", "BA"))


GAMES = rows(
    question_id=lambda k: 81 + k,
    model_1="vicuna",
    model_2="alpaca",
    g1_winner=won("model_2", "tie", "model_1"),
    g2_winner=won("model_2", "error", "model_1"),
    judge=["gpt-4", "pair-v2"],
    g1_judgment="",
    g2_judgment="",
    turn=1,
)
SINGLE = [
    {"question_id": 81 + k, "model": model, "judge": ["gpt-4", "single-v1"], "judgment": "[[7]]",
     "score": 5 + (k + place) % 4, "turn": 1}
    for k in range(N) for place, model in enumerate(("alpaca", "vicuna"))
]  # fmt: skip
ARENA = rows(
    question_id="c{}",
    model_a="gpt-4",
    model_b="claude",
    winner=won("model_b", "tie (bothbad)", "model_a"),
    judge="arena_user_{}",
    turn=1,
)
ARENA_HARD = rows(
    uid="u{}",
    category="hard",
    judge="gpt-4.1",
    model="new",
    baseline="o3-mini",
    games=lambda k: [
        {"score": won("B>A", "A=B", "A>>B")(k)},
        {"score": won("A>B", "A=B", "B>A")(k)},
    ],
)
ALPACA = rows(
    instruction="Do {}.",
    output_1="x",
    generator_1="text_davinci_003",
    output_2="y",
    generator_2="mine",
    annotator="alpaca_eval_gpt4",
    preference=won(2.0, 1.5, 1.0),
)
REWARDS = rows(id="rb{}", subset="Focus", num_correct=1, scores=lambda k: [[5 + k % 4], [3], [2]])
LANGSMITH = rows(
    example_id="e{}",
    **{"inputs.question": "?", "outputs.output": "!", "feedback.correctness": lambda k: k % 2},
    **{"feedback.conciseness": lambda k: (k + 1) % 2, "execution_time": 1.5, "error": ""},
)
BRAINTRUST = rows(
    id="b{}",
    span_id="s{}",
    input="?",
    output="!",
    **{"scores.Factuality": lambda k: (0, 0.4, 1)[k % 3], "scores.Tone": lambda k: k % 2},
)
# Events of an experiment: braintrust.dev/docs/api-reference/experiments.
SPANS = rows(
    id="b{}",
    span_id="s{}",
    root_span_id="s{}",
    scores=lambda k: {"Factuality": (0, 0.4, 1)[k % 3], "Tone": None if k == 3 else k % 2},
)
SPANS += [{"id": "part", "span_id": "sub", "root_span_id": "s0", "scores": {"Tone": 0.9}}]
# developers.openai.com/api/reference/resources/evals/subresources/runs/subresources/output_items
OUTPUT_ITEMS = rows(
    object="eval.run.output_item",
    id="outputitem_{}",
    eval_id="eval_1",
    run_id="evalrun_1",
    status="pass",
    datasource_item_id=lambda k: k,
    datasource_item={"question": "?"},
    results=lambda k: [{"name": "tone", "passed": k % 3 > 0, "score": float(1 + k % 5)}],
    sample={"model": "gpt-5.4", "output": []},
)
# docs.langchain.com/langsmith/feedback-data-format
FEEDBACK = rows(
    id="f{}", created_at="2026-01-01", run_id="r{}", key="correctness", score=lambda k: k % 2,
    value="", comment="", feedback_source="",
)  # fmt: skip
LABEL_STUDIO = [
    {"id": k, "prompt": "?", "answer1": "x", "answer2": "y", "annotator": rater,
     "comparison": won("right", "right", "left")(k), "annotation_id": 2 * k, "lead_time": 4.3}
    for k in range(N) for rater in (1, 2)
]  # fmt: skip


def tasks(kind, answer):
    """Tasks of Label Studio, which two people answered and one passed over.

    As labelstud.io/guide/task_format and tags/{pairwise,choices,rating} have it.
    """

    def people(k):
        values = {kind: {"selected" if kind == "pairwise" else kind: answer(k)}}
        values["textarea"] = {"text": [f"since {k}"]}
        result = [
            {"id": "r", "from_name": kind, "to_name": "t1,t2", "type": kind, "value": value}
            for kind, value in values.items()
        ]
        return [
            {"id": 9, "completed_by": rater, "was_cancelled": rater == 3, "result": result}
            for rater in (1, 2, 3)
        ]

    return json.dumps(rows(id=lambda k: k, data={"text1": "x"}, annotations=people, predictions=[]))


def records(value):
    """Records of Argilla with responses of two users, as Record.to_dict of its SDK has it."""

    def responses(k):
        preference = [{"value": value(k), "user_id": user} for user in ("3f0a", "77cd")]
        return {
            "preference": preference,
            "comment": [{"value": f"since {k}", "user_id": "3f0a"}],
        }

    about = {"fields": {"prompt": "?"}, "metadata": {}, "suggestions": {}, "vectors": {}}
    return json.dumps(rows(id="a{}", **about, responses=responses, _server_id="s{}"))


PROLIFIC = [
    {"participant_id": f"p{rater}", "question_id": f"q{k}", "time_taken": 12,
     "preference": won("Right", "Same", "Left")(k + (rater == k % 7))}
    for k in range(N) for rater in range(3)
]  # fmt: skip
RAGAS = rows(
    id="r{}",
    user_input="?",
    response="!",
    faithfulness=lambda k: (0.0, 0.5, 1.0)[k % 3],
    answer_relevancy=lambda k: 0.25 * (k % 5),
)
WEAVE = rows(
    call_id="w{}",
    trace_id="t{}",
    **{"inputs.example.question": "?", "output.model_latency": 1.5},
    **{"output.scores.judge.correct": lambda k: str(k % 3 > 0).lower()},
)
LANGFUSE = rows(
    id="score-{}",
    timestamp="2026-01-01",
    traceId="t{}",
    name="helpfulness",
    value=lambda k: 1 + k % 5,
    dataType="NUMERIC",
    source="EVAL",
)
PHOENIX = rows(
    **{"context.span_id": "s{}", "annotation_name": "correctness", "annotator_kind": "LLM"},
    label=lambda k: "correct" if k % 3 else "incorrect",
    score=lambda k: int(k % 3 > 0),
    explanation="",
)
MLFLOW = rows(
    trace_id="tr-{}",
    inputs="?",
    outputs="!",
    **{"answer_quality/score": lambda k: 1 + k % 5, "answer_quality/justification": ""},
)
VERTEX = rows(
    prompt_id="v{}",
    response="!",
    baseline_model_response="!",
    pairwise_choice=won("BASELINE", "TIE", "CANDIDATE"),
)

# File, content, kind, and parts of what is said of it.
EXPORTS = {
    "promptfoo-best": ("best.json", promptfoo("select-best"), "votes", "30 items; 30 votes"),
    "promptfoo-rubric": ("rubric.json", promptfoo("llm-rubric"), "votes", "task: llm-rubric 30"),
    "deepeval": ("test_run.json", deepeval(), "votes", "judge: gpt-4.1 30"),
    "openai-batch": ("output.jsonl", batch(), "votes", "order: AB 30, BA 30; ties 20%"),
    "mt-bench-pairs": ("pair.jsonl", lines(GAMES), "votes", "6 missing; judge: gpt-4 60"),
    "mt-bench-single": ("single.jsonl", lines(SINGLE), "votes", "30 items; 30 votes"),
    "arena": ("arena.jsonl", lines(ARENA), "labels", "of each: B 18, tie 6, A 6; 30 groups"),
    "arena-hard": ("judgment.jsonl", lines(ARENA_HARD), "votes", "60 votes; 2 votes an item"),
    "alpaca-eval": ("annotations.json", json.dumps(ALPACA), "votes", "ties 20%"),
    "rewardbench": ("scores.jsonl", lines(REWARDS), "votes", "90 items; 90 votes"),
    "langsmith": ("run.csv", table(LANGSMITH), "votes", "task: correctness 30, conciseness 30"),
    "braintrust": ("experiment.csv", table(BRAINTRUST), "votes", "task: factuality 30, tone 30"),
    "label-studio": ("project.json", json.dumps(LABEL_STUDIO), "labels", "2 raters; "),
    "label-studio-pairs": (
        *("tasks.json", tasks("pairwise", won("right", "right", "left")), "labels", "2 raters; "),
    ),
    "label-studio-choices": (
        "choices.json",
        tasks("choices", won(["response_b"], ["Tie"], ["Response_A"])),
        "labels",
        "30 labels; of each: B 6, tie 6, A 18; 2 raters",
    ),
    "label-studio-rating": (
        *("ratings.json", tasks("rating", lambda k: 1 + k % 5), "labels", "of each: 1 6, 2 6"),
    ),
    "argilla": ("records.json", records(won("B", "tie", "A")), "labels", "2 raters; "),
    "argilla-rating": ("rated.json", records(lambda k: 1 + k % 5), "labels", "2 raters; "),
    "openai-evals": (
        *("items.json", json.dumps({"object": "list", "data": OUTPUT_ITEMS}), "votes"),
        "mean grade 3.00",
    ),
    "braintrust-spans": ("spans.jsonl", lines(SPANS), "votes", "59 votes; 0 to 1"),
    "braintrust-cells": (
        "cells.csv",
        table([row | {"scores": json.dumps(row["scores"])} for row in SPANS]),
        "votes",
        "59 votes; 0 to 1",
    ),
    "langsmith-feedback": ("feedback.csv", table(FEEDBACK), "votes", "task: correctness 30"),
    "prolific": ("form.csv", table(PROLIFIC), "labels", "9 items on which raters disagree"),
    "ragas": ("ragas.csv", table(RAGAS), "votes", "faithfulness 30, answer_relevancy 30"),
    "weave": ("weave.csv", table(WEAVE), "votes", "30 items; 30 votes"),
    "langfuse": ("langfuse.csv", table(LANGFUSE), "votes", "helpfulness 30; mean grade 3.00"),
    "phoenix": ("phoenix.csv", table(PHOENIX), "votes", "mean grade 0.67"),
    "mlflow": ("results.csv", table(MLFLOW), "votes", "mean grade 3.00"),
    "vertex": ("vertex.csv", table(VERTEX), "votes", "1 vote an item; ties 20%"),
}  # fmt: skip
