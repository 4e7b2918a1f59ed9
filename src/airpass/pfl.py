"""Aggregation over the air as a postprocessor of pfl (`pip install 'airpass[pfl]'`).

`OverTheAir` takes the statistics of the users whose devices the link selects, sends them through the link,
and puts the received mean update in the place of their sum. `SelectedUsers` and `SelectedCohort` draw the
selected users of a round, and no others. Users are simulated by pfl; the superposition, the noise and the
receiver are simulated in `postprocess_server`.

Weights. Statistics of pfl are a sum over users with a weight w_k each, which the algorithm divides by the sum
of the weights. A device sends its statistics divided by w_k, that is its update Delta_k, and the link has its
own weights phi_k. With the received mean update D of the senders S, the sum becomes

    (sum_{k in S} w_k) D   with the weight   sum_{k in S} w_k,

so the algorithm's average is D, whether `WeightByDatapoints` or `WeightByUser` sets w_k. D estimates
sum phi_k Delta_k/sum phi_k, which is pfl's own mean if phi_k is proportional to w_k.

Order. pfl calls `postprocess_one_user` in the order of the list, and `postprocess_server` in the reverse
order. What comes before `OverTheAir` in the list, such as clipping or compression, changes what is sent, and
its `postprocess_server` gets the received sum. What comes after it changes statistics that are not used any
more. So `OverTheAir` comes last.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from typing import Any

import numpy as np

from airpass.aircomp import Link
from airpass.core import checks, text
from airpass.core.errors import InvalidInput
from airpass.core.types import Single
from airpass.designs.book import Book
from airpass.learning.aggregation import LinkOptions
from airpass.learning.air_rounds import AirRound, AirRounds

if find_spec("pfl") is None:
    raise InvalidInput("pfl is not installed: pip install 'airpass[pfl]'")

from pfl.common_types import Population
from pfl.context import CentralContext, UserContext
from pfl.hyperparam.base import HyperParam
from pfl.internal.ops.selector import get_default_framework_module
from pfl.metrics import Metrics, StringMetricName
from pfl.postprocessor.base import Postprocessor
from pfl.stats import ElementWeightedMappedVectorStatistics, MappedVectorStatistics


class OverTheAir(Postprocessor):  # type: ignore[misc]  # pfl need not be installed for type checks
    """A postprocessor that sends the updates of users over the air.

    Parameters
    ----------
    link
        A design, a selection, a book or a sequence of links, as for `airpass.train`. Central iteration i of
        pfl, counted from 0, is round i + 1.
    devices
        The device of each user, {user id: 0, ..., K - 1}; or the user ids in the order of the devices.
    options
        Normalisation of updates, and errors of the devices.
    seed
        Seed of noise and errors. Default: the seed that the devices of a design or a book were drawn with,
        else 0.
    first_round
        The round that comes first; other than 1 if training goes on from a checkpoint.

    Notes
    -----
    Statistics of users that are not selected are set to zero. If some of the selected users are not in the
    cohort, the link is that of the others (`airpass.Link.among`). If none is, the sum is zero: a central
    optimiser without momentum then leaves the model as it is. A user may be in a cohort once.

    Running statistics of batch normalisation are not part of the statistics of pfl, and are not sent. In
    several processes, each has the updates of all users in the end: it needs memory for a model per sender.

    Attributes
    ----------
    rounds
        What is known about each round, a list of `airpass.learning.air_rounds.AirRound`.
    cohorts
        Number of cohorts so far, of training and of validation.
    """

    def __init__(
        self,
        link: Link | Book | Sequence[Link],
        devices: Mapping[Any, int] | Sequence[Any],
        *,
        options: LinkOptions | None = None,
        seed: int | None = None,
        first_round: int = 1,
    ) -> None:
        self.air = AirRounds(link, options, seed)
        self.device_of = _checked_devices(devices, self.air.devices)
        self.round = checks.whole("first_round", first_round, 1)
        self.rounds: list[AirRound] = []
        self.cohorts = 0
        self._updates: dict[int, dict[str, Single]] = {}  # of the users of this process
        self._weights: dict[int, float] = {}

    def users(self) -> list[Any]:
        """Users that the coming round selects, in the order of their devices."""
        user_of = {device: user for user, device in self.device_of.items()}
        return [user_of[device] for device in self.air.selected(self.round)]

    def others(self) -> list[Any]:
        """Users that the coming round does not select, in the order of their devices."""
        selected = set(self.users())
        in_order = sorted(self.device_of, key=self.device_of.__getitem__)
        return [user for user in in_order if user not in selected]

    def postprocess_one_user(
        self, *, stats: MappedVectorStatistics, user_context: UserContext
    ) -> tuple[MappedVectorStatistics, Metrics]:
        """Keep the update of a selected user; set that of another one to zero."""
        if not isinstance(stats, MappedVectorStatistics) or isinstance(
            stats, ElementWeightedMappedVectorStatistics
        ):
            raise InvalidInput(
                f"statistics are {type(stats).__name__}: must be MappedVectorStatistics, "
                "those of neural networks"
            )
        user = user_context.user_id
        if not (isinstance(user, Hashable) and user in self.device_of):
            raise InvalidInput(f"user {text.shown(user)} has no device; name it in devices")
        device = self.device_of[user]
        if device not in self.air.selected(self.round):
            return stats.apply_elementwise(lambda value: 0.0 * value), Metrics()
        if device in self._updates:
            raise InvalidInput(
                f"user {text.shown(user)} is in the cohort of round {self.round} twice; "
                "draw users with SelectedUsers and SelectedCohort"
            )
        weight = float(stats.weight)
        if not weight > 0.0:
            raise InvalidInput(f"user {text.shown(user)} has the weight {weight:g}; must be > 0")
        to_numpy = get_default_framework_module().to_numpy
        # The model keeps its tensors for the next user.
        self._updates[device] = {
            name: np.array(to_numpy(value), dtype=np.float32) / np.float32(weight)
            for name, value in stats.items()
        }
        self._weights[device] = weight
        return stats, Metrics()

    def postprocess_server_metrics(
        self, *, central_context: CentralContext, aggregate_metrics: Metrics
    ) -> Metrics:
        """Count the cohorts: pfl calls this in all processes after each one."""
        self.cohorts += 1
        return Metrics()

    def postprocess_server(
        self, *, stats: MappedVectorStatistics, central_context: CentralContext, aggregate_metrics: Metrics
    ) -> tuple[MappedVectorStatistics, Metrics]:
        """Replace the sum of a training round by what the receiver gets."""
        if central_context.population != Population.TRAIN:
            return stats, Metrics()
        number = central_context.current_central_iteration + 1
        if number != self.round:
            raise InvalidInput(
                f"first_round: pfl is in round {number}, and the link is in round {self.round}; "
                "training that goes on from a checkpoint needs first_round"
            )
        self.round += 1
        names = list(stats.keys())
        shapes = [np.shape(stats[name]) for name in names]
        mine, weights = self._updates, self._weights
        self._updates, self._weights = {}, {}
        updates = {device: [parts[name] for name in names] for device, parts in mine.items()}
        if get_default_framework_module().distributed.world_size > 1:
            updates, weights = _gathered(updates, weights, self.air.selected(number), shapes)
        if updates:
            mean, done = self.air.aggregate(number, updates)
            total = float(sum(weights[device] for device in done.senders))
        else:
            mean, done, total = (
                [np.zeros(shape, np.float32) for shape in shapes],
                self.air.silent(number),
                1.0,
            )
        self.rounds.append(done)
        to_tensor = get_default_framework_module().to_tensor
        received = stats.from_weights(
            stats.get_weights()[0], [to_tensor(array * np.float32(total)) for array in mean]
        )
        received.weight = total
        metrics = [(StringMetricName(f"over the air: {key}"), value) for key, value in done.metrics.items()]
        return received, Metrics(metrics)


class SelectedUsers:
    """A user sampler for `FederatedDataset` that draws the selected users of a round before all others.

    Both come in the order of their devices. Every cohort, of training or validation, starts with the first
    selected user. Do not give `user_id_to_weight` to the data set in several processes: it draws users of
    later rounds in advance.

    Parameters
    ----------
    air
        The postprocessor.
    """

    def __init__(self, air: OverTheAir) -> None:
        self._air = checks.instance("air", air, OverTheAir, "the postprocessor")
        self._cohort = (0, 0)
        self._users: Iterator[Any] = iter(())

    def __call__(self) -> Any:
        """Draw a user."""
        cohort = (self._air.round, self._air.cohorts)
        if self._cohort != cohort:
            self._cohort, self._users = cohort, cycle(self._air.users() + self._air.others())
        return next(self._users)


class SelectedCohort(HyperParam):  # type: ignore[misc]  # pfl need not be installed for type checks
    """The number of selected users of a round, at least one for each process; for `train_cohort_size`.

    pfl adds up the statistics of all processes, so none may be without a user. `SelectedUsers` fills the
    cohort with users that are not selected, whose updates are not used.

    Parameters
    ----------
    air
        The postprocessor.
    """

    def __init__(self, air: OverTheAir) -> None:
        self._air = checks.instance("air", air, OverTheAir, "the postprocessor")

    def value(self) -> int:
        """The number of the coming round."""
        processes = int(get_default_framework_module().distributed.world_size)
        count = len(self._air.device_of)
        if processes > count:
            raise InvalidInput(
                f"there are {processes} processes for {count} users, and each needs one in every round; "
                f"start at most {count}"
            )
        return max(len(self._air.users()), processes)


def _checked_devices(devices: Any, count: int) -> dict[Any, int]:
    """Refuse a mapping that is not one user for each device."""
    if isinstance(devices, Sequence) and not isinstance(devices, str | bytes):
        if len(set(devices)) < len(devices):
            raise InvalidInput("devices: a user is named twice; every device needs a user of its own")
        devices = {user: device for device, user in enumerate(devices)}
    if not isinstance(devices, Mapping):
        raise InvalidInput(
            f"devices = {text.shown(devices)}: must be {{user id: device}} or a list of user ids"
        )
    numbers = [checks.whole(f"devices[{user}]", device, 0) for user, device in devices.items()]
    if sorted(numbers) != list(range(count)):
        raise InvalidInput(
            f"devices: {len(numbers)} users for {count} devices; "
            f"must name one user for each of 0 to {count - 1}"
        )
    return dict(zip(devices, numbers, strict=True))


def _gathered(
    updates: Mapping[int, Sequence[Single]],
    weights: Mapping[int, float],
    selected: Sequence[int],
    shapes: Sequence[tuple[int, ...]],
) -> tuple[dict[int, list[Single]], dict[int, float]]:
    """The updates and weights of the users of all processes.

    Each process writes its users into their rows, and the sum over all processes has all rows: zeros do not
    change a number.
    """
    ops = get_default_framework_module()
    lengths = [int(np.prod(shape, dtype=int)) for shape in shapes]
    rows = np.zeros((len(selected), sum(lengths)), np.float32)
    about = np.zeros((2, len(selected)), np.float32)  # weight, and number of processes that have the user
    for row, device in enumerate(selected):
        if device in updates:
            rows[row] = np.concatenate([part.ravel() for part in updates[device]])
            about[:, row] = weights[device], 1.0
    reduced = ops.distributed.all_reduce([ops.to_tensor(rows), ops.to_tensor(about)])
    rows, about = (np.array(ops.to_numpy(one)) for one in reduced)
    if (about[1] > 1.0).any():
        twice = [device for device, count in zip(selected, about[1], strict=True) if count > 1.0]
        raise InvalidInput(
            f"the user of device {twice[0]} is in a cohort twice; "
            "draw users with SelectedUsers and SelectedCohort"
        )
    ends = np.cumsum(lengths)[:-1]
    found = {
        device: [part.reshape(shape) for part, shape in zip(np.split(rows[row], ends), shapes, strict=True)]
        for row, device in enumerate(selected)
        if about[1, row]
    }
    return found, {device: float(about[0, row]) for row, device in enumerate(selected) if device in found}
