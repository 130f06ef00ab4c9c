"""A release gate: chat-new is to replace chat-old."""

import btdagg


def test_candidate_is_not_worse(release_gate):
    votes, labels = btdagg.read_votes("votes.csv"), btdagg.read_labels("labels.csv")
    release_gate(votes, labels, candidate="chat-new", baseline="chat-old", margin=0.03)
