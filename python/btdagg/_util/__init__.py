"""What every package may use; knows nothing of votes."""
