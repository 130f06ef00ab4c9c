"""The format: `btdagg check results.json`, `btdagg import results.json -o votes.csv`.

DuelBench, which is made up, writes one JSON object:

    {"duelbench": 2, "arbiter": "gpt-5.4", "duels": [
        {"question": "q1", "left": "ada", "right": "ben", "rounds": ["left", "draw", "left"]}]}
"""

VOTES = {"left": "A", "draw": "tie", "right": "B"}  # None is an answer that it could not read


def duels(file):
    """Rows of votes with the columns of docs/data.md; None for a file of another tool."""
    document = file.document or {}
    if "duelbench" not in document:
        return None
    return [
        {
            "group": duel["question"],
            "system_a": duel["left"],
            "system_b": duel["right"],
            "judge": document["arbiter"],
            "sample": sample,
            "vote": VOTES.get(word, word),
        }
        for duel in document["duels"]
        for sample, word in enumerate(duel["rounds"])
    ]
