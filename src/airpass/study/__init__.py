"""Studies: schemes x points of an axis x trials, run on one machine or on a cluster, stored as rows."""
