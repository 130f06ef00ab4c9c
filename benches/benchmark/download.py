"""The sets from their original sources, at fixed commits, as the tables that `sets.py` reads."""

import hashlib
import json
import re
from urllib.request import urlopen

import numpy as np
import polars as pl

from btdagg._util.files import write_table
from btdagg.paper import load_wmt23

HOST = "https://raw.githubusercontent.com"
ENSEMBLING = "composo-ai/llm-judge-criteria-ensembling/e4049a57dc73097f899a605f5435923f03e9233c"
LOOK = "d223302/A-Closer-Look-To-LLM-Evaluation/90084422bb32e89f77109dce578d0bd1db3912c4"
RUBRIC = "microsoft/LLM-Rubric/70d56fc4e9a26e60642bc14b62b96d2d0a500edd/data/real_data"
FILES = {  # and what their SHA-256 begins with
    f"{ENSEMBLING}/results/raw/base_both_k8.jsonl": "044274b17ec80786",
    f"{ENSEMBLING}/results/raw/base_claude_both_k8.jsonl": "31f2855deb35c094",
    f"{LOOK}/results/topical_chat/gpt3.5_eng_geval.json": "ffc3b0e6c235b415",
    f"{LOOK}/results/topical_chat/gpt3.5_gro_geval.json": "5b84dae2d2969a10",
    f"{RUBRIC}/gpt-3.5-turbo-16k_real_evaluations_FIXED.tsv": "4e19ce59c872485c",
    f"{RUBRIC}/human_judges_real_convs_FIXED_ANON.tsv": "eb67373ee383ac13",
}
VOTES, LABELS = (
    "task criterion item judge template temperature sample vote margin score",
    "item task criterion label mean_of_three group rater system chars",
)


def fetched(source):
    for path in (path for path in FILES if path.startswith(source)):
        with urlopen(f"{HOST}/{path}", timeout=60) as reply:
            content = reply.read()
        if not hashlib.sha256(content).hexdigest().startswith(FILES[path]):
            raise ValueError(f"{path}: other content than at its commit")
        yield content


def tables(frame, suffix=".parquet"):
    votes, labels = ([n for n in own.split() if n in frame.columns] for own in (VOTES, LABELS))
    labels = frame.select(labels).unique(maintain_order=True)
    return {f"votes{suffix}": frame.select(votes), "labels.csv": labels}


def scores():
    """Grades of the four responses of a prompt, of which the first was accepted."""
    gpt = {"full_scores": "gpt-5.4", "mini_scores": "gpt-5.4-mini"}
    judged = zip(fetched(ENSEMBLING), (gpt, {"full_scores": "claude-sonnet-4.6"}), strict=True)
    rows = []
    for prompt, judges in (
        (json.loads(line), own) for text, own in judged for line in text.splitlines()
    ):
        task = prompt["subset"].lower().replace(" ", "-")
        group = f"{task}-{prompt['id']}"
        places = np.random.default_rng([*group.encode()]).permutation(4)  # which tell no label
        for key, place in ((key, place) for key in judges for place in range(4)):
            known = task, group, judges[key], int(places[place]), int(place == 0)
            rows += [(*known, *drawn) for drawn in enumerate(prompt[key][place])]
    names = ["task", "group", "judge", "place", "label", "sample", "score"]
    frame = pl.DataFrame(rows, names, orient="row").drop_nulls()
    return frame.with_columns(item=pl.format("{}-{}", "group", "place"))


def pairs():
    single, key = scores(), ["task", "group", "judge", "sample"]
    both = single.join(single, on=key, suffix="_b").filter(pl.col("place") < pl.col("place_b"))
    lead, label = pl.col("score") - pl.col("score_b"), pl.col("label") - pl.col("label_b")
    item = pl.format("{}{}", "item", "place_b")
    said = {"template": pl.lit("base"), "temperature": pl.lit("default"), "item": item}
    return both.select(*key, label=label, vote=lead.sign(), margin=lead.abs(), **said)


def rubric():
    """Grades drawn from the probabilities that the judge gave them."""
    chances, people = (pl.read_csv(text, separator="\t") for text in fetched(RUBRIC))
    labels = people.unpivot([f"Q{n}" for n in range(9)], index=["text_id", "annotator_id"])
    labels = labels.rename({"variable": "criterion", "value": "label"}).filter(pl.col("label") > 0)
    p = chances.select(pl.selectors.ends_with("_prob")).to_numpy().cumsum(axis=1)
    draws = np.random.default_rng(0).random((len(p), 12, 1)) * p[:, None, -1:]
    drawn = pl.Series(((draws > p[:, None]).sum(axis=2) + 1).tolist())
    frame = chances.select("text_id", "criterion", score=drawn, sample=pl.lit([*range(12)]))
    frame = frame.explode("score", "sample").join(labels, on=["text_id", "criterion"])
    frame = frame.rename({"criterion": "task", "text_id": "group", "annotator_id": "rater"})
    item = pl.format("{}-{}", "task", "group")
    return frame.with_columns(item=item, judge=pl.lit("gpt-3.5-turbo"))


def topical():
    """Grades of G-Eval's prompt; answers without a grade of the scale are left out."""
    rows, groups, scales = [], {}, {"engagingness": "[1-3]", "groundedness": "[01]"}
    for (criterion, grade), text in zip(scales.items(), fetched(LOOK), strict=True):
        for row in json.loads(text):
            group = f"d{groups.setdefault(row['source'], len(groups)):02}"
            known = criterion, group, row["system_id"], len(row["system_output"].strip())
            for sample, answer in enumerate(row["all_responses"][:8]):
                if found := re.match(rf"\D*({grade})\b", answer):
                    rows.append((*known, row["scores"][criterion], sample, int(found[1])))
    names = ["criterion", "group", "system", "chars", "mean_of_three", "sample", "score"]
    frame, item = pl.DataFrame(rows, names, orient="row"), pl.format("{}-{}", "group", "system")
    return frame.with_columns(item=item, judge=pl.lit("gpt-3.5"))


def ratings(name):
    return load_wmt23(pair=f"{name[:2]}-{name[2:]}", download=True, drop_identical=False).frame


SETS = {
    "topical": lambda: tables(topical(), ".csv"),
    "wmt23": lambda: {f"ratings_{name}.csv": ratings(name) for name in ("zhen", "ende")},
    "rb2": lambda: tables(pairs()),
    "rb2_scores": lambda: tables(scores()),
    "rubric": lambda: tables(rubric()),
}


def download(folder):
    """Make the tables that are not in a folder; print which sets cannot be had, and why."""
    for name, make in SETS.items():
        try:
            made = {} if (folder / name).is_dir() else make()
        except (OSError, ValueError, ImportError) as error:
            print(f"{name} cannot be had: {error}")
            continue
        (folder / name).mkdir(parents=True, exist_ok=True)
        for file, frame in made.items():
            write_table(frame, folder / name / file, (folder / file).suffix)
    if not (folder / "vicuna80").is_dir():
        print("vicuna80 cannot be had: its labels are spread over github.com/bcdnlp/PRD")
