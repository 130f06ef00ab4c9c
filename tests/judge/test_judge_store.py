"""The vote store: what it refuses, what it sums up, what it exports; in both databases."""

import sqlite3

import polars as pl
import pytest
import sqlalchemy as sa

import btdagg
from btdagg.judge import ChatReply, StoreError, Usage, Verdict, VoteStore
from btdagg.judge.client import Setup, samples_of
from btdagg.judge.store import database as schema
from btdagg.judge.store.owner import Answered, Claimed
from btdagg.judge.store.store import summaries, votes_frame
from judging import SETUP


def fill(store, setup=SETUP, items=("q1", "q2"), *, n=4, vote=1, status="ok", reply=None):
    """Write n answers for each item; the second half of them against the first."""
    ask = store.ask_of(setup)
    with store.owner() as owner:
        owner.know_items([(item, f"digest of {item}", None) for item in items])
        claimed, _, _ = owner.claim(ask, {item: samples_of(n) for item in items})
        readings = {"AB": Verdict("ok", vote), "BA": Verdict("ok", -vote)}
        if status != "ok":
            readings = dict.fromkeys(readings, Verdict(status, reason="no verdict"))
        owner.save(ask, [Answered(claim, readings[claim.order], 1, reply) for claim in claimed])
        owner.commit()
    return ask


