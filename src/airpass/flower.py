"""Aggregation over the air as a strategy of Flower (`pip install 'airpass[flower]'`).

`OverTheAir` wraps a strategy of `flwr.serverapp.strategy`. In every round it trains the nodes whose devices
the link selects, sends their updates through the link, and gives the wrapped strategy one reply: the global
model plus the received mean update. Nodes send their models to the server as always; the superposition, the
noise and the receiver are simulated on the server.
"""

import copy
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.util import find_spec
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from airpass.aircomp import Link
from airpass.core import checks, text
from airpass.core.errors import InvalidInput
from airpass.designs.book import Book
from airpass.learning.aggregation import LinkOptions
from airpass.learning.air_rounds import AirRound, AirRounds

if find_spec("flwr") is None:
    raise InvalidInput("Flower is not installed: pip install 'airpass[flower]'")

from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, strategy
from flwr.serverapp.strategy import Strategy

# They need every update, or add noise that is calibrated to an exact mean.
INDIVIDUAL = (
    "Bulyan",
    "DifferentialPrivacyClientSideAdaptiveClipping",
    "DifferentialPrivacyClientSideFixedClipping",
    "DifferentialPrivacyServerSideAdaptiveClipping",
    "DifferentialPrivacyServerSideFixedClipping",
    "FedMedian",
    "FedTrimmedAvg",
    "FedXgbBagging",
    "FedXgbCyclic",
    "Krum",
    "MultiKrum",
    "QFedAvg",
)
ACTION = "airpass_device"  # of the query that `PartitionNodes` sends
VARIANCE = "running_var"  # last part of the name of a variance in batch normalisation
POLL_S = 1.0  # between two looks at the connected nodes

# Devices of nodes, given the grid and the number of devices. It is called before every round of training.
FindDevices: TypeAlias = Callable[[Grid, int], Mapping[int, int]]

log = logging.getLogger("flwr")


