"""What files are, what is wrong with them, what they can answer, and the next command."""

from btdagg.check.answers import Check, check

__all__ = ["Check", "check"]
