"""A seeded attack on the package; `campaign` and `faults` run it."""