class OverTheAir(Strategy):  # type: ignore[misc]  # Flower need not be installed for type checks
    """A strategy that gets the mean of the updates over the air.

    Parameters
    ----------
    inner
        The strategy that samples nodes and takes the received mean update, such as FedAvg, FedProx or
        FedAdam. Strategies that need every update, such as FedMedian and Krum, are refused.
    link
        A design, a selection, a book or a sequence of links, as for `airpass.train`. Its weights phi_k take
        the place of the number of examples.
    devices
        The device of each node, {node id: 0, ..., K - 1}; or a function that finds it, such as
        `PartitionNodes()` or `SortedNodes()`. All K devices need a node. Other nodes do not train.
    options
        Normalisation of updates, and errors of the devices.
    seed
        Seed of noise and errors. Default: the seed that the devices of a design or a book were drawn with,
        else 0.

    Notes
    -----
    The inner strategy samples nodes from all that are connected, with `fraction_train` and
    `min_train_nodes`. Of these, the nodes of selected devices train: with `fraction_train=1.0` all selected
    devices send. The others of a round, and nodes that fail or send numbers that are not finite, are left
    out with a warning, and the link is that of the remaining ones (`airpass.Link.among`).

    Floating-point arrays are sent in single precision, running statistics of batch normalisation among them;
    a variance that noise made negative is set to zero. Other arrays, such as `num_batches_tracked`, are not
    sent: the global model keeps its own. The arrays that the inner strategy returns get the types of the
    global model. If no device sends, the global model does not change and the inner strategy is not called.

    Attributes
    ----------
    rounds
        What is known about each round of training, a list of `airpass.learning.air_rounds.AirRound`.
    """

    def __init__(
        self,
        inner: Strategy,
        link: Link | Book | Sequence[Link],
        devices: Mapping[int, int] | FindDevices,
        *,
        options: LinkOptions | None = None,
        seed: int | None = None,
    ) -> None:
        self.inner = _checked(inner)
        self.air = AirRounds(link, options, seed)
        if not (isinstance(devices, Mapping) or callable(devices)):
            raise InvalidInput(
                f"devices = {text.shown(devices)}: must be {{node id: device}} or a function, "
                "such as PartitionNodes()"
            )
        self.devices = devices
        self.rounds: list[AirRound] = []
        self._device_of: dict[int, int] = {}
        self._start: dict[str, NDArray[Any]] = {}  # the global model of the round
        self._round = 0

    def summary(self) -> None:
        """Log the link and the inner strategy."""
        log.info("\t├──> Over the air:")
        log.info("\t│\t├── Devices: %d", self.air.devices)
        log.info("\t│\t├── Links: %d", len(self.air.links))
        log.info("\t│\t└── First link: %r", self.air.links[0])
        self.inner.summary()

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Messages of the inner strategy to the nodes of selected devices."""
        found = self.devices if isinstance(self.devices, Mapping) else self.devices(grid, self.air.devices)
        self._device_of = _checked_devices(found, self.air.devices)
        self._start = {name: np.array(array.numpy()) for name, array in arrays.items()}
        self._round = server_round
        messages = list(self.inner.configure_train(server_round, arrays, config, grid))
        selected = set(self.air.selected(server_round))
        kept = [one for one in messages if self._device_of.get(one.metadata.dst_node_id) in selected]
        log.info("configure_train: %d of these are selected for round %d", len(kept), server_round)
        return kept

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Send the updates over the air, and give the inner strategy the result as one reply."""
        if server_round != self._round:
            raise InvalidInput(
                f"server_round = {server_round}: must be {self._round}, that of the last configure_train"
            )
        received = self._received(replies)
        updates: dict[int, list[NDArray[Any]]] = {}
        for device, reply in list(received.items()):
            update = self._update(reply)
            if all(np.isfinite(array).all() for array in update):
                updates[device] = update
            else:
                log.warning("aggregate_train: the update of device %d is not finite; left out", device)
                del received[device]
        if not updates:
            self.rounds.append(self.air.silent(server_round))
            return None, self._with_metrics(None)
        mean, done = self.air.aggregate(server_round, updates)
        self.rounds.append(done)
        log.info(
            "aggregate_train: %d of %d selected devices sent, SDR %.1f dB",
            len(done.senders),
            len(done.selected),
            done.measured_sdr_db,
        )
        model = dict(self._start)
        for name, change in zip(self._sent_names(), mean, strict=True):
            model[name] = self._start[name] + change.astype(self._start[name].dtype)
        weights = self.air.link(server_round).weights
        content = self._mean_reply(model, received, {k: float(weights[k]) for k in updates})
        reply = copy.copy(received[done.senders[0]])
        reply.content = content
        result, metrics = self.inner.aggregate_train(server_round, [reply])
        return None if result is None else self._as_model(result), self._with_metrics(metrics)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Messages of the inner strategy."""
        messages: Iterable[Message] = self.inner.configure_evaluate(server_round, arrays, config, grid)
        return messages

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Metrics of the inner strategy."""
        return self.inner.aggregate_evaluate(server_round, replies)

    def _received(self, replies: Iterable[Message]) -> dict[int, Message]:
        """Replies by device, without failures."""
        received: dict[int, Message] = {}
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error():
                log.warning("aggregate_train: node %d failed: %s", node, reply.error.reason)
                continue
            if node not in self._device_of:
                raise InvalidInput(f"replies: node {node} has no device; give devices for all that train")
            device = self._device_of[node]
            if device in received:
                raise InvalidInput(f"replies: device {device} replies twice in round {self._round}")
            received[device] = reply
        return received

    def _sent_names(self) -> list[str]:
        """Names of the arrays that devices send, in the order of the model."""
        return [name for name, array in self._start.items() if array.dtype.kind == "f"]

    def _update(self, reply: Message) -> list[NDArray[Any]]:
        """What a node has changed, without arrays that are not sent."""
        (record,) = _only(reply, "ArrayRecord", reply.content.array_records)
        sent: list[NDArray[Any]] = []
        node = reply.metadata.src_node_id
        if set(record) != set(self._start):
            raise InvalidInput(
                f"replies: node {node} returns other arrays than it was sent; return all of the model"
            )
        for name in self._sent_names():
            start, array = self._start[name], record[name].numpy()
            if array.shape != start.shape:
                raise InvalidInput(
                    f"replies: {name} of node {node} has shape {array.shape}; must be {start.shape}"
                )
            with np.errstate(over="ignore", invalid="ignore"):
                sent.append((array.astype(start.dtype, copy=False) - start).astype(np.float32))
        return sent

    def _mean_reply(
        self, model: Mapping[str, NDArray[Any]], received: Mapping[int, Message], weights: Mapping[int, float]
    ) -> RecordDict:
        """Content of the reply for the inner strategy."""
        first = next(iter(received.values()))
        records = RecordDict({next(iter(first.content.array_records)): _record(model)})
        if first.content.metric_records:
            key = getattr(self.inner, "weighted_by_key", None)
            records[next(iter(first.content.metric_records))] = _mean_metrics(received, weights, key)
        return records

    def _as_model(self, arrays: ArrayRecord) -> ArrayRecord:
        """What the inner strategy returns, with the types of the global model.

        The record itself is changed: FedAvgM keeps it, and steps from it in the next round.
        """
        for name, start in self._start.items():
            if name not in arrays:
                continue
            value = start
            if start.dtype.kind == "f":
                value = arrays[name].numpy().astype(start.dtype)
                if name.rpartition(".")[2] == VARIANCE:
                    value = np.maximum(value, value.dtype.type(0))
            arrays[name] = Array(np.asarray(value))
        return arrays

    def _with_metrics(self, metrics: MetricRecord | None) -> MetricRecord:
        """Metrics of the inner strategy and those of the last round over the air."""
        result = MetricRecord() if metrics is None else metrics
        for name, value in self.rounds[-1].metrics.items():
            result[f"air-{name}"] = value
        return result


