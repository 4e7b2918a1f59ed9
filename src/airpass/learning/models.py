"""The paper's two networks, and user-defined networks.

The paper gives layers and filters. It does not give kernel sizes, padding, dropout rates and initialisation;
they are 3 x 3, same padding, 2 x 2 max-pooling, 0.25, and PyTorch's defaults.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from airpass.core import checks
from airpass.core.errors import InvalidInput
from airpass.core.references import is_reference, load_reference
from airpass.learning.layers.conv_pool import ConvPoolReLU

DROPOUT = 0.25  # after each block of the CIFAR-10 network; not in the paper


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
REFERENCE = "package.module:callable"  # also file.py:callable


def build(name: str, channels: int, classes: int, side: int, torch_seed: int) -> nn.Module:
    """Build a network.

    Parameters
    ----------
    name
        One of MODELS; or `package.module:callable` or `file.py:callable`, which is called without arguments.
    channels, classes, side
        Channels of an image, number of classes, and height of an image.
    torch_seed
        Seed of the initial weights. PyTorch's random state is not changed.

    Returns
    -------
    nn.Module
        The network, with weights channels-last in memory.
    """
    maker = partial(MODELS[name], channels, classes, side) if name in MODELS else _imported(name)
    state = torch.random.get_rng_state()
    torch.manual_seed(torch_seed)
    try:
        model = maker()
    finally:
        torch.random.set_rng_state(state)
    if not isinstance(model, nn.Module):
        raise InvalidInput(f"model = {name!r}: returns a {type(model).__name__}, not a torch.nn.Module")
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def _imported(name: str) -> Callable[[], nn.Module]:
    if not is_reference(name):
        checks.one_of("model", name, [*MODELS, REFERENCE])
    maker = load_reference("model", name)
    if not callable(maker):
        raise InvalidInput(f"model = {name!r}: is not callable")
    return maker  # type: ignore[no-any-return]
