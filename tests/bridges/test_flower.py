"""The strategy of Flower, against the aggregation and the training of the package itself.

Nodes run in this process: a grid calls a ClientApp for every message. `flwr run` runs the example.
"""

import importlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Context,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, strategy
from flwr.serverapp.strategy import FedAdam, FedAvg, FedAvgM, FedProx, Strategy
from flwr.supercore.task_identity import TaskIdentity

import bridging
from airpass import Design, InvalidInput, Scenario, ServerOptions
from airpass import flower as bridge
from airpass.flower import OverTheAir, PartitionNodes, SortedNodes, answer_partition
from airpass.learning.air_rounds import AirRounds
from airpass.learning.data.partition import FederatedData

ROOT = Path(__file__).parents[2]
NODES = [901, 17, 305, 44, 512, 60, 777, 83, 219, 120]  # of devices 0, 1, ...
DEVICE_OF = {node: device for device, node in enumerate(NODES)}
EVERYONE: dict[str, Any] = {"fraction_evaluate": 0.0, "min_available_nodes": bridging.DEVICES}


@pytest.fixture(autouse=True)
def identity(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


@pytest.fixture(scope="module")
def setting() -> tuple[Scenario, FederatedData, Design]:
    scenario, data = bridging.prepared()
    return scenario, data, bridging.designed(scenario)


class Nodes(Grid):  # type: ignore[misc]
    """Nodes in this process."""

    def __init__(self, app: Any, device_of: Mapping[int, int] | None = None) -> None:
        self.app = app
        self.device_of = dict(DEVICE_OF if device_of is None else device_of)
        self.asked: list[tuple[str, int]] = []
        self.fails: set[int] = set()

    def set_run(self, run: Any) -> None:
        raise NotImplementedError

    @property
    def run(self) -> Any:
        raise NotImplementedError

    def create_message(self, *_: Any, **__: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self.device_of)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            self.asked.append((message.metadata.message_type, node))
            config = {"partition-id": self.device_of[node]}
            context = Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})
            try:
                if node in self.fails:
                    raise RuntimeError("no memory")
                replies.append(self.app(message, context))
            except Exception as error:
                replies.append(Message(Error(code=1, reason=str(error)), reply_to=message))
        return replies


def reply_to(message: Message, arrays: Any, **metrics: Any) -> Message:
    record = ArrayRecord({name: Array(np.asarray(value)) for name, value in arrays.items()})
    return Message(RecordDict({"arrays": record, "metrics": MetricRecord(metrics)}), reply_to=message)


def learners(data: FederatedData, options: Any) -> ClientApp:
    """Nodes that train as the package does."""
    app = ClientApp()
    answer_partition(app)
    trainer = bridging.trainer(data, options)

    @app.train()  # type: ignore[untyped-decorator]
    def train(message: Message, context: Context) -> Message:
        device, number = context.node_config["partition-id"], message.content["config"]["server-round"]
        trainer.flat.model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        _, loss = trainer.update(trainer.flat.read(), number, device)
        metrics = MetricRecord({"loss": loss, "num-examples": data.counts[device]})
        arrays = ArrayRecord(trainer.flat.model.state_dict())
        return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)

    return app


def start_of(data: FederatedData, options: Any) -> ArrayRecord:
    return ArrayRecord(bridging.trainer(data, options).flat.model.state_dict())


def state_of(arrays: ArrayRecord) -> Any:
    return bridging.flat(array.numpy() for array in arrays.values())


def partitions() -> ClientApp:
    """Nodes that tell which device they are."""
    app = ClientApp()
    answer_partition(app)
    return app


SHAPES = {"a.weight": (3, 4), "a.bias": (4,), "scale": ()}


def model(seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: np.asarray(rng.normal(size=shape), np.float32) for name, shape in SHAPES.items()} | {
        "count": np.asarray(3)
    }


