"""Problems that need more memory than there is are refused before it is taken."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import (
    InvalidInput,
    RandomWaypoint,
    Receiver,
    Scenario,
    certify,
    design,
    fresh_draws,
    life,
    select,
    tolerance,
    track,
)
from airpass.core import memory
from command_line import assert_refused

HUGE = 10**9


def _group(root: Path, folder: str, limit: str, use: str, stat: str) -> None:
    group = root / folder
    group.mkdir(parents=True)
    names = (
        ("memory.max", "memory.current")
        if "memory/" not in folder
        else (
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        )
    )
    for name, text in zip((*names, "memory.stat"), (limit, use, stat), strict=True):
        (group / name).write_text(text)


class TestAvailable:
    def test_free_memory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "proc").mkdir()
        (tmp_path / "proc/meminfo").write_text("MemTotal: 900 kB\nMemAvailable:  300 kB\n")
        monkeypatch.setattr(memory, "SYSTEM", tmp_path)
        assert memory.available() == 300 * 1024

    @pytest.mark.parametrize(
        ("folder", "line", "freeable"),
        [
            ("sys/fs/cgroup/a/b", "0::/a/b", "inactive_file 70"),
            ("sys/fs/cgroup/a", "0::/a/b", "inactive_file 70"),  # the limit of a parent
            ("sys/fs/cgroup/memory/a", "4:memory:/a", "total_inactive_file 70"),
        ],
    )
    def test_control_groups(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, line: str, freeable: str
    ) -> None:
        _group(tmp_path, folder, "1000\n", "400\n", f"anon 5\n{freeable}\n")
        (tmp_path / "proc/self").mkdir(parents=True)
        (tmp_path / "proc/self/cgroup").write_text(line + "\n")
        (tmp_path / "proc/meminfo").write_text("MemAvailable:  300 kB\n")
        monkeypatch.setattr(memory, "SYSTEM", tmp_path)
        assert memory.available() == 1000 - 400 + 70

    def test_no_limit_and_no_information(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        _group(tmp_path, "sys/fs/cgroup", "max\n", "400\n", "anon 5\n")
        monkeypatch.setattr(memory, "SYSTEM", tmp_path)
        assert memory.available() > 0.0  # the physical memory, if the system says

    def test_this_system(self) -> None:
        assert 0.0 < memory.available() < np.inf


def test_the_line_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 2.5e9)
    memory.require(2.4e9, "draws", "draws")
    with pytest.raises(
        InvalidInput, match=r"^draws: results need 1\.2 TB of memory, 2\.5 GB are available; lower"
    ):
        memory.require(1.2e12, "results", "draws")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """1 GB of memory."""
    monkeypatch.setattr(memory, "available", lambda: 1e9)


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return Scenario.paper(devices=6, waveguides=3, antennas=2, snr_db=10.0, seed=1)


@pytest.mark.usefixtures("small")
class TestRefused:
    def test_devices_and_antennas(self) -> None:
        with pytest.raises(InvalidInput, match=r"devices\.count: devices need 160 GB"):
            Scenario.paper(devices=HUGE)
        with pytest.raises(InvalidInput, match=r"lower receiver\.waveguides or receiver\.antennas"):
            Receiver(waveguides=HUGE)
        with pytest.raises(InvalidInput, match="layouts need"):
            Receiver(antennas=HUGE, min_gap_m=0.0)
        with pytest.raises(InvalidInput, match="channels need"):
            Scenario.paper(devices=10**6, waveguides=100)

    @pytest.mark.parametrize(
        ("method", "options", "name"),
        [
            ("airpass-plus", {"starts": HUGE}, "starts"),
            ("airpass", {"selection": {"starts": HUGE}}, "starts"),
            ("airpass", {"selection": {"starts": 10**8, "threads": 2}}, "starts"),
        ],
    )
    def test_starts_of_designs(self, scenario: Scenario, method: str, options: Any, name: str) -> None:
        with pytest.raises(InvalidInput, match=rf"need .* lower {name}"):
            design(scenario, method, options=options)

    @pytest.mark.parametrize("method", ["hrmc", "hrmc+", "exhaustive"])
    def test_starts_of_selections(self, method: str) -> None:
        with pytest.raises(InvalidInput, match=r"random starts need .* lower starts"):
            select(np.ones((3, 4)), budget=1.0, method=method, options={"starts": HUGE})

    def test_tables(self) -> None:
        large = Scenario.paper(devices=400, waveguides=10, antennas=2, snr_db=10.0, seed=1)
        with pytest.raises(InvalidInput, match=r"tabulated responses need .* lower memory_mb"):
            design(large, "airpass-plus", options={"memory_mb": 1e9, "grid_wavelengths": 1e-9})

    def test_semidefinite_programs(self) -> None:
        channels = np.ones((4, 20_000))
        for call in (
            lambda: certify(channels, budget=1e12),
            lambda: select(channels, budget=1e12, method="sdr-dc"),
        ):
            with pytest.raises(InvalidInput, match="semidefinite programs need"):
                call()

    def test_draws(self, scenario: Scenario) -> None:
        found = design(scenario, "airpass", options={"max_iterations": 1})
        with pytest.raises(InvalidInput, match="lower draws"):
            tolerance(found, position_mm=1.0, draws=HUGE)
        with pytest.raises(InvalidInput, match="lower draws"):
            life(found, draws=HUGE)
        with pytest.raises(InvalidInput, match="lower draws"):
            fresh_draws(found, draws=HUGE)

    def test_steps_of_a_track(self, scenario: Scenario) -> None:
        with pytest.raises(InvalidInput, match="steps need"):
            track(scenario, RandomWaypoint(), seconds=1e9, beam_every_s=1e-3, method="airpass")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "arguments",
    [
        ("design", "--devices", HUGE),
        ("design", "--waveguides", HUGE),
        ("design", "--antennas", HUGE, "--set", "receiver.min_gap_m=0"),
        ("design", "--method", "airpass-plus", "--option", f"starts={HUGE}"),
        ("design", "--method", "airpass", "--option", f"selection.starts={HUGE}"),
    ],
)
def test_commands_end_in_one_line(run: Any, arguments: tuple[object, ...]) -> None:
    assert_refused(run(*arguments), "of memory", "1 GB are available", "lower")


def test_an_error_of_the_allocation_ends_in_one_line(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("airpass.designs.api.design_method", fail)
    assert_refused(run("design", "--quiet"), "not enough memory")


def test_scattered_waves() -> None:
    scenario = Scenario.from_dict({"channel": {"rician_k_db": 3.0, "rician_waves": 10**9}})
    with pytest.raises(InvalidInput, match=r"scattered waves need .* lower channel\.rician_waves"):
        design(scenario, "distributed-m")
