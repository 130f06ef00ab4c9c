"""Votes and labels from files, vote stores and data frames, and their counts."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
