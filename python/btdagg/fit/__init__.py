"""Fitting the model to a few labelled items."""