def drift(message: Message, context: Context) -> Message:
    """Nodes that add random numbers to the model."""
    device = context.node_config["partition-id"]
    start = {name: array.numpy() for name, array in message.content["arrays"].items()}
    changed = {
        name: value + np.float32(0.1) * model(100 + device)[name] if value.dtype.kind == "f" else value + 7
        for name, value in start.items()
    }
    numbers = {"loss": float(device), "num-examples": 10 * device + 10, "two": [1.0 * device, 2.0 * device]}
    return reply_to(message, changed, **numbers)


def a_round(
    over: OverTheAir, grid: Grid, arrays: ArrayRecord, number: int = 1
) -> tuple[ArrayRecord | None, MetricRecord | None]:
    config = ConfigRecord()
    replies = grid.send_and_receive(over.configure_train(number, arrays, config, grid))
    return over.aggregate_train(number, replies)


def record(values: Mapping[str, Any]) -> ArrayRecord:
    return ArrayRecord({name: Array(value) for name, value in values.items()})


def updates(link: Any, number: int, leave_out: Iterable[int] = ()) -> Any:
    """What `AirRounds` makes of the nodes of `drift`."""
    start, air = model(), AirRounds(link, seed=bridging.SEED)
    sent = {
        k: [start[n] + np.float32(0.1) * model(100 + k)[n] - start[n] for n in SHAPES]
        for k in air.selected(number)
        if k not in set(leave_out)
    }
    return air.aggregate(number, sent)


class TestTraining:
    """The same model as by `airpass.train`, bit for bit."""

    @pytest.mark.parametrize("devices", [DEVICE_OF, PartitionNodes()], ids=["mapping", "partitions"])
    def test_of_a_design(self, setting: Any, devices: Any) -> None:
        _, data, link = setting
        run = bridging.trained(link, data, bridging.OPTIONS)
        over = OverTheAir(FedAvg(**EVERYONE), link, devices, seed=bridging.SEED)
        result = over.start(
            Nodes(learners(data, bridging.OPTIONS)),
            start_of(data, bridging.OPTIONS),
            num_rounds=bridging.ROUNDS,
        )
        np.testing.assert_array_equal(state_of(result.arrays), run.state)
        assert [one.number for one in over.rounds] == list(range(1, bridging.ROUNDS + 1))
        assert all(len(one.senders) == link.selected_count for one in over.rounds)
        last = run.history[-1]
        assert np.mean([one.measured_mse for one in over.rounds]) == pytest.approx(last.measured_mse)
        losses = [record["loss"] for record in result.train_metrics_clientapp.values()]
        assert np.mean(losses) == pytest.approx(last.local_loss)

    def test_of_a_book_by_turns(self, setting: Any) -> None:
        scenario, data = bridging.prepared(-4.0)
        book = bridging.scheduled(scenario)
        run = bridging.trained(book, data, bridging.OPTIONS)
        over = OverTheAir(FedAvg(**EVERYONE), book, DEVICE_OF, seed=bridging.SEED)
        grid = Nodes(learners(data, bridging.OPTIONS))
        result = over.start(grid, start_of(data, bridging.OPTIONS), num_rounds=bridging.ROUNDS)
        np.testing.assert_array_equal(state_of(result.arrays), run.state)

    def test_with_running_statistics(self, setting: Any) -> None:
        _, data, link = setting
        options = replace(bridging.OPTIONS, model=bridging.normalised, rounds=3, evaluate_every=3)
        run = bridging.trained(link, data, options)
        start = start_of(data, options)
        assert any(name.endswith("num_batches_tracked") for name in start)
        over = OverTheAir(FedAvg(**EVERYONE), link, DEVICE_OF, seed=bridging.SEED)
        result = over.start(Nodes(learners(data, options)), start, num_rounds=3)
        np.testing.assert_array_equal(state_of(result.arrays), run.state)
        counts = [array for name, array in result.arrays.items() if name.endswith("num_batches_tracked")]
        assert [array.numpy().tolist() for array in counts] == [0]
        assert counts[0].dtype == "int64"

    def test_a_server_with_momentum(self, setting: Any) -> None:
        _, data, link = setting
        options = replace(bridging.OPTIONS, server=ServerOptions("momentum"))
        run = bridging.trained(link, data, options)
        inner = FedAvgM(server_momentum=0.9, **EVERYONE)
        over = OverTheAir(inner, link, DEVICE_OF, seed=bridging.SEED)
        result = over.start(
            Nodes(learners(data, bridging.OPTIONS)), start_of(data, options), num_rounds=bridging.ROUNDS
        )
        np.testing.assert_allclose(state_of(result.arrays), run.state, rtol=0, atol=5e-7)


