"""Data, splits, models, losses and optimisers of users."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import IterableDataset, TensorDataset

import airpass
from airpass import (
    ArrayData,
    InvalidInput,
    Scenario,
    ServerOptions,
    TorchData,
    TrainOptions,
    design,
    prepare,
    train,
)
from airpass.core.randomness import Purpose, stream
from airpass.figures.training import draw_training
from airpass.learning import models
from airpass.learning.client import EvaluationSet, FlatModel, LocalWork, Trainer, draw_batches, inputs
from airpass.learning.compare import compare
from airpass.learning.data import data_source, load
from airpass.learning.data.base import CLASSIFICATION, REGRESSION, Dataset
from airpass.learning.data.partition import FederatedData, PartitionOptions
from airpass.learning.optimisers import LocalOptimiser, Server
from airpass.learning.options import training_options
from airpass.learning.pool import check_picklable
from command_line import assert_refused

DEVICES = 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((700, 5))
SLOPES = RNG.standard_normal((5, 3))
CLASSES = (X @ SLOPES).argmax(1)
VALUES = X @ SLOPES[:, :2] + 0.5
QUICK = TrainOptions(rounds=4, evaluate_every=2, learning_rate=0.1)


def tables(y: np.ndarray = CLASSES, x: np.ndarray = X) -> dict[str, Any]:
    return {"x_train": x[:600], "y_train": y[:600], "x_test": x[600:], "y_test": y[600:]}


def own(y: np.ndarray = CLASSES, x: np.ndarray = X, **more: Any) -> ArrayData:
    return ArrayData(**tables(y, x), name="mine", **more)


class Net(nn.Module):
    """A network with batch normalisation."""

    def __init__(self, inputs: int = 5, outputs: int = 3) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, 16)
        self.normalise = nn.BatchNorm1d(16)
        self.last = nn.Linear(16, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(torch.relu(self.normalise(self.first(x))))
        return result


def make_net() -> Net:
    return Net()


def absolute(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    assert outputs.shape == targets.shape
    return (outputs - targets).abs().mean()


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(2, 8, batch_first=True)
        self.last = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.last(self.cell(x)[1][0])
        return result


@pytest.fixture(scope="module")
def prepared() -> tuple[Any, FederatedData]:
    scenario, data = prepare(Scenario.paper(DEVICES, 4, 4, 10.0, 2), own(), seed=1)
    link = design(scenario)
    assert link.selected_count >= 4
    return link, data


def outcome(run: Any) -> list[dict[str, str]]:
    rows = [asdict(record) | {"seconds": 0} for record in run.history]
    return [{key: str(value) for key, value in row.items()} for row in rows]


class TestData:
    @pytest.mark.parametrize("kind", [np.uint8, np.int16, np.int64, np.uint64, bool])
    def test_labels_of_any_kind_of_whole_numbers(self, kind: Any) -> None:
        data = own((CLASSES % 2).astype(kind)).dataset
        assert (data.task, data.classes, data.outputs, str(data.y_train.dtype)) == (
            CLASSIFICATION,
            2,
            2,
            "uint8",
        )
        many = own(np.arange(700) + 1000).dataset
        assert (many.classes, many.y_train[0]) == (1700, 1000)

    def test_float_samples_are_used_as_given(self) -> None:
        data = own().dataset
        given = inputs(data.x_train, data, torch.device("cpu"))[:]
        np.testing.assert_array_equal(given, X[:600].astype(np.float32))
        assert data.sample_shape == (5,)
        sequences = own(x=RNG.standard_normal((700, 7, 2))).dataset
        assert (sequences.images, sequences.sample_shape) == (False, (7, 2))

    @pytest.mark.parametrize("kind", [np.uint8, np.int32, bool])
    def test_whole_numbers_that_are_not_images_become_floats(self, kind: Any) -> None:
        whole = RNG.integers(0, 2, (700, 4)).astype(kind)
        data = own(x=whole).dataset
        assert data.x_train.dtype == np.float32
        np.testing.assert_array_equal(data.x_train, whole[:600])

    def test_images_as_bytes_are_standardised(self) -> None:
        pixels = RNG.integers(0, 256, (700, 8, 6, 3)).astype(np.uint8)
        data = own(x=pixels).dataset
        assert (data.images, data.sample_shape) == (True, (3, 8, 6))
        shown = inputs(data.x_train, data, torch.device("cpu"))[:]
        assert shown.shape == (600, 3, 8, 6)
        np.testing.assert_allclose(shown.mean(dim=(0, 2, 3)), 0.0, atol=1e-5)
        np.testing.assert_allclose(shown.std(dim=(0, 2, 3), correction=0), 1.0, atol=1e-5)

    def test_targets_of_a_regression(self) -> None:
        one, two = own(VALUES[:, 0]).dataset, own(VALUES).dataset
        assert (one.task, one.outputs, two.outputs) == (REGRESSION, 1, 2)
        assert one.y_train.dtype == np.float32

    def test_a_loss_can_ask_for_the_other_kind_of_targets(self) -> None:
        counted = own().dataset.for_task(REGRESSION)
        assert (counted.task, str(counted.y_train.dtype)) == (REGRESSION, "float32")
        back = own(CLASSES.astype(float)).dataset.for_task(CLASSIFICATION)
        np.testing.assert_array_equal(back.y_train, CLASSES[:600])
        with pytest.raises(InvalidInput, match="whole numbers for cross-entropy"):
            own(VALUES[:, 0]).dataset.for_task(CLASSIFICATION)

    def test_data_sets_of_torch_are_read_once(self) -> None:
        class Counted(TensorDataset):
            reads = 0

            def __getitem__(self, index: int) -> Any:
                Counted.reads += 1
                return X[index], int(CLASSES[index])

        class Streamed(IterableDataset[Any]):
            def __iter__(self) -> Any:
                return iter([(X[i], int(CLASSES[i])) for i in range(600, 700)])

        pair = Counted(torch.from_numpy(X[:600]), torch.from_numpy(CLASSES[:600])), Streamed()
        source, said = TorchData(*pair, name="torch"), list[str]()
        data = source.load(None, said.append)
        assert Counted.reads == 600
        assert source.load(None, said.append) is data
        assert said[0].startswith("reading torch train")
        for part, expected in tables().items():
            np.testing.assert_array_equal(getattr(data, part), getattr(own().dataset, part), expected)
        assert isinstance(data_source(pair), TorchData)
        with pytest.raises(InvalidInput, match=r"sample 0 must be a pair"):
            TorchData(X, X).load(None, said.append)
        with pytest.raises(InvalidInput, match="must have one shape"):
            TorchData([(np.zeros(2), 0), (np.zeros(3), 0)], pair[1]).load(None, said.append)
        with pytest.raises(InvalidInput, match=r"must be a torch\.utils\.data\.Dataset"):
            TorchData(3, pair[1]).load(None, said.append)

    def test_tuples(self) -> None:
        assert isinstance(data_source(tuple(tables().values())), ArrayData)
        with pytest.raises(InvalidInput, match="has 3 parts"):
            data_source((1, 2, 3))

    def test_read_only_arrays(self) -> None:
        fixed = X.astype(np.float32)
        fixed.flags.writeable = False
        assert own(x=fixed).dataset.x_train.flags.writeable

    def test_a_missing_file(self, run: Any, tmp_path: Path) -> None:
        arguments = ["train", "--dataset", tmp_path / "no.npz", "--out", tmp_path]
        assert_refused(run(*arguments), "no.npz: no such file")
        assert_refused(run(*arguments, "--model", "mnist-cnn"), "no.npz: no such file")

    def test_images_need_the_name_of_a_model(self) -> None:
        pixels = RNG.integers(0, 256, (700, 8, 8)).astype(np.uint8)
        with pytest.raises(InvalidInput, match="model is missing: for mine give one of mnist-cnn"):
            train(None, own(x=pixels), scenario=Scenario.paper(DEVICES), options=QUICK, workers=1)


class TestSplit:
    scenario = Scenario.paper(3, seed=1)

    def test_lists_of_samples(self) -> None:
        split: list[Any] = [[5, 1], np.arange(10, 20), range(30, 33)]
        scenario, data = prepare(self.scenario, own(), split=split)
        assert [share.tolist() for share in data.samples] == [[1, 5], list(range(10, 20)), [30, 31, 32]]
        assert scenario.devices.samples.tolist() == [2, 10, 3]
        run = train(None, own(), scenario=scenario, split=split, options=QUICK, workers=1)
        again = train(None, data, scenario=scenario, options=QUICK, workers=1)
        assert outcome(run) == outcome(again)
        both = compare(self.scenario, ["fedavg"], own(), QUICK, split=split, workers=1)
        assert outcome(both[0]) == outcome(run)
        for call in (train, compare):
            first: Any = None if call is train else self.scenario
            more: dict[str, Any] = {"scenario": scenario} if call is train else {"schemes": ["fedavg"]}
            with pytest.raises(InvalidInput, match="give it to prepare"):
                call(first, dataset=data, split=split, **more)

    @pytest.mark.parametrize(
        ("split", "words"),
        [
            ([[0], [1]], "has 2 lists of samples; there are 3 devices"),
            ([[0], [1], []], r"split\[2\]: must be a list of sample numbers, at least one"),
            ([[0], [1], [0.5]], r"split\[2\]: must be a list of sample numbers"),
            ([[0], [1], [600]], r"split\[2\]: has samples from 600 to 600: must be from 0 to 599"),
            ([[0], [1, 7, 7], [2]], r"split\[1\]: has sample 7 twice"),
            ([[0, 4], [1], [2, 4]], r"split\[2\]: has sample 4, which split\[0\] has too"),
        ],
    )
    def test_bad_lists(self, split: Any, words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            prepare(self.scenario, own(), split=split)

    def test_a_column_of_device_numbers(self, tmp_path: Path) -> None:
        column = np.arange(600) % 3
        path = tmp_path / "own.npz"
        np.savez(path, **tables(), device_train=column)
        for options in (TrainOptions(), TrainOptions(partition=PartitionOptions("column"))):
            _, data = prepare(self.scenario, str(path), options)
            for k in range(3):
                np.testing.assert_array_equal(data.samples[k], np.flatnonzero(column == k))
        _, even = prepare(
            self.scenario, own(device_train=column), TrainOptions(partition=PartitionOptions("iid"))
        )
        assert even.counts == [200, 200, 200]
        with pytest.raises(InvalidInput, match=r"3 device numbers, .* must hold every number from 0 to 3"):
            prepare(Scenario.paper(4), str(path))
        with pytest.raises(InvalidInput, match="2 device numbers, from 0 to 2"):
            prepare(self.scenario, own(device_train=np.arange(600) % 2 * 2))
        with pytest.raises(InvalidInput, match="mine has no device_train"):
            prepare(self.scenario, own(), TrainOptions(partition=PartitionOptions("column")))

    def test_defaults_suit_the_targets(self) -> None:
        _, few = prepare(self.scenario, own(CLASSES % 2))
        assert all(set(CLASSES[share] % 2) == {0, 1} for share in few.samples)
        _, floats = prepare(self.scenario, own(VALUES))
        assert floats.counts == [200, 200, 200]
        with pytest.raises(InvalidInput, match="needs classes"):
            prepare(self.scenario, own(VALUES), TrainOptions(partition=PartitionOptions("dirichlet")))


class TestModels:
    def test_a_class_a_function_and_a_name_are_the_same(self, prepared: Any) -> None:
        link, data = prepared
        found = [
            train(link, data, seed=1, options=replace(QUICK, model=model), workers=workers)
            for model, workers in ((Net, 1), (make_net, 1), ("test_own_data:Net", 1), (Net, 2))
        ]
        assert all(outcome(run) == outcome(found[0]) for run in found)
        assert found[0].config["model"] == "test_own_data:Net"

    def test_an_object_brings_its_weights_and_is_not_changed(self, prepared: Any) -> None:
        link, data = prepared
        net = Net()
        before = FlatModel(net).read().copy()
        one, two = (
            train(link, data, seed=1, options=replace(QUICK, model=net), workers=workers)
            for workers in (1, 2)
        )
        np.testing.assert_array_equal(FlatModel(net).read(), before)
        assert outcome(one) == outcome(two)
        with torch.no_grad():
            answers = net.eval()(torch.from_numpy(X[600:].astype(np.float32))).argmax(1).numpy()
        assert one.history[0].test_accuracy == np.mean(answers == CLASSES[600:])

    def test_the_trained_network_is_returned(self, prepared: Any) -> None:
        link, data = prepared
        run = train(link, data, seed=1, options=replace(QUICK, model=Net), workers=1)
        assert run.model is not None
        np.testing.assert_array_equal(FlatModel(run.model).read(), run.state)
        with torch.no_grad():
            answers = run.model(torch.from_numpy(X[600:].astype(np.float32))).argmax(1).numpy()
        assert run.history[-1].test_accuracy == np.mean(answers == CLASSES[600:])

    def test_frozen_and_unused_parameters(self, prepared: Any) -> None:
        link, data = prepared
        net = Net()
        net.first.requires_grad_(False)
        net.spare = nn.Linear(2, 2)  # not used
        run = train(link, data, seed=1, options=replace(QUICK, model=net), workers=1)
        assert run.parameters == FlatModel(net).read().size == 2 * 16 + 2 * 16 + 3 * 17 + 6
        assert isinstance(run.model, Net)
        assert torch.equal(run.model.first.weight, net.first.weight)

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            (lambda: Net(4), r"fails on an input of shape \(2, 5\) .*4x16.*samples of shape \(5,\)"),
            (lambda: Net(5, 2), r"gives \(2, 2\) .*cross-entropy needs \(2, 3\).* 3 outputs"),
            (lambda: Net().double(), r"float64; convert it with \.float\(\)"),
            (lambda: nn.GRU(5, 3), "returns a tuple; must return a tensor"),
            (nn.Flatten, "no weights to train"),
            (lambda: 3, "returns a int"),
            (lambda size: Net(size, size), "must be callable without arguments"),
            (3, "must be a torch.nn.Module, or make one when called"),
            ("mnist-cnn", r"for images .*shape \(5,\)"),
        ],
    )
    def test_a_model_that_does_not_fit_is_refused_in_one_line(
        self, prepared: Any, model: Any, words: str
    ) -> None:
        link, data = prepared
        with pytest.raises(InvalidInput, match=words) as caught:
            train(link, data, options=replace(QUICK, model=model), workers=2)
        assert "\n" not in str(caught.value)

    def test_a_model_is_checked_before_a_comparison_designs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("airpass.learning.compare.design", None)
        with pytest.raises(InvalidInput, match="3 outputs"):
            compare(Scenario.paper(DEVICES), ["airpass"], own(), replace(QUICK, model=lambda: Net(5, 2)))

    def test_what_cannot_be_pickled_is_refused(self) -> None:
        net = Net()
        net.__dict__["numbers"] = (i for i in range(3))
        with pytest.raises(InvalidInput, match=r"model = test_own_data:Net: cannot be sent .*workers=1"):
            check_picklable("model", net)

    def test_small_networks_for_any_shape(self) -> None:
        for shape in ((5,), (7, 2), (1, 4, 4)):
            samples = torch.zeros(3, *shape)
            assert models.build("mlp", shape, 4, 0)(samples).shape == (3, 4)
            assert models.build("linear", shape, 4, 0)(samples).shape == (3, 4)

    def test_volumes(self) -> None:
        net = models.build(lambda: nn.Sequential(nn.Conv3d(1, 2, 3), nn.Flatten()), (1, 3, 3, 3), 2, 0)
        assert net(torch.zeros(2, 1, 3, 3, 3)).shape == (2, 2)


class TestLearning:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"momentum": 0.9, "learning_rate": 0.05},
            {"optimiser": "adam", "learning_rate": 0.01},
            {"server": ServerOptions("momentum"), "learning_rate": 0.05},
            {"server": ServerOptions("adam", learning_rate=0.03)},
            {"model": "linear"},
            {"model": Net},
        ],
    )
    def test_classification(self, prepared: Any, options: dict[str, Any]) -> None:
        link, data = prepared
        chosen = replace(TrainOptions(rounds=25, evaluate_every=25, learning_rate=0.2), **options)
        run = train(link, data, seed=1, options=chosen, workers=1)
        assert run.history[-1].selected_count >= 4
        assert run.history[-1].test_accuracy > 0.85

    @pytest.mark.parametrize("y", [VALUES, VALUES[:, :1], VALUES[:, 0]])
    def test_regression(self, prepared: Any, y: np.ndarray) -> None:
        link, _ = prepared
        options = TrainOptions(rounds=40, evaluate_every=40, learning_rate=0.05)
        run = train(link, own(y), seed=1, options=options, workers=1)
        first, last = run.history[0], run.history[-1]
        assert math.isnan(last.test_accuracy)
        assert last.test_loss < 0.1 * np.var(y) < first.test_loss
        assert run.config["loss"] == "mse"
        assert run.config["partition"]["kind"] == "iid"
        assert repr(run) == f"TrainingRun(airpass-plus on mine: 40 rounds, test loss {last.test_loss:.4g})"
        assert run.model is not None
        with torch.no_grad():
            answers = run.model(torch.from_numpy(X[600:].astype(np.float32))).reshape(y[600:].shape).numpy()
        assert last.test_loss == pytest.approx(np.mean((answers - y[600:]) ** 2), rel=1e-5)

    @pytest.mark.parametrize("loss", [absolute, nn.L1Loss, nn.L1Loss(), "test_own_data:absolute"])
    def test_losses_of_users(self, prepared: Any, loss: Any) -> None:
        link, _ = prepared
        run = train(link, own(VALUES[:, 0]), seed=1, options=replace(QUICK, loss=loss), workers=1)
        assert run.model is not None
        with torch.no_grad():
            answers = run.model(torch.from_numpy(X[600:].astype(np.float32)))[:, 0].numpy()
        assert run.history[-1].test_loss == pytest.approx(
            np.mean(np.abs(answers - VALUES[600:, 0])), rel=1e-5
        )

    def test_a_loss_decides_the_task(self, prepared: Any) -> None:
        link, data = prepared
        counted = train(link, data, seed=1, options=replace(QUICK, loss="mse", model="linear"), workers=1)
        assert math.isnan(counted.history[-1].test_accuracy)
        assert counted.model is not None
        assert counted.model(torch.zeros(1, 5)).shape == (1, 1)
        floats = train(
            link, own(CLASSES.astype(float)), options=replace(QUICK, loss="cross-entropy"), workers=1
        )
        assert 0.0 < floats.history[-1].test_accuracy < 1.0

    def test_sequences(self, prepared: Any) -> None:
        link, _ = prepared
        x = RNG.standard_normal((700, 6, 2))
        y = (x[:, -1, 0] > 0).astype(int)
        options = TrainOptions(
            rounds=30, evaluate_every=30, model=Recurrent, optimiser="adam", learning_rate=0.03
        )
        assert train(link, own(y, x), seed=1, options=options, workers=1).history[-1].test_accuracy > 0.85

    @pytest.mark.parametrize(
        ("loss", "words"),
        [
            (lambda outputs, targets: (outputs - 1).abs(), "not one number"),
            (lambda outputs, targets: torch.zeros(()), "cannot be differentiated"),
            (lambda outputs, targets: 1 / 0, "ZeroDivisionError"),
            ("huber", "must be one of cross-entropy, mse"),
            (3, "must be one of cross-entropy, mse, or a function"),
        ],
    )
    def test_bad_losses(self, prepared: Any, loss: Any, words: str) -> None:
        link, data = prepared
        with pytest.raises(InvalidInput, match=words):
            train(link, data, options=replace(QUICK, loss=loss), workers=1)

    @pytest.mark.parametrize(
        "change",
        [
            {"optimiser": "lbfgs"},
            {"momentum": 1.0},
            {"momentum": 0.5, "optimiser": "adam"},
        ],
    )
    def test_bad_options(self, change: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match=next(iter(change))):
            replace(QUICK, **change)

    @pytest.mark.parametrize(
        "change", [{"kind": "sgd"}, {"learning_rate": 0.0}, {"beta1": 1.0}, {"beta2": -0.1}, {"tau": 0.0}]
    )
    def test_bad_server_options(self, change: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match="server"):
            ServerOptions(**change)

    @pytest.mark.parametrize(
        ("kind", "name", "used_by"),
        [
            ("average", "beta1", "momentum and adam"),
            ("average", "beta2", "adam"),
            ("average", "tau", "adam"),
            ("momentum", "beta2", "adam"),
            ("momentum", "tau", "adam"),
        ],
    )
    def test_options_of_another_server_step(self, kind: str, name: str, used_by: str) -> None:
        with pytest.raises(InvalidInput) as caught:
            ServerOptions(kind, **{name: 0.5})
        assert str(caught.value) == f"server.{name} = 0.5: is used by {used_by}, but server is {kind}"
        assert ServerOptions("adam", **{name: 0.5}).filled().learning_rate == 0.01

    def test_options_of_a_study(self) -> None:
        _, options, _ = training_options({"server": {"kind": "adam"}, "optimiser": "adam", "loss": "mse"})
        assert options.server == ServerOptions("adam", 0.01, beta1=0.9, beta2=0.99, tau=1e-3)
        assert options.learning_rate == 0.001

    def test_a_figure_without_accuracy_shows_losses(self) -> None:
        records = [SimpleNamespace(round=i, selected_count=2, test_accuracy=math.nan, test_loss=2.0 - i,
                                   train_loss=1.0) for i in range(2)]  # fmt: skip
        run: Any = SimpleNamespace(scheme="fedavg", history=records, dataset="d", devices=2, scenario=None,
                                   diverged=False)  # fmt: skip
        left, right = draw_training([run]).axes
        assert (left.get_ylabel(), right.get_ylabel()) == ("test loss", "training loss")
        assert np.ravel(left.lines[0].get_ydata()).tolist() == [2.0, 1.0]


def by_hand(
    kind: str, gradients: list[np.ndarray], start: np.ndarray, rate: float, momentum: float
) -> np.ndarray:
    """Steps of an optimiser, in double precision."""
    x, m, v = start.astype(float), np.zeros(start.size), np.zeros(start.size)
    for t, g in enumerate(gradients, 1):
        if kind == "sgd":
            m = momentum * m + g
            x = x - rate * m
        else:
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            x = x - rate * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return x


class TestLocalOptimisers:
    @pytest.mark.parametrize(("kind", "momentum"), [("sgd", 0.0), ("sgd", 0.9), ("adam", 0.0)])
    def test_steps_are_those_by_hand_and_those_of_torch(self, kind: str, momentum: float) -> None:
        rng = np.random.default_rng(3)
        start, gradients = rng.standard_normal(8), [rng.standard_normal(8) for _ in range(5)]
        weights, others = (torch.tensor(start, dtype=torch.float32) for _ in range(2))
        optimiser = LocalOptimiser(kind, [weights], 0.05, momentum)
        make: Any = torch.optim.Adam if kind == "adam" else torch.optim.SGD
        theirs = make([others], lr=0.05, **({} if kind == "adam" else {"momentum": momentum}))
        for gradient in gradients:
            others.grad = torch.tensor(gradient, dtype=torch.float32)
            optimiser.step([others.grad.clone()])
            theirs.step()
        np.testing.assert_allclose(
            weights, by_hand(kind, gradients, start, 0.05, momentum), rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(weights, others, rtol=1e-6, atol=1e-7)

    @pytest.mark.parametrize(("kind", "momentum"), [("sgd", 0.8), ("adam", 0.0)])
    def test_a_device_starts_anew_in_every_round(self, kind: str, momentum: float) -> None:
        data, samples = own().dataset, np.arange(90)
        work = LocalWork(3, None, 16, 0.02, kind, momentum)
        net = models.build("linear", (5,), 3, 1)
        trainer = Trainer(data, (samples,), net, work, EvaluationSet(samples, samples), seed=4)
        start = trainer.flat.read().copy()
        first, _ = trainer.update(start, 1, 0)
        trainer.update(start, 2, 0)
        again, _ = trainer.update(start, 1, 0)
        np.testing.assert_array_equal(first, again)

        # The gradients of softmax regression, by hand, in double precision.
        weights, gradients = start.astype(float), list[np.ndarray]()
        for batch in draw_batches(samples, work, stream(4, Purpose.BATCHES, 1, 0)):
            x, truth = data.x_train[batch].astype(float), np.eye(3)[data.y_train[batch]]
            logits = x @ weights[:15].reshape(3, 5).T + weights[15:]
            share = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
            slope = (share - truth) / len(batch)
            gradients.append(np.concatenate([(slope.T @ x).ravel(), slope.sum(axis=0)]))
            weights = by_hand(kind, gradients, start, 0.02, momentum)
        np.testing.assert_allclose(first, weights - start, rtol=1e-4, atol=1e-6)


def fed_adam(
    start: np.ndarray, changes: np.ndarray, rate: float, beta1: float, beta2: float, tau: float
) -> Any:
    """Algorithm 2 of Reddi et al. (2021), FedAdam, with the moments as weighted sums of the updates."""
    x = start.astype(float)
    for t in range(len(changes)):
        age = np.arange(t, -1, -1)[:, None]
        m = (1 - beta1) * np.sum(beta1**age * changes[: t + 1], axis=0)
        v = beta2 ** (t + 1) * tau**2 + (1 - beta2) * np.sum(beta2**age * changes[: t + 1] ** 2, axis=0)
        x = x + rate * m / (np.sqrt(v) + tau)
    return x


class TestServer:
    rng = np.random.default_rng(5)
    start = rng.standard_normal(12).astype(np.float32)
    changes = (0.1 * rng.standard_normal((6, 12))).astype(np.float32)
    weights = np.arange(12) < 9

    def run(self, options: ServerOptions) -> np.ndarray:
        server, state = Server.start(options, self.weights), self.start
        for change in self.changes:
            state, server = server.step(state, change)
        return state

    def test_the_average_is_added(self) -> None:
        expected = self.start
        for change in self.changes:
            expected = expected + change
        np.testing.assert_array_equal(self.run(ServerOptions()), expected)
        half = self.run(ServerOptions(learning_rate=0.5))
        np.testing.assert_allclose(half[:9], self.start[:9] + 0.5 * self.changes.sum(axis=0)[:9], atol=1e-6)

    def test_momentum(self) -> None:
        found = self.run(ServerOptions("momentum", learning_rate=0.7, beta1=0.8))
        m, x = np.zeros(9), self.start[:9].astype(float)
        for change in self.changes[:, :9]:
            m = 0.8 * m + change
            x = x + 0.7 * m
        np.testing.assert_allclose(found[:9], x, atol=1e-6)

    @pytest.mark.parametrize("tau", [1e-3, 0.3])
    def test_adam_is_that_of_the_paper(self, tau: float) -> None:
        found = self.run(ServerOptions("adam", learning_rate=0.05, beta1=0.8, beta2=0.95, tau=tau))
        expected = fed_adam(self.start[:9], self.changes[:, :9].astype(float), 0.05, 0.8, 0.95, tau)
        np.testing.assert_allclose(found[:9], expected, atol=1e-6)

    @pytest.mark.parametrize("kind", ["average", "momentum", "adam"])
    def test_running_statistics_are_averaged(self, kind: str, prepared: Any) -> None:
        found = self.run(ServerOptions(kind, learning_rate=0.3))
        np.testing.assert_allclose(found[9:], (self.start + self.changes.sum(axis=0))[9:], atol=1e-6)
        flat = FlatModel(Net())
        names = [name for name, value in flat.model.state_dict().items() if value.is_floating_point()]
        moving = np.repeat(["running" in name for name in names], flat.sizes)
        np.testing.assert_array_equal(flat.weights, ~moving)

        # One round without a link from the same state: statistics as with plain averaging, weights not.
        link, data = prepared
        plain, other = (
            train(
                None,
                data,
                1,
                1,
                scenario=link.scenario,
                options=replace(QUICK, model=Net, server=ServerOptions(server, learning_rate=0.3)),
                workers=1,
            ).state
            for server in ("average", kind)
        )
        np.testing.assert_array_equal(plain[moving], other[moving])
        if kind == "adam":
            assert (plain[~moving] != other[~moving]).any()
        one = train(None, data, 1, 1, scenario=link.scenario, options=replace(QUICK, model=Net), workers=1)
        np.testing.assert_array_equal(one.state[moving], other[moving])

    @pytest.mark.parametrize("kind", ["momentum", "adam"])
    def test_a_resumed_run_is_the_same(self, kind: str, prepared: Any, tmp_path: Path) -> None:
        link, data = prepared
        options = replace(QUICK, rounds=6, model=Net, server=ServerOptions(kind), momentum=0.5)
        path = tmp_path / "c.npz"
        whole = train(link, data, seed=1, options=options, workers=1)
        train(link, data, seed=1, options=replace(options, rounds=4), workers=1, checkpoint=path)
        rest = train(link, data, seed=1, options=options, workers=1, checkpoint=path, resume=True)
        assert outcome(rest) == outcome(whole)
        np.testing.assert_array_equal(rest.state, whole.state)
        other = replace(options, server=ServerOptions(kind, beta1=0.5))
        with pytest.raises(InvalidInput, match="another server"):
            train(link, data, seed=1, options=other, workers=1, checkpoint=path, resume=True)

    def test_a_resumed_run_must_start_from_the_same_object(self, prepared: Any, tmp_path: Path) -> None:
        link, data = prepared
        path = tmp_path / "c.npz"
        one, two = Net(), Net()
        train(link, data, options=replace(QUICK, model=one), workers=1, checkpoint=path)
        train(link, data, options=replace(QUICK, model=one), workers=1, checkpoint=path, resume=True)
        with pytest.raises(InvalidInput, match="another model_sha256"):
            train(link, data, options=replace(QUICK, model=two), workers=1, checkpoint=path, resume=True)


SCRIPT = """
import numpy as np
from torch import nn
import airpass

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))

