"""The vote store: SQLite by default, PostgreSQL by URL."""

from btdagg._util.extras import needs

with needs("judge", "the vote store"):
    from btdagg.judge.store.database import StoreError
    from btdagg.judge.store.store import VoteStore, summaries, votes_frame

__all__ = [
    "StoreError",
    "VoteStore",
    "summaries",
    "votes_frame",
]
