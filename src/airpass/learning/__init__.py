"""Federated learning over the designed link. The only part that imports torch."""
