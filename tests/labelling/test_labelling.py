"""Labels made by hand, without a server: what is kept and shown, and how raters agree."""

import re

import krippendorff
import numpy as np
import pytest

from btdagg import InputError, Scale
from btdagg.judge import read_pairs
from btdagg.labelling import Assignment, LabelStore, Outcome, Session
from btdagg.labelling.markup import differences, markdown, plain
from btdagg.labelling.outcome import agreement
from btdagg.labelling.store import Answer
from labelling import HOSTILE, pairs_file, responses_file, session_of


def answers(said):
    """Answers from {item: {rater: label}}."""
    return [
        Answer(item, rater, label, 1.0, "", "AB", "")
        for item, labels in said.items()
        for rater, label in labels.items()
    ]


def test_going_back_changes_an_answer_in_place(tmp_path):
    pairs = read_pairs(pairs_file(tmp_path, 3))
    store, session = session_of(tmp_path, pairs)
    with store:
        first = session.view("Ada")
        session.keep("Ada", first["key"], ["first"], 3, "why")
        second = session.view("Ada")
        assert (second["place"], second["previous"], second["next"]) == (2, first["key"], None)
        back = session.view("Ada", first["key"])
        assert (back["criteria"][0]["answer"], back["note"], back["seconds"]) == (
            "first",
            "why",
            3.0,
        )
        assert back["next"] == second["key"]
        assert [back[side] for side in ("first", "second")] == [
            first[side] for side in ("first", "second")
        ]
        session.keep("Ada", first["key"], ["skip"], back["seconds"] + 2, "")
        (kept,) = store.answers()
        assert (kept.label, kept.seconds, kept.note) == (None, 5.0, "")
        assert session.view("Ada")["n_skipped"] == 1


def test_labels_are_kept_in_sqlite_and_postgresql(tmp_path, store_place):
    pairs = read_pairs(pairs_file(tmp_path, 3))
    for _ in range(2):
        store, session = session_of(tmp_path, pairs, store_place)
        with store:
            for rater in ("Ada", "Bén"):
                key = session.view(rater)["key"]
                session.keep(rater, key, ["first"], 1.5, "half \ud800, NUL \0")
    with LabelStore(store_place, create=False) as store:
        assert len(store.answers()) == 4
        assert {each.note for each in store.answers("Bén")} == {"half \\ud800, NUL \\x00"}
        for each in store.answers():
            assert each.label == (1 if each.sides == "AB" else -1)


def test_other_texts_under_the_same_id_are_refused(tmp_path):
    pairs = read_pairs(pairs_file(tmp_path, 3))
    store, session = session_of(tmp_path, pairs)
    with store:
        session.keep("Ada", session.view("Ada")["key"], ["first"], 1, "")
    other = read_pairs(pairs_file(tmp_path, 3, prompt="another"))
    with pytest.raises(InputError, match=r"item 'gpt-9-00\d' was labelled with other texts"):
        session_of(tmp_path, other)


def test_the_order_is_random_and_the_same_for_all_and_sides_differ(tmp_path):
    pairs = read_pairs(pairs_file(tmp_path, 400))
    one = Assignment(pairs)
    ids = pairs.frame["item"].to_list()
    assert one.items == Assignment(pairs).items != Assignment(pairs, seed=1).items
    assert sorted(one.items) == ids
    places = np.argsort([ids.index(item) for item in one.items])
    assert abs(np.corrcoef(places, np.arange(400))[0, 1]) < 0.2
    sides = np.array([[one.sides(item, rater) == "AB" for item in ids] for rater in "xy"])
    assert (abs(sides.mean(axis=1) - 0.5) < 0.1).all()  # 4 standard errors
    assert abs((sides[0] == sides[1]).mean() - 0.5) < 0.1
    assert Assignment(pairs, n_items=30).items == one.items[:30]
    # Pairs that come later change no order among the others.
    fewer = read_pairs(pairs_file(tmp_path, 300))
    assert Assignment(fewer).items == [item for item in one.items if item in ids[:300]]


