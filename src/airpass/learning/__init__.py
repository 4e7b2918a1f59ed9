"""Federated learning over a link. The only part that imports torch."""

FEDAVG = "fedavg"  # the scheme without a link: ideal federated averaging
