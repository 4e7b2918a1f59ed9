"""The paper's two networks, and users' own by import path.

The paper gives layers and filters; kernel sizes, padding, dropout rates and initialisation are
ours: 3 x 3, same padding, 2 x 2 max-pooling, 0.25, PyTorch's defaults.
"""

import importlib
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from airpass.core.errors import InvalidInput
from airpass.learning.layers.conv_pool import ConvPoolReLU

DROPOUT = 0.25  # after each block of the CIFAR-10 network; ours


def mnist_cnn(channels: int = 1, classes: int = 10, side: int = 28) -> nn.Module:
    """Two convolutions (16, 32) with max-pooling, then 64 hidden units: section VI-A."""
    flat = 32 * (side // 4) ** 2
    return nn.Sequential(
        # ReLU after pooling is the same function as before it, on a quarter of the entries.
        ConvPoolReLU(channels, 16),
        ConvPoolReLU(16, 32),
        nn.Flatten(),
        nn.Linear(flat, 64),
        nn.ReLU(),
        nn.Linear(64, classes),
    )


def cifar_cnn(
    channels: int = 3, classes: int = 10, side: int = 32, normalisation: str = "batch"
) -> nn.Module:
    """Three blocks of two convolutions (32, 64, 128) with normalisation, ReLU, max-pooling and
    dropout, then global average pooling and 128 hidden units: section VI-A.

    `normalisation` is "batch", as in the paper, or "group" (groups of 8 channels), which has no
    running statistics to send.
    """

    def normalise(width: int) -> nn.Module:
        return nn.BatchNorm2d(width) if normalisation == "batch" else nn.GroupNorm(width // 8, width)

    layers: list[nn.Module] = []
    for width in (32, 64, 128):
        for _ in range(2):
            layers += [nn.Conv2d(channels, width, 3, padding=1), normalise(width), nn.ReLU()]
            channels = width
        layers += [nn.MaxPool2d(2), nn.Dropout(DROPOUT)]
    return nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


MODELS: dict[str, Callable[..., nn.Module]] = {
    "mnist-cnn": mnist_cnn,
    "cifar-cnn": cifar_cnn,
    "cifar-cnn-group": partial(cifar_cnn, normalisation="group"),
}
DEFAULT_MODEL = {"mnist-mini": "mnist-cnn", "mnist": "mnist-cnn", "cifar10": "cifar-cnn"}


def build(name: str, channels: int, classes: int, side: int, torch_seed: int) -> nn.Module:
    """The model called `name`, or the one that "package.module:callable" makes, from a seed."""
    maker = partial(MODELS[name], channels, classes, side) if name in MODELS else _imported(name)
    state = torch.random.get_rng_state()
    torch.manual_seed(torch_seed)
    try:
        model = maker()
    finally:
        torch.random.set_rng_state(state)
    if not isinstance(model, nn.Module):
        raise InvalidInput(f"model = {name!r}: makes a {type(model).__name__}, not a torch.nn.Module")
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def _imported(name: str) -> Callable[[], nn.Module]:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise InvalidInput(
            f"model = {name!r}: must be one of {', '.join(MODELS)}, or package.module:callable"
        )
    try:
        maker = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InvalidInput(f"model = {name!r}: cannot be imported ({error})") from None
    if not callable(maker):
        raise InvalidInput(f"model = {name!r}: is not callable")
    return maker  # type: ignore[no-any-return]
