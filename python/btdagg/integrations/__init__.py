"""Where other tools meet btdagg: one file per neighbour."""
