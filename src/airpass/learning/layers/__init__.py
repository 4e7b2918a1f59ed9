"""Layers of networks that run faster on a processor than PyTorch's."""
