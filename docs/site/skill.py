"""Write skills/btdagg/SKILL.md, what coding agents load, from docs/agents.md.

`python docs/site/skill.py` writes it; a test says when it is no longer what the page says.
"""

from __future__ import annotations

import re

from sources import ROOT, SITE

SKILL = ROOT / "skills" / "btdagg" / "SKILL.md"
HEADER = """---
name: btdagg
description: >-
  Turn votes or scores of LLM judges into calibrated labels, win rates, mean grades and pass
  rates with valid intervals, release gates and comparisons of judges, from a few labels by
  people. Use it when there are files of pairwise verdicts (A, tie, B), rubric scores or grades
  of a judge, several samples of an LLM-as-a-judge, logs of Inspect, promptfoo or MT-Bench, or
  when somebody asks whether a judge can be trusted, how often one system wins, or how many
  votes and labels are enough.
license: Apache-2.0
compatibility: Python 3.11 or later; no key and no network, but to ask a judge
---

<!-- Made from docs/agents.md by docs/site/skill.py. -->

# Votes of LLM judges to labels that hold

## When

Somebody asks one of these, and there are votes or scores of a judge, or pairs to judge:

{questions}

No votes of a judge, and no labels by people to compare with: then this is the wrong tool.

## Steps

1. Install it, if `btdagg --version` is not there: `pip install 'btdagg[all]'`.
2. Run `btdagg check FILE...` on all files, before anything else.
3. Run the command of the question, from the table below, with the options that `check` printed.
   `btdagg COMMAND --help` has the rest.
4. Report what the last column says, with every remark on standard error.

To try it where there are no data:

{begin}

{check}

{table}

## What not to claim

{not_to_claim}

## What often goes wrong

{wrong}
"""


def skill() -> str:
    """The text of the skill."""
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    # Where a skill lies there are no other pages.
    page = re.sub(r"\]\((\w[\w-]*)\.md", rf"]({SITE}\1.html", page)
    parts = dict(re.findall(r"^## (.+)\n\n((?:(?!## ).*\n?)*)", page, re.MULTILINE))
    begin, _, check = parts["Begin with what is there"].strip().rpartition("\n\n")
    table = parts["Which question, which command"].strip()
    questions = [row.split(" | ")[0].removeprefix("| ") for row in table.splitlines()[2:]]
    return HEADER.format(
        questions="\n".join(f"- {question}" for question in questions),
        begin=begin,
        check=check,
        table=table,
        not_to_claim=parts["What not to claim"].strip(),
        wrong=parts["What often goes wrong"].strip(),
    )


if __name__ == "__main__":
    SKILL.parent.mkdir(parents=True, exist_ok=True)
    SKILL.write_text(skill(), encoding="utf-8")
