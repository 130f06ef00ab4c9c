"""Estimates with intervals and tests, from samples and cross-fitted predictions."""
