"""Shares and win rates over all items, with intervals that hold, from a few labels."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
