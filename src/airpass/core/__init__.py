"""Foundations: errors, checks, types, the method registry, random streams, threads, workers and files."""
