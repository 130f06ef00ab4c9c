"""Votes that other tools have collected: read into tables, or into a vote store."""

from typing import TYPE_CHECKING

from btdagg.extras import needs
from btdagg.lazy import loader

with needs("tables", "importing votes"):
    from btdagg.importing.formats import FORMATS
    from btdagg.importing.reading import Imported, read

if TYPE_CHECKING:
    from btdagg.importing.storing import Stored, store_votes

__all__ = ["FORMATS", "Imported", "Stored", "read", "store_votes"]

# The store needs libraries that tables do not.
__getattr__ = loader(__name__, {"storing": ["Stored", "store_votes"]})
