"""The paper's two networks, two small ones for any data, and user-defined networks.

The paper gives layers and filters. It does not give kernel sizes, padding, dropout rates and initialisation;
they are 3 x 3, same padding, 2 x 2 max-pooling, 0.25, and PyTorch's defaults.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from airpass.core import checks
from airpass.core.errors import InvalidInput, users_line
from airpass.core.references import is_reference, load_reference
from airpass.learning.layers.conv_pool import ConvPoolReLU

# A name; an object, whose weights are the initial ones; a class or function, called without arguments.
Model: TypeAlias = str | nn.Module | Callable[[], nn.Module]
DROPOUT = 0.25  # after each block of the CIFAR-10 network; not in the paper


def mnist_cnn(channels: int = 1, classes: int = 10, side: int = 28, width: int | None = None) -> nn.Module:
    """Two convolutions (16, 32) with max-pooling, then 64 hidden units: section VI-A.

    `side` is the height of the images, and their width unless `width` is given.
    """
    flat = 32 * (side // 4) * ((side if width is None else width) // 4)
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
    channels: int = 3,
    classes: int = 10,
    side: int = 32,
    width: int = 32,
    normalisation: str = "batch",
) -> nn.Module:
    """Three blocks of two convolutions (32, 64, 128) with normalisation, ReLU, max-pooling and
    dropout, then global average pooling and 128 hidden units: section VI-A.

    `normalisation` is "batch", as in the paper, or "group" (groups of 8 channels), which has no
    running statistics to send. Global pooling takes images of any height `side` and `width`.
    """

    def normalise(filters: int) -> nn.Module:
        return nn.BatchNorm2d(filters) if normalisation == "batch" else nn.GroupNorm(filters // 8, filters)

    layers: list[nn.Module] = []
    for filters in (32, 64, 128):
        for _ in range(2):
            layers += [nn.Conv2d(channels, filters, 3, padding=1), normalise(filters), nn.ReLU()]
            channels = filters
        layers += [nn.MaxPool2d(2), nn.Dropout(DROPOUT)]
    return nn.Sequential(
        *layers,
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, classes),
    )


def mlp(shape: tuple[int, ...], outputs: int, hidden: int = 64) -> nn.Module:
    """One hidden layer, for samples of any shape; the default for data that are not images."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(math.prod(shape), hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


def linear(shape: tuple[int, ...], outputs: int) -> nn.Module:
    """A linear model, for samples of any shape."""
    return nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape), outputs))


def _for_images(
    name: str, network: Callable[..., nn.Module], smallest: int
) -> Callable[[tuple[int, ...], int], nn.Module]:
    """A network of images; `smallest` is the side that its pooling layers leave a pixel of."""

    def make(shape: tuple[int, ...], outputs: int) -> nn.Module:
        if len(shape) != 3:
            raise InvalidInput(
                f"model = {name!r}: is for images (channels, height, width), and the samples have shape "
                f"{shape}; give mlp, linear or {REFERENCE}"
            )
        if min(shape[1:]) < smallest:
            raise InvalidInput(
                f"model = {name!r}: needs images of at least {smallest} x {smallest} pixels, and the samples "
                f"have {shape[1]} x {shape[2]}; give mlp, linear or {REFERENCE}"
            )
        return network(shape[0], outputs, *shape[1:])

    return make


REFERENCE = "package.module:Name"  # also file.py:Name
MODELS: dict[str, Callable[[tuple[int, ...], int], nn.Module]] = {  # of sample shape and number of outputs
    "mnist-cnn": _for_images("mnist-cnn", mnist_cnn, 4),
    "cifar-cnn": _for_images("cifar-cnn", cifar_cnn, 8),
    "cifar-cnn-group": _for_images("cifar-cnn-group", partial(cifar_cnn, normalisation="group"), 8),
    "mlp": mlp,
    "linear": linear,
}