def refused(place, **options):
    with pytest.raises(StoreError) as error:
        VoteStore(place, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# Opening


def test_a_store_of_another_version(store_place):
    with VoteStore(store_place) as store:
        fill(store)
        with store._engine.begin() as connection:
            connection.execute(schema.about.update().values(version=7))
    assert "a vote store of version 7, expected 6" in refused(store_place)


def test_what_is_no_store(tmp_path):
    page = tmp_path / "page.db"
    page.write_text("<!doctype html> this is no database, but long enough to be read as one" * 50)
    assert refused(page) == f"{page}: file is not a database"
    for place in (tmp_path, tmp_path / "no" / "votes.db"):
        assert refused(place) == f"{place}: unable to open database file"
    assert refused(tmp_path / "v.db", create=False) == f"{tmp_path / 'v.db'}: no such file"
    assert not (tmp_path / "v.db").exists()
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE t (x)").connection.close()
    assert refused(other, create=False) == f"{other}: no vote store there"
    assert "secret" not in refused("mysql://u:secret@h/d")


def test_a_server_that_is_not_there_is_named_without_the_password():
    message = refused("postgresql://me:hunter2-hunter2@127.0.0.1:9/votes")
    assert message.startswith("postgresql+psycopg://me:***@127.0.0.1:9/votes: ")
    assert "hunter2" not in message


# Claims


def keys_of(claimed):
    return [(claim.order, claim.sample) for claim in claimed]


def test_what_one_claims_no_other_gets_until_it_is_gone(store_place):
    wanted = {"q1": samples_of(4)}
    with VoteStore(store_place) as store:
        ask = store.ask_of(SETUP)
        with store.owner() as first, store.owner() as other:
            claimed, elsewhere, stored = first.claim(ask, {"q1": samples_of(2)})
            first.commit()
            assert (len(claimed), elsewhere, stored) == (2, {}, {})
            claimed, elsewhere, _ = other.claim(ask, wanted)
            other.commit()
            assert keys_of(claimed) == [("AB", 1), ("BA", 1)]
            assert elsewhere == {"q1": [("AB", 0), ("BA", 0)]}
            first.leave()
            claimed, elsewhere, _ = other.claim(ask, wanted)
            other.commit()
            assert (keys_of(claimed), elsewhere) == ([("AB", 0), ("BA", 0)], {})
            # What was taken from it, the first can no longer write.
            with pytest.raises(StoreError, match="another process now holds the samples"):
                first.save(ask, [Answered(Claimed("q1", "AB", 0, 0), Verdict("ok", 1), 1)])
            first.roll_back()
            with store.reading() as connection:
                query = sa.select(schema.votes.c.status)
                assert set(connection.execute(query).scalars()) == {None}
            first._locks.hold(first.id)  # for it to leave once more
            first.commit()


# Sums and exports


def test_summaries(store_place):
    with VoteStore(store_place) as store:
        fill(store, reply=ChatReply("", usage=Usage(10, 5, cost=0.5), latency=2.0))
        reply = ChatReply("", usage=Usage(10, 0), latency=4.0)
        fill(store, items=["q3"], status="unparsed", n=2, reply=reply)
        fill(store, Setup("other", "plain", "digest of plain"), items=["q1"], vote=0, n=2)
        first, second = summaries(store)
    expected = {"judge": "sim", "n_items": 3, "n_votes": 8, "statuses": {"ok": 8, "unparsed": 2}}
    expected |= {"minus": 4, "tie": 0, "plus": 4, "first": 8, "second": 0, "positional_bias": 1.0}
    expected |= {"n_ab": 4, "n_ba": 4, "tie_rate": 0.0, "cost": 4.0}
    expected |= {"prompt_tokens": 100, "completion_tokens": 40}
    assert first.items() >= expected.items()
    assert first["latency"] == pytest.approx(2.4)
    assert (second["judge"], second["tie_rate"], second["positional_bias"]) == ("other", 1.0, None)
    assert second["cost"] is None


def test_what_is_exported_is_read_as_votes(tmp_path, store_place):
    with VoteStore(store_place) as store:
        fill(store)
        fill(store, items=["q3"], status="refused", n=2)
        store.write_decisions(SETUP, "gsa_4", {"q1": -1, "q2": 0})
        store.write_decisions(SETUP, "gsa_4", {"q2": 1})
        frame = votes_frame(store)
    frame.write_csv(tmp_path / "votes.csv")
    votes = btdagg.read_votes(tmp_path / "votes.csv")
    assert votes.n_missing == 2
    items = votes.items(n_votes=4, decisions=["gsa"])
    assert items.ids.tolist() == ["q1", "q2", "q3"]
    assert items.pooled.tolist() == [[2, 0, 2], [2, 0, 2], [0, 0, 0]]
    assert items.facts["decision gsa"].tolist()[:2] == [-1, 1]


def test_prompts_that_go_by_one_name_are_told_apart(store_place):
    with VoteStore(store_place) as store:
        fill(store)
        fill(store, Setup("sim", "plain", "another digest"))
        frame = votes_frame(store)
    names = frame["template"].unique().to_list()
    assert len(names) == 2
    assert all(name.startswith("plain#") for name in names)
    assert btdagg.read_votes(frame).frame.height == 16


def test_exchanges_are_kept_or_dropped(store_place):
    with VoteStore(store_place) as store:
        fill(store, reply=ChatReply("because", "hm", model="m"))
        frame = votes_frame(store, exchanges=True)
        assert frame["answer"].unique().to_list() == ["because"]
        assert frame["reasoning"].unique().to_list() == ["hm"]
        assert store.samples_of(SETUP, ["q1"], "answer")["q1"]["AB", 0] == ("ok", 1, "because")
    with VoteStore(store_place, keep_exchanges=False) as store:
        fill(store, items=["q9"], reply=ChatReply("because"))
        assert store.samples_of(SETUP, ["q9"], "answer")["q9"]["AB", 0] == ("ok", 1, None)
        frame = votes_frame(store, exchanges=True).filter(pl.col("item") == "q9")
        assert frame["answer"].unique().to_list() == [None]


def test_the_prompt_tells_setups_apart():
    def prompt_of(**fields):
        return Setup(**{"judge": "j", "template": "t", "template_digest": "d", **fields}).prompt

    different = [
        {},
        {"template_digest": "e"},
        {"method": "greedy"},
        {"temperature": 0.0},
        {"temperature": None},
        {"reasoning_effort": "low"},
        {"settings": {"extra": {"top_p": 0.9}}},
    ]
    assert len({prompt_of(**fields) for fields in different}) == len(different)
    assert prompt_of(template="another name") == prompt_of()
