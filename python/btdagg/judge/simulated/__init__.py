"""A judge that costs nothing: how it votes, what it says, and a client that asks it."""
