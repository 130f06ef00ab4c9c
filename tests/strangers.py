"""Files as strangers have them: keys, columns, words and scales of their own.

``python tests/strangers.py FOLDER`` makes one of data/topical in the folder of $BTDAGG_SHARED.
"""

import csv
import os
import random
import sys
from pathlib import Path

Q = range(40)


def _table(head, rows):
    return "".join(",".join(map(str, row)) + "\n" for row in (head.split(","), *rows))


def _made():
    draw = random.Random(3)
    some, grade = draw.choice, draw.randint
    few, sides = range(25), ("model_a", "model_b", "draw")
    two = [("tone", "facts"), ("x", "y")]
    blank = "".join(f"{k},{some('AB')},,\n" for k in Q)
    votes = [(k, some("AB")) for k in Q]
    gold = _table("id,label", [(k, some("AB")) for k in few])
    return {
        "words": (
            _table("qid,grader,winner", [(k, "g", some(sides)) for k in Q for _ in range(3)]),
            _table("qid,human", [(k, some(sides)) for k in few]),
        ),
        "unknown words": (
            _table("qid,winner", [(k, some(("gpt", "claude", "both"))) for k in Q]),
            _table("qid,human", [(k, some(("gpt", "claude"))) for k in Q]),
        ),
        "grades of five": (
            _table("case_id,rating", [(k, grade(2, 4)) for k in Q for _ in range(3)]),
            _table("case_id,gold", [(k, grade(1, 5)) for k in few]),
        ),
        "item and model": (
            _table(
                "question_id,model,run,score",
                [(k, m, run, grade(1, 5)) for k in Q for m in two[1] for run in (0, 1)],
            ),
            _table("question_id,model,label", [(k, m, grade(1, 5)) for k in few for m in two[1]]),
        ),
        "raters": (
            _table("id,verdict", [(k, some("AB")) for k in Q for _ in range(3)]),
            _table(
                "id,annotator,preference",
                [(k, a, some(("A", "B", "tie"))) for k in few for a in ("ann", "bob")],
            ),
        ),
        "pass and fail": (
            _table("id,vote", [(k, some(("pass", "fail"))) for k in Q for _ in range(3)]),
            _table("id,gold", [(k, some(("pass", "fail"))) for k in few]),
        ),
        "wide": (
            _table("id,tone_score,facts_score", [(k, grade(1, 5), grade(1, 5)) for k in Q]),
            _table("id,aspect,human", [(k, c, grade(1, 5)) for k in few for c in two[0]]),
        ),
        "orders": (
            _table(
                "id,winner,shown_first",
                [(k, some(("left", "right")), some(("new", "old"))) for k in Q for _ in range(2)],
            ),
            gold,
        ),
        "dialog and bot": (
            _table("dialog,chatbot,rating", [(k, b, grade(1, 3)) for k in Q for b in two[1]]),
            _table(
                "dialog,chatbot,human_mean",
                [(k, b, round(grade(3, 9) / 3, 3)) for k in few for b in two[1]],
            ),
        ),
        "empty headers": ("id,vote,,\n" + blank, gold),
        "bare carriage returns": (_table("id,vote", votes).replace("\n", "\r"), gold),
        "gaps": (
            _table("id,score", [(k, some((0, 1, 4))) for k in Q for _ in range(3)]),
            _table("id,label", [(k, some((0, 1, 4))) for k in few]),
        ),
    }


STRANGERS = _made()
"""Votes and labels of twelve strangers, as the text of two files."""


def topical(data, folder):
    """Write the dialogues of Topical-Chat: a key of two columns, blanks, means of a third."""
    draw = random.Random(0)
    with open(data / "votes.csv", newline="") as votes, open(data / "labels.csv") as labels:
        judged, gold = list(csv.DictReader(votes)), list(csv.DictReader(labels))
    draw.shuffle(gold)
    rows = []
    for row in judged:
        key = row["item"].split("-", 1)
        rating = "" if draw.random() < 0.01 else row["score"]
        rows.append((*key, row["criterion"], row["judge"], row["sample"], rating))
    people = [
        (row["group"], row["system"], row["criterion"], row["mean_of_three"])
        for row in gold[: len(gold) * 35 // 100]
    ]
    made = {
        "judge_scores.csv": _table("conversation,bot,aspect,model,attempt,rating", rows),
        "human_scores.csv": _table("conversation,bot,aspect,human_mean", people),
    }
    for name, text in made.items():
        (folder / name).write_text(text)
    return [*made]


if __name__ == "__main__":
    topical(Path(os.environ["BTDAGG_SHARED"]) / "data" / "topical", Path(sys.argv[1]))