class SortedNodes:
    """The node ids in ascending order are devices 0, ..., K - 1, once K nodes are connected.

    The devices stay those of the first K nodes. Node ids are random, so the order says nothing about the data
    of a node; `PartitionNodes` asks for it.

    Parameters
    ----------
    timeout_s
        How long to wait for K nodes, in seconds.
    """

    def __init__(self, timeout_s: float = 600.0) -> None:
        self.timeout_s = checks.at_least("timeout_s", timeout_s, 0.0)
        self._found: dict[int, int] = {}

    def __call__(self, grid: Grid, devices: int) -> Mapping[int, int]:
        """Devices of nodes."""
        if not self._found:
            nodes = _enough_nodes(grid, devices, self.timeout_s)
            if len(nodes) > devices:
                raise InvalidInput(
                    f"devices: {len(nodes)} nodes are connected and the link has {devices} devices; "
                    "give {node id: device} for those that are to train"
                )
            self._found = {node: device for device, node in enumerate(sorted(nodes))}
        return self._found


class PartitionNodes:
    """The partition id of a node is its device. Nodes are asked for it by a query.

    The `ClientApp` answers if `answer_partition(app)` was called. In simulations, and for a SuperNode that is
    started with `--node-config 'partition-id=3'`, the partition id is part of the node's configuration.

    Nodes that connect later, or again under another node id, are asked before the next round. The last one to
    answer takes the place of other nodes of its device, as Flower lists a node that has crashed until its
    heartbeats are missed. Nodes that are none of the K devices are left out with a warning. Two nodes that
    name the same device when all are asked first are refused. Once every device has a node, those that do not
    answer are left out with a warning, and asked again before the next round.

    Parameters
    ----------
    timeout_s
        How long to wait for K nodes, and for answers, in seconds.
    """

    def __init__(self, timeout_s: float = 600.0) -> None:
        self.timeout_s = checks.at_least("timeout_s", timeout_s, 0.0)
        self._known: dict[int, int] = {}  # devices of nodes, in the order of their answers

    def __call__(self, grid: Grid, devices: int) -> Mapping[int, int]:
        """Devices of nodes."""
        complete = set(range(devices)) <= set(self._known.values())
        nodes = set(grid.get_node_ids() if complete else _enough_nodes(grid, devices, self.timeout_s))
        asked = sorted(nodes - self._known.keys())
        answers, silence = _partitions(grid, asked, self.timeout_s)
        answers = _of_the_link(answers, devices)
        if not complete:
            _refuse_two_nodes(answers)
        before = _newest(self._known, nodes)
        self._known |= answers
        found = _newest(self._known, nodes)
        self._known = {node: k for node, k in self._known.items() if node in nodes or node in found}
        if silence and len(found) < devices:
            raise InvalidInput(f"devices: {silence}")
        if silence:
            log.warning("devices: %s", silence)
        if complete:
            for node in found.keys() - before.keys():
                log.warning("devices: device %d is node %d from now on", found[node], node)
        return found


