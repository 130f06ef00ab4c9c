"""Files, vote stores and data frames: votes, labels and ratings as they come in, and their join."""

from btdagg.tables.histogram import Histogram, read_histogram
from btdagg.tables.join import LabelledCounts, align, join
from btdagg.tables.labels import Labels, read_labels
from btdagg.tables.panel import PanelCounts, panel_counts
from btdagg.tables.source import read_table
from btdagg.tables.table import Table
from btdagg.tables.votes import Votes, read_counts, read_votes, tally

__all__ = [
    "Histogram",
    "LabelledCounts",
    "Labels",
    "PanelCounts",
    "Table",
    "Votes",
    "align",
    "join",
    "panel_counts",
    "read_counts",
    "read_histogram",
    "read_labels",
    "read_table",
    "read_votes",
    "tally",
]
