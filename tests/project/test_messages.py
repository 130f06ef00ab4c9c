"""The sentences that a user can meet stand in one file, so that a wording is reviewed in a diff."""

import messages


def test_sentences_that_a_user_can_meet_are_in_the_snapshot():
    kept = messages.SNAPSHOT.read_text(encoding="utf-8").splitlines()
    changed = sorted(set(kept) ^ set(messages.sentences()))
    assert not changed, "python tests/messages.py writes them anew"
