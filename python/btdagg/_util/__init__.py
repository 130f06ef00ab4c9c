"""Helpers of every package; they know nothing of votes."""
