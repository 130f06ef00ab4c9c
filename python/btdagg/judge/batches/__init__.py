"""Asking by batches: written, sent, waited for and collected, in as many processes as it takes."""