def test_a_criterion_that_is_left_open_is_not_complete(tmp_path):
    pairs, scale = read_pairs(responses_file(tmp_path, 1)), Scale(range(1, 6))
    store, session = session_of(tmp_path, pairs, scale=scale)
    outcome = Outcome(Assignment(pairs, scale=scale))
    with store:
        for last, is_complete in ((None, False), ("skip", True)):
            session.keep("Ada", session.view("Ada")["key"], ["1", "5", last], 1, "")
            assert outcome.is_complete(store.answers()) == is_complete


def test_agreement_is_alpha_as_another_package_has_it():
    random = np.random.default_rng(0)
    for _ in range(20):
        table = random.integers(-1, 2, (12, 3))
        there = random.random((12, 3)) < 0.7
        said = {
            f"q{k}": {r: (int(v) if t else None) for r, v, t in zip("xyz", row, known, strict=True)}
            for k, (row, known) in enumerate(zip(table, there, strict=True))
        }
        units = [row[known].tolist() for row, known in zip(table, there, strict=True)]
        found = agreement(answers(said))
        ratings = np.where(there, table, np.nan).T
        alpha = krippendorff.alpha(reliability_data=ratings, level_of_measurement="ordinal")
        assert found.alpha == pytest.approx(alpha, abs=1e-12)
        assert found.n_items == sum(len(of) > 1 for of in units)
        differ = {f"q{k}" for k, of in enumerate(units) if len(set(of)) > 1}
        assert {of[0].item for of in found.disputed} == differ
        spreads = [np.ptp([each.label for each in of]) for of in found.disputed]
        assert spreads == sorted(spreads, reverse=True)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_becomes_more_than_text(text):
    for made in (markdown(text), plain(text), *differences(text, "other"), *differences("", text)):
        tags = {tag.lower() for tag in re.findall(r"<\s*/?\s*([^\s>/]+)", made)}
        allowed = "p br hr em strong s code pre blockquote ul ol li table thead tbody tr th td mark"
        assert tags <= set(allowed.split())
        assert set(re.findall(r"<[^>]*\s([\w-]+)\s*=", made)) <= {"start"}
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\ud800]", made)


def test_lines_end_where_they_ended():
    shown = markdown("Roses are red\nViolets are blue\r\n\n- one\n- two\nthree")
    assert shown.startswith("<p>Roses are red<br>\nViolets are blue</p>")
    assert "<li>two<br>\nthree</li>" in shown


def test_differences_mark_what_the_other_does_not_have():
    first, second = differences("the cat <sat>\n", "the dog <sat>\n")
    assert first == "<pre>the <mark>cat</mark> &lt;sat&gt;\n</pre>"
    assert second == "<pre>the <mark>dog</mark> &lt;sat&gt;\n</pre>"
    lines = [f"line {k}\n" for k in range(5000)]
    other = [*lines[:7], "new\n", *lines[7:]]
    assert differences("".join(lines), "".join(other))[1].count("<mark>new\n</mark>") == 1


def test_a_third_rater_sees_only_what_the_others_disagree_on(tmp_path):
    pairs = read_pairs(pairs_file(tmp_path, 5))
    store, _ = session_of(tmp_path, pairs)
    assignment = Assignment(pairs)
    with store:
        said = dict(zip(assignment.items, ([1, 1], [1, 0], [0, -1], [1, None], [0]), strict=True))
        for item, labels in said.items():
            texts = assignment.pair(item).digest
            for rater, label in zip(("Ada", "Ben"), labels, strict=False):
                store.keep(Answer(item, rater, label, 1.0, "", "AB", texts))
        session = Session(store, assignment, Outcome(assignment), disputed=True)
        assert session.view("Ada")["done"]
        wanted = assignment.items[1:3]
        for place, item in enumerate(wanted, 1):
            view = session.view("Cy")
            assert (view["key"], view["place"]) == (assignment.key(item), place)
            assert (view["n_items"], view["n_answered"]) == (2, place - 1)
            session.keep("Cy", view["key"], ["tie"], 1, "")
        assert session.view("Cy")["done"]
        # Two of three agree now, so that a fourth is not needed; another item can be looked at.
        assert session.view("Dee")["done"]
        assert session.view("Ada", assignment.key(assignment.items[0]))["place"] == 1
