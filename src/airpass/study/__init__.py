"""Studies: schemes x sweep points x trials, to tidy rows, on one machine or a cluster."""