class TestAggregation:
    def test_it_is_that_of_the_link(self, setting: Any) -> None:
        link = setting[2]
        over = OverTheAir(FedAvg(**EVERYONE), link, DEVICE_OF, seed=bridging.SEED)
        start = model()
        for number in (1, 2):
            arrays, metrics = a_round(over, Nodes(drift), record(start), number)
            assert arrays is not None
            assert metrics is not None
            mean, done = updates(link, number)
            for name, change in zip(SHAPES, mean, strict=True):
                np.testing.assert_array_equal(arrays[name].numpy(), start[name] + change)
                assert arrays[name].numpy().dtype == np.float32
            assert arrays["count"].numpy() == 3
            assert list(arrays) == list(start)
            assert metrics["air-measured-mse"] == done.measured_mse == over.rounds[-1].measured_mse
            assert metrics["air-senders"] == link.selected_count
            phi, devices = link.weights[link.selected], np.flatnonzero(link.selected)
            assert metrics["loss"] == pytest.approx(phi @ devices / phi.sum())
            assert metrics["two"] == pytest.approx([metrics["loss"], 2.0 * metrics["loss"]])
            assert "num-examples" not in metrics

    def test_only_selected_nodes_are_asked(self, setting: Any) -> None:
        link = setting[2]
        grid = Nodes(drift, DEVICE_OF | {5: 99, 6: 98})  # two nodes without a device
        inner = FedAvg(**EVERYONE)
        a_round(OverTheAir(inner, link, DEVICE_OF), grid, record(model()))
        assert sorted(node for _, node in grid.asked) == sorted(
            NODES[k] for k in np.flatnonzero(link.selected)
        )

    def test_nodes_that_fail_or_diverge_are_left_out(self, setting: Any) -> None:
        link = setting[2]
        fails, diverges, *others = np.flatnonzero(link.selected).tolist()
        assert len(others) >= 3

        def app(message: Message, context: Context) -> Message:
            device = context.node_config["partition-id"]
            if device == fails:
                raise RuntimeError("no memory")
            reply = drift(message, context)
            if device == diverges:
                reply.content["arrays"]["scale"] = Array(np.asarray(np.nan, np.float32))
            return reply

        over = OverTheAir(FedAvg(**EVERYONE), link, DEVICE_OF, seed=bridging.SEED)
        arrays, metrics = a_round(over, Nodes(app), record(model()))
        mean, done = updates(link, 1, [fails, diverges])
        assert arrays is not None
        assert metrics is not None
        for name, change in zip(SHAPES, mean, strict=True):
            np.testing.assert_array_equal(arrays[name].numpy(), model()[name] + change)
        assert over.rounds[0].senders == done.senders == tuple(others)
        assert metrics["air-selected"] == link.selected_count
        phi = link.weights[others]
        assert metrics["loss"] == pytest.approx(phi @ others / phi.sum())

    def test_a_fraction_of_the_nodes(self, setting: Any) -> None:
        link = setting[2]
        inner = FedAvg(fraction_train=0.5, **EVERYONE)
        over = OverTheAir(inner, link, DEVICE_OF)
        grid = Nodes(drift)
        a_round(over, grid, record(model()))
        assert len(grid.asked) < link.selected_count
        assert len(over.rounds[0].senders) == len(grid.asked)

    def test_nobody_is_selected(self, setting: Any) -> None:
        link = replace(setting[2], budget=1e-9)
        assert link.selected_count == 0
        over = OverTheAir(FedAdam(**EVERYONE), link, DEVICE_OF)
        grid = Nodes(drift)
        arrays, metrics = a_round(over, grid, record(model()))
        assert arrays is None
        assert metrics is not None
        assert metrics["air-selected"] == 0
        assert np.isnan(metrics["air-measured-mse"])
        assert grid.asked == []
        result = over.start(grid, record(model()), num_rounds=2)
        assert len(over.rounds) == 3
        assert len(result.arrays) == 0  # Flower has no arrays if no round gave any

    def test_negative_variances(self, setting: Any) -> None:
        start = {
            "norm.running_var": np.full(64, 1e-9, np.float32),
            "norm.running_mean": np.zeros(64, np.float32),
        }

        def app(message: Message, context: Context) -> Message:
            rng = np.random.default_rng(context.node_config["partition-id"])
            values = {
                name: array.numpy() + rng.normal(size=64).astype(np.float32) * np.float32(0.1)
                for name, array in message.content["arrays"].items()
            }
            return reply_to(message, values, **{"num-examples": 1})

        arrays, _ = a_round(OverTheAir(FedAvg(**EVERYONE), setting[2], DEVICE_OF), Nodes(app), record(start))
        assert arrays is not None
        assert arrays["norm.running_var"].numpy().min() == 0.0
        assert arrays["norm.running_mean"].numpy().min() < 0.0

    def test_momentum_steps_from_variances_that_were_negative(self, setting: Any) -> None:
        """Against the formulas of Flower's FedAvgM, worked out by hand for three rounds."""
        start = {name: value.numpy().copy() for name, value in bridging.normalised().state_dict().items()}
        start["1.running_var"].fill(1e-3)
        sent = [name for name, value in start.items() if value.dtype.kind == "f"]

        def changed(name: str, value: Any, device: int, number: int) -> Any:
            step = np.random.default_rng(device).normal(size=value.shape) + (-5.0 if number == 1 else 15.0)
            return value + np.float32(0.1) * np.asarray(step, np.float32) if name in sent else value

        def app(message: Message, context: Context) -> Message:
            device, number = context.node_config["partition-id"], message.content["config"]["server-round"]
            arrays = message.content["arrays"].items()
            values = {name: changed(name, array.numpy(), device, number) for name, array in arrays}
            return reply_to(message, values, **{"num-examples": 1})

        inner = FedAvgM(server_learning_rate=0.5, server_momentum=0.9, **EVERYONE)
        over = OverTheAir(inner, setting[2], DEVICE_OF, seed=bridging.SEED)
        air, grid = AirRounds(setting[2], seed=bridging.SEED), Nodes(app)
        given: dict[str, Any] = start
        moment: dict[str, Any] = dict.fromkeys(sent, 0.0)
        for number in (1, 2, 3):
            arrays, _ = a_round(over, grid, record(given), number)
            assert arrays is not None
            changes = {
                k: [changed(name, given[name], k, number) - given[name] for name in sent]
                for k in air.selected(number)
            }
            mean, _ = air.aggregate(number, changes)
            for name, change in zip(sent, mean, strict=True):
                moment[name] = 0.9 * moment[name] + change
                expected = given[name] + 0.5 * moment[name]
                if name == "1.running_var":
                    assert (expected.max() < 0.0) if number == 1 else (expected.min() > 0.0)
                    expected = np.maximum(expected, 0.0)
                np.testing.assert_allclose(arrays[name].numpy(), expected, rtol=0, atol=5e-6)
            assert arrays["1.num_batches_tracked"].numpy().dtype == np.int64
            given = {name: array.numpy() for name, array in arrays.items()}

    def test_double_precision(self, setting: Any) -> None:
        start = {name: value.astype(np.float64) for name, value in model().items() if name != "count"}
        over = OverTheAir(FedAvg(**EVERYONE), setting[2], DEVICE_OF, seed=bridging.SEED)
        arrays, _ = a_round(over, Nodes(drift), record(start))
        assert arrays is not None
        mean, _ = updates(setting[2], 1)
        for name, change in zip(SHAPES, mean, strict=True):
            assert arrays[name].numpy().dtype == np.float64
            np.testing.assert_allclose(arrays[name].numpy(), start[name] + change, rtol=0, atol=1e-6)


