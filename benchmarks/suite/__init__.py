"""Benchmarks of airpass and of alternative software, measured in the same run."""
