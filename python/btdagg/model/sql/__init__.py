"""Models as SQL."""
