"""Votes from an LLM: pairs, prompts, sampling, parsing, the vote store."""
