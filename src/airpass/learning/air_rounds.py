"""Rounds over the air without a training loop: what `train` and bridges to other frameworks share.

Nothing here needs PyTorch. Receiver noise and channel errors are keyed on the seed and the round, as in
`airpass.train`: the same updates give the same mean update, whatever computes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpass.aircomp import Link, sdr_db
from airpass.core import checks, text
from airpass.core.errors import InvalidInput
from airpass.core.randomness import Purpose, stream
from airpass.core.threads import one_blas_thread
from airpass.core.types import Real, Single
from airpass.designs.api import Design
from airpass.designs.book import Book
from airpass.designs.round_links import RoundLinks
from airpass.learning.aggregation import Aggregate, LinkOptions, over_the_air
from airpass.learning.subcarriers import over_subcarriers
from airpass.selection.api import Draws
from airpass.wideband import WidebandLink


def send(
    updates: Single, sizes: list[int], link: Link, options: LinkOptions, seed: int, number: int
) -> Aggregate:
    """Send the updates of a round through its link.

    Parameters
    ----------
    updates
        Updates of the selected devices, shape (|S|, d).
    sizes
        Lengths of the tensors in an update.
    link
        The link; its noise power must be known.
    options
        Normalisation, and errors of the devices.
    seed
        Seed of noise and errors.
    number
        The round, from 1.

    Returns
    -------
    Aggregate
        The received mean update.
    """
    noise, errors = stream(seed, Purpose.NOISE, number), stream(seed, Purpose.CHANNEL_ERROR, number)
    if isinstance(link, WidebandLink):
        return over_subcarriers(updates, sizes, link, options, noise, errors)
    return over_the_air(updates, sizes, link, options, noise, errors)


def round_links(link: Link | Book | Sequence[Link] | None) -> Sequence[Link]:
    """The links of consecutive rounds; none for ideal FedAvg."""
    if link is None:
        return ()
    if isinstance(link, Book):
        return link.links
    links = [link] if isinstance(link, Link) else link
    computed = isinstance(links, Draws | RoundLinks)  # all are alike, and each is computed when it is used
    if not computed:
        links = tuple(links)
        if not links or not all(isinstance(item, Link) for item in links):
            raise InvalidInput("link: must be a link, a sequence of links, or None for ideal FedAvg")
        if len({item.weights.size for item in links}) > 1:
            raise InvalidInput("link: all links of a sequence must have the same number of devices")
    for item in links[:1] if computed else links:
        if item.noise_power is None:
            raise InvalidInput("link: the noise power is not known; give mse_threshold")
    return links


@dataclass(frozen=True, eq=False)
class AirRound:
    """A round over the air.

    Parameters
    ----------
    number
        The round, from 1.
    selected
        Devices that its link selects.
    senders
        Those that sent an update.
    predicted_mse, measured_mse
        Error of the sum by eq. (17), and on the signal; NaN if no device sent.
    predicted_sdr_db, measured_sdr_db
        The same as signal-to-distortion ratios.
    power
        Average transmit power over P0, per sender.
    """

    number: int
    selected: tuple[int, ...]
    senders: tuple[int, ...]
    predicted_mse: float
    measured_mse: float
    predicted_sdr_db: float
    measured_sdr_db: float
    power: Real

    @property
    def largest_power(self) -> float:
        """Largest average transmit power over P0; NaN if no device sent."""
        return float(self.power.max()) if self.power.size else nan

    @property
    def metrics(self) -> dict[str, float]:
        """The round as named numbers."""
        return {
            "selected": len(self.selected),
            "senders": len(self.senders),
            "predicted-mse": self.predicted_mse,
            "measured-mse": self.measured_mse,
            "predicted-sdr-db": self.predicted_sdr_db,
            "measured-sdr-db": self.measured_sdr_db,
            "largest-power": self.largest_power,
        }


class AirRounds:
    """Over-the-air aggregation in consecutive rounds.

    Parameters
    ----------
    link
        A design, a selection, a book or a sequence of links, as for `airpass.train`: round r = 1, 2, ... uses
        link (r - 1) mod T.
    options
        Normalisation, and errors of the devices.
    seed
        Seed of noise and errors. Default: the seed that the devices of a design or a book were drawn with,
        else 0.
    """

    def __init__(
        self,
        link: Link | Book | Sequence[Link],
        options: LinkOptions | None = None,
        seed: int | None = None,
    ) -> None:
        if not isinstance(link, Link | Book | Sequence) or isinstance(link, str | bytes):
            raise InvalidInput(
                f"link = {text.shown(link)}: must be a Link, such as a design, a Book, or a list of links"
            )
        if options is not None:
            checks.instance("options", options, LinkOptions, "LinkOptions()")
        if seed is None:
            seed = link.scenario.seed if isinstance(link, Design | Book) else 0
        self.links = round_links(link)
        self.options = options or LinkOptions()
        self.seed = checks.whole("seed", seed, 0)

    @property
    def devices(self) -> int:
        """Number of devices K."""
        return self.links[0].weights.size

    def link(self, number: int) -> Link:
        """The link of round `number`, counted from 1."""
        return self.links[(checks.whole("round", number, 1) - 1) % len(self.links)]

    def selected(self, number: int) -> tuple[int, ...]:
        """The devices that send in round `number`, counted from 1, in ascending order."""
        return tuple(np.flatnonzero(self.link(number).selected).tolist())

    def silent(self, number: int) -> AirRound:
        """Round `number` if no device sends. The global model does not change."""
        return AirRound(number, self.selected(number), (), nan, nan, nan, nan, np.empty(0))

    def aggregate(
        self, number: int, updates: Mapping[int, Sequence[NDArray[Any]]]
    ) -> tuple[list[Single], AirRound]:
        """Send updates over the air.

        Devices that are selected but have no update do not send: the link is then `Link.among` the others.

        Parameters
        ----------
        number
            The round, from 1.
        updates
            Update of each device that sends: arrays of floating-point numbers, with the same shapes for all
            devices. Each array is a tensor of its own. They are sent in single precision.

        Returns
        -------
        tuple of list of arrays and AirRound
            The received mean update, and what is known about the round. `InvalidInput` is raised if a device
            is not selected, if no device sends, or if numbers are not finite.
        """
        link, selected = self.link(number), self.selected(number)
        if not updates:
            raise InvalidInput(f"updates: no device sends in round {number}; keep the global model")
        for device in updates:
            if device not in selected:
                raise InvalidInput(
                    f"updates: device {text.shown(device)} is not selected in round {number}; leave it out"
                )
        senders = tuple(device for device in selected if device in updates)
        shapes = [np.shape(array) for array in updates[senders[0]]]
        if not any(np.prod(shape, dtype=int) for shape in shapes):
            raise InvalidInput("updates: have no entries; give the arrays of a model")
        rows = np.stack([_flat(device, updates[device], shapes) for device in senders])
        if len(senders) < len(selected):
            present = np.zeros(self.devices, dtype=bool)
            present[list(senders)] = True
            link = link.among(present)
        lengths = [int(np.prod(shape, dtype=int)) for shape in shapes]
        sizes = [length for length in lengths if length]
        with np.errstate(over="ignore", invalid="ignore"), one_blas_thread():
            sent = send(rows, sizes, link, self.options, self.seed, number)
        if not np.isfinite(sent.update).all():
            raise InvalidInput(f"updates: their sum in round {number} is too large for single precision")
        parts = np.split(sent.update, np.cumsum(lengths)[:-1])
        signal = float(np.sum(link.weights[link.selected] ** 2))
        done = AirRound(
            number,
            selected,
            senders,
            sent.predicted_mse,
            sent.measured_mse,
            sdr_db(signal, sent.predicted_mse),
            sdr_db(signal, sent.measured_mse),
            sent.power,
        )
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)], done


def _flat(device: int, arrays: Sequence[NDArray[Any]], shapes: list[tuple[int, ...]]) -> Single:
    """An update as one vector in single precision."""
    update = f"updates: that of device {device}"
    given = [np.asarray(array) for array in arrays]
    if [array.shape for array in given] != shapes:
        raise InvalidInput(f"{update} has other shapes than the first; give the same arrays for all devices")
    if any(array.dtype.kind != "f" for array in given):
        raise InvalidInput(f"{update} has an array without floating-point numbers; leave that array out")
    flat = np.empty(sum(array.size for array in given), np.float32)
    with np.errstate(over="ignore"):
        np.concatenate([array.ravel() for array in given], out=flat, casting="same_kind")
    if not np.isfinite(flat).all():
        raise InvalidInput(f"{update} is not finite in single precision; leave that device out")
    return flat