def loss(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, label_smoothing=0.1)

x = np.random.default_rng(0).standard_normal((90, 5))
y = np.arange(90) % 3
scenario, data = airpass.prepare(airpass.Scenario.paper(3), (x, y, x, y))
for model in (Net(), lambda: Net()):
    options = airpass.TrainOptions(rounds=1, model=model, loss=loss)
    run = airpass.train(None, data, scenario=scenario, options=options, workers=2)
    assert run.finished
print("done")
"""

NETWORK = """
from torch import nn
from neighbour import WIDTH

class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(5, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 3))
"""


def test_models_and_losses_of_a_script_reach_the_workers(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    found = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False, timeout=300)
    assert (found.stdout, found.returncode) == ("done\n", 0), found.stderr


class TestCommand:
    arguments = ("train", "--devices", 3, "--scheme", "fedavg", "--rounds", 2, "--workers", 1)

    @pytest.mark.parametrize("model", ["network.py:Net", "package.network:Net"])
    def test_models_are_found_in_the_current_folder(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        folder = tmp_path / "package" if model.startswith("package") else tmp_path
        folder.mkdir(exist_ok=True)
        (folder / "network.py").write_text(NETWORK)
        (tmp_path / "neighbour.py").write_text("WIDTH = 7")
        np.savez("own.npz", **tables())
        before = list(sys.path)
        done = run(*self.arguments, "--dataset", "own.npz", "--model", model, "--out", "out", "--workers", 2)
        assert done.code == 0, done.err
        assert sys.path == before
        found = json.loads((tmp_path / "out" / "history.json").read_text())["runs"][0]
        assert (found["parameters"], found["config"]["model"]) == (7 * 6 + 3 * 8, model)

    def test_regression(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        np.savez("own.npz", **tables(VALUES))
        done = run(*self.arguments, "--dataset", "own.npz", "--optimiser", "adam", "--server", "adam")
        assert done.code == 0, done.err
        assert "nan" not in done.out.split("MSE")[0]
        (found,) = json.loads((tmp_path / "runs" / "train-own" / "history.json").read_text())["runs"]
        assert found["history"][-1]["test_accuracy"] is None
        assert found["config"]["server"]["kind"] == "adam"

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            (["--model", "network.py:Wrong"], ["network.py:Wrong", "(2, 5)", "4x3", "(5,)"]),
            (["--partition", "column"], ["own.npz has no device_train"]),
            (["--loss", "huber"], ["loss", "cross-entropy"]),
            (["--momentum", "2"], ["momentum", "< 1"]),
            (["--server-beta2", "2"], ["--server-beta2", "< 1"]),
            (["--server-beta1", "0.5"], ["--server-beta1", "momentum and adam", "server is average"]),
            (["--model", "network.py:None"], ["network.py:None", "cannot be imported"]),
        ],
    )
    def test_one_line(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], words: list[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        np.savez("own.npz", **tables())
        Path("network.py").write_text("from torch import nn\nWrong = nn.Linear(4, 3)\n")
        assert_refused(run(*self.arguments, "--dataset", "own.npz", *flags), *words)

    def test_messages_about_loading(self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def load_slowly(self: Any, directory: Any, report: Callable[[str], None]) -> Dataset:
            for i in range(3):
                report(f"downloading it: {i} of 2 MB")
            return load("mnist-mini")

        monkeypatch.setattr("airpass.learning.data.npz.NpzFile.load", load_slowly)
        done = run(*self.arguments, "--dataset", "own.npz", "--model", "linear", "--out", tmp_path)
        assert done.code == 0
        assert done.err.startswith("airpass: downloading it: 0 of 2 MB\n")
        assert done.err.count("downloading") == 1  # a line per kind of message


def test_the_example_of_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).parents[1] / "docs" / "howto" / "learning.md").read_text()
    (code,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "ArrayData" in block)
    path = tmp_path / "example.py"
    path.write_text(code + "\nassert run.history[-1].test_accuracy > 0.85\n")
    subprocess.run([sys.executable, path], check=True, capture_output=True, timeout=300)


def test_public_names() -> None:
    for name in ("ArrayData", "TorchData", "PartitionOptions", "ServerOptions", "TrainOptions"):
        assert name in airpass.__all__
        assert getattr(airpass, name).__doc__