def build(model: Model, shape: tuple[int, ...], outputs: int, torch_seed: int) -> nn.Module:
    """Build a network.

    Parameters
    ----------
    model
        One of MODELS; `package.module:Name` or `file.py:Name`; an `nn.Module`, which is copied; or a class
        or function, which is called without arguments.
    shape
        Shape of a sample; images have their channels first.
    outputs
        Number of outputs.
    torch_seed
        Seed of the initial weights, except those of an object. PyTorch's random state is not changed.

    Returns
    -------
    nn.Module
        The network, with weights channels-last in memory.
    """
    known = MODELS.get(model) if isinstance(model, str) else None
    made = found(model) if known is None else partial(known, shape, outputs)
    if isinstance(made, nn.Module):
        network = copy.deepcopy(made)
    else:
        state = torch.random.get_rng_state()
        torch.manual_seed(torch_seed)
        try:
            network = made()
        except InvalidInput:
            raise
        except (Exception, SystemExit) as error:  # a user's class can raise any error
            raise InvalidInput(
                f"model = {described(model)}: cannot be built ({one_line(error)}); "
                "it must be callable without arguments"
            ) from None
        finally:
            torch.random.set_rng_state(state)
    if not isinstance(network, nn.Module):
        raise InvalidInput(
            f"model = {described(model)}: returns a {type(network).__name__}, not a torch.nn.Module"
        )
    if any(is_lazy(value) for value in (*network.parameters(), *network.buffers())):
        raise InvalidInput(f"model = {described(model)}: has lazy layers; give the size of their input")
    weights = list(network.parameters())
    other = next((value.dtype for value in weights if value.dtype != torch.float32), None)
    if other is not None:
        raise InvalidInput(f"model = {described(model)}: has weights of {other}; convert it with .float()")
    if not any(value.requires_grad for value in weights):
        raise InvalidInput(f"model = {described(model)}: has no weights to train")
    if not all(value.is_meta or torch.isfinite(value).all() for value in weights):
        raise InvalidInput(f"model = {described(model)}: has initial weights that are not finite")
    if any(value.dim() > 4 for value in weights):  # PyTorch has another memory format for them
        return network
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def check_model(model: Any) -> None:
    """Refuse what cannot be a model, without importing it."""
    if isinstance(model, str) and not is_reference(model):
        checks.one_of("model", model, [*MODELS, REFERENCE])
    elif not (isinstance(model, str) or callable(model)):  # a module is callable
        raise InvalidInput(f"model = {described(model)}: must be a torch.nn.Module, or make one when called")


def found(model: Model) -> Any:
    """What a user's argument names: a module, or a class or function that makes one."""
    check_model(model)
    if not isinstance(model, str):
        return model
    made = load_reference("model", model)
    if not callable(made):
        raise InvalidInput(f"model = {model!r}: must be a torch.nn.Module, or make one when called")
    return made


def described(thing: Any) -> str:
    """A model or a loss in one line: its name, or the names of its module and class."""
    if isinstance(thing, str):
        return repr(thing)
    named = thing if hasattr(thing, "__qualname__") else type(thing)
    return f"{named.__module__}:{named.__qualname__}"


def one_line(error: BaseException) -> str:
    """Kind and message of an error, and the line of the user's own code that it comes from."""
    try:
        text = " ".join(str(error).split())[:200]
    except Exception:  # a user's error can raise another one
        text = ""
    place = users_line(error)
    return f"{type(error).__name__}{': ' if text else ''}{text}{'' if place is None else f'; {place}'}"


@contextmanager
def model_errors(name: str, doing: str) -> Iterator[None]:
    """Context in which errors of a user's model or loss become one line.

    Parameters
    ----------
    name
        The model, for the message.
    doing
        What fails, such as "training".
    """
    try:
        yield
    except (InvalidInput, MemoryError):
        raise
    except (Exception, SystemExit) as error:  # a user's model can raise any error
        raise InvalidInput(f"model = {name}: fails in {doing} ({one_line(error)})") from None