def test_adam_takes_the_received_mean(setting: Any) -> None:
    """Against the formulas of Flower's FedAdam, from m = v = 0, worked out by hand for two rounds."""
    link = setting[2]
    inner = FedAdam(eta=0.1, beta_1=0.9, beta_2=0.99, tau=1e-3, **EVERYONE)
    over = OverTheAir(inner, link, DEVICE_OF, seed=bridging.SEED)
    given = model()
    moment = dict.fromkeys(SHAPES, 0.0)
    square = dict.fromkeys(SHAPES, 0.0)
    for number in (1, 2):
        arrays, _ = a_round(over, Nodes(drift), record(given), number)
        assert arrays is not None
        # In the second round the nodes start from another model, which rounds their updates otherwise.
        mean, _ = updates(link, number)
        rate = 0.1 * np.sqrt(1.0 - 0.99 ** (number + 1)) / (1.0 - 0.9 ** (number + 1))
        for name, change in zip(SHAPES, mean, strict=True):
            moment[name] = 0.9 * moment[name] + 0.1 * change.astype(np.float64)
            square[name] = 0.99 * square[name] + 0.01 * change.astype(np.float64) ** 2
            expected = given[name] + rate * moment[name] / (np.sqrt(square[name]) + 1e-3)
            np.testing.assert_allclose(arrays[name].numpy(), expected, rtol=0, atol=2e-6)
            assert arrays[name].numpy().dtype == np.float32
        assert arrays["count"].numpy() == 3
        given = {name: array.numpy() for name, array in arrays.items()}


