"""Training while devices move."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpass import InvalidInput, Moving, Paths, RandomWaypoint, Scenario, StraightLines, design, track, train
from airpass.designs.distributed import DistributedMn
from airpass.designs.plus import AirpassPlus
from airpass.learning.compare import compare
from airpass.learning.options import TrainOptions
from airpass.learning.training import prepare
from airpass.scenario.motion import displaced
from command_line import assert_refused

FAST = AirpassPlus(effort="fast", threads=1)
SMALL = Scenario.paper(devices=8, waveguides=3, antennas=3, snr_db=8.0, seed=1)
WALK = Moving(RandomWaypoint(1.0, seed=4), round_s=0.05)
OPTIONS = TrainOptions(rounds=4, evaluate_every=1, test_images=50, probe_images=20)


@pytest.fixture(scope="module")
def prepared() -> Any:
    return prepare(SMALL, options=OPTIONS)


class TestLinks:
    @pytest.mark.parametrize("method", [FAST, "mimo-mn-plus", DistributedMn()])
    def test_a_step_of_a_track_is_a_round(self, method: Any) -> None:
        links = WALK.links(SMALL, 5, method)
        found = track(
            SMALL, WALK.motion, seconds=0.2, beam_every_s=0.05, layout_every_s=0.05, method=method
        ).links()
        assert len(links) == len(found) == 5
        for link, other in zip(links, found, strict=True):
            np.testing.assert_array_equal(link.channels, other.channels)
            np.testing.assert_array_equal(link.beam, other.beam)
            assert link.selected_count > 0

    def test_round_r_is_at_r_minus_one_durations(self) -> None:
        links = WALK.links(SMALL, 4, DistributedMn())
        places = WALK.motion.paths(SMALL, 1.0).positions([0.0, 0.05, 0.10, 0.15])
        for link, there in zip(links, places, strict=True):
            here = design(displaced(SMALL, there), DistributedMn())
            np.testing.assert_allclose(link.channels, here.channels, rtol=1e-9)

    def test_layouts_more_and_less_often_than_rounds(self) -> None:
        often = replace(WALK, layout_every_s=0.02)
        assert (often.steps, often.step_s) == (2, 0.025)  # a whole number of layouts in a round
        seldom = replace(WALK, layout_every_s=0.11)
        assert (seldom.steps, seldom.receiver(SMALL, FAST, 0).every) == (1, 2)
        found = track(SMALL, WALK.motion, seconds=0.1, beam_every_s=0.025, layout_every_s=0.025, method=FAST)
        for link, other in zip(often.links(SMALL, 3, FAST), found.links(0.05), strict=True):
            np.testing.assert_array_equal(link.beam, other.beam)

    def test_any_order_gives_the_same_links(self) -> None:
        links = WALK.links(SMALL, 6, FAST)
        last, third, first = links[5].beam, links[2].beam, links[0].beam
        fresh = [link.beam for link in WALK.links(SMALL, 6, FAST)]
        for beam, number in ((last, 5), (third, 2), (first, 0)):
            np.testing.assert_array_equal(beam, fresh[number])
        np.testing.assert_array_equal(links[-1].beam, last)
        assert [link.beam.tolist() for link in links[2:4]] == [beam.tolist() for beam in fresh[2:4]]

    @pytest.mark.parametrize("motion", [RandomWaypoint(1.0), StraightLines(30.0), StraightLines(1.0)])
    def test_more_rounds_begin_like_fewer(self, motion: Any) -> None:
        moving = Moving(motion, 0.3)
        few, many = (moving.places(SMALL, rounds) for rounds in (7, 40))
        np.testing.assert_array_equal(few, many[:7])

    def test_arrays_need_no_way_of_following(self) -> None:
        follow = replace(WALK, update="follow", time_limit_s=10.0)
        for method in (FAST, DistributedMn()):
            assert len(list(follow.links(SMALL, 2, method))) == 2

    @pytest.mark.parametrize(
        ("changes", "word"),
        [
            ({"round_s": 0.0}, "round_s"),
            ({"layout_every_s": -1.0}, "layout_every_s"),
            ({"lead_s": -1.0}, "lead_s"),
            ({"layout_delay_s": -1.0}, "layout_delay_s"),
            ({"update": "jump"}, "update"),
            ({"motion": 1.0}, "motion"),
        ],
    )
    def test_wrong_values(self, changes: Any, word: str) -> None:
        with pytest.raises(InvalidInput, match=word):
            replace(WALK, **changes)


class TestTraining:
    def test_every_round_has_its_link(self, prepared: Any) -> None:
        scenario, data = prepared
        links = WALK.links(scenario, 4, FAST)
        run = train(links, data, options=OPTIONS, workers=1, scenario=scenario)
        assert [record.selected_count for record in run.history[1:]] == [
            link.selected_count for link in links
        ]
        assert run.scheme == "airpass-plus"
        assert run.config["motion"]["round_s"] == 0.05
        assert run.config["motion"]["model"]["speed_m_s"] == 1.0

    def test_schemes_workers_and_fedavg(self, prepared: Any) -> None:
        scenario, data = prepared
        names = ["fedavg", "airpass-plus", "mimo-mn-plus", "distributed-mn"]
        one, two = (
            compare(scenario, names, data, OPTIONS, workers=workers, moving=WALK) for workers in (1, 2)
        )
        for left, right in zip(one, two, strict=True):
            np.testing.assert_array_equal(left.state, right.state)
        rest = compare(scenario, ["fedavg"], data, OPTIONS, workers=1)
        np.testing.assert_array_equal(one[0].state, rest[0].state)

    def test_a_resumed_and_lengthened_run_ends_in_the_same_numbers(
        self, prepared: Any, tmp_path: Path
    ) -> None:
        scenario, data = prepared
        common: Any = {"workers": 1, "scenario": scenario}
        whole = train(WALK.links(scenario, 4, FAST), data, options=OPTIONS, **common)
        common |= {"checkpoint": tmp_path / "run.npz"}
        train(WALK.links(scenario, 2, FAST), data, options=replace(OPTIONS, rounds=2), **common)
        rest = train(WALK.links(scenario, 4, FAST), data, options=OPTIONS, resume=True, **common)
        np.testing.assert_array_equal(whole.state, rest.state)
        faster = replace(WALK, motion=RandomWaypoint(2.0, seed=4))
        with pytest.raises(InvalidInput, match="design_sha256"):
            train(faster.links(scenario, 4, FAST), data, options=OPTIONS, resume=True, **common)

    def test_paths_are_told_apart(self) -> None:
        def along(x: float) -> dict[str, Any]:
            points = [np.array([[1.0, 1.0], [x, 1.0]])] * 8
            return Moving(Paths([np.array([0.0, 1.0])] * 8, points), 0.1).to_dict()

        assert along(2.0) == along(2.0)
        assert along(2.0) != along(3.0)
        json.dumps(along(2.0))

    def test_what_cannot_be_combined(self, prepared: Any) -> None:
        scenario, data = prepared
        limited = replace(WALK, time_limit_s=1.0)
        refused: list[tuple[str, Any, Any]] = [
            ("turns", ["airpass-plus"], {"moving": WALK, "turns": 2}),
            ("ready", [design(scenario, FAST)], {"moving": WALK}),
            ("resume", ["airpass-plus"], {"moving": limited, "resume": True}),
            ("no scheme", ["mimo-mn-plus"], {"moving": limited}),
        ]
        for word, schemes, arguments in refused:
            with pytest.raises(InvalidInput, match=word):
                compare(scenario, schemes, data, OPTIONS, **arguments)
        with pytest.raises(InvalidInput, match="redraw_every"):
            compare(scenario, ["airpass-plus"], data, replace(OPTIONS, redraw_every=2), moving=WALK)


class TestCommand:
    def test_trains_and_resumes(self, run: Any, tmp_path: Path) -> None:
        arguments: list[Any] = ["train", "--devices", 6, "--waveguides", 3, "--antennas", 3, "--workers", 1]
        arguments += ["--scheme", "airpass-plus,mimo-mn-plus", "--evaluate-every", 1, "--out", tmp_path / "a"]
        arguments += ["--round-seconds", 0.1, "--speed-m-s", 2, "--motion", "lines", "--layout-every-ms", 200]
        assert run(*arguments, "--rounds", 2, "--json", tmp_path / "a.json").code == 0
        stored = json.loads((tmp_path / "a.json").read_text())["runs"]
        assert [one["config"]["motion"]["layout_every_s"] for one in stored] == [0.2, 0.2]
        assert stored[0]["config"]["motion"]["model"]["name"] == "StraightLines"
        assert run(*arguments, "--rounds", 3, "--resume", "--json", tmp_path / "b.json").code == 0
        longer = json.loads((tmp_path / "b.json").read_text())["runs"]
        assert [len(one["history"]) for one in longer] == [4, 4]

    @pytest.mark.parametrize(
        "flags",
        [
            ("--turns", "2"),
            ("--redraw-every", "2"),
            ("--design", "design.json"),
            ("--channels", "examples/channels.npz"),
        ],
    )
    def test_refuses_what_makes_no_sense(self, run: Any, flags: Any) -> None:
        assert_refused(run("train", "--round-seconds", 1, *flags), flags[0], "--round-seconds")

    def test_refuses_motion_without_time(self, run: Any) -> None:
        for flags in (("--speed-m-s", 1), ("--update", "follow"), ("--layout-every-ms", 20)):
            assert_refused(run("train", *flags), f"{flags[0]} requires --round-seconds")
        assert_refused(run("train", "--round-seconds", -1), "--round-seconds = -1")
        timed = ("--round-seconds", 1, "--time-limit-s", 1, "--resume")
        assert_refused(run("train", *timed), "--time-limit-s", "--resume")
        assert_refused(run("train", "--round-seconds", 1, "--layout-every-ms", 0), "--layout-every-ms = 0")
