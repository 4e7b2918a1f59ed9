"""The explorer's server: answers, jobs, files, safety. The page itself is tested in tests/browser."""

import asyncio
import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from email.message import Message
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tornado.websocket import WebSocketClosedError

import airpass
from airpass import Scenario, design, select
from airpass.core.errors import InvalidInput
from airpass.explore import maps
from airpass.explore.answers import answer
from airpass.explore.exports import commands, text_export
from airpass.explore.opened import LINK, Opened, open_path
from airpass.explore.server import LARGEST_MESSAGE, MOST_PAGES, Server
from airpass.explore.state import LIVE, State, Trusted, fitted_layout, read_state, state_of
from airpass.explore.studies import open_stored
from airpass.results import save
from airpass.study.stored import open_study
from command_line import assert_refused
from exploring import Client, close, connect, serving, talk

SMALL = {"scenario": {"devices": {"count": 6, "seed": 3}, "receiver": {"waveguides": 3, "antennas": 3}}}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def get(server: Server, path: str, **headers: str) -> tuple[int, Message]:
    """Status and headers of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
        connection.putrequest("GET", path, skip_host=True)
        for name, value in ({"Host": f"127.0.0.1:{server.port}"} | headers).items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        with connection.getresponse() as response:
            response.read()
            return response.status, response.headers


def upgrade(server: Server, **headers: str) -> int:
    """Status of a request for a socket that is refused; headers that are "" are left out."""
    sent = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        "Origin": f"http://127.0.0.1:{server.port}",
        "Cookie": f"{server.cookie}={server.token}",
        **headers,
    }
    return get(server, "/socket", **{name: value for name, value in sent.items() if value})[0]


class TestState:
    def test_a_live_answer_is_what_select_says(self) -> None:
        state = read_state({**SMALL, "seed": 5}, Trusted())
        found, scenario = state.design(), state.scenario
        chosen = select(
            scenario.channels(scenario.uniform_layout()), scenario.weights, scenario.budget, "hrmc+", seed=5
        )
        assert np.array_equal(found.beam, chosen.beam)
        assert np.array_equal(found.scores, chosen.scores)
        assert answer(found)["selected"] == chosen.selected.tolist()

    @pytest.mark.parametrize("method", ["airpass-plus", "mimo-mn-plus", "distributed-mn", "distributed-m"])
    def test_a_design_survives_as_a_state(self, method: str) -> None:
        scenario = read_state(SMALL, Trusted()).scenario
        found = design(scenario, method, seed=2)
        stored = json.loads(json.dumps(state_of(found).to_dict()))
        again = read_state(stored, Trusted()).design()
        assert np.array_equal(again.beam, found.beam)
        assert np.array_equal(again.scores, found.scores)
        assert again.method == found.method
        assert again.seed == 2

    def test_subcarriers_too(self) -> None:
        table = {**SMALL["scenario"], "channel": {"subcarriers": 3, "bandwidth_mhz": 2.0}}
        found = read_state({"scenario": table}, Trusted()).design()
        assert found.beam.shape == (3, 3)
        searched = design(found.scenario, "airpass-plus", seed=0)
        again = read_state(state_of(searched).to_dict(), Trusted()).design()
        assert np.array_equal(again.scores, searched.scores)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"seed": -1}, "seed"),
            ({"nonsense": 1}, "nonsense"),
            ({"scenario": None}, "scenario"),
            ({"scenario": {"devices": {"count": 5000}}}, "at most 2000"),
            ({"scenario": {"devices": {"count": 1e400}}}, "at most 2000"),
            ({"scenario": {"receiver": {"waveguides": 100}}}, "at most 64"),
            ({"scenario": {"receiver": 3}}, "scenario.receiver"),
            ({"scenario": {"channel": {"subcarriers": 1000, "bandwidth_mhz": 1}}}, "at most 64"),
            ({"scenario": {"channel": {"model": "./own.py:Wall"}}}, "registered models only"),
            ({"scenario": {"channel": {"models": [{"model": "os:system"}]}}}, "registered models only"),
            ({"scenario": {"channel": {"responses": "/etc/passwd"}}}, "may not name files"),
            ({"array": {"name": "airpass-plus"}}, "not an array"),
            ({"array": {"name": "os:system"}}, "must be one of"),
            ({"layout_m": 3}, "layout_m"),
            ({"layout_m": [["a"]]}, "layout_m"),
            ({"found": {"method": {"name": "airpass"}, "beam": {"re": [1.0], "im": [0.0]}}}, "shape"),
            (
                {"found": {"method": {"name": "airpass"}, "beam": {"re": [2.0, 0, 0], "im": [0, 0, 0]}}},
                "norm",
            ),
            ({"found": {"method": {"name": "airpass"}, "beam": {"re": "x", "im": 0}}}, "beam"),
            ({"found": {"method": 3, "beam": {"re": [1.0, 0, 0], "im": [0, 0, 0]}}}, "method"),
        ],
    )
    def test_what_is_refused(self, changes: dict[str, Any], words: str) -> None:
        with pytest.raises(InvalidInput, match=words):
            read_state({**SMALL, **changes}, Trusted()).design()

    def test_an_opened_scenario_may_name_files(self, tmp_path: Path) -> None:
        table = {"model": f"{tmp_path}/wall.py:Wall"}
        Trusted((table,)).check({"channel": dict(table)})
        with pytest.raises(InvalidInput):
            Trusted((table,)).check({"channel": {**table, "seed": 1}})

    @given(
        st.integers(1, 5),
        st.floats(0.0, 3.0),
        st.lists(st.floats(-100.0, 100.0), min_size=5, max_size=5),
    )
    def test_layouts_are_fitted(self, antennas: int, gap: float, places: list[float]) -> None:
        receiver = airpass.Receiver(waveguides=2, antennas=antennas, length_m=12.0, min_gap_m=gap)
        scenario = Scenario(receiver=receiver)
        found = fitted_layout(scenario, [places[:antennas], places[::-1][:antennas]])
        assert np.array_equal(scenario.checked_layout(found), found)
        assert np.array_equal(fitted_layout(scenario, found.tolist()), found)

    def test_fitting_is_a_projection(self) -> None:
        """On two antennas with gap 1 on 10 m, (5, 5) is nearest to (4.5, 5.5), and (-3, 20) to (0, 10)."""
        receiver = airpass.Receiver(waveguides=2, antennas=2, length_m=10.0, min_gap_m=1.0)
        found = fitted_layout(Scenario(receiver=receiver), [[5.0, 5.0], [-3.0, 20.0]])
        assert np.allclose(found, [[4.5, 5.5], [0.0, 10.0]])

    def test_a_changed_receiver_keeps_what_fits(self) -> None:
        scenario = Scenario.paper(waveguides=3, antennas=2)
        found = fitted_layout(scenario, [[1.0, 2.0], [3.0, 4.0, 5.0]])
        even = scenario.uniform_layout()
        assert found[0].tolist() == [1.0, 2.0]
        assert np.array_equal(found[1:], even[1:])

    def test_given_places(self) -> None:
        scenario = Scenario.from_dict(
            {"receiver": {"waveguides": 1, "antennas": 2}, "channel": {"candidates_m": 2.0}}
        )
        assert fitted_layout(scenario, [[4.9, 9.2]]).tolist() == [[4.0, 10.0]]


class TestMaps:
    def test_the_mean_gain(self) -> None:
        found = read_state(SMALL, Trusted()).design()
        request = {"plane": "floor", "at_m": 0.5, "low_m": [0, 0], "high_m": [4, 2], "points": [4, 2]}
        raw = maps.gain_map(found, request)
        assert np.frombuffer(raw, "<u4", 2).tolist() == [4, 2]
        x, y = np.array([0.5, 1.5, 2.5, 3.5] * 2), np.array([0.5] * 4 + [1.5] * 4)
        expected = 10.0 * np.log10(found.mean_gain(x, y, 0.5))
        assert np.allclose(np.frombuffer(raw, "<f4", offset=8), expected, atol=1e-4)
        cut = maps.gain_map(found, {**request, "plane": "cut"})
        expected = 10.0 * np.log10(found.mean_gain(x, np.full(8, 0.5), y))
        assert np.allclose(np.frombuffer(cut, "<f4", offset=8), expected, atol=1e-4)

    @pytest.mark.parametrize(
        "changes", [{"points": [1000, 1000]}, {"low_m": 3}, {"plane": "x"}, {"at_m": "a"}]
    )
    def test_refused(self, changes: dict[str, Any]) -> None:
        found = read_state(SMALL, Trusted()).design()
        request = {"plane": "floor", "at_m": 0.0, "low_m": [0, 0], "high_m": [4, 2], "points": [4, 2]}
        with pytest.raises(InvalidInput):
            maps.gain_map(found, request | changes)


class TestExports:
    @pytest.mark.parametrize(
        ("method", "options", "moved"),
        [
            ("airpass-plus", {"effort": "fast"}, False),
            ("airpass", {"selection": {"starts": 2}, "patience": 3}, False),
            ("mimo-mn-plus", {"axis": "xz"}, False),
            (None, {}, False),
            (None, {}, True),
        ],
    )
    def test_the_command_gives_the_same_design(
        self,
        run: Any,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        method: str | None,
        options: Any,
        moved: bool,
    ) -> None:
        scenario = Scenario.paper(devices=8, waveguides=3, antennas=3, seed=4)
        if method is None:
            layout = scenario.uniform_layout() + (0.123456789 if moved else 0.0)
            found = State(scenario, 11, layout).design()
        else:
            found = design(scenario, method, options=options, seed=11)
        monkeypatch.chdir(tmp_path)
        Path("scenario.toml").write_text(text_export(found, "toml"))
        Path("design.json").write_text(text_export(found, "json"))
        lines = commands(found)
        words = lines["command"].split()
        assert words[0] == "airpass"
        if not moved:
            Path("design.json").unlink()
        assert run(*words[1:]).code == 0
        again = airpass.load(words[-1])
        assert np.array_equal(again.beam, found.beam)
        assert np.array_equal(again.scores, found.scores)
        if found.layout is not None:
            assert np.array_equal(again.layout, found.layout)
        assert again.method == found.method
        scope: dict[str, Any] = {"print": lambda _: None}
        exec(lines["python"], scope)  # noqa: S102
        assert np.array_equal(scope["design"].scores, found.scores)

    def test_a_method_that_is_not_installed(self) -> None:
        state = read_state(SMALL, Trusted())
        table = state.to_dict() | {
            "found": {"method": {"name": "mine"}, "beam": {"re": [1.0, 0, 0], "im": [0, 0, 0]}}
        }
        found = read_state(table, Trusted()).design()
        assert commands(found)["command"] == ""
        assert "mine" in commands(found)["note"]


class TestOpening:
    def test_a_scenario(self, tmp_path: Path) -> None:
        Scenario.paper(devices=7, seed=2).save(tmp_path / "room.toml")
        opened = open_path(str(tmp_path / "room.toml"))
        assert opened.title == "room.toml"
        assert read_state(opened.state, opened.trusted).scenario.devices.count == 7

    def test_drawn_devices_stay_a_draw(self) -> None:
        assert open_path(None).state["scenario"]["devices"]["count"] == 10
        scenario = read_state(open_path(None).state, Trusted()).scenario
        assert np.array_equal(scenario.devices.x_m, Scenario.paper().devices.x_m)

    def test_a_design_a_book_and_a_run(self, tmp_path: Path) -> None:
        scenario = Scenario.paper(devices=5, waveguides=2, antennas=2, snr_db=0.0)
        found = design(scenario, "airpass-plus")
        found.save(tmp_path / "d.json")
        opened = open_path(str(tmp_path / "d.json"))
        assert np.array_equal(read_state(opened.state, opened.trusted).design().scores, found.scores)
        book = airpass.schedule(scenario, 2)
        book.save(tmp_path / "b.json")
        reopened = open_path(str(tmp_path / "b.json")).book
        assert reopened is not None
        assert reopened.turns == 2

    def test_links(self) -> None:
        state = read_state(SMALL, Trusted()).to_dict()
        packer = zlib.compressobj(wbits=-15)
        raw = packer.compress(json.dumps(state).encode()) + packer.flush()
        text = base64.urlsafe_b64encode(raw).decode().rstrip("=")
        assert open_path(f"http://127.0.0.1:1/{LINK}{text}").state == state
        for damaged in (text[:-9], "%%%", text[5:], ""):
            with pytest.raises(InvalidInput, match="link"):
                open_path(LINK + damaged)

    def test_a_bomb(self) -> None:
        packer = zlib.compressobj(wbits=-15)
        raw = packer.compress(b" " * 50_000_000) + packer.flush()
        with pytest.raises(InvalidInput, match="too large"):
            open_path(LINK + base64.urlsafe_b64encode(raw).decode())

    @pytest.mark.parametrize("arguments", [["--port", 70000], ["no-such-file"], ["--port", -1]])
    def test_refused(self, run: Any, arguments: list[Any]) -> None:
        assert_refused(run("explore", "--no-browser", *arguments))

    def test_a_selection_has_no_room(self, run: Any, tmp_path: Path) -> None:
        save(select(np.eye(2, 3) + 1.0, budget=1.0), tmp_path / "s.json")
        assert_refused(run("explore", tmp_path / "s.json"), "holds no room")

    def test_too_large(self, run: Any, tmp_path: Path) -> None:
        Scenario.paper(devices=3000).save(tmp_path / "big.toml")
        assert_refused(run("explore", tmp_path / "big.toml"), "at most 2000")

    def test_a_port_in_use(self, run: Any, server: Server) -> None:
        assert_refused(run("explore", "--no-browser", "--port", server.port), "--port", "cannot be used")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study") / "gap"
    airpass.sweep(
        {
            "name": "gap",
            "schemes": ["distributed-m", "mimo-m"],
            "trials": 3,
            "axis": {"field": "radio.snr_db", "values": [0.0, 10.0]},
            "scenario": {"devices": {"count": 6}},
        },
        folder,
        workers=1,
    )
    return folder


class TestStudies:
    def test_the_chart_has_the_means_of_the_rows(self, study: Path) -> None:
        opened = open_stored(open_study(study))
        (panel,) = opened.chart(None, None)["panels"]
        rows = [row for row in opened.rows if row.metric == "selected_count"]
        for line in panel["lines"]:
            assert line["points"] == ["0.0", "10.0"]
            for x, value, count in zip(line["x"], line["value"], line["count"], strict=True):
                values = [row.value for row in rows if row.scheme == line["scheme"] and row.x == x]
                assert value == pytest.approx(np.mean(values))
                assert count == len(values) == 3

    def test_the_scenario_behind_a_point(self, study: Path) -> None:
        opened = open_stored(open_study(study))
        tables, method, seed = opened.scenario("mimo-m", "10.0", 2)
        assert tables["radio"]["snr_db"] == 10.0
        assert tables["devices"]["seed"] == seed == 2
        assert method == {"method": "mimo-m"}
        with pytest.raises(InvalidInput):
            opened.scenario("mimo-m", "11.0", 2)

    def test_over_the_socket(self, study: Path) -> None:
        async def script(client: Client) -> None:
            about = await client.ask("study")
            assert about["rows"] > 0
            chart = await client.ask("chart", metric="weakest_score", over="points")
            assert chart["panels"][0]["ylabel"] == "weakest score"
            assert (await client.ask("chart", metric="nonsense"))["type"] == "error"
            point = await client.ask("point", scheme="distributed-m", point="0.0", trial=1)
            live = await client.ask("live", state=point["state"])
            rows = open_study(study).rows
            (count,) = [
                row.value
                for row in rows
                if (row.scheme, row.x, row.trial, row.metric) == ("distributed-m", 0.0, 1, "selected_count")
            ]
            assert live["selected_count"] == count

        with serving(open_path(str(study))) as running:
            talk(running, script)

    @pytest.mark.parametrize("name", ["fig2", "fig6", "fig9", "table1"])
    def test_points_of_the_papers_figures(self, name: str) -> None:
        """Every point of a chart leads to a trial of its scheme."""
        from airpass.explore.studies import OpenStudy
        from airpass.study.paper import figures

        figure = figures()[name]
        trials = figure.trials("smoke")
        metrics = ("test_accuracy", "train_loss", "selected_count", "seconds")
        rows = [one.row(metric, 1.0, n) for one in trials for metric in metrics for n in (0, 1)]
        titles = {point.title: point.label for point in getattr(figure, "points", ())}
        opened = OpenStudy(name, [], rows, figure.chart(rows), (), trials, titles)
        for panel in opened.chart(None, None)["panels"]:
            for line in panel["lines"]:
                assert line["scheme"] is not None
                for point in line["points"]:
                    if line["scheme"] != "fedavg":
                        opened.scenario(line["scheme"], point, 0)


class TestTheServer:
    def test_requests(self, server: Server) -> None:
        async def script(client: Client) -> None:
            hello = await client.ask("hello")
            assert hello["version"] == airpass.__version__
            assert {"airpass-plus", "airpass"} <= {one["name"] for one in hello["methods"]}
            live = await client.ask("live", state=hello["state"])
            assert live["source"] == "live"
            assert len(live["scores"]) == 10
            request = {"plane": "floor", "at_m": 0, "low_m": [0, 0], "high_m": [9, 9], "points": [3, 3]}
            assert len(await client.ask("map", state=hello["state"], **request)) == 8 + 4 * 9
            for kind in ("toml", "json"):
                assert (await client.ask("export", state=hello["state"], kind=kind))["text"]
            picture = await client.ask("export", state=hello["state"], kind="png")
            assert base64.b64decode(picture["base64"]).startswith(b"\x89PNG")
            drawn = await client.ask("draw", devices={"count": 3, "seed": 1})
            assert len(drawn["devices"]["x_m"]) == 3
            preset = await client.ask("preset", name="indoor-28ghz")
            assert (await client.ask("live", state=preset["state"]))["carrier_ghz"] == pytest.approx(28.0)
            assert (await client.ask("links", state=hello["state"], device=0))["links"] is None
            assert "device" in (await client.ask("links", state=hello["state"], device=99))["message"]
            for kind in ("study", "book", "chart", "point"):
                assert "opened" in (await client.ask(kind))["message"]

        talk(server, script)

    def test_blocked_links(self, server: Server) -> None:
        state = {"scenario": {**SMALL["scenario"], "channel": {"blockage_per_m": 0.2, "seed": 1}}}

        async def script(client: Client) -> Any:
            return await client.ask("links", state=state, device=2)

        scenario = read_state(state, Trusted()).scenario
        values = np.abs(scenario.uplink.factor(scenario.uniform_layout())[:, :, 2])  # type: ignore[attr-defined]
        assert np.allclose(talk(server, script)["links"], np.minimum(values, 1.0))
        assert 0 < (values < 0.5).sum() < values.size

    def test_garbage_is_answered(self, server: Server) -> None:
        async def script(client: Client) -> None:
            texts = ["", "nonsense", "[]", "{}", '{"id": true}', '{"id": -1}', '{"id": 1e999}', "[" * 9000]
            texts += [
                '{"id": 1}',
                '{"id": 2, "type": 3}',
                '{"id": 3, "type": "x"}',
                '{"id": 4, "type": "live"}',
            ]
            texts += ['{"id": 5, "type": "live", "state": {"scenario": {"radio": {"snr_db": NaN}}}}']
            texts += ['{"id": 6, "type": "cancel"}', '{"id": 7, "type": "draw", "devices": "x"}']
            texts += ["9" * 100_000, '{"id": 8, "type": "export", "kind": ["png"]}', "\x00\ud7ff"]
            for text in texts:
                await client.socket.write_message(text)
                message = await client.socket.read_message()
                assert isinstance(message, str)
                assert json.loads(message)["type"] in ("error", "answer")
            await client.socket.write_message(b"\x00\xff" * 10, binary=True)
            refused = await client.socket.read_message()
            assert isinstance(refused, str)
            assert "text" in json.loads(refused)["message"]
            assert (await client.ask("live", state=SMALL))["type"] == "answer"

        talk(server, script)

    def test_an_oversized_message_ends_only_its_page(self, server: Server) -> None:
        async def script(client: Client) -> None:
            other = Client(await connect(server))
            with suppress(WebSocketClosedError):  # it may be closed before all is sent
                await other.socket.write_message("x" * (LARGEST_MESSAGE + 1))
            assert await other.socket.read_message() is None
            other.socket.close()
            assert (await client.ask("live", state=SMALL))["type"] == "answer"

        talk(server, script)

    def test_too_many_pages(self, server: Server) -> None:
        async def main() -> None:
            sockets = [await connect(server) for _ in range(MOST_PAGES)]
            assert await asyncio.to_thread(upgrade, server) == 503
            for socket in sockets:
                await close(socket)
            for _ in range(50):
                await asyncio.sleep(0.1)
                if not server.pages:
                    break
            await close(await connect(server))

        asyncio.run(main())


class TestSafety:
    def test_the_page_needs_the_token(self, server: Server) -> None:
        assert get(server, "/")[0] == 403
        assert get(server, "/?token=wrong")[0] == 403
        assert get(server, "/?token=%ff")[0] in (400, 403)
        status, headers = get(server, f"/?token={server.token}")
        assert status == 200
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert get(server, "/", Cookie=f"{server.cookie}={server.token}")[0] == 200

    def test_headers(self, server: Server) -> None:
        _, headers = get(server, f"/?token={server.token}")
        assert headers["Content-Security-Policy"].startswith("default-src 'self'")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1"])
    def test_other_hosts_are_refused(self, server: Server, host: str) -> None:
        assert get(server, f"/?token={server.token}", Host=host)[0] in (400, 403)
        assert get(server, "/page/main.js", Host=host)[0] in (400, 403)

    @pytest.mark.parametrize(
        "path",
        [
            "/page/../server.py",
            "/page/%2e%2e/server.py",
            "/page/../../cli/root.py",
            "/etc/passwd",
            "/page/",
            "/x",
        ],
    )
    def test_only_files_of_the_page_are_served(self, server: Server, path: str) -> None:
        assert get(server, path)[0] == 404

    def test_a_file_of_the_page(self, server: Server) -> None:
        status, headers = get(server, "/page/main.js")
        assert status == 200
        assert headers["Content-Type"].startswith("text/javascript")

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Origin": ""},
            {"Origin": "https://127.0.0.1"},
            {"Cookie": ""},
            {"Cookie": "airpass-1=x"},
            {"Host": "evil.example", "Origin": "http://evil.example"},
        ],
    )
    def test_sockets_of_others_are_refused(self, server: Server, headers: dict[str, str]) -> None:
        assert upgrade(server, **headers) in (400, 403)

    def test_loopback_only(self, server: Server) -> None:
        assert server._listening.getsockname()[0] == "127.0.0.1"


@pytest.mark.slow
class TestJobs:
    def test_a_design_and_what_follows(self, server: Server) -> None:
        async def script(client: Client) -> None:
            state = (await client.ask("hello"))["state"]
            method = {"name": "airpass-plus", "options": {"effort": "fast"}}
            found = await client.ask("design", state=state, method=method)
            steps = [message["step"] for message in client.progress if "step" in message]
            assert steps
            assert len(steps[0]["layout_m"]) == 5
            scenario = Scenario.paper()
            expected = design(scenario, "airpass-plus", options={"effort": "fast"}, seed=0)
            assert expected.layout is not None
            assert found["state"]["layout_m"] == expected.layout.tolist()
            assert found["answer"]["scores"] == expected.scores.tolist()
            assert found["answer"]["method"]["options"]["threads"] is None
            live = await client.ask("live", state=found["state"])
            assert live["scores"] == found["answer"]["scores"]
            bounds = await client.ask("certificate", state=state)
            assert bounds["selected_count"] <= bounds["beams"] <= bounds["layouts"] <= 10
            life = await client.ask("life", state=found["state"], draws=3)
            assert life["means"]["re-solved"][0] == expected.selected_count
            tolerance = await client.ask("tolerance", state=found["state"], draws=3, position_mm=5)
            assert tolerance["means"]["as designed"][0] == expected.selected_count
            book = await client.ask("turns", state=state, turns=2)
            assert len(book["turns"]) == 2
            assert np.allclose(np.sum([turn["shares"] for turn in book["turns"]], axis=0), book["served"])
            refused = await client.ask("life", state=state, draws=10**9)
            assert "draws" in refused["message"]

        talk(server, script)

    def test_training(self, server: Server) -> None:
        async def script(client: Client) -> None:
            state = (await client.ask("hello"))["state"]
            links = [{"label": "room", "state": state}]
            found = await client.ask("train", links=links, rounds=4, seed=0)
            assert found["labels"] == ["FedAvg (ideal)", "room"]
            assert [run["rounds"][-1] for run in found["runs"]] == [4, 4]
            same = airpass.train(read_state(state, Trusted()).design(), rounds=4, seed=0, progress=False)
            assert found["runs"][1]["accuracy"][-1] == same.history[-1].test_accuracy
            samples = await client.ask("samples", state=state, seed=0)
            assert len(samples["samples"]) == 10

        talk(server, script)

    def test_cancel(self, server: Server) -> None:
        sizes = {"devices": {"count": 60}, "receiver": {"waveguides": 12, "antennas": 12}}
        state = {"scenario": {**sizes, "radio": {"snr_db": -14.0}}}

        async def script(client: Client) -> None:
            method = {"name": "airpass-plus", "options": {"effort": "thorough"}}
            number = await client.send("design", state=state, method=method)
            while not client.progress:
                refused = await client.ask("life", state=SMALL)
                assert "another job is running" in refused["message"]
                await asyncio.sleep(0.2)
            began = time.monotonic()
            await client.send("cancel", job=number)
            assert (await client.last(number))["message"] == "cancelled"
            assert time.monotonic() - began < 5.0
            fast = {"name": "distributed-m"}
            assert (await client.ask("design", state=SMALL, method=fast))["type"] == "answer"

        talk(server, script)

    def test_a_child_that_is_killed(self, server: Server) -> None:
        async def script(client: Client) -> None:
            await client.ask("samples", state=SMALL)
            (page,) = server.pages
            assert page.session is not None
            child = page.session.jobs._child
            assert child is not None
            method = {"name": "airpass-plus", "options": {"effort": "thorough"}}
            state = {"scenario": {"devices": {"count": 60}, "receiver": {"waveguides": 12, "antennas": 12}}}
            number = await client.send("design", state=state, method=method)
            await asyncio.sleep(0.3)
            os.kill(child.pid, signal.SIGKILL)
            assert "killed" in (await client.last(number))["message"]
            assert (await client.ask("samples", state=SMALL))["type"] == "answer"

        talk(server, script)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_ends_cleanly(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "airpass", "explore", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0
    assert (out, err) == ("", "")


def test_the_live_method_is_registered() -> None:
    assert airpass.designs.METHODS.methods()[LIVE.name] == LIVE
    assert isinstance(open_path(None), Opened)