def test_what_the_inner_strategy_does_besides(setting: Any) -> None:
    calls: list[str] = []

    class Inner(FedProx):  # type: ignore[misc]
        def configure_evaluate(self, *_: Any) -> Iterable[Message]:
            calls.append("configure")
            return []

        def aggregate_evaluate(self, *_: Any) -> MetricRecord:
            calls.append("aggregate")
            return MetricRecord({"accuracy": 0.5})

        def summary(self) -> None:
            calls.append("summary")

    seen: list[float] = []

    def app(message: Message, context: Context) -> Message:
        seen.append(message.content["config"]["proximal-mu"])
        return drift(message, context)

    over = OverTheAir(Inner(proximal_mu=0.25), setting[2], DEVICE_OF)
    result = over.start(Nodes(app), record(model()), num_rounds=2)
    assert calls == ["summary", *["configure", "aggregate"] * 2]
    assert set(seen) == {0.25}
    assert result.evaluate_metrics_clientapp[2]["accuracy"] == 0.5


class TestNodes:
    def test_sorted(self) -> None:
        find = SortedNodes()
        assert find(Nodes(drift, dict.fromkeys([30, 10, 20], 0)), 3) == {10: 0, 20: 1, 30: 2}
        assert find(Nodes(drift, dict.fromkeys([5, 10, 20], 0)), 3) == {10: 0, 20: 1, 30: 2}  # they stay
        with pytest.raises(InvalidInput, match="4 nodes are connected and the link has 3 devices"):
            SortedNodes()(Nodes(drift, dict.fromkeys(range(4), 0)), 3)

    @pytest.mark.parametrize("find", [SortedNodes(0.0), PartitionNodes(0.0)])
    def test_too_few(self, find: Any) -> None:
        with pytest.raises(
            InvalidInput, match="2 nodes are connected and the link has 3 devices; start more"
        ):
            find(Nodes(drift, {1: 0, 2: 1}), 3)

    def test_they_are_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(bridge, "POLL_S", 0.0)

        class Late(Nodes):
            looks = 0

            def get_node_ids(self) -> Iterable[int]:
                self.looks += 1
                return list(range(self.looks))

        assert SortedNodes(60.0)(Late(drift), 3) == {0: 0, 1: 1, 2: 2}

    def test_partitions_are_asked_once(self) -> None:
        grid, find = Nodes(partitions()), PartitionNodes()
        assert find(grid, bridging.DEVICES) == DEVICE_OF
        assert find(grid, bridging.DEVICES) == DEVICE_OF
        assert grid.asked == [("query.airpass_device", node) for node in sorted(NODES)]
        del grid.device_of[901]
        grid.device_of[902] = 0  # device 0 is back under another node id
        assert find(grid, bridging.DEVICES) == {902: 0} | {n: k for n, k in DEVICE_OF.items() if k}

    def test_a_client_that_does_not_answer(self) -> None:
        with pytest.raises(InvalidInput, match=r"call airpass\.flower\.answer_partition\(app\)"):
            PartitionNodes()(Nodes(ClientApp()), bridging.DEVICES)
        grid = Nodes(drift)
        grid.send_and_receive = lambda *_, **__: []  # type: ignore[method-assign]
        with pytest.raises(InvalidInput, match=r"node 17 and 9 more \(no answer in 5 s\)"):
            PartitionNodes(5.0)(grid, bridging.DEVICES)

    def test_a_node_that_starts_again(self, caplog: pytest.LogCaptureFixture) -> None:
        find, grid = PartitionNodes(), Nodes(partitions())
        others = {node: k for node, k in DEVICE_OF.items() if k}
        find(grid, bridging.DEVICES)
        for old, new in ((901, 9000), (9000, 9001), (9001, 4)):
            grid.device_of[new] = 0  # the old node is still listed
            grid.fails.add(old)
            grid.asked.clear()
            for _ in range(2):
                assert find(grid, bridging.DEVICES) == {new: 0} | others
            assert [node for _, node in grid.asked] == [new]
            assert f"device 0 is node {new} from now on" in caplog.text
        for gone in (901, 9000, 9001):
            del grid.device_of[gone]
        assert find(grid, bridging.DEVICES) == {4: 0} | others
        del grid.device_of[4]
        assert find(grid, bridging.DEVICES) == {4: 0} | others  # no other node is device 0
        grid.device_of[901] = 0  # an id that has been away
        grid.fails.clear()
        assert find(grid, bridging.DEVICES) == {901: 0} | others

    def test_training_goes_on_when_a_node_starts_again(self, setting: Any) -> None:
        over = OverTheAir(FedAvg(**EVERYONE), setting[2], PartitionNodes(), seed=bridging.SEED)
        grid = Nodes(partitions())
        grid.app.train()(drift)
        a_round(over, grid, record(model()))
        first = over.rounds[0].senders[0]
        grid.device_of[9000] = first
        grid.fails.add(NODES[first])
        grid.asked.clear()
        a_round(over, grid, record(model()), 2)
        assert over.rounds[1].senders == over.rounds[0].senders
        trained = [node for kind, node in grid.asked if kind == "train"]
        assert 9000 in trained
        assert NODES[first] not in trained

    def test_late_nodes_that_do_not_answer(self, caplog: pytest.LogCaptureFixture) -> None:
        find, grid = PartitionNodes(), Nodes(partitions())
        find(grid, bridging.DEVICES)
        grid.device_of |= {5000: 3, 5001: bridging.DEVICES}
        grid.fails.add(5000)
        assert find(grid, bridging.DEVICES) == DEVICE_OF
        assert "no partition id from node 5000 (no memory)" in caplog.text
        assert "node 5001 is device 10, and the link has 10 devices; left out" in caplog.text
        grid.fails.clear()
        assert find(grid, bridging.DEVICES) == {5000: 3} | {n: k for n, k in DEVICE_OF.items() if k != 3}

    def test_a_spare_node_that_does_not_answer(self, caplog: pytest.LogCaptureFixture) -> None:
        grid = Nodes(partitions(), DEVICE_OF | {5000: 3})
        grid.fails.add(5000)  # of an earlier run, and still listed
        assert PartitionNodes()(grid, bridging.DEVICES) == DEVICE_OF
        assert "no partition id from node 5000" in caplog.text
        grid.fails.add(NODES[3])
        with pytest.raises(InvalidInput, match=r"no partition id from node 44 and 1 more \(no memory\)"):
            PartitionNodes()(grid, bridging.DEVICES)

    def test_more_nodes_than_devices_from_the_start(self, caplog: pytest.LogCaptureFixture) -> None:
        grid = Nodes(partitions(), DEVICE_OF | {5000: bridging.DEVICES, 5001: bridging.DEVICES})
        assert PartitionNodes()(grid, bridging.DEVICES) == DEVICE_OF
        assert "node 5001 is device 10, and the link has 10 devices; left out" in caplog.text

    def test_two_nodes_that_are_one_device_from_the_start(self) -> None:
        find, grid = PartitionNodes(), Nodes(partitions(), DEVICE_OF | {5000: 3})
        for _ in range(2):
            with pytest.raises(InvalidInput, match=r"^devices: two nodes are device 3; every"):
                find(grid, bridging.DEVICES)

    @pytest.mark.parametrize(
        ("devices", "message"),
        [
            ({node: k for node, k in DEVICE_OF.items() if k}, "nodes for 9 of the 10 devices of the link"),
            (DEVICE_OF | {1: 3}, "two nodes are device 3"),
            (DEVICE_OF | {1: 10}, r"devices\[1\] = 10: the link has 10 devices, 0 to 9"),
            (DEVICE_OF | {1: "x"}, r"devices\[1\] = 'x': must be a whole number"),
            ({"a": 0}, "^devices: node id 'a' must be a whole number$"),
            ({1.5: 0}, "node id 1.5 must be a whole number"),
            (lambda grid, count: [1, 2], r"devices = \[1, 2\]: must be"),
        ],
    )
    def test_mappings_that_do_not_fit(self, setting: Any, devices: Any, message: str) -> None:
        over = OverTheAir(FedAvg(), setting[2], devices)
        with pytest.raises(InvalidInput, match=message):
            a_round(over, Nodes(drift), record(model()))


