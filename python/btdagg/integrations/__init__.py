"""Where other tools meet btdagg: one file per neighbour."""

from btdagg.lazy import loader

__all__ = ["VotesTable"]

__getattr__ = loader(__name__, {"votes_sql": ["VotesTable"]})
