"""A release gate: A is what runs today, B the candidate."""

import btdagg


def test_candidate_is_not_worse(release_gate):
    votes, labels = btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv")
    release_gate(votes, labels, margin=0.02)