class TestRefused:
    @pytest.mark.parametrize(
        "inner",
        [
            strategy.FedMedian(),
            strategy.Krum(),
            strategy.MultiKrum(),
            strategy.Bulyan(),
            strategy.FedTrimmedAvg(),
            strategy.QFedAvg(client_learning_rate=0.1),
            strategy.FedXgbBagging(),
            strategy.FedXgbCyclic(),
            strategy.DifferentialPrivacyServerSideFixedClipping(FedAvg(), 1.0, 1.0, 5),
        ],
        ids=lambda inner: type(inner).__name__,
    )
    def test_strategies_that_need_every_update(self, setting: Any, inner: Strategy) -> None:
        with pytest.raises(InvalidInput, match="needs more than the mean of the updates"):
            OverTheAir(inner, setting[2], DEVICE_OF)

    def test_every_strategy_of_flower_is_known(self) -> None:
        known = {"FedAdagrad", "FedAdam", "FedAvg", "FedAvgM", "FedProx", "FedYogi", "Result", "Strategy"}
        assert set(strategy.__all__) == known | set(bridge.INDIVIDUAL)

    def test_other_strategies(self, setting: Any) -> None:
        class Own(FedAvg):  # type: ignore[misc]
            def start(self, *_: Any, **__: Any) -> Any:
                return None

        link = setting[2]
        given: Any
        for given, message in (
            ("fedavg", "must be a strategy of flwr"),
            (Own(), "Own has a start of its own"),
            (OverTheAir(FedAvg(), link, DEVICE_OF), "is over the air already"),
        ):
            with pytest.raises(InvalidInput, match=message):
                OverTheAir(given, link, DEVICE_OF)
        given = 5
        with pytest.raises(InvalidInput, match="devices = 5: must be"):
            OverTheAir(FedAvg(), link, given)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"scale": None}, "returns other arrays than it was sent"),
            ({"scale": np.zeros(2, np.float32)}, r"scale of node \d+ has shape \(2,\); must be \(\)"),
        ],
    )
    def test_replies_with_other_arrays(self, setting: Any, change: Any, message: str) -> None:
        def app(received: Message, context: Context) -> Message:
            values = {name: array.numpy() for name, array in received.content["arrays"].items()} | change
            return reply_to(received, {name: value for name, value in values.items() if value is not None})

        with pytest.raises(InvalidInput, match=message):
            a_round(OverTheAir(FedAvg(**EVERYONE), setting[2], DEVICE_OF), Nodes(app), record(model()))

    def test_metrics_that_differ(self, setting: Any) -> None:
        def named(message: Message, context: Context) -> Message:
            return reply_to(message, model(), **{f"loss {context.node_config['partition-id']}": 1.0})

        def longer(message: Message, context: Context) -> Message:
            length = 1 + context.node_config["partition-id"]
            return reply_to(message, model(), **{"num-examples": 1, "loss": [1.0] * length})

        for app, message in ((named, "must have the same names"), (longer, "metric loss does not have")):
            with pytest.raises(InvalidInput, match=message):
                a_round(OverTheAir(FedAvg(**EVERYONE), setting[2], DEVICE_OF), Nodes(app), record(model()))

    def test_other_rounds_and_nodes(self, setting: Any) -> None:
        over = OverTheAir(FedAvg(**EVERYONE), setting[2], DEVICE_OF)
        grid = Nodes(drift)
        messages = list(over.configure_train(1, record(model()), ConfigRecord(), grid))
        replies = list(grid.send_and_receive(messages))
        with pytest.raises(InvalidInput, match="server_round = 2: must be 1"):
            over.aggregate_train(2, replies)
        with pytest.raises(InvalidInput, match=r"device \d replies twice in round 1"):
            over.aggregate_train(1, [*replies, replies[0]])
        stranger = Message(RecordDict(), dst_node_id=3, message_type="train")
        reply = Message(replies[0].content, reply_to=stranger)
        with pytest.raises(InvalidInput, match="node 3 has no device"):
            over.aggregate_train(1, [*replies, reply])


