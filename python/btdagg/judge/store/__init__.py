"""The vote store: SQLite by default, PostgreSQL by URL."""

from btdagg.extras import needs

with needs("judge", "the vote store"):
    from btdagg.judge.store.export import Summary, export, summaries, votes_frame
    from btdagg.judge.store.owner import Owner
    from btdagg.judge.store.records import Answered, Claimed, NoStoreError, StoreError
    from btdagg.judge.store.store import VoteStore

__all__ = [
    "Answered",
    "Claimed",
    "NoStoreError",
    "Owner",
    "StoreError",
    "Summary",
    "VoteStore",
    "export",
    "summaries",
    "votes_frame",
]
