"""Channels from files: the options of `airpass select` and `airpass train`, and how they are read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airpass.cli.streams import tell
from airpass.core.errors import InvalidInput

if TYPE_CHECKING:
    from airpass.core.types import Complex, Real


@dataclass(frozen=True, eq=False)
class ChannelsFile:
    """What a user gave: draws of the channels, and weights."""

    draws: "Complex"  # shape (T, M, K)
    stacked: bool  # whether the file holds a stack
    weights: "Real | None"


def channels_options(required: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that name channels; the command receives `channels`, a `ChannelsFile` or None."""

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @click.option(
            "--channels",
            "channels_path",
            type=click.Path(path_type=Path),
            required=required,
            help="Complex channels of shape (M, K), a row per receive chain, a column per device, or "
            "(T, M, K), a stack of draws: .npy, .npz, or MATLAB .mat.",
        )
        @click.option("--variable", help="Name of the channels in a file with several arrays.")
        @click.option("--transpose", is_flag=True, help="The channels are (K, M) or (T, K, M) instead.")
        @click.option(
            "--weights",
            "weights_path",
            type=click.Path(path_type=Path),
            help="Weights φ_k, one per device (.npy, .npz or .mat).  "
            f"[default: {'1/K each' if required else 'shares of the training data'}]",
        )
        @click.option("--weights-variable", help="Name of the weights in a file with several arrays.")
        @wraps(command)
        def with_channels(
            channels_path: Path | None,
            variable: str | None,
            transpose: bool,
            weights_path: Path | None,
            weights_variable: str | None,
            **others: Any,
        ) -> None:
            if channels_path is None:
                given = {
                    "--variable": variable,
                    "--transpose": transpose,
                    "--weights": weights_path,
                    "--weights-variable": weights_variable,
                }
                for flag, value in given.items():
                    if value:
                        raise click.UsageError(f"{flag} requires --channels")
                command(channels=None, **others)
            else:
                read = _read(channels_path, variable, transpose, weights_path, weights_variable)
                command(channels=read, **others)

        return with_channels

    return add


def _read(
    path: Path, variable: str | None, transpose: bool, weights_path: Path | None, weights_variable: str | None
) -> ChannelsFile:
    from airpass.core.arrays import read_array
    from airpass.selection.api import axes, checked_stack, checked_weights

    values = read_array(path, variable)
    draws = checked_stack(values, str(path), transpose)
    _, chains, devices = draws.shape
    stacked = values.ndim == 3
    shape = axes(draws.shape if stacked else draws.shape[1:])
    weights = None
    if weights_path is not None:
        read = read_array(weights_path, weights_variable, "--weights-variable")
        try:
            weights = checked_weights(read, devices, str(weights_path))
        except InvalidInput as error:
            raise InvalidInput(f"{error} ({path}: {shape}; --transpose swaps the last two)") from None
    if chains > devices and not transpose:
        tell(
            f"warning: {path}: {shape}, which looks transposed; expected (M, K), a column per "
            "device; if rows are devices, use --transpose; if draws come last, as often in MATLAB, save "
            "permute(G, [3 1 2])"
        )
    if weights is not None and abs(float(weights.sum()) - 1.0) > 1e-6:
        tell(
            f"note: {weights_path}: the weights sum to {float(weights.sum()):g}; shares of the data "
            "sum to 1, and larger weights need more power for the same error"
        )
    return ChannelsFile(draws, stacked, weights)
