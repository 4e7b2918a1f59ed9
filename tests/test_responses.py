"""Designs with responses on candidate places: `channel.responses` of a scenario."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import airpass
from airpass import (
    Channel,
    Design,
    DeviceDraw,
    Devices,
    InvalidInput,
    Radio,
    Receiver,
    SampledResponse,
    Scenario,
    certify_layouts,
    design,
    life,
    load_responses,
    schedule,
    select,
    tolerance,
    track,
)
from airpass.channel.field import LARGEST_ENTRY, SampledTable
from airpass.core.types import Real
from airpass.designs.joint.space import space_of
from airpass.geometry.base import weakest_gain
from airpass.geometry.elementwise import Elementwise
from airpass.scenario import StraightLines
from airpass.study.sweep import from_dict
from command_line import assert_refused
from exchange import exchange

ROOT = Path(__file__).parent.parent
SAMPLE = ROOT / "examples" / "traced.npz"
LIGHT_M_S = 299_792_458.0
ROOM: dict[str, Any] = {
    "receiver": {"waveguides": 4, "antennas": 4, "length_m": 9.0, "height_m": 4.0, "min_gap_m": 0.5},
    "radio": {"snr_db": 45.0, "mse_threshold": 0.03},
    "channel": {"responses": str(SAMPLE)},
}


def random_room(
    waveguides: int = 2, places: int = 6, devices: int = 5, seed: int = 0, **more: Any
) -> SampledResponse:
    """Independent complex normal responses at places that differ between waveguides, none equally far."""
    rng = np.random.default_rng(seed)
    parts = rng.standard_normal((2, waveguides, places, devices))
    given = {
        "response": parts[0] + 1j * parts[1],
        "places_m": np.cumsum(rng.uniform(0.1, 0.9, (waveguides, places)), axis=1),
        "waveguide_included": True,
        "device_xyz_m": rng.uniform(0.0, 2.0, (devices, 3)),
    }
    return SampledResponse(**(given | more))


def scenario_of(
    room: SampledResponse, antennas: int = 2, snr_db: float = 0.0, min_gap_m: float = 0.3, **channel: Any
) -> Scenario:
    receiver = Receiver(
        waveguides=len(room.response),
        antennas=antennas,
        length_m=max(float(room.places_m.max()), 1.0) + 0.5,
        min_gap_m=min_gap_m,
    )
    wavelength = 0.125 if room.carrier_ghz is None else LIGHT_M_S / (1e9 * room.carrier_ghz)
    return Scenario(
        receiver=receiver,
        radio=Radio(snr_db=snr_db, wavelength_m=wavelength),
        channel=Channel(responses=room, **channel),
    )


def layouts(scenario: Scenario) -> Any:
    """All feasible layouts."""
    receiver, candidates = scenario.receiver, scenario.candidates
    assert candidates is not None
    rows = [
        [
            chosen
            for chosen in itertools.combinations(places, receiver.antennas)
            if receiver.antennas == 1 or np.diff(chosen).min() >= receiver.min_gap_m - 1e-9
        ]
        for places in candidates.places
    ]
    return (np.array(layout) for layout in itertools.product(*rows))


def sums(room: SampledResponse, layout: Real) -> Any:
    """Channels by loops over the places."""
    found = np.zeros((len(layout), room.response.shape[2]), np.complex128)
    for m, row in enumerate(layout):
        for place in row:
            p = int(np.argmin(np.abs(room.places_m[m] - place)))
            found[m] += room.response[m, p] / np.sqrt(layout.shape[1])
    return found


class TestScenario:
    def test_devices_and_carrier_are_those_of_the_file(self) -> None:
        room = load_responses(SAMPLE)
        scenario = Scenario.from_dict(ROOM)
        devices = scenario.devices
        assert room.device_xyz_m is not None
        np.testing.assert_array_equal(
            np.column_stack([devices.x_m, devices.y_m, devices.z_m]), room.device_xyz_m
        )
        assert (devices.gain == 1.0).all()
        assert devices.samples[0] == 5000.0
        assert scenario.radio.wavelength_m == pytest.approx(LIGHT_M_S / 3.5e9)
        budget = ROOM | {"radio": {"power_dbm": 15.0, "noise_dbm": -90.0}}
        assert Scenario.from_dict(budget).radio.snr_db == pytest.approx(105.0)
        more = ROOM | {"devices": {"samples": list(range(1, 13)), "priority": [2.0] + [1.0] * 11}}
        assert Scenario.from_dict(more).devices.samples[3] == 4.0

    def test_channels_are_those_of_the_responses(self) -> None:
        scenario = Scenario.from_dict(ROOM | {"channel": {"responses": str(SAMPLE), "loss_db_per_m": 0.2}})
        receiver = replace(scenario.receiver, feed=("left", "right", "centre", "left"))
        scenario = replace(scenario, receiver=receiver)
        room = load_responses(SAMPLE).with_waveguides(receiver, scenario.radio.refractive_index, 0.2)
        layout = scenario.uniform_layout()
        np.testing.assert_allclose(scenario.channels(layout), sums(room, layout), rtol=1e-12)
        # gamma_k and xi have no part in it
        louder = scenario.with_radio(path_gain=3.0)
        np.testing.assert_array_equal(louder.channels(layout), scenario.channels(layout))

    def test_files_and_tables(self, tmp_path: Path) -> None:
        random_room(carrier_ghz=3.5).save(tmp_path / "room.npz")
        tables = {"receiver": {"waveguides": 2, "antennas": 2, "length_m": 10.0, "min_gap_m": 0.2}}
        (tmp_path / "room.toml").write_text(tomli_w.dumps(tables | {"channel": {"responses": "room.npz"}}))
        scenario = Scenario.load(tmp_path / "room.toml")  # relative to the file
        table = scenario.to_dict()["channel"]["responses"]
        assert table == {"file": str(tmp_path / "room.npz"), "sha256": random_room(carrier_ghz=3.5).sha256}
        for data in (scenario.to_dict(), json.loads(json.dumps(scenario.to_dict()))):
            assert Scenario.from_dict(data).to_dict() == scenario.to_dict()
        (tmp_path / "other").mkdir()
        scenario.save(tmp_path / "other" / "copy.toml")
        assert Scenario.load(tmp_path / "other" / "copy.toml").to_dict() == scenario.to_dict()
        random_room(carrier_ghz=3.5).save(tmp_path / "room.mat")
        other = Scenario.from_dict(tables | {"channel": {"responses": str(tmp_path / "room.mat")}})
        assert other.to_dict()["channel"]["responses"]["sha256"] == table["sha256"]

    @pytest.mark.parametrize(
        "change",
        [
            {"response": random_room(seed=1).response},
            {"places_m": random_room(seed=1).places_m},
            {"carrier_ghz": 3.6},
            {"waveguide_included": False},
        ],
    )
    def test_the_hash_covers_all_that_channels_depend_on(self, change: dict[str, Any]) -> None:
        room = random_room(carrier_ghz=3.5)
        assert replace(room, **change).sha256 != room.sha256
        assert replace(room, description="other words").sha256 == room.sha256

    def test_places_of_candidates_m(self) -> None:
        scenario = Scenario.from_dict(
            ROOM | {"channel": {"responses": str(SAMPLE), "candidates_m": [0.5, 2.0, 4.25, 5.0, 8.0]}}
        )
        assert scenario.candidates is not None
        np.testing.assert_allclose(scenario.candidates.places[3], [0.5, 2.0, 4.25, 5.0, 8.0])
        found = design(scenario, options={"effort": "fast"})
        assert found.layout is not None
        assert np.isin(found.layout, scenario.candidates.places).all()

    def test_zero_responses(self) -> None:
        response = random_room().response.copy()
        response[:, :4, 0] = 0.0
        scenario = scenario_of(random_room(response=response), antennas=1)
        channels = scenario.channels(scenario.candidates.nearest(np.zeros((2, 1))))  # type: ignore[union-attr]
        assert 0.0 < np.abs(channels[:, 0]).max() < 1e-8
        design(scenario, options={"effort": "fast"})

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"receiver": {"waveguides": 3}}, ["receiver.waveguides = 3", "must be 4"]),
            ({"receiver": {"waveguides": 4, "length_m": 5.0}}, ["channel.responses", "places_m", "5 m"]),
            ({"receiver": {"waveguides": 4, "antennas": 9, "length_m": 9.0, "min_gap_m": 1.125}}, []),
            ({"radio": {"wavelength_m": 0.1}}, ["3.5 GHz", "2.998 GHz", "0.085655"]),
            ({"preset": "indoor-28ghz", "radio": {}}, ["3.5 GHz", "28 GHz"]),
            ({"devices": {"count": 12}}, ["devices.count", "channel.responses"]),
            ({"devices": {"seed": 1}}, ["devices.seed", "channel.responses"]),
            ({"devices": {"gain": [2.0] * 12}}, ["devices.gain", "1"]),
            ({"devices": {"samples": [1.0] * 11}}, ["devices.samples", "11"]),
            ({"devices": {"x_m": [1.0] * 12}}, ["devices.x_m[0] = 1", "leave"]),
            ({"channel": {"responses": str(SAMPLE), "candidates_m": 0.03}}, ["0.03 m", "nearest is at 0.05"]),
            ({"channel": {"responses": str(SAMPLE), "candidates_m": [0.5]}}, ["channel.candidates_m", "= 4"]),
            ({"channel": {"responses": str(SAMPLE), "blockage_per_m": 0.1}}, ["channel.blockage_per_m"]),
            ({"channel": {"responses": str(SAMPLE), "rician_k_db": 3.0}}, ["channel.rician_k_db"]),
            ({"channel": {"responses": str(SAMPLE), "power_split": "proportional"}}, ["channel.power_split"]),
            ({"channel": {"responses": str(SAMPLE), "model": "pattern"}}, ["'pattern'", "channel.responses"]),
            ({"channel": {"responses": 3}}, ["channel.responses = 3", "file"]),
            ({"channel": {"responses": {"file": 3}}}, ["channel.responses", "texts"]),
            ({"channel": {"responses": {"path": "x.npz"}}}, ["channel.responses.path", "file"]),
            ({"channel": {"responses": {"sha256": "00"}}}, ["channel.responses.file is missing"]),
            ({"channel": {"responses": {"file": str(SAMPLE), "sha256": "00"}}}, ["other responses", "00..."]),
            ({"channel": {"responses": "no.npz"}}, ["no.npz", "no such file"]),
            ({"channel": {"responses": str(ROOT / "README.md")}}, ["README.md"]),
            ({"channel": {"responses": str(ROOT / "examples" / "channels.npz")}}, ["no variable 'response'"]),
        ],
    )
    def test_what_does_not_fit_ends_in_one_line(self, change: dict[str, Any], words: list[str]) -> None:
        tables = {key: {**ROOM.get(key, {}), **value} if key == "receiver" else value
                  for key, value in change.items()}  # fmt: skip
        if not words:  # places at both ends and every 1.125 m are not all there
            words = ["channel.responses", "places for 8 antennas"]
        with pytest.raises(InvalidInput) as caught:
            Scenario.from_dict(ROOM | tables)
        assert all(word in str(caught.value) for word in words), str(caught.value)
        assert "\n" not in str(caught.value)

    def test_loss_is_refused_if_the_waveguides_are_included(self) -> None:
        with pytest.raises(InvalidInput, match=r"channel.loss_db_per_m = 0.1: must be 0"):
            scenario_of(random_room(), loss_db_per_m=0.1)

    def test_damaged_files(self, tmp_path: Path) -> None:
        whole = SAMPLE.read_bytes()
        (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(InvalidInput, match=r"cut\.npz") as caught:
            Scenario.from_dict(ROOM | {"channel": {"responses": str(tmp_path / "cut.npz")}})
        assert "\n" not in str(caught.value)

    def test_devices_in_python(self) -> None:
        room = random_room()
        assert scenario_of(room).devices.count == 5
        with pytest.raises(InvalidInput, match="were drawn"):
            replace(scenario_of(room), devices=DeviceDraw(count=5).draw())
        bare = random_room(device_xyz_m=None)
        with pytest.raises(InvalidInput, match=r"devices.x_m is missing.*5 devices"):
            scenario_of(bare)
        x = np.arange(5.0)
        given = Devices(x_m=x, y_m=x, gain=np.ones(()), samples=np.ones(()))
        receiver = scenario_of(room).receiver
        found = Scenario(receiver=receiver, devices=given, channel=Channel(responses=bare))
        assert found.uplink.channels(found.uniform_layout()).shape == (2, 5)
        with pytest.raises(InvalidInput, match=r"there are 4, but channel.responses has 5"):
            replace(found, devices=Devices(x_m=x[:4], y_m=x[:4], gain=np.ones(4), samples=np.ones(4)))


class TestSearchTable:
    def test_entries_are_responses_over_their_peak(self) -> None:
        scenario = scenario_of(random_room(2, 7, 3))
        scale = np.sqrt(scenario.budget) / scenario.weights
        space = space_of(scenario, scale, 0.01, 2.0**20)
        values = space.table * (space.row_scale[:, :, None, None] * space.reference)
        expected = scale * scenario.uplink.terms(scenario.uplink.sampled.places_m, 2)  # type: ignore[attr-defined]
        found = (values[:, :, 0] + 1j * values[:, :, 1]).transpose(0, 2, 1)
        peaks = np.abs(expected).max(axis=1, keepdims=True)
        assert np.abs((found - expected) / peaks).max() < 2.0 / LARGEST_ENTRY
        assert isinstance(space.field.factor, SampledTable)

    def test_the_table_need_not_be_stored(self) -> None:
        scenario = Scenario.from_dict(ROOM | {"radio": {"snr_db": 40.0, "mse_threshold": 0.03}})
        stored, computed = (
            design(scenario, options={"effort": "fast", "memory_mb": size}) for size in (1024.0, 0.0)
        )
        np.testing.assert_array_equal(stored.layout, computed.layout)
        np.testing.assert_array_equal(stored.beam, computed.beam)


class TestDesigns:
    def test_one_waveguide_against_all_layouts(self) -> None:
        # The beam is a number then: scores follow from the layout.
        reached = 0
        for seed in range(20):
            room = random_room(1, 12, 6, seed)
            scenario = scenario_of(room, antennas=3, snr_db=-5.0)
            scale = np.sqrt(scenario.budget) / scenario.weights
            best = max(
                int((np.abs(sums(room, layout)[0] * scale) >= 1.0).sum()) for layout in layouts(scenario)
            )
            found = design(scenario)
            scenario.checked_layout(found.layout)
            assert certify_layouts(scenario).at_most >= best >= found.selected_count > 0
            reached += found.selected_count == best
        assert reached >= 19

    def test_two_waveguides_against_all_layouts_and_beams(self) -> None:
        reached = 0
        for seed in range(10):
            scenario = scenario_of(random_room(2, 6, 5, seed), antennas=1, snr_db=-5.0)
            channels = [scenario.channels(layout) for layout in layouts(scenario)]
            best = max(
                select(each, scenario.weights, scenario.budget, "exhaustive").selected_count
                for each in channels
            )
            found = design(scenario)
            assert certify_layouts(scenario).at_most >= best >= found.selected_count > 0
            reached += found.selected_count == best
        assert reached >= 9

    @pytest.mark.parametrize("snr_db", [39.0, 40.0, 41.0, 42.0])
    def test_never_below_a_simple_exchange_of_places(self, snr_db: float) -> None:
        scenario = Scenario.from_dict(ROOM | {"radio": {"snr_db": snr_db, "mse_threshold": 0.03}})
        room = load_responses(SAMPLE).with_waveguides(scenario.receiver, scenario.radio.refractive_index)
        reference = exchange(room, 4, 0.5, scenario.budget, starts=1)
        found = design(scenario)
        assert found.selected_count >= reference.selected_count > 0
        assert not found.selected.all() or snr_db > 40.0

    def test_dense_samples_of_equation_64(self) -> None:
        paper = Scenario.paper(8, 2, 3, 14.0, 3)
        paper = replace(paper, receiver=replace(paper.receiver, length_m=10.0, feed="right"))
        closed = replace(paper, channel=Channel(candidates_m=0.02))
        assert closed.candidates is not None
        places = np.array(closed.candidates.places)
        devices = closed.devices
        room = SampledResponse(
            closed.uplink.terms(places, 1),
            places,
            True,
            np.column_stack([devices.x_m, devices.y_m, devices.z_m]),
            1e-9 * LIGHT_M_S / 0.125,
        )
        sampled = replace(
            closed,
            devices=replace(devices, gain=np.ones(8), drawn_from=None),
            channel=Channel(responses=room),
        )
        rng = np.random.default_rng(0)
        for _ in range(5):
            layout = closed.random_layout(rng)
            np.testing.assert_allclose(sampled.channels(layout), closed.channels(layout), rtol=1e-12)
        one, other = (design(scenario, options={"effort": "fast"}, seed=1) for scenario in (closed, sampled))
        assert one.selected_count == other.selected_count > 1
        for scenario in (closed, sampled):
            assert certify_layouts(scenario).at_most >= one.selected_count
        # At places the bound is tighter than over all positions.
        exact, loose = certify_layouts(sampled), certify_layouts(closed)
        assert (exact.best_scores <= loose.best_scores * (1.0 + 1e-9)).all()

    def test_other_methods(self) -> None:
        scenario = Scenario.from_dict(ROOM)
        plus = design(scenario)
        pair = design(scenario, selection="hrmc", geometry="elementwise")
        fixed = design(scenario, selection="hrmc+", geometry="fixed")
        even = design(scenario, "distributed-m")
        assert plus.selected_count >= pair.selected_count
        np.testing.assert_array_equal(even.layout, scenario.uniform_layout())
        np.testing.assert_array_equal(fixed.layout, even.layout)
        for found in (plus, pair, even):
            assert found.layout is not None
            room = load_responses(SAMPLE).with_waveguides(scenario.receiver, scenario.radio.refractive_index)
            np.testing.assert_allclose(found.channels, sums(room, found.layout), rtol=1e-12)
            scenario.checked_layout(found.layout)
        again = design(scenario, start_layout=plus.layout, start_beam=plus.beam, options={"effort": "fast"})
        assert again.selected_count >= plus.selected_count

    def test_elementwise_moves_to_the_best_place(self) -> None:
        scenario = scenario_of(random_room(2, 8, 4), antennas=2)
        layout, beam, everyone = scenario.uniform_layout(), np.full(2, 0.5**0.5 + 0j), np.ones(4, dtype=bool)
        found = Elementwise().move(scenario, layout, beam, everyone, np.random.default_rng(0))
        assert found.objective[1] > found.objective[0]
        assert scenario.candidates is not None
        for m, n in np.ndindex(layout.shape):  # no single move helps
            for place in scenario.candidates.places[m]:
                moved = found.layout.copy()
                moved[m, n] = place
                if np.diff(moved[m]).min() >= 0.3:
                    gain = weakest_gain(scenario, moved, beam, everyone)
                    assert gain <= found.objective[1] * (1.0 + 1e-4)

    def test_turns(self) -> None:
        scenario = Scenario.from_dict(ROOM | {"radio": {"snr_db": 40.0, "mse_threshold": 0.03}})
        book = schedule(scenario, options={"effort": "fast"})
        assert book.turns > 1
        for one in book.designs:
            scenario.checked_layout(one.layout)


class TestRefusals:
    @pytest.mark.parametrize("method", ["airpass", "airpass-mp", "airpass-lasting"])
    def test_methods_that_need_antennas_anywhere(self, method: str) -> None:
        with pytest.raises(InvalidInput, match=r"channel.responses: .* use airpass-plus, elementwise"):
            design(Scenario.from_dict(ROOM), method)

    @pytest.mark.parametrize("method", ["mimo-m", "mimo-mn-plus", "distributed-mn"])
    def test_arrays(self, method: str) -> None:
        with pytest.raises(InvalidInput, match=r"channel.responses: holds for antennas on waveguides"):
            design(Scenario.from_dict(ROOM), method)

    @pytest.mark.parametrize("option", ["tolerance_mm", "displacement_mm"])
    def test_margins(self, option: str) -> None:
        with pytest.raises(InvalidInput, match=r"leave out channel.responses"):
            design(Scenario.from_dict(ROOM), options={option: 1.0})

    def test_positions_off_the_places_and_devices_that_move(self) -> None:
        found = design(Scenario.from_dict(ROOM), "distributed-m")
        for errors in ({"position_mm": 1.0}, {"displacement_mm": 1.0}):
            with pytest.raises(InvalidInput, match=r"channel.responses: .* position_mm"):
                tolerance(found, **errors)  # type: ignore[arg-type]
        assert tolerance(found, channel_error=0.01, draws=3).nominal == found.selected_count
        with pytest.raises(InvalidInput, match=r"channel.responses: .* cannot move"):
            life(found)
        with pytest.raises(InvalidInput, match=r"channel.responses: .* cannot move"):
            track(found.scenario, StraightLines(), seconds=0.1)
        with pytest.raises(InvalidInput, match=r"channel.responses: are known for their own devices"):
            found.mean_gain(np.zeros(1), np.zeros(1))
        with pytest.raises(InvalidInput, match="without a derivative"):
            found.scenario.uplink.require_derivative()
        assert not found.scenario.uplink.differentiable

    def test_layouts_off_the_places(self) -> None:
        scenario = Scenario.from_dict(ROOM)
        with pytest.raises(
            InvalidInput, match=r"layout\[0\]\[0\] = 0.03: is not a place of channel.responses"
        ):
            scenario.channels([[0.03, 2.0, 4.0, 6.0]] * 4)  # type: ignore[arg-type]


class TestResults:
    def stored(self, folder: Path) -> tuple[Design, Path]:
        room = folder / "room.npz"
        load_responses(SAMPLE).save(room)
        scenario = Scenario.from_dict(ROOM | {"channel": {"responses": str(room)}})
        found = design(scenario, options={"effort": "fast"})
        found.save(folder / "design.json")
        return found, room

    def test_a_stored_design_needs_the_responses_only_to_run_again(self, tmp_path: Path) -> None:
        found, room = self.stored(tmp_path)
        document = json.loads((tmp_path / "design.json").read_text())
        assert document["scenario"]["channel"]["responses"] == {
            "file": str(room),
            "sha256": load_responses(SAMPLE).sha256,
        }
        content = room.read_bytes()
        room.unlink()
        read = airpass.load(tmp_path / "design.json")
        assert isinstance(read, Design)
        np.testing.assert_array_equal(read.scores, found.scores)
        np.testing.assert_array_equal(read.layout, found.layout)
        assert read.scenario.to_dict() == found.scenario.to_dict()
        read.plot(tmp_path / "room.png")
        read.save(tmp_path / "again.json")
        assert json.loads((tmp_path / "again.json").read_text()) == document
        with pytest.raises(InvalidInput, match=r"room\.npz: no such file"):
            design(read.scenario)
        other = load_responses(SAMPLE)
        replace(other, response=2.0 * other.response).save(room)
        with pytest.raises(InvalidInput, match="holds other responses"):
            design(airpass.load(tmp_path / "design.json").scenario)
        room.write_bytes(content)
        again = design(airpass.load(tmp_path / "design.json").scenario, found.method)
        np.testing.assert_array_equal(again.layout, found.layout)

    def test_responses_without_a_file(self, tmp_path: Path) -> None:
        found = design(scenario_of(random_room()), options={"effort": "fast"})
        found.save(tmp_path / "design.json")
        read = airpass.load(tmp_path / "design.json")
        assert isinstance(read, Design)
        np.testing.assert_array_equal(read.scores, found.scores)
        with pytest.raises(InvalidInput, match=r"channel.responses.file is missing"):
            design(read.scenario)

    def test_the_command_line(self, tmp_path: Path, run: Any) -> None:
        example, figure, path = (
            ROOT / "examples" / "traced.toml",
            tmp_path / "room.png",
            tmp_path / "design.json",
        )
        shown = run(
            "design", "--scenario", example, "--seed", 3, "--figure", figure, "--json", path, "--certify"
        )
        assert shown.code == 0
        assert "K=12 devices" in shown.out
        assert figure.stat().st_size > 10_000
        read = airpass.load(path)
        assert isinstance(read, Design)
        assert read.seed == 3
        assert run("show", path).code == 0
        given = run(
            *("design", "--scenario", example, "--option", "effort=fast"),
            *("--set", f"channel.responses={SAMPLE}", "--json", path),
        )
        assert given.code == 0
        assert json.loads(path.read_text())["scenario"]["channel"]["responses"]["file"] == str(SAMPLE)
        assert_refused(
            run("design", "--scenario", example, "--devices", 5),
            "--devices cannot be combined with channel.responses",
        )

    def test_sweeps(self, tmp_path: Path) -> None:
        keys = set()
        for seed in (0, 1):
            random_room(seed=seed).save(tmp_path / "room.mat")
            scenario = {
                "receiver": {"waveguides": 2, "antennas": 2, "min_gap_m": 0.1},
                "channel": {"responses": str(tmp_path / "room.mat")},
            }
            trials = from_dict({"scenario": scenario, "trials": 2}).trials
            assert "seed" not in trials[0].scenario["devices"]
            Scenario.from_dict(trials[0].scenario)
            keys |= {trials[0].key, trials[0].computation}
        assert len(keys) == 4
