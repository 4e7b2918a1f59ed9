"""Devices that move: paths, the life of a design, following, and tracks."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import airpass
from airpass import (
    InvalidInput,
    Life,
    Paths,
    RandomWaypoint,
    Scenario,
    StraightLines,
    Track,
    TrainOptions,
    aircomp,
    design,
    life,
    read_paths,
    track,
    train,
)
from airpass.core.randomness import Purpose, stream
from airpass.core.types import Real
from airpass.designs.follow import follow, towards
from airpass.designs.life import FAR_WAVELENGTHS
from airpass.designs.plus import AirpassPlus
from airpass.designs.tolerance import RECEIVERS
from airpass.scenario.motion import displaced, room_of
from airpass.selection.hrmc_plus import regrow
from command_line import assert_refused

SMALL = Scenario.paper(devices=12, waveguides=3, antennas=4, snr_db=3.0, seed=1)
FAST = {"effort": "fast"}
MODELS = [RandomWaypoint(3.0, 0.4, 5), RandomWaypoint(3.0, 0.0, 5), StraightLines(3.0, 5)]


class TestPaths:
    @pytest.mark.parametrize("model", MODELS)
    def test_inside_the_room_and_never_too_fast(self, model: RandomWaypoint | StraightLines) -> None:
        times = np.linspace(0.0, 60.0, 6001)
        places = model.paths(SMALL, 60.0).positions(times)
        assert places.shape == (6001, 12, 2)
        for axis, (low, high) in enumerate(room_of(SMALL)):
            assert places[..., axis].min() >= low - 1e-9
            assert places[..., axis].max() <= high + 1e-9
        moved = np.linalg.norm(np.diff(places, axis=0), axis=2)
        assert moved.max() <= 3.0 * 0.01 * (1.0 + 1e-6)
        assert np.median(moved) > 0.029  # they do move
        np.testing.assert_array_equal(places[0], np.column_stack([SMALL.devices.x_m, SMALL.devices.y_m]))

    @pytest.mark.parametrize("model", MODELS)
    def test_same_seed_same_paths(self, model: RandomWaypoint | StraightLines) -> None:
        times = np.linspace(0.0, 7.0, 50)
        places = model.paths(SMALL, 7.0).positions(times)
        np.testing.assert_array_equal(places, model.paths(SMALL, 7.0).positions(times))
        # A longer duration does not change the beginning.
        np.testing.assert_allclose(places, model.paths(SMALL, 30.0).positions(times), atol=1e-9)
        other = replace(model, seed=6).paths(SMALL, 7.0).positions(times)
        assert np.abs(places - other).max() > 0.1

    def test_reflection_is_that_of_a_mirror(self) -> None:
        """Between walls the speed is constant; at a wall one component changes its sign."""
        paths = StraightLines(5.0, 2).paths(SMALL, 30.0)
        room = np.array(room_of(SMALL))
        for times, points in zip(paths.times_s, paths.points_m, strict=True):
            velocity = np.diff(points, axis=0) / np.diff(times)[:, None]
            np.testing.assert_allclose(np.linalg.norm(velocity, axis=1), 5.0, rtol=1e-6)
            np.testing.assert_allclose(np.abs(velocity), np.abs(velocity[:1]).repeat(len(velocity), 0), 1e-6)
            for point in points[1:-1]:
                assert np.isclose(point[:, None], room, atol=1e-9).any()
        assert min(times.size for times in paths.times_s) > 2

    def test_pauses(self) -> None:
        paths = RandomWaypoint(2.0, 1.5, 0).paths(SMALL, 50.0)
        for times, points in zip(paths.times_s, paths.points_m, strict=True):
            still = (np.diff(points, axis=0) == 0.0).all(axis=1)
            np.testing.assert_allclose(np.diff(times)[still], 1.5)
            assert still.sum() == (~still).sum()

    def test_no_speed_no_motion(self) -> None:
        for model in (RandomWaypoint(0.0), StraightLines(0.0)):
            places = model.paths(SMALL, 2.0).positions([0.0, 1.0, 2.0])
            np.testing.assert_allclose(places[2], places[0], rtol=1e-12)

    def test_room_of_given_devices(self) -> None:
        given = Scenario.from_dict(
            {"devices": {"x_m": [50.0, 1.0], "y_m": [-3.0, 1.0], "gain": 1.0, "samples": 10}}
        )
        assert room_of(given) == ((0.0, 50.0), (-3.0, 8.0))
        assert room_of(SMALL) == ((4.0, 40.0), (2.0, 10.0))

    def test_a_file_is_exact_at_its_times_and_linear_between(self, tmp_path: Path) -> None:
        file = tmp_path / "paths.csv"
        file.write_text("device, time_s,x_m,y_m\n0,0.1,1.25,2\n1,0,5,6\n0,0.3,1.75,4\n\n0,0.7,0.3,4\n")
        paths = read_paths(file)
        assert (paths.count, paths.seconds) == (2, 0.7)
        places = paths.positions([0.0, 0.1, 0.2, 0.3, 0.7, 9.0])
        assert places.shape == (6, 2, 2)
        np.testing.assert_array_equal(places[[0, 1, 3, 4, 5], 0, 0], [1.25, 1.25, 1.75, 0.3, 0.3])
        np.testing.assert_allclose(places[2, 0], [1.5, 3.0])
        np.testing.assert_array_equal(places[:, 1], np.tile([5.0, 6.0], (6, 1)))

    def test_heights_from_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "paths.csv"
        file.write_text("time_s,device,x_m,y_m,z_m\n0,0,1,2,0\n1,0,1,2,1\n")
        places = read_paths(file).positions([0.0, 0.5])
        np.testing.assert_array_equal(places, [[[1, 2, 0]], [[1, 2, 0.5]]])
        one = Scenario.paper(1, 3, 4)
        assert displaced(one, places[1]).devices.z_m.tolist() == [0.5]

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", ["columns none", "time_s, device, x_m, y_m"]),
            ("time_s,device,x_m\n0,0,1\n", ["columns time_s, device, x_m"]),
            ("time_s,device,x_m,y_m\n", ["no line"]),
            ("time_s,device,x_m,y_m\n0,0,1\n", ["line 2", "3 cells"]),
            ("time_s,device,x_m,y_m\n0,0,1,here\n", ["line 2", "y_m = 'here'"]),
            ("time_s,device,x_m,y_m\n0,0,1,nan\n", ["line 2", "y_m", "finite"]),
            ("time_s,device,x_m,y_m\n0,0.5,1,2\n", ["line 2", "device = 0.5"]),
            ("time_s,device,x_m,y_m\n0,0,1,2\n0,0,1,2\n", ["line 3", "must increase"]),
            ("time_s,device,x_m,y_m\n0,1,1,2\n", ["device 0 is missing"]),
        ],
    )
    def test_wrong_files(self, tmp_path: Path, text: str, words: list[str]) -> None:
        file = tmp_path / "paths.csv"
        file.write_text(text)
        with pytest.raises(InvalidInput) as error:
            read_paths(file)
        assert "\n" not in str(error.value)
        for word in (str(file), *words):
            assert word in str(error.value)

    def test_other_refusals(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_paths(tmp_path / "none.csv")
        with pytest.raises(InvalidInput, match="2 devices but the scenario has 12"):
            Paths([np.zeros(1)] * 2, [np.zeros((1, 2))] * 2).paths(SMALL, 1.0)
        for wrong in ({"speed_m_s": -1.0}, {"pause_s": -1.0}, {"seed": -1}):
            with pytest.raises(InvalidInput, match=next(iter(wrong))):
                RandomWaypoint(**wrong)


class TestLife:
    @pytest.mark.parametrize("method", ["airpass-plus", "mimo-m-plus", "distributed-mn"])
    def test_one_draw_by_hand(self, method: str) -> None:
        found = design(SMALL, method, options=FAST if method == "airpass-plus" else None)
        measured = life(found, [0.02], draws=2, seed=3)
        np.testing.assert_array_equal(measured.distances_m, [0.0, 0.02, FAR_WAVELENGTHS * 0.125])
        angles = stream(3, Purpose.DIRECTIONS, 1).uniform(0.0, 2.0 * np.pi, 12)
        devices = replace(
            SMALL.devices,
            x_m=SMALL.devices.x_m + 0.02 * np.cos(angles),
            y_m=SMALL.devices.y_m + 0.02 * np.sin(angles),
        )
        there = replace(SMALL, devices=devices)
        if found.layout is not None:
            channels = there.channels(found.layout)
        else:
            assert found.array is not None
            channels = there.array_at(found.array).channels()
        scores = SMALL.budget * np.abs(found.beam.conj() @ channels) ** 2 / SMALL.weights**2
        assert measured.counts["rescaled"][1, 1] == (scores >= 1.0).sum()
        arrives = (found.beam.conj() @ channels) * found.transmit / np.sqrt(found.denoising_factor)
        aligned = found.selected & (np.abs(arrives / SMALL.weights - 1.0) <= 0.1)
        assert measured.counts["as designed"][1, 1] == aligned.sum()
        effective = aircomp.effective_channels(channels, SMALL.weights, SMALL.budget)
        grown = aircomp.scores(regrow(effective, found.beam), effective)
        assert measured.counts["re-solved"][1, 1] >= (grown >= 1.0).sum()

    def test_without_displacement_all_is_as_designed(self) -> None:
        found = design(SMALL, options=FAST)
        measured = life(found, draws=2)
        for name in RECEIVERS:
            assert set(measured.counts[name][0]) == {float(found.selected_count)}
        assert (measured.counts["re-solved"] >= measured.counts["rescaled"]).all()

    def test_pinching_antennas_lose_their_gain_and_arrays_keep_it(self) -> None:
        scenario = Scenario.paper(30, 6, 6, -5.0, 8490)
        moved = life(design(scenario, options=FAST), draws=4)
        assert 0.02 < moved.coherence_wavelengths("rescaled") < moved.coherence_wavelengths() < 1.0
        kept = life(design(scenario, "mimo-mn-plus"), draws=4)
        assert np.isnan(kept.coherence_m("re-solved"))

    def test_coherence_distance_is_interpolated(self) -> None:
        counts = np.array([[10.0], [9.0], [5.0], [2.0]])
        one = Life("x", 10, 1.0, np.array([0.0, 1.0, 3.0, 10.0]), 1, 0, {"re-solved": counts})
        # Half of the gain of 8 is lost at 6, three quarters of the way from 1 to 3.
        assert one.coherence_m() == pytest.approx(2.5)
        assert one.coherence_wavelengths() == pytest.approx(2.5)
        flat = replace(one, counts={"re-solved": np.array([[10.0], [10.0], [10.0], [9.5]])})
        assert np.isnan(flat.coherence_m())

    def test_saved_and_opened(self, tmp_path: Path) -> None:
        one = life(design(SMALL, "mimo-m"), [0.01, 0.1], draws=2)
        one.save(tmp_path / "life.json")
        again = airpass.load(tmp_path / "life.json")
        assert isinstance(again, Life)
        for name in RECEIVERS:
            np.testing.assert_array_equal(again.counts[name], one.counts[name])
        np.testing.assert_array_equal(again.distances_m, one.distances_m)
        frame = one.to_frame()
        assert len(frame) == 3 * 4 * 2
        mean = frame[frame.receiver == "rescaled"].groupby("distance_m").aligned.mean()
        np.testing.assert_allclose(mean, one.mean("rescaled"))
        one.plot(tmp_path / "life.png")
        assert (tmp_path / "life.png").stat().st_size > 10_000
        assert "Life(mimo-m" in repr(again)

    @pytest.mark.parametrize(
        ("options", "word"),
        [
            ({"distances_m": [-1.0]}, "distances_m"),
            ({"distances_m": ["far"]}, "distances_m"),
            ({"draws": 0}, "draws"),
            ({"seed": -1}, "seed"),
        ],
    )
    def test_bad_arguments(self, options: dict[str, Any], word: str) -> None:
        with pytest.raises(InvalidInput, match=word):
            life(design(SMALL, "mimo-m"), **options)

    def test_command(self, run: Any, tmp_path: Path) -> None:
        arguments = ("--effort", "fast", "--life", "--draws", 2, "--json", tmp_path / "design.json")
        outcome = run("design", *arguments, "--life-figure", tmp_path / "life.pdf")
        assert outcome.code == 0
        assert "Coherence distance" in outcome.out
        assert json.loads((tmp_path / "design.json").read_text())["life"]["draws"] == 2
        assert (tmp_path / "life.pdf").exists()
        shown = run("show", tmp_path / "design.json")
        assert outcome.out.splitlines()[-1] == shown.out.splitlines()[-1]
        assert_refused(run("design", "--life-figure", tmp_path / "life.pdf"), "--life-figure requires --life")


def feasible(scenario: Scenario, layout: Real) -> bool:
    return np.array_equal(scenario.checked_layout(layout), layout)


class TestFollow:
    def test_moves_between_feasible_layouts_are_feasible(self) -> None:
        rng = np.random.default_rng(0)
        for _ in range(200):
            layout, target = SMALL.random_layout(rng), SMALL.random_layout(rng)
            for distance in (0.01, 1.0, 5.0):
                moved = towards(layout, target, distance)
                assert feasible(SMALL, moved)
                assert np.abs(moved - layout).max() <= distance * (1.0 + 1e-12)
                assert (np.abs(moved - target) <= np.abs(layout - target) + 1e-12).all()
        assert towards(layout, target, None) is target

    @pytest.mark.parametrize("limit", [None, 0.005])
    def test_keeps_devices_that_the_beam_alone_loses(self, limit: float | None) -> None:
        kept, lost = 0, 0
        for seed in range(8491, 8503):
            scenario = Scenario.paper(20, 5, 5, -2.0, seed)
            found = design(scenario, options=FAST)
            assert found.layout is not None
            angles = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, 20)
            places = np.column_stack([scenario.devices.x_m, scenario.devices.y_m])
            there = displaced(scenario, places + 0.01 * np.column_stack([np.cos(angles), np.sin(angles)]))
            layout, beam = follow(there, found.layout, found.beam, found.selected, limit)
            assert feasible(there, layout)
            if limit is not None:
                assert np.abs(layout - found.layout).max() <= limit * (1.0 + 1e-9)

            def count(layout: Real, beam: Any, there: Scenario = there) -> int:
                effective = aircomp.effective_channels(there.channels(layout), there.weights, there.budget)
                return int((aircomp.scores(regrow(effective, beam), effective) >= 1.0).sum())

            alone = count(found.layout, found.beam)
            assert count(layout, beam) >= alone
            kept += count(layout, beam) - alone
            lost += found.selected_count - alone
        assert kept > 0.5 * lost > 0.0


class TestTrack:
    def test_rows_and_links(self) -> None:
        result = track(
            SMALL,
            RandomWaypoint(1.0, 0.0, 3),
            seconds=0.1,
            beam_every_s=0.01,
            layout_every_s=0.03,
            options=FAST,
        )
        np.testing.assert_allclose(result.times_s, 0.01 * np.arange(11))
        updated = [at for at, row in enumerate(result.rows) if np.isfinite(row.layout_seconds)]
        assert updated == [0, 3, 6, 9]
        ages = [row.layout_age_s for row in result.rows]
        np.testing.assert_allclose(ages, [0, 0.01, 0.02, 0, 0.01, 0.02, 0, 0.01, 0.02, 0, 0.01], atol=1e-12)
        assert result.layouts_m is not None
        for at, row in enumerate(result.rows):
            link = result.link(at)
            assert (row.selected_count, row.weakest_score) == (link.selected_count, link.weakest_score)
            np.testing.assert_array_equal(result.selected[at], link.selected)
            assert feasible(SMALL, result.layouts_m[at])
        for before, after in pairwise(range(11)):
            travel = np.abs(result.layouts_m[after] - result.layouts_m[before]).max()
            assert result.rows[after].travel_m == travel
            assert travel == 0.0 or after in updated
        assert len(result.links()) == 11
        assert [link.selected_count for link in result.links(0.05)] == [
            result.rows[at].selected_count for at in (0, 5, 10)
        ]

    def test_devices_at_rest_are_kept(self) -> None:
        result = track(SMALL, RandomWaypoint(0.0), seconds=0.05, layout_every_s=0.02, options=FAST)
        assert (np.diff(result.counts) >= 0.0).all()

    @pytest.mark.parametrize("update", ["redesign", "follow"])
    @pytest.mark.parametrize("speed", [0.3, None])
    def test_speed_limit_and_feasible_layouts(self, update: str, speed: float | None) -> None:
        result = track(
            SMALL,
            StraightLines(1.0, 1),
            seconds=0.2,
            layout_every_s=0.05,
            antenna_speed_m_s=speed,
            options=FAST,
            update=update,
        )
        assert result.layouts_m is not None
        assert all(feasible(SMALL, layout) for layout in result.layouts_m)
        travel = np.abs(np.diff(result.layouts_m, axis=0)).max()
        assert travel > 0.0
        if speed is not None:
            assert travel <= speed * 0.01 * (1.0 + 1e-9)
        if update == "follow":  # targets can be reached before the next layout step
            assert max(result.rows[at].to_go_m for at in (9, 14, 19)) <= (speed or 0.0) * 0.01 * (1.0 + 1e-9)

    def test_layouts_may_come_late(self) -> None:
        options: dict[str, Any] = {"seconds": 0.1, "layout_every_s": 0.02, "options": FAST}
        result = track(SMALL, RandomWaypoint(1.0), layout_delay_s=0.03, **options)
        ages = [row.layout_age_s for row in result.rows]
        np.testing.assert_allclose(ages[5:], [0.03, 0.04, 0.03, 0.04, 0.03, 0.04], atol=1e-12)

    def test_looking_ahead_makes_up_for_the_delay(self) -> None:
        """On straight lines, devices are where they were expected."""
        options: dict[str, Any] = {"seconds": 0.12, "layout_every_s": 0.03, "options": FAST}
        motion = StraightLines(1.0, 1)
        on_time = track(SMALL, motion, **options)
        late = track(SMALL, motion, layout_delay_s=0.03, **options)
        ahead = track(SMALL, motion, layout_delay_s=0.03, lead_s=0.03, **options)
        ages = np.array([[row.layout_age_s for row in one.rows] for one in (on_time, late, ahead)])
        np.testing.assert_allclose(ages[2, 6:], ages[0, 6:], atol=1e-12)
        np.testing.assert_allclose(ages[1, 6:], ages[0, 6:] + 0.03, atol=1e-12)
        # The first layout that was found ahead is for the devices at the second layout step.
        assert ahead.layouts_m is not None
        at, there = ahead.link(6), displaced(SMALL, ahead.places_m[6])
        assert at.selected_count >= late.rows[6].selected_count
        again = design(
            there,
            AirpassPlus(effort="fast", starts=1, kicks=0, polish=False),
            seed=SMALL.seed,
            start_layout=ahead.layouts_m[3],
            start_beam=ahead.beams[2],
        )
        assert at.selected_count == pytest.approx(again.selected_count, abs=1)

    def test_layout_updates_pay(self) -> None:
        scenario = Scenario.paper(20, 5, 5, -2.0, 8495)
        often, never = (
            track(scenario, RandomWaypoint(1.0, 0.0, 1), seconds=0.2, layout_every_s=every, options=FAST)
            for every in (0.01, 1.0)
        )
        assert often.mean_count > never.mean_count + 1.0

    def test_arrays_keep_their_antennas(self) -> None:
        result = track(SMALL, RandomWaypoint(1.0), seconds=0.1, layout_every_s=0.05, method="mimo-mn-plus")
        assert result.layouts_m is None
        assert result.array_m is not None
        assert {row.travel_m for row in result.rows} == {0.0}
        assert abs(result.rows[-1].selected_count - result.rows[0].selected_count) <= 2
        with pytest.raises(InvalidInput, match="no antennas that move"):
            track(SMALL, RandomWaypoint(1.0), seconds=0.1, method="mimo-m", update="follow")

    def test_same_seed_same_track(self) -> None:
        options: dict[str, Any] = {"seconds": 0.05, "layout_every_s": 0.02, "options": FAST}
        one, other = (track(SMALL, RandomWaypoint(1.0), **options) for _ in range(2))
        np.testing.assert_array_equal(one.counts, other.counts)
        np.testing.assert_array_equal(one.beams, other.beams)

    def test_saved_and_opened(self, tmp_path: Path) -> None:
        one = track(SMALL, RandomWaypoint(1.0), seconds=0.03, layout_every_s=0.02, options=FAST)
        one.save(tmp_path / "track.json")
        again = airpass.load(tmp_path / "track.json")
        assert isinstance(again, Track)
        np.testing.assert_array_equal(again.beams, one.beams)
        np.testing.assert_array_equal(again.selected, one.selected)
        np.testing.assert_array_equal(again.link(2).scores, one.link(2).scores)
        assert again.method == one.method
        frame = again.to_frame()
        assert frame.selected_count.tolist() == one.counts.tolist()
        again.plot(tmp_path / "track.png")
        assert (tmp_path / "track.png").stat().st_size > 10_000

    def test_training_over_a_track(self) -> None:
        scenario = Scenario.paper(5, 3, 3, 10.0, 2)
        result = track(scenario, RandomWaypoint(1.0), seconds=0.04, options=FAST)
        options = TrainOptions(rounds=3, evaluate_every=1)
        run = train(result.links(0.02), dataset="mnist-mini", options=options, seed=1)
        counts = [link.selected_count for link in result.links(0.02)]
        assert len(counts) == 3
        assert [record.selected_count for record in run.history[1:]] == counts

    @pytest.mark.parametrize(
        ("options", "word"),
        [
            ({"seconds": -1.0}, "seconds"),
            ({"beam_every_s": 0.0}, "beam_every_s"),
            ({"layout_every_s": 0.001}, "layout_every_s"),
            ({"layout_delay_s": -1.0}, "layout_delay_s"),
            ({"lead_s": -1.0}, "lead_s"),
            ({"antenna_speed_m_s": 0.0}, "antenna_speed_m_s"),
            ({"time_limit_s": 0.0}, "time_limit_s"),
            ({"time_limit_s": 1.0, "method": "mimo-m"}, "time_limit_s: mimo-m"),
            ({"update": "magic"}, "update"),
            ({"seed": -1}, "seed"),
        ],
    )
    def test_bad_arguments(self, options: dict[str, Any], word: str) -> None:
        with pytest.raises(InvalidInput, match=word):
            track(SMALL, RandomWaypoint(1.0), **{"seconds": 0.1} | options)


class TestCommand:
    def test_all_outputs(self, run: Any, tmp_path: Path) -> None:
        outputs = {kind: tmp_path / f"track.{kind}" for kind in ("json", "png", "gif", "html")}
        outcome = run(
            "track", "--speed-m-s", 2, "--seconds", 0.05, "--layout-every-ms", 20, "--option", "effort=fast",
            "--json", outputs["json"], "--figure", outputs["png"], "--animation", outputs["gif"],
            "--page", outputs["html"],
        )  # fmt: skip
        assert outcome.code == 0
        assert "on average over 0.05 s" in outcome.out
        document = json.loads(outputs["json"].read_text())
        assert len(document["rows"]) == 6
        with Image.open(outputs["gif"]) as picture:
            assert getattr(picture, "n_frames", 1) == 6
        page = outputs["html"].read_text()
        assert "data:image/png;base64" in page
        assert "track.gif" in page
        assert run("show", outputs["json"]).out == outcome.out

    def test_paths_from_a_file(self, run: Any, tmp_path: Path) -> None:
        lines = ["time_s,device,x_m,y_m"]
        lines += [f"{time},{k},{10 + k + time},5" for k in range(3) for time in (0.0, 0.04)]
        (tmp_path / "paths.csv").write_text("\n".join(lines))
        outcome = run(
            "track", "--devices", 3, "--paths", tmp_path / "paths.csv", "--method", "mimo-m",
            "--json", tmp_path / "track.json",
        )  # fmt: skip
        assert outcome.code == 0
        places = json.loads((tmp_path / "track.json").read_text())["places_m"]
        assert len(places) == 5
        np.testing.assert_allclose(places[-1], [[10.04, 5], [11.04, 5], [12.04, 5]])

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--speed-m-s", "-1"], ["--speed-m-s = -1"]),
            (["--seconds", "-1"], ["--seconds = -1"]),
            (["--beam-every-ms", "0"], ["--beam-every-ms = 0"]),
            (["--layout-every-ms", "1"], ["--layout-every-ms = 1", ">= 10"]),
            (["--antenna-speed-m-s", "0"], ["--antenna-speed-m-s = 0"]),
            (["--paths", "none.csv"], ["none.csv", "cannot be read"]),
            (["--paths", "none.csv", "--speed-m-s", "1"], ["--speed-m-s cannot be combined with --paths"]),
            (["--motion", "lines", "--pause-s", "1"], ["--pause-s requires --motion waypoints"]),
            (["--animation", "film.mp4"], ["--animation", ".gif"]),
            (["--method", "magic"], ["--method = 'magic'"]),
            (["--method", "mimo-m", "--update", "follow"], ["--update", "mimo-m"]),
        ],
    )
    def test_refusals(self, run: Any, arguments: list[str], words: list[str]) -> None:
        assert_refused(run("track", *arguments), *words)