def answer_partition(app: ClientApp, key: str = "partition-id") -> None:
    """Let a ClientApp answer the query of `PartitionNodes`.

    Parameters
    ----------
    app
        The ClientApp.
    key
        Name of the partition id in the node's configuration.
    """

    @app.query(ACTION)  # type: ignore[untyped-decorator]
    def answer(message: Message, context: Context) -> Message:
        device = MetricRecord({"device": int(context.node_config[key])})
        return Message(content=RecordDict({ACTION: device}), reply_to=message)


def _checked(inner: Any) -> Strategy:
    """Refuse a strategy that cannot take a mean."""
    if not isinstance(inner, Strategy):
        raise InvalidInput(
            f"inner = {text.shown(inner)}: must be a strategy of flwr.serverapp.strategy, such as FedAvg()"
        )
    name = type(inner).__name__
    if isinstance(inner, OverTheAir):
        raise InvalidInput("inner: is over the air already; give the strategy that it wraps")
    if isinstance(inner, tuple(getattr(strategy, one) for one in INDIVIDUAL if hasattr(strategy, one))):
        raise InvalidInput(
            f"inner: {name} needs more than the mean of the updates, which is all that the air gives; "
            "use FedAvg, FedAvgM, FedProx, FedAdagrad, FedAdam or FedYogi"
        )
    if type(inner).start is not Strategy.start:
        raise InvalidInput(
            f"inner: {name} has a start of its own, which would bypass the air; "
            "override that of OverTheAir instead"
        )
    return inner


def _checked_devices(found: Any, count: int) -> dict[int, int]:
    """Refuse a mapping that is not one node for each device."""
    if not isinstance(found, Mapping):
        raise InvalidInput(f"devices = {text.shown(found)}: must be {{node id: device}}")
    result: dict[int, int] = {}
    for node, device in found.items():
        name = text.shown(node)
        if isinstance(node, bool) or not isinstance(node, Integral):
            raise InvalidInput(f"devices: node id {name} must be a whole number")
        number = checks.whole(f"devices[{name}]", device, 0)
        if number >= count:
            raise InvalidInput(f"devices[{name}] = {number}: the link has {count} devices, 0 to {count - 1}")
        result[int(node)] = number
    _refuse_two_nodes(result)
    if len(result) < count:
        raise InvalidInput(
            f"devices: there are nodes for {len(result)} of the {count} devices of the link; "
            "every device needs a node"
        )
    return result


