"""Votes that other tools have collected: read into tables, or into a vote store."""

from btdagg.extras import needs

with needs("tables", "importing votes"):
    from btdagg.importing.formats import FORMATS
    from btdagg.importing.reading import Imported, read

__all__ = ["FORMATS", "Imported", "read"]