def test_the_app_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "flower.md").read_text(), re.DOTALL
    )
    names = [block.splitlines()[0].removeprefix("# ") for block in blocks]
    assert names == ["client_app.py", "server_app.py"]
    for name, block in zip(names, blocks, strict=True):
        (tmp_path / name).write_text(block)
    monkeypatch.syspath_prepend(tmp_path)
    client, server = (importlib.import_module(name.removesuffix(".py")) for name in names)
    grid = Nodes(client.app, {1000 - k: k for k in range(12)})
    server.app(grid, Context(run_id=1, node_id=0, node_config={}, state=RecordDict(), run_config={}))
    assert capsys.readouterr().out.count("9 devices, SDR") == 3


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def test_the_example_runs(tmp_path: Path) -> None:
    """`flwr run` on a SuperLink of its own, which simulates twelve nodes."""
    port, control = free_ports(2)
    home, app = tmp_path / "flwr", tmp_path / "app"
    home.mkdir()
    (home / "config.toml").write_text(
        f'[superlink]\ndefault = "test"\n[superlink.test]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
    )
    shutil.copytree(ROOT / "examples" / "flower", app)
    tools = Path(sys.executable).parent
    env = os.environ | {
        "FLWR_HOME": str(home),
        "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1",
        "RAY_USAGE_STATS_ENABLED": "0",
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
    }
    command = [str(tools / "flower-superlink"), "--insecure", "--simulation", "--isolation", "subprocess"]
    command += ["--disable-runtime-dependency-installation", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--control-api-address", f"127.0.0.1:{control}"]
    with (tmp_path / "superlink.log").open("w") as log:
        superlink = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + 60.0
            while time.monotonic() < end and not listens(port):
                time.sleep(0.2)
            run = [str(tools / "flwr"), "run", str(app), "test", "--stream"]
            run += ["--federation-config", "num-supernodes=12"]
            done = subprocess.run(run, env=env, capture_output=True, text=True, timeout=300, check=False)
        finally:
            superlink.terminate()
            superlink.wait(30)
    assert done.returncode == 0, done.stderr
    assert "9 of 12 devices sent" in done.stdout, done.stdout
    reached = float(done.stdout.partition("accuracy ")[2].partition(" after 20 rounds")[0].split()[-1])
    assert reached > 0.8