def _enough_nodes(grid: Grid, count: int, timeout_s: float) -> list[int]:
    """Wait until enough nodes are connected."""
    end = time.monotonic() + timeout_s
    while len(nodes := list(grid.get_node_ids())) < count:
        if time.monotonic() >= end:
            raise InvalidInput(
                f"devices: {len(nodes)} nodes are connected and the link has {count} devices; "
                "start more nodes"
            )
        log.info("Waiting for nodes to connect: %d of %d", len(nodes), count)
        time.sleep(min(POLL_S, timeout_s))
    return nodes


def _partitions(grid: Grid, asked: Sequence[int], timeout_s: float) -> tuple[dict[int, int], str]:
    """Answers to the query for devices, in their order, and a line about nodes that do not answer, if any."""
    queries = [
        Message(content=RecordDict(), message_type=f"query.{ACTION}", dst_node_id=node) for node in asked
    ]
    answers: dict[int, int] = {}
    reason = f"no answer in {timeout_s:g} s"
    for reply in grid.send_and_receive(queries, timeout=timeout_s) if queries else ():
        if reply.has_error():  # for a node that is gone, the SuperLink replies
            reason = reply.error.reason
        else:
            answer: Any = reply.content[ACTION]["device"]
            answers[reply.metadata.src_node_id] = int(answer)
    silent = [node for node in asked if node not in answers]
    if not silent:
        return answers, ""
    more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
    return answers, (
        f"no partition id from node {silent[0]}{more} ({text.one_line(reason, 2 * text.LONGEST_VALUE)}); "
        "call airpass.flower.answer_partition(app) on the ClientApp"
    )


def _newest(known: Mapping[int, int], connected: Collection[int]) -> dict[int, int]:
    """One node for each device: the last of those that are connected, else the last of all."""
    node_of: dict[int, int] = {}
    for node, device in known.items():
        if node in connected or node_of.get(device) not in connected:
            node_of[device] = node
    return {node: device for device, node in node_of.items()}


def _of_the_link(answers: Mapping[int, int], count: int) -> dict[int, int]:
    """Answers that name a device of the link."""
    for node, device in answers.items():
        if not 0 <= device < count:
            log.warning(
                "devices: node %d is device %d, and the link has %d devices; left out", node, device, count
            )
    return {node: device for node, device in answers.items() if 0 <= device < count}


def _refuse_two_nodes(device_of: Mapping[int, int]) -> None:
    """Every device needs a node of its own."""
    for device, count in Counter(device_of.values()).most_common(1):
        if count > 1:
            raise InvalidInput(
                f"devices: two nodes are device {device}; every device needs a node of its own"
            )


def _only(reply: Message, kind: str, records: Mapping[str, Any]) -> list[Any]:
    """The only record of a kind."""
    if len(records) != 1:
        node = reply.metadata.src_node_id
        raise InvalidInput(f"replies: node {node} returns {len(records)} times {kind}; must be once")
    return list(records.values())


def _record(model: Mapping[str, NDArray[Any]]) -> ArrayRecord:
    return ArrayRecord({name: Array(np.asarray(array)) for name, array in model.items()})


def _mean_metrics(
    received: Mapping[int, Message], weights: Mapping[int, float], weighted_by_key: str | None
) -> MetricRecord:
    """Metrics averaged with phi_k; the number of examples is summed."""
    found = {
        device: _only(reply, "MetricRecord", reply.content.metric_records)[0]
        for device, reply in received.items()
    }
    names = list(next(iter(found.values())))
    if any(set(record) != set(names) for record in found.values()):
        raise InvalidInput("replies: the metrics of all nodes must have the same names")
    total = sum(weights.values())
    result = MetricRecord()
    for name in names:
        values = {device: np.asarray(record[name], dtype=np.float64) for device, record in found.items()}
        if len({value.shape for value in values.values()}) > 1:
            raise InvalidInput(f"replies: metric {name} does not have the same length at all nodes")
        if name == weighted_by_key:
            mean: Any = sum(values.values())
        else:
            mean = sum(weights[device] / total * value for device, value in values.items())
        result[name] = mean.tolist()
    return result
