"""Priorities that are given in files or follow from the data."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import ArrayData, InvalidInput, Queues, Scenario, TrainOptions, certify, design, select
from airpass.designs.plus import AirpassPlus
from airpass.learning.compare import compare, compare_channels
from airpass.learning.priorities import data_priorities
from airpass.learning.training import prepare
from airpass.scenario.devices import sample_priorities
from command_line import assert_refused

FAST = AirpassPlus(effort="fast", threads=1)
LABELS = np.array([0, 0, 1, 1, 1, 2, 2, 0, 1, 2], np.uint8)
SPLIT = [[0, 1, 2], [3], [4, 5, 6, 7, 8, 9]]  # classes 0 and 1; 1; all
OPTIONS = TrainOptions(rounds=2, evaluate_every=1)


def data_of(labels: Any = LABELS) -> Any:
    samples = np.linspace(0.0, 1.0, 40, dtype=np.float32).reshape(10, 4)
    return ArrayData(samples, labels, samples, labels)


@pytest.fixture(scope="module")
def prepared() -> Any:
    return prepare(Scenario.paper(3, 2, 2), data_of(), split=SPLIT)


class TestFromData:
    def test_samples(self, prepared: Any) -> None:
        _, data = prepared
        np.testing.assert_allclose(data_priorities("samples", data), np.array([3.0, 1.0, 6.0]) * 3.0 / 10.0)

    def test_classes(self, prepared: Any) -> None:
        """Class 0 has two holders, class 1 three and class 2 one: 1/2 + 1/3, 1/3 and 1/2 + 1/3 + 1."""
        _, data = prepared
        unscaled = np.array([1 / 2 + 1 / 3, 1 / 3, 1 / 2 + 1 / 3 + 1])
        assert unscaled.sum() == pytest.approx(3.0)  # every class counts one
        np.testing.assert_allclose(data_priorities("classes", data), unscaled)

    def test_the_same_data_have_the_same_priorities(self) -> None:
        _, data = prepare(Scenario.paper(2, 2, 2), data_of(), split=[[0, 2, 5], [7, 8, 9]])
        for kind in ("samples", "classes"):
            assert data_priorities(kind, data).tolist() == [1.0, 1.0]

    def test_numbers_and_mistakes(self, prepared: Any) -> None:
        _, data = prepared
        assert data_priorities([1, 2, 3], data).tolist() == [1.0, 2.0, 3.0]
        with pytest.raises(InvalidInput, match="priorities"):
            data_priorities([1, 2], data)
        with pytest.raises(InvalidInput, match="samples, classes"):
            data_priorities("labels", data)
        floats = np.linspace(0.0, 1.0, 10, dtype=np.float32)
        _, regression = prepare(Scenario.paper(3, 2, 2), data_of(floats), split=SPLIT)
        with pytest.raises(InvalidInput, match="classes"):
            data_priorities("classes", regression)

    def test_compare_uses_them(self, prepared: Any) -> None:
        scenario, data = prepared
        wanted = data_priorities("classes", data)
        run = compare(scenario, [FAST], data, OPTIONS, workers=1, priorities="classes")[0]
        assert run.scenario is not None
        np.testing.assert_array_equal(run.scenario.priorities, wanted)
        queued = compare(scenario, [FAST], data, OPTIONS, workers=1, priorities="samples", policy=Queues())[0]
        assert queued.scenario is not None
        assert queued.scenario.priorities[2] == pytest.approx(1.8)
        with pytest.raises(InvalidInput, match="priorities"):
            compare(scenario, [design(scenario, FAST)], data, OPTIONS, priorities="samples")

    def test_compare_channels_uses_them(self, prepared: Any) -> None:
        """Two devices with orthogonal channels, of which one beam serves one: the one with more samples."""
        _, data = prepared
        channels = np.array([[1.0, 0.0, 0.3], [0.0, 1.0, 0.0]], complex)
        phi = np.full(3, 1.0)
        for values, wanted in (([3.0, 1.0, 0.1], 0), ([1.0, 3.0, 0.1], 1)):
            for policy in (None, Queues()):
                run = compare_channels(
                    channels,
                    ["exhaustive"],
                    data,
                    TrainOptions(rounds=1, evaluate_every=1),
                    snr_db=0.0,
                    mse_threshold=1.0 / 1.05**2,
                    weights=phi * 0.95,
                    priorities=values,
                    policy=policy,
                    workers=1,
                )[0]
                assert run.link is not None
                assert np.flatnonzero(run.link.selected).tolist() == [wanted]


class TestCommands:
    def test_select(self, run: Any, tmp_path: Path) -> None:
        rng = np.random.default_rng(1)
        channels = rng.standard_normal((2, 3, 8)) + 1j * rng.standard_normal((2, 3, 8))
        priorities = np.array([5.0, 1, 1, 1, 1, 1, 4, 1])
        np.save(tmp_path / "g.npy", channels)
        np.savez(tmp_path / "v.npz", other=priorities[:3], v=priorities[None])
        common = ["select", "--channels", tmp_path / "g.npy", "--budget", 0.01, "--method", "hrmc+"]
        given = ["--priorities", tmp_path / "v.npz", "--priorities-variable", "v"]
        one = run(*common, *given, "--draw", 0, "--certify", "--json", "-")
        document = json.loads(one.out)
        wanted = select(channels[0], None, 0.01, "hrmc+", priorities=priorities)
        assert document["selected"] == wanted.selected.tolist()
        assert document["priorities"] == priorities.tolist()
        bound = certify(channels[0], budget=0.01, priorities=priorities)
        assert document["certificate"]["at_most"] == pytest.approx(bound.at_most)
        assert wanted.value <= bound.at_most
        shown = run(*common, *given, "--draw", 0, "--certify").out
        assert f"value {wanted.value:g}" in shown
        assert "value at most" in shown
        many = run(*common, *given, "--certify").out
        assert "value" in many.splitlines()[3]
        assert "value" not in run(*common, "--draw", 0).out
        assert_refused(run(*common, *given[:2]), "v.npz", "--priorities-variable")
        assert_refused(run(*common, "--priorities", "samples"), "--priorities samples", "without data")
        assert_refused(run(*common, "--priorities-variable", "v"), "--priorities-variable requires")
        np.save(tmp_path / "short.npy", priorities[:3])
        assert_refused(run(*common, "--priorities", tmp_path / "short.npy"), "8 devices")

    def test_design_and_schedule(self, run: Any, tmp_path: Path) -> None:
        samples = [1.0, 8.0, 1.0, 1.0, 2.0]
        path = tmp_path / "room.toml"
        path.write_text(
            "[receiver]\nwaveguides = 2\nantennas = 3\n[devices]\n"
            "x_m = [5, 12, 20, 28, 35]\ny_m = [3, 8, 5, 9, 2]\ngain = 1\n"
            f"samples = {samples}\n"
        )
        for command in ("design", "schedule"):
            outcome = run(command, "--scenario", path, "--priorities", "samples", "--json", "-")
            document = json.loads(outcome.out)
            first = document["designs"][0] if command == "schedule" else document
            stored = first["scenario"]["devices"]["priority"]
            assert stored == sample_priorities(np.array(samples)).tolist()
        np.save(tmp_path / "v.npy", [1.0, 2.0, 3.0, 4.0, 5.0])
        common = ("design", "--scenario", path, "--priorities")
        assert "value " in run(*common, tmp_path / "v.npy").out
        assert_refused(run(*common, "classes"), "--priorities classes", "airpass train")
        np.save(tmp_path / "short.npy", [1.0, 2.0])
        assert_refused(run(*common, tmp_path / "short.npy"), "5 devices")

    def test_train(self, run: Any, tmp_path: Path) -> None:
        common: list[Any] = [
            "train",
            "--devices",
            6,
            "--rounds",
            1,
            "--workers",
            1,
            "--scheme",
            "airpass-plus",
        ]
        written: dict[str, Any] = {}
        for kind in ("samples", "classes"):
            path = tmp_path / f"{kind}.json"
            assert run(*common, "--priorities", kind, "--json", path, "--out", tmp_path / kind).code == 0
            written[kind] = json.loads(path.read_text())["runs"][0]["scenario"]["devices"]
        for kind, devices in written.items():
            assert np.mean(devices["priority"]) == pytest.approx(1.0)
            by_samples = sample_priorities(np.array(devices["samples"], float))
            assert np.allclose(devices["priority"], by_samples) == (kind == "samples")
        assert_refused(run(*common, "--priorities", tmp_path / "no.npy"), "no.npy", "no such file")
        assert_refused(
            run("train", "--design", "a.json", "--priorities", "samples"), "--priorities", "--design"
        )
