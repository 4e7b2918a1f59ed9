"""The postprocessor of pfl, against the aggregation and the training of the package itself."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pfl_training
import pytest
import torch
from pfl.aggregate.weighting import WeightByDatapoints, WeightByUser
from pfl.common_types import Population
from pfl.context import UserContext
from pfl.metrics import Metrics
from pfl.postprocessor.base import Postprocessor
from pfl.stats import ElementWeightedMappedVectorStatistics, MappedVectorStatistics
from pfl_training import USERS

import bridging
from airpass import InvalidInput
from airpass.learning.air_rounds import AirRounds
from airpass.pfl import OverTheAir, SelectedCohort, SelectedUsers

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "bridges" / "pfl_training.py"
# Sums of pfl are in single precision, and weights are multiplied and divided.
ROUNDING = 2e-7
SHAPES = {"weight": (3, 4), "bias": (4,)}


@pytest.fixture(scope="module")
def setting() -> Any:
    scenario, data = bridging.prepared()
    return scenario, data, bridging.designed(scenario)


def update(device: int) -> dict[str, Any]:
    rng = np.random.default_rng(device)
    return {name: np.asarray(rng.normal(size=shape), np.float32) for name, shape in SHAPES.items()}


def context(device: int) -> UserContext:
    return UserContext(num_datapoints=10 + device, seed=0, user_id=USERS[device])


def central(number: int, population: Population = Population.TRAIN) -> Any:
    return SimpleNamespace(current_central_iteration=number - 1, population=population)


def a_round(processors: Any, devices: Any, number: int = 1) -> tuple[MappedVectorStatistics, Metrics]:
    """What `SimulatedBackend` does with the statistics of some users."""
    total = None
    for device in devices:
        tensors = {name: torch.from_numpy(array.copy()) for name, array in update(device).items()}
        stats = MappedVectorStatistics(tensors)
        for one in processors:
            stats, _ = one.postprocess_one_user(stats=stats, user_context=context(device))
        total = stats.apply_elementwise(torch.clone) if total is None else stats + total
        for tensor in tensors.values():
            tensor.fill_(torch.nan)  # the model uses them again
    metrics = Metrics()
    for one in reversed(processors):
        total, more = one.postprocess_server(
            stats=total, central_context=central(number), aggregate_metrics=metrics
        )
        metrics |= more
    return total, metrics


def assert_to_rounding(state: Any, expected: Any) -> None:
    """Equal within 1e-7, but for weights before a ReLU whose input changes its sign by rounding."""
    difference = np.abs(state - expected)
    assert np.median(difference) <= 1e-7
    assert difference.max() <= 1e-4


class TestTraining:
    """The same model as by `airpass.train`, to rounding."""

    def test_of_a_design(self, setting: Any) -> None:
        _, data, link = setting
        run = bridging.trained(link, data, bridging.OPTIONS)
        state, air, metrics = pfl_training.trained(link, data)
        assert_to_rounding(state, run.state)
        moved = np.abs(run.state - bridging.trainer(data, bridging.OPTIONS).flat.read()).max()
        assert moved > 0.01
        assert [len(one.senders) for one in air.rounds] == [link.selected_count] * bridging.ROUNDS
        mse = np.mean([one.measured_mse for one in air.rounds])
        assert mse == pytest.approx(run.history[-1].measured_mse, rel=1e-4)
        assert metrics[2]["over the air: measured-mse"] == air.rounds[2].measured_mse
        assert metrics[2]["over the air: selected"] == link.selected_count

    def test_of_a_book_by_turns(self) -> None:
        scenario, data = bridging.prepared(-4.0)
        book = bridging.scheduled(scenario)
        run = bridging.trained(book, data, bridging.OPTIONS)
        state, _, _ = pfl_training.trained(book, data)
        assert_to_rounding(state, run.state)

    def test_links_with_other_devices_in_every_round(self, setting: Any) -> None:
        _, data, link = setting
        fewer = replace(link, budget=link.budget / (link.weakest_score * 1.0001))
        nobody = replace(link, budget=link.budget * 1e-6)
        assert 5 <= fewer.selected_count < link.selected_count
        assert nobody.selected_count == 0
        links = [link, fewer, nobody]
        run = bridging.trained(links, data, bridging.OPTIONS)
        state, air, _ = pfl_training.trained(links, data)
        assert_to_rounding(state, run.state)
        counts = [link.selected_count, fewer.selected_count, 0, link.selected_count, fewer.selected_count]
        assert [len(one.senders) for one in air.rounds] == counts

    def test_a_cohort_of_all_users(self, setting: Any) -> None:
        _, data, link = setting
        order = iter(USERS * 2)
        state, air, _ = pfl_training.trained(
            link, data, rounds=2, sampler=lambda: next(order), cohort=bridging.DEVICES
        )
        expected, _, _ = pfl_training.trained(link, data, rounds=2)
        np.testing.assert_array_equal(state, expected)
        assert len(air.rounds[0].senders) == link.selected_count

    def test_validation_between_the_rounds(self, setting: Any) -> None:
        _, data, link = setting
        links = pfl_training.of_sizes(link, [link.selected_count, 4])
        drawn: list[str] = []
        state, _, _ = pfl_training.trained(links, data, rounds=3, validated=bridging.DEVICES, drawn=drawn)
        expected, _, _ = pfl_training.trained(links, data, rounds=3)
        np.testing.assert_array_equal(state, expected)
        for one in (links[0], links[1], links[0]):
            count = one.selected_count
            assert drawn[:count] == [USERS[k] for k in np.flatnonzero(one.selected)]
            assert sorted(drawn[count : count + bridging.DEVICES]) == USERS
            del drawn[: count + bridging.DEVICES]
        assert drawn == []

    @pytest.mark.parametrize(
        ("sizes", "validated"), [((9, 1, 0), 0), ((9, 4), 3)], ids=["few are selected", "validation"]
    )
    def test_in_two_processes(
        self, setting: Any, tmp_path: Path, sizes: tuple[int, ...], validated: int
    ) -> None:
        _, data, link = setting
        links = pfl_training.of_sizes(link, sizes)
        assert [one.selected_count for one in links] == list(sizes)
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
        command += ["--master-addr", "127.0.0.1", "--master-port", "0", "--rdzv-backend", "c10d"]
        command += ["--rdzv-endpoint", "127.0.0.1:0", str(PROGRAM), str(tmp_path)]
        command += [",".join(map(str, sizes)), str(validated)]
        paths = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
        env = os.environ | {"PFL_PYTORCH_DEVICE": "cpu", "PYTHONPATH": paths}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        drawn: list[str] = []
        expected, air, _ = pfl_training.trained(links, data, validated=validated, drawn=drawn)
        drawn_there: list[str] = []
        for rank in (0, 1):
            with np.load(tmp_path / f"{rank}.npz") as found:
                np.testing.assert_array_equal(found["state"], expected)
                assert found["senders"].tolist() == [len(one.senders) for one in air.rounds]
                assert set(found["senders"]) == set(sizes)
                drawn_there += found["drawn"].tolist()
        if min(sizes) >= 2:  # there is a selected user for each process
            assert sorted(drawn_there) == sorted(drawn)


class TestAggregation:
    @pytest.mark.parametrize("weighting", [WeightByDatapoints(), WeightByUser()], ids=["data", "user"])
    def test_it_is_that_of_the_link(self, setting: Any, weighting: Any) -> None:
        link = setting[2]
        air = OverTheAir(link, USERS, seed=bridging.SEED)
        same = AirRounds(link, seed=bridging.SEED)
        for number in (1, 2):
            stats, metrics = a_round([weighting, air], range(bridging.DEVICES), number)
            senders = same.selected(number)
            assert len(senders) >= 5
            mean, done = same.aggregate(number, {k: list(update(k).values()) for k in senders})
            by_user = isinstance(weighting, WeightByUser)
            assert stats.weight == sum(1 if by_user else 10 + k for k in senders)
            total = {name: stats[name].numpy().copy() for name in SHAPES}
            stats.average()
            for (name, change), summed in zip(zip(SHAPES, mean, strict=True), total.values(), strict=True):
                np.testing.assert_allclose(stats[name].numpy(), change, rtol=0, atol=5 * ROUNDING)
                assert summed.dtype == np.float32
            assert metrics["over the air: senders"] == len(senders)
            assert done.measured_mse == pytest.approx(air.rounds[-1].measured_mse, rel=1e-5)

    def test_it_is_exact_without_weights(self, setting: Any) -> None:
        link = setting[2]
        air, same = OverTheAir(link, USERS, seed=bridging.SEED), AirRounds(link, seed=bridging.SEED)
        senders = same.selected(1)[:4]  # 4 x/4 = x
        stats, _ = a_round([air], senders)
        mean, done = same.aggregate(1, {k: list(update(k).values()) for k in senders})
        stats.average()
        for name, change in zip(SHAPES, mean, strict=True):
            np.testing.assert_array_equal(stats[name].numpy(), change)
        assert air.rounds[0].senders == senders
        assert air.rounds[0].selected == same.selected(1)
        assert air.rounds[0].measured_mse == done.measured_mse

    def test_users_that_are_not_selected_send_zero(self, setting: Any) -> None:
        link = setting[2]
        air = OverTheAir(link, USERS)
        others = np.flatnonzero(~link.selected).tolist()
        stats, _ = air.postprocess_one_user(
            stats=MappedVectorStatistics({"x": torch.ones(3)}, 4.0), user_context=context(others[0])
        )
        assert stats["x"].tolist() == [0.0] * 3
        assert stats.weight == 4.0
        air = OverTheAir(link, USERS)
        stats, metrics = a_round([WeightByUser(), air], others)
        stats.average()
        assert all((stats[name].numpy() == 0.0).all() for name in SHAPES)
        assert air.rounds[0].senders == ()
        assert np.isnan(metrics["over the air: measured-mse"])

    def test_a_postprocessor_before_it_changes_what_is_sent_and_gets_the_sum(self, setting: Any) -> None:
        link = setting[2]
        seen: list[Any] = []

        class Halved(Postprocessor):  # type: ignore[misc]
            def postprocess_one_user(self, *, stats: Any, user_context: Any) -> Any:
                return stats.apply_elementwise(lambda value: 0.5 * value), Metrics()

            def postprocess_server(self, *, stats: Any, **_: Any) -> Any:
                seen.append({name: stats[name].numpy().copy() for name in SHAPES})
                return stats, Metrics()

        air, same = OverTheAir(link, USERS, seed=bridging.SEED), AirRounds(link, seed=bridging.SEED)
        senders = same.selected(1)
        a_round([WeightByUser(), Halved(), air], senders)
        mean, _ = same.aggregate(1, {k: [0.5 * one for one in update(k).values()] for k in senders})
        for name, change in zip(SHAPES, mean, strict=True):
            np.testing.assert_allclose(seen[0][name], len(senders) * change, rtol=0, atol=2e-6)

    def test_other_populations_are_left_alone(self, setting: Any) -> None:
        air = OverTheAir(setting[2], USERS)
        stats = MappedVectorStatistics({"x": torch.ones(3)})
        found, metrics = air.postprocess_server(
            stats=stats, central_context=central(1, Population.VAL), aggregate_metrics=Metrics()
        )
        assert found is stats
        assert len(metrics) == 0
        assert air.round == 1

    def test_devices_can_be_named_in_any_order(self, setting: Any) -> None:
        link = setting[2]
        named = {user: bridging.DEVICES - 1 - k for k, user in enumerate(USERS)}
        air = OverTheAir(link, named, first_round=3)
        assert air.users() == [USERS[bridging.DEVICES - 1 - k] for k in np.flatnonzero(link.selected)]
        assert SelectedCohort(air).value() == link.selected_count
        draw = SelectedUsers(air)
        assert [draw() for _ in range(link.selected_count)] == air.users()
        others = [draw() for _ in range(bridging.DEVICES - link.selected_count)]
        assert others == [USERS[bridging.DEVICES - 1 - k] for k in np.flatnonzero(~link.selected)]
        assert draw() == air.users()[0]
        air.round += 1
        assert draw() == air.users()[0]
        assert draw() == air.users()[1]

    def test_a_cohort_has_a_user_for_each_process(
        self, setting: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        nobody, one = pfl_training.of_sizes(setting[2], (0, 1))

        links = [nobody, one, setting[2]]

        def cohorts(processes: int) -> list[int]:
            ops = SimpleNamespace(distributed=SimpleNamespace(world_size=processes))
            monkeypatch.setattr("airpass.pfl.get_default_framework_module", lambda: ops)
            return [SelectedCohort(OverTheAir(link, USERS)).value() for link in links]

        assert cohorts(1) == [1, 1, setting[2].selected_count]
        assert cohorts(3) == [3, 3, setting[2].selected_count]
        assert cohorts(bridging.DEVICES) == [bridging.DEVICES] * 3
        with pytest.raises(InvalidInput, match=r"^there are 11 processes for 10 users, .* at most 10$"):
            cohorts(bridging.DEVICES + 1)


class TestRefused:
    def test_a_user_twice(self, setting: Any) -> None:
        first = int(np.flatnonzero(setting[2].selected)[0])
        with pytest.raises(
            InvalidInput, match=f"'user {first}' is in the cohort of round 1 twice; draw users"
        ):
            a_round([OverTheAir(setting[2], USERS)], [first, first])

    def test_a_round_that_does_not_fit(self, setting: Any) -> None:
        senders = np.flatnonzero(setting[2].selected)
        with pytest.raises(InvalidInput, match="pfl is in round 4, and the link is in round 1"):
            a_round([OverTheAir(setting[2], USERS)], senders, number=4)
        a_round([OverTheAir(setting[2], USERS, first_round=4)], senders, number=4)

    def test_updates_that_are_not_finite(self, setting: Any) -> None:
        air = OverTheAir(setting[2], USERS)
        device = air.air.selected(1)[0]
        stats = MappedVectorStatistics({"x": torch.tensor([1.0, torch.nan])})
        air.postprocess_one_user(stats=stats, user_context=context(device))
        with pytest.raises(InvalidInput, match=f"that of device {device} is not finite"):
            air.postprocess_server(stats=stats, central_context=central(1), aggregate_metrics=Metrics())

    def test_statistics_and_users(self, setting: Any) -> None:
        air = OverTheAir(setting[2], USERS)
        one = MappedVectorStatistics({"x": torch.ones(2)})
        each = ElementWeightedMappedVectorStatistics({"x": torch.ones(2)}, {"x": torch.ones(2)})
        chosen = context(air.air.selected(1)[0])
        with pytest.raises(InvalidInput, match="must be MappedVectorStatistics"):
            air.postprocess_one_user(stats=each, user_context=chosen)
        for stranger in ("somebody", None):
            with pytest.raises(InvalidInput, match="has no device; name it in devices"):
                air.postprocess_one_user(stats=one, user_context=replace(chosen, user_id=stranger))
        one.weight = 0.0
        with pytest.raises(InvalidInput, match="has the weight 0; must be > 0"):
            air.postprocess_one_user(stats=one, user_context=chosen)

    @pytest.mark.parametrize(
        ("devices", "message"),
        [
            (USERS[1:], "9 users for 10 devices; must name one user for each of 0 to 9"),
            ([*USERS[1:], USERS[1]], "a user is named twice"),
            (dict.fromkeys(USERS, 0), "must name one user for each of 0 to 9"),
            ({user: k + 0.5 for k, user in enumerate(USERS)}, "must be a whole number"),
            ("users", "devices = 'users': must be"),
            (None, "devices = None: must be"),
        ],
    )
    def test_mappings_that_do_not_fit(self, setting: Any, devices: Any, message: str) -> None:
        with pytest.raises(InvalidInput, match=message):
            OverTheAir(setting[2], devices)

    def test_samplers_of_something_else(self) -> None:
        given: Any = USERS
        for kind in (SelectedUsers, SelectedCohort):
            with pytest.raises(InvalidInput, match="air"):
                kind(given)


def page() -> str:
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "howto" / "pfl.md").read_text(), re.DOTALL)
    return str(block)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (page(), ["round 1: 9 users, SDR", "round 3: 9 users, SDR"]),
        ((ROOT / "examples" / "pfl_over_the_air.py").read_text(), ["9 of 12 devices sent", "accuracy 0."]),
    ],
    ids=["page", "example"],
)
def test_code_that_is_printed_runs(tmp_path: Path, code: str, words: list[str]) -> None:
    (tmp_path / "code.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "code.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    for word in words:
        assert word in done.stdout, done.stdout
    if "accuracy" in done.stdout:
        assert float(done.stdout.split("accuracy ")[1].split()[0]) > 0.8
