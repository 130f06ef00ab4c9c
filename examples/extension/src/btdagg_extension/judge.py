"""The judge: `btdagg judge pairs.jsonl --model longer -n 4`."""

import random
import re

RESPONSE = re.compile(r"<response_([ab])>\n?(.*?)\n?</response_\1>", re.DOTALL)


def longer(request):
    """Answer as a judge does that is taken in by length: a simulation, which calls nobody."""
    prompt = request.messages[-1]["content"]
    lengths = {side: len(text) for side, text in RESPONSE.findall(prompt)}
    seen = random.Random(f"{request.item} {request.order} {request.sample}").gauss(0, 10)
    lead = lengths["a"] - lengths["b"] + seen
    verdict = "TIE" if abs(lead) < 4 else "A" if lead > 0 else "B"
    return f"I looked at both.\n\n[[{verdict}]]"
