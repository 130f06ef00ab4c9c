"""Votes that other tools have collected: read into tables, or into a vote store."""

from lazy_loader import attach_stub

from btdagg._util.extras import needs

with needs("tables", "importing votes"):
    import polars  # noqa: F401

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
