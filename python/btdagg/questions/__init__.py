"""What users ask of votes and labels, a file each; `btdagg` and `btdagg.estimates` name them."""
