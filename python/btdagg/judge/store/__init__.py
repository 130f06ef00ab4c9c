"""The vote store: SQLite by default, PostgreSQL by URL."""

from btdagg._util.extras import needs

with needs("judge", "the vote store"):
    import sqlalchemy  # noqa: F401
